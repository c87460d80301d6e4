//! `_conversation`: tests that go on from what was said in those before them are the turns of one case.

use std::collections::{BTreeMap, BTreeSet};

use probity_core::{
    case::{AskSpec, TestCase},
    conversation::{ConversationSpec, Turn},
    criteria::{Assertion, Criteria},
    request::{Message, Part, Role},
};
use probity_load::{case::made_messages, template};
use serde_json::{Value, json};

use crate::{
    cases::literal,
    draft::{Asks, CaseDraft, Setup},
};

/// The variable with what was said before.
const EARLIER: &str = "_conversation";
/// The tag of the conversation that a test belongs to.
const ID: &str = "conversationId:";
/// What was said before, to see where a template puts it.
const SAID: (&str, &str) = ("asked before", "answered before");

type Vars = BTreeMap<String, Value>;

/// Whether a prompt goes on from earlier tests.
pub(super) fn remembers(asks: &Asks) -> bool {
    match asks {
        Asks::MessagesTemplate(text) => text.contains(EARLIER),
        Asks::Template(_) | Asks::Messages(_) | Asks::Function(_) | Asks::Adapter { .. } => false,
    }
}

/// The conversation that a test belongs to.
fn id_of(test: &CaseDraft) -> &str {
    test.case.tags.iter().find_map(|it| it.strip_prefix(ID)).unwrap_or("conversation")
}

/// Whether two lists of tests have a conversation in common.
pub(super) fn share(some: &[CaseDraft], others: &[CaseDraft]) -> bool {
    let ids: BTreeSet<&str> = some.iter().map(id_of).collect();
    others.iter().any(|it| ids.contains(id_of(it)))
}

/// The conversations that tests are, or why they are none.
pub(super) fn cases(
    template: &str,
    tests: &[CaseDraft],
    setup: &Setup,
) -> Result<Vec<CaseDraft>, String> {
    let mut talks: Vec<(&str, Vec<&CaseDraft>)> = Vec::new();
    for test in tests {
        let id = id_of(test);
        match talks.iter_mut().find(|(other, _)| *other == id) {
            Some((_, all)) => all.push(test),
            None => talks.push((id, vec![test])),
        }
    }
    talks.iter().map(|(id, tests)| talk(id, template, tests, setup)).collect()
}

fn talk(
    id: &str,
    template: &str,
    tests: &[&CaseDraft],
    setup: &Setup,
) -> Result<CaseDraft, String> {
    let [first, ..] = tests else { return Err("there is no test".to_owned()) };
    if tests.iter().any(|it| it.case.ask != first.case.ask) {
        return Err("its tests ask for different settings".to_owned());
    }
    let mut before: Option<Vec<Message>> = None;
    let mut turns = Vec::new();
    let mut vars = Vars::new();
    for test in tests {
        let mut own = setup.prompt_vars.clone();
        own.extend(test.case.prompt_vars.clone());
        let (beginning, user) = asked(template, &own)?;
        let same = before.get_or_insert_with(|| beginning.clone());
        if *same != beginning {
            return Err("what stands before the conversation differs between its tests".to_owned());
        }
        let criteria = criteria(&test.case.criteria, setup, &own);
        let runs_code = criteria.assertions.iter().any(|it| it.kind.test.runs_code());
        let differs = own.iter().any(|(name, it)| vars.get(name).is_some_and(|other| other != it));
        if runs_code && differs {
            return Err("code judges turns that have variables of their own".to_owned());
        }
        vars.extend(own);
        turns.push(Turn { user: vec![Part::Text(literal(&user).into())], criteria });
    }
    let messages = before
        .unwrap_or_default()
        .into_iter()
        .map(|it| Message::text(it.role, literal(&it.joined())));
    let case = TestCase {
        id: id.to_owned(),
        ask: AskSpec { messages: messages.collect(), ..first.case.ask.clone() },
        conversation: ConversationSpec { turns, ..ConversationSpec::default() },
        prompt_vars: vars,
        tags: tests.iter().flat_map(|it| it.case.tags.clone()).collect::<Vec<_>>(),
        ..TestCase::default()
    };
    Ok(CaseDraft { case, at: first.at.clone() })
}

/// What stands before a conversation, and what the user says, if the template puts what was said between them.
fn asked(template: &str, vars: &Vars) -> Result<(Vec<Message>, String), String> {
    let (asked, answered) = SAID;
    let said = json!([{
        "prompt": [{ "role": "user", "content": asked }],
        "input": asked,
        "output": answered,
    }]);
    let first = made(template, vars, json!([]))?;
    let second = made(template, vars, said)?;
    let Some((last, before)) = first.split_last() else { return Err("it asks nothing".to_owned()) };
    let between = [Message::text(Role::User, asked), Message::text(Role::Assistant, answered)];
    let expected: Vec<Message> = before.iter().chain(&between).chain([last]).cloned().collect();
    let is_text = first.iter().flat_map(|it| &it.content).all(|it| it.as_text().is_some());
    if second != expected || last.role != Role::User || !is_text {
        return Err("`_conversation` is not put before the last message, as it was said".to_owned());
    }
    Ok((before.to_vec(), last.joined()))
}

fn made(template: &str, vars: &Vars, earlier: Value) -> Result<Vec<Message>, String> {
    let mut vars =
        template::fill_values(vars).map_err(|(_, error)| error.to_string())?.into_owned();
    vars.insert(EARLIER.to_owned(), earlier);
    let missing = template::undefined_variables(template, |name| vars.contains_key(name));
    let missing = missing.map_err(|it| it.to_string())?;
    vars.extend(missing.into_iter().map(|it| (it, Value::from(""))));
    let text = template::render(template, &vars).map_err(|it| it.to_string())?;
    made_messages(&text)
}

/// What a turn has to be: what its test says, and what is said of all tests, with their variables filled in.
fn criteria(own: &Criteria, setup: &Setup, vars: &Vars) -> Criteria {
    let all = setup.assertions.iter().chain(&own.assertions);
    Criteria {
        assertions: all.map(|it| filled(it, vars)).collect(),
        threshold: own.threshold.or(setup.threshold),
        transform: own.transform.clone().or_else(|| setup.transform.clone()),
        ..own.clone()
    }
}

fn filled(assertion: &Assertion, vars: &Vars) -> Assertion {
    let fill = |text: &str| {
        let missing = template::undefined_variables(text, |name| vars.contains_key(name));
        let mut vars = vars.clone();
        vars.extend(missing.unwrap_or_default().into_iter().map(|it| (it, Value::from(""))));
        let filled = template::render(text, &vars);
        filled.map_or_else(|_| text.to_owned(), |it| literal(&it))
    };
    let mut made = assertion.clone();
    if !made.kind.test.runs_code() {
        match &mut made.value {
            Some(Value::String(text)) => *text = fill(text),
            Some(Value::Array(items)) => {
                for item in items {
                    if let Value::String(text) = item {
                        *text = fill(text);
                    }
                }
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {}
        }
    }
    made.members = made.members.iter().map(|it| filled(it, vars)).collect();
    made
}
