//! A run that later ones are held against, as a small file for version control.
//!
//! One line for each case, in the order of their ids, so that a change of one case is a
//! change of one line.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Read, Write},
};

use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, json};

use crate::{
    case_outcome::{CaseOutcome, CaseOutcomes, Changes, Outcomes},
    gate::Decimal,
    record::{Lane, LaneKey, SkillChanges},
};

/// The form of the file.
const VERSION: u32 = 1;

/// A run that later ones are held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// The suite.
    pub suite: String,
    /// The run.
    pub run_id: String,
    /// When the run began.
    pub timestamp: String,
    /// The version that ran it.
    pub probity_version: String,
    /// What was run on what.
    pub lanes: Vec<BaselineLane>,
}

/// One lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaselineLane {
    /// The runner.
    pub runner: String,
    /// The prompt variant, if the runner has several.
    pub variant: Option<String>,
    /// The backend.
    pub backend: String,
    /// The model.
    pub model: Option<String>,
    /// The dataset's digest.
    pub dataset_digest: String,
    /// Digests of the skills that it is about, by name.
    pub skills: BTreeMap<String, String>,
    /// How each case stands.
    pub outcomes: CaseOutcomes,
}

impl BaselineLane {
    /// The lane of a run.
    pub fn of(lane: &Lane, outcomes: CaseOutcomes) -> Self {
        Self {
            runner: lane.runner.clone(),
            variant: lane.variant.clone(),
            backend: lane.backend.clone(),
            model: lane.model.clone(),
            dataset_digest: lane.dataset_digest.clone(),
            skills: lane.skills.as_ref().map(|it| it.digests.clone()).unwrap_or_default(),
            outcomes,
        }
    }

    /// What tells it from the others.
    pub fn key(&self) -> LaneKey<'_> {
        let (variant, backend) = (self.variant.as_deref(), &self.backend);
        LaneKey { runner: &self.runner, variant, backend }
    }

    /// What has changed about the skills since, as far as the baseline knows them.
    pub fn skill_changes(&self, now: &Lane) -> Option<SkillChanges> {
        let now = now.skills.as_ref().filter(|_| !self.skills.is_empty())?;
        SkillChanges::between(&self.skills, &now.digests)
    }
}

/// Takes the next case of a lane.
pub type Put<'p> = &'p mut dyn FnMut(&str, &CaseOutcome) -> io::Result<()>;

impl Baseline {
    /// The text of the file.
    pub fn render(&self) -> String {
        let mut bytes = Vec::new();
        // Writing into memory cannot fail.
        let _ = self.write(&mut bytes);
        String::from_utf8(bytes).unwrap_or_default()
    }

    /// Writes the file, without having all of it in memory.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_with(out, |lane, put| {
            let mut cases = self.lanes[lane].outcomes.cases.iter();
            cases.try_for_each(|(case_id, outcome)| put(&case_id, &outcome))
        })
    }

    /// Writes the file with cases that are not in memory: those of a lane, by its place, are put in one by one, in the order of
    /// their ids.
    pub fn write_with(
        &self,
        out: &mut dyn Write,
        mut cases: impl FnMut(usize, Put<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let Self { suite, run_id, timestamp, probity_version, lanes } = self;
        writeln!(out, "{{")?;
        let mut field = |name: &str, value: Value| writeln!(out, "  \"{name}\": {value},");
        field("probity_baseline", json!(VERSION))?;
        field("suite", json!(suite))?;
        field("run", json!(run_id))?;
        field("timestamp", json!(timestamp))?;
        field("probity_version", json!(probity_version))?;
        writeln!(out, "  \"lanes\": [")?;
        for (at, lane) in lanes.iter().enumerate() {
            let BaselineLane { runner, variant, backend, model, dataset_digest, .. } = lane;
            let BaselineLane { skills, outcomes, .. } = lane;
            writeln!(out, "    {{")?;
            let variant = variant.as_ref().map(|it| ("variant", json!(it)));
            let names = [("runner", json!(runner))].into_iter().chain(variant);
            let fields = [
                ("backend", json!(backend)),
                ("model", json!(model)),
                ("dataset_digest", json!(dataset_digest)),
                ("min_pass", json!(outcomes.min_pass)),
            ];
            let skills = (!skills.is_empty()).then(|| ("skills", json!(skills)));
            for (name, value) in names.chain(fields).chain(skills) {
                writeln!(out, "      \"{name}\": {value},")?;
            }
            write!(out, "      \"cases\": {{")?;
            let mut comma = "";
            cases(at, &mut |case_id, outcome| {
                // What an outcome is written as has nothing in it that JSON would write otherwise.
                write!(out, "{comma}\n        ")?;
                serde_json::to_writer(&mut *out, case_id)?;
                comma = ",";
                write!(out, ": \"{outcome}\"")
            })?;
            let comma = if at + 1 == lanes.len() { "" } else { "," };
            write!(out, "\n      }}\n    }}{comma}\n")?;
        }
        write!(out, "  ]\n}}\n")
    }

    /// Reads the text of the file.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::read(text.as_bytes())
    }

    /// Reads the file, without having all of it in memory.
    pub fn read(input: impl Read) -> Result<Self, String> {
        let written: Written = serde_json::from_reader(input).map_err(|error| error.to_string())?;
        if written.probity_baseline > VERSION {
            let found = written.probity_baseline;
            return Err(format!("its form is {found}, and this program knows {VERSION}"));
        }
        let Written { suite, run, timestamp, probity_version, lanes, .. } = written;
        let lanes = lanes.into_iter().map(WrittenLane::read).collect::<Result<_, _>>()?;
        Ok(Self { suite, run_id: run, timestamp, probity_version, lanes })
    }

    /// The lane that is called so.
    pub fn lane(&self, key: LaneKey<'_>) -> Option<&BaselineLane> {
        self.lanes.iter().find(|it| it.key() == key)
    }
}

