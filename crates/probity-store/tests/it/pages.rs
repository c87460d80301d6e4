//! Pages of runs, of results and of cases beside each other.

use std::{path::PathBuf, sync::Arc};

use probity_core::{
    case::{Category, TestCase},
    classification::{Class, Verdict},
    record::{CaseRecord, Usage},
    score::Score,
};
use probity_store::{
    CaseQuery, GridQuery, Reader, RunsQuery, ScoreBars, ScoreRange, Sort, Standing, SuiteRow,
};
use tempfile::TempDir;

use crate::common::{lane, lane_on, lanes_of, record, whole};

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    (folder, path)
}

/// The result of a case, with a score that decides.
fn scored(case_id: &str, verdict: Verdict, value: Option<f64>) -> CaseRecord {
    let mut record = record(case_id, verdict);
    record.classification.scores = vec![Score { value, ..Score::new("closeness", None) }];
    record
}

/// Four results that come in another order for everything that they can be put in order by.
fn various() -> Vec<(usize, CaseRecord)> {
    let result =
        |id, verdict, class, category: Option<&str>, latency_ms, tokens, cost_usd, score| {
            let (input_tokens, output_tokens) = tokens;
            let mut record = scored(id, verdict, score);
            let case = TestCase {
                category: category.map(Category::named),
                tags: vec![format!("tag-{id}")],
                ..(*record.case).clone()
            };
            record.usage = Usage { input_tokens, output_tokens, ..Usage::default() };
            (0, CaseRecord { class, latency_ms, cost_usd, case: Arc::new(case), ..record })
        };
    let (pass, fail, error, undecided) =
        (Verdict::Pass, Verdict::Fail, Verdict::Error, Verdict::Undecided);
    vec![
        result("a", pass, Class::Pass, Some("m"), 30, (Some(1), Some(1)), Some(0.5), Some(0.9)),
        result("b", fail, Class::Refusal, None, 10, (Some(5), Some(5)), None, Some(0.2)),
        result("c", error, Class::Error, Some("z"), 20, (None, None), Some(0.125), None),
        result(
            "d",
            undecided,
            Class::Fail,
            Some("b"),
            40,
            (Some(2), Some(1)),
            Some(0.25),
            Some(0.5),
        ),
    ]
}

/// The ids of the results that are asked for, put together of pages of so many.
fn ids(reader: &Reader, query: &CaseQuery, limit: usize) -> String {
    let lanes = lanes_of(reader, "latest");
    let lanes: Vec<_> = lanes.iter().collect();
    let mut query = CaseQuery { limit, ..query.clone() };
    let mut found = String::new();
    loop {
        let page = reader.cases_page(&lanes, &query).unwrap();
        assert!(page.rows.len() <= limit);
        page.rows.iter().for_each(|it| found.push_str(&it.record.case_id));
        match page.next {
            None => return found,
            next => query.after = next,
        }
    }
}

#[test]
fn results_come_in_the_order_that_is_asked_for_page_by_page() {
    let (_folder, path) = place();
    whole(&path, "first", "s", &[lane()], various());
    let reader = Reader::open(&path).unwrap();
    for (sort, order) in [
        (Sort::Verdict, "cbda"),
        (Sort::Case, "abcd"),
        (Sort::Class, "cdab"),
        (Sort::Category, "bdac"),
        (Sort::Latency, "bcad"),
        (Sort::Tokens, "cadb"),
        (Sort::Cost, "bcda"),
        (Sort::Score, "bdac"),
    ] {
        let turned: String = order.chars().rev().collect();
        for limit in [1, 3, 4, 5] {
            let query = CaseQuery { sort, ..CaseQuery::default() };
            assert_eq!(ids(&reader, &query, limit), order, "{sort} by {limit}");
            let query = CaseQuery { descending: true, ..query };
            assert_eq!(ids(&reader, &query, limit), turned, "{sort} turned round by {limit}");
        }
    }
}

