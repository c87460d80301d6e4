//! One stored result in, the same line with its classification out.

use std::{
    io::{self, Read},
    ops::ControlFlow,
    sync::Arc,
};

use probity_core::{
    case::TestCase,
    classification::{Classification, Verdict},
    conversation::{Exchange, exchanges},
    json::{Limits, parse_located},
    kind::RunnerKind,
    located::Node,
    problem::{Problem, Source},
    record::Asked,
    request::ToolCall,
    run_result::RunResult,
};
use probity_grade::{
    Compiler, Rules,
    internal::{
        again::{Known, classify_again},
        routing::RoutingExpectation,
    },
};
use probity_load::{
    case::Findings,
    lines::{LONGEST_LINE, Line},
    run_result::RunRecord,
};
use serde::Serialize as _;

use crate::{
    pipeline::{self, Broken, Done, Job},
    tally::Tally,
};

/// The fields that are written anew.
const WRITTEN: &[&str] = &["classification", "verdict", "scores"];

/// How results are classified.
#[derive(Debug)]
pub struct Settings<'r> {
    /// The rules.
    pub rules: &'r Rules,
    /// The input's name in messages.
    pub name: Arc<str>,
    /// Whether a case without a criterion is a mistake.
    pub require_criteria: bool,
}

/// What was found in some lines.
#[derive(Debug, Default)]
pub struct Found {
    /// What the results came to.
    pub tally: Tally,
    /// What is wrong with lines that are no results.
    pub problems: Vec<Problem>,
}

/// Gets classified lines in order; see [`pipeline::run`].
pub type Take<'t> = dyn FnMut(Done<Found>, bool) -> io::Result<ControlFlow<()>> + Send + 't;

/// Classifies stored results, one a line, on several threads.
pub fn classify_all(
    settings: &Settings<'_>,
    threads: usize,
    input: &mut dyn Read,
    take: &mut Take<'_>,
) -> Result<(), Broken> {
    pipeline::run(settings, threads, input, take)
}

impl Job for Settings<'_> {
    type Worker<'j>
        = Compiler<'j>
    where
        Self: 'j;
    type Found = Found;

    fn worker(&self) -> Compiler<'_> {
        Compiler::new(self.rules)
    }

    fn line(&self, compiler: &mut Compiler<'_>, line: Line<'_>, done: &mut Done<Found>) {
        if line.too_long {
            let message = format!("the line is longer than {} MiB", LONGEST_LINE >> 20);
            return self.report("too-large", 0, message, line, done);
        }
        let text = match std::str::from_utf8(line.bytes) {
            Ok(text) => text,
            Err(error) => {
                let message = "the text is not UTF-8 from here on".to_owned();
                return self.report("not-utf8", error.valid_up_to(), message, line, done);
            }
        };
        let Done { output, found } = done;
        let classified =
            classify_line(text, compiler, self.require_criteria, &mut found.tally, output);
        if let Err(findings) = classified {
            found.report(self, text, line.number, findings);
        }
    }
}

impl Settings<'_> {
    /// Keeps what is wrong with a line that is no text.
    fn report(
        &self,
        code: &'static str,
        at: usize,
        message: String,
        line: Line<'_>,
        done: &mut Done<Found>,
    ) {
        let mut findings = Findings::default();
        findings.error(code, &(at..at + 1), message);
        done.found.report(self, &String::from_utf8_lossy(line.bytes), line.number, findings);
    }
}

impl Found {
    /// Counts a line that is no run result, and keeps what is wrong with it.
    fn report(&mut self, settings: &Settings<'_>, text: &str, line: usize, findings: Findings) {
        self.tally.broken += 1;
        let source = Source::part(text, line);
        let problems = findings.0.into_iter().map(|it| it.at(&settings.name, &source));
        self.problems.extend(problems);
    }
}

