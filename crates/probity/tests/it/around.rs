//! What stands around a run: doctor, merge, config, runs, suites that are wrong.

use probity_testkit::{Answer, FakeServer, Fault, Script, Trouble};

use crate::{
    project::Project,
    run::{dataset, project, run, stored},
};

/// Ports, times and names of runs are different each time.
fn redacted(text: &str, server: &FakeServer) -> String {
    text.replace(&server.address().port().to_string(), "PORT")
        .lines()
        .map(|line| match line.split_once("reachable  yes, ") {
            Some((lead, _)) => format!("{lead}reachable  yes, TIME"),
            None => match line.split_once("` after ") {
                Some((lead, rest)) => {
                    format!("{lead}` after TIME {}", rest.split_once(" s ").unwrap().1)
                }
                None => line.to_owned(),
            },
        })
        .map(|line| line + "\n")
        .collect()
}

#[test]
fn doctor_says_what_is_there_and_what_is_not() {
    let server = FakeServer::start(Script::default());
    let suite = format!(
        r#"
        [backends.local]
        kind = "openai"
        base_url = "http://user:pass-word-1@{}/v1"
        model = "fake-small"
        [backends.keyless]
        kind = "anthropic"
        model = "claude-x"
        api_key_env = "NO_SUCH_KEY"
        [backends.missing]
        kind = "command"
        command = ["no-such-program-anywhere", "{{{{prompt}}}}"]
        [backends.here]
        kind = "command"
        command = ["sh", "-c", "cat"]
        temperature = 0.5
        "#,
        server.address()
    );
    let project = Project::new().file("probity.toml", suite);
    let output = project.command(&["doctor", "--call"]).env("PATH", "/bin").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let shown = redacted(&String::from_utf8(output.stdout).unwrap(), &server);
    insta::assert_snapshot!(shown, @"
    local (openai)
      model      fake-small
      address    http://user:[redacted]@127.0.0.1:PORT/v1/chat/completions
      reachable  yes, TIME
      models     fake-small, fake-large
      call       `OK.` after TIME (fake-small)
    keyless (anthropic)
      unusable   backend `keyless` needs a key in the variable `NO_SUCH_KEY`, which is not set (export NO_SUCH_KEY=..., or name another with `api_key_env`)
    missing (command)
      model      its default
      program    not found
      version    unknown
      transport  arg
      json       not used
      note       the program `no-such-program-anywhere` is not installed: looked for in `/bin`
      call       failed after 0.0 s: not_installed: the program `no-such-program-anywhere` is not installed: looked for in `/bin`
    here (command)
      model      its default
      program    /bin/sh
      version    unknown
      transport  stdin
      json       not used
      note       it is not started to look at it
      ignores    temperature
      call       `Reply with the word OK.` after TIME (no model named)
    ");
}

#[test]
fn parts_make_a_whole() {
    let server = FakeServer::start(Script::default());
    let project = project(60, &[("fake", &server)], "");
    for part in ["1/3", "2/3", "3/3"] {
        let store = format!("{}.db", &part[..1]);
        run(&project, &["--shard", part, "--store", &store]).expect(0, &[]);
    }
    let output = project.run(&["merge", "1.db", "3.db"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("missing: part 2/3"));
    let output = project.run(&["merge", "1.db", "2.db", "3.db"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("60 of 60 cases: 60 pass"));
    assert_eq!(stored(&project).len(), 60);
    let runs = String::from_utf8(project.run(&["runs", "--json"]).stdout).unwrap();
    assert_eq!(runs.lines().count(), 2, "{runs}");
    let again = project.shown(&["merge", "latest", "2.db"]);
    assert!(again.contains("is in more than one of the runs"), "{again}");
    let twice = project.shown(&["merge", "1.db", "1.db"]);
    assert!(twice.contains("is in more than one of the runs"), "{twice}");
}

#[test]
fn settings_say_where_they_come_from() {
    let suite = "[retry]\nmax_retries = 5\n[backends.e]\nkind = \"echo\"\n";
    let project = Project::new()
        .file("probity.toml", suite)
        .file(".env", "PROBITY_BUDGET_MAX_CALLS=7\nPROBITY_SEED=1\n");
    let output = project
        .command(&["config", "show", "--max-tokens", "9"])
        .env("PROBITY_SEED", "3")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("retry.max_retries"), "retry.max_retries = 5 # probity.toml:2");
    assert_eq!(line("budget.max_calls"), "budget.max_calls = 7 # .env PROBITY_BUDGET_MAX_CALLS");
    assert_eq!(line("seed"), "seed = 3 # environment PROBITY_SEED");
    assert_eq!(line("budget.max_tokens"), "budget.max_tokens = 9 # --max-tokens");
    assert_eq!(line("timeouts.attempt"), "timeouts.attempt = \"2m\" # default");
}

#[test]
fn a_wrong_suite_is_told_everything_at_once() {
    let suite = r#"
version = "1"
max_concurency = 8
[backends.a]
kind = "opnai"
[backends.b]
kind = "openai"
api_key = "sk-123"
max_tokens = 0
[[runners]]
name = "r"
dataset = "cases.jsonl"
backends = ["c"]
repeat = 1.5
[timeouts]
attempt = "soon"
[fail_fast]
treshold = 3
"#;
    let project = Project::new().file("cases.jsonl", dataset(1)).file("probity.toml", suite);
    insta::assert_snapshot!(project.shown(&["run"]), @r#"
    exit 2
    --- err
    error[unknown-field]: unknown field `max_concurency`
     --> probity.toml:3:1
      |
    3 | max_concurency = 8
      | ^^^^^^^^^^^^^^
      |
      = help: did you mean `max_concurrency`?

    error[unknown-field]: unknown field `treshold`
      --> probity.toml:18:1
       |
    18 | treshold = 3
       | ^^^^^^^^
       |
       = help: did you mean `threshold`?

    error[unknown-value]: unknown kind of backend `opnai`
     --> probity.toml:5:8
      |
    5 | kind = "opnai"
      |        ^^^^^^^
      |
      = help: did you mean `openai`?

    error[key-in-file]: a key has no place in a suite file
     --> probity.toml:8:1
      |
    8 | api_key
      | ^^^^^^^
      |
      = help: put it into a variable, and name that with `api_key_env`

    error[wrong-type]: field `max_tokens` must be a whole number from 1 on
     --> probity.toml:9:14
      |
    9 | max_tokens = 0
      |              ^

    error[missing-field]: backend `b` of kind `openai` needs `model`
     --> probity.toml:6:1
      |
    6 | [backends.b]
      | ^^^^^^^^^^^^

    error[unknown-backend]: there is no backend `c`
      --> probity.toml:13:12
       |
    13 | backends = ["c"]
       |            ^^^^^
       |
       = help: describe it under [backends.c]

    error[wrong-type]: field `repeat` must be a whole number from 1 to 10000
      --> probity.toml:14:10
       |
    14 | repeat = 1.5
       |          ^^^

    error[wrong-type]: `timeouts.attempt` must be a duration such as "30s", and not zero
      --> probity.toml:16:11
       |
    16 | attempt = "soon"
       |           ^^^^^^

    error: the suite file `probity.toml` cannot be used
    "#);
}

#[test]
fn runs_are_listed_shown_and_removed() {
    let server = FakeServer::start(Script::default());
    let project = project(3, &[("fake", &server)], "");
    assert!(project.shown(&["runs"]).contains("there is no store"));
    run(&project, &[]).expect(0, &[]);
    run(&project, &["--limit", "1"]).expect(0, &[]);
    let runs = String::from_utf8(project.run(&["runs", "--json"]).stdout).unwrap();
    let ids: Vec<String> = runs
        .lines()
        .map(|line| {
            let run: serde_json::Value = serde_json::from_str(line).unwrap();
            run["run_id"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(ids.len(), 2);
    let short = ids[1].rsplit('-').next().unwrap();
    assert!(project.shown(&["show", short]).contains("3 of 3 cases"));
    assert!(project.shown(&["show", "latest"]).contains("1 of 1 cases"));
    assert!(project.shown(&["show", "nothing"]).contains("there is no run `nothing`"));
    let shared = &ids[0][..4];
    assert!(project.shown(&["show", shared]).contains("may be any of"));
    assert!(project.run(&["runs", "rm", short]).status.success());
    assert!(project.run(&["runs", "gc", "--keep", "0"]).status.success());
    assert!(project.shown(&["runs"]).contains("the store has no runs"));
}

#[test]
fn what_a_model_writes_cannot_reach_the_terminal() {
    let nasty = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}evil\u{0}";
    let server = FakeServer::start(Script::always(Answer::text(nasty)));
    let project = project(2, &[("fake", &server)], "");
    run(&project, &[]).expect(0, &[("N_CASES", "2")]);
    for words in [&["show"][..], &["show", "latest", "case-0"]] {
        let shown = project.shown(words);
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}', '\0']), "{shown:?}");
        assert!(shown.contains("evil"), "{shown:?}");
    }
    assert_eq!(stored(&project)[0]["raw_response"], nasty);
}

#[test]
fn budgets_of_a_runner_leave_others_alone() {
    let server = FakeServer::start(Script::default());
    let suite = format!(
        "[backends.b]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"m\"\n\
         [[runners]]\nname = \"one\"\ndataset = \"cases.jsonl\"\nbudget = {{ max_calls = 4 }}\n\
         [[runners]]\nname = \"two\"\ndataset = \"cases.jsonl\"\n",
        server.url()
    );
    let project = Project::new().file("cases.jsonl", dataset(10)).file("probity.toml", suite);
    run(&project, &[]).expect(3, &[("N_CASES", "14"), ("N_PLANNED", "20")]);
    let shown = project.shown(&["show"]);
    assert!(
        shown.contains("stopped by the budget: max_calls = 4 reached for runner `one`"),
        "{shown}"
    );
}

#[test]
fn after_a_permanent_fail_fast_the_later_runners_of_that_backend_are_skipped() {
    let bad = FakeServer::start(Script::always(Answer::Fault(Fault::new(Trouble::BadKey))));
    let good = FakeServer::start(Script::default());
    let suite = format!(
        "[backends.bad]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"m\"\n\
         [backends.good]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"m\"\n\
         [[runners]]\nname = \"one\"\ndataset = \"cases.jsonl\"\n\
         [[runners]]\nname = \"two\"\ndataset = \"cases.jsonl\"\n",
        bad.url(),
        good.url()
    );
    let project = Project::new().file("cases.jsonl", dataset(10)).file("probity.toml", suite);
    run(&project, &[]).expect(3, &[("N_CASES", "23"), ("N_PLANNED", "40"), ("FAIL_FAST", "1")]);
    assert_eq!((bad.seen().asked, good.seen().asked), (3, 20));
    let shown = project.shown(&["show"]);
    assert!(shown.contains("skipped: a backend that it needs was given up"), "{shown}");
}

#[test]
fn a_command_runner_grades_shell_commands() {
    let cases = r#"
version = "1.0.0"
[[test_cases]]
id = "list"
prompt = "List all files, hidden ones too. Answer: ls -a"
expected_command = "ls --all"
category = "correctness"
safe = true
posix_compliant = true
"#;
    let program = r#"["sh", "-c", "sed 's/.*Answer: /$ /'"]"#;
    let suite = format!(
        "[backends.p]\nkind = \"command\"\ncommand = {program}\n\
         [[runners]]\nname = \"shell\"\nkind = \"command\"\ndataset = \"cases.toml\"\n"
    );
    let project = Project::new().file("cases.toml", cases).file("probity.toml", suite);
    run(&project, &[]).expect(0, &[("N_CASES", "1")]);
    let case = stored(&project).remove(0);
    assert_eq!(case["verdict"], "pass", "{case}");
    assert_eq!(case["classification"]["details"]["command"]["equivalence"], "equal");
}

#[test]
fn a_key_is_taken_out_before_a_text_is_cut() {
    let key = "very-secret-key-of-mine-12345";
    for filler in [150, 170, 185, 199] {
        let body = format!("{}{key}", "x".repeat(filler));
        let raw = Answer::Raw { status: 200, headers: Vec::new(), body };
        let server = FakeServer::start(Script::always(raw));
        let suite = format!(
            "[backends.b]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"m\"\napi_key_env = \"MY_KEY\"\n\
             [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n[retry]\nmax_retries = 0\n",
            server.url()
        );
        let project = Project::new().file("cases.jsonl", dataset(3)).file("probity.toml", suite);
        project.command(&["run", "-q"]).env("MY_KEY", key).output().unwrap();
        let shown = project.shown(&["show", "--json"]);
        assert!(shown.contains("not understood"), "{shown}");
        assert!(!shown.contains("very-s"), "{shown}");
    }
}

#[test]
fn odd_counts_of_tokens_do_not_cost_an_answer() {
    let odd = r#"{"choices":[{"message":{"content":"0"}}],"usage":{"prompt_tokens":10.0,"completion_tokens":-3,"prompt_tokens_details":{"cached_tokens":"x"}}}"#;
    let raw = Answer::Raw { status: 200, headers: Vec::new(), body: odd.into() };
    let server = FakeServer::start(Script::always(raw));
    let project = project(1, &[("fake", &server)], "");
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "1")]);
    let case = stored(&project).remove(0);
    assert_eq!((&case["verdict"], &case["usage"]["input_tokens"]), (&"pass".into(), &10.into()));
}

#[test]
fn an_error_about_the_key_is_never_green() {
    let rule = probity_testkit::Rule::new(
        probity_testkit::When::prompt_contains("number 7"),
        Answer::fault(Trouble::BadKey),
    );
    let server = FakeServer::start(Script::default().rule(rule));
    let project = project(50, &[("fake", &server)], "");
    let ran = run(&project, &[]);
    ran.expect(3, &[("N_CASES", "50"), ("FAIL_FAST", "0")]);
    assert!(ran.err.contains("ask them again: probity run --retry-errors"), "{}", ran.err);
}

#[test]
fn numbers_without_measure_are_refused_or_borne() {
    let suite = "[backends.e]\nkind = \"echo\"\nmax_tokens = 9000000000000000000\n\
                 [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\ngates = { csr = 0.9 }\n";
    let project = Project::new().file("cases.jsonl", dataset(3)).file("probity.toml", suite);
    let most = u64::MAX.to_string();
    let shown = project.shown(&["run", "--dry-run", "--max-retries", &most]);
    assert!(shown.contains("exit 0"), "{shown}");
    run(&project, &["--max-retries", &most]).expect(1, &[("N_CASES", "3")]);
    let ran = run(&project, &["--timeout", "1e19"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("must be a duration"), "{}", ran.err);
}

#[test]
fn a_filter_that_names_nothing_is_refused() {
    let server = FakeServer::start(Script::default());
    let project = project(5, &[("fake", &server)], "");
    for (words, told) in [
        (["--case", "case-1,nowhere"], "`--case nowhere` matches no case"),
        (["--tag", "tagged"], "`--tag tagged` matches no case"),
        (["--category", "safety"], "`--category safety` matches no case"),
    ] {
        let ran = run(&project, &words);
        ran.expect(2, &[("TOTAL_CALLS", "0")]);
        assert!(ran.err.contains(told), "{}", ran.err);
    }
}

#[test]
fn fields_of_another_kind_are_refused() {
    let more = "[backends.a]\nkind = \"openai\"\nmodel = \"m\"\ncommand = [\"x\"]\n\
                response_format = \"xml\"\nextra_body.messages = []\n\
                [backends.b]\nkind = \"echo\"\nfile = \"f\"\n";
    let server = FakeServer::start(Script::default());
    let project = project(5, &[("fake", &server)], more);
    let ran = run(&project, &[]);
    ran.expect(2, &[("TOTAL_CALLS", "0")]);
    for told in [
        "`command` does not apply to a backend of kind `openai`",
        "`response_format` is \"json\" or a JSON Schema",
        "`extra_body` must not bring `messages`",
        "`file` does not apply to a backend of kind `echo`",
    ] {
        assert!(ran.err.contains(told), "{told}: {}", ran.err);
    }
}
