//! The documentation, held to what the program does: every page of the site and the README.
//!
//! CONTRIBUTING.md has the rules for those who write pages. `PROBITY_BOOK=update` in the
//! environment writes what the program prints now into the pages, and generates the reference anew.

mod links;
mod page;
mod reference;
mod sample;
mod session;

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use insta::assert_snapshot;

use self::{page::Page, session::Session};

/// Pages are divided among so many tests, which run at the same time.
const PARTS: usize = 16;

/// No more blocks than these may go without being run, be left alone, or need what not every machine has.
const MOST_NOT_RUN: usize = 32;
const MOST_NOT_CHECKED: usize = 7;
const MOST_IN_NEED: usize = 5;

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub(super) fn is_updating() -> bool {
    env::var_os("PROBITY_BOOK").is_some_and(|it| it == "update")
}

/// The pages of the site by their paths from the root of the repository, in order.
pub(super) fn site() -> Vec<String> {
    fn walk(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|it| it == "md") {
                found.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join("docs"), &mut found);
    found.sort();
    found
}

/// Those whose blocks are looked at.
fn pages() -> Vec<String> {
    let mut all = site();
    all.push("README.md".to_owned());
    all
}

fn check_part(part: usize) {
    let mut wrong = Vec::new();
    for name in pages().iter().skip(part).step_by(PARTS) {
        let page = Page::read(name);
        wrong.extend(page.problems());
        wrong.extend(Session::new(&page).check());
    }
    assert!(
        wrong.is_empty(),
        "{}\n\nPROBITY_BOOK=update writes what the program prints now.",
        wrong.join("\n\n")
    );
}

macro_rules! parts {
    ($($name:ident $part:literal)*) => { $(
        #[test]
        fn $name() {
            check_part($part);
        }
    )* };
}

parts! {
    the_blocks_of_a_part_of_the_pages_hold_01 0
    the_blocks_of_a_part_of_the_pages_hold_02 1
    the_blocks_of_a_part_of_the_pages_hold_03 2
    the_blocks_of_a_part_of_the_pages_hold_04 3
    the_blocks_of_a_part_of_the_pages_hold_05 4
    the_blocks_of_a_part_of_the_pages_hold_06 5
    the_blocks_of_a_part_of_the_pages_hold_07 6
    the_blocks_of_a_part_of_the_pages_hold_08 7
    the_blocks_of_a_part_of_the_pages_hold_09 8
    the_blocks_of_a_part_of_the_pages_hold_10 9
    the_blocks_of_a_part_of_the_pages_hold_11 10
    the_blocks_of_a_part_of_the_pages_hold_12 11
    the_blocks_of_a_part_of_the_pages_hold_13 12
    the_blocks_of_a_part_of_the_pages_hold_14 13
    the_blocks_of_a_part_of_the_pages_hold_15 14
    the_blocks_of_a_part_of_the_pages_hold_16 15
}

/// Blocks with a directive, with what it says, and how many there are.
fn with_directive(directive: &str) -> (usize, String) {
    let mut list = String::new();
    let mut count = 0;
    for name in pages() {
        for block in Page::read(&name).blocks {
            if let Some(reason) = block.says(directive) {
                count += 1;
                let first = block.lines.first().map_or("", String::as_str);
                writeln!(list, "{name}: {first}\n    {reason}").unwrap();
            }
        }
    }
    (count, list)
}

#[test]
fn blocks_that_are_not_run_are_few_and_say_why() {
    let (count, list) = with_directive("not run");
    assert!(count <= MOST_NOT_RUN, "{count} blocks are not run:\n{list}");
    assert_snapshot!("not_run", list);
}

#[test]
fn blocks_that_are_not_checked_everywhere_are_few_and_say_why() {
    let (unchecked, list) = with_directive("not checked");
    assert!(unchecked <= MOST_NOT_CHECKED, "{unchecked} blocks are not checked:\n{list}");
    let (in_need, needs) = with_directive("needs");
    assert!(in_need <= MOST_IN_NEED, "{in_need} blocks are left out somewhere:\n{needs}");
    assert_snapshot!("not_checked", list + &needs);
}

/// What the check says of a page.
fn check(text: &str) -> Vec<String> {
    let page = Page::parse("page.md", text);
    let mut wrong = page.problems();
    wrong.extend(Session::new(&page).check());
    wrong
}

#[test]
fn a_command_that_prints_something_else_is_noticed() {
    let page = |verdict: &str| {
        format!(
            "# Page\n\n```console\n$ probity check error --text 'HTTP 429'\n{verdict}\n…\n```\n"
        )
    };
    assert_eq!(check(&page("rate_limit")), [""; 0]);
    let wrong = check(&page("quota"));
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(
        wrong[0].starts_with("page.md:4: `probity check error --text 'HTTP 429'`"),
        "{wrong:?}"
    );
    assert!(wrong[0].contains("\n- quota\n"), "{wrong:?}");
    assert!(wrong[0].contains("\n+ rate_limit\n"), "{wrong:?}");
}

