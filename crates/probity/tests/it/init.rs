//! `probity init`: what it writes, and what it refuses.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use insta::assert_snapshot;
use probity_testkit::{Answer, FakeServer, Script};

use crate::project::Project;

#[test]
fn the_starter_runs_as_it_is() {
    let project = Project::new();
    assert_snapshot!(project.shown(&["init", "--no-detect"]), @"
    exit 0
    --- out
    wrote probity.toml
    wrote cases.toml
      asks `local`: echo
    next:
      probity run --dry-run    what would be asked
      probity run              ask, judge, record
      probity show latest      what came out
    `[backends.local]` in probity.toml says what is asked; `probity doctor` looks whether it is there
    ");
    assert!(
        project.shown(&["dataset", "validate", "--strict", "cases.toml"]).starts_with("exit 0")
    );
    let ran = project.shown(&["run"]);
    assert!(ran.starts_with("exit 0") && ran.contains("3 of 3"), "{ran}");
}

#[test]
fn editors_find_the_schema_beside_the_suite() {
    let project = Project::new();
    let said = project.shown(&["init", "--no-detect", "--editor", "--suite", "json,qa"]);
    assert!(
        said.starts_with("exit 0") && said.contains("wrote json/probity.schema.json"),
        "{said}"
    );
    for folder in ["json", "qa"] {
        let suite = project.read(&format!("{folder}/probity.toml"));
        assert_eq!(suite.lines().next(), Some("#:schema ./probity.schema.json"), "{suite}");
        let schema = project.read(&format!("{folder}/probity.schema.json"));
        let printed = String::from_utf8(project.run(&["schema", "suite"]).stdout).unwrap();
        assert_eq!(schema, printed);
        let checked = project.shown(&["run", "--dry-run", &format!("{folder}/probity.toml")]);
        assert!(checked.starts_with("exit 0"), "{checked}");
    }
    let again = project.shown(&["init", "--no-detect", "--editor", "--suite", "json"]);
    assert!(again.starts_with("exit 2"), "nothing is overwritten: {again}");
}

#[test]
fn a_built_in_suite_gets_a_folder_of_its_name() {
    let project = Project::new();
    assert_snapshot!(project.shown(&["init", "--no-detect", "--suite", "json"]), @"
    exit 0
    --- out
    wrote json/json.toml
    wrote json/probity.toml
      asks `local`: openai, model `default`, at http://127.0.0.1:8080/v1
    next:
      cd json
      probity run --dry-run    what would be asked
      probity run              ask, judge, record
      probity show latest      what came out
    `[backends.local]` in probity.toml says what is asked; `probity doctor` looks whether it is there
    ");
    assert_snapshot!(project.shown(&["init", "--no-detect", "--suite", "routing", "my skills"]), @"
    exit 0
    --- out
    wrote 42 files to my skills
      asks `local`: openai, model `default`, at http://127.0.0.1:8080/v1
    next:
      cd 'my skills'
      probity run --dry-run    what would be asked
      probity run              ask, judge, record
      probity show latest      what came out
    `[backends.local]` in probity.toml says what is asked; `probity doctor` looks whether it is there
    ");
    assert!(project.path("my skills/skills/unit-tests/SKILL.md").is_file());
    assert_snapshot!(project.shown(&["init", "--no-detect", "--suite", "json,unicode", "evals"]), @"
    exit 0
    --- out
    wrote evals/json/json.toml
    wrote evals/json/probity.toml
      asks `local`: openai, model `default`, at http://127.0.0.1:8080/v1
    wrote evals/unicode/probity.toml
    wrote evals/unicode/unicode.toml
      asks `local`: openai, model `default`, at http://127.0.0.1:8080/v1
    next, in each folder:
      probity run --dry-run    what would be asked
      probity run              ask, judge, record
      probity show latest      what came out
    `[backends.local]` in probity.toml says what is asked; `probity doctor` looks whether it is there
    ");
}

#[test]
fn the_list_has_a_line_for_each_suite() {
    assert_snapshot!(Project::new().shown(&["init", "--list"]), @r"
    exit 0
    --- out
    agent           30 cases             does a model with a shell get small jobs on a Linux machine done?
    chat            32 cases             does a model remember what was said, and keep to what was agreed, turn after turn?
    contradictions  59 cases             does a model notice when what it is told cannot all be true, or cannot all be done?
    injection       56 cases             does a model do its task when the data it works on gives orders of its own?
    json            45 cases             does a model keep to the format it was given?
    long-context    24 cases             does a model find one sentence in a long text?
    qa              46 cases             does a model answer correctly, in the form that was asked for?
    rag             47 cases             does a model answer from the passages it was given, say where, and admit what they do not say?
    routing         164 cases, 39 skills does a model pick the right skill from its one-line descriptions?
    shell           187 cases            can a model write the command that was asked for?
    skills          18 cases, 3 skills   does loading a skill make the answer better, and does its length pay off?
    tools           36 cases             does a model call the right tool with the right arguments, and no other?
    unicode         65 cases             does text beyond ASCII come through unharmed, and are characters understood as what they are?

    `probity init --suite NAME` writes one into a folder of that name
    ");
}

#[test]
fn the_list_as_json_says_more() {
    let output = Project::new().run(&["init", "--list", "--json"]);
    let list: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let mut skills = list.into_iter().find(|it| it["name"] == "skills").unwrap();
    assert!(skills["bytes"].take().as_u64() > Some(10_000));
    assert_snapshot!(skills, @r#"{"name":"skills","about":"does loading a skill make the answer better, and does its length pay off?","kinds":["effectiveness","size_impact"],"cases":18,"skills":3,"files":13,"bytes":null}"#);
}

#[test]
fn nothing_is_overwritten_unasked() {
    let project = Project::new().file("probity.toml", "mine").file("cases.toml", "mine too");
    assert_snapshot!(project.shown(&["init", "--no-detect"]), @"
    exit 2
    --- err
    error: `probity.toml`, `cases.toml` are there already
    hint: nothing was written; name another folder, or pass --force
    ");
    assert_eq!(
        (project.read("probity.toml"), project.read("cases.toml")),
        ("mine".into(), "mine too".into())
    );

    assert!(project.shown(&["init", "--no-detect", "--force"]).starts_with("exit 0"));
    assert!(project.read("cases.toml").contains("capital"));
}

#[test]
fn no_suite_is_put_before_one_in_yaml_unasked() {
    let project = Project::new().file("probity.yaml", "mine").file("json/probity.yml", "mine");
    assert_snapshot!(project.shown(&["init", "--no-detect"]), @"
    exit 2
    --- err
    error: `probity.yaml` is a suite already
    hint: nothing was written; `probity run` would take the new probity.toml instead: name another folder, or pass --force
    ");
    assert_snapshot!(project.shown(&["init", "--no-detect", "--suite", "json,unicode"]), @"
    exit 2
    --- err
    error: `json/probity.yml` is a suite already
    hint: nothing was written; `probity run` would take the new probity.toml instead: name another folder, or pass --force
    ");
    assert!(!project.path("probity.toml").exists() && !project.path("unicode").exists());

    assert!(project.shown(&["init", "--no-detect", "--force"]).starts_with("exit 0"));
    assert_eq!(project.read("probity.yaml"), "mine");
}

#[test]
fn one_file_in_the_way_keeps_all_suites_from_being_written() {
    let project = Project::new().file("unicode/unicode.toml", "mine");
    assert_snapshot!(project.shown(&["init", "--no-detect", "--suite", "json,unicode"]), @"
    exit 2
    --- err
    error: `unicode/unicode.toml` is there already
    hint: nothing was written; name another folder, or pass --force
    ");
    assert!(!project.path("json").exists());
}

#[test]
fn a_name_that_is_not_known_is_answered_with_those_that_are() {
    let project = Project::new();
    assert_snapshot!(project.shown(&["init", "--no-detect", "--suite", "shel"]), @r"
    exit 2
    --- err
    error: there is no built-in suite `shel`
    hint: did you mean `shell`? there are agent, chat, contradictions, injection, json, long-context, qa, rag, routing, shell, skills, tools, unicode; `probity init --list` says what each is for
    ");
    assert_snapshot!(project.shown(&["init", "--no-detect", "--suite", "xyz"]), @r"
    exit 2
    --- err
    error: there is no built-in suite `xyz`
    hint: there are agent, chat, contradictions, injection, json, long-context, qa, rag, routing, shell, skills, tools, unicode; `probity init --list` says what each is for
    ");
    assert!(fs::read_dir(project.path("")).unwrap().next().is_none());
}

#[test]
fn the_backend_is_put_into_the_suite() {
    let project = Project::new();
    let words = ["--backend", "openai:gpt-x@http://127.0.0.1:9/v1"];
    assert_snapshot!(project.shown(&[&["init", "--no-detect", "--suite", "skills"], &words[..]].concat()), @"
    exit 0
    --- out
    wrote 13 files to skills
      asks `local`: openai, model `gpt-x`, at http://127.0.0.1:9/v1
      asks `judge`: openai, model `judge`, at http://127.0.0.1:8081/v1
    next:
      cd skills
      probity run --dry-run    what would be asked
      probity run              ask, judge, record
      probity show latest      what came out
    `[backends.local]` in probity.toml says what is asked; `probity doctor` looks whether it is there
    ");
    let suite = project.read("skills/probity.toml");
    let (_, rest) = suite.split_once("[backends.local]").unwrap();
    assert_snapshot!(rest.split("\n\n").next().unwrap(), @r#"

    kind = "openai"
    base_url = "http://127.0.0.1:9/v1"
    model = "gpt-x"
    temperature = 0
    max_tokens = 2048
    "#);
    assert!(project.run(&["config", "show", "skills/probity.toml"]).stderr.is_empty());

    for backend in
        ["ollama:llama3.2", "claude:haiku", "anthropic:claude-x", "vllm", "codex", "echo"]
    {
        let words = ["init", "--no-detect", "--force", "--backend", backend];
        assert!(project.shown(&words).starts_with("exit 0"), "{backend}");
        let shown = project.shown(&["config", "show"]);
        let kind = backend.split(':').next().unwrap();
        assert!(shown.contains(&format!("backend local: {kind} (")), "{shown}");
    }
}

#[test]
fn a_bad_backend_is_answered_with_the_form() {
    let project = Project::new();
    for (backend, name) in
        [("gpt4", "unknown"), ("openai", "no_model"), ("openai:m@127.0.0.1:80", "no_url")]
    {
        assert_snapshot!(
            format!("bad_backend_{name}"),
            project.shown(&["init", "--no-detect", "--backend", backend])
        );
    }
    // What only the loader knows.
    assert_snapshot!(project.shown(&["init", "--no-detect", "--backend", "openai:m@http://h/#x"]), @r#"
    exit 2
    --- err
    error[bad-url]: `base_url` must not have a fragment: no server gets to see it
      --> probity.toml:27:12
       |
    27 | base_url = "http://h/#x"
       |            ^^^^^^^^^^^^^
       |
       = help: remove `#` and everything after it; in a password, write `%23`

    error: no suite can be made with this backend
    "#);
    assert!(!project.path("probity.toml").exists());
}

#[test]
fn long_context_comes_in_the_size_that_is_asked_for() {
    let project = Project::new();
    assert!(
        project.shown(&["init", "--no-detect", "--suite", "long-context"]).starts_with("exit 0")
    );
    let words = [
        "init",
        "--no-detect",
        "--suite",
        "long-context",
        "other",
        "--size",
        "32000",
        "--seed",
        "42",
    ];
    assert!(project.shown(&words).starts_with("exit 0"));
    let usual = project.read("long-context/long-context.jsonl");
    assert_eq!(usual, project.read("other/long-context.jsonl"));
    let case: serde_json::Value = serde_json::from_str(usual.lines().nth(4).unwrap()).unwrap();
    assert_eq!(case["id"], "long-context-baker-cat-32k");
    let length = case["prompt"].as_str().unwrap().chars().count();
    assert!((31_700..=32_000).contains(&length), "{length}");

    assert_snapshot!(project.shown(&["init", "--no-detect", "--suite", "long-context", "--size", "10"]), @"
    exit 2
    --- err
    error: invalid value '10' for '--size <N>': a size is a number of characters from 2k to 4m, such as 32k, 100000 or 1m

    For more information, try '--help'.
    ");
    assert_snapshot!(project.shown(&["init", "--no-detect", "--suite", "json", "--size", "32k"]), @"
    exit 2
    --- err
    error: `--size` and `--seed` are for the suite `long-context` only
    hint: other suites have a fixed size
    ");
}

#[test]
fn what_cannot_be_written_to_is_named() {
    let project = Project::new().file("taken", "a file").file("folder/cases.toml/x", "");
    assert_snapshot!(project.shown(&["init", "--no-detect", "taken"]), @"
    exit 2
    --- err
    error: `taken` is not a folder
    hint: name another folder: probity init [--suite NAME] DIR
    ");
    assert_snapshot!(project.shown(&["init", "--no-detect", "taken/below"]), @"
    exit 2
    --- err
    error: failed to create the folder `taken/below`
      caused by: Not a directory (os error 20)
    hint: no file was written
    ");
    assert_snapshot!(project.shown(&["init", "--no-detect", "folder", "--force"]), @"
    exit 2
    --- err
    error: `folder/cases.toml` is a folder, but a file should be written there
    ");
}

/// Not even root can put files there.
#[test]
fn a_folder_that_takes_no_files_is_an_error() {
    assert_snapshot!(Project::new().shown(&["init", "--no-detect", "/proc/self/fdinfo"]), @"
    exit 2
    --- err
    error: failed to write `/proc/self/fdinfo/probity.toml`
      caused by: No such file or directory (os error 2)
    hint: no file was written
    ");
}

#[test]
fn a_failure_half_way_says_what_was_written() {
    let project = Project::new().file("here/probity.toml", "old");
    symlink("/dev/full", project.path("here/cases.toml")).unwrap();
    assert_snapshot!(project.shown(&["init", "--no-detect", "here", "--force"]), @"
    exit 2
    --- err
    error: failed to write `/dev/full`
      caused by: No space left on device (os error 28)
    hint: written before that: `here/probity.toml`
    ");
}

/// A server that runs, a key that is set and a program that is installed are listed with the option that asks them.
#[test]
fn what_is_found_is_listed_and_nothing_is_asked() {
    let server = FakeServer::start(Script::always(Answer::text("ok")));
    let project = Project::new()
        .file("promptfooconfig.yaml", "prompts: [hello]\n")
        .file("bin/claude", "#!/bin/sh\n");
    let program = project.path("bin/claude");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let output = project
        .command(&["init"])
        .env_clear()
        .env("PATH", project.path("bin"))
        .env("OLLAMA_HOST", server.address().to_string())
        .env("GROQ_API_KEY", "sk-secret")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("wrote probity.toml\n"), "{text}");
    let (_, found) = text.split_once("found here; to ask one of them, ").unwrap();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let found: Vec<String> = found.lines().map(words).collect();
    let url = server.url();
    assert!(
        found
            .iter()
            .any(|it| it.starts_with("--backend ollama:") && it.ends_with(&format!(", at {url}"))),
        "{found:#?}"
    );
    for line in [
        "--backend claude claude, the program",
        "--backend groq:MODEL groq, with the key in GROQ_API_KEY",
        "`promptfooconfig.yaml` is here: `probity import -- promptfooconfig.yaml` carries it over",
    ] {
        assert!(found.iter().any(|it| it == line), "{line}: {found:#?}");
    }
    assert!(!text.contains("sk-secret"));
    assert!(project.read("probity.toml").contains("kind = \"echo\""), "the suite stays as it is");
}

/// A server may say anything in its list of models.
#[test]
fn what_is_listed_has_no_password_and_can_be_copied() {
    let server = FakeServer::start(Script::always(Answer::text("ok")));
    let address = format!("http://me:hunter2@{}", server.address());
    let output =
        Project::new().command(&["init"]).env_clear().env("OLLAMA_HOST", address).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&format!("at http://me:[redacted]@{}", server.address())), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn a_workflow_goes_to_the_top_of_the_repository() {
    let project = Project::new().file(".git/config", "");
    let words = ["init", "--no-detect", "evals", "--ci", "github"];
    assert_snapshot!(project.shown(&words).lines().take(5).collect::<Vec<_>>().join("\n"), @"
    exit 0
    --- out
    wrote evals/probity.toml
    wrote evals/cases.toml
      asks `local`: echo
    ");
    let workflow = project.read(".github/workflows/probity.yml");
    assert!(workflow.contains("          suite: evals/probity.toml\n"), "{workflow}");
    assert_snapshot!(project.shown(&["init", "--no-detect", "more", "--ci", "github"]), @"
    exit 2
    --- err
    error: `.github/workflows/probity.yml` is there already
    hint: nothing was written; name another folder, or pass --force
    ");
    assert!(!project.path("more").exists());
    assert!(
        project.shown(&["init", "--no-detect", "more", "--ci", "gitlab"]).starts_with("exit 0")
    );
    let pipeline = project.read(".gitlab-ci.yml");
    assert!(pipeline.contains("probity run \"$@\" -- more/probity.toml ||"), "{pipeline}");
    assert_snapshot!(project.shown(&["init", "--no-detect", "a b", "--ci", "gitlab", "--force"]), @"
    exit 2
    --- err
    error: the path `a b/probity.toml` cannot be written into a workflow
    hint: use letters, digits, dots, dashes and slashes
    ");
}