#[test]
fn results_are_found_by_what_is_known_of_them() {
    let (_folder, path) = place();
    whole(&path, "first", "s", &[lane()], various());
    let reader = Reader::open(&path).unwrap();
    let found = |query: CaseQuery| ids(&reader, &CaseQuery { sort: Sort::Case, ..query }, 9);
    let all = CaseQuery::default;
    assert_eq!(found(CaseQuery { verdict: Some(Verdict::Undecided), ..all() }), "d");
    assert_eq!(found(CaseQuery { class: Some(Class::Refusal), ..all() }), "b");
    assert_eq!(found(CaseQuery { category: Some("m".to_owned()), ..all() }), "a");
    assert_eq!(found(CaseQuery { tag: Some("tag-c".to_owned()), ..all() }), "c");
    let score = |name: Option<&str>, min, max| {
        let name = name.map(ToOwned::to_owned);
        found(CaseQuery { score: Some(ScoreRange { name, min, max }), ..all() })
    };
    assert_eq!(score(None, 0.2, 0.5), "bd");
    assert_eq!(score(Some("closeness"), 0.6, 1.0), "a");
    assert_eq!(score(Some("distance"), 0.0, 1.0), "");
    let words = |words: &[&str]| {
        found(CaseQuery { words: words.iter().map(|it| (*it).to_owned()).collect(), ..all() })
    };
    // The call of `c` failed: it has no reply.
    assert_eq!((words(&["DONE"]), words(&["done", "do it"])), ("abd".to_owned(), "abd".to_owned()));
    assert_eq!(
        (words(&["do it"]), words(&["do it", "nothing"])),
        ("abcd".to_owned(), String::new())
    );
    assert_eq!((words(&["d%it"]), words(&["d_"])), (String::new(), String::new()));
}

#[test]
fn a_page_says_how_many_results_there_are_unless_texts_are_searched() {
    let (_folder, path) = place();
    whole(&path, "first", "s", &[lane()], various());
    let reader = Reader::open(&path).unwrap();
    let lanes = lanes_of(&reader, "latest");
    let total = |query: CaseQuery| reader.cases_page(&[&lanes[0]], &query).unwrap().total;
    assert_eq!(total(CaseQuery { limit: 1, ..CaseQuery::default() }), Some(4));
    let failed = CaseQuery { verdict: Some(Verdict::Fail), limit: 1, ..CaseQuery::default() };
    assert_eq!(total(failed), Some(1));
    let words = vec!["do".to_owned()];
    assert_eq!(total(CaseQuery { words, limit: 1, ..CaseQuery::default() }), None);
}

#[test]
fn flaky_cases_are_those_whose_repeats_came_out_differently() {
    let (_folder, path) = place();
    let repeat = |id, repeat, verdict| (0, CaseRecord { repeat, ..record(id, verdict) });
    let results = vec![
        repeat("f", 0, Verdict::Pass),
        repeat("f", 1, Verdict::Fail),
        repeat("g", 0, Verdict::Pass),
        repeat("g", 1, Verdict::Pass),
    ];
    whole(&path, "first", "s", &[lane()], results);
    let reader = Reader::open(&path).unwrap();
    let query = CaseQuery { flaky: true, ..CaseQuery::default() };
    assert_eq!(ids(&reader, &query, 1), "ff");
}

#[test]
fn flipped_cases_came_out_otherwise_in_another_run() {
    let (_folder, path) = place();
    let results = |b| vec![(0, record("a", Verdict::Pass)), (0, record("b", b))];
    whole(&path, "first", "s", &[lane()], results(Verdict::Pass));
    whole(&path, "second", "s", &[lane()], results(Verdict::Fail));
    let reader = Reader::open(&path).unwrap();
    let flipped = |id| {
        let run = Some(reader.find(id).unwrap());
        ids(&reader, &CaseQuery { flipped: run, ..CaseQuery::default() }, 9)
    };
    assert_eq!((flipped("first"), flipped("second")), ("b".to_owned(), String::new()));
}

#[test]
fn a_case_has_neighbours_in_the_order_of_the_ids() {
    let (_folder, path) = place();
    whole(&path, "first", "s", &[lane()], various());
    let reader = Reader::open(&path).unwrap();
    let lanes = lanes_of(&reader, "latest");
    let around = |id| reader.neighbours(&lanes[0], id).unwrap();
    let named = |id: &str| Some(id.to_owned());
    assert_eq!(around("b"), [named("a"), named("c")]);
    assert_eq!((around("a"), around("d")), ([None, named("b")], [named("c"), None]));
}

