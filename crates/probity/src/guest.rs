//! What programs do with this one as their library: run a suite, and load what judges replies.
//!
//! Nothing is printed, and signals stay theirs.

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use clap::Parser as _;
use probity_core::event::Stamped;
use probity_grade::{Rules, policy::Policies};
use probity_run::callable::Callables;
use tokio::sync::watch;

pub use crate::commands::Ran;
use crate::{
    cli::{
        Cli, Command,
        run::{RulesArgs, StoreArgs},
    },
    commands::{self, Host},
    exit::Exit,
    failure::Failure,
    printer::{Printer, Told},
    signals,
};

/// Who hears of what would be printed.
pub type OnNote = Arc<dyn Fn(&str) + Send + Sync>;

/// Who gets events.
pub type OnEvents = Box<dyn FnMut(&[Stamped]) + Send>;

/// What a run is given by the program that it is for.
pub struct Hooks {
    /// Functions that stand for backends and scorers.
    pub callables: Callables,
    /// Gets events once they are recorded. The run waits for it.
    pub on_events: OnEvents,
    /// Gets warnings and notes.
    pub on_note: OnNote,
    /// The run is stopped in good order when this becomes true.
    pub stopped: watch::Receiver<bool>,
}

/// Why something was not done, as the command would say it.
#[derive(Debug)]
pub struct Refused {
    /// All that there is to say.
    pub message: String,
    /// The exit code that the command would have.
    pub exit: u8,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refused {}

/// Runs a suite as `probity run` does with these arguments, which are those after `run`.
pub fn run(arguments: Vec<OsString>, hooks: Hooks) -> Result<Ran, Refused> {
    signals::leave_alone();
    let words = ["probity", "run", "--quiet"].map(OsString::from).into_iter().chain(arguments);
    let cli = Cli::try_parse_from(words).map_err(|error| Refused {
        message: error.render().to_string().trim_end().to_owned(),
        exit: Exit::Usage.code(),
    })?;
    let Command::Run(args) = cli.command else {
        return Err(refused(&Failure::new("only suites can be run"), ""));
    };
    if args.watch || args.porcelain {
        let message = "`--watch` and `--porcelain` are for the command line alone";
        return Err(refused(&Failure::new(message), ""));
    }
    let Hooks { callables, on_events, on_note, stopped } = hooks;
    let host = Host { callables, listener: on_events, stopped };
    heard(on_note, |printer| commands::run_for(&args, printer, host))
}

/// The rules of a suite; without a file, those that come with the program.
pub fn rules(suite: Option<&Path>, on_note: OnNote) -> Result<Rules, Refused> {
    heard(on_note, |printer| commands::load_rules(&rules_args(suite), printer))
}

/// The policies of these names, of a suite or built in; without names all of the suite's, or all built-in.
pub fn policies(
    suite: Option<&Path>,
    names: &[String],
    on_note: OnNote,
) -> Result<Policies, Refused> {
    heard(on_note, |printer| commands::load_policies(&rules_args(suite), names, printer))
}

/// Where the store is, unless somebody says so, and the share of errors that results allow.
pub fn store(named: Option<PathBuf>) -> Result<(PathBuf, f64), Refused> {
    let place = StoreArgs { store: named, ..StoreArgs::default() };
    let settings = commands::settings_of(&place).map_err(|failure| refused(&failure, ""))?;
    Ok((PathBuf::from(settings.store), settings.max_error_rate))
}

fn rules_args(suite: Option<&Path>) -> RulesArgs {
    RulesArgs { suite: suite.map(Path::to_owned), ..RulesArgs::default() }
}

/// Does something with a printer that tells of what it would print.
fn heard<T>(
    on_note: OnNote,
    work: impl FnOnce(&Printer) -> Result<T, Failure>,
) -> Result<T, Refused> {
    let problems = Arc::new(Mutex::new(String::new()));
    let kept = problems.clone();
    let printer = Printer::telling(Arc::new(move |told| match told {
        Told::Problem(text) => {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_str(text.trim_end());
            kept.push_str("\n\n");
        }
        Told::Note(text) => on_note(text.trim_end()),
    }));
    work(&printer).map_err(|failure| {
        refused(&failure, &problems.lock().unwrap_or_else(PoisonError::into_inner))
    })
}

fn refused(failure: &Failure, problems: &str) -> Refused {
    let mut message = format!("{problems}{failure}");
    for cause in failure.causes() {
        message.push_str("\ncaused by: ");
        message.push_str(&cause);
    }
    if let Some(hint) = failure.hint_text() {
        message.push_str("\nhint: ");
        message.push_str(hint);
    }
    Refused { message, exit: failure.exit_code().code() }
}
