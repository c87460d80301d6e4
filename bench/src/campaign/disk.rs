//! A machine that does not cooperate: full and read-only disks, lost and damaged files, locks, few descriptors, little memory, a clock
//! that jumps, and readers that leave.
//!
//! Nothing is lost that was recorded, nothing passes that would not have passed, and once the fault is over the work goes on.

mod damage;
mod pipes;

use std::{
    fs, io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::{
    Campaign, Shot,
    kills::{Stand, outcome, scenes},
    room::{Lab, Ran},
};

pub(super) const CAMPAIGN: Campaign = Campaign {
    name: "disk",
    about: "full and read-only disks, lost and damaged files, locks, few descriptors, little memory, clock jumps, closed pipes",
    kinds: &[LOST, AGAIN, GREEN, CODE, WRITTEN, CRASH, STUCK],
    short: 24,
    long: 1200,
    threads: 4,
    shoot,
};

const LOST: &str = "lost";
const AGAIN: &str = "asked again";
/// What should have been found passes.
const GREEN: &str = "false green";
const CODE: &str = "wrong exit code";
const WRITTEN: &str = "written";
const CRASH: &str = "crash";
const STUCK: &str = "not ended";

/// In this order; a shot is one of them in turn.
const SCENES: [fn(&Lab, &mut Shot) -> io::Result<()>; 12] = [
    full_disk,
    pipes::shoot,
    damage::store,
    read_only,
    pipes::shoot,
    damage::others,
    lock,
    damage::store,
    few_descriptors,
    pipes::shoot,
    little_memory,
    clock,
];

fn shoot(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    let scene = shot.in_turn(&SCENES);
    scene(lab, shot)
}

/// What may never happen.
fn check(ran: &Ran, what: &str, shot: &mut Shot) {
    shot.expect(!ran.is_late, STUCK, || what.to_owned());
    shot.expect(!ran.is_crash(), CRASH, || format!("{what}: {}", ran.tail()));
}

/// Goes on where a fault has ended a run: everything is there in the end, and what was recorded is not asked for again.
fn go_on(stand: &Stand<'_>, what: &str, shot: &mut Shot) -> io::Result<()> {
    let room = &stand.room;
    let stored = outcome::stored(room)?;
    let before = stand.model.seen();
    let again: &[&str] = match outcome::has_run(room) {
        true => &["run", "--porcelain", "-j", "8", "--resume"],
        false => &["run", "--porcelain", "-j", "8"],
    };
    let ran = room.run(again)?;
    shot.expect(ran.code == Some(0), LOST, || format!("{what}, then: {}", ran.tail()));
    let after = stand.model.seen();
    for prompt in stored.iter().filter_map(|it| it["prompt"].as_str()) {
        let is_once = after.prompt(prompt) == before.prompt(prompt);
        shot.expect(is_once, AGAIN, || format!("{what}: {prompt:?}"));
    }
    let all = outcome::stored(room)?;
    shot.expect(all.len() == scenes::CASES_IN_ALL, LOST, || {
        format!("{what}: {} results", all.len())
    });
    let twice = outcome::repeated(&all);
    shot.expect(twice.is_empty(), AGAIN, || format!("{what}: {twice:?} are there twice"));
    Ok(())
}

/// No file may grow beyond a limit; the disk is full for whoever tries.
fn full_disk(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    let stand = Stand::new(lab)?;
    scenes::suite(&stand)?;
    let blocks = shot.random.u32(1..400);
    let what = format!("files of at most {blocks} KiB");
    let words = ["run", "--porcelain", "-j", "8", "-o", "r.json"];
    let command = stand.room.limited(&format!("trap '' XFSZ; ulimit -f {blocks}"), &words);
    let ran = stand.room.start(command)?.end()?;
    check(&ran, &what, shot);
    // Either all of it fits, or that it does not is said.
    let is_told = matches!(ran.code, Some(2 | 3)) && !ran.err.trim().is_empty();
    shot.expect(ran.code == Some(0) || is_told, CODE, || format!("{what}: {}", ran.tail()));
    let report = stand.room.path("r.json");
    shot.expect(outcome::is_whole(&report), WRITTEN, || format!("{what}: r.json is not whole"));
    go_on(&stand, &what, shot)
}

/// Nothing can be written: whoever only reads does not notice, and others say so.
fn read_only(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    const COMMANDS: [(&[&str], bool); 14] = [
        (&["show"], true),
        (&["show", "latest", "--json"], true),
        (&["gate"], true),
        (&["runs"], true),
        (&["report"], true),
        (&["trend"], true),
        (&["dataset", "validate", "cases.jsonl"], true),
        (&["run", "--dry-run"], true),
        (&["run", "-q"], false),
        (&["rescore"], false),
        (&["bless"], false),
        (&["report", "-o", "r.html"], false),
        (&["runs", "gc", "--keep", "1"], false),
        (&["init", "--no-detect", "--suite", "qa"], false),
    ];
    let stand = Stand::new(lab)?;
    scenes::run(&stand)?;
    let room = &stand.room;
    let (words, only_reads) = *shot.choose(&COMMANDS);
    let what = format!("{} on a read-only disk", words.join(" "));
    let before = digest(&room.path(""));
    let asked = stand.model.seen().asked;
    let mut command = room.any("unshare".as_ref());
    let script = "mount --bind . . && mount -o remount,bind,ro . && cd . && cd \"$PWD\" && exec \"$0\" \"$@\"";
    command.args(["-rm", "bash", "-c", script]).arg(&lab.probity).args(words);
    let ran = room.start(command)?.end()?;
    if ran.err.starts_with("unshare:") || ran.err.contains("mount:") {
        shot.skip("no mount namespaces");
        return Ok(());
    }
    check(&ran, &what, shot);
    let is_right = match only_reads {
        true => ran.code == Some(0),
        false => matches!(ran.code, Some(2 | 3)) && !ran.err.trim().is_empty(),
    };
    shot.expect(is_right, CODE, || format!("{what}: {}", ran.tail()));
    shot.expect(digest(&room.path("")) == before, WRITTEN, || what.clone());
    let asked = stand.model.seen().asked - asked;
    shot.expect(asked == 0, AGAIN, || format!("{what}: {asked} answers were paid for and lost"));
    Ok(())
}

/// Another program writes to the store for a while.
fn lock(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    let stand = Stand::new(lab)?;
    scenes::suite(&stand)?;
    // A store to lock from the beginning.
    stand.room.prepare(&["run", "-q", "--limit", "1"])?;
    let before = stand.model.seen().asked;
    let wait = Duration::from_millis(shot.random.u64(0..300));
    let held = Duration::from_millis(shot.random.u64(50..2500));
    let what = format!("a lock of {held:?} after {wait:?}");
    let running = stand.room.start(stand.room.command(&["run", "--porcelain", "-j", "8"]))?;
    thread::sleep(wait);
    let store = rusqlite::Connection::open(stand.room.path(".probity/probity.db"));
    let store = store.map_err(io::Error::other)?;
    store.busy_timeout(Duration::from_secs(20)).map_err(io::Error::other)?;
    store.execute_batch("BEGIN IMMEDIATE").map_err(io::Error::other)?;
    thread::sleep(held);
    drop(store);
    let ran = running.end()?;
    check(&ran, &what, shot);
    shot.expect(ran.code == Some(0), CODE, || format!("{what}: {}", ran.tail()));
    let asked = stand.model.seen().asked - before;
    let all = outcome::stored(&stand.room)?.len();
    shot.expect(all == scenes::CASES_IN_ALL, LOST, || format!("{what}: {all} results"));
    shot.expect(asked == all as u64, AGAIN, || format!("{what}: {asked} calls for {all} results"));
    Ok(())
}

/// So few files may be open that not all calls can be made at once, or none.
fn few_descriptors(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    let stand = Stand::new(lab)?;
    scenes::suite(&stand)?;
    let most = shot.random.u32(6..60);
    let what = format!("{most} descriptors");
    let words = ["run", "--porcelain", "-j", "200"];
    let command = stand.room.limited(&format!("ulimit -n {most}"), &words);
    let ran = stand.room.start(command)?.end()?;
    let asked = stand.model.seen().asked;
    shot.expect(!ran.is_late, STUCK, || what.clone());
    // With hardly any, not even a runtime can be had.
    shot.expect(most < 16 || !ran.is_crash(), CRASH, || format!("{what}: {}", ran.tail()));
    let is_known = matches!(ran.code, Some(0 | 2 | 3)) || most < 16;
    shot.expect(is_known, CODE, || format!("{what}: {}", ran.tail()));
    if ran.code == Some(0) {
        let all = outcome::stored(&stand.room)?.len();
        shot.expect(all == scenes::CASES_IN_ALL, LOST, || format!("{what}: {all} results"));
        shot.expect(asked == all as u64, AGAIN, || format!("{what}: {asked} calls"));
        return Ok(());
    }
    go_on(&stand, &what, shot)
}

/// So little memory that it may end anywhere.
fn little_memory(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    let stand = Stand::new(lab)?;
    scenes::suite(&stand)?;
    let mebibytes = shot.random.u32(40..700);
    let what = format!("{mebibytes} MiB of address space");
    let words = ["run", "--porcelain", "-j", "8"];
    let command = stand.room.limited(&format!("ulimit -v {}", mebibytes << 10), &words);
    let ran = stand.room.start(command)?.end()?;
    // A program that is refused memory may be ended by that, and by nothing else.
    shot.expect(!ran.is_late, STUCK, || what.clone());
    let orphans = stand.room.orphans();
    shot.expect(orphans.is_empty(), LOST, || format!("{what}: {orphans:?} stays"));
    go_on(&stand, &what, shot)
}

/// The clock is set while a run goes on.
fn clock(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    const LIBRARIES: [&str; 3] = [
        "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
        "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
        "/usr/lib/faketime/libfaketimeMT.so.1",
    ];
    let Some(library) = LIBRARIES.iter().find(|it| Path::new(it).exists()) else {
        shot.skip("no faketime");
        return Ok(());
    };
    let stand = Stand::new(lab)?;
    scenes::suite(&stand)?;
    stand.room.prepare(&["run", "-q", "-j", "8", "--limit", "3"])?;
    let jumps = ["-2d", "+2d", "-1h", "+30y", "-20y", "+1h", "-5s", "+5s"];
    let (start, jump) = (*shot.choose(&jumps), *shot.choose(&jumps));
    let what = format!("the clock from {start} to {jump}");
    let file = stand.room.path("clock");
    fs::write(&file, start)?;
    let mut command = stand.room.command(&["run", "--porcelain", "-j", "4", "-o", "r.json"]);
    command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &file);
    command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let begun = Instant::now();
    let running = stand.room.start(command)?;
    thread::sleep(Duration::from_millis(shot.random.u64(50..400)));
    fs::write(&file, jump)?;
    let ran = running.end()?;
    check(&ran, &what, shot);
    shot.expect(ran.code == Some(0), CODE, || format!("{what}: {}", ran.tail()));
    let most = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let stored = outcome::stored(&stand.room)?;
    shot.expect(stored.len() == scenes::CASES_IN_ALL, LOST, || {
        format!("{what}: `latest` has {} results", stored.len())
    });
    for case in &stored {
        let is_sane = |name: &str| {
            let value = &case[name];
            value.is_null() || value.as_u64().is_some_and(|it| it <= most)
        };
        shot.expect(is_sane("latency_ms") && is_sane("elapsed_ms"), CODE, || {
            format!("{what}: {} and {} ms", case["latency_ms"], case["elapsed_ms"])
        });
    }
    Ok(())
}

/// All files under a folder and what is in them.
fn digest(folder: &Path) -> Vec<(String, u64, Option<std::time::SystemTime>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(digest(&path));
        }
        let about = fs::symlink_metadata(&path);
        let (size, time) = about.map_or((0, None), |it| (it.len(), it.modified().ok()));
        found.push((path.display().to_string(), size, time));
    }
    found.sort();
    found
}
