//! `JUnit` XML, as CI servers read it: a testsuite for each lane, a testcase for each result
//! or, with `min_pass`, for each case, and the gates as a testsuite of their own.
//!
//! It is written in one pass. The counts in the opening tags come from the figures that are
//! there before, and what XML 1.0 has no place for is made visible.

use std::{fmt, fmt::Write as _, io};

use probity_core::{
    classification::Verdict,
    evaluation::time,
    gate::{GateOutcome, GateStatus},
    metrics::Verdicts,
    record::CaseRecord,
    view::{Against, Cases, LaneReport, RunView},
    visible::is_hidden,
};

use crate::{
    answers::{self, Counted},
    plain::{capped, one_line},
    text::told,
};

/// Characters of a prompt, an expectation or a reply that are shown.
pub const MOST_TEXT: usize = 4_000;
/// Characters of a name or a message that are shown.
pub const MOST_NAME: usize = 500;

/// A whole document.
pub fn write(run: &RunView, cases: &dyn Cases, out: &mut dyn io::Write) -> io::Result<()> {
    let lanes: Vec<Counts> = run.lanes.iter().map(Counts::of_lane).collect();
    let gates = Counts::of_gates(run);
    let all = lanes.iter().fold(gates, |sum, it| sum.plus(*it));
    let elapsed = run.elapsed_ms().unwrap_or(0);
    out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
    let name = Xml(&run.suite);
    writeln!(out, "<testsuites name=\"{name}\" {all} time=\"{}\">", Seconds(elapsed))?;
    for (at, (report, counts)) in run.lanes.iter().zip(lanes).enumerate() {
        write_lane(run, report, counts, out)?;
        answers::each(cases, at, &report.lane, &mut |it| write_case(run, report, it, out))?;
        write_missing(report, out)?;
        out.write_all(b"  </testsuite>\n")?;
    }
    write_gates(run, gates, out)?;
    out.write_all(b"</testsuites>\n")
}

/// What an opening tag says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    tests: u64,
    failures: u64,
    errors: u64,
    skipped: u64,
}

impl Counts {
    fn of_lane(report: &LaneReport) -> Self {
        let Verdicts { fail, error, undecided, .. } = report.metrics.all.verdicts;
        let not_run = u64::from(missing(report) > 0);
        Self {
            tests: report.metrics.all.verdicts.total() + not_run,
            failures: fail,
            errors: error,
            skipped: undecided + not_run,
        }
    }

    fn of_gates(run: &RunView) -> Self {
        let mut counts = Self::default();
        for gate in run.lanes.iter().flat_map(|lane| &lane.gates) {
            counts.tests += 1;
            match gate.status {
                GateStatus::Pass | GateStatus::Warn => {}
                GateStatus::Empty => counts.skipped += 1,
                GateStatus::Fail => counts.failures += 1,
            }
        }
        if let Some(against) = &run.against {
            counts.tests += 1;
            counts.failures += u64::from(!against.reasons.is_empty());
        }
        counts
    }

    fn plus(self, other: Self) -> Self {
        Self {
            tests: self.tests + other.tests,
            failures: self.failures + other.failures,
            errors: self.errors + other.errors,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tests, failures, errors, skipped } = self;
        write!(f, "tests=\"{tests}\" failures=\"{failures}\" ")?;
        write!(f, "errors=\"{errors}\" skipped=\"{skipped}\"")
    }
}

/// Results that were planned and are not there.
fn missing(report: &LaneReport) -> u64 {
    report.lane.planned.saturating_sub(report.metrics.results())
}

fn write_lane(
    run: &RunView,
    report: &LaneReport,
    counts: Counts,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let LaneReport { lane, metrics, .. } = report;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 calls")]
    let seconds = metrics.latency.map_or(0.0, |it| it.mean * it.count as f64 / 1000.0);
    writeln!(
        out,
        "  <testsuite name=\"{}\" {counts} time=\"{seconds:.3}\" timestamp=\"{}\">",
        Xml(&report.title()),
        time(run.started_ms).trim_end_matches('Z'),
    )?;
    let properties = [
        ("run", Some(run.run_id.as_str())),
        ("variant", lane.variant.as_deref()),
        ("model", lane.model.as_deref()),
        ("replayed", lane.replayed.then_some("true")),
        ("imported", lane.imported.as_deref()),
        ("dataset_digest", Some(lane.dataset_digest.as_str())),
        ("probity_version", Some(run.probity_version.as_str())),
    ];
    out.write_all(b"    <properties>\n")?;
    for (name, value) in properties {
        if let Some(value) = value {
            writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", Xml(value))?;
        }
    }
    out.write_all(b"    </properties>\n")
}

