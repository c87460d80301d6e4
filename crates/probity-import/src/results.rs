//! Results of other tools, as runs.
//!
//! A reader per tool makes an [`ImportedRun`] of a file. What a tool calls an error stays an error,
//! and where it gives no verdict the case is undecided. Nothing is asked and nothing is judged.

mod align;
pub(crate) mod archive;
mod carried;
mod decided;
mod inspect;
mod lm_eval;
mod numbers;
mod openai_evals;
mod place;
mod promptfoo;
mod record;

use std::{
    collections::BTreeSet,
    fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use probity_core::{
    case::TestCase,
    record::{LaneStatus, Usage},
    request::Request,
    score::Score,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

pub use align::{Aligned, KnownCases};
use jiff::Timestamp;
use place::Text;
pub use record::Recorded;

/// Why results cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// A file is not there, or is not text.
    #[error("`{}` cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A value is not what the tool writes there.
    #[error("{file}:{line}: {field}{said}")]
    Misfit {
        /// The file, and the part of it.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The field, and a colon.
        field: String,
        /// What is wrong.
        said: String,
    },
    /// An archive is broken.
    #[error("`{}` is not a log: {said}", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        said: String,
    },
    /// The score that is to decide is not there.
    #[error("`{}` has no score `{wanted}`; it has: {known}", path.display())]
    NoScore {
        /// The file.
        path: PathBuf,
        /// The score.
        wanted: String,
        /// The scores that there are.
        known: String,
    },
    /// A result is there twice.
    #[error("`{}` has two results of the same try of `{case}`", path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// The case.
        case: String,
    },
    /// There is nothing to keep.
    #[error("`{}` has no results", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// A tool whose results can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// promptfoo.
    Promptfoo,
    /// Inspect.
    Inspect,
    /// The evaluation harness for language models, `lm_eval`.
    LmEval,
    /// OpenAI evals.
    OpenaiEvals,
}

impl Tool {
    /// Whether it says itself what is right, and does not leave that to scores.
    const fn has_verdicts(self) -> bool {
        match self {
            Self::Promptfoo | Self::OpenaiEvals => true,
            Self::Inspect | Self::LmEval => false,
        }
    }

