//! `.env` files: variables that the environment of a process lacks.

use std::collections::BTreeMap;

/// `NAME=VALUE` lines; comments, `export` and quotes as shells have them. The error is
/// the number of a line that is none of these.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>, usize> {
    let mut variables = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').ok_or(at + 1)?;
        let name = name.trim();
        let sound = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(sound) {
            return Err(at + 1);
        }
        variables.insert(name.to_owned(), unquoted(value.trim()).ok_or(at + 1)?);
    }
    Ok(variables)
}

/// The value without its quotes; none if they do not end.
fn unquoted(value: &str) -> Option<String> {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote) {
            return inner.find(quote).map(|end| inner[..end].to_owned());
        }
    }
    // A comment begins after a blank.
    Some(value.split(" #").next().unwrap_or(value).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_shells_read_them() {
        let text = "# keys\nA=1\nexport B = two words # no\nC=\"x # y\"\nD='$HOME'\n\nE=\n";
        let read = parse(text).unwrap();
        let pairs: Vec<_> =
            read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            pairs,
            [("A", "1"), ("B", "two words"), ("C", "x # y"), ("D", "$HOME"), ("E", "")]
        );
        assert_eq!(parse("A=1\nnonsense"), Err(2));
        assert_eq!(parse("a b=1"), Err(1));
        assert_eq!(parse("A='x\nB=1"), Err(1));
    }
}
