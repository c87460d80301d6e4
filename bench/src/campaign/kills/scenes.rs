//! The commands that are hit: what has to be there before, what takes the work up again, and what has to come out.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use super::{Stand, hub, outcome};
use crate::campaign::room::walk;

/// How many results a whole run has.
pub(in crate::campaign) const CASES_IN_ALL: usize = 40;
const CASES: u64 = CASES_IN_ALL as u64;

/// A command that writes.
pub(in crate::campaign) struct Scene {
    pub(in crate::campaign) name: &'static str,
    pub(in crate::campaign) prepare: fn(&Stand<'_>) -> io::Result<()>,
    pub(in crate::campaign) words: &'static [&'static str],
    /// What takes it up again where there is a run; else the same words do.
    pub(in crate::campaign) again: Option<&'static [&'static str]>,
    /// Whether each result that it has recorded lasts.
    pub(in crate::campaign) resumes: bool,
    /// How often it asks the model if nobody disturbs it.
    pub(in crate::campaign) calls: u64,
    /// Files that are whole or not there.
    pub(in crate::campaign) files: &'static [&'static str],
    pub(in crate::campaign) outcome: fn(&Stand<'_>) -> io::Result<String>,
}

const RUN: &[&str] =
    &["run", "--porcelain", "-j", "8", "-o", "r.json", "-o", "r.xml", "-o", "r.csv"];
const RESUME: &[&str] =
    &["run", "--porcelain", "-j", "8", "-o", "r.json", "-o", "r.xml", "-o", "r.csv", "--resume"];
const RECORD: &[&str] = &["run", "-q", "-j", "8", "--record", "rec.jsonl"];
const RECORD_AGAIN: &[&str] = &["run", "-q", "-j", "8", "--record", "rec.jsonl", "--resume"];
const REPORTS: &[&str] = &[
    "report", "-o", "r.json", "-o", "r.jsonl", "-o", "r.csv", "-o", "r.xml", "-o", "r.html", "-o",
    "r.md",
];

