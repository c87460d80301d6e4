//! Scripts of `sed`, read command by command: for what they run and write, and for what is outside the standard.

/// One command of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command<'s> {
    pub(crate) first: Option<Address<'s>>,
    pub(crate) second: Option<Address<'s>>,
    /// A `!` stands before it.
    pub(crate) negated: bool,
    pub(crate) name: char,
    /// What stands between the parts of `s` and `y`.
    pub(crate) mark: char,
    /// What is searched for, of `s`.
    pub(crate) pattern: &'s str,
    /// What is put in its place.
    pub(crate) replacement: &'s str,
    /// Letters and digits after it, without `w`.
    pub(crate) flags: &'s str,
    /// A file of `r`, `w` and `s///w`, a command of `e`, a text of `a`, `c` and `i`.
    pub(crate) operand: &'s str,
    /// Whether the text of `a`, `c` or `i` begins on the same line.
    pub(crate) same_line: bool,
}

/// Which lines a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Address<'s> {
    Line(&'s str),
    Last,
    Pattern {
        text: &'s str,
        /// What stands around it.
        mark: char,
        /// `I` and `M` after it.
        modifiers: &'s str,
    },
    /// `1~2`
    Step(&'s str),
    /// `,+3` and `,~4`
    Relative(&'s str),
}

impl Command<'_> {
    /// Whether it deletes every line.
    pub(crate) fn deletes_all(&self) -> bool {
        let all = |address: &Address<'_>| match address {
            Address::Pattern { text, .. } => {
                matches!(*text, "" | "^" | "$" | ".*" | "^.*$" | "^.*")
            }
            Address::Step(text) => *text == "1~1" || *text == "0~1",
            Address::Line(_) | Address::Last | Address::Relative(_) => false,
        };
        let addressed = match (&self.first, &self.second) {
            (None, _) | (Some(Address::Line("0" | "1")), Some(Address::Last)) => true,
            (Some(only), None) => all(only),
            (Some(_), Some(_)) => false,
        };
        self.name == 'd' && !self.negated && addressed
    }
}

/// The commands of a script; `None` if something in it is not understood.
pub(crate) fn read(script: &str) -> Option<Vec<Command<'_>>> {
    let mut reader = Reader { text: script, at: 0 };
    let mut commands = Vec::new();
    loop {
        reader.skip(|it| it.is_whitespace() || it == ';');
        match reader.peek() {
            None => return Some(commands),
            Some('#') => reader.skip(|it| it != '\n'),
            Some('}') => reader.at += 1,
            Some(_) => commands.push(reader.command()?),
        }
    }
}

struct Reader<'s> {
    text: &'s str,
    at: usize,
}

