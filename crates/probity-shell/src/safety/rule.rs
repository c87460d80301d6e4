//! Rules: how they are written, checked and found by program.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, OnceLock},
};

use serde::Deserialize;

use super::{
    Category, Risk, assess, data,
    names::Names,
    pattern::{OptionPattern, Path, WordPattern},
    target::Classes,
};
use crate::{parse::Script, tree::Text};

/// A rule as it is written in a data file or a suite.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RuleSpec {
    /// A name of its own.
    pub id: String,
    /// What kind of harm; see [`Category`].
    pub category: Option<Category>,
    /// How bad; see [`Risk`].
    pub risk: Option<Risk>,
    /// Programs by base name; `mkfs.*` stands for all that begin so.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Paths of subcommands, any of which will do; none means any.
    #[serde(default)]
    pub commands: Vec<String>,
    /// Options that must all be given, each as `-f|--force` or `-X|--request = DELETE`.
    #[serde(default)]
    pub with: Vec<String>,
    /// Options of which none may be given.
    #[serde(default)]
    pub without: Vec<String>,
    /// Classes of targets, one of which an operand must have.
    #[serde(default)]
    pub targets: Vec<String>,
    /// Word patterns, one of which an operand must match.
    #[serde(default)]
    pub operands: Vec<String>,
    /// Only the last operand counts: where it is written to.
    #[serde(default)]
    pub last: bool,
    /// There must be at least so many operands.
    #[serde(default)]
    pub least: usize,
    /// `--dry-run` is no excuse for this program.
    #[serde(default)]
    pub always: bool,
    /// One sentence that says why.
    pub why: String,
    /// A form that does less harm.
    pub safer: Option<String>,
    /// Commands the rule finds; at least one.
    #[serde(default)]
    pub example: Vec<String>,
    /// Commands that look alike and that it leaves alone; at least one.
    #[serde(default)]
    pub counter: Vec<String>,
}

/// Commands that are allowed although a rule finds them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AllowSpec {
    /// Rules that are silenced; none means all.
    #[serde(default)]
    pub rules: Vec<String>,
    /// As in a rule.
    #[serde(default)]
    pub programs: Vec<String>,
    /// As in a rule.
    #[serde(default)]
    pub commands: Vec<String>,
    /// As in a rule.
    #[serde(default)]
    pub with: Vec<String>,
    /// As in a rule.
    #[serde(default)]
    pub without: Vec<String>,
    /// Classes of which every operand must have one.
    #[serde(default)]
    pub targets: Vec<String>,
    /// Word patterns of which every operand must match one.
    #[serde(default)]
    pub operands: Vec<String>,
    /// Why it is allowed.
    pub reason: String,
}

/// What a suite brings of its own.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UserRules {
    /// Rules, in the form of the built-in ones.
    #[serde(default)]
    pub rule: Vec<RuleSpec>,
    /// Commands that are allowed.
    #[serde(default)]
    pub allow: Vec<AllowSpec>,
}

/// What is wrong with a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A rule's field cannot be used.
    #[error("rule `{rule}`, `{field}`: {message}")]
    Rule {
        /// The rule's id, or its place if it has none.
        rule: String,
        /// The field.
        field: &'static str,
        /// What is wrong.
        message: String,
    },
    /// An allow entry's field cannot be used.
    #[error("allow entry {entry}, `{field}`: {message}")]
    Allow {
        /// The entry's place, from 1.
        entry: usize,
        /// The field.
        field: &'static str,
        /// What is wrong.
        message: String,
    },
}

/// Which calls a rule or an allow entry is about.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) commands: Vec<Path>,
    pub(super) with: Vec<OptionPattern>,
    pub(super) without: Vec<OptionPattern>,
    pub(super) targets: Classes,
    pub(super) operands: Vec<WordPattern>,
    pub(super) last: bool,
    pub(super) least: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) id: Text,
    pub(super) category: Category,
    pub(super) risk: Risk,
    pub(super) shape: Shape,
    pub(super) always: bool,
    pub(super) why: Arc<str>,
    pub(super) safer: Option<Arc<str>>,
}

#[derive(Debug, Clone)]
pub(super) struct Allow {
    pub(super) rules: Vec<Text>,
    pub(super) programs: Vec<WordPattern>,
    pub(super) shape: Shape,
}

/// What the rules hold about one program.
#[derive(Debug, Clone, Default)]
pub(super) struct Program {
    pub(super) rules: Vec<usize>,
    /// Whether any of its rules names a subcommand.
    pub(super) subcommands: bool,
}

/// A rule, or what it is read from when it is first asked for: few commands need more than a few of them.
#[derive(Debug, Clone)]
struct Listed {
    rule: OnceLock<Rule>,
    /// None for a rule of a suite, which is there from the beginning.
    source: Option<&'static data::Source>,
}

