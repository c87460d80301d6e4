//! `probity init`: a suite to start from, or one of those that come with the program.
//!
//! Everything that can be wrong is found before the first file is written.

mod backend;
mod builtin;
mod ci;
mod long_context;
mod offers;

use std::{
    borrow::Cow,
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) use backend::BackendChoice;
use builtin::{LONG_CONTEXT, SuiteFile, USUAL_SEED};
pub(crate) use long_context::Size;
use offers::{Offer, Wish};
use probity_grade::Rules;
use probity_load::suite::{BackendConfig, Suite, USUAL_FILES};
use probity_report::plain::shell_word;

use super::dataset::counted;
use crate::{
    cli::{SchemaName, import::ImportArgs, init::InitArgs},
    exit::Exit,
    failure::Failure,
    output::OutputFile,
    printer::Printer,
};

/// The name that every suite file has.
const SUITE_FILE: &str = "probity.toml";
/// A second suite file, of suites that can also be judged by a model.
const JUDGED_FILE: &str = "judged.toml";

/// The schema of suite files, for editors.
const SCHEMA_FILE: &str = "probity.schema.json";

/// A suite and where it goes.
struct Planned {
    folder: PathBuf,
    files: Vec<SuiteFile>,
    backends: Vec<BackendConfig>,
}

pub(super) fn run(args: &InitArgs, printer: &Printer) -> Result<Exit, Failure> {
    if args.list {
        list(args.json, printer)?;
        return Ok(Exit::Success);
    }
    let mut planned = plan(args, args.backend.as_ref(), printer)?;
    let workflow = args.ci.map(|it| ci::plan(it, &planned)).transpose()?;
    refuse_in_the_way(&planned, workflow.as_ref(), args.force)?;
    let found = Found::look(args)?;
    match found.wish()? {
        Wish::Import(path) => {
            let exit = import(path, args.force, printer)?;
            write(workflow.iter(), "the import is there")?;
            printer.show(&told_of_workflow(workflow.as_ref()))?;
            return Ok(exit);
        }
        Wish::Backend(choice) => planned = plan(args, Some(&choice), printer)?,
        Wish::Nothing => {}
    }
    write(planned.iter().chain(&workflow), "no file was written")?;
    printer.show(&told(&planned, workflow.as_ref()))?;
    printer.show(&found.listed())?;
    Ok(Exit::Success)
}

/// What is on this machine, and whether somebody can be asked about it.
struct Found {
    offers: Vec<Offer>,
    promptfoo: Option<PathBuf>,
    has_terminal: bool,
}

impl Found {
    /// Whoever names a backend has looked already.
    fn look(args: &InitArgs) -> Result<Self, Failure> {
        let is_chosen = args.backend.is_some() || args.no_detect;
        let offers = if is_chosen { Vec::new() } else { offers::look()? };
        let folder = args.folder.as_deref().unwrap_or(Path::new(""));
        let wants_starter = args.suite.is_empty() && !is_chosen;
        let promptfoo = wants_starter.then(|| offers::promptfoo_in(folder)).flatten();
        Ok(Self { offers, promptfoo, has_terminal: offers::has_terminal() })
    }

    fn wish(&self) -> Result<Wish, Failure> {
        if !self.has_terminal {
            return Ok(Wish::Nothing);
        }
        let (mut input, mut out) = (io::stdin().lock(), Printer::data());
        offers::ask(&self.offers, self.promptfoo.as_deref(), &mut input, &mut out)
            .map_err(|error| Failure::new("failed to read an answer").because(error))
    }

    /// What those should know who were not asked.
    fn listed(&self) -> String {
        match self.has_terminal {
            true => String::new(),
            false => offers::listed(&self.offers, self.promptfoo.as_deref()),
        }
    }
}

/// Carries the configuration of another tool over, as `probity import` does.
fn import(path: PathBuf, force: bool, printer: &Printer) -> Result<Exit, Failure> {
    super::import::run(&ImportArgs { path, force, ..ImportArgs::default() }, printer)
}

fn list(json: bool, printer: &Printer) -> Result<(), Failure> {
    let entries = builtin::list();
    if json {
        let text = serde_json::to_string_pretty(&entries).expect("names and numbers are JSON");
        return writeln!(Printer::data(), "{text}").map_err(Failure::output);
    }
    let mut text = String::new();
    for entry in entries {
        let skills = match entry.skills {
            0 => String::new(),
            skills => format!(", {}", counted(skills, "skill")),
        };
        let size = format!("{}{skills}", counted(entry.cases, "case"));
        let _ = writeln!(text, "{:<15} {size:<20} {}", entry.name, entry.about);
    }
    text.push_str("\n`probity init --suite NAME` writes one into a folder of that name\n");
    printer.show(&text)
}

