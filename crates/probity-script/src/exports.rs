//! Turns the exports of a module into assignments, line by line, so that lines keep their numbers.
//!
//! Modules of the language itself are run once in a context; a script is run afresh for every case.

use std::fmt::Write as _;

/// The module as the body of a function with `module`, or the line that cannot be one and why.
pub(crate) fn rewrite(source: &str) -> Result<String, (u32, String)> {
    let mut module = Module::default();
    let mut last = 1;
    for (line, number) in source.split_inclusive('\n').zip(1..) {
        module.add(line).map_err(|why| (number, why.to_owned()))?;
        last = number;
    }
    match module.list {
        Some(_) => Err((last, "the list of exports has no end".to_owned())),
        None => Ok(module.finish()),
    }
}

const IMPORT: &str = "scripts cannot `import`: only files of the script's own folder can be had, by \
                      `require`; a scorer that runs in Node has packages";
const FROM: &str = "exports of another file are not understood: `require` it and export its values";
const ONE_NAME: &str = "an exported declaration has one name: declare others on their own, or list \
                        them in `export { … }`";

#[derive(Default)]
struct Module {
    body: String,
    /// Names inside and outside.
    named: Vec<(String, String)>,
    has_exports: bool,
    state: State,
    /// A list of exports whose end is on a later line.
    list: Option<String>,
}

impl Module {
    fn add(&mut self, line: &str) -> Result<(), &'static str> {
        let trimmed = line.trim_start();
        let at_statement = self.state.is_code();
        if self.list.is_some() {
            return self.add_to_list(line);
        }
        let rest = trimmed.strip_prefix("export").filter(|rest| {
            at_statement && rest.starts_with(|it: char| it.is_whitespace() || it == '{')
        });
        let Some(rest) = rest.map(str::trim_start) else {
            self.state.pass(line);
            if at_statement && is_import(trimmed) {
                return Err(IMPORT);
            }
            self.body.push_str(line);
            return if self.state.has_several { Err(ONE_NAME) } else { Ok(()) };
        };
        self.has_exports = true;
        self.body.push_str(&line[..line.len() - trimmed.len()]);
        if let Some(list) = rest.strip_prefix('{') {
            self.list = Some(String::new());
            return self.add_to_list(list);
        }
        self.state.declare(line);
        if self.state.has_several {
            return Err(ONE_NAME);
        }
        if let Some(value) = word(rest, "default") {
            match declared(value, &["function", "class"]) {
                Some(name) => self.named.push((name.to_owned(), "default".to_owned())),
                None => self.body.push_str("module.exports.default = "),
            }
            self.body.push_str(value);
            return Ok(());
        }
        let name = declared(rest, &["function", "class", "const", "let", "var"]);
        let name = name.ok_or(if rest.starts_with('*') { FROM } else { ONE_NAME })?;
        self.named.push((name.to_owned(), name.to_owned()));
        self.body.push_str(rest);
        Ok(())
    }

    fn add_to_list(&mut self, line: &str) -> Result<(), &'static str> {
        let line = line.split_once("//").map_or(line, |it| it.0);
        let mut list = self.list.take().unwrap_or_default();
        let Some((end, after)) = line.split_once('}') else {
            list.push_str(line);
            self.list = Some(list);
            self.body.push('\n');
            return Ok(());
        };
        list.push_str(end);
        if word(after.trim_start(), "from").is_some() {
            return Err(FROM);
        }
        self.named.extend(list.split(',').filter_map(listed));
        let after = after.trim_end_matches('\n');
        self.state.pass(after);
        self.body.push_str(after);
        self.body.push('\n');
        Ok(())
    }

    fn finish(mut self) -> String {
        if self.has_exports {
            for (name, outside) in self.named {
                // Writing to a string cannot fail.
                let _ = write!(self.body, "\n;module.exports[\"{outside}\"] = {name};");
            }
            self.body.insert_str(0, "'use strict'; ");
        }
        self.body
    }
}

fn word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(word)?;
    let ends = !rest.starts_with(is_part_of_name);
    ends.then(|| rest.trim_start_matches(' '))
}

fn is_import(line: &str) -> bool {
    let next = word(line, "import").map(|rest| rest.chars().next());
    // `import(…)` and `import.meta` are expressions, which the engine refuses by itself.
    next.is_some_and(|next| !matches!(next, Some('(' | '.')))
}

