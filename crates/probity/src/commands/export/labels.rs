//! What people said of a run, as labels that `judge agreement` reads.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use probity_core::people::{Remark, Said, current};
use probity_grade::internal::people::{Labelled, VERDICT};
use probity_store::{LaneView, Rated, Reader, RunRow};
use serde::Serialize;
use serde_json::Value;

use crate::{
    cli::export::ExportArgs,
    commands::{
        dataset::counted,
        judge::{label_json, stored},
        report::refuse_inputs,
        runs::open,
    },
    exit::Exit,
    failure::Failure,
    output::OutputFile,
    printer::Printer,
};

/// One line.
#[derive(Serialize)]
struct Line<'a> {
    id: String,
    about: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    people: Vec<&'a str>,
    human: Vec<Value>,
    /// Null if nothing is known of what the judge said.
    judge: Option<Value>,
    run: &'a str,
    case_id: &'a str,
    repeat: u32,
    runner: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant: Option<&'a str>,
    backend: &'a str,
    prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<&'a str, Vec<&'a str>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    notes: BTreeMap<&'a str, &'a str>,
}

pub(super) fn run(args: &ExportArgs, printer: &Printer) -> Result<Exit, Failure> {
    let reader = open(&args.place)?;
    let run = reader.find(args.run()?)?;
    refuse_inputs(&reader, &run, None, args.output.as_slice())?;
    let count = match &args.output {
        Some(path) => {
            let mut file = OutputFile::create(path)?;
            let count = write(&reader, &run, &mut file, |error| Failure::write(path, error))?;
            file.finish()?;
            count
        }
        None => write(&reader, &run, &mut Printer::data(), Failure::output)?,
    };
    printer.note(&counted(count, "label"));
    Ok(Exit::Success)
}

/// Writes the labels one after the other, and returns how many. That there are none is a failure.
fn write(
    reader: &Reader,
    run: &RunRow,
    out: &mut dyn Write,
    failed: impl Fn(io::Error) -> Failure,
) -> Result<usize, Failure> {
    let mut count = 0;
    stored::each(reader, run, |lane, rated, labelled| {
        count += 1;
        out.write_all(line(run, lane, rated, &labelled).as_bytes()).map_err(&failed)
    })?;
    if count == 0 {
        return Err(Failure::new(format!("nobody has said anything of run `{}`", run.short()))
            .hint("`probity view --allow-edit` is where people do"));
    }
    out.flush().map_err(&failed)?;
    Ok(count)
}

fn line(run: &RunRow, lane: &LaneView, rated: &Rated, labelled: &Labelled) -> String {
    let (record, holds) = (&rated.record, current(&rated.history));
    // What is not about a matter stands beside the first one.
    let is_first = labelled.about == VERDICT && labelled.by.is_none();
    let holds = if is_first { holds.as_slice() } else { &[] };
    let written = Line {
        id: stored::id(run, lane, rated, labelled),
        about: &labelled.about,
        by: labelled.by.as_deref(),
        people: labelled.people.keys().map(String::as_str).collect(),
        human: labelled.people.values().map(label_json).collect(),
        judge: labelled.judge.as_ref().map(label_json),
        run: &run.run_id,
        case_id: &record.case_id,
        repeat: record.repeat,
        runner: &lane.lane.runner,
        variant: lane.lane.variant.as_deref(),
        backend: &lane.lane.backend,
        prompt: record.request.shown().into_owned(),
        text: record.reply.as_deref(),
        tags: tags(holds),
        notes: notes(holds),
    };
    let mut text = serde_json::to_string(&written).unwrap_or_default();
    text.push('\n');
    text
}

fn tags<'a>(holds: &[&'a Said]) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for said in holds {
        if let Remark::Tag { tag, .. } = &said.remark {
            all.entry(said.person.as_str()).or_default().push(tag.as_str());
        }
    }
    all
}

fn notes<'a>(holds: &[&'a Said]) -> BTreeMap<&'a str, &'a str> {
    let note = |said: &&'a Said| match &said.remark {
        Remark::Note { note } => Some((said.person.as_str(), note.as_ref()?.as_str())),
        Remark::Verdict { .. } | Remark::Points { .. } | Remark::Tag { .. } => None,
    };
    holds.iter().filter_map(note).collect()
}
