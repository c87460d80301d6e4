//! What may be believed of a judge's answer, form by form.

use std::collections::BTreeMap;

use probity_core::{
    criteria::{FactCategory, JsonLevel},
    opinion::{Judged, Statement},
};
use serde_json::{Map, Value};

use crate::{
    excerpt::{beginning, excerpt},
    json::{Wanted, extract},
    refusal::quoted::after_thinking,
};

/// The highest grade of `g-eval`.
pub(super) const HIGHEST_GRADE: u32 = 10;

/// Characters of a statement that are kept.
const KEPT: usize = 300;

/// The fields of an object.
pub(super) type Fields = Map<String, Value>;

/// The one JSON object of an answer.
pub(super) fn object(reply: &str) -> Result<Fields, String> {
    let reply = &reply[after_thinking(reply)..];
    let found = extract(reply, JsonLevel::Lenient, Wanted::Object);
    let Some(Value::Object(fields)) = found.value else {
        return Err("it is not a JSON object".to_owned());
    };
    // Of two objects nobody can say which is the judge's own word.
    let span = found.span.unwrap_or(0..reply.len());
    let around = [&reply[..span.start], &reply[span.end..]];
    if around.iter().any(|it| it.contains('{')) {
        return Err("there is more than one JSON object in it".to_owned());
    }
    if !found.duplicate_keys.is_empty() {
        return Err("a name stands in it twice".to_owned());
    }
    Ok(fields)
}

/// Refuses names that nobody asked for.
pub(super) fn only(fields: &Fields, known: &[&str]) -> Result<(), String> {
    match fields.keys().find(|key| !known.contains(&key.as_str())) {
        // It is shown to the judge again, among our instructions.
        Some(key) => Err(format!("nobody asked for {}", quoted(&excerpt(key, 0)))),
        None => Ok(()),
    }
}

pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The answer to a user's own prompt.
pub(super) fn own(reply: &str) -> Result<Judged, String> {
    let fields = object(reply)?;
    only(&fields, &["pass", "score", "reason"])?;
    let Some(Value::Bool(passed)) = fields.get("pass") else {
        return Err("`pass` is neither true nor false".to_owned());
    };
    let score = match fields.get("score") {
        None => Some(if *passed { 1.0 } else { 0.0 }),
        // The scale is that of the prompt; a threshold is on the same.
        Some(score) => score.as_f64().filter(|it| it.is_finite()),
    };
    let score = score.ok_or("`score` is not a number")?;
    Ok(Judged { passed: Some(*passed), ..judged(score, text(&fields, "reason")?) })
}

pub(super) fn factuality(
    reply: &str,
    scores: &BTreeMap<FactCategory, f64>,
) -> Result<Judged, String> {
    let fields = object(reply)?;
    only(&fields, &["category", "reason"])?;
    let category = fields.get("category").and_then(Value::as_str);
    let category: Option<FactCategory> = category.and_then(|it| it.parse().ok());
    let category = category.ok_or("`category` is none of those that were named")?;
    let score = scores.get(&category).copied().unwrap_or(category.usual_score());
    let reason = text(&fields, "reason")?;
    Ok(judged(score, format!("{category}: {reason}")))
}

pub(super) fn closed_qa(reply: &str) -> Result<Judged, String> {
    let fields = object(reply)?;
    only(&fields, &["answer", "reason"])?;
    let score = if yes(&fields, "answer")? { 1.0 } else { 0.0 };
    Ok(judged(score, text(&fields, "reason")?))
}

/// The mean of the grades for so many criteria.
pub(super) fn g_eval(reply: &str, criteria: usize) -> Result<Judged, String> {
    let fields = object(reply)?;
    only(&fields, &["criteria"])?;
    let items = list(&fields, "criteria")?;
    let graded = numbered(items, criteria, "criterion", |fields| {
        only(fields, &["number", "findings", "score"])?;
        let score =
            fields.get("score").and_then(Value::as_u64).and_then(|it| u32::try_from(it).ok());
        let score = score.filter(|it| *it <= HIGHEST_GRADE);
        let score = score.ok_or("a `score` is not a whole number from 0 to 10")?;
        Ok((score, text(fields, "findings")?))
    })?;
    let whole: u32 = graded.iter().map(|it| it.0).sum();
    let score = f64::from(whole) / f64::from(HIGHEST_GRADE) / float(criteria);
    let findings: Vec<String> = graded.into_iter().map(|it| it.1).collect();
    Ok(judged(score, findings.join("; ")))
}

