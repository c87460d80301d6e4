//! What is refused, and told of, before or instead of a run.

use std::{fmt::Write as _, fs, io};

use probity_testkit::Script;
use serde_json::json;

use super::{Check, Trial, case, said};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("18: validate accepts what run refuses", validate),
    ("18: validate accepts a command that is no shell command", no_command),
    ("18: an undefined value has no name, and is looked for in the dataset", undefined),
    ("18: two columns too many are told once for each row", columns),
    ("22: two thresholds that differ are taken", two_thresholds),
    ("22: a case of skills that expects nothing counts as a negative", no_expectation),
    ("22: a temperature of -1 is taken", temperature),
    ("22: the signal that ended a program is not told", signal),
    ("22: `strict` is ignored by `classify`", strict),
    ("22: half of a pair of escapes is taken", surrogate),
    ("22: doctor is content with a model that is not there", missing_model),
    ("22: damage of the cache is silent", damaged_cache),
];

fn validate(trial: &mut Trial<'_>) -> io::Result<()> {
    for prompt in ["{{ x | nofilter }}", "{{ nobody.here }}"] {
        let line = json!({ "id": "a", "prompt": prompt, "prompt_vars": { "x": 1 }, "expected_response": "1" });
        trial.suite(&format!("{line}\n"), "")?;
        let checked = trial.room.run(&["dataset", "validate", "--strict", "cases.jsonl"])?;
        let ran = trial.run(&[])?;
        trial.expect(checked.code == Some(2) && ran.code == Some(2), || {
            format!("{prompt}: validate {}, run {}", checked.ending(), ran.ending())
        });
    }
    Ok(())
}

fn no_command(trial: &mut Trial<'_>) -> io::Result<()> {
    let line = json!({
        "id": "a", "prompt": "p", "expected_command": "ls 'x", "category": "correctness", "safe": true,
        "posix_compliant": true,
    });
    trial.suite(&format!("{line}\n"), "kind = \"command\"\n")?;
    let ran = trial.room.run(&["dataset", "validate", "cases.jsonl"])?;
    trial.code(&ran, 2);
    trial.expect(ran.err.contains("not a shell command"), || ran.tail());
    Ok(())
}

fn undefined(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "prompt = \"{{ prompt }} {{ tagz }}\"\n")?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 2);
    trial.expect(ran.err.contains("tagz"), || format!("it is not named: {}", ran.err));
    let place = ran.err.lines().find(|it| it.contains("--> ")).unwrap_or_default();
    trial.expect(place.contains("probity.toml"), || format!("it is looked for at {place:?}"));
    Ok(())
}

fn columns(trial: &mut Trial<'_>) -> io::Result<()> {
    let mut rows = "id,prompt,expected_response,first more,second more\n".to_owned();
    for at in 0..300 {
        let _ = writeln!(rows, "c{at},say {at},{at},x,y");
    }
    trial.room.write("cases.csv", rows)?;
    let ran = trial.room.run(&["dataset", "validate", "cases.csv"])?;
    let told = said(&ran).matches("warning").count();
    trial.expect((2..=4).contains(&told), || format!("{told} warnings"));
    Ok(())
}

fn two_thresholds(trial: &mut Trial<'_>) -> io::Result<()> {
    let settings = "[fail_fast]\nthreshold = 3\nconsecutive_threshold = 5\n";
    trial.suite(&case("a", "say 1", "1"), settings)?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 2);
    Ok(())
}

fn no_expectation(trial: &mut Trial<'_>) -> io::Result<()> {
    trial
        .room
        .write("skills/git/SKILL.md", "---\nname: git\ndescription: Branches.\n---\nText.\n")?;
    let runner = "kind = \"activation\"\nskills = [\"skills\"]\n";
    trial.suite("{\"id\":\"a\",\"prompt\":\"rebase\"}\n", runner)?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 2);
    trial.suite("{\"id\":\"a\",\"prompt\":\"rebase\",\"should_activate\":false}\n", runner)?;
    let ran = trial.run(&["--dry-run"])?;
    trial.code(&ran, 0);
    Ok(())
}

fn temperature(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let suite =
        trial.room.read("probity.toml").replace("model = \"m\"", "model = \"m\"\ntemperature = -1");
    trial.room.write("probity.toml", suite)?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 2);
    Ok(())
}

fn signal(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let suite = "[backends.c]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"kill -9 $$\"]\n\
                 [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n";
    trial.room.write("probity.toml", suite)?;
    trial.run(&["--max-retries", "0"])?;
    let details = trial.first()?["classification"]["details"].clone();
    trial.expect(details["signal"] == "SIGKILL", || format!("of a run: {details}"));
    let line = json!({ "case_id": "a", "raw_response": null, "error": "the program was killed by signal 9" });
    trial.room.write("results.jsonl", format!("{line}\n"))?;
    trial.room.run(&["classify", "results.jsonl", "-o", "out.jsonl"])?;
    let line = trial.room.read("out.jsonl");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
    let details = &line["classification"]["details"];
    trial.expect(details["signal"] == "SIGKILL", || format!("of `classify`: {details}"));
    Ok(())
}

fn strict(trial: &mut Trial<'_>) -> io::Result<()> {
    let line = json!({ "case_id": "a", "raw_response": "Sure: {\"b\": 1}", "expected_format": "json", "strict": true });
    trial.room.write("results.jsonl", format!("{line}\n"))?;
    let ran = trial.room.run(&["classify", "results.jsonl", "-o", "out.jsonl"])?;
    let line = trial.room.read("out.jsonl");
    let is_told = said(&ran).contains("strict");
    trial.expect(is_told || line.contains("\"wrong_format\""), || format!("{}{line}", said(&ran)));
    Ok(())
}

fn surrogate(trial: &mut Trial<'_>) -> io::Result<()> {
    let line = "{\"id\":\"a\",\"prompt\":\"say \\ud800\",\"expected_response\":\"1\"}\n";
    trial.suite(line, "")?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 2);
    Ok(())
}

fn missing_model(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let suite = trial.room.read("probity.toml").replace("\"m\"", "\"nobody-has-this-model\"");
    trial.room.write("probity.toml", suite)?;
    let ran = trial.room.run(&["doctor"])?;
    trial.expect(ran.code != Some(0), || format!("{}{}", ran.out, ran.tail()));
    Ok(())
}

/// One digit of an answer is another one, behind the first page.
fn damaged_cache(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.answers(Script::default())?;
    let one = |at: u32| case(&format!("c{at}"), &format!("say {at}"), &at.to_string());
    trial.suite(&(1000..1100).map(one).collect::<String>(), "[cache]\npath = \"my.db\"\n")?;
    trial.room.prepare(&["run", "-q", "--cache"])?;
    let path = trial.room.path("my.db");
    let mut bytes = fs::read(&path)?;
    let found = bytes.windows(12).rposition(|it| it.starts_with(b"1050\""));
    let Some(at) = found.filter(|at| *at > 4096) else {
        return Err(io::Error::other("the answer is not in the file of the cache"));
    };
    bytes[at] = b'7';
    fs::write(&path, bytes)?;
    let ran = trial.room.run(&["run", "--cache"])?;
    trial.expect(said(&ran).contains("damaged"), || {
        format!("nothing is said of it: {}", said(&ran))
    });
    let wrong = trial.stored()?.iter().filter(|it| it["verdict"] != "pass").count();
    trial.expect(wrong == 0, || format!("{wrong} answers are not what was said"));
    Ok(())
}
