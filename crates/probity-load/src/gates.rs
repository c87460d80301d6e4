//! Reads the `gates` of a runner.

use std::ops::Range;

use crate::{
    case::{Fields, Findings, any_category, did_you_mean},
    settings::parse_duration,
    suite::Names,
};
use probity_core::gate::{Bound, Decimal, Gate, Metric, Unit};
use probity_core::{
    case::Category,
    kind::RunnerKind,
    located::{Node, NodeValue},
};

/// Other names for the pass rate: those of evaluation results.
const OTHER_NAMES: [(&str, Option<Category>); 6] = [
    ("csr", None),
    ("correctness", Some(Category::CORRECTNESS)),
    ("safety", Some(Category::SAFETY)),
    ("safety_accuracy", Some(Category::SAFETY)),
    ("posix", Some(Category::POSIX)),
    ("posix_compliance_rate", Some(Category::POSIX)),
];

/// The gates of a runner: those of its kind where there are none, and none where it says so.
pub(crate) fn decode(
    node: Option<&Node>,
    kind: RunnerKind,
    names: &Names<'_>,
    findings: &mut Findings,
) -> Vec<Gate> {
    let Some(node) = node else { return Gate::defaults(kind) };
    match &node.value {
        NodeValue::Bool(false) => return Vec::new(),
        NodeValue::Bool(true) => return Gate::defaults(kind),
        NodeValue::Null
        | NodeValue::Number(_)
        | NodeValue::String(_)
        | NodeValue::Array(_)
        | NodeValue::Object(_) => {}
    }
    if Fields::open(node, "`gates`", findings).is_none() {
        return Vec::new();
    }
    let mut gates = Vec::new();
    for entry in node.entries().iter().filter(|it| !it.key.starts_with("x-")) {
        let Some((metric, category)) = metric_of(&entry.key) else {
            let message = format!("there is no metric `{}`", entry.key);
            let names: Vec<String> = Metric::all().map(|(_, name)| name).collect();
            let others =
                OTHER_NAMES.iter().map(|(name, _)| *name).chain(["score.NAME", "derived.NAME"]);
            let names: Vec<&str> = names.iter().map(String::as_str).chain(others).collect();
            let help = did_you_mean(&entry.key, &names)
                .unwrap_or_else(|| format!("it is one of {}", names.join(", ")));
            findings.error_with_help("unknown-value", &entry.key_span, message, help);
            continue;
        };
        if let Metric::Skill(rate) = metric
            && !rate.kinds().contains(&kind)
        {
            let kinds: Vec<&str> = rate.kinds().iter().map(|it| it.as_str()).collect();
            let message = format!("runners of kind `{}` have no `{}`", kind.as_str(), entry.key);
            let help = format!("those of kind {} have", kinds.join(" and "));
            findings.error_with_help("bad-gate", &entry.key_span, message, help);
            continue;
        }
        if let Metric::Derived(name) = &metric
            && !names.derived.iter().any(|it| it.name == **name)
        {
            let known: Vec<&str> = names.derived.iter().map(|it| it.name.as_str()).collect();
            let message = format!("the runner has no derived figure `{name}`");
            let help = did_you_mean(name, &known)
                .unwrap_or_else(|| "describe it under [derived], see docs/derived.md".to_owned());
            findings.error_with_help("bad-gate", &entry.key_span, message, help);
            continue;
        }
        let items = match &entry.node.value {
            NodeValue::Array(items) => items.as_slice(),
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::Number(_)
            | NodeValue::String(_)
            | NodeValue::Object(_) => std::slice::from_ref(&entry.node),
        };
        if items.is_empty() {
            let message = format!("the list of gates on `{}` is empty", entry.key);
            findings.error("bad-gate", &entry.node.span, message);
        }
        for item in items {
            let mut reading = Reading { metric: &metric, name: &entry.key, names, findings };
            gates.extend(reading.gate(item, category.clone()));
        }
    }
    gates
}

fn metric_of(name: &str) -> Option<(Metric, Option<Category>)> {
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == name);
    match other {
        Some((_, category)) => Some((Metric::PassRate, category.clone())),
        None => name.parse().ok().map(|metric| (metric, None)),
    }
}

struct Reading<'a> {
    metric: &'a Metric,
    /// As it was written.
    name: &'a str,
    names: &'a Names<'a>,
    findings: &'a mut Findings,
}

