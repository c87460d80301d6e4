//! The data files: rules, wrappers, tools and levels, each read when it is first asked for.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;

use super::{Level, Risk, names::Names};

/// A rule that ships, not yet read.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) id: &'static str,
    /// Where it stands in `data/safety/`.
    pub(super) file: &'static str,
    pub(super) programs: &'static [&'static str],
    /// Whether it names a subcommand.
    pub(super) subcommands: bool,
    /// Its fields without the examples, as JSON.
    pub(super) text: &'static str,
}

/// All rules that ship.
pub(super) static RULES: &[Source] = include!(concat!(env!("OUT_DIR"), "/rules.rs"));

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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Levels {
    strict: Policy,
    moderate: Policy,
    permissive: Policy,
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
    let file: WrapperFile = table!("safety-wrappers");
    named(file.wrapper, |it| &it.names)
});

static TOOL_INDEX: LazyLock<Names<Arc<Tool>>> = LazyLock::new(|| {
    let file: ToolFile = table!("safety-tools");
    named(file.tool, |it| &it.names)
});

static LEVEL_TABLE: LazyLock<Levels> = LazyLock::new(|| table!("safety-levels"));

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
