//! What comes back from a backend.

use std::{borrow::Cow, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    execution::Executed,
    record::{Source, Usage},
    request::{Request, ToolCall},
};

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The text of the reply, without the model's reasoning.
    pub text: String,
    /// The tools that the model calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// What the model thought before it answered, where the backend shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// How likely each token was, where that was asked for and the backend says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Logprobs>,
    /// Why the model stopped, in the vendor's word.
    pub stop_reason: Option<String>,
    /// The model that says it answered.
    pub model: Option<String>,
    /// Tokens.
    pub usage: Usage,
    /// Dollars as the backend counted them.
    pub cost_usd: Option<f64>,
    /// Who answered.
    #[serde(skip)]
    pub source: Source,
    /// How long it took, where it is known better than by waiting for it.
    pub latency: Option<Duration>,
    /// How long its first token took, where it was read while it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<Duration>,
    /// What a program in the sandbox left behind in its world, or why nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_behind: Option<Box<Result<Executed, String>>>,
    /// How long the backend says it has nothing left.
    #[serde(skip)]
    pub exhausted_for: Option<Duration>,
}

/// How likely each token of a reply was, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Logprobs(pub Vec<TokenLogprob>);

/// A token, and the natural logarithm of how likely it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprob {
    /// The token.
    pub token: String,
    /// From minus infinity to 0.
    pub logprob: f64,
}

impl Logprobs {
    /// Those that are numbers; none if there are none.
    pub fn of(tokens: impl IntoIterator<Item = TokenLogprob>) -> Option<Self> {
        let tokens: Vec<TokenLogprob> =
            tokens.into_iter().filter(|it| it.logprob.is_finite()).collect();
        (!tokens.is_empty()).then_some(Self(tokens))
    }

    /// The same without the tokens, where the text holds what is not to be shown.
    #[must_use]
    pub fn without_tokens(self) -> Self {
        let number = |it: TokenLogprob| TokenLogprob { token: String::new(), ..it };
        Self(self.0.into_iter().map(number).collect())
    }

    /// How surprised the model was by its own words: 1 if it was sure of each.
    pub fn perplexity<'a>(all: impl IntoIterator<Item = &'a Self>) -> Option<f64> {
        let (mut sum, mut count) = (0.0, 0_u32);
        for token in all.into_iter().flat_map(|it| &it.0) {
            sum += token.logprob;
            count = count.saturating_add(1);
        }
        (count > 0).then(|| (-sum / f64::from(count)).exp())
    }
}

impl Reply {
    /// What is shown and graded: the text, or the tool calls as JSON where there is no text.
    pub fn answer(&self) -> Cow<'_, str> {
        match self.tool_calls.is_empty() || !self.is_blank() {
            true => Cow::Borrowed(&self.text),
            false => Cow::Owned(ToolCall::to_json(&self.tool_calls)),
        }
    }

    /// The same, taken out of the reply.
    pub fn take_answer(&mut self) -> String {
        match self.answer() {
            Cow::Borrowed(_) => std::mem::take(&mut self.text),
            Cow::Owned(answer) => answer,
        }
    }

    /// Whether its text has nothing that could be seen.
    pub fn is_blank(&self) -> bool {
        self.text.chars().all(is_invisible)
    }

    /// Whether nothing came back: no text and no tool call.
    pub fn is_empty(&self) -> bool {
        self.tool_calls.is_empty() && self.is_blank()
    }

    /// Tokens a second from the first to the last, where that is known and counted by the backend.
    pub fn tokens_per_second(&self) -> Option<f64> {
        let tokens = self.usage.output_tokens.filter(|_| !self.usage.estimated)?;
        let seconds = self.latency?.checked_sub(self.first_token?)?.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 tokens")]
        let after_first = tokens.checked_sub(1)? as f64;
        (after_first > 0.0 && seconds > 0.0).then(|| after_first / seconds)
    }

    /// The reply with reasoning that stands at the beginning of its text taken apart.
    #[must_use]
    pub fn with_reasoning_apart(mut self) -> Self {
        let Some((reasoning, answer)) = split_reasoning(&self.text) else { return self };
        if self.reasoning.is_none() && !reasoning.is_empty() {
            self.reasoning = Some(reasoning.to_owned());
        }
        self.text = answer.to_owned();
        self
    }

    /// The reply with an estimate of the tokens that its backend did not report.
    #[must_use]
    pub fn with_estimated_usage(self, request: &Request) -> Self {
        let Usage { input_tokens, output_tokens, cached_tokens, estimated } = self.usage;
        if input_tokens.is_some() && output_tokens.is_some() {
            return self;
        }
        let reasoning = self.reasoning.as_deref().unwrap_or("");
        let said = self.answer().len() as u64 + reasoning.len() as u64;
        let usage = Usage {
            input_tokens: input_tokens.or_else(|| Some(estimated_tokens(request.bytes()))),
            output_tokens: output_tokens.or_else(|| Some(estimated_tokens(said))),
            cached_tokens,
            estimated: estimated || input_tokens.is_none() || output_tokens.is_none(),
        };
        Self { usage, ..self }
    }
}

