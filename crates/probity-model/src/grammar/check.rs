//! Whether a text is a grammar, found out before an engine reads it: llama.cpp prints what it does not like.

use std::collections::BTreeSet;

use super::MOST_REPEATS;

/// How deep groups may be nested.
const DEPTH: usize = 64;
const BLANKS: &[char] = &[' ', '\t'];
const LINES: &[char] = &[' ', '\t', '\n', '\r'];

/// What may stand between two elements: a line end ends a rule, but not a group.
const fn between(depth: usize) -> &'static [char] {
    if depth > 0 { LINES } else { BLANKS }
}

/// Why a text is no grammar.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the grammar cannot be used: {why} (line {line})")]
pub struct GrammarError {
    /// What it is.
    pub why: String,
    /// Where.
    pub line: usize,
}

/// Checks that a grammar is well formed, that it has a `root`, and that it has every rule that it uses.
pub fn check(grammar: &str) -> Result<(), GrammarError> {
    let mut reader = Reader { text: grammar, at: 0, defined: BTreeSet::new(), used: Vec::new() };
    reader.grammar()?;
    let missing = reader.used.iter().find(|(name, _)| !reader.defined.contains(name));
    match missing {
        Some((name, at)) => {
            let line = reader.line_of(*at);
            Err(GrammarError { why: format!("there is no rule `{name}`"), line })
        }
        None if !reader.defined.contains("root") => {
            Err(GrammarError { why: "there is no rule `root`".to_owned(), line: 1 })
        }
        None => Ok(()),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    defined: BTreeSet<&'a str>,
    /// Names and where they stand.
    used: Vec<(&'a str, usize)>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn line_of(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    fn wrong<T>(&self, why: impl Into<String>) -> Result<T, GrammarError> {
        Err(GrammarError { why: why.into(), line: self.line_of(self.at) })
    }

    fn take(&mut self, sign: &str) -> bool {
        let is_there = self.rest().starts_with(sign);
        if is_there {
            self.at += sign.len();
        }
        is_there
    }

    /// Skips some signs, and comments.
    fn skip(&mut self, signs: &[char]) {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start_matches(signs).len();
            self.at += blanks;
            if self.rest().starts_with('#') {
                self.at += self.rest().find(['\n', '\r']).unwrap_or(self.rest().len());
            } else if blanks == 0 {
                return;
            }
        }
    }

    fn name(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let is_sign = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let length = rest.find(|c| !is_sign(c)).unwrap_or(rest.len());
        self.at += length;
        (length > 0).then(|| &rest[..length])
    }

    fn grammar(&mut self) -> Result<(), GrammarError> {
        self.skip(LINES);
        while !self.rest().is_empty() {
            let Some(name) = self.name() else { return self.wrong("a rule begins with its name") };
            self.skip(BLANKS);
            if !self.take("::=") {
                return self.wrong(format!("`{name}` is not followed by `::=`"));
            }
            self.defined.insert(name);
            self.skip(LINES);
            self.alternatives(0)?;
            if !self.rest().is_empty() && !self.rest().starts_with(['\n', '\r']) {
                return self.wrong(format!("rule `{name}` has something that cannot be read"));
            }
            self.skip(LINES);
        }
        Ok(())
    }

    fn alternatives(&mut self, depth: usize) -> Result<(), GrammarError> {
        if depth > DEPTH {
            return self.wrong("groups are nested too deep");
        }
        loop {
            while self.element(depth)? {
                self.repeats(depth)?;
                self.skip(between(depth));
            }
            if !self.take("|") {
                return Ok(());
            }
            self.skip(LINES);
        }
    }

    /// One element; false if none begins here.
    fn element(&mut self, depth: usize) -> Result<bool, GrammarError> {
        if self.take("\"") {
            self.until('"', "a text has no end")?;
        } else if self.take("[") {
            self.until(']', "a class of characters has no end")?;
        } else if self.take("(") {
            self.skip(LINES);
            self.alternatives(depth + 1)?;
            if !self.take(")") {
                return self.wrong("a group has no end");
            }
        } else if self.rest().starts_with(['<', '!']) {
            // Which tokens there are, and by which number, only the model knows.
            return self.wrong("`<…>` names a token, which is not supported; write its text");
        } else if !self.take(".") {
            let at = self.at;
            let Some(name) = self.name() else { return Ok(false) };
            self.used.push((name, at));
        }
        Ok(true)
    }

    /// Goes behind an end that is not escaped.
    fn until(&mut self, end: char, why: &str) -> Result<(), GrammarError> {
        let mut is_escaped = false;
        for (at, c) in self.rest().char_indices() {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '\n' | '\r' => break,
                c if c == end => {
                    self.at += at + c.len_utf8();
                    return Ok(());
                }
                _ => {}
            }
        }
        self.wrong(why)
    }

    fn repeats(&mut self, depth: usize) -> Result<(), GrammarError> {
        self.skip(between(depth));
        if self.take("*") || self.take("+") || self.take("?") || !self.take("{") {
            return Ok(());
        }
        let end = self.rest().find('}');
        let bounds = end.map(|end| &self.rest()[..end]).unwrap_or_default();
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let least = bounds.split(',').next().and_then(number);
        if least.is_some_and(|it| it > MOST_REPEATS) {
            return self.wrong(format!("nothing can be repeated more than {MOST_REPEATS} times"));
        }
        let is_sound = match bounds.split_once(',') {
            None => number(bounds).is_some(),
            Some((least, most)) => match (number(least), most.trim()) {
                (Some(_), "") => true,
                (Some(least), most) => number(most).is_some_and(|most| most >= least),
                (None, _) => false,
            },
        };
        if !is_sound {
            return self.wrong("`{` is followed by `}` with one or two numbers between them");
        }
        self.at += bounds.len() + 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(grammar: &str) -> String {
        check(grammar).map_or_else(|it| it.to_string(), |()| "sound".to_owned())
    }

    #[test]
    fn grammars_of_all_forms_are_sound() {
        let grammar = "# a list\nroot ::= (\"- \" item)+ # of items\nitem ::= [^\\n\\]]{1,9} \"\\n\" |\n  \"x\\\"\"? .* |\nlast\nlast ::= ( \"a\"\n  | \"b\" ){2,}\n";
        assert_eq!(why(grammar), "sound");
        assert_eq!(why(&crate::grammar::any_object()), "sound");
    }

    #[test]
    fn what_is_no_grammar_says_where() {
        let of =
            |why: &str, line: usize| format!("the grammar cannot be used: {why} (line {line})");
        assert_eq!(why("root ::= missing"), of("there is no rule `missing`", 1));
        assert_eq!(why("a ::= \"x\""), of("there is no rule `root`", 1));
        assert_eq!(why(""), of("there is no rule `root`", 1));
        assert_eq!(why("root ::= \"x\"\nb \"y\""), of("`b` is not followed by `::=`", 2));
        assert_eq!(why("root ::= \"x"), of("a text has no end", 1));
        assert_eq!(why("root ::= [a-z"), of("a class of characters has no end", 1));
        assert_eq!(why("root ::= (\"x\""), of("a group has no end", 1));
        assert_eq!(why("root ::= \"x\" }"), of("rule `root` has something that cannot be read", 1));
        assert!(why("root ::= \"x\"{3,2}").contains("one or two numbers"));
        assert!(why("root ::= \"x\"{5000}").contains("more than 2000 times"));
        assert!(why("root ::= \"x\"{2001,}").contains("more than 2000 times"));
        assert_eq!(why("root ::= \"x\"{2000}"), "sound");
        for token in ["<[999999]>", "!<[1]>", "<|end|>"] {
            assert!(why(&format!("root ::= \"x\" {token}")).contains("names a token"), "{token}");
        }
        assert!(why(&format!("root ::= {}\"x\"", "(".repeat(1000))).contains("nested too deep"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_grammar_or_not(text in "[a-z:=\"\\[\\](){}|*+?#\\\\\n <>!.,0-9é-]{0,80}") {
            let _ = check(&text);
        }
    }
}
