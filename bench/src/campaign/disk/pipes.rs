//! Readers that leave, and streams that are closed: the exit code stays what it is, and so do the files.

use std::io;

use super::{CODE, WRITTEN, check};
use crate::campaign::{
    Shot,
    kills::{Stand, scenes},
    room::Lab,
};

const COMMANDS: [&[&str]; 22] = [
    &["run", "-o", "r.json", "-o", "r.xml"],
    &["run", "--porcelain", "-o", "r.json"],
    &["run", "-q", "-o", "r.json"],
    &["gate"],
    &["gate", "-o", "r.md"],
    &["report"],
    &["report", "-o", "r.html"],
    &["show"],
    &["show", "latest", "--json"],
    &["show", "latest", "case-3"],
    &["compare", "latest", "latest"],
    &["trend"],
    &["runs"],
    &["runs", "--json"],
    &["rescore", "-o", "r.json"],
    &["export", "--as", "chat"],
    &["dataset", "validate", "twice.jsonl"],
    &["dataset", "stats", "cases.jsonl"],
    &["check", "refusal", "--text", "I cannot help with that."],
    &["schema", "event"],
    &["config", "default"],
    &["doctor"],
];

/// What is done to the streams: `P` is the program.
const ENDS: [&str; 10] = [
    "\"$@\" | true; exit ${PIPESTATUS[0]}",
    "\"$@\" | head -1; exit ${PIPESTATUS[0]}",
    "\"$@\" | grep -q .; exit ${PIPESTATUS[0]}",
    "\"$@\" 2>&1 | head -c 10; exit ${PIPESTATUS[0]}",
    "\"$@\" 2> >(true)",
    "\"$@\" >&-",
    "\"$@\" 2>&-",
    "\"$@\" >&- 2>&-",
    "\"$@\" <&-",
    "GITHUB_ACTIONS=true \"$@\" | true; exit ${PIPESTATUS[0]}",
];

pub(super) fn shoot(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    let stand = Stand::new(lab)?;
    scenes::run(&stand)?;
    let room = &stand.room;
    let case = "{\"id\":\"a\",\"prompt\":\"p\",\"expected_response\":\"b\"}\n";
    room.write("twice.jsonl", case.repeat(2))?;
    // Most shots are about a gate that fails.
    if shot.random.u8(..3) > 0 {
        let suite = room.read("probity.toml").replace("pass_rate = 0.5", "pass_rate = 0.99");
        room.write("probity.toml", suite)?;
        room.prepare(&["run", "-q", "-j", "8"])?;
    }
    let words = *shot.choose(&COMMANDS);
    let end = *shot.choose(&ENDS);
    let what = format!("{} with {end}", words.join(" "));
    let usual = room.run(words)?;
    let files = ["r.json", "r.xml", "r.html", "r.md"];
    let written: Vec<&str> = files.into_iter().filter(|it| room.path(it).exists()).collect();
    for file in &written {
        std::fs::remove_file(room.path(file))?;
    }
    let mut command = room.any("bash".as_ref());
    command.arg("-c").arg(end).arg("bash").arg(&lab.probity).args(words);
    let ran = room.start(command)?.end()?;
    check(&ran, &what, shot);
    shot.expect(ran.code == usual.code, CODE, || {
        format!("{what}: {} instead of {}", ran.ending(), usual.ending())
    });
    for file in written {
        shot.expect(room.path(file).exists(), WRITTEN, || format!("{what}: no {file}"));
    }
    Ok(())
}
