//! How each case of a lane stands, and what has changed between two.

mod changes;
mod list;

use std::{fmt, str::FromStr};

pub use changes::{Cases, Changes, Difference, Read};
pub use list::Outcomes;

use crate::{case::Category, classification::Verdict, metrics::Verdicts};

/// What the repeats of a case came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaseOutcome {
    /// Each repeat.
    pub verdicts: Verdicts,
    /// The case's category.
    pub category: Option<Category>,
}

/// Every case of a lane, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaseOutcomes {
    /// Of the repeats of a case so many have to pass; none: all.
    pub min_pass: Option<u32>,
    /// The cases.
    pub cases: Outcomes,
}

/// What a baseline keeps of a case: a verdict, or `2/3` of its repeats.
impl fmt::Display for CaseOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdicts { pass, fail, error, undecided } = self.verdicts;
        match (pass, fail, error, undecided) {
            (1, 0, 0, 0) => f.write_str("pass"),
            (0, 1, 0, 0) => f.write_str("fail"),
            (0, 0, 1, 0) => f.write_str("error"),
            (0, 0, 0, 1) => f.write_str("undecided"),
            (pass, fail, error, undecided) => {
                write!(f, "{pass}/{}", pass.saturating_add(fail))?;
                if error > 0 {
                    write!(f, " and {error} errors")?;
                }
                if undecided > 0 { write!(f, " and {undecided} undecided") } else { Ok(()) }
            }
        }
    }
}

impl FromStr for CaseOutcome {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let verdicts = match text.parse::<Verdict>() {
            Ok(verdict) => {
                let mut once = Verdicts::default();
                once.add(verdict);
                Some(once)
            }
            Err(_) => repeats(text),
        };
        match verdicts {
            Some(verdicts) => Ok(Self { verdicts, category: None }),
            None => Err(format!("`{text}` is not a verdict")),
        }
    }
}

/// Reads `2/3`, `2/3 and 1 errors`, `2/3 and 1 undecided`, or both.
fn repeats(text: &str) -> Option<Verdicts> {
    let mut parts = text.split(" and ");
    let (pass, judged) = parts.next()?.split_once('/')?;
    let (pass, judged): (u64, u64) = (pass.parse().ok()?, judged.parse().ok()?);
    let fail = judged.checked_sub(pass)?;
    let mut verdicts = Verdicts { pass, fail, ..Verdicts::default() };
    for part in parts {
        match part.split_once(' ')? {
            (count, "errors") => verdicts.error = count.parse().ok()?,
            (count, "undecided") => verdicts.undecided = count.parse().ok()?,
            (_, _) => return None,
        }
    }
    Some(verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(cases: &[(&str, &str)]) -> CaseOutcomes {
        let cases = cases.iter().map(|(id, text)| ((*id).to_owned(), text.parse().unwrap()));
        CaseOutcomes { min_pass: None, cases: cases.collect() }
    }

    #[test]
    fn an_outcome_is_read_as_it_is_written() {
        for text in [
            "pass",
            "fail",
            "error",
            "undecided",
            "2/3",
            "0/2",
            "1/2 and 1 errors",
            "0/0 and 1 errors and 2 undecided",
            "3/3",
        ] {
            let outcome: CaseOutcome = text.parse().unwrap();
            assert_eq!(outcome.to_string(), text);
        }
        // More than anybody asked, and yet no reason to fall over.
        let most = format!("{0}/{0} and {0} errors", u64::MAX);
        let many = outcomes(&[("a", &most)]);
        assert_eq!(Changes::of(&many, &many).common, 1);
        for text in ["", "passed", "3/2", "a/b", "1/2 and x errors"] {
            assert!(text.parse::<CaseOutcome>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_kind_of_change_is_told() {
        let first = outcomes(&[
            ("a", "pass"),
            ("b", "pass"),
            ("c", "fail"),
            ("d", "pass"),
            ("e", "error"),
            ("f", "fail"),
        ]);
        let second = outcomes(&[
            ("a", "pass"),
            ("b", "fail"),
            ("c", "pass"),
            ("d", "error"),
            ("e", "pass"),
            ("g", "pass"),
        ]);
        let changes = Changes::of(&first, &second);
        assert_eq!(changes.regressions, ["b"]);
        assert_eq!(changes.fixes, ["c"]);
        assert_eq!(changes.lost, ["d"]);
        assert_eq!(changes.vanished, ["f"]);
        assert_eq!(changes.new, ["g"]);
        assert_eq!((changes.common, changes.passed), (3, (2, 2)));
        let difference = changes.difference.unwrap();
        assert!(difference.value.abs() < f64::EPSILON);
        assert!((difference.p_value - 1.0).abs() < 1e-12);
        assert!(difference.interval.low < 0.0 && difference.interval.high > 0.0);
    }

    #[test]
    fn a_difference_has_the_sign_of_the_second_run() {
        let many = |text: &'static str| -> Vec<(String, &str)> {
            (0..30).map(|at| (format!("{at}"), text)).collect()
        };
        let of = |text| {
            let cases = many(text);
            let cases: Vec<(&str, &str)> =
                cases.iter().map(|(id, it)| (id.as_str(), *it)).collect();
            outcomes(&cases)
        };
        let changes = Changes::of(&of("fail"), &of("pass"));
        let Difference { value, interval, p_value } = changes.difference.unwrap();
        assert!((value - 1.0).abs() < 1e-12);
        assert!(interval.low > 0.7 && interval.high > 0.99);
        assert!(p_value < 1e-8);
    }

    #[test]
    fn repeats_count_by_their_rates() {
        let first = outcomes(&[("a", "3/3"), ("b", "1/3"), ("c", "0/3")]);
        let second = outcomes(&[("a", "2/3"), ("b", "2/3"), ("c", "3/3")]);
        let changes = Changes::of(&first, &second);
        assert_eq!((changes.regressions.len(), changes.fixes.len()), (1, 1));
        let difference = changes.difference.unwrap();
        assert!((difference.value - (1.0 / 3.0)).abs() < 1e-12);
    }
}
