//! Which variables of the environment a piece of code names, with the modules beside it that it imports.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::Path,
};

use probity_load::{bounded, function::Language};

use crate::promptfoo::{Context, vars::within};

/// Names that every program sees anyway, or that nobody means.
const USUAL: &[&str] = &["PATH", "HOME", "LANG", "USER", "TMPDIR", "SHELL", "PWD"];

/// How many files of one piece of code are looked at.
const MOST_FILES: usize = 200;
/// The largest of them that is copied, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// The variables that a file names, or a file that it imports from the same folders.
pub(super) fn seen_by(path: &str, context: &mut Context<'_>) -> Vec<String> {
    let first = within("", path);
    let mut names = BTreeSet::new();
    let mut known = BTreeSet::from([first.clone()]);
    let mut waiting = VecDeque::from([first.clone()]);
    while let Some(file) = waiting.pop_front() {
        // What cannot be read names nothing that could be found.
        let Ok(read) = context.source.text_or_bytes(&file) else { continue };
        names.extend(names_in(&read.text));
        for candidates in imports_in(&read.text, &file, &first) {
            let found = candidates.into_iter().find(|it| context.source.has_file(it));
            if let Some(found) = found
                && known.len() < MOST_FILES
                && known.insert(found.clone())
            {
                waiting.push_back(found);
            }
        }
    }
    names.into_iter().collect()
}

/// A file of Python and the modules beside it that it imports, by their paths from a folder. None if the file
/// itself cannot be read.
pub(crate) fn python_files(root: &Path, path: &str) -> Option<BTreeMap<String, String>> {
    let first = within("", path);
    let read = |name: &str| bounded::read_named_text(root, name, LARGEST_FILE).ok();
    let mut files = BTreeMap::from([(first.clone(), read(&first)?)]);
    let mut waiting = VecDeque::from([first.clone()]);
    while let Some(file) = waiting.pop_front() {
        for candidates in imports_in(&files[&file], &file, &first) {
            let is_new = |it: &&String| !files.contains_key(*it);
            let is_there = |it: &&String| !it.starts_with("..") && root.join(it).is_file();
            let Some(found) = candidates.iter().find(is_there) else { continue };
            let Some(found) = Some(found).filter(is_new).cloned() else { continue };
            if files.len() < MOST_FILES
                && let Some(text) = read(&found)
            {
                files.insert(found.clone(), text);
                waiting.push_back(found);
            }
        }
    }
    Some(files)
}

/// The files that the imports of a file may mean, each as a list of candidates. `first` is the file that is
/// run: Python looks for modules in its folder.
fn imports_in(text: &str, file: &str, first: &str) -> Vec<Vec<String>> {
    match Language::of(file) {
        Some(Language::JavaScript) => {
            let names = relative_names(text);
            names.into_iter().map(|it| script_files(&within(folder_of(file), it))).collect()
        }
        Some(Language::Python) => {
            let modules = text.lines().flat_map(modules_in);
            modules.map(|it| module_files(&it, folder_of(file), folder_of(first))).collect()
        }
        None => Vec::new(),
    }
}

fn folder_of(file: &str) -> &str {
    Path::new(file).parent().and_then(Path::to_str).unwrap_or_default()
}

/// The texts in quotes that begin with `./` or `../` and follow `from`, `import` or `require`.
fn relative_names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for quote in ['"', '\'', '`'] {
        for start in ["./", "../"] {
            for (at, found) in text.match_indices(&format!("{quote}{start}")) {
                let before = text[..at].trim_end().trim_end_matches('(').trim_end();
                let is_import = ["from", "import", "require"].iter().any(|it| before.ends_with(it));
                let name = &text[at + 1..];
                if let Some(end) = name.find(quote).filter(|_| is_import && !found.is_empty()) {
                    names.push(&name[..end]);
                }
            }
        }
    }
    names
}

/// Where a module of JavaScript may be.
fn script_files(name: &str) -> Vec<String> {
    const SUFFIXES: &[&str] = &["js", "ts", "mjs", "cjs", "mts", "cts"];
    let mut files = vec![name.to_owned()];
    files.extend(SUFFIXES.iter().map(|it| format!("{name}.{it}")));
    files.extend(SUFFIXES.iter().map(|it| format!("{name}/index.{it}")));
    // TypeScript names a module by what it is compiled to.
    files.extend(name.strip_suffix(".js").map(|it| format!("{it}.ts")));
    files.extend(name.strip_suffix(".mjs").map(|it| format!("{it}.mts")));
    files
}

