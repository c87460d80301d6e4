//! What all results came to: eight counters that add up, and three means that say which they are.

use std::{collections::BTreeMap, fmt::Write as _};

use probity_core::{
    classification::{Class, Classification, Counts, Verdict},
    metrics::Verdicts,
};
use serde_json::{Value, json};

/// How many results each verdict has.
fn by_verdict(verdicts: Verdicts) -> Value {
    let Verdicts { pass, fail, error, undecided } = verdicts;
    json!({ "pass": pass, "fail": fail, "error": error, "undecided": undecided })
}

/// Counts over all results, and over those of each suite.
#[derive(Debug, Default)]
pub struct Tally {
    suites: BTreeMap<String, Suite>,
    /// Results whose case has no criterion.
    pub without_criteria: u64,
    /// Lines that are no run result.
    pub broken: u64,
}

#[derive(Clone, Debug, Default)]
struct Suite {
    counts: Counts,
    verdicts: Verdicts,
    /// Results that break a policy, whatever else they are.
    policy_hits: u64,
}

impl Suite {
    fn merge(&mut self, other: &Self) {
        let Self { counts, verdicts, policy_hits } = other;
        self.counts.merge(counts);
        self.verdicts.merge(*verdicts);
        self.policy_hits += policy_hits;
    }

    /// The share of cases that passed; none where nothing was scored.
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    fn mean(&self, errors_as_failures: bool) -> Option<f64> {
        let Verdicts { pass, error, .. } = self.verdicts;
        let scored = self.verdicts.judged() + if errors_as_failures { error } else { 0 };
        (scored > 0).then(|| pass as f64 / scored as f64)
    }

    fn to_json(&self, errors_as_failures: bool) -> Value {
        json!({
            "total": self.counts.total(),
            "classes": self.counts.to_json(),
            "verdicts": by_verdict(self.verdicts),
            "policy_hits": self.policy_hits,
            "mean": self.mean(errors_as_failures).map(rounded),
        })
    }
}

impl Tally {
    /// Counts a result.
    pub fn add(&mut self, suite_id: &str, classification: &Classification, verdict: Verdict) {
        // Most results of a file are of the suite before them.
        let suite = match self.suites.get_mut(suite_id) {
            Some(suite) => suite,
            None => self.suites.entry(suite_id.to_owned()).or_default(),
        };
        suite.counts.add(classification.class());
        suite.verdicts.add(verdict);
        suite.policy_hits += u64::from(classification.breaks_policy());
    }

    /// Adds what others were counted as.
    pub fn merge(&mut self, other: &Self) {
        for (name, suite) in &other.suites {
            self.suites.entry(name.clone()).or_default().merge(suite);
        }
        self.without_criteria += other.without_criteria;
        self.broken += other.broken;
    }

    /// Whether there was nothing to count, not even a broken line.
    pub fn is_empty(&self) -> bool {
        self.suites.is_empty() && self.broken == 0
    }

    /// How many results were counted.
    pub fn total(&self) -> u64 {
        self.suites.values().map(|suite| suite.counts.total()).sum()
    }

    fn all(&self) -> Suite {
        let mut all = Suite::default();
        self.suites.values().for_each(|suite| all.merge(suite));
        all
    }

