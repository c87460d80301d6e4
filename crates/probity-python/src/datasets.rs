//! Cases of datasets.

use std::{cell::RefCell, path::PathBuf};

use probity_core::{case::TestCase, problem::Severity};
use probity_grade::Compiler;
use probity_load::dataset::{self, Item};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::{
    rules::Rules,
    values::{failed, to_python},
};

/// Problems that are told at once.
const TOLD: usize = 10;

/// The cases of a dataset, each with its id and the line that it begins at.
#[pyfunction]
#[pyo3(signature = (path, rules = None))]
pub(crate) fn load_cases<'py>(
    py: Python<'py>,
    path: PathBuf,
    rules: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let rules = Rules::of(rules, py)?;
    let cases = py.detach(|| {
        let compiler = RefCell::new(Compiler::new(&rules));
        let check = |case: &TestCase| compiler.borrow_mut().compile(case).err().unwrap_or_default();
        let (mut cases, mut problems) = (Vec::new(), Vec::new());
        dataset::read(&[&path], &check, &mut |item| match item {
            Item::Case(at) => {
                cases.push(json!({ "id": at.case.id, "line": at.line, "case": at.case }));
            }
            Item::Problem(problem) if problem.severity == Severity::Error => problems.push(problem),
            Item::Problem(_) => {}
        });
        if problems.is_empty() {
            return Ok(Value::Array(cases));
        }
        let line = problems.iter().take(TOLD).map(|it| match &it.place {
            Some(place) => format!("{}:{}: {}", it.file, place.line, it.message),
            None => format!("{}: {}", it.file, it.message),
        });
        let mut lines: Vec<String> = line.collect();
        if problems.len() > TOLD {
            lines.push(format!("and {} more", problems.len() - TOLD));
        }
        Err(failed(lines.join("\n")))
    })?;
    to_python(py, &cases)
}
