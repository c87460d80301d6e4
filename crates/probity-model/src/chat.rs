//! From a conversation to the text that a model continues, by the template in its own file.
//!
//! These templates are written for Python's Jinja as `transformers` sets it up. What they come to is text
//! from a file, so that they get a bounded amount of work.

mod depth;

use minijinja::{Environment, Error, ErrorKind, Value, context, syntax::SyntaxConfig};
use probity_text::limited::Limited;

use crate::gguf::Header;

/// Steps that a template may take.
const FUEL: u64 = 2_000_000;
/// Bytes of the longest text that a template may become. No model sees a thousandth of it.
const LONGEST: usize = 16 << 20;

/// A message as templates see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatMessage<'a> {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: &'a str,
    /// What is said.
    pub content: &'a str,
}

/// The template of a model.
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

/// Why a conversation cannot become a text.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// The model was not made for conversations.
    #[error("the model has no chat template: it continues texts, and was not made to answer")]
    NoTemplate,
    /// The template cannot be read.
    #[error("the model's chat template cannot be read: {why}")]
    BadTemplate {
        /// Why not.
        why: String,
    },
    /// The template refuses the conversation, or breaks on it.
    #[error("the model's chat template refuses the conversation: {why}")]
    Refused {
        /// What it says.
        why: String,
    },
}

const NAME: &str = "chat";

impl ChatTemplate {
    /// The template of a model.
    pub fn of(header: &Header) -> Result<Self, ChatError> {
        let text = header.chat_template.clone().ok_or(ChatError::NoTemplate)?;
        if let Some(why) = depth::too_deep(&text) {
            return Err(ChatError::BadTemplate { why });
        }
        let mut environment = Environment::new();
        let mut syntax = SyntaxConfig::builder();
        let syntax = syntax.trim_blocks(true).lstrip_blocks(true).build();
        environment
            .set_syntax(syntax.map_err(|error| ChatError::BadTemplate { why: said(&error) })?);
        environment.set_fuel(Some(FUEL));
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |why: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, why))
        });
        // The same date on every day: the same case has to be the same prompt.
        environment
            .add_function("strftime_now", |format: String| -> String { fixed_date(&format) });
        let bad = |error: Error| ChatError::BadTemplate { why: said(&error) };
        environment.add_template_owned(NAME, text).map_err(bad)?;
        Ok(Self {
            environment,
            bos: header.bos.clone().unwrap_or_default(),
            eos: header.eos.clone().unwrap_or_default(),
        })
    }

    /// The text that the model continues with its answer.
    pub fn render(&self, messages: &[ChatMessage<'_>]) -> Result<String, ChatError> {
        let refused = |error: Error| ChatError::Refused { why: said(&error) };
        let template = self.environment.get_template(NAME).map_err(refused)?;
        let messages =
            messages.iter().map(|&ChatMessage { role, content }| context! { role, content });
        let context = context! {
            messages => messages.collect::<Vec<Value>>(),
            add_generation_prompt => true,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
            tools => Value::from(()),
        };
        let mut output = Limited::new(LONGEST);
        let rendered = template.render_captured_to(context, &mut output).map(drop);
        if output.is_full() {
            let why = format!("it makes a text of more than {} MiB", LONGEST >> 20);
            return Err(ChatError::Refused { why });
        }
        rendered.map_err(refused)?;
        String::from_utf8(output.into_bytes())
            .map_err(|_| ChatError::Refused { why: "it makes no text".to_owned() })
    }

    /// Whether a text begins with the mark of the beginning, so that no second one belongs before it.
    pub fn has_beginning(&self, text: &str) -> bool {
        !self.bos.is_empty() && text.starts_with(&self.bos)
    }
}

fn said(error: &Error) -> String {
    match (error.detail(), error.line()) {
        (Some(detail), Some(line)) => format!("{detail} (line {line})"),
        (Some(detail), None) => detail.to_owned(),
        (None, Some(line)) => format!("{} (line {line})", error.kind()),
        (None, None) => error.kind().to_string(),
    }
}

/// The 1st of January 2025, in the forms that templates ask for.
fn fixed_date(format: &str) -> String {
    let parts = [
        ("%d", "01"),
        ("%-d", "1"),
        ("%b", "Jan"),
        ("%B", "January"),
        ("%m", "01"),
        ("%Y", "2025"),
    ];
    parts.iter().fold(format.to_owned(), |text, (mark, value)| text.replace(mark, value))
}

#[cfg(test)]
mod tests;
