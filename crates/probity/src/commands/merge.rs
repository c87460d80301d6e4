//! `probity merge`: one run of the parts that several machines ran.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use probity_core::record::{Lane, RunInfo};
use probity_report::text::Extent;
use probity_store::{MergeError, MergeSource, NewRun, Reader, StoreError, merge, new_run_id};

use super::{page::About, project::settings_alone, report::exit_of};
use crate::{cli::run::MergeArgs, clock, exit::Exit, failure::Failure, printer::Printer};

pub(super) fn run(args: &MergeArgs, printer: &Printer) -> Result<Exit, Failure> {
    let settings = settings_alone(&args.place)?;
    let target = Path::new(&settings.store);
    let sources: Vec<MergeSource> =
        args.sources.iter().map(|name| find(name, target)).collect::<Result<_, _>>()?;
    let missing = missing_parts(&sources);
    let started_ms = clock::now_ms();
    let run = NewRun {
        run_id: new_run_id(started_ms, fastrand::u64(..)),
        suite: sources[0].run.suite.clone(),
        started_ms,
        info: RunInfo {
            probity_version: env!("CARGO_PKG_VERSION").to_owned(),
            merged: sources.iter().map(|source| source.run.run_id.clone()).collect(),
            ..RunInfo::default()
        },
    };
    merge(target, &run, &sources, missing.as_deref()).map_err(|error| match error {
        MergeError::Store(error) => error.into(),
        error @ (MergeError::Unlike(..) | MergeError::Overlap { .. }) => {
            Failure::new("the runs cannot be merged")
                .because(error)
                .hint("merge runs of the same suite that were started with --shard 1/N, 2/N, ...")
        }
    })?;
    if let Some(missing) = missing {
        printer.note(&missing);
    }
    let reader = Reader::open(target)?;
    let row = reader.find(&run.run_id)?;
    let rejudge =
        |lane: &mut Lane| lane.judging.errors_as_failures |= args.gating.errors_as_failures;
    let mut view = reader.view_judged(&row, settings.max_error_rate, rejudge)?;
    super::consistency::add(&mut view, &reader, &row)?;
    let exit = exit_of(&view, &args.gating);
    let (extent, width) = (Extent::Brief, Printer::width());
    let about = About { reader: &reader, run: &row, view: &view, exit: Some(exit), extent, width };
    printer.show_styled(&about.render()?)?;
    Ok(exit)
}

/// A store's latest run, `STORE#RUN`, or a run of the target store.
fn find(name: &str, target: &Path) -> Result<MergeSource, Failure> {
    let (path, run) = match name.rsplit_once('#') {
        Some((path, run)) => (PathBuf::from(path), run),
        None if Path::new(name).is_file() => (PathBuf::from(name), "latest"),
        None => (target.to_owned(), name),
    };
    match Reader::open(&path).and_then(|reader| reader.find(run)) {
        Ok(run) => Ok(MergeSource { store: path, run }),
        Err(StoreError::Missing { .. } | StoreError::UnknownRun(_)) if path == target => {
            let target = target.display();
            Err(Failure::new(format!(
                "`{name}` cannot be merged: there is no such store, nor a run of that name in `{target}`"
            ))
            .hint("name the stores of the parts, as in: probity merge part-1.db part-2.db"))
        }
        Err(error) => Err(error.into()),
    }
}

/// Which parts of the whole are not among the runs.
fn missing_parts(sources: &[MergeSource]) -> Option<String> {
    let shard = |source: &MergeSource| {
        let text = source.run.info.selection.shard.as_deref()?;
        let (index, count) = text.split_once('/')?;
        Some((index.parse().ok()?, count.parse().ok()?))
    };
    let shards: Vec<(u64, u64)> = sources.iter().filter_map(shard).collect();
    let count = shards.iter().map(|(_, count)| *count).max()?;
    let there: BTreeSet<u64> = shards.iter().map(|(index, _)| *index).collect();
    let missing: Vec<String> = (1..=count)
        .filter(|index| !there.contains(index))
        .map(|index| format!("{index}/{count}"))
        .collect();
    (!missing.is_empty()).then(|| format!("missing: part {}", missing.join(", ")))
}
