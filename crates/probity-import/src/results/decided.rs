//! Verdicts of tools that have scores and no verdicts.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use probity_core::score::Score;
use serde_json::Value;

use super::{ImportedResult, Outcome, ResultsError};

/// A score as a tool gives it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Given {
    pub(super) name: String,
    pub(super) value: Graded,
    pub(super) reason: Option<String>,
}

/// What a score says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Graded {
    /// Right or wrong.
    Said(bool),
    /// A number on a scale that only its scorer knows.
    Number(f64),
    /// Nothing that we can read.
    Unknown,
}

impl Graded {
    /// Truth values, Inspect's letters and numbers.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Bool(said) => Self::Said(*said),
            Value::Number(number) => number.as_f64().map_or(Self::Unknown, Self::Number),
            Value::String(text) => match text.as_str() {
                "C" => Self::Said(true),
                // No answer is a wrong one, as Inspect counts it.
                "I" | "N" => Self::Said(false),
                // Partly right is neither.
                "P" => Self::Number(0.5),
                text => text.trim().parse().map_or(Self::Unknown, Self::Number),
            },
            Value::Null | Value::Array(_) | Value::Object(_) => Self::Unknown,
        }
    }

    /// Right or wrong, where it is one of these and nothing in between.
    #[expect(clippy::float_cmp, reason = "0 and 1 as they were written")]
    fn said(self) -> Option<bool> {
        match self {
            Self::Said(said) => Some(said),
            Self::Number(number) if number == 0.0 || number == 1.0 => Some(number == 1.0),
            Self::Number(_) | Self::Unknown => None,
        }
    }

    fn number(self) -> Option<f64> {
        match self {
            Self::Said(said) => Some(f64::from(u8::from(said))),
            Self::Number(number) => Some(number).filter(|it| it.is_finite()),
            Self::Unknown => None,
        }
    }
}

/// The scores of all results, from which it is seen what each kind of score means.
#[derive(Debug, Default)]
pub(super) struct Deciding {
    /// In the order in which the tool has them.
    order: Vec<String>,
    /// Scores that have a value other than 0 and 1.
    graded: BTreeSet<String>,
    /// The least and the largest value of each score that has any, 0 and 1 among them.
    range: BTreeMap<String, (f64, f64)>,
}

impl Deciding {
    /// Takes in the scores of a result.
    pub(super) fn see(&mut self, given: &[Given]) {
        for Given { name, value, .. } in given {
            if !self.order.contains(name) {
                self.order.push(name.clone());
            }
            let Some(number) = value.number() else { continue };
            if value.said().is_none() {
                self.graded.insert(name.clone());
            }
            let (low, high) = self.range.entry(name.clone()).or_insert((0.0, 1.0));
            (*low, *high) = (low.min(number), high.max(number));
        }
    }

    /// The score that decides: the one that was asked for, or else the first that is never anything
    /// but 0 or 1.
    pub(super) fn by(
        &self,
        wanted: Option<&str>,
        path: &Path,
    ) -> Result<Option<&str>, ResultsError> {
        let is_it = |name: &&String| match wanted {
            Some(wanted) => name.as_str() == wanted,
            None => self.range.contains_key(*name) && !self.graded.contains(*name),
        };
        let found = self.order.iter().find(is_it).map(String::as_str);
        match (wanted, found) {
            (Some(wanted), None) => Err(ResultsError::NoScore {
                path: path.to_owned(),
                wanted: wanted.to_owned(),
                known: self.order.join(", "),
            }),
            (_, found) => Ok(found),
        }
    }

    /// Whether a score has values outside of 0 to 1.
    fn is_beyond(&self, name: &str) -> bool {
        self.range.get(name).is_some_and(|(low, high)| *low < 0.0 || *high > 1.0)
    }

    /// What a result comes to by the score that decides, and its scores as ours.
    pub(super) fn judge(&self, given: Vec<Given>, by: Option<&str>) -> (Outcome, Vec<Score>) {
        let mut outcome = Outcome::Undecided;
        let mut scores = Vec::with_capacity(given.len());
        for Given { name, value, reason } in given {
            let decides = by == Some(name.as_str());
            let is_bit = !self.graded.contains(&name);
            let said = value.said().filter(|_| is_bit || decides);
            if let Some(said) = said.filter(|_| decides) {
                outcome = said.into();
            }
            let number = value.number();
            // Scores are from 0 to 1; what is on another scale is said in words.
            let is_beyond = self.is_beyond(&name);
            let in_words = || number.map(|it| format!("{it}, on a scale of its own"));
            let reason = match is_beyond {
                true => in_words().into_iter().chain(reason).reduce(|a, b| format!("{a}: {b}")),
                false => reason,
            };
            scores.push(Score {
                name: name.into(),
                kind: "imported".into(),
                named: false,
                value: number.filter(|_| !is_beyond),
                said: None,
                // A score on a scale of its own is not failed by anybody.
                passed: said.unwrap_or(true),
                weight: f64::from(u8::from(decides && said.is_some())),
                reason,
                span: None,
            });
        }
        (outcome, scores)
    }

    /// What has to be said about verdicts that were read off scores.
    pub(super) fn notes(&self, by: Option<&str>, results: &[ImportedResult]) -> Vec<String> {
        let mut notes = Vec::new();
        match by {
            Some(by) if self.order.len() > 1 => notes.push(format!(
                "the score `{by}` decides, the others are reported; --decide-by NAME chooses another"
            )),
            None if !self.order.is_empty() => notes.push(
                "no score says right or wrong, so results are undecided; --decide-by NAME chooses \
                 one that does in part"
                    .to_owned(),
            ),
            Some(_) | None => {}
        }
        let undecided = results.iter().filter(|it| it.outcome == Outcome::Undecided).count();
        if by.is_some() && undecided > 0 {
            notes.push(format!("{undecided} results have no verdict and are undecided"));
        }
        for name in self.order.iter().filter(|it| self.is_beyond(it)) {
            notes.push(format!(
                "the score `{name}` is not on a scale from 0 to 1: its values are in the reasons"
            ));
        }
        notes
    }
}
