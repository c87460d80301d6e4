//! What tells whether a result is as it was written.
//!
//! A sum is over values as SQLite gives them back, so that a column that is added later has no
//! place here to be forgotten in.

use std::hash::Hasher as _;

use probity_core::{record::InputDigest, score::Score};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use twox_hash::XxHash3_64;

use super::{Column, damaged, parts};

/// Which sum a column belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// What figures and gates are made of, with the scores.
    Facts,
    /// Everything else of the row.
    Texts,
    /// The sums themselves.
    Sum,
}

/// Takes values one after the other, on their way to a sum.
pub(crate) trait Values {
    /// Adds the bytes of a value of some kind.
    fn bytes(&mut self, kind: u8, bytes: &[u8]);

    /// Adds a value.
    fn push(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => self.bytes(0, &[]),
            ValueRef::Integer(number) => self.bytes(1, &number.to_le_bytes()),
            // SQLite keeps no negative zero.
            ValueRef::Real(number) => self.bytes(2, &(number + 0.0).to_le_bytes()),
            ValueRef::Text(text) => self.bytes(3, text),
            ValueRef::Blob(bytes) => self.bytes(4, bytes),
        }
    }

    /// Adds a value that is about to be written.
    fn push_new(&mut self, value: &ToSqlOutput<'_>) {
        match value {
            ToSqlOutput::Borrowed(value) => self.push(*value),
            ToSqlOutput::Owned(value) => self.push(ValueRef::from(value)),
            // Nothing else is bound to a result.
            _ => self.push(ValueRef::from(&Value::Null)),
        }
    }

    /// Adds a text that stands in another table.
    fn push_text(&mut self, text: Option<&str>) {
        self.push(text.map_or(ValueRef::Null, |it| ValueRef::Text(it.as_bytes())));
    }
}

/// What stands before the bytes of a value: their kind and their number.
fn head(kind: u8, bytes: &[u8]) -> [u8; 1 + size_of::<u64>()] {
    let mut head = [kind; 1 + size_of::<u64>()];
    head[1..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    head
}

/// Values that may be long: only their sum is kept.
pub(crate) struct Passing(XxHash3_64);

impl Values for Passing {
    fn bytes(&mut self, kind: u8, bytes: &[u8]) {
        self.0.write(&head(kind, bytes));
        self.0.write(bytes);
    }
}

impl Passing {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self(XxHash3_64::new())
    }

    /// The same as that of [`Summed`].
    pub(crate) fn sum(&self) -> i64 {
        self.0.finish().cast_signed()
    }
}

/// Short values, which are kept.
#[derive(Debug, Default)]
pub(crate) struct Summed(Vec<u8>);

impl Values for Summed {
    fn bytes(&mut self, kind: u8, bytes: &[u8]) {
        self.0.extend_from_slice(&head(kind, bytes));
        self.0.extend_from_slice(bytes);
    }
}

/// Bytes of what is summed of an ordinary result.
const USUAL: usize = 1024;

impl Summed {
    /// Nothing yet, with room for what is usual.
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(USUAL))
    }

    /// Nothing again, with the same room.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a score with all that is stored of it.
    pub(crate) fn push_score(&mut self, score: &Score) -> rusqlite::Result<()> {
        for column in parts::ScoreColumn::ALL {
            self.push_new(&parts::score_value(score, column)?);
        }
        Ok(())
    }

    /// The sum of all values. It is to find what a disk has changed, so any good hash will do.
    pub(crate) fn sum(&self) -> i64 {
        XxHash3_64::oneshot(&self.0).cast_signed()
    }

    /// The same before format 15.
    fn older_sum(&self) -> i64 {
        let InputDigest(bytes) = InputDigest::of([self.0.as_slice()]);
        i64::from_le_bytes(bytes[..8].try_into().expect("a digest has 16 bytes"))
    }

    /// Whether it is what a sum was made of.
    pub(crate) fn is(&self, stored: i64) -> bool {
        stored == self.sum() || stored == self.older_sum()
    }

    /// Says so if this is not what was written. Results of older stores have no sums.
    pub(crate) fn check(
        &self,
        stored: Option<i64>,
        case_id: &str,
        things: &str,
    ) -> rusqlite::Result<()> {
        match stored {
            Some(stored) if !self.is(stored) => {
                Err(damaged(case_id, &format!("its {things} are not what was written")))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Column {
    /// The sum that it belongs to.
    pub(crate) const fn part(self) -> Part {
        match self {
            Self::CaseId
            | Self::Repeat
            | Self::Category
            | Self::Tags
            | Self::CaseGroup
            | Self::Class
            | Self::Verdict
            | Self::PolicyHits
            | Self::ErrorKind
            | Self::Source
            | Self::LatencyMs
            | Self::TtftMs
            | Self::TokensPerSecond
            | Self::InputTokens
            | Self::OutputTokens
            | Self::CachedTokens
            | Self::UsageEstimated
            | Self::CostUsd
            | Self::Calls
            | Self::Worker
            | Self::StartedMs
            | Self::ElapsedMs
            | Self::Evidence => Part::Facts,
            Self::Input
            | Self::Definition
            | Self::System
            | Self::Prompt
            | Self::OwnPrompt
            | Self::Request
            | Self::Reply
            | Self::Reasoning
            | Self::Error
            | Self::StopReason
            | Self::Model
            | Self::Failures
            | Self::Classification => Part::Texts,
            Self::FactsSum | Self::TextsSum | Self::AskedSum => Part::Sum,
        }
    }

    /// Whether its value is the default of a column that was added later. That is left out of the sum, so that sums from before
    /// the column still match.
    pub(crate) fn is_implied(
        self,
        is_set: impl FnOnce() -> rusqlite::Result<bool>,
    ) -> rusqlite::Result<bool> {
        if self == Self::OwnPrompt { is_set() } else { Ok(false) }
    }

    /// All columns of a sum, in their order.
    pub(crate) fn of(part: Part) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |it| it.part() == part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds values of every kind, and texts around sizes at which the hash goes another way.
    fn add(values: &mut impl Values) {
        values.push(ValueRef::Null);
        values.push(ValueRef::Integer(-3));
        values.push(ValueRef::Real(-0.0));
        values.push(ValueRef::Blob(&[1, 2]));
        for length in [0, 1, 15, 16, 17, 127, 128, 129, 239, 240, 241, 255, 256, 257, 1024, 4099] {
            values.push_text(Some(&"zebra ".repeat(length)[..length]));
        }
        values.push_text(None);
    }

    #[test]
    fn it_does_not_matter_whether_values_are_kept() {
        let (mut kept, mut passing) = (Summed::new(), Passing::new());
        assert_eq!(kept.sum(), passing.sum());
        add(&mut kept);
        add(&mut passing);
        assert_eq!(kept.sum(), passing.sum());
        assert!(kept.is(passing.sum()) && kept.is(kept.older_sum()));
        passing.push(ValueRef::Null);
        assert!(!kept.is(passing.sum()));
    }

    #[test]
    fn where_a_value_ends_counts() {
        let sum = |texts: [&str; 2]| {
            let mut passing = Passing::new();
            texts.into_iter().for_each(|it| passing.push_text(Some(it)));
            passing.sum()
        };
        assert_ne!(sum(["ab", "c"]), sum(["a", "bc"]));
        // The same on every machine.
        assert_eq!(sum(["ab", "c"]), 2_565_614_218_410_919_194);
    }
}
