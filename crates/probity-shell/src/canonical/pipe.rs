//! Pipelines: stages that can be written without a pipe.

use super::{CommandForm, Form, Join, compound, find};

/// The pipeline with needless stages taken out.
pub(super) fn simplified(mut joints: Vec<bool>, mut parts: Vec<Form>) -> Form {
    while parts.len() > 1 && joints.get(1) == Some(&false) {
        let merged = match (&parts[0], &parts[1]) {
            (Form::Command(first), Form::Command(second)) => {
                from_cat(first, second).or_else(|| find::with_xargs(first, second))
            }
            _ => None,
        };
        let Some(merged) = merged else { break };
        parts.splice(..2, [Form::Command(Box::new(merged))]);
        joints.remove(1);
    }
    match parts.len() {
        1 => parts.remove(0),
        _ => compound(Join::Pipe(joints), parts),
    }
}

/// `cat f | cmd` is `cmd < f`.
fn from_cat(cat: &CommandForm, next: &CommandForm) -> Option<CommandForm> {
    let [input] = &*cat.redirects else { return None };
    let plain = cat.is("cat") && cat.tokens.len() == 1 && input.is_input() && input.op == "<";
    if !plain
        || next.redirects.iter().any(super::redirect::RedirectForm::is_input)
        || next.tokens.is_empty()
    {
        return None;
    }
    let mut merged = next.clone();
    merged.redirects.insert(0, input.clone());
    Some(merged)
}
