//! What passes, and what ends a run.

use std::io;

use probity_testkit::{Answer, Rule, Script, When};

use super::{Check, GATE, Trial, case, said};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("1: a case without a criterion passes", undecided),
    ("1: a typo in a criterion is a warning", typo),
    ("1: a typo in a suite is a warning", typo_in_suite),
    ("2: policy hits are searched for in texts", policy_hits),
    ("2: `classify` does not count policy hits", policy_hits_of_classify),
    ("3: `execution` is ignored", execution),
    ("4: a budget in dollars without a price does nothing", unknown_price),
    ("4: a budget does nothing where no usage is reported", unreported_usage),
    ("4: sums leave out replies without usage", estimated_sums),
    ("5: a program runner that fails leaves exit code 0", failed_program),
    ("5: it depends what running nothing comes to", nothing_run),
    ("6: repeats are made of copies", copies),
    ("7: scattered errors end a healthy run", scattered),
];

fn undecided(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite("{\"id\":\"n\",\"prompt\":\"hi\"}\n", GATE)?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 3);
    Ok(())
}

fn typo(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite("{\"id\":\"t\",\"prompt\":\"hi\",\"expcted_response\":\"zzz\"}\n", GATE)?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 2);
    trial.expect(ran.err.contains("expcted_response"), || ran.tail());
    Ok(())
}

fn typo_in_suite(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "repaet = 3\n")?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 2);
    trial.expect(ran.err.contains("repaet"), || ran.tail());
    // What is meant to be there is taken.
    trial.suite(&case("a", "say 1", "1"), "x-team = \"ours\"\n")?;
    let ran = trial.run(&[])?;
    trial.code(&ran, 0);
    trial.suite(
        "{\"id\":\"a\",\"prompt\":\"say 1\",\"expected_response\":\"1\",\"tgas\":[]}\n",
        "",
    )?;
    let ran = trial.run(&["--allow-unknown"])?;
    trial.code(&ran, 0);
    for (words, code) in [
        (&["dataset", "validate", "cases.jsonl"][..], 0),
        (&["dataset", "validate", "--strict", "cases.jsonl"], 2),
    ] {
        let ran = trial.room.run(words)?;
        trial.code(&ran, code);
    }
    Ok(())
}

/// An answer that only says the words, one that breaks the policy, and two refusals that break it as well.
fn policy_hits(trial: &mut Trial<'_>) -> io::Result<()> {
    let refusal = Answer::text("I'm sorry, but I can't help with that zebra.");
    trial.answers(Script::default().rule(Rule::new(When::prompt_contains("refuse"), refusal)))?;
    let cases = case("word", "say policy_violation", "policy_violation")
        + &case("broken", "say zebra", "other")
        + &case("refused", "refuse", "other")
        + &case("refused-again", "refuse again", "other");
    trial.suite(&cases, "[[policies]]\nname = \"animals\"\nwords = [\"zebra\"]\n")?;
    trial.run(&["-o", "r.json"])?;
    let hits = trial.report()["policy_hits"].clone();
    trial.expect(hits == 3, || format!("{hits} hits"));
    Ok(())
}

fn policy_hits_of_classify(trial: &mut Trial<'_>) -> io::Result<()> {
    // One is only a wrong answer that is called so, the other is a refusal that breaks a policy as well.
    let lines = "{\"case_id\":\"a\",\"raw_response\":\"policy_violation\",\"expected_response\":\"b\"}\n\
                 {\"case_id\":\"b\",\"raw_response\":\"I'm sorry, but I can't help with that zebra.\",\"expected_response\":\"b\"}\n";
    trial.room.write("results.jsonl", lines)?;
    trial.room.write("probity.toml", "[[policies]]\nname = \"animals\"\nwords = [\"zebra\"]\n")?;
    let ran = trial.room.run(&[
        "classify",
        "results.jsonl",
        "--suite",
        "probity.toml",
        "-o",
        "out.jsonl",
    ])?;
    let told = said(&ran);
    trial.expect(told.contains("replies that break a policy: 1"), || told.clone());
    Ok(())
}

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

fn unknown_price(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let ran = trial.run(&["--max-cost", "1"])?;
    trial.code(&ran, 2);
    let asked = trial.model.seen().asked;
    trial.expect(asked == 0, || format!("{asked} calls"));
    Ok(())
}