#[test]
fn runs_are_found_by_their_suite_their_backends_and_their_time() {
    let (_folder, path) = place();
    for (id, suite, backend) in [("first", "s", "x"), ("second", "t_1", "y"), ("third", "s", "y")] {
        whole(&path, id, suite, &[lane_on(backend)], Vec::new());
    }
    let reader = Reader::open(&path).unwrap();
    let found = |query: RunsQuery| {
        let page = reader.runs_page(&RunsQuery { limit: 9, ..query }).unwrap();
        page.runs.iter().map(|it| it.short().to_owned()).collect::<Vec<_>>()
    };
    let all = RunsQuery::default;
    let text = |it: &str| Some(it.to_owned());
    assert_eq!(found(all()), ["third", "second", "first"]);
    assert_eq!(found(RunsQuery { suite: text("s"), ..all() }), ["third", "first"]);
    assert_eq!(found(RunsQuery { backend: text("y"), ..all() }), ["third", "second"]);
    assert_eq!(found(RunsQuery { suite: text("s"), backend: text("y"), ..all() }), ["third"]);
    assert_eq!(found(RunsQuery { text: text("ir"), ..all() }), ["third", "first"]);
    // What stands for any character in SQL stands for itself.
    assert_eq!(found(RunsQuery { text: text("t_"), ..all() }), ["second"]);
    let began = 1_794_736_800_000;
    assert_eq!(found(RunsQuery { since_ms: Some(began), ..all() }).len(), 3);
    assert_eq!(found(RunsQuery { since_ms: Some(began + 1), ..all() }).len(), 0);
    assert_eq!(found(RunsQuery { until_ms: Some(began), ..all() }).len(), 0);
    assert_eq!(found(RunsQuery { until_ms: Some(began + 1), ..all() }).len(), 3);
}

#[test]
fn a_page_of_runs_says_where_the_next_one_begins_if_there_is_one() {
    let (_folder, path) = place();
    for id in ["first", "second", "third"] {
        whole(&path, id, "s", &[lane()], Vec::new());
    }
    let reader = Reader::open(&path).unwrap();
    let page = |after, limit| {
        let page = reader.runs_page(&RunsQuery { after, limit, ..RunsQuery::default() }).unwrap();
        (page.runs.iter().map(|it| it.short().to_owned()).collect::<Vec<_>>().join(" "), page.next)
    };
    let (runs, next) = page(None, 2);
    assert_eq!(runs, "third second");
    assert_eq!(page(Some(next.unwrap()), 2), ("first".to_owned(), None));
    assert_eq!(page(None, 3), ("third second first".to_owned(), None));
}

