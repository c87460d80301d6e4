//! Reads the fields of one located object, and says everything that is wrong with them.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    ops::{Range, RangeInclusive},
    sync::Arc,
};

use serde_json::Value;

use crate::dataset::MOST_PROBLEMS;

use probity_core::{
    located::{Entry, Node, NodeValue},
    problem::{Problem, Severity, Source, UNKNOWN_FIELD},
};

/// What is wrong at one place of a source text.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Whether the data can be used all the same.
    pub severity: Severity,
    /// A stable name for this kind of problem.
    pub code: &'static str,
    /// One sentence, lower case, no final period.
    pub message: String,
    /// Byte range in the source text.
    pub span: Range<usize>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Finding {
    /// The finding as a problem of a file.
    pub fn at(self, file: &Arc<str>, source: &Source<'_>) -> Problem {
        let Self { severity, code, message, span, help } = self;
        let place = Some(source.place(&span));
        Problem { severity, code, message, file: file.clone(), place, case_id: None, help }
    }
}

/// Everything found so far.
#[derive(Debug, Default)]
pub struct Findings(pub Vec<Finding>);

impl Findings {
    /// Something that makes the data unusable.
    pub fn error(&mut self, code: &'static str, span: &Range<usize>, message: String) {
        self.push(Severity::Error, code, span, message, None);
    }

    /// The same, with what to do about it.
    pub fn error_with_help(
        &mut self,
        code: &'static str,
        span: &Range<usize>,
        message: String,
        help: String,
    ) {
        self.push(Severity::Error, code, span, message, Some(help));
    }

    fn push(
        &mut self,
        severity: Severity,
        code: &'static str,
        span: &Range<usize>,
        message: String,
        help: Option<String>,
    ) {
        self.0.push(Finding { severity, code, message, span: span.clone(), help });
    }

    /// Whether any of it is an error.
    pub fn any_error(&self) -> bool {
        self.0.iter().any(|finding| finding.severity == Severity::Error)
    }
}

/// The fields of one object.
#[derive(Debug)]
pub struct Fields<'n, 'f> {
    node: &'n Node,
    keys: Keys,
    findings: &'f mut Findings,
}

/// What the names of an object look like. It has few of the many that are asked for, and most are told from its own by
/// how they begin and how long they are.
#[derive(Clone, Copy, Debug)]
struct Keys(u64);

impl Keys {
    fn of(entries: &[Entry]) -> Self {
        Self(entries.iter().fold(0, |keys, it| keys | Self::sign(&it.key)))
    }

    fn may_have(self, key: &str) -> bool {
        self.0 & Self::sign(key) != 0
    }

    fn sign(key: &str) -> u64 {
        let first = key.as_bytes().first().copied().unwrap_or_default();
        1 << ((usize::from(first) + 7 * key.len()) % 64)
    }
}

impl<'n, 'f> Fields<'n, 'f> {
    /// The fields of `node`, or none if it is no object.
    ///
    /// Names that are not in `known` are warned of, except for those that begin with `x-`.
    pub fn new(
        node: &'n Node,
        what: &str,
        known: &[&str],
        findings: &'f mut Findings,
    ) -> Option<Self> {
        for entry in node.entries() {
            if !known.contains(&entry.key.as_str()) && !entry.key.starts_with("x-") {
                warn_of_unknown(entry, known, findings);
            }
        }
        Self::open(node, what, findings)
    }

    /// The fields of `node`, whatever their names, or none if it is no object.
    ///
    /// Names that stand there twice are errors.
    pub fn open(node: &'n Node, what: &str, findings: &'f mut Findings) -> Option<Self> {
        let NodeValue::Object(entries) = &node.value else {
            let message = format!("{what} must be a table, not {}", node.kind());
            findings.error("wrong-type", &node.span, message);
            return None;
        };
        for entry in repeated(entries) {
            let message = format!("`{}` is there twice", shortened(&entry.key));
            findings.error("duplicate-key", &entry.key_span, message);
        }
        Some(Self { node, keys: Keys::of(entries), findings })
    }

    /// Where to put problems that concern no one field.
    pub fn findings(&mut self) -> &mut Findings {
        self.findings
    }

