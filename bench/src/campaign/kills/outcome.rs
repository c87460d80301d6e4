//! What a command has come to, without what differs between two runs of the same: times, names of runs, ports.

use std::{collections::BTreeMap, fs, io, path::Path};

use serde_json::Value;

use super::Stand;
use crate::campaign::room::Room;

/// Whether there is a run to take up again.
pub(in crate::campaign) fn has_run(room: &Room<'_>) -> bool {
    room.run(&["runs", "--json"]).is_ok_and(|it| it.code == Some(0) && !it.out.trim().is_empty())
}

/// The results of the latest run; none if there is no run.
pub(in crate::campaign) fn stored(room: &Room<'_>) -> io::Result<Vec<Value>> {
    if !has_run(room) {
        return Ok(Vec::new());
    }
    let ran = room.run(&["show", "latest", "--json"])?;
    if ran.code != Some(0) {
        return Err(io::Error::other(format!("show: {}", ran.tail())));
    }
    ran.out.lines().map(|line| serde_json::from_str(line).map_err(io::Error::other)).collect()
}

/// Cases that are there more than once.
pub(in crate::campaign) fn repeated(stored: &[Value]) -> Vec<String> {
    let mut counts = BTreeMap::<String, u32>::new();
    for it in stored {
        let name = ["runner", "backend", "case_id", "repeat"].map(|key| it[key].to_string());
        *counts.entry(name.join(" ")).or_default() += 1;
    }
    counts.into_iter().filter(|it| it.1 > 1).map(|it| it.0).collect()
}

/// The latest run: its results, in order, and what its gates say.
pub(in crate::campaign) fn of_run(stand: &Stand<'_>) -> io::Result<String> {
    let mut lines: Vec<String> =
        stored(&stand.room)?.into_iter().map(|it| plain(stand, it).to_string()).collect();
    lines.sort();
    let gate = stand.room.run(&["gate"])?;
    lines.push(format!("gate: {}", gate.ending()));
    Ok(lines.join("\n"))
}

/// A value without what differs between runs.
pub(in crate::campaign) fn plain(stand: &Stand<'_>, mut value: Value) -> Value {
    strip(&mut value, &stand.model.url());
    value
}

/// Parts of names of fields that hold times, names of runs and what depends on them.
const VARYING: [&str; 20] = [
    "_ms",
    "_at",
    "_time",
    "run_id",
    "seconds",
    "started",
    "finished",
    "timestamp",
    "duration",
    "latency",
    "elapsed",
    "retries",
    "failures",
    "checksum",
    "per_second",
    "created",
    "digest",
    "resumed",
    // An answer that was cached before a kill is taken from there.
    "source",
    // Calls that were cut off count, too.
    "calls",
];

fn strip(value: &mut Value, url: &str) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| name != "time" && !VARYING.iter().any(|it| name.contains(it)));
            fields.values_mut().for_each(|it| strip(it, url));
        }
        Value::Array(values) => values.iter_mut().for_each(|it| strip(it, url)),
        Value::String(text) => *text = without_names(&text.replace(url, "URL")),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text in which every run is called `RUN`: names are `20261117-094513-wu5xb9`.
fn without_names(text: &str) -> String {
    const FORM: &[u8] = b"00000000-000000-xxxxxx";
    let fits = |at: usize| {
        let found = text.as_bytes().get(at..at + FORM.len())?;
        let fits = found.iter().zip(FORM).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_alphanumeric(),
            other => byte == other,
        });
        fits.then_some(at)
    };
    match (0..text.len()).find_map(fits) {
        Some(at) => {
            format!("{}RUN{}", &text[..at], without_names(&text[at + FORM.len()..]))
        }
        None => text.to_owned(),
    }
}

/// A file without what differs between runs.
pub(in crate::campaign) fn of_file(stand: &Stand<'_>, name: &str) -> String {
    let text = stand.room.read(name);
    let lines = || text.lines().map(serde_json::from_str::<Value>);
    if let Ok(value) = serde_json::from_str(&text) {
        return plain(stand, value).to_string();
    }
    match lines().collect::<Result<Vec<Value>, _>>() {
        Ok(values) => {
            let mut lines: Vec<String> =
                values.into_iter().map(|it| plain(stand, it).to_string()).collect();
            lines.sort();
            lines.join("\n")
        }
        // Of other formats, how much there is.
        Err(_) => format!("{} lines", text.lines().count()),
    }
}

/// Whether a file is not there, or ends as one of its kind ends.
pub(in crate::campaign) fn is_whole(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else { return true };
    let Ok(text) = String::from_utf8(bytes) else { return path.extension().is_none() };
    match path.extension().and_then(|it| it.to_str()).unwrap_or_default() {
        "json" => serde_json::from_str::<Value>(&text).is_ok(),
        "jsonl" => {
            text.lines().all(|it| serde_json::from_str::<Value>(it).is_ok())
                && (text.is_empty() || text.ends_with('\n'))
        }
        "xml" => text.trim_end().ends_with("</testsuites>"),
        "html" => text.trim_end().ends_with("</html>"),
        _ => text.ends_with('\n'),
    }
}

/// The first line that differs.
pub(in crate::campaign) fn difference(expected: &str, found: &str) -> Option<String> {
    let (mut expected, mut found) = (expected.lines(), found.lines());
    loop {
        match (expected.next(), found.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => return Some(format!("{} instead of {}", cut(b), cut(a))),
        }
    }
}

fn cut(line: Option<&str>) -> String {
    line.map_or_else(|| "nothing".to_owned(), |it| it.chars().take(400).collect())
}