fn write_case(
    run: &RunView,
    report: &LaneReport,
    counted: Counted<'_>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let case = counted.telling();
    let class = format!("{}.{}", run.suite, report.lane.key().task());
    let repeat = match case.repeat {
        n if n > 0 && report.lane.judging.min_pass.is_none() => format!(" [repeat {n}]"),
        _ => String::new(),
    };
    writeln!(
        out,
        "    <testcase classname=\"{}\" name=\"{}{repeat}\" time=\"{}\">",
        Xml(&class),
        Xml(&capped(&case.case_id, MOST_NAME)),
        Seconds(counted.answers.iter().map(|it| it.elapsed_ms).sum()),
    )?;
    let tag = match counted.verdict {
        Verdict::Pass => None,
        Verdict::Fail => Some("failure"),
        Verdict::Error => Some("error"),
        Verdict::Undecided => {
            writeln!(out, "      <skipped message=\"{}\"/>", Xml(&counted.why()))?;
            None
        }
    };
    if let Some(tag) = tag {
        let kind = case.error.as_ref().map_or(case.class.as_str(), |it| it.kind.as_str());
        let message = one_line(&counted.why(), MOST_NAME);
        writeln!(out, "      <{tag} type=\"{kind}\" message=\"{}\"/>", Xml(&message))?;
    }
    writeln!(out, "      <system-out>{}</system-out>", XmlText(&transcript(case)))?;
    out.write_all(b"    </testcase>\n")
}

/// What was asked, what was expected and what came.
fn transcript(case: &CaseRecord) -> String {
    let error = case.error.as_ref().map(ToString::to_string);
    let parts = [
        ("prompt", Some(case.request.shown().into_owned())),
        ("expected", case.expected()),
        ("reply", case.reply.clone()),
        ("error", error),
    ];
    let mut text = String::new();
    for (name, part) in parts {
        if let Some(part) = part {
            let _ = writeln!(text, "{name}: {}", capped(&part, MOST_TEXT));
        }
    }
    text
}

/// What was planned and not run has no names; it is one testcase that was skipped.
fn write_missing(report: &LaneReport, out: &mut dyn io::Write) -> io::Result<()> {
    let missing = missing(report);
    if missing == 0 {
        return Ok(());
    }
    let why = told(report);
    let why = why.unwrap_or_else(|| "the run did not finish".to_owned());
    let message =
        format!("{missing} of {} planned results are missing: {why}", report.lane.planned);
    writeln!(out, "    <testcase classname=\"probity\" name=\"not run\" time=\"0.000\">")?;
    writeln!(out, "      <skipped message=\"{}\"/>", Xml(&message))?;
    out.write_all(b"    </testcase>\n")
}

fn write_gates(run: &RunView, counts: Counts, out: &mut dyn io::Write) -> io::Result<()> {
    if counts.tests == 0 {
        return Ok(());
    }
    writeln!(out, "  <testsuite name=\"gates\" {counts} time=\"0.000\">")?;
    for report in &run.lanes {
        for outcome in &report.gates {
            write_gate(report, outcome, out)?;
        }
    }
    if let Some(Against { name, reasons, .. }) = &run.against {
        let name = Xml(name);
        writeln!(
            out,
            "    <testcase classname=\"gates\" name=\"baseline {name}\" time=\"0.000\">"
        )?;
        if !reasons.is_empty() {
            let reasons = reasons.join("; ");
            writeln!(out, "      <failure type=\"baseline\" message=\"{}\"/>", Xml(&reasons))?;
        }
        out.write_all(b"    </testcase>\n")?;
    }
    out.write_all(b"  </testsuite>\n")
}

fn write_gate(
    report: &LaneReport,
    outcome: &GateOutcome,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let (title, gate) = (report.title(), outcome.gate.to_string());
    writeln!(
        out,
        "    <testcase classname=\"gates.{}\" name=\"{}\" time=\"0.000\">",
        Xml(&title),
        Xml(&gate)
    )?;
    let sentence = outcome.sentence();
    let said = Xml(&sentence);
    match outcome.status {
        GateStatus::Pass => writeln!(out, "      <system-out>{said}</system-out>")?,
        GateStatus::Warn => writeln!(out, "      <system-out>warning: {said}</system-out>")?,
        GateStatus::Empty => writeln!(out, "      <skipped message=\"{said}\"/>")?,
        GateStatus::Fail => writeln!(out, "      <failure type=\"gate\" message=\"{said}\"/>")?,
    }
    out.write_all(b"    </testcase>\n")
}

/// Milliseconds, written as seconds.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Text in an attribute. A reader turns line ends and tabs there into blanks, so they are
/// written by their numbers.
struct Xml<'t>(&'t str);

impl fmt::Display for Xml<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\t' | '\n' => write!(f, "&#{};", u32::from(c)),
            c => write_char(c, f),
        })
    }
}

/// Text between tags.
struct XmlText<'t>(&'t str);

impl fmt::Display for XmlText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\t' | '\n' => f.write_char(c),
            c => write_char(c, f),
        })
    }
}

/// What XML 1.0 forbids even by number, and what turns writing around, is spelled out.
fn write_char(c: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match c {
        '&' => f.write_str("&amp;"),
        '<' => f.write_str("&lt;"),
        '>' => f.write_str("&gt;"),
        '"' => f.write_str("&quot;"),
        '\'' => f.write_str("&#39;"),
        // A reader would make a line end of it.
        '\r' => f.write_str("&#13;"),
        c if is_illegal(c) || is_hidden(c) => write!(f, "{}", c.escape_unicode()),
        c => f.write_char(c),
    }
}

/// Whether XML 1.0 has no place for it, or says that it should not be used.
fn is_illegal(c: char) -> bool {
    c.is_control() || u32::from(c) & 0xfffe == 0xfffe || ('\u{fdd0}'..='\u{fdef}').contains(&c)
}

#[cfg(test)]
mod tests;
