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
    warning[unknown-field]: unknown field `max_concurency`
     --> probity.toml:3:1
      |
    3 | max_concurency = 8
      | ^^^^^^^^^^^^^^
      |
      = help: did you mean `max_concurrency`?

    warning[unknown-field]: unknown field `treshold`
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
    assert!(shown.contains("skipped: the backend was given up before"), "{shown}");
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
    assert!(ran.err.contains("ask them again with --retry-errors"), "{}", ran.err);
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
        (["--case", "case-1,nowhere"], "`--case nowhere` chooses no case"),
        (["--tag", "tagged"], "`--tag tagged` chooses no case"),
        (["--category", "safety"], "`--category safety` chooses no case"),
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
        "`command` means nothing for a backend of kind `openai`",
        "`response_format` is \"json\" or a JSON Schema",
        "`extra_body` must not bring `messages`",
        "`file` means nothing for a backend of kind `echo`",
    ] {
        assert!(ran.err.contains(told), "{told}: {}", ran.err);
    }
}

/// A suite with one backend at a server that always sends one body, and one case.
fn with_body(kind: &str, body: &str, more: &str) -> (FakeServer, Project) {
    let raw = Answer::Raw { status: 200, headers: Vec::new(), body: body.into() };
    let server = FakeServer::start(Script::always(raw));
    let suite = format!(
        "[backends.b]\nkind = \"{kind}\"\nbase_url = \"{}\"\nmodel = \"m\"\n{more}\n\
         [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n[retry]\nbackoff_base = 0\n",
        server.url()
    );
    let project = Project::new().file("cases.jsonl", dataset(1)).file("probity.toml", suite);
    (server, project)
}

#[test]
fn a_reply_that_its_length_left_empty_is_judged_and_paid_for() {
    let usage = r#""usage":{"input_tokens":5,"output_tokens":2}"#;
    for (content, reason) in [("", "max_tokens"), (r#"{"type":"tool_use"}"#, "tool_use")] {
        let body = format!(r#"{{"content":[{content}],"stop_reason":"{reason}",{usage}}}"#);
        let price = "price = { input = 1000000, output = 1000000 }";
        let (server, project) = with_body("anthropic", &body, price);
        let ran = run(&project, &["--repeat", "3", "--max-cost", "8", "-j", "1"]);
        ran.expect(3, &[("TOTAL_CALLS", "2"), ("COST_USD", "14.0000"), ("N_CASES", "2")]);
        assert_eq!(server.seen().asked, 2, "{}", ran.err);
        let case = stored(&project).remove(0);
        assert_ne!(case["verdict"], "pass", "{case}");
        assert_eq!(case["usage"]["output_tokens"], 2, "{case}");
    }
}

#[test]
fn a_corrected_pointer_is_asked_again() {
    let program = r#"["sh", "-c", "echo '{\"a\":\"0\",\"b\":\"wrong\"}'"]"#;
    let suite = |pointer: &str| {
        format!(
            "[backends.x]\nkind = \"command\"\ncommand = {program}\noutput = \"json\"\n\
             output_pointer = \"{pointer}\"\n\
             [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n"
        )
    };
    let project = Project::new().file("cases.jsonl", dataset(1)).file("probity.toml", suite("/b"));
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "1")]);
    assert_eq!(stored(&project)[0]["verdict"], "fail");
    let project = project.file("probity.toml", suite("/a"));
    run(&project, &["--resume"]).expect(0, &[("TOTAL_CALLS", "1")]);
    assert_eq!(stored(&project)[0]["verdict"], "pass");
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "1")]);
    assert_eq!(stored(&project)[0]["verdict"], "pass");
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "0")]);
}

#[test]
fn an_answer_of_ollama_that_is_cut_off_is_tried_again_and_never_kept() {
    let cut = r#"{"message":{"content":"hel"},"done":false}"#;
    let (server, project) = with_body("ollama", cut, "");
    let ran = run(&project, &["--cache", "--max-retries", "2"]);
    assert_eq!(server.seen().asked, 3, "{}", ran.err);
    let case = stored(&project).remove(0);
    assert_eq!(case["verdict"], "error", "{case}");
    let stats = project.shown(&["cache", "stats"]);
    assert!(stats.contains(": 0 answers"), "{stats}");
}