/// Tokens of a text of so many bytes, where nobody counted them: one for each four, and one
/// for what is left over. English prose has somewhat fewer, code and other scripts have more.
pub const fn estimated_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// A block of reasoning at the beginning of a text, and what comes after it.
///
/// Models that think aloud write `<think>` first; some templates put that into the prompt,
/// so that only the end of the block is in the reply. A block that never ends is no answer.
fn split_reasoning(text: &str) -> Option<(&str, &str)> {
    const BLOCKS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];
    let trimmed = text.trim_start();
    let opened = BLOCKS.iter().find_map(|(open, close)| Some((trimmed.strip_prefix(open)?, close)));
    match opened {
        Some((inside, close)) => match inside.split_once(close) {
            Some((reasoning, answer)) => Some((reasoning.trim(), answer.trim_start())),
            None => Some((inside.trim(), "")),
        },
        None => {
            let (reasoning, answer) = text.split_once("</think>")?;
            // With a beginning somewhere else it is a text about such blocks.
            (!reasoning.contains("<think>")).then(|| (reasoning.trim(), answer.trim_start()))
        }
    }
}

/// Characters that leave nothing to see: white space, and what has no width.
fn is_invisible(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '\u{00ad}'
                | '\u{034f}'
                | '\u{061c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Reply {
        Reply { text: text.to_owned(), ..Reply::default() }
    }

    #[test]
    fn reasoning_at_the_beginning_is_no_part_of_the_answer() {
        let check = |text: &str, reasoning: Option<&str>, answer: &str| {
            let reply = said(text).with_reasoning_apart();
            assert_eq!((reply.reasoning.as_deref(), &*reply.text), (reasoning, answer), "{text}");
        };
        check("<think>\nhm\n</think>\n\n4", Some("hm"), "4");
        check("  <think>a</think>b</think>", Some("a"), "b</think>");
        check("<thinking>hm</thinking>4", Some("hm"), "4");
        check("<think></think>\n4", None, "4");
        check("hm\n</think>\n4", Some("hm"), "4");
        check("<think>hm, cut off", Some("hm, cut off"), "");
        check("write <think> and </think>", None, "write <think> and </think>");
        check("4", None, "4");
    }

    #[test]
    fn reasoning_that_the_backend_tells_apart_stays() {
        let reply = Reply { reasoning: Some("told".to_owned()), ..said("<think>x</think>4") };
        let reply = reply.with_reasoning_apart();
        assert_eq!((reply.reasoning.as_deref(), &*reply.text), (Some("told"), "4"));
    }

    #[test]
    fn a_reply_that_only_calls_tools_is_its_calls() {
        let call = ToolCall::with_text(Some("id".to_owned()), "f".to_owned(), r#"{"x":1}"#);
        let reply = Reply { tool_calls: vec![call], ..said(" ") };
        assert_eq!(reply.answer(), r#"[{"name":"f","arguments":{"x":1}}]"#);
        assert!(!reply.is_empty());
        let both = Reply { text: "I call f".to_owned(), ..reply };
        assert_eq!(both.answer(), "I call f");
    }

    #[test]
    fn perplexity_is_over_all_tokens() {
        let token = |logprob| TokenLogprob { token: "t".to_owned(), logprob };
        let half = Logprobs::of([token(0.5_f64.ln()), token(f64::NEG_INFINITY)]).unwrap();
        let quarter = Logprobs::of([token(0.25_f64.ln())]).unwrap();
        assert!((Logprobs::perplexity([&half]).unwrap() - 2.0).abs() < 1e-9);
        let both = Logprobs::perplexity([&half, &quarter]).unwrap();
        assert!((both - 8.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(Logprobs::of([token(f64::NAN)]), None);
        assert_eq!(Logprobs::perplexity([]), None);
    }

    #[test]
    fn speed_is_that_of_the_tokens_after_the_first() {
        let usage = Usage { output_tokens: Some(11), ..Usage::default() };
        let [first_token, latency] = [500, 2500].map(|it| Some(Duration::from_millis(it)));
        let streamed = Reply { usage, latency, first_token, ..said("x") };
        assert_eq!(streamed.tokens_per_second(), Some(5.0));
        let estimated = Usage { estimated: true, ..usage };
        assert_eq!(Reply { usage: estimated, ..streamed.clone() }.tokens_per_second(), None);
        assert_eq!(Reply { first_token: None, ..streamed.clone() }.tokens_per_second(), None);
        assert_eq!(Reply { latency: first_token, ..streamed }.tokens_per_second(), None);
    }

    #[test]
    fn what_cannot_be_seen_is_empty() {
        for text in ["", " \n", "\u{200b}", "\u{feff}\u{2060}\u{00ad}", "\u{200d}\u{fe0f}"] {
            assert!(said(text).is_empty(), "{text:?}");
        }
        assert!(!said("\u{200b}x").is_empty());
    }

    #[test]
    fn tokens_that_nobody_counted_are_estimated() {
        let request = Request::new(Some("four".into()), "eight by");
        let reply = said("hello").with_estimated_usage(&request);
        let usage = Usage {
            input_tokens: Some(3),
            output_tokens: Some(2),
            cached_tokens: None,
            estimated: true,
        };
        assert_eq!(reply.usage, usage);
        let counted = Usage { input_tokens: Some(9), output_tokens: Some(1), ..Usage::default() };
        let reply = Reply { usage: counted, ..said("hello") }.with_estimated_usage(&request);
        assert_eq!(reply.usage, counted);
    }
}
