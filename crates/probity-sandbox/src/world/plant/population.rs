//! Files that a search tells apart: by name, depth, type, size, age, mode and text.

use probity_shell::internal::mentions::Mentions;

use super::{Variant, glob, text::Texts, typed};
use crate::world::{Content, File};

/// Names where no pattern asks for any.
const COMMON: &[&str] =
    &["notes.txt", "report.log", "Makefile", "main.c", ".settings", "README", "data.csv"];
const ODD: &[&str] = &["two words.txt", "über.md", "-dash", "it's"];
/// Sparse files are not larger.
const MAX_SIZE: u64 = 2 << 30;
/// Files of one population.
const MAX_FILES: usize = 110;
/// Patterns for names that are instantiated, at most.
const MAX_NAMES: usize = 24;
/// How deep files lie.
const DEPTHS: &[&str] = &["", "sub/", "sub/inner/", ".hidden/", "other/x/y/z/"];
/// The same where nothing lies on top: a pattern that the shell replaces with what matches is left as it is there.
const LOWER_DEPTHS: &[&str] = &["low/", "sub/", "sub/inner/", ".hidden/", "other/x/y/z/"];

/// What lives in one directory.
pub(super) struct Population<'m> {
    pub(super) mentions: &'m Mentions,
    pub(super) variant: Variant,
    pub(super) texts: &'m Texts<'m>,
    /// Which of the directories it is.
    pub(super) index: usize,
}

/// What a file is like beside its name.
#[derive(Clone, Copy, Default)]
struct Traits {
    size: Option<u64>,
    modified: Option<i64>,
    accessed: Option<i64>,
    mode: Option<u32>,
}

