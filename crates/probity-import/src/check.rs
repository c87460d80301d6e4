//! What our own loader refuses of a draft is taken out and noted, so that what is left runs.

mod requests;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use probity_core::{
    criteria::{AssertionTest, Criteria, CriteriaProblem},
    located::Step,
    problem::{Problem, Severity},
};
use probity_grade::{Compiler, Rules};
use probity_load::{
    dataset::{self, Format, Item, Writer},
    function,
    suite::{PromptConfig, RunnerConfig, Suite, Template},
};
use probity_run::{
    plan::{Choice, Site, scan},
    process::OwnFolder,
    redact::Redactor,
    scripts::JavaScript,
};

use crate::{
    draft::{CaseDraft, DatasetDraft, DatasetRef, Draft, RunnerDraft},
    note::Notes,
    write::{self, Part, SUITE, Written},
};

/// How often something is taken out before the import is given up.
const MOST_ROUNDS: usize = 24;
/// Limits of calls that are not made here.
const NO_TIME: Duration = Duration::from_secs(1);
/// Stands for what a file has: text to whoever wants text, and an image to whoever wants one.
const SOME_FILE: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk\
                         YPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
/// What is to be done about what was taken out.
const ADVICE: &str = "write it as docs/suites.md and docs/datasets.md say";

/// Why a part of a draft cannot be used.
enum Refused {
    Part(Part, String),
    Case(CaseKey, String),
}

impl Refused {
    fn message(self) -> String {
        match self {
            Self::Part(_, message) => message,
            Self::Case(CaseKey { id, .. }, message) => format!("case `{id}`: {message}"),
        }
    }
}

/// Where a draft is checked.
pub(crate) struct Place<'a> {
    /// Where the suite is going to be.
    pub(crate) folder: &'a Path,
    /// The folder of what was imported, which scripts are copied from.
    pub(crate) root: &'a Path,
    /// Whether a text stands in what was imported.
    pub(crate) is_held: &'a dyn Fn(&str) -> bool,
}

/// A case of a draft: ids are unique only within a dataset.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CaseKey {
    dataset: String,
    id: String,
}

/// Takes out of a draft what cannot be used, and notes it. Hands out what could not be taken out.
///
/// Functions of the user are never called.
pub(crate) fn settle(
    draft: &mut Draft,
    notes: &mut Notes,
    place: &Place<'_>,
) -> io::Result<Vec<String>> {
    let room = OwnFolder::new()?;
    for _ in 0..MOST_ROUNDS {
        let refused = refused(draft, room.path(), place)?;
        if refused.is_empty() {
            return Ok(Vec::new());
        }
        let before = size(draft);
        let mut mended = take_out_criteria(draft, notes, &refused, place);
        mended.extend(take_out_shared(draft, notes, place));
        take_out(draft, notes, &refused, &mended);
        // What cannot be taken out would be refused again.
        if size(draft) == before {
            return Ok(refused.into_iter().map(Refused::message).collect());
        }
    }
    let left = refused(draft, room.path(), place)?;
    Ok(left.into_iter().map(Refused::message).collect())
}

/// How much there is in a draft: whatever is taken out makes it less.
fn size(draft: &Draft) -> [usize; 7] {
    let cases = || draft.datasets.iter().flat_map(|it| &it.cases);
    [
        serde_json::to_string(&draft.settings).map_or(0, |it| it.len()),
        draft.backends.len(),
        draft.runners.iter().map(|it| 1 + it.backends.len() + it.prompts.len()).sum(),
        draft.runners.iter().map(|it| it.setup.assertions.len()).sum(),
        cases().count(),
        cases().filter(|it| it.case.criteria != Criteria::default()).count(),
        cases().map(|it| it.case.criteria.assertions.len()).sum(),
    ]
}

