//! The format of a utility's table; `docs/utilities.md` describes it.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A utility or one of its subcommands.
#[expect(clippy::struct_excessive_bools, reason = "each is a habit that a utility has or has not")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Utility {
    /// Its name.
    pub name: Box<str>,
    /// Its options; an option's index here is its identity.
    pub options: Vec<OptionSpec>,
    /// What stands after the options; `None` if the table does not say.
    pub slots: Option<Vec<Slot>>,
    /// `-5` stands for this option with the value 5.
    pub habit: Option<usize>,
    /// What is done when it is not said.
    pub defaults: Vec<ImpliedOption>,
    /// Groups of options of which the last one given wins.
    pub exclusive: Vec<Vec<usize>>,
    /// Groups of options whose order among each other matters.
    pub ordered: Vec<Vec<usize>>,
    /// `cmd FILE` writes what `cmd < FILE` writes, unless one of these options is given.
    pub stdin: Option<Vec<usize>>,
    /// It is another name for these words.
    pub same_as: Option<Vec<Box<str>>>,
    /// Options are recognised after operands too.
    pub permute: bool,
    /// Options are words after one dash, never bundles of letters.
    pub words: bool,
    /// The first operand may be a bundle of options without a dash.
    pub old_style: bool,
    /// Long options may be shortened.
    pub abbreviations: bool,
    /// Its subcommands by name.
    pub commands: BTreeMap<Box<str>, Self>,
    /// Other names of a subcommand.
    pub aliases: Vec<Box<str>>,
    spellings: Spellings,
}

/// Where each spelling of an option leads. Arguments are mostly single letters, which are an index away.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Spellings {
    /// For `-a`, by the letter: the option's index plus one, or zero.
    short: Box<[u16; 128]>,
    /// All others, sorted.
    long: Vec<(Box<str>, u16)>,
}

impl Spellings {
    fn of(options: &[OptionSpec]) -> Self {
        let mut spellings = Self { short: Box::new([0; 128]), long: Vec::new() };
        for (index, spec) in (0_u16..).zip(options) {
            for spelling in &spec.spellings {
                match spelling.as_bytes() {
                    [b'-', letter] if letter.is_ascii() => {
                        let slot = &mut spellings.short[usize::from(*letter)];
                        *slot = if *slot == 0 { index + 1 } else { *slot };
                    }
                    _ => spellings.long.push((spelling.clone(), index)),
                }
            }
        }
        spellings.long.sort();
        spellings
    }

    fn find(&self, spelling: &str) -> Option<usize> {
        if let [b'-', letter] = spelling.as_bytes() {
            let slot = *self.short.get(usize::from(*letter))?;
            return slot.checked_sub(1).map(usize::from);
        }
        let at = self.long.binary_search_by(|(it, _)| (**it).cmp(spelling)).ok()?;
        Some(usize::from(self.long[at].1))
    }
}

/// An option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OptionSpec {
    /// How it can be written, the canonical spelling first, dashes included.
    pub spellings: Vec<Box<str>>,
    /// Whether it takes a value.
    pub value: Value,
    /// What the value is: `FILE`, `NUM`, ...; empty without one.
    pub placeholder: Box<str>,
    /// What it means to give it more than once.
    pub repeat: Repeat,
    /// It names what is done anyway.
    pub noop: bool,
    /// It stands for exactly these options, each with its value if it has one.
    pub expands: Vec<Meaning>,
}

/// An option's spelling, with its value if it has one.
pub(crate) type Meaning = (Box<str>, Option<Box<str>>);

/// Whether an option takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// It does not.
    None,
    /// It does, attached or as the next word.
    Required,
    /// It may, attached.
    Optional,
}

/// What it means to give an option more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// The same as once.
    Same,
    /// Every occurrence counts, in order.
    Each,
    /// Every occurrence counts, in any order.
    Set,
    /// The last one wins.
    Last,
    /// Their number counts.
    Count,
}

/// What is done when it is not said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImpliedOption {
    /// The option that would say it.
    pub option: usize,
    /// Its value.
    pub value: Option<Box<str>>,
    /// Options whose presence makes the default not apply.
    pub unless: Vec<usize>,
}

/// One place among the operands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    /// What stands there: `FILE`, `PATTERN`, `COMMAND`, ...
    pub name: Box<str>,
    /// How many.
    pub many: Many,
    /// Options whose presence takes the slot away.
    pub absent_with: Vec<usize>,
}

/// How many operands a slot takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Many {
    /// One.
    One,
    /// One or none.
    Optional,
    /// Any number, and their order matters.
    Ordered,
    /// Any number, and their order does not matter.
    Unordered,
}

