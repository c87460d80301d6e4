//! Work that takes long, beside the loop.
//!
//! The loop and all its tasks share one thread, so that an answer wakes nobody else. What keeps that thread busy keeps
//! everything waiting: other answers, time limits, Ctrl-C.

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

/// Texts up to this size are read or searched on the spot, in bytes: that takes less than a millisecond, and to have others go
/// on meanwhile wakes two threads.
const LONG: usize = 128 << 10;

/// The same for what is parsed, matched or compared piece by piece.
const SHORT: usize = 8 << 10;

/// Does something that may take long. Where tasks are running, others go on meanwhile.
pub(crate) fn apart<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|it| it.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        Ok(_) | Err(_) => work(),
    }
}

/// Reads or searches a text of so many bytes.
pub(crate) fn apart_if_long<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    match bytes <= LONG {
        true => work(),
        false => apart(work),
    }
}

/// Does more with a text of so many bytes, which may take long unless it is short.
pub(crate) fn apart_unless_short<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    match bytes <= SHORT {
        true => work(),
        false => apart(work),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A runtime as a run has it: one thread for all tasks.
    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap()
    }

    #[test]
    fn other_tasks_go_on_while_a_long_text_is_looked_at() {
        let (sender, receiver) = mpsc::channel();
        let judged = runtime().block_on(async {
            let judging = tokio::spawn(async move {
                // It takes until another task has run on the only thread.
                apart_unless_short(SHORT + 1, || receiver.recv().unwrap())
            });
            tokio::spawn(async move { sender.send("done").unwrap() }).await.unwrap();
            judging.await.unwrap()
        });
        assert_eq!(judged, "done");
    }
}