#[test]
fn runs_before_one_are_those_of_the_same_suite() {
    let (_folder, path) = place();
    for (id, suite) in [("first", "s"), ("second", "t"), ("third", "s"), ("fourth", "s")] {
        whole(&path, id, suite, &[lane()], Vec::new());
    }
    let reader = Reader::open(&path).unwrap();
    let before = |most| {
        let runs = reader.runs_before(&reader.find("fourth").unwrap(), "s", most).unwrap();
        runs.iter().map(|it| it.short().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(before(9), ["third", "first"]);
    assert_eq!(before(1), ["third"]);
}

#[test]
fn suites_and_backends_are_listed() {
    let (_folder, path) = place();
    for (id, suite, backend) in [("first", "s", "y"), ("second", "t", "x"), ("third", "s", "y")] {
        whole(&path, id, suite, &[lane_on(backend)], Vec::new());
    }
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.suites().unwrap(), ["s", "t"]);
    assert_eq!(reader.backends().unwrap(), ["x", "y"]);
    let row = |name: &str, runs, latest: &str| SuiteRow {
        name: name.to_owned(),
        path: Some(format!("{name}/probity.toml")),
        runs,
        latest: format!("20261115-100000-{latest}"),
        started_ms: 1_794_736_800_000,
    };
    let rows = [row("s", 2, "third"), row("t", 1, "second")];
    assert_eq!(reader.suite_rows(9).unwrap(), rows);
    assert_eq!(reader.suite_rows(1).unwrap(), rows[..1]);
}

#[test]
fn the_standing_of_lanes_adds_up() {
    let (_folder, path) = place();
    let mut results = various();
    results.push((1, record("a", Verdict::Pass)));
    whole(&path, "first", "s", &[lane(), lane_on("other")], results);
    let reader = Reader::open(&path).unwrap();
    let lanes = lanes_of(&reader, "latest");
    let standing = |lane: usize| reader.standing(&lanes[lane]).unwrap();
    let said = |it: &Standing| {
        let verdicts =
            (it.verdicts.pass, it.verdicts.fail, it.verdicts.error, it.verdicts.undecided);
        (verdicts, it.classes.get(Class::Pass), it.cost_usd, it.priced)
    };
    assert_eq!(said(&standing(0)), ((1, 1, 1, 1), 1, 0.875, 3));
    assert_eq!(said(&standing(1)), ((1, 0, 0, 0), 1, 0.25, 1));
    let mut both = standing(0);
    both.add(&standing(1));
    assert_eq!(said(&both), ((2, 1, 1, 1), 2, 1.125, 4));
}

#[test]
fn scores_are_counted_by_tenths() {
    let (_folder, path) = place();
    let values = [Some(0.0), Some(0.05), Some(0.25), Some(0.95), Some(1.0), None];
    let results = values
        .iter()
        .enumerate()
        .map(|(at, value)| (at % 2, scored(&format!("case {at}"), Verdict::Pass, *value)));
    let results: Vec<_> = results.collect();
    whole(&path, "first", "s", &[lane(), lane_on("other")], results);
    let reader = Reader::open(&path).unwrap();
    let lanes = lanes_of(&reader, "latest");
    let bars = |bars| vec![ScoreBars { name: "closeness".to_owned(), bars }];
    assert_eq!(
        reader.score_bars(&[&lanes[0], &lanes[1]]).unwrap(),
        bars([2, 0, 1, 0, 0, 0, 0, 0, 0, 2])
    );
    assert_eq!(reader.score_bars(&[&lanes[1]]).unwrap(), bars([1, 0, 0, 0, 0, 0, 0, 0, 0, 1]));
}

#[test]
fn a_grid_has_what_each_lane_made_of_a_case() {
    let (_folder, path) = place();
    let (pass, fail) = (Verdict::Pass, Verdict::Fail);
    let result = |lane, id, verdict| (lane, record(id, verdict));
    let results = vec![
        result(0, "a", pass),
        result(1, "a", pass),
        result(0, "b", pass),
        result(1, "b", fail),
        result(0, "c", pass),
        result(0, "d", fail),
        result(1, "d", fail),
    ];
    whole(&path, "first", "s", &[lane(), lane_on("other")], results);
    let reader = Reader::open(&path).unwrap();
    let lanes = lanes_of(&reader, "latest");
    let lanes: Vec<_> = lanes.iter().collect();
    let page = |query: GridQuery| {
        let page = reader.grid_page(&lanes, &query).unwrap();
        let shown = page.rows.iter().map(|row| {
            let counts = row.results.iter().map(|it| it.len().to_string());
            format!("{}:{}", row.case_id, counts.collect::<Vec<_>>().join("+"))
        });
        (shown.collect::<Vec<_>>().join(" "), page.next)
    };
    let of = |differing, failing| GridQuery { differing, failing, after: None, limit: 9 };
    assert_eq!(page(of(false, false)).0, "a:1+1 b:1+1 c:1+0 d:1+1");
    assert_eq!(page(of(true, false)).0, "b:1+1 c:1+0");
    assert_eq!(page(of(false, true)).0, "b:1+1 d:1+1");
    assert_eq!(page(of(true, true)).0, "b:1+1");
    let few = |query: GridQuery, after: Option<&str>| {
        page(GridQuery { limit: 2, after: after.map(ToOwned::to_owned), ..query })
    };
    for (query, first, last) in
        [(of(false, false), "a:1+1 b:1+1", "c:1+0 d:1+1"), (of(false, true), "b:1+1 d:1+1", "")]
    {
        let (shown, next) = few(query.clone(), None);
        assert_eq!((shown.as_str(), next.is_some()), (first, !last.is_empty()));
        if let Some(after) = next {
            assert_eq!(few(query, Some(&after)), (last.to_owned(), None));
        }
    }
}