/// What goes where.
fn plan(
    args: &InitArgs,
    backend: Option<&BackendChoice>,
    printer: &Printer,
) -> Result<Vec<Planned>, Failure> {
    let InitArgs { folder, suite, size, seed, .. } = args;
    if !suite.iter().any(|name| name == LONG_CONTEXT) && (size.is_some() || seed.is_some()) {
        let message = format!("`--size` and `--seed` are for the suite `{LONG_CONTEXT}` only");
        return Err(Failure::new(message).hint("other suites have a fixed size"));
    }
    let (size, seed) = (size.unwrap_or(Size::USUAL), seed.unwrap_or(USUAL_SEED));
    let mut suites = Vec::new();
    for (at, name) in suite.iter().enumerate() {
        let builtin = builtin::find(name)?;
        let target = match folder {
            Some(folder) if suite.len() == 1 => folder.clone(),
            Some(folder) => folder.join(name),
            None => PathBuf::from(name),
        };
        if !suite[..at].contains(name) {
            suites.push((target, builtin.files(size, seed)));
        }
    }
    if suite.is_empty() {
        suites.push((folder.clone().unwrap_or_default(), starter()));
    }
    if args.editor {
        suites.iter_mut().for_each(|(_, files)| name_schema(files));
    }
    suites.into_iter().map(|(folder, files)| prepare(folder, files, backend, printer)).collect()
}

/// Puts the schema beside the suite files, and its name into them, by which editors find it.
fn name_schema(files: &mut Vec<SuiteFile>) {
    for (_, text) in files.iter_mut().filter(|it| is_suite_file(it.0)) {
        *text = Cow::Owned(format!("#:schema ./{SCHEMA_FILE}\n{text}"));
    }
    files.push((SCHEMA_FILE, Cow::Owned(super::schema::published(SchemaName::Suite))));
}

fn is_suite_file(name: &str) -> bool {
    [JUDGED_FILE, SUITE_FILE].contains(&name)
}

fn starter() -> Vec<SuiteFile> {
    vec![
        (SUITE_FILE, Cow::Borrowed(include_str!("../../starter/probity.toml"))),
        ("cases.toml", Cow::Borrowed(include_str!("../../starter/cases.toml"))),
    ]
}

/// Puts the backend into the suite file, and reads the result as a run would.
fn prepare(
    folder: PathBuf,
    mut files: Vec<SuiteFile>,
    backend: Option<&BackendChoice>,
    printer: &Printer,
) -> Result<Planned, Failure> {
    let mut backends = Vec::new();
    // The usual suite file comes last, so that its backends are told of.
    for (file, text) in files.iter_mut().filter(|it| is_suite_file(it.0)) {
        if let Some(backend) = backend {
            *text = Cow::Owned(backend.put_into(text));
        }
        let name: Arc<str> = folder.join(*file).display().to_string().into();
        let check = |suite: &Suite| Rules::compile(&suite.rules).err().unwrap_or_default();
        let (suite, problems) = Suite::parse(text, &name, &folder, &check);
        for problem in &problems {
            printer.problem(problem);
        }
        let unusable = || Failure::new("no suite can be made with this backend");
        backends = suite.ok_or_else(unusable)?.backends;
    }
    Ok(Planned { folder, files, backends })
}

/// Refuses to overwrite anything, and to write where no file can be.
fn refuse_in_the_way(
    planned: &[Planned],
    workflow: Option<&Planned>,
    force: bool,
) -> Result<(), Failure> {
    for Planned { folder, .. } in planned {
        if folder.exists() && !folder.is_dir() {
            return Err(Failure::new(format!("`{}` is not a folder", folder.display()))
                .hint("name another folder: probity init [--suite NAME] DIR"));
        }
    }
    let paths = planned.iter().chain(workflow).flat_map(Planned::paths);
    // A link that leads nowhere is in the way as well.
    let existing: Vec<PathBuf> = paths.filter(|path| path.symlink_metadata().is_ok()).collect();
    if let Some(path) = existing.iter().find(|path| path.is_dir()) {
        let message =
            format!("`{}` is a folder, but a file should be written there", path.display());
        return Err(Failure::new(message));
    }
    if force {
        return Ok(());
    }
    refuse_other_suites(planned)?;
    if existing.is_empty() {
        return Ok(());
    }
    let verb = if existing.len() == 1 { "is" } else { "are" };
    let message = format!("{} {verb} there already", quoted(&existing));
    Err(Failure::new(message).hint("nothing was written; name another folder, or pass --force"))
}

