//! A request as people read it.

use std::borrow::Cow;

use super::{Image, Message, Part, Request, Role};

impl Request {
    /// What is asked, for people: the prompt, or the conversation with who says what. The
    /// instructions at the beginning stand apart.
    pub fn shown(&self) -> Cow<'_, str> {
        match self.conversation() {
            [Message { role: Role::User, content }] if matches!(content[..], [Part::Text(_)]) => {
                Cow::Borrowed(self.prompt())
            }
            said => said.iter().map(Message::shown).collect::<Vec<_>>().join("\n\n").into(),
        }
    }
}

impl Message {
    fn shown(&self) -> String {
        format!("{}: {}", self.role.as_str(), self.said())
    }

    /// What is said, for people.
    pub fn said(&self) -> String {
        let parts: Vec<Cow<'_, str>> = self.content.iter().map(Part::shown).collect();
        parts.join("\n")
    }
}

impl Part {
    fn shown(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Image(Image::Url(url)) => format!("[image {url}]").into(),
            Self::Image(Image::File(file)) => format!("[image {}]", file.path).into(),
            Self::ToolCall(call) => format!("[calls {}({})]", call.name, call.arguments).into(),
            Self::ToolResult(result) => {
                format!("[{} returns] {}", result.name, result.content).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{ToolCall, ToolResult};

    #[test]
    fn a_conversation_is_shown_with_who_says_what() {
        assert_eq!(Request::new(Some("s".into()), "hi").shown(), "hi");
        let call = ToolCall::with_text(None, "add".to_owned(), r#"{"a":1}"#);
        let result = ToolResult { id: None, name: "add".to_owned(), content: "2".into() };
        let image = Part::Image(Image::Url("https://h/a.png".into()));
        let request = Request::of(vec![
            Message::text(Role::System, "s"),
            Message { role: Role::User, content: vec![Part::Text("see".into()), image] },
            Message { role: Role::Assistant, content: vec![Part::ToolCall(call)] },
            Message { role: Role::Tool, content: vec![Part::ToolResult(result)] },
        ]);
        insta::assert_snapshot!(request.shown(), @r#"
        user: see
        [image https://h/a.png]

        assistant: [calls add({"a":1})]

        tool: [add returns] 2
        "#);
    }
}
