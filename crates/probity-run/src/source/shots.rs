//! Examples in what a case asks: a variable of templates, or a conversation before the prompt.

use probity_core::request::{Message, Role};
use probity_load::template::{self, BadMessage};
use serde_json::{Value, json};

use super::{
    Cases,
    fill::{BadTemplate, PromptPart, Unfilled, Why, of_runner, seen_by_runner},
};
use crate::examples::Example;

impl Cases {
    /// What templates and functions see of examples.
    pub(super) fn listed(examples: &[&Example]) -> Value {
        let one = |example: &&Example| {
            let Example { case, prompt, vars, answer, .. } = example;
            json!({ "id": case.id, "prompt": prompt, "answer": answer, "vars": vars })
        };
        examples.iter().map(one).collect()
    }

    /// Puts examples before what is asked: each is asked in the same way, and answered.
    pub(super) fn put_before(
        &self,
        messages: &mut Vec<Message>,
        examples: &[&Example],
    ) -> Result<(), Unfilled> {
        let at = match self.prompt.messages.is_empty() {
            true => messages.iter().position(|it| it.role != Role::System),
            false => messages.iter().rposition(|it| it.role == Role::User),
        };
        let at = at.unwrap_or(messages.len());
        let mut said = Vec::with_capacity(2 * examples.len());
        for example in examples {
            let variant = self.prompt.variant.as_ref();
            said.push(example.asked_by(variant, || self.ask_example(example))?);
            said.push(Message::text(Role::Assistant, example.answer.as_str()));
        }
        messages.splice(at..at, said);
        Ok(())
    }

    fn ask_example(&self, example: &Example) -> Result<Message, Unfilled> {
        let Example { case, prompt, vars, .. } = example;
        let asking = self.prompt.conversation().enumerate();
        let asking = asking.filter(|(_, it)| it.role == Role::User).last();
        let asked = if let Some((place, message)) = asking {
            let seen = seen_by_runner(case, vars, prompt);
            let messages = template::fill_messages([message], &seen);
            let messages = messages.map_err(|BadMessage { message: _, text, error }| {
                let why = Why::Template { text, error };
                BadTemplate::new(PromptPart::Message(place), why)
            });
            messages.map(|it| it.into_iter().next())
        } else if let Some(outer) = &self.prompt.template {
            let text = of_runner(PromptPart::Template, &outer.text, case, vars, prompt);
            text.map(|text| Some(Message::text(Role::User, text)))
        } else {
            Ok(Some(Message::text(Role::User, prompt.as_str())))
        };
        let asked = asked.map_err(|bad| bad.of_example(&case.id))?;
        asked.ok_or(Unfilled::Case)
    }
}
