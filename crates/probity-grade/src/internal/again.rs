//! Judges a reply that was stored, without asking anybody: what calls found out comes from the record.

use std::cell::LazyCell;

use probity_core::{
    classification::{Classification, Verdict},
    execution::{EXECUTION_ROLE, EffectCall, EffectFound, Executed},
    kind,
    opinion::{Assessment, Combine, Judged, Opinion, Said},
    record::Asked,
    run_result::RunResult,
    selection::Selection,
};

use serde_json::Value;

use crate::{
    classify::classify,
    compile::Expectation,
    internal::{
        contest::{Contest, Order},
        judge::{Inquiry, Interview as _, Shown, Talk, Words},
        routing::says_yes,
        script::{self, Scorer, ScorerCall},
    },
};

/// What is known of a result beside its reply.
#[derive(Clone, Copy, Default)]
pub struct Known<'a> {
    /// Every question of a case that asked several.
    pub asked: &'a [Asked],
    /// What was found when the reply came.
    pub classified: Option<&'a Classification>,
    /// How judges are asked in a user's words; none where the suite is not known.
    pub words: Option<Words<'a>>,
}

/// Says again what a result is, by the expectation of now.
///
/// Answers of judges are read again. What a judge said of pairs of answers, and what an external
/// runner said of itself, is taken as it was found.
pub fn classify_again(
    expectation: &Expectation<'_>,
    result: &RunResult<'_>,
    known: Known<'_>,
) -> (Classification, Verdict) {
    let found = known.classified.and_then(|it| Some((it, it.details.evidence.as_deref()?)));
    let classification = match found.map(|(before, evidence)| (before, evidence, evidence.judged()))
    {
        Some((before, _, kind::Judged::AsFound)) => before.clone(),
        Some((_, evidence, kind::Judged::ByEvidence(judged))) => {
            let judged = match result.error {
                None => *judged,
                Some(_) => classify(expectation, result),
            };
            judged.with_evidence(evidence.clone())
        }
        Some((_, evidence, kind::Judged::ByReplyAndKept { unfinished })) => {
            let result = &RunResult { unfinished: unfinished.as_deref(), ..result.clone() };
            by_reply(expectation, result, known).with_evidence(evidence.clone())
        }
        Some((_, _, kind::Judged::ByReply)) | None => by_reply(expectation, result, known),
    };
    let verdict = expectation.verdict(&classification);
    (classification, verdict)
}

/// Reads the reply again, with what others said of it.
fn by_reply(
    expectation: &Expectation<'_>,
    result: &RunResult<'_>,
    known: Known<'_>,
) -> Classification {
    let made = expectation.made(result);
    let result = &RunResult { made: &made, ..result.clone() };
    let chosen = chosen(known.asked);
    let assessments = assessments(expectation, result, known);
    let scored = scored(expectation, result, known.asked);
    let selections = selections(expectation, known.classified);
    let executed = executed(expectation, result, known.asked);
    let effects = effects(expectation, result, known.asked);
    let result = RunResult {
        executed: executed.as_ref(),
        effects: &effects,
        chosen: chosen.as_deref(),
        assessments: &assessments,
        scored: &scored,
        selections: &selections,
        ..result.clone()
    };
    classify(expectation, &result)
}

/// What the roles of questions about one skill begin with.
const FALLBACK: &str = "fallback ";

/// The role of a question about one skill.
pub fn fallback_role(skill: &str) -> String {
    format!("{FALLBACK}{skill}")
}

/// The role of a question to a judge about one assertion. The assertion and how often this judge was
/// asked about it before count from 0.
pub fn rubric_role(number: usize, again: u32) -> String {
    match again {
        0 => format!("judge rubric {}", number + 1),
        again => format!("judge rubric {}, again {again}", number + 1),
    }
}

/// Whether that is the role of a question about one assertion.
fn is_of_rubric(role: &str, number: usize) -> bool {
    let first = rubric_role(number, 0);
    role.strip_prefix(&first).is_some_and(|rest| rest.is_empty() || rest.starts_with(", again "))
}

/// The role of a question to a judge about the answers of all lanes. Comparisons count from 0.
pub fn contest_role(number: usize, order: Order) -> String {
    let reversed = if order == Order::Reversed { ", reversed" } else { "" };
    format!("judge comparison {}{reversed}", number + 1)
}

/// The role of a question to a scorer, which counts from 0.
pub fn scorer_role(number: usize) -> String {
    format!("scorer {}", number + 1)
}

/// Whether a question went to a scorer and not to a backend.
pub fn is_of_scorer(asked: &Asked) -> bool {
    asked.role.starts_with("scorer ")
}

