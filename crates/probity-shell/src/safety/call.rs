//! A program with its arguments, each told apart: option, value, operand.

use std::cell::OnceCell;

use super::{
    data::{self, Tool},
    pattern::{self, Gives, OneOption, OptionPattern, gives},
    target::{self, Classes},
};
use crate::{field::Field, tree::Span};

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `-f`, `--force`, `-X`.
    Option,
    /// The value of the option before it.
    Value,
    /// A word after an option of which it is not known whether it takes a value.
    Maybe,
    /// Anything else.
    Word,
}

/// An argument.
#[derive(Debug, Clone)]
pub(super) struct Arg<'a> {
    pub(super) text: &'a str,
    pub(super) span: Span,
    pub(super) kind: Kind,
    classes: OnceCell<Classes>,
}

/// A program with its arguments.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// The base name.
    pub(super) name: &'a str,
    pub(super) args: Vec<Arg<'a>>,
    /// From the program to its last argument.
    pub(super) span: Span,
    /// The directory it runs in, if the text says.
    pub(super) cwd: &'a str,
    pub(super) tool: Option<&'static Tool>,
    /// Whether its rules name subcommands.
    subcommands: bool,
    /// Whether operands follow a `--`.
    dashes: bool,
}

/// Whether an option makes a program tell instead of do.
fn is_telling(option: &str) -> bool {
    let (name, value) = match option.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    };
    let telling = matches!(
        name.trim_start_matches('-'),
        "help"
            | "dry-run"
            | "dryrun"
            | "dry_run"
            | "what-if"
            | "whatif"
            | "noop"
            | "no-op"
            | "just-print"
            | "simulate"
            | "no-act"
            | "list-only"
            | "validate-only"
            | "no-execute-changeset"
    );
    telling && !value.is_some_and(pattern::switches_off)
}

impl<'a> Call<'a> {
    /// Reads `arguments`. With `subcommands`, a `--` before the first word says nothing.
    pub(super) fn read(
        name: &'a str,
        arguments: &'a [Field],
        subcommands: bool,
        place: (Span, &'a str),
    ) -> Self {
        let tool = data::tool(name);
        let mut args = Vec::with_capacity(arguments.len());
        let mut next = Kind::Word;
        let (mut dashes, mut words, mut behind) = (false, 0, false);
        for field in arguments {
            let text = field.text.as_str();
            let is_option =
                text.len() > 1 && text.starts_with('-') && !dashes && next != Kind::Value;
            if is_option && text == "--" {
                dashes = !(subcommands && words == 0);
                next = Kind::Word;
                continue;
            }
            behind |= dashes;
            let kind = match is_option {
                true => Kind::Option,
                false => next,
            };
            words += usize::from(kind == Kind::Word);
            // `sudo ls -s`: the option is not that of sudo.
            dashes |= words > 0 && tool.is_some_and(|it| it.options_first);
            next = match kind {
                Kind::Option => after(text, tool),
                Kind::Value | Kind::Maybe | Kind::Word => Kind::Word,
            };
            args.push(Arg { text, span: field.span, kind, classes: OnceCell::new() });
        }
        Self { name, args, span: place.0, cwd: place.1, tool, subcommands, dashes: behind }
    }

    /// Operands from an argument on.
    pub(super) fn operands(&self, from: usize) -> impl DoubleEndedIterator<Item = &Arg<'a>> {
        let rest = self.args.get(from..).unwrap_or_default();
        rest.iter().filter(|it| matches!(it.kind, Kind::Word | Kind::Maybe))
    }

    /// Where an operand points.
    pub(super) fn classes(&self, arg: &Arg<'_>) -> Classes {
        *arg.classes.get_or_init(|| target::classify(arg.text, self.cwd))
    }

    /// Whether one of the options is given, with its value if the pattern asks for one.
    pub(super) fn has(&self, options: &OptionPattern) -> bool {
        options.0.iter().any(|it| self.has_option(it))
    }

    fn has_option(&self, option: &OneOption) -> bool {
        if self.dashes && option.spellings.iter().any(|it| **it == *"--") {
            return true;
        }
        self.values(&option.spellings).any(|given| match &option.value {
            Some(wanted) => given.is_some_and(|it| wanted.matches(it)),
            None => !given.is_some_and(pattern::switches_off),
        })
    }

