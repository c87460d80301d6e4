//! What is written is read back, with the readers of the same libraries; `scripts/tables-test` reads it with others.

use std::{
    cell::RefCell,
    io::{self, Cursor},
    rc::Rc,
    sync::Arc,
};

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{Float64Type, Int32Type, Int64Type},
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use probity_core::{
    case::TestCase,
    classification::{Class, Classification, Rule, Verdict},
    details::Details,
    failure::ErrorKind,
    kind::RunnerKind,
    record::{
        Asked, CallError, CaseRecord, FailedAttempt, InputDigest, Judging, Lane, LaneStatus,
        RunStatus, Source, Usage,
    },
    request::Request,
    score::Score,
    view::Cases,
};

use super::*;

/// A run whose cases are made when they are asked for.
struct Sample {
    cases: usize,
    reply: String,
    broken_at: Option<usize>,
}

impl Default for Sample {
    fn default() -> Self {
        Self { cases: 10, reply: "a\0\u{202e}\"reply\"".to_owned(), broken_at: None }
    }
}

impl Sample {
    fn head(&self) -> RunHead {
        let lane = |backend: &str| Lane {
            runner: "numbers".to_owned(),
            variant: Some("plain".to_owned()),
            kind: RunnerKind::Respond,
            backend: backend.to_owned(),
            backend_kind: "echo".to_owned(),
            model: Some("m".to_owned()),
            dataset_digest: "d".to_owned(),
            dataset: vec!["cases.jsonl".to_owned()],
            planned: self.cases as u64,
            repeat: 1,
            replayed: false,
            imported: None,
            judge: None,
            judges: Vec::new(),
            skills: None,
            judging: Judging::default(),
        };
        RunHead {
            run_id: "20261116-100000-abcdef".to_owned(),
            suite: "probity.toml".to_owned(),
            suite_path: None,
            started_ms: 1_794_000_000_000,
            finished_ms: None,
            status: RunStatus::Complete,
            probity_version: "0".to_owned(),
            imported: None,
            rescored_from: None,
            merged: vec!["a".to_owned(), "b".to_owned()],
            lanes: vec![
                (lane("one"), Some(LaneStatus::Complete)),
                (lane("two"), Some(LaneStatus::Budget { reason: "spent".to_owned() })),
            ],
        }
    }

    fn record(&self, at: usize) -> CaseRecord {
        let fails = at % 3 == 2;
        let rule = if fails { Rule::Mismatch } else { Rule::Pass };
        let mut classification = Classification::new(rule, Details::default());
        classification.scores = vec![
            Score::new("contains", fails.then(|| "it is not there".to_owned())),
            Score { name: "style".into(), value: None, ..Score::new("judge", None).reported() },
        ];
        let error = CallError { status: Some(429), ..CallError::new(ErrorKind::RateLimit, "slow") };
        let failed =
            FailedAttempt { attempt: 1, error, latency_ms: 3, retry_in_ms: Some(50), worker: None };
        let asked = |role: &str| Asked {
            role: role.to_owned(),
            turn: Some(1),
            backend: "judge".to_owned(),
            request: Request::new(None, "Well?"),
            reply: Some("yes".to_owned()),
            tool_calls: Vec::new(),
            reasoning: None,
            stop_reason: None,
            logprobs: None,
            error: None,
            model: None,
            source: Source::Cache,
            latency_ms: 7,
            usage: Usage::default(),
            cost_usd: Some(0.5),
            calls: 1,
        };
        CaseRecord {
            case_id: format!("case-{at:06}"),
            repeat: 0,
            input: InputDigest([7; 16]),
            case: Arc::new(TestCase {
                id: format!("case-{at:06}"),
                tags: (0..at % 3).map(|it| format!("t{it}")).collect(),
                ..TestCase::default()
            }),
            request: Request::new(Some("Be brief.".into()), format!("Number {at}?")),
            reply: Some(self.reply.clone()),
            error: None,
            reasoning: None,
            stop_reason: Some("stop".to_owned()),
            model: at.is_multiple_of(2).then(|| "served".to_owned()),
            source: Source::Backend,
            latency_ms: at as u64,
            ttft_ms: None,
            tokens_per_second: None,
            usage: Usage { input_tokens: Some(3), output_tokens: Some(4), ..Usage::default() },
            cost_usd: at.is_multiple_of(2).then_some(0.25),
            calls: 2,
            failures: if at % 4 == 1 { vec![failed] } else { Vec::new() },
            worker: (at % 2 == 1).then(|| "w1".to_owned()),
            started_ms: 1_794_000_000_000 + i64::try_from(at).unwrap(),
            elapsed_ms: 9,
            class: if fails { Class::Fail } else { Class::Pass },
            verdict: if fails { Verdict::Fail } else { Verdict::Pass },
            classification,
            asked: if at % 5 == 4 { vec![asked("full"), asked("judge")] } else { Vec::new() },
        }
    }
}

