//! Prompts that are conversations: JSON or YAML with roles, before or after their variables are filled in.

use probity_core::json::{self, Limits};
use probity_load::dataset::parse_yaml;
use serde_json::{Map, Value, json};

use crate::{
    draft::Asks,
    promptfoo::templates::{marked, only_expression, translate, unmarked},
};

/// What a prompt asks, or why that cannot be said.
pub(super) fn read(raw: &str) -> Result<Asks, String> {
    let trimmed = raw.trim();
    if let Some(value) = parse(trimmed) {
        if let Some(messages) = conversation(&value)? {
            return Ok(Asks::Messages(messages));
        }
        if value.is_object() || value.is_array() {
            return Ok(Asks::Template(written(&value)?));
        }
    }
    if trimmed.starts_with("- role:")
        && let Some(value) = parse_yaml_chat(raw)
        && let Some(messages) = conversation(&value)?
    {
        return Ok(Asks::Messages(messages));
    }
    let looks_like_chat =
        trimmed.starts_with('[') && trimmed.contains("\"role\"") && trimmed.ends_with(']');
    if looks_like_chat {
        let value = parse_filled(trimmed).and_then(|it| conversation(&it).transpose());
        return match value {
            Some(messages) => Ok(Asks::Messages(messages?)),
            None => Ok(Asks::MessagesTemplate(translate(trimmed)?)),
        };
    }
    if raw.contains("_conversation") {
        return Err("`_conversation` is what was said in earlier tests".to_owned());
    }
    Ok(Asks::Template(translate(raw)?))
}

fn parse(text: &str) -> Option<Value> {
    json::parse(text, &Limits::default()).ok().map(|it| it.value)
}

/// YAML whose variables are not filled in yet.
fn parse_yaml_chat(raw: &str) -> Option<Value> {
    let (text, tags) = marked(raw)?;
    let value = parse_yaml(&text).ok()?.to_json();
    Some(restored(value, &tags))
}

/// JSON in which variables stand outside of strings: `"content": {{ question | dump }}`.
fn parse_filled(raw: &str) -> Option<Value> {
    let (text, tags) = marked(raw)?;
    let mut output = String::new();
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        match c {
            '"' if !escaped => in_string = !in_string,
            // A mark that stands alone becomes a string.
            '\u{e000}' if !in_string => output.push('"'),
            _ => {}
        }
        output.push(c);
        if c == '\u{e001}' && !in_string {
            output.push('"');
        }
        escaped = c == '\\' && !escaped;
    }
    let value = parse(&output)?;
    Some(restored(value, &tags))
}

