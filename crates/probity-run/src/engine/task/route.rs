//! A model chooses skills from an index.

use std::sync::Arc;

use probity_core::{
    classification::Class,
    evidence::{Choice, Evidence},
    record::{Aborted, Kept},
};
use probity_grade::{again::fallback_role, routing::says_yes};
use probity_load::skill::Library;

use super::{Ended, Handle, Prepared, Query, Target, Unanswered, failed, finish};
use crate::{
    grade::{self, Heard},
    work,
};

/// Asks for the skills; where the reply cannot be read, asks about each that would be right.
pub(super) async fn run(
    case: Prepared,
    skills: &Arc<Library>,
    mut handle: Handle,
) -> Result<Ended, Aborted> {
    let query = Query {
        target: Target::Subject,
        role: "choose",
        kept: Kept::Answer,
        request: &case.request,
        repeat: case.repeat,
    };
    let reply = match handle.query(query).await {
        Ok(reply) => reply,
        Err(unanswered) => return failed(case, None, handle, unanswered),
    };
    let heard = Heard { reply: Some(&reply), ..Heard::default() };
    let classification =
        grade::classify_reply(&case, &handle.subject.backend, handle.spent(), heard);
    let may_ask = match classification.details.evidence.as_deref() {
        // A group of look-alikes is there to be told apart at once.
        Some(Evidence::Activation(routed)) => {
            routed.should_activate
                && routed.choice == Choice::Unreadable
                && classification.class() == Class::WrongFormat
        }
        _ => false,
    };
    if !may_ask {
        return Ok(finish(case, handle, Some(reply), classification));
    }
    let mut chosen = Vec::new();
    let candidates: Vec<String> = match case.expectation.routing() {
        Some(routing) => routing.candidates().map(ToOwned::to_owned).collect(),
        None => Vec::new(),
    };
    for id in candidates {
        match is_of_use(&case, skills, &id, &mut handle).await {
            Ok(true) => chosen.push(id),
            Ok(false) => {}
            Err(unanswered) => return failed(case, Some(reply), handle, unanswered),
        }
    }
    let heard = Heard { reply: Some(&reply), chosen: Some(&chosen), ..Heard::default() };
    let classification =
        grade::classify_reply(&case, &handle.subject.backend, handle.spent(), heard);
    Ok(finish(case, handle, Some(reply), classification))
}

/// Asks about one skill, for a yes or a no.
async fn is_of_use(
    case: &Prepared,
    skills: &Library,
    id: &str,
    handle: &mut Handle,
) -> Result<bool, Unanswered> {
    let Some(skill) = skills.skills.get(id) else { return Ok(false) };
    let request = work::yes_or_no(skill, case.request.prompt());
    let role = fallback_role(id);
    let query = Query {
        target: Target::Subject,
        role: &role,
        kept: Kept::Answer,
        request: &request,
        repeat: case.repeat,
    };
    Ok(says_yes(&handle.query(query).await?.answer()))
}
