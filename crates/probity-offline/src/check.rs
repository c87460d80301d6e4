//! One detector on one text: requests and answers, each a JSON object.

pub mod command;
pub mod error;

use std::{
    io::{self, Read},
    ops::ControlFlow,
};

use probity_core::{
    criteria::JsonLevel,
    json::{Limits, parse_located},
    located::NodeValue,
};
use probity_grade::{
    json::{Step, Wanted, extract},
    policy::Policies,
    refusal::RefusalRules,
};
use probity_load::lines::{LONGEST_LINE, Line};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::pipeline::{self, Broken, Done, Job};

/// A request of the detectors that look at one text.
#[derive(Debug, Deserialize)]
pub struct TextRequest<'t> {
    /// What it is called, as it was written.
    #[serde(borrow, default)]
    id: Option<&'t RawValue>,
    /// The text.
    pub text: String,
}

/// What a line asks.
trait Request<'t>: Deserialize<'t> {
    /// What it is called, as it was written.
    fn id(&self) -> Option<&'t RawValue>;

    /// A request that reads at once, and its id. None says nothing: it is read again for what is wrong with it.
    fn at_once(text: &'t str) -> Option<(&'t str, Self)> {
        // A list would read, too.
        let is_object = text.trim_ascii_start().starts_with('{');
        let request: Self = is_object.then(|| serde_json::from_str(text).ok())??;
        Some((request.id().map_or(NO_ID, RawValue::get), request))
    }
}

/// The id of a request without one.
const NO_ID: &str = "null";

impl<'t> Request<'t> for TextRequest<'t> {
    fn id(&self) -> Option<&'t RawValue> {
        self.id
    }

    /// Most of the line is one long text with many escapes, which our own parser has in a third of the time.
    fn at_once(line: &'t str) -> Option<(&'t str, Self)> {
        let node = parse_located(line, &Limits::default()).ok()?;
        let id = node.get("id").map_or(NO_ID, |id| &line[id.span.clone()]);
        let NodeValue::Object(entries) = node.value else { return None };
        // Of a name that stands there twice, the last one counts.
        let text = entries.into_iter().rfind(|it| it.key == "text")?;
        let NodeValue::String(text) = text.node.value else { return None };
        Some((id, Self { id: None, text }))
    }
}

/// Whether a text declines.
#[derive(Debug, Serialize)]
pub struct RefusalAnswer {
    refusal: bool,
    phrase: Option<String>,
    span: Option<[usize; 2]>,
}

/// Says whether a text declines.
pub fn refusal(rules: &RefusalRules, text: &str) -> RefusalAnswer {
    let found = rules.detect(text);
    RefusalAnswer {
        refusal: found.is_some(),
        span: found.as_ref().map(|it| [it.span.start, it.span.end]),
        phrase: found.map(|it| it.phrase),
    }
}

/// The JSON value in a text.
#[derive(Debug, Serialize)]
pub struct JsonAnswer {
    value: Option<Value>,
    steps: Vec<Step>,
    error_message: Option<String>,
}

/// Finds the JSON value in a text.
pub fn json(text: &str, level: JsonLevel, wanted: Wanted) -> JsonAnswer {
    let found = extract(text, level, wanted);
    JsonAnswer {
        value: found.value.filter(|value| wanted.accepts(value)),
        steps: found.steps,
        error_message: found.error.map(|error| error.to_string()),
    }
}

/// Where a text breaks policies.
#[derive(Debug, Serialize)]
pub struct PolicyAnswer {
    hits: Vec<PolicyHit>,
}

#[derive(Debug, Serialize)]
struct PolicyHit {
    policy: String,
    rule: String,
    span: [usize; 2],
}

/// Finds where a text breaks policies.
pub fn policy(policies: &Policies, text: &str) -> PolicyAnswer {
    let hits = policies.scan(text).into_iter().map(|hit| PolicyHit {
        policy: hit.policy,
        rule: hit.rule,
        span: [hit.span.start, hit.span.end],
    });
    PolicyAnswer { hits: hits.collect() }
}