/// `a` or `a as b` in a list of exports: the name inside, and the one outside.
fn listed(entry: &str) -> Option<(String, String)> {
    let mut words = entry.split_whitespace();
    let name = words.next()?;
    let outside = words.nth(1).unwrap_or(name);
    Some((name.to_owned(), outside.to_owned()))
}

/// The name that a declaration of one of these kinds declares.
fn declared<'a>(declaration: &'a str, kinds: &[&str]) -> Option<&'a str> {
    let rest = word(declaration, "async").unwrap_or(declaration);
    let rest = kinds.iter().find_map(|kind| word(rest, kind))?;
    let rest = rest.trim_start_matches([' ', '*']);
    let end = rest.find(|it| !is_part_of_name(it));
    Some(&rest[..end.unwrap_or(rest.len())]).filter(|name| !name.is_empty())
}

fn is_part_of_name(char: char) -> bool {
    char.is_alphanumeric() || char == '_' || char == '$'
}

/// What is known of the code before a line.
#[derive(Default)]
struct State {
    in_comment: bool,
    /// Braces that are open within each open template; the last is none while its text goes on.
    templates: Vec<Option<u32>>,
    /// The last character that is neither blank nor comment, and the last word.
    before: Option<char>,
    word: String,
    /// Brackets that are open since an exported declaration began, until it ends.
    declaration: Option<u32>,
    /// A declaration went on after a comma.
    has_several: bool,
}

impl State {
    fn is_code(&self) -> bool {
        !self.in_comment && self.templates.is_empty()
    }

    /// Passes over a line that begins an exported declaration.
    fn declare(&mut self, line: &str) {
        self.declaration = Some(0);
        self.pass_code(line);
    }

    fn pass(&mut self, line: &str) {
        let first = line.trim_start().chars().next();
        let goes_on = self.before.is_some_and(|it| "=,+-*%&|?:<>!~^".contains(it))
            || first.is_none_or(|it| !is_part_of_name(it));
        if self.declaration == Some(0) && self.is_code() && !goes_on {
            self.declaration = None;
        }
        self.pass_code(line);
    }

    fn pass_code(&mut self, line: &str) {
        let mut chars = line.chars().peekable();
        let mut in_word = false;
        while let Some(char) = chars.next() {
            if self.in_comment {
                if char == '*' && chars.next_if_eq(&'/').is_some() {
                    self.in_comment = false;
                }
                continue;
            }
            if let Some(None) = self.templates.last() {
                match char {
                    '\\' => {
                        chars.next();
                    }
                    '`' => {
                        self.templates.pop();
                    }
                    '$' if chars.next_if_eq(&'{').is_some() => {
                        self.templates.pop();
                        self.templates.push(Some(0));
                    }
                    _ => {}
                }
                continue;
            }
            if !in_word && is_part_of_name(char) {
                self.word.clear();
            }
            in_word = is_part_of_name(char);
            let mut last = char;
            match char {
                '/' if chars.next_if_eq(&'/').is_some() => return,
                '/' if chars.next_if_eq(&'*').is_some() => {
                    self.in_comment = true;
                    continue;
                }
                '/' if self.is_before_regex() => {
                    skip_regex(&mut chars);
                    // As after any other value.
                    last = ')';
                }
                '"' | '\'' => skip_to(&mut chars, char),
                '`' => self.templates.push(None),
                _ if in_word => self.word.push(char),
                _ => self.bracket(char),
            }
            if !char.is_whitespace() {
                self.before = Some(last);
            }
        }
    }

    fn bracket(&mut self, char: char) {
        match (char, self.templates.last_mut()) {
            ('{', Some(Some(open))) => *open += 1,
            ('}', Some(last @ Some(0))) => *last = None,
            ('}', Some(Some(open))) => *open -= 1,
            _ => {}
        }
        if self.templates.is_empty()
            && let Some(open) = &mut self.declaration
        {
            match char {
                '(' | '[' | '{' => *open += 1,
                ')' | ']' | '}' => *open = open.saturating_sub(1),
                ',' if *open == 0 => self.has_several = true,
                ';' if *open == 0 => self.declaration = None,
                _ => {}
            }
        }
    }

