//! Makes a suite and its datasets of what other tools have written.
//!
//! An import never guesses in silence: what cannot be carried over, and what had to be assumed, is noted
//! with its file and line. It reads text in the folder of the configuration and nothing else, and never
//! runs what it reads. What it makes is read by our own loader before it is handed out.

mod alone;
mod artisan;
mod beside;
mod caro;
mod cases;
mod check;
mod choices;
mod deepeval;
mod detect;
pub mod draft;
pub mod export;
mod failproof;
mod input;
mod lm_eval;
mod names;
mod note;
mod openai_evals;
mod plain;
mod promptfoo;
pub mod results;
pub mod source;
mod wire;
pub mod write;

use std::{
    cell::LazyCell,
    io,
    path::{Path, PathBuf},
};

use probity_core::located::{Node, NodeValue};
use probity_load::{bounded, inputs, suite::BackendKind};

pub use crate::{
    detect::Origin,
    note::{At, Note, Notes},
};
use crate::{
    draft::{BackendDraft, Draft},
    source::{Source, Unreadable},
};

/// How a file is imported.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// The tool that it comes from; none to find out.
    pub from: Option<Origin>,
    /// Whether files outside its folder may be read.
    pub allow_outside: bool,
    /// The folder that the suite is going to be in; none for the folder of the file.
    pub suite_folder: Option<&'a Path>,
    /// A file with documents that a task is about, or a folder of such files.
    pub documents: Option<&'a Path>,
    /// How a variable of the environment is looked up that a path or the id of a provider names; none to look none up.
    pub variable: Option<fn(&str) -> Option<String>>,
}

/// What an import brought.
#[derive(Debug)]
pub struct Outcome {
    /// The tool that it came from.
    pub origin: Origin,
    /// The suite and its datasets.
    pub draft: Draft,
    /// What was not carried over, and what was assumed.
    pub notes: Notes,
    /// Every file that was read.
    pub files: Vec<PathBuf>,
    /// The file that the import began with.
    pub config: PathBuf,
    /// The folder that paths of the suite start from.
    pub suite_folder: PathBuf,
}

/// Why nothing could be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file could not be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The folder could not be read, or there is no room for a check.
    #[error("failed to read `{}`", path.display())]
    Io {
        /// What was read.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// There is nothing to import.
    #[error("{what}")]
    Shape {
        /// What was looked for.
        what: String,
        /// What was found out before.
        notes: Notes,
    },
}

impl ImportError {
    pub(crate) fn shape(what: impl Into<String>) -> Self {
        Self::Shape { what: what.into(), notes: Notes::default() }
    }
}

