//! The command line of `probity judge`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::run::{ForeignArgs, StoreArgs, UNNAMED, suite_file};

#[derive(Debug, Subcommand)]
pub(crate) enum JudgeCommand {
    /// Measure how far a judge agrees with people: Cohen's kappa, Krippendorff's alpha
    ///
    /// Each line of the file is one label. The judge's answer comes from the line itself
    /// (`judge`), from a run (`case_id`), or from asking it now (`prompt`, `answer`, `rubric`).
    #[command(after_help = "\
Labels, one JSON object per line; `human` may be a list with one label per person, and `about`
separates matters that are not compared with each other:
  {\"human\": 4, \"judge\": 5}
  {\"human\": [4, 5], \"prompt\": \"...\", \"answer\": \"...\", \"rubric\": \"It is polite.\"}
  {\"human\": \"a\", \"prompt\": \"...\", \"answers\": [\"...\", \"...\"], \"rubric\": \"...\"}
  {\"human\": \"win\", \"case_id\": \"sql-1\"}
  {\"human\": 3, \"case_id\": \"sql-1\", \"criterion\": \"right\", \"answer\": \"baseline\"}

Examples:
  probity judge agreement labels.jsonl --judge local -o scores.jsonl
  probity judge agreement labels.jsonl --run k3f9x2 --min-kappa 0.6
  probity judge agreement --from-store k3f9x2

Exit codes: 0 success, 1 kappa below --min-kappa, 2 invalid label, 3 judge not available")]
    Agreement(AgreementArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AgreementArgs {
    /// The labels
    #[arg(value_name = "LABELS", required_unless_present = "from_store")]
    pub(crate) labels: Option<PathBuf>,

    /// Use what people said of these runs in `probity view --allow-edit` [default: latest]
    ///
    /// Verdicts of the run are compared with theirs, and points of judges with theirs.
    #[arg(long, value_name = "RUN", num_args = 0.., conflicts_with = "labels")]
    pub(crate) from_store: Option<Vec<String>>,

    /// The suite that describes the judge [default: probity.toml, else probity.yaml]
    #[arg(
        long, value_name = "FILE", default_value = UNNAMED, hide_default_value = true,
        value_parser = suite_file()
    )]
    pub(crate) suite: PathBuf,

    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,

    /// The backend that judges [default: the suite's judge]
    #[arg(long, value_name = "NAME")]
    pub(crate) judge: Option<String>,

    /// Use this model for the judge, instead of the suite's
    #[arg(long, value_name = "MODEL")]
    pub(crate) judge_model: Option<String>,

    /// The run whose judgements are compared, for labels with a `case_id`
    #[arg(long, value_name = "RUN", default_value = "latest")]
    pub(crate) run: String,

    /// Fail unless Cohen's kappa is at least this
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub(crate) min_kappa: Option<f64>,

    /// Write each label with the judge's answer
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}
