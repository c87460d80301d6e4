//! What a program without workers has in their place: every call is made here.

use std::sync::Arc;

use probity_run::{carrier::Carrier, plan::Plan};
use tokio::runtime::Runtime;

use super::{
    project::Project,
    run::{self, SeatKey},
};
use crate::{cli::run::RunArgs, failure::Failure};

/// A way to workers, which there is none of.
pub(super) enum Hands {}

impl Hands {
    pub(super) fn reach(_: &RunArgs, _: &Project) -> Result<Option<Self>, Failure> {
        Ok(None)
    }
}

/// A run that makes its calls itself.
pub(super) struct Work(Runtime);

impl Work {
    pub(super) fn begin(
        hands: Option<Hands>,
        _: &mut Plan,
        _: &[Option<SeatKey>],
        _: &Project,
    ) -> Result<Self, Failure> {
        match hands {
            Some(hands) => match hands {},
            None => {}
        }
        run::runtime().map(Self)
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.0
    }

    pub(super) fn carrier(&self) -> Option<Arc<dyn Carrier>> {
        None
    }

    pub(super) fn end(self, _: bool) {
        // Tasks that wait for a server that never answers are not waited for.
        self.0.shutdown_background();
    }
}

pub(super) fn are_wanted(_: &RunArgs) -> bool {
    false
}

pub(super) fn again(_: &RunArgs) -> Vec<String> {
    Vec::new()
}
