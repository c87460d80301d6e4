//! What backends answer, leak and cost when they are odd.

use probity_testkit::{Answer, FakeServer, Script};

use crate::{
    project::Project,
    run::{dataset, project, run, stored},
};

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
        let ours = ["PROBITY_MARK", "PROBITY_CONTEXT", "PROBITY_MODELS", "PROBITY_WORLDS"];
        let output = command.envs(ours.map(|it| (it, "/x"))).env(name, value).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, err) = shown("PROBITY_BUDGET_MAX_COST", "1".as_ref());
    assert_eq!(code, Some(0), "{err}");
    insta::assert_snapshot!(err, @r"
    warning: the variable `PROBITY_BUDGET_MAX_COST` is not a setting; did you mean `PROBITY_BUDGET_MAX_COST_USD`?
    warning: the variable `PROBITY_RETRY_MAXRETRIES` is not a setting; did you mean `PROBITY_RETRY_MAX_RETRIES`?
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
        assert!(err.contains("the value of the variable `PROBITY_STORE` is not UTF-8"), "{err}");
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
    let shown = project.shown(&["cache", "clear"]);
    assert!(shown.contains("exit 0") && shown.contains("removed `my.db`"), "{shown}");
    run(&project, &["--cache"]).expect(0, &[("N_CASES", "2")]);

    let mut bytes = std::fs::read(project.path("my.db")).unwrap();
    bytes[100..4096].fill(7);
    let project = project.file("my.db", bytes);
    let ran = run(&project, &["--cache"]);
    ran.expect(0, &[("N_CASES", "2")]);
    assert!(ran.err.contains("was put aside as `my.db.damaged`"), "{}", ran.err);

    let project = project.file("probity.toml", suite("notes.txt"));
    let shown = project.shown(&["run", "--cache"]);
    assert!(shown.contains("failed to open the cache `notes.txt`"), "{shown}");
    let shown = project.shown(&["cache", "clear"]);
    assert!(shown.contains("exit 2") && shown.contains("it may not be a cache"), "{shown}");
    assert!(project.read("notes.txt").starts_with("no cache"));
}

#[test]
fn damage_anywhere_in_a_cache_is_told_and_never_an_answer() {
    const CASES: usize = 300;
    let server = FakeServer::start(Script::default());
    let project = project(CASES, &[("fake", &server)], "[cache]\npath = \"my.db\"\n");
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "300")]);
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "0")]);
    // One digit of one answer is another one.
    let mut bytes = std::fs::read(project.path("my.db")).unwrap();
    let at = bytes.windows(12).rposition(|it| it.starts_with(b"\"text\":\"12")).unwrap();
    bytes[at + 8] = b'7';
    let project = project.file("my.db", bytes);
    let ran = run(&project, &["--cache"]);
    ran.expect(0, &[("N_CASES", "300")]);
    assert!(ran.err.contains("the cache `my.db` is damaged and was put aside"), "{}", ran.err);
    assert!(stored(&project).iter().all(|case| case["verdict"] == "pass"));
    assert!(project.path("my.db.damaged").exists());
    // A new one takes its place.
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "300")]);
    run(&project, &["--cache"]).expect(0, &[("TOTAL_CALLS", "0")]);
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
