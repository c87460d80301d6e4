//! Results of lanes that are read along with each other, and what a run has that is taken up again.

use std::collections::BTreeMap;

use probity_core::{
    case_outcome::{CaseOutcome, Changes},
    classification::Verdict,
    record::{CaseRecord, Lane, Source, Usage},
    view::{Cases as _, Wanted},
};
use probity_store::{LaneView, Reader, Recorder, StoreError, StoredCases};

use crate::common::{lane, lane_on, record, whole};

/// Numbers that are hard to foresee, and the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Two lanes whose cases come out in ways that depend on a number, in an order that does too.
fn store(path: &std::path::Path, number: u64) -> Reader {
    let mut random = Random(number);
    let mut results = Vec::new();
    for lane in 0..2 {
        for case in 0..40 {
            let repeats = [1, 1, 1, 0, 2, 3][usize::try_from(random.below(6)).unwrap()];
            for repeat in 0..repeats {
                let verdict = Verdict::ALL[usize::try_from(random.below(4)).unwrap()];
                let id = format!("{}{case}", if random.below(9) == 0 { "odd" } else { "case" });
                let usage = Usage {
                    input_tokens: Some(random.below(9)).filter(|it| *it > 3),
                    output_tokens: Some(2),
                    ..Usage::default()
                };
                let cost_usd = Some(0.25).filter(|_| random.below(2) == 0);
                let calls = u32::try_from(random.below(3)).unwrap();
                let record = record(&id, verdict);
                let source = Source::Backend;
                results
                    .push((lane, CaseRecord { repeat, usage, cost_usd, calls, source, ..record }));
            }
        }
    }
    results.sort_by_cached_key(|_| random.below(1 << 30));
    let mut strict = lane();
    strict.judging.errors_as_failures = number.is_multiple_of(2);
    strict.judging.min_pass = Some(1).filter(|_| number.is_multiple_of(3));
    whole(path, "first", "s", &[strict, lane_on("other")], results);
    let run_id = Reader::open(path).unwrap().find("latest").unwrap().run_id;
    let mut recorder = Recorder::resume(path, &run_id).unwrap();
    recorder.mark_stale(&lane(), |id, _| !id.ends_with('7')).unwrap();
    recorder.close();
    Reader::open(path).unwrap()
}

/// How each case of a lane stands, put together from its single results.
fn plain(reader: &Reader, lane: &LaneView) -> BTreeMap<String, CaseOutcome> {
    let mut plain: BTreeMap<String, CaseOutcome> = BTreeMap::new();
    let add = |it: CaseRecord| {
        let outcome = plain.entry(it.case_id).or_default();
        outcome.verdicts.add(lane.lane.judging.counted(it.verdict));
        outcome.category.clone_from(&it.case.category);
        Ok(())
    };
    reader.cases(lane, add).unwrap();
    plain
}

#[test]
fn lanes_that_are_read_one_case_at_a_time_are_what_their_results_come_to() {
    for number in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let reader = store(&folder.path().join("x.db"), number);
        let run = reader.find("latest").unwrap();
        let lanes = reader.lanes(&run).unwrap();
        let read = |lane: &LaneView| {
            let all = |cases: probity_core::case_outcome::Cases<'_, StoreError>| {
                assert_eq!(cases.min_pass, lane.lane.judging.min_pass);
                cases.read.collect::<Result<Vec<_>, _>>()
            };
            reader.outcomes(lane, all).unwrap()
        };
        for lane in &lanes {
            assert!(read(lane).into_iter().eq(plain(&reader, lane)), "{number}");
        }
        let [mut before, mut after] =
            [0, 1].map(|at: usize| plain(&reader, &lanes[at]).into_iter().map(Ok::<_, StoreError>));
        let sides = [(&lanes[0], &mut before), (&lanes[1], &mut after)];
        let [before, after] = sides.map(|(lane, read)| probity_core::case_outcome::Cases {
            min_pass: lane.lane.judging.min_pass,
            read,
        });
        let expected = Changes::between(before, after).unwrap();
        assert_eq!(reader.changes([&lanes[0], &lanes[1]]).unwrap(), expected, "{number}");
    }
}

#[test]
fn what_is_done_used_what_is_counted() {
    for number in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let reader = store(&folder.path().join("x.db"), number);
        for lane in &reader.lanes(&reader.find("latest").unwrap()).unwrap() {
            let (tally, mut results) = (reader.tally(lane).unwrap(), 0);
            let spent = reader.done(lane, |_| results += 1).unwrap();
            assert!(results >= tally.total());
            let tokens = (spent.usage.input_tokens, spent.usage.output_tokens);
            assert_eq!(tokens, (Some(tally.input_tokens), Some(tally.output_tokens)));
            assert_eq!((spent.calls, spent.cost_usd), (tally.calls, tally.cost_usd));
        }
    }
}

#[test]
fn few_and_many_failing_cases_are_found_in_the_same_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let lanes: [Lane; 2] = [lane(), lane_on("other")];
    let failing = |lane, cases: std::ops::Range<u32>| {
        cases.map(move |it| (lane, record(&format!("case-{it}"), Verdict::Fail)))
    };
    whole(&path, "first", "s", &lanes, failing(0, 0..30).chain(failing(1, 0..10_050)).collect());
    let reader = Reader::open(&path).unwrap();
    let run = reader.find("latest").unwrap();
    let cases = StoredCases::of(&reader, &run).unwrap();
    let known = ["case-1".to_owned()].into();
    let wanted = Wanted { verdict: Verdict::Fail, known: &known, most: 3 };
    for (lane, more, third) in [(0, 26, "case-11"), (1, 10_046, "case-100")] {
        let found = cases.find(lane, &wanted).unwrap();
        let ids: Vec<&str> = found.first.iter().map(|it| it.case_id.as_str()).collect();
        assert_eq!((ids[0], ids[1], ids[2]), ("case-0", "case-10", third));
        assert_eq!((found.known, found.more), (1, more));
    }
    let none = Wanted { verdict: Verdict::Error, ..wanted };
    assert!(cases.find(0, &none).unwrap().first.is_empty());
}
