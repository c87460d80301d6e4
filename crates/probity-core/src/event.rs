//! What happens in a run, in the order it happens.
//!
//! Every stream begins with `run-started` and ends with `run-finished`; every
//! `case-started` is followed by exactly one `case-finished` or `case-aborted` of the
//! same lane, case and repeat.

use serde::Serialize;

use crate::{
    crew::Crew,
    record::{Aborted, CallError, CaseRecord, Lane, LaneStatus, Spent},
};

/// Version of the stream's format.
pub const VERSION: u32 = 1;

/// An event and when it happened.
#[derive(Debug, Serialize)]
pub struct Stamped {
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// A case of a lane that is being worked on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CaseKey {
    /// The lane, by its place in `run-started`.
    pub lane: usize,
    /// The case's id.
    pub case_id: String,
    /// Which of the repeats, from 0.
    pub repeat: u32,
}

/// Something that happened.
#[derive(Debug, Serialize)]
#[serde(tag = "event", content = "data", rename_all = "kebab-case")]
pub enum Event {
    /// The run begins.
    RunStarted {
        /// Version of the stream's format.
        version: u32,
        /// The run's id.
        run_id: String,
        /// Whether the run had been begun before.
        resumed: bool,
        /// What is run on what.
        lanes: Vec<Lane>,
        /// For each lane, cases that came to an end in an earlier session.
        done_before: Vec<u64>,
    },
    /// Work on a case begins.
    CaseStarted(CaseKey),
    /// A call failed.
    AttemptFailed {
        /// The case.
        #[serde(flatten)]
        case: CaseKey,
        /// Counted from 1 within the case.
        attempt: u32,
        /// Why.
        error: CallError,
        /// When it is tried again; none if it is not.
        retry_in_ms: Option<u64>,
    },
    /// A backend gets no calls for a while.
    BackendPaused {
        /// Its name.
        backend: String,
        /// For how long.
        for_ms: u64,
        /// Calls it may have in flight afterwards.
        limit: u64,
        /// What is waited for.
        reason: String,
    },
    /// Calls for workers wait: there is no way to them, or nobody who does them.
    WorkersPaused {
        /// What is waited for.
        reason: String,
    },
    /// They are carried out again.
    WorkersResumed {
        /// What is there again.
        reason: String,
    },
    /// How the workers of the run stand, now and then.
    WorkersSeen(Crew),
    /// A backend failed the same way too often, and its lane ends.
    BackendTripped {
        /// The lane, by its place in `run-started`.
        lane: usize,
        /// The backend's name.
        backend: String,
        /// What the failures have in common.
        reason: String,
        /// What the last of them says.
        error: String,
        /// Whether no retry could have mended them.
        permanent: bool,
    },
    /// A case came to an end.
    CaseFinished {
        /// The lane, by its place in `run-started`.
        lane: usize,
        /// What it came to.
        record: Box<CaseRecord>,
    },
    /// A case that had begun was given up.
    CaseAborted {
        /// The case.
        #[serde(flatten)]
        case: CaseKey,
        /// Why.
        reason: Aborted,
        /// What its calls used until then.
        used: Spent,
    },
    /// A lane ended.
    LaneFinished {
        /// The lane, by its place in `run-started`.
        lane: usize,
        /// How.
        status: LaneStatus,
        /// Calls that were made in this session.
        calls: u64,
    },
    /// Nothing more is begun, and what is in flight is given up.
    CancelStarted {
        /// Why.
        reason: String,
    },
    /// The run ends.
    RunFinished {
        /// Whether every lane is complete.
        complete: bool,
    },
}

impl Event {
    /// How long the texts are that it holds, as far as they can be long.
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::CaseFinished { record, .. } => record.text_bytes(),
            Self::AttemptFailed { error, .. } => error.message.len(),
            Self::BackendTripped { reason, error, .. } => reason.len() + error.len(),
            Self::BackendPaused { reason, .. }
            | Self::WorkersPaused { reason }
            | Self::WorkersResumed { reason }
            | Self::CancelStarted { reason } => reason.len(),
            Self::WorkersSeen(crew) => crew.text_bytes(),
            Self::RunStarted { .. }
            | Self::CaseStarted(_)
            | Self::CaseAborted { .. }
            | Self::LaneFinished { .. }
            | Self::RunFinished { .. } => 0,
        }
    }
}
