//! Functions of the program that ours is a library of. They are called where a process would be asked.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::Value;

/// What a function gets and gives: its arguments, and what it returned or why it failed.
pub type Call = dyn Fn(Vec<Value>) -> Result<Value, String> + Send + Sync;

/// A function that can be called from any thread that may wait.
#[derive(Clone)]
pub struct Callable {
    /// What tells it from others: answers of one are not those of another.
    pub identity: String,
    /// The function.
    pub call: Arc<Call>,
}

impl fmt::Debug for Callable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Callable").field(&self.identity).finish()
    }
}

/// The functions that a run is given, by the names of what they stand for in the suite.
#[derive(Clone, Debug, Default)]
pub struct Callables {
    /// Those that answer.
    pub backends: BTreeMap<String, Callable>,
    /// Those that score.
    pub scorers: BTreeMap<String, Callable>,
}
