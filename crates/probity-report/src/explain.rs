//! One result for people who want to know why: what was expected, what came, which rule decided, and
//! where in the reply the evidence is.

use std::{fmt::Write as _, ops::Range, time::Duration};

use anstyle::Style;
use probity_core::{
    classification::Verdict,
    conversation::Utterance,
    details::CommandDetails,
    evaluation::time,
    opinion::{JudgedCheck, Opinion, Said, Statement},
    record::{Asked, CaseRecord, Lane},
    request::Role,
    score::Score,
    span::Span,
    visible::safe,
};

use crate::{
    palette::{Tint, WARN},
    plain::{columns, flush_left, one_line},
    text::speed,
};

const TITLE: Style = Style::new().bold();
const MARK: Style = WARN.style();

/// Why a result is what it is.
pub fn render(lane: &Lane, record: &CaseRecord) -> String {
    let mut text = String::new();
    head(&mut text, lane, record);
    scores(&mut text, &record.classification.scores);
    for check in &record.classification.details.judged {
        opinions(&mut text, check);
    }
    if let Some(command) = &record.classification.details.command {
        commands(&mut text, command);
    }
    calls(&mut text, record);
    if let Some(system) = record.request.system() {
        block(&mut text, "system", system);
    }
    let said = record.utterances();
    let is_conversation = record.is_conversation();
    match is_conversation {
        true => conversation(&mut text, &said, record.reply.is_some()),
        false => block(&mut text, "prompt", &record.request.shown()),
    }
    if let Some(reasoning) = record.reasoning.as_ref().filter(|_| !is_conversation) {
        block(&mut text, "reasoning", reasoning);
    }
    match (&record.reply, &record.error) {
        (Some(reply), _) => {
            let _ = writeln!(text, "\n  {TITLE}reply{TITLE:#}");
            underlined(&mut text, reply, &evidence(record));
        }
        (None, Some(error)) => block(&mut text, "error", &error.to_string()),
        (None, None) => {}
    }
    if let Some(made) = &record.classification.details.transformed {
        block(&mut text, "transformed", made);
    }
    // What belongs to the conversation stands above.
    let beside = record.asked.iter().filter(|it| it.turn.is_none());
    for asked in beside {
        question(&mut text, record, asked);
    }
    text.push('\n');
    text
}

fn head(text: &mut String, lane: &Lane, record: &CaseRecord) {
    let CaseRecord { case_id, verdict, class, .. } = record;
    let repeat = match lane.repeat > 1 {
        true => format!(", repeat {}", record.repeat + 1),
        false => String::new(),
    };
    let lane = one_line(&lane.key().to_string(), 120);
    let style = Tint::of_verdict(*verdict).style().bold();
    let _ = writeln!(
        text,
        "{style}{verdict}{style:#} {TITLE}{}{TITLE:#} ({lane}{repeat})",
        one_line(case_id, 120)
    );
    field(text, "why", &one_line(&record.why(), 1000));
    let rule = record.classification.rule;
    field(text, "class", &format!("{class}, by the rule `{rule}`"));
    for also in &record.classification.details.also {
        let evidence = one_line(&also.evidence, 200);
        field(text, "also", &format!("the rule `{}` fired: {evidence}", also.rule));
    }
    if let Some(expected) = record.expected() {
        field(text, "expected", &one_line(&expected, 400));
        field(text, "actual", &one_line(record.actual().unwrap_or("nothing"), 400));
    }
    for extracted in &record.classification.details.extracted {
        let check = one_line(&extracted.check, 40);
        field(text, "extracted", &format!("`{}` ({check})", one_line(&extracted.text, 400)));
    }
}

fn field(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<10} {value}");
}

fn block(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "\n  {TITLE}{}{TITLE:#}", one_line(name, 160));
    for line in safe(value).lines() {
        let _ = writeln!(text, "    {line}");
    }
}

