//! What tells whether a result is as it was written.
//!
//! A sum is over values as SQLite gives them back, so that a column that is added later has no
//! place here to be forgotten in.

use probity_core::{record::InputDigest, score::Score};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};

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

/// Values, one after the other, on their way to a sum.
#[derive(Debug, Default)]
pub(crate) struct Summed(Vec<u8>);

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

    /// Adds a value.
    pub(crate) fn push(&mut self, value: ValueRef<'_>) {
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
    pub(crate) fn push_new(&mut self, value: &ToSqlOutput<'_>) {
        match value {
            ToSqlOutput::Borrowed(value) => self.push(*value),
            ToSqlOutput::Owned(value) => self.push(ValueRef::from(value)),
            // Nothing else is bound to a result.
            _ => self.push(ValueRef::from(&Value::Null)),
        }
    }

    /// Adds a text that stands in another table.
    pub(crate) fn push_text(&mut self, text: Option<&str>) {
        self.push(text.map_or(ValueRef::Null, |it| ValueRef::Text(it.as_bytes())));
    }

    /// Adds a score with all that is stored of it.
    pub(crate) fn push_score(&mut self, score: &Score) -> rusqlite::Result<()> {
        for column in parts::ScoreColumn::ALL {
            self.push_new(&parts::score_value(score, column)?);
        }
        Ok(())
    }

    fn bytes(&mut self, kind: u8, bytes: &[u8]) {
        let mut head = [kind; 1 + size_of::<u64>()];
        head[1..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.0.extend_from_slice(&head);
        self.0.extend_from_slice(bytes);
    }

    /// The sum of all values.
    pub(crate) fn sum(&self) -> i64 {
        let InputDigest(bytes) = InputDigest::of([self.0.as_slice()]);
        i64::from_le_bytes(bytes[..8].try_into().expect("a digest has 16 bytes"))
    }

    /// Says so if this is not what was written. Results of older stores have no sums.
    pub(crate) fn check(
        &self,
        stored: Option<i64>,
        case_id: &str,
        things: &str,
    ) -> rusqlite::Result<()> {
        match stored {
            Some(stored) if stored != self.sum() => {
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