    /// What it is called.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Promptfoo => "promptfoo",
            Self::Inspect => "Inspect",
            Self::LmEval => "lm-eval",
            Self::OpenaiEvals => "OpenAI evals",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A run of another tool.
#[derive(Clone, Debug)]
pub struct ImportedRun {
    /// Who ran it.
    pub tool: Tool,
    /// Its version, where the file says it.
    pub version: Option<String>,
    /// What was evaluated.
    pub suite: String,
    /// When it began, in milliseconds since 1970; none if the file does not say it.
    pub started_ms: Option<i64>,
    /// When it ended.
    pub finished_ms: Option<i64>,
    /// What was run on what.
    pub lanes: Vec<ImportedLane>,
    /// What was not carried over, or had to be assumed.
    pub notes: Vec<String>,
}

/// What was asked of one model in one way.
#[derive(Clone, Debug)]
pub struct ImportedLane {
    /// What it is called.
    pub runner: String,
    /// The prompt, where there are several.
    pub variant: Option<String>,
    /// Who was asked.
    pub backend: String,
    /// The model.
    pub model: Option<String>,
    /// How it ended.
    pub status: LaneStatus,
    /// Results that there should be; at least as many as there are.
    pub planned: u64,
    /// How often each case was asked.
    pub repeat: u32,
    /// What came of it.
    pub results: Vec<ImportedResult>,
    /// The digest and the files of the dataset, where it is known to be one of ours.
    pub dataset: Option<(String, Vec<String>)>,
}

impl ImportedLane {
    /// A case of which one repeat is there twice.
    fn repeated(&self) -> Option<String> {
        let mut seen = BTreeSet::new();
        let tries = self.results.iter().map(|it| (it.case.id.as_str(), it.repeat));
        tries.into_iter().find(|it| !seen.insert(*it)).map(|(id, _)| id.to_owned())
    }
}

/// One result.
#[derive(Clone, Debug)]
pub struct ImportedResult {
    /// The case. It has criteria only if all that the tool checked could be said in ours.
    pub case: TestCase,
    /// Which of the repeats, from 0.
    pub repeat: u32,
    /// What was sent.
    pub request: Request,
    /// What came back.
    pub reply: Option<String>,
    /// What the model thought before.
    pub reasoning: Option<String>,
    /// Why the model stopped.
    pub stop_reason: Option<String>,
    /// The model that says it answered.
    pub model: Option<String>,
    /// How long that took; none if the file does not say it.
    pub latency_ms: Option<u64>,
    /// When it began, in milliseconds since 1970.
    pub started_ms: Option<i64>,
    /// Tokens.
    pub usage: Usage,
    /// Dollars.
    pub cost_usd: Option<f64>,
    /// What the tool made of it.
    pub outcome: Outcome,
    /// Its scores.
    pub scores: Vec<Score>,
}

impl ImportedResult {
    /// A reply to a request that nothing more is known of.
    fn new(case: TestCase, request: Request) -> Self {
        Self {
            case,
            repeat: 0,
            request,
            reply: None,
            reasoning: None,
            stop_reason: None,
            model: None,
            latency_ms: None,
            started_ms: None,
            usage: Usage::default(),
            cost_usd: None,
            outcome: Outcome::Undecided,
            scores: Vec::new(),
        }
    }
}

/// What a tool made of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is right.
    Passed,
    /// It is not.
    Failed,
    /// The tool does not say.
    Undecided,
    /// There is none, or it could not be judged.
    Error(String),
}

impl From<bool> for Outcome {
    fn from(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }
}

/// How results are read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The score that decides, where a tool has several and no verdict.
    pub decided_by: Option<String>,
}

/// A run, and the digest of what it was read from.
#[derive(Clone, Debug)]
pub struct Read {
    /// The run.
    pub run: ImportedRun,
    /// The digest.
    pub digest: String,
}

/// Reads the results in a file; none if it holds something else.
pub fn read(path: &Path, options: &Options) -> Result<Option<Read>, ResultsError> {
    let Some(bytes) = candidate(path)? else { return Ok(None) };
    let mut digested = vec![bytes.as_slice()];
    let others;
    let mut run = if archive::is_archive(&bytes) {
        let Some(run) = inspect::archive(path, &bytes, options)? else { return Ok(None) };
        run
    } else {
        let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(None) };
        let text = numbers::constants_as_null(text);
        let text = Text::of(path, &text);
        match Form::of(text.content) {
            None => return Ok(None),
            Some(Form::Promptfoo) => promptfoo::whole(text)?,
            Some(Form::PromptfooLines) => promptfoo::lines(text)?,
            Some(Form::Inspect) => inspect::whole(text, options)?,
            Some(Form::OpenaiEvals) => openai_evals::log(text)?,
            Some(Form::LmEvalSamples) => lm_eval::samples(text, options)?,
            Some(Form::LmEvalResults) => {
                others = lm_eval::sample_files(path)?;
                digested.extend(others.iter().map(|(_, text)| text.as_bytes()));
                lm_eval::results(text, &others, options)?
            }
        }
    };
    if run.lanes.iter().all(|lane| lane.results.is_empty()) {
        return Err(ResultsError::Empty { path: path.to_owned() });
    }
    if let Some(case) = run.lanes.iter().find_map(ImportedLane::repeated) {
        return Err(ResultsError::Twice { path: path.to_owned(), case });
    }
    if options.decided_by.is_some() && run.tool.has_verdicts() {
        let tool = run.tool;
        run.notes.push(format!("{tool} has verdicts of its own, so --decide-by changes nothing"));
    }
    let digest = digest(digested);
    Ok(Some(Read { run, digest }))
}

