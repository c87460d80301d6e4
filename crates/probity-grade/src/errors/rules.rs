//! The rules of the data files, compiled.

use std::{ops::Range, sync::LazyLock};

use probity_core::{criteria::CriteriaProblem, failure::ErrorKind, located::Step};
use serde::Deserialize;

use super::phrases::Phrases;

/// A file that comes with the program, compiled when its backend first fails.
type Builtin = (&'static str, LazyLock<RuleFile>);

/// The files that come with the program: a backend's name, and its rules.
static BUILTIN: [Builtin; 8] = [
    ("common", LazyLock::new(|| builtin(table!("common")))),
    ("azure", LazyLock::new(|| builtin(table!("azure")))),
    ("claude", LazyLock::new(|| builtin(table!("claude")))),
    ("codex", LazyLock::new(|| builtin(table!("codex")))),
    ("copilot", LazyLock::new(|| builtin(table!("copilot")))),
    ("gemini", LazyLock::new(|| builtin(table!("gemini")))),
    ("shell", LazyLock::new(|| builtin(table!("shell")))),
    ("spawn", LazyLock::new(|| builtin(table!("spawn")))),
];

fn builtin(file: FileText) -> RuleFile {
    RuleFile::compile(file).expect("the built-in rules are tested")
}

/// All rules: a user's own, each backend's, the common ones.
#[derive(Debug)]
pub(super) struct RuleSet {
    own: Option<RuleFile>,
}

/// What is known about an error when rules are asked.
pub(super) struct Facts<'t> {
    pub(super) text: &'t str,
    pub(super) status: Option<u16>,
    pub(super) exit_code: Option<i32>,
    /// Whether the words come from an error object.
    pub(super) structured: bool,
}

/// What a rule that matched says.
pub(super) struct Found {
    pub(super) kind: ErrorKind,
    pub(super) permanent: bool,
    /// Whether no wait that the service names can help.
    pub(super) firm: bool,
    /// Whether the rule is a user's own.
    pub(super) own: bool,
    /// The words in the text, if the rule is about words.
    pub(super) place: Option<Range<usize>>,
}

/// How a backend's program prints, for programs that print more than their errors.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Habits {
    /// How lines begin that alone say what went wrong, if there are any.
    pub(super) error_lines: Vec<String>,
    /// How lines begin that never say what went wrong.
    pub(super) other_lines: Vec<String>,
    /// How the line begins after which the prompt is printed, and nothing else but
    /// `error_lines` counts.
    pub(super) banner: Option<String>,
    /// How standard output begins when it is an error though the exit code is 0.
    pub(super) false_answers: Vec<String>,
}

impl RuleSet {
    pub(super) fn load(extra: Option<&str>, problems: &mut Vec<CriteriaProblem>) -> Option<Self> {
        match extra.map(RuleFile::parse_own).transpose() {
            Ok(own) => Some(Self { own }),
            Err(message) => {
                problems.push(CriteriaProblem {
                    path: vec![Step::Key("errors"), Step::Key("rules")],
                    code: "bad-error-rules",
                    message: format!("the error rules cannot be used: {message}"),
                    help: None,
                });
                None
            }
        }
    }

    /// How the backend's program prints.
    pub(super) fn habits(backend: Option<&str>) -> Option<&'static Habits> {
        of(backend).map(|file| &file.habits)
    }

    pub(super) fn first_match(&self, backend: Option<&str>, facts: &Facts<'_>) -> Option<Found> {
        let own = self.own.as_ref().and_then(|file| file.first_match(facts));
        let own = own.map(|found| Found { own: true, ..found });
        own.or_else(|| of(backend)?.first_match(facts))
            .or_else(|| of(Some("common"))?.first_match(facts))
    }
}

/// The rules of a backend; `Claude-CLI` and `claude` are the same.
fn of(backend: Option<&str>) -> Option<&'static RuleFile> {
    let name = backend?.trim();
    let suffix = name.len().checked_sub("-cli".len()).and_then(|at| name.split_at_checked(at));
    let name = match suffix {
        Some((program, suffix))
            if suffix.eq_ignore_ascii_case("-cli") || suffix.eq_ignore_ascii_case("_cli") =>
        {
            program
        }
        Some(_) | None => name,
    };
    BUILTIN.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, file)| &**file)
}

/// One file of rules, compiled.
#[derive(Debug)]
struct RuleFile {
    habits: Habits,
    rules: Vec<Rule>,
    phrases: Phrases,
    /// The rules that are about numbers alone.
    wordless: Vec<usize>,
}

#[derive(Debug)]
struct Rule {
    kind: ErrorKind,
    permanent: bool,
    firm: bool,
    plain: bool,
    status: Vec<u16>,
    exit: Vec<i32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    #[serde(default)]
    habits: Habits,
    #[serde(default)]
    rules: Vec<RuleText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    kind: ErrorKind,
    permanent: Option<bool>,
    #[serde(default)]
    firm: bool,
    #[serde(default)]
    plain: bool,
    #[serde(default)]
    any: Vec<String>,
    #[serde(default)]
    status: Vec<u16>,
    #[serde(default)]
    exit: Vec<i32>,
}

