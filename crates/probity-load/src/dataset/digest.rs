//! A digest that stays the same as long as the cases do, and one that does as long as the files do.

use std::{
    fmt,
    io::{self, Read},
};

use serde::{Serialize, Serializer};
use serde_json::Value;

use probity_core::case::TestCase;

/// Names the meaning of the digest; a change of the canonical form changes it.
const DOMAIN: &[u8] = b"probity dataset 1";

/// What a set of cases is, in 32 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Adds up the digests of cases.
///
/// The sum of the cases' BLAKE3 hashes needs no memory and does not depend on
/// their order: a dataset that was only sorted anew is the same dataset. It tells
/// mistakes apart, not adversaries.
#[derive(Debug, Default)]
pub struct DigestBuilder {
    sum: [u64; 4],
    cases: u64,
}

impl DigestBuilder {
    /// Adds one case.
    pub fn add(&mut self, case: &TestCase) {
        self.add_digest(CaseDigest::of(case));
    }

    /// Adds a case by its digest.
    pub(super) fn add_digest(&mut self, CaseDigest(hash): CaseDigest) {
        let mut carry = false;
        for (limb, bytes) in self.sum.iter_mut().zip(hash.as_bytes().chunks_exact(8)) {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            let (sum, first) = limb.overflowing_add(u64::from_le_bytes(word));
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*limb, carry) = (sum, first || second);
        }
        self.cases += 1;
    }

    /// The digest of all that was added.
    pub fn finish(&self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(DOMAIN).update(&self.cases.to_le_bytes());
        for limb in self.sum {
            hasher.update(&limb.to_le_bytes());
        }
        Digest(*hasher.finalize().as_bytes())
    }
}

/// Bytes that most cases take at most.
const USUAL: usize = 1000;

/// What one case is.
#[derive(Clone, Copy, Debug)]
pub(super) struct CaseDigest(blake3::Hash);

impl CaseDigest {
    /// Of a case as JSON with sorted keys and nothing that is empty. Its notes and its license do not count: they change
    /// nothing that is evaluated.
    pub(super) fn of(case: &TestCase) -> Self {
        let mut value = serde_json::to_value(case).unwrap_or(Value::Null);
        if let Value::Object(fields) = &mut value
            && (case.notes.is_some() || case.license.is_some())
        {
            fields.shift_remove("notes");
            fields.shift_remove("license");
        }
        value.sort_all_objects();
        let mut text = Vec::with_capacity(USUAL);
        // A value that was made in memory can be written, and memory takes everything.
        let _ = serde_json::to_writer(&mut text, &value);
        Self(blake3::hash(&text))
    }
}

/// Everything that a dataset was read from, in the order in which it was read.
#[derive(Debug, Default)]
pub(super) struct Contents(blake3::Hasher);

impl Contents {
    pub(super) fn add(&mut self, part: &blake3::Hash) {
        self.0.update(part.as_bytes());
    }

    pub(super) fn add_read<R>(&mut self, read: &Hashed<R>) {
        self.add(&read.hasher.finalize());
    }

    pub(super) fn finish(&self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}

/// A stream, and what was read of it.
pub(super) struct Hashed<R> {
    stream: R,
    hasher: blake3::Hasher,
}

impl<R> Hashed<R> {
    pub(super) fn new(stream: R) -> Self {
        Self { stream, hasher: blake3::Hasher::new() }
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}
