//! Runs as tables for query engines: a folder for each table, in it one for each run.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use probity_store::{Reader, RunRow, StoredCases};
use probity_tables::{Bounds, Form, Plan, RunHead, Table, TableError, Written};

use crate::{
    cli::export::{ExportArgs, ExportKind, TableName},
    commands::{dataset::counted, runs::open},
    exit::Exit,
    failure::Failure,
    output::OutputFile,
    printer::Printer,
};

pub(super) fn run(args: &ExportArgs, printer: &Printer) -> Result<Exit, Failure> {
    let folder = args
        .output
        .as_deref()
        .ok_or_else(|| Failure::new("tables are several files").hint("-o DIR says where to"))?;
    let form = match args.kind == ExportKind::Arrow {
        true => Form::Arrow,
        false => Form::Parquet,
    };
    let tables = wanted(&args.tables);
    let plan = Plan { form, tables: &tables, bounds: Bounds::default() };
    let reader = open(&args.place)?;
    let runs = chosen(&reader, args)?;
    let target = Target { folder, form };
    if !args.overwrite {
        // Before anything is written: half of the runs would be worse than none.
        runs.iter().try_for_each(|run| target.refuse_existing(&run.run_id, &tables))?;
    }
    for run in &runs {
        let rows = export(&reader, run, &plan, target)?;
        let rows = rows.iter().map(|(table, rows)| format!("{rows} {table}"));
        printer.note(&format!("{}: {}", run.run_id, rows.collect::<Vec<_>>().join(", ")));
    }
    printer.note(&format!("{} in {}", counted(runs.len(), "run"), folder.display()));
    Ok(Exit::Success)
}

fn wanted(names: &[TableName]) -> Vec<Table> {
    let table = |name: &TableName| match name {
        TableName::Runs => Table::Runs,
        TableName::Cases => Table::Cases,
        TableName::Scores => Table::Scores,
        TableName::Calls => Table::Calls,
    };
    if names.is_empty() { Table::ALL.to_vec() } else { names.iter().map(table).collect() }
}

/// The runs that are meant, each once, in the order in which they began.
fn chosen(reader: &Reader, args: &ExportArgs) -> Result<Vec<RunRow>, Failure> {
    if args.all {
        let mut runs = reader.runs()?;
        runs.reverse();
        return match runs.is_empty() {
            true => Err(Failure::new("the store has no runs")),
            false => Ok(runs),
        };
    }
    let mut runs: Vec<RunRow> = Vec::new();
    for name in &args.runs {
        let run = reader.find(name)?;
        if runs.iter().all(|it| it.run_id != run.run_id) {
            runs.push(run);
        }
    }
    Ok(runs)
}

/// Writes a run. Its files get their names when all of them are complete.
fn export(
    reader: &Reader,
    run: &RunRow,
    plan: &Plan<'_>,
    target: Target<'_>,
) -> Result<Vec<(Table, u64)>, Failure> {
    let lanes = reader.lanes(run)?.into_iter();
    let head = RunHead {
        run_id: run.run_id.clone(),
        suite: run.suite.clone(),
        suite_path: run.info.suite_path.clone(),
        started_ms: run.started_ms,
        finished_ms: run.finished_ms,
        status: run.status,
        probity_version: run.info.probity_version.clone(),
        imported: run.info.imported.clone(),
        rescored_from: run.info.rescored_from.clone(),
        merged: run.info.merged.clone(),
        lanes: lanes.map(|it| (it.lane, it.status)).collect(),
    };
    let cases = StoredCases::of(reader, run)?;
    let mut begun: Vec<PathBuf> = Vec::new();
    let written = probity_tables::write(plan, &head, &cases, |table, part| {
        let path = target.part(table, &run.run_id, part);
        let parent = path.parent().unwrap_or(target.folder);
        fs::create_dir_all(parent).map_err(|error| Failure::write(parent, error))?;
        begun.push(path.clone());
        OutputFile::create(&path)
    });
    let Written { parts, rows } = written.map_err(|error| {
        // What is empty now was made for this; what is not stays.
        begun.iter().filter_map(|it| it.parent()).for_each(|it| _ = fs::remove_dir(it));
        target.failed(error, &run.run_id)
    })?;
    parts.into_iter().try_for_each(OutputFile::finish)?;
    plan.tables.iter().try_for_each(|table| target.remove_others(*table, &run.run_id, &begun))?;
    Ok(rows)
}

/// Where tables are written to.
#[derive(Clone, Copy)]
struct Target<'a> {
    folder: &'a Path,
    form: Form,
}

impl Target<'_> {
    /// The folder of a run within a table, by whose name query engines know the run.
    fn partition(self, table: Table, run_id: &str) -> PathBuf {
        self.folder.join(table.as_str()).join(format!("run={}", escaped(run_id)))
    }

    fn part(self, table: Table, run_id: &str, part: usize) -> PathBuf {
        let name = format!("part-{part:05}.{}", self.form.ending());
        self.partition(table, run_id).join(name)
    }

    /// The complete files of a run.
    fn parts(self, table: Table, run_id: &str) -> Result<Vec<PathBuf>, Failure> {
        let folder = self.partition(table, run_id);
        let failed = |error| Failure::read(&folder, error);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut parts = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|it| it == self.form.ending()) {
                parts.push(path);
            }
        }
        parts.sort();
        Ok(parts)
    }

    fn refuse_existing(self, run_id: &str, tables: &[Table]) -> Result<(), Failure> {
        for table in tables {
            if let Some(part) = self.parts(*table, run_id)?.first() {
                let message = format!("`{}` is there already", part.display());
                return Err(Failure::new(message).hint("--overwrite replaces it"));
            }
        }
        Ok(())
    }

    /// Removes what an earlier export wrote and this one did not.
    fn remove_others(self, table: Table, run_id: &str, kept: &[PathBuf]) -> Result<(), Failure> {
        let parts = self.parts(table, run_id)?.into_iter();
        for path in parts.filter(|it| !kept.contains(it)) {
            fs::remove_file(&path).map_err(|error| Failure::write(&path, error))?;
        }
        Ok(())
    }

    fn failed(self, error: TableError<Failure>, run_id: &str) -> Failure {
        match error {
            TableError::Open(_, failure) => failure,
            TableError::Write { table, part, source } => {
                Failure::write(&self.part(table, run_id, part), source)
            }
            TableError::Read(source) => {
                Failure::new(format!("the cases of `{run_id}` cannot be read")).because(source)
            }
        }
    }
}

/// A name as a part of a path that means the same to query engines. Ours need no escape; a store that somebody made may
/// have others.
fn escaped(name: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let escape = |byte: u8| match is_plain(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    name.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_run_leads_out_of_its_folder() {
        assert_eq!(escaped("20261116-100000-k3f9x2"), "20261116-100000-k3f9x2");
        assert_eq!(escaped("../a=ü"), "%2E%2E%2Fa%3D%C3%BC");
    }
}
