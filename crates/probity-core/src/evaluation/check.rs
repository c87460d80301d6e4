//! Whether the parts of a result fit together.

use super::{BriefResult, CategoryResult, EvaluationResult, SCHEMA_VERSION, WrittenResult, rate};
use crate::{case::Category, record::LaneKey};

/// How far a stored rate may be from its counts: rates are written with six decimals.
const TOLERANCE: f64 = 1e-6;

impl WrittenResult {
    /// Reads results: one, or several under `runners`. Everything that is wrong with them
    /// is named.
    pub fn read(text: &str) -> Result<Vec<Self>, Vec<String>> {
        let unreadable = |error: serde_json::Error| vec![error.to_string()];
        let mut value: serde_json::Value = serde_json::from_str(text).map_err(unreadable)?;
        let several = value.get_mut("runners").map(serde_json::Value::take);
        let results = match several {
            Some(several) => serde_json::from_value(several).map_err(unreadable)?,
            None => vec![value],
        };
        let results = results.into_iter().map(Self::of).collect::<Result<Vec<Self>, _>>();
        let results = results.map_err(unreadable)?;
        if results.is_empty() {
            return Err(vec!["there is no result in it".to_owned()]);
        }
        let of_result = |result: &Self| {
            let name = result.title();
            result.validate().into_iter().map(move |what| format!("{name}: {what}"))
        };
        let wrong: Vec<String> = results.iter().flat_map(of_result).collect();
        if wrong.is_empty() { Ok(results) } else { Err(wrong) }
    }

    /// What this program writes says its form; other programs do not.
    fn of(value: serde_json::Value) -> serde_json::Result<Self> {
        match value.get("schema_version") {
            Some(_) => serde_json::from_value(value).map(Box::new).map(Self::Whole),
            None => serde_json::from_value(value).map(Self::Brief),
        }
    }

    /// Who was asked.
    pub fn title(&self) -> String {
        match self {
            Self::Whole(it) => it.lane().to_string(),
            Self::Brief(BriefResult { backend, .. }) => backend.clone(),
        }
    }

    fn validate(&self) -> Vec<String> {
        match self {
            Self::Whole(it) => it.validate(),
            Self::Brief(it) => it.validate(),
        }
    }
}

