//! What is asked of a backend.
//!
//! A request is what a template makes, what a dialect encodes and what is digested for the
//! cache and for resuming. `prompt` and `system` in files are short spellings of it.

mod image;
mod need;
mod settings;
mod tool;
mod transcript;

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};

pub use self::{
    image::{Image, ImageFile, ImageProblem, ImageType},
    need::Need,
    settings::{ResponseFormat, Sampling},
    tool::{Tool, ToolCall, ToolChoice, ToolResult},
};
use crate::record::InputDigest;

/// A conversation that a model is to continue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What was said so far, in order.
    pub messages: Vec<Message>,
    /// The tools that the model may call. Many cases share them.
    #[serde(default, skip_serializing_if = "<[Tool]>::is_empty")]
    pub tools: Arc<[Tool]>,
    /// Whether it has to call one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// The form that the answer must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// How words are chosen, where this request differs from its backend.
    #[serde(default, skip_serializing_if = "Sampling::is_empty")]
    pub sampling: Sampling,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said. Files and records have a text where it is nothing else.
    #[serde(with = "content")]
    pub content: Vec<Part>,
}

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Whoever gives instructions.
    System,
    /// Whoever asks.
    User,
    /// The model.
    Assistant,
    /// A tool that the model called.
    Tool,
}

impl Role {
    /// The name used in files, and by most vendors.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text. Many cases share one text, so it is cheap to clone.
    Text(Arc<str>),
    /// An image.
    Image(Image),
    /// The model calls a tool.
    ToolCall(ToolCall),
    /// What a tool that it called came to.
    ToolResult(ToolResult),
}

impl Part {
    /// Its text, if it is one.
    pub fn as_text(&self) -> Option<&Arc<str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Image(_) | Self::ToolCall(_) | Self::ToolResult(_) => None,
        }
    }

    /// Bytes of what it says, as far as tokens are made of it.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Image(_) => Image::ESTIMATED_BYTES,
            Self::ToolCall(call) => call.name.len() + call.arguments.to_string().len(),
            Self::ToolResult(result) => result.content.len(),
        }
    }

    /// Bytes that it takes in memory. Calls of tools are short.
    fn held_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Image(image) => image.held_bytes(),
            Self::ToolCall(_) => 0,
            Self::ToolResult(result) => result.content.len(),
        }
    }
}

impl Message {
    /// A message of nothing but text.
    pub fn text(role: Role, text: impl Into<Arc<str>>) -> Self {
        Self { role, content: vec![Part::Text(text.into())] }
    }

    /// What the user says.
    pub fn user(content: Vec<Part>) -> Self {
        Self { role: Role::User, content }
    }

    /// Its texts, one after the other.
    pub fn texts(&self) -> impl Iterator<Item = &Arc<str>> {
        self.content.iter().filter_map(Part::as_text)
    }

    /// All its text.
    pub fn joined(&self) -> String {
        self.texts().map(|text| &**text).collect()
    }

    /// The tools that it calls.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            Part::Text(_) | Part::Image(_) | Part::ToolResult(_) => None,
        })
    }

    /// Its images.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.content.iter().filter_map(|part| match part {
            Part::Image(image) => Some(image),
            Part::Text(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
        })
    }

    /// What tools came to.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.content.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            Part::Text(_) | Part::Image(_) | Part::ToolCall(_) => None,
        })
    }

    /// Its text, if it is nothing else.
    fn only_text(&self) -> Option<&Arc<str>> {
        match self.content.as_slice() {
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }
}

impl Request {
    /// A prompt with the instructions that go before it.
    pub fn new(system: Option<Arc<str>>, prompt: impl Into<Arc<str>>) -> Self {
        let system = system.map(|text| Message::text(Role::System, text));
        let messages = system.into_iter().chain([Message::text(Role::User, prompt)]);
        Self::of(messages.collect())
    }

