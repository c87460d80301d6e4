//! What people said of a run, over all its results.

use std::collections::BTreeMap;

use probity_core::{
    classification::Verdict,
    evaluation::time,
    people::{Agreement, Opinions, Said, current, marks},
};
use probity_store::{LaneView, Rated, Reader, StoreError};
use serde_json::{Value, json};

/// Verdicts that people call wrong that are named.
const MOST_WRONG: usize = 500;

/// What people said of a run.
#[derive(Debug, Default)]
pub(crate) struct OfRun {
    /// Everybody, with how many results they said something of.
    pub(crate) people: BTreeMap<String, u64>,
    /// Results that somebody said something of.
    pub(crate) results: u64,
    /// Marks on verdicts that pass or fail.
    pub(crate) marked: u64,
    /// Those of them that confirm the verdict.
    pub(crate) confirmed: u64,
    /// Results whose verdict somebody calls wrong.
    pub(crate) called_wrong: u64,
    /// The first of them.
    pub(crate) wrong: Vec<Wrong>,
    pub(crate) agreements: Vec<Agreement>,
}

/// A verdict that people call wrong.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) lane: usize,
    pub(crate) case_id: String,
    pub(crate) repeat: u32,
    pub(crate) verdict: Verdict,
    /// Who does.
    pub(crate) people: Vec<String>,
}

impl OfRun {
    pub(crate) fn read(reader: &Reader, lanes: &[LaneView]) -> Result<Self, StoreError> {
        let (mut all, mut opinions) = (Self::default(), Opinions::default());
        for (at, lane) in lanes.iter().enumerate() {
            reader.rated(lane, |rated| {
                opinions.add(&rated.history);
                all.add(at, rated);
                Ok::<_, StoreError>(())
            })?;
        }
        all.agreements = opinions.agreements();
        Ok(all)
    }

    fn add(&mut self, lane: usize, Rated { record, history }: Rated) {
        let holds = current(&history);
        if holds.is_empty() {
            return;
        }
        self.results += 1;
        let mut people: Vec<&str> = holds.iter().map(|it| it.person.as_str()).collect();
        people.sort_unstable();
        people.dedup();
        people.iter().for_each(|it| *self.people.entry((*it).to_owned()).or_default() += 1);
        let marks = marks(&history).into_iter();
        let judged = marks.filter_map(|(person, it)| Some((person, it.confirms(record.verdict)?)));
        let (right, wrong): (Vec<_>, Vec<_>) = judged.partition(|(_, confirms)| *confirms);
        self.marked += (right.len() + wrong.len()) as u64;
        self.confirmed += right.len() as u64;
        if wrong.is_empty() {
            return;
        }
        self.called_wrong += 1;
        if self.wrong.len() < MOST_WRONG {
            self.wrong.push(Wrong {
                lane,
                case_id: record.case_id,
                repeat: record.repeat,
                verdict: record.verdict,
                people: wrong.into_iter().map(|(person, _)| person.to_string()).collect(),
            });
        }
    }

    /// The same for programs.
    pub(crate) fn json(&self, run_id: &str) -> Value {
        let Self { people, results, marked, confirmed, called_wrong, wrong, agreements } = self;
        let agreements = agreements.iter().map(|it| {
            json!({
                "about": it.about.as_deref().unwrap_or(probity_grade::internal::people::VERDICT),
                "people": it.people,
                "rated": it.rated,
                "same": it.same,
                "share": it.share(),
                "kappa": it.kappa,
                "kappa_quadratic": it.kappa_quadratic,
            })
        });
        let wrong = wrong.iter().map(|it| {
            json!({
                "case_id": it.case_id,
                "repeat": it.repeat,
                "lane": it.lane + 1,
                "verdict": it.verdict,
                "people": it.people,
            })
        });
        json!({
            "run_id": run_id,
            "people": people,
            "results": results,
            "marked": marked,
            "confirmed": confirmed,
            "called_wrong": called_wrong,
            "wrong": wrong.collect::<Vec<_>>(),
            "agreement": agreements.collect::<Vec<_>>(),
        })
    }
}

/// What people say of a result now, for programs.
pub(crate) fn json_of(history: &[Said]) -> Value {
    let one = |said: &&Said| {
        let mut value = serde_json::to_value(said).unwrap_or_default();
        value["at"] = time(said.at_ms).into();
        value
    };
    current(history).iter().map(one).collect()
}
