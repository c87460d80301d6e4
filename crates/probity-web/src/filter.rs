//! What a page or an answer is asked to show, as it stands in its address.

use std::str::FromStr;

use data_encoding::BASE64URL_NOPAD;
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use probity_core::classification::{Class, Verdict};
use probity_store::{
    CaseCursor, CaseQuery, GridQuery, LaneView, Reader, RunsQuery, ScoreRange, Sort,
};

use crate::{problem::Problem, query::Query};

/// Runs on a page.
const RUNS: usize = 50;
/// Results on a page.
const CASES: usize = 100;
/// Runs on a page at most.
const MOST_RUNS: usize = 150;
/// Results on a page at most.
const MOST: usize = 250;
/// Words that are searched for at once.
const MOST_WORDS: usize = 16;
/// Cases in a page of a grid.
const GRID: usize = 25;

/// A value of an address with its name.
pub(crate) type Pair = (&'static str, String);

fn pair(name: &'static str, value: Option<&(impl ToString + ?Sized)>) -> Option<Pair> {
    value.map(|it| (name, it.to_string()))
}

/// Which runs are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunFilter {
    pub(crate) suite: Option<String>,
    pub(crate) backend: Option<String>,
    pub(crate) tag: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) since: Option<Date>,
    pub(crate) until: Option<Date>,
    pub(crate) after: Option<i64>,
    pub(crate) limit: usize,
}

impl RunFilter {
    pub(crate) fn read(query: &mut Query) -> Result<Self, Problem> {
        Ok(Self {
            suite: query.take("suite"),
            backend: query.take("backend"),
            tag: query.take("tag"),
            text: query.take("q"),
            since: query.take_as("since", "a date such as 2026-01-31")?,
            until: query.take_as("until", "a date such as 2026-01-31")?,
            after: query.take_as::<Natural>("after", "the end of a page")?.map(|it| it.0),
            limit: query.take_limit(RUNS, MOST_RUNS)?,
        })
    }

    pub(crate) fn query(&self) -> Result<RunsQuery, Problem> {
        let Self { suite, backend, tag, text, since, until, after, limit } = self.clone();
        // A run of the last day is one of that day, too.
        let until = until.map(|it| it.tomorrow().map_err(out_of_range)).transpose()?;
        Ok(RunsQuery {
            suite,
            backend,
            tag,
            text,
            since_ms: since.map(midnight).transpose()?,
            until_ms: until.map(midnight).transpose()?,
            after,
            limit,
        })
    }

    /// What leads to the same page again.
    pub(crate) fn pairs(&self) -> Vec<Pair> {
        let Self { suite, backend, tag, text, since, until, after, limit } = self;
        let limit = (*limit != RUNS).then_some(limit);
        let pairs = [
            pair("suite", suite.as_ref()),
            pair("backend", backend.as_ref()),
            pair("tag", tag.as_ref()),
            pair("q", text.as_ref()),
            pair("since", since.as_ref()),
            pair("until", until.as_ref()),
            pair("after", after.as_ref()),
            pair("limit", limit),
        ];
        pairs.into_iter().flatten().collect()
    }

    pub(crate) fn is_set(&self) -> bool {
        let Self { suite, backend, tag, text, since, until, after: _, limit: _ } = self;
        [suite, backend, tag, text].iter().any(|it| it.is_some())
            || since.is_some()
            || until.is_some()
    }
}

/// A number that is not negative.
struct Natural(i64);

impl FromStr for Natural {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.parse().ok().filter(|it| *it >= 0).map(Self).ok_or(())
    }
}

fn midnight(day: Date) -> Result<i64, Problem> {
    let at: Result<Timestamp, jiff::Error> = day.to_zoned(TimeZone::UTC).map(|it| it.timestamp());
    at.map(Timestamp::as_millisecond).map_err(out_of_range)
}

fn out_of_range(_: jiff::Error) -> Problem {
    Problem::bad_request("this date is too far away")
}

/// Which results of a run are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct CaseFilter {
    /// The place of a lane, from 1.
    pub(crate) lane: Option<usize>,
    pub(crate) backend: Option<String>,
    pub(crate) variant: Option<String>,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) class: Option<Class>,
    pub(crate) category: Option<String>,
    pub(crate) tag: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) flaky: bool,
    /// A run that they came out otherwise in.
    pub(crate) flipped: Option<String>,
    pub(crate) score: Option<String>,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) sort: Sort,
    pub(crate) descending: bool,
    pub(crate) after: Option<CaseCursor>,
    pub(crate) limit: usize,
}

impl CaseFilter {
    pub(crate) fn read(query: &mut Query) -> Result<Self, Problem> {
        let (sort, descending) = match query.take("sort") {
            None => (Sort::default(), false),
            Some(word) => {
                let name = word.strip_prefix('-').unwrap_or(&word);
                let known = || Sort::ALL.map(Sort::as_str).join(", ");
                let sort = name.parse().map_err(|_| {
                    Problem::bad_request(format!("there is no order `{name}`"))
                        .hint(format!("it is one of {}, or `-` and one of them", known()))
                })?;
                (sort, word.starts_with('-'))
            }
        };
        let filter = Self {
            lane: query.take_as("lane", "the number of a lane")?,
            backend: query.take("backend"),
            variant: query.take("variant"),
            verdict: query.take_as("verdict", "a verdict")?,
            class: query.take_as("class", "a class")?,
            category: query.take("category"),
            tag: query.take("tag"),
            text: query.take("q"),
            flaky: query.take_switch("flaky")?,
            flipped: query.take("flipped"),
            score: query.take("score"),
            min: query.take_as("min", "a number")?,
            max: query.take_as("max", "a number")?,
            sort,
            descending,
            after: query.take("after").map(|it| cursor(&it)).transpose()?,
            limit: query.take_limit(CASES, MOST)?,
        };
        if [filter.min, filter.max].into_iter().flatten().any(|it| !it.is_finite()) {
            return Err(Problem::bad_request("`min` and `max` are finite numbers"));
        }
        if filter.words().count() > MOST_WORDS {
            return Err(Problem::bad_request(format!("`q` has more than {MOST_WORDS} words")));
        }
        Ok(filter)
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.text.iter().flat_map(|it| it.split_whitespace())
    }