    /// The place of a field, or of the whole object without it.
    pub fn span(&self, key: &str) -> Range<usize> {
        self.find(key).map_or_else(|| self.node.span.clone(), |node| node.span.clone())
    }

    /// The field, `null` being the same as absent.
    pub fn get(&self, key: &str) -> Option<&'n Node> {
        self.find(key).filter(|node| !matches!(node.value, NodeValue::Null))
    }

    fn find(&self, key: &str) -> Option<&'n Node> {
        if self.keys.may_have(key) { self.node.get(key) } else { None }
    }

    /// The field in plain JSON.
    pub fn json(&self, key: &str) -> Option<Value> {
        self.get(key).map(Node::to_json)
    }

    /// A text that must be there and not be blank.
    pub fn required_text(&mut self, key: &str) -> Option<String> {
        self.required_str(key).map(ToOwned::to_owned)
    }

    /// The same, as it stands in the node.
    pub fn required_str(&mut self, key: &str) -> Option<&'n str> {
        if self.get(key).is_none() {
            let message = format!("field `{key}` is missing");
            let span = self.node.span.clone();
            self.findings.error("missing-field", &span, message);
            return None;
        }
        self.filled(key)
    }

    /// A text, blank or not.
    pub fn str(&mut self, key: &str) -> Option<&'n str> {
        let node = self.get(key)?;
        self.expect(key, node, "a string", Node::as_str)
    }

    /// A text or a number, as it was written.
    pub fn digits(&mut self, key: &str) -> Option<&'n str> {
        let node = self.get(key)?;
        self.expect(key, node, "a string or a number", |node| match &node.value {
            NodeValue::String(text) | NodeValue::Number(text) => Some(text.as_str()),
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Array(_) | NodeValue::Object(_) => {
                None
            }
        })
    }

    /// A text that must not be blank.
    pub fn text(&mut self, key: &str) -> Option<String> {
        self.filled(key).map(ToOwned::to_owned)
    }

    /// The same, as it stands in the node.
    fn filled(&mut self, key: &str) -> Option<&'n str> {
        let node = self.get(key)?;
        let text = self.str(key)?;
        if text.trim().is_empty() {
            let message = format!("field `{key}` is blank");
            self.findings.error("blank-field", &node.span, message);
            return None;
        }
        Some(text)
    }

    /// True or false.
    pub fn boolean(&mut self, key: &str) -> Option<bool> {
        let node = self.get(key)?;
        self.expect(key, node, "true or false", |node| match node.value {
            NodeValue::Bool(value) => Some(value),
            NodeValue::Null
            | NodeValue::Number(_)
            | NodeValue::String(_)
            | NodeValue::Array(_)
            | NodeValue::Object(_) => None,
        })
    }

    /// A finite number.
    pub fn number(&mut self, key: &str) -> Option<f64> {
        let node = self.get(key)?;
        self.expect(key, node, "a number of ordinary size", |node| match &node.value {
            NodeValue::Number(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::String(_)
            | NodeValue::Array(_)
            | NodeValue::Object(_) => None,
        })
    }

    /// A whole number within a range.
    pub fn count(&mut self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let node = self.get(key)?;
        let wanted = match *range.end() {
            u64::MAX => format!("a whole number from {} on", range.start()),
            most => format!("a whole number from {} to {most}", range.start()),
        };
        let taken = match &node.value {
            NodeValue::Number(text) => text.parse().ok().filter(|count| range.contains(count)),
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::String(_)
            | NodeValue::Array(_)
            | NodeValue::Object(_) => None,
        };
        if taken.is_none() {
            let message = format!("field `{key}` must be {wanted}");
            self.findings.error("wrong-type", &node.span, message);
        }
        taken
    }

    /// A list of texts, none of them blank. One text alone is a list of one.
    pub fn texts(&mut self, key: &str) -> Vec<String> {
        self.texts_but(key, |text| text.trim().is_empty())
    }

    /// The same, where blanks are a text like any other.
    pub fn texts_with_blanks(&mut self, key: &str) -> Vec<String> {
        self.texts_but(key, str::is_empty)
    }

    fn texts_but(&mut self, key: &str, is_blank: fn(&str) -> bool) -> Vec<String> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let items = match &node.value {
            NodeValue::Array(items) => items.as_slice(),
            NodeValue::String(_) => std::slice::from_ref(node),
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::Object(_) => {
                let message =
                    format!("field `{key}` must be a list of strings, not {}", node.kind());
                self.findings.error("wrong-type", &node.span, message);
                return Vec::new();
            }
        };
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            let Some(text) = self.expect(key, item, "a list of strings", Node::as_str) else {
                continue;
            };
            if is_blank(text) {
                let message = format!("field `{key}` has a blank entry");
                self.findings.error("blank-field", &item.span, message);
            } else {
                texts.push(text.to_owned());
            }
        }
        texts
    }

    /// One of a closed set of names.
    pub fn one_of<T: Copy>(
        &mut self,
        key: &str,
        what: &str,
        names: &[&'static str],
        find: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.filled(key)?;
        let found = find(text);
        if found.is_none() {
            let span = self.span(key);
            let message = format!("unknown {what} `{}`", shortened(text));
            let help = did_you_mean(text, names).unwrap_or_else(|| one_of_list(names));
            self.findings.error_with_help("unknown-value", &span, message, help);
        }
        found
    }

    fn expect<T>(
        &mut self,
        key: &str,
        node: &'n Node,
        wanted: &str,
        take: impl FnOnce(&'n Node) -> Option<T>,
    ) -> Option<T> {
        let taken = take(node);
        if taken.is_none() {
            let message = format!("field `{key}` must be {wanted}, not {}", node.kind());
            self.findings.error("wrong-type", &node.span, message);
        }
        taken
    }
}

/// The entries whose name an earlier one has already.
fn repeated(entries: &[Entry]) -> Vec<&Entry> {
    // Comparing all pairs is the fastest for the few names that an object has, and a
    // trap for one with a hundred thousand.
    const FEW: usize = 32;
    if entries.len() <= FEW {
        let taken = |at: usize| entries[..at].iter().any(|it| it.key == entries[at].key);
        return (0..entries.len()).filter(|at| taken(*at)).map(|at| &entries[at]).collect();
    }
    let mut seen = BTreeSet::new();
    entries.iter().filter(|entry| !seen.insert(&entry.key)).collect()
}

/// How many names an object may have to be told all of them.
const FEW_NAMES: usize = 12;

fn warn_of_unknown(entry: &Entry, known: &[&str], findings: &mut Findings) {
    let message = format!("unknown field `{}`", shortened(&entry.key));
    // Suggestions for more than anybody is shown would take most of the time.
    let is_shown = findings.0.len() < MOST_PROBLEMS;
    let few = (1..=FEW_NAMES).contains(&known.len()).then_some(known);
    let all = || few.map(|it| format!("{}; a name of your own begins with `x-`", one_of_list(it)));
    let names = || did_you_mean(&entry.key, known).or_else(all);
    let help = is_shown.then(names).flatten();
    findings.push(Severity::Warning, UNKNOWN_FIELD, &entry.key_span, message, help);
}

/// The known name that a mistyped one is nearest to, as a question.
pub fn did_you_mean(text: &str, names: &[&str]) -> Option<String> {
    let text = text.to_lowercase();
    let scored = names.iter().map(|name| (strsim::jaro_winkler(&text, name), name));
    let (score, nearest) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score > 0.8).then(|| format!("did you mean `{nearest}`?"))
}

/// The names that there are.
pub(super) fn one_of_list(names: &[&str]) -> String {
    let mut list = "it is one of ".to_owned();
    for (at, name) in names.iter().enumerate() {
        let separator = if at == 0 { "" } else { ", " };
        let _ = write!(list, "{separator}`{name}`");
    }
    list
}

/// A user's word short enough for a message.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use probity_core::json::{Limits, parse_located};

    use super::*;

    #[test]
    fn names_that_look_alike_are_told_apart() {
        let node = parse_located(r#"{"type":"a","value":null}"#, &Limits::default());
        let node = node.expect("it is JSON");
        let mut findings = Findings::default();
        let mut fields = Fields::open(&node, "it", &mut findings).expect("it is an object");
        let of = |key: &str| Keys::of(node.entries()).may_have(key);
        // As long, and begun alike.
        assert!(of("type") && of("text") && of("value") && !of("weight"));
        assert_eq!(fields.str("type"), Some("a"));
        assert_eq!((fields.str("text"), fields.str("value")), (None, None));
    }
}
