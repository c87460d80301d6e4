//! `find`: its paths and its expression.

use super::{Checker, Edition, args::Arg, options::is_number, rules::Rule, standard::Utility};

/// What follows a primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Primary {
    /// Nothing.
    Alone,
    /// One word.
    Valued,
    /// A command up to `;` or `+`.
    Command,
}

impl Checker<'_> {
    pub(super) fn find(&mut self, utility: &'static Utility, args: &[Arg<'_>]) {
        let mut at = 1;
        while let Some(arg) = args.get(at).filter(|it| is_find_option(&it.text)) {
            at += 1;
            if !matches!(&*arg.text, "-H" | "-L" | "--") {
                let option = &arg.text[..2];
                let message = format!("`find` of the standard has no option `{option}`");
                self.report_with(Rule::Option, arg.span(), message, utility.instead(option));
                at += usize::from(arg.is("-D"));
            }
        }
        let paths = at;
        while args.get(at).is_some_and(|it| !begins_expression(it)) {
            at += 1;
        }
        if let Some(first) = args.get(at).filter(|_| at == paths) {
            self.report(Rule::FindPath, first.span());
        }
        while let Some(arg) = args.get(at) {
            at += 1;
            let Some(name) = arg.value().filter(|it| it.starts_with('-')) else { continue };
            at += self.primary_of_find(name, arg, utility, &args[at..]);
        }
    }

    /// Looks at a primary; returns how many words belong to it.
    fn primary_of_find(
        &mut self,
        name: &str,
        arg: &Arg<'_>,
        utility: &'static Utility,
        rest: &[Arg<'_>],
    ) -> usize {
        let Some((primary, later)) = standard_primary(name) else {
            self.foreign_primary(name, arg, utility);
            return after_foreign(name, rest);
        };
        if later && self.edition == Edition::Posix2017 {
            let message = format!("`{name}` of `find` came with POSIX.1-2024");
            self.report_with(Rule::FindPrimary, arg.span(), message, utility.instead(name));
        }
        match primary {
            Primary::Alone if name == "-depth" => usize::from(self.find_depth(arg, rest.first())),
            Primary::Alone => 0,
            Primary::Valued => {
                if let Some(value) = rest.first() {
                    self.find_value(name, value, utility);
                }
                1
            }
            Primary::Command => {
                let length = command_length(rest);
                self.command(&rest[..length]);
                length + 1
            }
        }
    }

    /// BSD's `-depth 1`, which is not the `-depth` of the standard.
    fn find_depth(&mut self, arg: &Arg<'_>, value: Option<&Arg<'_>>) -> bool {
        let number = value
            .and_then(Arg::value)
            .filter(|it| is_number(it.strip_prefix(['+', '-']).unwrap_or(it)));
        let Some(number) = number else { return false };
        let message =
            format!("`-depth` of `find` in the standard takes no number, so no `{number}`");
        let instead = "`-prune`, as in `find . ! -name . -prune`";
        self.report_with(Rule::FindPrimary, arg.span(), message, Some(instead));
        true
    }

    fn foreign_primary(&mut self, name: &str, arg: &Arg<'_>, utility: &'static Utility) {
        let message = if name.starts_with("--") {
            format!("`find` of the standard has no long options, so no `{name}`")
        } else {
            format!("`{name}` is not a primary of `find` in the standard")
        };
        let key = if name.starts_with("-newer") { "-newermt" } else { name };
        let rule = if name.starts_with("--") { Rule::LongOption } else { Rule::FindPrimary };
        self.report_with(rule, arg.span(), message, utility.instead(key));
    }

    fn find_value(&mut self, name: &str, value: &Arg<'_>, utility: &'static Utility) {
        let Some(text) = value.value() else { return };
        let known = match name {
            "-perm" => !text.starts_with('/') && !text.strip_prefix('+').is_some_and(is_number),
            "-size" => {
                let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
                is_number(digits.strip_suffix('c').unwrap_or(digits))
            }
            "-type" => matches!(text, "b" | "c" | "d" | "f" | "l" | "p" | "s"),
            "-mtime" | "-atime" | "-ctime" | "-links" => {
                is_number(text.strip_prefix(['+', '-']).unwrap_or(text))
            }
            _ => true,
        };
        if !known {
            let message = format!("`{name} {text}` is not in the standard");
            let bytes = (name == "-size").then(|| size_in_bytes(text)).flatten();
            let instead = bytes.as_deref().or_else(|| utility.instead(name));
            self.report_with(Rule::OptionArgument, value.span(), message, instead);
        }
    }
}

fn is_find_option(text: &str) -> bool {
    matches!(text, "-H" | "-L" | "-P" | "-D" | "--") || text.starts_with("-O")
}

fn begins_expression(arg: &Arg<'_>) -> bool {
    arg.text.starts_with('-') && arg.text.len() > 1 || arg.is("!") || arg.is("(")
}

/// The primary, and whether it came with POSIX.1-2024.
fn standard_primary(name: &str) -> Option<(Primary, bool)> {
    Some(match name {
        "-a" | "-o" | "-depth" | "-nogroup" | "-nouser" | "-print" | "-prune" | "-xdev" => {
            (Primary::Alone, false)
        }
        "-mount" | "-print0" => (Primary::Alone, true),
        "-atime" | "-ctime" | "-group" | "-links" | "-mtime" | "-name" | "-newer" | "-path"
        | "-perm" | "-size" | "-type" | "-user" => (Primary::Valued, false),
        "-iname" => (Primary::Valued, true),
        "-exec" | "-ok" => (Primary::Command, false),
        _ => return None,
    })
}

/// `+10M` in the unit that the standard has.
fn size_in_bytes(size: &str) -> Option<String> {
    let sign = size.chars().next().filter(|it| matches!(it, '+' | '-'));
    let unsigned = size.strip_prefix(['+', '-']).unwrap_or(size);
    let digits = unsigned.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let unit: u64 = match &unsigned[digits.len()..] {
        "b" => 512,
        "w" => 2,
        "k" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(unit)?;
    Some(format!("`-size {}{bytes}c`", sign.map(String::from).unwrap_or_default()))
}

fn after_foreign(name: &str, rest: &[Arg<'_>]) -> usize {
    match name {
        "-execdir" | "-okdir" => command_length(rest) + 1,
        // `-mmin -5` has a value that looks like a primary.
        _ => usize::from(rest.first().is_some_and(|it| {
            it.text
                .strip_prefix('-')
                .is_some_and(|it| it.starts_with(|it: char| it.is_ascii_digit()))
        })),
    }
}

/// How many words stand before the `;` or the `+` after `{}`.
fn command_length(rest: &[Arg<'_>]) -> usize {
    let mut after_braces = false;
    for (at, arg) in rest.iter().enumerate() {
        if arg.is(";") || after_braces && arg.is("+") {
            return at;
        }
        after_braces = arg.text == "{}";
    }
    rest.len()
}
