//! What came back for one case.

use serde_json::Value;

use crate::{
    conversation::Exchange,
    execution::{EffectFound, Executed},
    failure::ErrorKind,
    opinion::Assessment,
    request::Request,
    selection::Selection,
};

/// What came back for one case: a reply, an error, or neither.
///
/// It borrows everything, because classifying a million of them must not copy
/// their text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunResult<'a> {
    /// The prompt that was sent.
    pub prompt: Option<&'a str>,
    /// The name of the backend that answered.
    pub backend: Option<&'a str>,
    /// The reply as it came.
    pub raw_response: Option<&'a str>,
    /// Why there is no reply, or none that can be trusted.
    pub error: Option<RunError<'a>>,
    /// The time limit of the call, a number as it was written.
    pub limit_seconds: Option<&'a str>,
    /// Why the model stopped, in the vendor's word.
    pub stop_reason: Option<&'a str>,
    /// How long the call took.
    pub latency_ms: Option<f64>,
    /// How long the first token took.
    pub ttft_ms: Option<f64>,
    /// What the call cost.
    pub cost_usd: Option<f64>,
    /// What transforms made, where they were run before: that of the case of the reply, then that
    /// of each turn of its answer.
    pub made: &'a [Made],
    /// Every reply of a conversation in order; none where only the last one is known.
    pub exchanges: &'a [Exchange<'a>],
    /// Skills that were chosen when each was asked about, because the reply could not be read.
    pub chosen: Option<&'a [String]>,
    /// What judges made of the reply, for each assertion that asks them.
    pub assessments: &'a [Assessment],
    /// What each scorer of the case returned; or why that is not known.
    pub scored: &'a [Result<Value, String>],
    /// What the comparisons with other lanes came to; or why that is not known.
    pub selections: &'a [Result<Selection, String>],
    /// What came of executing what is in the reply, or why nothing was executed; none where nobody tried.
    pub executed: Option<&'a Result<Executed, String>>,
    /// What executing the command of the reply and accepted ones showed; or why that is not known.
    pub effects: &'a [Result<EffectFound, String>],
    /// Why the work on the case did not come to its end.
    pub unfinished: Option<&'a str>,
}

/// What a transform made of a reply; none where there is no transform or no reply.
pub type Made = Option<Result<Value, String>>;

impl<'a> RunResult<'a> {
    /// What was said before the reply; none if that is the first question of the case.
    pub fn before(&self) -> Option<&'a Request> {
        self.exchanges.last()?.before
    }

    /// The question that the reply answers.
    pub fn question(&self) -> Option<&'a str> {
        self.before().map(Request::prompt).or(self.prompt)
    }
}

/// Why a call failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunError<'a> {
    /// What was said about it.
    pub message: &'a str,
    /// The kind, where the caller knew it. It is believed.
    pub kind: Option<ErrorKind>,
    /// The backend whose way of putting things the message follows.
    pub backend: Option<&'a str>,
    /// The HTTP status of the answer.
    pub status: Option<u16>,
    /// The exit code of the program.
    pub exit_code: Option<i32>,
    /// The signal that ended the program, such as `SIGSEGV` or `11`.
    pub signal: Option<&'a str>,
    /// What the program wrote to standard output.
    pub stdout: &'a str,
    /// What the program wrote to standard error.
    pub stderr: &'a str,
}