impl RuleFile {
    /// Rules of a user's own go for every backend, and habits are those of one.
    fn parse_own(text: &str) -> Result<Self, String> {
        let file = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let file = Self::compile(file)?;
        match file.habits == Habits::default() {
            true => Ok(file),
            false => Err("`habits` belong to a backend and cannot be changed here".to_owned()),
        }
    }

    fn compile(file: FileText) -> Result<Self, String> {
        let FileText { habits, rules: texts } = file;
        let mut phrases = Vec::new();
        let mut rules = Vec::with_capacity(texts.len());
        let mut wordless = Vec::new();
        for RuleText { kind, permanent, firm, plain, any, status, exit } in texts {
            if any.is_empty() && status.is_empty() && exit.is_empty() {
                return Err(format!(
                    "a rule for `{kind}` has neither `any` nor `status` nor `exit`"
                ));
            }
            let permanent = permanent.unwrap_or_else(|| kind.is_permanent());
            if any.is_empty() {
                wordless.push(rules.len());
            }
            phrases.extend(any.into_iter().map(|words| (rules.len(), words)));
            rules.push(Rule { kind, permanent, firm, plain, status, exit });
        }
        let phrases = Phrases::compile(phrases.into_iter())?;
        Ok(Self { habits, rules, phrases, wordless })
    }

    fn first_match(&self, facts: &Facts<'_>) -> Option<Found> {
        let admits = |at: usize| self.rules[at].admits(facts);
        let worded = self.phrases.first(facts.text, admits);
        let wordless = self.wordless.iter().copied().find(|at| admits(*at));
        let (at, place) = match (worded, wordless) {
            (Some((worded, place)), Some(wordless)) if worded < wordless => (worded, Some(place)),
            (_, Some(wordless)) => (wordless, None),
            (Some((worded, place)), None) => (worded, Some(place)),
            (None, None) => return None,
        };
        let rule = &self.rules[at];
        Some(Found {
            kind: rule.kind,
            permanent: rule.permanent,
            firm: rule.firm,
            own: false,
            place,
        })
    }
}

impl Rule {
    /// Whether everything that the rule states holds, its words apart.
    fn admits(&self, facts: &Facts<'_>) -> bool {
        (self.status.is_empty() || facts.status.is_some_and(|it| self.status.contains(&it)))
            && (self.exit.is_empty() || facts.exit_code.is_some_and(|it| self.exit.contains(&it)))
            && !(self.plain && (facts.structured || facts.status.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_rules_compile() {
        for (_, file) in &BUILTIN {
            assert!(!file.rules.is_empty());
        }
    }

    /// The common rules that are about words alone, each with its place.
    fn worded_rules() -> Vec<(usize, RuleText)> {
        let text = include_str!("../../data/errors/common.toml");
        let file: FileText = toml::from_str(text).expect("the common rules parse");
        let about_words = |(_, rule): &(usize, RuleText)| {
            !rule.any.is_empty() && rule.status.is_empty() && rule.exit.is_empty()
        };
        file.rules.into_iter().enumerate().filter(about_words).collect()
    }

    #[test]
    fn every_pattern_can_be_reached() {
        let common = of(Some("common")).expect("the common rules are built in");
        for (at, rule) in worded_rules() {
            for words in &rule.any {
                let text = words.trim_matches('*').replace('*', "x");
                let facts = Facts { text: &text, status: None, exit_code: None, structured: false };
                let found = common.phrases.first(&text, |it| common.rules[it].admits(&facts));
                let (found, _) = found.expect("a pattern matches itself");
                let (wanted, kind) = (rule.kind, common.rules[found].kind);
                assert_eq!(
                    found, at,
                    "`{words}` of a rule for {wanted} is taken by one for {kind}"
                );
            }
        }
    }

    #[test]
    fn no_pattern_is_written_twice() {
        let rules = worded_rules();
        let mut all: Vec<&String> = rules.iter().flat_map(|(_, rule)| &rule.any).collect();
        all.sort_unstable();
        for pair in all.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
    }

    #[test]
    fn a_rule_must_state_something() {
        assert!(RuleFile::parse_own("[[rules]]\nkind = \"auth\"\n").is_err());
        assert!(RuleFile::parse_own("[[rules]]\nkind = \"nonsense\"\nexit = [1]\n").is_err());
        assert!(RuleFile::parse_own("[[rules]]\nkind = \"auth\"\nexits = [1]\n").is_err());
        assert!(RuleFile::parse_own("[[rules]]\nkind = \"auth\"\nany = [\"*\"]\n").is_err());
    }

    #[test]
    fn a_program_is_known_by_both_of_its_names() {
        assert!(
            of(Some(" Claude-CLI "))
                .is_some_and(|file| std::ptr::eq(file, of(Some("claude")).unwrap()))
        );
        assert!(of(Some("gemini_cli")).is_some());
        assert!(of(Some("é-cl")).is_none());
        assert!(of(Some("nobody")).is_none());
    }
}
