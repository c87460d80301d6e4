//! The one place that reads the environment, and the `.env` file beside it.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    fs, io,
    path::Path,
};

use probity_load::{dotenv, inputs};

use crate::failure::Failure;

/// The variables of the process, and those of a `.env` file for names that it lacks.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    file: BTreeMap<String, String>,
}

impl Environment {
    /// Reads `.env` in the working directory if it is there, or the file that was named.
    pub(crate) fn load(named: Option<&Path>) -> Result<Self, Failure> {
        let path = named.unwrap_or(Path::new(".env"));
        inputs::note(path);
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(Failure::read(path, error)),
        };
        // Some editors put a mark before the first line.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let file = dotenv::parse(text).map_err(|line| {
            let file = path.display();
            Failure::new(format!(
                "line {line} of `{file}` is not NAME=VALUE, or has an unclosed quote"
            ))
        })?;
        Ok(Self { file })
    }

    /// All variables.
    pub(crate) fn all(&self) -> BTreeMap<OsString, OsString> {
        let file = self.file.iter().map(|(name, value)| (name.into(), value.into()));
        file.chain(env::vars_os()).collect()
    }

    /// The value of a variable.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        Self::of_process(name).or_else(|| self.of_file(name))
    }

    /// The names of variables that begin like this. A value that is not a text is a failure.
    pub(crate) fn names(&self, beginning: &str) -> Result<BTreeSet<String>, Failure> {
        let mut names = BTreeSet::new();
        for (name, value) in self.all() {
            let Some(name) = name.to_str().filter(|name| name.starts_with(beginning)) else {
                continue;
            };
            if value.to_str().is_none() {
                return Err(Failure::new(format!(
                    "the value of the variable `{name}` is not UTF-8"
                )));
            }
            names.insert(name.to_owned());
        }
        Ok(names)
    }

    /// The value that the process was given.
    #[expect(clippy::disallowed_methods, reason = "this is the place")]
    pub(crate) fn of_process(name: &str) -> Option<String> {
        env::var(name).ok()
    }

    /// The value in the `.env` file.
    pub(crate) fn of_file(&self, name: &str) -> Option<String> {
        self.file.get(name).cloned()
    }
}