/// The share of the statements that hold. The judge says which there are.
pub(super) fn statements(reply: &str) -> Result<Judged, String> {
    let fields = object(reply)?;
    only(&fields, &["statements"])?;
    let read = |item: &Value| {
        let fields = item.as_object().ok_or("a statement is not a table")?;
        only(fields, &["statement", "reason", "verdict"])?;
        let said = text(fields, "statement")?;
        if said.trim().is_empty() {
            return Err("a statement is empty".to_owned());
        }
        Ok(Statement {
            text: beginning(&said, KEPT),
            holds: yes(fields, "verdict")?,
            reason: Some(beginning(&text(fields, "reason")?, KEPT)),
        })
    };
    let found: Vec<Statement> =
        list(&fields, "statements")?.iter().map(read).collect::<Result<_, String>>()?;
    if found.is_empty() {
        return Err("it lists no statement".to_owned());
    }
    let score = float(found.iter().filter(|it| it.holds).count()) / float(found.len());
    Ok(of_statements(score, found))
}

/// What a judge said of passages that it was shown by number.
pub(super) fn passages(reply: &str, shown: &[String]) -> Result<Vec<Statement>, String> {
    let fields = object(reply)?;
    only(&fields, &["passages"])?;
    let items = list(&fields, "passages")?;
    let verdicts = numbered(items, shown.len(), "passage", |fields| {
        only(fields, &["number", "reason", "verdict"])?;
        Ok((yes(fields, "verdict")?, beginning(&text(fields, "reason")?, KEPT)))
    })?;
    let statement = |(text, (holds, reason)): (&String, (bool, String))| Statement {
        text: beginning(text, KEPT),
        holds,
        reason: Some(reason),
    };
    Ok(shown.iter().zip(verdicts).map(statement).collect())
}

/// The share of the passages that are of use.
pub(super) fn relevance(found: Vec<Statement>) -> Judged {
    let score = float(found.iter().filter(|it| it.holds).count()) / float(found.len().max(1));
    of_statements(score, found)
}

/// Whether those of use come first: the mean of the precision at each of them.
pub(super) fn precision(found: Vec<Statement>) -> Judged {
    let (mut useful, mut sum) = (0, 0.0);
    for (at, _) in found.iter().enumerate().filter(|(_, it)| it.holds) {
        useful += 1;
        sum += float(useful) / float(at + 1);
    }
    of_statements(if useful == 0 { 0.0 } else { sum / float(useful) }, found)
}

fn of_statements(score: f64, statements: Vec<Statement>) -> Judged {
    let holding = statements.iter().filter(|it| it.holds).count();
    let against = statements.iter().find(|it| !it.holds);
    let against = against.map(|it| format!(", not: {}", it.text)).unwrap_or_default();
    let reason = format!("{holding} of {}{against}", statements.len());
    Judged { statements, ..judged(score, reason) }
}

fn judged(score: f64, reason: String) -> Judged {
    Judged { score, passed: None, reason, statements: Vec::new() }
}

/// Items that have every number from 1 on once, in the order of these.
fn numbered<T>(
    items: &[Value],
    count: usize,
    noun: &str,
    read: impl Fn(&Fields) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut found: Vec<Option<T>> = std::iter::repeat_with(|| None).take(count).collect();
    for item in items {
        let fields = item.as_object().ok_or_else(|| format!("a {noun} is not a table"))?;
        let number = fields.get("number").and_then(Value::as_u64);
        let at = number.and_then(|it| usize::try_from(it).ok()?.checked_sub(1));
        let place = at.and_then(|it| found.get_mut(it));
        let place =
            place.ok_or_else(|| format!("the number of a {noun} is not from 1 to {count}"))?;
        if place.replace(read(fields)?).is_some() {
            return Err(format!("a {noun} is there twice"));
        }
    }
    let missing = found.iter().position(Option::is_none);
    match missing {
        Some(at) => Err(format!("the {noun} {} is missing", at + 1)),
        None => Ok(found.into_iter().flatten().collect()),
    }
}

fn list<'f>(fields: &'f Fields, key: &str) -> Result<&'f [Value], String> {
    let items = fields.get(key).and_then(Value::as_array);
    items.map(Vec::as_slice).ok_or_else(|| format!("`{key}` is not a list"))
}

pub(super) fn text(fields: &Fields, key: &str) -> Result<String, String> {
    let found = fields.get(key).and_then(Value::as_str);
    found.map(ToOwned::to_owned).ok_or_else(|| format!("`{key}` is not a text"))
}

