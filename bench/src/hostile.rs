//! Texts made to hurt: twice the size must take about twice the time.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use serde_json::{Value, json};

use crate::{classify::command, measure};

const MIB: usize = 1 << 20;
const TEXTS: &[&str] = &[
    "[",
    "{",
    "\"",
    "{\"a\":",
    "[1,",
    "{\"a\":[",
    "\\",
    "'",
    "```\n",
    "```json\n{\"a\":1,\n",
    "/*",
    "I'm sorry, ",
    "I cannot ",
    "As an AI, I can't ",
    "but here is ",
    "429 ",
    "error: ",
    "a@",
    "1.2.3.",
    "4111 1111 ",
    "AKIA",
    "sk-",
    "password=",
    "-----BEGIN ",
    "\n",
    "SELECT 1\n",
    "<!--",
    "<a b='",
    "<a b=''>",
    "</",
    "&amp;",
    "1.",
];
/// What a text begins with, so that the rest is read in another way.
const STARTS: &[&str] = &["", "<script>", "<a ", "```\n"];
const CHECKS: &[&[&str]] = &[
    &["check", "json", "--level", "lenient"],
    &["check", "json", "--level", "repair"],
    &["check", "refusal"],
    &["check", "policy"],
    &["check", "error"],
];

/// Assertions, which `probity classify` checks.
fn assertions() -> [Value; 14] {
    [
        json!({"type": "is-html"}),
        json!({"type": "contains-html"}),
        json!({"type": "is-xml", "value": "a.b.c"}),
        json!({"type": "contains-xml", "value": "a.b.c"}),
        json!({"type": "gleu", "value": "a b c"}),
        json!({"type": "meteor", "value": "a b c"}),
        json!({"type": "tool-call-f1", "value": ["a"]}),
        json!({"type": "contains-xml"}),
        json!({"type": "is-sql"}),
        json!({"type": "contains-sql"}),
        json!({"type": "rouge-l", "value": "a fox jumps"}),
        json!({"type": "number", "value": 1, "extract": "last-number"}),
        json!({"type": "contains", "value": "a", "extract": "code-block"}),
        json!({"type": "contains", "value": "a", "extract": {"regex": "a(?=b)"}}),
    ]
}

/// Prints the worst ratio of the times for two sizes.
pub(crate) fn run(probity: &Path) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut worst = (0.0, String::new());
    for text in TEXTS {
        let mut compare = |start: &str, name: &str, args: &[&str], assertion: Option<&Value>| {
            let time = |size: usize| -> io::Result<f64> {
                let reply = start.to_owned() + &text.repeat(size / text.len());
                let input = match assertion {
                    None => reply,
                    Some(it) => json!({"raw_response": reply, "assert": [it]}).to_string(),
                };
                let path = folder.path().join("input.jsonl");
                fs::write(&path, input)?;
                let mut command = command(probity);
                command.args(args).stdin(File::open(&path)?);
                Ok(measure::run(&mut command)?.cpu.as_secs_f64())
            };
            let (one, two) = (time(MIB)?, time(2 * MIB)?);
            let ratio = two / one.max(0.001);
            let shown = format!("{start}{text}");
            println!("{name:<32} {shown:<22?} {:>7.1} ms, x{ratio:.1}", one * 1e3);
            if ratio > worst.0 {
                worst = (ratio, format!("{name} on {shown:?}"));
            }
            io::Result::Ok(())
        };
        for check in CHECKS {
            compare("", &check.join(" "), check, None)?;
        }
        for assertion in &assertions() {
            for start in STARTS {
                let name = assertion["type"].as_str().unwrap_or("");
                compare(start, name, &["classify", "-"], Some(assertion))?;
            }
        }
    }
    println!("the worst: x{:.1} for twice the size, {}", worst.0, worst.1);
    Ok(())
}