/// What the loader says about a draft.
fn refused(draft: &Draft, room: &Path, place: &Place<'_>) -> io::Result<Vec<Refused>> {
    let folder = place.folder;
    let prefix = format!("{}/", room.display());
    let written = write::render(&without_files(draft), &prefix);
    for (name, text) in &written.files {
        let path = room.join(name);
        fs::create_dir_all(path.parent().unwrap_or(room))?;
        fs::write(path, text)?;
    }
    let (suite, problems) =
        Suite::parse(&written.suite, &Arc::from(SUITE), folder, &|_| Vec::new());
    let mut refused: Vec<Refused> =
        problems.iter().flat_map(|it| of(it, None, draft, &written)).collect();
    let Some(suite) = suite.filter(|_| refused.is_empty()) else { return Ok(refused) };
    let here = Site {
        folder,
        rules: rules_of(place),
        env: BTreeMap::new(),
        redactor: Redactor::default(),
        kill_grace: NO_TIME,
        function_timeout: NO_TIME,
    };
    for runner in suite.runners.iter().filter_map(without_functions) {
        let _ = scan(&runner, &here, &Choice::default(), &mut |problem| {
            refused.extend(of(&problem, Some(&runner.name), draft, &written));
        });
    }
    if refused.is_empty() {
        let unsendable = requests::refused(draft).into_iter();
        let marked = requests::marked(draft, place.is_held);
        let all = unsendable.chain(marked);
        refused.extend(all.map(|(key, message)| Refused::Case(key, message)));
    }
    Ok(refused)
}

/// The usual rules, with the scripts of two folders. A run keeps its rules as long as the program runs, so
/// there is one for each pair.
fn rules_of(place: &Place<'_>) -> &'static Rules {
    type All = BTreeMap<[PathBuf; 2], &'static Rules>;
    static ALL: Mutex<All> = Mutex::new(BTreeMap::new());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let folders = [place.folder.to_owned(), place.root.to_owned()];
    all.entry(folders.clone()).or_insert_with(|| {
        Box::leak(Box::new(Rules::default().with_scripts(JavaScript::of_any(folders))))
    })
}

/// A draft whose cases name no files: these start from the folder of the suite, and not from where they are
/// checked. That they are there is known.
fn without_files(draft: &Draft) -> Draft {
    let mut draft = draft.clone();
    let cases = draft.datasets.iter_mut().flat_map(|it| &mut it.cases);
    let shared = draft.runners.iter_mut().map(|it| &mut it.setup.prompt_vars);
    for vars in cases.map(|it| &mut it.case.prompt_vars).chain(shared) {
        for value in vars.values_mut() {
            if value.as_str().is_some_and(|it| it.starts_with("file://")) {
                *value = SOME_FILE.into();
            }
        }
    }
    // What code makes of cases is known as little as what functions make.
    for runner in &mut draft.runners {
        for dataset in &mut runner.dataset {
            if let DatasetRef::Adapter { of: Some(of), .. } = dataset {
                *dataset = DatasetRef::Draft(of.clone());
                runner.setup.dataset_config = None;
            }
        }
    }
    draft
}

/// A runner that calls no function of the user; none if a function makes its cases.
fn without_functions(runner: &RunnerConfig) -> Option<RunnerConfig> {
    if runner.dataset.iter().any(|it| function::in_file(it).is_some()) {
        return None;
    }
    let asked = |prompt: &Arc<PromptConfig>| match &prompt.function {
        None => prompt.clone(),
        Some(named) => Arc::new(PromptConfig {
            function: None,
            template: Some(Template { text: "prompt".into(), at: named.at.clone() }),
            ..(**prompt).clone()
        }),
    };
    Some(RunnerConfig { prompts: runner.prompts.iter().map(asked).collect(), ..runner.clone() })
}

/// What a problem is about that came up in a runner; nothing if the suite can be used all the same.
fn of(problem: &Problem, runner: Option<&str>, draft: &Draft, written: &Written) -> Vec<Refused> {
    let Problem { severity, message, file, place, case_id, code, .. } = problem;
    if *severity != Severity::Error && *code != probity_core::problem::UNKNOWN_FIELD {
        return Vec::new();
    }
    if let Some(id) = case_id {
        let datasets = match dataset_in(file, draft) {
            Some(dataset) => vec![dataset.name.as_str()],
            // What is wrong is what the runner says about the case.
            None => draft
                .runners
                .iter()
                .filter(|it| Some(&*it.name) == runner)
                .flat_map(read_by)
                .collect(),
        };
        let key = |dataset: &str| CaseKey { dataset: dataset.to_owned(), id: id.clone() };
        return datasets.into_iter().map(|it| Refused::Case(key(it), message.clone())).collect();
    }
    let line = place.as_ref().map_or(1, |it| it.line);
    let part = match &**file {
        SUITE => written.part(line),
        other => {
            let here = || draft.runners.iter().position(|it| Some(&*it.name) == runner);
            let part = part_of_file(other, draft, written);
            part.or_else(|| here().map(Part::Runner)).unwrap_or(Part::Settings)
        }
    };
    vec![Refused::Part(part, message.clone())]
}

/// The names of the datasets that a runner reads.
fn read_by(runner: &RunnerDraft) -> impl Iterator<Item = &str> {
    let asked = runner.dataset.iter().filter_map(|it| match it {
        DatasetRef::Draft(name) | DatasetRef::Adapter { of: Some(name), .. } => Some(name.as_str()),
        DatasetRef::Function(_) | DatasetRef::Adapter { of: None, .. } => None,
    });
    asked.chain(runner.setup.examples.iter().map(|it| it.dataset.as_str()))
}

/// The dataset that a file has.
fn dataset_in<'d>(file: &str, draft: &'d Draft) -> Option<&'d DatasetDraft> {
    let name = Path::new(file).file_name()?;
    draft.datasets.iter().find(|it| *write::dataset_file(it) == *name)
}

