//! The values of assertions: texts, lists, schemas, code.

use probity_core::{
    criteria::{Assertion, AssertionKind, AssertionTest},
    located::Node,
};
use probity_load::{
    dataset::parse_yaml,
    function::{Language, split_name},
    template,
};
use serde_json::{Map, Value};

use super::{ADVICE, Context, nunjucks, transform};
use crate::promptfoo::providers::{note_typescript, seen_by_function, variables_in};

/// An assertion with its value and nothing else.
pub(super) fn made(
    node: &Node,
    kind: AssertionKind,
    context: &mut Context<'_>,
) -> Option<Assertion> {
    let written = node.get("value").map(Node::to_json).filter(|it| !it.is_null());
    if kind.test == AssertionTest::Javascript {
        return script(node, kind, written.as_ref(), context);
    }
    if kind.test == AssertionTest::Python {
        return python(node, kind, written.as_ref(), context);
    }
    let is_perplexity =
        matches!(kind.test, AssertionTest::Perplexity | AssertionTest::PerplexityScore);
    if is_perplexity && node.get("threshold").is_none() {
        // It always holds.
        return None;
    }
    if is_markup(kind.test) {
        let written = match written {
            Some(value) => Some(read(kind.test, value, node, context)?),
            None => None,
        };
        let value = markup(kind.test, written.as_ref(), node, context).ok()?;
        return Some(Assertion { value, ..Assertion::new(kind) });
    }
    let value = match written {
        // promptfoo's have none, and read none.
        Some(_) if kind.test == AssertionTest::Guardrails => None,
        Some(value) => Some(read(kind.test, value, node, context)?),
        // The judge's prompt says it all.
        None if kind.test == AssertionTest::LlmRubric => Some(Value::from("What was asked for.")),
        None => None,
    };
    if let (AssertionTest::Regex, Some(Value::String(pattern))) = (kind.test, &value)
        && !template::is_template(pattern)
        && regex::Regex::new(pattern).is_err()
    {
        return Some(as_script(kind, pattern));
    }
    Some(Assertion { value, ..Assertion::new(kind) })
}

/// The value of an assertion that is no code.
fn read(
    test: AssertionTest,
    value: Value,
    node: &Node,
    context: &mut Context<'_>,
) -> Option<Value> {
    let value = match value {
        Value::String(written) => from_text(&written, node, context)?,
        Value::Array(items) => {
            let item = |it: Value| match it.as_str() {
                Some(written) => from_text(written, node, context),
                None => Some(it),
            };
            Value::Array(items.into_iter().map(item).collect::<Option<_>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value,
    };
    let is_schema = matches!(test, AssertionTest::IsJson | AssertionTest::ContainsJson);
    let is_text =
        matches!(test, AssertionTest::Contains | AssertionTest::Icontains | AssertionTest::Equals);
    let is_list = matches!(
        test,
        AssertionTest::ContainsAny
            | AssertionTest::ContainsAll
            | AssertionTest::IcontainsAny
            | AssertionTest::IcontainsAll
            | AssertionTest::ToolCallF1
    );
    let count = value.as_str().and_then(|it| it.trim().parse::<u64>().ok());
    Some(match (count, test == AssertionTest::WordCount) {
        (Some(count), true) => Value::from(count),
        (_, _) if is_schema => schema(value),
        (_, _) if is_list => texts(value),
        (_, _) if is_text => scalar_text(value),
        (_, _) if test == AssertionTest::LlmRubric && !value.is_string() => {
            Value::String(value.to_string())
        }
        (_, _) => value,
    })
}

const fn is_markup(test: AssertionTest) -> bool {
    matches!(
        test,
        AssertionTest::IsXml
            | AssertionTest::ContainsXml
            | AssertionTest::IsHtml
            | AssertionTest::ContainsHtml
            | AssertionTest::IsSql
            | AssertionTest::ContainsSql
    )
}

/// A text, or what stands in the file that it names.
fn from_text(text: &str, node: &Node, context: &mut Context<'_>) -> Option<Value> {
    let Some(name) = text.strip_prefix("file://") else {
        return Some(Value::String(nunjucks::template(text)));
    };
    if Language::of(split_name(name).0).is_some() {
        let what = format!("a function that makes the value of an assertion: `{name}`");
        context.lost(node, what, "write the value");
        return None;
    }
    let has_data = [".json", ".yaml", ".yml"].iter().any(|it| name.ends_with(it));
    if has_data {
        return Some(context.tree(node, name)?.to_json());
    }
    match context.source.text(name) {
        Ok(text) => Some(Value::String(text.text.trim().to_owned())),
        Err(error) => {
            context.unreadable(node, &error);
            None
        }
    }
}

/// A schema may be written as a text, in YAML or JSON.
fn schema(value: Value) -> Value {
    let parsed = value.as_str().and_then(|text| parse_yaml(text).ok()).map(|it| it.to_json());
    parsed.filter(Value::is_object).unwrap_or(value)
}

/// Texts of a list. A text with commas is one, too, and stays as it is.
fn texts(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(scalar_text).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            value
        }
    }
}

