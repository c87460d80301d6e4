//! A model plays the user of a conversation: what it is asked, and what it says.

use std::sync::LazyLock;

use probity_core::request::{Message, Request, Role};
use serde::Deserialize;

use crate::internal::judge::{marked, marker};

static WORDS: LazyLock<Words> = LazyLock::new(|| table!("user"));

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    system: String,
    ask: String,
}

/// The part that is played.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Who the user is and what they want.
    pub instructions: &'a str,
    /// What ends the conversation.
    pub stop: &'a str,
}

/// What the user says next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// This.
    Says(String),
    /// Nothing more.
    Stops,
    /// Nothing, without having ended the conversation.
    Silent,
}

impl Part<'_> {
    /// Asks what the user says after all this. The marks around it depend on the seed.
    pub fn request(&self, said: &[Message], seed: u64) -> Request {
        let heard: Vec<String> = said.iter().filter_map(heard).collect();
        let talk = heard.join("\n\n");
        let marker = marker(seed, &[&talk]);
        let system = WORDS.system.replace("{stop}", self.stop) + self.instructions;
        let prompt = format!("{}\n\n{}", marked("CONVERSATION", &marker, &talk), WORDS.ask);
        Request::new(Some(system.into()), prompt)
    }

    /// Reads the answer to that.
    pub fn read(&self, reply: &str) -> Next {
        let said = without_name(reply.trim());
        if said.to_lowercase().contains(&self.stop.to_lowercase()) {
            Next::Stops
        } else if said.is_empty() {
            Next::Silent
        } else {
            Next::Says(said.to_owned())
        }
    }
}

/// What a user gets to know: no instructions, and nothing of tools.
fn heard(message: &Message) -> Option<String> {
    let who = match message.role {
        Role::User => "person",
        Role::Assistant => "assistant",
        Role::System | Role::Tool => return None,
    };
    let said = message.joined();
    (!said.trim().is_empty()).then(|| format!("{who}: {}", said.trim()))
}

/// Models like to begin with the name of who speaks, as the conversation does.
fn without_name(said: &str) -> &str {
    const NAMES: [&str; 3] = ["person:", "the person:", "user:"];
    let after = NAMES.iter().find_map(|name| {
        let start = said.get(..name.len())?;
        start.eq_ignore_ascii_case(name).then(|| &said[name.len()..])
    });
    after.unwrap_or(said).trim()
}

#[cfg(test)]
mod tests {
    use probity_core::request::{Part as Content, ToolCall};

    use super::*;

    const PART: Part<'_> = Part { instructions: "You want tea.", stop: "[END]" };

    #[test]
    fn the_user_is_told_what_was_said_and_nothing_of_tools() {
        let call = ToolCall::with_text(None, "boil".to_owned(), "{}");
        let said = [
            Message::text(Role::System, "secret"),
            Message::text(Role::User, "Hello"),
            Message { role: Role::Assistant, content: vec![Content::ToolCall(call)] },
            Message::text(Role::Tool, "hot"),
            Message::text(Role::Assistant, "Coffee?"),
        ];
        let request = PART.request(&said, 1);
        let system = request.system().unwrap();
        assert!(system.contains("write [END] and nothing else"), "{system}");
        assert!(system.ends_with("The person:\nYou want tea."), "{system}");
        let prompt = request.prompt();
        assert!(prompt.contains(">>>\nperson: Hello\n\nassistant: Coffee?\n<<<"), "{prompt}");
        assert!(prompt.ends_with("What does the person say next?"), "{prompt}");
    }

    #[test]
    fn words_end_the_conversation_or_go_on() {
        for (reply, next) in [
            (" Tea, please.\n", Next::Says("Tea, please.".to_owned())),
            ("User: Tea!", Next::Says("Tea!".to_owned())),
            ("Person:", Next::Silent),
            ("The person: Tea", Next::Says("Tea".to_owned())),
            ("  ", Next::Silent),
            ("Thank you! [end]", Next::Stops),
            ("ü: no name", Next::Says("ü: no name".to_owned())),
        ] {
            assert_eq!(PART.read(reply), next, "{reply}");
        }
    }
}
