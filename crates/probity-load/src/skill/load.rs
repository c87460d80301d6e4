//! Reads skills from a folder.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Companion, Library, Skill};
use crate::{
    case::{Fields, Findings},
    dataset::parse_yaml,
    inputs,
};
use probity_core::problem::{Problem, Severity, Source};

/// How deep folders are looked into.
const DEEPEST: usize = 12;
/// The largest file that is read, in bytes.
const LARGEST: u64 = 4 << 20;
/// Files beside a skill that are read, at most.
const MOST_COMPANIONS: usize = 200;

/// Reads all skills below some folders. Every problem goes to `report`; with an error among them
/// there is no library.
pub fn load(folders: &[PathBuf], report: &mut dyn FnMut(Problem)) -> Option<Library> {
    let mut loader = Loader { skills: BTreeMap::new(), usable: true, report };
    for folder in folders {
        let before = loader.skills.len();
        match fs::metadata(folder) {
            Ok(found) if found.is_dir() => loader.folder(folder, 0),
            Ok(_) => loader.file_problem(folder, "it is not a folder"),
            Err(error) => loader.file_problem(folder, &error.to_string()),
        }
        if loader.usable && loader.skills.len() == before {
            loader.file_problem(folder, "there is no SKILL.md in it");
        }
    }
    let Loader { skills, usable, .. } = loader;
    usable.then_some(Library { skills })
}

struct Loader<'r> {
    skills: BTreeMap<String, Skill>,
    usable: bool,
    report: &'r mut dyn FnMut(Problem),
}

impl Loader<'_> {
    /// A folder with a `SKILL.md` is a skill; any other is looked into.
    fn folder(&mut self, folder: &Path, depth: usize) {
        let entries = match entries(folder) {
            Ok(entries) => entries,
            Err(error) => return self.file_problem(folder, &error.to_string()),
        };
        let main = entries.iter().find(|it| it.is_file && it.name.eq_ignore_ascii_case("SKILL.md"));
        if let Some(main) = main {
            let mut companions = Vec::new();
            add_companions(folder, "", &main.name, depth, &mut companions);
            let name = folder.canonicalize().ok();
            let name = name.as_deref().unwrap_or(folder).file_name();
            let name = name.map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
            return self.skill(&main.path, &name, companions);
        }
        for Found { path, name, is_file } in entries {
            let stem = name.strip_suffix(".md");
            match stem {
                Some(stem) if is_file && has_front_matter(&path) => {
                    self.skill(&path, stem, Vec::new());
                }
                _ if !is_file && depth < DEEPEST => self.folder(&path, depth + 1),
                Some(_) | None => {}
            }
        }
    }

    /// Reads one skill. `name` is what it is called unless it says so itself.
    fn skill(&mut self, path: &Path, name: &str, companions: Vec<Companion>) {
        let Some(text) = self.read(path) else { return };
        let file: Arc<str> = path.display().to_string().into();
        let Some((front, body)) = front_matter(&text) else {
            return self
                .file_problem(path, "it does not begin with front matter between lines of `---`");
        };
        let source = Source::part(front, 2);
        let mut findings = Findings::default();
        let mut skill = None;
        match parse_yaml(front) {
            Ok(root) => {
                if let Some(mut fields) = Fields::open(&root, "front matter", &mut findings) {
                    let id = fields.text("name").unwrap_or_else(|| name.to_owned());
                    if id.eq_ignore_ascii_case("none") {
                        let span = fields.span("name");
                        let message =
                            "a skill must not be called `none`, which stands for no skill";
                        fields.findings().error("bad-name", &span, message.to_owned());
                    }
                    let is_bad = |c: &char| c.is_whitespace() || c.is_control() || *c == '`';
                    if let Some(bad) = id.chars().find(is_bad) {
                        let span = fields.span("name");
                        let message =
                            format!("the name of a skill must not have the character {bad:?}");
                        fields.findings().error("bad-name", &span, message);
                    }
                    let description = fields.required_text("description").unwrap_or_default();
                    skill = Some(Skill {
                        id,
                        description,
                        body: body.into(),
                        bytes: text.len() as u64,
                        path: path.to_owned(),
                        companions,
                    });
                }
            }
            Err(error) => findings.error("yaml", &error.span, error.message),
        }
        self.usable &= !findings.any_error();
        for finding in findings.0 {
            (self.report)(finding.at(&file, &source));
        }
        let Some(skill) = skill else { return };
        match self.skills.entry(skill.id.clone()) {
            Entry::Vacant(slot) => {
                slot.insert(skill);
            }
            Entry::Occupied(slot) => {
                let (id, first) = (&skill.id, slot.get().path.display().to_string());
                let message = format!("the skill `{id}` is already there, in {first}");
                self.file_problem(path, &message);
            }
        }
    }

    fn read(&mut self, path: &Path) -> Option<String> {
        inputs::note(path);
        let read = fs::metadata(path).and_then(|found| match found.len() <= LARGEST {
            true => fs::read_to_string(path),
            false => Err(io::Error::other(format!("it is larger than {} MiB", LARGEST >> 20))),
        });
        match read {
            Ok(text) => Some(text.strip_prefix('\u{feff}').map(ToOwned::to_owned).unwrap_or(text)),
            Err(error) => {
                self.file_problem(path, &error.to_string());
                None
            }
        }
    }

    fn file_problem(&mut self, path: &Path, why: &str) {
        self.usable = false;
        (self.report)(Problem {
            severity: Severity::Error,
            code: "bad-skill",
            message: format!("failed to read the skill: {why}"),
            file: path.display().to_string().into(),
            place: None,
            case_id: None,
            help: None,
        });
    }
}

/// What lies beside a skill and is text. Links are not followed.
fn add_companions(
    folder: &Path,
    prefix: &str,
    main: &str,
    depth: usize,
    companions: &mut Vec<Companion>,
) {
    for Found { path, name, is_file } in entries(folder).unwrap_or_default() {
        let own = format!("{prefix}{name}");
        if !is_file {
            if depth < DEEPEST {
                add_companions(&path, &format!("{own}/"), main, depth + 1, companions);
            }
        } else if own != main && companions.len() < MOST_COMPANIONS {
            inputs::note(&path);
            let small = fs::metadata(&path).is_ok_and(|found| found.len() <= LARGEST);
            // What is not a text is nothing for a model that reads.
            let text = small.then(|| fs::read_to_string(&path).ok()).flatten();
            let is_text = |text: &String| !text.trim().is_empty() && !text.contains('\0');
            if let Some(text) = text.filter(is_text) {
                companions.push(Companion { name: own, text });
            }
        }
    }
}

/// A file or a folder.
struct Found {
    path: PathBuf,
    name: String,
    is_file: bool,
}

/// What is in a folder, by name; neither links nor what is hidden.
fn entries(folder: &Path) -> io::Result<Vec<Found>> {
    inputs::note(folder);
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if (kind.is_file() || kind.is_dir()) && !name.starts_with('.') {
            all.push(Found { path: entry.path(), name, is_file: kind.is_file() });
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

fn has_front_matter(path: &Path) -> bool {
    use io::Read as _;
    let mut beginning = [0; 7];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut beginning)).is_ok()
        && beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&beginning).starts_with(b"---")
}

/// The front matter and what follows it.
fn front_matter(text: &str) -> Option<(&str, &str)> {
    let start = text.find('\n').filter(|at| text[..*at].trim_end() == "---")? + 1;
    let mut at = start;
    for line in text[start..].split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&text[start..at], &text[at + line.len()..]));
        }
        at += line.len();
    }
    None
}
