//! The files of a table: rows are gathered into batches, batches into row groups, row groups into parts. Each ends by bytes
//! and not only by rows, because a text may be a megabyte.

use std::{error::Error, io};

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, SchemaRef};
use parquet::{
    arrow::ArrowWriter,
    basic::Compression,
    errors::ParquetError,
    file::{metadata::KeyValue, properties::WriterProperties},
};
use probity_core::{
    classification::{Class, Rule, Verdict},
    failure::ErrorKind,
    kind::RunnerKind,
    record::{RunStatus, Source},
};

use crate::{
    Bounds, Form, Plan, RunHead, Table, TableError, Written,
    column::{Builder, Misfit, Value, Words},
    schema::schema,
};

/// The version of the columns, in every file.
const FORMAT: &str = "1";

/// A table that is being written.
pub(crate) struct Writer<W: io::Write + Send> {
    table: Table,
    form: Form,
    bounds: Bounds,
    schema: SchemaRef,
    batch: Batch,
    rows: u64,
    current: Option<Part<W>>,
    complete: Vec<W>,
}

/// Rows that are not written yet.
struct Batch {
    columns: Vec<Builder>,
    rows: usize,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, row: &[Value<'_>]) -> Result<(), Misfit> {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value)?;
            self.bytes += value.bytes();
        }
        self.rows += 1;
        Ok(())
    }
}

enum Part<W: io::Write + Send> {
    Parquet(Box<ArrowWriter<W>>),
    Arrow(Box<FileWriter<Counted<W>>>),
}

/// A file that knows how long it is.
struct Counted<W> {
    inner: W,
    bytes: u64,
}

impl<W: io::Write> io::Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: io::Write + Send> Writer<W> {
    pub(crate) fn new(table: Table, plan: &Plan<'_>, run: &RunHead) -> Self {
        let words = |column: &str| words(column, run);
        let columns = table.columns().iter().map(|it| Builder::new(it, &words)).collect();
        Self {
            table,
            form: plan.form,
            bounds: plan.bounds,
            schema: schema(table.columns()),
            batch: Batch { columns, rows: 0, bytes: 0 },
            rows: 0,
            current: None,
            complete: Vec::new(),
        }
    }

    /// Adds a row, and writes what has gathered if that is enough.
    pub(crate) fn push<E>(
        &mut self,
        row: &[Value<'_>],
        open: &mut impl FnMut(Table, usize) -> Result<W, E>,
    ) -> Result<(), TableError<E>> {
        self.batch.push(row).map_err(|error| self.failed(io::Error::other(error)))?;
        self.rows += 1;
        let is_full = self.batch.rows >= self.bounds.batch_rows
            || self.batch.bytes >= self.bounds.batch_bytes;
        if is_full { self.flush(open) } else { Ok(()) }
    }

    /// Writes what is left, and hands over the files.
    pub(crate) fn finish<E>(
        mut self,
        open: &mut impl FnMut(Table, usize) -> Result<W, E>,
        written: &mut Written<W>,
    ) -> Result<(), TableError<E>> {
        if self.batch.rows > 0 || self.rows == 0 {
            self.flush(open)?;
        }
        self.close()?;
        written.parts.append(&mut self.complete);
        written.rows.push((self.table, self.rows));
        Ok(())
    }

    fn failed<E>(&self, source: io::Error) -> TableError<E> {
        TableError::Write { table: self.table, part: self.complete.len(), source }
    }

    fn flush<E>(
        &mut self,
        open: &mut impl FnMut(Table, usize) -> Result<W, E>,
    ) -> Result<(), TableError<E>> {
        let finished = self.batch.columns.iter_mut().map(Builder::finish);
        let batch = finished
            .collect::<Result<Vec<_>, _>>()
            .and_then(|arrays| RecordBatch::try_new(self.schema.clone(), arrays));
        let batch = batch.map_err(|error| self.failed(of_arrow(error)))?;
        (self.batch.rows, self.batch.bytes) = (0, 0);
        let mut part = match self.current.take() {
            Some(part) => part,
            None => {
                let out = open(self.table, self.complete.len())
                    .map_err(|error| TableError::Open(self.table, error))?;
                self.begin(out).map_err(|error| self.failed(error))?
            }
        };
        let length = part.write(&batch, self.bounds).map_err(|error| self.failed(error))?;
        self.current = Some(part);
        if length >= self.bounds.part_bytes { self.close() } else { Ok(()) }
    }

    fn begin(&self, out: W) -> io::Result<Part<W>> {
        let about = [("probity.table", self.table.as_str()), ("probity.format", FORMAT)];
        match self.form {
            Form::Parquet => {
                let about =
                    about.map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()));
                let properties = WriterProperties::builder()
                    .set_compression(Compression::SNAPPY)
                    .set_max_row_group_row_count(Some(self.bounds.group_rows.max(1)))
                    .set_max_row_group_bytes(Some(self.bounds.group_bytes.max(1)))
                    .set_key_value_metadata(Some(about.to_vec()))
                    .build();
                let writer = ArrowWriter::try_new(out, self.schema.clone(), Some(properties));
                Ok(Part::Parquet(Box::new(writer.map_err(of_parquet)?)))
            }
            Form::Arrow => {
                let out = Counted { inner: out, bytes: 0 };
                let mut writer = FileWriter::try_new(out, &self.schema).map_err(of_arrow)?;
                about.iter().for_each(|(key, value)| writer.write_metadata(*key, *value));
                Ok(Part::Arrow(Box::new(writer)))
            }
        }
    }

    fn close<E>(&mut self) -> Result<(), TableError<E>> {
        let Some(part) = self.current.take() else { return Ok(()) };
        let out = part.close().map_err(|error| self.failed(error))?;
        self.complete.push(out);
        Ok(())
    }
}

