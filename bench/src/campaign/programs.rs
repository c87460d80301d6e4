//! Hostile programs as backends and as scorers: they end within their limits, nothing of them stays, and the next case is judged.

use std::{io, time::Duration};

use serde_json::{Value, json};

use super::{
    Campaign, Shot,
    kills::outcome,
    room::{Lab, Room},
};

pub(super) const CAMPAIGN: Campaign = Campaign {
    name: "programs",
    about: "hostile programs as backends and scorers: they end within limits, nothing stays, the next case is judged",
    kinds: &[STUCK, LEFT, WRONG, CRASH],
    short: 27,
    long: 600,
    threads: 4,
    shoot,
};

const STUCK: &str = "not ended";
const LEFT: &str = "left behind";
const WRONG: &str = "wrongly judged";
const CRASH: &str = "crash";

/// What a program does, and whether its case may pass.
const PROGRAMS: [(&str, &str, bool); 27] = [
    ("floods", "yes", false),
    ("floods its standard error", "yes >&2", false),
    ("floods without a line break", "tr '\\0' a < /dev/zero", false),
    ("writes 64 MiB", "head -c 64M /dev/zero", false),
    ("never reads", "exec <&-; sleep 1000", false),
    ("reads nothing and answers", "echo right", true),
    ("does not hear SIGTERM", "trap '' TERM INT HUP; while :; do sleep 1; done", false),
    ("stops itself", "kill -STOP $$; echo right", false),
    ("leaves children", "sleep 1000 & sleep 1000 & echo right", true),
    ("leaves children that hold its output", "(trap '' TERM; sleep 1000) & echo right", true),
    ("leaves a hundred children", "for i in $(seq 100); do sleep 1000 & done; echo right", true),
    ("forks and ends", "(sleep 1000 &) & exit 0", false),
    ("closes its output", "exec >&- 2>&-; sleep 1000", false),
    ("closes its output and ends", "exec >&- 2>&-; exit 0", false),
    ("says nothing", ":", false),
    ("says blanks", "printf ' \\n\\t \\n'", false),
    ("says what is no UTF-8", "printf '\\377\\376\\200right'", false),
    ("says a NUL", "printf 'ri\\0ght'", false),
    ("says no line break", "printf right", true),
    ("says escapes", "printf '\\033]0;owned\\007\\033[2Jright'", false),
    ("fails", "echo right; exit 3", false),
    ("fails with 255", "exit 255", false),
    ("is killed", "kill -KILL $$", false),
    ("aborts", "kill -ABRT $$", false),
    ("takes its folder away", "d=$PWD; cd /; rm -rf \"$d\"; echo right", true),
    ("locks its folder", "mkdir -p a/b; chmod 0 a; chmod 0 .; echo right", true),
    (
        "fills its folder",
        "for i in $(seq 300); do head -c 10000 /dev/zero > f$i; done; echo right",
        true,
    ),
];

fn shoot(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    let (name, script, may_pass) = *shot.in_turn(&PROGRAMS);
    // The folder of a scorer is that of the suite, and its rights are those of the user.
    let as_scorer =
        shot.random.bool() && !name.ends_with("its folder") && !name.ends_with("folder away");
    let room = Room::new(lab)?;
    // A prompt that no pipe takes at once.
    let long = "x".repeat(shot.random.usize(1..300_000));
    // Only the first case meets the program as it is.
    let guarded = format!("case $LINE in *hostile*) {script} ;; *) echo right ;; esac");
    write(&room, &guarded, as_scorer, &long)?;
    let role = if as_scorer { "scorer" } else { "backend" };
    let what = format!("a {role} that {name}");
    let ran = room.run(&["run", "--porcelain", "-j", "2", "--no-fail-fast"])?;
    shot.expect(!ran.is_late && ran.took < Duration::from_mins(1), STUCK, || {
        format!("{what}: {:?}", ran.took)
    });
    shot.expect(!ran.is_crash() && ran.code != Some(2), CRASH, || {
        format!("{what}: {}", ran.tail())
    });
    let orphans = room.orphans();
    shot.expect(orphans.is_empty(), LEFT, || format!("{what}: {}", orphans.join("; ")));
    let left = room.temporary();
    shot.expect(left.is_empty(), LEFT, || format!("{what}: {}", left.join(" ")));
    let stored = outcome::stored(&room)?;
    let verdict = |id: &str| {
        let case = stored.iter().find(|it| it["case_id"] == id);
        case.map_or("missing", |it| it["verdict"].as_str().unwrap_or("none")).to_owned()
    };
    let (hostile, next) = (verdict("hostile"), verdict("next"));
    let may_pass = may_pass || as_scorer && SAY_YES.contains(&name);
    let is_right = hostile != "missing" && (may_pass || hostile != "pass");
    shot.expect(is_right, WRONG, || format!("{what}: {hostile}"));
    shot.expect(next == "pass", WRONG, || format!("{what}: the next case: {next}"));
    Ok(())
}

/// Whether a program that judges by its exit code says yes, although it says nothing that makes sense.
const SAY_YES: [&str; 8] = [
    "forks and ends",
    "closes its output and ends",
    "says nothing",
    "says blanks",
    "says what is no UTF-8",
    "says a NUL",
    "says escapes",
    "writes 64 MiB",
];

fn write(room: &Room<'_>, script: &str, as_scorer: bool, long: &str) -> io::Result<()> {
    let words =
        Value::from(vec!["bash".to_owned(), "-c".to_owned(), format!("read -r LINE; {script}")]);
    let case = |id: &str| match as_scorer {
        false => {
            json!({ "id": id, "prompt": format!("{id} {long}"), "expected_response": "right" })
        }
        true => json!({ "id": id, "prompt": id, "assert": [{ "type": "exec", "value": words }] }),
    };
    room.write("cases.jsonl", format!("{}\n{}\n", case("hostile"), case("next")))?;
    let backend = match as_scorer {
        false => format!("kind = \"command\"\ncommand = {words}"),
        true => "kind = \"echo\"".to_owned(),
    };
    let limits = "[timeouts]\nattempt = \"6s\"\nscorer = \"6s\"\nkill_grace = \"200ms\"\n[retry]\nmax_retries = 0\n";
    let suite = format!(
        "max_error_rate = 1.0\nallow_code = true\n[backends.p]\n{backend}\n[[runners]]\nname = \"r\"\n\
         dataset = \"cases.jsonl\"\n{limits}"
    );
    room.write("probity.toml", suite)
}
