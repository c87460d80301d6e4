//! How suites and datasets name functions of users: `FILE` or `FILE:FUNCTION`.

use std::path::Path;

/// What a file with functions is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Python.
    Python,
    /// JavaScript, or TypeScript where Node can run it.
    JavaScript,
}

impl Language {
    /// The language of a file, by its ending.
    pub fn of(path: &str) -> Option<Self> {
        match Path::new(path).extension()?.to_str()? {
            "py" => Some(Self::Python),
            "js" | "cjs" | "mjs" | "ts" | "cts" | "mts" => Some(Self::JavaScript),
            _ => None,
        }
    }
}

/// A path, and the function that is meant where the file has several: `file.js:name`.
pub fn split_name(named: &str) -> (&str, Option<&str>) {
    match named.rsplit_once(':') {
        Some((path, name)) if path.contains('.') && !name.contains('/') => (path, Some(name)),
        Some(_) | None => (named, None),
    }
}

/// The file and function of `file://prompt.py:name`. None for any other text.
pub fn in_file(text: &str) -> Option<&str> {
    text.trim().strip_prefix("file://").filter(|named| is_code(named))
}

/// Whether a file is one with functions.
pub fn is_code(named: &str) -> bool {
    Language::of(split_name(named).0).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_name_its_function() {
        assert_eq!(split_name("a/b.js:f"), ("a/b.js", Some("f")));
        assert_eq!(split_name("a/b.js"), ("a/b.js", None));
    }

    #[test]
    fn only_files_of_code_are_functions() {
        assert_eq!(in_file("file://a/b.py:f"), Some("a/b.py:f"));
        assert_eq!(in_file(" file://b.mjs"), Some("b.mjs"));
        assert_eq!(in_file("file://notes.txt"), None);
        assert_eq!(in_file("b.py"), None);
    }
}
