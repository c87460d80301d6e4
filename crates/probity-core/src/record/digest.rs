//! What was asked with which parameters.

use std::fmt;

use serde::Serialize;

/// What was asked with which parameters, in 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputDigest(pub [u8; 16]);

impl InputDigest {
    /// The digest of some parts; where one ends and the next begins counts.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut gathered = Gathered::new();
        for part in parts {
            gathered.add(&(part.len() as u64).to_le_bytes());
            gathered.add(part);
        }
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&gathered.finish().as_bytes()[..16]);
        Self(bytes)
    }
}

/// Short parts on their way into a digest: one after the other would take longer than all at once.
struct Gathered {
    waiting: [u8; 512],
    length: usize,
    hasher: blake3::Hasher,
}

impl Gathered {
    fn new() -> Self {
        Self { waiting: [0; 512], length: 0, hasher: blake3::Hasher::new() }
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.length + bytes.len() > self.waiting.len() {
            self.hasher.update(&self.waiting[..self.length]);
            self.length = 0;
        }
        match self.waiting[self.length..].get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            None => {
                self.hasher.update(bytes);
            }
        }
    }

    fn finish(mut self) -> blake3::Hash {
        self.hasher.update(&self.waiting[..self.length]).finalize()
    }
}

impl fmt::Display for InputDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for InputDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn short_parts_that_are_gathered_come_to_the_same(
            lengths in prop::collection::vec(
                prop_oneof![0_usize..40, Just(496), Just(504), Just(512), 500_usize..3000], 0..12,
            ),
        ) {
            let text: Vec<u8> = (0..3000_u32).map(|it| (it % 251) as u8).collect();
            let parts = || lengths.iter().map(|it| &text[..*it]);
            let mut hasher = blake3::Hasher::new();
            for part in parts() {
                hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
            }
            let InputDigest(digest) = InputDigest::of(parts());
            prop_assert!(hasher.finalize().as_bytes().starts_with(&digest));
        }
    }
}
