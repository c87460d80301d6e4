//! What a dataset is made of.

use std::collections::BTreeMap;

use serde::Serialize;

use probity_core::{case::TestCase, request::Part};

/// Counts over the cases of a dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// All cases.
    pub cases: usize,
    /// Cases by category.
    pub categories: BTreeMap<String, usize>,
    /// Cases without one.
    pub without_category: usize,
    /// Cases by tag; a case counts under each of its tags.
    pub tags: BTreeMap<String, usize>,
    /// Cases by difficulty.
    pub difficulties: BTreeMap<String, usize>,
    /// Cases without one.
    pub without_difficulty: usize,
    /// Cases by what decides them.
    pub criteria: BTreeMap<&'static str, usize>,
    /// Cases by the program that their expected command starts with.
    pub commands: BTreeMap<String, usize>,
    /// Ids of cases that nothing decides, the first of them.
    pub without_criteria: Vec<String>,
    /// How many such cases there are.
    pub without_criteria_count: usize,
    /// Characters of the longest prompt; of a conversation, all that is said in advance.
    pub longest_prompt: usize,
    /// Characters of all prompts.
    pub prompt_characters: usize,
}

/// How many ids of cases without criteria are kept.
const IDS_KEPT: usize = 20;

impl Stats {
    /// Counts one case.
    pub fn add(&mut self, case: &TestCase) {
        self.cases += 1;
        match &case.category {
            Some(category) => {
                *self.categories.entry(category.as_str().to_owned()).or_default() += 1;
            }
            None => self.without_category += 1,
        }
        for tag in &case.tags {
            *self.tags.entry(tag.clone()).or_default() += 1;
        }
        match &case.difficulty {
            Some(difficulty) => *self.difficulties.entry(difficulty.clone()).or_default() += 1,
            None => self.without_difficulty += 1,
        }
        if let Some(program) = case.expected_command.as_deref().and_then(program) {
            *self.commands.entry(program.to_owned()).or_default() += 1;
        }
        for name in criteria_names(case) {
            *self.criteria.entry(name).or_default() += 1;
        }
        if !case.has_criteria() {
            self.without_criteria_count += 1;
            if self.without_criteria.len() < IDS_KEPT {
                self.without_criteria.push(case.id.clone());
            }
        }
        let characters = characters(case);
        self.longest_prompt = self.longest_prompt.max(characters);
        self.prompt_characters += characters;
    }
}

/// The characters of all that a case says: its prompt, its messages, its turns.
fn characters(case: &TestCase) -> usize {
    let messages = case.ask.messages.iter().flat_map(|it| &it.content);
    let turns = case.conversation.turns.iter().flat_map(|it| &it.user);
    let texts = messages.chain(turns).filter_map(Part::as_text);
    case.prompt.chars().count() + texts.map(|it| it.chars().count()).sum::<usize>()
}

/// The word a command starts with, `sudo` aside.
fn program(command: &str) -> Option<&str> {
    command.split_whitespace().find(|word| *word != "sudo" && !word.contains('='))
}

fn criteria_names(case: &TestCase) -> Vec<&'static str> {
    let criteria = &case.criteria;
    let present = [
        ("expected_command", case.accepted_commands().next().is_some()),
        ("expected_response", criteria.expected_response.is_some()),
        ("expected_format", criteria.expected_format.is_some()),
        ("schema", criteria.schema.is_some()),
        ("expected_classification", criteria.expected_classification.is_some()),
        ("assert", !criteria.assertions.is_empty()),
        ("execution", case.execution.is_some()),
        ("skills", case.routing != probity_core::case::Routing::default()),
        ("rubric", !case.rubric.is_empty()),
    ];
    present.into_iter().filter_map(|(name, there)| there.then_some(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_conversation_says_in_advance_is_counted() {
        let mut stats = Stats::default();
        for case in [
            r#"{"id": "a", "prompt": "äbc"}"#,
            r#"{"id": "b", "turns": [{"user": "abc"}, {"user": "defg"}]}"#,
            r#"{"id": "c", "messages": [{"role": "user", "content": "ab"}]}"#,
        ] {
            stats.add(&TestCase::from_json(case).unwrap());
        }
        assert_eq!((stats.prompt_characters, stats.longest_prompt), (12, 7));
    }
}