#[test]
fn an_exit_code_that_is_not_written_down_is_noticed() {
    let page = |end: &str| format!("# Page\n\n```console\n$ exit 3\n{end}```\n");
    assert_eq!(check(&page("# exit code 3\n")), [""; 0]);
    assert!(check(&page(""))[0].contains("+ # exit code 3"));
    assert!(check(&page("# exit code 1\n"))[0].contains("+ # exit code 3"));
    let script = check("# Page\n\n```sh\ntrue\nfalse\necho not reached\n```\n");
    assert!(script[0].contains("ended with 1"), "{script:?}");
}

#[test]
fn names_of_runs_stand_for_each_other() {
    let run = "$ echo 20261117-010101-abc123 abc123\n20250101-000000-zzz999 zzz999\n";
    let page = |later: &str| format!("# Page\n\n```console\n{run}$ echo zzz999\n{later}\n```\n");
    assert_eq!(check(&page("zzz999")), [""; 0]);
    assert_eq!(check(&page("other1")).len(), 1);
}

#[test]
fn suites_and_datasets_that_do_not_load_are_noticed() {
    let bad = [
        ("toml", "[backends.a]\nkind = \"echo\"\ncolour = 1"),
        ("toml", "[[test_cases]]\nid = \"a\"\nprompt = \"x\"\nassert = [{ type = \"no\" }]"),
        ("toml", "assert = [{ type = \"contains\" }]"),
        ("yaml", "runners:\n  - name: a\n    dataset: a.jsonl\n    kind: nothing"),
        ("yaml", "jobs: [a, b"),
        ("jsonl", "{\"id\": \"a\", \"promt\": \"x\"}"),
        ("json", "{\"a\": }"),
        ("python", "def f(:"),
        ("", "x"),
        ("brainfuck", "x"),
    ];
    for (language, text) in bad {
        let wrong = check(&format!("# Page\n\n```{language}\n{text}\n```\n"));
        assert_eq!(wrong.len(), 1, "{language} {text}: {wrong:?}");
    }
    let good = [
        ("toml", "[runners.gates]\npass_rate = 0.9"),
        ("toml", "[[runners]]\nname = \"a\"\ndataset = \"cases/x.yaml\"\njudge = \"large\""),
        ("toml", "[[test_cases]]\nid = \"a\"\nprompt = \"x\"\nexpected_response = \"y\""),
        ("toml", "assert = [{ type = \"contains\", value = \"x\" }]"),
        ("jsonl", "{\"id\": \"a\", \"prompt\": \"x\", \"expected_response\": \"y\"}"),
        ("json", "{\"a\": 1}"),
        ("yaml", "jobs: [a, b]"),
    ];
    for (language, text) in good {
        let page = format!("# Page\n\n```{language}\n{text}\n```\n");
        assert_eq!(check(&page), [""; 0], "{language} {text}");
    }
}

#[test]
fn files_and_unseen_commands_prepare_the_page() {
    let page = "# Page

<!-- run: echo seen > seen.txt -->
In `given.txt`:

<!-- file: given.txt -->
```text
given
```

```console
$ cat seen.txt given.txt
seen
given
```

<!-- not run: it needs a key -->
```console
$ false
```
";
    assert_eq!(check(page), [""; 0]);
    assert!(check(&page.replace(": it needs a key", ":"))[0].contains("no reason"));
    assert!(check(&page.replace("`given.txt`", "it"))[0].contains("does not see the name"));
}

#[test]
fn what_is_printed_is_written_into_a_page() {
    let old = "# Page\n\n```console\n$ echo one; echo two\none\n$ echo 20261117-010101-abc123\n\
               20250101-000000-zzz999\n$ exit 2\n```\n\nText.\n";
    let page = Page::parse("page.md", old);
    let mut session = Session::new(&page);
    session.check();
    let new = old
        .replace("one\n$ echo 2", "one\ntwo\n$ echo 2")
        .replace("2\n```", "2\n# exit code 2\n```");
    assert_eq!(session.updated(), new);
}

#[test]
fn every_page_has_a_place_and_one_title() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    for name in site().iter().filter(|it| *it != "docs/SUMMARY.md") {
        let place = format!("]({})", name.strip_prefix("docs/").unwrap());
        assert_eq!(summary.matches(&place).count(), 1, "{name} in docs/SUMMARY.md");
        let page = Page::read(name);
        let titles = page.headings.iter().filter(|it| it.level == 1).count();
        assert!(titles == 1 && page.headings[0].level == 1, "{name} begins with one title");
    }
}
