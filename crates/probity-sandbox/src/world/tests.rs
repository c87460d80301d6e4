use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
    time::{Duration, SystemTime},
};

use super::*;

fn at(days: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_760_000_000 + days * 86_400)
}

fn no_setup(_: &Prepared, _: &str) -> Result<Vec<u8>, String> {
    Err("this world needs no setup".to_owned())
}

fn prepare(world: &World, cache: &Path) -> Prepared {
    world.prepare(&Preparation { cache, now: at(0), setup: &no_setup }).unwrap()
}

#[test]
fn the_worlds_that_ship_can_be_read_and_are_called_like_their_files() {
    let names: Vec<_> = builtin::all().iter().map(|it| &*it.name).collect();
    assert_eq!(names.len(), 13);
    assert!(names.is_sorted());
    for world in builtin::all() {
        assert!(!world.about.is_empty(), "{}", world.name);
        assert_eq!(builtin::named(&world.name), Some(world));
    }
}

#[test]
fn a_world_becomes_what_its_file_says() {
    let text = r#"
name = "small"
files = [
  { path = "a b/ü", text = "hi\n", mode = "0640", age = "3d", accessed = "1d" },
  { path = "/srv/big", sparse = "3M" },
  { path = "-l", link = "a b/ü" },
  { path = "twin", hard = "a b/ü" },
  { path = "locked", directory = true, mode = "0555" },
  { path = "locked/in", noise = "10", seed = 7 },
]
"#;
    let cache = tempfile::tempdir().unwrap();
    let prepared = prepare(&read("small.toml", text).unwrap(), cache.path());
    let home = prepared.tree.join("home/ada");
    let file = fs::metadata(home.join("a b/ü")).unwrap();
    assert_eq!(fs::read(home.join("twin")).unwrap(), b"hi\n");
    assert_eq!((file.permissions().mode() & 0o7777, file.nlink()), (0o640, 2));
    assert_eq!((file.mtime(), file.atime()), (1_760_000_000 - 3 * 86_400, 1_760_000_000 - 86_400));
    assert_eq!(fs::metadata(prepared.tree.join("srv/big")).unwrap().len(), 3 << 20);
    assert_eq!(fs::read_link(home.join("-l")).unwrap(), Path::new("a b/ü"));
    assert_eq!(fs::metadata(home.join("locked")).unwrap().permissions().mode() & 0o7777, 0o555);
    assert_eq!(fs::read(home.join("locked/in")).unwrap().len(), 10);
    assert_eq!(prepared.variables["HOME"], "/home/ada");
    assert!(fs::read_to_string(prepared.tree.join("etc/passwd")).unwrap().contains("ada:x:1000:"));
    super::prepare::remove(&prepared.tree);
    assert!(!prepared.tree.exists());
}

#[test]
fn a_problem_has_its_line_and_its_field() {
    for (text, problem) in [
        ("name = \"x\"\nfile = []\n", "w.toml:2: unknown field `file`"),
        (
            "name = \"x\"\nfiles = [\n  { path = \"a\", mode = \"9\" },\n]\n",
            "w.toml:3: `9` is not a mode",
        ),
        (
            "name = \"x\"\nfiles = [\n  { path = \"a\", text = \"\", link = \"b\" },\n]\n",
            "w.toml:3: `a` can have only one of",
        ),
        (
            "name = \"x\"\nfiles = [\n\n  { path = \"../a\" },\n]\n",
            "w.toml:4: `path`: `../a` has to lie in the world",
        ),
        ("name = \"x\"\ndirectory = \"a\"\n", "w.toml:1: `directory` has to begin with a slash"),
        ("about = \"x\"\n", "w.toml:1: missing field `name`"),
        (
            "name = \"x\"\nfiles = [\n  { path = \"n\", noise = \"100G\" },\n]\n",
            "w.toml:3: `files`: with `n` they are larger than 128 MiB together",
        ),
        (
            "name = \"x\"\nfiles = [\n  { path = \"n\", lines = \"prose\", count = 4000000000 },\n]\n",
            "w.toml:3: `files`: with `n` they are larger than 128 MiB together",
        ),
        ("name = \"x\"\nuser = \"ada\\nroot\"\n", "w.toml:1: `user`: \"ada\\nroot\" is no name"),
        (
            "name = \"x\"\nvariables = { \"A=B\" = \"c\" }\n",
            "w.toml:1: `variables`: `A=B` is no name",
        ),
    ] {
        let error = read("w.toml", text).unwrap_err().to_string();
        assert!(error.starts_with(problem), "{error}");
    }
}

#[test]
fn a_tree_is_made_once_and_again_when_its_ages_are_stale() {
    let cache = tempfile::tempdir().unwrap();
    let world = builtin::named("empty").unwrap();
    let first = prepare(world, cache.path());
    fs::write(first.tree.join("mark"), "").unwrap();
    assert!(prepare(world, cache.path()).tree.join("mark").exists());
    let later = Preparation { cache: cache.path(), now: at(1), setup: &no_setup };
    assert!(!world.prepare(&later).unwrap().tree.join("mark").exists());
}

