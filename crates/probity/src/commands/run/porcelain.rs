//! `KEY=VALUE` lines for scripts, on every path that a run can end on.

use probity_core::{dollars, record::LaneStatus, visible::safe};
use std::{fmt::Write as _, io::Write as _};

use crate::{failure::Failure, printer::Printer};

/// What scripts are told. It begins as what is true before anything was done.
#[derive(Debug, Default)]
pub(crate) struct Porcelain {
    pub(crate) total_calls: u64,
    pub(crate) cost_usd: f64,
    pub(crate) aborted: bool,
    /// Cases that came to an end.
    pub(crate) cases: u64,
    pub(crate) planned: u64,
    /// The first lane that was given up.
    pub(crate) fail_fast: Option<(String, bool)>,
    pub(crate) result_file: String,
    /// Whether the summary of the runners has been written.
    pub(crate) summarised: bool,
}

impl Porcelain {
    /// Takes in how lanes ended.
    pub(crate) fn lanes<'a>(&mut self, statuses: impl IntoIterator<Item = &'a LaneStatus>) {
        for status in statuses {
            self.aborted |= !status.is_sound();
            // A permanent reason says more than a passing one.
            if let LaneStatus::FailFast { reason, permanent } = status
                && self.fail_fast.as_ref().is_none_or(|(_, known)| !known && *permanent)
            {
                self.fail_fast = Some((reason.clone(), *permanent));
            }
        }
    }

    /// The lines.
    pub(crate) fn render(&self) -> String {
        let flag = |yes: bool| u8::from(yes);
        let (reason, permanent) =
            self.fail_fast.as_ref().map_or(("", false), |(reason, permanent)| (reason, *permanent));
        let fail_fast = self.fail_fast.is_some();
        let lines = [
            ("TOTAL_CALLS", self.total_calls.to_string()),
            ("COST_USD", dollars::plain(self.cost_usd)),
            ("ABORTED", flag(self.aborted || fail_fast).to_string()),
            ("N_CASES", self.cases.to_string()),
            ("N_PLANNED", self.planned.to_string()),
            ("FAIL_FAST", flag(fail_fast).to_string()),
            ("FAIL_FAST_REASON", one_line(reason)),
            ("FAIL_FAST_PERMANENT", flag(permanent).to_string()),
            ("RESULT_FILE", one_line(&self.result_file)),
        ];
        let mut text = String::new();
        for (key, value) in lines {
            let _ = writeln!(text, "{key}={value}");
        }
        text
    }

    /// Prints the lines.
    pub(crate) fn print(&self) -> Result<(), Failure> {
        let mut out = Printer::data();
        out.write_all(self.render().as_bytes()).and_then(|()| out.flush()).map_err(Failure::output)
    }
}

/// A value must not bring lines of its own.
fn one_line(text: &str) -> String {
    let flat: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    safe(&flat).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_there_whatever_happened() {
        insta::assert_snapshot!(Porcelain::default().render(), @r"
        TOTAL_CALLS=0
        COST_USD=0.0000
        ABORTED=0
        N_CASES=0
        N_PLANNED=0
        FAIL_FAST=0
        FAIL_FAST_REASON=
        FAIL_FAST_PERMANENT=0
        RESULT_FILE=
        ");
    }

    #[test]
    fn small_costs_are_not_nothing() {
        let porcelain = Porcelain { cost_usd: 0.000_03, ..Porcelain::default() };
        assert!(porcelain.render().contains("\nCOST_USD=0.00003\n"), "{}", porcelain.render());
    }

    #[test]
    fn fail_fast_implies_aborted() {
        let mut porcelain = Porcelain::default();
        let transient = LaneStatus::FailFast { reason: "a\nb".to_owned(), permanent: false };
        let permanent = LaneStatus::FailFast { reason: "c".to_owned(), permanent: true };
        porcelain.lanes([&LaneStatus::Complete, &transient, &permanent]);
        let text = porcelain.render();
        for line in
            ["ABORTED=1\n", "FAIL_FAST=1\n", "FAIL_FAST_REASON=c\n", "FAIL_FAST_PERMANENT=1\n"]
        {
            assert!(text.contains(line), "{text}");
        }
    }
}
