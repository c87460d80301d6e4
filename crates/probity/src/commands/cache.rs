//! `probity cache`: answers that are kept for later runs.

use std::path::Path;

use probity_core::record::CacheKind;
use probity_load::settings::Layer;
use probity_store::{Cache, CacheStats, StoreError};

use super::project::{Project, Reading, settings_alone};
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
            let cache = match Path::new(&path).exists() {
                true => Some(Cache::open(Path::new(&path)).map_err(unusable)?),
                false => None,
            };
            for kind in CacheKind::ALL {
                let stats = cache.as_ref().map(|it| it.stats(kind)).transpose();
                let stats = stats.map_err(unusable)?.unwrap_or_default();
                let CacheStats { entries, bytes, oldest_ms } = stats;
                let since = oldest_ms
                    .map_or_else(String::new, |it| format!(", since {}", clock::shown(it)));
                let name = kind.plural();
                printer.show(&format!("{path}: {entries} {name}, {bytes} bytes{since}\n"))?;
            }
        }
        CacheCommand::Clear { generations, judgements, embeddings, place } => {
            let path = path(place, printer)?;
            let place = Path::new(&path);
            let chosen = [
                (generations, CacheKind::Generation),
                (judgements, CacheKind::Judgement),
                (embeddings, CacheKind::Embedding),
            ];
            let chosen = chosen.into_iter().filter(|(is_chosen, _)| **is_chosen);
            let mut kinds: Vec<CacheKind> = chosen.map(|(_, kind)| kind).collect();
            if kinds.is_empty() {
                kinds = CacheKind::ALL.to_vec();
            }
            let cleared = match place.exists() {
                true => Cache::open(place).and_then(|cache| cache.clear(&kinds)),
                false => Ok(0),
            };
            match cleared {
                Ok(removed) => printer.note(&format!("removed {removed} answers")),
                Err(error) if error.is_damage() => remove(place, error, printer)?,
                Err(error) => return Err(unusable(error)),
            }
        }
    }
    Ok(Exit::Success)
}

/// Removes a cache that is damaged, since nothing in it can be forgotten one by one.
fn remove(path: &Path, error: StoreError, printer: &Printer) -> Result<(), Failure> {
    match Cache::remove_damaged(path) {
        Ok(true) => printer.note(&format!("removed `{}`, which was damaged", path.display())),
        Ok(false) => {
            return Err(Failure::new("the cache cannot be used")
                .because(error)
                .hint("it may not be a cache: remove it, or name another file with `cache.path`"));
        }
        Err(error) => return Err(Failure::write(path, error)),
    }
    Ok(())
}

fn unusable(error: StoreError) -> Failure {
    let hint = error.hint();
    let failure = Failure::new("the cache cannot be used").because(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Where the cache is: by the suite if there is one, else by the defaults.
fn path(args: &CacheArgs, printer: &Printer) -> Result<String, Failure> {
    let place = StoreArgs::default();
    let settings = match args.suite.exists() {
        true => {
            let reading = Reading::strict(printer, args.foreign);
            Project::load(&args.suite, &place, Layer::default(), &reading)?.settings
        }
        false => settings_alone(&place)?,
    };
    Ok(settings.cache_path)
}
