//! `probity export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::run::StoreArgs;
use crate::failure::Failure;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ExportArgs {
    /// The run: its id, a prefix or the short form of it, or `latest`. For another tool also a
    /// suite file; as tables also several runs
    #[arg(value_name = "RUN|SUITE", default_value = "latest")]
    pub(crate) runs: Vec<String>,

    /// What to write
    #[arg(long = "as", value_name = "KIND", value_enum)]
    pub(crate) kind: ExportKind,

    /// With chat: also failed cases, with their expected answer
    #[arg(long)]
    pub(crate) corrected: bool,

    /// With issue: the baseline to compare with
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) baseline: String,

    /// With issue: compare the cases in common, even of different datasets or incomplete runs
    #[arg(long)]
    pub(crate) force: bool,

    /// For another tool: succeed even if something is lost. Of another tool's
    /// configuration, take what can be carried over
    #[arg(long)]
    pub(crate) lossy: bool,

    /// Let another tool's configuration name files outside its folder
    #[arg(long)]
    pub(crate) allow_outside: bool,

    /// As tables: every run of the store
    #[arg(long, conflicts_with = "runs")]
    pub(crate) all: bool,

    /// As tables: only these, of runs, cases, scores and calls
    #[arg(long, value_name = "TABLE", value_delimiter = ',', value_enum)]
    pub(crate) tables: Vec<TableName>,

    /// As tables: replace what was written of the same runs before
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// With otlp: send it to this collector instead, at URL or at URL/v1/traces
    #[arg(long, value_name = "URL", conflicts_with = "output")]
    pub(crate) to: Option<String>,

    /// With otlp: send it to where `OTEL_EXPORTER_OTLP_ENDPOINT` says, with the headers of
    /// `OTEL_EXPORTER_OTLP_HEADERS`
    #[arg(long, conflicts_with_all = ["output", "to"])]
    pub(crate) send: bool,

    /// With --to: the variable that holds headers, as NAME=VALUE,NAME=VALUE
    #[arg(long, value_name = "VARIABLE", requires = "to")]
    pub(crate) headers_env: Option<String>,

    /// With --to and --send: the encoding of messages; protobuf unless
    /// `OTEL_EXPORTER_OTLP_PROTOCOL` says otherwise
    #[arg(long, value_name = "ENCODING", value_enum)]
    pub(crate) encoding: Option<EncodingName>,

    /// With otlp: each result is a trace of its own, instead of all of the run
    #[arg(long)]
    pub(crate) trace_per_case: bool,

    /// With otlp: leave out prompts, replies, reasons and messages of errors
    #[arg(long)]
    pub(crate) no_texts: bool,

    /// Write here instead of to standard output; a folder where there are several files
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

impl ExportArgs {
    /// The one run or suite of what is made of no more than one.
    pub(crate) fn run(&self) -> Result<&str, Failure> {
        match self.runs.as_slice() {
            [run] if !self.all => Ok(run),
            _ => Err(Failure::new("this is made of one run at a time")
                .hint("`--as parquet` and `--as arrow` take several")),
        }
    }

    /// Options that mean nothing for what is written are refused: whoever gives one expects something of it.
    pub(crate) fn refuse_misplaced(&self) -> Result<(), Failure> {
        let is_otlp = self.kind == ExportKind::Otlp;
        let is_table = matches!(self.kind, ExportKind::Parquet | ExportKind::Arrow);
        let given = [
            ("--to", self.to.is_some(), is_otlp, "otlp"),
            ("--send", self.send, is_otlp, "otlp"),
            ("--encoding", self.encoding.is_some(), is_otlp, "otlp"),
            ("--trace-per-case", self.trace_per_case, is_otlp, "otlp"),
            ("--no-texts", self.no_texts, is_otlp, "otlp"),
            ("--all", self.all, is_table, "parquet"),
            ("--tables", !self.tables.is_empty(), is_table, "parquet"),
            ("--overwrite", self.overwrite, is_table, "parquet"),
            ("--corrected", self.corrected, self.kind == ExportKind::Chat, "chat"),
        ];
        let wrong = given.into_iter().find(|(_, is_given, fits, _)| *is_given && !fits);
        if let Some((option, _, _, kind)) = wrong {
            return Err(Failure::new(format!("`{option}` goes with `--as {kind}`")));
        }
        if self.encoding.is_some() && self.to.is_none() && !self.send {
            return Err(Failure::new("`--encoding` goes with `--to` or `--send`")
                .hint("files are in JSON, a message per line"));
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EncodingName {
    Protobuf,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportKind {
    /// Conversations that end in a right answer, one JSON object per line
    Chat,
    /// A right and a wrong answer to the same prompt, one JSON object per line
    Preferences,
    /// A draft in Markdown about regressions since a baseline
    Issue,
    /// What people said in `probity view`, for `judge agreement`, one JSON object per line
    Labels,
    /// For promptfoo: the results of a run for `promptfoo import`, or a suite as a promptfooconfig
    Promptfoo,
    /// For Inspect: the log of a run, one for each runner on each backend
    InspectLog,
    /// For OpenAI evals: the log of a run, or a suite as samples with a registry
    OpenaiEvals,
    /// For Langfuse: traces and scores of a run, or a suite as items of a dataset
    Langfuse,
    /// For collectors of OpenTelemetry: spans with attributes for generative AI, as OTLP
    Otlp,
    /// Tables for DuckDB, Spark, Trino and others: a folder of Parquet files
    Parquet,
    /// The same tables as Arrow files, which pandas and polars read without a copy
    Arrow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableName {
    Runs,
    Cases,
    Scores,
    Calls,
}
