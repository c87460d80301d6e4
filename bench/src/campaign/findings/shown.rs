//! What people see: why a case failed, what went wrong, how a run came out.

use std::{io, time::Duration};

use probity_testkit::{Answer, Latency, Rule, Script, Trouble, When};
use serde_json::json;

use super::{Check, GATE, Trial, case, said};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("14: why a case failed is not told", why),
    ("14: annotations and comparisons show only the reply", why_elsewhere),
    ("14: `show` has no expectation, and JSON as it is stored", case_shown),
    ("14: a judge that cannot be read is an error that is ok", judge_unread),
    ("14: only the first violation of a schema is shown", violations),
    ("15: a dead server costs 19 s, and again with the next runner", dead_server),
    ("15: errors are shown as fingerprints", real_error),
    ("24: which cases failed is not on the screen", on_screen),
    ("24: there is no table over lanes", lanes),
    ("24: `fail` means two things", two_meanings),
    ("24: progress has 80 columns, and no colour", progress),
    ("24: a run that goes on forgets what passed before", resumed_progress),
    ("25: help leaves exit codes out, and nobody is led to `init`", led),
    ("26: an interval is not called one", confidence),
    ("32: escapes reach the terminal", escapes),
    ("32: escapes reach the terminal from imports and names of files", escapes_of_files),
];

fn why(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say blue", "green"), GATE)?;
    let ran =
        trial.room.run(&["run", "-o", "r.xml", "-o", "r.md", "-o", "r.html", "-o", "r.csv"])?;
    trial.code(&ran, 1);
    trial.expect(ran.out.contains("FAIL (exit code 1)"), || ran.out.clone());
    let shown = trial.room.run(&["show", "latest", "a"])?.out;
    for (name, text) in [("show", shown)]
        .into_iter()
        .chain(["r.xml", "r.md", "r.html", "r.csv"].map(|it| (it, trial.room.read(it))))
    {
        let is_told = text.contains("green") && text.contains("blue");
        trial.expect(is_told, || format!("{name} does not say what was expected"));
    }
    Ok(())
}

fn why_elsewhere(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say blue", "blue"), "")?;
    trial.room.prepare(&["run", "-q"])?;
    trial.answers(Script::always(Answer::text("crimson")))?;
    trial.suite(&case("a", "say blue", "blue"), "")?;
    let mut command = trial.room.command(&["run"]);
    command.env("GITHUB_ACTIONS", "true");
    let ran = trial.room.start(command)?.end()?;
    let note = ran.out.lines().find(|it| it.starts_with("::warning")).unwrap_or_default();
    let is_told = |text: &str| text.contains("blue") && text.contains("crimson");
    trial.expect(is_told(note), || format!("the annotation is {note:?}"));
    let [new, old] = trial.two_runs()?;
    for format in ["text", "md", "html"] {
        let words = ["compare", &old, &new, "--format", format];
        let compared = trial.room.run(&words)?.out;
        trial.expect(is_told(&compared), || format!("compared as {format}: {compared}"));
    }
    Ok(())
}

fn case_shown(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say blue", "green"), "")?;
    trial.room.prepare(&["run", "-q"])?;
    let shown = trial.room.run(&["show", "latest", "a"])?.out;
    let has = |name: &str, value: &str| {
        shown.lines().any(|it| it.trim_start().starts_with(name) && it.contains(value))
    };
    let is_whole = has("expected", "green") && has("actual", "blue");
    trial.expect(is_whole, || format!("no expectation: {shown}"));
    trial.expect(!shown.contains("{\""), || format!("JSON as it is stored: {shown}"));
    Ok(())
}

