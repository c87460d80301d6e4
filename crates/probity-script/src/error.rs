//! What can be wrong with a script, and what can go wrong with one.

use std::{fmt, time::Duration};

/// Why a script cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ScriptProblem {
    /// The line, from 1, where it is known.
    pub line: Option<u32>,
    /// The file, of a script in several files.
    pub file: Option<String>,
    /// What the engine says.
    pub message: String,
}

impl fmt::Display for ScriptProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.message, Place(self.file.as_deref(), self.line))
    }
}

/// Why a script came to no value. It says nothing about what was scored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// It threw something.
    #[error("{message}{}", Place(.file.as_deref(), *.line))]
    Thrown {
        /// What it threw.
        message: String,
        /// The line, from 1, where it is known.
        line: Option<u32>,
        /// The file, of a script in several files.
        file: Option<String>,
    },
    /// It did too much.
    #[error("the script was stopped: it took more than {steps} million steps")]
    Steps {
        /// The limit.
        steps: u32,
    },
    /// It took too long.
    #[error("the script was stopped: it took more than {0:?}")]
    Time(Duration),
    /// Others took too long, and could not be stopped.
    #[error(
        "the script was not run: {0} others that took too long cannot be stopped and still run"
    )]
    Unstoppable(usize),
    /// It wanted too much memory.
    #[error("the script was stopped: it needs more than {} MiB of memory", .0 >> 20)]
    Memory(usize),
    /// It threw null, which is also what the engine throws without memory for an error.
    #[error("the script threw null, or needs more than {} MiB of memory", .0 >> 20)]
    Null(usize),
    /// What it returned is too large to be read.
    #[error("the script returned {bytes} bytes; more than {most} are not read")]
    TooLarge {
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        most: usize,
    },
    /// What it returned is no data.
    #[error("the script returned {0}")]
    NoData(&'static str),
}

/// Where something is, as it is said at the end of a sentence.
struct Place<'a>(Option<&'a str>, Option<u32>);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (Some(file), Some(line)) => write!(f, " (`{file}`, line {line})"),
            (Some(file), None) => write!(f, " (`{file}`)"),
            (None, Some(line)) => write!(f, " (line {line})"),
            (None, None) => Ok(()),
        }
    }
}
