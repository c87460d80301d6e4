//! Turns the exports of a module into assignments, line by line, so that lines keep their numbers.
//!
//! Modules of the language itself are run once in a context; a script is run afresh for every case.

use std::fmt::Write as _;

/// The module as the body of a function with `module`, or why it cannot be one.
pub(crate) fn rewrite(source: &str) -> Result<String, (u32, String)> {
    let mut body = String::with_capacity(source.len() + 64);
    let mut named = Vec::new();
    let mut is_module = false;
    let mut state = State::default();
    for (number, line) in source.split_inclusive('\n').enumerate() {
        let at_statement = state.is_code();
        state.pass(line);
        let trimmed = line.trim_start();
        let indent = &line[..line.len() - trimmed.len()];
        if at_statement && is_import(trimmed) {
            let message = "scripts cannot `import`: only files of the script's own folder can be \
                           had, by `require`; a scorer that runs in Node has packages";
            let line = u32::try_from(number + 1).unwrap_or(u32::MAX);
            return Err((line, message.to_owned()));
        }
        let rest = trimmed.strip_prefix("export").filter(|rest| {
            at_statement && rest.starts_with(|it: char| it.is_whitespace() || it == '{')
        });
        let Some(rest) = rest.map(str::trim_start) else {
            body.push_str(line);
            continue;
        };
        is_module = true;
        body.push_str(indent);
        if let Some(value) = word(rest, "default") {
            body.push_str("module.exports.default = ");
            body.push_str(value);
        } else if let Some(list) = rest.strip_prefix('{').and_then(|it| it.split_once('}')) {
            named.extend(list.0.split(',').filter_map(listed));
            body.push_str(list.1);
        } else {
            named.extend(declared(rest).map(|name| (name.to_owned(), name.to_owned())));
            body.push_str(rest);
        }
    }
    if is_module {
        for (name, outside) in named {
            // Writing to a string cannot fail.
            let _ = write!(body, "\n;module.exports[\"{outside}\"] = {name};");
        }
        body.insert_str(0, "'use strict'; ");
    }
    Ok(body)
}

fn word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(word)?;
    let ends = !rest.starts_with(|it: char| it.is_alphanumeric() || it == '_' || it == '$');
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

/// The name that a declaration declares.
fn declared(declaration: &str) -> Option<&str> {
    let rest = word(declaration, "async").unwrap_or(declaration);
    let kinds = ["function*", "function", "class", "const", "let", "var"];
    let rest = kinds.iter().find_map(|kind| word(rest, kind))?;
    let rest = rest.trim_start_matches([' ', '*']);
    let end = rest.find(|it: char| !(it.is_alphanumeric() || it == '_' || it == '$'));
    Some(&rest[..end.unwrap_or(rest.len())]).filter(|name| !name.is_empty())
}

/// Whether the text between two lines is code, a comment or a template.
#[derive(Default)]
struct State {
    in_comment: bool,
    /// Braces that are open within each open template; the last is none while its text goes on.
    templates: Vec<Option<u32>>,
}

impl State {
    fn is_code(&self) -> bool {
        !self.in_comment && self.templates.is_empty()
    }

    fn pass(&mut self, line: &str) {
        let mut chars = line.chars().peekable();
        let mut before = '\n';
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
            match char {
                '/' if chars.next_if_eq(&'/').is_some() => return,
                '/' if chars.next_if_eq(&'*').is_some() => self.in_comment = true,
                '/' if "\n(,=:[!&|?{};+".contains(before) => skip_to(&mut chars, '/'),
                '"' | '\'' => skip_to(&mut chars, char),
                '`' => self.templates.push(None),
                '{' => {
                    if let Some(Some(open)) = self.templates.last_mut() {
                        *open += 1;
                    }
                }
                '}' => match self.templates.last_mut() {
                    Some(Some(0)) => {
                        self.templates.pop();
                        self.templates.push(None);
                    }
                    Some(Some(open)) => *open -= 1,
                    Some(None) | None => {}
                },
                _ => {}
            }
            if !char.is_whitespace() {
                before = char;
            }
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
            "'use strict'; let a;\n\n;module.exports[\"default\"] = a;",
        );
    }

    #[test]
    fn text_that_looks_like_an_export_is_left_alone() {
        for source in [
            "const a = `\nexport default 1\n`;",
            "/*\nexport default 1\n*/ module.exports = 1;",
            "const q = /`/;\nmodule.exports = `${{a: '}'}}\nexport x`;",
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