fn scores(text: &mut String, scores: &[Score]) {
    if scores.is_empty() {
        return;
    }
    // A score without a name of its own is called by its kind, in a turn with that before it.
    let is_kind = |score: &Score| {
        let before = score.name.strip_suffix(&*score.kind);
        before.is_some_and(|it| it.is_empty() || it.ends_with(": "))
    };
    let name = |score: &Score| match is_kind(score) {
        true => one_line(&score.name, 40),
        false => one_line(&format!("{} ({})", score.name, score.kind), 40),
    };
    let width = scores.iter().map(|it| columns(&name(it))).max().unwrap_or(0);
    let _ = writeln!(text, "\n  {TITLE}scores{TITLE:#}");
    for score in scores {
        let verdict = match (score.value, score.passed) {
            (None, _) => Verdict::Undecided,
            (Some(_), true) => Verdict::Pass,
            (Some(_), false) => Verdict::Fail,
        };
        let value = score.value.map_or_else(|| "   -".to_owned(), |value| format!("{value:.2}"));
        let only = if score.is_required() { "" } else { " (only reported)" };
        let reason = score.reason.as_deref().map(|it| format!("  {}", one_line(it, 300)));
        let style = Tint::of_verdict(verdict).style();
        let word = if verdict == Verdict::Undecided { "none" } else { verdict.as_str() };
        let _ = writeln!(
            text,
            "    {style}{word}{style:#}  {}  {value}{only}{}",
            flush_left(&name(score), width),
            reason.unwrap_or_default()
        );
    }
}

/// What judges said, one after the other.
fn opinions(text: &mut String, check: &JudgedCheck) {
    let agreement = check.agreement.map(|it| format!(", {:.0} % of pairs agree", it * 100.0));
    let several = agreement.map(|it| format!(": {}{it}", check.combine)).unwrap_or_default();
    let name = one_line(&check.check, 40);
    let _ = writeln!(text, "\n  {TITLE}judged {name}{TITLE:#}{several}");
    for Opinion { judge, said } in &check.opinions {
        let judge = one_line(judge, 40);
        let judged = match said {
            Said::Judged(judged) => judged,
            Said::Failed { error } => {
                let _ = writeln!(text, "    {judge}: no answer: {}", one_line(error, 300));
                continue;
            }
        };
        let passed = if judged.passed == Some(true) { "pass" } else { "fail" };
        let reason = one_line(&judged.reason, 300);
        let _ = writeln!(text, "    {judge}: {passed} {:.2}  {reason}", judged.score);
        for Statement { text: stated, holds, reason } in &judged.statements {
            let word = if *holds { "yes" } else { "no" };
            let reason = reason.as_deref().filter(|it| !it.is_empty());
            let reason = reason.map(|it| format!(" ({})", one_line(it, 200))).unwrap_or_default();
            let _ = writeln!(text, "      {word:<3}  {}{reason}", one_line(stated, 300));
        }
    }
}

fn commands(text: &mut String, command: &CommandDetails) {
    let _ = writeln!(text, "\n  {TITLE}command{TITLE:#}");
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "    {name:<10} {}", one_line(value, 400));
    };
    if let Some(error) = &command.parse_error {
        line("not shell", error);
    }
    if let Some([expected, actual]) = &command.canonical {
        // The canonical forms, one above the other.
        line("expected", expected);
        line("actual", actual);
    }
    if let Some(equivalence) = command.equivalence {
        let why = command.difference.as_ref().or(command.reason.as_ref());
        let why = why.map(|it| format!(": {it}")).unwrap_or_default();
        line("compared", &format!("{equivalence}{why}"));
    }
    if let Some(effect) = &command.effect {
        line("executed", &format!("{}: {}", effect.verdict, effect.sentence()));
    }
    if let Some(risk) = command.risk {
        let found = match command.findings.is_empty() {
            true => String::new(),
            false => format!(" ({})", command.findings.join(", ")),
        };
        let opaque = if command.opaque { ", in part not known" } else { "" };
        line("risk", &format!("{risk}{found}{opaque}"));
    }
    if let Some(posix) = command.posix {
        let broken = command.violations.join(", ");
        line("POSIX", if posix { "yes" } else { &broken });
    }
}