fn judge_unread(trial: &mut Trial<'_>) -> io::Result<()> {
    let rubric = json!([{ "type": "llm-rubric", "value": "It is polite." }]);
    let line = json!({ "id": "a", "prompt": "say 1", "assert": rubric });
    let unread =
        Rule::new(When::prompt_contains("It is polite."), Answer::text("Eight out of ten."));
    trial.answers(Script::default().rule(unread))?;
    trial.suite(&format!("{line}\n"), "judge = \"b\"\n")?;
    let ran = trial.room.run(&["run"])?;
    trial.code(&ran, 3);
    let line = ran.out.lines().find(|it| it.trim_start().starts_with("a ")).unwrap_or_default();
    trial.expect(line.contains("judge"), || format!("after the run: {line:?}"));
    let shown = trial.room.run(&["show"])?.out;
    let is_ok = |line: &str| line.split_whitespace().any(|it| it == "ok");
    let told = shown.lines().find(|it| it.trim_start().starts_with("a ")).unwrap_or_default();
    trial.expect(told.contains("judge") && !is_ok(told), || shown.clone());
    Ok(())
}

fn violations(trial: &mut Trial<'_>) -> io::Result<()> {
    let schema = json!({ "type": "object", "properties": { "size": { "type": "integer" }, "colour": { "type": "integer" } } });
    let line = json!({ "id": "a", "prompt": r#"say {"size":"x","colour":"y"}"#, "schema": schema });
    trial.suite(&format!("{line}\n"), "")?;
    trial.room.prepare(&["run", "-q"])?;
    let shown = trial.room.run(&["show", "latest", "a"])?.out;
    let why = shown.lines().find(|it| it.trim_start().starts_with("why")).unwrap_or_default();
    trial.expect(why.contains("size") && why.contains("colour"), || format!("{why:?} of {shown}"));
    Ok(())
}

fn dead_server(trial: &mut Trial<'_>) -> io::Result<()> {
    let cases: String = (0..20).map(|at| case(&format!("c{at}"), "say 1", "1")).collect();
    trial.suite(&cases, "[[runners]]\nname = \"s\"\ndataset = \"cases.jsonl\"\n")?;
    trial.change(&trial.model.url(), "http://127.0.0.1:1")?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 3);
    trial.expect(ran.took < Duration::from_secs(12), || format!("{:?}", ran.took));
    trial.expect(ran.key("TOTAL_CALLS") == Some("3"), || {
        format!("{:?} calls for two runners", ran.key("TOTAL_CALLS"))
    });
    trial.expect(ran.err.contains("nothing listens at"), || ran.tail());
    trial.expect(ran.err.contains("probity doctor"), || format!("not what to do: {}", ran.err));
    Ok(())
}

/// The text of the server, its status, and where it is; its address without what is secret in it.
fn real_error(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.answers(Script::always(Answer::fault(Trouble::BadKey)))?;
    let cases: String = (0..4).map(|at| case(&format!("c{at}"), "say 1", "1")).collect();
    trial.suite(&cases, "")?;
    let url = trial.model.url();
    trial.change("/v1\"", "/v1?key=QuerySecret9912\"")?;
    let ran = trial.room.run(&["run"])?;
    trial.code(&ran, 3);
    let told = said(&ran);
    let place = url.trim_start_matches("http://");
    for wanted in ["Incorrect API key provided", "401", place] {
        trial.expect(told.contains(wanted), || format!("no {wanted:?} in {told}"));
    }
    for hidden in ["<n>", "QuerySecret"] {
        trial.expect(!told.contains(hidden), || format!("{hidden:?} in {told}"));
    }
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

fn lanes(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&(case("a", "say 1", "1") + &case("b", "say 2", "3")), "")?;
    let url = trial.model.url();
    let second =
        format!("[backends.second]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"n\"\n");
    let suite = trial.room.read("probity.toml") + &second;
    trial.room.write("probity.toml", suite)?;
    let ran = trial.room.run(&["run"])?;
    trial.code(&ran, 0);
    let rows: Vec<&str> = ran.out.lines().filter(|it| it.contains("50.0 %")).collect();
    let of = |name: &str| rows.iter().any(|it| it.split_whitespace().any(|word| word == name));
    let has_head = ran.out.lines().any(|it| it.contains("backend") && it.contains("passed"));
    trial.expect(has_head && of("b") && of("second"), || ran.out.clone());
    Ok(())
}

/// A verdict and a class: two cases fail, and the class of only one of them is `fail`.
fn two_meanings(trial: &mut Trial<'_>) -> io::Result<()> {
    let refusal = Answer::text("I'm sorry, but I can't help with that.");
    trial.answers(Script::default().rule(Rule::new(When::prompt_contains("refuses"), refusal)))?;
    trial.suite(&(case("a", "say 1", "2") + &case("b", "refuses", "2")), "")?;
    let ran = trial.room.run(&["run"])?;
    trial.code(&ran, 0);
    trial.expect(ran.out.contains("2 failed"), || ran.out.clone());
    let is_bare =
        ran.out.contains("1 fail,") || ran.out.contains("1 fail\n") || ran.out.contains("2 fail,");
    trial.expect(!is_bare, || ran.out.clone());
    Ok(())
}

/// Runs the program in a terminal of so many columns, and prints what comes of it.
const IN_TERMINAL: &str = "
import fcntl, os, pty, struct, sys, termios
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, int(sys.argv[1]), 0, 0))
    os.execv(sys.argv[2], sys.argv[2:])
