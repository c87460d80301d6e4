//! What steers a terminal or cannot be seen is spelled out, wherever it comes from.

use probity_core::{classification::Class, visible::is_hidden};
use probity_report::palette::{Tint, WARN};
use probity_testkit::{Answer, FakeServer, Script};

use crate::{
    project::Project,
    run::{project, run},
};

/// An escape, a bell, C1, bidi, a tag, fillers, a soft hyphen and an anchor.
const NASTY: &str =
    "x\u{1b}[2J\u{1b}[35m\u{7}\u{9b}2J\u{202e}\u{e0041}\u{115f}\u{3164}\u{180e}\u{ad}\u{fff9}y";

/// Insists on nothing hidden in either stream, also where colours are wanted.
#[track_caller]
fn check_shown(project: &Project, words: &[&str], input: &str) -> String {
    let colourless = project.run_with(words, input);
    let coloured = project.run_with(&[words, &["--color", "always"]].concat(), input);
    for output in [&colourless, &coloured] {
        for stream in [&output.stdout, &output.stderr] {
            let mut text = String::from_utf8(stream.clone()).unwrap();
            // Magenta is not among our colours: it could only come from somebody else.
            for colour in (0..=1).chain(31..=34).chain(91..=97) {
                text = text.replace(&format!("\x1b[{colour}m"), "");
            }
            for tint in Class::ALL.map(Tint::of_class).into_iter().chain([WARN]) {
                text = text.replace(&format!("\x1b[38;5;{}m", tint.terminal), "");
            }
            let hidden: Vec<char> = text.chars().filter(|c| is_hidden(*c)).collect();
            assert!(hidden.is_empty(), "{words:?}: {hidden:?} in {text}");
        }
    }
    [colourless.stdout, colourless.stderr].map(|it| String::from_utf8(it).unwrap()).concat()
}

#[test]
fn checks_spell_out_what_they_were_given() {
    let project = Project::new();
    let commands = [format!("ls {NASTY}"), format!("{NASTY} -x"), format!("rm -rf / '{NASTY}")];
    for command in &commands {
        let shown = check_shown(&project, &["check", "command"], command);
        let against = ["check", "command", "--against", "ls -a"];
        check_shown(&project, &against, command);
        check_shown(&project, &["check", "command", "--reply"], &format!("```sh\n{command}\n```"));
        assert!(!shown.is_empty());
    }
    check_shown(&project, &["check", "json", "--level", NASTY], "");
    check_shown(&project, &[NASTY], "");
    check_shown(&project, &["check", "refusal"], &format!("{NASTY} I cannot help with that."));
    check_shown(&project, &["check", "json"], &format!("{{\"{NASTY}\": \"{NASTY}\",}}"));
    check_shown(&project, &["check", "policy"], &format!("{NASTY} AKIAIOSFODNN7EXAMPLE"));
}

#[test]
fn datasets_are_described_without_their_tricks() {
    let case = serde_json::json!({
        "id": "a", "prompt": NASTY, "expected_response": NASTY, "tags": [NASTY],
        "difficulty": NASTY,
    });
    let named = format!("{}.jsonl", NASTY.replace('/', ""));
    let wrong = format!("{{\"id\":\"a\",\"prompt\":\"p\",\"{NASTY}\":1,\"match\":\"{NASTY}\"}}\n");
    let project = Project::new()
        .file("cases.jsonl", format!("{case}\n"))
        .file("wrong.jsonl", &wrong)
        .file(&named, &wrong)
        .file("eval.yaml", format!("prompts: ['{{{{q}}}}']\ntests:\n  - vars: {{q: hi}}\n    assert:\n      - type: 'nope\\u001b{}'\n", "\u{ad}\u{202e}"));
    let shown = check_shown(&project, &["dataset", "stats", "cases.jsonl"], "");
    assert!(shown.contains("\\u{1b}"), "{shown}");
    let data = project.run(&["dataset", "stats", "--json", "cases.jsonl"]).stdout;
    let data: serde_json::Value = serde_json::from_slice(&data).unwrap();
    assert_eq!(data["tags"][NASTY], 1, "data stays as it is: {data:#}");
    check_shown(&project, &["dataset", "validate", "wrong.jsonl"], "");
    check_shown(&project, &["dataset", "validate", &named], "");
    check_shown(&project, &["dataset", "lint", &named], "");
    check_shown(&project, &["dataset", "stats", &format!("missing{NASTY}.jsonl")], "");
    let import = ["import", "eval.yaml", "-o", "out", "--force"];
    check_shown(&project, &import, "");
}

#[test]
fn what_models_say_is_shown_and_reported_without_its_tricks() {
    let server = FakeServer::start(Script::always(Answer::text(NASTY)));
    let project = project(2, &[("fake", &server)], "");
    run(&project, &[]);
    check_shown(&project, &["show"], "");
    let shown = check_shown(&project, &["show", "latest", "case-0"], "");
    for c in ["\\u{e0041}", "\\u{115f}", "\\u{ad}", "\\u{9b}"] {
        assert!(shown.contains(c), "{c} in {shown}");
    }
    assert!(project.run(&["report", "-o", "r.html", "-o", "r.md"]).status.success());
    let page = project.read("r.html");
    // The data is as it was; the page's script spells out what cannot be seen.
    let (before, rest) = page.split_once("<script type=\"application/json\"").unwrap();
    let after = rest.split_once("</script>").unwrap().1;
    for part in [before, after, &project.read("r.md")] {
        assert!(!part.contains(is_hidden));
    }
    assert!(after.contains("Default_Ignorable_Code_Point"));
}
