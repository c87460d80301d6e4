//! `probity report`: a run in other forms.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use probity_core::{record::Lane, view::RunView};
use probity_load::dataset::{self, Item};
use probity_report::{
    Format,
    conclusion::Conclusion,
    github::{self, Place, SUMMARY_LIMIT},
    markdown,
    text::Extent,
};
use probity_store::{Reader, RunRow, StoredCases};

use super::{consistency, page::About, project::settings_alone, runs::open};
use crate::{
    cli::report::{GatingArgs, ReportArgs},
    environment::Environment,
    exit::Exit,
    failure::Failure,
    output::{OutputFile, refuse_same_file},
    printer::Printer,
};

pub(super) fn run(args: &ReportArgs, printer: &Printer) -> Result<Exit, Failure> {
    let reader = open(&args.place)?;
    let run = reader.find(&args.run)?;
    let most = settings_alone(&args.place)?.max_error_rate;
    refuse_inputs(&reader, &run, None, &args.outputs)?;
    let reports = Reports::create(&args.outputs)?;
    let mut view = reader.view(&run, most)?;
    consistency::add(&mut view, &reader, &run)?;
    match args.outputs.is_empty() {
        true => {
            let (extent, width) = (Extent::Full, Printer::width());
            let about =
                About { reader: &reader, run: &run, view: &view, exit: None, extent, width };
            printer.show_styled(&about.render()?)?;
        }
        false => reports.write(&reader, &run, &view)?,
    }
    let suite = suite_path(&run).unwrap_or_default();
    let here = std::env::current_dir().and_then(|it| it.canonicalize()).unwrap_or_default();
    // As it would be written from here, which is how GitHub knows files.
    let folder = suite.parent().map_or(Path::new(""), |it| it.strip_prefix(&here).unwrap_or(it));
    GitHub { folder, annotate: true }.tell(&reader, &run, &view, printer)?;
    Ok(Exit::Success)
}

/// What GitHub is told when it runs us: annotations on standard output, and the step's summary.
pub(super) struct GitHub<'a> {
    /// Where the names of datasets begin.
    pub(super) folder: &'a Path,
    /// Whether standard output is for people.
    pub(super) annotate: bool,
}

impl GitHub<'_> {
    /// Tells it, if it is there.
    pub(super) fn tell(
        &self,
        reader: &Reader,
        run: &RunRow,
        view: &RunView,
        printer: &Printer,
    ) -> Result<(), Failure> {
        if Environment::of_process("GITHUB_ACTIONS").as_deref() != Some("true") {
            return Ok(());
        }
        let cases = StoredCases::of(reader, run)?;
        let unread = |error| Failure::new("the cases cannot be read").because(error);
        let summary = Environment::of_process("GITHUB_STEP_SUMMARY").filter(|it| !it.is_empty());
        if let Some(path) = summary.map(PathBuf::from) {
            // Others may have written there before us.
            let used = fs::metadata(&path).map_or(0, |it| usize::try_from(it.len()).unwrap_or(0));
            let room = SUMMARY_LIMIT.saturating_sub(used + 1);
            let text = markdown::render(view, &cases, room).map_err(unread)?;
            // The run is what it is, whether or not GitHub can be told of it.
            if let Err(error) = append(&path, &text, room) {
                printer.note(&format!("no summary for GitHub: `{}`: {error}", path.display()));
            }
        }
        if self.annotate {
            let known = RefCell::default();
            let locate = |lane: &Lane, id: &str| self.locate(lane, id, &known);
            let commands = github::commands(view, &cases, &locate).map_err(unread)?;
            Printer::command(&commands)?;
        }
        Ok(())
    }

    /// The file and the line where a case is written, as far as that can be seen.
    fn locate(&self, lane: &Lane, id: &str, known: &RefCell<Lines>) -> Option<Place> {
        /// Larger datasets are not searched for the sake of a line number.
        const MOST_BYTES: u64 = 64 << 20;
        let names = || lane.dataset.iter().map(|name| self.folder.join(name));
        let mut files = names().flat_map(|path| dataset::files(&path).unwrap_or_default());
        let found = files.find_map(|path| {
            fs::metadata(&path).ok().filter(|it| it.len() <= MOST_BYTES)?;
            let mut known = known.borrow_mut();
            let lines = known.entry(path.clone()).or_insert_with_key(|path| lines_of(path));
            let found = lines.get(id)?;
            Some(Place { file: in_workspace(&path), line: Some(*found) })
        });
        let first = || names().find(|path| path.is_file() && lane.dataset.len() == 1);
        found.or_else(|| Some(Place { file: in_workspace(&first()?), line: None }))
    }
}

