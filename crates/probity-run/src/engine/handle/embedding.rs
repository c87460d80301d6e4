//! How near a reply is to texts: vectors from the backend that embeds them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use probity_core::{
    failure::ErrorKind,
    record::{CacheKind, CallError},
    request::Request,
    span::Span,
};
use probity_grade::internal::{
    script::{ScorerCall, ScorerInput},
    similar::Similar,
};
use serde_json::{Value, json};
use tokio::{
    sync::OnceCell,
    time::{Instant, timeout_at},
};

use super::{BackendRef, Handle, Query, Target, Unanswered};
use crate::backend::vector_in;

/// What a text is to a model.
pub(super) type Vector = Arc<[f32]>;

/// One that is there, or that somebody asks for.
type Awaited = Arc<OnceCell<Vector>>;

/// How many vectors a run keeps. There may be as many expected texts as there are cases, and those
/// that are not kept are in the cache.
const KEPT: usize = 2048;

/// Vectors of expected texts: whoever needs one that somebody asks for waits for that.
#[derive(Debug, Default)]
pub(in crate::engine) struct Vectors(Mutex<BTreeMap<(usize, String), Awaited>>);

impl Vectors {
    fn of(&self, backend: usize, text: &str) -> Awaited {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (backend, text.to_owned());
        if known.len() >= KEPT && !known.contains_key(&key) {
            known.clear();
        }
        known.entry(key).or_default().clone()
    }
}

impl Handle {
    /// Finds out how near an output is to texts, and records it. That the backend fails is an error
    /// of the case.
    pub(super) async fn near(
        &mut self,
        number: usize,
        call: &ScorerCall,
        similar: &Similar,
        input: &ScorerInput,
    ) -> Result<Result<Value, String>, Unanswered> {
        let Some(embedder) = self.embedder.clone() else {
            return Ok(Err("no backend is named in `embeddings`".to_owned()));
        };
        let (before, began) = (self.begin_tally(), Instant::now());
        let compared = self.compare(&embedder, similar, &input.text()).await;
        let own = self.end_tally(before);
        self.note_scored((number, call), &embedder, compared, (own, began))
    }

    async fn compare(
        &mut self,
        embedder: &BackendRef,
        similar: &Similar,
        output: &str,
    ) -> Result<Value, Unanswered> {
        // No model takes a text without anything in it.
        if output.trim().is_empty() {
            return Ok(Value::Null);
        }
        let mut expected = Vec::with_capacity(similar.texts.len());
        for text in &similar.texts {
            expected.push(self.expected(embedder.at, text).await?);
        }
        let reply = self.embed(output).await?;
        let expected: Vec<&[f32]> = expected.iter().map(|it| &**it).collect();
        let nearness = similar.nearness(&reply, &expected).map_err(|why| {
            let message = format!(
                "embeddings `{}`: {why}; `probity cache clear --embeddings` removes earlier ones",
                embedder.backend.name
            );
            let error = CallError::new(ErrorKind::Server, message);
            let error = CallError { permanent: true, ..error };
            Unanswered::Failed { error, backend: embedder.at }
        })?;
        Ok(json!(nearness))
    }

    /// The vector of a text that many cases may expect.
    async fn expected(&mut self, backend: usize, text: &str) -> Result<Vector, Unanswered> {
        let shared = self.shared.vectors.of(backend, text);
        let (deadline, limit) = (self.deadline, Span(self.shared.settings.timeouts.case));
        match timeout_at(deadline, shared.get_or_try_init(|| self.embed(text))).await {
            Ok(vector) => vector.cloned(),
            Err(_) => {
                let message = format!("the case's limit of {limit} was used up by waiting");
                let error = CallError::new(ErrorKind::Timeout, message);
                Err(Unanswered::Failed { error, backend })
            }
        }
    }

    /// Asks for the vector of a text.
    async fn embed(&mut self, text: &str) -> Result<Vector, Unanswered> {
        if let Some((known, vector)) = &self.embedded
            && known == text
        {
            return Ok(vector.clone());
        }
        let request = Request::new(None, text);
        let query = Query {
            target: Target::Embedder,
            role: "embedding",
            turn: None,
            kept: CacheKind::Embedding,
            request: &request,
            // The same text has the same vector each time.
            repeat: 0,
        };
        let reply = self.ask(&query).await?;
        let backend = self.party(Target::Embedder).at;
        let vector = vector_in(&reply).map_err(|error| Unanswered::Failed { error, backend })?;
        let vector: Vector = vector.into();
        self.embedded = Some((text.to_owned(), vector.clone()));
        Ok(vector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_shared_by_all_who_expect_the_same_text_of_the_same_backend() {
        let vectors = Vectors::default();
        let east = vectors.of(0, "east");
        assert!(Arc::ptr_eq(&east, &vectors.of(0, "east")));
        assert!(!Arc::ptr_eq(&east, &vectors.of(0, "west")));
        assert!(!Arc::ptr_eq(&east, &vectors.of(1, "east")));
    }

    #[test]
    fn a_run_keeps_no_more_vectors_than_it_may() {
        let vectors = Vectors::default();
        let first = vectors.of(0, "0");
        (1..KEPT).for_each(|at| drop(vectors.of(0, &at.to_string())));
        // One that is known needs no room.
        assert!(Arc::ptr_eq(&first, &vectors.of(0, "0")));
        vectors.of(0, "one more");
        assert!(!Arc::ptr_eq(&first, &vectors.of(0, "0")));
    }
}