impl<'s> Reader<'s> {
    fn rest(&self) -> &'s str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn skip(&mut self, passes: impl Fn(char) -> bool) {
        self.take(passes);
    }

    fn take(&mut self, passes: impl Fn(char) -> bool) -> &'s str {
        let rest = self.rest();
        let length = rest.find(|it| !passes(it)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn blanks(&mut self) {
        self.skip(|it| matches!(it, ' ' | '\t'));
    }

    fn line(&mut self) -> &'s str {
        self.blanks();
        self.take(|it| it != '\n').trim_end()
    }

    fn command(&mut self) -> Option<Command<'s>> {
        let first = self.address(false)?;
        self.blanks();
        let mut second = None;
        if first.is_some() && self.peek() == Some(',') {
            self.at += 1;
            self.blanks();
            second = Some(self.address(true)??);
            self.blanks();
        }
        let negated = !self.take(|it| matches!(it, '!' | ' ' | '\t')).trim().is_empty();
        let name = self.next()?;
        let mut command = Command {
            first,
            second,
            negated,
            name,
            mark: '/',
            pattern: "",
            replacement: "",
            flags: "",
            operand: "",
            same_line: false,
        };
        match name {
            '{' => return Some(command),
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {}
            'l' | 'L' | 'q' | 'Q' => {
                self.blanks();
                self.skip(|it| it.is_ascii_digit());
            }
            'a' | 'c' | 'i' => {
                self.text(&mut command);
                return Some(command);
            }
            'r' | 'R' | 'w' | 'W' | 'e' => {
                command.operand = self.line();
                return Some(command);
            }
            ':' | 'b' | 't' | 'T' | 'v' => {
                self.blanks();
                command.operand = self.take(|it| !it.is_whitespace() && it != ';' && it != '}');
            }
            's' | 'y' => {
                let mark = self.next().filter(|it| !matches!(it, '\n' | '\\'))?;
                command.mark = mark;
                command.pattern = self.until(mark, name == 's')?;
                command.replacement = self.until(mark, false)?;
                command.flags = self.take(|it| it.is_ascii_digit() || "gpiImMe".contains(it));
                if self.peek() == Some('w') {
                    self.at += 1;
                    command.operand = self.line();
                    return Some(command);
                }
            }
            _ => return None,
        }
        self.blanks();
        let ends = self.peek().is_none_or(|it| matches!(it, ';' | '\n' | '\r' | '}' | '#'));
        ends.then_some(command)
    }

    /// An address, if one stands here; `None` if it is broken.
    #[expect(clippy::option_option, reason = "no address and a broken one are different things")]
    fn address(&mut self, is_second: bool) -> Option<Option<Address<'s>>> {
        let start = self.at;
        match self.peek() {
            Some('$') => {
                self.at += 1;
                Some(Some(Address::Last))
            }
            Some('0'..='9') => {
                let line = self.take(|it| it.is_ascii_digit());
                if self.peek() != Some('~') {
                    return Some(Some(Address::Line(line)));
                }
                self.at += 1;
                self.skip(|it| it.is_ascii_digit());
                Some(Some(Address::Step(&self.text[start..self.at])))
            }
            Some('+' | '~') if is_second => {
                self.at += 1;
                self.skip(|it| it.is_ascii_digit());
                Some(Some(Address::Relative(&self.text[start..self.at])))
            }
            Some(mark @ ('/' | '\\')) => {
                self.at += 1;
                let mark = if mark == '\\' { self.next()? } else { mark };
                let text = self.until(mark, true)?;
                let modifiers = self.take(|it| matches!(it, 'I' | 'M'));
                Some(Some(Address::Pattern { text, mark, modifiers }))
            }
            Some(_) | None => Some(None),
        }
    }

    /// Text up to a mark that no backslash and, in a pattern, no bracket hides.
    fn until(&mut self, mark: char, is_pattern: bool) -> Option<&'s str> {
        let start = self.at;
        let mut brackets = is_pattern;
        while let Some(next) = self.next() {
            match next {
                _ if next == mark => return Some(&self.text[start..self.at - mark.len_utf8()]),
                '\\' => {
                    self.next()?;
                }
                '[' if brackets => brackets = self.skip_bracket(),
                _ => {}
            }
        }
        None
    }

    /// Skips a bracket expression. Where nothing closes one, nothing closes those after it either, so that none is looked for
    /// again and reading stays linear.
    fn skip_bracket(&mut self) -> bool {
        let length = bracket(self.rest());
        self.at += length.unwrap_or(0);
        length.is_some()
    }

    /// The text of `a`, `c` and `i`: up to the end of a line without a backslash.
    fn text(&mut self, command: &mut Command<'s>) {
        self.blanks();
        if self.peek() == Some('\\') {
            self.at += 1;
            self.blanks();
            match self.peek() {
                Some('\n') => self.at += 1,
                Some(_) | None => command.same_line = true,
            }
        } else {
            command.same_line = !matches!(self.peek(), None | Some('}'));
        }
        let start = self.at;
        while let Some(next) = self.next() {
            match next {
                '\\' => {
                    self.next();
                }
                '\n' => break,
                _ => {}
            }
        }
        command.operand = self.text[start..self.at].trim_end();
    }
}

/// What a pattern is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    Basic,
    Extended,
}

/// The first escape of a pattern that the standard gives no meaning: `\+` in a basic one, `\w` in both.
///
/// `mark` is what stands around the pattern; behind a backslash it is itself.
pub(crate) fn foreign_escape(pattern: &str, mark: char, syntax: Syntax) -> Option<char> {
    let mut reader = Reader { text: pattern, at: 0 };
    let mut brackets = true;
    while let Some(next) = reader.next() {
        match next {
            '\\' => match reader.next()? {
                escaped if escaped == mark => {}
                escaped @ ('+' | '?' | '|') if syntax == Syntax::Basic => return Some(escaped),
                escaped @ ('w' | 'W' | 's' | 'S' | 'b' | 'B' | '<' | '>') => return Some(escaped),
                _ => {}
            },
            '[' if brackets => brackets = reader.skip_bracket(),
            _ => {}
        }
    }
    None
}