#[test]
fn a_password_is_taken_out_in_the_form_that_is_sent() {
    // Of `bob:UrlPassw0rd77`.
    let sent = "Ym9iOlVybFBhc3N3MHJkNzc=";
    let body = format!(r#"{{"error":{{"message":"authorization: Basic {sent}; got {sent}"}}}}"#);
    let raw = Answer::Raw { status: 400, headers: Vec::new(), body };
    let server = FakeServer::start(Script::always(raw));
    let suite = format!(
        "[backends.b]\nkind = \"openai\"\nbase_url = \"http://bob:UrlPassw0rd77@{}/v1\"\nmodel = \"m\"\n\
         [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n",
        server.address()
    );
    let project = Project::new().file("cases.jsonl", dataset(1)).file("probity.toml", suite);
    let ran = run(&project, &["--events", "events.jsonl", "--record", "answers.jsonl"]);
    assert_eq!(server.seen().last[0].header("authorization"), Some(&*format!("Basic {sent}")));
    let shown = project.shown(&["show", "--json"]) + &project.shown(&["doctor", "--call"]);
    assert!(shown.contains("authorization: Basic [redacted]; got [redacted]"), "{shown}");
    for file in ["events.jsonl", "answers.jsonl", ".probity/probity.db"] {
        let bytes = std::fs::read(project.path(file)).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("Ym9iOlVy") && !text.contains("UrlPassw0rd77"), "{file}: {text}");
    }
    assert!(!format!("{shown}{}", ran.err).contains("Ym9iOlVy"), "{shown}");
}

#[test]
fn a_query_in_the_address_is_sent_where_it_belongs_and_never_shown() {
    let server = FakeServer::start(Script::default());
    let suite = format!(
        "[backends.b]\nkind = \"ollama\"\nbase_url = \"{}?key=QuerySecret9912&s=xyz\"\nmodel = \"fake-small\"\n\
         [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n[retry]\nmax_retries = 0\n",
        server.url()
    );
    let project = Project::new().file("cases.jsonl", dataset(1)).file("probity.toml", &suite);
    run(&project, &[]).expect(0, &[("N_CASES", "1")]);
    assert_eq!(server.seen().last[0].path, "/api/chat?key=QuerySecret9912&s=xyz");
    let shown = project.shown(&["doctor"]);
    assert!(shown.contains("/api/chat?key=[redacted]&s=[redacted]"), "{shown}");
    drop(server);
    let shown = shown + &project.shown(&["doctor"]) + &run(&project, &[]).err;
    assert!(!shown.contains("QuerySecret") && !shown.contains("xyz"), "{shown}");

    let project = project.file("probity.toml", suite.replace("?key", "#key"));
    let shown = project.shown(&["run"]);
    assert!(shown.contains("error[bad-url]") && shown.contains("probity.toml:3:12"), "{shown}");
}