impl Cases for Sample {
    fn each(
        &self,
        _lane: usize,
        take: &mut dyn FnMut(&CaseRecord) -> io::Result<()>,
    ) -> io::Result<()> {
        for at in 0..self.cases {
            if self.broken_at == Some(at) {
                return Err(io::Error::other("a sum does not add up"));
            }
            take(&self.record(at))?;
        }
        Ok(())
    }
}

type Parts = Vec<(Table, usize, Vec<u8>)>;

/// A file in memory that is found again under its table and its number.
struct Kept {
    table: Table,
    part: usize,
    bytes: Vec<u8>,
}

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn written(sample: &Sample, form: Form, bounds: Bounds) -> Parts {
    let plan = Plan { form, tables: &Table::ALL, bounds };
    let open = |table, part| Ok::<_, io::Error>(Kept { table, part, bytes: Vec::new() });
    let written = write(&plan, &sample.head(), sample, open).unwrap();
    written.parts.into_iter().map(|it| (it.table, it.part, it.bytes)).collect()
}

fn batches(form: Form, bytes: &[u8]) -> Vec<RecordBatch> {
    match form {
        Form::Parquet => {
            let reader =
                ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes.to_vec()));
            reader.unwrap().build().unwrap().collect::<Result<_, _>>().unwrap()
        }
        Form::Arrow => {
            let reader = arrow_ipc::reader::FileReader::try_new(Cursor::new(bytes), None);
            reader.unwrap().collect::<Result<_, _>>().unwrap()
        }
    }
}

