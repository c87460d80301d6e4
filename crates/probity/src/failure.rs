//! Why a command could not do its work.

use std::{error::Error, fmt, io, path::Path};

use probity_store::StoreError;

use crate::exit::Exit;

/// A message, its cause, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
    hint: Option<String>,
    exit: Exit,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None, hint: None, exit: Exit::Usage }
    }

    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::new(format!("failed to read `{}`", path.display())).because(source)
    }

    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::new(format!("failed to write `{}`", path.display())).because(source)
    }

    pub(crate) fn output(source: io::Error) -> Self {
        Self::new("failed to write the output").because(source)
    }

    pub(crate) fn because(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Another exit code than the one for wrong input.
    pub(crate) fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    pub(crate) fn exit_code(&self) -> Exit {
        self.exit
    }

    /// What it was caused by, from the nearest to the farthest.
    pub(crate) fn causes(&self) -> Vec<String> {
        let (mut causes, mut said) = (Vec::new(), self.message.clone());
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // Some libraries say the same twice.
            if !text.contains(&said) {
                causes.push(text.clone());
            }
            (cause, said) = (error.source(), text);
        }
        causes
    }

    pub(crate) fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let hint = error.hint();
        let failure = Self::new("the store cannot be used").because(error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}
