//! The best of the answers that several lanes gave to one case.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What a comparison of answers came to, as one of the lanes sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// The name of the score.
    pub check: Cow<'static, str>,
    /// What the answers were compared by: the criteria of a judge, or how scores are added up.
    pub by: String,
    /// The answers. A judge was shown them in this order.
    pub answers: Vec<Candidate>,
    /// The place of the lane's own answer among them.
    pub own: usize,
    /// The places of the best ones. Two if a judge preferred another one in the reversed order; none
    /// if no score is high enough.
    pub best: Vec<usize>,
    /// The backend that judged, if one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
    /// Why, in its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An answer that is compared with others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The lanes that gave it, as `BACKEND` or `VARIANT@BACKEND`.
    pub lanes: Vec<String>,
    /// What its other checks came to, where that is what is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

impl Candidate {
    /// The lanes in one text.
    pub fn named(&self) -> String {
        self.lanes.join(", ")
    }
}

impl Selection {
    /// The same, as another lane sees it; none if that has no part in it.
    pub fn seen_by(&self, lane: &str) -> Option<Self> {
        let own = self.answers.iter().position(|it| it.lanes.iter().any(|it| it == lane))?;
        Some(Self { own, ..self.clone() })
    }

    /// Whether the lane's own answer is one of the best.
    pub fn is_best(&self) -> bool {
        self.best.contains(&self.own)
    }

    /// What the own answer counts: the best ones share 1.
    pub fn value(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "one or two")]
        let share = 1.0 / self.best.len().max(1) as f64;
        if self.is_best() { share } else { 0.0 }
    }
}