/// Classifies one line, or says what is wrong with it.
fn classify_line(
    text: &str,
    compiler: &mut Compiler<'_>,
    require_criteria: bool,
    tally: &mut Tally,
    output: &mut Vec<u8>,
) -> Result<(), Findings> {
    let mut findings = Findings::default();
    let node = match parse_located(text, &Limits::default()) {
        Ok(node) => node,
        Err(error) => {
            findings.error("json", &(error.offset..error.offset + 1), error.kind.to_string());
            return Err(findings);
        }
    };
    let Some(record) = probity_load::run_result::decode(&node, &mut findings) else {
        return Err(findings);
    };
    let RunRecord { case_id: _, suite_id, kind, result, case, tool_calls, asked, classified } =
        record;
    let expectation = compiler.compile(&case).map_err(|problems| {
        let mut findings = Findings::default();
        for problem in problems {
            let span = node.nearest(&problem.path).span.clone();
            findings.error(problem.code, &span, problem.message);
        }
        findings
    })?;
    let expectation = match routing(&case, kind) {
        Some(routing) => expectation.with_routing(routing),
        None => expectation,
    };
    let said = Said::new(&result, &tool_calls, &asked);
    let result = said.result(result);
    let prompt = result.prompt.or(Some(&case.prompt));
    let result = RunResult { prompt, ..result };
    let known = Known { asked: &asked, classified: classified.as_ref(), words: None };
    let (classification, verdict) = classify_again(&expectation, &result, known);
    if !expectation.has_criteria() {
        tally.without_criteria += 1;
        if require_criteria {
            let message = "the case has no criterion".to_owned();
            findings.error("no-criterion", &node.span, message);
            return Err(findings);
        }
    }
    tally.add(suite_id.unwrap_or(""), &classification, verdict);
    write_line(text, &node, &classification, verdict, output);
    Ok(())
}

/// What a line says of a conversation.
struct Said<'a> {
    exchanges: Vec<Exchange<'a>>,
    /// The calls of a reply that does nothing else.
    calls: Option<String>,
}

impl<'a> Said<'a> {
    fn new(result: &RunResult<'a>, tool_calls: &'a [ToolCall], asked: &'a [Asked]) -> Self {
        let mut said = Self { exchanges: exchanges(asked), calls: None };
        if said.exchanges.is_empty() && !tool_calls.is_empty() {
            let text = result.raw_response.filter(|it| !it.trim().is_empty());
            said.calls = text.is_none().then(|| ToolCall::to_json(tool_calls));
            said.exchanges.push(Exchange {
                turn: 1,
                before: None,
                reply: text.unwrap_or_default(),
                tool_calls,
                stop_reason: result.stop_reason,
                logprobs: None,
                latency_ms: 0,
                cost_usd: None,
            });
        }
        said
    }

    fn result<'s>(&'s self, result: RunResult<'s>) -> RunResult<'s> {
        let raw_response = self.calls.as_deref().or(result.raw_response);
        RunResult { raw_response, exchanges: &self.exchanges, ..result }
    }
}

/// What a case expects to be chosen, if it is about the choice of skills.
fn routing(case: &TestCase, kind: Option<RunnerKind>) -> Option<RoutingExpectation> {
    let kind = kind.or_else(|| RunnerKind::of_case(case))?;
    Some(RoutingExpectation::new(case, kind.spec().choice?, None))
}

/// The line's own fields as they were written, then ours.
fn write_line(
    text: &str,
    node: &Node,
    classification: &Classification,
    verdict: Verdict,
    output: &mut Vec<u8>,
) {
    let again = node.entries().iter().any(|entry| WRITTEN.contains(&entry.key.as_str()));
    match again {
        false => {
            let object = &text[node.span.clone()];
            let fields = object.strip_suffix('}').unwrap_or(object).trim_ascii_end();
            output.extend_from_slice(fields.as_bytes());
        }
        true => {
            output.push(b'{');
            let kept = node.entries().iter().filter(|it| !WRITTEN.contains(&it.key.as_str()));
            for (at, entry) in kept.enumerate() {
                if at > 0 {
                    output.push(b',');
                }
                let field = entry.key_span.start..entry.node.span.end;
                output.extend_from_slice(&text.as_bytes()[field]);
            }
        }
    }
    output.extend_from_slice(b",\"classification\":");
    let mut serializer = serde_json::Serializer::new(&mut *output);
    // Writing into memory cannot fail, and neither can our own types.
    let _ = classification.serialize(&mut serializer);
    output.extend_from_slice(b",\"verdict\":\"");
    output.extend_from_slice(verdict.as_str().as_bytes());
    let accuracy = if verdict == Verdict::Pass { b'1' } else { b'0' };
    output.extend_from_slice(b"\",\"scores\":{\"accuracy\":");
    output.push(accuracy);
    output.extend_from_slice(b"}}\n");
}