pub(in crate::campaign) const SCENES: [Scene; 22] = [
    Scene {
        name: "run",
        prepare: suite,
        words: RUN,
        again: Some(RESUME),
        resumes: true,
        calls: CASES,
        files: &["r.json", "r.xml", "r.csv"],
        outcome: outcome::of_run,
    },
    Scene {
        name: "run --resume",
        prepare: |stand| {
            suite(stand)?;
            // It ends with 3, because the budget does.
            stand.room.run(&["run", "-q", "-j", "8", "--max-calls", "15"]).map(drop)
        },
        words: RESUME,
        again: Some(RESUME),
        resumes: true,
        calls: CASES - 15,
        files: &["r.json", "r.xml", "r.csv"],
        outcome: outcome::of_run,
    },
    Scene {
        name: "run --record",
        prepare: suite,
        words: RECORD,
        again: Some(RECORD_AGAIN),
        resumes: true,
        calls: CASES,
        files: &[],
        outcome: |stand| {
            let run = outcome::of_run(stand)?;
            // The recording is worth as much as the answers.
            let ran = stand.room.run(&[
                "run",
                "-q",
                "--replay",
                "rec.jsonl",
                "--store",
                "replayed.db",
            ])?;
            Ok(format!("{run}\nreplayed: {}", ran.ending()))
        },
    },
    Scene {
        name: "run --replay",
        prepare: |stand| {
            suite(stand)?;
            stand.room.prepare(&[
                "run",
                "-q",
                "-j",
                "8",
                "--record",
                "rec.jsonl",
                "--store",
                "first.db",
            ])?;
            Ok(())
        },
        words: &["run", "-q", "--replay", "rec.jsonl", "-o", "r.json"],
        again: Some(&["run", "-q", "--replay", "rec.jsonl", "-o", "r.json", "--resume"]),
        resumes: true,
        calls: 0,
        files: &["r.json", "rec.jsonl"],
        outcome: outcome::of_run,
    },
    Scene {
        name: "run --cache",
        prepare: suite,
        words: &["run", "-q", "-j", "8", "--cache"],
        again: Some(&["run", "-q", "-j", "8", "--cache", "--resume"]),
        resumes: true,
        calls: CASES,
        files: &[],
        outcome: |stand| {
            let run = outcome::of_run(stand)?;
            // The cache is no record, so the answers of the last moment before a hit may be missing. Once they are
            // there again, nothing is asked.
            stand.room.run(&["run", "-q", "--cache", "--store", "cached.db"])?;
            let before = stand.model.seen().asked;
            stand.room.run(&["run", "-q", "--cache", "--store", "again.db"])?;
            let asked = stand.model.seen().asked - before;
            Ok(format!("{run}\nasked with a warm cache: {asked}"))
        },
    },
    Scene {
        name: "run of a program",
        prepare: |stand| {
            suite(stand)?;
            // It leaves a child, and does not end when it is told to.
            let program = r#"trap '' TERM; read -r line; sleep 300 & sleep 0.03; echo "${line##* }"; kill $!"#;
            stand.room.write("probity.toml", of_program(program))
        },
        words: &["run", "-q", "-j", "8", "--events", "e.jsonl"],
        again: Some(&["run", "-q", "-j", "8", "--resume"]),
        resumes: true,
        calls: 0,
        files: &[],
        outcome: outcome::of_run,
    },
    Scene {
        name: "run with a scorer",
        prepare: |stand| {
            suite(stand)?;
            let scorer = "def score(output, context):\n    return len(output) < 6\n";
            stand.room.write("scorer.py", scorer)?;
            let check = r#""assert":[{"type":"python","value":"file://scorer.py:score"}]"#;
            stand
                .room
                .write("cases.jsonl", cases().replace("\"}\n", &format!("\",{check}}}\n")))?;
            let suite = format!("allow_code = true\n{}", stand.room.read("probity.toml"));
            stand.room.write("probity.toml", suite)
        },
        words: &["run", "-q", "-j", "8"],
        again: Some(&["run", "-q", "-j", "8", "--resume"]),
        resumes: true,
        calls: CASES,
        files: &[],
        outcome: outcome::of_run,
    },
    Scene {
        name: "rescore",
        prepare: |stand| {
            run(stand)?;
            stand.room.write(
                "cases.jsonl",
                cases().replace("\"expected_response\":\"3\"", "\"expected_response\":\"three\""),
            )
        },
        words: &["rescore", "-o", "r.json"],
        again: None,
        resumes: false,
        calls: 0,
        files: &["r.json"],
        outcome: outcome::of_run,
    },
    Scene {
        name: "merge",
        prepare: |stand| {
            suite(stand)?;
            stand.room.prepare(&["run", "-q", "--shard", "1/2", "--store", "a.db"])?;
            stand.room.prepare(&["run", "-q", "--shard", "2/2", "--store", "b.db"])?;
            Ok(())
        },
        words: &["merge", "a.db", "b.db"],
        again: None,
        resumes: false,
        calls: 0,
        files: &[],
        outcome: outcome::of_run,
    },
    Scene {
        name: "bless",
        prepare: run,
        words: &["bless"],
        again: None,
        resumes: false,
        calls: 0,
        files: &["baselines/main.json"],
        outcome: |stand| Ok(stand.room.run(&["gate", "--baseline", "main"])?.ending()),
    },
    Scene {
        name: "import of results",
        prepare: |stand| {
            stand.room.write(
                "results.json",
                include_str!("../../../../crates/probity-import/tests/fixtures/promptfoo.json"),
            )
        },
        words: &["import", "results.json", "--store", ".probity/probity.db"],
        again: None,
        resumes: false,
        calls: 0,
        files: &[],
        outcome: |stand| {
            // The same file is stored once.
            let runs = stand.room.run(&["runs", "--json"])?.out.lines().count();
            Ok(format!("{runs} runs\n{}", outcome::of_run(stand)?))
        },
    },
    Scene {
        name: "import of a suite",
        prepare: |stand| stand.room.write("in/promptfooconfig.yaml", PROMPTFOO),
        words: &["import", "in/promptfooconfig.yaml", "-o", "out", "--force", "--lossy"],
        again: None,
        resumes: false,
        calls: 0,
        files: &["out/probity.toml", "out/cases.jsonl"],
        outcome: |stand| Ok(stand.room.run(&["run", "--dry-run", "out/probity.toml"])?.out),
    },
    Scene {
        name: "export for training",
        prepare: run,
        words: &["export", "--as", "chat", "-o", "chat.jsonl"],
        again: None,
        resumes: false,
        calls: 0,
        files: &["chat.jsonl"],
        outcome: |_| Ok(String::new()),
    },
    Scene {
        name: "export for Inspect",
        prepare: run,
        words: &["export", "--as", "inspect-log", "--lossy", "-o", "logs.json"],
        again: None,
        resumes: false,
        calls: 0,
        files: &["logs.json"],
        outcome: |_| Ok(String::new()),
    },
    Scene {
        name: "export of tables",
        prepare: run,
        words: &["export", "--as", "arrow", "--overwrite", "-o", "tables"],
        again: None,
        resumes: false,
        calls: 0,
        files: &[],
        outcome: |stand| tables(&stand.room.path("tables")),
    },
    Scene {
        name: "report",
        prepare: run,
        words: REPORTS,
        again: None,
        resumes: false,
        calls: 0,
        files: &["r.json", "r.jsonl", "r.csv", "r.xml", "r.html", "r.md"],
        outcome: outcome::of_run,
    },
    Scene {
        name: "cache clear",
        prepare: |stand| {
            suite(stand)?;
            stand.room.prepare(&["run", "-q", "-j", "8", "--cache"]).map(drop)
        },
        words: &["cache", "clear"],
        again: None,
        resumes: false,
        calls: 0,
        files: &[],
        outcome: |stand| {
            let stats = stand.room.run(&["cache", "stats"])?;
            Ok(format!("{}\n{}", stats.out, outcome::of_run(stand)?))
        },
    },
    Scene {
        name: "runs gc",
        prepare: |stand| {
            run(stand)?;
            stand.room.prepare(&["run", "-q", "-j", "8", "--limit", "10"])?;
            run(stand)
        },
        words: &["runs", "gc", "--keep", "1"],
        again: None,
        resumes: false,
        calls: 0,
        files: &[],
        outcome: |stand| {
            let runs = stand.room.run(&["runs", "--json"])?.out.lines().count();
            Ok(format!("{runs} runs\n{}", outcome::of_run(stand)?))
        },
    },
    Scene {
        name: "model pull",
        prepare: |_| Ok(()),
        words: &["model", "pull", "owner/repo/small.gguf"],
        again: None,
        resumes: false,
        calls: 0,
        files: &[],
        outcome: |stand| {
            let model = std::fs::read(stand.room.path("models/owner/repo/small.gguf"));
            Ok(format!("whole: {}", model.is_ok_and(|it| it == hub::model())))
        },
    },
    Scene {
        name: "init",
        prepare: |_| Ok(()),
        words: &["init", "--no-detect", "--force", "--suite", "qa"],
        again: None,
        resumes: false,
        calls: 0,
        files: &["qa/probity.toml"],
        outcome: |stand| Ok(stand.room.run(&["run", "--dry-run", "qa/probity.toml"])?.out),
    },
    Scene {
        name: "dataset convert",
        prepare: |stand| stand.room.write("cases.jsonl", many_cases(4000)),
        words: &["dataset", "convert", "cases.jsonl", "cases.json", "--force"],
        again: None,
        resumes: false,
        calls: 0,
        files: &["cases.json", "cases.jsonl"],
        outcome: |stand| Ok(stand.room.run(&["dataset", "validate", "cases.json"])?.ending()),
    },
    Scene {
        name: "classify",
        prepare: |stand| {
            let line = r#"{"case_id":"a","raw_response":"I cannot help with that.","expected_response":"b"}"#;
            stand.room.write("results.jsonl", format!("{line}\n").repeat(4000))
        },
        words: &["classify", "results.jsonl", "-o", "classified.jsonl"],
        again: None,
        resumes: false,
        calls: 0,
        files: &["classified.jsonl", "results.jsonl"],
        outcome: |_| Ok(String::new()),
    },
];

