//! `probity completions` and `probity man`: both come from the definition of the command line.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{cli::Cli, exit::Exit, failure::Failure, printer::Printer};

pub(super) fn completions(shell: Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "probity", &mut script);
    Printer::data().write_all(&script).map_err(Failure::output)?;
    Ok(Exit::Success)
}

pub(super) fn man(folder: Option<&Path>) -> Result<Exit, Failure> {
    let Some(folder) = folder else {
        let page = page(Cli::command())?;
        Printer::data().write_all(&page).map_err(Failure::output)?;
        return Ok(Exit::Success);
    };
    fs::create_dir_all(folder).map_err(|error| Failure::write(folder, error))?;
    let mut command = Cli::command();
    command.build();
    write_pages(&command, "", folder)?;
    Ok(Exit::Success)
}

/// One page for the command and one for each below it: `probity.1`, `probity-check.1`, ...
fn write_pages(command: &clap::Command, parent: &str, folder: &Path) -> Result<(), Failure> {
    let name = match parent {
        "" => command.get_name().to_owned(),
        parent => format!("{parent}-{}", command.get_name()),
    };
    let path: PathBuf = folder.join(format!("{name}.1"));
    let page = page(command.clone().name(name.clone()))?;
    fs::write(&path, page).map_err(|error| Failure::write(&path, error))?;
    for subcommand in command.get_subcommands().filter(|it| it.get_name() != "help") {
        write_pages(subcommand, &name, folder)?;
    }
    Ok(())
}

fn page(command: clap::Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(Failure::output)?;
    Ok(page)
}