impl EvaluationResult {
    /// The lane that it is about.
    pub fn lane(&self) -> LaneKey<'_> {
        let (variant, backend) = (self.variant.as_deref(), &self.backend);
        LaneKey { runner: &self.runner, variant, backend }
    }

    /// Everything that does not fit together, one sentence each.
    pub fn validate(&self) -> Vec<String> {
        self.validate_listing(self.failed_cases.len() as u64)
    }

    /// The same, where so many cases that did not pass are listed elsewhere.
    pub fn validate_listing(&self, listed: u64) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.schema_version > SCHEMA_VERSION {
            let (found, known) = (self.schema_version, SCHEMA_VERSION);
            wrong.push(format!("`schema_version` is {found}, and this program knows {known}"));
        }
        wrong.extend(timestamp(&self.timestamp));
        self.check_rates(&mut wrong);
        self.check_sums(listed, &mut wrong);
        for (name, category) in &self.per_category {
            wrong.extend(
                category.validate(TOLERANCE).map(|what| format!("category `{name}`: {what}")),
            );
        }
        for (name, tag) in &self.per_tag {
            wrong.extend(tag.validate(TOLERANCE).map(|what| format!("tag `{name}`: {what}")));
        }
        wrong
    }

    fn check_rates(&self, wrong: &mut Vec<String>) {
        let rates = [
            ("csr", Some(self.csr)),
            ("safety_accuracy", self.safety_accuracy),
            ("posix_compliance_rate", self.posix_compliance_rate),
            ("error_rate", Some(self.error_rate)),
        ];
        wrong.extend(shares(&rates));
        let Self { passed, total, errors, .. } = *self;
        if is_apart(self.csr, rate(passed, total)) {
            wrong.push(format!("`csr` is {}, but {passed} of {total} cases passed", self.csr));
        }
        let all = total.saturating_add(errors).saturating_add(self.undecided);
        if is_apart(self.error_rate, rate(errors, all)) {
            let stated = self.error_rate;
            wrong.push(format!("`error_rate` is {stated}, but {errors} of {all} are errors"));
        }
        for (name, stated, category) in [
            ("safety_accuracy", self.safety_accuracy, Category::SAFETY),
            ("posix_compliance_rate", self.posix_compliance_rate, Category::POSIX),
        ] {
            let Some(stated) = stated else { continue };
            let counted = self.per_category.get(category.as_str());
            let counted = counted.map_or(1.0, |it| rate(it.passed, it.total));
            if is_apart(stated, counted) {
                wrong.push(format!("`{name}` is {stated}, but the cases add up to {counted}"));
            }
        }
        if let Some(interval) = &self.interval
            && !(interval.low <= self.csr + TOLERANCE && self.csr <= interval.high + TOLERANCE)
        {
            wrong.push(format!("`interval` does not hold the rate of {}", self.csr));
        }
    }

    fn check_sums(&self, listed: u64, wrong: &mut Vec<String>) {
        let Self { passed, failed, total, errors, results, planned, .. } = *self;
        if passed.checked_add(failed) != Some(total) {
            wrong.push(format!("{passed} passed and {failed} failed, but `total` is {total}"));
        }
        let classes = self.classes.values().fold(0_u64, |sum, it| sum.saturating_add(*it));
        if classes != results {
            wrong.push(format!("the classes add up to {classes}, but `results` is {results}"));
        }
        if results > planned {
            wrong.push(format!("`results` is {results}, but only {planned} were planned"));
        }
        let undecided = self.undecided;
        if total.saturating_add(errors).saturating_add(undecided) > results {
            wrong.push(format!("more was judged than the {results} results that there are"));
        }
        let (mut judged, mut right) = (0_u64, 0_u64);
        for category in self.per_category.values() {
            judged = judged.saturating_add(category.total);
            right = right.saturating_add(category.passed);
        }
        if judged > total || right > passed {
            wrong.push(format!(
                "the categories have {right} of {judged} passed, more than {passed} of {total}"
            ));
        }
        let counts_once = self.repeats.as_ref().is_none_or(|it| it.min_pass.is_none());
        if counts_once && passed > results {
            wrong.push(format!("{passed} passed of {results} results"));
        }
        let unlisted = results.saturating_sub(passed).saturating_sub(undecided);
        // Version 0.1 listed every answer of a case that several answers make.
        let (is_wrong, unlisted) = match counts_once {
            true => (listed != unlisted, unlisted),
            false => (listed < failed.saturating_add(errors), failed.saturating_add(errors)),
        };
        if is_wrong {
            wrong.push(format!("`failed_cases` has {listed} entries, but {unlisted} did not pass"));
        }
    }
}

impl CategoryResult {
    /// What is wrong with it, where the rate may be so far from the counts.
    pub(super) fn validate(&self, tolerance: f64) -> Option<String> {
        let Self { total, passed, rate: stated, errors: _, undecided: _ } = self;
        if passed > total {
            return Some(format!("{passed} passed of {total}"));
        }
        is_apart_by(tolerance, *stated, rate(*passed, *total))
            .then(|| format!("the rate is {stated}, but {passed} of {total} passed"))
    }
}

/// What is wrong with a time.
pub(super) fn timestamp(text: &str) -> Option<String> {
    let wrong = text.parse::<jiff::Timestamp>().is_err();
    wrong.then(|| format!("`timestamp` `{text}` is not an ISO 8601 time"))
}

/// The shares that are none, of those that there are.
pub(super) fn shares(rates: &[(&str, Option<f64>)]) -> Vec<String> {
    let wrong = |(name, value): &(&str, Option<f64>)| {
        let value = value.filter(|it| !(0.0..=1.0).contains(it))?;
        Some(format!("`{name}` is {value}, not between 0 and 1"))
    };
    rates.iter().filter_map(wrong).collect()
}

fn is_apart(stated: f64, counted: f64) -> bool {
    is_apart_by(TOLERANCE, stated, counted)
}

fn is_apart_by(tolerance: f64, stated: f64, counted: f64) -> bool {
    let apart = (stated - counted).abs();
    apart.is_nan() || apart > tolerance
}
