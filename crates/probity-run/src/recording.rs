//! Answers in a file: written while a run goes on, and given again without a backend.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, BufRead as _, BufReader, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use probity_core::{
    failure::ErrorKind,
    record::{CallError, InputDigest, Source, Usage},
    reply::Logprobs,
    request::{Request, ToolCall, short},
};
use probity_load::inputs;
use serde::{Deserialize, Serialize};

use crate::backend::{About, Ask, Reply};

/// The format's version.
const VERSION: u32 = 1;

/// The first line of a recording.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    probity_recording: u32,
    run_id: String,
    #[serde(default)]
    recorded_at: String,
}

/// An [`Answer`] as it is read back.
#[derive(Debug, Deserialize)]
struct Entry {
    backend: String,
    #[serde(default)]
    case_id: String,
    #[serde(default)]
    repeat: u32,
    #[serde(flatten, with = "short")]
    request: Request,
    reply: Option<String>,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
    reasoning: Option<String>,
    logprobs: Option<Logprobs>,
    error: Option<CallError>,
    stop_reason: Option<String>,
    model: Option<String>,
    #[serde(default)]
    latency_ms: u64,
    ttft_ms: Option<u64>,
    #[serde(default)]
    usage: Usage,
}

/// What came back for a case, as it is written down.
#[derive(Debug, Serialize)]
pub struct Answer<'a> {
    /// The backend's name.
    pub backend: &'a str,
    /// The case's id.
    pub case_id: &'a str,
    /// Which of the repeats, from 0.
    pub repeat: u32,
    /// What was asked.
    #[serde(flatten, serialize_with = "short::serialize")]
    pub request: &'a Request,
    /// The reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<&'a str>,
    /// The tools that the model calls.
    #[serde(skip_serializing_if = "<[ToolCall]>::is_empty")]
    pub tool_calls: &'a [ToolCall],
    /// What the model thought before it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<&'a str>,
    /// How likely each token was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<&'a Logprobs>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a CallError>,
    /// Why the model stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<&'a str>,
    /// The model that says it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
    /// How long it took.
    pub latency_ms: u64,
    /// How long its first token took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<u64>,
    /// Tokens.
    pub usage: Usage,
}

/// Writes a recording.
#[derive(Debug)]
pub struct RecordingWriter<W: Write> {
    output: W,
}

impl<W: Write> RecordingWriter<W> {
    /// Begins a recording of a run.
    pub fn new(output: W, run_id: &str, recorded_at: &str) -> io::Result<Self> {
        let mut writer = Self { output };
        writer.line(&Header {
            probity_recording: VERSION,
            run_id: run_id.to_owned(),
            recorded_at: recorded_at.to_owned(),
        })?;
        Ok(writer)
    }

    /// Adds what came back for a case.
    pub fn add(&mut self, answer: &Answer<'_>) -> io::Result<()> {
        self.line(answer)
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.output, value)?;
        self.output.write_all(b"\n")
    }

    /// Ends the recording.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}

/// Why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("failed to read the recording `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A line of it is no answer.
    #[error("line {line} of the recording `{}` is not understood", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// It is no recording, or of a later kind.
    #[error("`{}` is not a recording that this program knows", path.display())]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// It has answers of several backends, and none of the one that was asked for.
    #[error("the recording `{}` has answers of {}, and none of `{wanted}`", path.display(), known.join(", "))]
    Backend {
        /// The file.
        path: PathBuf,
        /// The backend that was asked for.
        wanted: String,
        /// Those that it has answers of.
        known: Vec<String>,
    },
}

/// The answers of one backend, by what was asked.
#[derive(Debug)]
pub struct Replay {
    answers: Vec<Result<Reply, CallError>>,
    /// By what was asked, and by the repeat.
    by_request: BTreeMap<(InputDigest, u32), usize>,
    /// The same, and by the case: what a server is sent may depend on more of it than the request.
    by_case: BTreeMap<(InputDigest, u32, String), usize>,
    /// How many repeats there are.
    repeats: u32,
    model: Option<String>,
}

impl Replay {
    /// Reads the answers of a backend. A recording of one backend serves under any name.
    pub fn load(path: &Path, backend: &str) -> Result<Self, RecordingError> {
        let read = |source| RecordingError::Read { path: path.to_owned(), source };
        inputs::note(path);
        let file = File::open(path).map_err(read)?;
        let mut entries: Vec<Entry> = Vec::new();
        for (at, line) in BufReader::new(file).lines().enumerate() {
            let line = line.map_err(read)?;
            let not_understood =
                |source| RecordingError::Line { path: path.to_owned(), line: at + 1, source };
            if at == 0 {
                let known = serde_json::from_str::<Header>(&line)
                    .is_ok_and(|header| header.probity_recording == VERSION);
                if !known {
                    return Err(RecordingError::Format { path: path.to_owned() });
                }
            } else if !line.trim().is_empty() {
                // By way of a tree: serde cannot hand numbers of any precision to flattened fields.
                let tree = serde_json::from_str::<serde_json::Value>(&line);
                entries.push(tree.and_then(serde_json::from_value).map_err(not_understood)?);
            }
        }
        let known: BTreeSet<&str> = entries.iter().map(|entry| entry.backend.as_str()).collect();
        if known.len() > 1 && !known.contains(backend) {
            let known = known.into_iter().map(ToOwned::to_owned).collect();
            let (path, wanted) = (path.to_owned(), backend.to_owned());
            return Err(RecordingError::Backend { path, wanted, known });
        }
        let any = known.len() == 1;
        entries.retain(|entry| any || entry.backend == backend);
        Ok(Self::of(entries))
    }

