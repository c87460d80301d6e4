//! Cases that did not pass, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    classification::{Primary, Verdict},
    record::StoredCase,
};

/// One case that did not pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedCase {
    /// The case's id.
    pub test_id: String,
    /// Which of the repeats, from 0.
    #[serde(default)]
    pub repeat: u32,
    /// What was asked.
    pub prompt: String,
    /// What was expected, as far as a text can say it.
    pub expected: String,
    /// What came; none when the backend failed.
    pub actual: Option<String>,
    /// Why it failed.
    pub reason: FailureReason,
}

impl FailedCase {
    /// The entry of a result; none if it passed.
    pub fn of(case: &StoredCase) -> Option<Self> {
        let reason = match (case.verdict, &case.error) {
            (Verdict::Pass, _) => return None,
            (Verdict::Error, Some(error)) => {
                FailureReason::BackendError { message: error.to_string() }
            }
            (Verdict::Fail | Verdict::Error, _) => {
                let stated = case.classification()["details"]["diff"].clone();
                serde_json::from_value(stated).unwrap_or_else(|_| FailureReason::WrongAnswer {
                    class: case.primary,
                    message: case.reason(),
                })
            }
        };
        Some(Self {
            test_id: case.case_id.clone(),
            repeat: case.repeat,
            prompt: case.prompt.clone(),
            expected: case.expected().unwrap_or_default(),
            actual: case.actual(),
            reason,
        })
    }
}

/// Why a case failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FailureReason {
    /// The command does something else than the expected one.
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
    /// The backend gave no command.
    BackendError {
        /// What it said instead.
        message: String,
    },
    /// The reply is not what the case asks for.
    WrongAnswer {
        /// What it is.
        class: Primary,
        /// What speaks for that.
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
            Self::WrongAnswer { class, message } => write!(f, "{class}: {message}"),
        }
    }
}