/// A program says nothing of tokens. The prompt has 19 bytes, so that there are 5 tokens each way.
fn unreported_usage(trial: &mut Trial<'_>) -> io::Result<()> {
    let cases: String =
        (0..9).map(|at| case(&format!("c{at}"), &format!("Return the number {at}"), "x")).collect();
    trial.room.write("cases.jsonl", cases)?;
    for (price, words) in [
        ("", ["--max-tokens", "25"]),
        ("price = { input = 100000, output = 100000 }", ["--max-cost", "2.5"]),
    ] {
        let suite = format!(
            "[backends.c]\nkind = \"command\"\ncommand = [\"cat\"]\nmax_concurrency = 1\n{price}\n\
             [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n"
        );
        trial.room.write("probity.toml", suite)?;
        let ran = trial.run(&words)?;
        trial.code(&ran, 3);
        trial.expect(ran.key("TOTAL_CALLS") == Some("3"), || {
            format!("{words:?}: {:?} calls", ran.key("TOTAL_CALLS"))
        });
    }
    let shown = trial.room.run(&["show"])?.out;
    trial.expect(shown.contains("(estimated)"), || {
        format!("nothing says that it is estimated: {shown}")
    });
    Ok(())
}

fn estimated_sums(trial: &mut Trial<'_>) -> io::Result<()> {
    let body =
        r#"{"choices":[{"message":{"role":"assistant","content":"1"},"finish_reason":"stop"}]}"#;
    let uncounted = Rule::new(When::prompt_contains("uncounted"), Answer::json(body));
    trial.answers(Script::default().rule(uncounted))?;
    let long = format!("uncounted {} 1", "word ".repeat(400));
    trial.suite(&(case("a", "say 1", "1") + &case("b", &long, "1")), "")?;
    trial.change("model = \"m\"", "model = \"m\"\nprice = { input = 100000, output = 100000 }")?;
    trial.run(&["-o", "r.json"])?;
    let report = trial.report();
    let tokens = report["input_tokens"].as_u64().unwrap_or(0);
    trial.expect(tokens > 400, || format!("{tokens} tokens"));
    let dollars = report["cost_usd"].as_f64().unwrap_or(0.0);
    trial.expect(dollars > 40.0, || format!("{dollars} dollars"));
    trial.expect(report["estimated_usage"] == 1, || {
        format!("{} estimated", report["estimated_usage"])
    });
    Ok(())
}

fn failed_program(trial: &mut Trial<'_>) -> io::Result<()> {
    for script in ["exit 1", "echo N_CASES=0", "true"] {
        let suite = format!(
            "[[runners]]\nname = \"p\"\nkind = \"program\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n"
        );
        trial.room.write("probity.toml", suite)?;
        let ran = trial.run(&[])?;
        trial.expect(ran.code == Some(3), || format!("{script}: {}", ran.tail()));
    }
    Ok(())
}

/// What is left out by a mistake in the command line is one; a part without a case is none.
fn nothing_run(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    for (words, code) in [
        (&["--filter", "nobody"][..], 2),
        (&["--case", "nobody"], 2),
        (&["--filter", "nobody", "--shard", "1/2"], 2),
        (&["--shard", "1/3"], 0),
        (&["--shard", "2/3"], 0),
        (&["--shard", "3/3"], 0),
    ] {
        let ran = trial.run(words)?;
        trial.expect(ran.code == Some(code), || format!("{words:?}: {}", ran.tail()));
    }
    Ok(())
}

fn copies(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    trial.run(&["--record", "rec.jsonl"])?;
    let ran = trial.run(&["--replay", "rec.jsonl", "--repeat", "5"])?;
    trial.code(&ran, 2);
    trial.expect(ran.err.contains("repeat"), || ran.tail());
    Ok(())
}

fn scattered(trial: &mut Trial<'_>) -> io::Result<()> {
    let one = |at: u32| match at % 50 {
        49 => case(&format!("c{at}"), &format!("this fails {at}"), "x"),
        _ => case(&format!("c{at}"), &format!("say {at}"), &at.to_string()),
    };
    let cases: String = (0..200).map(one).collect();
    let retry = "[retry]\nbackoff_base = 0.01\n";
    trial.suite(&cases, retry)?;
    let ran = trial.run(&["-j", "8"])?;
    trial.code(&ran, 0);
    trial.expect(ran.key("N_CASES") == Some("200"), || format!("{:?} cases", ran.key("N_CASES")));
    // A server that always fails is given up as soon as ever: after three cases with four tries each.
    let cases: String =
        (0..40).map(|at| case(&format!("c{at}"), &format!("this fails {at}"), "x")).collect();
    trial.suite(&cases, retry)?;
    let before = trial.model.seen().asked;
    let ran = trial.run(&["-j", "8"])?;
    trial.code(&ran, 3);
    let asked = trial.model.seen().asked - before;
    trial.expect(asked <= 12, || format!("{asked} calls of a server that always fails"));
    Ok(())
}
