//! Judges the turns of a conversation, each like a case of its own.

use std::slice;

use probity_core::{
    classification::{Classification, Rule, Verdict},
    conversation::Exchange,
    details::{Details, Extracted, PolicyHit, Trouble},
    difference::{AssertionDifference, Difference},
    opinion::JudgedCheck,
    run_result::RunResult,
    score::Score,
};

use super::{Facts, Fired, classify};
use crate::compile::{Expectation, in_turn};

/// The score of a conversation in which the model did not stop calling tools.
const MAX_STEPS: &str = "max-steps";
/// The score of work that did not come to its end.
const FINISHED: &str = "finished";
/// The score of a turn that was not reached.
const REACHED: &str = "reached";

/// Judges the answer to each turn, and whether the model came to an answer at all.
pub(super) fn judge(
    expectation: &Expectation<'_>,
    result: &RunResult<'_>,
    fired: &mut Vec<Fired>,
    facts: &mut Facts,
) {
    judge_steps(expectation, result.exchanges, fired, facts);
    if let Some(why) = result.unfinished {
        facts.scores.insert(0, Score::new(FINISHED, Some(why.to_owned())));
        fired.push(mismatch(FINISHED.to_owned(), why.to_owned()));
    }
    if expectation.turns.is_empty() {
        return;
    }
    if result.exchanges.is_empty() {
        facts.unjudged = Some("the conversation was not recorded".to_owned());
        return;
    }
    let is_judged = |at: usize, turn: &Expectation<'_>| {
        // The last reply is judged already where the case asks something of it.
        let is_last = at + 1 == expectation.turns.len();
        turn.has_own_criteria() || !(is_last && expectation.has_own_criteria())
    };
    for (at, (turn, number)) in expectation.turns.iter().zip(1..).enumerate() {
        if is_judged(at, turn) {
            let is_last = at + 1 == expectation.turns.len();
            Judge { turn, number, is_last }.judge(result, fired, facts);
        }
    }
}

