//! Runs that go on.

use std::{
    ffi::OsString,
    path::PathBuf,
    sync::{
        Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use probity::guest::{self, Hooks, Ran, Refused};
use probity_core::event::Stamped;
use probity_run::callable::Callables;
use pyo3::{prelude::*, sync::MutexExt as _};
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    callables::{Named, callables},
    rules::logged,
    values::{failed, to_python},
};

/// Batches of events that may wait to be taken. The run waits when there are more.
const WAITING: usize = 64;
/// How often a caller who waits looks whether somebody wants to interrupt it.
const LOOK: Duration = Duration::from_millis(50);

/// Starts a run, with the arguments that `probity run` would have.
#[pyfunction]
pub(crate) fn start(arguments: Vec<OsString>, backends: Named, scorers: Named) -> Running {
    let (sender, receiver) = sync_channel::<Vec<Value>>(WAITING);
    let (stop, stopped) = watch::channel(false);
    let on_events = Box::new(move |batch: &[Stamped]| {
        // Our own types can be written.
        let events = batch.iter().map(|it| serde_json::to_value(it).unwrap_or_default());
        // The run goes on if nobody listens any more.
        let _ = sender.send(events.collect());
    });
    let callables = Callables { backends: callables(backends), scorers: callables(scorers) };
    let hooks = Hooks { callables, on_events, on_note: logged(), stopped };
    let run = thread::spawn(move || guest::run(arguments, hooks));
    let state = State {
        receiver: Some(receiver),
        waiting: Vec::new().into_iter(),
        run: Some(run),
        ended: None,
    };
    Running { stop, state: Mutex::new(state) }
}

/// A run that goes on. It gives events as they happen, once they are recorded.
#[pyclass(frozen, module = "probity")]
pub(crate) struct Running {
    stop: watch::Sender<bool>,
    state: Mutex<State>,
}

struct State {
    receiver: Option<Receiver<Vec<Value>>>,
    waiting: std::vec::IntoIter<Value>,
    run: Option<JoinHandle<Result<Ran, Refused>>>,
    ended: Option<Result<(String, PathBuf, u8), String>>,
}

impl Running {
    fn state(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The next event; none when the run has ended.
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Value>> {
        loop {
            if let Some(event) = self.waiting.next() {
                return Ok(Some(event));
            }
            let Some(receiver) = &mut self.receiver else { return Ok(None) };
            match py.detach(move || receiver.recv_timeout(LOOK)) {
                Ok(batch) => self.waiting = batch.into_iter(),
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => self.receiver = None,
            }
        }
    }

    /// What the run came to.
    fn outcome(&mut self, py: Python<'_>) -> PyResult<(String, PathBuf, u8)> {
        if let Some(run) = self.run.take() {
            let joined = py.detach(|| run.join());
            self.ended = Some(match joined {
                Ok(Ok(Ran { run_id, store, exit })) => Ok((run_id, store, exit)),
                Ok(Err(refused)) => Err(refused.message),
                Err(_) => Err("the program failed; this is a bug".to_owned()),
            });
        }
        match &self.ended {
            Some(Ok(ended)) => Ok(ended.clone()),
            Some(Err(message)) => Err(failed(message)),
            None => Err(failed("the run has no outcome")),
        }
    }
}

#[pymethods]
impl Running {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// The next event. Raises what kept the run from going on, after the last one.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut state = self.state(py);
        match state.next(py)? {
            Some(event) => to_python(py, &event).map(Some),
            None => state.outcome(py).map(|_| None),
        }
    }

    /// Has the run stop in good order: nothing new is asked, and what was answered is recorded.
    fn stop(&self) {
        // It may have ended by itself.
        let _ = self.stop.send(true);
    }

    /// Drops what events are left, waits for the end, and gives the run's id, its store and the exit code.
    fn finish(&self, py: Python<'_>) -> PyResult<(String, PathBuf, u8)> {
        let mut state = self.state(py);
        while state.next(py)?.is_some() {}
        state.outcome(py)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nobody is left to hear of it: it ends in good order by itself.
        let _ = self.stop.send(true);
    }
}