fn yes(fields: &Fields, key: &str) -> Result<bool, String> {
    match fields.get(key).and_then(Value::as_str) {
        Some("yes") => Ok(true),
        Some("no") => Ok(false),
        Some(_) | None => Err(format!("`{key}` is neither `yes` nor `no`")),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The score, and why; or what is wrong with the answer.
    fn said(read: Result<Judged, String>) -> Result<(f64, String), String> {
        read.map(|it| (it.score, it.reason))
    }

    #[test]
    fn an_answer_in_words_of_the_user_has_a_verdict_and_perhaps_a_score() {
        let read = |answer: Value| own(&answer.to_string()).map(|it| (it.passed, it.score));
        assert_eq!(read(json!({ "pass": true, "reason": "x" })), Ok((Some(true), 1.0)));
        assert_eq!(read(json!({ "pass": false, "reason": "x" })), Ok((Some(false), 0.0)));
        let scored = json!({ "pass": false, "score": 0.7, "reason": "x" });
        assert_eq!(read(scored), Ok((Some(false), 0.7)));
        let problem = |answer| read(answer).unwrap_err();
        assert_eq!(problem(json!({ "reason": "x" })), "`pass` is neither true nor false");
        assert_eq!(
            problem(json!({ "pass": true, "score": "7", "reason": "x" })),
            "`score` is not a number"
        );
        assert_eq!(problem(json!({ "pass": true })), "`reason` is not a text");
        assert_eq!(
            problem(json!({ "pass": true, "reason": "x", "by": "me" })),
            "nobody asked for \"by\""
        );
    }

    #[test]
    fn grades_are_added_up_once_for_each_criterion() {
        let item = |number: u32, score: u32, findings: &str| json!({ "number": number, "score": score, "findings": findings });
        let read = |items: Value| said(g_eval(&json!({ "criteria": items }).to_string(), 2));
        assert_eq!(read(json!([item(2, 10, "b"), item(1, 5, "a")])), Ok((0.75, "a; b".to_owned())));
        let problem = |items| read(items).unwrap_err();
        assert_eq!(problem(json!([item(1, 5, "a")])), "the criterion 2 is missing");
        assert_eq!(
            problem(json!([item(1, 5, "a"), item(1, 5, "a")])),
            "a criterion is there twice"
        );
        let beyond = "the number of a criterion is not from 1 to 2";
        assert_eq!(problem(json!([item(3, 5, "a")])), beyond);
        assert_eq!(problem(json!([item(0, 5, "a")])), beyond);
        let grade = "a `score` is not a whole number from 0 to 10";
        assert_eq!(problem(json!([item(1, 11, "a")])), grade);
        assert_eq!(problem(json!("all good")), "`criteria` is not a list");
    }

    #[test]
    fn statements_that_hold_are_a_share_of_those_that_the_judge_found() {
        let item = |statement: &str, verdict: &str| json!({ "statement": statement, "reason": "r", "verdict": verdict });
        let read = |items: Value| said(statements(&json!({ "statements": items }).to_string()));
        let all = json!([item("a", "yes"), item("b", "no"), item("c", "no"), item("d", "yes")]);
        assert_eq!(read(all), Ok((0.5, "2 of 4, not: b".to_owned())));
        assert_eq!(read(json!([item("a", "yes")])), Ok((1.0, "1 of 1".to_owned())));
        let problem = |items| read(items).unwrap_err();
        assert_eq!(problem(json!([])), "it lists no statement");
        assert_eq!(problem(json!([item(" ", "yes")])), "a statement is empty");
        assert_eq!(problem(json!([item("a", "maybe")])), "`verdict` is neither `yes` nor `no`");
    }

    #[test]
    fn passages_of_use_count_and_for_precision_their_order_does_too() {
        let shown = ["a", "b", "c"].map(ToOwned::to_owned);
        let read = |verdicts: [&str; 3]| {
            let items = verdicts.iter().zip(1..).map(
                |(verdict, number)| json!({ "number": number, "reason": "r", "verdict": verdict }),
            );
            let items: Vec<Value> = items.collect();
            passages(&json!({ "passages": items }).to_string(), &shown).unwrap()
        };
        let (first, last) = (read(["yes", "no", "no"]), read(["no", "no", "yes"]));
        assert_eq!(last[2].text, "c");
        assert!((relevance(first.clone()).score - 1.0 / 3.0).abs() < 1e-9);
        assert!((relevance(last.clone()).score - 1.0 / 3.0).abs() < 1e-9);
        assert!((precision(first).score - 1.0).abs() < 1e-9);
        assert!((precision(last).score - 1.0 / 3.0).abs() < 1e-9);
        assert!((precision(read(["yes", "no", "yes"])).score - 5.0 / 6.0).abs() < 1e-9);
        assert!(precision(read(["no", "no", "no"])).score.abs() < 1e-9);
    }
}