/// Rules that are ready to be asked.
#[derive(Debug, Clone)]
pub struct Rules {
    list: Vec<Listed>,
    by_id: BTreeMap<Text, usize>,
    by_program: BTreeMap<Box<str>, Program>,
    index: Names<Program>,
    pub(super) allow: Vec<Allow>,
}

static BUILTIN: LazyLock<Rules> = LazyLock::new(|| {
    let mut rules = Rules {
        list: Vec::new(),
        by_id: BTreeMap::new(),
        by_program: BTreeMap::new(),
        index: Names::new([]),
        allow: Vec::new(),
    };
    for source in data::RULES {
        let index = rules.list.len();
        for program in source.programs {
            let entry = rules.by_program.entry((*program).into()).or_default();
            entry.rules.push(index);
            entry.subcommands |= source.subcommands;
        }
        rules.by_id.insert(Text::from(source.id), index);
        rules.list.push(Listed { rule: OnceLock::new(), source: Some(source) });
    }
    rules.index();
    rules
});

impl Rules {
    /// The rules that ship with this crate.
    pub fn builtin() -> &'static Self {
        &BUILTIN
    }

    /// The built-in rules and the user's. A rule with a built-in rule's id is an error: allow entries silence those.
    pub fn compile(user: &UserRules) -> Result<Self, RuleError> {
        let mut rules = Self::builtin().clone();
        for (at, spec) in user.rule.iter().enumerate() {
            if spec.programs.is_empty() {
                let message = "name at least one program".to_owned();
                return Err(RuleError::Rule {
                    rule: name_of(spec, at),
                    field: "programs",
                    message,
                });
            }
            rules.add(spec, at)?;
        }
        rules.index();
        for spec in &user.rule {
            rules.check_examples(spec)?;
        }
        for (at, spec) in user.allow.iter().enumerate() {
            rules.add_allow(spec, at + 1)?;
        }
        Ok(rules)
    }

    /// The ids of all rules, sorted.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.by_id.keys().map(Text::as_str)
    }

    /// The names of all programs that a rule is about.
    pub(super) fn program_names(&self) -> impl Iterator<Item = &str> {
        self.by_program.keys().map(|it| &**it)
    }

    pub(super) fn program(&self, name: &str) -> Option<&Program> {
        self.index.get(name).next().or_else(|| {
            let (stem, _) = name.split_once('.')?;
            let mut key = Text::from(stem);
            key.push_str(".*");
            self.index.get(&key).next()
        })
    }

    pub(super) fn by_id(&self, id: &str) -> Option<&Rule> {
        self.by_id.get(id).map(|at| self.rule(*at))
    }

    /// The rule at a place of the list.
    pub(super) fn rule(&self, index: usize) -> &Rule {
        let Listed { rule, source } = &self.list[index];
        rule.get_or_init(|| source.expect("a rule of a suite is compiled when it is listed").read())
    }

    /// A rule must find its examples and leave its counter-examples alone.
    fn check_examples(&self, spec: &RuleSpec) -> Result<(), RuleError> {
        let check = |command: &String, field: &'static str, wanted: bool| {
            let fail = |message: String| RuleError::Rule { rule: spec.id.clone(), field, message };
            let script =
                Script::parse(command).map_err(|error| fail(format!("`{command}`: {error}")))?;
            let found = assess(&script, self).findings.iter().any(|it| it.rule == *spec.id);
            match (found, wanted) {
                (true, true) | (false, false) => Ok(()),
                (false, true) => Err(fail(format!("the rule does not find `{command}`"))),
                (true, false) => Err(fail(format!("the rule finds `{command}`"))),
            }
        };
        spec.example.iter().try_for_each(|it| check(it, "example", true))?;
        spec.counter.iter().try_for_each(|it| check(it, "counter", false))
    }

    fn index(&mut self) {
        let programs = self.by_program.iter();
        self.index = Names::new(programs.map(|(name, program)| (name.clone(), program.clone())));
    }

    fn add(&mut self, spec: &RuleSpec, at: usize) -> Result<(), RuleError> {
        let fail = |field: &'static str, message: &str| RuleError::Rule {
            rule: name_of(spec, at),
            field,
            message: message.to_owned(),
        };
        if self.by_id.contains_key(spec.id.as_str()) {
            return Err(fail("id", "there is another rule of that name"));
        }
        let rule = Rule::compile(spec, at)?;
        let index = self.list.len();
        for program in &spec.programs {
            let entry = self.by_program.entry(program.as_str().into()).or_default();
            entry.rules.push(index);
            entry.subcommands |= !rule.shape.commands.is_empty();
        }
        self.by_id.insert(rule.id.clone(), index);
        self.list.push(Listed { rule: OnceLock::from(rule), source: None });
        Ok(())
    }

    fn add_allow(&mut self, spec: &AllowSpec, entry: usize) -> Result<(), RuleError> {
        let fail =
            |field: &'static str, message: String| RuleError::Allow { entry, field, message };
        if spec.rules.is_empty() && spec.programs.is_empty() {
            return Err(fail("programs", "name a program or a rule, not everything".to_owned()));
        }
        if spec.reason.trim().is_empty() {
            return Err(fail("reason", "say why it is allowed".to_owned()));
        }
        if let Some(unknown) = spec.rules.iter().find(|it| !self.by_id.contains_key(it.as_str())) {
            return Err(fail("rules", format!("there is no rule `{unknown}`")));
        }
        let programs = spec.programs.iter().map(|it| WordPattern::parse(it));
        self.allow.push(Allow {
            rules: spec.rules.iter().map(|it| Text::from(it.as_str())).collect(),
            programs: programs
                .collect::<Result<_, _>>()
                .map_err(|message| fail("programs", message.to_owned()))?,
            shape: Fields::of_allow(spec).shape().map_err(|(field, it)| fail(field, it))?,
        });
        Ok(())
    }
}

