//! Builtins: what they take beyond options.

use super::{
    Checker,
    args::Arg,
    options::{Parsed, is_number},
    rules::Rule,
    standard::Utility,
    syntax::is_name,
};
use crate::tree::{Part, Quoting, Span, Text};

/// Signals of the standard, without `SIG`.
const SIGNALS: &[&str] = &[
    "ABRT", "ALRM", "BUS", "CHLD", "CONT", "FPE", "HUP", "ILL", "INT", "KILL", "PIPE", "POLL",
    "PROF", "QUIT", "SEGV", "STOP", "SYS", "TERM", "TRAP", "TSTP", "TTIN", "TTOU", "URG", "USR1",
    "USR2", "VTALRM", "WINCH", "XCPU", "XFSZ",
];

/// Conditions of `trap` that other shells have.
const FOREIGN_CONDITIONS: &[&str] = &["DEBUG", "ERR", "RETURN", "ZERR"];

/// What `set -o` takes.
const SHELL_OPTIONS: &[&str] = &[
    "allexport",
    "errexit",
    "ignoreeof",
    "monitor",
    "noclobber",
    "noexec",
    "noglob",
    "nolog",
    "notify",
    "nounset",
    "verbose",
    "vi",
    "xtrace",
];

impl Checker<'_> {
    pub(super) fn echo(&mut self, utility: &'static Utility, args: &[Arg<'_>]) {
        self.about("echo", utility, args);
        let first = args.get(1).and_then(Arg::value).and_then(|it| it.strip_prefix('-'));
        if let Some(letters) = first.filter(|it| !it.is_empty())
            && letters.chars().all(|it| "neE".contains(it))
        {
            let key = ["e", "n", "E"].into_iter().find(|it| letters.contains(it)).unwrap_or("e");
            let message = format!("`echo` of the standard has no option `-{key}`");
            let instead = utility.instead(&format!("-{key}"));
            return self.report_with(Rule::EchoOption, args[1].span(), message, instead);
        }
        for arg in args.iter().skip(1) {
            if arg.word.parts.iter().any(has_echo_escape) {
                self.report(Rule::EchoEscape, arg.span());
            }
        }
    }

    pub(super) fn read(&mut self, parsed: &Parsed<'_>) {
        for arg in parsed.operands.iter().filter(|it| it.literal) {
            self.note_assigned(&arg.text, arg.span());
        }
        if parsed.operands.is_empty() && !parsed.open {
            self.report(Rule::ReadName, parsed.name_span);
        }
    }

    pub(super) fn shell(&mut self, name: &str, parsed: &Parsed<'_>) {
        for given in parsed.given.iter().filter(|it| it.letter == 'o') {
            let Some(option) = given.value else { continue };
            let later = option == "pipefail";
            if SHELL_OPTIONS.contains(&option) || later && !self.is_2017() {
                continue;
            }
            let message = match later {
                true => format!("`{name} -o pipefail` came with POSIX.1-2024"),
                false => format!("the standard has no option `{option}` of the shell"),
            };
            let instead = match option {
                "pipefail" => Some("keep the status in a file, or use no pipe"),
                "emacs" => Some("`set -o vi`, or leave it out"),
                _ => None,
            };
            self.report_with(Rule::ShellOption, given.span, message, instead);
        }
        if name == "sh"
            && parsed.has('c')
            && let Some(text) = parsed.operands.first()
        {
            self.nested(text);
        }
    }

    pub(super) fn dot(&mut self, parsed: &Parsed<'_>) {
        if let [_, extra, ..] = parsed.operands {
            self.report(Rule::DotArguments, extra.span());
        }
    }

    /// `export NAME=value`: the text gives the variable a value of its own.
    pub(super) fn declared(&mut self, operands: &[Arg<'_>]) {
        for arg in operands {
            if let Some((name, _)) = arg.text.split_once('=') {
                self.note_assigned(name, arg.span());
            }
        }
    }

    /// `export a+=1`, `unset 'a[1]'`, `export +x a`.
    pub(super) fn declared_arrays(&mut self, operands: &[Arg<'_>]) {
        for arg in operands {
            if arg.text.starts_with('+') {
                let message = format!("`{}` is not an option of the standard", arg.text);
                self.report_with(Rule::Option, arg.span(), message, Some("leave it out"));
            }
            let target = arg.text.split('=').next().unwrap_or_default();
            if let Some(name) = target.strip_suffix('+').filter(|it| is_name(it))
                && arg.text.len() > target.len()
            {
                let instead = format!("`{name}=\"${{{name}}}more\"`");
                let message = Rule::AppendAssignment.text().says.clone();
                self.report_with(Rule::AppendAssignment, arg.span(), message, Some(&instead));
            }
            if target
                .split_once('[')
                .is_some_and(|(name, rest)| is_name(name) && rest.ends_with(']'))
            {
                self.report(Rule::ArrayElement, arg.span());
            }
        }
    }

    pub(super) fn aliases(&mut self, operands: &[Arg<'_>]) {
        for arg in operands {
            if let Some((name, _)) = arg.text.split_once('=') {
                self.defined.push(Text::new(name));
            }
        }
    }

    pub(super) fn getopts(&mut self, operands: &[Arg<'_>]) {
        if let Some(arg) = operands.get(1).filter(|it| it.literal) {
            self.note_assigned(&arg.text, arg.span());
        }
    }

    pub(super) fn status(&mut self, args: &[Arg<'_>]) {
        let operand = args.iter().skip(1).find(|it| !it.is("--"));
        let Some(operand) = operand else { return };
        let Some(text) = operand.value() else { return };
        let negative = text.strip_prefix('-').is_some_and(is_number);
        let large = is_number(text) && text.parse::<u32>().map_or(true, |it| it > 255);
        if negative || large {
            let message = format!("`{text}` is not an exit status of the standard");
            self.report_with(Rule::ExitStatus, operand.span(), message, None);
        }
    }

    pub(super) fn trap(&mut self, parsed: &Parsed<'_>) {
        let [first, rest @ ..] = parsed.operands else { return };
        let numeric = first.value().is_some_and(is_number);
        if !numeric && !parsed.has('p') && !first.is("-") {
            self.nested(first);
        }
        let conditions = if numeric || parsed.has('p') { parsed.operands } else { rest };
        for condition in conditions {
            let Some(name) = condition.value() else { continue };
            if FOREIGN_CONDITIONS.iter().any(|it| it.eq_ignore_ascii_case(name)) {
                let message = format!("`{name}` is not a condition of `trap` in the standard");
                self.report_with(Rule::TrapCondition, condition.span(), message, None);
            } else {
                self.signal(name, condition.span());
            }
        }
    }

    /// A signal's name, which is written in capitals and without `SIG`.
    fn signal(&mut self, name: &str, span: Span) {
        let Some(plain) = plain_signal(name) else { return };
        if plain != name {
            let message = format!("`{name}`: signals are named in capitals and without `SIG`");
            let instead = format!("`{plain}`");
            self.report_with(Rule::SignalName, span, message, Some(&instead));
        }
    }

    pub(super) fn kill(&mut self, utility: &'static Utility, args: &[Arg<'_>]) {
        let Some(first) = args.get(1) else { return };
        let Some(option) = first.text.strip_prefix('-') else { return };
        if is_number(option) || option.is_empty() || !first.literal {
            return;
        }
        // `-TERM` looks like a word of options and is a signal; `-s` and `-l` are options.
        if plain_signal(option).is_some() {
            return self.signal(option, first.span());
        }
        let parsed = self.options("kill", utility, args);
        for given in &parsed.given {
            if given.letter == 's'
                && let Some(name) = given.value
            {
                self.signal(name, given.span);
            }
        }
    }

    pub(super) fn printf(&mut self, operands: &[Arg<'_>]) {
        let Some(format) = operands.first() else { return };
        if let Some(conversion) = foreign_conversion(&format.text) {
            let message = format!("`printf` of the standard has no conversion `{conversion}`");
            let instead = match conversion {
                "%q" | "%Q" => {
                    "quote with `sed`: `printf '%s\\n' \"$x\" | sed \"s/'/'\\\\\\\\''/g; 1s/^/'/; \\$s/\\$/'/\"`"
                }
                _ => "`date +FORMAT`",
            };
            self.report_with(Rule::PrintfFormat, format.span(), message, Some(instead));
        }
        if has_printf_escape(&format.text) {
            self.report(Rule::PrintfEscape, format.span());
        }
    }
}

/// The name as the standard writes it, of any way to write a signal.
fn plain_signal(name: &str) -> Option<&'static str> {
    let prefix = name.get(..3).filter(|it| it.eq_ignore_ascii_case("SIG"));
    let plain = if prefix.is_some() { &name[3..] } else { name };
    let found = SIGNALS.iter().find(|it| it.eq_ignore_ascii_case(plain)).copied();
    found.or_else(|| plain.eq_ignore_ascii_case("EXIT").then_some("EXIT"))
}

fn has_echo_escape(part: &Part) -> bool {
    match part {
        Part::Text { text, quoting, .. } => {
            *quoting != Quoting::Ansi && escapes(text).any(|it| "abcEefnrtv0".contains(it))
        }
        Part::Parameter(_)
        | Part::Command(_)
        | Part::Arithmetic(_)
        | Part::Process(_)
        | Part::Array(_) => false,
    }
}

/// The characters after backslashes, as a utility reads them.
fn escapes(text: &str) -> impl Iterator<Item = char> + '_ {
    let mut chars = text.chars();
    std::iter::from_fn(move || {
        chars.find(|it| *it == '\\')?;
        chars.next()
    })
}

fn has_printf_escape(format: &str) -> bool {
    escapes(format).any(|it| matches!(it, 'x' | 'e' | 'E' | 'u' | 'U'))
}

/// `%q` and `%(...)T`.
fn foreign_conversion(format: &str) -> Option<&'static str> {
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        rest = &rest[at + 1..];
        let conversion =
            rest.trim_start_matches(|it: char| "-+ #0.*$".contains(it) || it.is_ascii_digit());
        let mut chars = conversion.chars();
        match chars.next() {
            Some('q') => return Some("%q"),
            Some('Q') => return Some("%Q"),
            Some('(') => return Some("%(...)T"),
            Some(_) => rest = chars.as_str(),
            None => return None,
        }
    }
    None
}