    /// Whether a `/` begins a regular expression and divides nothing.
    fn is_before_regex(&self) -> bool {
        const WORDS: [&str; 12] = [
            "return",
            "typeof",
            "case",
            "in",
            "of",
            "delete",
            "void",
            "instanceof",
            "do",
            "else",
            "throw",
            "await",
        ];
        self.before.is_none_or(|it| match is_part_of_name(it) {
            true => WORDS.contains(&self.word.as_str()),
            false => "(,=:[!&|?{};+-*%<>~^".contains(it),
        })
    }
}

fn skip_regex(chars: &mut impl Iterator<Item = char>) {
    let mut in_class = false;
    while let Some(char) = chars.next() {
        match char {
            '\\' => {
                chars.next();
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => return,
            _ => {}
        }
    }
}

fn skip_to(chars: &mut impl Iterator<Item = char>, end: char) {
    while let Some(char) = chars.next() {
        if char == '\\' {
            chars.next();
        } else if char == end {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &str) {
        assert_eq!(rewrite(source).unwrap(), expected);
    }

    #[test]
    fn exports_become_assignments() {
        check(
            "export default (o) => true;\n",
            "'use strict'; module.exports.default = (o) => true;\n",
        );
        check("export const f = 1;", "'use strict'; const f = 1;\n;module.exports[\"f\"] = f;");
        check(
            "export async function g() {}",
            "'use strict'; async function g() {}\n;module.exports[\"g\"] = g;",
        );
        check(
            "let a;\nexport { a as default }",
            "'use strict'; let a;\n\n\n;module.exports[\"default\"] = a;",
        );
        check(
            "export {\n  a, // one\n  b as c\n};\nlet a;",
            "'use strict'; \n\n\n;\nlet a;\n;module.exports[\"a\"] = a;\n;module.exports[\"c\"] = b;",
        );
        check(
            "export default function score() {}\n",
            "'use strict'; function score() {}\n\n;module.exports[\"default\"] = score;",
        );
        check("export default class {}", "'use strict'; module.exports.default = class {}");
    }

    #[test]
    fn exports_that_are_not_understood_are_refused_at_their_line() {
        let refused = |source: &str| rewrite(source).unwrap_err();
        for (source, line) in [
            ("export const { a } = o;", 1),
            ("export const a = 1, b = 2;", 1),
            ("\nexport let a = {\n x: [1, 2],\n}, b;", 4),
            ("export const a = 1\n  , b = 2;", 2),
            ("export const a =\n  1, b = 2;", 2),
        ] {
            assert_eq!(refused(source), (line, ONE_NAME.to_owned()), "{source}");
        }
        assert_eq!(refused("export {\n  a,\n").0, 2);
        for source in ["export * from './a.js';", "export { a } from './a.js';"] {
            assert_eq!(refused(source), (1, FROM.to_owned()), "{source}");
        }
    }

    #[test]
    fn commas_elsewhere_are_no_second_name() {
        for source in [
            "export const a = f(1, 2); g(1), h(2);",
            "export const f = (a, b) => {\n  g(a), h(b);\n};\nf(1), f(2);",
            "export const a = `1, ${[1, 2]}`\nlet b, c;",
            "export const a = /[/,]/; // b, c",
            "export const a = 'x' // b, c\n/* d,\n e */\nlet f, g;",
            "export function f(a, b) {\n  let c, d;\n}\nlet e, g;",
        ] {
            assert!(rewrite(source).is_ok(), "{source}");
        }
    }

    #[test]
    fn text_that_looks_like_an_export_is_left_alone() {
        for source in [
            "const a = `\nexport default 1\n`;",
            "/*\nexport default 1\n*/ module.exports = 1;",
            "const q = /`/;\nmodule.exports = `${{a: '}'}}\nexport x`;",
            "const f = (it) => /`/.test(it);\nmodule.exports = `\nexport x`;",
            "const f = (it) => { return /[/`]/.test(it) };\nmodule.exports = `\nexport x`;",
            "exported = 1",
        ] {
            check(source, source);
        }
    }

    #[test]
    fn imports_are_refused_at_their_line() {
        let (line, message) = rewrite("const a = 1;\nimport fs from 'fs';").unwrap_err();
        assert_eq!(line, 2);
        assert!(message.contains("Node"), "{message}");
    }
}