    fn of(entries: Vec<Entry>) -> Self {
        let (mut answers, mut by_request) = (Vec::with_capacity(entries.len()), BTreeMap::new());
        let (mut by_case, mut by_role) = (BTreeMap::new(), BTreeMap::new());
        let (mut model, mut repeats) = (None, 0);
        for (at, entry) in entries.into_iter().enumerate() {
            let (key, repeat) = (entry.request.digest(""), entry.repeat);
            by_request.entry((key, repeat)).or_insert(at);
            // A case that asked several questions has their roles behind its id.
            if let Some((case_id, _)) = entry.case_id.rsplit_once('/') {
                by_role.entry((key, repeat, case_id.to_owned())).or_insert(at);
            }
            by_case.entry((key, repeat, entry.case_id)).or_insert(at);
            model = model.or_else(|| entry.model.clone());
            let answer = match (entry.reply, entry.error) {
                (_, Some(error)) => Err(error),
                (reply, None) => Ok(Reply {
                    text: text_beside(reply.unwrap_or_default(), &entry.tool_calls),
                    tool_calls: entry.tool_calls,
                    reasoning: entry.reasoning,
                    logprobs: entry.logprobs,
                    stop_reason: entry.stop_reason,
                    model: entry.model,
                    usage: entry.usage,
                    source: Source::Replay,
                    latency: Some(Duration::from_millis(entry.latency_ms)),
                    first_token: entry.ttft_ms.map(Duration::from_millis),
                    ..Reply::default()
                }),
            };
            repeats = repeats.max(repeat.saturating_add(1));
            answers.push(answer);
        }
        for (key, at) in by_role {
            by_case.entry(key).or_insert(at);
        }
        Self { answers, by_request, by_case, repeats, model }
    }

    /// The model whose answers they are.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// How often each prompt was asked, at most.
    pub fn repeats(&self) -> u32 {
        self.repeats
    }

    /// The answer to a question: that of the same case, or else any. A repeat that was not recorded
    /// has none: another one's answer would make statistics from copies.
    pub fn ask(&self, ask: &Ask<'_>) -> Result<Reply, CallError> {
        let key = ask.request.digest("");
        let of_case = |about: &About| self.by_case.get(&(key, ask.repeat, about.case.id.clone()));
        let found = ask.about.and_then(of_case).or_else(|| self.by_request.get(&(key, ask.repeat)));
        if let Some(at) = found {
            return self.answers[*at].clone();
        }
        let message = match (ask.repeat, self.by_request.contains_key(&(key, 0))) {
            (repeat, true) => format!("the recording has no repeat {} of it", repeat + 1),
            (_, false) => "the recording has no answer to this prompt".to_owned(),
        };
        Err(CallError::new(ErrorKind::NotFound, message))
    }
}

