//! promptfoo's CSV records: columns whose names start with `__` mean something.

use probity_core::located::{Entry, Node, NodeValue};
use probity_load::function::{Language, split_name};
use serde_json::Value;

use super::{
    Context,
    assertions::{self, is_foreign, known},
    tests::Written,
};
use crate::cases::text;

/// Assertions whose threshold is stated in brackets, and what it is if it is not.
const WITH_THRESHOLD: &[(&str, f64)] = &[
    ("answer-relevance", 0.75),
    ("classifier", 0.75),
    ("context-faithfulness", 0.75),
    ("context-recall", 0.75),
    ("context-relevance", 0.75),
    ("cost", 0.75),
    ("latency", 0.75),
    ("levenshtein", 0.75),
    ("perplexity", 0.75),
    ("perplexity-score", 0.75),
    ("rouge-n", 0.75),
    ("similar", 0.8),
    ("starts-with", 0.75),
];

/// A record as a test.
pub(super) fn test(node: &Node, context: &mut Context<'_>) -> Written {
    let mut test = Written { description: text(node, "__description"), ..Written::default() };
    let metric = text(node, "__metric");
    let mut expected = Vec::new();
    let mut settings = Vec::new();
    for entry in node.entries() {
        let key = entry.key.trim();
        let Some(cell) = entry.node.as_str() else { continue };
        match key.strip_prefix("__") {
            None => {
                test.vars.insert(key.to_owned(), Value::String(cell.to_owned()));
            }
            Some(_) if cell.trim().is_empty() => {}
            Some("description" | "metric") => {}
            Some("prefix") => test.options.around.prefix = super::nunjucks::template(cell),
            Some("suffix") => test.options.around.suffix = super::nunjucks::template(cell),
            Some("threshold") => test.threshold = cell.trim().parse().ok(),
            Some(name) if is_expected(name) => expected.push(parse(&entry.node, cell.trim())),
            Some(name) => match name.strip_prefix("metadata:") {
                Some(name) => test.tags.extend(tags(name, cell)),
                None => settings.push((name, entry)),
            },
        }
    }
    // They may stand before the assertions that they are about.
    for (name, entry) in settings {
        configure(name, entry, &mut expected, context);
    }
    if let Some(metric) = metric {
        expected.iter_mut().for_each(|it| set(it, "metric", NodeValue::String(metric.clone())));
    }
    let list = Node { span: node.span.clone(), value: NodeValue::Array(expected) };
    let assertions::Read { assertions, helpers } = assertions::read(&list, context);
    test.assertions = assertions;
    test.helpers = helpers;
    test
}

fn is_expected(name: &str) -> bool {
    name.strip_prefix("expected").is_some_and(|rest| rest.bytes().all(|it| it.is_ascii_digit()))
}

fn tags(name: &str, cell: &str) -> Vec<String> {
    match name.strip_suffix("[]") {
        None => vec![format!("{name}:{cell}")],
        Some(name) => {
            let cell = cell.replace("\\,", "\u{0}");
            let items = cell.split(',').map(|it| it.trim().replace('\u{0}', ","));
            items.map(|it| format!("{name}:{it}")).collect()
        }
    }
}

/// A column such as `__config:__expected2:threshold`. Those that are not known are noted.
fn configure(name: &str, entry: &Entry, expected: &mut [Node], context: &mut Context<'_>) {
    let target = name.strip_prefix("config:__expected").and_then(|it| it.split_once(':'));
    let known = target.and_then(|(number, key)| {
        let at = if number.is_empty() { 1 } else { number.parse::<usize>().ok()? };
        (key == "threshold").then_some(at.checked_sub(1)?)
    });
    let number = entry.node.as_str().map(|it| it.trim().to_owned());
    match (known, number) {
        // A record may have fewer assertions than others.
        (Some(at), Some(number)) => {
            if let Some(assertion) = expected.get_mut(at) {
                set(assertion, "threshold", NodeValue::Number(number));
            }
        }
        (_, _) => {
            let what = format!("column `{}` has no counterpart", entry.key.trim());
            context.lost(&entry.node, what, "leave it out if it does not matter");
        }
    }
}