    /// Whether an option spelled like one of these is given.
    pub(super) fn has_any(&self, spellings: &[&str]) -> bool {
        self.values(spellings).next().is_some()
    }

    /// The value of the first option spelled like one of these.
    pub(super) fn value(&self, spellings: &[&str]) -> Option<&'a str> {
        self.values(spellings).flatten().next()
    }

    /// The values of all options spelled like one of these; the word after it stands for a value that is not attached.
    pub(super) fn values<S: AsRef<str>>(
        &self,
        spellings: &[S],
    ) -> impl Iterator<Item = Option<&'a str>> {
        let abbreviations = self.tool.is_some_and(|it| it.abbreviations);
        let globals = match self.tool.is_some_and(|it| it.globals_first) {
            true => self.args.iter().position(|it| it.kind == Kind::Word).unwrap_or(0),
            false => 0,
        };
        self.args
            .iter()
            .enumerate()
            .skip(globals)
            .filter(|(_, arg)| arg.kind == Kind::Option)
            .filter_map(move |(at, arg)| {
                let bundle = self.bundle(arg.text);
                let found = spellings.iter().map(|it| match it.as_ref() {
                    letter if letter.len() == 2 => gives_letter(arg.text, bundle, letter),
                    word => gives(arg.text, word, abbreviations),
                });
                match found.filter(|it| *it != Gives::No).max_by_key(|it| *it == Gives::Bare)? {
                    Gives::No => None,
                    Gives::Attached(value) => Some(Some(value)),
                    Gives::Bare => {
                        let next = self.args.get(at + 1).filter(|it| it.kind != Kind::Option);
                        Some(next.map(|it| it.text))
                    }
                }
            })
    }

    /// The letters of an argument up to the first that takes a value: in `-cfeature` only `c` is an option.
    fn bundle(&self, text: &'a str) -> &'a str {
        let values = self.tool.map(|it| it.values.as_slice()).unwrap_or_default();
        if text.starts_with("--") || values.is_empty() {
            return text;
        }
        let takes = |letter: char| values.iter().any(|it| it.len() == 2 && it.ends_with(letter));
        match text.char_indices().skip(1).find(|(_, letter)| takes(*letter)) {
            Some((at, letter)) => &text[..at + letter.len_utf8()],
            None => text,
        }
    }

    /// Whether it only tells what it would do, or prints its help.
    pub(super) fn is_harmless(&self) -> bool {
        let told = |arg: &Arg<'_>| arg.kind == Kind::Option && is_telling(arg.text);
        let is_help = |arg: Option<&Arg<'_>>| arg.is_some_and(|it| it.text == "help");
        // `--version 5` names a version.
        let version = |(at, arg): (usize, &Arg<'_>)| {
            arg.text == "--version"
                && arg.kind == Kind::Option
                && self.args.get(at + 1).is_none_or(|it| it.kind == Kind::Option)
        };
        self.args.iter().any(told)
            || self.args.iter().enumerate().any(version)
            || is_help(self.operands(0).next())
            || is_help(self.operands(0).next_back())
            || (self.args.len() == 1 && matches!(self.args[0].text, "-h" | "-V" | "-?"))
            || (self.subcommands && self.args.last().is_some_and(|it| it.text == "-h"))
    }
}

/// As [`gives`], for one letter: it must stand in the bundle, and its value may go beyond it.
fn gives_letter<'a>(text: &'a str, bundle: &str, letter: &str) -> Gives<'a> {
    match gives(bundle, letter, false) {
        Gives::No => Gives::No,
        Gives::Bare | Gives::Attached(_) => gives(text, letter, false),
    }
}

fn after(option: &str, tool: Option<&Tool>) -> Kind {
    let values = tool.map(|it| it.values.as_slice()).unwrap_or_default();
    if values.iter().any(|it| **it == *option) {
        return Kind::Value;
    }
    let takes = |letter: char| values.iter().any(|it| it.len() == 2 && it.ends_with(letter));
    let letter = match option.starts_with("--") {
        true => None,
        false => option.char_indices().skip(1).find(|(_, letter)| takes(*letter)),
    };
    match letter {
        Some((at, letter)) if at + letter.len_utf8() == option.len() => Kind::Value,
        // `-Cdir`: the value is attached.
        Some(_) => Kind::Word,
        None if option.contains('=') => Kind::Word,
        None => Kind::Maybe,
    }
}
