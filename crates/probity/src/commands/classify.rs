//! `probity classify`: what each stored run result is, offline.

mod line;
mod pipeline;
mod tally;

use std::{
    fs::File,
    io::{self, Read, Write},
    num::NonZero,
    path::{Path, PathBuf},
    thread,
};

use super::rules;
use crate::{
    cli::ClassifyArgs,
    exit::Exit,
    failure::Failure,
    output::{OutputFile, refuse_same_file},
    printer::Printer,
};
use tally::Tally;

pub(super) fn run(args: &ClassifyArgs, printer: &Printer) -> Result<Exit, Failure> {
    let named =
        [Some(&args.input), args.rules.suite.as_ref(), args.output.as_ref(), args.summary.as_ref()];
    let named: Vec<&Path> = named.into_iter().flatten().map(PathBuf::as_path).collect();
    refuse_same_file(&named)?;
    let rules = match &args.rules.suite {
        Some(_) => rules::load(&args.rules, printer)?,
        None => rules::without_suite(args.input.parent()),
    };
    let input = open_input(&args.input)?;
    let settings = pipeline::Settings {
        rules: &rules,
        name: args.input.display().to_string().into(),
        require_criteria: args.require_criteria,
        threads: args.threads.map_or_else(all_cores, |threads| usize::from(threads.max(1))),
    };
    let tally = match &args.output {
        Some(path) => {
            let mut file = OutputFile::create(path)?;
            let tally = pipeline::run(&settings, input, &mut file, printer)?;
            file.finish()?;
            tally
        }
        None => pipeline::run(&settings, input, &mut Printer::data(), printer)?,
    };
    report(args, &tally, printer)?;
    if tally.is_empty() {
        let message = format!("there is no run result in `{}`", args.input.display());
        return Err(Failure::new(message));
    }
    Ok(if tally.broken == 0 { Exit::Success } else { Exit::Usage })
}

fn report(args: &ClassifyArgs, tally: &Tally, printer: &Printer) -> Result<(), Failure> {
    if let Some(path) = &args.summary {
        let text = format!("{:#}\n", tally.to_json(args.errors_as_failures));
        match path.as_os_str() == "-" {
            true => Printer::data().write_all(text.as_bytes()).map_err(Failure::output)?,
            false => {
                let mut file = OutputFile::create(path)?;
                file.write_all(text.as_bytes()).map_err(|error| Failure::write(path, error))?;
                file.finish()?;
            }
        }
    }
    if !args.quiet {
        printer.note(tally.to_text(args.errors_as_failures).trim_end());
    }
    Ok(())
}

fn open_input(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).map_err(|error| Failure::read(path, error))?;
    let folder = file.metadata().is_ok_and(|metadata| metadata.is_dir());
    if folder {
        return Err(Failure::read(path, io::ErrorKind::IsADirectory.into()));
    }
    Ok(Box::new(file))
}

fn all_cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}
