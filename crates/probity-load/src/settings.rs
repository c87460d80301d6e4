//! Settings of a run, and where each value came from.
//!
//! A setting stands in `data/default.toml`, in the suite file, in a `.env` file, in
//! the environment and on the command line; the later of these wins. All settings are
//! in the one table below, so that each has a key, a variable and a place in
//! `probity config show`.

use std::{collections::BTreeMap, fmt, time::Duration};

use crate::{case::Findings, dataset};
use probity_core::{
    baseline::Tolerance,
    gate::Decimal,
    located::{Entry, Node, NodeValue},
    span::Span,
};

/// The defaults, with a comment on each.
pub const DEFAULTS: &str = include_str!("../data/default.toml");

/// What values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Flag,
    /// A whole number, at least this.
    Count(u64),
    /// A number that is not negative.
    Amount,
    /// A number from 0 to 1.
    Share,
    Duration,
    /// A duration that is not zero.
    Limit,
}

/// Every setting: its key and what values it takes.
const SETTINGS: &[(&str, Kind)] = &[
    ("store", Kind::Text),
    ("max_concurrency", Kind::Count(1)),
    ("max_error_rate", Kind::Share),
    ("errors_as_failures", Kind::Flag),
    ("max_undecided", Kind::Share),
    ("seed", Kind::Count(0)),
    ("scorer_memory_mib", Kind::Count(0)),
    ("cache.enabled", Kind::Flag),
    ("cache.path", Kind::Text),
    ("cache.generations", Kind::Flag),
    ("retry.max_retries", Kind::Count(0)),
    ("retry.backoff_base", Kind::Amount),
    ("retry.backoff_jitter", Kind::Amount),
    ("retry.backoff_max", Kind::Duration),
    ("pace.max_pause", Kind::Limit),
    ("timeouts.attempt", Kind::Limit),
    ("timeouts.case", Kind::Limit),
    ("timeouts.probe", Kind::Limit),
    ("timeouts.scorer", Kind::Limit),
    ("timeouts.kill_grace", Kind::Duration),
    ("budget.max_cost_usd", Kind::Amount),
    ("budget.max_calls", Kind::Count(0)),
    ("budget.max_tokens", Kind::Count(0)),
    ("fail_fast.enabled", Kind::Flag),
    ("fail_fast.threshold", Kind::Count(1)),
    ("fail_fast.permanent_threshold", Kind::Count(0)),
    ("baseline.folder", Kind::Text),
    ("baseline.max_regressions", Kind::Count(0)),
    ("baseline.max_drop", Kind::Share),
];

/// Older names of settings.
const ALIASES: &[(&str, &str)] = &[("fail_fast.consecutive_threshold", "fail_fast.threshold")];

/// The tables that hold settings and nothing else.
pub const TABLES: &[&str] =
    &["cache", "retry", "pace", "timeouts", "budget", "fail_fast", "baseline"];

/// The keys of all settings.
pub fn keys() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|(key, _)| *key)
}

/// The variable that sets a key.
pub fn variable(key: &str) -> String {
    format!("PROBITY_{}", key.replace('.', "_").to_uppercase())
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A suite file, at a line.
    File(String, usize),
    /// A variable of a `.env` file.
    DotEnv(String),
    /// A variable of the environment.
    Environment(String),
    /// An option of the command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(name, line) => write!(f, "{name}:{line}"),
            Self::DotEnv(name) => write!(f, ".env {name}"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text, not blank.
    Text(String),
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Count(u64),
    /// A number that is not negative.
    Amount(f64),
    /// A span of time.
    Duration(Duration),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Amount(amount) => write!(f, "{amount:?}"),
            Self::Duration(duration) => write!(f, "\"{}\"", Span(*duration)),
        }
    }
}

/// The values that one source sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer(BTreeMap<&'static str, (Value, Origin)>);

/// A value that a setting cannot take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` must be {wanted}, not `{text}`")]
pub struct InvalidSetting {
    key: &'static str,
    wanted: String,
    text: String,
}

impl Layer {
    /// Sets a value that has the type its setting needs.
    pub fn set(&mut self, key: &'static str, value: Value, origin: Origin) {
        self.0.insert(key, (value, origin));
    }

