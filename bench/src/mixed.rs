//! Lines as runs have them: answers, lists, JSON whole and broken, commands, code, refusals and errors, 830 bytes each on average.
//!
//! The same number gives the same line on every machine, so that what is measured on them can be compared.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use fastrand::Rng;
use serde_json::json;

use crate::shell::COMMANDS;

/// How long a line is, on average and in bytes; pairs of commands are as short as they are.
const LENGTH: usize = 830;
/// What else is on a line beside a text.
const ID: usize = 40;
/// The same, where the line is a result.
const FACTS: usize = 275;

/// What a line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Stored results, for `classify`.
    Results,
    /// Replies of all kinds, for the detectors that look at texts.
    Texts,
    /// Replies with JSON, a third of it broken.
    Json,
    /// What services and programs say when they fail.
    Errors,
    /// Two shell commands.
    Pairs,
}

impl Kind {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "results" => Some(Self::Results),
            "texts" => Some(Self::Texts),
            "json" => Some(Self::Json),
            "errors" => Some(Self::Errors),
            "pairs" => Some(Self::Pairs),
            _ => None,
        }
    }
}

/// Writes so many lines of a kind; says how many bytes they are.
pub(crate) fn write(kind: Kind, count: usize, output: &mut impl Write) -> io::Result<usize> {
    let mut bytes = 0;
    for at in 0..count {
        let mut line = line(kind, at);
        line.push('\n');
        bytes += line.len();
        output.write_all(line.as_bytes())?;
    }
    output.flush()?;
    Ok(bytes)
}

fn line(kind: Kind, at: usize) -> String {
    let rng = &mut Rng::with_seed(u64::try_from(at).unwrap_or_default());
    match kind {
        Kind::Results => result(rng, at),
        Kind::Texts => json!({ "id": at, "text": reply(rng, at, LENGTH - ID) }).to_string(),
        Kind::Json => {
            let text = object_in_reply(rng, at.is_multiple_of(3), LENGTH - ID);
            json!({ "id": at, "text": text }).to_string()
        }
        Kind::Errors => {
            json!({ "id": at, "status": 429, "text": failure(rng, at, LENGTH - ID) }).to_string()
        }
        Kind::Pairs => {
            let (left, right) = COMMANDS[at % COMMANDS.len()];
            json!({ "id": at, "command": left, "against": right }).to_string()
        }
    }
}

fn result(rng: &mut Rng, at: usize) -> String {
    let mut line = json!({
        "case_id": format!("case-{at}"),
        "suite_id": format!("suite-{}", at % 5),
        "run_id": "run-1",
        "model_id": "model-x",
        "timestamp_utc": "2026-01-01T00:00:00Z",
        "latency_ms": rng.u32(200..9000),
    });
    match at % 20 {
        0 | 1 => {
            line["raw_response"] = json!(null);
            line["error"] = json!(failure(rng, at, LENGTH - FACTS));
        }
        2..=4 => {
            line["expected_format"] = json!("json_object");
            line["raw_response"] = json!(object_in_reply(rng, at % 20 == 4, LENGTH - FACTS));
        }
        5 | 6 => {
            line["expected_response"] = json!(pick(rng, NOUNS));
            line["match"] = json!("icontains");
            line["raw_response"] = json!(refusal(rng, LENGTH - FACTS));
        }
        7..=9 => {
            line["expected_command"] = json!(COMMANDS[at % COMMANDS.len()].1);
            line["raw_response"] = json!(command_in_reply(rng, at, LENGTH - FACTS));
        }
        _ => {
            line["assert"] = json!([
                { "type": "icontains", "value": pick(rng, NOUNS) },
                { "type": "not-contains", "value": "zebra" },
                { "type": "regex", "value": "the [a-z]+ of the" },
            ]);
            line["raw_response"] = json!(reply(rng, at, LENGTH - FACTS));
        }
    }
    line.to_string()
}

fn reply(rng: &mut Rng, at: usize, length: usize) -> String {
    match at % 20 {
        0..=2 => object_in_reply(rng, at % 20 == 2, length),
        3..=5 => command_in_reply(rng, at, length),
        6 | 7 => refusal(rng, length),
        8 | 9 => code_in_reply(rng, length),
        10..=12 => {
            let mut text = format!("Here is what matters about {}:\n\n", pick(rng, NOUNS));
            for number in 1..=5 {
                let _ = writeln!(text, "{number}. **{}**: {}", pick(rng, NOUNS), sentence(rng));
            }
            prose(rng, text, length)
        }
        _ => prose(rng, String::new(), length),
    }
}

/// Half of a sentence.
const SENTENCE: usize = 30;

/// Sentences, until the text is long enough.
fn prose(rng: &mut Rng, mut text: String, length: usize) -> String {
    while text.len() + SENTENCE < length {
        text.push_str(&sentence(rng));
        text.push_str(if rng.u8(..5) == 0 { "\n\n" } else { " " });
    }
    text
}

