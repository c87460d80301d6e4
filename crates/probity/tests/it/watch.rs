//! `run --watch`: what a changed file touches is run again, and nothing else.

use std::{
    fs::{self, File},
    process::{Child, Stdio},
};

use probity_testkit::{Answer, FakeServer, Rule, Script, When};

use crate::{
    project::Project,
    resume::{PATIENCE, signal, wait_until},
};

const SUITE: &str = r#"
[backends.b]
kind = "openai"
base_url = "URL"
model = "m-1"
[[runners]]
name = "first"
dataset = "first.jsonl"
[[runners]]
name = "second"
dataset = "second.jsonl"
"#;

fn case(id: &str, prompt: &str) -> String {
    format!(
        "{{\"id\": \"{id}\", \"prompt\": \"{prompt}\", \"assert\": [{{\"type\": \"regex\", \"value\": \".\"}}]}}\n"
    )
}

fn project(server: &FakeServer) -> Project {
    Project::new()
        .file("probity.toml", SUITE.replace("URL", &server.url()))
        .file("first.jsonl", case("a", "say a") + &case("b", "say b"))
        .file("second.jsonl", case("c", "say c"))
}

/// A watch that ends with its test, however that ends.
pub(crate) struct Watch(Child);

impl Drop for Watch {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn watch(project: &Project) -> Watch {
    watch_with(project, &[])
}

pub(crate) fn watch_with(project: &Project, options: &[&str]) -> Watch {
    let told = |name: &str| File::create(project.path(name)).unwrap();
    let mut command = project.command(&["run", "--watch"]);
    command.args(options);
    command.stdin(Stdio::null()).stdout(told("out.txt")).stderr(told("err.txt"));
    Watch(command.spawn().unwrap())
}

/// Waits until files are watched again after so many runs.
pub(crate) fn wait_for_runs(project: &Project, count: usize) {
    wait_until("the run is over", || project.read("err.txt").matches("watching ").count() == count);
}

pub(crate) fn end(project: &Project, mut watch: Watch) -> (Option<i32>, String) {
    signal("-INT", watch.0.id());
    (watch.0.wait().unwrap().code(), project.read("err.txt"))
}

#[test]
fn a_changed_dataset_is_run_again_alone_and_from_the_cache() {
    let server = FakeServer::start(Script::default());
    let project = project(&server);
    let child = watch(&project);
    wait_for_runs(&project, 1);
    assert_eq!(server.seen().asked, 3);

    fs::write(project.path("first.jsonl"), case("a", "say a") + &case("new", "say d")).unwrap();
    wait_for_runs(&project, 2);
    assert_eq!(server.seen().asked, 4, "only the new case is asked");

    // Nothing of this can be used, and the next change is waited for all the same.
    fs::write(project.path("probity.toml"), "runners = 1").unwrap();
    wait_for_runs(&project, 3);
    fs::write(project.path("probity.toml"), SUITE.replace("URL", &server.url())).unwrap();
    wait_for_runs(&project, 4);

    let (code, told) = end(&project, child);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("first.jsonl changed"), "{told}");
    let runs = String::from_utf8(project.run(&["runs", "--json"]).stdout).unwrap();
    let cases = ["\"cases\":3", "\"cases\":2", "\"cases\":3"];
    assert_eq!(runs.lines().count(), 3, "{runs}");
    assert!(runs.lines().zip(cases).all(|(run, cases)| run.contains(cases)), "{runs}");
    assert_eq!(server.seen().asked, 4);
}