/// Imports a file, or the configuration in a folder.
pub fn import(path: &Path, options: &Options<'_>) -> Result<Outcome, ImportError> {
    let failed = |source| ImportError::Io { path: path.to_owned(), source };
    let Located { folder, name } = match in_registry(path, options.from) {
        Some(located) => located,
        None => located(path)?,
    };
    let mut source = Source::new(&folder, options.allow_outside).map_err(failed)?;
    let suite_folder = match options.suite_folder {
        Some(folder) => std::path::absolute(folder).map_err(failed)?,
        None => source.root().to_owned(),
    };
    source.set_suite_folder(&suite_folder);
    source.set_environment(options.variable);
    let documents = match options.documents {
        Some(path) => Some(source.grant(path).map_err(|source| {
            let path = path.to_owned();
            ImportError::Io { path, source }
        })?),
        None => None,
    };
    let mut notes = Notes::default();
    let (origin, made) = match &name {
        Some(name) => {
            if probity_load::function::is_code(name) {
                let what = format!("`{name}` is code, which is never run by an import");
                return Err(ImportError::shape(what));
            }
            let (root, wrong) = source.tree(name)?;
            let origin = options.from.or_else(|| detect::origin(&root, name));
            let origin = origin.ok_or_else(|| unknown(name, &root, &wrong))?;
            for unreadable in &wrong {
                note_unreadable(&source, &root, unreadable, &mut notes);
            }
            let documents = documents.as_deref();
            (origin, of_file(origin, root, name, documents, &mut source, &mut notes))
        }
        None => {
            let shown = folder.display().to_string();
            let origin = options.from.or_else(|| detect::of_folder(&mut source));
            let origin = origin.ok_or_else(|| {
                let what = format!("there is no configuration in `{shown}`: name the file");
                ImportError::shape(what)
            })?;
            let documents = documents.as_deref();
            (origin, of_folder(origin, &shown, documents, &mut source, &mut notes))
        }
    };
    let mut draft = match made {
        Ok(draft) => draft,
        // What was found out until then says why.
        Err(ImportError::Shape { what, .. }) => return Err(ImportError::Shape { what, notes }),
        Err(error) => return Err(error),
    };
    let held = LazyCell::new(|| words_of(&source));
    let is_held = |text: &str| held.contains(&words(text));
    beside::name_from_root(&mut draft, &suite_folder, source.root());
    let place = check::Place { folder: &suite_folder, root: source.root(), is_held: &is_held };
    let left = inputs::unheard(|| check::settle(&mut draft, &mut notes, &place));
    if let Some(first) = left.map_err(failed)?.first() {
        let what = format!("what it says makes no suite that can be run: {first}");
        return Err(ImportError::Shape { what, notes });
    }
    if draft.runners.is_empty() {
        let what = "nothing of it can be run".to_owned();
        return Err(ImportError::Shape { what, notes });
    }
    beside::copy(&mut draft, source.root());
    comment_losses(&mut draft, &notes);
    let files = source.files().map(Path::to_owned).collect();
    let config = name.map_or_else(|| source.root().to_owned(), |it| source.root().join(it));
    Ok(Outcome { origin, draft, notes, files, config, suite_folder })
}

/// All that was read, as [`words`].
fn words_of(source: &Source) -> String {
    let read = |path| bounded::read_bytes(path, source::LARGEST_FILE).unwrap_or_default();
    let texts = source.files().map(|path| words(&String::from_utf8_lossy(&read(path))));
    texts.collect::<Vec<_>>().join("\n")
}

/// A text without what files write in several ways: blanks, quotes and what escapes them.
fn words(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\'' | '\\')).collect()
}

/// Says in the suite what is not in it.
fn comment_losses(draft: &mut Draft, notes: &Notes) {
    const MOST: usize = 50;
    let losses = notes.iter().filter(|it| it.lost).count();
    if losses == 0 {
        return;
    }
    draft.comments.push("\nNot carried over:".to_owned());
    let lost = notes.iter().filter(|it| it.lost).take(MOST);
    draft.comments.extend(lost.map(|it| format!("- {}: {}{}", it.at, it.what, it.elsewhere())));
    if losses > MOST {
        draft.comments.push(format!("- and {} more", losses - MOST));
    }
}

/// The tool that a file comes from that was named as a suite; none if it is a suite, or none that is known.
pub fn foreign(path: &Path) -> Option<Origin> {
    let Located { folder, name } = located(path).ok()?;
    let mut source = Source::new(&folder, false).ok()?;
    detect::of_suite(&mut source, &name?)
}

/// What is wrong with a file that no tool is known to write.
fn unknown(name: &str, root: &Node, wrong: &[Unreadable]) -> ImportError {
    if let Some(first) = wrong.first() {
        return ImportError::shape(first.to_string());
    }
    let is_empty = match &root.value {
        NodeValue::Null => true,
        NodeValue::Array(items) => items.is_empty(),
        NodeValue::Object(entries) => entries.is_empty(),
        NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => false,
    };
    if is_empty {
        return ImportError::shape(format!("`{name}` has nothing in it that could be imported"));
    }
    let only = root.items().first().map_or(&[][..], Node::entries);
    if let [only] = only
        && let Some(mark) = [';', '\t'].into_iter().find(|it| only.key.contains(*it))
    {
        let mark = if mark == ';' { "semicolons" } else { "tabs" };
        return ImportError::shape(format!(
            "`{name}` has {mark} between its columns: write it with commas"
        ));
    }
    let known = Origin::ALL.map(Origin::as_str).join(", ");
    ImportError::shape(format!(
        "`{name}` looks like none of the tools that can be imported: say which with --from ({known})"
    ))
}

