//! Documents of a task: local files that it names, or files that the user has exported.

use std::path::{Path, PathBuf};

use probity_core::located::Node;

use super::{fields::Document, task::Data};
use crate::{
    note::{At, Notes},
    note_unreadable,
    source::{Source, Unreadable},
};

/// The folder that exported documents are looked for in.
const FOLDER: &str = "documents";
/// Suffixes of files with documents.
const SUFFIXES: &[&str] = &["jsonl", "json", "csv"];

/// A document, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) document: Document,
    pub(super) at: At,
}

/// Where the user has put documents.
#[derive(Clone, Debug)]
pub(super) struct Given<'a> {
    /// A file, or a folder.
    pub(super) path: Option<&'a Path>,
}

impl Given<'_> {
    /// The documents of a split of a task; none if there are none, which is noted.
    pub(super) fn rows(
        &self,
        task: &str,
        data: &Data,
        split: &str,
        source: &mut Source,
        notes: &mut Notes,
    ) -> Option<Vec<Row>> {
        let is_asked = split == data.split;
        let named = self.exported(task, split, is_asked, source);
        let files = match named {
            Some(file) => vec![file],
            None => own_files(data, split, is_asked),
        };
        if files.is_empty() {
            note_missing(task, data, split, notes);
            return None;
        }
        let mut rows = Vec::new();
        for file in &files {
            match source.tree(file) {
                Ok((root, wrong)) => {
                    for error in &wrong {
                        note_unreadable(source, &root, error, notes);
                    }
                    rows.extend(root.items().iter().map(|it| row(it, source)));
                }
                Err(error) => {
                    let what = format!("the documents of split `{split}`: {error}");
                    let at = match &error {
                        Unreadable::Parse { at, .. } => at.clone(),
                        Unreadable::Io { .. } | Unreadable::Outside { .. } => data.at.clone(),
                    };
                    notes.lost(at, what, error.advice());
                    return None;
                }
            }
        }
        Some(rows)
    }

    /// The file that was exported for a split.
    fn exported(&self, task: &str, split: &str, is_asked: bool, source: &Source) -> Option<String> {
        let mut folders: Vec<PathBuf> = vec![PathBuf::from(FOLDER)];
        match self.path {
            Some(path) if path.is_dir() => folders.insert(0, path.to_owned()),
            Some(path) if is_asked => return path.to_str().map(ToOwned::to_owned),
            Some(_) | None => {}
        }
        let stems = [format!("{task}/{split}"), task.to_owned(), split.to_owned()];
        let stems = stems.iter().filter(|it| is_asked || *it != task);
        let names = stems.flat_map(|stem| SUFFIXES.iter().map(move |it| format!("{stem}.{it}")));
        let names: Vec<String> = names.collect();
        let paths = folders.iter().flat_map(|folder| names.iter().map(|it| folder.join(it)));
        let paths = paths.filter_map(|it| it.to_str().map(ToOwned::to_owned));
        paths.into_iter().find(|it| source.has_file(it))
    }
}

/// The files that the task itself names.
fn own_files(data: &Data, split: &str, is_asked: bool) -> Vec<String> {
    if !matches!(data.path.as_str(), "json" | "csv") {
        return Vec::new();
    }
    let is_wanted = |of: &Option<String>| match of {
        Some(of) => of == split,
        // Files without a split are the one that there is.
        None => is_asked || split == "train",
    };
    data.files.iter().filter(|(of, _)| is_wanted(of)).map(|it| it.1.clone()).collect()
}

fn row(node: &Node, source: &Source) -> Row {
    let document = node.entries().iter().map(|it| (it.key.clone(), it.node.to_json())).collect();
    Row { document, at: source.at(&node.span) }
}

fn note_missing(task: &str, data: &Data, split: &str, notes: &mut Notes) {
    let Data { path, config, is_made, .. } = data;
    let config = config.as_deref().unwrap_or_default();
    let shown = [path.as_str(), config].join(" ");
    let what = format!(
        "the documents of task `{task}`, split `{split}` of `{}`, are not here",
        shown.trim()
    );
    let is_plain = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "/-_. ".contains(c));
    let file = format!("{FOLDER}/{task}/{split}.jsonl");
    let advice = if *is_made
        || path.is_empty()
        || ![path, config, split, task].iter().all(|it| is_plain(it))
    {
        format!("write them to {file} with the script in docs/coming-from/lm-eval.md")
    } else {
        let config = if config.is_empty() { String::new() } else { format!("'{config}', ") };
        format!(
            "python -c \"from datasets import load_dataset as load; load('{path}', {config}split='{split}')\
             .to_json('{file}')\""
        )
    };
    notes.lost(data.at.clone(), what, advice);
}