/// The runner that a dataset belongs to, or the variant that a file with a prompt belongs to.
fn part_of_file(file: &str, draft: &Draft, written: &Written) -> Option<Part> {
    let Some(dataset) = dataset_in(file, draft) else { return written.part_in(Path::new(file)) };
    let reads = |it: &RunnerDraft| read_by(it).any(|name| name == dataset.name);
    draft.runners.iter().position(reads).map(Part::Runner)
}

/// Takes out criteria that do not compile, such as a pattern in another dialect. Hands out the cases
/// that had some.
fn take_out_criteria(
    draft: &mut Draft,
    notes: &mut Notes,
    refused: &[Refused],
    place: &Place<'_>,
) -> BTreeSet<CaseKey> {
    let mut mended = BTreeSet::new();
    let mut ids: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for it in refused {
        match it {
            Refused::Case(CaseKey { dataset, id }, _) => {
                ids.entry(dataset).or_default().insert(id);
            }
            Refused::Part(..) => {}
        }
    }
    let rules = rules_of(place);
    for dataset in &mut draft.datasets {
        let Some(ids) = ids.get(&*dataset.name) else { continue };
        let refused = dataset.cases.iter().filter(|it| ids.contains(&*it.case.id));
        let found = criteria_problems(refused, rules);
        for CaseDraft { case, at } in &mut dataset.cases {
            let Some(problems) = found.get(&case.id) else { continue };
            mended.insert(CaseKey { dataset: dataset.name.clone(), id: case.id.clone() });
            let mut gone = BTreeSet::new();
            for CriteriaProblem { path, message, .. } in problems {
                match path.as_slice() {
                    [Step::Key("assert"), Step::Index(place), ..] => {
                        let Some(it) = case.criteria.assertions.get(*place) else { continue };
                        if gone.insert(*place) {
                            let what = format!("assertion `{}`: {message}", it.kind);
                            notes.lost(at.clone(), what, ADVICE);
                        }
                    }
                    _ => {
                        notes.lost(
                            at.clone(),
                            format!("the criteria of a test: {message}"),
                            ADVICE,
                        );
                        case.criteria = Criteria::default();
                    }
                }
            }
            let mut place = 0..;
            let is_gone = |at: Option<usize>| at.is_some_and(|at| gone.contains(&at));
            case.criteria.assertions.retain(|_| !is_gone(place.next()));
        }
    }
    mended
}

