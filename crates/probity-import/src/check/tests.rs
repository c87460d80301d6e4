use std::fmt::Write as _;

use probity_core::case::TestCase;
use probity_load::suite::BackendKind;

use super::*;
use crate::{
    At,
    draft::{Asks, BackendDraft, ScorerDraft, Setup, VariantDraft},
};

fn at() -> At {
    At { file: "x.yaml".into(), line: 1 }
}

fn case(id: &str, prompt: &str) -> CaseDraft {
    let (id, prompt) = (id.to_owned(), prompt.into());
    CaseDraft { case: TestCase { id, prompt, ..TestCase::default() }, at: at() }
}

/// A draft with a runner for each dataset.
fn draft(datasets: Vec<(&str, Vec<CaseDraft>)>) -> Draft {
    let runner = |dataset: &str| RunnerDraft {
        name: format!("r-{dataset}"),
        at: at(),
        comments: Vec::new(),
        kind: None,
        dataset: vec![DatasetRef::Draft(dataset.to_owned())],
        backends: vec!["echo".to_owned()],
        setup: Setup::default(),
        prompts: Vec::new(),
    };
    Draft {
        backends: vec![BackendDraft::new("echo", BackendKind::Echo, at())],
        runners: datasets.iter().map(|it| runner(it.0)).collect(),
        datasets: datasets
            .into_iter()
            .map(|(name, cases)| DatasetDraft {
                name: name.to_owned(),
                cases,
                ..DatasetDraft::default()
            })
            .collect(),
        ..Draft::default()
    }
}

fn place(folder: &Path) -> Place<'_> {
    Place { folder, root: folder, is_held: &|_| false }
}

/// The cases that are left, and the notes.
fn settled(mut draft: Draft) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut notes = Notes::default();
    assert_eq!(settle(&mut draft, &mut notes, &place(folder.path())).unwrap(), [""; 0]);
    let mut shown = String::new();
    for DatasetDraft { name, cases, .. } in &draft.datasets {
        let ids: Vec<&str> = cases.iter().map(|it| it.case.id.as_str()).collect();
        let _ = writeln!(shown, "{name}: {}", ids.join(" "));
    }
    notes.iter().for_each(|it| _ = writeln!(shown, "{}", it.what));
    shown
}

#[test]
fn a_refused_case_takes_none_with_it_that_has_its_id_elsewhere() {
    let shown = settled(draft(vec![
        ("a-cases", vec![case("0", "{{ missing }}"), case("1", "fine")]),
        ("ba-cases", vec![case("0", "fine"), case("1", "{{ missing }}")]),
    ]));
    insta::assert_snapshot!(shown, @r"
    a-cases: 1
    ba-cases: 0
    test `0`: `missing` has no value in `prompt`
    test `1`: `missing` has no value in `prompt`
    ");
}

#[test]
fn a_tag_that_nobody_wrote_is_never_sent() {
    let mut draft = draft(vec![("a", vec![case("0", "{{ x }}"), case("1", "{{ x }}")])]);
    for (case, value) in draft.datasets[0].cases.iter_mut().zip(["{% raw %}a{% endraw %}", "fine"])
    {
        case.case.prompt_vars.insert("x".into(), value.into());
    }
    insta::assert_snapshot!(settled(draft), @r"
    a: 1
    test `0`: `{% raw %}` would be sent as a text
    ");
}

#[test]
fn what_a_runner_says_is_laid_on_its_own_cases() {
    let mut draft = draft(vec![
        ("a", vec![case("0", "has no city"), case("1", "has one")]),
        ("b", vec![case("0", "fine")]),
    ]);
    draft.datasets[0].cases[1].case.prompt_vars.insert("city".into(), "Rome".into());
    draft.runners[0].prompts.push(VariantDraft {
        name: "v".to_owned(),
        at: at(),
        comments: Vec::new(),
        asks: Asks::Template("{{ prompt }} {{ city }}".to_owned()),
        file: None,
        sampling: probity_core::request::Sampling::default(),
    });
    insta::assert_snapshot!(settled(draft), @r"
    a: 1
    b: 0
    test `0`: `template` of the variant `v` cannot be filled in: `city` has no value
    ");
}

#[test]
fn a_file_belongs_to_the_runner_that_reads_it() {
    let mut draft =
        draft(vec![("ba-cases", vec![case("0", "q")]), ("a-cases", vec![case("0", "q")])]);
    let variant = |text: &str| VariantDraft {
        name: "v".to_owned(),
        at: at(),
        comments: Vec::new(),
        asks: Asks::Template(text.repeat(1_000)),
        file: None,
        sampling: probity_core::request::Sampling::default(),
    };
    draft.runners[0].prompts.push(variant("x"));
    draft.runners[1].prompts.push(variant("y"));
    let written = write::render(&draft, "/room/");
    let part = |file: &str| part_of_file(file, &draft, &written);
    assert_eq!(part("/room/a-cases.yaml"), Some(Part::Runner(1)));
    assert_eq!(part("/room/ba-cases.yaml"), Some(Part::Runner(0)));
    assert_eq!(part("/room/prompts/v.txt"), Some(Part::Variant(0, 0)));
    assert_eq!(part("/room/prompts/v-2.txt"), Some(Part::Variant(1, 0)));
    assert_eq!(part("/room/cases.yaml"), None);
}

#[test]
fn what_cannot_be_taken_out_is_said() {
    let mut draft = draft(vec![("a", vec![case("0", "q")])]);
    draft.scorers.push(ScorerDraft {
        name: "s".to_owned(),
        node: String::new(),
        is_adapter: false,
        env: Vec::new(),
    });
    let folder = tempfile::tempdir().unwrap();
    let left = settle(&mut draft, &mut Notes::default(), &place(folder.path())).unwrap();
    insta::assert_snapshot!(left.join("\n"), @r"
    field `node` is blank
    scorer `s` needs one of `command`, `python` and `node`
    ");
}

#[test]
fn a_line_belongs_to_the_part_that_it_stands_in() {
    let mut draft = draft(vec![("a", vec![case("0", "q")]), ("b", vec![case("0", "q")])]);
    draft.comments.push("two\nlines".to_owned());
    draft.runners[0].setup.system = Some("several\nlines\nof text\n".to_owned());
    let written = write::render(&draft, "");
    let part = |text: &str| {
        let line = written.suite.lines().position(|it| it.contains(text)).unwrap();
        written.part(line + 1)
    };
    assert_eq!(part("version ="), Part::Settings);
    assert_eq!(part("[backends.echo]"), Part::Backend(0));
    assert_eq!(part("of text"), Part::Runner(0));
    assert_eq!(part("\"r-b\""), Part::Runner(1));
}
