//! Archives as bytes: what is planted for commands that read them, and what a setup hands back.

use std::io::Write as _;

/// The size of a block, to which everything in an archive is filled up.
const BLOCK: usize = 512;

/// A member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) path: String,
    pub(super) kind: MemberKind,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    pub(super) modified: i64,
}

/// What a member is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MemberKind {
    File(Vec<u8>),
    Directory,
    Link(String),
    Hard(String),
}

/// A compressed text.
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("writing to memory cannot fail")
}

/// An archive of files, in the old format that every `tar` reads.
pub(super) fn tar(files: &[(String, Vec<u8>)], modified: i64) -> Vec<u8> {
    let mut archive = Vec::new();
    for (path, bytes) in files {
        archive.extend_from_slice(&header(path, bytes.len(), modified));
        archive.extend_from_slice(bytes);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

fn header(path: &str, size: usize, modified: i64) -> [u8; BLOCK] {
    let mut header = [0_u8; BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, &path[..path.floor_char_boundary(99)]);
    put(100, "0000644\0");
    put(108, "0001750\0");
    put(116, "0001750\0");
    put(124, &format!("{size:011o}\0"));
    put(136, &format!("{modified:011o}\0"));
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    put(265, "ada");
    put(297, "ada");
    let sum: u32 = header.iter().map(|it| u32::from(*it)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// The members of an archive in the format of POSIX.1-1988; `None` if it is broken or of another kind.
pub(super) fn members(archive: &[u8]) -> Option<Vec<Member>> {
    let mut members = Vec::new();
    let mut rest = archive;
    while rest.len() >= BLOCK {
        let (header, after) = rest.split_at(BLOCK);
        if header.iter().all(|it| *it == 0) {
            return Some(members);
        }
        let text = |from: usize, to: usize| {
            let field = &header[from..to];
            let end = field.iter().position(|it| *it == 0).unwrap_or(field.len());
            std::str::from_utf8(&field[..end]).ok()
        };
        let number = |from: usize, to: usize| i64::from_str_radix(text(from, to)?.trim(), 8).ok();
        let path = match text(345, 500)? {
            "" => text(0, 100)?.to_owned(),
            prefix => format!("{prefix}/{}", text(0, 100)?),
        };
        let size = usize::try_from(number(124, 136)?).ok()?;
        let link = text(157, 257)?.to_owned();
        let kind = match header[156] {
            b'0' | 0 => MemberKind::File(after.get(..size)?.to_vec()),
            b'1' => MemberKind::Hard(link),
            b'2' => MemberKind::Link(link),
            b'5' => MemberKind::Directory,
            _ => return None,
        };
        let id = |from: usize, to: usize| number(from, to).and_then(|it| u32::try_from(it).ok());
        members.push(Member {
            path,
            kind,
            mode: u32::try_from(number(100, 108)?).ok()? & 0o7777,
            owner: (id(108, 116)?, id(116, 124)?),
            modified: number(136, 148)?,
        });
        rest = after.get(size.next_multiple_of(BLOCK)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn what_is_packed_can_be_read_back() {
        let files = vec![("a/b.txt".to_owned(), b"hello".to_vec()), ("c".to_owned(), Vec::new())];
        let mut packed = Vec::new();
        let small = gzip(&tar(&files, 1_700_000_000));
        flate2::read::GzDecoder::new(&*small).read_to_end(&mut packed).unwrap();
        let found = members(&packed).unwrap();
        let kinds: Vec<_> = found.iter().map(|it| (&it.path, &it.kind)).collect();
        let wanted: Vec<_> = files.iter().map(|it| MemberKind::File(it.1.clone())).collect();
        let wanted: Vec<_> = files.iter().map(|it| &it.0).zip(&wanted).collect();
        assert_eq!(kinds, wanted);
        assert_eq!(
            (found[0].mode, found[0].owner, found[0].modified),
            (0o644, (1000, 1000), 1_700_000_000)
        );
        assert_eq!(members(&packed[..600]), None);
    }
}
