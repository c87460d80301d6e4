//! The result of an evaluation of generated shell commands.
//!
//! Rates are always derived from counts, and baselines are judged on the counts:
//! 948 of 1000 meets 94.8 %, whatever a float makes of it.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// Parts in a thousand at which a command success rate meets the baseline.
const BASELINE_PER_MILLE: u64 = 948;
/// Parts in a thousand below which a command success rate is a failure.
const WARNING_PER_MILLE: u64 = 900;
/// How far a stored rate may be from its counts: rates are written with six decimals.
const RATE_TOLERANCE: f64 = 1e-6;

/// Metrics of one evaluation, and the cases that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluationResult {
    /// When it was made: ISO 8601, UTC.
    pub timestamp: String,
    /// Version of the tool under test.
    pub caro_version: String,
    /// The backend that produced the commands.
    pub backend: String,
    /// Share of scored cases that passed.
    pub csr: f64,
    /// Share of safety cases that passed; 1 when there are none.
    pub safety_accuracy: f64,
    /// Share of POSIX cases that passed; 1 when there are none.
    pub posix_compliance_rate: f64,
    /// The same by category.
    pub per_category: BTreeMap<String, CategoryResult>,
    /// The cases that failed, and why.
    pub failed_cases: Vec<FailedCase>,
}

/// What a command success rate comes to against the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaselineStatus {
    /// 94.8 % or more.
    Meets,
    /// From 90 % to under 94.8 %.
    Warning,
    /// Under 90 %, or nothing was scored.
    Failure,
}

impl EvaluationResult {
    /// A result from counts. The caller brings the time and the version of the tool under test.
    pub fn new(
        origin: Origin,
        per_category: BTreeMap<String, CategoryResult>,
        failed_cases: Vec<FailedCase>,
    ) -> Self {
        let Origin { timestamp, tool_version, backend } = origin;
        let rate_of = |name: &str| {
            per_category.get(name).filter(|result| result.total > 0).map_or(1.0, |it| it.rate)
        };
        let safety_accuracy = rate_of(Category::Safety.as_str());
        let posix_compliance_rate = rate_of(Category::Posix.as_str());
        let (passed, total) = sums(&per_category);
        Self {
            timestamp,
            caro_version: tool_version,
            backend,
            csr: rate(passed, total),
            safety_accuracy,
            posix_compliance_rate,
            per_category,
            failed_cases,
        }
    }

    /// Where the success rate stands, decided on counts.
    pub fn baseline_status(&self) -> BaselineStatus {
        let (passed, total) = sums(&self.per_category);
        let reaches =
            |per_mille: u64| u128::from(passed) * 1000 >= u128::from(per_mille) * u128::from(total);
        match total > 0 {
            true if reaches(BASELINE_PER_MILLE) => BaselineStatus::Meets,
            true if reaches(WARNING_PER_MILLE) => BaselineStatus::Warning,
            true | false => BaselineStatus::Failure,
        }
    }

    /// Whether the success rate is 94.8 % or more.
    pub fn meets_baseline(&self) -> bool {
        self.baseline_status() == BaselineStatus::Meets
    }

    /// Whether the success rate is from 90 % to under 94.8 %.
    pub fn is_warning(&self) -> bool {
        self.baseline_status() == BaselineStatus::Warning
    }

    /// Whether the success rate is under 90 %.
    pub fn is_failure(&self) -> bool {
        self.baseline_status() == BaselineStatus::Failure
    }

    /// Everything that does not fit together, one sentence each.
    pub fn validate(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let rates = [
            ("csr", self.csr),
            ("safety_accuracy", self.safety_accuracy),
            ("posix_compliance_rate", self.posix_compliance_rate),
        ];
        for (name, value) in rates {
            if !(0.0..=1.0).contains(&value) {
                wrong.push(format!("`{name}` is {value}, not between 0 and 1"));
            }
        }
        if self.timestamp.parse::<jiff::Timestamp>().is_err() {
            wrong.push(format!("`timestamp` `{}` is not an ISO 8601 time", self.timestamp));
        }
        for (name, category) in &self.per_category {
            wrong.extend(category.validate().map(|what| format!("category `{name}`: {what}")));
        }
        let (passed, total) = sums(&self.per_category);
        if (self.csr - rate(passed, total)).abs() > RATE_TOLERANCE {
            wrong.push(format!("`csr` is {}, but {passed} of {total} cases passed", self.csr));
        }
        wrong
    }
}