/// Says so where a turn ends with calls that were to be answered.
fn judge_steps(
    expectation: &Expectation<'_>,
    exchanges: &[Exchange<'_>],
    fired: &mut Vec<Fired>,
    facts: &mut Facts,
) {
    for (turn, _) in (1..).zip(0..expectation.answered_turns) {
        let said = of_turn(exchanges, turn);
        if said.last().is_none_or(|it| it.tool_calls.is_empty()) {
            continue;
        }
        let why = format!("the model still calls tools after {} steps", said.len());
        let why = if expectation.turns.is_empty() { why } else { in_turn(turn, &why) };
        // What else does not hold is often for want of an answer.
        facts.scores.insert(0, Score::new(MAX_STEPS, Some(why.clone())));
        fired.push(mismatch(MAX_STEPS.to_owned(), why));
    }
}

fn mismatch(assertion: String, evidence: String) -> Fired {
    let difference = AssertionDifference { assertion, score: 0.0 };
    let diff = Some(Difference::Assertion(difference));
    let details = Details { diff, ..Details::default() };
    Fired { rule: Rule::Mismatch, evidence, details }
}

/// A turn that is being judged.
struct Judge<'e, 'r> {
    turn: &'e Expectation<'r>,
    number: u32,
    is_last: bool,
}

impl Judge<'_, '_> {
    fn judge(&self, result: &RunResult<'_>, fired: &mut Vec<Fired>, facts: &mut Facts) {
        let Some(own) = result_of(result, self.number) else {
            if self.turn.has_own_criteria() {
                let why = in_turn(self.number, "it was not reached");
                facts
                    .scores
                    .push(self.score(Score::new(REACHED, Some("it was not reached".to_owned()))));
                fired.push(mismatch(REACHED.to_owned(), why));
            }
            return;
        };
        let judged = classify(self.turn, &own);
        let verdict = self.turn.verdict(&judged);
        let Classification { rule, scores, details } = judged;
        let Details { hits, extracted, judged, error_details, reason, .. } = &details;
        facts.hits.extend(hits.iter().map(|it| self.hit(it)));
        facts.extracted.extend(extracted.iter().map(|it| Extracted {
            check: in_turn(self.number, &it.check).into(),
            text: it.text.clone(),
        }));
        facts.judged.extend(
            judged.iter().map(|it| JudgedCheck {
                check: in_turn(self.number, &it.check).into(),
                ..it.clone()
            }),
        );
        if *reason == Some(Trouble::Unjudged) {
            let why = error_details.as_deref().unwrap_or("it could not be judged");
            facts.unjudged = Some(in_turn(self.number, why));
        } else if verdict == Verdict::Fail && (self.turn.has_own_criteria() || rule == Rule::Policy)
        {
            fired.push(self.fired(rule, &scores, details));
        }
        // A turn without a criterion decides nothing.
        if self.turn.has_own_criteria() {
            facts.scores.extend(scores.into_iter().map(|it| self.score(it)));
        }
    }

    fn fired(&self, rule: Rule, scores: &[Score], details: Details) -> Fired {
        // Another class was expected than that of a right answer.
        let rule = if rule == Rule::Pass { Rule::Mismatch } else { rule };
        let failed = || scores.iter().find(|it| it.is_required() && !it.passed);
        let of_score = || {
            let Score { name, value, .. } = failed().filter(|_| rule == Rule::Mismatch)?;
            let (assertion, score) = (name.to_string(), value.unwrap_or(0.0));
            Some(Difference::Assertion(AssertionDifference { assertion, score }))
        };
        let details = Details {
            turn: Some(self.number),
            diff: details.diff.or_else(of_score),
            span: details.span.filter(|_| self.is_last),
            hits: Vec::new(),
            extracted: Vec::new(),
            judged: Vec::new(),
            also: Vec::new(),
            criteria: None,
            ..details
        };
        Fired { rule, evidence: in_turn(self.number, rule.as_str()), details }
    }

    /// A score under a name that tells its turn, unless the case names it. Marks are for the last
    /// reply, which is the one that is shown with them.
    fn score(&self, score: Score) -> Score {
        let Score { name, kind, reason, span, .. } = score;
        let name = match name != kind || self.turn.names_itself(&name) {
            true => name,
            false => in_turn(self.number, &name).into(),
        };
        let reason = reason.map(|it| in_turn(self.number, &it));
        Score { name, kind, reason, span: span.filter(|_| self.is_last), ..score }
    }

    fn hit(&self, hit: &PolicyHit) -> PolicyHit {
        let span = if self.is_last { hit.span.clone() } else { 0..0 };
        PolicyHit { span, ..hit.clone() }
    }
}

/// What came back in a turn; none if it was not reached.
pub(crate) fn result_of<'s>(result: &'s RunResult<'_>, turn: u32) -> Option<RunResult<'s>> {
    let said = of_turn(result.exchanges, turn);
    let last = said.last()?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 milliseconds")]
    Some(RunResult {
        raw_response: Some(last.reply),
        prompt: result.prompt,
        backend: result.backend,
        stop_reason: last.stop_reason,
        latency_ms: Some(said.iter().map(|it| it.latency_ms).sum::<u64>() as f64),
        cost_usd: said.iter().map(|it| it.cost_usd).sum(),
        // It is known of the last answer alone.
        ttft_ms: result
            .ttft_ms
            .filter(|_| result.exchanges.last().is_some_and(|it| it.turn == turn)),
        made: result.made.get(turn as usize).map_or(&[], slice::from_ref),
        exchanges: said,
        assessments: result.assessments,
        scored: result.scored,
        ..RunResult::default()
    })
}

/// The replies of a turn: turns follow each other.
fn of_turn<'e, 'a>(exchanges: &'e [Exchange<'a>], turn: u32) -> &'e [Exchange<'a>] {
    let start = exchanges.partition_point(|it| it.turn < turn);
    let rest = &exchanges[start..];
    &rest[..rest.partition_point(|it| it.turn == turn)]
}

#[cfg(test)]
mod tests {
    use probity_core::{case::TestCase, request::ToolCall};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{Compiler, Rules};