    /// The lanes that are meant.
    pub(crate) fn lanes<'l>(&self, lanes: &'l [LaneView]) -> Result<Vec<&'l LaneView>, Problem> {
        let is_meant = |(at, view): &(usize, &LaneView)| {
            self.lane.is_none_or(|it| it == at + 1)
                && self.backend.as_ref().is_none_or(|it| *it == view.lane.backend)
                && self.variant.as_ref().is_none_or(|it| view.lane.variant.as_ref() == Some(it))
        };
        if self.lane.is_some_and(|it| it == 0 || it > lanes.len()) {
            return Err(Problem::bad_request(format!("the run has {} lanes", lanes.len())));
        }
        Ok(lanes.iter().enumerate().filter(is_meant).map(|(_, view)| view).collect())
    }

    pub(crate) fn query(&self, reader: &Reader) -> Result<CaseQuery, Problem> {
        let has_range = self.score.is_some() || self.min.is_some() || self.max.is_some();
        let range = || ScoreRange {
            name: self.score.clone(),
            min: self.min.unwrap_or(0.0),
            max: self.max.unwrap_or(1.0),
        };
        Ok(CaseQuery {
            verdict: self.verdict,
            class: self.class,
            category: self.category.clone(),
            tag: self.tag.clone(),
            words: self.words().map(ToOwned::to_owned).collect(),
            flaky: self.flaky,
            flipped: self.flipped.as_deref().map(|it| reader.find(it)).transpose()?,
            score: has_range.then(range),
            sort: self.sort,
            descending: self.descending,
            after: self.after.clone(),
            limit: self.limit,
        })
    }

    /// What leads to the same results again, from the first page on.
    pub(crate) fn pairs(&self) -> Vec<Pair> {
        let Self { lane, backend, variant, verdict, class, category, tag, text, .. } = self;
        let Self { flaky, flipped, score, min, max, sort, descending, after: _, limit, .. } = self;
        let order = (*sort != Sort::default() || *descending)
            .then(|| format!("{}{sort}", if *descending { "-" } else { "" }));
        let limit = (*limit != CASES).then_some(limit);
        let pairs = [
            pair("lane", lane.as_ref()),
            pair("backend", backend.as_ref()),
            pair("variant", variant.as_ref()),
            pair("verdict", verdict.as_ref()),
            pair("class", class.as_ref()),
            pair("category", category.as_ref()),
            pair("tag", tag.as_ref()),
            pair("q", text.as_ref()),
            flaky.then(|| ("flaky", "1".to_owned())),
            pair("flipped", flipped.as_ref()),
            pair("score", score.as_ref()),
            pair("min", min.as_ref()),
            pair("max", max.as_ref()),
            pair("sort", order.as_ref()),
            pair("limit", limit),
        ];
        pairs.into_iter().flatten().collect()
    }
}

fn cursor(text: &str) -> Result<CaseCursor, Problem> {
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok();
    let cursor = bytes.and_then(|it| serde_json::from_slice(&it).ok());
    cursor.ok_or_else(|| Problem::bad_request("`after` is not the end of a page"))
}

/// A place as it stands in an address.
pub(crate) fn shown_cursor(cursor: &CaseCursor) -> String {
    let text = serde_json::to_vec(cursor).unwrap_or_default();
    BASE64URL_NOPAD.encode(&text)
}

/// Which cases of a grid are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct GridFilter {
    pub(crate) runner: Option<String>,
    pub(crate) differing: bool,
    pub(crate) failing: bool,
    pub(crate) after: Option<String>,
    pub(crate) limit: usize,
}

impl GridFilter {
    pub(crate) fn read(query: &mut Query) -> Result<Self, Problem> {
        Ok(Self {
            runner: query.take("runner"),
            differing: query.take_switch("differing")?,
            failing: query.take_switch("failing")?,
            after: query.take("after"),
            limit: query.take_limit(GRID, 100)?,
        })
    }

    pub(crate) fn query(&self) -> GridQuery {
        let Self { runner: _, differing, failing, after, limit } = self.clone();
        GridQuery { differing, failing, after, limit }
    }

    /// What leads to the same cases again, from the first page on.
    pub(crate) fn pairs(&self) -> Vec<Pair> {
        let Self { runner, differing, failing, after: _, limit } = self;
        let limit = (*limit != GRID).then_some(limit);
        let pairs = [
            pair("runner", runner.as_ref()),
            differing.then(|| ("differing", "1".to_owned())),
            failing.then(|| ("failing", "1".to_owned())),
            pair("limit", limit),
        ];
        pairs.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_words_are_searched_for() {
        let read = |count: usize| {
            let mut query = Query::parse(Some(&format!("q={}", vec!["a"; count].join("+"))))?;
            CaseFilter::read(&mut query).map(|it| it.words().count())
        };
        assert_eq!(read(MOST_WORDS).unwrap(), MOST_WORDS);
        assert_eq!(read(MOST_WORDS + 1).unwrap_err().status.as_u16(), 400);
        assert_eq!(read(1000).unwrap_err().status.as_u16(), 400);
    }
}
