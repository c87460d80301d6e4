//! What commands did, for those who ask again.

use std::collections::{BTreeMap, VecDeque};

use crate::{
    execution::{Command, Execution, Limits},
    world::Prepared,
};

/// Bytes that are kept, roughly.
const ROOM: usize = 32 << 20;

/// What decides what a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key([u8; 32]);

impl Key {
    pub(crate) fn new(prepared: &Prepared, command: &Command, limits: &Limits) -> Self {
        let Prepared { name: _, digest, tree: _, directory, variables, processes } = prepared;
        let parts = (digest, directory, variables, processes, command, limits);
        // Plain data is always JSON.
        let bytes = serde_json::to_vec(&parts).unwrap_or_default();
        Self(blake3::hash(&bytes).into())
    }
}

/// The latest executions.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    kept: BTreeMap<Key, Execution>,
    order: VecDeque<Key>,
    size: usize,
}

impl Cache {
    pub(crate) fn get(&self, key: Key) -> Option<Execution> {
        self.kept.get(&key).cloned()
    }

    pub(crate) fn put(&mut self, key: Key, execution: &Execution) {
        let size = size(execution);
        if size > ROOM / 8 || self.kept.contains_key(&key) {
            return;
        }
        self.kept.insert(key, execution.clone());
        self.order.push_back(key);
        self.size += size;
        while self.size > ROOM {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some(gone) = self.kept.remove(&oldest) {
                self.size -= self::size(&gone);
            }
        }
    }
}

fn size(execution: &Execution) -> usize {
    let Execution { end: _, stdout, stderr, changes, ended: _, refused, began: _, took_us: _ } =
        execution;
    let paths: usize = changes.iter().map(|change| change.path.len() + 400).sum();
    500 + stdout.bytes.len() + stderr.bytes.len() + paths + 32 * refused.len()
}