/// The content of a file that may hold results: an archive, or JSON.
fn candidate(path: &Path) -> Result<Option<Vec<u8>>, ResultsError> {
    let unreadable = |source| ResultsError::Unreadable { path: path.to_owned(), source };
    let mut file = fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    (&mut file).take(HEAD).read_to_end(&mut bytes).map_err(unreadable)?;
    if !archive::is_archive(&bytes) && !bytes.trim_ascii_start().starts_with(b"{") {
        return Ok(None);
    }
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(Some(bytes))
}

/// A time as tools write it, in milliseconds since 1970. One without a zone is taken to be UTC.
fn time(text: &str) -> Option<i64> {
    let text = text.trim();
    let stamp = |it: &str| it.parse::<Timestamp>().ok();
    // OpenAI evals writes a blank between date and time, and no zone.
    let zoned = || stamp(&format!("{}Z", text.replacen(' ', "T", 1)));
    stamp(text).or_else(zoned).map(Timestamp::as_millisecond)
}

/// The digest of some parts, as those of datasets are written; where one ends and the next begins counts.
fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().to_hex().to_string()
}

/// Bytes at the beginning of a file that tell whether it may hold results.
const HEAD: u64 = 4096;

/// What a text was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Promptfoo,
    PromptfooLines,
    Inspect,
    LmEvalSamples,
    LmEvalResults,
    OpenaiEvals,
}

impl Form {
    /// By the fields of its first line, or else of the whole.
    fn of(text: &str) -> Option<Self> {
        let line = text.lines().find(|it| !it.trim().is_empty())?;
        let of_line = || serde_json::from_str::<Signs>(line).ok();
        of_line().or_else(|| serde_json::from_str::<Signs>(text).ok())?.form()
    }
}

/// Fields that tell files apart, whatever is in them.
#[derive(Deserialize)]
struct Signs {
    results: Option<Box<RawValue>>,
    #[serde(rename = "testCase")]
    test_case: Option<IgnoredAny>,
    #[serde(rename = "promptIdx")]
    prompt_idx: Option<IgnoredAny>,
    #[serde(rename = "testIdx")]
    test_idx: Option<IgnoredAny>,
    eval: Option<IgnoredAny>,
    status: Option<IgnoredAny>,
    doc_id: Option<IgnoredAny>,
    resps: Option<IgnoredAny>,
    configs: Option<IgnoredAny>,
    versions: Option<IgnoredAny>,
    spec: Option<IgnoredAny>,
    sample_id: Option<IgnoredAny>,
    event_id: Option<IgnoredAny>,
    final_report: Option<IgnoredAny>,
}

/// Fields of promptfoo's results.
#[derive(Deserialize)]
struct InnerSigns {
    results: Option<IgnoredAny>,
    stats: Option<IgnoredAny>,
}

impl Signs {
    fn form(&self) -> Option<Form> {
        let inner = || {
            let inner: InnerSigns = serde_json::from_str(self.results.as_ref()?.get()).ok()?;
            (inner.results.is_some() && inner.stats.is_some()).then_some(())
        };
        if self.eval.is_some() && self.status.is_some() {
            Some(Form::Inspect)
        } else if self.test_case.is_some() && (self.prompt_idx.is_some() || self.test_idx.is_some())
        {
            Some(Form::PromptfooLines)
        } else if self.doc_id.is_some() && self.resps.is_some() {
            Some(Form::LmEvalSamples)
        } else if self.results.is_some() && self.configs.is_some() && self.versions.is_some() {
            Some(Form::LmEvalResults)
        } else if self.spec.is_some()
            || (self.sample_id.is_some() && self.event_id.is_some())
            || self.final_report.is_some()
        {
            Some(Form::OpenaiEvals)
        } else {
            inner().map(|()| Form::Promptfoo)
        }
    }
}