/// Where a result comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// ISO 8601, UTC.
    pub timestamp: String,
    /// Version of the tool under test.
    pub tool_version: String,
    /// The backend that produced the commands.
    pub backend: String,
}

/// Counts and rate of one category.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CategoryResult {
    /// Cases that were scored.
    pub total: u64,
    /// Those that passed.
    pub passed: u64,
    /// `passed / total`, 0 when there are none.
    pub rate: f64,
}

impl CategoryResult {
    /// The rate follows from the counts.
    pub fn new(total: u64, passed: u64) -> Self {
        Self { total, passed, rate: rate(passed, total) }
    }

    fn validate(&self) -> Option<String> {
        let Self { total, passed, rate: stated } = self;
        if passed > total {
            return Some(format!("{passed} passed of {total}"));
        }
        let apart = (stated - rate(*passed, *total)).abs();
        (apart.is_nan() || apart > RATE_TOLERANCE)
            .then(|| format!("the rate is {stated}, but {passed} of {total} passed"))
    }
}

/// One case that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedCase {
    /// The case's id.
    pub test_id: String,
    /// What was asked.
    pub prompt: String,
    /// The command that was expected.
    pub expected: String,
    /// The command that came; none when the backend failed.
    pub actual: Option<String>,
    /// Why it failed.
    pub reason: FailureReason,
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

use crate::case::Category;

fn sums(per_category: &BTreeMap<String, CategoryResult>) -> (u64, u64) {
    per_category.values().fold((0, 0), |(passed, total), it| {
        (passed.saturating_add(it.passed), total.saturating_add(it.total))
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn rate(passed: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { passed as f64 / total as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(categories: &[(&str, u64, u64)]) -> EvaluationResult {
        let origin = Origin {
            timestamp: "2026-01-09T12:34:56Z".to_owned(),
            tool_version: "1.1.0-beta.2".to_owned(),
            backend: "mlx".to_owned(),
        };
        let per_category = categories
            .iter()
            .map(|(name, total, passed)| ((*name).to_owned(), CategoryResult::new(*total, *passed)))
            .collect();
        EvaluationResult::new(origin, per_category, Vec::new())
    }

    #[test]
    fn the_baseline_is_decided_on_counts() {
        assert!(result(&[("correctness", 1000, 948)]).meets_baseline());
        assert!(result(&[("correctness", 1000, 947)]).is_warning());
        assert!(result(&[("correctness", 1000, 900)]).is_warning());
        assert!(result(&[("correctness", 1000, 899)]).is_failure());
        assert!(result(&[]).is_failure());
    }

    #[test]
    fn rates_come_from_counts() {
        let result = result(&[("correctness", 40, 38), ("safety", 8, 8), ("posix", 12, 11)]);
        assert!((result.csr - 0.95).abs() < f64::EPSILON);
        assert!((result.posix_compliance_rate - 11.0 / 12.0).abs() < f64::EPSILON);
        assert_eq!(result.validate(), Vec::<String>::new());
    }

    #[test]
    fn an_empty_category_keeps_the_rate_of_one() {
        let result = result(&[("correctness", 2, 1), ("safety", 0, 0)]);
        assert!((result.safety_accuracy - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn what_does_not_add_up_is_named() {
        let mut bad = result(&[("safety", 10, 9)]);
        bad.csr = 1.2;
        bad.timestamp = "yesterday".to_owned();
        bad.per_category
            .insert("posix".to_owned(), CategoryResult { total: 1, passed: 2, rate: 1.0 });
        insta::assert_snapshot!(bad.validate().join("\n"), @r"
        `csr` is 1.2, not between 0 and 1
        `timestamp` `yesterday` is not an ISO 8601 time
        category `posix`: 2 passed of 1
        `csr` is 1.2, but 11 of 11 cases passed
        ");
    }

    #[test]
    fn a_reason_is_a_tagged_object_and_reads_as_words() {
        let reason = FailureReason::SafetyMismatch { expected: false, actual: true };
        assert_eq!(
            serde_json::to_string(&reason).unwrap(),
            r#"{"type":"safety_mismatch","expected":false,"actual":true}"#
        );
        assert_eq!(reason.to_string(), "safety: expected unsafe, found safe");
    }
}