#[test]
fn what_the_suite_has_a_field_for_has_no_place_in_extra_body() {
    let suite = r#"
[backends.a]
kind = "ollama"
model = "m"
max_tokens = 9
extra_body = { model = "evil", options = { num_ctx = 8192, num_predict = 99 } }
[[runners]]
name = "r"
dataset = "cases.jsonl"
"#;
    let project = Project::new().file("cases.jsonl", dataset(1)).file("probity.toml", suite);
    insta::assert_snapshot!(project.shown(&["run"]), @r#"
    exit 2
    --- err
    error[foreign-field]: `extra_body` must not bring `model`
     --> probity.toml:6:16
      |
    6 | extra_body = { model = "evil", options = { num_ctx = 8192, num_predict = 99 } }
      |                ^^^^^
      |
      = help: the field for it is `model`

    error[foreign-field]: `extra_body` must not bring `num_predict`
     --> probity.toml:6:60
      |
    6 | extra_body = { model = "evil", options = { num_ctx = 8192, num_predict = 99 } }
      |                                                            ^^^^^^^^^^^
      |
      = help: the field for it is `max_tokens`

    error: the suite file `probity.toml` cannot be used
    "#);
}

#[test]
fn a_dry_run_counts_what_is_really_sent_and_retries() {
    let suite = "[backends.limited]\nkind = \"anthropic\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:1\"\n\
                 price = { input = 0, output = 1000 }\n\
                 [backends.unlimited]\nkind = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:1\"\n\
                 price = { input = 0, output = 1000 }\n\
                 [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n";
    let project = Project::new().file("cases.jsonl", dataset(1)).file("probity.toml", suite);
    insta::assert_snapshot!(project.shown(&["run", "--dry-run"]), @"
    exit 0
    --- out
    dry run: nothing is asked
    r on limited (anthropic, m)
      1 of 1 cases, once each: 1 calls, at most 4 with retries
      about 4 tokens in, up to 1024 out: up to $1.0240, with all retries up to $4.0960
    r on unlimited (openai, m)
      1 of 1 cases, once each: 1 calls, at most 4 with retries
      about 4 tokens in, up to 256 out: up to $0.2560, with all retries up to $1.0240, if replies have 256 tokens (no `max_tokens`)
    2 calls, up to $1.2800, with all retries up to $5.1200
    ");
}

#[test]
fn a_database_of_another_program_is_left_as_it_is() {
    let project = Project::new()
        .file("cases.jsonl", dataset(1))
        .file("probity.toml", "[backends.e]\nkind = \"echo\"\n[cache]\npath = \"foreign.db\"\n[[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n");
    let path = project.path("foreign.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE mydata (x)").unwrap();
    let before = std::fs::read(&path).unwrap();
    for words in [&["show", "--store", "foreign.db"][..], &["run", "--store", "foreign.db"]] {
        let shown = project.shown(words);
        assert!(shown.contains("`foreign.db` is not a store of this program"), "{shown}");
        assert!(!shown.contains("CREATE"), "{shown}");
    }
    for words in [&["run", "--cache"][..], &["cache", "stats"], &["cache", "clear"]] {
        let shown = project.shown(words);
        assert!(shown.contains("`foreign.db` is not a cache of this program"), "{shown}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert!(!project.path("foreign.db-wal").exists());
}

#[test]
#[cfg(unix)]
fn a_store_that_may_only_be_read_is_read() {
    use std::{
        fs::{Permissions, metadata, set_permissions},
        os::unix::{
            fs::{MetadataExt as _, PermissionsExt as _},
            process::CommandExt as _,
        },
    };
    let project = Project::new().file("cases.jsonl", dataset(2)).file(
        "probity.toml",
        "[backends.e]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n",
    );
    run(&project, &[]).expect(0, &[("N_CASES", "2")]);
    let modes = |modes: &[(&str, u32)]| {
        for (name, mode) in modes {
            set_permissions(project.path(name), Permissions::from_mode(*mode)).unwrap();
        }
    };
    modes(&[("", 0o755), (".probity/probity.db", 0o444), (".probity", 0o555)]);
    for words in [&["show"][..], &["runs"]] {
        let mut command = project.command(words);
        // Nothing is forbidden to root.
        if metadata("/proc/self").unwrap().uid() == 0 {
            command.uid(65534).gid(65534);
        }
        let output = command.output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {err}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("2 "), "{words:?}");
    }
    modes(&[(".probity", 0o755)]);
}

#[test]
fn an_error_that_a_program_prints_is_no_answer() {
    let printed = |printed: &str, more: &str| {
        let suite = format!(
            "[backends.p]\nkind = \"command\"\ncommand = [\"cat\", \"{{{{suite_dir}}}}/printed\"]\n{more}\n\
             [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n[retry]\nmax_retries = 0\n"
        );
        let project = Project::new()
            .file("cases.jsonl", dataset(1))
            .file("printed", printed)
            .file("probity.toml", suite);
        run(&project, &[]);
        stored(&project).remove(0)
    };
    let error =
        r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
    let case = printed(error, "");
    assert_eq!(
        (&case["verdict"], &case["error"]["kind"]),
        (&"error".into(), &"auth".into()),
        "{case}"
    );
    let lines = "output = \"jsonl\"\noutput_pointer = \"/a\"";
    let case = printed(&format!("{{\"a\":\"0\"}}\n{error}\n"), lines);
    assert_eq!(case["verdict"], "error", "{case}");
    let case = printed("{\"a\":\"0\"}\n{\"a\":\"0", lines);
    assert_eq!(case["verdict"], "error", "{case}");
    assert_eq!(printed("{\"error\":\"none\"}", "")["verdict"], "fail");
}

#[test]
fn a_limit_of_no_time_is_refused() {
    let suite = "[backends.b]\nkind = \"echo\"\ntimeout = \"0s\"\n";
    let project = Project::new().file("probity.toml", suite);
    let shown = project.shown(&["run"]);
    assert!(shown.contains("and not zero\n --> probity.toml:3:11"), "{shown}");
}

#[test]
fn a_variable_that_sets_nothing_is_warned_of() {
    let project = Project::new()
        .file("probity.toml", "[backends.e]\nkind = \"echo\"\n")
        .file(".env", "PROBITY_RETRY_MAXRETRIES=5\n");
    let shown = |name: &str, value: &std::ffi::OsStr| {
        let mut command = project.command(&["doctor"]);
        let output = command.env("PROBITY_MARK", "1").env(name, value).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, err) = shown("PROBITY_BUDGET_MAX_COST", "1".as_ref());
    assert_eq!(code, Some(0), "{err}");
    insta::assert_snapshot!(err, @"
    warning: the variable `PROBITY_BUDGET_MAX_COST` sets nothing; did you mean `PROBITY_BUDGET_MAX_COST_USD`?
    warning: the variable `PROBITY_RETRY_MAXRETRIES` sets nothing; did you mean `PROBITY_RETRY_MAX_RETRIES`?
    ");
}

#[test]
#[cfg(unix)]
fn a_setting_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let project = Project::new().file("probity.toml", "[backends.e]\nkind = \"echo\"\n");
    for words in [&["run"][..], &["runs"]] {
        let value = std::ffi::OsStr::from_bytes(b"st\xffre.db");
        let output = project.command(words).env("PROBITY_STORE", value).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains("the value of the variable `PROBITY_STORE` is no UTF-8"), "{err}");
    }
}

#[test]
fn a_mark_before_the_first_line_of_env_is_no_part_of_it() {
    let project = Project::new()
        .file("probity.toml", "[backends.e]\nkind = \"echo\"\n")
        .file(".env", "\u{feff}PROBITY_SEED=17\n");
    let shown = project.shown(&["config", "show"]);
    assert!(shown.contains("# .env PROBITY_SEED"), "{shown}");
}

#[test]
fn a_cache_that_is_damaged_is_named_and_can_be_cleared() {
    let suite = |path: &str| {
        format!(
            "[backends.e]\nkind = \"echo\"\n[cache]\npath = \"{path}\"\n\
             [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n"
        )
    };
    let project = Project::new()
        .file("cases.jsonl", dataset(2))
        .file("notes.txt", "no cache, and dear to somebody. ".repeat(50))
        .file("probity.toml", suite("my.db"));
    run(&project, &["--cache"]).expect(0, &[("N_CASES", "2")]);
    let mut bytes = std::fs::read(project.path("my.db")).unwrap();
    bytes[100..4096].fill(7);
    let project = project.file("my.db", bytes);
    insta::assert_snapshot!(project.shown(&["cache", "stats"]), @"
    exit 2
    --- err
    error: the cache cannot be used
      caused by: failed to open the cache `my.db`
      caused by: database disk image is malformed
    hint: `probity cache clear` removes one that is damaged; `cache.path` names another place
    ");
    let shown = project.shown(&["run", "--cache"]);
    assert!(shown.contains("failed to open the cache `my.db`"), "{shown}");
    let shown = project.shown(&["cache", "clear"]);
    assert!(shown.contains("exit 0") && shown.contains("removed `my.db`"), "{shown}");
    run(&project, &["--cache"]).expect(0, &[("N_CASES", "2")]);

    let project = project.file("probity.toml", suite("notes.txt"));
    let shown = project.shown(&["cache", "clear"]);
    assert!(shown.contains("exit 2") && shown.contains("it may be no cache at all"), "{shown}");
    assert!(project.read("notes.txt").starts_with("no cache"));
}

/// A server that answers everything, lists of models too, with one body.
fn answering(body: &'static str) -> std::net::SocketAddr {
    use std::io::{BufRead as _, BufReader, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            lines.map_while(Result::ok).take_while(|line| !line.is_empty()).for_each(drop);
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close");
            let _ = write!(stream, "{head}\r\n\r\n{body}");
        }
    });
    address
}

#[test]
fn doctor_is_not_content_with_any_answer() {
    let look = |kind: &str, model: &str, body: &'static str| {
        let address = answering(body);
        let suite = format!(
            "[backends.b]\nkind = \"{kind}\"\nbase_url = \"http://{address}\"\nmodel = \"{model}\"\n"
        );
        Project::new().file("probity.toml", suite).shown(&["doctor"])
    };
    let denied = r#"{"type":"error","error":{"type":"authentication_error","message":"bad key"}}"#;
    for body in ["<html>hello</html>", "[[[[", "{}", "", denied] {
        let shown = look("anthropic", "m", body);
        assert!(shown.contains("exit 3") && shown.contains("reachable  yes, but"), "{shown}");
    }
    let list = r#"{"models":[{"name":"llama3:latest"},{"name":"qwen:7b"}]}"#;
    for model in ["llama3", "llama3:latest", "qwen:7b"] {
        let shown = look("ollama", model, list);
        assert!(shown.contains("exit 0") && !shown.contains("not among them"), "{shown}");
    }
    assert!(look("ollama", "qwen", list).contains("not among them"));
}

