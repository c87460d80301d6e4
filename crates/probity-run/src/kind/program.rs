//! Programs that run cases of their own: they print what they did as `KEY=VALUE` lines.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use probity_core::{
    case::TestCase,
    classification::{Classification, Rule, Verdict},
    details::{Criterion, Details, Trouble},
    difference::{Difference, ProgramDifference},
    evidence::JudgedBy,
    kind::{Evidence, FailFast, KindSpec, ProgramReport, RunnerKind},
    record::{InputDigest, LaneStatus},
    request::Request,
    span::Span,
};
use probity_grade::{Rules, errors::ErrorInput, redacted};
use probity_load::{suite::RunnerConfig, template};
use serde_json::Value;
use tokio::time::Instant;

use super::{Asking, Calls, Kind, Questions, Running, Site, Work};
use crate::{
    backend::{Backend, Reply},
    engine::{Ended, Handle, finish},
    process::{self, Command, End, Finished, Limits, Room, Stdin},
    redact::Redactor,
    source::Prepared,
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
#[derive(Debug)]
pub(super) struct External {
    program: Arc<Program>,
    warning: Option<String>,
}

pub(super) fn open(runner: &RunnerConfig, site: &Site<'_>) -> External {
    let program = Program {
        command: runner.command.clone(),
        folder: std::path::absolute(site.folder.join(".")).unwrap_or_default(),
        env: site.env.clone(),
        timeout: runner.timeout,
        kill_grace: site.kill_grace,
        runner: runner.name.clone(),
        rules: site.rules,
        redactor: site.redactor.clone(),
    };
    let name = &program.runner;
    let warning = program.find(site.folder).err();
    let warning = warning.map(|why| format!("runner `{name}` cannot be started: {why}"));
    External { warning, program: Arc::new(program) }
}

impl Kind for External {
    fn spec(&self) -> &'static KindSpec {
        RunnerKind::Program.spec()
    }

    /// What it asks is its own affair.
    fn calls(&self, _case: &TestCase) -> Calls {
        Calls::default()
    }

    fn own_case(&self) -> Option<TestCase> {
        let prompt = self.program.command.join(" ").into();
        Some(TestCase { id: "program".to_owned(), prompt, ..TestCase::default() })
    }

    fn warning(&self) -> Option<String> {
        self.warning.clone()
    }

    fn questions(
        &self,
        _case: &TestCase,
        filled: Request,
        _judge: Option<&JudgedBy>,
    ) -> Option<Questions> {
        let request = filled;
        Some(Questions { request, work: self.program.clone() })
    }
}

impl Work for Program {
    fn input(&self, asking: &Asking<'_>) -> InputDigest {
        let plain = asking.plain();
        let all = self.command.iter().map(String::as_bytes);
        InputDigest::of([&plain.0[..]].into_iter().chain(all))
    }

    fn run(self: Arc<Self>, case: Box<Prepared>, handle: Box<Handle>) -> Running {
        Box::pin(async move { Ok(run(&self, case, handle).await) })
    }
}

/// Lets the program run its cases.
async fn run(program: &Program, case: Box<Prepared>, mut handle: Box<Handle>) -> Ended {
    let began = Instant::now();
    let ran = program.run(&handle.subject.backend).await;
    handle.report_external(ran.evidence.calls, ran.evidence.cost_usd, began.elapsed());
    let Ran { evidence: _, status, classification, output } = ran;
    let reply = Reply { text: output, ..Reply::default() };
    let mut ended = finish(case, handle, Some(reply), classification);
    let passed = ended.record.verdict == Verdict::Pass;
    ended.ends_lane = status.filter(|_| !passed);
    ended
}

/// The program and how it is started.
#[derive(Debug)]
struct Program {
    /// The program and its arguments, each a template over `backend`, `model` and `runner`.
    command: Vec<String>,
    /// Where it runs, and where its path starts from.
    folder: PathBuf,
    /// All variables that it sees.
    env: BTreeMap<OsString, OsString>,
    /// How long it may take.
    timeout: Option<Duration>,
    /// How long it has to end after it was asked to.
    kill_grace: Duration,
    /// What the runner is called.
    runner: String,
    /// How error texts are read.
    rules: &'static Rules,
    /// Hides keys that it may print.
    redactor: Redactor,
}

/// What a program came to.
#[derive(Debug)]
struct Ran {
    evidence: ProgramReport,
    /// How its lane ends, unless everything went well.
    status: Option<LaneStatus>,
    classification: Classification,
    /// What it printed for scripts.
    output: String,
}

impl Program {
    /// Runs it to its end.
    async fn run(&self, backend: &Backend) -> Ran {
        match self.launch(backend).await {
            Ok(finished) => self.read(&finished),
            Err(why) => {
                let evidence = ProgramReport { aborted: true, ..ProgramReport::default() };
                ran(evidence, Some(Rule::Error), LaneStatus::Broken { reason: why }, String::new())
            }
        }
    }

    /// The program and its arguments, filled in.
    fn arguments(&self, backend: &str, model: Option<&str>) -> Result<Vec<String>, String> {
        let vars = BTreeMap::from([
            ("backend".to_owned(), Value::from(backend)),
            ("model".to_owned(), Value::from(model.unwrap_or(""))),
            ("runner".to_owned(), Value::from(self.runner.as_str())),
        ]);
        let fill = |text: &String| template::render(text, &vars).map_err(|it| it.to_string());
        self.command.iter().map(fill).collect()
    }

    /// Whether it can be started at all.
    fn find(&self, folder: &Path) -> Result<(), String> {
        let name = self.command.first().ok_or("there is no program to start")?;
        // A name that is filled in later cannot be looked for now.
        if name.contains("{{") {
            return Ok(());
        }
        let path = self.env.get(OsStr::new("PATH")).map(OsString::as_os_str);
        process::find(name, path, folder).map(|_| ()).map_err(|error| error.to_string())
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
        let evidence = ProgramReport {
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
            let evidence = ProgramReport { aborted: true, ..evidence };
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
            let evidence = ProgramReport { aborted: true, ..evidence };
            return ran(evidence, Some(Rule::Error), LaneStatus::GaveUp { reason }, output);
        }
        // Zero of zero is not "everything passed".
        if matches!(finished.code(), Some(0 | 1)) && lines.has("N_CASES") && evidence.cases == 0 {
            let reason = format!("it ran no case (N_CASES={})", one_line(lines.get("N_CASES")));
            let evidence = ProgramReport { aborted: true, ..evidence };
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
fn ran(evidence: ProgramReport, rule: Option<Rule>, status: LaneStatus, output: String) -> Ran {
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
    let classification = Classification::new(rule.unwrap_or(Rule::Pass), details)
        .with_evidence(Evidence::Program(evidence.clone()));
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
        let ProgramReport { calls, cost_usd, cases, planned, aborted, ref missing, .. } =
            ran.evidence;
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
