//! The cases as JSON within the page, written one by one.

use std::{collections::BTreeMap, io};

use probity_core::{
    classification::{Classification, Verdict},
    conversation::Utterance,
    record::{Asked, CaseRecord},
    request::Role,
    view::{Cases, LaneReport, RunView},
};
use serde_json::{Map, Value, json};

use super::{MOST_LABEL, MOST_ROWS};
use crate::{
    answers,
    plain::{capped, one_line},
};

/// Rows that the page shows by itself.
const FIRST: usize = 50;
/// Instructions that are kept once for all cases that have them.
const SHARED: usize = 64;
/// Entries of a list in the evidence.
const MOST_ENTRIES: usize = 50;

/// What was written.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Cases in the island.
    pub(super) rows: u64,
    /// Cases that are not.
    pub(super) left_out: u64,
    /// The first few, those that did not pass before the others.
    pub(super) first: Vec<Row>,
}

/// A row of the table that the page shows by itself.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) verdict: &'static str,
    /// What the case counts as, if that is something else.
    pub(super) counted: Option<&'static str>,
    pub(super) id: String,
    pub(super) lane: String,
    pub(super) class: &'static str,
    pub(super) category: String,
    pub(super) text: String,
    pub(super) latency_ms: u64,
    pub(super) tokens: u64,
    pub(super) cost_usd: Option<f64>,
}

/// Writes the island with all cases; no text is longer than `cap` characters.
pub(super) fn write(
    run: &RunView,
    cases: &dyn Cases,
    cap: usize,
    out: &mut dyn io::Write,
) -> io::Result<Written> {
    let (_, results) = run.errors();
    let mut island = Island {
        cap,
        only_troubles: results > MOST_ROWS,
        systems: BTreeMap::new(),
        written: Written::default(),
        passed: Vec::new(),
    };
    out.write_all(b"<script type=\"application/json\" id=\"data\">{\"lanes\":")?;
    let lanes: Vec<Value> = run.lanes.iter().map(lane_value).collect();
    write_json(&Value::Array(lanes), out)?;
    write!(out, ",\"cap\":{cap},\"cases\":[")?;
    for (at, lane) in run.lanes.iter().enumerate() {
        answers::each(cases, at, &lane.lane, &mut |counted| {
            let mut each = counted.answers.iter();
            each.try_for_each(|case| island.take(at, lane, case, counted.verdict, out))
        })?;
    }
    out.write_all(b"\n],\"systems\":")?;
    let mut systems: Vec<(&String, &usize)> = island.systems.iter().collect();
    systems.sort_by_key(|(_, at)| **at);
    let systems: Vec<_> = systems.iter().map(|(text, _)| capped(text, cap)).collect();
    write_json(&json!(systems), out)?;
    out.write_all(b"}</script>\n")?;
    let Island { mut written, passed, .. } = island;
    let room = FIRST.saturating_sub(written.first.len());
    written.first.extend(passed.into_iter().take(room));
    Ok(written)
}

struct Island {
    cap: usize,
    only_troubles: bool,
    /// Instructions by where they will stand.
    systems: BTreeMap<String, usize>,
    written: Written,
    /// The first few that passed.
    passed: Vec<Row>,
}

impl Island {
    fn take(
        &mut self,
        at: usize,
        lane: &LaneReport,
        case: &CaseRecord,
        counted: Verdict,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let is_pass = counted == Verdict::Pass;
        if (self.only_troubles && is_pass) || self.written.rows >= MOST_ROWS {
            self.written.left_out += 1;
            return Ok(());
        }
        let known = lane.lane.judging.known_failures.contains(&case.case_id);
        let mut value = self.value(at, case, known);
        if counted != case.verdict {
            value["counted"] = counted.as_str().into();
        }
        let separator: &[u8] = if self.written.rows == 0 { b"\n" } else { b",\n" };
        out.write_all(separator)?;
        write_json(&value, out)?;
        self.written.rows += 1;
        let first = if is_pass { &mut self.passed } else { &mut self.written.first };
        if first.len() < FIRST {
            first.push(row(lane, case, counted));
        }
        Ok(())
    }

