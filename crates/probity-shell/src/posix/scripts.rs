//! The languages inside utilities: scripts of `sed`, patterns of `grep`.

use super::{Checker, args::Arg, options::Parsed, rules::Rule};
use crate::{
    sed::{self, Address, Command, Syntax},
    tree::Span,
};

impl Checker<'_> {
    /// The scripts of `sed`, where they are known.
    pub(super) fn sed(&mut self, args: &[Arg<'_>], parsed: &Parsed<'_>) {
        let syntax = match has_letter(args, "Er") || has_word(args, "--regexp-extended") {
            true => Syntax::Extended,
            false => Syntax::Basic,
        };
        let mut elsewhere = has_letter(args, "f") || parsed.open;
        for given in parsed.given.iter().filter(|it| it.letter == 'e') {
            elsewhere = true;
            if let Some(script) = given.value {
                self.sed_script(script, syntax, given.span);
            }
        }
        if has_word(args, "--expression") || has_word(args, "--file") {
            return;
        }
        if let Some(first) = parsed.operands.first().filter(|_| !elsewhere)
            && let Some(script) = first.value()
        {
            self.sed_script(script, syntax, first.span());
        }
    }

    fn sed_script(&mut self, script: &str, syntax: Syntax, span: Span) {
        let Some(commands) = sed::read(script) else { return };
        let mut said: Vec<String> = Vec::new();
        for command in &commands {
            for (what, instead) in foreign_parts(command, self.is_2017()) {
                if !said.contains(&what) {
                    let message = format!("`sed` of the standard has no {what}");
                    self.report_with(Rule::SedScript, span, message, Some(instead));
                    said.push(what);
                }
            }
            let addresses = [command.first, command.second].into_iter().flatten();
            for address in addresses {
                if let Address::Pattern { text, mark, .. } = address {
                    self.pattern(text, mark, syntax, span);
                }
            }
            if command.name == 's' {
                self.pattern(command.pattern, command.mark, syntax, span);
            }
        }
    }

    /// The patterns of `grep`.
    pub(super) fn grep(&mut self, args: &[Arg<'_>], parsed: &Parsed<'_>) {
        let long = args.iter().any(|it| it.text.starts_with("--") && it.text.contains("regexp"));
        if has_letter(args, "EFPf") || long || has_word(args, "--fixed-strings") || parsed.open {
            return;
        }
        let mut given = false;
        for option in parsed.given.iter().filter(|it| it.letter == 'e') {
            given = true;
            if let Some(pattern) = option.value {
                self.pattern(pattern, '\n', Syntax::Basic, option.span);
            }
        }
        if let Some(first) = parsed.operands.first().filter(|_| !given)
            && let Some(pattern) = first.value()
        {
            self.pattern(pattern, '\n', Syntax::Basic, first.span());
        }
    }

    fn pattern(&mut self, pattern: &str, mark: char, syntax: Syntax, span: Span) {
        let Some(escaped) = sed::foreign_escape(pattern, mark, syntax) else { return };
        let message = format!("`\\{escaped}` means different things to different implementations");
        let instead = match escaped {
            '+' => "`\\{1,\\}`, or an extended expression",
            '?' => "`\\{0,1\\}`, or an extended expression",
            '|' => "several expressions, or an extended one",
            'w' => "`[[:alnum:]_]`",
            'W' => "`[^[:alnum:]_]`",
            's' => "`[[:space:]]`",
            'S' => "`[^[:space:]]`",
            _ => "the characters that may stand there, such as `[^[:alnum:]_]`",
        };
        self.report_with(Rule::RegularExpression, span, message, Some(instead));
    }

    /// The types of `od -t`.
    pub(super) fn od(&mut self, parsed: &Parsed<'_>) {
        self.values(parsed, "t", is_od_type, "the type without `z`");
    }
}

/// Whether a word of options holds one of these letters. A letter of another option's value counts too, which only makes us
/// say less.
fn has_letter(args: &[Arg<'_>], letters: &str) -> bool {
    let options = args.iter().skip(1).filter(|it| it.text.starts_with('-'));
    options
        .filter(|it| !it.text.starts_with("--"))
        .any(|it| it.text.contains(|letter| letters.contains(letter)))
}

fn has_word(args: &[Arg<'_>], option: &str) -> bool {
    args.iter().any(|it| it.text.starts_with(option))
}

/// What a command has that the standard lacks, and what to write instead.
fn foreign_parts(command: &Command<'_>, is_2017: bool) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    let mut say = |what: String, instead: &'static str| found.push((what, instead));
    for address in [command.first, command.second].into_iter().flatten() {
        match address {
            Address::Step(text) => {
                say(format!("address `{text}`"), "`awk` and `NR % 2`");
            }
            Address::Relative(text) => {
                say(format!("address `,{text}`"), "a number or a pattern, or `awk`");
            }
            Address::Pattern { modifiers, .. } if !modifiers.is_empty() => {
                say(format!("`{modifiers}` after an address"), "brackets: `/[aA][bB]/`");
            }
            Address::Line(_) | Address::Last | Address::Pattern { .. } => {}
        }
    }
    if command.first == Some(Address::Line("0")) {
        say("line `0`".to_owned(), "`1,/RE/`");
    }
    match command.name {
        'e' => say("command `e`".to_owned(), "`sh`, with the commands that `sed` prints"),
        'F' => say("command `F`".to_owned(), "print the name with `printf`"),
        'z' => say("command `z`".to_owned(), "`s/.*//`"),
        'Q' => say("command `Q`".to_owned(), "`q`, with `-n` and `p`"),
        'T' => say("command `T`".to_owned(), "`t` and `b`"),
        'R' => say("command `R`".to_owned(), "`paste`"),
        'W' => say("command `W`".to_owned(), "`w` after `P`, or `awk`"),
        'v' => say("command `v`".to_owned(), "leave it out"),
        'L' => say("command `L`".to_owned(), "`fmt` or `fold`"),
        'a' | 'c' | 'i' if command.same_line => {
            let what = format!("text on the same line as `{}`", command.name);
            say(what, "a backslash, and the text on the next line");
        }
        's' => {
            for flag in command.flags.chars() {
                let what = || format!("flag `{flag}` of `s`");
                match flag {
                    'I' if !is_2017 => say(what(), "`i`"),
                    'I' | 'i' if is_2017 => say(what(), "brackets: `[aA][bB]`"),
                    'e' | 'm' | 'M' => say(what(), "leave it out"),
                    _ => {}
                }
            }
            if let Some(letter) = case_change(command.replacement) {
                let what = format!("`\\{letter}` in a replacement");
                say(what, "`tr '[:lower:]' '[:upper:]'`, `y`, or `awk` with `toupper`");
            }
        }
        _ => {}
    }
    found
}

/// `\U`, `\L`, `\u`, `\l` and `\E` in a replacement.
fn case_change(replacement: &str) -> Option<char> {
    let mut characters = replacement.chars();
    while let Some(next) = characters.next() {
        if next == '\\' {
            let escaped = characters.next()?;
            if matches!(escaped, 'U' | 'L' | 'u' | 'l' | 'E') {
                return Some(escaped);
            }
        }
    }
    None
}

/// `x1`, `d2o2`, `c`: types with the sizes of the standard.
fn is_od_type(types: &str) -> bool {
    let mut rest = types;
    while let Some(kind) = rest.chars().next() {
        rest = &rest[kind.len_utf8()..];
        rest = match kind {
            'a' | 'c' => rest,
            'd' | 'o' | 'u' | 'x' | 'f' => {
                let sizes = if kind == 'f' { "FDL" } else { "CSIL" };
                let digits = rest.trim_start_matches(|it: char| it.is_ascii_digit());
                match digits.len() < rest.len() {
                    true => digits,
                    false => rest.strip_prefix(|it| sizes.contains(it)).unwrap_or(rest),
                }
            }
            _ => return false,
        };
    }
    !types.is_empty()
}
