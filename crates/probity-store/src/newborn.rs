//! New stores, which are there whole or not at all.
//!
//! SQLite would write a new store twice, first into its log, and force five files and folders to the disk meanwhile. Nobody can
//! see this one before it has a name, so it is made in memory, and written once to a file that has none yet.

use std::{
    fs::File,
    io,
    os::{fd::AsRawFd as _, unix::fs::FileExt as _},
    path::Path,
};

use rusqlite::{Connection, MAIN_DB};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use crate::{PAGE_BYTES, schema};

/// Where the header of a database says whether it has a log, and what it says then.
const LOG_PLACE: std::ops::Range<usize> = 18..20;
const HAS_LOG: u8 = 2;

/// Makes a new store that only its owner may read. It fails if something is there already, and where no file can be without a name.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // It is gone if this process ends before the last line.
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR)?);
    let store = empty_store(path).map_err(io::Error::other)?;
    file.set_len(store.len() as u64)?;
    let mut place = 0;
    for page in store.chunks(PAGE_BYTES as usize) {
        // Most pages are empty but for their first bytes.
        let used = page.iter().rposition(|it| *it != 0).map_or(0, |last| last + 1);
        file.write_all_at(&page[..used], place)?;
        place += page.len() as u64;
    }
    file.sync_all()?;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    Ok(())
}

/// The bytes of a store without runs.
fn empty_store(path: &Path) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    let mut connection = Connection::open_in_memory()?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    schema::migrate(&connection, path)?;
    let mut store = connection.serialize(MAIN_DB)?.to_vec();
    if let Some(place) = store.get_mut(LOG_PLACE) {
        place.fill(HAS_LOG);
    }
    Ok(store)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;
    use crate::{open, private};

    /// Everything that a database is made of.
    fn contents(path: &Path) -> Vec<(String, Option<String>)> {
        let connection = open(path).unwrap();
        let mut names = vec!["page_size", "journal_mode", "user_version", "application_id"];
        names.push("integrity_check");
        let pragma = |name: &str| {
            let value: rusqlite::types::Value =
                connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).unwrap();
            (name.to_owned(), Some(format!("{value:?}")))
        };
        let mut all: Vec<_> = names.into_iter().map(pragma).collect();
        let sql = "SELECT name, sql FROM sqlite_schema ORDER BY name";
        let mut rows = connection.prepare(sql).unwrap();
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        all.extend(rows.map(Result::unwrap));
        all
    }

    #[test]
    fn a_store_that_is_made_at_once_is_the_one_that_sqlite_makes() {
        let folder = tempfile::tempdir().unwrap();
        let [whole, step_by_step] = ["a.db", "b.db"].map(|it| folder.path().join(it));
        make(&whole).unwrap();
        private::create(&step_by_step).unwrap();
        let contents_of_whole = contents(&whole);
        assert!(contents_of_whole.len() > 15);
        assert_eq!(contents_of_whole, contents(&step_by_step));
        assert_eq!(fs::metadata(&whole).unwrap().permissions().mode() & 0o777, 0o600);
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
