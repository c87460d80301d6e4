//! One module per command, one function per module that reads like its documentation.

mod baseline;
mod cache;
mod check;
mod classify;
mod compare;
mod completions;
mod config;
mod consistency;
mod dataset;
mod demo;
mod doctor;
mod export;
mod import;
mod init;
mod judge;
mod merge;
mod model;
mod page;
mod project;
mod report;
mod rescore;
mod rules;
mod run;
mod runs;
mod sandbox;
mod schema;
mod show;
mod trend;
mod view;
#[cfg(feature = "workers")]
mod workers;
#[cfg(not(feature = "workers"))]
#[path = "commands/alone.rs"]
mod workers;

pub(crate) use init::{BackendChoice, Size};
pub use run::Ran;
#[cfg(feature = "simulated")]
pub use run::simulated;
pub(crate) use run::{Host, Porcelain, run_for};

use probity_grade::{Rules, policy::Policies};
use probity_load::settings::Settings;

use crate::{
    cli::{
        Command,
        run::{RulesArgs, StoreArgs},
    },
    exit::Exit,
    failure::Failure,
    printer::Printer,
};

/// What judges replies: the rules of a suite, or else those that come with the program.
pub(crate) fn load_rules(args: &RulesArgs, printer: &Printer) -> Result<Rules, Failure> {
    rules::load(args, printer)
}

/// The settings where there is no suite.
pub(crate) fn settings_of(place: &StoreArgs) -> Result<Settings, Failure> {
    project::settings_alone(place)
}

/// The policies of these names, of a suite or built in; without names all of the suite's, or all built-in.
pub(crate) fn load_policies(
    args: &RulesArgs,
    names: &[String],
    printer: &Printer,
) -> Result<Policies, Failure> {
    check::load_policies(args, names, printer)
}

/// Runs the command.
pub(crate) fn run(command: Command, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        Command::Init(args) => init::run(&args, printer),
        Command::Demo(args) => demo::run(&args, printer),
        Command::Import(args) => import::run(&args, printer),
        Command::Run(args) => run::run(&args, printer),
        Command::Runs(args) => runs::run(&args, printer),
        Command::Show(args) => show::run(&args, printer),
        Command::View(args) => view::run(&args, printer),
        Command::Report(args) => report::run(&args, printer),
        Command::Rescore(args) => rescore::run(&args, printer),
        Command::Gate(args) => baseline::gate(&args, printer),
        Command::Bless(args) => baseline::bless(&args, printer),
        Command::Compare(args) => compare::run(&args, printer),
        Command::Trend(args) => trend::run(&args, printer),
        Command::Export(args) => export::run(&args, printer),
        Command::Doctor(args) => doctor::run(&args, printer),
        #[cfg(feature = "workers")]
        Command::Worker(args) => workers::serve(&args, printer),
        #[cfg(feature = "workers")]
        Command::Workers(args) => workers::list(&args, printer),
        Command::Merge(args) => merge::run(&args, printer),
        Command::Config(command) => config::run(&command, printer),
        Command::Cache(command) => cache::run(&command, printer),
        Command::Model(command) => model::run(&command, printer),
        Command::Judge(command) => judge::run(&command, printer),
        Command::Sandbox(args) => sandbox::run(&args, printer),
        Command::Classify(args) => classify::run(&args, printer),
        Command::Check(command) => check::run(command.0, printer),
        Command::Dataset(command) => dataset::run(command.0, printer),
        Command::Schema { name } => schema::run(name, printer),
        Command::Completions { shell } => completions::completions(shell),
        Command::Man { all } => completions::man(all.as_deref()),
    }
}
