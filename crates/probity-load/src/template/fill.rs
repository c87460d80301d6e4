//! Templates within other things: values that name other values, and conversations.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use probity_core::request::{Image, Message, Part, ToolResult};
use serde_json::Value;

use super::{TemplateError, is_template, render, undefined_variables};
use crate::case::image_at;

/// The variables with those values filled in that name other variables.
///
/// A value whose braces name no variable at all is data that happens to have braces, and stays.
pub fn fill_values(
    vars: &BTreeMap<String, Value>,
) -> Result<Cow<'_, BTreeMap<String, Value>>, (String, TemplateError)> {
    let named = |(name, value): (&String, &Value)| {
        let text = value.as_str().filter(|text| is_template(text))?;
        let mut names = undefined_variables(text, |_| false).unwrap_or_default();
        names.retain(|it| vars.contains_key(it));
        (!names.is_empty()).then(|| (name.clone(), names))
    };
    let mut waiting: BTreeMap<String, Vec<String>> = vars.iter().filter_map(named).collect();
    if waiting.is_empty() {
        return Ok(Cow::Borrowed(vars));
    }
    let mut filled = vars.clone();
    // One after the other, each after those that it names.
    while let Some(first) = waiting.keys().next() {
        let is_ready = |names: &Vec<String>| !names.iter().any(|it| waiting.contains_key(it));
        let ready = waiting.iter().find(|(_, names)| is_ready(names)).map(|(name, _)| name.clone());
        let Some(name) = ready else {
            let reason = format!("the value of `{first}` refers to itself");
            return Err((first.clone(), TemplateError::whole(reason)));
        };
        let text = filled[&name].as_str().unwrap_or("");
        match render(text, &filled) {
            Ok(text) => filled.insert(name.clone(), Value::String(text)),
            Err(error) => return Err((name, error)),
        };
        waiting.remove(&name);
    }
    Ok(Cow::Owned(filled))
}

/// The variable that holds the arguments of a call.
pub const ARGUMENTS: &str = "arguments";

/// What a tool says to a call.
pub fn fill_result(
    content: &Value,
    arguments: &Value,
    vars: &BTreeMap<String, Value>,
) -> Result<String, TemplateError> {
    let Some(text) = content.as_str() else { return Ok(content.to_string()) };
    if !is_template(text) {
        return Ok(text.to_owned());
    }
    let mut vars = vars.clone();
    vars.insert(ARGUMENTS.to_owned(), arguments.clone());
    render(text, &vars)
}

