//! Lines of a stream of any size, in bounded memory.

use std::io::{self, BufRead, Read as _};

/// Longest line that is accepted, in bytes.
pub const LONGEST_LINE: usize = 64 << 20;
/// How much of a line that is too long is kept, to show where it is.
const KEPT: usize = 1000;

/// Reads a stream line by line into one buffer.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: usize,
}

/// One line, without its line feed.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// Its bytes, or the beginning of them.
    pub bytes: &'a [u8],
    /// Whether it is longer than [`LONGEST_LINE`] and was cut.
    pub too_long: bool,
}

impl<R: BufRead> Lines<R> {
    /// Reads from the beginning of `reader`.
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), number: 0 }
    }

    /// The next line. A byte order mark at the very beginning is passed over.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let limit = LONGEST_LINE as u64 + 1;
        if self.reader.by_ref().take(limit).read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let too_long = self.buffer.len() > LONGEST_LINE && self.buffer.last() != Some(&b'\n');
        if too_long {
            self.buffer.truncate(KEPT);
            self.buffer.shrink_to(KEPT);
            self.reader.skip_until(b'\n')?;
        }
        let bytes = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        let bytes = match self.number {
            1 => bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes),
            _ => bytes,
        };
        Ok(Some(Line { number: self.number, bytes, too_long }))
    }

    /// The reader, to ask it what it has at hand.
    pub fn reader(&self) -> &R {
        &self.reader
    }
}
