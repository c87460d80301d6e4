//! Finds the cases of a suite that results of another tool are about, by what was asked.

use std::collections::{BTreeMap, BTreeSet};

use probity_core::request::{Part, Request};

use super::{ImportedLane, ImportedRun};
use crate::names::numbered;

/// The cases of a suite.
#[derive(Debug, Default)]
pub struct KnownCases {
    /// By what is asked: who asks it, and the ids of the cases.
    asked: BTreeMap<String, BTreeMap<Asker, Vec<String>>>,
    /// The ids of all cases of a runner.
    ids: BTreeMap<String, BTreeSet<String>>,
    runners: BTreeMap<String, Runner>,
    /// Names of backends and their models.
    backends: Vec<(String, Option<String>)>,
}

/// A runner, and one of its variants.
type Asker = (String, Option<String>);

#[derive(Debug)]
struct Runner {
    digest: String,
    files: Vec<String>,
    cases: u64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aligned {
    /// The lane, as it was called before.
    pub lane: String,
    /// The runner and the variant of the suite; none if no case asks the same.
    pub by: Option<Asker>,
    /// Results whose case was found.
    pub found: usize,
    /// All of them.
    pub results: usize,
}

impl KnownCases {
    /// Takes in a backend.
    pub fn backend(&mut self, name: &str, model: Option<&str>) {
        self.backends.push((name.to_owned(), model.map(ToOwned::to_owned)));
    }

    /// Takes in a runner with its dataset.
    pub fn runner(&mut self, name: &str, digest: &str, files: &[String], cases: u64) {
        let runner = Runner { digest: digest.to_owned(), files: files.to_vec(), cases };
        self.runners.insert(name.to_owned(), runner);
    }

    /// Takes in a case of a runner.
    pub fn case(&mut self, runner: &str, variant: Option<&str>, id: &str, request: &Request) {
        let asker = (runner.to_owned(), variant.map(ToOwned::to_owned));
        self.ids.entry(runner.to_owned()).or_default().insert(id.to_owned());
        let by = self.asked.entry(key(request)).or_default();
        by.entry(asker).or_default().push(id.to_owned());
    }

    /// Gives the results of a run the names that the suite has for their cases.
    pub fn align(&self, run: &mut ImportedRun) -> Vec<Aligned> {
        let found: Vec<(Vec<String>, Option<&Asker>)> = run
            .lanes
            .iter()
            .map(|lane| {
                let keys: Vec<String> = lane.results.iter().map(|it| key(&it.request)).collect();
                let asker = self.asker(&keys);
                (keys, asker)
            })
            .collect();
        let unfound = run.lanes.iter().zip(&found).filter(|(_, (_, asker))| asker.is_none());
        let mut taken: BTreeSet<(Asker, String)> = unfound.map(|(lane, _)| name_of(lane)).collect();
        let lanes = run.lanes.iter_mut().zip(found);
        lanes.map(|(lane, (keys, asker))| self.align_lane(lane, &keys, asker, &mut taken)).collect()
    }

    /// The one that asks most of this.
    fn asker(&self, keys: &[String]) -> Option<&Asker> {
        let mut votes: BTreeMap<&Asker, usize> = BTreeMap::new();
        for asker in keys.iter().filter_map(|it| self.asked.get(it)).flat_map(BTreeMap::keys) {
            *votes.entry(asker).or_default() += 1;
        }
        let most = votes.iter().max_by_key(|(asker, count)| (**count, std::cmp::Reverse(*asker)));
        most.map(|(asker, _)| *asker)
    }

    fn align_lane(
        &self,
        lane: &mut ImportedLane,
        keys: &[String],
        asker: Option<&Asker>,
        taken: &mut BTreeSet<(Asker, String)>,
    ) -> Aligned {
        let title = match &lane.variant {
            Some(variant) => format!("{}/{variant} on {}", lane.runner, lane.backend),
            None => format!("{} on {}", lane.runner, lane.backend),
        };
        let results = lane.results.len();
        let Some(asker) = asker else {
            return Aligned { lane: title, by: None, found: 0, results };
        };
        let found = self.rename(lane, asker, keys);
        // Two models of theirs may look like one backend of ours; each lane keeps a name of its own.
        let is_free = |backend: &str| !taken.contains(&(asker.clone(), backend.to_owned()));
        let ours = self.backend_of(lane).filter(|it| is_free(it)).map(ToOwned::to_owned);
        lane.backend = ours.unwrap_or_else(|| numbered(&lane.backend, is_free));
        taken.insert((asker.clone(), lane.backend.clone()));
        Aligned { lane: title, by: Some(asker.clone()), found, results }
    }

    fn rename(&self, lane: &mut ImportedLane, asker: &Asker, keys: &[String]) -> usize {
        // Cases that ask the same are taken one after the other, in each repeat anew.
        let mut taken: BTreeMap<(&str, u32), usize> = BTreeMap::new();
        let mut ids = BTreeSet::new();
        let mut found = 0;
        for (result, key) in lane.results.iter_mut().zip(keys) {
            let same = self.asked.get(key).and_then(|it| it.get(asker)).map_or(&[][..], |it| it);
            let next = taken.entry((key, result.repeat)).or_default();
            match same.get(*next) {
                Some(id) => {
                    *next += 1;
                    result.case.id.clone_from(id);
                    ids.insert(id);
                    found += 1;
                }
                // What was not found must not be taken for a case of the suite.
                None if self.ids.get(&asker.0).is_some_and(|it| it.contains(&result.case.id)) => {
                    result.case.id = format!("imported/{}", result.case.id);
                }
                None => {}
            }
        }
        (lane.runner, lane.variant) = asker.clone();
        let runner = self.runners.get(&asker.0);
        let whole = |it: &&Runner| found == lane.results.len() && ids.len() as u64 == it.cases;
        lane.dataset = runner.filter(whole).map(|it| (it.digest.clone(), it.files.clone()));
        found
    }

    /// The backend that is called the same, or whose model the tool asked.
    fn backend_of(&self, lane: &ImportedLane) -> Option<&str> {
        let same_name = |it: &&(String, Option<String>)| it.0 == lane.backend;
        let asked = lane.model.as_deref().unwrap_or_default();
        let same_model = |it: &&(String, Option<String>)| {
            let ends = |model: &String| {
                let before = asked.strip_suffix(model.as_str());
                before.is_some_and(|it| it.is_empty() || it.ends_with([':', '/']))
            };
            it.1.as_ref().is_some_and(ends)
        };
        let found = self.backends.iter().find(same_name);
        found.or_else(|| self.backends.iter().find(same_model)).map(|it| it.0.as_str())
    }
}

/// What the store knows a lane by.
fn name_of(lane: &ImportedLane) -> (Asker, String) {
    ((lane.runner.clone(), lane.variant.clone()), lane.backend.clone())
}

/// What tells requests apart: who says what, blanks at both ends aside, which some tools cut off.
/// Tools and settings are not compared, because other tools do not write them down.
fn key(request: &Request) -> String {
    let mut messages = request.messages.clone();
    for part in messages.iter_mut().flat_map(|it| &mut it.content) {
        if let Part::Text(text) = part {
            *text = text.trim().into();
        }
    }
    serde_json::to_string(&messages).unwrap_or_default()
}
