//! Cases that came to an end in an earlier session, and what they were asked.
//!
//! There may be a million, so each is 19 bytes in a sorted list: a digest of its id, one of what it was asked, what it
//! came to. Of digests the first 64 bits are kept. That two ids of a million have the same happens once in thirty million runs; that a case
//! was asked something else and seems the same, once in 2^64 cases that changed.

use probity_core::{
    classification::{Class, Verdict},
    record::InputDigest,
};

/// Cases of a lane that came to an end and are not asked again.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Sorted by key.
    entries: Vec<Entry>,
    /// Where the entries begin whose keys begin with each number of so many bits, so that few are looked at to find one.
    starts: Vec<u32>,
    /// How many of them were met.
    met: usize,
}

/// A case that came to an end.
#[derive(Clone, Copy, Debug)]
pub struct DoneCase {
    /// What it was asked.
    pub input: InputDigest,
    /// One of the eight.
    pub class: Class,
    /// What gates count.
    pub verdict: Verdict,
}

/// What a store has of a lane, before anybody looked at what is planned.
#[derive(Debug, Default)]
pub struct Stored(Vec<Entry>);

/// What a planned case is to what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// It would be asked the same again.
    Same,
    /// It would be asked something else.
    Changed,
    /// It did not come to an end, or not to one that counts.
    New,
}

/// The beginning of a digest, which is enough to tell a million cases apart.
type Key = [u8; 8];

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Of the id and the repeat: ids may be long.
    key: Key,
    input: Key,
    class: Class,
    verdict: Verdict,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nobody planned it so far.
    Unplanned,
    /// The same, and it has to be asked again in any case.
    Again,
    /// It is planned, and asked again.
    Planned,
    /// It is planned, and done.
    Done,
}

impl Stored {
    /// Remembers a case; one of which `counts` is false is asked again.
    pub fn add(&mut self, case_id: &str, repeat: u32, case: DoneCase, counts: bool) {
        let DoneCase { input, class, verdict } = case;
        let state = if counts { State::Unplanned } else { State::Again };
        let (key, input) = (key(case_id, repeat), beginning(input));
        self.0.push(Entry { key, input, class, verdict, state });
    }

    /// The same, ready to be looked at.
    pub fn settle(self) -> Done {
        let Self(mut entries) = self;
        entries.sort_unstable_by_key(|it| it.key);
        Done { starts: starts(&entries), entries, met: 0 }
    }
}

impl Done {
    /// Says what is known of a planned case, and remembers that it is planned.
    pub fn meet(&mut self, case_id: &str, repeat: u32, input: InputDigest) -> Met {
        let Some(entry) = self.find(case_id, repeat).map(|at| &mut self.entries[at]) else {
            return Met::New;
        };
        match entry.state {
            State::Unplanned if entry.input == beginning(input) => {
                entry.state = State::Done;
                self.met += 1;
                Met::Same
            }
            State::Unplanned => {
                entry.state = State::Planned;
                Met::Changed
            }
            State::Again => {
                entry.state = State::Planned;
                Met::New
            }
            State::Planned => Met::Changed,
            State::Done => Met::Same,
        }
    }

    /// Whether a stored case is planned still.
    pub fn is_planned(&self, case_id: &str, repeat: u32) -> bool {
        self.find(case_id, repeat).is_some_and(|at| self.entries[at].is_planned())
    }

    /// Whether all are.
    pub fn are_all_planned(&self) -> bool {
        self.entries.iter().all(Entry::is_planned)
    }

    /// Forgets what is asked again, or not planned any more.
    pub fn keep_met(&mut self) {
        self.entries.retain(|it| it.state == State::Done);
        self.entries.shrink_to_fit();
        self.starts = starts(&self.entries);
    }

    /// Whether a case is done.
    pub fn has(&self, case_id: &str, repeat: u32) -> bool {
        self.get(case_id, repeat).is_some()
    }

    /// What a case came to, if it is done and was asked this.
    pub(crate) fn outcome(
        &self,
        case_id: &str,
        repeat: u32,
        input: InputDigest,
    ) -> Option<(Class, Verdict)> {
        let entry = self.get(case_id, repeat).filter(|it| it.input == beginning(input))?;
        Some((entry.class, entry.verdict))
    }

    fn get(&self, case_id: &str, repeat: u32) -> Option<&Entry> {
        let entry = &self.entries[self.find(case_id, repeat)?];
        (entry.state == State::Done).then_some(entry)
    }

    /// Forgets a case, so that it is asked again.
    pub(crate) fn remove(&mut self, case_id: &str, repeat: u32) {
        if let Some(at) = self.find(case_id, repeat)
            && self.entries[at].state == State::Done
        {
            self.entries[at].state = State::Planned;
            self.met -= 1;
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.met
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.met == 0
    }

    /// What each came to.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        let done = self.entries.iter().filter(|it| it.state == State::Done);
        done.map(|it| it.verdict)
    }

