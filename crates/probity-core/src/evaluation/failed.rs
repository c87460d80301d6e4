//! Cases that did not pass, in the words of older readers.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    classification::{Class, Verdict},
    difference::Difference,
    record::CaseRecord,
};

/// One case that did not pass.
///
/// The fields that readers of older results know come first and keep their types: a reader that
/// knows only those can read every entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedCase {
    /// The case's id.
    pub test_id: String,
    /// What was asked.
    pub prompt: String,
    /// What was expected, as far as a text can say it.
    pub expected: String,
    /// What came; empty when the backend failed.
    #[serde(default, deserialize_with = "or_empty")]
    pub actual: String,
    /// Why it failed, as one of four kinds.
    pub reason: FailureReason,
    /// Which of the repeats, from 0.
    #[serde(default)]
    pub repeat: u32,
    /// The class of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// Why it failed, in one sentence.
    #[serde(default)]
    pub message: String,
}

/// Version 0.1 wrote null where there was no reply.
fn or_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl FailedCase {
    /// The entry of a result; none if it passed, or if nothing decides it.
    pub fn of(record: &CaseRecord) -> Option<Self> {
        let message = record.why();
        let reason = match (record.verdict, &record.classification.details.diff) {
            (Verdict::Pass | Verdict::Undecided, _) => return None,
            (Verdict::Error, _) => FailureReason::BackendError { message: message.clone() },
            (Verdict::Fail, Some(Difference::Command(reason))) => reason.clone(),
            (Verdict::Fail, _) => FailureReason::IncorrectCommand,
        };
        Some(Self {
            test_id: record.case_id.clone(),
            prompt: record.request.prompt().to_owned(),
            expected: record.expected().unwrap_or_default(),
            actual: record.actual().unwrap_or_default().to_owned(),
            reason,
            repeat: record.repeat,
            class: Some(record.class),
            message,
        })
    }
}

/// Why a case failed, as one of four kinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FailureReason {
    /// The command, or whatever was asked for, is not the expected one.
    #[serde(alias = "wrong_answer")]
    IncorrectCommand,
    /// The command's safety is not what the case says.
    SafetyMismatch {
        /// Safe according to the case.
        expected: bool,
        /// Safe according to the validator.
        actual: bool,
    },
    /// The command's POSIX compliance is not what the case says.
    PosixMismatch {
        /// Compliant according to the case.
        expected: bool,
        /// Compliant according to the checker.
        actual: bool,
    },
    /// The backend gave no answer, or nobody could judge it.
    BackendError {
        /// What it said instead.
        message: String,
    },
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let safety = |safe: bool| if safe { "safe" } else { "unsafe" };
        let posix = |compliant: bool| if compliant { "compliant" } else { "not compliant" };
        match self {
            Self::IncorrectCommand => write!(f, "incorrect command"),
            Self::SafetyMismatch { expected, actual } => {
                write!(f, "safety: expected {}, found {}", safety(*expected), safety(*actual))
            }
            Self::PosixMismatch { expected, actual } => {
                write!(f, "POSIX: expected {}, found {}", posix(*expected), posix(*actual))
            }
            Self::BackendError { message } => write!(f, "backend error: {message}"),
        }
    }
}