    /// What the variables of an environment set.
    pub fn from_variables(
        lookup: impl Fn(&str) -> Option<String>,
        origin: impl Fn(String) -> Origin,
    ) -> Result<Self, InvalidSetting> {
        let mut layer = Self::default();
        for (key, kind) in SETTINGS {
            let name = variable(key);
            if let Some(text) = lookup(&name).filter(|text| !text.is_empty()) {
                let value = parse(*kind, &text).map_err(|wanted| InvalidSetting {
                    key,
                    wanted: format!("{wanted} (in {name})"),
                    text,
                })?;
                layer.0.insert(key, (value, origin(name)));
            }
        }
        Ok(layer)
    }

    /// What a suite file sets.
    pub(crate) fn from_file(
        root: &Node,
        origin: impl Fn(usize) -> Origin,
        findings: &mut Findings,
    ) -> Self {
        let mut layer = Self::default();
        for entry in root.entries() {
            let is_table = TABLES.contains(&entry.key.as_str());
            if !is_table {
                layer.take(&entry.key, &entry.node, &origin, findings);
                continue;
            }
            refuse_contradictions(entry, findings);
            for inner in entry.node.entries() {
                let key = format!("{}.{}", entry.key, inner.key);
                layer.take(&key, &inner.node, &origin, findings);
            }
        }
        layer
    }

    fn take(
        &mut self,
        key: &str,
        node: &Node,
        origin: &impl Fn(usize) -> Origin,
        findings: &mut Findings,
    ) {
        let key = ALIASES.iter().find(|(old, _)| *old == key).map_or(key, |(_, new)| new);
        let Some((key, kind)) = SETTINGS.iter().find(|(name, _)| *name == key) else { return };
        let parsed = match (&node.value, kind) {
            (NodeValue::Bool(flag), Kind::Flag) => Ok(Value::Flag(*flag)),
            (NodeValue::String(text), Kind::Text | Kind::Duration | Kind::Limit) => {
                parse(*kind, text)
            }
            (
                NodeValue::Number(text),
                Kind::Count(_) | Kind::Amount | Kind::Share | Kind::Duration | Kind::Limit,
            ) => parse(*kind, text),
            (NodeValue::Null, _) => return,
            (_, _) => Err(wanted(*kind)),
        };
        match parsed {
            Ok(value) => {
                self.0.insert(key, (value, origin(node.span.start)));
            }
            Err(wanted) => {
                let message = format!("`{key}` must be {wanted}");
                findings.error("wrong-type", &node.span, message);
            }
        }
    }
}

/// Two names of one setting must not say different things.
fn refuse_contradictions(table: &Entry, findings: &mut Findings) {
    let of = |key: &str| table.node.get(key.strip_prefix(&table.key)?.strip_prefix('.')?);
    for (old, new) in ALIASES {
        if let (Some(one), Some(other)) = (of(old), of(new))
            && one.value != other.value
        {
            let message = format!("`{old}` and `{new}` are one setting with two values");
            let help = format!("keep `{new}`");
            findings.error_with_help("contradiction", &one.span, message, help);
        }
    }
}

/// The names of the settings directly under a table, for warnings about others.
pub(crate) fn names_in(table: &str) -> Vec<&'static str> {
    let aliases = ALIASES.iter().map(|(old, _)| *old);
    keys().chain(aliases).filter_map(|key| key.strip_prefix(table)?.strip_prefix('.')).collect()
}

/// The names of the settings that are in no table.
pub(crate) fn plain_names() -> impl Iterator<Item = &'static str> {
    keys().filter(|key| !key.contains('.'))
}

fn wanted(kind: Kind) -> String {
    match kind {
        Kind::Text => "a string".to_owned(),
        Kind::Flag => "true or false".to_owned(),
        Kind::Count(0) => "a whole number".to_owned(),
        Kind::Count(least) => format!("a whole number from {least} on"),
        Kind::Amount => "a number that is not negative".to_owned(),
        Kind::Share => "a share from 0 to 1".to_owned(),
        Kind::Limit => "a duration such as \"30s\", and not zero".to_owned(),
        Kind::Duration => "a duration such as \"30s\", \"1m 30s\" or \"500ms\"".to_owned(),
    }
}