/// What answers requests. What a request does not say is as the settings say.
pub enum Detector<'r> {
    /// Does a text decline?
    Refusal(&'r RefusalRules),
    /// Is there JSON in it?
    Json(JsonLevel, Wanted),
    /// Does it break policies?
    Policy(&'r Policies),
    /// What does a shell command mean?
    Command(command::Settings<'r>),
    /// What does an error mean?
    Error(error::Settings<'r>),
}

/// Answers requests, one a line, on several threads. `take` gets the answers and what is wrong with lines that are no
/// requests. Such a line is answered with `error`, so that answers and requests stay side by side.
pub fn answer_all(
    detector: &Detector<'_>,
    threads: usize,
    input: &mut dyn Read,
    take: &mut Take<'_>,
) -> Result<(), Broken> {
    pipeline::run(detector, threads, input, take)
}

/// Gets answers in order; see [`pipeline::run`].
pub type Take<'t> = dyn FnMut(Done<Vec<String>>, bool) -> io::Result<ControlFlow<()>> + Send + 't;

impl Job for Detector<'_> {
    type Worker<'j>
        = ()
    where
        Self: 'j;
    type Found = Vec<String>;

    fn worker(&self) {}

    fn is_slow(&self, lines: &[u8]) -> bool {
        match self {
            Self::Command(settings) => settings.may_execute(lines),
            Self::Refusal(_) | Self::Json(..) | Self::Policy(_) | Self::Error(_) => false,
        }
    }

    fn line(&self, (): &mut (), line: Line<'_>, done: &mut Done<Vec<String>>) {
        let text = |it: TextRequest<'_>| it.text;
        let broken = match self {
            Self::Refusal(rules) => answer(line, done, |it| refusal(rules, &text(it))),
            Self::Json(level, wanted) => answer(line, done, |it| json(&text(it), *level, *wanted)),
            Self::Policy(policies) => answer(line, done, |it| policy(policies, &text(it))),
            Self::Command(settings) => {
                answer(line, done, |it: command::Request<'_>| settings.answer(&it))
            }
            Self::Error(settings) => {
                answer(line, done, |it: error::Request<'_>| settings.answer(&it))
            }
        };
        if let Err((id, message)) = broken {
            let message = format!("line {}: {message}", line.number);
            write_answer(&mut done.output, id, &Fault { error: &message });
            done.found.push(message);
        }
    }
}

#[derive(Serialize)]
struct Fault<'m> {
    error: &'m str,
}

/// Answers one request, or gives its id as far as there is one and what is wrong.
fn answer<'t, Asked: Request<'t>, Answer: Serialize>(
    line: Line<'t>,
    done: &mut Done<Vec<String>>,
    answer: impl FnOnce(Asked) -> Answer,
) -> Result<(), (&'t str, String)> {
    let (id, request) = parse(line.bytes, line.too_long)?;
    write_answer(&mut done.output, id, &answer(request));
    Ok(())
}

/// The fields of the answer after the id, which is copied as it was written. Every answer is a table with fields.
fn write_answer(output: &mut Vec<u8>, id: &str, answer: &impl Serialize) {
    output.extend_from_slice(b"{\"id\":");
    output.extend_from_slice(id.as_bytes());
    let brace = output.len();
    // Writing into memory cannot fail, and neither can our own types.
    let _ = serde_json::to_writer(&mut *output, answer);
    if let Some(byte) = output.get_mut(brace) {
        *byte = b',';
    }
    output.push(b'\n');
}

/// A request and its id, or the id as far as there is one and what is wrong.
fn parse<'t, Asked: Request<'t>>(
    bytes: &'t [u8],
    too_long: bool,
) -> Result<(&'t str, Asked), (&'t str, String)> {
    if too_long {
        return Err((NO_ID, format!("longer than {} MiB", LONGEST_LINE >> 20)));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| (NO_ID, format!("not UTF-8 from byte {} on", error.valid_up_to())))?;
    if let Some(request) = Asked::at_once(text) {
        return Ok(request);
    }
    let node = parse_located(text, &Limits::default())
        .map_err(|error| (NO_ID, format!("{} (column {})", error.kind, error.column)))?;
    if !matches!(node.value, NodeValue::Object(_)) {
        return Err((NO_ID, format!("a request must be a JSON object, not {}", node.kind())));
    }
    let id = node.get("id").map_or(NO_ID, |id| &text[id.span.clone()]);
    let mut fields = node.to_json();
    if let Some(fields) = fields.as_object_mut() {
        fields.shift_remove("id");
    }
    Asked::deserialize(fields).map(|request| (id, request)).map_err(|error| (id, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(&str, String), (&str, String)> {
        parse::<TextRequest<'_>>(line.as_bytes(), false).map(|(id, it)| (id, it.text))
    }

    #[test]
    fn a_text_is_read_with_its_id_as_it_was_written() {
        let ok = |id, text: &str| Ok((id, text.to_owned()));
        assert_eq!(read(r#"{"id": {"a": 1.0}, "text": "a\n\u00e9"}"#), ok(r#"{"a": 1.0}"#, "a\né"));
        assert_eq!(read(r#"{"text":"a"}"#), ok("null", "a"));
        assert_eq!(read(r#"{"id":null,"t\u0065xt":"a","else":[1]}"#), ok("null", "a"));
        // The last one counts.
        assert_eq!(read(r#"{"id":1,"text":2,"id":3,"text":"a"}"#), ok("3", "a"));
    }

    #[test]
    fn what_is_no_request_is_told_with_the_id_that_it_has() {
        let wrong =
            |line: &str| read(line).map_err(|(id, why)| format!("{id}: {why}")).unwrap_err();
        assert_eq!(wrong(r#"{"id":7}"#), "7: missing field `text`");
        assert_eq!(wrong(r#"{"id":7,"text":null}"#), "7: invalid type: null, expected a string");
        assert_eq!(wrong(r#"["a"]"#), "null: a request must be a JSON object, not a list");
        assert_eq!(
            wrong(r#"{"text":"a"} b"#),
            "null: expected the end of the text, found `b` (column 14)"
        );
    }
}