/// The length of what follows the `[` of a bracket expression, its `]` included; `None` if nothing closes it on its line.
fn bracket(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('^').unwrap_or(rest);
    let skipped = rest.len() - inner.len();
    let mut at = usize::from(inner.starts_with(']'));
    loop {
        let next = inner[at..].find(['[', ']', '\n'])?;
        let after = &inner[at + next..];
        if after.starts_with('\n') {
            return None;
        }
        if after.starts_with(']') {
            return Some(skipped + at + next + 1);
        }
        let class = [":", ".", "="].into_iter().find(|it| after[1..].starts_with(it));
        at += next
            + match class {
                Some(mark) => 2 + after[2..].find(&*format!("{mark}]"))? + 2,
                None => 1,
            };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(script: &str) -> String {
        read(script).map_or_else(|| "?".to_owned(), |it| it.iter().map(|it| it.name).collect())
    }

    #[test]
    fn commands_are_told_apart() {
        for (script, expected) in [
            ("p", "p"),
            ("1d;$p", "dp"),
            ("/a/,/b/{s/x/y/;p}", "{sp"),
            ("s/[/]/x/g;p", "sp"),
            ("s,a\\,b,c,;p", "sp"),
            ("s/[^]/]*/x/p", "s"),
            ("s/[[:alpha:]/]/x/;d", "sd"),
            (":a;N;$!ba;s/\\n/ /g", ":Nbs"),
            ("1i\\\nhello\\\nthere\n2d", "id"),
            ("1i hello; p", "i"),
            ("w out; p", "w"),
            ("y/abc/xyz/;p", "yp"),
            ("# p\nd", "d"),
            ("1!G;h;$!d", "Ghd"),
            ("\\,/usr,d", "d"),
            ("", ""),
            ("k", "?"),
            ("s/a/b", "?"),
            ("px", "?"),
            ("1,", "?"),
        ] {
            assert_eq!(names(script), expected, "{script:?}");
        }
    }

    #[test]
    fn parts_of_a_command_are_kept() {
        let [only] = &*read("2,/end/I!s/a\\/b/&c/2gw out file").expect("it is a script") else {
            panic!("there is one command")
        };
        assert_eq!(only.first, Some(Address::Line("2")));
        assert_eq!(only.second, Some(Address::Pattern { text: "end", mark: '/', modifiers: "I" }));
        assert!(only.negated);
        assert_eq!((only.pattern, only.replacement), ("a\\/b", "&c"));
        assert_eq!((only.flags, only.operand), ("2g", "out file"));
    }

    #[test]
    fn deleting_everything_is_known() {
        let all = |script: &str| read(script).expect("it is a script")[0].deletes_all();
        for script in ["d", "1,$d", "/.*/d", "//d", " 1,$ d"] {
            assert!(all(script), "{script}");
        }
        for script in ["1d", "$d", "/^$/d", "1,$!d", "1,3d", "/a/,$d", "p"] {
            assert!(!all(script), "{script}");
        }
    }

    #[test]
    fn escapes_that_only_some_have_are_found() {
        let found = |pattern: &str, mark, syntax| foreign_escape(pattern, mark, syntax);
        assert_eq!(found("a\\+", '/', Syntax::Basic), Some('+'));
        assert_eq!(found("a\\|b", '/', Syntax::Basic), Some('|'));
        assert_eq!(found("a\\|b", '|', Syntax::Basic), None);
        assert_eq!(found("a\\+", '/', Syntax::Extended), None);
        assert_eq!(found("\\w*", '/', Syntax::Extended), Some('w'));
        assert_eq!(found("a\\\\+", '/', Syntax::Basic), None);
        assert_eq!(found("[\\w]\\(a\\)\\{2\\}\\.\\n", '/', Syntax::Basic), None);
    }

    proptest::proptest! {
        #[test]
        fn no_script_makes_it_panic(script in "[-a-z0-9/\\\\;{}!,$~\\[\\]:^\n é]{0,24}") {
            let _ = read(&script);
            let _ = foreign_escape(&script, '/', Syntax::Basic);
        }
    }
}