#[derive(Deserialize)]
struct Written {
    probity_baseline: u32,
    suite: String,
    run: String,
    timestamp: String,
    probity_version: String,
    lanes: Vec<WrittenLane>,
}

#[derive(Deserialize)]
struct WrittenLane {
    runner: String,
    #[serde(default)]
    variant: Option<String>,
    backend: String,
    #[serde(default)]
    model: Option<String>,
    dataset_digest: String,
    #[serde(default)]
    min_pass: Option<u32>,
    #[serde(default)]
    skills: BTreeMap<String, String>,
    cases: WrittenCases,
}

impl WrittenLane {
    fn read(self) -> Result<BaselineLane, String> {
        let Self { runner, variant, backend, model, dataset_digest, min_pass, skills, cases } =
            self;
        let outcomes = CaseOutcomes { min_pass, cases: cases.0? };
        Ok(BaselineLane { runner, variant, backend, model, dataset_digest, skills, outcomes })
    }
}

/// The cases of a lane, or what is wrong with the first that cannot be read.
struct WrittenCases(Result<Outcomes, String>);

impl<'de> Deserialize<'de> for WrittenCases {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Cases;
        impl<'de> de::Visitor<'de> for Cases {
            type Value = WrittenCases;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<WrittenCases, A::Error> {
                let (mut unread, mut wrong) = (None, None);
                let outcomes = std::iter::from_fn(|| {
                    let (case_id, text) = match map.next_entry::<String, String>() {
                        Ok(entry) => entry?,
                        Err(error) => {
                            unread = Some(error);
                            return None;
                        }
                    };
                    match text.parse::<CaseOutcome>() {
                        Ok(outcome) => Some((case_id, outcome)),
                        Err(error) => {
                            wrong.get_or_insert(format!("case `{case_id}`: {error}"));
                            // The rest is read all the same: it may be no JSON.
                            Some((case_id, CaseOutcome::default()))
                        }
                    }
                });
                let outcomes: Outcomes = outcomes.collect();
                match (unread, wrong) {
                    (Some(error), _) => Err(error),
                    (None, Some(wrong)) => Ok(WrittenCases(Err(wrong))),
                    (None, None) => Ok(WrittenCases(Ok(outcomes))),
                }
            }
        }
        deserializer.deserialize_map(Cases)
    }
}

/// How much worse than a baseline a run may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// Cases that passed before and fail now.
    pub max_regressions: u64,
    /// By how much the rate may fall, as a share.
    pub max_drop: Decimal,
}

/// What a lane comes to against its baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What has changed.
    pub changes: Changes,
    /// Regressions of cases that are known to fail.
    pub excused: Vec<String>,
    /// Why it is worse; empty if it is not.
    pub reasons: Vec<String>,
}