/// A path as GitHub knows it: from the top of the repository, wherever we were started.
fn in_workspace(path: &Path) -> String {
    let inside = Environment::of_process("GITHUB_WORKSPACE").and_then(|workspace| {
        let (path, top) = (fs::canonicalize(path).ok()?, fs::canonicalize(workspace).ok()?);
        Some(path.strip_prefix(top).ok()?.display().to_string())
    });
    inside.unwrap_or_else(|| path.display().to_string())
}

/// Where the cases of datasets begin, by file and id.
type Lines = BTreeMap<PathBuf, BTreeMap<String, usize>>;

/// The lines of a dataset where its cases begin, whether they state their ids or not.
fn lines_of(path: &Path) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    dataset::reread(&[path], &|_| {}, &Cell::new(false), &mut |item| {
        if let Item::Case(at) = item {
            lines.entry(at.case.id).or_insert(at.line);
        }
    });
    lines
}

fn append(path: &Path, text: &str, room: usize) -> io::Result<()> {
    if text.len() > room {
        return Err(io::Error::other("the step summary is full"));
    }
    let mut file = File::options().append(true).create(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")
}

/// The suite file of a run, if it is known.
pub(super) fn suite_path(run: &RunRow) -> Option<PathBuf> {
    run.info.suite_path.as_ref().map(PathBuf::from)
}

/// What is written must not be what a run was made from, nor be written twice.
pub(super) fn refuse_inputs(
    reader: &Reader,
    run: &RunRow,
    more: impl IntoIterator<Item = PathBuf>,
    outputs: &[PathBuf],
) -> Result<(), Failure> {
    let outputs: Vec<&Path> = outputs.iter().map(PathBuf::as_path).collect();
    refuse_same_file(&outputs)?;
    let mut inputs: Vec<PathBuf> = more.into_iter().collect();
    if let Some(suite) = suite_path(run) {
        let folder = suite.parent().unwrap_or(Path::new(""));
        let lanes = reader.lanes(run)?;
        inputs.extend(lanes.iter().flat_map(|lane| &lane.lane.dataset).map(|it| folder.join(it)));
        inputs.push(suite);
    }
    for (input, output) in inputs.iter().flat_map(|it| outputs.iter().map(move |out| (it, out))) {
        refuse_same_file(&[input, output])?;
    }
    Ok(())
}

/// Reports that are going to be written. Whatever is wrong with their names is found out
/// before anything is paid for.
pub(super) struct Reports(Vec<(Format, PathBuf, OutputFile)>);

impl Reports {
    pub(super) fn create(paths: &[PathBuf]) -> Result<Self, Failure> {
        let create = |path: &PathBuf| {
            let format = Format::of(path).ok_or_else(|| {
                Failure::new(format!(
                    "`{}` does not have the suffix of a report format",
                    path.display()
                ))
                .hint(format!("reports end in {}", Format::endings()))
            })?;
            Ok((format, path.clone(), OutputFile::create(path)?))
        };
        paths.iter().map(create).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn write(
        self,
        reader: &Reader,
        run: &RunRow,
        view: &RunView,
    ) -> Result<(), Failure> {
        let cases = StoredCases::of(reader, run)?;
        for (format, path, mut file) in self.0 {
            probity_report::write(format, view, &cases, &mut file)
                .map_err(|error| Failure::write(&path, error))?;
            file.finish()?;
        }
        Ok(())
    }
}

/// A run that is not whole, or has too many errors, has no usable results; then the gates
/// decide.
pub(super) fn exit_of(view: &RunView, gating: &GatingArgs) -> Exit {
    match Conclusion::of(view) {
        Conclusion::Passed | Conclusion::Warned => Exit::Success,
        Conclusion::Failed => gating.failed(),
        Conclusion::Unsound => Exit::Aborted,
    }
}
