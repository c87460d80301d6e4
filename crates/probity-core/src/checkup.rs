//! Whether a backend can be asked, as far as that was looked into.

use serde::Serialize;

/// What is known of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checkup {
    /// Its name.
    pub backend: String,
    /// Its kind.
    pub kind: &'static str,
    /// What was found, in the order in which it was looked for.
    pub findings: Vec<Finding>,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about, such as `model`.
    pub name: &'static str,
    /// What is the case.
    pub text: String,
    /// Whether the backend cannot be asked because of it.
    pub is_trouble: bool,
}

impl Checkup {
    /// One of which nothing is known yet.
    pub const fn new(backend: String, kind: &'static str) -> Self {
        Self { backend, kind, findings: Vec::new() }
    }

    /// Adds what is as it should be, or is good to know.
    pub fn fact(&mut self, name: &'static str, text: impl Into<String>) {
        self.findings.push(Finding { name, text: text.into(), is_trouble: false });
    }

    /// Adds why it cannot be asked.
    pub fn trouble(&mut self, name: &'static str, text: impl Into<String>) {
        self.findings.push(Finding { name, text: text.into(), is_trouble: true });
    }

    /// Whether nothing was found that stands in the way.
    pub fn is_sound(&self) -> bool {
        !self.findings.iter().any(|it| it.is_trouble)
    }
}
