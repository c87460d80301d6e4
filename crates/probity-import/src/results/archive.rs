//! Archives that hold logs: zip, with members that are stored, deflated or compressed with Zstandard.

use std::{
    cell::Cell,
    io::{self, Read as _},
    path::Path,
};

use rawzip::{CompressionMethod, ZipArchive, ZipSliceArchive};

use super::ResultsError;

/// Bytes that one member may come to, so that a small file cannot fill the memory.
pub(crate) const MOST_BYTES: usize = 1 << 30;

/// Bytes that all members together may come to.
const MOST_BYTES_IN_ALL: u64 = 4 << 30;

/// Whether bytes begin as an archive does.
pub(crate) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// A member, by its name.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    method: CompressionMethod,
    place: rawzip::ZipArchiveEntryWayfinder,
}

/// An archive.
#[derive(Debug)]
pub(crate) struct Archive<'a> {
    path: &'a Path,
    zip: ZipSliceArchive<&'a [u8]>,
    /// In the order of their names.
    pub(crate) members: Vec<Member>,
    /// Bytes that may still be read.
    left: Cell<u64>,
}

impl<'a> Archive<'a> {
    pub(crate) fn open(path: &'a Path, bytes: &'a [u8]) -> Result<Self, ResultsError> {
        let broken = |error: rawzip::Error| wrong(path, error.to_string());
        let zip = ZipArchive::from_slice(bytes).map_err(broken)?;
        let mut members = Vec::new();
        for entry in zip.entries() {
            let entry = entry.map_err(broken)?;
            let name = String::from_utf8_lossy(entry.file_path().as_ref()).into_owned();
            let (method, place) = (entry.compression_method(), entry.wayfinder());
            members.push(Member { name, method, place });
        }
        members.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { path, zip, members, left: Cell::new(MOST_BYTES_IN_ALL) })
    }

    /// The member of a name.
    pub(crate) fn find(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|it| it.name == name)
    }

    /// The text of a member, of no more than `most` bytes. Its length and its checksum are verified.
    pub(crate) fn text(&self, member: &Member, most: usize) -> Result<String, ResultsError> {
        let said = |said: String| wrong(self.path, format!("member `{}`: {said}", member.name));
        let entry = self.zip.get_entry(member.place).map_err(|it| said(it.to_string()))?;
        let data = entry.data();
        let unread = |error: io::Error| said(error.to_string());
        let bytes = match member.method {
            CompressionMethod::STORE => read(entry.verifying_reader(data), most),
            CompressionMethod::DEFLATE => {
                read(entry.verifying_reader(flate2::bufread::DeflateDecoder::new(data)), most)
            }
            CompressionMethod::ZSTD => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(data);
                let decoder = decoder.map_err(|it| said(it.to_string()))?;
                read(entry.verifying_reader(decoder), most)
            }
            method => {
                let method = method.name().unwrap_or("unknown");
                return Err(said(format!("it is compressed in a way that is not read ({method})")));
            }
        };
        let bytes = bytes.map_err(unread)?;
        let left = self.left.get().checked_sub(bytes.len() as u64);
        self.left.set(left.ok_or_else(|| said("all together are larger than 4 GiB".to_owned()))?);
        String::from_utf8(bytes).map_err(|it| said(it.to_string()))
    }
}

fn read(reader: impl io::Read, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = reader.take(most as u64 + 1).read_to_end(&mut bytes)?;
    match read > most {
        true => Err(io::Error::other(format!("it is larger than {} MiB", most >> 20))),
        false => Ok(bytes),
    }
}

fn wrong(path: &Path, said: String) -> ResultsError {
    ResultsError::Archive { path: path.to_owned(), said }
}
