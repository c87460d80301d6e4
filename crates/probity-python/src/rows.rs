//! Rows of Python as lines of JSON.

use std::{
    io::{self, Read},
    sync::{Arc, Mutex, PoisonError},
};

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyIterator, PyString},
};

use crate::values::write_json;

/// Bytes that are made of rows at once, and the most rows.
const PORTION: usize = 256 << 10;
const MOST_ROWS: usize = 4096;

/// What went wrong in Python while rows were read.
pub(crate) type Raised = Arc<Mutex<Option<PyErr>>>;

/// What was raised, if anything.
pub(crate) fn take_raised(raised: &Raised) -> Option<PyErr> {
    raised.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Rows, read as lines: each is a dict, or a text that is one line of JSON. The interpreter is attached to for a portion
/// of them at a time.
pub(crate) struct Rows {
    source: Py<PyIterator>,
    portion: Vec<u8>,
    at: usize,
    count: usize,
    ended: bool,
    raised: Raised,
}

impl Rows {
    pub(crate) fn new(rows: &Bound<'_, PyAny>, raised: &Raised) -> PyResult<Self> {
        let source = rows.try_iter()?.unbind();
        Ok(Self {
            source,
            portion: Vec::new(),
            at: 0,
            count: 0,
            ended: false,
            raised: raised.clone(),
        })
    }

    fn fill(&mut self, py: Python<'_>) -> PyResult<()> {
        self.portion.clear();
        self.at = 0;
        let mut rows = self.source.bind(py).clone();
        for _ in 0..MOST_ROWS {
            let Some(row) = rows.next() else {
                self.ended = true;
                return Ok(());
            };
            self.count += 1;
            write_row(&row?, &mut self.portion, self.count)?;
            self.portion.push(b'\n');
            if self.portion.len() >= PORTION {
                break;
            }
        }
        Ok(())
    }
}

impl Read for Rows {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.portion.len() {
            if self.ended {
                return Ok(0);
            }
            if let Err(error) = Python::attach(|py| self.fill(py)) {
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                self.ended = true;
                return Err(io::Error::other("an exception in Python"));
            }
        }
        let rest = &self.portion[self.at..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.at += length;
        Ok(length)
    }
}

/// Writes a row as one line, without its end.
pub(crate) fn write_row(row: &Bound<'_, PyAny>, out: &mut Vec<u8>, number: usize) -> PyResult<()> {
    let begin = out.len();
    if let Ok(text) = row.cast::<PyString>() {
        out.extend_from_slice(text.to_str()?.as_bytes());
    } else if let Ok(bytes) = row.cast::<PyBytes>() {
        out.extend_from_slice(bytes.as_bytes());
    } else {
        return write_json(row, out, 0).map_err(|error| {
            let (py, text) = (row.py(), format!("row {number}: {}", error.value(row.py())));
            match error.is_instance_of::<PyTypeError>(py) {
                true => PyTypeError::new_err(text),
                false => PyValueError::new_err(text),
            }
        });
    }
    while out.len() > begin && out.last().is_some_and(u8::is_ascii_whitespace) {
        out.pop();
    }
    let line = &out[begin..];
    match line.is_empty() || line.contains(&b'\n') {
        false => Ok(()),
        true => Err(PyValueError::new_err(format!(
            "row {number}: a row that is a text must be one line of JSON"
        ))),
    }
}
