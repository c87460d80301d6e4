//! Values of Python as JSON, and back.

use pyo3::{
    IntoPyObjectExt as _, create_exception,
    exceptions::{PyException, PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PySequence, PyString, PyTuple},
};
use serde::Serialize;
use serde_json::{Number, Value};

create_exception!(
    probity,
    ProbityError,
    PyException,
    "What Probity could not do, in the words of the command."
);

/// How deep values may nest.
const DEEPEST: usize = 200;

/// An error with a message of ours.
pub(crate) fn failed(error: impl std::fmt::Display) -> PyErr {
    ProbityError::new_err(error.to_string())
}

/// Anything that can be written as JSON, as a value of Python.
pub(crate) fn answer<'py>(py: Python<'py>, answer: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, &serde_json::to_value(answer).map_err(failed)?)
}

/// A value of JSON as one of Python.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(it) => it.into_bound_py_any(py),
        Value::Number(it) => number(py, it),
        Value::String(it) => it.into_bound_py_any(py),
        Value::Array(items) => {
            let items: Vec<_> =
                items.iter().map(|it| to_python(py, it)).collect::<PyResult<_>>()?;
            PyList::new(py, items)?.into_bound_py_any(py)
        }
        Value::Object(entries) => {
            let dict = PyDict::new(py);
            for (key, it) in entries {
                dict.set_item(key, to_python(py, it)?)?;
            }
            dict.into_bound_py_any(py)
        }
    }
}

fn number<'py>(py: Python<'py>, number: &Number) -> PyResult<Bound<'py, PyAny>> {
    if let Some(it) = number.as_i64() {
        return it.into_bound_py_any(py);
    }
    let text = number.to_string();
    match text.contains(['.', 'e', 'E']) {
        true => text.parse::<f64>().map_err(failed)?.into_bound_py_any(py),
        // Python has no largest one.
        false => py.get_type::<PyInt>().call1((text,)),
    }
}

/// A value of Python as one of JSON.
pub(crate) fn to_json(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let mut text = Vec::new();
    write_json(value, &mut text, 0)?;
    serde_json::from_slice(&text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Writes a value as JSON, on one line.
pub(crate) fn write_json(
    value: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
    depth: usize,
) -> PyResult<()> {
    if depth > DEEPEST {
        return Err(PyValueError::new_err(format!("values nest deeper than {DEEPEST}")));
    }
    if let Ok(text) = value.cast::<PyString>() {
        write_text(text, out)
    } else if let Ok(dict) = value.cast::<PyDict>() {
        write_entries(dict.iter(), out, depth)
    } else if value.is_none() {
        out.extend_from_slice(b"null");
        Ok(())
    } else if let Ok(it) = value.cast::<PyBool>() {
        out.extend_from_slice(if it.is_true() { b"true" } else { b"false" });
        Ok(())
    } else if let Ok(it) = value.cast::<PyInt>() {
        // A subclass, such as a member of an enumeration, may have a text of its own.
        let digits = value.py().get_type::<PyInt>().call_method1("__repr__", (it,))?;
        out.extend_from_slice(digits.cast::<PyString>()?.to_str()?.as_bytes());
        Ok(())
    } else if let Ok(it) = value.cast::<PyFloat>() {
        write_number(it.value(), out)
    } else if let Ok(items) = value.cast::<PyList>() {
        write_items(items.iter(), out, depth)
    } else if let Ok(items) = value.cast::<PyTuple>() {
        write_items(items.iter(), out, depth)
    } else {
        write_other(value, out, depth)
    }
}

/// What is none of the usual types: other mappings and sequences, and numbers of other libraries.
fn write_other(value: &Bound<'_, PyAny>, out: &mut Vec<u8>, depth: usize) -> PyResult<()> {
    if let Ok(mapping) = value.cast::<PyMapping>() {
        let items = mapping.items()?;
        let pairs = items.iter().map(|it| it.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>());
        return write_entries(pairs.collect::<PyResult<Vec<_>>>()?.into_iter(), out, depth);
    }
    if let Ok(sequence) = value.cast::<PySequence>()
        && value.extract::<&[u8]>().is_err()
    {
        return write_items(sequence.to_list()?.iter(), out, depth);
    }
    let kind = value.get_type().name()?;
    match value.getattr("item") {
        Ok(item) if item.is_callable() && depth < DEEPEST => {
            write_json(&item.call0()?, out, DEEPEST)
        }
        _ => {
            Err(PyTypeError::new_err(format!("a value of type `{kind}` cannot be written as JSON")))
        }
    }
}

fn write_text(text: &Bound<'_, PyString>, out: &mut Vec<u8>) -> PyResult<()> {
    let text = text.to_str().map_err(|error| {
        PyValueError::new_err(format!("a text cannot be written as UTF-8: {error}"))
    })?;
    serde_json::to_writer(out, text).map_err(failed)
}

fn write_number(number: f64, out: &mut Vec<u8>) -> PyResult<()> {
    if !number.is_finite() {
        return Err(PyValueError::new_err(format!("{number} cannot be written as JSON")));
    }
    serde_json::to_writer(out, &number).map_err(failed)
}

fn write_items<'py>(
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    out: &mut Vec<u8>,
    depth: usize,
) -> PyResult<()> {
    out.push(b'[');
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_json(&item, out, depth + 1)?;
    }
    out.push(b']');
    Ok(())
}

fn write_entries<'py>(
    entries: impl Iterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    out: &mut Vec<u8>,
    depth: usize,
) -> PyResult<()> {
    out.push(b'{');
    for (at, (key, value)) in entries.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let key = key
            .cast::<PyString>()
            .map_err(|_| PyTypeError::new_err("the keys of a table must be texts"))?;
        write_text(key, out)?;
        out.push(b':');
        write_json(&value, out, depth + 1)?;
    }
    out.push(b'}');
    Ok(())
}
