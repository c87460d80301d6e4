//! A text that may grow to a certain size.

use std::io;

/// Bytes in memory, up to a number of them.
#[derive(Debug)]
pub struct Limited {
    bytes: Vec<u8>,
    most: usize,
    is_full: bool,
}

impl Limited {
    /// Nothing yet, and at most so many bytes.
    pub fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most, is_full: false }
    }

    /// Whether there was more to write than there is room for.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.most - self.bytes.len() {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_does_not_fit_is_not_written() {
        let mut text = Limited::new(5);
        text.write_all(b"abc").unwrap();
        assert!(!text.is_full());
        assert_eq!(text.write(b"def").unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(text.is_full());
        text.write_all(b"de").unwrap();
        assert_eq!(text.into_bytes(), b"abcde");
    }
}
