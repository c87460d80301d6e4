//! `probity cache`: answers that are kept for later runs.

use std::path::Path;

use probity_core::settings::Layer;
use probity_store::{Cache, CacheStats};

use super::{
    project::{Project, settings_alone},
    run::store_failure,
};
use crate::{
    cli::run::{CacheArgs, CacheCommand, StoreArgs},
    clock,
    exit::Exit,
    failure::Failure,
    printer::Printer,
};

pub(super) fn run(command: &CacheCommand, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        CacheCommand::Stats { place } => {
            let path = path(place, printer)?;
            let CacheStats { entries, bytes, oldest_ms } = match Path::new(&path).exists() {
                true => open(&path)?.stats().map_err(store_failure)?,
                false => CacheStats { entries: 0, bytes: 0, oldest_ms: None },
            };
            let since =
                oldest_ms.map_or_else(String::new, |it| format!(", since {}", clock::shown(it)));
            printer.show(&format!("{path}: {entries} answers, {bytes} bytes{since}\n"))?;
        }
        CacheCommand::Clear { place } => {
            let path = path(place, printer)?;
            let removed = match Path::new(&path).exists() {
                true => open(&path)?.clear().map_err(store_failure)?,
                false => 0,
            };
            printer.note(&format!("forgot {removed} answers"));
        }
    }
    Ok(Exit::Success)
}

fn open(path: &str) -> Result<Cache, Failure> {
    Cache::open(Path::new(path)).map_err(store_failure)
}

/// Where the cache is: by the suite if there is one, else by the defaults.
fn path(args: &CacheArgs, printer: &Printer) -> Result<String, Failure> {
    let place = StoreArgs::default();
    let settings = match args.suite.exists() {
        true => Project::load(&args.suite, &place, Layer::default(), printer)?.settings,
        false => settings_alone(&place)?,
    };
    Ok(settings.cache_path)
}
