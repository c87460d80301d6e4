//! Datasets in TOML.

use ::toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::Intake;
use probity_core::{
    located::{Entry, Node, NodeValue},
    problem::Source,
};

/// Reads a file with `version` and `[[test_cases]]`.
pub(super) fn read(text: &str, intake: &mut Intake<'_>) {
    let source = Source::file(text);
    let (root, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return intake.document(&source, &table(root.span(), root.get_ref()));
    }
    for error in errors {
        let span = error.span().unwrap_or_default();
        intake.error_at(&source, &span, "toml", error.message().trim_end().replace('\n', "; "));
    }
}

/// A TOML document as a located tree, or its first error.
pub fn parse(text: &str) -> Result<Node, ::toml::de::Error> {
    let root = DeTable::parse(text)?;
    Ok(table(root.span(), root.get_ref()))
}

fn table(span: std::ops::Range<usize>, table: &DeTable<'_>) -> Node {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, node)| Entry {
            key: key.get_ref().to_string(),
            key_span: key.span(),
            node: value(node),
        })
        .collect();
    // The table is sorted by name; the file's own order is the one to keep.
    entries.sort_by_key(|entry| entry.key_span.start);
    Node { span, value: NodeValue::Object(entries) }
}

fn value(node: &Spanned<DeValue<'_>>) -> Node {
    let span = node.span();
    let value = match node.get_ref() {
        DeValue::String(text) => NodeValue::String(text.to_string()),
        DeValue::Integer(number) => integer(number),
        DeValue::Float(number) => NodeValue::Number(float(number.as_str())),
        DeValue::Boolean(value) => NodeValue::Bool(*value),
        DeValue::Datetime(time) => NodeValue::String(time.to_string()),
        DeValue::Array(items) => NodeValue::Array(items.iter().map(value).collect()),
        DeValue::Table(inner) => return table(span, inner),
    };
    Node { span, value }
}

fn integer(number: &::toml::de::DeInteger<'_>) -> NodeValue {
    let digits = number.as_str();
    let decimal = match number.radix() {
        10 => digits.strip_prefix('+').unwrap_or(digits).to_owned(),
        radix => match i128::from_str_radix(digits, radix) {
            Ok(number) => number.to_string(),
            Err(_) => digits.to_owned(),
        },
    };
    NodeValue::Number(decimal)
}

/// A float in JSON's spelling; `inf` and `nan` have none and are left as they are.
fn float(text: &str) -> String {
    text.strip_prefix('+').unwrap_or(text).to_owned()
}