    /// A conversation, and nothing else.
    pub fn of(messages: Vec<Message>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// The instructions at the beginning.
    pub fn system(&self) -> Option<&str> {
        self.first_system().map(|text| &**text)
    }

    /// The same, shared.
    pub fn shared_system(&self) -> Option<Arc<str>> {
        self.first_system().cloned()
    }

    fn first_system(&self) -> Option<&Arc<str>> {
        self.messages.first().filter(|it| it.role == Role::System)?.texts().next()
    }

    /// What the user says last; the last text of it, where there are several.
    pub fn prompt(&self) -> &str {
        let last = self.messages.iter().rfind(|it| it.role == Role::User);
        last.and_then(|it| it.texts().last()).map_or("", |text| text)
    }

    /// How long all texts are but the instructions, which many requests share.
    pub fn text_bytes(&self) -> usize {
        let texts = self.conversation().iter().flat_map(Message::texts);
        texts.map(|it| it.len()).sum()
    }

    /// What of it is in memory for it alone: all that is said, but for instructions that others have as well.
    pub fn own_bytes(&self) -> usize {
        let is_shared = self.first_system().is_some_and(|it| Arc::strong_count(it) > 1);
        let said = if is_shared { self.conversation() } else { &self.messages };
        said.iter().flat_map(|it| &it.content).map(Part::held_bytes).sum()
    }

    /// Its messages without the instructions at the beginning.
    pub fn conversation(&self) -> &[Message] {
        match self.messages.split_first() {
            Some((first, rest)) if first.role == Role::System => rest,
            Some(_) | None => &self.messages,
        }
    }

    /// Bytes of all that is said.
    pub fn bytes(&self) -> u64 {
        let said = self.messages.iter().flat_map(|it| &it.content).map(Part::bytes);
        let tools = self.tools.iter().map(Tool::bytes);
        said.chain(tools).map(|it| it as u64).sum()
    }

    /// What is asked with which parameters, for the cache and for resuming.
    ///
    /// A prompt with or without instructions is digested as in version 0.1, so that runs and
    /// caches of that version stay of use.
    pub fn digest(&self, parameters: &str) -> InputDigest {
        match self.plain() {
            Some((system, prompt)) => InputDigest::of([
                parameters.as_bytes(),
                system.map_or(&b"none"[..], |_| b"some"),
                system.unwrap_or("").as_bytes(),
                prompt.as_bytes(),
            ]),
            None => {
                let written = serde_json::to_vec(self).unwrap_or_default();
                InputDigest::of([parameters.as_bytes(), b"messages", &written])
            }
        }
    }

    /// Whether it is a prompt with or without instructions, and nothing else.
    pub fn is_plain(&self) -> bool {
        self.plain().is_some()
    }

    /// Whether it asks for anything that its backend does not do for every request.
    pub fn has_own_settings(&self) -> bool {
        self.response_format.is_some() || !self.sampling.is_empty()
    }

    /// Instructions and prompt, if it is nothing else.
    fn plain(&self) -> Option<(Option<&str>, &str)> {
        let Self { messages, tools, tool_choice, .. } = self;
        if !tools.is_empty() || tool_choice.is_some() || self.has_own_settings() {
            return None;
        }
        let (system, user) = match messages.as_slice() {
            [user] => (None, user),
            [system, user] if system.role == Role::System => (Some(system), user),
            _ => return None,
        };
        let system = match system {
            Some(message) => Some(&**message.only_text()?),
            None => None,
        };
        (user.role == Role::User).then_some((system, &**user.only_text()?))
    }
}

/// What a message says: a text, or a list of parts.
pub(crate) mod content {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Part;

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Read {
        Text(Arc<str>),
        Parts(Vec<Part>),
    }

    pub(crate) fn serialize<S: Serializer>(
        parts: &[Part],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match parts {
            [Part::Text(text)] => serializer.serialize_str(text),
            parts => parts.serialize(serializer),
        }
    }

    pub(crate) fn deserialize<'de, D>(deserializer: D) -> Result<Vec<Part>, D::Error>
    where
        D: Deserializer<'de>,
    {
        Ok(match Read::deserialize(deserializer)? {
            Read::Text(text) => vec![Part::Text(text)],
            Read::Parts(parts) => parts,
        })
    }
}

/// How a request stands in a record: `system` and `prompt` where it is nothing else, else `messages`.
pub mod short {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Cow, Request};

