//! Options of a command, read as `getopts` reads them.

use super::{
    Checker,
    args::Arg,
    rules::Rule,
    standard::{Handler, Letter, Utility},
};
use crate::{tree::Span, utility};

/// The options of a command and where its operands begin.
#[derive(Debug)]
pub(super) struct Parsed<'a> {
    /// Options of the standard that were given.
    pub(super) given: Vec<Given<'a>>,
    /// What is not an option: from the first operand on.
    pub(super) operands: &'a [Arg<'a>],
    /// Whether a word among the options could be anything.
    pub(super) open: bool,
    /// Where the command word stands.
    pub(super) name_span: Span,
}

/// An option that was given.
#[derive(Debug)]
pub(super) struct Given<'a> {
    /// Its letter.
    pub(super) letter: char,
    /// Its value, if it is known.
    pub(super) value: Option<&'a str>,
    /// Where it stands.
    pub(super) span: Span,
}

impl Parsed<'_> {
    /// No options and no operands.
    pub(super) fn nothing() -> Self {
        Parsed { given: Vec::new(), operands: &[], open: false, name_span: Span::default() }
    }

    /// Whether the option was given.
    pub(super) fn has(&self, letter: char) -> bool {
        self.given.iter().any(|it| it.letter == letter)
    }
}

impl Checker<'_> {
    /// Reads the arguments, and reports options that the standard lacks.
    pub(super) fn options<'a>(
        &mut self,
        name: &str,
        utility: &'static Utility,
        args: &'a [Arg<'a>],
    ) -> Parsed<'a> {
        let mut parsed = Parsed::nothing();
        parsed.name_span = args.first().map(Arg::span).unwrap_or_default();
        let mut first = None;
        let mut at = 1;
        while let Some(arg) = args.get(at) {
            at += 1;
            if arg.is("--") {
                first = first.or(Some(at));
                break;
            }
            if arg.is_open() {
                parsed.open = true;
            }
            if is_operand(utility.handler, arg) {
                // An unknown word may hold options; what follows it is read as if it did.
                if !arg.is_open() || utility.strict {
                    first = first.or(Some(at - 1));
                }
                if utility.strict {
                    break;
                }
                continue;
            }
            if arg.text.starts_with("--") {
                self.long_option(name, utility, arg);
                at += usize::from(arg.literal && takes_next_word(name, &arg.text));
                continue;
            }
            self.letters(name, utility, (args, &mut at), &mut parsed.given);
        }
        parsed.operands = args.get(first.unwrap_or(args.len())..).unwrap_or_default();
        parsed
    }

    /// One word of option letters; `at` is the place after it.
    fn letters<'a>(
        &mut self,
        name: &str,
        utility: &'static Utility,
        (args, at): (&'a [Arg<'a>], &mut usize),
        given: &mut Vec<Given<'a>>,
    ) {
        let arg = &args[*at - 1];
        let span = arg.span();
        let letters = arg.text.get(1..).unwrap_or_default();
        for (place, letter) in letters.char_indices() {
            let rest = &letters[place + letter.len_utf8()..];
            match utility.letter(letter, self.edition) {
                Letter::Flag => given.push(Given { letter, value: None, span }),
                Letter::Optional => {
                    return given.push(Given { letter, value: Some(rest), span });
                }
                Letter::Valued if !rest.is_empty() || !arg.literal => {
                    let value = arg.literal.then_some(rest);
                    return given.push(Given { letter, value, span });
                }
                Letter::Valued => {
                    let value = args.get(*at).and_then(Arg::value);
                    let to = args.get(*at).map_or(span, |it| span.to(it.span()));
                    *at += 1;
                    return given.push(Given { letter, value, span: to });
                }
                Letter::Later | Letter::Unknown if utility.unchecked => return,
                Letter::Unknown if utility.numbers && letter.is_ascii_digit() => return,
                Letter::Later => {
                    let message = format!("`-{letter}` of `{name}` came with POSIX.1-2024");
                    let instead = utility.instead(&format!("-{letter}"));
                    return self.report_with(Rule::Option, span, message, instead);
                }
                Letter::Unknown if letter.is_ascii_digit() && is_number(letters) => {
                    let message = format!("`{name}` of the standard has no option `{}`", arg.text);
                    let instead = utility.instead("-NUM").map(|it| it.replace("NUM", letters));
                    return self.report_with(Rule::Option, span, message, instead.as_deref());
                }
                Letter::Unknown => {
                    let option = format!("-{letter}");
                    let alone = rest.is_empty() && arg.literal;
                    *at += usize::from(alone && takes_next_word(name, &option));
                    let message = format!("`{name}` of the standard has no option `{option}`");
                    let instead = utility.instead(&option);
                    return self.report_with(Rule::Option, span, message, instead);
                }
            }
        }
    }

    pub(super) fn long_option(&mut self, name: &str, standard: &'static Utility, arg: &Arg<'_>) {
        let option = arg.text.split('=').next().unwrap_or_default();
        if option == "--" || standard.unchecked {
            return;
        }
        let message = format!("`{name}` of the standard has no long options, so no `{option}`");
        match self.short_form(name, standard, option) {
            Some(instead) => {
                self.report_with(Rule::LongOption, arg.span(), message, Some(&instead));
            }
            None => self.report_with(Rule::LongOption, arg.span(), message, None),
        }
    }

    /// What to write instead of a long option: our table's word for it, or the short option that means the same.
    fn short_form(&self, name: &str, standard: &'static Utility, option: &str) -> Option<String> {
        if let Some(instead) = standard.instead(option) {
            return Some(instead.to_owned());
        }
        let table = utility::lookup(name)?;
        let spec = table.options.get(table.option(option)?)?;
        let mut shorts = spec.spellings.iter().filter(|it| it.chars().count() == 2);
        let in_standard = |short: &str| {
            let letter = short.chars().nth(1).unwrap_or('-');
            matches!(
                standard.letter(letter, self.edition),
                Letter::Flag | Letter::Valued | Letter::Optional
            )
        };
        match shorts.clone().find(|short| in_standard(short)) {
            Some(short) => Some(format!("`{short}`")),
            None => shorts.find_map(|short| standard.instead(short)).map(str::to_owned),
        }
    }
}

/// Whether an option that the standard lacks takes the next word as its value, as far as our tables of utilities know:
/// in `xargs -P 4 rm` the command is `rm`.
fn takes_next_word(name: &str, option: &str) -> bool {
    utility::lookup(name).is_some_and(|table| {
        let spec = table.option(option).and_then(|index| table.options.get(index));
        spec.is_some_and(|it| it.value == utility::Value::Required)
    })
}

/// Whether a word is an operand by its looks.
fn is_operand(handler: Handler, arg: &Arg<'_>) -> bool {
    let text = &*arg.text;
    if !text.starts_with('-') || arg.is("-") {
        let shell = matches!(handler, Handler::Set | Handler::Sh);
        return !(shell && text.len() > 1 && text.starts_with('+'));
    }
    // `chmod -w file` takes permissions away, and `stty -echo` switches a mode off.
    let mode = || text[1..].chars().all(|it| "rwxXst".contains(it));
    handler == Handler::Chmod && mode() || handler == Handler::Stty && text.len() > 2
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}