/// The text of a reply; one that only calls tools was written down as its calls.
fn text_beside(reply: String, calls: &[ToolCall]) -> String {
    match !calls.is_empty() && reply == ToolCall::to_json(calls) {
        true => String::new(),
        false => reply,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use probity_core::case::TestCase;

    use super::*;

    fn recording(lines: &str) -> Result<Replay, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        std::fs::write(&path, lines).unwrap();
        let shown = |error: RecordingError| {
            error.to_string().replace(&folder.path().display().to_string(), "FOLDER")
        };
        Replay::load(&path, "b").map_err(shown)
    }

    const HEADER: &str = r#"{"probity_recording":1,"run_id":"r"}"#;

    #[test]
    fn answers_are_found_by_what_was_asked() {
        let replay = recording(&format!(
            "{HEADER}\n{}\n{}\n{}\n",
            r#"{"backend":"x","case_id":"1","repeat":1,"prompt":"p","reply":"second"}"#,
            r#"{"backend":"x","case_id":"1","prompt":"p","reply":"first","latency_ms":7}"#,
            r#"{"backend":"x","case_id":"2","prompt":"p","system":"s","error":{"kind":"auth","permanent":true,"message":"no"}}"#,
        ))
        .unwrap();
        let ask = |system: Option<&str>, repeat| {
            let request = Request::new(system.map(Into::into), "p");
            replay.ask(&Ask { request: &request, repeat, about: None })
        };
        let first = ask(None, 0).unwrap();
        assert_eq!((first.text.as_str(), first.source), ("first", Source::Replay));
        assert_eq!(first.latency, Some(Duration::from_millis(7)));
        assert_eq!(ask(None, 1).unwrap().text, "second");
        let third = ask(None, 2).unwrap_err();
        assert_eq!(third.message, "the recording has no repeat 3 of it");
        assert_eq!(replay.repeats(), 2);
        assert_eq!(ask(Some("s"), 0).unwrap_err().kind, ErrorKind::Auth);
        assert_eq!(ask(Some("t"), 0).unwrap_err().kind, ErrorKind::NotFound);
    }

    #[test]
    fn all_that_was_recorded_of_an_answer_comes_back() {
        let call = ToolCall::with_text(Some("c1".to_owned()), "add".to_owned(), r#"{"a":1}"#);
        let calls = std::slice::from_ref(&call);
        let usage = Usage { input_tokens: Some(3), output_tokens: Some(2), ..Usage::default() };
        let logprobs: Logprobs =
            serde_json::from_str(r#"[{"token": "a", "logprob": -0.5}]"#).unwrap();
        let request = Request::new(Some("s".into()), "p");
        let mut writer = RecordingWriter::new(Vec::new(), "r", "now").unwrap();
        let mut add = |case_id, reply| {
            let answer = Answer {
                backend: "x",
                case_id,
                repeat: 0,
                request: &request,
                reply: Some(reply),
                tool_calls: calls,
                reasoning: Some("hm"),
                logprobs: Some(&logprobs),
                error: None,
                stop_reason: Some("tool_calls"),
                model: Some("m-1"),
                latency_ms: 7,
                ttft_ms: Some(5),
                usage,
            };
            writer.add(&answer).unwrap();
        };
        add("1", "I add.");
        // One that says nothing is written down as its calls.
        add("2", &ToolCall::to_json(calls));
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        let replay = recording(&text).unwrap();
        let said = |id: &str| {
            let case = TestCase { id: id.to_owned(), ..TestCase::default() };
            let about = About::new(Arc::new(case));
            replay.ask(&Ask { request: &request, repeat: 0, about: Some(&about) }).unwrap()
        };
        let expected = Reply {
            text: "I add.".to_owned(),
            tool_calls: vec![call.clone()],
            reasoning: Some("hm".to_owned()),
            logprobs: Some(logprobs.clone()),
            stop_reason: Some("tool_calls".to_owned()),
            model: Some("m-1".to_owned()),
            usage,
            source: Source::Replay,
            latency: Some(Duration::from_millis(7)),
            first_token: Some(Duration::from_millis(5)),
            ..Reply::default()
        };
        assert_eq!(said("1"), expected);
        assert_eq!(said("2"), Reply { text: String::new(), ..expected });
        assert_eq!((replay.model(), replay.repeats()), (Some("m-1"), 1));
    }

    #[test]
    fn a_case_gets_its_own_answer_where_several_asked_the_same() {
        let replay = recording(&format!(
            "{HEADER}\n{}\n{}\n{}\n",
            r#"{"backend":"x","case_id":"1/2","prompt":"p","reply":"of 1/2"}"#,
            r#"{"backend":"x","case_id":"1","prompt":"p","reply":"of 1"}"#,
            r#"{"backend":"x","case_id":"3/answer","prompt":"p","reply":"of 3"}"#,
        ))
        .unwrap();
        let request = Request::new(None, "p");
        for (id, reply) in [("1", "of 1"), ("1/2", "of 1/2"), ("3", "of 3"), ("4", "of 1/2")] {
            let case = TestCase { id: id.to_owned(), ..TestCase::default() };
            let about = About::new(Arc::new(case));
            let ask = Ask { request: &request, repeat: 0, about: Some(&about) };
            assert_eq!(replay.ask(&ask).unwrap().text, reply, "{id}");
        }
    }

    #[test]
    fn what_is_no_recording_is_refused() {
        assert_eq!(
            recording("{}").unwrap_err(),
            "`FOLDER/r.jsonl` is not a recording that this program knows"
        );
        let error = recording(&format!("{HEADER}\nnonsense")).unwrap_err();
        assert_eq!(error, "line 2 of the recording `FOLDER/r.jsonl` is not understood");
        let two = format!(
            "{HEADER}\n{}\n{}\n",
            r#"{"backend":"x","case_id":"1","prompt":"p","reply":"a"}"#,
            r#"{"backend":"y","case_id":"1","prompt":"p","reply":"b"}"#,
        );
        let error = recording(&two).unwrap_err();
        assert_eq!(error, "the recording `FOLDER/r.jsonl` has answers of x, y, and none of `b`");
    }
}