    #[derive(Serialize)]
    #[serde(untagged)]
    enum Written<'a> {
        Plain {
            prompt: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            system: Option<&'a str>,
        },
        Whole(Cow<'a, Request>),
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Read {
        Whole(Request),
        Plain {
            prompt: Arc<str>,
            #[serde(default)]
            system: Option<Arc<str>>,
        },
    }

    /// Writes a request.
    pub fn serialize<S: Serializer>(request: &Request, serializer: S) -> Result<S::Ok, S::Error> {
        let written = match request.plain() {
            Some((system, prompt)) => Written::Plain { prompt, system },
            None => Written::Whole(Cow::Borrowed(request)),
        };
        written.serialize(serializer)
    }

    /// Reads a request.
    pub fn deserialize<'de, D>(deserializer: D) -> Result<Request, D::Error>
    where
        D: Deserializer<'de>,
    {
        Ok(match Read::deserialize(deserializer)? {
            Read::Whole(request) => request,
            Read::Plain { prompt, system } => Request::new(system, prompt),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn instructions_that_others_have_as_well_are_not_its_own() {
        let own = |system: Arc<str>| Request::new(Some(system), "hi").own_bytes();
        let shared: Arc<str> = "be brief".into();
        assert_eq!((own(shared.clone()), own("be brief".into())), (2, 10));
        let image = Image::from_bytes("a.gif", b"GIF89a.".to_vec()).unwrap();
        let shown = Message { role: Role::User, content: vec![Part::Image(image)] };
        assert_eq!(Request::of(vec![shown]).own_bytes(), 7);
    }

    #[test]
    fn tools_and_settings_make_another_request() {
        let plain = Request::new(None, "hi");
        let tool = Tool { name: "add".to_owned(), description: None, parameters: json!({}) };
        let with_tools = Request { tools: [tool].into(), ..plain.clone() };
        let cold = Sampling { temperature: Some(0.0), ..Sampling::default() };
        let with_sampling = Request { sampling: cold, ..plain.clone() };
        let json = Request { response_format: Some(ResponseFormat::Json), ..plain.clone() };
        let forced = Request { tool_choice: Some(ToolChoice::Required), ..with_tools.clone() };
        let all = [plain, with_tools, with_sampling, json, forced];
        let digests: std::collections::BTreeSet<_> = all.iter().map(|it| it.digest("")).collect();
        assert_eq!(digests.len(), all.len());
        for request in all {
            let written = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<Request>(&written).unwrap(), request);
        }
    }

    fn with_call() -> Request {
        let call = ToolCall::with_text(Some("c1".to_owned()), "add".to_owned(), r#"{"a":1.50}"#);
        let mut request = Request::new(Some("be brief".into()), "hi");
        let content = vec![Part::Text("well".into()), Part::ToolCall(call)];
        request.messages.push(Message { role: Role::Assistant, content });
        request
    }

    #[test]
    fn a_prompt_is_a_request_with_one_message() {
        let request = Request::new(None, "hi");
        assert_eq!((request.system(), request.prompt()), (None, "hi"));
        let request = with_call();
        assert_eq!((request.system(), request.prompt()), (Some("be brief"), "hi"));
        assert_eq!(request.conversation().len(), 2);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let written = serde_json::to_string(&with_call()).unwrap();
        insta::assert_snapshot!(written, @r#"{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"},{"role":"assistant","content":[{"text":"well"},{"tool_call":{"id":"c1","name":"add","arguments":{"a":1.50}}}]}]}"#);
        assert_eq!(serde_json::from_str::<Request>(&written).unwrap(), with_call());
    }

    /// The bytes that version 0.1 wrote into stores and caches.
    #[test]
    fn a_plain_request_keeps_its_digest() {
        let old = |system: Option<&str>, prompt: &str| {
            let has = if system.is_some() { b"some" } else { b"none" };
            let parts = [b"p", &has[..], system.unwrap_or("").as_bytes(), prompt.as_bytes()];
            InputDigest::of(parts)
        };
        assert_eq!(Request::new(None, "hi").digest("p"), old(None, "hi"));
        assert_eq!(Request::new(Some("".into()), "hi").digest("p"), old(Some(""), "hi"));
        assert_eq!(Request::new(Some("s".into()), "hi").digest("p"), old(Some("s"), "hi"));
    }

    #[test]
    fn other_requests_have_other_digests() {
        let mut turned = Request::new(None, "hi");
        turned.messages[0].role = Role::Assistant;
        let all = [
            Request::new(None, "hi"),
            Request::new(Some("".into()), "hi"),
            Request::new(Some("hi".into()), ""),
            turned,
            with_call(),
        ];
        let digests: std::collections::BTreeSet<_> =
            all.iter().map(|request| request.digest("")).collect();
        assert_eq!(digests.len(), all.len());
    }

    #[test]
    fn arguments_that_are_not_json_are_kept() {
        let call = ToolCall::with_text(None, "f".to_owned(), "{a:");
        assert_eq!(call.arguments, json!("{a:"));
        assert_eq!(ToolCall::to_json(&[call]), r#"[{"name":"f","arguments":"{a:"}]"#);
    }
}