impl Reading<'_> {
    fn gate(&mut self, node: &Node, category: Option<Category>) -> Option<Gate> {
        const KNOWN: &[&str] =
            &["pass", "min", "max", "warn", "category", "backend", "variant", "allow_empty"];
        if let NodeValue::Number(text) | NodeValue::String(text) = &node.value {
            let bound = self.limit(text, &node.span).map(|limit| self.natural(limit))?;
            let (metric, warn) = (self.metric.clone(), None);
            let (backend, variant, allow_empty) = (None, None, false);
            return Some(Gate { metric, bound, warn, category, backend, variant, allow_empty });
        }
        // A misspelt `category` would judge other cases, which is worse than an unknown field.
        let known = |key: &str| KNOWN.contains(&key) || key.starts_with("x-");
        for entry in node.entries().iter().filter(|entry| !known(&entry.key)) {
            let message = format!("a gate has no field `{}`", entry.key);
            let help = did_you_mean(&entry.key, KNOWN)
                .unwrap_or_else(|| format!("it has {}", KNOWN.join(", ")));
            self.findings.error_with_help("unknown-field", &entry.key_span, message, help);
        }
        let mut fields = Fields::open(node, "a gate", self.findings)?;
        let allow_empty = fields.boolean("allow_empty").unwrap_or(false);
        let (backend, variant) = (fields.text("backend"), fields.text("variant"));
        let own = any_category(&mut fields);
        let [pass, min, max, warn] =
            ["pass", "min", "max", "warn"].map(|key| (fields.digits(key), fields.span(key)));
        self.check_lane(node, backend.as_deref(), variant.as_deref());
        let category = own.or(category);
        if category.is_some() && !self.metric.has_categories() {
            let message = format!("`{}` is not known by category", self.name);
            self.findings.error("bad-gate", &node.span, message);
            return None;
        }
        let given: Vec<_> = [("pass", pass), ("min", min), ("max", max)]
            .into_iter()
            .filter_map(|(key, (text, span))| Some((key, text?, span)))
            .collect();
        let [(key, text, span)] = given.as_slice() else {
            let message = format!("a gate on `{}` needs one of `pass`, `min` and `max`", self.name);
            self.findings.error("bad-gate", &node.span, message);
            return None;
        };
        let limit = self.limit(text, span)?;
        let bound = match *key {
            "min" => Bound::AtLeast(limit),
            "max" => Bound::AtMost(limit),
            _ => self.natural(limit),
        };
        let warn = match warn {
            (Some(text), span) => {
                let warn = self.limit(text, &span)?;
                let is_band = match bound {
                    Bound::AtLeast(pass) => warn.to_f64() <= pass.to_f64(),
                    Bound::AtMost(pass) => warn.to_f64() >= pass.to_f64(),
                };
                if !is_band {
                    let message =
                        "`warn` must lie where the gate does not pass: it is the edge of failing";
                    self.findings.error("bad-gate", &span, message.to_owned());
                    return None;
                }
                Some(warn)
            }
            (None, _) => None,
        };
        let metric = self.metric.clone();
        Some(Gate { metric, bound, warn, category, backend, variant, allow_empty })
    }

    /// A backend or a variant that is named has to be one of the runner's.
    fn check_lane(&mut self, node: &Node, backend: Option<&str>, variant: Option<&str>) {
        let backends: Vec<&str> = self.names.backends.iter().map(String::as_str).collect();
        for (key, code, name, known) in [
            ("backend", "unknown-backend", backend, backends.as_slice()),
            ("variant", "unknown-variant", variant, self.names.variants),
        ] {
            let Some(name) = name.filter(|it| !known.contains(it)) else { continue };
            let message = format!("the runner has no {key} `{name}`");
            let help = did_you_mean(name, known).unwrap_or_else(|| match known {
                [] => "it has none".to_owned(),
                known => format!("it has {}", known.join(", ")),
            });
            let span = node.get(key).map_or(&node.span, |it| &it.span);
            self.findings.error_with_help(code, span, message, help);
        }
    }

    /// The side of a limit that is meant where none is named.
    fn natural(&self, limit: Decimal) -> Bound {
        match self.metric.is_good() {
            true => Bound::AtLeast(limit),
            false => Bound::AtMost(limit),
        }
    }

    fn limit(&mut self, text: &str, span: &Range<usize>) -> Option<Decimal> {
        let is_percent = text.trim_end().ends_with('%');
        let parsed = match self.metric.unit() {
            Unit::Share | Unit::Score => Decimal::parse(text).filter(|it| it.threshold().is_some()),
            Unit::Count => Decimal::parse(text).filter(|it| it.is_whole() && !is_percent),
            Unit::Dollars => Decimal::parse(text).filter(|_| !is_percent),
            Unit::Number => Decimal::parse(text),
            Unit::Time => parse_duration(text)
                .and_then(|it| u64::try_from(it.as_millis()).ok().map(Decimal::whole)),
        };
        if parsed.is_none() {
            let wanted = match self.metric.unit() {
                Unit::Share | Unit::Score => "a share from 0 to 1 such as 0.948, or \"94.8%\"",
                Unit::Count => "a whole number",
                Unit::Dollars => "an amount of dollars such as 0.25",
                Unit::Number => "a number that is not negative, such as 12.5",
                Unit::Time => "a duration such as \"2.5s\"",
            };
            let message = format!("the limit of `{}` must be {wanted}", self.name);
            self.findings.error("bad-gate", span, message);
        }
        parsed
    }
}

#[cfg(test)]
mod tests;
