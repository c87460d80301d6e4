//! The ids of cases: those that are written, and those that are made where none is.

use std::borrow::Cow;

use probity_core::{
    case::TestCase,
    request::{Message, Role},
};
use serde_json::{Value, json};

use super::Fields;
use crate::template;

/// Longest id that is accepted, in characters.
const LONGEST_ID: usize = 128;
/// How many words of what is asked an id is made of.
const WORDS: usize = 6;
/// How many characters of each word.
const LONGEST_WORD: usize = 16;
/// Digits of the digest in an id: a million prompts that begin alike still have an id each.
const DIGITS: usize = 16;

/// The id that a case states, if it can be used.
pub(super) fn stated(fields: &mut Fields<'_, '_>) -> Option<String> {
    let id = fields.text("id")?;
    let allowed = |c: char| c.is_alphanumeric() || "._/:-#@+".contains(c);
    let span = fields.span("id");
    if id.chars().count() > LONGEST_ID {
        let message = format!("id is longer than {LONGEST_ID} characters");
        fields.findings().error("bad-id", &span, message);
        return None;
    }
    if let Some(bad) = id.chars().find(|c| !allowed(*c)) {
        let message = format!("id has the character {bad:?}");
        let help = "use letters, digits and `. _ / : - # @ +`".to_owned();
        fields.findings().error_with_help("bad-id", &span, message, help);
        return None;
    }
    Some(id)
}

/// An id for a case without one: the first words of what is asked, and digits of a digest of it.
///
/// Stores, caches and baselines know cases by it, so it must never change for the same content.
pub(super) fn made(case: &TestCase) -> Option<String> {
    let turns = case.conversation.turns.iter().map(|it| Message::user(it.user.clone()));
    let turns: Vec<Message> = turns.collect();
    if !case.asks() && case.prompt_vars.is_empty() {
        return None;
    }
    let mut content = json!({
        "prompt": case.prompt,
        "system": case.system,
        "messages": case.ask.messages,
        "prompt_vars": case.prompt_vars,
    });
    if !turns.is_empty() {
        content["turns"] = json!(turns);
    }
    if let Some(user) = &case.conversation.user {
        content["user"] = json!(user);
    }
    if let Some(results) = &case.conversation.tool_results {
        content["tool_results"] = json!(results);
    }
    content.sort_all_objects();
    let digest = blake3::hash(content.to_string().as_bytes()).to_hex();
    let mut id = slug(&asked(case, &turns));
    id.push_str(&digest[..DIGITS]);
    Some(id)
}

/// What is asked, as far as its words are known.
fn asked<'a>(case: &'a TestCase, turns: &[Message]) -> Cow<'a, str> {
    if case.prompt.is_empty() {
        let of_user = || case.ask.messages.iter().rfind(|it| it.role == Role::User);
        let of_user = turns.first().or_else(of_user).map(Message::joined);
        let of_vars = || case.prompt_vars.values().find_map(Value::as_str).unwrap_or_default();
        return Cow::Owned(of_user.unwrap_or_else(|| of_vars().to_owned()));
    }
    if !template::is_template(&case.prompt) {
        return Cow::Borrowed(&case.prompt);
    }
    template::render(&case.prompt, &case.prompt_vars)
        .map_or(Cow::Borrowed(&case.prompt), Cow::Owned)
}

/// The first words, each followed by a hyphen.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty());
    for word in words.take(WORDS) {
        let lower = word.chars().take(LONGEST_WORD).flat_map(char::to_lowercase);
        // `İ` becomes two characters, of which the second is no letter.
        slug.extend(lower.filter(|c| c.is_alphanumeric()));
        slug.push('-');
    }
    slug
}
