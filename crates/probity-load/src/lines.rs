//! Lines of a stream of any size, in bounded memory.

use std::io::{self, BufRead, Read as _};

/// Longest line that is accepted, in bytes.
pub const LONGEST_LINE: usize = 64 << 20;
/// How much of a line that is too long is kept, to show where it is.
const KEPT: usize = 1000;

/// Bytes that are kept for the next line.
const USUAL: usize = 1 << 20;

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
        self.read_line()?;
        if self.buffer.is_empty() {
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

    /// Fills the buffer up to a line feed, the longest line or the end. It grows little by little where a line is long: twice as much
    /// room would be as much as the line, for as long as somebody works on it.
    fn read_line(&mut self) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.shrink_to(USUAL);
        let mut step = USUAL;
        loop {
            let left = LONGEST_LINE + 1 - self.buffer.len();
            let most = step.min(left) as u64;
            let read = self.reader.by_ref().take(most).read_until(b'\n', &mut self.buffer)?;
            if (read as u64) < most || self.buffer.ends_with(b"\n") || read == left {
                return Ok(());
            }
            step = self.buffer.len() / 8;
            self.buffer.reserve_exact(step);
        }
    }

    /// The reader, to ask it what it has at hand.
    pub fn reader(&self) -> &R {
        &self.reader
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn long_lines_come_whole_and_take_little_more_room_than_they_are_long() {
        let lengths = [0, 5, USUAL - 1, USUAL, USUAL + 1, USUAL * 9 / 8, 5 * USUAL + 3, 1, 7];
        let line = |at: usize, length: usize| {
            (0..length).map(|it| b"abcdefghijk"[(it + at) % 11]).collect::<Vec<u8>>()
        };
        let lines: Vec<Vec<u8>> =
            lengths.iter().enumerate().map(|(at, length)| line(at, *length)).collect();
        // The last one has no line feed.
        let text = lines.join(&b'\n');
        let mut read = Lines::new(BufReader::new(text.as_slice()));
        for (at, expected) in lines.iter().enumerate() {
            let line = read.next_line().unwrap().unwrap();
            assert_eq!((line.number, line.too_long), (at + 1, false));
            assert!(line.bytes == expected.as_slice(), "line {at}");
            let most = expected.len() + expected.len() / 8;
            assert!(read.buffer.capacity() <= most.max(2 * USUAL), "line {at}");
        }
        assert!(read.next_line().unwrap().is_none());
        assert!(read.buffer.capacity() <= USUAL);
    }

    #[test]
    fn a_line_without_end_is_cut_and_the_next_one_is_read() {
        let mut text = vec![b'x'; LONGEST_LINE + 1000];
        text.extend_from_slice(b"\nnext\n");
        let mut read = Lines::new(text.as_slice());
        let line = read.next_line().unwrap().unwrap();
        assert_eq!((line.bytes.len(), line.too_long), (KEPT, true));
        assert_eq!(read.next_line().unwrap().unwrap().bytes, b"next");
        assert!(read.next_line().unwrap().is_none());
        // The longest that is taken.
        text.truncate(LONGEST_LINE);
        let mut read = Lines::new(text.as_slice());
        let line = read.next_line().unwrap().unwrap();
        assert_eq!((line.bytes.len(), line.too_long), (LONGEST_LINE, false));
    }
}
