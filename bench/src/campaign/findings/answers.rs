//! What is sent, what an answer is, and what becomes of calls that are cut off.

use std::io;

use probity_testkit::{Answer, Fault, RetryAfter, Rule, Script, Trouble, When};
use serde_json::json;

use super::{Check, Trial, case};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("8: `system` is not rendered", system),
    ("11: cases that were cut off are forgotten", cut_off),
    ("11: what a case cost that was cut off is forgotten", cut_off_dollars),
    ("12: a gateway that gives up is no timeout", timeouts),
    ("12: a case takes longer than its limit, and another limit is told", limits),
    ("13: a tool call is a crash", tool_call),
    ("13: what a model thinks is a part of its answer", reasoning),
    ("13: a reply of nothing visible is an answer", invisible),
];

fn system(trial: &mut Trial<'_>) -> io::Result<()> {
    let of_case = "{\"id\":\"a\",\"prompt\":\"say 1\",\"system\":\"Speak {{ tongue }}\",\"prompt_vars\":{\"tongue\":\"Latin\"},\"expected_response\":\"1\"}\n";
    let of_runner = "{\"id\":\"b\",\"prompt\":\"say 2\",\"prompt_vars\":{\"tongue\":\"Greek\"},\"expected_response\":\"2\"}\n";
    trial.suite(&format!("{of_case}{of_runner}"), "system = \"Answer in {{ tongue }}\"\n")?;
    trial.run(&[])?;
    let sent: String = trial.model.seen().last.iter().map(|it| it.json().to_string()).collect();
    for wanted in ["Speak Latin", "Answer in Greek"] {
        trial.expect(sent.contains(wanted), || sent.clone());
    }
    Ok(())
}

/// Two runners that do not come to their end.
fn cut_off(trial: &mut Trial<'_>) -> io::Result<()> {
    let cases: String =
        (0..8).map(|at| case(&format!("c{at}"), &format!("never {at}"), "1")).collect();
    trial.suite(&cases, "[[runners]]\nname = \"s\"\ndataset = \"cases.jsonl\"\n")?;
    let ran = trial.interrupted(&["-j", "4", "--events", "events.jsonl"], 2)?;
    let asked = trial.model.seen().asked;
    trial.expect(ran.key("TOTAL_CALLS") == Some(asked.to_string().as_str()), || {
        format!("{:?} calls of {asked}, {}", ran.key("TOTAL_CALLS"), ran.tail())
    });
    let shown = trial.room.run(&["show"])?.out;
    trial.expect(shown.contains("interrupted"), || format!("nothing says why: {shown}"));
    let events = trial.room.read("events.jsonl");
    let (begun, aborted) =
        (events.matches("\"case-started\"").count(), events.matches("\"case-aborted\"").count());
    trial.expect(begun > 0 && begun == aborted, || format!("{aborted} of {begun} were aborted"));
    let summary = trial.room.read(".probity/suite_summary.json");
    let calls = format!("\"total_calls\": {asked},");
    trial.expect(summary.contains(&calls), || format!("not {calls} in {summary}"));
    let told = summary.matches("\"reason\": \"interrupted\"").count();
    trial.expect(told == 2, || format!("{told} of 2 runners say how they ended: {summary}"));
    // A budget knows of them when the run goes on.
    let words = ["--resume", "--no-fail-fast", "--timeout", "1s", "--max-retries", "0"];
    let ran = trial.run(&[&words[..], &["--max-calls", "6"]].concat())?;
    let made = trial.model.seen().asked;
    trial.expect(made <= 6, || format!("{made} calls, {}", ran.tail()));
    Ok(())
}