/// What the scorers of the case said when they were asked.
fn scored(
    expectation: &Expectation<'_>,
    result: &RunResult<'_>,
    asked: &[Asked],
) -> Vec<Result<Value, String>> {
    let inputs = LazyCell::new(|| expectation.scorer_inputs(result));
    let unasked = |number: usize| match inputs.get(number) {
        Some(Err(why)) => why.clone(),
        Some(Ok(_)) | None => "the scorer was not asked".to_owned(),
    };
    let read = |(number, call): (usize, &ScorerCall)| {
        let role = scorer_role(number);
        let found = asked.iter().rfind(|it| it.role == role).ok_or_else(|| unasked(number))?;
        if found.request.prompt() != call.question() {
            return Err(match &call.scorer {
                Scorer::Similar(_) => "the reply was compared with other texts".to_owned(),
                Scorer::Rerank(_) => "the reply was ranked by another question".to_owned(),
                Scorer::Named(_) | Scorer::Python(_) | Scorer::Exec(_) => {
                    "another scorer was asked, or with another `config`".to_owned()
                }
            });
        }
        match (&found.reply, &found.error) {
            (Some(reply), _) => script::stored(reply),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Err("the scorer gave no answer".to_owned()),
        }
    };
    expectation.scorers().iter().enumerate().map(read).collect()
}

/// What executing the command of the reply and accepted ones showed.
fn effects(
    expectation: &Expectation<'_>,
    result: &RunResult<'_>,
    asked: &[Asked],
) -> Vec<Result<EffectFound, String>> {
    let of_pairs = || asked.iter().filter(|it| it.is_effect());
    let known: Vec<EffectFound> =
        of_pairs().filter_map(|it| EffectFound::from_json(it.reply.as_deref()?).ok()).collect();
    let find = |call: EffectCall| {
        let EffectCall { command, against } = call;
        let found = known.iter().find(|it| it.command == command && it.against == against);
        let failed = || of_pairs().find_map(|it| it.error.clone());
        found.cloned().ok_or_else(|| {
            failed().unwrap_or_else(|| "they were not executed when the reply came".to_owned())
        })
    };
    expectation.effect_calls(result).into_iter().map(find).collect()
}

/// What came of executing what is in the reply; none where nothing is to be executed.
fn executed(
    expectation: &Expectation<'_>,
    result: &RunResult<'_>,
    asked: &[Asked],
) -> Option<Result<Executed, String>> {
    let call = expectation.execution_call(result)?.ok()?;
    let Some(found) = asked.iter().rfind(|it| it.role == EXECUTION_ROLE) else {
        return Some(Err("nothing was executed when the reply came".to_owned()));
    };
    let read = match (&found.reply, &found.error) {
        (Some(reply), _) => Executed::from_json(reply),
        (None, error) => Err(error.clone().unwrap_or_default()),
    };
    Some(read.and_then(|it| match it.call == call.digest() {
        true => Ok(it),
        false => Err("something else was executed when the reply came".to_owned()),
    }))
}

/// What the comparisons with other lanes came to when they were made.
fn selections(
    expectation: &Expectation<'_>,
    classified: Option<&Classification>,
) -> Vec<Result<Selection, String>> {
    let known = classified.map(|it| it.details.selected.as_slice()).unwrap_or_default();
    let find = |contest: &Contest| {
        let found = known.iter().find(|it| it.by == contest.described());
        found.cloned().ok_or_else(|| match known.is_empty() {
            true => "the answer was not compared with others".to_owned(),
            false => "the answers were compared by other criteria".to_owned(),
        })
    };
    expectation.contests().iter().map(find).collect()
}

/// Skills that were chosen when each was asked about; none if they were not.
fn chosen(asked: &[Asked]) -> Option<Vec<String>> {
    let about = || asked.iter().filter_map(|it| Some((it.role.strip_prefix(FALLBACK)?, it)));
    about().next()?;
    let yes = |it: &Asked| it.reply.as_deref().is_some_and(says_yes);
    Some(about().filter(|(_, it)| yes(it)).map(|(skill, _)| skill.to_owned()).collect())
}

/// What judges made of the reply, for each assertion that asks them.
fn assessments(
    expectation: &Expectation<'_>,
    result: &RunResult<'_>,
    known: Known<'_>,
) -> Vec<Assessment> {
    let assess = |(number, inquiry): (usize, &Inquiry)| {
        let shown = expectation.shown(inquiry, result);
        let rounds = rounds(known.asked, number);
        let opinions = rounds.iter().map(|asked| Opinion {
            judge: asked.backend.clone(),
            said: match said(inquiry, &shown, asked, known.words) {
                Ok(judged) => Said::Judged(judged),
                Err(error) => Said::Failed { error },
            },
        });
        // Judges who could not be asked are not in the record, but why they could not be is known.
        let unasked = shown.as_ref().err().filter(|_| rounds.is_empty()).map(|error| Opinion {
            judge: "judge".to_owned(),
            said: Said::Failed { error: error.clone() },
        });
        Assessment {
            opinions: opinions.chain(unasked).collect(),
            combine: expectation.combine.or_else(|| combined(known.classified)).unwrap_or_default(),
        }
    };
    expectation.inquiries().iter().enumerate().map(assess).collect()
}