impl Tolerance {
    /// Holds what has changed against it. Cases that are known to fail regress as they like.
    pub fn judge(self, mut changes: Changes, is_known: impl Fn(&str) -> bool) -> Verdict {
        let (excused, regressions): (Vec<String>, Vec<String>) =
            changes.regressions.drain(..).partition(|id| is_known(id));
        changes.regressions = regressions;
        let mut reasons = Vec::new();
        let worse = changes.regressions.len() as u64;
        if worse > self.max_regressions {
            let most = self.max_regressions;
            let (cases, fail) = if worse == 1 { ("case", "fails") } else { ("cases", "fail") };
            reasons.push(format!("{worse} {cases} passed before and {fail} now, {most} allowed"));
        }
        if !changes.vanished.is_empty() {
            let count = changes.vanished.len();
            reasons.push(format!("{count} of the baseline's cases are missing"));
        }
        let (before, now) = changes.passed;
        let dropped = before.saturating_sub(now).saturating_sub(excused.len() as u64);
        // dropped / common > limit, in whole numbers.
        let (most, _) = self.max_drop.of(changes.common);
        if dropped > most {
            let (points, limit) = (points(dropped, changes.common), self.max_drop.hundredfold());
            reasons.push(format!("the rate fell by {points:.1} points, more than {limit}"));
        }
        Verdict { changes, excused, reasons }
    }
}

fn points(part: u64, whole: u64) -> f64 {
    crate::metrics::share(part, whole).unwrap_or(0.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(cases: &[(&str, &str)]) -> CaseOutcomes {
        let cases = cases.iter().map(|(id, text)| ((*id).to_owned(), text.parse().unwrap()));
        CaseOutcomes { min_pass: None, cases: cases.collect() }
    }

    fn baseline() -> Baseline {
        let lane = |backend: &str, cases| BaselineLane {
            runner: "r \"1\"".to_owned(),
            variant: (backend == "b").then(|| "terse".to_owned()),
            backend: backend.to_owned(),
            model: Some("m".to_owned()),
            dataset_digest: "d".to_owned(),
            skills: BTreeMap::new(),
            outcomes: cases,
        };
        Baseline {
            suite: "probity.toml".to_owned(),
            run_id: "20260109-123456-abcdef".to_owned(),
            timestamp: "2026-01-09T12:34:56Z".to_owned(),
            probity_version: "0.1.0".to_owned(),
            lanes: vec![
                lane("a", outcomes(&[("one", "pass"), ("two \u{202e}", "fail")])),
                lane("b", outcomes(&[("one", "2/3"), ("three", "1/1 and 2 errors")])),
                lane("c", outcomes(&[])),
            ],
        }
    }

    #[test]
    fn a_baseline_is_a_line_for_each_case_and_reads_back() {
        let text = baseline().render();
        insta::assert_snapshot!(text);
        assert_eq!(Baseline::parse(&text).as_ref(), Ok(&baseline()));
    }

    #[test]
    fn what_is_no_baseline_is_named() {
        let text = baseline().render();
        let newer = text.replace("\"probity_baseline\": 1", "\"probity_baseline\": 2");
        assert!(Baseline::parse(&newer).unwrap_err().contains("its form is 2"));
        let odd = text.replace("\"2/3\"", "\"often\"");
        assert!(
            Baseline::parse(&odd).unwrap_err().contains("case `one`: `often` is not a verdict")
        );
        assert!(Baseline::parse("[]").is_err());
    }

    fn judged(tolerance: Tolerance, known: &[&str]) -> Vec<String> {
        let cases: Vec<(String, &str)> = (0..20).map(|at| (format!("{at:02}"), "pass")).collect();
        let mut before: Vec<(&str, &str)> =
            cases.iter().map(|(id, text)| (id.as_str(), *text)).collect();
        let first = outcomes(&before);
        before[3].1 = "fail";
        before[4].1 = "fail";
        before[5].1 = "error";
        before.pop();
        let changes = Changes::of(&first, &outcomes(&before));
        tolerance.judge(changes, |id| known.contains(&id)).reasons
    }

    #[test]
    fn a_run_is_worse_by_regressions_by_its_rate_and_by_what_is_missing() {
        let tolerance = |max_regressions, drop: &str| Tolerance {
            max_regressions,
            max_drop: Decimal::parse(drop).unwrap(),
        };
        insta::assert_snapshot!(judged(tolerance(0, "0.05"), &[]).join("\n"), @r"
        2 cases passed before and fail now, 0 allowed
        1 of the baseline's cases are missing
        the rate fell by 11.1 points, more than 5
        ");
        let vanished = "1 of the baseline's cases are missing";
        assert_eq!(judged(tolerance(2, "0.2"), &[]), [vanished]);
        assert_eq!(judged(tolerance(0, "0"), &["03", "04"]), [vanished]);
    }
}
