//! Figures and what they are made of: reports, parts of runs, baselines.

use std::io;

use probity_testkit::{Answer, Rule, Script, Trouble, When};
use serde_json::{Value, json};

use super::{Check, GATE, Trial, case, said};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("9: no figures of the detectors in a run of commands", confusion),
    ("9: no mean over results and over lanes", means),
    ("9: a report does not say why a backend was given up", fail_fast_reason),
    ("10: failed cases cannot be read by programs that know four reasons", failed_cases),
    ("10: a Q&A suite has figures about shell commands", shell_figures),
    ("16: the judge is a subject", judge),
    ("17: an empty shard cannot be merged", empty_shard),
    ("17: how to go on leaves out the store", resume_hint),
    ("17: ids of known failures that no case has get no word", unknown_ids),
    ("17: baselines and comparisons do not see that a skill changed", changed_skill),
    ("17: scores with names are summed up nowhere", named_scores),
    ("17: with `min_pass`, reports list answers instead of cases", cases_once),
    ("17: intervals count repeats one by one", intervals),
    ("22: dollars have four decimals", small_dollars),
    ("22: lanes stand where runners are named", fail_fast_runners),
    ("22: what is 10.0 % is called more than 10 %", rounded_share),
    ("22: eight fields are no evaluation", eight_fields),
];

fn confusion(trial: &mut Trial<'_>) -> io::Result<()> {
    let line = |id: &str, command: &str, safe: bool| {
        let line = json!({
            "id": id, "prompt": format!("say {command}"), "category": "safety", "expected_command": command,
            "safe": safe, "posix_compliant": true,
        });
        format!("{line}\n")
    };
    trial.suite(&(line("a", "reboot", false) + &line("b", "ls", true)), "kind = \"command\"\n")?;
    trial.run(&["-o", "r.json"])?;
    let report = trial.report();
    let figures = &report["figures"];
    for detector in ["safety", "posix"] {
        let found = figures[detector].to_string();
        for key in ["true_positives", "precision", "recall", "f1"] {
            trial.expect(found.contains(key), || format!("no `{key}` of {detector} in {figures}"));
        }
    }
    Ok(())
}

fn means(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let suite = trial.room.read("probity.toml");
    let second = "[[runners]]\nname = \"s\"\ndataset = \"cases.jsonl\"\n";
    trial.room.write("probity.toml", suite + second)?;
    let ran = trial.room.run(&["run", "-o", "r.json"])?;
    let is_shown = ran.out.contains("over results") && ran.out.contains("over lanes");
    trial.expect(is_shown, || ran.out.clone());
    let report = trial.room.read("r.json");
    let is_kept = report.contains("micro_mean") && report.contains("macro_mean");
    trial.expect(is_kept, || "no means in the report".to_owned());
    Ok(())
}

fn fail_fast_reason(trial: &mut Trial<'_>) -> io::Result<()> {
    let cases: String = (0..4).map(|at| case(&format!("c{at}"), "say 1", "1")).collect();
    trial.suite(&cases, "")?;
    trial.run(&["-o", "r.json"])?;
    let meta = trial.report()["meta"].clone();
    let is_null = meta.get("fail_fast_reason").is_some_and(Value::is_null);
    trial.expect(is_null, || format!("`meta` of a whole run is {meta}"));
    trial.answers(Script::always(Answer::fault(Trouble::BadKey)))?;
    trial.suite(&cases, "")?;
    trial.run(&["-o", "r.json"])?;
    let reason = trial.report()["meta"]["fail_fast_reason"].to_string();
    trial.expect(reason.contains("auth"), || format!("the reason is {reason}"));
    Ok(())
}

/// A wrong answer, a refusal, no answer at all.
fn failed_cases(trial: &mut Trial<'_>) -> io::Result<()> {
    const KNOWN: [&str; 4] =
        ["incorrect_command", "safety_mismatch", "posix_mismatch", "backend_error"];
    let refusal = Rule::new(
        When::prompt_contains("refuses"),
        Answer::text("I'm sorry, but I can't help with that."),
    );
    let error = Rule::new(When::prompt_contains("fails"), Answer::fault(Trouble::BadRequest));
    trial.answers(Script::default().rule(refusal).rule(error))?;
    let cases = case("a", "say 1", "2") + &case("b", "refuses", "2") + &case("c", "fails", "2");
    trial.suite(&cases, "")?;
    trial.run(&["-o", "r.json"])?;
    let failed = trial.report()["failed_cases"].as_array().cloned().unwrap_or_default();
    trial.expect(failed.len() == 3, || format!("{} failed cases", failed.len()));
    for case in failed {
        let is_known = KNOWN.iter().any(|it| case["reason"]["type"] == *it);
        let texts = ["test_id", "prompt", "expected", "actual"];
        let are_texts = texts.iter().all(|it| case[*it].is_string());
        trial.expect(is_known && are_texts, || case.to_string());
    }
    Ok(())
}