/// Numbers and booleans as the text that they are compared as.
fn scalar_text(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::String(number.to_string()),
        Value::Bool(value) => Value::String(value.to_string()),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => value,
    }
}

/// A value that is listed as not carried over.
struct Lost;

/// The value of an assertion about XML, HTML or SQL. HTML has none in promptfoo either.
fn markup(
    test: AssertionTest,
    value: Option<&Value>,
    node: &Node,
    context: &mut Context<'_>,
) -> Result<Option<Value>, Lost> {
    if matches!(test, AssertionTest::IsXml | AssertionTest::ContainsXml) {
        return elements(test, value, node, context);
    }
    if matches!(test, AssertionTest::IsSql | AssertionTest::ContainsSql) {
        return sql(test, value, node, context);
    }
    Ok(None)
}

/// Elements that have to be there: a text, a list, or a table with `requiredElements`.
fn elements(
    test: AssertionTest,
    value: Option<&Value>,
    node: &Node,
    context: &mut Context<'_>,
) -> Result<Option<Value>, Lost> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) if items.is_empty() => Ok(None),
        Some(Value::Object(fields)) if fields.is_empty() => Ok(None),
        Some(value @ Value::String(_)) => Ok(Some(value.clone())),
        Some(Value::Array(items)) => Ok(Some(texts(Value::Array(items.clone())))),
        Some(other) => match other.get("requiredElements") {
            Some(Value::Array(items)) if items.is_empty() => Ok(None),
            Some(Value::Array(items)) => Ok(Some(texts(Value::Array(items.clone())))),
            _ => {
                let what = format!("assertion `{test}` with a value that promptfoo refuses");
                context.lost(node, what, "list the elements that have to be there");
                Err(Lost)
            }
        },
    }
}

/// A dialect of SQL, and what may be touched. Without one, promptfoo takes `MySQL`.
fn sql(
    test: AssertionTest,
    value: Option<&Value>,
    node: &Node,
    context: &mut Context<'_>,
) -> Result<Option<Value>, Lost> {
    if let Some(other) = value.filter(|it| !it.is_object()) {
        let what = format!("assertion `{test}` with the value {other}, which promptfoo refuses");
        context.lost(node, what, "name the `databaseType`, `allowedTables` and `allowedColumns`");
        return Err(Lost);
    }
    let field = |name: &str| value.and_then(|it| it.get(name));
    let named = field("databaseType").and_then(Value::as_str).unwrap_or("mysql").to_lowercase();
    let dialect = match named.as_str() {
        "mariadb" | "mysql" => "mysql",
        "transactsql" => "mssql",
        known @ ("bigquery" | "hive" | "postgresql" | "redshift" | "snowflake" | "sqlite") => known,
        other => {
            let what = format!("SQL of `{other}` is read as `generic`");
            context.assumed(node, what, "docs/metrics.md lists the dialects that there are");
            "generic"
        }
    };
    let mut made = Map::new();
    made.insert("dialect".to_owned(), Value::from(dialect));
    for (theirs, ours) in [("allowedTables", "tables"), ("allowedColumns", "columns")] {
        match field(theirs) {
            None => {}
            Some(Value::Array(items)) if items.is_empty() => {}
            Some(Value::Array(items)) => {
                made.insert(ours.to_owned(), texts(Value::Array(items.clone())));
            }
            Some(_) => {
                let what = format!("`{theirs}` of assertion `{test}`, which is no list");
                context.lost(node, what, "write a list");
                return Err(Lost);
            }
        }
    }
    match made.len() {
        1 => Ok(Some(Value::from(dialect))),
        _ => Ok(Some(Value::Object(made))),
    }
}

