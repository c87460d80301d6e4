//! One detector on a text, or on many.

use std::{path::PathBuf, sync::Arc};

use probity::guest;
use probity_core::criteria::JsonLevel;
use probity_grade::json::Wanted;
use probity_offline::check::{self, command, error};
use probity_shell::{extract, posix::Edition, safety::Level};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyList};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    parallel::{map, threads},
    rules::{Rules, logged},
    values::{answer, failed, to_json, to_python},
};

/// A text, or several.
#[derive(FromPyObject)]
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    /// What comes of each text: an answer, or a list of them.
    pub(crate) fn answer<A: Serialize>(
        self,
        py: Python<'_>,
        named: Option<usize>,
        work: impl Fn(&str) -> A + Sync,
    ) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::One(text) => {
                let value = py.detach(|| serde_json::to_value(work(&text)));
                to_python(py, &value.map_err(failed)?)
            }
            Self::Many(texts) => answers(py, &texts, named, |text| work(text)),
        }
    }
}

/// What comes of each of many, as a list.
fn answers<'py, T: Sync, A: Serialize>(
    py: Python<'py>,
    asked: &[T],
    named: Option<usize>,
    work: impl Fn(&T) -> A + Sync,
) -> PyResult<Bound<'py, PyAny>> {
    let answers = py.detach(|| map(asked, threads(named), |it| serde_json::to_value(work(it))));
    let answers = answers.into_iter().map(|it| to_python(py, &it.map_err(failed)?));
    Ok(PyList::new(py, answers.collect::<PyResult<Vec<_>>>()?)?.into_any())
}

/// A setting by its name in files.
fn named<T: DeserializeOwned>(what: &str, name: &str, known: &[&str]) -> PyResult<T> {
    serde_json::from_value(Value::from(name)).map_err(|_| {
        PyValueError::new_err(format!("`{what}` must be one of {}, not `{name}`", known.join(", ")))
    })
}

/// Whether texts decline.
#[pyfunction]
#[pyo3(signature = (text, rules = None, threads = None))]
pub(crate) fn check_refusal<'py>(
    py: Python<'py>,
    text: Texts,
    rules: Option<&Bound<'py, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let rules = Rules::of(rules, py)?;
    text.answer(py, threads, |text| check::refusal(rules.refusal(), text))
}

/// The JSON value in texts.
#[pyfunction]
#[pyo3(signature = (text, level, want, threads = None))]
pub(crate) fn check_json<'py>(
    py: Python<'py>,
    text: Texts,
    level: &str,
    want: &str,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let level: JsonLevel = named("level", level, &["strict", "lenient", "repair"])?;
    let wanted = match want {
        "any" => Wanted::Any,
        "object" => Wanted::Object,
        "array" => Wanted::Array,
        other => {
            return Err(PyValueError::new_err(format!(
                "`want` must be one of any, object, array, not `{other}`"
            )));
        }
    };
    text.answer(py, threads, |text| check::json(text, level, wanted))
}

/// Where texts break policies.
#[pyfunction]
#[pyo3(signature = (text, policies, rules = None, threads = None))]
pub(crate) fn check_policy<'py>(
    py: Python<'py>,
    text: Texts,
    policies: Vec<String>,
    rules: Option<&Bound<'py, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let suite: Option<PathBuf> = Rules::taken(rules, py)?.1;
    let notes = logged();
    let policies =
        py.detach(|| guest::policies(suite.as_deref(), &policies, notes)).map_err(failed)?;
    text.answer(py, threads, |text| check::policy(&policies, text))
}

/// What an error means, or each of a list. A request is a table with what is known of it.
#[pyfunction]
#[pyo3(signature = (request, rules = None, threads = None))]
pub(crate) fn check_error<'py>(
    py: Python<'py>,
    request: &Bound<'py, PyAny>,
    rules: Option<&Bound<'py, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let rules = Rules::of(rules, py)?;
    let settings = error::Settings {
        rules: rules.errors(),
        backend: None,
        status: None,
        exit_code: None,
        signal: None,
    };
    let wrong = |error: serde_json::Error| PyValueError::new_err(error.to_string());
    let request = to_json(request)?;
    // Requests have parts as they were written, so they are read from a text.
    let text = request.to_string();
    match request {
        Value::Array(_) => {
            let requests: Vec<error::Request<'_>> = serde_json::from_str(&text).map_err(wrong)?;
            answers(py, &requests, threads, |it| settings.answer(it))
        }
        _ => {
            let request: error::Request<'_> = serde_json::from_str(&text).map_err(wrong)?;
            answer(py, &py.detach(|| settings.answer(&request)))
        }
    }
}

/// What shell commands mean, and how they compare with another.
#[pyfunction]
#[pyo3(signature = (command, against, level, edition, reply, rules = None, threads = None))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn check_command<'py>(
    py: Python<'py>,
    command: Texts,
    against: Option<String>,
    level: Option<&str>,
    edition: Option<&str>,
    reply: bool,
    rules: Option<&Bound<'py, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let rules: Arc<probity_grade::Rules> = Rules::of(rules, py)?;
    let shell = rules.shell();
    let level: Option<Level> =
        level.map(|it| named("level", it, &["strict", "moderate", "permissive"])).transpose()?;
    let edition = match edition {
        None => None,
        Some("2017") => Some(Edition::Posix2017),
        Some("2024") => Some(Edition::Posix2024),
        Some(other) => {
            return Err(PyValueError::new_err(format!(
                "`edition` must be one of 2017, 2024, not `{other}`"
            )));
        }
    };
    let settings = command::Settings {
        level: level.unwrap_or_else(|| shell.level()),
        edition: edition.unwrap_or_else(|| shell.edition()),
        rules: shell,
        is_reply: reply,
        against: against.as_deref(),
        effects: None,
        execute: false,
    };
    command.answer(py, threads, |text| settings.answer(&command::Request::of(text)))
}

/// Whether commands do the same, in pairs.
#[pyfunction]
#[pyo3(signature = (pairs, rules = None, threads = None))]
pub(crate) fn compare_commands<'py>(
    py: Python<'py>,
    pairs: Vec<(String, String)>,
    rules: Option<&Bound<'py, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let rules: Arc<probity_grade::Rules> = Rules::of(rules, py)?;
    let shell = rules.shell();
    answers(py, &pairs, threads, |(command, other)| {
        let settings = command::Settings {
            level: shell.level(),
            edition: shell.edition(),
            rules: shell,
            is_reply: false,
            against: Some(other),
            effects: None,
            execute: false,
        };
        settings.answer(&command::Request::of(command))
    })
}

/// The command in replies; none where there is none.
#[pyfunction]
#[pyo3(signature = (reply, threads = None))]
pub(crate) fn extract_command(
    py: Python<'_>,
    reply: Texts,
    threads: Option<usize>,
) -> PyResult<Bound<'_, PyAny>> {
    reply.answer(py, threads, |text| extract::extract(text).map(|it| it.command.into_owned()))
}
