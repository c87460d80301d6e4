//! A sorted list of names that is searched by their first eight bytes: what every command is looked up in.

/// Names with what stands for them; a name may stand in it several times.
#[derive(Debug, Clone)]
pub(super) struct Names<T> {
    entries: Vec<(u64, Box<str>, T)>,
}

impl<T> Names<T> {
    pub(super) fn new(entries: impl IntoIterator<Item = (Box<str>, T)>) -> Self {
        let mut entries: Vec<_> =
            entries.into_iter().map(|(name, value)| (prefix(&name), name, value)).collect();
        entries.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        Self { entries }
    }

    /// What stands for a name, in the order it was given.
    pub(super) fn get(&self, name: &str) -> impl Iterator<Item = &T> + use<'_, T> {
        let key = (prefix(name), name);
        let from = self.entries.partition_point(|(prefix, it, _)| (*prefix, &**it) < key);
        let same = |(prefix, it, _): &&(u64, Box<str>, T)| (*prefix, &**it) == key;
        let count = self.entries[from..].iter().take_while(same).count();
        self.entries[from..from + count].iter().map(|(_, _, value)| value)
    }
}

fn prefix(name: &str) -> u64 {
    let mut bytes = [0; 8];
    let length = name.len().min(8);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_all_their_bytes() {
        let names = ["git", "gitk", "kubectl-one", "kubectl-two", "git"].map(Box::from);
        let names = Names::new(names.into_iter().zip(0..));
        let found = |name: &str| names.get(name).copied().collect::<Vec<_>>();
        assert_eq!(found("git"), [0, 4]);
        assert_eq!(found("kubectl-two"), [3]);
        assert!(found("kubectl-").is_empty());
        assert!(found("").is_empty());
    }
}
