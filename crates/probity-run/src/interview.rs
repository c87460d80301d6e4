//! The talk with a judge: what it is sent next, and what its answers come to.

use std::sync::Arc;

use probity_core::{
    failure::ErrorKind,
    record::CallError,
    request::{Request, ResponseFormat, Sampling},
};
use probity_grade::internal::judge::{Dialogue, Interview, Next};

use crate::backend::Backend;

/// A judge that is asked until its answer can be read, but not for ever.
#[derive(Debug)]
pub(crate) struct Hearing<'a, I> {
    interview: &'a I,
    judge: Arc<Backend>,
    /// The form of the answer, if it is sent along.
    format: Option<ResponseFormat>,
    /// Whether the form was sent along and refused.
    is_refused: bool,
    seed: Option<u64>,
    dialogue: Dialogue,
}

impl<'a, I: Interview> Hearing<'a, I> {
    /// One that has not begun. Where nobody says whether the answer is `structured`, it is where
    /// that is known to work.
    pub(crate) fn new(
        interview: &'a I,
        judge: Arc<Backend>,
        structured: Option<bool>,
        seed: Option<u64>,
    ) -> Self {
        let is_structured = judge.is_sent_schemas(structured);
        let format = is_structured.then(|| ResponseFormat::Schema(Arc::new(interview.schema())));
        Self { interview, judge, format, is_refused: false, seed, dialogue: Dialogue::default() }
    }

    /// What is asked next.
    pub(crate) fn request(&self) -> Request {
        Request {
            response_format: self.format.clone(),
            sampling: Sampling { seed: self.seed, ..Sampling::default() },
            ..self.interview.request(&self.dialogue)
        }
    }

    /// Whether the judge is asked again after an error: a server that may not take the form of the
    /// answer is asked without it.
    pub(crate) fn goes_on_after(&mut self, error: &CallError) -> bool {
        let is_refused = error.kind == ErrorKind::BadRequest && self.format.take().is_some();
        self.is_refused |= is_refused;
        is_refused
    }

    /// Takes in an answer.
    pub(crate) fn hear(&mut self, answer: &str) -> Next<I::Answer> {
        // Only now is it certain that the form was what the server did not take.
        if self.is_refused {
            self.judge.spare_schemas();
        }
        self.dialogue.hear(self.interview.read(answer))
    }

    /// How often the judge has answered.
    pub(crate) fn attempts(&self) -> u32 {
        self.dialogue.attempts()
    }
}
