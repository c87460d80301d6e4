//! Files that are read whole, up to a size.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// Largest suite file, and largest file that one names, in bytes.
pub const LARGEST_SUITE: u64 = 16 << 20;

/// The text of a file. One that is larger than `most` bytes is an error, as is one that is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read_bytes(path, most)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// The bytes of a file. One that is larger than `most` bytes is an error.
pub fn read_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The size that a file states is no bound: a device or a pipe states none.
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let message = format!("the file is larger than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}
