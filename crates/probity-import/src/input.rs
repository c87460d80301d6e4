//! What a record asks: a text, or messages as OpenAI's API has them.

use probity_core::{
    case::TestCase,
    located::{Node, NodeValue},
    request::{Message, Role},
};

use crate::cases::literal;

/// Texts of a conversation, each with who says it.
pub(crate) type Said = Vec<(Role, String)>;

/// Reads a text or a list of messages.
pub(crate) fn said(node: &Node) -> Result<Said, String> {
    match &node.value {
        NodeValue::String(text) if text.trim().is_empty() => {
            Err("what is asked is empty".to_owned())
        }
        NodeValue::String(text) => Ok(vec![(Role::User, text.clone())]),
        NodeValue::Array(items) if items.is_empty() => Err("what is asked is empty".to_owned()),
        NodeValue::Array(items) => items.iter().map(message).collect(),
        NodeValue::Number(number) => Ok(vec![(Role::User, number.clone())]),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Object(_) => {
            Err(format!("what is asked is {}, neither a text nor messages", node.kind()))
        }
    }
}

fn message(node: &Node) -> Result<(Role, String), String> {
    let name = node.get("name").and_then(Node::as_str);
    let role = match (node.get("role").and_then(Node::as_str), name) {
        // Examples, as OpenAI once named them.
        (Some("system"), Some("example_user")) | (Some("user"), _) => Role::User,
        (Some("system"), Some("example_assistant")) | (Some("assistant"), _) => Role::Assistant,
        (Some("system" | "developer"), _) => Role::System,
        (Some(other), _) => return Err(format!("a message of the role `{other}`")),
        (None, _) => return Err("a message without a role".to_owned()),
    };
    let content = node.get("content").ok_or("a message without content")?;
    let text = match &content.value {
        NodeValue::String(text) => text.clone(),
        NodeValue::Array(parts) => {
            let text = |part: &Node| part.get("text").and_then(Node::as_str).map(ToOwned::to_owned);
            let texts: Option<Vec<String>> = parts.iter().map(text).collect();
            texts.ok_or("a message with something else than text")?.concat()
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::Object(_) => {
            return Err(format!("the content of a message is {}", content.kind()));
        }
    };
    Ok((role, text))
}

/// Puts what is said into a case: a prompt with instructions where that is all, messages otherwise.
pub(crate) fn ask(case: &mut TestCase, said: Said) {
    let roles: Vec<Role> = said.iter().map(|it| it.0).collect();
    let mut texts = said.into_iter().map(|(role, text)| (role, literal(&text)));
    match roles.as_slice() {
        [Role::User] => case.prompt = texts.next().map(|it| it.1.into()).unwrap_or_default(),
        [Role::System, Role::User] => {
            case.system = texts.next().map(|it| it.1).filter(|it| !it.trim().is_empty());
            case.prompt = texts.next().map(|it| it.1.into()).unwrap_or_default();
        }
        _ => case.ask.messages = texts.map(|(role, text)| Message::text(role, text)).collect(),
    }
}