#[test]
fn scripts_and_scorers_are_watched() {
    let server = FakeServer::start(Script::default());
    let scored = |kind: &str, value: &str| {
        format!(
            "{{\"id\": \"a\", \"prompt\": \"say a\", \"assert\": [{{\"type\": \"{kind}\", \"value\": {value}}}]}}\n"
        )
    };
    let suite = format!(
        "allow_code = true\n{}[[runners]]\nname = \"third\"\ndataset = \"third.jsonl\"\n\
         [[runners]]\nname = \"fourth\"\ndataset = \"fourth.jsonl\"\n\
         [scorers.own]\npython = \"own.py\"\n",
        SUITE.replace("URL", &server.url())
    );
    let project = Project::new()
        .file("probity.toml", suite)
        .file("first.jsonl", scored("javascript", "\"file://score.js\""))
        .file("second.jsonl", scored("python", "\"file://score.py\""))
        .file("third.jsonl", scored("exec", "[\"sh\", \"score.sh\"]"))
        .file("fourth.jsonl", scored("scorer", "\"own\""))
        .file("score.js", "module.exports = () => true;\n")
        .file("score.py", "def get_assert(output, context):\n    return True\n")
        .file("score.sh", "exit 0\n")
        .file("own.py", "def get_assert(output, context):\n    return True\n");
    let child = watch(&project);
    wait_for_runs(&project, 1);
    let fails = [
        ("score.js", "module.exports = () => 0 > 1;\n"),
        ("score.py", "def get_assert(output, context):\n    return not True\n"),
        ("score.sh", "exit 00001\n"),
        ("own.py", "def get_assert(output, context):\n    return not True\n"),
    ];
    for (at, (name, text)) in fails.into_iter().enumerate() {
        fs::write(project.path(name), text).unwrap();
        wait_for_runs(&project, at + 2);
    }
    let (_, told) = end(&project, child);
    for name in ["score.js", "score.py", "score.sh", "own.py"] {
        assert!(told.contains(&format!("{name} changed")), "{name}: {told}");
    }
    let runs = String::from_utf8(project.run(&["runs", "--json"]).stdout).unwrap();
    let failed = runs.lines().filter(|it| !it.contains("\"fail\":0")).count();
    assert_eq!((runs.lines().count(), failed), (5, 4), "{runs}");
}

#[test]
fn functions_that_make_prompts_and_cases_are_watched() {
    let server = FakeServer::start(Script::default());
    let suite = SUITE
        .replace("URL", &server.url())
        .replace("first.jsonl", "file://tests.py:generate")
        .replace("second.jsonl\"", "second.jsonl\"\nprompt = \"file://prompt.py:make\"");
    let tests = "def generate():\n    return [{'prompt': 'say %d' % n} for n in range(3)]\n";
    let prompt = "def make(context):\n    return 'old'\n";
    let project = project(&server).file("probity.toml", suite);
    let project = project.file("tests.py", tests).file("prompt.py", prompt);
    let child = watch(&project);
    wait_for_runs(&project, 1);
    assert_eq!(server.seen().asked, 4);
    fs::write(project.path("tests.py"), tests.replace("range(3)", "range(5)")).unwrap();
    wait_for_runs(&project, 2);
    assert_eq!(server.seen().asked, 6, "only the new cases are asked");
    fs::write(project.path("prompt.py"), prompt.replace("old", "newer")).unwrap();
    wait_for_runs(&project, 3);
    assert_eq!(server.seen().asked, 7, "only the runner of the prompt asks");
    let (code, told) = end(&project, child);
    assert_eq!(code, Some(0), "{told}");
}

#[test]
fn options_may_be_about_runners_that_no_change_touched() {
    let server = FakeServer::start(Script::default());
    let variant = |name: &str| {
        format!("[[runners.prompts]]\nname = \"{name}\"\ntemplate = \"{{{{ prompt }}}}\"\n")
    };
    let suite = SUITE.replace("URL", &server.url());
    let (first, second) = suite.split_at(suite.rfind("[[runners]]").unwrap());
    let suite = format!("{first}{}{second}{}", variant("x"), variant("y"));
    let project = project(&server).file("probity.toml", suite);
    let blessed = project.run(&["run", "--cache"]);
    assert_eq!(blessed.status.code(), Some(0));
    assert_eq!(project.run(&["bless", "latest", "--as", "main"]).status.code(), Some(0));

    let options = "--cache --variant x,y --case a,c --baseline main --force";
    let child = watch_with(&project, &options.split(' ').collect::<Vec<_>>());
    wait_for_runs(&project, 1);
    fs::write(project.path("first.jsonl"), case("a", "say another")).unwrap();
    wait_for_runs(&project, 2);
    let (code, told) = end(&project, child);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(told.matches("first.jsonl changed").count(), 1, "{told}");
    assert!(!told.contains("error"), "{told}");
    assert_eq!(server.seen().asked, 4, "three cases, and the one that was changed");
}

#[test]
fn a_signal_stops_the_run_that_goes_on() {
    let rule = Rule::new(When::Requests(1..1000), Answer::Hang);
    let server = FakeServer::start(Script::default().rule(rule));
    let project = project(&server);
    let child = watch(&project);
    assert!(server.wait_until(|seen| seen.in_flight > 0, PATIENCE));
    let (code, told) = end(&project, child);
    assert_eq!(code, Some(3), "{told}");
    assert!(!told.contains("watching "), "{told}");
}
