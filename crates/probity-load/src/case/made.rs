//! Prompts that functions of users make.

use std::path::Path;

use probity_core::{
    case::AskSpec,
    json::{Limits, parse_located},
    located::Node,
    request::{Message, Role},
};
use serde_json::Value;

use super::{
    Fields, Findings,
    ask::{decode, messages_of},
};
use crate::suite::decode_sampling;

/// What may be set for one prompt.
const SETTINGS: &[&str] = &[
    "temperature",
    "top_p",
    "max_tokens",
    "seed",
    "stop",
    "logprobs",
    "presence_penalty",
    "frequency_penalty",
    "tools",
    "tool_choice",
    "response_format",
];

/// What a function made: a text, messages, messages as JSON text, or a table with one of these as
/// `prompt` and with settings as `config`. Files are looked for in `folder`.
pub fn made_prompt(made: &Value, folder: &Path) -> Result<AskSpec, String> {
    let Value::Object(table) = made else {
        return Ok(AskSpec { messages: said(made, folder)?, ..AskSpec::default() });
    };
    if let Some(key) = table.keys().find(|key| !["prompt", "config"].contains(&key.as_str())) {
        return Err(format!("it made a table with `{key}`, not with `prompt` and `config`"));
    }
    let prompt = table.get("prompt").ok_or("it made a table without `prompt`")?;
    let messages = said(prompt, folder)?;
    match table.get("config").filter(|it| !it.is_null()) {
        Some(config) => Ok(AskSpec { messages, ..settings(config, folder)? }),
        None => Ok(AskSpec { messages, ..AskSpec::default() }),
    }
}

fn said(made: &Value, folder: &Path) -> Result<Vec<Message>, String> {
    let user = |text: &str| vec![Message::text(Role::User, text)];
    match made {
        // A text that begins with a bracket may be any text.
        Value::String(text) if text.trim_start().starts_with('[') => {
            Ok(conversation(text, folder).unwrap_or_else(|_| user(text)))
        }
        Value::String(text) => Ok(user(text)),
        Value::Array(_) => conversation(&made.to_string(), folder)
            .map_err(|why| format!("it made no messages: {why}")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err("it made neither a text nor a list of messages".to_owned())
        }
    }
}

/// The messages that a template made, as JSON.
pub fn made_messages(text: &str) -> Result<Vec<Message>, String> {
    let messages = conversation(text, Path::new(""));
    messages.map_err(|why| format!("what it makes is no list of messages: {why}"))
}

/// Messages as vendors write them, in JSON.
fn conversation(text: &str, folder: &Path) -> Result<Vec<Message>, String> {
    read(text, |node, findings| messages_of(node, folder, findings))
}

fn settings(config: &Value, folder: &Path) -> Result<AskSpec, String> {
    let mut config = config.clone();
    if let Some(format) = config.get_mut("response_format") {
        plain_format(format);
    }
    read(&config.to_string(), |node, findings| {
        let Some(mut fields) = Fields::new(node, "`config`", SETTINGS, findings) else {
            return AskSpec::default();
        };
        let sampling = decode_sampling(&mut fields);
        AskSpec { sampling, ..decode(&mut fields, folder) }
    })
}

/// Takes the form of a reply out of what OpenAI wraps it in. Anything else is a schema, or wrong.
fn plain_format(format: &mut Value) {
    *format = match format.get("type").and_then(Value::as_str) {
        Some("json_object") => Value::from("json"),
        Some("text") => Value::Null,
        Some("json_schema") => match format.pointer_mut("/json_schema/schema") {
            Some(schema) => schema.take(),
            None => return,
        },
        Some(_) | None => return,
    };
}

/// Reads JSON; whatever is found about it is a reason not to use it.
fn read<T>(text: &str, of: impl FnOnce(&Node, &mut Findings) -> T) -> Result<T, String> {
    let node = parse_located(text, &Limits::default()).map_err(|error| error.to_string())?;
    let mut findings = Findings::default();
    let read = of(&node, &mut findings);
    match findings.0.into_iter().next() {
        Some(finding) => Err(finding.message),
        None => Ok(read),
    }
}

#[cfg(test)]
mod tests {
    use probity_core::request::ResponseFormat;
    use serde_json::json;

    use super::*;

    fn made(value: &Value) -> Result<AskSpec, String> {
        made_prompt(value, Path::new("."))
    }

    #[test]
    fn every_form_is_read() {
        let user = |text: &str| vec![Message::text(Role::User, text)];
        assert_eq!(made(&json!("Hi")).unwrap().messages, user("Hi"));
        assert_eq!(made(&json!("[sic]")).unwrap().messages, user("[sic]"));
        let list = json!([
            { "role": "developer", "content": "Be brief" },
            { "role": "user", "content": [{ "type": "text", "text": "Hi" }] },
        ]);
        let both = [vec![Message::text(Role::System, "Be brief")], user("Hi")].concat();
        assert_eq!(made(&list).unwrap().messages, both);
        assert_eq!(made(&json!(list.to_string())).unwrap().messages, both);
        let table = json!({ "prompt": list, "config": { "temperature": 0.5, "tools": [{ "type": "function", "function": { "name": "t" } }] } });
        let table = made(&table).unwrap();
        assert_eq!((table.messages, table.sampling.temperature), (both, Some(0.5)));
        assert_eq!(table.tools.unwrap()[0].name, "t");
        assert_eq!(made(&json!({ "prompt": "Hi", "config": null })).unwrap().messages, user("Hi"));
    }

    #[test]
    fn forms_of_replies_are_read_as_openai_writes_them() {
        let format = |value: Value| {
            let made = made(&json!({ "prompt": "Hi", "config": { "response_format": value } }));
            made.unwrap().response_format
        };
        let schema = json!({ "type": "object", "required": ["a"] });
        let wrapped =
            json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema } });
        let expected = Some(ResponseFormat::Schema(schema.clone().into()));
        assert_eq!((format(wrapped), format(schema)), (expected.clone(), expected));
        assert_eq!(format(json!({ "type": "json_object" })), Some(ResponseFormat::Json));
        assert_eq!(format(json!("json")), Some(ResponseFormat::Json));
        assert_eq!(format(json!({ "type": "text" })), None);
    }

    #[test]
    fn what_is_no_prompt_is_refused() {
        for (value, why) in [
            (json!(null), "neither a text nor a list"),
            (json!([]), "`messages` is empty"),
            (json!([{ "role": "user" }]), "needs `content`"),
            (json!([{ "role": "bot", "content": "Hi" }]), "role"),
            (json!({ "config": {} }), "without `prompt`"),
            (json!({ "role": "user", "content": "Hi" }), "a table with `"),
            (json!({ "prompt": { "prompt": "Hi" } }), "neither a text nor a list"),
            (json!({ "prompt": "Hi", "config": { "temprature": 1 } }), "temprature"),
            (json!({ "prompt": "Hi", "config": { "temperature": "hot" } }), "temperature"),
            (json!({ "prompt": "Hi", "config": 1 }), "`config` must be a table"),
        ] {
            let told = made(&value).unwrap_err();
            assert!(told.contains(why), "{value}: {told}");
        }
    }
}