#[test]
fn many_can_prepare_the_same_world_at_once() {
    let cache = tempfile::tempdir().unwrap();
    let world = builtin::named("project").unwrap();
    let trees: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..10).map(|_| scope.spawn(|| prepare(world, cache.path()))).collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert!(trees.iter().all(|it| *it == trees[0]));
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
}

#[test]
fn what_a_setup_leaves_is_the_tree() {
    let cache = tempfile::tempdir().unwrap();
    let world =
        World { setup: Some("touch x".to_owned()), ..builtin::named("empty").unwrap().clone() };
    let setup = |before: &Prepared, text: &str| {
        assert!(before.tree.join("etc/passwd").exists());
        assert!(text.contains("touch x") && text.contains("etc home opt tmp var"));
        Ok(archive::tar(&[("home/ada/nothing/x".to_owned(), b"made".to_vec())], 1_700_000_000))
    };
    let prepared =
        world.prepare(&Preparation { cache: cache.path(), now: at(0), setup: &setup }).unwrap();
    assert_eq!(fs::read(prepared.tree.join("home/ada/nothing/x")).unwrap(), b"made");
    assert!(!prepared.tree.join("etc").exists());
    let broken = |_: &Prepared, _: &str| Err("no git".to_owned());
    let preparation = Preparation { cache: cache.path(), now: at(2), setup: &broken };
    let error = world.prepare(&preparation).unwrap_err();
    assert_eq!(error.to_string(), "the setup of the world `empty` failed: no git");
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
}

#[test]
fn nothing_is_written_over_a_link_that_leads_out_of_the_tree() {
    let host = tempfile::tempdir().unwrap();
    let outside = host.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "host").unwrap();
    let files = |second: &str| {
        let outside = outside.display();
        let text = format!(
            "name = \"out\"\nfiles = [\n  {{ path = \"way\", link = \"{outside}\" }},\n  {second},\n]\n"
        );
        read("out.toml", &text).unwrap()
    };
    for second in [
        r#"{ path = "way/kept", text = "evil" }"#,
        r#"{ path = "way/new", text = "evil" }"#,
        r#"{ path = "way/sub", directory = true }"#,
        r#"{ path = "way", text = "evil" }"#,
        r#"{ path = "twin", hard = "way/kept" }"#,
    ] {
        let cache = host.path().join("cache");
        let preparation = Preparation { cache: &cache, now: at(0), setup: &no_setup };
        let PrepareError::Write { source, .. } = files(second).prepare(&preparation).unwrap_err()
        else {
            panic!("{second}")
        };
        assert!(source.to_string().ends_with("/home/ada/way` is a link"), "{source}");
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 0, "half a world is left");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(fs::read(outside.join("kept")).unwrap(), b"host");
}

#[test]
fn what_a_setup_hands_back_does_not_lead_out_of_the_tree() {
    let host = tempfile::tempdir().unwrap();
    let world = World { setup: Some("x".to_owned()), ..builtin::named("empty").unwrap().clone() };
    let way = host.path().join("outside");
    let target = way.display().to_string();
    let members = [("home/way", ""), ("home/way/in", "evil")];
    let members = members.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
    let mut archive = archive::tar(&members, 1_700_000_000);
    // The first member becomes a link.
    archive[156] = b'2';
    archive[157..157 + target.len()].copy_from_slice(target.as_bytes());
    let setup = |before: &Prepared, _: &str| {
        assert_eq!(before.digest, "", "nothing about it is remembered");
        Ok(archive.clone())
    };
    let cache = host.path().join("cache");
    fs::create_dir(&way).unwrap();
    let preparation = Preparation { cache: &cache, now: at(0), setup: &setup };
    assert!(matches!(world.prepare(&preparation), Err(PrepareError::Write { .. })));
    assert_eq!(fs::read_dir(&way).unwrap().count(), 0);
}

#[test]
fn trees_that_nobody_asks_for_any_more_are_removed() {
    let cache = tempfile::tempdir().unwrap();
    let world = builtin::named("empty").unwrap();
    let now = fs::metadata(cache.path()).unwrap().modified().unwrap();
    let prepare = |now| {
        let preparation = Preparation { cache: cache.path(), now, setup: &no_setup };
        world.prepare(&preparation).unwrap().tree
    };
    let first = prepare(now);
    fs::write(cache.path().join("notes"), "of somebody").unwrap();
    let next = prepare(now + Duration::from_hours(60));
    assert!(first.is_dir() && next.is_dir());
    let last = prepare(now + Duration::from_hours(80));
    assert!(!first.is_dir() && !next.is_dir() && last.is_dir());
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 2);
}
