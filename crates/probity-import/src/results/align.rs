//! Finds the cases of a suite that results of another tool are about, by what was asked.

use std::collections::BTreeMap;

use probity_core::request::{Part, Request};

use super::{ImportedLane, ImportedRun};

/// The cases of a suite.
#[derive(Debug, Default)]
pub struct KnownCases {
    /// By what is asked: who asks it, and the ids of the cases.
    asked: BTreeMap<String, BTreeMap<Asker, Vec<String>>>,
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
        let by = self.asked.entry(key(request)).or_default();
        by.entry(asker).or_default().push(id.to_owned());
    }

    /// Gives the results of a run the names that the suite has for their cases.
    pub fn align(&self, run: &mut ImportedRun) -> Vec<Aligned> {
        run.lanes.iter_mut().map(|lane| self.align_lane(lane)).collect()
    }

    fn align_lane(&self, lane: &mut ImportedLane) -> Aligned {
        let title = match &lane.variant {
            Some(variant) => format!("{}/{variant} on {}", lane.runner, lane.backend),
            None => format!("{} on {}", lane.runner, lane.backend),
        };
        let mut votes: BTreeMap<&Asker, usize> = BTreeMap::new();
        let keys: Vec<String> = lane.results.iter().map(|it| key(&it.request)).collect();
        for asker in keys.iter().filter_map(|it| self.asked.get(it)).flat_map(BTreeMap::keys) {
            *votes.entry(asker).or_default() += 1;
        }
        let results = lane.results.len();
        let most = votes.iter().max_by_key(|(asker, count)| (**count, std::cmp::Reverse(*asker)));
        let Some((asker, _)) = most else {
            return Aligned { lane: title, by: None, found: 0, results };
        };
        let found = self.rename(lane, asker, &keys);
        Aligned { lane: title, by: Some((*asker).clone()), found, results }
    }

    fn rename(&self, lane: &mut ImportedLane, asker: &Asker, keys: &[String]) -> usize {
        // Cases that ask the same are taken one after the other, in each repeat anew.
        let mut taken: BTreeMap<(&str, u32), usize> = BTreeMap::new();
        let mut ids = std::collections::BTreeSet::new();
        let mut found = 0;
        for (result, key) in lane.results.iter_mut().zip(keys) {
            let Some(same) = self.asked.get(key).and_then(|it| it.get(asker)) else { continue };
            let next = taken.entry((key, result.repeat)).or_default();
            let Some(id) = same.get(*next) else { continue };
            *next += 1;
            result.case.id.clone_from(id);
            ids.insert(id);
            found += 1;
        }
        // What was not found must not be taken for a case of the suite.
        for (result, key) in lane.results.iter_mut().zip(keys) {
            let is_found = self.asked.get(key).is_some_and(|it| it.contains_key(asker));
            if !is_found && ids.contains(&result.case.id) {
                result.case.id = format!("imported/{}", result.case.id);
            }
        }
        (lane.runner, lane.variant) = asker.clone();
        if let Some(name) = self.backend_of(lane) {
            lane.backend = name.to_owned();
        }
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
