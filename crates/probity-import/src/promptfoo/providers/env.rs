//! Which variables of the environment a piece of code names.

use std::collections::BTreeSet;

/// Names that every program sees anyway, or that nobody means.
const USUAL: &[&str] = &["PATH", "HOME", "LANG", "USER", "TMPDIR", "SHELL", "PWD"];

/// The variables that a text of Python, JavaScript or shell names.
pub(super) fn names_in(text: &str) -> Vec<String> {
    const MARKS: &[&str] =
        &["environ[", "environ.get(", "getenv(", "process.env.", "process.env[", "env.get("];
    let mut names = BTreeSet::new();
    for mark in MARKS {
        for (at, _) in text.match_indices(mark) {
            let rest = text[at + mark.len()..].trim_start().trim_start_matches(['"', '\'', '`']);
            let end =
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let name = &rest[..end];
            let is_name = name.len() > 1
                && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
                && !name.starts_with(|c: char| c.is_ascii_digit());
            if is_name && !USUAL.contains(&name) {
                names.insert(name.to_owned());
            }
        }
    }
    names.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_in_code() {
        let text = "k = os.environ['A_KEY']; os.getenv(\"B\", 1); process.env.C_2; os.environ.get(name); env.PATH";
        assert_eq!(names_in(text), ["A_KEY", "C_2"]);
    }
}
