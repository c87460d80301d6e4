//! The `probity` command, in the process of Python.

use std::{ffi::OsString, io::Write as _, path::PathBuf};

use probity_sandbox::Keeper;
use pyo3::prelude::*;

/// Does what a command line says, and gives the exit code. `again` starts the program again.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, words: Vec<OsString>, again: Vec<OsString>) -> u8 {
    py.detach(|| {
        let exit = probity::command(words, Some(again));
        // Nobody else does so: Rust has no say in how this process ends. Who reads may have left.
        let _ = std::io::stdout().flush();
        exit
    })
}

/// Says which program keeps the sandbox: the interpreter is none.
#[pyfunction]
pub(crate) fn set_keeper(program: PathBuf) {
    Keeper::use_instead(program);
}