fn parse(kind: Kind, text: &str) -> Result<Value, String> {
    let text = text.trim();
    let value = match kind {
        Kind::Text => (!text.is_empty()).then(|| Value::Text(text.to_owned())),
        Kind::Flag => match text {
            "true" | "1" | "yes" | "on" => Some(Value::Flag(true)),
            "false" | "0" | "no" | "off" => Some(Value::Flag(false)),
            _ => None,
        },
        Kind::Count(least) => text.parse().ok().filter(|count| *count >= least).map(Value::Count),
        Kind::Amount => text
            .parse()
            .ok()
            .filter(|amount: &f64| amount.is_finite() && *amount >= 0.0)
            .map(Value::Amount),
        Kind::Share => text
            .parse()
            .ok()
            .filter(|amount: &f64| amount.is_finite() && *amount >= 0.0)
            .filter(|share| *share <= 1.0)
            .map(Value::Amount),
        Kind::Duration => parse_duration(text).map(Value::Duration),
        Kind::Limit => parse_duration(text).filter(|it| !it.is_zero()).map(Value::Duration),
    };
    value.ok_or_else(|| wanted(kind))
}

/// The longest duration that is taken. A clock that it is added to does not overflow.
const LONGEST: Duration = Duration::from_hours(366 * 24);

/// `90`, `90s`, `1m30s`, `1m 30s`, `500ms`; a number alone is seconds.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let duration = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => Duration::try_from(text.parse::<jiff::SignedDuration>().ok()?).ok(),
    };
    duration.filter(|duration| *duration <= LONGEST)
}

/// The value that holds for every setting, and where it came from.
#[derive(Clone, Debug)]
pub struct Resolved(BTreeMap<&'static str, (Value, Origin)>);

impl Resolved {
    /// Merges layers, the strongest last, over the defaults.
    pub fn of(layers: impl IntoIterator<Item = Layer>) -> Self {
        let mut merged = defaults();
        for layer in layers {
            merged.0.extend(layer.0);
        }
        Self(merged.0)
    }

    /// Every setting in the order of its key.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value, &Origin)> {
        SETTINGS
            .iter()
            .filter_map(|(key, _)| self.0.get(key).map(|(value, origin)| (*key, value, origin)))
    }

    /// The settings with their types.
    pub fn settings(&self) -> Settings {
        let count = |key| self.count(key);
        let duration = |key| self.duration(key);
        let threshold = count("fail_fast.threshold");
        let permanent = count("fail_fast.permanent_threshold");
        Settings {
            store: self.text("store"),
            max_concurrency: count("max_concurrency"),
            max_error_rate: self.amount("max_error_rate"),
            errors_as_failures: self.flag("errors_as_failures"),
            max_undecided: self.decimal("max_undecided"),
            seed: count("seed"),
            scorer_memory: Some(count("scorer_memory_mib"))
                .filter(|it| *it > 0)
                .map(|it| it.saturating_mul(1 << 20)),
            cache: self.flag("cache.enabled").then(|| self.text("cache.path")),
            cache_path: self.text("cache.path"),
            cache_generations: self.flag("cache.generations"),
            retry: Retry {
                max_retries: count("retry.max_retries"),
                backoff_base: self.amount("retry.backoff_base"),
                backoff_jitter: self.amount("retry.backoff_jitter"),
                backoff_max: duration("retry.backoff_max"),
            },
            pace: Pace { max_pause: duration("pace.max_pause") },
            timeouts: Timeouts {
                attempt: duration("timeouts.attempt"),
                case: duration("timeouts.case"),
                probe: duration("timeouts.probe"),
                scorer: duration("timeouts.scorer"),
                kill_grace: duration("timeouts.kill_grace"),
            },
            budget: Budget {
                max_cost_usd: Some(self.amount("budget.max_cost_usd")).filter(|it| *it > 0.0),
                max_calls: Some(count("budget.max_calls")).filter(|it| *it > 0),
                max_tokens: Some(count("budget.max_tokens")).filter(|it| *it > 0),
            },
            fail_fast: self.flag("fail_fast.enabled").then_some(FailFast {
                threshold,
                permanent_threshold: if permanent == 0 { threshold } else { permanent },
            }),
            baseline: Baselines {
                folder: self.text("baseline.folder"),
                tolerance: Tolerance {
                    max_regressions: count("baseline.max_regressions"),
                    max_drop: self.decimal("baseline.max_drop"),
                },
            },
        }
    }

    /// The value of a setting whose kind the table of settings fixes.
    fn get<T>(&self, key: &str, of_kind: impl FnOnce(&Value) -> Option<T>) -> T {
        let value = self.0.get(key).map(|(value, _)| value);
        value.and_then(of_kind).expect("default.toml sets every key, and `parse` fixes its kind")
    }

    fn text(&self, key: &str) -> String {
        self.get(key, |value| if let Value::Text(it) = value { Some(it.clone()) } else { None })
    }

    fn flag(&self, key: &str) -> bool {
        self.get(key, |value| if let Value::Flag(it) = value { Some(*it) } else { None })
    }

    fn count(&self, key: &str) -> u64 {
        self.get(key, |value| if let Value::Count(it) = value { Some(*it) } else { None })
    }

    fn amount(&self, key: &str) -> f64 {
        self.get(key, |value| if let Value::Amount(it) = value { Some(*it) } else { None })
    }

    /// A share to the digit. One that no decimal of twelve places can say is as good as 1.
    fn decimal(&self, key: &str) -> Decimal {
        Decimal::parse(&self.amount(key).to_string()).unwrap_or(Decimal::whole(1))
    }

    fn duration(&self, key: &str) -> Duration {
        self.get(key, |value| if let Value::Duration(it) = value { Some(*it) } else { None })
    }
}

