//! The same cases on several backends, held against each other.

use std::fmt::Write as _;

use probity_testkit::{Answer, FakeServer, Rule, Script, Trouble, When};
use serde_json::{Value, json};

use crate::{
    project::Project,
    run::{Ran, run},
};

/// A block whose text cannot be read as shell.
const UNREAD: &str = "```sh\necho 'a\n```";

/// Cases by what the prompt asks for, and what each of the three backends says to it.
const ASKED: [(&str, &str, [&str; 3]); 8] = [
    ("all", "ls -la", ["ls -a -l", "Use this:\n```sh\nls -la\n```", "ls --all -l"]),
    ("hidden", "ls -A", ["ls -A", "ls -a", "ls --almost-all"]),
    ("here", "pwd", ["pwd", "pwd", "FAULT"]),
    ("refused", "ls", ["ls", "I'm sorry, but I can't help with that.", "ls"]),
    ("quote", "echo a", [UNREAD, UNREAD, UNREAD]),
    ("unread", "echo a", ["echo a", UNREAD, "echo a"]),
    ("two", "uptime", ["uptime", "date", "date"]),
    ("hostile", "cat a", ["cat '<script>\u{202e}|`@you`'", "cat a", "head a"]),
];

fn server(backend: usize) -> FakeServer {
    let rule = |(id, _, says): &(&str, &str, [&str; 3])| {
        let answer = match says[backend] {
            "FAULT" => Answer::fault(Trouble::BadRequest),
            text => Answer::text(text),
        };
        Rule::new(When::prompt_contains(&format!("case {id}.")), answer)
    };
    FakeServer::start(ASKED.iter().map(rule).fold(Script::default(), Script::rule))
}

fn compared(more: &str) -> (Project, [FakeServer; 3]) {
    let mut cases = String::new();
    for (id, right, _) in ASKED {
        let mut case = json!({
            "id": id, "prompt": format!("case {id}."), "expected_command": right,
            "category": "correctness", "safe": true, "posix_compliant": true,
        });
        if id == "two" {
            case["expected_commands"] = json!(["date"]);
        }
        let _ = writeln!(cases, "{case}");
    }
    let servers = [0, 1, 2].map(server);
    let mut suite = String::from("version = \"1\"\nmax_error_rate = 1\n");
    for (name, server) in ["small", "large", "third"].iter().zip(&servers) {
        let url = server.url();
        let _ = writeln!(
            suite,
            "[backends.{name}]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"m\""
        );
    }
    suite.push_str("[[runners]]\nname = \"commands\"\nkind = \"command\"\n");
    let _ = writeln!(suite, "dataset = \"cases.jsonl\"\ngates = false\n{more}");
    let project = Project::new().file("cases.jsonl", cases).file("probity.toml", suite);
    run(&project, &["-o", "ran.json", "-o", "ran.txt"]).expect(0, &[]);
    (project, servers)
}

/// The section of a text report, with the name of the run taken out.
fn section(text: &str) -> String {
    let begin = text.find("commands: do ").unwrap();
    let end = text[begin..].find("\n\n").map_or(text.len(), |at| begin + at + 1);
    let mut section = text[begin..end].to_owned();
    if let Some(at) = section.find("probity report ") {
        let name = at + "probity report ".len();
        section.replace_range(name..name + 6, "RUN");
    }
    section
}

fn json(project: &Project, name: &str) -> Value {
    serde_json::from_str(&project.read(name)).unwrap()
}

#[test]
fn three_backends_are_compared_by_what_their_commands_do() {
    let (project, _servers) = compared("");
    insta::assert_snapshot!(section(&project.read("ran.txt")));
    for words in [&["show"][..], &["report"]] {
        let output = project.run(words);
        let shown = String::from_utf8(output.stdout).unwrap();
        assert_eq!(section(&shown), section(&project.read("ran.txt")), "{words:?}");
    }
}

#[test]
fn every_format_tells_of_it() {
    let (project, _servers) = compared("");
    let names = ["r.json", "suite_summary.json", "r.md", "r.html"];
    let words: Vec<&str> = names.iter().flat_map(|name| ["-o", *name]).collect();
    Ran::of(&project.run(&[&["report"], &words[..]].concat())).expect(0, &[]);
    assert_eq!(project.read("r.json"), project.read("ran.json"));
    let evaluation = json(&project, "r.json");
    crate::schema::check("evaluation", &evaluation);
    let found = &evaluation["consistency"][0];
    assert_eq!(found["backends"], json!(["small", "large", "third"]));
    assert_eq!(found["agree"], 2);
    assert_eq!(found["diverge"], json!({ "mixed": 2, "failing": 0, "passing": 1 }));
    let uncompared = json!({ "error": 1, "no_command": 1, "unparsable": 1, "missing": 0 });
    assert_eq!(found["uncompared"], uncompared);
    assert_eq!(found["divergences"][1]["groups"][0]["command"], "cat '<script>\u{202e}|`@you`'");
    let summary = json(&project, "suite_summary.json");
    crate::schema::check("summary", &summary);
    let counts = &summary["consistency"][0];
    assert_eq!((&counts["cases"], &counts["uncompared"]), (&json!(8), &uncompared));
    assert!(counts.get("divergences").is_none());
    let (page, comment) = (project.read("r.html"), project.read("r.md"));
    let section = page.split_once("<section class=\"panel agreement\"").unwrap().1;
    let section = section.split_once("</section>").unwrap().0;
    assert!(section.contains("cat '&lt;script&gt;\\u{202e}|`@you`'"), "{section}");
    assert!(comment.contains("``cat '<script>\\u{202e}|`@you`'``"), "{comment}");
    let checked = project.run(&["check", "evaluation", "r.json"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn one_backend_is_not_compared_with_itself() {
    let (project, _servers) = compared("");
    run(&project, &["--backend", "small", "-o", "one.txt", "-o", "suite_summary.json"])
        .expect(0, &[]);
    assert!(!project.read("one.txt").contains("agree?"));
    assert_eq!(json(&project, "suite_summary.json")["consistency"], json!([]));
}

#[test]
fn repeats_are_compared_one_by_one() {
    let (project, _servers) = compared("repeat = 2\n");
    let found = &json(&project, "ran.json")["consistency"][0];
    assert_eq!((&found["cases"], &found["agree"]), (&json!(16), &json!(4)));
    let repeats: Vec<&Value> =
        found["divergences"].as_array().unwrap().iter().map(|it| &it["repeat"]).collect();
    assert_eq!(repeats, [0, 1, 0, 1, 0, 1]);
    assert!(project.read("ran.txt").contains("    hidden, repeat 2\n"));
}