fn restored(value: Value, tags: &[String]) -> Value {
    match value {
        Value::String(text) => {
            let text = unmarked(&text, tags);
            // What was written as JSON is the text itself here.
            let plain = only_expression(&text).and_then(|inner| {
                let (expression, filter) = inner.rsplit_once('|')?;
                matches!(filter.trim(), "dump" | "tojson" | "safe")
                    .then(|| expression.trim().to_owned())
            });
            Value::String(match plain {
                Some(expression) => {
                    format!("{{{{ {} }}}}", expression.trim_end_matches("| dump").trim())
                }
                None => text,
            })
        }
        Value::Array(items) => items.into_iter().map(|it| restored(it, tags)).collect(),
        Value::Object(map) => Value::Object(
            map.into_iter().map(|(key, it)| (unmarked(&key, tags), restored(it, tags))).collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// The messages of a conversation, in the form that suites have.
fn conversation(value: &Value) -> Result<Option<Value>, String> {
    let (system, list) = match value {
        Value::Array(list) => (None, list),
        Value::Object(map) => match map.get("messages").or_else(|| map.get("contents")) {
            Some(Value::Array(list)) => {
                (map.get("system").or_else(|| map.get("system_instruction")), list)
            }
            Some(_) | None => return Ok(None),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(None),
    };
    let is_message = |it: &Value| it.get("content").is_some() || it.get("parts").is_some();
    if list.is_empty() || !list.iter().all(is_message) {
        return Ok(None);
    }
    let mut messages = Vec::new();
    if let Some(system) = system {
        messages.push(
            json!({ "role": "system", "content": content(system.get("parts").unwrap_or(system))? }),
        );
    }
    for message in list {
        messages.push(one(message)?);
    }
    Ok(Some(Value::Array(messages)))
}

fn one(message: &Value) -> Result<Value, String> {
    let role = message.get("role").and_then(Value::as_str).unwrap_or("user");
    let role = match role {
        "developer" => "system",
        "model" => "assistant",
        role @ ("system" | "user" | "assistant" | "tool") => role,
        other if other.contains("{{") => return Err("a variable says who speaks".to_owned()),
        other => return Err(format!("nobody speaks as `{other}`")),
    };
    let said = message.get("content").or_else(|| message.get("parts")).unwrap_or(&Value::Null);
    let mut made = Map::new();
    made.insert("role".to_owned(), role.into());
    made.insert("content".to_owned(), content(said)?);
    for key in ["tool_calls", "tool_call_id", "name"] {
        if let Some(value) = message.get(key) {
            made.insert(key.to_owned(), value.clone());
        }
    }
    Ok(Value::Object(made))
}

/// What is said, with its templates translated.
fn content(said: &Value) -> Result<Value, String> {
    match said {
        Value::String(text) => translate(text).map(Value::from),
        Value::Array(parts) => {
            let parts: Result<Vec<Value>, String> = parts.iter().map(part).collect();
            let parts = parts?;
            // Parts that are nothing but text are one text.
            let texts: Option<Vec<&str>> = parts
                .iter()
                .map(|it| {
                    it.get("text")
                        .filter(|_| it.get("type").is_none_or(|kind| kind == "text"))?
                        .as_str()
                })
                .collect();
            Ok(texts.map_or(Value::Array(parts.clone()), |it| it.concat().into()))
        }
        Value::Null => Ok(Value::from("")),
        Value::Object(_) => part(said).map(|it| it.get("text").cloned().unwrap_or(it)),
        Value::Bool(_) | Value::Number(_) => Ok(Value::from(said.to_string())),
    }
}

fn part(part: &Value) -> Result<Value, String> {
    /// Hints for caches of servers.
    const HINTS: &[&str] = &["cache_control", "prompt_cache_breakpoint", "cachePoint"];
    if let Some(image) = image(part)? {
        return Ok(json!({ "image": image }));
    }
    match part {
        Value::String(text) => translate(text).map(|it| json!({ "type": "text", "text": it })),
        Value::Array(items) => items.iter().map(self::part).collect(),
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| !HINTS.contains(&key.as_str()));
            let pairs: Result<Map<String, Value>, String> =
                kept.map(|(key, it)| Ok((key.clone(), nested(it)?))).collect();
            pairs.map(Value::Object)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(part.clone()),
    }
}

/// An image in the words of OpenAI, Anthropic, Bedrock or Gemini.
fn image(part: &Value) -> Result<Option<String>, String> {
    let text = |pointer: &str| part.pointer(pointer).and_then(Value::as_str);
    let url = text("/image_url/url").or_else(|| text("/image_url")).or_else(|| text("/source/url"));
    if let Some(url) = url {
        return translate(url).map(Some);
    }
    let gemini = |name: &str| text(&format!("/inlineData/{name}"));
    let (kind, data) = if let Some(data) = text("/source/data") {
        (text("/source/media_type").unwrap_or("image/jpeg").to_owned(), data)
    } else if let Some(data) = text("/image/source/bytes") {
        (format!("image/{}", text("/image/format").unwrap_or("jpeg")), data)
    } else if let Some(data) = gemini("data").or_else(|| text("/inline_data/data")) {
        let kind = gemini("mimeType").or_else(|| text("/inline_data/mime_type"));
        (kind.unwrap_or("image/jpeg").to_owned(), data)
    } else {
        return Ok(None);
    };
    let data = translate(data)?;
    Ok(Some(match only_expression(&data) {
        // A file is filled in as a whole address.
        Some(value) => format!(
            "{{{{ {value} if {value} is startingwith('data:') else 'data:{kind};base64,' ~ {value} }}}}"
        ),
        None => format!("data:{kind};base64,{data}"),
    }))
}

fn nested(value: &Value) -> Result<Value, String> {
    match value {
        Value::String(text) => translate(text).map(Value::from),
        Value::Array(items) => items.iter().map(nested).collect(),
        Value::Object(map) => {
            let pairs: Result<Map<String, Value>, String> =
                map.iter().map(|(key, it)| Ok((key.clone(), nested(it)?))).collect();
            pairs.map(Value::Object)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
    }
}

/// JSON as promptfoo writes it, with what is filled into its strings escaped.
fn written(value: &Value) -> Result<String, String> {
    let mut tags = Vec::new();
    let marked = mark_strings(value, &mut tags)?;
    let text = serde_json::to_string_pretty(&marked).map_err(|error| error.to_string())?;
    Ok(unmarked(&text, &tags))
}

fn mark_strings(value: &Value, tags: &mut Vec<String>) -> Result<Value, String> {
    match value {
        Value::String(text) => {
            let translated = translate(text)?;
            let Some((marks, own)) = marked(&translated) else {
                return Err("a string of its JSON has more than variables in it".to_owned());
            };
            let mut output = marks;
            for (number, tag) in own.iter().enumerate().rev() {
                let inner =
                    tag.trim_start_matches("{{").trim_end_matches("}}").trim_matches(['-', ' ']);
                // Without the quotes that JSON puts around a text.
                let escaped = format!("{{{{ (({inner}) | string | tojson)[1:-1] }}}}");
                let new = crate::promptfoo::templates::mark(tags.len());
                output = output.replace(
                    &crate::promptfoo::templates::mark(number),
                    &new.replace('\u{e000}', "\u{e002}"),
                );
                tags.push(escaped);
            }
            Ok(Value::from(output.replace('\u{e002}', "\u{e000}")))
        }
        Value::Array(items) => items.iter().map(|it| mark_strings(it, tags)).collect(),
        Value::Object(map) => {
            let pairs: Result<Map<String, Value>, String> =
                map.iter().map(|(key, it)| Ok((key.clone(), mark_strings(it, tags)?))).collect();
            pairs.map(Value::Object)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(raw: &str) -> String {
        match read(raw) {
            Ok(Asks::Template(text)) => format!("template {text}"),
            Ok(Asks::Messages(messages)) => format!("messages {messages}"),
            Ok(Asks::MessagesTemplate(text)) => format!("template of messages {text}"),
            Ok(Asks::Function(_) | Asks::Adapter { .. }) => "function".to_owned(),
            Err(why) => format!("refused {why}"),
        }
    }

    #[test]
    fn conversations_are_told_from_texts() {
        let told = [
            r#"[{"role": "system", "content": "Be {{tone}}."}, {"role": "user", "content": "{{q}}"}]"#,
            r#"[{"role": "user", "content": {{ q | dump }} }]"#,
            "- role: developer\n  content: Be brief\n- role: user\n  content: '{{ q }}'\n",
            "- role: user\n  content: {{ q }}\n",
            r#"{"contents": [{"role": "model", "parts": [{"text": "Hi"}, {"text": " {{q}}"}]}]}"#,
            r#"{"topic": "{{ topic }}", "n": 1}"#,
            r#"[{"role": "user", "content": "x"}{% for m in _conversation %}, {"role": "user", "content": "{{ m }}"}{% endfor %}]"#,
            r#"[{% for m in earlier %}{"role": "user", "content": {{ m | dump }}},{% endfor %}{"role": "user", "content": "x"}]"#,
            "Translate {{ text }}",
        ];
        let told: Vec<String> = told.into_iter().map(shown).collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        messages [{"role":"system","content":"Be {{tone}}."},{"role":"user","content":"{{q}}"}]
        messages [{"role":"user","content":"{{ q }}"}]
        messages [{"role":"system","content":"Be brief"},{"role":"user","content":"{{ q }}"}]
        messages [{"role":"user","content":"{{ q }}"}]
        messages [{"role":"assistant","content":"Hi {{q}}"}]
        template {
          "topic": "{{ ((topic) | string | tojson)[1:-1] }}",
          "n": 1
        }
        template of messages [{"role": "user", "content": "x"}{% for m in _conversation %}, {"role": "user", "content": "{{ m }}"}{% endfor %}]
        template of messages [{% for m in earlier %}{"role": "user", "content": {{ m | dump }}},{% endfor %}{"role": "user", "content": "x"}]
        template Translate {{ text }}
        "#);
    }
}