/// A pattern that only JavaScript understands.
fn as_script(kind: AssertionKind, pattern: &str) -> Assertion {
    let kind = AssertionKind { test: AssertionTest::Javascript, ..kind };
    let code = format!("new RegExp({}).test(output)", Value::from(pattern));
    Assertion { value: Some(Value::String(code)), ..Assertion::new(kind) }
}

/// The code of an assertion, or the name of its file.
fn code_of<'v>(
    node: &Node,
    kind: AssertionKind,
    value: Option<&'v Value>,
    context: &mut Context<'_>,
) -> Option<&'v str> {
    let code = value.and_then(Value::as_str);
    if code.is_none() {
        context.lost(node, format!("assertion `{kind}` without code"), ADVICE);
    }
    code
}

fn script(
    node: &Node,
    kind: AssertionKind,
    value: Option<&Value>,
    context: &mut Context<'_>,
) -> Option<Assertion> {
    let code = code_of(node, kind, value, context)?;
    let Some(named) = code.strip_prefix("file://") else {
        if transform::needs_more(code) {
            return inline(node, kind, code, context);
        }
        let value = Some(Value::String(nunjucks::template(code.trim_end())));
        return Some(Assertion { value, ..Assertion::new(kind) });
    };
    if Language::of(split_name(named).0) == Some(Language::Python) {
        return python(node, AssertionKind { test: AssertionTest::Python, ..kind }, value, context);
    }
    let named = referenced(node, named, context)?;
    match needs_node(node, code, context) {
        false => {
            let value = Some(Value::String(format!("file://{named}")));
            Some(Assertion { value, ..Assertion::new(kind) })
        }
        true => {
            let is_known = context.draft.scorers.iter().any(|it| it.node == named);
            let path = code.trim_start_matches("file://");
            let env = match is_known {
                true => Vec::new(),
                false => {
                    note_typescript(split_name(path).0, node, context);
                    seen_by_function(path, "its scorer", node, context)
                }
            };
            let scorer = context.draft.scorer(&named, env);
            let kind = AssertionKind { test: AssertionTest::Scorer, ..kind };
            Some(Assertion { value: Some(Value::String(scorer)), ..Assertion::new(kind) })
        }
    }
}

/// Code that needs Node: it becomes a file beside the suite. Templates in it are filled in nowhere.
fn inline(
    node: &Node,
    kind: AssertionKind,
    code: &str,
    context: &mut Context<'_>,
) -> Option<Assertion> {
    if template::is_template(code) {
        let what = "JavaScript with templates that needs more than the language itself";
        context.lost(node, what, "put it into a file and name that as a scorer with `node`");
        return None;
    }
    let adapter = context.inline_adapter(&transform::as_function(code));
    let seen = variables_in(code);
    let seen: Vec<&str> = seen.iter().map(String::as_str).collect();
    let scorer = context.draft.adapted_scorer(&adapter, &seen);
    let kind = AssertionKind { test: AssertionTest::Scorer, ..kind };
    Some(Assertion { value: Some(Value::String(scorer)), ..Assertion::new(kind) })
}

/// Whether a file with a script uses packages, files or the network, or is written in TypeScript.
fn needs_node(node: &Node, code: &str, context: &mut Context<'_>) -> bool {
    let path = split_name(code.trim_start_matches("file://")).0;
    let text = match context.source.text(path) {
        Ok(text) => text.text,
        Err(error) => {
            context.unreadable(node, &error);
            return false;
        }
    };
    transform::is_typescript(path) || transform::file_needs_more(&text)
}

fn python(
    node: &Node,
    kind: AssertionKind,
    value: Option<&Value>,
    context: &mut Context<'_>,
) -> Option<Assertion> {
    let code = code_of(node, kind, value, context)?;
    let is_file = code.starts_with("file://") || Language::of(split_name(code).0).is_some();
    let value = match is_file && !code.contains('\n') {
        true => {
            let named = code.trim_start_matches("file://");
            format!("file://{}", referenced(node, named, context)?)
        }
        false => nunjucks::template(code),
    };
    context.draft.settings.allow_code = true;
    Some(Assertion { value: Some(Value::String(value)), ..Assertion::new(kind) })
}

fn referenced(node: &Node, named: &str, context: &mut Context<'_>) -> Option<String> {
    match transform::reference(named, context) {
        Ok(named) => Some(named),
        Err(error) => {
            context.unreadable(node, &error);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_may_be_a_text() {
        let written = Value::from("type: object\nrequired: [a]\n");
        assert_eq!(schema(written)["required"][0], "a");
    }
}
