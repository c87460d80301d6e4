//! What those who are asked about a reply are shown of it.

use std::sync::Arc;

use probity_core::run_result::RunResult;

use super::{Expectation, texts_of};
use crate::{
    classify::turns,
    judge::{Context, Inquiry, Shown},
    reply::Reply,
    script::{self, ScorerCall, ScorerInput, Script},
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
        let text = result.raw_response.ok_or("there is no reply")?;
        let facts = self.facts.as_deref();
        let reply = Reply::new(text, result, self.rules).of(facts);
        let transform = |script: &Option<Arc<dyn Script>>, reply: &Reply<'_, '_>| {
            let found = script.as_ref().zip(facts);
            found.map(|(script, facts)| script::transform(&**script, facts, reply)).transpose()
        };
        let of_case = transform(&self.transform, &reply)?;
        let of_case_text = of_case.as_ref().map(script::text_of);
        let reply = match (&of_case, &of_case_text) {
            (Some(made), Some(text)) => reply.made_into(made, text),
            (_, _) => reply,
        };
        let answer = match transform(&inquiry.transform, &reply)? {
            Some(made) => script::text_of(&made),
            None => reply.text.to_owned(),
        };
        let context = match (&inquiry.context, facts) {
            (Context::Given(passages), _) => passages.clone(),
            (Context::Made(script), Some(facts)) => {
                let made = script::transform(&**script, facts, &reply)?;
                texts_of(&made)
                    .ok_or("`context_transform` made neither a text nor a list of texts")?
            }
            (Context::Made(_), None) | (Context::None, _) => Vec::new(),
        };
        let passages = inquiry.form.passages(&context);
        if passages.is_empty() && inquiry.form.needs_context() {
            return Err("the context is empty".to_owned());
        }
        let question = match (&inquiry.query, result.before()) {
            (Some(query), _) => query.clone(),
            (None, Some(conversation)) => conversation.shown().into_owned(),
            (None, None) => result.prompt.unwrap_or_default().to_owned(),
        };
        Ok(Shown { question, answer, passages })
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
        let made = self.transform.as_ref().map(|it| script::transform(&**it, facts, &reply));
        let made = made.transpose()?;
        let made_text = made.as_ref().map(script::text_of);
        let reply = match (&made, &made_text) {
            (Some(made), Some(text)) => &reply.made_into(made, text),
            (_, _) => &reply,
        };
        let output = match &call.transform {
            Some(script) => script::transform(&**script, facts, reply)?,
            None => reply.output().into_owned(),
        };
        Ok(ScorerInput { output, context: facts.context(reply, call.config.as_ref()) })
    }
}
