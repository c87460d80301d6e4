//! How this program was started, and how it is started again.

use std::{ffi::OsString, io, path::PathBuf, process::Command, sync::OnceLock};

static STARTED: OnceLock<Started> = OnceLock::new();

/// The command line, and what starts this program again. A program that has ours as a library is not
/// ours alone.
#[derive(Clone, Debug)]
struct Started {
    arguments: Vec<OsString>,
    again: Option<Vec<OsString>>,
}

/// Remembers how the program was started: its arguments without its name, and the words before them where
/// those are more than the program's own file. Only the first call counts.
pub(crate) fn started(arguments: Vec<OsString>, again: Option<Vec<OsString>>) {
    let _ = STARTED.set(Started { arguments, again });
}

/// The arguments of this program, without its name.
pub(crate) fn arguments() -> Vec<OsString> {
    STARTED.get().map(|it| it.arguments.clone()).unwrap_or_default()
}

/// Starts this program again, with arguments that are still to be added.
pub(crate) fn again() -> io::Result<Command> {
    let words = STARTED.get().and_then(|it| it.again.as_deref()).and_then(<[_]>::split_first);
    Ok(match words {
        None => Command::new(std::env::current_exe()?),
        Some((program, words)) => {
            let mut command = Command::new(program);
            command.args(words);
            command
        }
    })
}

/// The file that [`again`] starts.
pub(crate) fn file() -> io::Result<PathBuf> {
    again().map(|command| command.get_program().into())
}