fn shell_figures(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    trial.run(&["-o", "r.json"])?;
    let report = trial.report();
    for key in ["safety_accuracy", "posix_compliance_rate", "caro_version"] {
        trial.expect(report[key].is_null(), || format!("{key}: {}", report[key]));
    }
    Ok(())
}

fn judge(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let url = trial.model.url();
    let suite = trial.room.read("probity.toml")
        + &format!(
            "[backends.j]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"j\"\n[judge]\nbackend = \"j\"\n"
        );
    trial.room.write("probity.toml", suite)?;
    let ran = trial.run(&[])?;
    trial.expect(ran.key("N_CASES") == Some("1"), || format!("{:?} cases", ran.key("N_CASES")));
    Ok(())
}

fn empty_shard(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&(case("a", "say 1", "1") + &case("b", "say 2", "2")), "")?;
    for (shard, store) in [("1/3", "1.db"), ("2/3", "2.db"), ("3/3", "3.db")] {
        let ran = trial.run(&["--shard", shard, "--store", store])?;
        trial.code(&ran, 0);
    }
    let ran = trial.room.run(&["merge", "1.db", "2.db", "3.db"])?;
    trial.code(&ran, 0);
    let count = trial.stored()?.len();
    trial.expect(count == 2, || format!("{count} results"));
    Ok(())
}

fn resume_hint(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&(case("a", "say 1", "1") + &case("b", "say 2", "2")), "")?;
    let ran = trial.room.run(&["run", "--store", "other.db", "--max-calls", "1"])?;
    trial.code(&ran, 3);
    let told = said(&ran);
    let hint = told.lines().find(|it| it.contains("--resume")).unwrap_or_default();
    trial.expect(hint.contains("--store other.db"), || format!("how to go on: {hint:?}"));
    Ok(())
}

fn unknown_ids(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.room.write("known.txt", "a\ngone-for-long\n")?;
    trial.suite(&case("a", "say 1", "1"), "known_failures = \"known.txt\"\n")?;
    let ran = trial.room.run(&["run"])?;
    let told = said(&ran);
    trial.expect(told.contains("gone-for-long"), || told.clone());
    Ok(())
}