/// Refuses to put a suite before one of another name that `probity run` has taken so far.
fn refuse_other_suites(planned: &[Planned]) -> Result<(), Failure> {
    let others = || USUAL_FILES.into_iter().filter(|name| *name != SUITE_FILE);
    let paths = planned.iter().flat_map(|it| others().map(|name| it.folder.join(name)));
    let existing: Vec<PathBuf> = paths.filter(|path| path.symlink_metadata().is_ok()).collect();
    if existing.is_empty() {
        return Ok(());
    }
    let verb = if existing.len() == 1 { "is a suite" } else { "are suites" };
    let message = format!("{} {verb} already", quoted(&existing));
    Err(Failure::new(message).hint(format!(
        "nothing was written; `probity run` would take the new {SUITE_FILE} instead: name another \
         folder, or pass --force"
    )))
}

/// Writes file by file, each whole or not at all. `before` says what is there if the first one cannot be written.
fn write<'p>(planned: impl Iterator<Item = &'p Planned>, before: &str) -> Result<(), Failure> {
    let mut written: Vec<PathBuf> = Vec::new();
    for suite in planned {
        for (path, (_, text)) in suite.paths().zip(&suite.files) {
            let folder = path.parent().unwrap_or(Path::new(""));
            let made = match folder.as_os_str().is_empty() {
                true => Ok(()),
                false => fs::create_dir_all(folder).map_err(|error| {
                    let message = format!("failed to create the folder `{}`", folder.display());
                    Failure::new(message).because(error)
                }),
            };
            made.and_then(|()| OutputFile::write(&path, text)).map_err(|failure| {
                failure.hint(match written.is_empty() {
                    true => before.to_owned(),
                    false => format!("written before that: {}", quoted(&written)),
                })
            })?;
            written.push(path);
        }
    }
    Ok(())
}

/// What was written, and what to do with it.
fn told(planned: &[Planned], workflow: Option<&Planned>) -> String {
    /// More files than these are only counted.
    const MOST_NAMED: usize = 4;
    let mut text = String::new();
    for suite in planned {
        if suite.files.len() <= MOST_NAMED {
            for path in suite.paths() {
                let _ = writeln!(text, "wrote {}", path.display());
            }
        } else {
            let files = counted(suite.files.len(), "file");
            let _ = writeln!(text, "wrote {files} to {}", shown(&suite.folder));
        }
        for backend in &suite.backends {
            let _ = writeln!(text, "  asks {}", described(backend));
        }
    }
    text.push_str(&told_of_workflow(workflow));
    match planned {
        [one] if shown(&one.folder) == "." => text.push_str("next:\n"),
        [one] => {
            let _ = write!(text, "next:\n  cd {}\n", word(&one.folder));
        }
        _ => text.push_str("next, in each folder:\n"),
    }
    text.push_str(
        "  probity run --dry-run    what would be asked
  probity run              ask, judge, record
  probity show latest      what came out
`[backends.local]` in probity.toml says what is asked; `probity doctor` looks whether it is there
",
    );
    text
}

fn told_of_workflow(workflow: Option<&Planned>) -> String {
    let mut text = String::new();
    for path in workflow.into_iter().flat_map(Planned::paths) {
        let _ = writeln!(text, "wrote {}; its first lines say what it needs", path.display());
    }
    text
}

fn shown(folder: &Path) -> String {
    match folder.as_os_str().is_empty() {
        true => ".".to_owned(),
        false => folder.display().to_string(),
    }
}

/// A backend in words. What follows the path of an address may be a key.
fn described(backend: &BackendConfig) -> String {
    let mut text = format!("`{}`: {}", backend.name, backend.kind.as_str());
    if let Some(model) = &backend.model {
        let _ = write!(text, ", model `{model}`");
    }
    if let Some(url) = &backend.base_url {
        let _ = write!(text, ", at {}", url.split('?').next().unwrap_or_default());
    }
    text
}

/// A path as one word of a shell.
fn word(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

fn quoted(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    paths.join(", ")
}

impl Planned {
    fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.files.iter().map(|(name, _)| self.folder.join(name))
    }
}