fn of_table(form: Form, parts: &Parts, wanted: Table) -> Vec<RecordBatch> {
    let wanted = parts.iter().filter(|(table, ..)| *table == wanted);
    wanted.flat_map(|(_, _, bytes)| batches(form, bytes)).collect()
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

fn words(batch: &RecordBatch, column: &str) -> Vec<String> {
    let column = batch.column_by_name(column).unwrap().as_dictionary::<Int32Type>();
    let words = column.downcast_dict::<arrow_array::StringArray>().unwrap();
    words.into_iter().map(|it| it.unwrap_or("-").to_owned()).collect()
}

#[test]
fn both_forms_hold_every_row_of_every_table() {
    for form in [Form::Parquet, Form::Arrow] {
        let parts = written(&Sample::default(), form, Bounds::default());
        let count = |table| rows(&of_table(form, &parts, table));
        // Two lanes of ten cases; two cases of ten ask two questions.
        let found = Table::ALL.map(count);
        assert_eq!(found, [1, 20, 40, 24], "{form:?}");
    }
}

#[test]
fn a_row_says_what_the_record_says() {
    for form in [Form::Parquet, Form::Arrow] {
        let parts = written(&Sample::default(), form, Bounds::default());
        let cases = &of_table(form, &parts, Table::Cases)[0];
        assert_eq!(words(cases, "verdict")[..4], ["pass", "pass", "fail", "pass"]);
        assert_eq!(words(cases, "backend")[9..11], ["one", "two"]);
        let column = |name: &str| cases.column_by_name(name).unwrap();
        assert_eq!(column("reply").as_string::<i32>().value(0), Sample::default().reply);
        assert_eq!(column("model").as_string::<i32>().value(1), "m");
        assert_eq!(column("worker").as_string::<i32>().value(1), "w1");
        assert!(column("worker").is_null(0));
        assert_eq!(
            column("cost_usd").as_primitive::<Float64Type>().value(0).to_bits(),
            0.25_f64.to_bits()
        );
        assert!(column("cost_usd").is_null(1));
        let tags = column("tags").as_list::<i32>().value(2);
        assert_eq!(tags.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["t0", "t1"]);
        let failures = column("failures").as_list::<i32>().value(1);
        let status = failures.as_struct().column_by_name("status").unwrap();
        assert_eq!(status.as_primitive::<Int64Type>().value(0), 429);
        let runs = &of_table(form, &parts, Table::Runs)[0];
        let sum =
            |name: &str| runs.column_by_name(name).unwrap().as_primitive::<Int64Type>().value(0);
        assert_eq!([sum("pass"), sum("fail"), sum("calls"), sum("priced")], [14, 6, 40, 10]);
    }
}

#[test]
fn long_texts_end_batches_row_groups_and_parts() {
    let bounds = Bounds {
        batch_bytes: 4 << 10,
        group_bytes: 8 << 10,
        part_bytes: 64 << 10,
        ..Bounds::default()
    };
    let noise = (0..4096_u32)
        .map(|it| char::from(b'a' + (it.wrapping_mul(2_654_435_761) >> 27) as u8 % 26));
    let sample = Sample { cases: 100, reply: noise.collect(), broken_at: None };
    for form in [Form::Parquet, Form::Arrow] {
        let parts = written(&sample, form, bounds);
        let of_cases: Vec<_> = parts.iter().filter(|(table, ..)| *table == Table::Cases).collect();
        assert!(of_cases.len() > 2, "{form:?}: {} parts", of_cases.len());
        let numbers: Vec<usize> = of_cases.iter().map(|(_, part, _)| *part).collect();
        assert_eq!(numbers, (0..of_cases.len()).collect::<Vec<_>>());
        assert!(of_cases.iter().all(|(_, _, bytes)| bytes.len() < 256 << 10));
        assert_eq!(rows(&of_table(form, &parts, Table::Cases)), 200);
    }
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    for form in [Form::Parquet, Form::Arrow] {
        let once = || written(&Sample::default(), form, Bounds::default());
        assert!(once() == once());
    }
}

#[test]
fn a_table_without_rows_still_has_its_columns() {
    for form in [Form::Parquet, Form::Arrow] {
        let empty = Sample { cases: 0, ..Sample::default() };
        let parts = written(&empty, form, Bounds::default());
        assert_eq!(parts.len(), 4);
        assert_eq!(rows(&of_table(form, &parts, Table::Scores)), 0);
    }
}

#[test]
fn only_the_tables_that_are_wanted_are_begun() {
    let plan = Plan { form: Form::Arrow, tables: &[Table::Scores], bounds: Bounds::default() };
    let begun = Rc::new(RefCell::new(Vec::new()));
    let sample = Sample::default();
    let open = |table, _| {
        begun.borrow_mut().push(table);
        Ok::<_, io::Error>(Vec::new())
    };
    write(&plan, &sample.head(), &sample, open).unwrap();
    assert_eq!(*begun.borrow(), [Table::Scores]);
}

#[test]
fn cases_that_cannot_be_read_are_an_error() {
    let plan = Plan { form: Form::Parquet, tables: &Table::ALL, bounds: Bounds::default() };
    let sample = Sample { broken_at: Some(5), ..Sample::default() };
    let error = write(&plan, &sample.head(), &sample, |_, _| Ok::<_, io::Error>(Vec::new()));
    assert!(matches!(error, Err(TableError::Read(_))));
}

#[test]
fn a_full_disk_is_named_as_such() {
    /// Has room for a few bytes.
    struct Full(usize);
    impl io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for form in [Form::Parquet, Form::Arrow] {
        let plan = Plan { form, tables: &[Table::Cases], bounds: Bounds::default() };
        let sample = Sample::default();
        let failed = write(&plan, &sample.head(), &sample, |_, _| Ok::<_, io::Error>(Full(500)));
        let Err(TableError::Write { table, part, source }) = failed else { panic!("{form:?}") };
        assert_eq!((table, part, source.kind()), (Table::Cases, 0, io::ErrorKind::StorageFull));
    }
}

#[test]
fn the_page_lists_every_column_with_its_type() {
    let page = include_str!("../../../docs/reference/tables.md");
    for table in Table::ALL {
        let section = page.split(&format!("\n## `{table}`\n")).nth(1).expect("a section");
        let section = section.split("\n## ").next().unwrap_or_default();
        let listed: Vec<(&str, &str)> = section
            .lines()
            .filter_map(|line| {
                let mut cells = line.strip_prefix("| `")?.split(" | ");
                Some((cells.next()?.trim_end_matches('`'), cells.next()?.trim_matches('`')))
            })
            .collect();
        let sql: Vec<String> = table.columns().iter().map(|it| it.kind.sql()).collect();
        let columns: Vec<(&str, &str)> =
            table.columns().iter().zip(&sql).map(|(it, sql)| (it.name, sql.as_str())).collect();
        assert_eq!(listed, columns, "{table}");
    }
}