/// What is wrong with a table.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum TableError {
    /// It lacks what it must have, or has keys we do not know.
    #[error("`{name}`: {message}")]
    Keys {
        /// The utility.
        name: String,
        /// What the reader says.
        message: String,
    },
    /// A line does not follow the format.
    #[error("`{name}`: `{line}`: {message}")]
    Line {
        /// The utility.
        name: String,
        /// The line.
        line: String,
        /// What is wrong with it.
        message: &'static str,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Where the facts come from. A subcommand's are from where its utility's are.
    source: Option<String>,
    #[serde(default)]
    options: Vec<String>,
    operands: Option<String>,
    habit: Option<String>,
    #[serde(default)]
    defaults: Vec<String>,
    #[serde(default)]
    exclusive: Vec<Vec<String>>,
    #[serde(default)]
    ordered: Vec<Vec<String>>,
    stdin: Option<Stdin>,
    same_as: Option<String>,
    #[serde(default = "yes")]
    permute: bool,
    style: Option<Style>,
    #[serde(default)]
    old_style: bool,
    #[serde(default)]
    abbreviations: bool,
    #[serde(default)]
    commands: BTreeMap<String, Self>,
    #[serde(default)]
    aliases: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Stdin {
    Always(bool),
    Unless(String),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Style {
    Words,
}

fn yes() -> bool {
    true
}

impl Utility {
    /// Reads the table of one utility: the fields of `[name]`, as JSON.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, TableError> {
        let failed = |message: String| TableError::Keys { name: name.to_owned(), message };
        let table: Table = serde_json::from_str(text).map_err(|it| failed(it.to_string()))?;
        if table.source.as_deref().is_none_or(|it| it.trim().is_empty()) {
            return Err(failed("`source` is missing: say where it comes from".to_owned()));
        }
        Self::from_table(name, table)
    }

    fn from_table(name: &str, table: Table) -> Result<Self, TableError> {
        let Table {
            source: _,
            options,
            operands,
            habit,
            defaults,
            exclusive,
            ordered,
            stdin,
            same_as,
            permute,
            style,
            old_style,
            abbreviations,
            commands,
            aliases,
        } = table;
        let failed = |line: &str, message| TableError::Line {
            name: name.to_owned(),
            line: line.to_owned(),
            message,
        };
        let options = options
            .iter()
            .map(|line| OptionSpec::parse(line).map_err(|message| failed(line, message)))
            .collect::<Result<Vec<_>, _>>()?;
        let find = |spelling: &str| {
            options
                .iter()
                .position(|it| it.spellings.iter().any(|other| **other == *spelling))
                .ok_or_else(|| failed(spelling, "no option is spelled so"))
        };
        for spec in &options {
            for (spelling, _) in &spec.expands {
                find(spelling)?;
            }
        }
        let find_all =
            |line: &str| line.split_whitespace().map(find).collect::<Result<Vec<_>, _>>();
        let slots = operands
            .map(|line| {
                line.split_whitespace()
                    .map(|word| slot(word, &find, &failed))
                    .collect::<Result<Vec<_>, _>>()
            })
            .transpose()?;
        let commands = commands
            .into_iter()
            .map(|(name, table)| Ok((name.as_str().into(), Self::from_table(&name, table)?)))
            .collect::<Result<BTreeMap<Box<str>, _>, TableError>>()?;
        let ends_in_command =
            slots.iter().flatten().any(|it| matches!(&*it.name, "COMMAND" | "SUBCOMMAND"));
        Ok(Self {
            name: name.into(),
            slots,
            habit: habit
                .map(|line| {
                    let option = line
                        .strip_prefix("-NUM = ")
                        .ok_or_else(|| failed(&line, "expected `-NUM = -x`"))?;
                    find(option)
                })
                .transpose()?,
            defaults: defaults.iter().map(|line| default(line, &find)).collect::<Result<_, _>>()?,
            exclusive: exclusive
                .iter()
                .map(|group| find_all(&group.join(" ")))
                .collect::<Result<_, _>>()?,
            ordered: ordered
                .iter()
                .map(|group| find_all(&group.join(" ")))
                .collect::<Result<_, _>>()?,
            stdin: match stdin {
                None | Some(Stdin::Always(false)) => None,
                Some(Stdin::Always(true)) => Some(Vec::new()),
                Some(Stdin::Unless(line)) => Some(find_all(&line)?),
            },
            same_as: same_as.map(|line| line.split_whitespace().map(Into::into).collect()),
            permute: permute && !ends_in_command,
            words: matches!(style, Some(Style::Words)),
            old_style,
            abbreviations,
            commands,
            aliases: aliases.into_iter().map(Into::into).collect(),
            spellings: Spellings::of(&options),
            options,
        })
    }

    /// The subcommand of that name or alias.
    pub(crate) fn command(&self, name: &str) -> Option<&Self> {
        self.commands.get(name).or_else(|| {
            self.commands.values().find(|it| it.aliases.iter().any(|other| **other == *name))
        })
    }

    /// The option that is spelled so, dashes included.
    pub(crate) fn option(&self, spelling: &str) -> Option<usize> {
        self.spellings.find(spelling)
    }
}

fn slot(
    word: &str,
    find: &impl Fn(&str) -> Result<usize, TableError>,
    failed: &impl Fn(&str, &'static str) -> TableError,
) -> Result<Slot, TableError> {
    let mut parts = word.split('/');
    let shape = parts.next().unwrap_or_default();
    let absent_with = parts.map(find).collect::<Result<_, _>>()?;
    let (name, many) = if let Some(name) = shape.strip_suffix("...") {
        (name, Many::Ordered)
    } else if let Some(name) = shape.strip_suffix('*') {
        (name, Many::Unordered)
    } else if let Some(name) = shape.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        (name, Many::Optional)
    } else {
        (shape, Many::One)
    };
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(failed(word, "an operand's name is written in capitals"));
    }
    Ok(Slot { name: name.into(), many, absent_with })
}

