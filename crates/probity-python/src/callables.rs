//! Functions of Python that stand for backends and scorers.

use std::{collections::BTreeMap, sync::Arc};

use probity_run::callable::Callable;
use pyo3::{prelude::*, types::PyTuple};
use serde_json::Value;

use crate::values::{to_json, to_python};

/// Functions by name. Each comes with what tells it from others.
pub(crate) type Named = BTreeMap<String, (Py<PyAny>, String)>;

/// Functions as a run calls them, from any thread.
pub(crate) fn callables(named: Named) -> BTreeMap<String, Callable> {
    named
        .into_iter()
        .map(|(name, (function, identity))| (name, callable(function, identity)))
        .collect()
}

fn callable(function: Py<PyAny>, identity: String) -> Callable {
    let call = move |arguments: Vec<Value>| {
        Python::attach(|py| {
            let called = || -> PyResult<Value> {
                let arguments =
                    arguments.iter().map(|it| to_python(py, it)).collect::<PyResult<Vec<_>>>()?;
                to_json(&function.bind(py).call1(PyTuple::new(py, arguments)?)?)
            };
            called().map_err(|error| {
                let kind =
                    error.get_type(py).name().map_or_else(|_| String::new(), |it| it.to_string());
                format!("{kind}: {}", error.value(py))
            })
        })
    };
    Callable { identity, call: Arc::new(call) }
}