while True:
    try:
        output = os.read(terminal, 65536)
    except OSError:
        break
    if not output:
        break
    sys.stdout.buffer.write(output)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";

fn in_terminal(trial: &Trial<'_>, columns: u32, words: &[&str]) -> io::Result<String> {
    let inner = trial.room.command(words);
    let mut command = trial.room.any("python3".as_ref());
    command.args(["-c", IN_TERMINAL, &columns.to_string()]).arg(inner.get_program()).args(words);
    command.env("TERM", "xterm-256color");
    Ok(trial.room.start(command)?.end()?.out)
}

/// The columns that a line takes: codes take none.
fn columns(line: &str) -> usize {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().chars().filter(|it| *it != '\r').count();
    let after = |part: &str| {
        let end = part.find(|it: char| it.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        part[end..].chars().filter(|it| *it != '\r').count()
    };
    first + parts.map(after).sum::<usize>()
}

fn progress(trial: &mut Trial<'_>) -> io::Result<()> {
    let latency = Latency::fixed(Duration::from_millis(400));
    trial.answers(Script { latency, ..Script::default() })?;
    trial.suite(&(case("a", "say 1", "1") + &case("b", "say 2", "3")), "")?;
    let (narrow, wide) = (
        in_terminal(trial, 80, &["run", "-j", "1"])?,
        in_terminal(trial, 140, &["run", "-j", "1"])?,
    );
    let widest = |text: &str| text.split('\n').map(columns).max().unwrap_or(0);
    trial.expect(widest(&narrow) <= 80, || format!("{} of 80 columns", widest(&narrow)));
    trial.expect(widest(&wide) > 84 && widest(&wide) <= 140, || {
        format!("{} of 140 columns", widest(&wide))
    });
    let is_coloured = |line: &str| line.contains("/2 done") && line.contains("\u{1b}[3");
    trial.expect(wide.split('\n').any(is_coloured), || format!("no colour in {wide:?}"));
    Ok(())
}

fn resumed_progress(trial: &mut Trial<'_>) -> io::Result<()> {
    let latency = Latency::fixed(Duration::from_millis(300));
    trial.answers(Script { latency, ..Script::default() })?;
    let one = |at: u32| case(&format!("c{at}"), &format!("say {at}"), &at.to_string());
    trial.suite(&(0..6).map(one).collect::<String>(), "")?;
    trial.run(&["-j", "1", "--max-calls", "3"])?;
    let shown = in_terminal(trial, 100, &["run", "-j", "1", "--resume"])?;
    let mut seen = 0;
    for line in shown.split('\n').filter(|it| it.contains("/6 done")) {
        let before = line.split("/6 done").next().unwrap_or_default();
        let done: String = before.chars().rev().take_while(char::is_ascii_digit).collect();
        let done: String = done.chars().rev().collect();
        trial.expect(line.contains(&format!("{done} passed")), || format!("{line:?}"));
        seen += 1;
    }
    trial.expect(seen > 0, || format!("no progress in {shown:?}"));
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

fn confidence(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&(case("a", "say 1", "1") + &case("b", "say 2", "3")), "")?;
    let ran = trial.room.run(&["run"])?;
    trial.expect(ran.out.contains("95 % CI"), || ran.out.clone());
    Ok(())
}

/// What steers a terminal, or is there and not seen.
const HIDDEN: [char; 9] = [
    '\u{1b}',
    '\u{7}',
    '\u{9b}',
    '\u{e0041}',
    '\u{ad}',
    '\u{115f}',
    '\u{3164}',
    '\u{180e}',
    '\u{fff9}',
];

fn hidden() -> String {
    HIDDEN.into_iter().collect()
}

fn expect_visible(trial: &mut Trial<'_>, said: &str) {
    for hidden in HIDDEN {
        let at = said.find(hidden);
        trial.expect(at.is_none(), || format!("{hidden:?} at {at:?} of what is shown"));
    }
}

fn escapes(trial: &mut Trial<'_>) -> io::Result<()> {
    let nasty = format!("x\u{1b}[31m\u{9b}2J{}y", hidden());
    let line = json!({ "id": "a", "prompt": format!("say {nasty}"), "tags": [nasty], "expected_response": nasty.clone() + "z" });
    trial.suite(&format!("{line}\n"), "")?;
    let command = format!("echo {nasty}; rm -rf / \u{9b}2J");
    let mut shown = String::new();
    for words in [
        &["run", "-o", "r.html", "-o", "r.md", "-o", "r.xml"][..],
        &["show"],
        &["show", "latest", "a"],
        &["dataset", "stats", "cases.jsonl"],
        &["dataset", "lint", "cases.jsonl"],
        &["check", "command", &command],
        &["check", "refusal", "--text", &nasty],
        &["run", "no\u{1b}[31mfile.toml"],
    ] {
        shown.push_str(&said(&trial.room.run(words)?));
    }
    shown.push_str(&trial.room.read("r.md"));
    shown.push_str(&trial.room.read("r.xml"));
    // The page has its data as it is, and spells it out when it is shown.
    let page = trial.room.read("r.html");
    let (before, rest) = page.split_once("<script type=\"application/json\"").unwrap_or_default();
    trial.expect(!before.is_empty(), || "no report".to_owned());
    shown.push_str(before);
    shown.push_str(rest.split_once("</script>").unwrap_or_default().1);
    expect_visible(trial, &shown);
    Ok(())
}

fn escapes_of_files(trial: &mut Trial<'_>) -> io::Result<()> {
    let nasty = format!("x\u{1b}[31m{}y", hidden());
    let line = json!({ "id": "a", "prompt": "p", nasty.clone(): 1, "match": nasty });
    let name = format!("{nasty}.jsonl");
    trial.room.write(&name, format!("{line}\n"))?;
    let config = json!({
        "prompts": ["{{q}}"],
        "tests": [{ "vars": { "q": "hi" }, "assert": [{ "type": nasty, "value": nasty }], nasty.clone(): nasty }],
    });
    trial.room.write("promptfooconfig.yaml", config.to_string())?;
    let mut shown = String::new();
    for words in [
        &["dataset", "validate", &name][..],
        &["dataset", "lint", &name],
        &["dataset", "stats", &name],
        &["import", "promptfooconfig.yaml", "-o", "out", "--force"],
        &["run", "promptfooconfig.yaml"],
    ] {
        shown.push_str(&said(&trial.room.run(words)?));
    }
    trial.expect(!shown.is_empty(), || "nothing is said".to_owned());
    expect_visible(trial, &shown);
    Ok(())
}
