//! `streamGenerateContent`: each event is an answer with the next parts of the content.

use super::{Answer, Candidate, reply};
use crate::backend::{
    dialect::{Assembly, Heard, StreamSpec, Undecoded},
    stream::{Event, Framing},
};
use probity_core::reply::Reply;

pub(super) const STREAM: StreamSpec = StreamSpec {
    framing: Framing::Events,
    endpoint,
    // The address says it all.
    ask: |_, _| {},
    open: || Box::<Pieces>::default(),
};

fn endpoint(url: &str) -> String {
    let url = url.replace(":generateContent", ":streamGenerateContent");
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}alt=sse")
}

/// What has come of an answer.
#[derive(Default)]
struct Pieces {
    answer: Option<Answer>,
}

impl Assembly for Pieces {
    fn take(&mut self, event: &Event) -> Result<Heard, Undecoded> {
        let next: Answer = serde_json::from_str(&event.data)
            .map_err(|_| Undecoded::Shape("an event is not a `generateContent` answer"))?;
        if next.error.as_ref().is_some_and(|it| !it.is_null()) {
            return Err(Undecoded::Error);
        }
        let content = next.candidates.first().and_then(|it| it.content.as_ref());
        let is_token = content.is_some_and(|it| {
            let is_said = |text: &Option<String>| text.as_ref().is_some_and(|it| !it.is_empty());
            it.parts.iter().any(|part| part.function_call.is_some() || is_said(&part.text))
        });
        self.answer = Some(match self.answer.take() {
            None => next,
            Some(before) => joined(before, next),
        });
        Ok(Heard::any(is_token))
    }

    fn finish(self: Box<Self>) -> Result<Reply, Undecoded> {
        let answer = self.answer.ok_or(Undecoded::Cut)?;
        let is_finished = answer.candidates.first().is_some_and(|it| it.finish_reason.is_some());
        let is_blocked =
            answer.prompt_feedback.as_ref().is_some_and(|it| it.block_reason.is_some());
        match is_finished || is_blocked {
            true => reply(answer),
            false => Err(Undecoded::Cut),
        }
    }
}

/// An answer, and what came after it. Later counts replace earlier ones.
fn joined(before: Answer, next: Answer) -> Answer {
    let old = before.candidates.into_iter().next();
    let new = next.candidates.into_iter().next();
    let candidate = match (old, new) {
        (Some(old), Some(new)) => {
            let mut content = old.content.unwrap_or_default();
            content.parts.extend(new.content.into_iter().flat_map(|it| it.parts));
            let finish_reason = new.finish_reason.or(old.finish_reason);
            Some(Candidate { content: Some(content), finish_reason })
        }
        (old, new) => old.or(new),
    };
    Answer {
        candidates: candidate.into_iter().collect(),
        prompt_feedback: next.prompt_feedback.or(before.prompt_feedback),
        usage_metadata: next.usage_metadata.or(before.usage_metadata),
        model_version: next.model_version.or(before.model_version),
        error: None,
    }
}