fn calls(text: &mut String, record: &CaseRecord) {
    text.push('\n');
    let span = |ms: u64| Span(Duration::from_millis(ms)).to_string();
    let model = one_line(record.model.as_deref().unwrap_or("unknown"), 80);
    field(text, "answer by", &format!("{}, model {model}", record.source));
    field(
        text,
        "time",
        &format!("began {}, took {}", time(record.started_ms), span(record.elapsed_ms)),
    );
    if let Some(reason) = &record.stop_reason {
        field(text, "stopped", &one_line(reason, 80));
    }
    let tokens = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |it| it.to_string());
    let (input, output) = (tokens(record.usage.input_tokens), tokens(record.usage.output_tokens));
    let estimated = if record.usage.estimated { " (estimated)" } else { "" };
    let cost = record.cost_usd.map_or_else(String::new, |cost| format!(", ${cost:.6}"));
    if let Some(ttft) = record.ttft_ms {
        let per_second = record.tokens_per_second.map(|it| format!(", then {}", speed(it)));
        let first = format!("first token after {}{}", span(ttft), per_second.unwrap_or_default());
        field(text, "stream", &first);
    }
    field(text, "tokens", &format!("{input} in, {output} out{estimated}{cost}"));
    field(text, "calls", &record.calls.to_string());
    if let Some(worker) = &record.worker {
        field(text, "worker", &one_line(worker, 80));
    }
    for failed in &record.failures {
        let wait = failed.retry_in_ms.map_or_else(
            || "not tried again".to_owned(),
            |wait| format!("tried again after {}", span(wait)),
        );
        let error = &failed.error;
        let (kind, took) = (error.kind, span(failed.latency_ms));
        let message = one_line(&error.message, 300);
        field(
            text,
            &format!("  try {}", failed.attempt),
            &format!("{kind} after {took}: {message}; {wait}"),
        );
    }
}

/// A conversation with who says what. The last reply stands below it, with its marks.
fn conversation(text: &mut String, said: &[Utterance<'_>], is_answered: bool) {
    let _ = writeln!(text, "\n  {TITLE}conversation{TITLE:#}");
    for (at, Utterance { message, reasoning }) in said.iter().enumerate() {
        // Instructions at the beginning stand apart.
        if message.role == Role::System {
            continue;
        }
        let who = message.role.as_str();
        if let Some(reasoning) = reasoning {
            spoken(text, &format!("{who}, thinking"), reasoning);
        }
        let is_reply = is_answered && at + 1 == said.len();
        if !is_reply || message.tool_calls().next().is_some() {
            spoken(text, who, &message.said());
        }
    }
}

fn spoken(text: &mut String, who: &str, said: &str) {
    for (at, line) in safe(said).lines().enumerate() {
        let who = if at == 0 { format!("{who}:") } else { String::new() };
        let _ = writeln!(text, "    {who:<10} {line}");
    }
}

/// One question of a case that asked several. What the case shows above is not shown again.
fn question(text: &mut String, record: &CaseRecord, asked: &Asked) {
    let model = asked.model.as_deref().map(|it| format!(", {it}")).unwrap_or_default();
    block(text, &format!("asked: {} ({}{model}; {})", asked.role, asked.backend, asked.source), "");
    if let Some(system) = asked.request.system().filter(|it| record.request.system() != Some(it)) {
        block(text, "  system", system);
    }
    if asked.request.conversation() != record.request.conversation() {
        block(text, "  prompt", &asked.request.shown());
    }
    match (asked.shown_reply(), &asked.error) {
        (Some(reply), _) => block(text, "  reply", &reply),
        (None, Some(error)) => block(text, "  error", error),
        (None, None) => {}
    }
}

/// The bytes of the reply that the evidence is in.
fn evidence(record: &CaseRecord) -> Vec<Range<usize>> {
    let details = &record.classification.details;
    let hits = details.hits.iter().map(|it| it.span.clone());
    let scores = record.classification.scores.iter().filter_map(|it| it.span.clone());
    details.span.iter().cloned().chain(hits).chain(scores).collect()
}

/// A text with marks under some of its bytes.
fn underlined(text: &mut String, shown: &str, spans: &[Range<usize>]) {
    let mut at = 0;
    for line in shown.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let (mut out, mut marks) = (String::new(), String::new());
        for (place, c) in content.char_indices() {
            let escaped = safe(c.encode_utf8(&mut [0; 4])).into_owned();
            let byte = at + place;
            let mark = if spans.iter().any(|it| it.contains(&byte)) { '^' } else { ' ' };
            marks.extend(std::iter::repeat_n(mark, columns(&escaped)));
            out.push_str(&escaped);
        }
        let _ = writeln!(text, "    {out}");
        if marks.contains('^') {
            let _ = writeln!(text, "    {MARK}{}{MARK:#}", marks.trim_end());
        }
        at += line.len();
    }
}