/// JSON with the templates in its texts filled in. A text that is one expression and nothing
/// else becomes the value of it, and is left out of its object if that is null.
pub fn fill_json(value: &Value, vars: &BTreeMap<String, Value>) -> Result<Value, TemplateError> {
    Ok(match value {
        Value::String(text) => match expression(text) {
            Some(inner) => {
                let written = render(&format!("{{{{ ({inner}) | tojson }}}}"), vars);
                // The part of the template that an error is about is not one that was written.
                let written = written.map_err(|it| TemplateError { span: None, ..it })?;
                let filled: Value = serde_json::from_str(&written)
                    .map_err(|it| TemplateError::whole(format!("it makes no JSON: {it}")))?;
                // The filter takes what is not defined for null.
                if filled.is_null() && render(&defined(inner), vars)?.is_empty() {
                    render(text, vars)?;
                }
                filled
            }
            None => Value::String(render(text, vars)?),
        },
        Value::Array(items) => {
            let items = items.iter().map(|it| fill_json(it, vars));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(map) => {
            let mut filled = serde_json::Map::new();
            for (key, value) in map {
                let inner = fill_json(value, vars)?;
                if !inner.is_null() || value.is_null() {
                    filled.insert(key.clone(), inner);
                }
            }
            Value::Object(filled)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

/// A template that is empty if an expression is not defined.
fn defined(expression: &str) -> String {
    format!("{{% if ({expression}) is defined %}}yes{{% endif %}}")
}

/// What stands in the braces of a text that is one expression and nothing else.
pub(super) fn expression(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let inner = inner.strip_suffix('-').unwrap_or(inner);
    let is_more = ["{{", "}}", "{%", "{#"].iter().any(|mark| inner.contains(mark));
    (!is_more && !inner.trim().is_empty()).then_some(inner)
}

/// A template of a conversation that cannot be filled in.
#[derive(Debug)]
pub struct BadMessage {
    /// Which of the messages it is in, from 0.
    pub message: usize,
    /// The template.
    pub text: Arc<str>,
    /// What is wrong with it.
    pub error: TemplateError,
}

/// A conversation with its templates filled in.
pub fn fill_messages<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    vars: &BTreeMap<String, Value>,
) -> Result<Vec<Message>, BadMessage> {
    let fill_part = |part: &Part| -> Result<Part, (Arc<str>, TemplateError)> {
        let fill = |text: &Arc<str>| match is_template(text) {
            true => render(text, vars).map(Arc::from).map_err(|error| (text.clone(), error)),
            false => Ok(text.clone()),
        };
        Ok(match part {
            Part::Text(text) => Part::Text(fill(text)?),
            Part::Image(Image::Url(url)) if is_template(url) => {
                let place = fill(url)?;
                let image = image_at(&place, std::path::Path::new(""));
                Part::Image(image.map_err(|why| (url.clone(), TemplateError::whole(why)))?)
            }
            Part::ToolResult(ToolResult { id, name, content }) => {
                let (id, name, content) = (id.clone(), name.clone(), fill(content)?);
                Part::ToolResult(ToolResult { id, name, content })
            }
            Part::Image(_) | Part::ToolCall(_) => part.clone(),
        })
    };
    let fill_message = |(message, said): (usize, &Message)| {
        let content = said.content.iter().map(fill_part).collect::<Result<_, _>>();
        let content = content.map_err(|(text, error)| BadMessage { message, text, error })?;
        Ok(Message { role: said.role, content })
    };
    messages.into_iter().enumerate().map(fill_message).collect()
}

#[cfg(test)]
mod tests {
    use probity_core::request::Role;
    use serde_json::json;

    use super::*;

    fn filled(vars: Value) -> Result<Value, String> {
        let vars = serde_json::from_value(vars).unwrap();
        match fill_values(&vars) {
            Ok(filled) => Ok(json!(filled)),
            Err((name, error)) => Err(format!("{name}: {error}")),
        }
    }

    #[test]
    fn values_may_name_other_values() {
        let vars = json!({ "a": "x{{ b }}", "b": "y{{ c }}", "c": "z", "n": 1, "l": ["{{ c }}"] });
        let expected = json!({ "a": "xyz", "b": "yz", "c": "z", "n": 1, "l": ["{{ c }}"] });
        assert_eq!(filled(vars), Ok(expected));
    }

    #[test]
    fn braces_that_name_nothing_are_data() {
        let latex = json!({ "a": "\\frac{{p}}{q}", "b": "{% if" });
        assert_eq!(filled(latex.clone()), Ok(latex));
        // What a value became is not looked at again.
        let twice = json!({ "a": "{{ b }}", "b": "{% raw %}{{ a }}{% endraw %}{{ c }}", "c": "z" });
        assert_eq!(filled(twice).unwrap()["a"], "{{ a }}z");
    }

    #[test]
    fn circles_and_unknown_names_are_errors() {
        insta::assert_snapshot!(filled(json!({ "a": "{{ b }}", "b": "{{ a }}" })).unwrap_err(), @"a: the value of `a` refers to itself");
        insta::assert_snapshot!(filled(json!({ "a": "{{ b }} {{ x }}", "b": "" })).unwrap_err(), @"a: `x` has no value");
    }

    #[test]
    fn json_is_filled_in_by_value() {
        let vars = BTreeMap::from([
            ("text".to_owned(), json!("a \"b\"\n")),
            ("list".to_owned(), json!([1, { "x": 2.5 }])),
            ("nothing".to_owned(), json!(null)),
        ]);
        let body = json!({
            "message": "say {{ text }}", "alone": "{{ text }}", "n": 1, "kept": null,
            "all": ["{{ list }}", " {{- list[1].x -}} "], "left_out": "{{ nothing }}",
            "inner": { "both": "{{ list[0] }}{{ list[0] }}" },
        });
        let expected = json!({
            "message": "say a \"b\"\n", "alone": "a \"b\"\n", "n": 1, "kept": null,
            "all": [[1, { "x": 2.5 }], 2.5], "inner": { "both": "11" },
        });
        assert_eq!(fill_json(&body, &vars), Ok(expected));
        let error = fill_json(&json!({ "a": "say {{ nothing }}" }), &vars).unwrap_err();
        assert_eq!(error.to_string(), "`nothing` has no value");
        let error = fill_json(&json!({ "a": ["{{ who }}"] }), &vars).unwrap_err();
        assert_eq!(error.to_string(), "`who` has no value");
    }

    #[test]
    fn every_text_of_a_conversation_is_filled_in() {
        let vars = BTreeMap::from([
            ("x".to_owned(), json!("1")),
            ("u".to_owned(), json!("https://h/a.png")),
        ]);
        let result = ToolResult { id: None, name: "t".to_owned(), content: "r{{ x }}".into() };
        let messages = [
            Message::text(Role::System, "s{{ x }}"),
            Message {
                role: Role::User,
                content: vec![
                    Part::Text("u{{ x }}".into()),
                    Part::Image(Image::Url("{{ u }}".into())),
                ],
            },
            Message { role: Role::Tool, content: vec![Part::ToolResult(result)] },
        ];
        let filled = serde_json::to_string(&fill_messages(&messages, &vars).unwrap()).unwrap();
        insta::assert_snapshot!(filled, @r#"[{"role":"system","content":"s1"},{"role":"user","content":[{"text":"u1"},{"image":{"url":"https://h/a.png"}}]},{"role":"tool","content":[{"tool_result":{"name":"t","content":"r1"}}]}]"#);
        let bad = fill_messages(&[Message::text(Role::User, "{{ y }}")], &vars).unwrap_err();
        assert_eq!((bad.message, bad.error.to_string().as_str()), (0, "`y` has no value"));
    }
}