/// Imports one file.
fn of_file(
    origin: Origin,
    root: Node,
    name: &str,
    documents: Option<&Path>,
    source: &mut Source,
    notes: &mut Notes,
) -> Result<Draft, ImportError> {
    match origin {
        Origin::Promptfoo => promptfoo::import(root, name, source, notes),
        Origin::LmEval => lm_eval::import(Some(name), documents, source, notes),
        Origin::OpenaiEvals => openai_evals::import(Some(name), documents, source, notes),
        Origin::Caro | Origin::Failproof | Origin::Artisan | Origin::DeepEval | Origin::Plain => {
            alone::import(origin, &root, name, source, notes)
        }
    }
}

/// Imports all files of a folder.
fn of_folder(
    origin: Origin,
    shown: &str,
    documents: Option<&Path>,
    source: &mut Source,
    notes: &mut Notes,
) -> Result<Draft, ImportError> {
    match origin {
        Origin::LmEval => lm_eval::import(None, documents, source, notes),
        Origin::OpenaiEvals => openai_evals::import(None, documents, source, notes),
        Origin::Promptfoo
        | Origin::Caro
        | Origin::Failproof
        | Origin::Artisan
        | Origin::DeepEval
        | Origin::Plain => {
            let what = format!("there is no configuration in `{shown}`: name the file");
            Err(ImportError::shape(what))
        }
    }
}

/// What a path means.
struct Located {
    /// The folder that may be read.
    folder: PathBuf,
    /// The file in it; none for all files of the folder.
    name: Option<String>,
}

fn located(path: &Path) -> Result<Located, ImportError> {
    if path.is_dir() {
        let name = detect::config_in(path).map(ToOwned::to_owned);
        return Ok(Located { folder: path.to_owned(), name });
    }
    let name = path.file_name().and_then(|it| it.to_str());
    let name =
        name.ok_or_else(|| ImportError::shape(format!("`{}` is no file", path.display())))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok(Located { folder: folder.to_owned(), name: Some(name.to_owned()) })
}

/// A file with OpenAI's evals, which name files of their registry. A file of another tool may be in a
/// folder of the same name, and has no business outside of it.
fn in_registry(path: &Path, from: Option<Origin>) -> Option<Located> {
    let (registry, name) = openai_evals::registry_of(path)?;
    let is_evals = match from {
        Some(origin) => origin == Origin::OpenaiEvals,
        None => {
            let Located { folder, name } = located(path).ok()?;
            let name = name?;
            let (root, _) = Source::new(&folder, false).ok()?.tree(&name).ok()?;
            detect::origin(&root, &name) == Some(Origin::OpenaiEvals)
        }
    };
    is_evals.then(|| Located { folder: registry.to_owned(), name: Some(name) })
}

/// Notes a part of a file that cannot be read.
pub(crate) fn note_unreadable(
    source: &Source,
    node: &Node,
    unreadable: &Unreadable,
    notes: &mut Notes,
) {
    match unreadable {
        Unreadable::Parse { at, what } => {
            notes.lost(
                at.clone(),
                format!("a line that cannot be read: {what}"),
                unreadable.advice(),
            );
        }
        Unreadable::Io { .. } | Unreadable::Outside { .. } => {
            notes.lost(source.at(&node.span), unreadable.to_string(), unreadable.advice());
        }
    }
}

/// The name of a backend that stands for one that nobody named.
pub(crate) const NOBODY: &str = "echo";

/// A backend for files that name none.
pub(crate) fn nobody(at: At, notes: &mut Notes) -> BackendDraft {
    let what = "no model is named: the backend `echo` repeats what it is asked";
    notes.assumed(at.clone(), what, "describe the model to ask under [backends]");
    let comments =
        vec!["Who is asked. `echo` repeats the question: name your model here.".to_owned()];
    BackendDraft { comments, ..BackendDraft::new(NOBODY, BackendKind::Echo, at) }
}

/// Whether a node is a list.
pub(crate) const fn is_list(node: &Node) -> bool {
    matches!(node.value, NodeValue::Array(_))
}

#[cfg(test)]
mod tests;