/// Takes out assertions of runners that do not compile. Hands out the cases that had them.
fn take_out_shared(draft: &mut Draft, notes: &mut Notes, place: &Place<'_>) -> BTreeSet<CaseKey> {
    let mut mended = BTreeSet::new();
    let rules = rules_of(place);
    for runner in &mut draft.runners {
        let is_read =
            |it: &&DatasetDraft| runner.dataset.contains(&DatasetRef::Draft(it.name.clone()));
        let read: Vec<&DatasetDraft> = draft.datasets.iter().filter(is_read).collect();
        let Some(first) = read.iter().flat_map(|it| &it.cases).next() else { continue };
        let has_tools = runner.setup.tools.is_some();
        let mut found = Vec::new();
        runner.setup.assertions.retain(|assertion| {
            let is_of_tools = assertion.kind.test == AssertionTest::ValidToolCalls;
            let mut alone = first.clone();
            alone.case.criteria =
                Criteria { assertions: vec![assertion.clone()], ..Criteria::default() };
            for (name, value) in &runner.setup.prompt_vars {
                alone.case.prompt_vars.entry(name.clone()).or_insert_with(|| value.clone());
            }
            let problems = criteria_problems([&alone], rules);
            let problem = problems.into_values().flatten().next();
            let problem = problem.filter(|_| !(is_of_tools && has_tools));
            found.extend(problem.iter().map(|it| (assertion.kind, it.message.clone())));
            problem.is_none()
        });
        if !found.is_empty() {
            mended.extend(read.iter().flat_map(|it| keys(it)));
        }
        for (kind, message) in found {
            notes.lost(runner.at.clone(), format!("assertion `{kind}`: {message}"), ADVICE);
        }
    }
    mended
}

/// All cases of a dataset.
fn keys(dataset: &DatasetDraft) -> impl Iterator<Item = CaseKey> {
    let key = |id: &str| CaseKey { dataset: dataset.name.clone(), id: id.to_owned() };
    dataset.cases.iter().map(move |it| key(&it.case.id))
}

/// What is wrong with the criteria of cases of a dataset, by their ids. Their templates are filled in
/// before.
fn criteria_problems<'d>(
    cases: impl IntoIterator<Item = &'d CaseDraft>,
    rules: &Rules,
) -> BTreeMap<String, Vec<CriteriaProblem>> {
    let found: RefCell<BTreeMap<String, Vec<CriteriaProblem>>> = RefCell::default();
    let compiler = RefCell::new(Compiler::new(rules));
    let check = |case: &probity_core::case::TestCase| {
        let problems = compiler.borrow_mut().compile(case).err().unwrap_or_default();
        if !problems.is_empty() {
            found.borrow_mut().insert(case.id.clone(), problems);
        }
        Vec::new()
    };
    let written = || -> Result<Vec<u8>, dataset::WriteError> {
        let mut writer = Writer::new(Format::Jsonl, None, Vec::new())?;
        cases.into_iter().try_for_each(|it| writer.case(&it.case))?;
        writer.finish()
    };
    let bytes = written().unwrap_or_default();
    let mut ignore = |_: Item| {};
    dataset::read_bytes(Path::new("cases.jsonl"), Format::Jsonl, &bytes, &check, &mut ignore);
    found.into_inner()
}

