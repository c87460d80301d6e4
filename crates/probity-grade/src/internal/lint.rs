//! What a dataset may hold and probably should not: near-duplicates, secrets, other
//! people's home folders, text that was encoded twice.

mod duplicates;
mod encoding;
mod labels;

use std::sync::LazyLock;

use probity_core::case::TestCase;
use regex::Regex;

use crate::policy::Policies;
use duplicates::Prompts;

/// Something worth a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintFinding {
    /// A stable name for this kind of finding.
    pub code: &'static str,
    /// The case it is about.
    pub case_id: String,
    /// One sentence, lower case, no final period.
    pub message: String,
}

/// Looks at cases one after the other.
#[derive(Debug, Default)]
pub struct Lint {
    findings: Vec<LintFinding>,
    prompts: Prompts,
}

impl Lint {
    /// Looks at one case.
    pub fn add(&mut self, case: &TestCase) {
        for (field, text) in texts(case) {
            for (code, what) in text_findings(&text) {
                self.found(code, case, format!("`{field}` {what}"));
            }
        }
        for (code, what) in labels::findings(case) {
            self.found(code, case, what);
        }
        if !case.has_criteria() {
            self.found("no-criterion", case, "nothing says when a reply is right".to_owned());
        }
        if !case.prompt.is_empty() {
            self.prompts.add(&case.id, &case.prompt);
        }
    }

    /// Everything found, in the order of the cases; near-duplicates last.
    pub fn finish(self) -> Vec<LintFinding> {
        let Self { mut findings, prompts } = self;
        findings.extend(prompts.near_duplicates().into_iter().map(|pair| LintFinding {
            code: "near-duplicate",
            case_id: pair.later,
            message: format!("the prompt is nearly that of `{}`", pair.earlier),
        }));
        findings
    }

    fn found(&mut self, code: &'static str, case: &TestCase, message: String) {
        self.findings.push(LintFinding { code, case_id: case.id.clone(), message });
    }
}

/// The texts of a case that a person wrote.
fn texts(case: &TestCase) -> Vec<(&'static str, String)> {
    let mut texts = vec![("prompt", case.prompt.as_ref().to_owned())];
    let optional = [
        ("system", &case.system),
        ("notes", &case.notes),
        ("expected_command", &case.expected_command),
    ];
    texts.extend(optional.into_iter().filter_map(|(name, text)| Some((name, text.clone()?))));
    texts.extend(case.expected_commands.iter().map(|it| ("expected_commands", it.clone())));
    texts.extend(case.prompt_vars.values().map(|it| ("prompt_vars", plain(it))));
    texts.extend(case.criteria.expected_response.iter().map(|it| ("expected_response", plain(it))));
    texts
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn text_findings(text: &str) -> Vec<(&'static str, String)> {
    static HOME: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)([A-Za-z0-9._-]+)")
            .expect("a constant pattern")
    });
    const NOBODY: &[&str] = &[
        "user", "username", "user1", "user2", "me", "you", "name", "yourname", "someone", "test",
        "example", "ubuntu", "admin", "runner", "shared", "public", "default", "app",
    ];
    let mut found = Vec::new();
    if let Some(hit) = Policies::secrets().scan(text).first() {
        found.push(("secret", format!("holds what looks like a secret ({})", hit.rule)));
    }
    let owner =
        |it: &regex::Captures<'_>| it.get(1).map_or(String::new(), |it| it.as_str().to_owned());
    let somebody = HOME
        .captures_iter(text)
        .map(|it| owner(&it))
        .find(|name| !NOBODY.contains(&name.to_lowercase().as_str()));
    if let Some(name) = somebody {
        found.push(("home-path", format!("names the home folder of `{name}`")));
    }
    if let Some(piece) = encoding::double_encoded(text) {
        found.push((
            "double-encoded",
            format!("was encoded twice: `{}` is `{}`", piece.is, piece.was),
        ));
    }
    if text.contains('\0') {
        found.push(("control-character", "holds a NUL character".to_owned()));
    }
    if text.contains('\u{feff}') {
        found.push(("byte-order-mark", "holds a byte order mark".to_owned()));
    }
    if text.contains("\r\n") {
        found.push(("line-ends", "has line ends of another system (CRLF)".to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(prompt: &str) -> Vec<&'static str> {
        text_findings(prompt).into_iter().map(|(code, _)| code).collect()
    }

    #[test]
    fn a_home_folder_of_somebody_is_named_and_one_of_nobody_is_not() {
        assert_eq!(codes("list /home/mkowalski/src"), ["home-path"]);
        assert_eq!(codes(r"dir C:\Users\Petra.K"), ["home-path"]);
        assert_eq!(codes("list /home/user/src"), [""; 0]);
    }

    #[test]
    fn text_that_was_encoded_twice_is_named() {
        assert_eq!(codes("donâ€™t"), ["double-encoded"]);
        assert_eq!(codes("don’t, café, naïve, 10 °C"), [""; 0]);
    }

    #[test]
    fn near_duplicates_name_the_earlier_case() {
        let mut lint = Lint::default();
        for (id, prompt) in
            [("a", "List all files here"), ("b", "Count lines"), ("c", "list ALL files, here!")]
        {
            let mut case =
                TestCase { id: id.to_owned(), prompt: prompt.into(), ..TestCase::default() };
            case.expected_command = Some("ls".to_owned());
            lint.add(&case);
        }
        let findings = lint.finish();
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].case_id, "c");
        assert!(findings[0].message.contains("`a`"));
    }

    #[test]
    fn labels_are_compared_with_what_we_judge() {
        let case = |command: &str, safe: bool, posix: bool| TestCase {
            id: "c".to_owned(),
            prompt: "p".into(),
            expected_command: Some(command.to_owned()),
            safe: Some(safe),
            posix_compliant: Some(posix),
            ..TestCase::default()
        };
        let found = |case: &TestCase| -> Vec<String> {
            let mut lint = Lint::default();
            lint.add(case);
            lint.finish().into_iter().map(|it| format!("{}: {}", it.code, it.message)).collect()
        };
        assert!(found(&case("ls -la", true, true)).is_empty());
        insta::assert_snapshot!(found(&case("rm -rf / && ls --color", true, true)).join("\n"), @"
        safety-label: `rm -rf / && ls --color` is labelled safe and judged unsafe (rm-root: A whole system directory or home directory is removed.)
        posix-label: `rm -rf / && ls --color` is labelled POSIX and judged not POSIX (long-option: `ls` of the standard has no long options, so no `--color`)
        ");
        insta::assert_snapshot!(found(&case("ls", false, false)).join("\n"), @"
        safety-label: `ls` is labelled unsafe and judged safe
        posix-label: `ls` is labelled not POSIX and judged POSIX
        ");
        insta::assert_snapshot!(found(&case("ls |", true, true)).join("\n"), @"unparsable-command: `ls |` cannot be read as shell: expected command after |");
        insta::assert_snapshot!(found(&case("rm -rf / \"", true, true)).join("\n"), @r#"
        unparsable-command: `rm -rf / "` cannot be read as shell: syntax error: unterminated double quote
        safety-label: `rm -rf / "` is labelled safe and judged unsafe (rm-root: A whole system directory or home directory is removed.)
        "#);
    }
}
