//! `probity model`: models on this machine, for backends of kind `embedded`.

use std::{collections::BTreeMap, ffi::OsString, fmt::Write as _, io};

use probity_model::{
    catalogue::{CATALOGUE, Wanted},
    gguf,
    models::{Model, Models, ModelsError},
    pull::{self, Pull, PullError, Pulled, Step},
};
use serde::Serialize;

use crate::{
    cli::model::ModelCommand, environment::Environment, exit::Exit, failure::Failure,
    printer::Printer,
};

pub(super) fn run(command: &ModelCommand, printer: &Printer) -> Result<Exit, Failure> {
    let variables = Environment::load(None)?.all();
    let models = Models::of(&variables).map_err(unusable)?;
    match command {
        ModelCommand::Pull { name, sha256 } => {
            pull(name, sha256.as_deref(), &models, &variables, printer)?;
        }
        ModelCommand::List { json: true } => list_json(&models)?,
        ModelCommand::List { json: false } => list(&models, printer)?,
        ModelCommand::Rm { names } => {
            for name in names {
                let bytes = models.remove(name).map_err(unusable)?;
                printer.note(&format!("removed {name}, {}", megabytes(bytes)));
            }
        }
    }
    Ok(Exit::Success)
}

fn pull(
    name: &str,
    sha256: Option<&str>,
    models: &Models,
    variables: &BTreeMap<OsString, OsString>,
    printer: &Printer,
) -> Result<(), Failure> {
    let wanted = Wanted::parse(name).map_err(|error| Failure::new(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(no_runtime)?;
    let mut progress = printer.long_progress();
    let mut tell = |step: Step| match step {
        Step::Fetched { bytes, total } => progress.update(|| fetched(bytes, total)),
        Step::Asking { place } => {
            progress.clear();
            printer.note(&format!("fetching {name} from {place}"));
        }
        Step::Failed { place, why } => {
            progress.clear();
            printer.note(&format!("not from {place}: {why}"));
        }
        Step::Checking => progress.update(|| "checking".to_owned()),
    };
    let request = Pull { wanted, sha256, models, variables };
    let pulled = runtime.block_on(pull::pull(&request, &mut tell)).map_err(not_pulled)?;
    drop(progress);
    let Pulled { name, path, sha256, is_verified, was_here } = pulled;
    let lead = if was_here { "already here" } else { "fetched" };
    printer.show(&format!("{name} {lead}: {}\n", path.display()))?;
    if !is_verified {
        printer.note(&format!("nobody said which checksum is right; this file has {sha256}"));
    }
    Ok(())
}

fn fetched(bytes: u64, total: Option<u64>) -> String {
    match total.filter(|it| *it > 0) {
        Some(total) => {
            format!("{} of {}, {} %", megabytes(bytes), megabytes(total), bytes * 100 / total)
        }
        None => megabytes(bytes),
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10)
}

fn list(models: &Models, printer: &Printer) -> Result<(), Failure> {
    let here = models.list().map_err(unusable)?;
    let mut text = format!("models in {}\n", models.folder().display());
    for model in &here {
        let Model { name, bytes, .. } = model;
        // Writing to a text cannot fail.
        let _ = writeln!(text, "  {name:<40} {:>10}  {}", megabytes(*bytes), state(model).1);
    }
    if here.is_empty() {
        text.push_str("  none\n");
    }
    let known = CATALOGUE.iter().filter(|it| !here.iter().any(|model| model.name == it.name));
    let known: Vec<_> = known.collect();
    if !known.is_empty() {
        text.push_str("that `probity model pull` fetches\n");
    }
    for entry in known {
        let (about, licence) = (entry.about, entry.licence);
        let _ = writeln!(
            text,
            "  {:<40} {:>10}  {about}, {licence}",
            entry.name,
            megabytes(entry.bytes)
        );
    }
    printer.show(&text)
}

/// Whether a model can be used, and what it is or what is wrong with it.
fn state(model: &Model) -> (bool, String) {
    if model.is_unfinished {
        return (false, "not whole: `probity model pull` continues".to_owned());
    }
    match gguf::read(&model.path) {
        Ok(header) => {
            let name = header.name.unwrap_or(header.architecture);
            let context = header.context.map(|it| format!(", context {it}")).unwrap_or_default();
            (true, format!("{name}{context}"))
        }
        Err(error) => (false, error.to_string()),
    }
}

/// A model, for scripts.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    path: Option<String>,
    bytes: u64,
    /// Whether it is here and can be used.
    is_usable: bool,
    about: &'a str,
}

fn list_json(models: &Models) -> Result<(), Failure> {
    let here = models.list().map_err(unusable)?;
    let mut text = String::new();
    let mut put = |row: &Row<'_>| {
        // Its keys are texts, so this cannot fail.
        text.push_str(&serde_json::to_string(row).unwrap_or_default());
        text.push('\n');
    };
    for model in &here {
        let (is_usable, about) = state(model);
        let path = Some(model.path.display().to_string());
        put(&Row { name: &model.name, path, bytes: model.bytes, is_usable, about: &about });
    }
    for entry in CATALOGUE.iter().filter(|it| !here.iter().any(|model| model.name == it.name)) {
        let about = entry.about;
        put(&Row { name: entry.name, path: None, bytes: entry.bytes, is_usable: false, about });
    }
    Printer::emit(&text)
}

fn unusable(error: ModelsError) -> Failure {
    let hint = error.hint();
    let failure = Failure::new("the models cannot be used").because(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn not_pulled(error: PullError) -> Failure {
    let hint = error.hint();
    let failure = Failure::new("the model is not here").because(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn no_runtime(error: io::Error) -> Failure {
    Failure::new("failed to start").because(error)
}
