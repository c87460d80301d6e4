//! A run as reports see it: figures that are reckoned once, and cases that are read one by one.

use std::io;

use crate::{
    consistency::Consistency,
    evaluation::FailureReason,
    figures::Figures,
    gate::{GateOutcome, GateStatus},
    metrics::Metrics,
    record::{Lane, LaneStatus, StoredCase},
};

/// One run.
#[derive(Clone, Debug)]
pub struct RunView {
    /// Its whole name.
    pub run_id: String,
    /// The part of the name that is enough for people.
    pub short: String,
    /// What the suite is called.
    pub suite: String,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it ended; none while it runs, and when it was killed.
    pub finished_ms: Option<i64>,
    /// `running`, `complete`, `incomplete` or `killed`.
    pub status: String,
    /// The version that ran it.
    pub probity_version: String,
    /// The share of errors above which a run is no basis for anything.
    pub max_error_rate: f64,
    /// What was run on what, in the order of the plan.
    pub lanes: Vec<LaneReport>,
    /// What it comes to against a baseline, if it was held against one.
    pub against: Option<Against>,
    /// How far the backends of each runner agree, where that was worked out.
    pub consistency: Vec<Consistency>,
}

/// What a run comes to against a baseline.
#[derive(Clone, Debug)]
pub struct Against {
    /// The baseline's name.
    pub name: String,
    /// Why the run is worse; empty if it is not.
    pub reasons: Vec<String>,
    /// All that has changed, for people.
    pub text: String,
}

/// One runner on one backend.
#[derive(Clone, Debug)]
pub struct LaneReport {
    /// What was run on what.
    pub lane: Lane,
    /// How it ended; none while it runs, and when it was killed.
    pub status: Option<LaneStatus>,
    /// Cases that had begun and were given up.
    pub aborted: u64,
    /// The figures.
    pub metrics: Metrics,
    /// What was asked of them.
    pub gates: Vec<GateOutcome>,
}

impl RunView {
    /// The worst that a gate came to; none without gates.
    pub fn gate_status(&self) -> Option<GateStatus> {
        self.lanes.iter().flat_map(|lane| &lane.gates).map(|gate| gate.status).max()
    }

    /// Whether everything that was planned came to an end.
    pub fn is_complete(&self) -> bool {
        self.lanes.iter().all(LaneReport::is_complete)
    }

    /// Whether its results say all that was asked of them.
    pub fn is_sound(&self) -> bool {
        let sound = |lane: &LaneReport| lane.status.as_ref().is_some_and(LaneStatus::is_sound);
        self.lanes.iter().all(sound)
    }

    /// Whether any answer came from a recording.
    pub fn is_replayed(&self) -> bool {
        self.lanes.iter().any(|lane| lane.lane.replayed || lane.metrics.replayed > 0)
    }

    /// Results that could not be judged, and all of them.
    pub fn errors(&self) -> (u64, u64) {
        let metrics = || self.lanes.iter().map(|lane| &lane.metrics);
        (metrics().map(|it| it.all.unjudged).sum(), metrics().map(Metrics::results).sum())
    }

    /// Whether too many cases could not be judged.
    pub fn is_degraded(&self) -> bool {
        let (errors, _) = self.errors();
        // A lane that was stopped because it was decided is measured by all it would have asked.
        let whole = |lane: &LaneReport| match lane.status {
            Some(LaneStatus::Decided { .. }) => lane.lane.planned,
            Some(_) | None => lane.metrics.results(),
        };
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 results")]
        let (errors, results) = (errors as f64, self.lanes.iter().map(whole).sum::<u64>() as f64);
        errors > results * self.max_error_rate
    }

    /// Errors that are about the key or the account.
    pub fn locked_out(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.metrics.locked_out()).sum()
    }
}

impl LaneReport {
    /// `RUNNER on BACKEND`.
    pub fn title(&self) -> String {
        format!("{} on {}", self.lane.runner, self.lane.backend)
    }

