//! A simple command: which utility it is, and who else looks at its words.

use super::{
    Checker, MAX_NESTED, MAX_WRAPPED, UnknownUtility, Unless,
    args::Arg,
    foreign::{self, Wrapper},
    options::Parsed,
    rules::Rule,
    standard::{self, Handler, Utility},
};
use crate::{
    Script,
    tree::{Span, Text},
};

/// Where programs of the system are: `/bin/ls` is `ls`, `./ls` may be anything.
const BIN: &[&str] =
    &["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/usr/xpg4/bin/"];

impl Checker<'_> {
    /// Looks at a command; the first word is its name.
    pub(super) fn command(&mut self, args: &[Arg<'_>]) {
        let Some(name) = args.first().and_then(Arg::value).and_then(utility_name) else { return };
        if self.wrapped >= MAX_WRAPPED {
            return;
        }
        let outer = self.command.replace(Text::new(name));
        self.wrapped += 1;
        self.named(name, args);
        self.wrapped -= 1;
        self.command = outer;
    }

    fn named(&mut self, name: &str, args: &[Arg<'_>]) {
        if let Some(utility) = standard::lookup(name, self.edition) {
            return self.utility(name, utility, args);
        }
        if let Some(instead) = foreign::builtin(name) {
            return self.foreign_builtin(name, instead, args);
        }
        let unless = self.command.clone().map_or(Unless::Never, Unless::Defined);
        let span = args[0].span();
        self.unknown.push((UnknownUtility { name: name.to_owned(), span }, unless));
        if let Some(wrapper) = foreign::wrapper(name) {
            self.command(wrapped(wrapper, args));
        }
    }

    fn foreign_builtin(&mut self, name: &str, instead: &str, args: &[Arg<'_>]) {
        let rule = match name {
            "local" => Rule::Local,
            "declare" | "typeset" => Rule::Declare,
            "let" => Rule::Let,
            "source" => Rule::Source,
            _ => Rule::Builtin,
        };
        let message = format!("`{name}` is a builtin of other shells");
        self.report_with(rule, args[0].span(), message, Some(instead));
        match name {
            "builtin" => self.command(&args[1..]),
            "local" | "declare" | "typeset" => self.declared(&args[1..]),
            _ => {}
        }
    }

    fn utility(&mut self, name: &str, utility: &'static Utility, args: &[Arg<'_>]) {
        let parsed = match utility.handler.reads_words_itself() {
            true => Parsed::nothing(),
            false => self.options(name, utility, args),
        };
        match utility.handler {
            Handler::Alias => self.aliases(parsed.operands),
            Handler::Awk => self.awk(&parsed),
            Handler::Date => self.date(parsed.operands),
            Handler::Dd => self.dd(parsed.operands),
            Handler::Declare => {
                self.declared(parsed.operands);
                self.declared_arrays(parsed.operands);
            }
            Handler::Dot => self.dot(&parsed),
            Handler::Echo => self.echo(utility, args),
            Handler::Eval => self.eval(parsed.operands),
            Handler::Expr => self.expr(utility, args),
            Handler::Find => self.find(utility, args),
            Handler::Getopts => self.getopts(parsed.operands),
            Handler::Grep => self.grep(args, &parsed),
            Handler::Head => self.head(&parsed),
            Handler::Ignore => self.about(name, utility, args),
            Handler::Kill => self.kill(utility, args),
            Handler::Od => self.od(&parsed),
            Handler::Printf => self.printf(parsed.operands),
            Handler::Ps => self.ps(&parsed),
            Handler::Read => self.read(&parsed),
            Handler::Sed => self.sed(args, &parsed),
            Handler::Set | Handler::Sh => self.shell(name, &parsed),
            Handler::Sleep => self.sleep(parsed.operands),
            Handler::Sort => self.sort(utility, &parsed),
            Handler::Split => self.split(&parsed),
            Handler::Status => self.status(args),
            Handler::Tail => self.obsolete_number(name, utility, parsed.operands),
            Handler::Test => self.condition(name, utility, args),
            Handler::Touch => self.touch(&parsed),
            Handler::Trap => self.trap(&parsed),
            Handler::Unset => self.declared_arrays(parsed.operands),
            Handler::Chmod | Handler::Command | Handler::Env | Handler::Plain | Handler::Stty => {}
        }
        if let Some(skip) = utility.wraps {
            self.wrapped(utility, skip, &parsed);
        }
    }

    fn wrapped(&mut self, utility: &'static Utility, skip: usize, parsed: &Parsed<'_>) {
        if utility.handler == Handler::Command && (parsed.has('v') || parsed.has('V')) {
            return;
        }
        let mut operands = parsed.operands;
        if utility.handler == Handler::Env {
            while operands.first().is_some_and(|it| it.text.contains('=')) {
                operands = &operands[1..];
            }
        }
        self.command(operands.get(skip..).unwrap_or_default());
    }

    /// A text that the command hands to a shell.
    pub(super) fn nested(&mut self, arg: &Arg<'_>) {
        let Some(text) = arg.value() else { return };
        // Without quotes removed, a place in the text is a place in the script.
        let span = arg.span();
        let raw = span.of(self.source);
        let shift =
            raw.find(text).filter(|_| raw.len() - text.len() <= 2).map(|at| span.start + at);
        self.nested_text(text, |inner| match shift {
            Some(shift) => Span { start: inner.start + shift, end: inner.end + shift },
            None => span,
        });
    }

    fn nested_text(&mut self, text: &str, place: impl Fn(Span) -> Span) {
        if self.nested >= MAX_NESTED {
            return;
        }
        // What does not parse is not known to be shell text.
        let Ok(script) = Script::parse(text) else { return };
        let mut inner = Checker::new(text, self.edition, self.nested + 1);
        inner.statements(&script.body);
        let report = inner.finish();
        for mut violation in report.violations {
            violation.span = place(violation.span);
            self.violations.push((violation, Unless::Never));
        }
        for mut unknown in report.unknown_utilities {
            unknown.span = place(unknown.span);
            let unless = Unless::Defined(Text::new(&unknown.name));
            self.unknown.push((unknown, unless));
        }
    }

    fn eval(&mut self, operands: &[Arg<'_>]) {
        match operands {
            [] => {}
            [only] => self.nested(only),
            [first, .., last] => {
                let words: Option<Vec<&str>> = operands.iter().map(Arg::value).collect();
                let Some(words) = words else { return };
                let span = first.span().to(last.span());
                self.nested_text(&words.join(" "), |_| span);
            }
        }
    }

    /// `--help` alone, of a utility that takes anything else as data.
    pub(super) fn about(&mut self, name: &str, utility: &'static Utility, args: &[Arg<'_>]) {
        if let [_, only] = args
            && (only.is("--help") || only.is("--version"))
        {
            self.long_option(name, utility, only);
        }
    }
}

/// The command that a wrapper outside the standard runs. Its own long options are stepped over.
fn wrapped<'a>(wrapper: Wrapper, args: &'a [Arg<'a>]) -> &'a [Arg<'a>] {
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        if arg.is("--") {
            at += 1;
            break;
        }
        if !arg.text.starts_with('-') {
            // `sudo NAME=value command`
            if arg.text.contains('=') {
                at += 1;
                continue;
            }
            break;
        }
        at += 1;
        let mut letters = arg.text[1..].chars().peekable();
        while let Some(letter) = letters.next() {
            if standard::takes_value(wrapper.letters, letter) {
                at += usize::from(letters.peek().is_none() && arg.literal);
                break;
            }
        }
    }
    args.get(at + wrapper.skip..).unwrap_or_default()
}

/// The utility that a command word names, if it can be known.
fn utility_name(word: &str) -> Option<&str> {
    if !word.contains('/') {
        return (!word.is_empty() && word != "!").then_some(word);
    }
    let name = BIN.iter().find_map(|folder| word.strip_prefix(folder))?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}