/// The answer was paid for when the judge does not come to an end.
fn cut_off_dollars(trial: &mut Trial<'_>) -> io::Result<()> {
    let line = json!({ "id": "a", "prompt": "say 1", "assert": [{ "type": "llm-rubric", "value": "never" }] });
    trial.suite(&format!("{line}\n"), "judge = \"b\"\n")?;
    trial.change("model = \"m\"", "model = \"m\"\nprice = { input = 100000, output = 100000 }")?;
    let ran = trial.interrupted(&[], 2)?;
    let dollars = |key: Option<&str>| key.and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0);
    let cost = dollars(ran.key("COST_USD"));
    trial.expect(cost > 0.0, || format!("{:?}", ran.key("COST_USD")));
    let summary = trial.room.read(".probity/suite_summary.json");
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap_or_default();
    let (told, calls) = (&summary["total_cost_usd"], &summary["total_calls"]);
    trial.expect(told.as_f64().unwrap_or(0.0) > 0.0 && *calls == 2, || {
        format!("{told} dollars and {calls} calls in the summary")
    });
    // A budget knows of them when the run goes on: there is nothing left.
    let ran = trial.run(&["--resume", "--max-cost", ran.key("COST_USD").unwrap_or("0")])?;
    let made = trial.model.seen().asked;
    trial.expect(made == 2, || format!("{made} calls, {}", ran.tail()));
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

/// The first answer asks for a pause that takes most of the time, and the next one never comes.
fn limits(trial: &mut Trial<'_>) -> io::Result<()> {
    let pause = Answer::Fault(Fault::new(Trouble::RateLimit).retry(RetryAfter::Seconds(2)));
    trial.answers(Script::always(pause.clone()))?;
    trial.suite(&case("a", "say 1", "1"), "")?;
    trial.run(&["--timeout", "3s", "--max-retries", "9"])?;
    let elapsed = trial.first()?["elapsed_ms"].as_u64().unwrap_or(u64::MAX);
    trial.expect(elapsed < 3900, || format!("{elapsed} ms with a limit of 3 s"));
    let once = Rule::new(When::Any, pause).times(1);
    trial.answers(Script::always(Answer::Hang).rule(once))?;
    trial.suite(&case("a", "say 1", "1"), "")?;
    trial.run(&["--timeout", "3s", "--max-retries", "9"])?;
    let details = trial.first()?["classification"]["details"].clone();
    trial
        .expect(details["limit_seconds"] == 3, || format!("the limit of 3 s is told as {details}"));
    Ok(())
}

fn tool_call(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "use the tool", "x"), "")?;
    trial.run(&["--max-retries", "0"])?;
    let stored = trial.first()?;
    let class = &stored["classification"]["primary"];
    trial.expect(*class == "fail", || format!("its class is {class}"));
    let reply = stored["raw_response"].to_string();
    trial.expect(reply.contains("lookup"), || format!("the reply is {reply}"));
    Ok(())
}

fn reasoning(trial: &mut Trial<'_>) -> io::Result<()> {
    for message in [
        json!({ "content": "<think>7? No, 1.</think>\n1" }),
        json!({ "content": "1", "reasoning_content": "7? No, 1." }),
    ] {
        let body = json!({ "choices": [{ "message": message }] });
        trial.answers(Script::always(Answer::json(&body.to_string())))?;
        trial.suite(&case("a", "say 1", "1"), "")?;
        trial.run(&[])?;
        let stored = trial.first()?;
        trial.expect(stored["raw_response"] == "1", || {
            format!("the reply is {}", stored["raw_response"])
        });
        let shown = trial.room.run(&["show", "latest", "a"])?.out;
        trial.expect(shown.contains("reasoning"), || format!("what it thought is lost: {shown}"));
    }
    Ok(())
}

fn invisible(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.answers(Script::always(Answer::text("\u{200b}\u{2060}\u{feff}")))?;
    trial.suite(&case("a", "say 1", "1"), "")?;
    trial.run(&["--max-retries", "0"])?;
    let stored = trial.first()?;
    let kind = &stored["error"]["kind"];
    trial.expect(*kind == "empty", || format!("{} {kind}", stored["verdict"]));
    Ok(())
}
