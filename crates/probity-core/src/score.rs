//! What one check of a case came to: a matcher, an assertion, a judgement.

use std::{borrow::Cow, ops::Range};

use serde::{Deserialize, Serialize};

use crate::serial;

/// The score of a choice of skills.
pub const ROUTING: &str = "routing";
/// The score of a comparison of answers.
pub const JUDGE: &str = "judge";

/// The result of one check, from 0 to 1, with its reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// What it is reported under: the metric that the case names, else the kind of check.
    pub name: Cow<'static, str>,
    /// The kind of check, such as `contains`, `schema` or `not-regex`.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// Whether a scorer named it, beside the score of its check. What counts checks does not count it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
    /// From 0 to 1; none where nobody could say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// What a scorer said that has a scale of its own, where that is not from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<f64>,
    /// Whether it is enough.
    pub passed: bool,
    /// How much it counts; 0 for one that is only reported.
    #[serde(default = "one")]
    pub weight: f64,
    /// Why it did not pass, or what a judge said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The bytes of the reply that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "serial::optional_span")]
    pub span: Option<Range<usize>>,
}

impl Score {
    /// A check that passed or failed, with nothing in between.
    pub fn new(kind: impl Into<Cow<'static, str>>, failed: Option<String>) -> Self {
        let kind = kind.into();
        let passed = failed.is_none();
        Self {
            name: kind.clone(),
            kind,
            named: false,
            value: Some(f64::from(u8::from(passed))),
            said: None,
            passed,
            weight: 1.0,
            reason: failed,
            span: None,
        }
    }

    /// The same, only reported: it decides nothing.
    #[must_use]
    pub fn reported(self) -> Self {
        Self { weight: 0.0, ..self }
    }

    /// With what a scorer said, which may lie beyond 0 and 1.
    #[must_use]
    pub fn saying(self, said: f64) -> Self {
        let value = said.clamp(0.0, 1.0);
        let is_beyond = !(0.0..=1.0).contains(&said);
        Self { value: Some(value), said: is_beyond.then_some(said), ..self }
    }

    /// What it adds to a sum of scores; none where nobody could say.
    pub fn amount(&self) -> Option<f64> {
        self.said.or(self.value)
    }

    /// Whether the case needs it to pass.
    pub fn is_required(&self) -> bool {
        self.weight > 0.0
    }
}

fn one() -> f64 {
    1.0
}
