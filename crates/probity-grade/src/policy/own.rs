//! The lists that a suite brings along: words, pieces of text, regular expressions.

use aho_corasick::AhoCorasick;
use probity_text::pattern;
use regex::{Regex, RegexBuilder};

use super::{Found, MOST_HITS};

/// Largest compiled list of words, in bytes: some tens of thousands of words.
const WORDS_SIZE: usize = 64 << 20;

/// A suite's own lists, compiled.
#[derive(Debug, Default)]
pub(super) struct Own {
    words: Option<Regex>,
    substrings: Option<AhoCorasick>,
    /// What the substrings are called in hits, by pattern.
    substring_rules: Vec<String>,
    regexes: Vec<(String, Regex)>,
}

/// What is wrong with an item of a list.
pub(super) struct Wrong {
    /// The list.
    pub(super) field: &'static str,
    /// The item's place in it.
    pub(super) index: usize,
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Own {
    /// Compiles the lists; what is wrong is reported and left out.
    pub(super) fn compile(
        words: &[String],
        substrings: &[String],
        regexes: &[String],
        report: &mut dyn FnMut(Wrong),
    ) -> Self {
        let mut own = Self::default();
        for (field, list) in [("words", words), ("substrings", substrings), ("regexes", regexes)] {
            for (index, _) in list.iter().enumerate().filter(|(_, it)| it.trim().is_empty()) {
                let message = "an empty text is found everywhere".to_owned();
                report(Wrong { field, index, code: "empty-pattern", message });
            }
        }
        if !words.is_empty() {
            let any: Vec<String> = words.iter().map(|it| regex::escape(it.trim())).collect();
            let pattern = format!(r"\b{{start-half}}(?:{})\b{{end-half}}", any.join("|"));
            match RegexBuilder::new(&pattern).case_insensitive(true).size_limit(WORDS_SIZE).build()
            {
                Ok(regex) => own.words = Some(regex),
                Err(source) => {
                    let message = format!("the word list cannot be compiled: {source}");
                    report(Wrong { field: "words", index: 0, code: "bad-words", message });
                }
            }
        }
        if !substrings.is_empty() {
            match AhoCorasick::new(substrings) {
                Ok(searcher) => own.substrings = Some(searcher),
                Err(source) => {
                    let message = format!("the list cannot be compiled: {source}");
                    report(Wrong {
                        field: "substrings",
                        index: 0,
                        code: "bad-substrings",
                        message,
                    });
                }
            }
            own.substring_rules = substrings.iter().map(|it| format!("substring:{it}")).collect();
        }
        for (index, pattern) in regexes.iter().enumerate() {
            match pattern::compile(pattern) {
                Ok(regex) => own.regexes.push((format!("regex:{pattern}"), regex)),
                Err(message) => {
                    report(Wrong { field: "regexes", index, code: "bad-regex", message });
                }
            }
        }
        own
    }

    /// Where the lists fire: words, then substrings, then regular expressions.
    pub(super) fn scan(&self, text: &str) -> Vec<Found<String>> {
        let mut found = Vec::new();
        if let Some(words) = &self.words {
            found.extend(words.find_iter(text).take(MOST_HITS).map(|it| Found {
                rule: format!("word:{}", it.as_str().to_lowercase()),
                span: it.range(),
            }));
        }
        if let Some(substrings) = &self.substrings {
            found.extend(substrings.find_overlapping_iter(text).take(MOST_HITS).map(|it| Found {
                rule: self.substring_rules[it.pattern().as_usize()].clone(),
                span: it.range(),
            }));
        }
        for (rule, regex) in &self.regexes {
            let matches = regex.find_iter(text).filter(|it| !it.is_empty()).take(MOST_HITS);
            found.extend(matches.map(|it| Found { rule: rule.clone(), span: it.range() }));
        }
        found
    }
}
