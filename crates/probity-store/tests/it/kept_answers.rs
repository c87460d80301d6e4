//! The cache of answers, from outside.

use std::{fs, path::Path};

use probity_core::record::CacheKind;
use probity_store::{Cache, StoreError};

const KIND: CacheKind = CacheKind::Answer;

/// A cache with so many answers, closed.
fn filled(path: &Path, answers: u8) {
    let cache = Cache::open(path).unwrap();
    for at in 0..answers {
        cache.put(KIND, [at; 16], "four", i64::from(at) + 7);
    }
}

fn change(path: &Path, sql: &str) {
    rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_cache_says_how_much_it_holds_and_how_much_it_forgot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.db");
    filled(&path, 3);
    let cache = Cache::open(&path).unwrap();
    assert_eq!(cache.path(), path);
    let stats = cache.stats(KIND).unwrap();
    assert_eq!((stats.entries, stats.bytes, stats.oldest_ms), (3, 12, Some(7)));
    assert_eq!(cache.clear(&CacheKind::ALL).unwrap(), 3);
    let stats = cache.stats(KIND).unwrap();
    assert_eq!((stats.entries, stats.bytes, stats.oldest_ms), (0, 0, None));
    assert_eq!(cache.get(KIND, [0; 16]), None);
}

#[test]
fn kinds_of_answers_are_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.db");
    let cache = Cache::open(&path).unwrap();
    for kind in CacheKind::ALL {
        cache.put(kind, [1; 16], kind.plural(), 0);
    }
    cache.flush();
    for kind in CacheKind::ALL {
        assert_eq!(cache.get(kind, [1; 16]).as_deref(), Some(kind.plural()));
    }
    assert_eq!(cache.clear(&[KIND]).unwrap(), 1);
    for kind in CacheKind::ALL {
        assert_eq!(cache.get(kind, [1; 16]).is_some(), kind != KIND, "{kind:?}");
    }
}

#[test]
fn an_answer_that_was_changed_is_no_answer_and_the_cache_is_read_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.db");
    filled(&path, 2);
    change(&path, "UPDATE answers SET answer = 'five' WHERE at_ms = 7");
    let cache = Cache::open(&path).unwrap();
    assert_eq!((cache.get(KIND, [1; 16]).as_deref(), cache.is_damaged()), (Some("four"), false));
    assert_eq!((cache.get(KIND, [0; 16]), cache.is_damaged()), (None, true));
    assert_eq!(cache.get(KIND, [1; 16]), None);
    cache.put(KIND, [9; 16], "nine", 0);
    cache.flush();
    assert_eq!(Cache::open(&path).unwrap().stats(KIND).unwrap().entries, 2);
}

#[test]
fn an_answer_that_was_kept_without_a_checksum_is_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.db");
    filled(&path, 1);
    change(&path, "ALTER TABLE answers DROP COLUMN sum");
    let cache = Cache::open(&path).unwrap();
    assert_eq!((cache.get(KIND, [0; 16]).as_deref(), cache.is_damaged()), (Some("four"), false));
}

#[test]
fn an_answer_that_is_no_text_is_damage_and_a_missing_table_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.db");
    filled(&path, 1);
    let cache = Cache::open(&path).unwrap();
    change(&path, "UPDATE answers SET answer = CAST(x'ff' AS TEXT)");
    assert_eq!((cache.get(KIND, [0; 16]), cache.is_damaged()), (None, true));
    let cache = Cache::open(&path).unwrap();
    change(&path, "DROP TABLE answers");
    assert_eq!((cache.get(KIND, [0; 16]), cache.is_damaged()), (None, false));
}

#[test]
fn a_damaged_cache_is_set_aside_under_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.db");
    filled(&path, 1);
    let aside = folder.path().join("cache.db.damaged");
    assert_eq!(Cache::set_aside(&path).unwrap(), Some(aside.clone()));
    assert!(!path.exists() && aside.exists());
    assert_eq!(Cache::open(&path).unwrap().stats(KIND).unwrap().entries, 0);
}

#[test]
fn what_may_be_something_else_is_neither_set_aside_nor_removed() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    };
    let database = b"SQLite format 3\0 of another program";
    let mut with_id = [0; 100];
    with_id[..16].copy_from_slice(b"SQLite format 3\0");
    with_id[68..72].copy_from_slice(b"Prbc");
    let mut text_with_id = with_id;
    text_with_id[0] = b'?';
    let with_table = b"SQLite format 3\0 CREATE TABLE answers (key BLOB)";
    for (path, is_ours) in [
        (file("text", b"CREATE TABLE answers ("), false),
        (file("other.db", database), false),
        (file("no-database", &text_with_id), false),
        (file("id.db", &with_id), true),
        (file("table.db", with_table), true),
        // Nobody else has files there.
        (file(".probity/cache.db", b"nonsense"), true),
    ] {
        let bytes = fs::read(&path).unwrap();
        let aside = Cache::set_aside(&path).unwrap();
        assert_eq!((aside.is_some(), path.exists()), (is_ours, !is_ours), "{}", path.display());
        fs::write(&path, bytes).unwrap();
        let removed = Cache::remove_damaged(&path).unwrap();
        assert_eq!((removed, path.exists()), (is_ours, !is_ours), "{}", path.display());
    }
}

#[test]
fn a_database_of_another_program_is_no_cache() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.db");
    change(&path, "CREATE TABLE mine (x)");
    let error = Cache::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::ForeignCache { .. }), "{error}");
    fs::write(&path, [b'x'; 5000]).unwrap();
    let error = Cache::open(&path).unwrap_err();
    assert!(error.is_damage(), "{error}");
}
