//! A command's arguments, read by its utility's table: which are options, which are values, which are operands.

use crate::{
    field::{self, Field},
    utility::{self, OptionSpec, Utility, Value},
};

/// Arguments in the light of a table.
#[derive(Debug, Clone)]
pub(crate) struct Invocation<'a> {
    /// The table, or the subcommand's.
    pub utility: &'static Utility,
    /// The table of the utility and of each subcommand that was followed.
    pub levels: Vec<&'static Utility>,
    /// The names of the subcommands that were followed.
    pub path: Vec<&'static str>,
    /// Options of the command itself, before the subcommand.
    pub global: Vec<Given<'a>>,
    /// Options, in the order they were given.
    pub options: Vec<Given<'a>>,
    /// Words that look like options and are not in the table, or lack the value they need.
    pub unknown: Vec<&'a Field>,
    /// Operands in order. With a `COMMAND` slot, the command's words are the last of them.
    pub operands: Vec<&'a Field>,
    /// Whether `--` was given.
    pub dashdash: bool,
    /// How many operands stand before it.
    pub before_dashdash: usize,
}

/// An option that was given.
#[derive(Debug, Clone)]
pub(crate) struct Given<'a> {
    /// What it is.
    pub spec: &'static OptionSpec,
    /// Its place in the table.
    pub index: usize,
    /// Which of [`Invocation::levels`] the table is.
    pub level: usize,
    /// Its value, markers included.
    pub value: Option<&'a str>,
    /// The word that holds the option.
    pub field: &'a Field,
}

impl<'a> Invocation<'a> {
    /// Reads `arguments` (the command word left out).
    pub(crate) fn read(utility: &'static Utility, arguments: &'a [Field]) -> Self {
        let mut reader = Reader {
            invocation: Invocation {
                utility,
                levels: vec![utility],
                path: Vec::new(),
                global: Vec::new(),
                options: Vec::new(),
                unknown: Vec::new(),
                operands: Vec::new(),
                dashdash: false,
                before_dashdash: 0,
            },
            arguments,
            at: 0,
        };
        reader.run();
        reader.invocation
    }

    /// The option spelled so, if it was given; the last one if several were.
    pub(crate) fn get(&self, spelling: &str) -> Option<&Given<'a>> {
        self.options.iter().rev().chain(self.global.iter().rev()).find(|it| it.is(spelling))
    }

    /// Whether the option spelled so was given.
    pub(crate) fn has(&self, spelling: &str) -> bool {
        self.get(spelling).is_some()
    }

    /// Which slot each operand falls into, by the table's synopsis; `None` where there is no room for it.
    pub(crate) fn slots(&self) -> Vec<Option<&'static utility::Slot>> {
        let present = |slot: &&'static utility::Slot| {
            !slot.absent_with.iter().any(|index| self.options.iter().any(|it| it.index == *index))
        };
        let slots: Vec<_> = self.utility.slots.iter().flatten().filter(present).collect();
        let Some(many) = slots
            .iter()
            .position(|it| matches!(it.many, utility::Many::Ordered | utility::Many::Unordered))
        else {
            return (0..self.operands.len())
                .map(|at| slots.get(at).or(command_slot(&slots)).copied())
                .collect();
        };
        let (before, after) = (&slots[..many], &slots[many + 1..]);
        let total = self.operands.len();
        // What comes after a list is filled from the end: in `cp a b dir` the last is the target.
        let tail = after.len().min(total.saturating_sub(before.len()));
        (0..total)
            .map(|at| {
                if at < before.len() {
                    Some(before[at])
                } else if at >= total - tail {
                    Some(after[after.len() - (total - at)])
                } else {
                    Some(slots[many])
                }
            })
            .collect()
    }
}

fn command_slot<'s>(slots: &'s [&'static utility::Slot]) -> Option<&'s &'static utility::Slot> {
    slots.last().filter(|it| &*it.name == "COMMAND")
}

impl Given<'_> {
    /// Whether this is the option spelled so.
    pub(crate) fn is(&self, spelling: &str) -> bool {
        self.spec.spellings.iter().any(|it| **it == *spelling)
    }
}

/// An option found in a table.
#[derive(Clone, Copy)]
struct Found {
    level: usize,
    table: &'static Utility,
    index: usize,
}

impl Found {
    fn spec(&self) -> &'static OptionSpec {
        &self.table.options[self.index]
    }
}

struct Reader<'a> {
    invocation: Invocation<'a>,
    arguments: &'a [Field],
    at: usize,
}

impl<'a> Reader<'a> {
    fn run(&mut self) {
        self.old_style();
        while let Some(argument) = self.next() {
            let text = argument.text.as_str();
            if text == "--" && !self.invocation.dashdash {
                self.invocation.dashdash = true;
                self.invocation.before_dashdash = self.invocation.operands.len();
                self.rest_are_operands();
            } else if text.len() > 1 && text.starts_with("--") {
                self.long(argument);
            } else if text.len() > 1 && text.starts_with('-') || self.is_plus_option(text) {
                self.short(argument);
            } else if self.takes_subcommand() && self.subcommand(text) {
            } else {
                self.invocation.operands.push(argument);
                if !self.table().permute {
                    return self.rest_are_operands();
                }
            }
        }
    }

    /// `tar xzf FILE`: letters without a dash, whose values follow in their order.
    fn old_style(&mut self) {
        let Some(first) = self.arguments.first().filter(|_| self.table().old_style) else { return };
        if first.text.starts_with('-') || !first.text.bytes().all(|it| it.is_ascii_alphanumeric()) {
            return;
        }
        let letters: Option<Vec<_>> =
            first.text.chars().map(|it| self.find(&format!("-{it}"))).collect();
        let Some(letters) = letters else { return };
        self.at = 1;
        for letter in letters {
            self.give_or_wait(letter, None, first);
        }
    }

