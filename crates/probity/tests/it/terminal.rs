//! What a terminal gets to see, in a pseudo-terminal that Python makes.

use std::{
    path::Path,
    process::{Command, Output},
};

use crate::project::Project;

/// Runs the program in a terminal of 80 columns, or of as many as WIDTH says, types what TYPED says and prints what comes of it.
const IN_TERMINAL: &str = "
import fcntl, os, pty, struct, sys, termios
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, int(os.environ.get('WIDTH', 80)), 0, 0))
    os.execv(sys.argv[1], sys.argv[1:])
os.write(terminal, os.environ.get('TYPED', '').encode())
while True:
    try:
        output = os.read(terminal, 65536)
    except OSError:
        break
    if not output:
        break
    sys.stdout.buffer.write(output)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";

/// A suite whose two backends are programs that take long enough for progress to be drawn.
fn project() -> Project {
    let backend = |name: &str| {
        format!(
            "[backends.{name}]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"sleep 0.4; echo no\"]\n"
        )
    };
    let runner =
        "[[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\nbackends = [\"one\", \"two\"]\n";
    let case = |id: &str| serde_json::json!({ "id": id, "prompt": id, "expected_response": "yes", "match": "contains" });
    Project::new()
        .file(
            "probity.toml",
            format!("parallel = true\n{}{}{runner}", backend("one"), backend("two")),
        )
        .lines("cases.jsonl", &[case("a"), case("b")])
}

fn seen(project: &Project, variables: &[(&str, &str)]) -> String {
    seen_of(project, &["run"], variables)
}

fn seen_of(project: &Project, words: &[&str], variables: &[(&str, &str)]) -> String {
    let Output { status, stdout, stderr } = Command::new("python3")
        .args(["-c", IN_TERMINAL, env!("CARGO_BIN_EXE_probity")])
        .args(words)
        .current_dir(project.path(""))
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .env_remove("CI")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(0), "{stderr}");
    String::from_utf8(stdout).unwrap()
}

/// The answers that whoever presses Enter gives.
#[test]
fn an_import_that_is_offered_is_done() {
    let config = "prompts: ['{{q}}']\nproviders: [echo]\ntests:\n  - vars: { q: hello }\n    assert: [{ type: contains, value: hello }]\n";
    let project = Project::new().file("-evals/promptfooconfig.yaml", config).file(".git/x", "");
    // No server, no key, no program is offered: the second Enter answers nothing.
    let variables = [("TYPED", "\n\n")];
    let shown = seen_of(&project, &["init", "--", "-evals"], &variables);
    assert!(shown.contains("Import it instead?"), "{shown}");
    assert!(project.path("-evals/probity.toml").is_file(), "{shown}");

    // What is there already is replaced if that was asked for.
    let project = project.file("-evals/probity.toml", "mine");
    let shown = seen_of(&project, &["init", "--force", "--", "-evals"], &variables);
    assert!(shown.contains("Import it instead?"), "{shown}");
    assert_ne!(project.read("-evals/probity.toml"), "mine");

    let words = ["init", "--force", "--ci", "github", "--", "-evals"];
    let shown = seen_of(&project, &words, &variables);
    assert!(shown.contains("Import it instead?"), "{shown}");
    // The workflow runs what was imported.
    assert!(project.read("-evals/probity.toml").contains("promptfoo"), "{shown}");
    let workflow = project.read(".github/workflows/probity.yml");
    assert!(workflow.contains("suite: -evals/probity.toml"), "{workflow}");
    assert!(shown.contains("probity.yml; its first lines say what it needs"), "{shown}");
}

/// The codes that go up to draw again, and those that colour.
fn codes(text: &str) -> (bool, bool) {
    let parts: Vec<&str> = text.split("\u{1b}[").skip(1).collect();
    let ends = |part: &&str, letter: char| {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';');
        end.is_some_and(|end| part[end..].starts_with(letter))
    };
    (parts.iter().any(|it| ends(it, 'A')), parts.iter().any(|it| ends(it, 'm')))
}