/// Sets a field of a table.
fn set(node: &mut Node, key: &str, value: NodeValue) {
    let span = node.span.clone();
    if let NodeValue::Object(entries) = &mut node.value {
        let node = Node { span: span.clone(), value };
        entries.push(Entry { key: key.to_owned(), key_span: span, node });
    }
}

/// One cell as the table of an assertion: `type:value`, `type(threshold):value`, or the expected text
/// itself.
fn parse(node: &Node, cell: &str) -> Node {
    let mut made = Node { span: node.span.clone(), value: NodeValue::Object(Vec::new()) };
    let (kind, value, threshold) = parts(cell);
    set(&mut made, "type", NodeValue::String(kind));
    if let Some(value) = value {
        set(&mut made, "value", NodeValue::String(value));
    }
    if let Some(threshold) = threshold {
        set(&mut made, "threshold", NodeValue::Number(threshold.to_string()));
    }
    made
}

/// The type, the value and the threshold that a cell states.
fn parts(cell: &str) -> (String, Option<String>, Option<f64>) {
    if let Some(named) = cell.strip_prefix("file://") {
        let kind = match Language::of(split_name(named).0) {
            Some(Language::JavaScript) => "javascript",
            Some(Language::Python) => "python",
            None => "equals",
        };
        return (kind.to_owned(), Some(cell.to_owned()), None);
    }
    let (head, value) = match cell.split_once(':') {
        // The metric of `similar` has a colon of its own.
        Some(("similar", rest)) if similar_metric(rest).is_some() => {
            let metric = similar_metric(rest).unwrap_or_default();
            (&cell[.."similar:".len() + metric.len()], rest[metric.len()..].strip_prefix(':'))
        }
        Some((head, value)) => (head, Some(value)),
        None => (cell, None),
    };
    let bracket = head.strip_suffix(')').and_then(|it| it.split_once('('));
    let (name, threshold) = match bracket {
        Some((name, threshold)) => (name, threshold.parse::<f64>().ok()),
        None => (head, None),
    };
    // Their older names.
    let name = match name {
        "grade" => "llm-rubric",
        "fn" | "eval" => "javascript",
        name => name,
    };
    if known(name).is_none() && !is_foreign(name) {
        return ("equals".to_owned(), Some(cell.to_owned()), None);
    }
    let plain = name.strip_prefix("not-").unwrap_or(name);
    let usual = WITH_THRESHOLD.iter().find(|(it, _)| *it == plain).map(|(_, usual)| *usual);
    let value = value.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    (name.to_owned(), value, threshold.or(usual).filter(|_| usual.is_some()))
}

fn similar_metric(rest: &str) -> Option<&'static str> {
    ["cosine", "dot", "euclidean"].into_iter().find(|it| rest.starts_with(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cell: &str, kind: &str, value: Option<&str>, threshold: Option<f64>) {
        let expected = (kind.to_owned(), value.map(ToOwned::to_owned), threshold);
        assert_eq!(parts(cell), expected, "{cell}");
    }

    #[test]
    fn a_cell_says_what_is_expected() {
        check("Paris", "equals", Some("Paris"), None);
        check("10:30", "equals", Some("10:30"), None);
        check("contains: Paris", "contains", Some("Paris"), None);
        check("not-icontains:x:y", "not-icontains", Some("x:y"), None);
        check("is-json", "is-json", None, None);
        check("similar(0.9):hello", "similar", Some("hello"), Some(0.9));
        check("similar: hello", "similar", Some("hello"), Some(0.8));
        check("levenshtein(3):abc", "levenshtein", Some("abc"), Some(3.0));
        check("latency(500)", "latency", None, Some(500.0));
        check("grade: is it polite?", "llm-rubric", Some("is it polite?"), None);
        check("fn:output.length > 3", "javascript", Some("output.length > 3"), None);
        check("file://a.js:f", "javascript", Some("file://a.js:f"), None);
        check("file://a.py", "python", Some("file://a.py"), None);
        check("webhook:https://x", "webhook", Some("https://x"), None);
    }

    #[test]
    fn lists_of_metadata_are_several_tags() {
        assert_eq!(tags("kind[]", "a, b\\,c"), ["kind:a", "kind:b,c"]);
        assert_eq!(tags("kind", "a, b"), ["kind:a, b"]);
    }
}
