//! Runs that are kept in a store.

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, sync_channel},
    },
    thread,
    time::Duration,
};

use probity::guest;
use probity_core::record::CaseRecord;
use probity_report::json::case_value;
use probity_store::{LaneView, Reader, RunRow, StoreError};
use pyo3::{prelude::*, types::PyCapsule};
use serde_json::{Value, json};

use crate::{
    tables::{self, Records},
    values::{failed, to_python},
};

/// Cases that may wait to be taken.
const WAITING: usize = 64;
/// How often a caller who waits looks whether somebody wants to interrupt it.
const LOOK: Duration = Duration::from_millis(50);

/// What a store says is wrong, with what to do about it.
fn told(error: StoreError) -> PyErr {
    let mut text = format!("the store cannot be used: {error}");
    let mut cause = std::error::Error::source(&error);
    while let Some(it) = cause {
        text.push_str("\ncaused by: ");
        text.push_str(&it.to_string());
        cause = it.source();
    }
    if let Some(hint) = error.hint() {
        text.push_str("\nhint: ");
        text.push_str(hint);
    }
    failed(text)
}

fn open(store: &Path) -> Result<Reader, PyErr> {
    if !store.exists() {
        let store = store.display();
        return Err(failed(format!(
            "there is no store `{store}`\nhint: `probity run` makes one; name another with `store`"
        )));
    }
    Reader::open(store).map_err(told)
}

/// A run that is kept in a store.
#[pyclass(frozen, module = "probity")]
pub(crate) struct StoredRun {
    store: PathBuf,
    run_id: String,
    most_errors: f64,
}

/// The run of a name, the beginning of one, or `latest`.
#[pyfunction]
#[pyo3(signature = (name, store = None))]
pub(crate) fn load_run(py: Python<'_>, name: &str, store: Option<PathBuf>) -> PyResult<StoredRun> {
    py.detach(|| {
        let (store, most_errors) = guest::store(store).map_err(failed)?;
        let run_id = open(&store)?.find(name).map_err(told)?.run_id;
        Ok(StoredRun { store, run_id, most_errors })
    })
}

/// All runs of a store, the latest first.
#[pyfunction]
#[pyo3(signature = (store = None))]
pub(crate) fn list_runs(py: Python<'_>, store: Option<PathBuf>) -> PyResult<Bound<'_, PyAny>> {
    let runs = py.detach(|| {
        let (store, _) = guest::store(store).map_err(failed)?;
        open(&store)?.runs().map_err(told)
    })?;
    to_python(py, &runs.iter().map(about).collect())
}

fn about(run: &RunRow) -> Value {
    json!({
        "run_id": run.run_id,
        "suite": run.suite,
        "status": run.status.as_str(),
        "started_ms": run.started_ms,
        "finished_ms": run.finished_ms,
    })
}

/// Gives each record of a run to `each`, until that wants no more.
fn each_case(
    store: &Path,
    run_id: &str,
    mut each: impl FnMut(&LaneView, &CaseRecord) -> bool,
) -> PyResult<()> {
    let reader = open(store)?;
    let run = reader.find(run_id).map_err(told)?;
    let mut wanted = true;
    for lane in reader.lanes(&run).map_err(told)? {
        if wanted {
            let take = |case: CaseRecord| {
                wanted = wanted && each(&lane, &case);
                Ok(())
            };
            reader.cases(&lane, take).map_err(told)?;
        }
    }
    Ok(())
}

#[pymethods]
impl StoredRun {
    /// The run's id.
    #[getter]
    fn id(&self) -> &str {
        &self.run_id
    }

    /// The file that it is kept in.
    #[getter]
    fn store(&self) -> PathBuf {
        self.store.clone()
    }

    /// What became of each runner, as `suite_summary.json` has it.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let summary: Value = py.detach(|| {
            let reader = open(&self.store)?;
            let run = reader.find(&self.run_id).map_err(told)?;
            let view = reader.view(&run, self.most_errors).map_err(told)?;
            let mut text = Vec::new();
            probity_report::summary::write(&view, &mut text).map_err(failed)?;
            serde_json::from_slice(&text).map_err(failed)
        })?;
        to_python(py, &summary)
    }

    /// All results of a case, one for each lane and repeat.
    fn case<'py>(&self, py: Python<'py>, case_id: &str) -> PyResult<Bound<'py, PyAny>> {
        let found: Vec<Value> = py.detach(|| {
            let reader = open(&self.store)?;
            let run = reader.find(&self.run_id).map_err(told)?;
            let mut found = Vec::new();
            for lane in reader.lanes(&run).map_err(told)? {
                let cases = reader.case(&lane, case_id).map_err(told)?;
                found.extend(cases.iter().map(|it| case_value(&lane.lane, it)));
            }
            Ok::<_, PyErr>(found)
        })?;
        to_python(py, &Value::Array(found))
    }

    /// The results one by one, in the order of their ids.
    fn __iter__(&self) -> Cases {
        let (sender, receiver) = sync_channel(WAITING);
        let (store, run_id) = (self.store.clone(), self.run_id.clone());
        thread::spawn(move || {
            let sent = each_case(&store, &run_id, |lane, case| {
                sender.send(Ok(case_value(&lane.lane, case))).is_ok()
            });
            if let Err(error) = sent {
                // Nobody may listen any more.
                let _ = sender.send(Err(error));
            }
        });
        Cases(Mutex::new(receiver))
    }

    /// The results as a stream of Arrow. They are read while they are taken.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let (mut records, table) = Records::new();
        let (store, run_id) = (self.store.clone(), self.run_id.clone());
        thread::spawn(move || {
            let read = each_case(&store, &run_id, |lane, case| records.add(&lane.lane, case));
            records.end(read.err().map(|it| it.to_string()));
        });
        tables::capsule(py, table)
    }
}

/// An iterator over the results of a run.
#[pyclass(frozen, module = "probity")]
pub(crate) struct Cases(Mutex<Receiver<PyResult<Value>>>);

#[pymethods]
impl Cases {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            let waited = py.detach(|| {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK)
            });
            match waited {
                Ok(case) => return to_python(py, &case?).map(Some),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            }
        }
    }
}
