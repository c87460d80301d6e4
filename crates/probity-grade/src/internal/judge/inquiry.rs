//! What assertions ask judges, whatever the reply is.

use std::{collections::BTreeMap, sync::Arc};

use probity_core::{
    case::RubricCriterion,
    criteria::{FactCategory, RubricPrompt},
};

use crate::internal::script::Script;

/// What one assertion asks judges.
#[derive(Clone, Debug)]
pub struct Inquiry {
    /// The turn whose answer it is about, from 1; none: the last answer.
    pub(crate) turn: Option<u32>,
    pub(crate) form: Form,
    pub(crate) look: Look,
    pub(crate) context: Context,
    /// The judge's prompt, where the assertion has its own.
    pub(crate) rubric_prompt: Option<RubricPrompt>,
}

/// What of a case is looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Look {
    /// What was asked, where that is not the prompt.
    pub(crate) query: Option<String>,
    /// What makes the answer that is judged out of the reply.
    pub(crate) transform: Option<Arc<dyn Script>>,
}

/// Which question it is, with all that only this question has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    Rubric(Vec<RubricCriterion>),
    Factuality { reference: String, scores: BTreeMap<FactCategory, f64> },
    ClosedQa { criterion: String },
    GEval { criteria: Vec<String>, steps: Vec<String> },
    ContextRecall { reference: String },
    ContextPrecision { reference: Option<String> },
    ContextRelevance,
    ContextFaithfulness,
    AnswerRelevance,
}

/// Where the context comes from.
#[derive(Clone, Debug)]
pub(crate) enum Context {
    /// There is none.
    None,
    /// From the case.
    Given(Vec<String>),
    /// A script makes it out of the reply.
    Made(Arc<dyn Script>),
}

/// What a judge is shown of one reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What was asked.
    pub question: String,
    /// The answer that is judged.
    pub answer: String,
    /// The context, passage by passage.
    pub passages: Vec<String>,
}

impl Inquiry {
    /// The prompt that the assertion has of its own.
    pub fn rubric_prompt(&self) -> Option<&RubricPrompt> {
        self.rubric_prompt.as_ref()
    }

    /// Whether a user's prompt can stand in for ours.
    pub fn takes_prompt(&self) -> bool {
        matches!(self.form, Form::Rubric(_))
    }

    /// What the judge looks at, for a user's prompt.
    pub fn rubric(&self) -> String {
        let Form::Rubric(criteria) = &self.form else { return String::new() };
        match criteria.as_slice() {
            [only] => only.description.clone(),
            all => {
                let lines = all.iter().map(|it| format!("- {}: {}", it.name, it.description));
                lines.collect::<Vec<_>>().join("\n")
            }
        }
    }
}

impl Form {
    /// How a context that is one text falls into passages.
    pub(crate) fn passages(&self, context: &[String]) -> Vec<String> {
        match (self, context) {
            (Self::ContextRelevance, [text]) => sentences(text),
            (Self::ContextPrecision { .. }, [text]) => paragraphs(text),
            (_, passages) => passages.to_vec(),
        }
    }

    pub(crate) const fn needs_context(&self) -> bool {
        match self {
            Self::ContextRecall { .. }
            | Self::ContextPrecision { .. }
            | Self::ContextRelevance
            | Self::ContextFaithfulness => true,
            Self::Rubric(_)
            | Self::Factuality { .. }
            | Self::ClosedQa { .. }
            | Self::GEval { .. }
            | Self::AnswerRelevance => false,
        }
    }
}

/// Parts of a text that blank lines separate.
fn paragraphs(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for line in text.lines() {
        match (line.trim().is_empty(), found.last_mut()) {
            (false, Some(last)) => {
                if !last.is_empty() {
                    last.push('\n');
                }
                last.push_str(line);
            }
            (true, _) | (false, None) => found.push(String::new()),
        }
    }
    found.retain(|it| !it.is_empty());
    found
}

/// Lines of a text, and what a full stop, a question mark or an exclamation mark before a blank ends.
fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut start = 0;
        let ends = line.match_indices(['.', '?', '!', '。', '？', '！']);
        for end in ends.map(|(at, mark)| at + mark.len()) {
            if line[end..].starts_with(char::is_whitespace) {
                found.push(line[start..end].trim().to_owned());
                start = end;
            }
        }
        found.push(line[start..].trim().to_owned());
    }
    found.retain(|it| !it.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_falls_into_passages() {
        let text = "One. Two is 2.5! Three?\nFour\n\nFive.";
        assert_eq!(sentences(text), ["One.", "Two is 2.5!", "Three?", "Four", "Five."]);
        assert_eq!(paragraphs(text), ["One. Two is 2.5! Three?\nFour", "Five."]);
        let list = ["a. b.".to_owned(), "c".to_owned()];
        assert_eq!(Form::ContextRelevance.passages(&list), list);
        assert!(sentences(" \n").is_empty() && paragraphs("").is_empty());
    }
}