/// Takes out parts and cases, except for cases that are mended: they have another chance.
fn take_out(draft: &mut Draft, notes: &mut Notes, refused: &[Refused], mended: &BTreeSet<CaseKey>) {
    let mut parts: Vec<Part> = Vec::new();
    let mut cases: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for it in refused {
        match it {
            Refused::Case(key, _) if mended.contains(key) => {}
            Refused::Case(CaseKey { dataset, id }, message) => {
                cases.entry((dataset, id)).or_insert(message);
            }
            Refused::Part(part, message) => {
                note_part(draft, notes, *part, message);
                if !parts.contains(part) {
                    parts.push(*part);
                }
            }
        }
    }
    for dataset in &mut draft.datasets {
        let name = dataset.name.as_str();
        dataset.cases.retain(|CaseDraft { case, at }| match cases.get(&(name, case.id.as_str())) {
            None => true,
            Some(message) => {
                notes.lost(at.clone(), format!("test `{}`: {message}", case.id), ADVICE);
                false
            }
        });
    }
    remove(draft, &parts);
}

fn note_part(draft: &Draft, notes: &mut Notes, part: Part, message: &str) {
    let (at, what) = match part {
        Part::Settings => (draft.runners.first().map(|it| &it.at), "the settings".to_owned()),
        Part::Backend(at) => {
            let backend = draft.backends.get(at);
            let name = backend.map(|it| it.name.as_str()).unwrap_or_default();
            (backend.map(|it| &it.at), format!("provider `{name}`"))
        }
        Part::Runner(at) => (draft.runners.get(at).map(|it| &it.at), "the tests".to_owned()),
        Part::Variant(at, place) => {
            let variant = draft.runners.get(at).and_then(|it| it.prompts.get(place));
            let name = variant.map(|it| it.name.as_str()).unwrap_or_default();
            (variant.map(|it| &it.at), format!("prompt `{name}`"))
        }
    };
    if let Some(at) = at {
        notes.lost(at.clone(), format!("{what}: {message}"), ADVICE);
    }
}

/// Removes parts, and whatever has nothing left to do without them.
fn remove(draft: &mut Draft, parts: &[Part]) {
    if parts.contains(&Part::Settings) {
        draft.settings = crate::draft::SuiteSettings::default();
    }
    let mut place = 0..;
    let lost: Vec<String> = draft
        .backends
        .extract_if(.., |_| place.next().is_some_and(|at| parts.contains(&Part::Backend(at))))
        .map(|it| it.name)
        .collect();
    for (at, runner) in draft.runners.iter_mut().enumerate() {
        runner.backends.retain(|it| !lost.contains(it));
        let had_prompts = !runner.prompts.is_empty();
        let mut place = 0..;
        runner.prompts.retain(|_| {
            place.next().is_some_and(|place| !parts.contains(&Part::Variant(at, place)))
        });
        let is_lost = |it: &Option<String>| it.as_ref().is_some_and(|it| lost.contains(it));
        if is_lost(&runner.setup.judge) {
            runner.setup.judge = None;
        }
        if is_lost(&runner.setup.embeddings) {
            runner.setup.embeddings = None;
        }
        if parts.contains(&Part::Runner(at)) || (had_prompts && runner.prompts.is_empty()) {
            runner.backends.clear();
        }
    }
    let empty: BTreeSet<String> =
        draft.datasets.iter().filter(|it| it.cases.is_empty()).map(|it| it.name.clone()).collect();
    draft.datasets.retain(|it| !it.cases.is_empty());
    for runner in &mut draft.runners {
        runner.dataset.retain(|it| match it {
            DatasetRef::Draft(name) | DatasetRef::Adapter { of: Some(name), .. } => {
                !empty.contains(name)
            }
            DatasetRef::Function(_) | DatasetRef::Adapter { of: None, .. } => true,
        });
    }
    draft.runners.retain(|it| !it.backends.is_empty() && !it.dataset.is_empty());
}

#[cfg(test)]
mod tests;
