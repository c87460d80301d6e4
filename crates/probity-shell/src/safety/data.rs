//! The data files: rules, wrappers, tools and levels, read once.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;

use super::{Level, Risk, names::Names, rule::RuleSpec};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../data/safety/", $name)))),*]
    };
}

pub(super) const RULE_FILES: &[(&str, &str)] = files![
    "checks.toml",
    "cloud.toml",
    "containers.toml",
    "credentials.toml",
    "databases.toml",
    "files.toml",
    "git.toml",
    "packages.toml",
    "persistence.toml",
    "services.toml",
    "shells.toml",
    "system.toml",
];

const WRAPPERS: &str = include_str!("../../data/safety/wrappers.toml");
const TOOLS: &str = include_str!("../../data/safety/tools.toml");
const LEVELS: &str = include_str!("../../data/safety/levels.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    rule: Vec<RuleSpec>,
}

static RULES: LazyLock<Vec<(&'static str, RuleSpec)>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for (file, text) in RULE_FILES {
        let parsed: RuleFile = toml::from_str(text)
            .unwrap_or_else(|error| panic!("a test reads data/safety/{file}: {error}"));
        all.extend(parsed.rule.into_iter().map(|spec| (*file, spec)));
    }
    all
});

/// All rules that ship, each with the file it stands in.
pub(super) fn rules() -> impl Iterator<Item = (&'static str, &'static RuleSpec)> {
    RULES.iter().map(|(file, spec)| (*file, spec))
}

/// How a wrapper runs what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Run {
    /// The remaining words are a program and its arguments.
    Words,
    /// The remaining words, joined by blanks, are read by a shell.
    Text,
    /// Each remaining word is read by a shell.
    Each,
    /// Only the values of `text-options` are run.
    Options,
}

/// A program that runs another.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the data file")]
pub(super) struct Wrapper {
    pub(super) names: Vec<Box<str>>,
    /// Subcommands before what is run, any of them.
    #[serde(default)]
    pub(super) commands: Vec<Box<str>>,
    pub(super) run: Run,
    /// Options whose value is the next word.
    #[serde(default)]
    pub(super) values: Vec<Box<str>>,
    /// Options whose value is shell text.
    #[serde(default)]
    pub(super) text_options: Vec<Box<str>>,
    /// Operands before what is run.
    #[serde(default)]
    pub(super) skip: usize,
    /// `NAME=value` words may come before it.
    #[serde(default)]
    pub(super) assignments: bool,
    /// What is run stands after `--`; without one, nothing is run.
    #[serde(default)]
    pub(super) after_dashes: bool,
    /// It gives all rights.
    #[serde(default)]
    pub(super) privileged: bool,
    /// It runs on another machine.
    #[serde(default)]
    pub(super) remote: bool,
}

/// What must be known to read a program's arguments.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the data file")]
pub(super) struct Tool {
    pub(super) names: Vec<Box<str>>,
    /// Options whose value is the next word.
    #[serde(default)]
    pub(super) values: Vec<Box<str>>,
    /// Long options may be shortened.
    #[serde(default)]
    pub(super) abbreviations: bool,
    /// Options before the subcommand are not the subcommand's.
    #[serde(default)]
    pub(super) globals_first: bool,
    /// Everything after the first operand is another command's.
    #[serde(default)]
    pub(super) options_first: bool,
    /// Its arguments are text or names, never commands: nothing is guessed about them.
    #[serde(default)]
    pub(super) plain: bool,
}

/// What a level counts as unsafe.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Policy {
    pub(super) from: Risk,
    pub(super) opaque: bool,
}

/// A disputed command and what we hold.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "a test holds the rules to it; readers read the file")
)]
pub(super) struct Held {
    pub(super) command: String,
    pub(super) risk: Risk,
    pub(super) why: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Levels {
    strict: Policy,
    moderate: Policy,
    permissive: Policy,
    #[cfg_attr(not(test), expect(dead_code, reason = "a test holds the rules to it"))]
    pub(super) held: Vec<Held>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrapperFile {
    wrapper: Vec<Wrapper>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolFile {
    tool: Vec<Tool>,
}

/// A list found by any of its entries' names.
fn named<T>(entries: Vec<T>, names: impl Fn(&T) -> &[Box<str>]) -> Names<Arc<T>> {
    Names::new(entries.into_iter().flat_map(|entry| {
        let names = names(&entry).to_vec();
        let entry = Arc::new(entry);
        names.into_iter().map(move |name| (name, Arc::clone(&entry)))
    }))
}

static WRAPPER_INDEX: LazyLock<Names<Arc<Wrapper>>> = LazyLock::new(|| {
    let file: WrapperFile = toml::from_str(WRAPPERS)
        .unwrap_or_else(|error| panic!("a test reads data/safety/wrappers.toml: {error}"));
    named(file.wrapper, |it| &it.names)
});

static TOOL_INDEX: LazyLock<Names<Arc<Tool>>> = LazyLock::new(|| {
    let file: ToolFile = toml::from_str(TOOLS)
        .unwrap_or_else(|error| panic!("a test reads data/safety/tools.toml: {error}"));
    named(file.tool, |it| &it.names)
});

static LEVEL_TABLE: LazyLock<Levels> = LazyLock::new(|| {
    toml::from_str(LEVELS)
        .unwrap_or_else(|error| panic!("a test reads data/safety/levels.toml: {error}"))
});

/// The wrappers of that name.
pub(super) fn wrappers(name: &str) -> impl Iterator<Item = &'static Wrapper> + use<> {
    WRAPPER_INDEX.get(name).map(|it| &**it)
}

/// How that program's arguments are read.
pub(super) fn tool(name: &str) -> Option<&'static Tool> {
    TOOL_INDEX.get(name).next().map(|it| &**it)
}

/// What a level counts as unsafe.
pub(super) fn policy(level: Level) -> Policy {
    match level {
        Level::Strict => LEVEL_TABLE.strict,
        Level::Moderate => LEVEL_TABLE.moderate,
        Level::Permissive => LEVEL_TABLE.permissive,
    }
}

/// The disputed commands.
#[cfg(test)]
pub(super) fn held() -> &'static [Held] {
    &LEVEL_TABLE.held
}
