//! The parts of a page: blocks, headings, links.

use std::{fs, sync::LazyLock};

use regex::Regex;

use super::root;

/// What a block may be written in.
const LANGUAGES: [&str; 17] = [
    "console",
    "csv",
    "html",
    "ini",
    "javascript",
    "json",
    "jsonl",
    "markdown",
    "pycon",
    "python",
    "rust",
    "sh",
    "sql",
    "text",
    "toml",
    "xml",
    "yaml",
];

pub(super) struct Page {
    /// From the root of the repository.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) blocks: Vec<Block>,
    pub(super) headings: Vec<Heading>,
    pub(super) links: Vec<Link>,
    problems: Vec<String>,
}

/// What stands between two fences.
pub(super) struct Block {
    pub(super) language: String,
    /// The comments right above it that are for the check.
    pub(super) directives: Vec<String>,
    /// The number of its first line.
    pub(super) line: usize,
    pub(super) indent: usize,
    pub(super) lines: Vec<String>,
}

impl Block {
    pub(super) fn text(&self) -> String {
        self.lines.iter().flat_map(|it| [it, "\n"]).collect()
    }

    /// What a directive of this name says.
    pub(super) fn says(&self, name: &str) -> Option<&str> {
        let of = |it: &'_ String| it.split_once(':').is_some_and(|(own, _)| own == name);
        let found = self.directives.iter().find(|it| of(it))?;
        found.split_once(':').map(|(_, rest)| rest.trim())
    }
}

pub(super) struct Heading {
    pub(super) level: usize,
    pub(super) anchor: String,
}

pub(super) struct Link {
    pub(super) line: usize,
    pub(super) target: String,
}

/// The directives that there are.
const DIRECTIVES: [&str; 7] = ["as", "file", "generated", "needs", "not checked", "not run", "run"];

impl Page {
    pub(super) fn read(name: &str) -> Self {
        Self::parse(name, &fs::read_to_string(root().join(name)).unwrap())
    }

    pub(super) fn parse(name: &str, text: &str) -> Self {
        let mut page = Self {
            name: name.to_owned(),
            text: text.to_owned(),
            blocks: Vec::new(),
            headings: Vec::new(),
            links: Vec::new(),
            problems: Vec::new(),
        };
        page.walk();
        page
    }

    pub(super) fn problems(&self) -> Vec<String> {
        self.problems.clone()
    }

    fn problem(&mut self, line: usize, what: &str) {
        self.problems.push(format!("{}:{line}: {what}", self.name));
    }

    fn walk(&mut self) {
        let text = self.text.clone();
        let lines: Vec<&str> = text.lines().collect();
        let mut directives = Vec::new();
        let mut in_list = false;
        // What stands between two blocks.
        let mut prose = String::new();
        let mut at = 0;
        while at < lines.len() {
            let line = lines[at];
            let trimmed = line.trim_start();
            let indent = line.len() - trimmed.len();
            let number = at + 1;
            at += 1;
            if trimmed.starts_with("<!--") {
                let mut comment = trimmed.to_owned();
                while !comment.contains("-->") && at < lines.len() {
                    comment = comment + "\n" + lines[at];
                    at += 1;
                }
                self.directive(number, &comment, &mut directives);
                continue;
            }
            let ticks = trimmed.chars().take_while(|it| *it == '`').count();
            if ticks >= 3 {
                let fence = &trimmed[..ticks];
                let language = trimmed[ticks..].trim().to_owned();
                let end = (at..lines.len()).find(|it| lines[*it].trim() == fence);
                let Some(end) = end else {
                    self.problem(number, "the block has no end");
                    return;
                };
                if !LANGUAGES.contains(&language.as_str()) {
                    let what = format!("`{language}` is no language of a block: {LANGUAGES:?}");
                    self.problem(number, &what);
                }
                let named = directives.iter().find_map(|it: &String| it.strip_prefix("file: "));
                if let Some(name) = named
                    && !prose.contains(&format!("`{name}`"))
                    && !lines[at].contains(name)
                {
                    self.problem(number, &format!("the reader does not see the name `{name}`"));
                }
                prose.clear();
                let own = lines[at..end].iter().map(|it| it.get(indent..).unwrap_or("").to_owned());
                self.blocks.push(Block {
                    language,
                    directives: std::mem::take(&mut directives),
                    line: at + 1,
                    indent,
                    lines: own.collect(),
                });
                at = end + 1;
                continue;
            }
            let is_item = trimmed.starts_with("- ")
                || trimmed.split_once(". ").is_some_and(|(it, _)| it.parse::<u8>().is_ok());
            if is_item {
                in_list = true;
            } else if indent == 0 && !trimmed.is_empty() {
                in_list = false;
            } else if indent >= 4 && !in_list {
                self.problem(number, "a block of code has fences and a language");
            }
            if !trimmed.is_empty() {
                let left: Vec<String> =
                    directives.drain(..).filter(|it: &String| !it.starts_with("run:")).collect();
                if let Some(left) = left.first() {
                    self.problem(number, &format!("`{left}` stands above no block"));
                }
            }
            prose = prose + line + "\n";
            self.heading(trimmed);
            self.links_of(number, line);
        }
    }

    fn directive(&mut self, line: usize, comment: &str, directives: &mut Vec<String>) {
        let inner = comment.trim().strip_prefix("<!--").and_then(|it| it.strip_suffix("-->"));
        let Some(inner) = inner.map(str::trim) else {
            return self.problem(line, "the comment does not end with its line");
        };
        // What has no colon is for somebody else.
        let Some((name, value)) = inner.split_once(':') else { return };
        if !DIRECTIVES.contains(&name) {
            return self.problem(line, &format!("`{name}` is none of {DIRECTIVES:?}"));
        }
        if value.trim().is_empty() {
            return self.problem(line, &format!("`{name}` has no reason or value"));
        }
        if name == "run" {
            // It stands for itself, and is carried out in its place.
            self.blocks.push(Block {
                language: "run".to_owned(),
                directives: Vec::new(),
                line,
                indent: 0,
                lines: value.trim().lines().map(ToOwned::to_owned).collect(),
            });
        } else if name != "generated" {
            directives.push(inner.to_owned());
        }
    }

    fn heading(&mut self, line: &str) {
        let level = line.chars().take_while(|it| *it == '#').count();
        let Some(title) = line.get(level..).and_then(|it| it.strip_prefix(' ')) else { return };
        if level == 0 {
            return;
        }
        let anchor = anchor(title);
        let same = self.headings.iter().filter(|it| it.anchor == anchor).count();
        let anchor = if same == 0 { anchor } else { format!("{anchor}-{same}") };
        self.headings.push(Heading { level, anchor });
    }

    fn links_of(&mut self, line: usize, text: &str) {
        static LINK: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"\]\(([^)\s]+)\)").expect("it is one"));
        // What stands in backticks is no link.
        let prose: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let found = LINK.captures_iter(&prose).map(|it| it.extract::<1>().1[0].to_owned());
        self.links.extend(found.map(|target| Link { line, target }));
    }
}

/// The anchor of a heading, as mdBook and GitHub make it.
fn anchor(title: &str) -> String {
    static LINK: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\[([^\]]*)\]\([^)]*\)").expect("it is one"));
    let title = LINK.replace_all(title.trim(), "$1");
    let kept = title.chars().filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|it| if it == ' ' { '-' } else { it }).collect()
}
