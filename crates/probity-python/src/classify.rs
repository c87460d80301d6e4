//! What stored results are: one, all of a batch, or one after the other.

use std::{
    io::Read,
    ops::ControlFlow,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use probity_core::problem::Problem;
use probity_load::lines::{LONGEST_LINE, Line};
use probity_offline::{
    classify::{Found, Settings, classify_all},
    pipeline::{Broken, Done, Job as _},
    tally::Tally,
};
use pyo3::{exceptions::PyIndexError, prelude::*, types::PyCapsule};
use serde_json::Value;

use crate::{
    parallel::threads,
    rows::{Raised, Rows, take_raised, write_row},
    rules::Rules,
    tables,
    values::{ProbityError, failed, to_json, to_python},
};

/// Chunks that may wait to be taken out of a stream.
const WAITING: usize = 4;
/// How often a caller who waits looks whether somebody wants to interrupt it.
const LOOK: Duration = Duration::from_millis(50);
/// Problems that are told at once.
const TOLD: usize = 5;

/// What is wrong with rows, in one text.
fn told(problems: &[Problem]) -> String {
    let line = |problem: &Problem| {
        let row = problem.place.as_ref().map_or(1, |it| it.line);
        let help = problem.help.as_deref().map_or(String::new(), |it| format!(" ({it})"));
        format!("row {row}: {}{help}", problem.message)
    };
    let mut lines: Vec<String> = problems.iter().take(TOLD).map(line).collect();
    if problems.len() > TOLD {
        lines.push(format!("and {} more", problems.len() - TOLD));
    }
    lines.join("\n")
}

/// Classifies all lines. `take` gets what came of a part of them.
fn run(
    rules: &probity_grade::Rules,
    threads: usize,
    input: &mut dyn Read,
    raised: &Raised,
    mut take: impl FnMut(Vec<u8>, &Tally) -> ControlFlow<()> + Send,
) -> PyResult<()> {
    let settings = Settings { rules, name: "rows".into(), require_criteria: false };
    let mut problems = Vec::new();
    let classified = classify_all(&settings, threads, input, &mut |done: Done<Found>, _| {
        problems.extend(done.found.problems);
        Ok(match problems.is_empty() {
            true => take(done.output, &done.found.tally),
            false => ControlFlow::Break(()),
        })
    });
    if !problems.is_empty() {
        return Err(ProbityError::new_err(told(&problems)));
    }
    classified.map_err(|broken| match broken {
        Broken::Input(error) | Broken::Output(error) => {
            take_raised(raised).unwrap_or_else(|| failed(error))
        }
    })
}

/// What one stored result is.
#[pyfunction]
#[pyo3(signature = (row, rules = None))]
pub(crate) fn classify_one<'py>(
    py: Python<'py>,
    row: &Bound<'py, PyAny>,
    rules: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let rules = Rules::of(rules, py)?;
    let mut text = Vec::new();
    write_row(row, &mut text, 1)?;
    let value = py
        .detach(|| line(&rules, &text))
        .map_err(|problems| ProbityError::new_err(told(&problems)))?;
    to_python(py, &value)
}

/// Why a result that was classified has its verdict.
#[pyfunction]
pub(crate) fn reason_of(py: Python<'_>, classified: &Bound<'_, PyAny>) -> PyResult<String> {
    let value = to_json(classified)?;
    py.detach(|| tables::reason_in(value)).map_err(failed)
}

/// Classifies one line, without starting a thread.
fn line(rules: &probity_grade::Rules, bytes: &[u8]) -> Result<Value, Vec<Problem>> {
    let settings = Settings { rules, name: "rows".into(), require_criteria: false };
    let mut done = Done::default();
    let line = Line { number: 1, bytes, too_long: bytes.len() > LONGEST_LINE };
    settings.line(&mut settings.worker(), line, &mut done);
    match done.found.problems.is_empty() {
        // What was written is JSON.
        true => Ok(serde_json::from_slice(&done.output).unwrap_or_default()),
        false => Err(done.found.problems),
    }
}