    fn table(&self) -> &'static Utility {
        self.invocation.utility
    }

    fn next(&mut self) -> Option<&'a Field> {
        let next = self.arguments.get(self.at)?;
        self.at += 1;
        Some(next)
    }

    fn rest_are_operands(&mut self) {
        self.invocation.operands.extend(&self.arguments[self.at..]);
        self.at = self.arguments.len();
    }

    /// `bash +x`, `date +%s`: a plus begins an option only where the table has one.
    fn is_plus_option(&self, text: &str) -> bool {
        text.starts_with('+') && self.table().option(field::known_prefix(text)).is_some()
    }

    fn takes_subcommand(&self) -> bool {
        self.invocation.operands.is_empty() && !self.table().commands.is_empty()
    }

    fn subcommand(&mut self, text: &str) -> bool {
        let Some(command) = self.table().command(text) else { return false };
        self.invocation.levels.push(command);
        self.invocation.utility = command;
        self.invocation.path.push(&command.name);
        let before = std::mem::take(&mut self.invocation.options);
        self.invocation.global.extend(before);
        true
    }

    /// Options are looked up from the innermost subcommand outwards.
    fn find(&self, spelling: &str) -> Option<Found> {
        let levels = self.invocation.levels.iter().enumerate().rev();
        levels
            .into_iter()
            .find_map(|(level, table)| Some(Found { level, table, index: table.option(spelling)? }))
    }

    fn give(&mut self, found: Found, value: Option<&'a str>, field: &'a Field) {
        let Found { level, table, index } = found;
        let given = Given { spec: &table.options[index], index, level, value, field };
        match level + 1 == self.invocation.levels.len() {
            true => self.invocation.options.push(given),
            false => self.invocation.global.push(given),
        }
    }

    fn give_or_wait(&mut self, found: Found, attached: Option<&'a str>, field: &'a Field) {
        let value = match (found.spec().value, attached) {
            (_, Some(value)) => Some(value),
            (Value::Required, None) => match self.next() {
                Some(next) => Some(next.text.as_str()),
                // An option without the value it needs: the utility will complain, and so must whoever reads this.
                None => return self.invocation.unknown.push(field),
            },
            (Value::Optional | Value::None, None) => None,
        };
        self.give(found, value, field);
    }

    fn long(&mut self, argument: &'a Field) {
        let (spelling, value) = match argument.text.split_once('=') {
            Some((spelling, value)) => (spelling, Some(value)),
            None => (argument.text.as_str(), None),
        };
        match self.find(spelling).or_else(|| self.abbreviated(spelling)) {
            Some(found) => self.give_or_wait(found, value, argument),
            None => self.invocation.unknown.push(argument),
        }
    }

    fn abbreviated(&self, spelling: &str) -> Option<Found> {
        let table = self.table();
        if !table.abbreviations || spelling.len() < 3 {
            return None;
        }
        // Two spellings of one option are as ambiguous as two options.
        let mut matching = table.options.iter().enumerate().flat_map(|(index, spec)| {
            let fits = spec.spellings.iter().filter(|it| it.starts_with(spelling));
            fits.map(move |_| index)
        });
        let first = matching.next()?;
        let level = self.invocation.levels.len() - 1;
        matching.next().is_none().then_some(Found { level, table, index: first })
    }

    fn short(&mut self, argument: &'a Field) {
        let text = argument.text.as_str();
        // `-d=` is a letter with the value `=`; only whole words have their value behind a sign.
        let (spelling, value) = match text.split_once('=') {
            Some((spelling, value)) if spelling.len() > 2 => (spelling, Some(value)),
            Some(_) | None => (text, None),
        };
        if let Some(found) = self.find(spelling) {
            return self.give_or_wait(found, value, argument);
        }
        let digits = text[1..].bytes().all(|it| it.is_ascii_digit());
        let level = self.invocation.levels.len() - 1;
        // Utilities take it in the first place only, subcommands (`git log`) anywhere.
        let fits = digits && (self.at == 1 || level > 0);
        if let Some(index) = self.table().habit.filter(|_| fits) {
            let found = Found { level, table: self.table(), index };
            return self.give(found, Some(&text[1..]), argument);
        }
        if self.table().words || !self.bundle(argument) {
            self.invocation.unknown.push(argument);
        }
    }

    /// `-abc`, `-n5`: all letters must be known, or none is taken.
    fn bundle(&mut self, argument: &'a Field) -> bool {
        let letters = &argument.text[1..];
        let mut found = Vec::with_capacity(letters.len());
        let mut value = None;
        for (at, letter) in letters.char_indices() {
            let mut spelling = [0; 8];
            spelling[0] = argument.text.as_bytes()[0];
            let length = 1 + letter.encode_utf8(&mut spelling[1..]).len();
            let Ok(spelling) = std::str::from_utf8(&spelling[..length]) else { return false };
            let Some(option) = self.find(spelling) else { return false };
            found.push(option);
            if option.spec().value != Value::None {
                let rest = &letters[at + letter.len_utf8()..];
                value = (!rest.is_empty()).then_some(rest);
                break;
            }
        }
        let last = found.pop();
        for option in found {
            self.give(option, None, argument);
        }
        if let Some(option) = last {
            self.give_or_wait(option, value, argument);
        }
        true
    }
}
