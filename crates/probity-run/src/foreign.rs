//! Runners that are programs of their own: they print what they did as `KEY=VALUE` lines.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

use probity_core::{
    classification::{Classification, Rule},
    details::{Criterion, Details, Trouble},
    difference::{Difference, ProgramDifference},
    evidence::{Evidence, FailFast, Foreign},
    record::LaneStatus,
    span::Span,
};
use probity_grade::{Rules, errors::ErrorInput, redacted};
use probity_load::template;
use serde_json::Value;

use crate::{
    backend::Backend,
    process::{self, Command, End, Finished, Limits, Room, Stdin},
    redact::Redactor,
};

/// The lines that a runner is to print.
const KEYS: [&str; 9] = [
    "TOTAL_CALLS",
    "COST_USD",
    "ABORTED",
    "N_CASES",
    "N_PLANNED",
    "FAIL_FAST",
    "FAIL_FAST_REASON",
    "FAIL_FAST_PERMANENT",
    "RESULT_FILE",
];
/// Those without which nothing is known of it.
const TELLING: [&str; 4] = ["TOTAL_CALLS", "ABORTED", "N_CASES", "FAIL_FAST"];
/// Longest reason that is kept, in characters.
const LONGEST_REASON: usize = 200;
/// More calls or cases than this are a slip of the pen.
const MOST: u64 = 1_000_000_000;
/// How long a program may run that has no limit: longer than anybody waits.
const NO_LIMIT: Duration = Duration::from_hours(7 * 24);

/// A runner that is a program.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program and its arguments, each a template over `backend`, `model` and `runner`.
    pub command: Vec<String>,
    /// Where it runs, and where its path starts from.
    pub folder: PathBuf,
    /// All variables that it sees.
    pub env: BTreeMap<OsString, OsString>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// How long it has to end after it was asked to.
    pub kill_grace: Duration,
    /// What the runner is called.
    pub runner: String,
    /// How error texts are read.
    pub rules: &'static Rules,
    /// Hides keys that it may print.
    pub redactor: Redactor,
}

/// What a program came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) evidence: Foreign,
    /// How its lane ends, unless everything went well.
    pub(crate) status: Option<LaneStatus>,
    pub(crate) classification: Classification,
    /// What it printed for scripts.
    pub(crate) output: String,
}

impl Program {
    /// Runs it to its end.
    pub(crate) async fn run(&self, backend: &Backend) -> Ran {
        match self.launch(backend).await {
            Ok(finished) => self.read(&finished),
            Err(why) => {
                let evidence = Foreign { aborted: true, ..Foreign::default() };
                ran(evidence, Some(Rule::Error), LaneStatus::Broken { reason: why }, String::new())
            }
        }
    }

    /// The program and its arguments, filled in.
    pub(crate) fn arguments(
        &self,
        backend: &str,
        model: Option<&str>,
    ) -> Result<Vec<String>, String> {
        let vars = BTreeMap::from([
            ("backend".to_owned(), Value::from(backend)),
            ("model".to_owned(), Value::from(model.unwrap_or(""))),
            ("runner".to_owned(), Value::from(self.runner.as_str())),
        ]);
        let fill = |text: &String| template::render(text, &vars).map_err(|it| it.to_string());
        self.command.iter().map(fill).collect()
    }