fn defaults() -> Layer {
    let root = dataset::parse_toml(DEFAULTS).expect("default.toml is TOML, as a test knows");
    Layer::from_file(&root, |_| Origin::Default, &mut Findings::default())
}

/// The settings of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where runs are kept.
    pub store: String,
    /// Calls in flight over all backends.
    pub max_concurrency: u64,
    /// Share of errors above which a run is degraded.
    pub max_error_rate: f64,
    /// Whether what could not be judged counts as failed.
    pub errors_as_failures: bool,
    /// The share of undecided results that gates on verdicts allow.
    pub max_undecided: Decimal,
    /// Chooses the cases of a sample.
    pub seed: u64,
    /// Bytes of memory that a process of a scorer may have; none for no limit.
    pub scorer_memory: Option<u64>,
    /// Where answers of earlier runs are, if they may be used.
    pub cache: Option<String>,
    /// The same, whether they may be used or not.
    pub cache_path: String,
    /// Whether answers that are judged are kept, and used again.
    pub cache_generations: bool,
    /// When to try again.
    pub retry: Retry,
    /// How long a service may ask to be left alone.
    pub pace: Pace,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// What a run may use.
    pub budget: Budget,
    /// When to give a backend up; none for never.
    pub fail_fast: Option<FailFast>,
    /// What a run is held against.
    pub baseline: Baselines,
}

/// What runs are held against, and how much worse they may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Baselines {
    /// Where baselines are kept.
    pub folder: String,
    /// How much worse than one a run may be.
    pub tolerance: Tolerance,
}

/// When to try again after a transient error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// Tries after the first one.
    pub max_retries: u64,
    /// Seconds before the first retry; each further one waits twice as long.
    pub backoff_base: f64,
    /// Share of a wait that is left to chance.
    pub backoff_jitter: f64,
    /// The longest wait of our own choosing.
    pub backoff_max: Duration,
}

/// How long a service may ask to be left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The longest pause that is made; one that asks for a longer one has failed.
    pub max_pause: Duration,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// One call.
    pub attempt: Duration,
    /// All calls of a case with their waits.
    pub case: Duration,
    /// Finding out what a program can do.
    pub probe: Duration,
    /// What a scorer says of one reply.
    pub scorer: Duration,
    /// From asking a program to end to ending it.
    pub kill_grace: Duration,
}

