//! What judges replies.

use std::{
    path::PathBuf,
    sync::{Arc, LazyLock},
};

use probity::guest::{self, OnNote};
use pyo3::prelude::*;

use crate::values::failed;

static USUAL: LazyLock<Arc<probity_grade::Rules>> = LazyLock::new(|| {
    // Without a file there is nothing that could be wrong with one.
    Arc::new(guest::rules(None, Arc::new(|_| {})).unwrap_or_default())
});

/// The rules of a suite, read once.
///
/// `suite` is its file. Without one they are those that come with the program.
#[pyclass(frozen, module = "probity")]
pub(crate) struct Rules {
    pub(crate) rules: Arc<probity_grade::Rules>,
    pub(crate) suite: Option<PathBuf>,
}

#[pymethods]
impl Rules {
    #[new]
    #[pyo3(signature = (suite = None))]
    fn new(py: Python<'_>, suite: Option<PathBuf>) -> PyResult<Self> {
        Self::load(py, suite)
    }

    fn __repr__(&self) -> String {
        match &self.suite {
            Some(suite) => format!("Rules({:?})", suite.display().to_string()),
            None => "Rules()".to_owned(),
        }
    }
}

impl Rules {
    pub(crate) fn load(py: Python<'_>, suite: Option<PathBuf>) -> PyResult<Self> {
        let rules = match &suite {
            None => USUAL.clone(),
            Some(path) => {
                let notes = logged();
                Arc::new(py.detach(|| guest::rules(Some(path), notes)).map_err(failed)?)
            }
        };
        Ok(Self { rules, suite })
    }

    /// Those that are given, those of the suite whose file is given, or else the usual ones.
    pub(crate) fn of(
        given: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<Arc<probity_grade::Rules>> {
        Ok(Self::taken(given, py)?.0)
    }

    /// The same, with the suite's file.
    pub(crate) fn taken(
        given: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<(Arc<probity_grade::Rules>, Option<PathBuf>)> {
        let Some(given) = given else { return Ok((USUAL.clone(), None)) };
        if let Ok(rules) = given.cast::<Self>() {
            return Ok((rules.get().rules.clone(), rules.get().suite.clone()));
        }
        let loaded = Self::load(py, Some(given.extract()?))?;
        Ok((loaded.rules, loaded.suite))
    }
}

/// Tells the logger `probity` of what the command would print.
pub(crate) fn logged() -> OnNote {
    Arc::new(|note: &str| {
        Python::attach(|py| {
            let told = || -> PyResult<()> {
                let logger = py.import("logging")?.call_method1("getLogger", ("probity",))?;
                let level = if note.starts_with("warning:") { "warning" } else { "info" };
                logger.call_method1(level, ("%s", note)).map(drop)
            };
            if let Err(error) = told() {
                error.write_unraisable(py, None);
            }
        });
    })
}