/// The modules that a line of Python imports, with the dots before them.
fn modules_in(line: &str) -> Vec<String> {
    let line = line.trim_start();
    if let Some(rest) = line.strip_prefix("import ") {
        let name = |it: &str| it.split_whitespace().next().unwrap_or_default().to_owned();
        return rest.split(',').map(name).filter(|it| !it.is_empty()).collect();
    }
    let Some((module, imported)) =
        line.strip_prefix("from ").and_then(|it| it.split_once(" import "))
    else {
        return Vec::new();
    };
    let module = module.trim();
    let inner = imported.split(['#']).next().unwrap_or_default();
    let inner = inner.split(',').filter_map(|it| {
        let name = it.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        let name = name.split_whitespace().next()?;
        let dot = if module.ends_with('.') { "" } else { "." };
        Some(format!("{module}{dot}{name}"))
    });
    std::iter::once(module.to_owned()).chain(inner).collect()
}

/// Where a module of Python may be: from the folder of the file, or from that of the file that is run.
fn module_files(module: &str, here: &str, first: &str) -> Vec<String> {
    let dots = module.len() - module.trim_start_matches('.').len();
    let path = module.trim_start_matches('.').replace('.', "/");
    let folders = match dots {
        0 => vec![first.to_owned(), here.to_owned()],
        dots => vec![within(here, &"../".repeat(dots - 1))],
    };
    let of = |folder: &String| {
        let name = within(folder, &path);
        [format!("{name}.py"), format!("{name}/__init__.py")]
    };
    folders.iter().flat_map(of).collect()
}

/// The variables that a text of Python, JavaScript or shell names.
pub(in crate::promptfoo) fn names_in(text: &str) -> Vec<String> {
    const MARKS: &[&str] =
        &["environ[", "environ.get(", "getenv(", "process.env.", "process.env[", "env.get("];
    let mut names = BTreeSet::new();
    for mark in MARKS {
        for (at, _) in text.match_indices(mark) {
            let rest = text[at + mark.len()..].trim_start().trim_start_matches(['"', '\'', '`']);
            let end =
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let name = &rest[..end];
            names.extend(usable(name));
        }
    }
    for (at, _) in text.match_indices("process.env") {
        names.extend(taken_apart(&text[..at]));
    }
    names.into_iter().collect()
}

/// A name that variables of the environment have.
fn usable(name: &str) -> Option<String> {
    let is_name = name.len() > 1
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    (is_name && !USUAL.contains(&name)).then(|| name.to_owned())
}

/// How far before `process.env` names are looked for that are taken out of it.
const FARTHEST: usize = 2000;

/// The names in `const { A, B: b } =` at the end of a text.
fn taken_apart(before: &str) -> Vec<String> {
    let before = &before[before.ceil_char_boundary(before.len().saturating_sub(FARTHEST))..];
    let inner = before.trim_end().strip_suffix('=').and_then(|it| it.trim_end().strip_suffix('}'));
    let Some((_, inner)) = inner.and_then(|it| it.rsplit_once('{')) else { return Vec::new() };
    let name = |it: &str| usable(it.split([':', '=']).next().unwrap_or_default().trim());
    inner.split(',').filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_in_code() {
        let text = "k = os.environ['A_KEY']; os.getenv(\"B\", 1); process.env.C_2; os.environ.get(name); env.PATH";
        assert_eq!(names_in(text), ["A_KEY", "C_2"]);
        assert_eq!(names_in("const { D_1, E_2: e = 'x' } = process.env;"), ["D_1", "E_2"]);
    }

    #[test]
    fn modules_beside_a_file_are_found() {
        let text = "const a = require('./a');\nimport b from \"../lib/b.js\";\nimport c from 'c';\nf('./d')";
        let found = imports_in(text, "src/p.js", "src/p.js");
        let has = |name: &str| found.iter().any(|it| it.iter().any(|it| it == name));
        assert!(has("src/a.js") && has("src/a/index.ts") && has("lib/b.js") && has("lib/b.ts"));
        assert_eq!(found.len(), 2, "{found:?}");
        let text = "from .keys import load\nfrom tools import client as c\nimport os, settings\n";
        let found = imports_in(text, "src/pkg/p.py", "src/run.py");
        let has = |name: &str| found.iter().any(|it| it.iter().any(|it| it == name));
        assert!(has("src/pkg/keys.py") && has("src/tools/client.py") && has("src/settings.py"));
    }
}
