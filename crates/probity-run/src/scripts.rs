//! JavaScript for grading: code of a dataset, or files of the suite's folder.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use probity_grade::internal::script::{Script, Scripts};
use probity_load::{bounded, function::split_name};
use probity_script::{Limits, required, run};
use serde_json::Value;

use crate::apart::apart;

/// Files of one script.
const MOST_FILES: usize = 64;
/// The largest of them, in bytes.
const LARGEST_FILE: u64 = 1 << 20;
const ENDINGS: [&str; 3] = ["js", "cjs", "mjs"];

/// Compiles JavaScript.
#[derive(Debug)]
pub struct JavaScript {
    /// Where paths start from: the first of them that has the file.
    folders: Vec<PathBuf>,
}

impl JavaScript {
    /// For the scripts of a suite in a folder.
    pub fn of(folder: &Path) -> Arc<Self> {
        Self::of_any([folder.to_owned()])
    }

    /// For scripts that are looked for in several folders, one after the other.
    pub fn of_any(folders: impl IntoIterator<Item = PathBuf>) -> Arc<Self> {
        Arc::new(Self { folders: folders.into_iter().collect() })
    }

    /// The folder that a path starts from.
    fn folder_of(&self, path: &str) -> &Path {
        let has_file = |folder: &&PathBuf| folder.join(path).is_file();
        let found = self.folders.iter().find(has_file).or(self.folders.first());
        found.map_or(Path::new(""), PathBuf::as_path)
    }
}

impl Scripts for JavaScript {
    fn compile(&self, source: &str) -> Result<Arc<dyn Script>, String> {
        let script = match source.trim().strip_prefix("file://") {
            None => probity_script::Script::inline(source),
            Some(named) => {
                let (path, wanted) = split_name(named);
                let files = read_files(self.folder_of(path), path)?;
                probity_script::Script::files(&files.texts, &files.entry, wanted)
            }
        };
        match script {
            Ok(script) => Ok(Arc::new(Compiled(script))),
            Err(problem) => Err(format!("the script cannot be compiled: {problem}")),
        }
    }

    fn check_file(&self, named: &str) -> Result<(), String> {
        let (path, _) = split_name(named);
        let found = bounded::find_named(self.folder_of(path), path);
        found.map(drop).map_err(|error| format!("`{path}` cannot be used: {error}"))
    }
}

#[derive(Debug)]
struct Compiled(probity_script::Script);

impl Script for Compiled {
    fn run(&self, output: &Value, context: &str) -> Result<Value, String> {
        let run = || run(&self.0, output, context, &Limits::default());
        let value = match self.0.is_quick(output, context) {
            true => run(),
            false => apart(run),
        };
        value.map_err(|error| error.to_string())
    }
}

/// The files of a script.
#[derive(Debug)]
pub struct Files {
    /// Their texts, by their path from the folder of the first of them.
    pub texts: BTreeMap<String, String>,
    /// The first of them.
    pub entry: String,
}

/// Reads a script and whatever it requires of its own folder. `root` is where its path starts from.
pub fn read_files(root: &Path, path: &str) -> Result<Files, String> {
    let path = Path::new(path);
    let ending = path.extension().and_then(|it| it.to_str()).unwrap_or("");
    if !ENDINGS.contains(&ending) {
        return Err(format!(
            "`{}` is not JavaScript: scripts end in .js, .cjs or .mjs; other languages are run by a \
             scorer of the suite",
            path.display()
        ));
    }
    let entry = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let own = path.parent().unwrap_or(Path::new(""));
    let folder = root.join(own);
    let read = |name: &str| {
        let named = own.join(name).to_string_lossy().into_owned();
        bounded::read_named_text(root, &named, LARGEST_FILE)
            .map_err(|error| format!("failed to read `{}`: {error}", folder.join(name).display()))
    };
    let mut texts = BTreeMap::from([(entry.clone(), read(&entry)?)]);
    let mut unread = vec![entry.clone()];
    while let Some(name) = unread.pop() {
        for wanted in required(&texts[&name]) {
            let Some(found) = resolve(&folder, &name, &wanted) else { continue };
            if texts.contains_key(&found) {
                continue;
            }
            if texts.len() >= MOST_FILES {
                return Err(format!("the script has more than {MOST_FILES} files"));
            }
            texts.insert(found.clone(), read(&found)?);
            unread.push(found);
        }
    }
    Ok(Files { texts, entry })
}

/// The file that is meant, from the folder of the script. One that is not there, or is outside the
/// folder, is told of when it is wanted.
fn resolve(folder: &Path, from: &str, wanted: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in Path::new(wanted).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    let joined = parts.join("/");
    let endings = ["", ".js", ".cjs", ".mjs", ".json", "/index.js"];
    endings.iter().map(|it| format!("{joined}{it}")).find(|it| folder.join(it).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_script_keeps_no_other_task_from_going_on() {
        let source = "let n = 0; for (let i = 0; i < 1000000; i++) n += i; return n > 0;";
        let script = JavaScript::of(Path::new(".")).compile(source).unwrap();
        let (ended, mut ends) = tokio::sync::mpsc::unbounded_channel();
        let other = ended.clone();
        let scripted = tokio::spawn(async move {
            tokio::spawn(async move { other.send("the other task").unwrap() });
            script.run(&Value::Null, "{}").unwrap();
            ended.send("the script").unwrap();
        });
        scripted.await.unwrap();
        assert_eq!(ends.recv().await, Some("the other task"));
    }

    #[test]
    fn files_of_the_same_folder_can_be_required_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        std::fs::create_dir_all(own.join("lib")).unwrap();
        std::fs::write(
            own.join("a.js"),
            "const b = require('./lib/b');\nmodule.exports = (o) => b(o);",
        )
        .unwrap();
        std::fs::write(own.join("lib/b.js"), "module.exports = (o) => o.length;").unwrap();
        std::fs::write(folder.path().join("up.js"), "module.exports = () => 'secret';").unwrap();
        std::fs::write(own.join("up.js"), "module.exports = require('../up.js');").unwrap();
        let scripts = JavaScript::of(folder.path());
        let run = |source: &str| scripts.compile(source)?.run(&Value::from("abc"), "{}");
        assert_eq!(run("file://own/a.js"), Ok(Value::from(3)));
        assert!(run("file://own/up.js").unwrap_err().contains("outside the folder"));
        assert!(run("file://own/none.js").unwrap_err().contains("failed to read"));
        let outside = folder.path().join("up.js");
        let scripts = JavaScript::of(&own);
        let up = scripts.compile(&format!("file://{}", outside.display()));
        assert!(up.unwrap_err().contains("outside the folder of the dataset or the suite"));
        assert!(scripts.check_file("../up.js").unwrap_err().contains("outside the folder"));
        assert!(scripts.check_file("a.js:named").is_ok());
        assert!(run("file://own/a.ts").unwrap_err().contains("not JavaScript"));
    }
}