fn default(
    line: &str,
    find: &impl Fn(&str) -> Result<usize, TableError>,
) -> Result<ImpliedOption, TableError> {
    let (said, unless) = line.split_once(" unless ").unwrap_or((line, ""));
    let (option, value) = match said.split_once([' ', '=']) {
        Some((option, value)) => (option, Some(value.into())),
        None => (said, None),
    };
    let unless = unless.split_whitespace().map(find).collect::<Result<_, _>>()?;
    Ok(ImpliedOption { option: find(option)?, value, unless })
}

impl OptionSpec {
    fn parse(line: &str) -> Result<Self, &'static str> {
        let (left, attributes) = line.split_once(" : ").unwrap_or((line, ""));
        let mut spellings: Vec<Box<str>> = Vec::new();
        let (mut value, mut placeholder) = (Value::None, "");
        for word in left.split_whitespace() {
            if value != Value::None {
                return Err("the value's name comes last");
            }
            if word.starts_with(['-', '+']) && word.len() > 1 {
                spellings.push(word.into());
                continue;
            }
            (placeholder, value) = match word.strip_prefix('[').and_then(|it| it.strip_suffix(']'))
            {
                Some(name) => (name, Value::Optional),
                None => (word, Value::Required),
            };
            if !placeholder.bytes().all(|byte| byte.is_ascii_uppercase()) {
                return Err("a value's name is written in capitals");
            }
        }
        if spellings.is_empty() {
            return Err("an option needs a spelling");
        }
        let mut spec = Self {
            spellings,
            value,
            placeholder: placeholder.into(),
            repeat: if value == Value::None { Repeat::Same } else { Repeat::Each },
            noop: false,
            expands: Vec::new(),
        };
        spec.attributes(attributes)?;
        Ok(spec)
    }

    fn attributes(&mut self, attributes: &str) -> Result<(), &'static str> {
        let mut words = attributes.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "last" => self.repeat = Repeat::Last,
                "set" => self.repeat = Repeat::Set,
                "count" => self.repeat = Repeat::Count,
                "noop" => self.noop = true,
                "=" => {
                    self.expands = expansion(words.by_ref())?;
                }
                _ => return Err("attributes are last, set, count, noop and `= ...`"),
            }
        }
        Ok(())
    }

    /// The canonical spelling.
    pub(crate) fn name(&self) -> &str {
        &self.spellings[0]
    }
}

/// `-s HUP --preserve=all -R`: options with their values.
fn expansion<'w>(words: impl Iterator<Item = &'w str>) -> Result<Vec<Meaning>, &'static str> {
    let mut options: Vec<Meaning> = Vec::new();
    for word in words {
        match (word.split_once('='), options.last_mut()) {
            (Some((spelling, value)), _) if word.starts_with('-') => {
                options.push((spelling.into(), Some(value.into())));
            }
            _ if word.starts_with(['-', '+']) => options.push((word.into(), None)),
            (_, Some((_, value))) if value.is_none() => *value = Some(word.into()),
            _ => return Err("`=` is followed by options and their values"),
        }
    }
    match options.is_empty() {
        true => Err("`=` needs the options it stands for"),
        false => Ok(options),
    }
}
