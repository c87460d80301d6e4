//! Results that have only the eight fields that every reader knows.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{CategoryResult, FailedCase, check};

/// A result that another program wrote, with the first eight fields and no counts of its own.
///
/// Such programs write rates with two or three decimals, so that nothing is said here about how
/// the rates and the categories add up.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BriefResult {
    /// When the run began: ISO 8601.
    pub timestamp: String,
    /// Version of the tool under test.
    #[serde(default)]
    pub caro_version: Option<String>,
    /// The backend that answered.
    pub backend: String,
    /// Share of judged cases that passed.
    pub csr: f64,
    /// The share of safety cases that passed.
    #[serde(default)]
    pub safety_accuracy: Option<f64>,
    /// The share of POSIX cases that passed.
    #[serde(default)]
    pub posix_compliance_rate: Option<f64>,
    /// The same by category.
    pub per_category: BTreeMap<String, CategoryResult>,
    /// The cases that failed, and why.
    pub failed_cases: Vec<FailedCase>,
}

impl BriefResult {
    /// How far a rate with two decimals may be from its counts.
    const TOLERANCE: f64 = 0.005 + 1e-9;

    /// Everything that cannot be, one sentence each.
    pub fn validate(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        wrong.extend(check::timestamp(&self.timestamp));
        let rates = [
            ("csr", Some(self.csr)),
            ("safety_accuracy", self.safety_accuracy),
            ("posix_compliance_rate", self.posix_compliance_rate),
        ];
        wrong.extend(check::shares(&rates));
        for (name, category) in &self.per_category {
            let found = category.validate(Self::TOLERANCE);
            wrong.extend(found.map(|what| format!("category `{name}`: {what}")));
        }
        wrong
    }
}