impl Population<'_> {
    pub(super) fn files(&self, root: &str) -> Vec<File> {
        let names = self.names();
        let traits = self.traits();
        let mut files = Vec::new();
        let mut number = self.index * 13 + self.variant.seed() * 5;
        let depths = if self.variant == Variant::Again { LOWER_DEPTHS } else { DEPTHS };
        let rounds = traits.len().max(depths.len());
        for round in 0..rounds {
            for (at, name) in names.iter().enumerate() {
                // The first names meet all traits; the others some.
                if at > 1 && round > 2 && (round + at) % 4 != 0 || files.len() >= MAX_FILES {
                    continue;
                }
                number += 1;
                let depth = depths[(round + at) % depths.len()];
                let again = round / depths.len();
                let folder = if again == 0 { String::new() } else { format!("r{again}/") };
                let odd = if self.variant == Variant::Odd { "odd folder/" } else { "" };
                let path = format!("{root}/{depth}{odd}{folder}{name}");
                files.push(self.file(path, number, traits[round % traits.len()]));
            }
        }
        files.extend(self.oddities(root, &names));
        files
    }

    fn names(&self) -> Vec<String> {
        let own = match self.variant {
            Variant::First | Variant::Again | Variant::Short | Variant::Empty => glob::matching,
            Variant::Near => glob::near,
            Variant::Odd => glob::odd,
        };
        let mut names: Vec<String> = Vec::new();
        // Patterns take turns, so that each is there however many there are.
        let patterns = || self.mentions.names.iter().take(MAX_NAMES).map(|it| clean(it));
        let lists: Vec<Vec<String>> = patterns().map(own).collect();
        for at in 0..4 {
            names.extend(lists.iter().filter_map(|it| it.get(at).cloned()));
        }
        let lists = ["find", "ls", "locate"].iter().any(|it| self.mentions.programs.contains(*it));
        if lists && self.mentions.programs.iter().any(|it| it.ends_with("grep")) {
            names.extend(self.texts.names());
        }
        if self.variant != Variant::Near {
            let misses = patterns().take(6).flat_map(glob::near);
            names.extend(misses);
        }
        if self.variant == Variant::Odd {
            names.extend(ODD.iter().map(|it| (*it).to_owned()));
        }
        let common = if names.is_empty() { COMMON } else { &COMMON[..3] };
        names.extend(common.iter().map(|it| (*it).to_owned()));
        let mut seen = Vec::new();
        names.retain(|it| {
            let fits =
                !it.is_empty() && it.len() < 180 && !seen.contains(it) && it != "." && it != "..";
            seen.push(it.clone());
            fits
        });
        names
    }

    /// All sizes with all ages with all modes, as far as there is room.
    fn traits(&self) -> Vec<Traits> {
        let Mentions { sizes, ages, modes, .. } = self.mentions;
        let around = |size: &u64| {
            [
                *size,
                size.saturating_sub(1),
                size.saturating_add(1),
                size.saturating_mul(2),
                size / 3,
            ]
            .map(|it| Some(it.min(MAX_SIZE)))
        };
        let mut sizes: Vec<Option<u64>> = sizes.iter().take(3).flat_map(around).collect();
        sizes.push(None);
        let mut times = vec![(None, None)];
        for age in ages.iter().take(3).filter_map(|it| i64::try_from(*it).ok()) {
            // A day counts once it is over; the middle of one is far from both of its ends.
            let unit = if age % 86_400 == 0 { 86_400 } else { 60 };
            let (young, same, old) = (age - unit / 2, age + unit / 2, age + unit + unit / 2);
            times.extend([
                (Some(old), Some(old)),
                (Some(young.max(1)), Some(young.max(1))),
                (Some(same), Some(same)),
                (Some(old), Some(young.max(1))),
                (Some(young.max(1)), Some(old)),
            ]);
        }
        let mut bits = vec![None];
        for mode in modes.iter().take(3) {
            bits.extend([Some(*mode | 0o400), Some(mode | 0o644), Some((mode & 0o555) | 0o400)]);
        }
        let mut all = Vec::new();
        let total = sizes.len() * times.len() * bits.len();
        for at in 0..total.min(48) {
            let (modified, accessed) = times[at % times.len()];
            let size = sizes[at / times.len() % sizes.len()];
            let mode = bits[at / (times.len() * sizes.len()) % bits.len()];
            all.push(Traits { size, modified, accessed, mode });
        }
        // Where the product is cut off, each mode is met once at least.
        all.extend(bits.iter().map(|mode| Traits { mode: *mode, ..Traits::default() }));
        all
    }

    fn file(&self, path: String, number: usize, traits: Traits) -> File {
        let Traits { size, modified, accessed, mode } = traits;
        let plain = self.texts.content(number, false);
        let (content, own_mode) = match size {
            Some(size) if size > 1 << 16 => (Content::Sparse(size), None),
            Some(size) => {
                let length = usize::try_from(size).unwrap_or(0);
                let bytes = plain.bytes().cycle().take(length).collect();
                (Content::Bytes(bytes), None)
            }
            None => typed(&path, plain),
        };
        let age = modified.unwrap_or_else(|| i64::try_from(number % 9).unwrap_or(1) * 40_000 + 100);
        let mut file = File::new(path, content);
        file.mode = mode.or(own_mode);
        file.age = Some(age);
        file.accessed = accessed;
        file
    }

    /// A directory that is called like a file is odd, unless somebody looks for one.
    fn may_be_directory(&self, name: &str) -> bool {
        self.variant == Variant::Odd
            || self.mentions.kinds.contains(&'d')
            || !name.contains('.') && !self.is_about_files()
    }

    /// One of the commands says that it is about files, and none that it is about directories.
    fn is_about_files(&self) -> bool {
        let kinds = &self.mentions.kinds;
        kinds.contains(&'f') && !kinds.contains(&'d')
    }

    /// Directories and links with the names of files, and what is empty.
    fn oddities(&self, root: &str, names: &[String]) -> Vec<File> {
        let mut files = Vec::new();
        let first = names.first().map_or("notes.txt", |it| &**it);
        // A mode that is mentioned shows only where it was another one before.
        let modes = self.mentions.modes.iter().take(2).flat_map(|it| [*it | 0o500, 0o700]);
        let odd = self.variant == Variant::Odd;
        for (at, name) in names.iter().take(3).enumerate() {
            if self.may_be_directory(name) {
                let inside = format!("{root}/folders/{name}/in/deep.txt");
                files.push(File::new(inside, Content::text("deep\n")));
            }
            if self.mentions.kinds.contains(&'d') {
                files.extend(["own", "own/two", "own/two/three"].map(|above| {
                    File::new(format!("{root}/{above}/{name}/deep.txt"), Content::text("deep\n"))
                }));
            }
            if odd || self.mentions.kinds.contains(&'l') {
                let target = format!("../sub/{first}");
                files.push(File::new(format!("{root}/links/{name}"), Content::Link(target)));
            }
            let packed = matches!(glob::extension(name), Some("gz" | "tgz" | "tar"));
            if odd || !packed {
                let empty = format!("{root}/empty/{at}/{name}");
                files.push(File::new(empty, Content::Bytes(Vec::new())));
            }
        }
        let changed = self.mentions.programs.contains("chmod");
        for (at, mode) in modes.enumerate().filter(|_| odd || changed || !self.is_about_files()) {
            let name = if self.may_be_directory(first) { first } else { "inside" };
            let directory = File::new(format!("{root}/moded{at}/{name}"), Content::Directory);
            files.push(File { mode: Some(mode), ..directory });
        }
        for age in self.mentions.ages.iter().take(2).filter_map(|it| i64::try_from(*it).ok()) {
            let directory = File::new(format!("{root}/aged{age}"), Content::Directory);
            files.push(File { age: Some(age * 2 + 90_000), ..directory });
        }
        files.extend(
            ["vacant", "sub/deeper/vacant"]
                .map(|it| File::new(format!("{root}/{it}"), Content::Directory)),
        );
        files.push(File::new(format!("{root}/links/broken"), Content::Link("nowhere".to_owned())));
        files.push(File::new(format!("{root}/links/folder"), Content::Link("../sub".to_owned())));
        files
    }
}

/// A pattern for whole paths as one for what is below a directory.
fn clean(pattern: &str) -> &str {
    pattern.trim_start_matches("./").trim_start_matches("*/").trim_matches('/')
}