    /// All that the page shows of a case; what there is nothing of is left out.
    fn value(&mut self, at: usize, case: &CaseRecord, known: bool) -> Value {
        let cap = self.cap;
        let text = |text: &str| Value::String(capped(text, cap).into_owned());
        let mut map = Map::new();
        let mut put = |name: &str, value: Value| {
            let empty = match &value {
                Value::Null => true,
                Value::Bool(it) => !it,
                Value::String(it) => it.is_empty(),
                Value::Array(it) => it.is_empty(),
                Value::Object(it) => it.is_empty(),
                Value::Number(_) => false,
            };
            if !empty {
                map.insert(name.to_owned(), value);
            }
        };
        put("lane", at.into());
        put("id", text(&case.case_id));
        put("repeat", case.repeat.into());
        put("verdict", case.verdict.as_str().into());
        put("class", case.class.as_str().into());
        put("known", known.into());
        put("category", short(&json!(case.case.category), MOST_LABEL));
        put("tags", short(&json!(case.case.tags), MOST_LABEL));
        put("ms", case.latency_ms.into());
        put("ttft", json!(case.ttft_ms));
        put("speed", json!(case.tokens_per_second));
        put("elapsed", case.elapsed_ms.into());
        put("in", json!(case.usage.input_tokens));
        put("out", json!(case.usage.output_tokens));
        put("cost", json!(case.cost_usd));
        put("calls", case.calls.into());
        put("source", case.source.as_str().into());
        put("started", probity_core::evaluation::time(case.started_ms).into());
        put("model", case.model.as_deref().map_or(Value::Null, text));
        put("stop", case.stop_reason.as_deref().map_or(Value::Null, text));
        put("prompt", text(&case.request.shown()));
        if case.is_conversation() {
            let said = case.utterances();
            let said = said.iter().filter(|it| it.message.role != Role::System);
            put("conversation", said.map(|it| spoken(it, cap)).collect());
        }
        put("expected", case.expected().as_deref().map_or(Value::Null, text));
        put("reply", case.reply.as_deref().map_or(Value::Null, text));
        if case.verdict != Verdict::Pass {
            put("reason", text(&case.why()));
        }
        put("error", short(&json!(case.error), cap));
        put("failures", short(&json!(case.failures), cap));
        let Classification { rule, scores, details } = &case.classification;
        put("rule", rule.as_str().into());
        put("scores", short(&json!(scores), cap));
        put("evidence", short(&json!(details), cap));
        put("notes", case.case.notes.as_deref().map_or(Value::Null, text));
        put("reasoning", case.reasoning.as_deref().map_or(Value::Null, text));
        put("estimated", case.usage.estimated.into());
        if let Some(system) = case.request.system() {
            let value = self.shared(system);
            map.insert("system".to_owned(), value);
        }
        // What belongs to the conversation stands there.
        let asked = case.asked.iter().filter(|it| it.turn.is_none());
        let asked: Vec<Value> = asked.map(|it| self.asked(it)).collect();
        if !asked.is_empty() {
            map.insert("asked".to_owned(), asked.into());
        }
        Value::Object(map)
    }

    /// One question of a case that asks several.
    fn asked(&mut self, asked: &Asked) -> Value {
        let system = asked.request.system().map(|it| self.shared(it));
        let text = |text: &str| capped(text, self.cap).into_owned();
        json!({
            "role": one_line(&asked.role, 120),
            "backend": one_line(&asked.backend, 60),
            "model": asked.model.as_deref().map(|it| one_line(it, 60)),
            "source": asked.source.as_str(),
            "system": system,
            "prompt": text(&asked.request.shown()),
            "reply": asked.shown_reply().as_deref().map(text),
            "error": asked.error.as_deref().map(text),
        })
    }

    /// The number of instructions that many cases have, or the text of others.
    fn shared(&mut self, system: &str) -> Value {
        let next = self.systems.len();
        match self.systems.get(system) {
            Some(at) => (*at).into(),
            None if next < SHARED => {
                self.systems.insert(system.to_owned(), next);
                next.into()
            }
            None => capped(system, self.cap).into(),
        }
    }
}

/// What somebody said in a conversation.
fn spoken(said: &Utterance<'_>, cap: usize) -> Value {
    let text = |text: &str| capped(text, cap).into_owned();
    json!({
        "role": said.message.role.as_str(),
        "text": text(&said.message.said()),
        "reasoning": said.reasoning.map(text),
    })
}

fn lane_value(report: &LaneReport) -> Value {
    json!({
        "title": one_line(&report.title(), 120),
        "backend": one_line(&report.lane.backend, 60),
        "model": report.lane.model.as_deref().map(|it| one_line(it, 120)),
    })
}

fn row(lane: &LaneReport, case: &CaseRecord, counted: Verdict) -> Row {
    let text = match case.verdict {
        Verdict::Pass => case.request.shown().into_owned(),
        Verdict::Fail | Verdict::Error | Verdict::Undecided => case.why(),
    };
    Row {
        verdict: case.verdict.as_str(),
        counted: (counted != case.verdict).then_some(counted.as_str()),
        id: one_line(&case.case_id, 100),
        lane: one_line(&lane.title(), 60),
        class: case.class.as_str(),
        category: case
            .case
            .category
            .as_ref()
            .map_or_else(String::new, |it| one_line(it.as_str(), 40)),
        text: one_line(&text, 160),
        latency_ms: case.latency_ms,
        tokens: case.usage.total(),
        cost_usd: case.cost_usd,
    }
}

/// The value with no text longer than `cap` characters and no long lists.
fn short(value: &Value, cap: usize) -> Value {
    match value {
        Value::String(text) => capped(text, cap).into(),
        Value::Array(items) => {
            let mut kept: Vec<Value> =
                items.iter().take(MOST_ENTRIES).map(|it| short(it, cap)).collect();
            if items.len() > MOST_ENTRIES {
                kept.push(format!("… ({} more)", items.len() - MOST_ENTRIES).into());
            }
            kept.into()
        }
        Value::Object(entries) => {
            let entries = entries.iter().take(MOST_ENTRIES);
            let short = |(name, value): (&String, &Value)| {
                (capped(name, cap).into_owned(), short(value, cap))
            };
            Value::Object(entries.map(short).collect())
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain.clone(),
    }
}

/// JSON that may stand in a page: nothing in it can end the script or be taken for a tag.
///
/// The characters in question occur in strings only, where they may be written by number.
fn write_json(value: &Value, out: &mut dyn io::Write) -> io::Result<()> {
    let text = serde_json::to_string(value)?;
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        out.write_all(&rest.as_bytes()[..at])?;
        let Some(c) = rest[at..].chars().next() else { break };
        write!(out, "\\u{:04x}", u32::from(c))?;
        rest = &rest[at + c.len_utf8()..];
    }
    out.write_all(rest.as_bytes())
}
