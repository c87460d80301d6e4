//! What a run teaches: pairs of prompts and answers for training.
//!
//! Prompts are those that were sent. What ended in an error teaches nothing.

use std::{collections::BTreeMap, io};

use probity_core::{
    classification::Verdict,
    details::Equivalence,
    record::CaseRecord,
    request::{Message, ToolCall, ToolResult},
    view::{Cases, RunView},
};
use serde_json::{Value, json};

/// How many lines were written, and what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Lines.
    pub lines: u64,
    /// Results that did not pass, and for which no right answer is known.
    pub without_answer: u64,
}

/// Conversations that end in a right answer: a reply that passed or, if `corrected`, the
/// answer that a failing case expects.
pub fn chat(
    run: &RunView,
    cases: &dyn Cases,
    corrected: bool,
    out: &mut dyn io::Write,
) -> io::Result<Written> {
    let mut written = Written::default();
    for lane in 0..run.lanes.len() {
        cases.each(lane, &mut |case| {
            let answer = match case.verdict {
                Verdict::Error | Verdict::Undecided => return Ok(()),
                Verdict::Pass | Verdict::Fail => {
                    right_reply(case).or_else(|| right_answer(case).filter(|_| corrected))
                }
            };
            let Some(answer) = answer else {
                written.without_answer += 1;
                return Ok(());
            };
            let messages = match case.is_conversation() {
                true => conversation(case),
                false => asked(case).into_iter().chain([said(&answer)]).collect(),
            };
            written.lines += 1;
            line(out, &json!({ "messages": messages }))
        })?;
    }
    Ok(written)
}

/// Pairs of a right and a wrong answer to the same prompt. The right one is a reply that
/// passed, on whatever backend, or else what the case expects.
pub fn preferences(
    run: &RunView,
    cases: &dyn Cases,
    out: &mut dyn io::Write,
) -> io::Result<Written> {
    let mut right: BTreeMap<(String, String), String> = BTreeMap::new();
    for lane in 0..run.lanes.len() {
        cases.each(lane, &mut |case| {
            if let Some(reply) = right_reply(case).filter(|_| !case.is_conversation()) {
                let key = (case.case_id.clone(), case.request.shown().into_owned());
                right.entry(key).or_insert(reply);
            }
            Ok(())
        })?;
    }
    let mut written = Written::default();
    for lane in 0..run.lanes.len() {
        cases.each(lane, &mut |case| {
            let (Verdict::Fail, Some(wrong)) = (case.verdict, &case.reply) else { return Ok(()) };
            // Two conversations have no prompt in common beyond their first turn.
            if case.is_conversation() {
                written.without_answer += 1;
                return Ok(());
            }
            let key = (case.case_id.clone(), case.request.shown().into_owned());
            let Some(chosen) = right.get(&key).cloned().or_else(|| right_answer(case)) else {
                written.without_answer += 1;
                return Ok(());
            };
            written.lines += 1;
            let pair = json!({
                "prompt": asked(case),
                "chosen": [said(&chosen)],
                "rejected": [said(wrong)],
            });
            line(out, &pair)
        })?;
    }
    Ok(written)
}

/// The reply, if it is one to learn from.
///
/// A command that passes may have been judged by its safety or its portability alone: then it
/// is right only if it does what the expected one does. Nobody is to learn dangerous ones.
fn right_reply(case: &CaseRecord) -> Option<String> {
    let command = case.classification.details.command.as_ref();
    let does_it = |it: Equivalence| matches!(it, Equivalence::Equal | Equivalence::SameEffect);
    let is_right =
        command.is_none_or(|it| it.equivalence.is_some_and(does_it) && it.safe != Some(false));
    (case.verdict == Verdict::Pass && is_right).then(|| case.reply.clone()).flatten()
}

/// What the case expects, unless that is something not to be learnt.
fn right_answer(case: &CaseRecord) -> Option<String> {
    // After other words of the model, an expected answer may be none.
    let is_known = case.case.safe != Some(false) && !case.is_conversation();
    is_known.then(|| case.expected()).flatten()
}

fn asked(case: &CaseRecord) -> Vec<Value> {
    let system = case.request.system();
    let system = system.iter().map(|text| json!({ "role": "system", "content": text }));
    system.chain([json!({ "role": "user", "content": case.request.prompt() })]).collect()
}

/// A conversation to its end, in the format of OpenAI.
fn conversation(case: &CaseRecord) -> Vec<Value> {
    case.utterances().iter().flat_map(|it| messages_of(&it.message)).collect()
}

fn messages_of(said: &Message) -> Vec<Value> {
    let result =
        |it: &ToolResult| json!({ "role": "tool", "tool_call_id": it.id, "content": &*it.content });
    let results: Vec<Value> = said.tool_results().map(result).collect();
    if !results.is_empty() {
        return results;
    }
    let mut message = json!({ "role": said.role.as_str(), "content": said.joined() });
    let call = |it: &ToolCall| {
        let function = json!({ "name": it.name, "arguments": it.arguments.to_string() });
        json!({ "id": it.id, "type": "function", "function": function })
    };
    let calls: Vec<Value> = said.tool_calls().map(call).collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    vec![message]
}

fn said(answer: &str) -> Value {
    json!({ "role": "assistant", "content": answer })
}

fn line(out: &mut dyn io::Write, value: &Value) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