fn sentence(rng: &mut Rng) -> String {
    let (a, b, c) = (pick(rng, NOUNS), pick(rng, NOUNS), pick(rng, NOUNS));
    let (verb, how) = (pick(rng, VERBS), pick(rng, ADVERBS));
    match rng.u8(..6) {
        0 => format!("The {a} of the {b} {verb} {how}, and the {c} follows."),
        1 => format!(
            "In {}, people who {verb} a {a} had {} of them.",
            rng.u32(1700..2026),
            rng.u32(2..900)
        ),
        2 => format!("It is {how} said that a {a} can't {verb} without the {b}; that isn't so."),
        3 => format!("If you {verb} the {a}, you should look at the {b} (and at the {c}) first."),
        4 => format!(
            "\u{201c}A {a} is a {b},\u{201d} wrote one of them, \u{201c}and I do not {verb} it.\u{201d}"
        ),
        _ => format!("See https://example.org/{a}/{b} for more: the {c} there {verb} {how}."),
    }
}

fn refusal(rng: &mut Rng, length: usize) -> String {
    let a = pick(rng, NOUNS);
    let text = match rng.u8(..3) {
        0 => format!("I'm sorry, but I can't help with the {a}. "),
        1 => format!("I cannot provide instructions for a {a}, as that could be dangerous. "),
        _ => format!("As an AI language model, I am not able to {} a {a}. ", pick(rng, VERBS)),
    };
    prose(rng, text, length)
}

fn object_in_reply(rng: &mut Rng, broken: bool, length: usize) -> String {
    let mut items = Vec::new();
    // An item is about 270 bytes as it is shown, and more than 300 in a text within JSON.
    while items.len() < length.div_ceil(380) {
        items.push(json!({
            "name": pick(rng, NOUNS), "count": rng.u32(..10_000), "share": f64::from(rng.u16(..1000)) / 1000.0,
            "tags": [pick(rng, NOUNS), pick(rng, ADVERBS)], "note": sentence(rng), "known": rng.bool(), "next": null,
        }));
    }
    let mut text = serde_json::to_string_pretty(&json!({ "items": items, "total": items.len() }))
        .unwrap_or_default();
    if broken {
        // What models leave out and add: a comma too many, a key without quotes, a comment, an end that is missing.
        text = text.replacen("null\n", "null,\n", 1).replacen("\"count\"", "count", 1);
        text = text.replacen("\"known\"", "// as far as I know\n      \"known\"", 1);
        text.truncate(text.trim_end_matches('}').len());
    }
    format!("Here it is:\n\n```json\n{text}\n```\n")
}

fn command_in_reply(rng: &mut Rng, at: usize, length: usize) -> String {
    let text =
        format!("You can do that with:\n\n```bash\n{}\n```\n\n", COMMANDS[at % COMMANDS.len()].0);
    prose(rng, text, length)
}

fn code_in_reply(rng: &mut Rng, length: usize) -> String {
    let (a, b) = (pick(rng, NOUNS), pick(rng, NOUNS));
    let text = format!(
        "```python\nimport os\n\nAPI_KEY = os.environ[\"{a}_API_KEY\"]\n\ndef {b}(token: str, size=10):\n    \
         client = Client(token=token, url=\"https://api.example.org/v1\")\n    return client.get(\"/{a}\", limit=size)\n```\n\n"
    );
    prose(rng, text, length)
}

fn failure(rng: &mut Rng, at: usize, length: usize) -> String {
    let text = match at % 4 {
        0 => "HTTP 529: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}".to_owned(),
        1 => format!("Rate limit reached for requests. Please try again in {}ms. ", rng.u32(10..5000)),
        2 => "Error: connect ECONNREFUSED 127.0.0.1:8080\n    at TCPConnectWrap.afterConnect".to_owned(),
        _ => "Traceback (most recent call last):\n  File \"/app/run.py\", line 10, in <module>\nTimeoutError".to_owned(),
    };
    let mut text = text + "\n";
    while text.len() + SENTENCE < length {
        let _ = writeln!(
            text,
            "    at {}.{} (/app/{}.js:{})",
            pick(rng, NOUNS),
            pick(rng, VERBS),
            pick(rng, NOUNS),
            rng.u16(..)
        );
    }
    text
}

fn pick(rng: &mut Rng, words: &[&'static str]) -> &'static str {
    words[rng.usize(..words.len())]
}

const NOUNS: &[&str] = &[
    "tide", "map", "bread", "bridge", "clock", "river", "moth", "lantern", "harbour", "engine",
    "garden", "letter", "market", "winter", "copper", "orchard", "ladder", "window", "village",
    "teacher", "journey", "mountain", "signal", "kitchen", "treaty", "theory", "pattern",
    "machine", "language", "library", "number", "picture", "question", "surface", "system",
    "weather", "account", "balance", "current", "example", "function", "history", "measure",
    "network", "process", "record",
];
const VERBS: &[&str] = &[
    "build", "carry", "change", "describe", "draw", "explain", "find", "follow", "hold", "keep",
    "measure", "move", "open", "read", "repair", "replace", "send", "show", "trace", "turn", "use",
    "write",
];
const ADVERBS: &[&str] = &[
    "slowly",
    "often",
    "rarely",
    "usually",
    "quietly",
    "in part",
    "at last",
    "by chance",
    "with care",
    "in general",
    "easily",
];