/// The last question of each round of a judge about one assertion, in order.
pub(crate) fn rounds(asked: &[Asked], number: usize) -> Vec<&Asked> {
    let mut last: Vec<&Asked> = Vec::new();
    for it in asked.iter().filter(|it| is_of_rubric(&it.role, number)) {
        match last.iter_mut().find(|known| known.role == it.role && known.backend == it.backend) {
            Some(known) => *known = it,
            None => last.push(it),
        }
    }
    last
}

/// How opinions were combined when the judges were asked.
fn combined(classified: Option<&Classification>) -> Option<Combine> {
    classified?.details.judged.first().map(|it| it.combine)
}

fn said(
    inquiry: &Inquiry,
    shown: &Result<Shown, String>,
    asked: &Asked,
    words: Option<Words<'_>>,
) -> Result<Judged, String> {
    let shown = shown.as_ref().map_err(Clone::clone)?;
    let reply = match (&asked.reply, &asked.error) {
        (Some(reply), _) => reply,
        (None, Some(error)) => return Err(error.clone()),
        (None, None) => return Err("the judge gave no answer".to_owned()),
    };
    let talk = Talk::again(inquiry, shown, &asked.request, words)
        .ok_or("the judge was asked another question than would be asked now")?;
    talk.read(reply).map_err(|why| format!("the stored answer of the judge cannot be read: {why}"))
}

#[cfg(test)]
mod tests {
    use probity_core::{
        case::TestCase,
        classification::Rule,
        details::Details,
        record::{Source, Usage},
        request::Request,
        selection::Candidate,
    };
    use serde_json::json;

    use super::*;
    use crate::{Compiler, Rules};

    /// What a reply comes to again, and why.
    fn again(assertion: &Value, known: Known<'_>) -> (Verdict, String) {
        let case = json!({ "id": "c", "prompt": "p", "assert": [assertion] });
        let case = TestCase::from_json(&case.to_string()).unwrap();
        let rules = Rules::default();
        let expectation = Compiler::new(&rules).compile(&case).unwrap();
        let result = RunResult { raw_response: Some("four"), ..RunResult::default() };
        let (found, verdict) = classify_again(&expectation, &result, known);
        (verdict, found.details.error_details.unwrap_or_default())
    }

    #[test]
    fn a_comparison_that_was_made_is_not_made_again() {
        let answer = |lane: &str| Candidate { lanes: vec![lane.to_owned()], score: None };
        let selected = |by: &str, best| Classification {
            rule: Rule::Pass,
            scores: Vec::new(),
            details: Details {
                selected: vec![Selection {
                    check: "select-best".into(),
                    by: by.to_owned(),
                    answers: vec![answer("a"), answer("b")],
                    own: 0,
                    best: vec![best],
                    judge: None,
                    reason: None,
                }],
                ..Details::default()
            },
        };
        let assertion = json!({ "type": "select-best", "value": "the shortest" });
        let known = |before: &Classification| {
            again(&assertion, Known { classified: Some(before), ..Known::default() })
        };
        assert_eq!(known(&selected("the shortest", 0)).0, Verdict::Pass);
        assert_eq!(known(&selected("the shortest", 1)).0, Verdict::Fail);
        let (verdict, why) = known(&selected("the longest", 0));
        assert_eq!(verdict, Verdict::Error);
        assert!(why.contains("compared by other criteria"), "{why}");
        let (verdict, why) = again(&assertion, Known::default());
        assert_eq!(verdict, Verdict::Error);
        assert!(why.contains("not compared with others"), "{why}");
    }

    #[test]
    fn a_scorer_that_was_asked_is_not_asked_again() {
        let asked = |question: &str, reply: Option<&str>, error: Option<&str>| Asked {
            role: scorer_role(0),
            backend: "scorer".to_owned(),
            request: Request::new(None, question.to_owned()),
            turn: None,
            reply: reply.map(ToOwned::to_owned),
            tool_calls: Vec::new(),
            reasoning: None,
            stop_reason: None,
            logprobs: None,
            error: error.map(ToOwned::to_owned),
            model: None,
            source: Source::Backend,
            latency_ms: 0,
            usage: Usage::default(),
            cost_usd: None,
            calls: 1,
        };
        let assertion = json!({ "type": "exec", "value": "./score" });
        let known = |asked: Asked| again(&assertion, Known { asked: &[asked], ..Known::default() });
        assert_eq!(known(asked("./score", Some("true"), None)).0, Verdict::Pass);
        assert_eq!(known(asked("./score", Some("false"), None)).0, Verdict::Fail);
        for (asked, expected) in [
            (asked("./score", None, Some("it was killed")), "it was killed"),
            (asked("./score", None, None), "the scorer gave no answer"),
            (asked("./other", Some("true"), None), "another scorer was asked"),
        ] {
            let (verdict, why) = known(asked);
            assert_eq!(verdict, Verdict::Error);
            assert!(why.contains(expected), "{why}");
        }
    }
}
