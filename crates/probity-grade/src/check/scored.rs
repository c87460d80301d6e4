//! Checks that are code of users: a script in process, a scorer outside of it.

use std::sync::Arc;

use probity_core::scored::Scored;
use serde_json::Value;

use super::Checked;
use crate::{
    excerpt::beginning,
    reply::Reply,
    script::{self, Script},
};

/// Characters of a scorer's reason that are kept.
const LONGEST_REASON: usize = 1000;

/// A script that scores replies.
#[derive(Clone, Debug)]
pub(crate) struct Scripted {
    pub(crate) script: Arc<dyn Script>,
    pub(crate) config: Option<Value>,
    pub(crate) threshold: Option<f64>,
}

impl Scripted {
    pub(super) fn check(&self, reply: &Reply<'_, '_>) -> Checked {
        checked(script::score(&*self.script, self.config.as_ref(), self.threshold, reply))
    }
}

/// A scorer that was asked before the reply is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedScorer {
    /// Which of those of the case.
    pub(crate) number: usize,
    pub(crate) threshold: Option<f64>,
}

impl AskedScorer {
    pub(super) fn check(self, reply: &Reply<'_, '_>) -> Checked {
        match reply.result.scored.get(self.number) {
            Some(Ok(returned)) => {
                let scored = Scored::read(returned, self.threshold);
                checked(scored.map_err(|why| format!("the scorer failed: {why}")))
            }
            Some(Err(why)) => Checked::unjudged(why.clone()),
            None => Checked::unjudged("the scorer was not asked".to_owned()),
        }
    }
}

/// What was said of a reply, or why nothing was.
fn checked(said: Result<Scored, String>) -> Checked {
    let Scored { pass, score, reason, scores } = match said {
        Ok(scored) => scored,
        Err(why) => return Checked::unjudged(why),
    };
    let why = || (!pass).then(|| format!("the score is {score}"));
    let reason = reason.map(|it| beginning(&it, LONGEST_REASON)).or_else(why);
    let value = Some(score.clamp(0.0, 1.0));
    Checked { value, passed: pass, reason, named: scores, ..Checked::holds() }
}
