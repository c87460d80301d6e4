//! How relevant a reply is, as a model says that ranks texts.

use probity_core::{
    failure::ErrorKind,
    record::{CacheKind, CallError},
    request::Request,
};
use probity_grade::internal::script::{ScorerCall, ScorerInput};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Handle, Query, Target, Unanswered};

impl Handle {
    /// Finds out how relevant an output is to a question, or to that of the case, and records it. That
    /// the backend fails is an error of the case.
    pub(super) async fn rerank(
        &mut self,
        number: usize,
        call: &ScorerCall,
        query: Option<&str>,
        input: &ScorerInput,
    ) -> Result<Result<Value, String>, Unanswered> {
        let Some(reranker) = self.reranker.clone() else {
            return Ok(Err("no backend is named in `reranker`".to_owned()));
        };
        let (before, began) = (self.begin_tally(), Instant::now());
        let query = query.unwrap_or(&input.question).to_owned();
        let relevance = self.relevance(&query, &input.text()).await;
        let own = self.end_tally(before);
        self.note_scored((number, call), &reranker, relevance, (own, began))
    }

    async fn relevance(&mut self, query: &str, output: &str) -> Result<Value, Unanswered> {
        // No model takes a text without anything in it.
        if output.trim().is_empty() {
            return Ok(Value::Null);
        }
        let request = Request::new(Some(query.into()), output);
        let query = Query {
            target: Target::Reranker,
            role: "reranking",
            turn: None,
            // Like an embedding, it is the same each time.
            kept: CacheKind::Embedding,
            request: &request,
            repeat: 0,
        };
        let reply = self.ask(&query).await?;
        let backend = self.party(Target::Reranker).at;
        match reply.text.parse::<f64>() {
            Ok(relevance) => Ok(json!(relevance)),
            Err(_) => {
                let error = CallError::new(ErrorKind::Server, "the relevance cannot be read");
                Err(Unanswered::Failed { error, backend })
            }
        }
    }
}
