//! Options of a command that are described only once the command is given: to describe those of all others would take as
//! long as many commands do.

use std::ops::Deref;

use clap::{
    ArgMatches, Args, Command, FromArgMatches, Subcommand, builder::Resettable, error::Error,
};

/// What a command is given.
#[derive(Clone, Debug)]
pub(crate) struct Deferred<T>(pub(crate) T);

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Describes what a command is given. What it is about stays: options that several commands share bring a text of their own.
fn described(command: Command, describe: fn(Command) -> Command) -> Command {
    let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
    describe(command).about(Resettable::from(about)).long_about(Resettable::from(long_about))
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|it| described(it, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|it| described(it, T::augment_args_for_update))
    }
}

impl<T: Subcommand> Subcommand for Deferred<T> {
    fn augment_subcommands(command: Command) -> Command {
        command.defer(|it| described(it, T::augment_subcommands))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        command.defer(|it| described(it, T::augment_subcommands_for_update))
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}