    /// Results that there are; of a foreign runner, those that it says it has.
    pub fn cases(&self) -> u64 {
        match &self.metrics.figures {
            Some(Figures::Program(it)) => it.cases,
            Some(_) | None => self.metrics.results(),
        }
    }

    /// Results that were planned, likewise.
    pub fn planned(&self) -> u64 {
        match &self.metrics.figures {
            Some(Figures::Program(it)) => it.planned,
            Some(_) | None => self.lane.planned,
        }
    }

    /// Whether everything that was planned came to an end.
    pub fn is_complete(&self) -> bool {
        self.status.as_ref().is_some_and(LaneStatus::is_complete)
    }
}

/// A list of names on one line.
fn listed(names: &serde_json::Value) -> Option<String> {
    let names: Option<Vec<&str>> = names.as_array()?.iter().map(|it| it.as_str()).collect();
    names.map(|it| it.join(", "))
}

/// Where reports get their cases from.
pub trait Cases {
    /// The results of a lane one by one, in the order of their ids.
    fn each(
        &self,
        lane: usize,
        take: &mut dyn FnMut(&StoredCase) -> io::Result<()>,
    ) -> io::Result<()>;
}

impl StoredCase {
    /// The case as it stood in the dataset.
    pub fn definition(&self) -> serde_json::Value {
        serde_json::from_str(&self.definition).unwrap_or_default()
    }

    /// The classification with its evidence.
    pub fn classification(&self) -> serde_json::Value {
        serde_json::from_str(&self.classification).unwrap_or_default()
    }

    /// What would have been right, as far as that can be said in a line or so.
    pub fn expected(&self) -> Option<String> {
        let definition = self.definition();
        let text = |key: &str| definition.get(key).and_then(|it| it.as_str()).map(str::to_owned);
        let first = || {
            let first = definition.get("expected_commands")?.get(0)?;
            first.as_str().map(str::to_owned)
        };
        let skills = || match definition.get("should_activate").and_then(serde_json::Value::as_bool)
        {
            Some(false) => Some("no skill".to_owned()),
            Some(true) | None => listed(definition.get("expected_skills")?),
        };
        let command = text("expected_command").or_else(|| text("expected_response"));
        command.or_else(first).or_else(skills)
    }

    /// The command that was taken out of the reply, or the reply itself.
    pub fn actual(&self) -> Option<String> {
        let classification = self.classification();
        let command = &classification["details"]["command"]["command"];
        command.as_str().map(str::to_owned).or_else(|| self.reply.clone())
    }

    /// Why it did not pass, in words.
    pub fn reason(&self) -> String {
        if let Some(error) = &self.error {
            return error.message.clone();
        }
        let classification = self.classification();
        let details = &classification["details"];
        let text = |value: &serde_json::Value| value.as_str().map(ToOwned::to_owned);
        let command = &details["command"];
        if let Ok(reason) = serde_json::from_value::<FailureReason>(details["diff"].clone())
            && reason != FailureReason::IncorrectCommand
        {
            return format!("{reason}: {}", command["command"].as_str().unwrap_or("no command"));
        }
        let diff = &details["diff"];
        let choice = || {
            let chosen = listed(&diff["chosen"])?;
            let expected = self.expected().unwrap_or_default();
            let chosen = if chosen.is_empty() { "nothing" } else { &chosen };
            Some(format!("chosen: {chosen}; expected: {expected}"))
        };
        let compared = || {
            let points = |key: &str| diff[key].as_f64().map(|it| format!("{it:.2}"));
            let (result, more, less) = (diff["result"].as_str()?, points("more")?, points("less")?);
            Some(format!("{result}: {more} points with the skill, {less} without"))
        };
        text(&details["error_message"])
            .or_else(choice)
            .or_else(compared)
            .or_else(|| text(&details["phrase"]))
            .or_else(|| text(&details["policy_name"]))
            .or_else(|| text(&command["difference"]))
            .or_else(|| text(&command["reason"]))
            .or_else(|| self.reply.clone())
            .unwrap_or_default()
    }
}
