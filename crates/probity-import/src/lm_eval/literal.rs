//! Literals of Python, which templates of lm-eval make lists with.

use serde_json::{Map, Value};

/// How deep lists may nest.
const DEEPEST: usize = 32;

/// The value of a literal; none if it is no literal.
pub(super) fn parse(text: &str) -> Option<Value> {
    let mut reader = Reader { rest: text.trim() };
    let value = reader.value(0)?;
    reader.rest.trim().is_empty().then_some(value)
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn skip(&mut self, mark: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        self.rest = self.rest.trim_start();
        match self.rest.chars().next()? {
            '[' => self.list('[', ']', depth),
            '(' => self.list('(', ')', depth),
            '{' => self.table(depth),
            '\'' | '"' => self.texts().map(Value::String),
            _ => self.word(),
        }
    }

    fn list(&mut self, open: char, close: char, depth: usize) -> Option<Value> {
        self.skip(open);
        let mut items = Vec::new();
        loop {
            if self.skip(close) {
                return Some(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            if !self.skip(',') {
                return self.skip(close).then_some(Value::Array(items));
            }
        }
    }

    fn table(&mut self, depth: usize) -> Option<Value> {
        self.skip('{');
        let mut entries = Map::new();
        loop {
            if self.skip('}') {
                return Some(Value::Object(entries));
            }
            let key = match self.value(depth + 1)? {
                Value::String(key) => key,
                key @ (Value::Null | Value::Bool(_) | Value::Number(_)) => key.to_string(),
                Value::Array(_) | Value::Object(_) => return None,
            };
            if !self.skip(':') {
                return None;
            }
            entries.insert(key, self.value(depth + 1)?);
            if !self.skip(',') {
                return self.skip('}').then_some(Value::Object(entries));
            }
        }
    }

    /// A text, or several in a row, which are one.
    fn texts(&mut self) -> Option<String> {
        let mut all = String::new();
        loop {
            self.rest = self.rest.trim_start();
            let Some(mark @ ('\'' | '"')) = self.rest.chars().next() else { return Some(all) };
            all.push_str(&self.text(mark)?);
        }
    }

    fn text(&mut self, mark: char) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == mark => {
                    self.rest = &self.rest[at + 1..];
                    return Some(text);
                }
                '\n' => return None,
                '\\' => match chars.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    '\n' => {}
                    c @ ('\\' | '\'' | '"') => text.push(c),
                    'x' => text.push(code(&mut chars, 2)?),
                    'u' => text.push(code(&mut chars, 4)?),
                    'U' => text.push(code(&mut chars, 8)?),
                    other => text.extend(['\\', other]),
                },
                c => text.push(c),
            }
        }
        None
    }

    fn word(&mut self) -> Option<Value> {
        let end = self.rest.find(|c: char| !(c.is_alphanumeric() || "+-._".contains(c)));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        match word {
            "True" => Some(Value::Bool(true)),
            "False" => Some(Value::Bool(false)),
            "None" => Some(Value::Null),
            word => match word.parse::<i64>() {
                Ok(number) => Some(Value::from(number)),
                Err(_) if word.contains(|c: char| c.is_ascii_digit()) => {
                    let number = word.parse::<f64>().ok().filter(|it| it.is_finite())?;
                    Some(Value::from(number))
                }
                Err(_) => None,
            },
        }
    }
}

/// The character of a code in so many hexadecimal digits.
fn code(chars: &mut impl Iterator<Item = (usize, char)>, digits: usize) -> Option<char> {
    let code: String = chars.take(digits).map(|(_, c)| c).collect();
    char::from_u32(u32::from_str_radix(&code, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_tables_and_texts() {
        assert_eq!(parse(r#"['it\'s', "b\n", 'c' 'd',]"#), Some(json!(["it's", "b\n", "cd"])));
        assert_eq!(parse("(1, -2.5, True, None)"), Some(json!([1, -2.5, true, null])));
        assert_eq!(parse(r"{'a': [], 1: '\u00e9\x41'}"), Some(json!({ "a": [], "1": "éA" })));
        for text in ["['a'", "[a]", "['a'] + ['b']", "'a", "[,]", "", "{'a'}", "1.2.3", "'\\x'"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"[".repeat(100_000)), None);
    }
}