#[test]
fn progress_is_drawn_again_and_coloured_on_a_terminal_only() {
    let project = project();
    let shown = seen(&project, &[]);
    assert_eq!(codes(&shown), (true, true), "{shown}");
    assert!(
        shown.contains("one  ") && shown.contains("two  ") && shown.contains("0/4 done"),
        "{shown}"
    );
    assert!(shown.contains("4 cases failed"), "{shown}");
    assert_eq!(codes(&seen(&project, &[("NO_COLOR", "1")])), (true, false));
    assert_eq!(codes(&seen(&project, &[("TERM", "dumb")])), (false, false));
    assert_eq!(codes(&seen(&project, &[("CI", "true"), ("NO_COLOR", "1")])), (false, false));
    let piped = project.run(&["run"]);
    for stream in [piped.stdout, piped.stderr] {
        assert!(!stream.contains(&0x1b), "{}", String::from_utf8_lossy(&stream));
    }
}

/// The columns that a line takes: signs of Chinese and emoji take two, codes for colours none.
fn columns(line: &str) -> usize {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or("").to_owned();
    let shown = parts.fold(first, |all, part| {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |it| it + 1);
        all + &part[end..]
    });
    let is_wide = |c: char| ('\u{4e00}'..'\u{9fff}').contains(&c) || c > '\u{1f000}';
    shown.chars().filter(|c| *c != '\r').map(|c| if is_wide(c) { 2 } else { 1 }).sum()
}

/// A plan breaks between words.
#[test]
fn a_dry_run_keeps_to_the_columns_of_the_terminal() {
    let shown = seen_of(&project(), &["run", "--dry-run"], &[("WIDTH", "50")]);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.iter().any(|it| it.contains("2 of 2 cases")), "{shown}");
    assert!(lines.iter().all(|it| it.trim_end().chars().count() <= 50), "{shown}");
}

#[test]
fn wide_names_keep_to_the_columns_of_the_terminal() {
    let project = project();
    let suite = project.read("probity.toml");
    let suite = suite.replace("backends.one", "backends.\"模型一号的长名字模型一号\"");
    let suite = suite.replace("backends.two", "backends.\"小型\"");
    let suite = suite.replace("\"one\", \"two\"", "\"模型一号的长名字模型一号\", \"小型\"");
    let case = |id: &str| {
        serde_json::json!({
            "id": id, "prompt": "哪一个答案是正确的", "category": "算术与几何的题目", "match": "contains",
            "expected_response": "这就是我们所期望的正确答案👍👍👍因为它是正确的",
        })
    };
    let project = project
        .file("probity.toml", suite)
        .lines("cases.jsonl", &[case("第一个很长的案例名称在这里"), case("b")]);
    let shown = seen(&project, &[("WIDTH", "60")]);
    assert!(shown.contains("模型一号") && shown.contains("期望的"), "{shown}");
    for line in shown.split('\n') {
        assert!(columns(line) <= 60, "{} columns: {line}", columns(line));
    }
    // The rows of the lanes stand below each other.
    let bar = |line: &&str| line.contains("0/2") && line.contains('─');
    let bars: Vec<usize> = shown
        .split('\n')
        .filter(bar)
        .map(|it| columns(it.split(['─', '━', '×']).next().unwrap()))
        .collect();
    assert!(bars.len() >= 2 && bars.iter().all(|it| *it == bars[0]), "{bars:?} {shown}");
}

#[test]
fn the_script_records_a_run_as_a_small_picture() {
    let project = Project::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/record-terminal");
    let output = Command::new("python3")
        .arg(script)
        .args(["--probity", env!("CARGO_BIN_EXE_probity"), "-o", "run.svg"])
        .current_dir(project.path(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let picture = project.read("run.svg");
    assert!(picture.len() < 60_000, "{} bytes", picture.len());
    for text in
        ["$ probity run classes.toml", "cases failed", "policy-violation", "DONE", "<animate "]
    {
        assert!(picture.contains(text), "{text}: {picture}");
    }
    check_nesting(&picture);
}

/// Every element that is opened is closed, in the right order.
fn check_nesting(picture: &str) {
    let mut open = Vec::new();
    for part in picture.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap();
        let name = tag.split([' ', '/']).next().unwrap();
        match tag {
            _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(&tag[1..])),
            _ if tag.ends_with('/') => {}
            _ => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}
