//! Which ids of a dataset are taken.
//!
//! There may be a million, so each is twelve bytes, whatever its length: the beginning of a digest, and the line of its first use. That
//! two of a million have the same beginning happens once in thirty million datasets.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

/// Ids that are not put in their place one by one: so many, or the sixteenth part of the others if those are more.
const FEWEST_RECENT: usize = 4096;

/// Ids and the lines of their first use.
#[derive(Default)]
pub(super) struct Ids {
    /// Sorted. They stand apart from their lines, so that a search touches as little memory as possible.
    keys: Vec<u64>,
    lines: Vec<u32>,
    /// Those that came last.
    recent: BTreeMap<u64, u32>,
    /// The files, and how many lines there are before each.
    files: Vec<(Arc<str>, u32)>,
    /// The last line of all files so far.
    last_line: u32,
}

impl Ids {
    /// What comes now is in this file.
    pub(super) fn next_file(&mut self, name: Arc<str>) {
        self.files.push((name, self.last_line));
    }

    /// Takes an id, or says where it was taken before.
    pub(super) fn claim(&mut self, id: &str, line: usize) -> Option<String> {
        let mut key = [0; 8];
        key.copy_from_slice(&blake3::hash(id.as_bytes()).as_bytes()[..8]);
        let key = u64::from_be_bytes(key);
        if let Ok(at) = self.keys.binary_search(&key) {
            return Some(self.place(self.lines[at]));
        }
        let before = self.files.last().map_or(0, |(_, before)| *before);
        let line = before.saturating_add(u32::try_from(line).unwrap_or(u32::MAX));
        match self.recent.entry(key) {
            Entry::Occupied(first) => {
                let first = *first.get();
                return Some(self.place(first));
            }
            Entry::Vacant(free) => free.insert(line),
        };
        self.last_line = self.last_line.max(line);
        if self.recent.len() >= FEWEST_RECENT.max(self.keys.len() / 16) {
            self.settle();
        }
        None
    }

    /// Puts the recent ids among the others, from the last one on, so that none has to move twice.
    fn settle(&mut self) {
        let recent = std::mem::take(&mut self.recent);
        let (mut from, all) = (self.keys.len(), self.keys.len() + recent.len());
        self.keys.reserve_exact(recent.len());
        self.keys.resize(all, 0);
        self.lines.reserve_exact(recent.len());
        self.lines.resize(all, 0);
        let mut to = all;
        for (key, line) in recent.into_iter().rev() {
            while let Some(last) = from.checked_sub(1)
                && self.keys[last] > key
            {
                (from, to) = (last, to - 1);
                (self.keys[to], self.lines[to]) = (self.keys[from], self.lines[from]);
            }
            to -= 1;
            (self.keys[to], self.lines[to]) = (key, line);
        }
    }

    /// A file and a line of it.
    fn place(&self, line: u32) -> String {
        let file = self.files.partition_point(|(_, before)| *before < line).checked_sub(1);
        match file.map(|at| &self.files[at]) {
            Some((name, before)) => format!("{name}:{}", line - before),
            None => format!(":{line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_where_it_came_first() {
        let mut ids = Ids::default();
        let lines = FEWEST_RECENT * 3;
        for file in ["a", "b", "empty", "c"] {
            ids.next_file(file.into());
            let of_file = (1..=lines).filter(|_| file != "empty");
            assert!(of_file.into_iter().all(|it| ids.claim(&format!("{file}{it}"), it).is_none()));
        }
        ids.next_file("last".into());
        for (file, line) in [("a", 1), ("a", lines), ("b", 7), ("c", 1), ("c", lines)] {
            let first = ids.claim(&format!("{file}{line}"), 9);
            assert_eq!(first, Some(format!("{file}:{line}")));
        }
        assert_eq!(ids.claim("new", 9), None);
        assert_eq!(ids.claim("new", 10), Some("last:9".to_owned()));
    }

    #[test]
    fn lines_of_a_file_may_come_in_any_order() {
        let mut ids = Ids::default();
        ids.next_file("a".into());
        assert!(
            [5, 2, 9, 2]
                .into_iter()
                .all(|it| ids.claim(&format!("{it}{}", ids.recent.len()), it).is_none())
        );
        ids.next_file("b".into());
        assert_eq!(ids.claim("x", 1), None);
        assert_eq!(ids.claim("92", 1), Some("a:9".to_owned()));
        assert_eq!(ids.claim("x", 3), Some("b:1".to_owned()));
    }
}