/// What may be used; none for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// Dollars.
    pub max_cost_usd: Option<f64>,
    /// Calls.
    pub max_calls: Option<u64>,
    /// Tokens in and out.
    pub max_tokens: Option<u64>,
}

/// When to give a backend up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailFast {
    /// Cases in a row with the same error.
    pub threshold: u64,
    /// The same for permanent errors.
    pub permanent_threshold: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (Layer, Vec<String>) {
        let root = dataset::parse_toml(text).unwrap();
        let mut findings = Findings::default();
        let layer =
            Layer::from_file(&root, |at| Origin::File("suite".to_owned(), at), &mut findings);
        (layer, findings.0.into_iter().map(|finding| finding.message).collect())
    }

    #[test]
    fn the_defaults_set_every_key_and_no_other() {
        let (layer, messages) = file(DEFAULTS);
        assert_eq!(messages, [""; 0]);
        let mut all: Vec<_> = keys().collect();
        all.sort_unstable();
        assert_eq!(layer.0.keys().copied().collect::<Vec<_>>(), all);
        let root = dataset::parse_toml(DEFAULTS).unwrap();
        let stated: usize = root.entries().iter().map(|it| it.node.entries().len().max(1)).sum();
        assert_eq!(stated, all.len());
    }

    #[test]
    fn the_later_layer_wins() {
        let (file, _) = file("[retry]\nmax_retries = 7\n[timeouts]\ncase = \"90s\"");
        let environment =
            |name: &str| (name == "PROBITY_RETRY_MAX_RETRIES").then(|| "9".to_owned());
        let environment = Layer::from_variables(environment, Origin::Environment).unwrap();
        let resolved = Resolved::of([file, environment]);
        let settings = resolved.settings();
        assert_eq!(settings.retry.max_retries, 9);
        assert_eq!(settings.timeouts.case, Duration::from_secs(90));
        let origin = |wanted: &str| {
            let mut found = resolved.iter().filter(|(key, _, _)| *key == wanted);
            found.next().unwrap().2.to_string()
        };
        assert_eq!(origin("retry.max_retries"), "environment PROBITY_RETRY_MAX_RETRIES");
        assert_eq!(origin("timeouts.case"), "suite:42");
        assert_eq!(origin("store"), "default");
    }

    #[test]
    fn both_names_of_the_threshold_load() {
        for key in ["threshold", "consecutive_threshold"] {
            let (layer, _) = file(&format!("[fail_fast]\n{key} = 5"));
            let fail_fast = Resolved::of([layer]).settings().fail_fast.unwrap();
            assert_eq!((fail_fast.threshold, fail_fast.permanent_threshold), (5, 5));
        }
    }

    #[test]
    fn values_of_the_wrong_kind_are_named() {
        let (_, messages) =
            file("max_concurrency = 0\n[timeouts]\nattempt = \"soon\"\n[retry]\nbackoff_base = -1");
        insta::assert_debug_snapshot!(messages, @r#"
        [
            "`max_concurrency` must be a whole number from 1 on",
            "`timeouts.attempt` must be a duration such as \"30s\", and not zero",
            "`retry.backoff_base` must be a number that is not negative",
        ]
        "#);
        let lookup = |name: &str| (name == "PROBITY_CACHE_ENABLED").then(|| "maybe".to_owned());
        let error = Layer::from_variables(lookup, Origin::Environment).unwrap_err();
        insta::assert_snapshot!(error, @"`cache.enabled` must be true or false (in PROBITY_CACHE_ENABLED), not `maybe`");
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        let cases =
            [("90", 90_000), ("1.5", 1500), ("2m", 120_000), ("1m30s", 90_000), ("250ms", 250)];
        for (text, millis) in cases {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(millis)), "{text}");
            let shown = Span(Duration::from_millis(millis)).to_string();
            assert_eq!(parse_duration(&shown), Some(Duration::from_millis(millis)), "{shown}");
        }
        for text in ["-1s", "1e19", "9000000000000000000s", "inf", "NaN", ""] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
