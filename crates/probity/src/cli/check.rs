//! The command line of `probity check`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::run::RulesArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum CheckCommand {
    /// Is the text a refusal?
    #[command(after_help = "\
Example:
  probity check refusal --text \"I cannot help with that.\"
With --jsonl: {\"id\",\"text\"} in, {\"id\",\"refusal\",\"phrase\",\"span\"} out")]
    Refusal(CheckArgs),
    /// Is there JSON in the text, and which repairs does it need?
    #[command(after_help = "\
Example:
  probity check json --level repair --text \"{'a': True, // yes\"
With --jsonl: {\"id\",\"text\"} in, {\"id\",\"value\",\"steps\",\"error_message\"} out")]
    Json {
        #[command(flatten)]
        args: CheckArgs,
        /// How strictly JSON is read [default: that of the suite file, else lenient]
        #[arg(long, value_enum)]
        level: Option<LevelArg>,
        /// Which kind of value to look for
        #[arg(long, value_enum, default_value_t = WantedArg::Any)]
        want: WantedArg,
    },
    /// Does the text break a policy?
    #[command(after_help = "\
Example:
  probity check policy --policy secrets,pii < reply.txt
With --jsonl: {\"id\",\"text\"} in, {\"id\",\"hits\":[{\"policy\",\"rule\",\"span\"}]} out")]
    Policy {
        #[command(flatten)]
        args: CheckArgs,
        /// Built-in policies, or policies of the suite file, separated by commas
        ///
        /// Without it: every policy of the suite file, or all the built-in ones.
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        policy: Vec<String>,
    },
    /// Is a shell command safe and portable, and is it equivalent to another one?
    #[command(after_help = "\
Examples:
  probity check command 'find . -name \"*.log\" -delete'
  probity check command 'tar xzf a.tgz' --against 'tar --extract --gzip --file=a.tgz'
  probity check command 'ls | wc -l' --against 'find . -maxdepth 1 | wc -l' --execute
  probity check command --reply < reply.txt
With --jsonl: {\"id\",\"command\",\"against\",\"level\",\"execute\"} in; {\"id\",\"parsed\",\"risk\",\"unsafe\",\"findings\",
\"posix\",\"violations\",\"equivalence\",\"canonical\",\"difference\",\"executed\",\"effect\",...} out; all but `id` and
`command` are optional")]
    Command(CheckCommandArgs),
    /// Are files of evaluation results, as written by `run -o FILE.json`, consistent?
    #[command(after_help = "\
Example:
  probity check evaluation result.json

Exit codes: 0 all of them are, 2 one is not")]
    Evaluation {
        /// The files
        #[arg(required = true, value_name = "FILE.json")]
        files: Vec<PathBuf>,
    },
    /// Which kind of error is it, and can a retry help?
    #[command(after_help = "\
Example:
  probity check error --status 429 --text 'Rate limit reached, try again in 20s'
With --jsonl: {\"id\",\"backend\",\"status\",\"exit_code\",\"signal\",\"text\",\"stdout\",\"stderr\",\"headers\"} in,
{\"id\",\"kind\",\"permanent\",\"retry_after\",\"evidence\"} out; all but `id` are optional")]
    Error {
        #[command(flatten)]
        args: CheckArgs,
        /// The backend of the error: openai, anthropic, claude, codex, ...
        #[arg(long, value_name = "NAME")]
        backend: Option<String>,
        /// The HTTP status that came with it
        #[arg(long, value_name = "CODE")]
        status: Option<u16>,
        /// The exit code of the program
        #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
        exit_code: Option<i32>,
        /// The signal that ended the program
        #[arg(long, value_name = "NAME")]
        signal: Option<String>,
    },
}

#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Debug, Args)]
pub(crate) struct CheckCommandArgs {
    /// The command; without it standard input is read
    #[arg(value_name = "CMD", conflicts_with = "jsonl", allow_hyphen_values = true)]
    pub(crate) command: Option<String>,

    /// Another command to compare with
    #[arg(long, value_name = "CMD2", allow_hyphen_values = true)]
    pub(crate) against: Option<String>,

    /// Run both in a sandbox if parsing cannot tell whether they do the same
    #[arg(long)]
    pub(crate) execute: bool,

    /// Run them even if it is known from earlier what they do, and keep nothing
    #[arg(long)]
    pub(crate) no_cache: bool,

    /// How much risk is accepted [default: that of the suite file, else moderate]
    #[arg(long, value_enum)]
    pub(crate) level: Option<SafetyLevelArg>,

    /// The edition of POSIX [default: that of the suite file, else 2024]
    #[arg(long, value_name = "YEAR", value_enum)]
    pub(crate) posix_edition: Option<EditionArg>,

    /// The text is a model's reply: find the command in it
    #[arg(long)]
    pub(crate) reply: bool,

    /// Print one JSON object
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,

    /// Stream JSON lines: one object in, one out
    #[arg(long)]
    pub(crate) jsonl: bool,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SafetyLevelArg {
    /// Unsafe from risk moderate; opaque commands are unsafe as well
    Strict,
    /// Unsafe from risk high: losing work, changing what others use
    Moderate,
    /// Unsafe at risk critical: destroying a machine or a whole data store
    Permissive,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EditionArg {
    /// POSIX.1-2017
    #[value(name = "2017")]
    Posix2017,
    /// POSIX.1-2024
    #[value(name = "2024")]
    Posix2024,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The text; without it standard input is read
    #[arg(long, value_name = "TEXT", conflicts_with = "jsonl", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,

    /// Stream JSON lines: one object in, one out
    #[arg(long)]
    pub(crate) jsonl: bool,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LevelArg {
    /// The whole text is one JSON value
    Strict,
    /// Also within fences or prose, with trailing commas or bad escapes
    Lenient,
    /// Also repair quotes, comments, missing brackets and more
    Repair,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum WantedArg {
    /// Any value
    Any,
    /// An object
    Object,
    /// An array
    Array,
}