const PROMPTFOO: &str = "description: capitals
prompts:
  - 'What is the capital of {{country}}?'
  - 'Capital of {{country}}, in one word:'
providers:
  - openai:gpt-4o-mini
tests:
  - vars: { country: France }
    assert: [{ type: contains, value: Paris }]
  - vars: { country: Italy }
    assert: [{ type: icontains, value: rome }]
";

/// Cases whose answer is the last word of the prompt.
fn many_cases(count: u64) -> String {
    let mut text = String::new();
    for at in 0..count {
        let _ = writeln!(
            text,
            r#"{{"id":"case-{at}","prompt":"Return the number {at}","expected_response":"{at}"}}"#
        );
    }
    text
}

fn cases() -> String {
    many_cases(CASES)
}

const RUNNER: &str = "[[runners]]\nname = \"numbers\"\ndataset = \"cases.jsonl\"\n[runners.gates]\npass_rate = 0.5\n\
                      [retry]\nbackoff_base = 0.01\n";

pub(in crate::campaign) fn suite(stand: &Stand<'_>) -> io::Result<()> {
    let url = stand.model.url();
    stand.room.write("cases.jsonl", cases())?;
    let text = format!(
        "version = \"1\"\n[backends.fake]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"fake-small\"\n{RUNNER}"
    );
    stand.room.write("probity.toml", text)
}

pub(in crate::campaign) fn of_program(script: &str) -> String {
    let script = serde_json::Value::from(script);
    format!(
        "version = \"1\"\n[backends.p]\nkind = \"command\"\ncommand = [\"bash\", \"-c\", {script}]\n{RUNNER}[timeouts]\nkill_grace = \"200ms\"\n"
    )
}

/// A whole run in the store.
pub(in crate::campaign) fn run(stand: &Stand<'_>) -> io::Result<()> {
    suite(stand)?;
    stand.room.prepare(&["run", "-q", "-j", "8"]).map(drop)
}

/// The tables that are there, and that each ends as such a file does.
fn tables(folder: &Path) -> io::Result<String> {
    let mut files: Vec<PathBuf> = Vec::new();
    walk(folder, &mut |path| files.push(path.to_owned()));
    files.sort();
    let mut shown = String::new();
    for path in files.iter().filter(|it| it.extension().is_some_and(|it| it == "arrow")) {
        let is_whole = fs::read(path)?.ends_with(b"ARROW1");
        let name = path.file_name().unwrap_or_default().display();
        let _ = writeln!(shown, "{name} {is_whole}");
    }
    Ok(shown)
}
