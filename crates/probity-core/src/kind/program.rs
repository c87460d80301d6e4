//! A program that runs cases of its own.

use serde::{Deserialize, Serialize};

use super::{Judged, KindEvidence, KindFigures, KindFold, KindSpec, OwnCases, Seen};
use crate::{dollars::dollars, figures::Sheet, gate::Gate};

pub(super) const SPEC: KindSpec = KindSpec {
    keys: &["command"],
    // It passes if its own gates do.
    gates: || vec![Gate::usual(1000, None, None)],
    is_external: true,
    ..KindSpec::PLAIN
};

/// What an external runner said of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramReport {
    /// Calls that it made.
    pub calls: u64,
    /// Dollars that it spent.
    pub cost_usd: f64,
    /// Cases that it brought to an end.
    pub cases: u64,
    /// Cases that it had planned.
    pub planned: u64,
    /// Whether it gave up before its end.
    pub aborted: bool,
    /// Why it gave up early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_fast: Option<FailFast>,
    /// Where it wrote its results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_file: Option<String>,
    /// The code it ended with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Names of the contract that it did not print.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// Why a runner gave up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailFast {
    /// In one line.
    pub reason: String,
    /// Whether no retry could have mended it.
    pub permanent: bool,
}

/// The sums of what it said.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Program {
    /// Cases that it brought to an end.
    pub cases: u64,
    /// Cases that it had planned.
    pub planned: u64,
    /// Calls that it made.
    pub calls: u64,
    /// Dollars that it spent.
    pub cost_usd: f64,
    /// Whether it gave up before its end.
    pub aborted: bool,
    /// Why it gave up early.
    pub fail_fast: Option<FailFast>,
    /// Where it wrote its results.
    pub result_files: Vec<String>,
}

impl KindEvidence for ProgramReport {
    fn judged(&self) -> Judged {
        Judged::AsFound
    }
}

impl KindFigures for Program {
    fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::default();
        sheet.fact("cases of its own", format!("{} of {}", self.cases, self.planned));
        sheet.fact("calls of its own", format!("{}, {}", self.calls, dollars(self.cost_usd)));
        for file in &self.result_files {
            sheet.fact("its results", file.as_str());
        }
        sheet
    }

    fn own_cases(&self) -> Option<OwnCases> {
        Some(OwnCases { finished: self.cases, planned: self.planned })
    }
}

#[derive(Debug, Default)]
pub(super) struct Fold(Program);

impl KindFold for Fold {
    type Evidence = ProgramReport;
    type Figures = Program;

    fn add(&mut self, _seen: Seen<'_>, report: &ProgramReport) {
        let Self(sum) = self;
        sum.cases += report.cases;
        sum.planned += report.planned;
        sum.calls += report.calls;
        sum.cost_usd += report.cost_usd;
        sum.aborted |= report.aborted;
        if sum.fail_fast.is_none() {
            sum.fail_fast.clone_from(&report.fail_fast);
        }
        sum.result_files.extend(report.result_file.clone());
    }

    fn finish(self) -> Program {
        self.0
    }
}