/// What many stored results are.
#[pyfunction]
#[pyo3(signature = (rows, rules = None, threads = None))]
pub(crate) fn classify_many(
    py: Python<'_>,
    rows: &Bound<'_, PyAny>,
    rules: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Results> {
    let rules = Rules::of(rules, py)?;
    let raised = Raised::default();
    let mut input = Rows::new(rows, &raised)?;
    let threads = self::threads(threads);
    let mut results = Results::default();
    py.detach(|| {
        run(&rules, threads, &mut input, &raised, |lines, tally| {
            results.add(lines, tally);
            ControlFlow::Continue(())
        })
    })?;
    Ok(results)
}

/// Classified results, in the order of their rows. Each is read when it is asked for.
#[pyclass(frozen, sequence, module = "probity")]
#[derive(Default)]
pub(crate) struct Results {
    /// Lines, as they came.
    parts: Vec<Arc<Vec<u8>>>,
    /// The part of each line, and its bytes there.
    lines: Vec<(u32, u32, u32)>,
    tally: Tally,
}

impl Results {
    fn add(&mut self, lines: Vec<u8>, tally: &Tally) {
        self.tally.merge(tally);
        if lines.is_empty() {
            return;
        }
        let part = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        let mut begin = 0;
        for line in lines.split_inclusive(|it| *it == b'\n') {
            let bounds =
                [begin, begin + line.len()].map(|it| u32::try_from(it).unwrap_or(u32::MAX));
            self.lines.push((part, bounds[0], bounds[1]));
            begin += line.len();
        }
        self.parts.push(Arc::new(lines));
    }

    fn line(&self, at: usize) -> Option<&[u8]> {
        let (part, begin, end) = *self.lines.get(at)?;
        self.parts.get(part as usize)?.get(begin as usize..end as usize)
    }
}

#[pymethods]
impl Results {
    fn __len__(&self) -> usize {
        self.lines.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, at: isize) -> PyResult<Bound<'py, PyAny>> {
        let length = isize::try_from(self.lines.len()).unwrap_or(isize::MAX);
        let place = usize::try_from(if at < 0 { at + length } else { at }).ok();
        let line = place.and_then(|it| self.line(it));
        let line = line.ok_or_else(|| PyIndexError::new_err("there is no such row"))?;
        to_python(py, &serde_json::from_slice::<Value>(line).map_err(failed)?)
    }

    /// The lines of JSON that `probity classify` would write.
    fn lines(&self) -> Vec<u8> {
        self.parts.iter().flat_map(|it| it.iter().copied()).collect()
    }

    /// How many results there are of each class and verdict, as `probity classify --summary` has it.
    #[pyo3(signature = (errors_as_failures = false))]
    fn summary<'py>(
        &self,
        py: Python<'py>,
        errors_as_failures: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.tally.to_json(errors_as_failures))
    }

    /// The results as a stream of Arrow.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        tables::capsule(py, tables::of_lines(self.parts.clone()))
    }

    /// The results as a table of pandas.
    fn to_pandas<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("probity._tables")?.call_method1("to_pandas", (this,))
    }

    /// The results as a table of polars.
    fn to_polars<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("probity._tables")?.call_method1("to_polars", (this,))
    }

    fn __repr__(&self) -> String {
        format!("<probity.Results: {} rows>", self.lines.len())
    }
}

/// What many stored results are, one after the other: rows are read while results are taken.
#[pyfunction]
#[pyo3(signature = (rows, rules = None, threads = None))]
pub(crate) fn classify_stream(
    py: Python<'_>,
    rows: &Bound<'_, PyAny>,
    rules: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Stream> {
    let rules = Rules::of(rules, py)?;
    let raised = Raised::default();
    let mut input = Rows::new(rows, &raised)?;
    let threads = self::threads(threads);
    let (sender, receiver) = sync_channel(WAITING);
    let worker = thread::spawn(move || {
        run(&rules, threads, &mut input, &raised, |lines, _| match sender.send(lines) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        })
    });
    Ok(Stream(Mutex::new(Taking { receiver, worker: Some(worker), part: Vec::new(), at: 0 })))
}

/// An iterator over classified results. Memory is bounded, however many rows there are.
#[pyclass(frozen, module = "probity")]
pub(crate) struct Stream(Mutex<Taking>);

struct Taking {
    receiver: Receiver<Vec<u8>>,
    worker: Option<JoinHandle<PyResult<()>>>,
    part: Vec<u8>,
    at: usize,
}

impl Taking {
    /// The next line; none at the end.
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Value>> {
        while self.at == self.part.len() {
            // Whoever has it alone may take it along.
            let receiver = &mut self.receiver;
            let waited = py.detach(move || receiver.recv_timeout(LOOK));
            match waited {
                Ok(part) => (self.part, self.at) = (part, 0),
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => {
                    let Some(worker) = self.worker.take() else { return Ok(None) };
                    let ended = py.detach(|| worker.join());
                    return ended
                        .unwrap_or_else(|_| Err(failed("the classifier failed; this is a bug")))
                        .map(|()| None);
                }
            }
        }
        let rest = &self.part[self.at..];
        let end = rest.iter().position(|it| *it == b'\n').map_or(rest.len(), |it| it + 1);
        self.at += end;
        serde_json::from_slice(&rest[..end]).map(Some).map_err(failed)
    }
}

#[pymethods]
impl Stream {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut taking = match self.0.try_lock() {
            Ok(taking) => taking,
            Err(std::sync::TryLockError::Poisoned(error)) => PoisonError::into_inner(error),
            Err(std::sync::TryLockError::WouldBlock) => {
                return Err(failed("results are taken by another thread at the moment"));
            }
        };
        taking.next(py)?.map(|it| to_python(py, &it)).transpose()
    }
}