    async fn launch(&self, backend: &Backend) -> Result<Finished, String> {
        let told = |error: process::NoProgram| {
            let mut text = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                text = format!("{text}: {cause}");
                source = cause.source();
            }
            text
        };
        let all = self.arguments(&backend.name, backend.model.as_deref())?;
        let (name, args) = all.split_first().ok_or("there is no program to start")?;
        let path = self.env.get(OsStr::new("PATH")).map(OsString::as_os_str);
        let program = process::find(name, path, &self.folder).map_err(told)?;
        let room = Room::new().map_err(told)?.but_working_in(self.folder.clone());
        let args = args.iter().map(OsString::from).collect();
        let command = Command { program, args, env: self.env.clone(), stdin: Stdin::Null, room };
        let limits = Limits::new(self.timeout.unwrap_or(NO_LIMIT), self.kill_grace);
        process::run(command, limits).await.map_err(told)
    }

    /// Reads what it printed. Whatever is missing is zero.
    fn read(&self, finished: &Finished) -> Ran {
        let output = self.redactor.cleaned(String::from_utf8_lossy(&finished.stdout).into_owned());
        let lines = Lines::of(&output);
        let flag = |key: &str| {
            let value = lines.get(key);
            ["1", "true", "yes"].iter().any(|it| it.eq_ignore_ascii_case(value))
        };
        let fail_fast = flag("FAIL_FAST").then(|| {
            let reason = one_line(lines.get("FAIL_FAST_REASON"));
            let permanent = match lines.get("FAIL_FAST_PERMANENT") {
                // It does not say, so its words have to.
                "" => {
                    let input = ErrorInput { text: &reason, ..ErrorInput::default() };
                    self.rules.errors().classify(&input).permanent
                }
                _ => flag("FAIL_FAST_PERMANENT"),
            };
            FailFast { reason, permanent }
        });
        let evidence = Foreign {
            calls: lines.number("TOTAL_CALLS"),
            cost_usd: lines
                .get("COST_USD")
                .parse()
                .ok()
                .filter(|it: &f64| (0.0..1e9).contains(it))
                .unwrap_or(0.0),
            cases: lines.number("N_CASES"),
            planned: match lines.get("N_PLANNED") {
                "" => lines.number("N_CASES"),
                _ => lines.number("N_PLANNED"),
            },
            aborted: flag("ABORTED") || fail_fast.is_some(),
            fail_fast,
            result_file: Some(lines.get("RESULT_FILE").to_owned()).filter(|it| !it.is_empty()),
            exit_code: finished.code(),
            missing: KEYS.iter().filter(|key| !lines.has(key)).map(|it| (*it).to_owned()).collect(),
        };
        let said_something = TELLING.iter().any(|key| lines.has(key));
        let last_words = || self.redactor.cleaned(last_line(&finished.stderr));
        if finished.end == End::Time {
            let limit = Span(self.timeout.unwrap_or(NO_LIMIT));
            let reason = format!("it took longer than {limit}");
            let evidence = Foreign { aborted: true, ..evidence };
            return ran(evidence, Some(Rule::Timeout), LaneStatus::TimedOut { reason }, output);
        }
        if let Some(FailFast { reason, permanent }) = evidence.fail_fast.clone() {
            let status = LaneStatus::FailFast { reason, permanent };
            return ran(evidence, Some(Rule::Error), status, output);
        }
        if evidence.aborted {
            let reason = "it reports that it was aborted (ABORTED=1)".to_owned();
            return ran(evidence, Some(Rule::Error), LaneStatus::GaveUp { reason }, output);
        }
        if finished.end == End::Output {
            let reason = "it printed more than is allowed".to_owned();
            return ran(evidence, Some(Rule::Error), LaneStatus::Broken { reason }, output);
        }
        if evidence.cases < evidence.planned {
            let (cases, planned) = (evidence.cases, evidence.planned);
            let reason = format!("{cases} of {planned} cases finished");
            let evidence = Foreign { aborted: true, ..evidence };
            return ran(evidence, Some(Rule::Error), LaneStatus::GaveUp { reason }, output);
        }
        // Zero of zero is not "everything passed".
        if matches!(finished.code(), Some(0 | 1)) && lines.has("N_CASES") && evidence.cases == 0 {
            let reason = format!("it ran no case (N_CASES={})", one_line(lines.get("N_CASES")));
            let evidence = Foreign { aborted: true, ..evidence };
            return ran(evidence, Some(Rule::Error), LaneStatus::GaveUp { reason }, output);
        }
        match finished.code() {
            Some(0 | 1) if !said_something => {
                let reason = format!("it printed none of {}{}", TELLING.join(", "), last_words());
                ran(evidence, Some(Rule::Error), LaneStatus::Broken { reason }, output)
            }
            Some(0) => ran(evidence, None, LaneStatus::Complete, output),
            // A gate of its own did not hold.
            Some(1) => ran(evidence, Some(Rule::Mismatch), LaneStatus::Complete, output),
            code => {
                let how = match (code, finished.signal()) {
                    (Some(code), _) => format!("exit code {code}"),
                    (None, Some(signal)) => signal,
                    (None, None) => "an unknown end".to_owned(),
                };
                let reason = format!("it ended with {how}{}", last_words());
                ran(evidence, Some(Rule::Error), LaneStatus::Broken { reason }, output)
            }
        }
    }
}

/// Puts together what a program came to. `rule` is the one that decides, unless it passed.
fn ran(evidence: Foreign, rule: Option<Rule>, status: LaneStatus, output: String) -> Ran {
    let reason = match &status {
        LaneStatus::FailFast { reason, .. }
        | LaneStatus::TimedOut { reason }
        | LaneStatus::GaveUp { reason }
        | LaneStatus::Skipped { reason }
        | LaneStatus::Budget { reason }
        | LaneStatus::Decided { reason, .. }
        | LaneStatus::Broken { reason } => Some(reason.clone()),
        LaneStatus::Complete | LaneStatus::Interrupted => None,
    };
    let details = match rule {
        None => Details { criteria: Some(Criterion::Program), ..Details::default() },
        Some(Rule::Mismatch) => {
            let exit_code = evidence.exit_code;
            let diff = Difference::Program(ProgramDifference { exit_code });
            Details { diff: Some(diff), ..Details::default() }
        }
        Some(_) => {
            Details { error_details: reason, reason: Some(Trouble::Program), ..Details::default() }
        }
    };
    let details =
        Details { evidence: Some(Box::new(Evidence::Program(evidence.clone()))), ..details };
    let classification = Classification::new(rule.unwrap_or(Rule::Pass), details);
    let status = (!status.is_complete()).then_some(status);
    Ran { evidence, status, classification, output }
}

