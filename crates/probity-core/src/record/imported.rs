//! Where a run comes from that another tool made.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The file of another tool that a run was read from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The tool, such as `promptfoo`.
    pub tool: String,
    /// Its version, where the file says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The file, as it was named.
    pub file: String,
    /// The digest of all that was read.
    pub digest: String,
}

/// `promptfoo 0.121.20 (out.json)`
impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, version, file, digest: _ } = self;
        match version {
            Some(version) => write!(f, "{tool} {version} ({file})"),
            None => write!(f, "{tool} ({file})"),
        }
    }
}
