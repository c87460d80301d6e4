//! New stores, which are there whole or not at all.
//!
//! SQLite would make a new store from its statements, write it twice, first into its log, and force five files and folders to the
//! disk meanwhile. That is a third of a run of one case. So an empty store is part of the program: it is written once, to a file
//! that has no name yet.

use std::{
    fs::File,
    io,
    os::{fd::AsRawFd as _, unix::fs::FileExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use crate::PAGE_BYTES;

/// An empty store: its first page, and then how each of the others begins, which have nothing else.
///
/// A test holds it to what SQLite makes, and writes it anew with `PROBITY_STORE=update`.
const EMPTY: &[u8] = include_bytes!("schema/newest.pages");

/// Bytes of an empty page that are not zero.
const BEGINNING: usize = 8;

/// Logs that a killed process leaves. Whose store was deleted since has to lose them first, or SQLite would take them for those of the
/// new one and bring its pages back. It throws them away itself where the store is an empty file.
const LOGS: [&str; 2] = ["-wal", "-journal"];

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Makes a new store that only its owner may read. It fails if something is there already, and where no file can be without a name.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    if LOGS.iter().any(|end| beside(path, end).exists()) {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // It is gone if this process ends before the last line.
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR)?);
    let (first, others) = EMPTY.split_at(PAGE_BYTES as usize);
    let mut length = first.len() as u64;
    file.write_all_at(first, 0)?;
    for beginning in others.chunks(BEGINNING) {
        file.write_all_at(beginning, length)?;
        length += u64::from(PAGE_BYTES);
    }
    file.set_len(length)?;
    file.sync_all()?;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{env, fs, ops::Range, os::unix::fs::PermissionsExt as _};

    use rusqlite::{Connection, MAIN_DB};

    use super::*;
    use crate::{open, schema};

    /// Where the header of a database says whether it has a log, and what it says then.
    const LOG_PLACE: Range<usize> = 18..20;
    const HAS_LOG: u8 = 2;

    /// An empty store, as SQLite makes it.
    fn made_by_sqlite() -> Vec<u8> {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "page_size", PAGE_BYTES).unwrap();
        schema::migrate(&connection, Path::new("memory")).unwrap();
        let mut store = connection.serialize(MAIN_DB).unwrap().to_vec();
        store[LOG_PLACE].fill(HAS_LOG);
        store
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "how somebody says that it should be written anew"
    )]
    fn a_new_store_is_what_sqlite_makes() {
        let expected = made_by_sqlite();
        if env::var("PROBITY_STORE").is_ok_and(|it| it == "update") {
            let (first, others) = expected.split_at(PAGE_BYTES as usize);
            let beginnings = others.chunks(PAGE_BYTES as usize).flat_map(|it| &it[..BEGINNING]);
            let pages: Vec<u8> = first.iter().chain(beginnings).copied().collect();
            let place = concat!(env!("CARGO_MANIFEST_DIR"), "/src/schema/newest.pages");
            return fs::write(place, pages).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        make(&path).unwrap();
        assert!(fs::read(&path).unwrap() == expected, "see EMPTY");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_new_store_can_be_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        make(&path).unwrap();
        let connection = open(&path).unwrap();
        let check = |name: &str, expected: &str| {
            let read = |row: &rusqlite::Row<'_>| row.get::<_, rusqlite::types::Value>(0);
            let value = connection.query_row(&format!("PRAGMA {name}"), [], read).unwrap();
            assert_eq!(format!("{value:?}"), expected, "{name}");
        };
        check("integrity_check", "Text(\"ok\")");
        check("journal_mode", "Text(\"wal\")");
    }

    #[test]
    fn what_is_there_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        fs::write(&path, "somebody's").unwrap();
        assert_eq!(make(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"somebody's");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