impl data::Source {
    /// # Panics
    ///
    /// Never: a test reads every rule.
    fn read(&self) -> Rule {
        let spec = serde_json::from_str(self.text).map_err(|error| error.to_string());
        let rule = spec.and_then(|it| Rule::compile(&it, 0).map_err(|error| error.to_string()));
        rule.unwrap_or_else(|error| {
            panic!("a test reads every rule, and data/safety/{}: {error}", self.file)
        })
    }
}

impl Rule {
    fn compile(spec: &RuleSpec, at: usize) -> Result<Self, RuleError> {
        let fail = |field: &'static str, message: &str| RuleError::Rule {
            rule: name_of(spec, at),
            field,
            message: message.to_owned(),
        };
        let plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
        if spec.id.is_empty() || !spec.id.chars().all(plain) {
            return Err(fail("id", "an id is made of small letters, digits and `-`"));
        }
        if spec.why.trim().is_empty() {
            return Err(fail("why", "say why it is dangerous"));
        }
        if spec.risk == Some(Risk::Safe) {
            return Err(fail("risk", "a rule cannot find something safe; use an allow entry"));
        }
        if spec.programs.iter().any(|it| it.is_empty() || it.contains(['/', ' '])) {
            return Err(fail("programs", "a program is named by its base name"));
        }
        Ok(Self {
            id: Text::from(spec.id.as_str()),
            category: spec.category.ok_or_else(|| fail("category", "it is missing"))?,
            risk: spec.risk.ok_or_else(|| fail("risk", "it is missing"))?,
            shape: Fields::of_rule(spec).shape().map_err(|(field, it)| fail(field, &it))?,
            always: spec.always,
            why: spec.why.as_str().into(),
            safer: spec.safer.as_deref().map(Into::into),
        })
    }
}

fn name_of(spec: &RuleSpec, at: usize) -> String {
    match spec.id.is_empty() {
        true => format!("number {}", at + 1),
        false => spec.id.clone(),
    }
}

/// The fields that a rule and an allow entry have in common.
struct Fields<'s> {
    commands: &'s [String],
    with: &'s [String],
    without: &'s [String],
    targets: &'s [String],
    operands: &'s [String],
    last: bool,
    least: usize,
}

impl<'s> Fields<'s> {
    fn of_rule(spec: &'s RuleSpec) -> Self {
        let RuleSpec { commands, with, without, targets, operands, last, least, .. } = spec;
        Self { commands, with, without, targets, operands, last: *last, least: *least }
    }

    fn of_allow(spec: &'s AllowSpec) -> Self {
        let AllowSpec { commands, with, without, targets, operands, .. } = spec;
        Self { commands, with, without, targets, operands, last: false, least: 0 }
    }

    fn shape(&self) -> Result<Shape, (&'static str, String)> {
        let mut targets = Classes::default();
        for name in self.targets {
            targets |= Classes::named(name)
                .ok_or_else(|| ("targets", format!("there is no class of targets `{name}`")))?;
        }
        Ok(Shape {
            commands: each(self.commands, "commands", Path::parse)?,
            with: each(self.with, "with", OptionPattern::parse)?,
            without: each(self.without, "without", OptionPattern::parse)?,
            targets,
            operands: each(self.operands, "operands", WordPattern::parse)?,
            last: self.last,
            least: self.least,
        })
    }
}

fn each<T>(
    texts: &[String],
    field: &'static str,
    parse: impl Fn(&str) -> Result<T, &'static str>,
) -> Result<Vec<T>, (&'static str, String)> {
    texts
        .iter()
        .map(|text| parse(text).map_err(|message| (field, format!("`{text}`: {message}"))))
        .collect()
}
