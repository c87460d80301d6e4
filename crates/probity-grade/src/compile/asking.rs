//! What those who are asked about a reply are shown of it.

use std::iter;

use probity_core::{
    run_result::{Made, RunResult},
    score::Score,
};

use super::{Expectation, texts_of};
use crate::{
    classify::turns,
    internal::{
        contest::{Contest, Entry},
        judge::{Context, Inquiry, Look, Shown},
        script::{self, ScorerCall, ScorerInput},
    },
    reply::Reply,
};

impl Expectation<'_> {
    /// What a judge is shown of a reply for one of these, or why it cannot be asked.
    pub fn shown(&self, inquiry: &Inquiry, result: &RunResult<'_>) -> Result<Shown, String> {
        let Some(turn) = inquiry.turn else { return self.shown_of(inquiry, result) };
        let own = turns::result_of(result, turn).ok_or("the turn was not reached")?;
        self.turn(turn).shown_of(inquiry, &own)
    }

    /// The same, where the reply is the one that is asked about.
    fn shown_of(&self, inquiry: &Inquiry, result: &RunResult<'_>) -> Result<Shown, String> {
        self.looked_at(&inquiry.look, result, |reply| {
            let context = match (&inquiry.context, self.facts.as_deref()) {
                (Context::Given(passages), _) => passages.clone(),
                (Context::Made(script), Some(facts)) => {
                    let made = script::transform(&**script, facts, reply)?;
                    texts_of(&made)
                        .ok_or("`context_transform` made neither a text nor a list of texts")?
                }
                (Context::Made(_), None) | (Context::None, _) => Vec::new(),
            };
            let passages = inquiry.form.passages(&context);
            match passages.is_empty() && inquiry.form.needs_context() {
                true => Err("the context is empty".to_owned()),
                false => Ok(passages),
            }
        })
    }

    /// The comparisons with the answers of other lanes, one for each assertion that wants one.
    pub fn contests(&self) -> &[Contest] {
        &self.contests
    }

    /// The part of a lane in a comparison, or why it has none. What its reply came to before is in
    /// `scores`.
    pub fn entry(
        &self,
        contest: &Contest,
        result: &RunResult<'_>,
        lane: &str,
        scores: &[Score],
    ) -> Result<Entry, String> {
        let Shown { question, answer, .. } =
            self.looked_at(&contest.look, result, |_| Ok(Vec::new()))?;
        Ok(Entry { lane: lane.to_owned(), question, answer, score: contest.total(scores) })
    }

    /// What is looked at of a case, with the passages that are made of its reply.
    fn looked_at(
        &self,
        look: &Look,
        result: &RunResult<'_>,
        passages: impl FnOnce(&Reply<'_, '_>) -> Result<Vec<String>, String>,
    ) -> Result<Shown, String> {
        let text = result.raw_response.ok_or("there is no reply")?;
        let facts = self.facts.as_deref();
        let reply = Reply::new(text, result, self.rules).of(facts);
        let made = self.made_of(&reply).transpose()?;
        let made_text = made.as_ref().map(script::text_of);
        let reply = match (&made, &made_text) {
            (Some(made), Some(text)) => reply.made_into(made, text),
            (_, _) => reply,
        };
        let answer = match (&look.transform, facts) {
            (Some(script), Some(facts)) => {
                script::text_of(&script::transform(&**script, facts, &reply)?)
            }
            (_, _) => reply.text.to_owned(),
        };
        let passages = passages(&reply)?;
        let question = match (&look.query, result.before()) {
            (Some(query), _) => query.clone(),
            (None, Some(conversation)) => conversation.shown().into_owned(),
            (None, None) => result.prompt.unwrap_or_default().to_owned(),
        };
        Ok(Shown { question, answer, passages })
    }

    /// What transforms make: that of the case of the reply, and those of the turns of their answers.
    /// Nothing where there is none.
    pub fn made(&self, result: &RunResult<'_>) -> Vec<Made> {
        if self.transform.is_none() && self.turns.iter().all(|it| it.transform.is_none()) {
            return Vec::new();
        }
        let of_turn =
            |(turn, number): (&Self, u32)| turn.made_of_result(&turns::result_of(result, number)?);
        let of_turns = self.turns.iter().zip(1..).map(of_turn);
        iter::once(self.made_of_result(result)).chain(of_turns).collect()
    }

    fn made_of_result(&self, result: &RunResult<'_>) -> Made {
        let text = result.raw_response.filter(|it| !it.trim().is_empty())?;
        self.made_of(&Reply::new(text, result, self.rules).of(self.facts.as_deref()))
    }

    /// The same. It is not run again if that is known.
    pub(crate) fn made_of(&self, reply: &Reply<'_, '_>) -> Made {
        let (script, facts) = self.transform.as_ref().zip(reply.facts)?;
        let run = || script::transform(&**script, facts, reply);
        let known = reply.result.made.first().cloned().flatten();
        Some(known.unwrap_or_else(run))
    }

    /// What is asked of the answer to a turn, from 1.
    fn turn(&self, turn: u32) -> &Self {
        self.turns.iter().zip(1..).find(|it| it.1 == turn).map_or(self, |it| it.0)
    }

    /// Those who have to be asked, one for each assertion that needs one.
    pub fn scorers(&self) -> &[ScorerCall] {
        &self.scorers
    }

    /// What each of these is given, or why it cannot be asked.
    pub fn scorer_inputs(&self, result: &RunResult<'_>) -> Vec<Result<ScorerInput, String>> {
        let input = |call: &ScorerCall| match call.turn {
            None => self.scorer_input(call, result),
            Some(turn) => {
                let own = turns::result_of(result, turn).ok_or("the turn was not reached")?;
                self.turn(turn).scorer_input(call, &own)
            }
        };
        self.scorers.iter().map(input).collect()
    }

    fn scorer_input(
        &self,
        call: &ScorerCall,
        result: &RunResult<'_>,
    ) -> Result<ScorerInput, String> {
        let (Some(facts), Some(text)) = (self.facts.as_deref(), result.raw_response) else {
            return Err("there is no reply".to_owned());
        };
        let reply = Reply::new(text, result, self.rules).of(Some(facts));
        let made = self.made_of(&reply).transpose()?;
        let made_text = made.as_ref().map(script::text_of);
        let reply = match (&made, &made_text) {
            (Some(made), Some(text)) => &reply.made_into(made, text),
            (_, _) => &reply,
        };
        let output = match &call.transform {
            Some(script) => script::transform(&**script, facts, reply)?,
            None => reply.output().into_owned(),
        };
        let context = facts.context(reply, call.config.as_ref());
        let question = result.question().unwrap_or_default().to_owned();
        Ok(ScorerInput { output, context, question })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use probity_core::{case::TestCase, conversation::Exchange};
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        Compiler, Rules, classify,
        internal::script::{Script, Scripts},
    };

    #[derive(Clone, Debug, Default)]
    struct Counted(Arc<AtomicU32>);

    impl Scripts for Counted {
        fn compile(&self, _source: &str) -> Result<Arc<dyn Script>, String> {
            Ok(Arc::new(self.clone()))
        }

        fn check_file(&self, _named: &str) -> Result<(), String> {
            Ok(())
        }
    }

    impl Script for Counted {
        fn run(&self, _output: &Value, _context: &str) -> Result<Value, String> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(json!("made"))
        }
    }

    #[test]
    fn a_transform_is_run_once_for_a_reply() {
        let counted = Counted::default();
        let rules = Rules::default().with_scripts(Arc::new(counted.clone()));
        let asked =
            json!([{ "type": "closed-qa", "value": "x" }, { "type": "python", "value": "True" }]);
        let turn = json!({ "user": "p", "transform": "output", "assert": asked });
        let case = json!({ "id": "a", "turns": [turn], "transform": "output", "assert": asked });
        let case: TestCase = serde_json::from_value(case).unwrap();
        let expectation = Compiler::new(&rules).compile(&case).unwrap();
        let exchange = Exchange {
            turn: 1,
            before: None,
            reply: "reply",
            tool_calls: &[],
            stop_reason: None,
            logprobs: None,
            latency_ms: 0,
            cost_usd: None,
        };
        let exchanges = [exchange];
        let result = RunResult {
            raw_response: Some("reply"),
            exchanges: &exchanges,
            ..RunResult::default()
        };
        let made = expectation.made(&result);
        let result = RunResult { made: &made, ..result };
        let inputs = expectation.scorer_inputs(&result);
        assert_eq!((expectation.inquiries().len(), inputs.len()), (2, 2));
        for (inquiry, input) in expectation.inquiries().iter().zip(inputs) {
            assert_eq!(expectation.shown(inquiry, &result).unwrap().answer, "made");
            assert_eq!(input.unwrap().output, json!("made"));
        }
        assert_eq!(classify(&expectation, &result).details.transformed.as_deref(), Some("made"));
        // Once for the case, and once for its turn.
        assert_eq!(counted.0.load(Ordering::Relaxed), 2);
    }
}
