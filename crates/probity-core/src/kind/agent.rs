//! A model with tools works on a task in a world of its own.

use serde::{Deserialize, Serialize};

use super::{Judged, KindEvidence, KindFigures, KindFold, KindSpec, Seen};
use crate::{figures::Sheet, named_enum};

pub(super) const SPEC: KindSpec = KindSpec {
    keys: &[
        "dataset",
        "dataset_config",
        "env",
        "prompt",
        "prompts",
        "judge",
        "judges",
        "combine",
        "judge_repeats",
        "structured",
        "rubric_prompt",
        "swap",
        "embeddings",
        "reranker",
        "assert",
        "world",
        "max_steps",
        "max_seconds",
        "max_tokens",
        "tools",
        "protocol",
    ],
    acts: true,
    ..KindSpec::PLAIN
};

named_enum! {
    /// How the work of an agent ended.
    pub enum AgentEnd ("an end of an agent's work") {
        /// It said that it is done.
        Answered = "answered",
        /// It was asked as often as it may be.
        Steps = "max_steps",
        /// Its time was used up.
        Time = "max_seconds",
        /// Its tokens were used up.
        Tokens = "max_tokens",
    }
}

/// What an agent did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentWork {
    /// The world that it worked in.
    pub world: String,
    /// How it ended.
    pub ended: AgentEnd,
    /// How often the model was asked.
    pub steps: u32,
    /// Calls of tools that were carried out.
    pub calls: u32,
    /// Those of them that did not end with exit code 0.
    pub failed_calls: u32,
    /// Replies and calls that could not be carried out: nothing to do in them, an unknown tool, wrong arguments.
    pub malformed: u32,
    /// Milliseconds that its commands took.
    pub commands_ms: u64,
}

impl AgentWork {
    /// Why it did not come to its end; none if the model said that it is done.
    pub fn unfinished(&self) -> Option<String> {
        let what = match self.ended {
            AgentEnd::Answered => return None,
            AgentEnd::Steps => "",
            AgentEnd::Time => ", when its time was used up",
            AgentEnd::Tokens => ", when its tokens were used up",
        };
        let steps = if self.steps == 1 { "step" } else { "steps" };
        Some(format!("the agent was not done after {} {steps}{what}", self.steps))
    }
}

impl KindEvidence for AgentWork {
    fn judged(&self) -> Judged {
        Judged::ByReplyAndKept { unfinished: self.unfinished() }
    }
}

/// Figures of an `agent` runner.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Agents {
    /// Cases that an agent worked on.
    pub cases: u64,
    /// How often models were asked.
    pub steps: u64,
    /// Calls of tools that were carried out.
    pub calls: u64,
    /// Those of them that did not end with exit code 0.
    pub failed_calls: u64,
    /// Replies and calls that could not be carried out.
    pub malformed: u64,
    /// Cases in which the model did not come to an end by itself.
    pub unfinished: u64,
    /// Milliseconds that all commands took.
    pub commands_ms: u64,
}

impl KindFigures for Agents {
    fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::default();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let mean = |sum: u64| match self.cases {
            0 => "n/a".to_owned(),
            cases => format!("{:.1}", sum as f64 / cases as f64),
        };
        sheet.fact("steps a case", mean(self.steps));
        let (calls, failed) = (mean(self.calls), self.failed_calls);
        sheet.fact("calls a case", format!("{calls}, {failed} of {} failed", self.calls));
        sheet.fact("malformed", self.malformed.to_string());
        sheet.fact("not finished", format!("{} of {}", self.unfinished, self.cases));
        sheet
    }
}

#[derive(Debug, Default)]
pub(super) struct Fold(Agents);

impl KindFold for Fold {
    type Evidence = AgentWork;
    type Figures = Agents;

    fn add(&mut self, _seen: Seen<'_>, work: &AgentWork) {
        let Self(sum) = self;
        sum.cases += 1;
        sum.steps += u64::from(work.steps);
        sum.calls += u64::from(work.calls);
        sum.failed_calls += u64::from(work.failed_calls);
        sum.malformed += u64::from(work.malformed);
        sum.unfinished += u64::from(work.ended != AgentEnd::Answered);
        sum.commands_ms += work.commands_ms;
    }

    fn finish(self) -> Agents {
        self.0
    }
}