/// `KEY=VALUE` lines among others; the last of a name counts.
struct Lines<'t>(BTreeMap<&'static str, &'t str>);

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let pairs = text.lines().filter_map(|line| {
            let (key, value) = line.trim_start_matches('\u{feff}').trim().split_once('=')?;
            Some((*KEYS.iter().find(|it| **it == key.trim())?, value.trim()))
        });
        Self(pairs.collect())
    }

    fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    fn get(&self, key: &str) -> &'t str {
        self.0.get(key).copied().unwrap_or("")
    }

    fn number(&self, key: &str) -> u64 {
        self.get(key).parse().ok().filter(|it| *it <= MOST).unwrap_or(0)
    }
}

fn one_line(text: &str) -> String {
    let flat: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    redacted(&flat).chars().take(LONGEST_REASON).collect()
}

/// The last thing that it said to people, to be put behind a reason.
fn last_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    match text.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!(": {}", one_line(line.trim())),
        None => String::new(),
    }
}

/// Whether a program can be started at all.
pub fn is_there(command: &[String], folder: &Path, path: Option<&OsStr>) -> Result<(), String> {
    let Some(name) = command.first() else { return Err("there is no program to start".to_owned()) };
    // A name that is filled in later cannot be looked for now.
    if name.contains("{{") {
        return Ok(());
    }
    process::find(name, path, folder).map(|_| ()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn read(stdout: &str, code: i32) -> Ran {
        let program = Program {
            command: Vec::new(),
            folder: PathBuf::new(),
            env: BTreeMap::new(),
            timeout: None,
            kill_grace: Duration::ZERO,
            runner: "r".to_owned(),
            rules: Box::leak(Box::default()),
            redactor: Redactor::default(),
        };
        program.read(&Finished {
            end: End::Itself,
            status: Some(std::process::ExitStatus::from_raw(code << 8)),
            stdout: stdout.as_bytes().to_vec(),
            stderr: b"warming up\nall is lost\n\n".to_vec(),
        })
    }

    #[test]
    fn what_is_missing_is_zero() {
        let ran = read("noise\nTOTAL_CALLS=12\n COST_USD = 0.5 \nN_CASES=7\nN_CASES=8\n", 0);
        assert_eq!(ran.status, None);
        let Foreign { calls, cost_usd, cases, planned, aborted, ref missing, .. } = ran.evidence;
        assert_eq!((calls, cases, planned, aborted), (12, 8, 8, false));
        assert!((cost_usd - 0.5).abs() < 1e-12);
        assert_eq!(missing.len(), 6);
        assert_eq!(ran.classification.rule, Rule::Pass);
        let ran = read("TOTAL_CALLS=\nCOST_USD=NaN\nN_CASES=-3\n", 0);
        assert_eq!((ran.evidence.calls, ran.evidence.cases), (0, 0));
        let reason = "it ran no case (N_CASES=-3)".to_owned();
        assert_eq!(ran.status, Some(LaneStatus::GaveUp { reason }));
        assert_eq!(ran.evidence.cost_usd.to_bits(), 0);
        let huge =
            read("TOTAL_CALLS=18446744073709551615\nCOST_USD=1e308\nN_CASES=9\n", 0).evidence;
        assert_eq!((huge.calls, huge.cases, huge.cost_usd.to_bits()), (0, 9, 0));
        let short = read("N_CASES=1\nN_PLANNED=10\nABORTED=0\n", 0);
        assert!(matches!(short.status, Some(LaneStatus::GaveUp { .. })) && short.evidence.aborted);
        assert!(read("\u{feff}FAIL_FAST=True\n", 0).evidence.fail_fast.is_some());
    }

    #[test]
    fn permanence_is_what_it_says_or_what_its_words_mean() {
        let permanent = |more: &str| {
            let ran = read(&format!("FAIL_FAST=1\n{more}\n"), 0);
            assert!(ran.evidence.aborted, "FAIL_FAST=1 implies ABORTED=1");
            match ran.status {
                Some(LaneStatus::FailFast { permanent, .. }) => permanent,
                other => panic!("{other:?}"),
            }
        };
        assert!(permanent("FAIL_FAST_PERMANENT=1\nFAIL_FAST_REASON=rate limit"));
        assert!(!permanent("FAIL_FAST_PERMANENT=0\nFAIL_FAST_REASON=authentication_error"));
        assert!(permanent("FAIL_FAST_REASON=API Error: 401 authentication_error"));
        assert!(!permanent("FAIL_FAST_REASON=429 rate_limit_error"));
        assert!(!permanent(""));
    }

    #[test]
    fn an_end_without_words_is_an_error() {
        let reason = |ran: Ran| match ran.status {
            Some(LaneStatus::Broken { reason }) => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            reason(read("done\n", 0)),
            "it printed none of TOTAL_CALLS, ABORTED, N_CASES, FAIL_FAST: all is lost"
        );
        assert_eq!(reason(read("TOTAL_CALLS=1\n", 2)), "it ended with exit code 2: all is lost");
        let gate = read("TOTAL_CALLS=1\nN_CASES=1\n", 1);
        assert_eq!((gate.status, gate.classification.rule), (None, Rule::Mismatch));
        assert!(matches!(read("ABORTED=1\n", 3).status, Some(LaneStatus::GaveUp { .. })));
    }
}