#[test]
#[cfg(unix)]
fn doctor_sees_programs_that_cannot_be_run() {
    use std::{fs, os::unix::fs::PermissionsExt as _};
    let look = |kind: &str, script: &str| {
        let suite = format!("[backends.b]\nkind = \"{kind}\"\ncommand = [\"./program\"]\n");
        let project = Project::new().file("program", script).file("probity.toml", suite);
        fs::set_permissions(project.path("program"), fs::Permissions::from_mode(0o755)).unwrap();
        project.shown(&["doctor"])
    };
    for (kind, script, told) in [
        ("command", "#!/no/such/interpreter\n", "needs the interpreter `/no/such/interpreter`"),
        ("command", "mere text\n", "no program that this system can run"),
        ("claude", "#!/bin/sh\nexit 3\n", "`--version`: exit code 3"),
        ("claude", "#!/bin/sh\nyes\n", "`--version`: it never stops writing"),
    ] {
        let shown = look(kind, script);
        assert!(shown.contains("exit 3") && shown.contains("which cannot be run"), "{shown}");
        assert!(shown.contains(told), "{shown}");
    }
    let shown = look("command", "#!/bin/sh\ncat\n");
    assert!(shown.contains("exit 0"), "{shown}");
}

#[test]
fn a_redirect_says_where_it_leads_and_an_empty_body_that_it_is_empty() {
    let location = ("location".to_owned(), "https://elsewhere.test/v1?key=abc".to_owned());
    let redirect = Answer::Raw { status: 307, headers: vec![location], body: String::new() };
    for (answer, told) in [
        (redirect, "HTTP 307: it redirects to `https://elsewhere.test/v1?[redacted]`"),
        (Answer::EmptyBody, "the answer is empty: it has no body"),
    ] {
        let server = FakeServer::start(Script::always(answer));
        let project = project(1, &[("fake", &server)], "");
        run(&project, &["--max-retries", "0"]);
        let case = stored(&project).remove(0);
        assert!(case["error"]["message"].as_str().unwrap().starts_with(told), "{case}");
    }
}