    fn case() -> TestCase {
        let case = json!({
            "id": "c",
            "turns": [
                { "user": "a", "assert": [{ "type": "tool-called", "value": "f" }] },
                { "user": "b" },
                { "user": "c", "schema": { "type": "object" } },
            ],
            "tool_results": [],
            "assert": [
                { "type": "tools-in-order", "value": ["f", { "name": "g", "arguments": { "a": 1 } }] },
                { "type": "perplexity", "threshold": 2 },
            ],
        });
        serde_json::from_value(case).unwrap()
    }

    #[derive(Clone, Debug)]
    struct Said {
        turn: u32,
        reply: String,
        calls: Vec<ToolCall>,
    }

    fn said() -> impl Strategy<Value = Said> {
        let arguments =
            prop_oneof![Just("{}".to_owned()), Just("{\"a\":1}".to_owned()), "\\PC{0,20}"];
        let call = ("[fgh]", arguments)
            .prop_map(|(name, arguments)| ToolCall::with_text(None, name, &arguments));
        let calls = prop::collection::vec(call, 0..3);
        (0_u32..5, "\\PC{0,40}", calls).prop_map(|(turn, reply, calls)| Said { turn, reply, calls })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn any_conversation_is_judged_the_same_every_time(
            said in prop::collection::vec(said(), 0..6),
            last in prop::option::of("\\PC{0,40}"),
        ) {
            let exchanges: Vec<Exchange<'_>> = said
                .iter()
                .map(|it| Exchange {
                    turn: it.turn,
                    before: None,
                    reply: &it.reply,
                    tool_calls: &it.calls,
                    stop_reason: None,
                    logprobs: None,
                    latency_ms: 1,
                    cost_usd: None,
                })
                .collect();
            let rules = Rules::default();
            let expectation = Compiler::new(&rules).compile(&case()).unwrap();
            let result = RunResult {
                raw_response: last.as_deref(),
                exchanges: &exchanges,
                ..RunResult::default()
            };
            let once = classify(&expectation, &result);
            prop_assert_eq!(&once, &classify(&expectation, &result));
            // No turn has logprobs, so that nothing can pass.
            prop_assert_ne!(expectation.verdict(&once), Verdict::Pass);
        }
    }

    #[test]
    fn turns_are_found_by_their_numbers() {
        let exchange = |turn| Exchange {
            turn,
            before: None,
            reply: "",
            tool_calls: &[],
            stop_reason: None,
            logprobs: None,
            latency_ms: 0,
            cost_usd: None,
        };
        let all = [1, 1, 2, 4].map(exchange);
        let counts = [1, 2, 3, 4, 5].map(|turn| of_turn(&all, turn).len());
        assert_eq!(counts, [2, 1, 0, 1, 0]);
    }

    #[test]
    fn the_answer_of_a_turn_is_judged_with_what_is_known_of_its_calls() {
        let exchange = |turn, reply| Exchange {
            turn,
            before: None,
            reply,
            tool_calls: &[],
            stop_reason: Some("stop"),
            logprobs: None,
            latency_ms: 5,
            cost_usd: Some(0.25),
        };
        let exchanges = [exchange(1, "a"), exchange(1, "b"), exchange(2, "c")];
        let made = [None, Some(Ok(json!("made of b"))), Some(Ok(json!("made of c")))];
        let result = RunResult {
            prompt: Some("p"),
            backend: Some("m"),
            raw_response: Some("c"),
            latency_ms: Some(99.0),
            ttft_ms: Some(3.0),
            exchanges: &exchanges,
            made: &made,
            ..RunResult::default()
        };
        let of = |turn| result_of(&result, turn).unwrap();
        let known = |it: &RunResult<'_>| (it.latency_ms, it.cost_usd, it.ttft_ms);
        assert_eq!((of(1).raw_response, of(2).raw_response), (Some("b"), Some("c")));
        assert_eq!(known(&of(1)), (Some(10.0), Some(0.5), None));
        assert_eq!(known(&of(2)), (Some(5.0), Some(0.25), Some(3.0)));
        assert_eq!(
            (of(1).prompt, of(1).backend, of(1).stop_reason),
            (Some("p"), Some("m"), Some("stop"))
        );
        assert_eq!((of(1).made, of(2).made), (&made[1..2], &made[2..3]));
        assert!(result_of(&result, 3).is_none());
    }
}
