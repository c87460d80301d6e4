//! Scripts that a run could not read where they are: they are copied beside the suite.
//!
//! A run reads files that cases name in the folder of the suite and in the working directory, and nowhere else. A suite
//! in another folder than its configuration would run in some working directories and not in others.

use std::path::{Path, PathBuf};

use probity_core::criteria::{Assertion, Criteria};
use probity_load::function::{Language, split_name};
use probity_run::scripts;

use crate::{draft::Draft, promptfoo::python_files};

/// What begins the name of a script that is copied, before it is.
const MARK: &str = "file://./";
/// The folder of the copies, among the functions that an import writes.
const FOLDER: &str = "scripts";

/// Names the scripts that a suite in `folder` could not reach from `root`, the folder of the configuration.
pub(crate) fn name_from_root(draft: &mut Draft, folder: &Path, root: &Path) {
    let (Ok(folder), Ok(root)) = (folder.canonicalize(), root.canonicalize()) else { return };
    for_each_script(draft, &mut |name| {
        let (path, function) = split_name(name.strip_prefix("file://")?);
        let found: PathBuf = folder.join(path).canonicalize().ok()?;
        if found.starts_with(&folder) {
            return None;
        }
        let path = found.strip_prefix(&root).ok()?.to_str()?;
        Some(with_function(&format!("{MARK}{path}"), function))
    });
}

/// Copies these scripts and what they require, and names the copies.
pub(crate) fn copy(draft: &mut Draft, root: &Path) {
    let mut copies = Vec::new();
    for_each_script(draft, &mut |name| {
        let (path, function) = split_name(name.strip_prefix(MARK)?);
        if Language::of(path) == Some(Language::Python) {
            let files = python_files(root, path)?;
            let place = |name: &str| Path::new(FOLDER).join(name).display().to_string();
            let named = format!("file://{}/{}", crate::write::ADAPTERS, place(path));
            copies.extend(files.into_iter().map(|(name, text)| (place(&name), text)));
            return Some(with_function(&named, function));
        }
        let files = scripts::read_files(root, path).ok()?;
        let folder = Path::new(FOLDER).join(Path::new(path).parent()?);
        let place = |name: &str| folder.join(name).display().to_string();
        copies.extend(files.texts.iter().map(|(name, text)| (place(name), text.clone())));
        let named = format!("file://{}/{}", crate::write::ADAPTERS, place(&files.entry));
        Some(with_function(&named, function))
    });
    draft.adapters.extend(copies);
}

fn with_function(path: &str, function: Option<&str>) -> String {
    function.map_or_else(|| path.to_owned(), |it| format!("{path}:{it}"))
}

/// Gives scripts in files another name, wherever a suite or its cases name one.
fn for_each_script(draft: &mut Draft, rename: &mut dyn FnMut(&str) -> Option<String>) {
    let mut change = |code: &mut String| {
        let path = code.strip_prefix("file://").map(|it| split_name(it).0);
        if path.and_then(Language::of).is_some()
            && let Some(name) = rename(code)
        {
            *code = name;
        }
    };
    for runner in &mut draft.runners {
        runner.setup.transform.iter_mut().for_each(&mut change);
        runner.setup.assertions.iter_mut().for_each(|it| in_assertion(it, &mut change));
    }
    for case in draft.datasets.iter_mut().flat_map(|it| &mut it.cases) {
        let case = &mut case.case;
        in_criteria(&mut case.criteria, &mut change);
        let turns = case.conversation.turns.iter_mut();
        turns.for_each(|it| in_criteria(&mut it.criteria, &mut change));
    }
}

fn in_criteria(criteria: &mut Criteria, change: &mut dyn FnMut(&mut String)) {
    criteria.transform.iter_mut().for_each(&mut *change);
    criteria.assertions.iter_mut().for_each(|it| in_assertion(it, change));
}

fn in_assertion(assertion: &mut Assertion, change: &mut dyn FnMut(&mut String)) {
    if let (true, Some(serde_json::Value::String(code))) =
        (assertion.kind.test.runs_code(), &mut assertion.value)
    {
        change(code);
    }
    assertion.transform.iter_mut().for_each(&mut *change);
    assertion.judging.context_transform.iter_mut().for_each(&mut *change);
    assertion.members.iter_mut().for_each(|it| in_assertion(it, change));
}