#[test]
fn a_backend_has_a_name_that_can_be_given() {
    for name in ["", " ", "a,b"] {
        let suite = format!("[backends.\"{name}\"]\nkind = \"echo\"\n");
        let shown = Project::new().file("probity.toml", suite).shown(&["run"]);
        assert!(shown.contains("must not be empty or have a comma"), "{shown}");
    }
}

#[test]
fn what_a_failed_call_cost_counts() {
    let usage = r#""usage":{"input_tokens":5,"output_tokens":2}"#;
    for content in [r#"{"type":"thinking","thinking":"hm"}"#, r#"{"type":"text","text":" "}"#] {
        let body = format!(r#"{{"content":[{content}],"stop_reason":"end_turn",{usage}}}"#);
        let price = "price = { input = 1000000, output = 1000000 }";
        let (server, project) = with_body("anthropic", &body, price);
        let ran = run(&project, &["--max-retries", "1"]);
        assert_eq!((ran.keys["COST_USD"].as_str(), server.seen().asked), ("14.0000", 2));
        let case = stored(&project).remove(0);
        assert_eq!(
            (&case["verdict"], &case["usage"]["input_tokens"]),
            (&"error".into(), &10.into())
        );
        let ran = run(&project, &["--max-cost", "8"]);
        assert_eq!(ran.keys["TOTAL_CALLS"], "2", "{}", ran.err);
    }
}

#[test]
#[cfg(unix)]
fn what_a_failed_call_of_claude_cost_counts() {
    let printed = r#"{"type":"result","is_error":true,"result":"Overloaded","total_cost_usd":0.25,"usage":{"input_tokens":9}}"#;
    let suite = "[backends.c]\nkind = \"claude\"\ncommand = [\"sh\", \"-c\", \"cat $0; exit 1\", \"{{suite_dir}}/printed\"]\n\
                 [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n[retry]\nmax_retries = 0\n";
    let project = Project::new()
        .file("cases.jsonl", dataset(1))
        .file("printed", printed)
        .file("probity.toml", suite);
    let ran = run(&project, &[]);
    assert_eq!(ran.keys["COST_USD"], "0.2500", "{}", ran.err);
    assert_eq!(stored(&project)[0]["usage"]["input_tokens"], 9);
}
