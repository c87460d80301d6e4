use csv_core::{ReadFieldResult, Reader};
use proptest::prelude::*;

use super::*;
use crate::{
    Format,
    sample::{HOSTILE, Sample, hostile_run, saying},
};

/// The rows as another program reads them.
fn read(bytes: &[u8]) -> Vec<Vec<String>> {
    let (mut reader, mut rest) = (Reader::new(), bytes);
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), Vec::new());
    let mut part = vec![0; 1 << 16];
    loop {
        let (result, read, written) = reader.read_field(rest, &mut part);
        rest = &rest[read..];
        field.extend_from_slice(&part[..written]);
        match result {
            ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
            ReadFieldResult::Field { record_end } => {
                row.push(String::from_utf8(std::mem::take(&mut field)).unwrap());
                if record_end {
                    rows.push(std::mem::take(&mut row));
                }
            }
            ReadFieldResult::End => return rows,
        }
    }
}

/// What the documentation says about reading a cell back.
fn unguarded(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|rest| is_formula(rest)).unwrap_or(cell)
}

fn column(row: &[String], name: &str) -> String {
    let at = COLUMNS.iter().position(|it| *it == name).unwrap();
    unguarded(&row[at]).to_owned()
}

#[test]
fn a_small_run() {
    insta::assert_snapshot!(Sample::usual().written(Format::Csv).replace("\r\n", "\n"));
}

#[test]
fn hostile_texts_are_no_formulas_and_stay_in_their_cells() {
    let text = hostile_run().written(Format::Csv);
    let rows = read(text.as_bytes());
    assert_eq!(rows.len(), HOSTILE.len() + 5);
    for row in &rows {
        assert_eq!(row.len(), COLUMNS.len());
        for cell in row {
            assert!(!is_formula(cell) || cell.starts_with('\''), "{cell:?}");
            assert!(!cell.contains(is_harmful), "{cell:?}");
        }
    }
    let formula = HOSTILE.iter().position(|it| it.starts_with('=')).unwrap();
    assert_eq!(rows[formula + 1][3], "'=cmd|' /C calc'!A0");
    assert_eq!(
        rows.last().unwrap()[10].len(),
        HOSTILE.join("\n").chars().map(harmless).map(char::len_utf8).sum::<usize>() + (1 << 20)
    );
}

#[test]
fn formulas_behind_blanks_and_quotes_are_seen() {
    for formula in ["=1", "+1", "-1", "@x", "\tx", "\rx", " =1", "'=1", "\"=1", " ' =1", "＝1"] {
        assert!(is_formula(formula), "{formula:?}");
    }
    for plain in ["", "a=1", "1-2", "'", "(=1)"] {
        assert!(!is_formula(plain), "{plain:?}");
    }
}

#[test]
fn numbers_stay_numbers() {
    let row = &read(Sample::usual().written(Format::Csv).as_bytes())[1];
    assert_eq!(column(row, "cost_usd"), "0.00025");
    assert_eq!(column(row, "latency_ms"), "120");
}

proptest! {
    #[test]
    fn any_text_is_read_back(text in "(?s)[=+@\"' \r\n\t,-]{0,3}.{0,40}") {
        let rows = read(Sample::of(vec![saying(&text)]).written(Format::Csv).as_bytes());
        prop_assert_eq!(rows.len(), 2);
        let expected: String = text.chars().map(harmless).collect();
        for name in ["case_id", "prompt", "expected", "actual", "reason", "tags", "model"] {
            prop_assert_eq!(column(&rows[1], name), expected.clone(), "{}", name);
        }
    }
}
