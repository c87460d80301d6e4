//! Whom assertions ask.

use super::AssertionTest;

/// Whom an assertion asks about a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Nobody: the reply is all that it takes, or a script in the sandbox decides.
    Nobody,
    /// A judge.
    Judge,
    /// A model that embeds texts.
    Embedder,
    /// A model that says how relevant texts are.
    Reranker,
    /// A program that the suite describes.
    Scorer,
    /// A program that the assertion itself brings.
    Code,
    /// The other lanes: their answers to the case are compared.
    Lanes,
}

impl AssertionTest {
    /// Whom it asks; members of an assertion ask for themselves.
    pub const fn asks(self) -> Asks {
        match self {
            Self::LlmRubric
            | Self::Factuality
            | Self::ClosedQa
            | Self::GEval
            | Self::ContextRecall
            | Self::ContextPrecision
            | Self::ContextRelevance
            | Self::ContextFaithfulness
            | Self::AnswerRelevance => Asks::Judge,
            Self::Similar | Self::SimilarCosine | Self::SimilarDot | Self::SimilarEuclidean => {
                Asks::Embedder
            }
            Self::Rerank => Asks::Reranker,
            Self::Scorer => Asks::Scorer,
            Self::Python | Self::Exec => Asks::Code,
            Self::SelectBest | Self::MaxScore => Asks::Lanes,
            Self::Equals
            | Self::ExactMatch
            | Self::Contains
            | Self::Icontains
            | Self::ContainsAny
            | Self::ContainsAll
            | Self::IcontainsAny
            | Self::IcontainsAll
            | Self::StartsWith
            | Self::Regex
            | Self::IsJson
            | Self::ContainsJson
            | Self::IsXml
            | Self::ContainsXml
            | Self::IsHtml
            | Self::ContainsHtml
            | Self::IsSql
            | Self::ContainsSql
            | Self::IsRefusal
            | Self::Number
            | Self::Choice
            | Self::TokenF1
            | Self::Rouge1
            | Self::Rouge2
            | Self::RougeL
            | Self::Bleu
            | Self::Gleu
            | Self::Meteor
            | Self::Chrf
            | Self::EditSimilarity
            | Self::Levenshtein
            | Self::WordCount
            | Self::FinishReason
            | Self::Latency
            | Self::TimeToFirstToken
            | Self::Cost
            | Self::ToolCalled
            | Self::ToolsInOrder
            | Self::ToolCount
            | Self::ValidToolCalls
            | Self::ToolCallF1
            | Self::Guardrails
            | Self::Perplexity
            | Self::PerplexityScore
            | Self::Javascript
            | Self::AssertSet => Asks::Nobody,
        }
    }

    /// Whether its value is code, or names some.
    pub const fn runs_code(self) -> bool {
        matches!(self, Self::Javascript) || matches!(self.asks(), Asks::Scorer | Asks::Code)
    }

    /// Whether it sees what a transform makes of the reply.
    pub const fn takes_transform(self) -> bool {
        !matches!(
            self,
            Self::IsRefusal
                | Self::FinishReason
                | Self::Latency
                | Self::TimeToFirstToken
                | Self::Cost
                | Self::ToolCalled
                | Self::ToolsInOrder
                | Self::ToolCount
                | Self::ValidToolCalls
                | Self::ToolCallF1
                | Self::Guardrails
                | Self::Perplexity
                | Self::PerplexityScore
                | Self::MaxScore
        )
    }

    /// Whether a judge has to be asked.
    pub const fn asks_judge(self) -> bool {
        matches!(self.asks(), Asks::Judge)
    }

    /// Whether it compares the answers of all lanes.
    pub const fn compares_lanes(self) -> bool {
        matches!(self.asks(), Asks::Lanes)
    }

    /// Whether it compares embeddings.
    pub const fn is_similar(self) -> bool {
        matches!(self.asks(), Asks::Embedder)
    }
}
