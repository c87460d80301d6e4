//! Those that came later: how a run is cut off, what imports send, small things, and what takes memory and time.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Check, GATE, Trial, case};

pub(super) const CHECKS: [(&str, Check); 16] = [
    ("3: `execution` is ignored", execution),
    ("9: no figures of the detectors in a run of commands", confusion),
    ("9: no mean over results and over lanes", means),
    ("11: cases that were cut off are forgotten", cut_off),
    ("12: a gateway that gives up is no timeout", timeouts),
    ("21: imports send what stands for something else", imported),
    ("22: dollars have four decimals", small_dollars),
    ("22: half of a pair of escapes is taken", surrogate),
    ("22: two thresholds that differ are taken", two_thresholds),
    ("22: doctor is content with a model that is not there", missing_model),
    ("24: which cases failed is not on the screen", on_screen),
    ("25: help leaves exit codes out, and nobody is led to `init`", led),
    ("38: what waits is counted and not weighed", weighed),
    ("38: 300,000 problems in a line take a minute", problems),
    ("38: files are read without a limit", limits),
    ("39: a byte order mark is refused", byte_order_mark),
];

fn execution(trial: &mut Trial<'_>) -> io::Result<()> {
    trial
        .suite("{\"id\":\"a\",\"prompt\":\"say true\",\"execution\":{\"exit_code\":7}}\n", GATE)?;
    let ran = trial.run(&[])?;
    trial.expect(ran.code != Some(0), || ran.tail());
    let stored = trial.stored()?;
    let verdict = stored.first().map(|it| it["verdict"].clone()).unwrap_or_default();
    trial.expect(verdict != "pass", || format!("its verdict is {verdict}"));
    Ok(())
}

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
    let report = trial.room.read("r.json");
    for key in ["true_positives", "precision", "recall", "f1"] {
        trial.expect(report.contains(key), || format!("no `{key}` in the report"));
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

fn cut_off(trial: &mut Trial<'_>) -> io::Result<()> {
    let cases: String =
        (0..4).map(|at| case(&format!("c{at}"), &format!("never {at}"), "1")).collect();
    trial.suite(&cases, "")?;
    let running = trial.room.start(trial.room.command(&["run", "--porcelain", "-j", "4"]))?;
    let begun = Instant::now();
    // A backend that has not answered yet is not asked everything at once.
    while trial.model.seen().asked < 2 && begun.elapsed() < Duration::from_mins(1) {
        thread::sleep(Duration::from_millis(5));
    }
    running.signal(Signal::INT);
    let ran = running.end()?;
    let asked = trial.model.seen().asked;
    trial.expect(ran.key("TOTAL_CALLS") == Some(asked.to_string().as_str()), || {
        format!("{:?} calls of {asked}, {}", ran.key("TOTAL_CALLS"), ran.tail())
    });
    let shown = trial.room.run(&["show"])?.out;
    trial.expect(shown.contains("interrupted"), || format!("nothing says why: {shown}"));
    // A budget knows of them when the run goes on.
    let ran =
        trial.run(&["--resume", "--max-calls", "6", "--timeout", "1s", "--max-retries", "0"])?;
    let made = trial.model.seen().asked;
    trial.expect(made <= 6, || format!("{made} calls, {}", ran.tail()));
    Ok(())
}

fn timeouts(trial: &mut Trial<'_>) -> io::Result<()> {
    for words in [
        &["--status", "504", "--text", "upstream"][..],
        &["--status", "408", "--text", "slow"],
        &["--text", "the request timed-out"],
        &["--text", "read time-out"],
    ] {
        let words: Vec<&str> = ["check", "error"].iter().chain(words).copied().collect();
        let ran = trial.room.run(&words)?;
        trial.expect(ran.out.starts_with("timeout"), || format!("{words:?}: {}", ran.out));
    }
    Ok(())
}

fn imported(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.room.write("x.txt", "hello from a file\n")?;
    trial.room.write("chat.json", "[{\"role\":\"user\",\"content\":\"Hi {{x}}\"}]")?;
    let config = "prompts: ['Say {{x}}', 'file://chat.json']\nproviders: [echo]\ntests:\n  \
                  - vars: { x: 'file://x.txt', rows: [{ a: 1 }, { a: 2 }] }\n";
    trial.room.write("promptfooconfig.yaml", config)?;
    let ran = trial.run(&["promptfooconfig.yaml"])?;
    trial.expect(ran.key("N_CASES") == Some("2"), || {
        format!("{:?} cases, {}", ran.key("N_CASES"), ran.tail())
    });
    for case in trial.stored()? {
        let sent = case["prompt"].as_str().unwrap_or_default();
        let is_filled =
            sent.contains("hello from a file") && !sent.contains("{{") && !sent.contains("role");
        trial.expect(is_filled, || format!("{sent:?} was sent"));
    }
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

fn surrogate(trial: &mut Trial<'_>) -> io::Result<()> {
    let line = "{\"id\":\"a\",\"prompt\":\"say \\ud800\",\"expected_response\":\"1\"}\n";
    trial.suite(line, "")?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 2);
    Ok(())
}

fn two_thresholds(trial: &mut Trial<'_>) -> io::Result<()> {
    let settings = "[fail_fast]\nthreshold = 3\nconsecutive_threshold = 5\n";
    trial.suite(&case("a", "say 1", "1"), settings)?;
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

fn on_screen(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&(case("good", "say 1", "1") + &case("wrong", "say blue", "green")), GATE)?;
    let ran = trial.room.run(&["run"])?;
    trial.code(&ran, 1);
    let line = ran.out.lines().find(|it| it.trim_start().starts_with("wrong "));
    let is_told = line.is_some_and(|it| it.contains("green") || it.contains("blue"));
    trial.expect(is_told, || ran.out.clone());
    Ok(())
}

fn led(trial: &mut Trial<'_>) -> io::Result<()> {
    let help = trial.room.run(&["--help"])?.out;
    for code in ["\n  1 ", "\n  130 "] {
        trial.expect(help.contains(code), || format!("no exit code{code:?} in the help"));
    }
    let ran = trial.room.run(&["run"])?;
    trial.expect(ran.err.contains("probity init"), || ran.tail());
    Ok(())
}

fn weighed(trial: &mut Trial<'_>) -> io::Result<()> {
    // 80 answers of 4 MiB; all of them at once would not fit.
    let cases: String =
        (0..80).map(|at| case(&format!("c{at}"), &format!("huge {at}"), "1")).collect();
    trial.suite(&cases, "")?;
    let words = ["run", "--porcelain", "-j", "8"];
    let command = trial.room.limited("ulimit -d 250000", &words);
    let ran = trial.room.start(command)?.end()?;
    trial.expect(ran.key("N_CASES") == Some("80"), || ran.tail());
    let command = trial.room.limited("ulimit -d 250000", &["report", "-o", "r.json"]);
    let ran = trial.room.start(command)?.end()?;
    trial.expect(ran.code == Some(0), || format!("report: {}", ran.tail()));
    Ok(())
}

fn problems(trial: &mut Trial<'_>) -> io::Result<()> {
    let mut line = serde_json::Map::new();
    for (key, value) in [("id", "a"), ("prompt", "say 1"), ("expected_response", "1")] {
        line.insert(key.to_owned(), value.into());
    }
    line.extend((0..300_000).map(|at| (format!("k{at}"), 1.into())));
    trial.suite(&format!("{}\n", Value::Object(line)), "")?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 2);
    trial.expect(ran.took < Duration::from_secs(45), || format!("{:?}", ran.took));
    trial.expect(ran.err.len() < 1 << 20, || format!("{} bytes are said", ran.err.len()));
    Ok(())
}

fn limits(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let suite = trial.room.read("probity.toml") + &format!("# {}\n", "x".repeat(200 << 20));
    trial.room.write("probity.toml", suite)?;
    let command = trial.room.limited("ulimit -d 150000", &["run", "--porcelain"]);
    let ran = trial.room.start(command)?.end()?;
    trial.code(&ran, 2);
    trial.expect(!ran.is_crash(), || ran.tail());
    Ok(())
}

fn byte_order_mark(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "with a mark", "marked"), "")?;
    let ran = trial.run(&["--max-retries", "0"])?;
    trial.code(&ran, 0);
    let stored = trial.stored()?;
    let verdict = stored.first().map(|it| it["verdict"].clone()).unwrap_or_default();
    trial.expect(verdict == "pass", || format!("its verdict is {verdict}"));
    Ok(())
}
