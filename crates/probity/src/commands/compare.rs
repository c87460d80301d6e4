//! `probity compare`: runs beside each other.

mod judged;

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io::{self, Write},
    path::Path,
};

use probity_core::view::LaneReport;
use probity_load::settings::Settings;
use probity_report::{
    compare::{self, CompareError, Comparison, Entrant, Terms},
    json::sorted,
};
use probity_store::{LaneView, Reader, RunRow, StoreError};

use super::{project::settings_alone, runs::open};
use crate::{
    cli::report::{CompareArgs, CompareFormat},
    exit::Exit,
    failure::Failure,
    output::OutputFile,
    printer::Printer,
};

pub(super) fn run(args: &CompareArgs, printer: &Printer) -> Result<Exit, Failure> {
    if !(args.difference > 0.0 && args.difference < 1.0) {
        return Err(Failure::new("`--difference` must lie between 0 and 1, such as 0.05"));
    }
    let settings = settings_alone(&args.place)?;
    let reader = open(&args.place)?;
    let chosen: Vec<Chosen> = args
        .runs
        .iter()
        .map(|name| Chosen::find(&reader, name, &settings))
        .collect::<Result<_, _>>()?;
    if !args.force {
        chosen.iter().try_for_each(Chosen::refuse_unfit)?;
    }
    let format = args.output.as_deref().map_or(Ok(args.format), format_of)?;
    let file = args.output.as_deref().map(OutputFile::create).transpose()?;
    let mut comparison = compare(&reader, &chosen, args, format)?;
    if let Some(judge) = &args.judge {
        judged::add(&mut comparison, &reader, &lanes_of(&chosen), (judge, args), printer)?;
    }
    let page = |out: &mut dyn Write| write_page(&reader, &chosen, &comparison, out);
    let text = || match format {
        CompareFormat::Md => compare::markdown(&comparison),
        CompareFormat::Json => {
            let value = sorted(compare::json(&comparison));
            format!("{}\n", serde_json::to_string_pretty(&value).unwrap_or_default())
        }
        CompareFormat::Text | CompareFormat::Html => compare::text(&comparison),
    };
    match (file, format) {
        (None, CompareFormat::Text) => printer.show(&Printer::laid_out(&text()))?,
        (None, CompareFormat::Html) => page(&mut Printer::data())?,
        (None, CompareFormat::Md | CompareFormat::Json) => Printer::emit(&text())?,
        (Some(mut file), format) => {
            match format {
                CompareFormat::Html => page(&mut file)?,
                CompareFormat::Text | CompareFormat::Md | CompareFormat::Json => {
                    file.write_all(text().as_bytes()).map_err(Failure::output)?;
                }
            }
            file.finish()?;
        }
    }
    Ok(Exit::Success)
}

/// The format that the name of a file stands for.
fn format_of(path: &Path) -> Result<CompareFormat, Failure> {
    match path.extension().and_then(OsStr::to_str) {
        Some("txt") => Ok(CompareFormat::Text),
        Some("md") => Ok(CompareFormat::Md),
        Some("json") => Ok(CompareFormat::Json),
        Some("html") => Ok(CompareFormat::Html),
        _ => {
            Err(Failure::new(format!("`{}` does not have the suffix of a format", path.display()))
                .hint("comparisons end in .txt, .md, .json or .html"))
        }
    }
}

/// Writes the page, whose answers are read while it is written.
fn write_page(
    reader: &Reader,
    chosen: &[Chosen],
    comparison: &Comparison,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let lanes = lanes_of(chosen);
    let find = |side: usize, id: &str| reader.case(lanes[side], id).map_err(io::Error::other);
    let written = compare::html(comparison, &find, &mut *out).and_then(|()| out.flush());
    written.map_err(|error| match error.downcast::<StoreError>() {
        Ok(unread) => unread.into(),
        Err(error) => Failure::output(error),
    })
}

/// The lanes in the order of the sides.
fn lanes_of(chosen: &[Chosen]) -> Vec<&LaneView> {
    chosen.iter().flat_map(|it| &it.lanes).map(|(view, _)| view).collect()
}

/// A run, or some of its lanes.
struct Chosen {
    run: RunRow,
    lanes: Vec<(LaneView, LaneReport)>,
}

impl Chosen {
    /// `RUN`, or `RUN@` and the lanes that are meant: a backend, a variant, or `VARIANT@BACKEND`.
    fn find(reader: &Reader, name: &str, settings: &Settings) -> Result<Self, Failure> {
        let (run, part) = match name.split_once('@') {
            Some((run, part)) => (run, Some(part)),
            None => (name, None),
        };
        let run = reader.find(if run.is_empty() { "latest" } else { run })?;
        let views = reader.lanes(&run)?;
        let reports = reader.view(&run, settings.max_error_rate)?.lanes;
        let is_meant = |view: &LaneView| part.is_none_or(|it| view.lane.key().is_meant_by(it));
        if !views.iter().any(is_meant) {
            return Err(unknown_part(&run, &views, part.unwrap_or_default()));
        }
        let lanes = views.into_iter().zip(reports).filter(|(view, _)| is_meant(view)).collect();
        Ok(Self { run, lanes })
    }

    fn refuse_unfit(&self) -> Result<(), Failure> {
        match self.lanes.iter().find(|(_, report)| !report.is_complete()) {
            None => Ok(()),
            Some((_, report)) => Err(Failure::new(format!(
                "run `{}`: {} is incomplete",
                self.run.short(),
                report.title()
            ))
            .hint("resume it (--resume), or compare anyway with --force")),
        }
    }
}

/// What a run has instead of what was asked for.
fn unknown_part(run: &RunRow, views: &[LaneView], part: &str) -> Failure {
    let keys = || views.iter().map(|it| it.lane.key());
    let backends: BTreeSet<&str> = keys().map(|it| it.backend).collect();
    let variants: BTreeSet<&str> = keys().filter_map(|it| it.variant).collect();
    let [backends, variants] =
        [backends, variants].map(|it| it.into_iter().collect::<Vec<_>>().join(", "));
    let (what, known) = match variants.is_empty() {
        true => ("backend", backends),
        false => {
            ("variant or backend", format!("the variants {variants}, and the backends {backends}"))
        }
    };
    Failure::new(format!("run `{}` has no {what} `{part}`", run.short()))
        .hint(format!("it has {known}"))
}

fn compare(
    reader: &Reader,
    chosen: &[Chosen],
    args: &CompareArgs,
    format: CompareFormat,
) -> Result<Comparison, Failure> {
    let mut entrants = Vec::new();
    for (run, it) in chosen.iter().enumerate() {
        for (_, report) in &it.lanes {
            let name = format!("{} {}", it.run.short(), report.title());
            entrants.push(Entrant { run, name, report: report.clone() });
        }
    }
    let terms = Terms {
        any_dataset: args.force,
        difference: args.difference,
        // No other format shows them.
        with_unchanged: matches!(format, CompareFormat::Html),
    };
    let lanes = lanes_of(chosen);
    let mut comparison = compare::build(entrants, &terms, &mut |pair, unchanged| {
        reader.changes_seeing(pair.map(|at| lanes[at]), unchanged).map_err(Failure::from)
    })?;
    for pair in &mut comparison.pairs {
        let both = [lanes[pair.first], lanes[pair.second]];
        pair.reasons = reader.reasons_of_flips(both, &pair.changes)?;
    }
    Ok(comparison)
}

impl From<CompareError> for Failure {
    fn from(error: CompareError) -> Self {
        let hint = error.hint();
        Self::new(error.to_string()).hint(hint)
    }
}
