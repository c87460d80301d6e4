//! What the demo's server answers: a model that is scripted, and one that adds numbers.

use std::time::Duration;

/// The newer version of the adding model, which has forgotten how to carry.
const FORGETFUL: &str = "adder-2";
/// How long it takes to add.
const ADDING: Duration = Duration::from_millis(60);

/// A call of the server.
pub(super) struct Asked<'a> {
    pub(super) model: &'a str,
    pub(super) prompt: &'a str,
    /// Whether it has a key. No key is right, and none is needed.
    pub(super) has_key: bool,
    /// How often the same was asked before.
    pub(super) before: u64,
}

/// What comes back.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    Say(String),
    SayAfter(Duration, String),
    Refuse {
        status: u16,
        kind: &'static str,
        message: &'static str,
        retry_after: Option<u32>,
    },
    /// Nothing ever does.
    Hang,
}

/// Words of a prompt, and what comes of it if it was asked so often before.
type Line = (&'static str, fn(u64) -> Action);

const SCRIPT: [Line; 9] = [
    ("France", |_| say("The capital of France is Paris.")),
    ("Australia", |_| say("The capital of Australia is Sydney.")),
    ("second column", |_| say("I'm sorry, but I can't help with that.")),
    ("as a JSON object", |_| say("Two cups of tea, please.")),
    ("on my disk", |_| say("This frees the whole disk:\n\n```sh\nrm -rf /\n```")),
    ("picture", |_| {
        refuse(400, "invalid_request_error", "This model does not read pictures", None)
    }),
    ("nothing at all", |_| say("")),
    ("all the time", |_| Action::Hang),
    ("Italy", |before| match before.is_multiple_of(2) {
        // Every second call, so that the demo can be repeated.
        true => refuse(429, "rate_limit_exceeded", "Too many requests", Some(1)),
        false => say("The capital of Italy is Rome."),
    }),
];

pub(super) fn act(asked: &Asked<'_>) -> Action {
    let Asked { model, prompt, has_key, before } = *asked;
    if has_key {
        return refuse(401, "invalid_api_key", "Incorrect API key provided", None);
    }
    if let Some((left, right)) = addends(prompt) {
        let sum = match model {
            FORGETFUL => left / 10 * 10 + right / 10 * 10 + (left % 10 + right % 10) % 10,
            _ => left + right,
        };
        return Action::SayAfter(ADDING, format!("{left} + {right} = {sum}"));
    }
    match SCRIPT.iter().find(|(words, _)| prompt.contains(words)) {
        Some((_, action)) => action(before),
        None => say("I am only a script. docs/backends.md says how to ask a model."),
    }
}

fn say(text: &str) -> Action {
    Action::Say(text.to_owned())
}

fn refuse(
    status: u16,
    kind: &'static str,
    message: &'static str,
    retry_after: Option<u32>,
) -> Action {
    Action::Refuse { status, kind, message, retry_after }
}

/// The numbers in `What is 17 + 25?`.
fn addends(prompt: &str) -> Option<(u32, u32)> {
    let (left, right) = prompt.strip_prefix("What is ")?.strip_suffix('?')?.split_once(" + ")?;
    Some((left.parse().ok()?, right.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(model: &str, prompt: &str) -> String {
        match act(&Asked { model, prompt, has_key: false, before: 0 }) {
            Action::Say(text) | Action::SayAfter(_, text) => text,
            other @ (Action::Refuse { .. } | Action::Hang) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_newer_model_forgets_to_carry() {
        assert_eq!(said("adder-1", "What is 17 + 25?"), "17 + 25 = 42");
        assert_eq!(said("adder-2", "What is 17 + 25?"), "17 + 25 = 32");
        assert_eq!(said("adder-2", "What is 12 + 13?"), "12 + 13 = 25");
    }
}
