//! The index of a git repository without what git remembers of files only to save work: times, inodes, devices, owners.
//!
//! `git status` writes the index anew whenever these are others, and says nothing new by that. What counts is which object
//! with which mode is at which path.

/// Bytes of an index that are looked at.
pub(super) const LARGEST: u64 = 4 << 20;

/// Whether a path is that of an index.
pub(super) fn is_index(path: &[u8]) -> bool {
    path == b".git/index" || path.ends_with(b"/.git/index")
}

/// What an index says; nothing if it is of a kind that is not known here.
pub(super) fn gist(bytes: &[u8]) -> Option<Vec<u8>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let is_known = bytes.get(..4)? == b"DIRC" && matches!(number(4)?, 2 | 3);
    if !is_known {
        return None;
    }
    let mut gist = Vec::new();
    let mut at = 12;
    for _ in 0..number(8)? {
        at = entry(bytes, at, &mut gist)?;
    }
    Some(gist)
}

/// Where the parts of an entry are: times, device and inode come first, and owner and size surround the mode.
const MODE: usize = 24;
const OBJECT: usize = 40;
const FLAGS: usize = 60;
/// The flag that says that two more bytes of flags follow.
const EXTENDED: u16 = 0x4000;

/// Adds the entry at a place; returns where the next one is.
fn entry(bytes: &[u8], at: usize, gist: &mut Vec<u8>) -> Option<usize> {
    let flags = u16::from_be_bytes(bytes.get(at + FLAGS..at + FLAGS + 2)?.try_into().ok()?);
    let name = at + FLAGS + if flags & EXTENDED == 0 { 2 } else { 4 };
    let length = bytes.get(name..)?.iter().position(|it| *it == 0)?;
    gist.extend_from_slice(bytes.get(at + MODE..at + MODE + 4)?);
    gist.extend_from_slice(bytes.get(at + OBJECT..name + length + 1)?);
    // Entries are filled up with one to eight zeros.
    Some(at + ((name - at + length) / 8 + 1) * 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(time: u8, object: u8, name: &str) -> Vec<u8> {
        let mut bytes = b"DIRC\0\0\0\x02\0\0\0\x01".to_vec();
        let start = bytes.len();
        bytes.extend([time; 24]);
        bytes.extend(0o100_644_u32.to_be_bytes());
        bytes.extend([time; 12]);
        bytes.extend([object; 20]);
        bytes.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
        bytes.extend(name.as_bytes());
        let length = bytes.len() - start;
        bytes.resize(start + (length / 8 + 1) * 8, 0);
        bytes.extend([time; 20]);
        bytes
    }

    #[test]
    fn only_modes_objects_and_names_count() {
        assert_eq!(gist(&index(1, 7, "a.txt")), gist(&index(2, 7, "a.txt")));
        assert!(gist(&index(1, 7, "a.txt")).is_some_and(|it| !it.is_empty()));
        assert_ne!(gist(&index(1, 7, "a.txt")), gist(&index(1, 8, "a.txt")));
        assert_ne!(gist(&index(1, 7, "a.txt")), gist(&index(1, 7, "b.txt")));
        assert_eq!(gist(b"DIRC\0\0\0\x04\0\0\0\x01"), None);
        assert_eq!(gist(&index(1, 7, "a.txt")[..40]), None);
        assert!(is_index(b"home/ada/.git/index") && !is_index(b"x.git/index"));
    }
}