impl<W: io::Write + Send> Part<W> {
    /// Writes a batch, and returns how long the file is by now.
    fn write(&mut self, batch: &RecordBatch, bounds: Bounds) -> io::Result<u64> {
        match self {
            Self::Parquet(writer) => {
                writer.write(batch).map_err(of_parquet)?;
                // What is encoded may be much smaller than what it takes until then.
                if writer.memory_size() >= 2 * bounds.group_bytes {
                    writer.flush().map_err(of_parquet)?;
                }
                Ok(writer.bytes_written() as u64)
            }
            Self::Arrow(writer) => {
                writer.write(batch).map_err(of_arrow)?;
                Ok(writer.get_ref().bytes)
            }
        }
    }

    fn close(self) -> io::Result<W> {
        match self {
            Self::Parquet(writer) => writer.into_inner().map_err(of_parquet),
            Self::Arrow(mut writer) => {
                writer.finish().map_err(of_arrow)?;
                Ok(writer.into_inner().map_err(of_arrow)?.inner)
            }
        }
    }
}

/// The words that a column can have in a run.
fn words(column: &str, run: &RunHead) -> Words {
    let lanes = || run.lanes.iter().map(|(lane, _)| lane);
    match column {
        "run_id" => Words::new([run.run_id.as_str()]),
        "runner" => Words::new(lanes().map(|it| it.runner.as_str())),
        "variant" => Words::new(lanes().filter_map(|it| it.variant.as_deref())),
        "backend" => Words::new(lanes().map(|it| it.backend.as_str())),
        "kind" => Words::new(RunnerKind::ALL.map(RunnerKind::as_str)),
        "class" => Words::new(Class::ALL.map(Class::as_str)),
        "verdict" => Words::new(Verdict::ALL.map(Verdict::as_str)),
        "rule" => Words::new(Rule::ALL.map(Rule::as_str)),
        "error_kind" => Words::new(ErrorKind::ALL.map(ErrorKind::as_str)),
        "source" => Words::new(Source::ALL.map(Source::as_str)),
        "status" => Words::new(RunStatus::ALL.map(RunStatus::as_str)),
        // A value of another column is refused when it comes.
        _ => Words::new([]),
    }
}

/// What the system said, where it was the system.
fn of_parquet(error: ParquetError) -> io::Error {
    if let ParquetError::External(source) = error {
        of_system(source)
    } else {
        io::Error::other(error)
    }
}

fn of_arrow(error: ArrowError) -> io::Error {
    if let ArrowError::IoError(_, source) = error {
        return source;
    }
    if let ArrowError::ExternalError(source) = error {
        of_system(source)
    } else {
        io::Error::other(error)
    }
}

fn of_system(source: Box<dyn Error + Send + Sync>) -> io::Error {
    source.downcast::<io::Error>().map_or_else(io::Error::other, |it| *it)
}