    /// The mean of the suites' means: every suite counts the same.
    #[expect(clippy::cast_precision_loss, reason = "there are not that many suites")]
    fn macro_mean(&self, errors_as_failures: bool) -> Option<f64> {
        let means: Vec<f64> =
            self.suites.values().filter_map(|suite| suite.mean(errors_as_failures)).collect();
        (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
    }

    /// The share of results that could not be judged.
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    fn error_rate(all: &Suite) -> Option<f64> {
        let total = all.counts.total();
        (total > 0).then(|| all.verdicts.error as f64 / total as f64)
    }

    /// The summary for programs.
    pub fn to_json(&self, errors_as_failures: bool) -> Value {
        let all = self.all();
        let suites: serde_json::Map<String, Value> = self
            .suites
            .iter()
            .map(|(name, suite)| (name.clone(), suite.to_json(errors_as_failures)))
            .collect();
        json!({
            "total": all.counts.total(),
            "broken_lines": self.broken,
            "classes": all.counts.to_json(),
            "verdicts": by_verdict(all.verdicts),
            "policy_hits": all.policy_hits,
            "micro_mean": all.mean(errors_as_failures).map(rounded),
            "macro_mean": self.macro_mean(errors_as_failures).map(rounded),
            "error_rate": Self::error_rate(&all).map(rounded),
            "errors_as_failures": errors_as_failures,
            "without_criteria": self.without_criteria,
            "suites": suites,
        })
    }

    /// The summary for people.
    pub fn to_text(&self, errors_as_failures: bool) -> String {
        let all = self.all();
        let total = all.counts.total();
        let mut text = format!("{total} results\n");
        for class in Class::ALL {
            let count = all.counts.get(class);
            let _ = writeln!(text, "  {class:<17}{count:>10}{:>9}", percent_of(count, total));
        }
        let Verdicts { pass, fail, error: errors, undecided } = all.verdicts;
        let _ = write!(text, "verdicts: {pass} pass, {fail} fail, {errors} error");
        if undecided > 0 {
            let _ = write!(text, ", {undecided} undecided");
        }
        text.push('\n');
        if all.policy_hits > 0 {
            let _ = writeln!(text, "replies that break a policy: {}", all.policy_hits);
        }
        if self.suites.len() > 1 {
            let _ = writeln!(text, "suite means");
            for (name, suite) in &self.suites {
                let name = if name.is_empty() { "(no suite)" } else { name };
                let mean = shown(suite.mean(errors_as_failures));
                let _ = writeln!(text, "  {name:<17} {mean:>8} of {}", suite.counts.total());
            }
        }
        let (micro, macro_) = (all.mean(errors_as_failures), self.macro_mean(errors_as_failures));
        let _ = writeln!(text, "micro mean {} (over cases)", shown(micro));
        let _ = writeln!(text, "macro mean {} (over suites)", shown(macro_));
        if errors > 0 && !errors_as_failures {
            let rate = shown(Self::error_rate(&all));
            let _ = writeln!(text, "error rate {rate}; errors are left out of the means");
        }
        if self.without_criteria > 0 {
            let _ = writeln!(text, "without a criterion: {}", self.without_criteria);
        }
        if self.broken > 0 {
            let lines = if self.broken == 1 { "line was" } else { "lines were" };
            let _ = writeln!(text, "{} {lines} left out: see the errors above", self.broken);
        }
        text
    }
}

/// Six decimals, as in all JSON output.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn shown(mean: Option<f64>) -> String {
    mean.map_or_else(|| "n/a".to_owned(), |mean| format!("{mean:.3}"))
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn percent_of(count: u64, total: u64) -> String {
    if total == 0 {
        "n/a".to_owned()
    } else {
        format!("{:.1} %", count as f64 * 100.0 / total as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probity_core::{classification::Rule, details::Details};

    fn tally(suites: &[(&str, u64, u64, u64)]) -> Tally {
        let mut tally = Tally::default();
        for (name, passed, failed, errors) in suites {
            for (count, rule, verdict) in [
                (passed, Rule::Pass, Verdict::Pass),
                (failed, Rule::Mismatch, Verdict::Fail),
                (errors, Rule::Timeout, Verdict::Error),
            ] {
                let classification = Classification::new(rule, Details::default());
                (0..*count).for_each(|_| tally.add(name, &classification, verdict));
            }
        }
        tally
    }

    #[test]
    fn the_two_means_differ_when_suites_differ_in_size() {
        let json = tally(&[("a", 18, 2, 0), ("b", 8, 2, 0)]).to_json(false);
        assert_eq!(json["macro_mean"], json!(0.85));
        assert_eq!(json["micro_mean"], json!(0.866_667));
    }

    #[test]
    fn errors_leave_both_sides_of_the_fraction_unless_asked() {
        let tally = tally(&[("a", 6, 2, 2)]);
        assert_eq!(tally.to_json(false)["micro_mean"], json!(0.75));
        assert_eq!(tally.to_json(false)["error_rate"], json!(0.2));
        assert_eq!(tally.to_json(true)["micro_mean"], json!(0.6));
    }

    #[test]
    fn nothing_scored_has_no_mean() {
        assert_eq!(tally(&[("a", 0, 0, 3)]).to_json(false)["macro_mean"], Value::Null);
    }

    #[test]
    fn parts_merge_into_the_whole() {
        let mut whole = tally(&[("a", 1, 2, 3)]);
        whole.merge(&tally(&[("a", 3, 2, 1), ("b", 1, 0, 0)]));
        assert_eq!(whole.to_json(false), tally(&[("a", 4, 4, 4), ("b", 1, 0, 0)]).to_json(false));
    }
}