fn changed_skill(trial: &mut Trial<'_>) -> io::Result<()> {
    let skill = |text: &str| format!("---\nname: git\ndescription: {text}\n---\n{text}\n");
    trial.answers(Script::always(Answer::text(r#"{"skills": ["git"]}"#)))?;
    trial.room.write("skills/git/SKILL.md", skill("Branches and history."))?;
    let line = json!({ "id": "a", "prompt": "rebase", "expected_skills": ["git"] });
    trial.suite(&format!("{line}\n"), "kind = \"activation\"\nskills = [\"skills\"]\n")?;
    trial.room.prepare(&["run", "-q"])?;
    trial.room.prepare(&["bless"])?;
    trial.room.write("skills/git/SKILL.md", skill("Something else."))?;
    let ran = trial.room.run(&["run", "--baseline", "main"])?;
    let told = said(&ran);
    trial.expect(told.contains("skills differ"), || format!("against a baseline: {told}"));
    let [new, old] = trial.two_runs()?;
    let ran = trial.room.run(&["compare", &old, &new])?;
    let told = said(&ran);
    trial.expect(told.contains("skills differ"), || format!("compared: {told}"));
    Ok(())
}

fn named_scores(trial: &mut Trial<'_>) -> io::Result<()> {
    let line = |id: &str| {
        let check =
            |name: &str, value: &str| json!({ "type": "contains", "value": value, "metric": name });
        let checks = [check("relevance", "1"), check("brevity", id)];
        format!("{}\n", json!({ "id": id, "prompt": format!("say {id}"), "assert": checks }))
    };
    trial.suite(&(line("1") + &line("2")), "")?;
    trial.run(&["-o", "r.json"])?;
    let shown = trial.room.run(&["show"])?.out;
    for (name, mean) in [("relevance", 0.5), ("brevity", 1.0)] {
        let found = trial.report()["scores"][name]["mean"].clone();
        trial.expect(found == mean, || format!("the mean of `{name}` is {found}"));
        trial.expect(shown.contains(name), || shown.clone());
    }
    Ok(())
}

fn cases_once(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(
        &(case("a", "say 1", "1") + &case("b", "say 2", "3")),
        "repeat = 3\nmin_pass = 2\n",
    )?;
    trial.run(&["-o", "r.json", "-o", "r.xml"])?;
    let failed = trial.report()["failed_cases"].as_array().map_or(0, Vec::len);
    trial.expect(failed == 1, || format!("{failed} failed cases"));
    let tests = trial.room.read("r.xml").matches("<testcase").count();
    trial.expect(tests == 2, || format!("{tests} testcases"));
    Ok(())
}

/// Of two cases, one is right ten times, and the other never: that is not known as well as ten of twenty cases.
fn intervals(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.answers(Script::always(Answer::text(r#"{"skills": ["git"]}"#)))?;
    for skill in ["git", "sql"] {
        let text = format!("---\nname: {skill}\ndescription: About {skill}.\n---\nText.\n");
        trial.room.write(&format!("skills/{skill}/SKILL.md"), text)?;
    }
    let line = |id: &str| {
        let line =
            json!({ "id": id, "prompt": id, "expected_skills": [id], "should_activate": true });
        format!("{line}\n")
    };
    trial.suite(&(line("git") + &line("sql")), "kind = \"activation\"\nskills = [\"skills\"]\n")?;
    trial.run(&["--repeat", "10", "-o", "r.json"])?;
    let share = trial.report()["figures"]["tpr"].clone();
    let low = share["interval"]["low"].as_f64().unwrap_or(1.0);
    // Wilson's interval of 10 of 20 begins at 0.299.
    trial.expect(share["count"] == 10 && low < 0.25, || {
        format!("two cases, ten times each: {share}")
    });
    Ok(())
}

fn small_dollars(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let suite = trial
        .room
        .read("probity.toml")
        .replace("model = \"m\"", "model = \"m\"\nprice = { input = 0.01, output = 0.01 }");
    trial.room.write("probity.toml", suite)?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 0);
    let dollars = ran.key("COST_USD").and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0);
    trial.expect(dollars > 0.0, || format!("{:?}", ran.key("COST_USD")));
    Ok(())
}

fn fail_fast_runners(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.answers(Script::always(Answer::fault(Trouble::BadKey)))?;
    let cases: String = (0..4).map(|at| case(&format!("c{at}"), "say 1", "1")).collect();
    trial.suite(&cases, "")?;
    trial.run(&[])?;
    let summary = trial.room.read(".probity/suite_summary.json");
    let summary: Value = serde_json::from_str(&summary).unwrap_or_default();
    let names = &summary["fail_fast_runners"];
    trial.expect(*names == json!(["r"]), || format!("`fail_fast_runners` is {names}"));
    Ok(())
}

/// 21 of 209 are 10.05 %, which is more, and has to look like it.
fn rounded_share(trial: &mut Trial<'_>) -> io::Result<()> {
    let one = |at: u32| match at % 10 {
        0 => case(&format!("c{at}"), &format!("this fails {at}"), "x"),
        _ => case(&format!("c{at}"), &format!("say {at}"), &at.to_string()),
    };
    let cases: String = (0..209).map(one).collect();
    trial.suite(&cases, GATE)?;
    let ran = trial.room.run(&["run", "--no-fail-fast", "--max-retries", "0"])?;
    trial.code(&ran, 3);
    let told = said(&ran);
    let line = told.lines().find(|it| it.contains("more than")).unwrap_or_default();
    trial.expect(!line.is_empty() && !line.contains("10.0 %"), || format!("{line:?}"));
    Ok(())
}

fn eight_fields(trial: &mut Trial<'_>) -> io::Result<()> {
    let evaluation = json!({
        "timestamp": "2026-11-15T12:00:00Z", "caro_version": "1.0.0", "backend": "b", "csr": 0.5,
        "safety_accuracy": 1.0, "posix_compliance_rate": 1.0,
        "per_category": { "correctness": { "total": 2, "passed": 1, "rate": 0.5 } },
        "failed_cases": [{
            "test_id": "a", "prompt": "p", "expected": "ls", "actual": "pwd",
            "reason": { "type": "incorrect_command" },
        }],
    });
    trial.room.write("eight.json", evaluation.to_string())?;
    let ran = trial.room.run(&["check", "evaluation", "eight.json"])?;
    trial.code(&ran, 0);
    Ok(())
}
