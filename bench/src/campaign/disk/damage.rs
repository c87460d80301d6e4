//! Files of ours that were damaged: bytes changed, pages zeroed, ends cut off, files gone.

use std::{fs, io, path::Path};

use super::{CODE, GREEN, LOST, check};
use crate::campaign::{
    Shot,
    kills::{Stand, outcome, scenes},
    room::Lab,
};

/// Damages a file; says how.
fn damage(path: &Path, shot: &mut Shot) -> io::Result<String> {
    let mut bytes = fs::read(path)?;
    let size = bytes.len().max(1);
    let what = match shot.random.u8(..5) {
        0 => {
            let count = shot.random.usize(1..20);
            for _ in 0..count {
                let at = shot.random.usize(..size);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << shot.random.u8(..8);
                }
            }
            format!("{count} bits changed")
        }
        1 => {
            let at = shot.random.usize(..size);
            bytes.truncate(at);
            format!("cut to {at} bytes")
        }
        2 => {
            let from = shot.random.usize(..size) / 4096 * 4096;
            let to = (from + 4096).min(bytes.len());
            bytes[from..to].fill(0);
            format!("zeros from {from}")
        }
        3 => {
            let from = shot.random.usize(..size);
            let to = (from + shot.random.usize(1..200)).min(bytes.len());
            bytes[from..to].iter_mut().for_each(|it| *it = shot.random.u8(..));
            format!("noise from {from}")
        }
        _ => {
            let from = shot.random.usize(..size);
            let piece = bytes[from..(from + 300).min(bytes.len())].to_vec();
            let at = shot.random.usize(..size);
            bytes.splice(at..at, piece);
            format!("a piece twice at {at}")
        }
    };
    fs::write(path, bytes)?;
    Ok(what)
}

/// A store: damage is told, or makes no difference.
pub(super) fn store(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    let stand = Stand::new(lab)?;
    scenes::run(&stand)?;
    let room = &stand.room;
    let whole = room.run(&["gate"])?.out;
    let how = damage(&room.path(".probity/probity.db"), shot)?;
    for words in [
        &["show", "latest", "--json"][..],
        &["gate"],
        &["bless"],
        &["report", "-o", "r.json"],
        &["report", "-o", "r.html"],
        &["compare", "latest", "latest"],
        &["runs"],
        &["export", "--as", "chat"],
        &["rescore"],
        &["run", "-q", "--resume"],
    ] {
        let what = format!("store with {how}: {}", words.join(" "));
        let ran = room.run(words)?;
        check(&ran, &what, shot);
        let is_known = matches!(ran.code, Some(0..=3));
        shot.expect(is_known, CODE, || format!("{what}: {}", ran.tail()));
        if words == ["gate"] && ran.code == Some(0) {
            // It reads no texts, so it may pass where these are damaged; never on other figures.
            if let Some(differing) = outcome::difference(&whole, &ran.out) {
                shot.find(GREEN, format!("{what}: {differing}"));
            }
        }
    }
    Ok(())
}

/// Other files: cache, recording, baseline, dataset, suite, model of a report.
pub(super) fn others(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    let stand = Stand::new(lab)?;
    scenes::suite(&stand)?;
    let room = &stand.room;
    room.prepare(&["run", "-q", "-j", "8", "--cache", "--record", "rec.jsonl"])?;
    room.prepare(&["bless"])?;
    let whole = outcome::of_run(&stand)?;
    let files: [(&str, &[&str]); 5] = [
        (".probity/cache.db", &["run", "-q", "--cache", "--store", "other.db"]),
        ("rec.jsonl", &["run", "-q", "--replay", "rec.jsonl", "--store", "other.db"]),
        ("baselines/main.json", &["gate", "--baseline", "main"]),
        ("cases.jsonl", &["run", "-q", "--store", "other.db"]),
        ("probity.toml", &["run", "-q", "--store", "other.db"]),
    ];
    let (file, words) = *shot.choose(&files);
    let how = match shot.random.u8(..6) {
        0 => {
            fs::remove_file(room.path(file))?;
            "gone".to_owned()
        }
        _ => damage(&room.path(file), shot)?,
    };
    let what = format!("{file} with {how}: {}", words.join(" "));
    let ran = room.run(words)?;
    check(&ran, &what, shot);
    shot.expect(matches!(ran.code, Some(0..=3)), CODE, || format!("{what}: {}", ran.tail()));
    shot.expect(
        ran.code == Some(0) || !ran.err.trim().is_empty() || !ran.out.trim().is_empty(),
        CODE,
        || format!("{what}: nothing is said"),
    );
    // A damaged answer is never taken for one.
    if matches!(file, ".probity/cache.db" | "rec.jsonl") && ran.code == Some(0) {
        let shown = room.run(&["show", "latest", "--json", "--store", "other.db"])?;
        for line in shown.out.lines() {
            let case: serde_json::Value = serde_json::from_str(line).map_err(io::Error::other)?;
            let reply = case["raw_response"].to_string();
            let is_known = whole.contains(&format!("\"raw_response\":{reply}"));
            shot.expect(is_known || case["verdict"] != "pass", GREEN, || {
                format!("{what}: {reply}")
            });
        }
    }
    // The run is none the worse.
    let same = outcome::of_run(&stand)?;
    let is_same = same == whole || file == "probity.toml";
    shot.expect(is_same, LOST, || what.clone());
    Ok(())
}