    fn find(&self, case_id: &str, repeat: u32) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let key = key(case_id, repeat);
        let bucket = bucket(key, self.starts.len());
        let start = self.starts[bucket] as usize;
        let end = self.starts.get(bucket + 1).map_or(self.entries.len(), |it| *it as usize);
        let found = self.entries[start..end].binary_search_by_key(&key, |it| it.key).ok()?;
        Some(start + found)
    }
}

impl Entry {
    fn is_planned(&self) -> bool {
        matches!(self.state, State::Planned | State::Done)
    }
}

fn key(case_id: &str, repeat: u32) -> Key {
    beginning(InputDigest::of([case_id.as_bytes(), &repeat.to_le_bytes()]))
}

fn beginning(InputDigest(digest): InputDigest) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(&digest[..size_of::<Key>()]);
    key
}

/// Where entries that are sorted begin, for a number of buckets that is a power of two, with about four in each.
fn starts(entries: &[Entry]) -> Vec<u32> {
    let count = (entries.len() / 4).next_power_of_two();
    let mut starts = Vec::with_capacity(count);
    for (at, entry) in entries.iter().enumerate() {
        let at = u32::try_from(at).expect("a lane has fewer than 2^32 results");
        starts.resize(starts.len().max(bucket(entry.key, count) + 1), at);
    }
    let all = u32::try_from(entries.len()).expect("a lane has fewer than 2^32 results");
    starts.resize(count, all);
    starts
}

/// The bucket of a key, among so many.
fn bucket(key: Key, count: usize) -> usize {
    let bits = count.trailing_zeros();
    let bucket = u64::from_be_bytes(key).checked_shr(u64::BITS - bits).unwrap_or(0);
    usize::try_from(bucket).expect("it is less than the number of buckets")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(input: &str) -> DoneCase {
        let (class, verdict) = (Class::Pass, Verdict::Pass);
        DoneCase { input: InputDigest::of([input.as_bytes()]), class, verdict }
    }

    fn stored(cases: &[(&str, u32, &str, bool)]) -> Done {
        let mut stored = Stored::default();
        for (id, repeat, input, counts) in cases {
            stored.add(id, *repeat, case(input), *counts);
        }
        stored.settle()
    }

    #[test]
    fn what_would_be_asked_the_same_is_done() {
        let mut done = stored(&[("a", 0, "x", true), ("a", 1, "x", true), ("b", 0, "x", false)]);
        let input = |text: &str| InputDigest::of([text.as_bytes()]);
        assert_eq!(done.meet("a", 0, input("x")), Met::Same);
        assert_eq!(done.meet("a", 1, input("y")), Met::Changed);
        assert_eq!(done.meet("b", 0, input("x")), Met::New);
        assert_eq!(done.meet("c", 0, input("x")), Met::New);
        assert!(done.are_all_planned());
        done.keep_met();
        assert_eq!((done.len(), done.has("a", 0), done.has("a", 1)), (1, true, false));
        assert!(done.outcome("a", 0, input("x")).is_some());
        assert!(done.outcome("a", 0, input("y")).is_none());
        assert_eq!(done.verdicts().count(), 1);
    }

    #[test]
    fn what_nobody_plans_is_told_apart() {
        let mut done = stored(&[("a", 0, "x", true), ("b", 0, "x", true)]);
        done.meet("a", 0, InputDigest::of([b"x".as_slice()]));
        assert!(done.is_planned("a", 0) && !done.is_planned("b", 0) && !done.is_planned("c", 0));
        assert!(!done.are_all_planned());
    }

    #[test]
    fn a_case_that_is_forgotten_is_asked_again() {
        let mut done = stored(&[("a", 0, "x", true)]);
        done.meet("a", 0, InputDigest::of([b"x".as_slice()]));
        done.keep_met();
        done.remove("a", 0);
        assert!(done.is_empty() && !done.has("a", 0));
        done.remove("a", 0);
        assert_eq!(done.len(), 0);
    }

    #[test]
    fn every_one_of_many_is_found() {
        for count in [0, 1, 2, 3, 7, 8, 9, 1000, 5000] {
            let mut stored = Stored::default();
            (0..count).for_each(|it| stored.add(&format!("{it}"), it % 3, case("x"), true));
            let mut done = stored.settle();
            let input = InputDigest::of([b"x".as_slice()]);
            for it in 0..count {
                assert_eq!(
                    done.meet(&format!("{it}"), it % 3, input),
                    Met::Same,
                    "{it} of {count}"
                );
                assert_eq!(done.meet(&format!("{it}"), 3, input), Met::New);
            }
            done.keep_met();
            assert!((0..count).all(|it| done.has(&format!("{it}"), it % 3)), "{count}");
        }
    }

    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<Entry>(), 19);
    }
}
