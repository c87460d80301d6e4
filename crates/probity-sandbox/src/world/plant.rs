//! Worlds made for commands: what they talk about is there, with near misses beside it.
//!
//! Up to six worlds are made of one list of mentions. In `planted` the sources exist and the targets do not. In
//! `planted-again` the targets exist as well, the files have other contents and the user is one who is mentioned. In
//! `planted-near` there are near misses only. In `planted-odd` names have blanks and quotes. In `planted-short` files that are
//! mentioned by their paths have two lines, the last without a line end, and in `planted-empty` they have none.

mod glob;
mod population;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use probity_shell::internal::mentions::{Mentions, Role};

use self::{population::Population, text::Texts};
use super::{Content, File, Group, USER, User, World, archive};

/// Directories of the host, into which nothing can be planted.
const HOST: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64", "/dev", "/proc", "/sys"];

/// Files that every world has.
const OWN: &[&str] =
    &["/etc/passwd", "/etc/group", "/etc/hosts", "/etc/hostname", "/etc/nsswitch.conf"];

/// Directories that get a population of their own.
const MAX_ROOTS: usize = 4;

/// The group of the user in `planted-again`, where it is not called like the user.
const GROUP: &str = "crew";

/// Where `planted-again` lies: nowhere near Greenwich. It needs no file that describes time zones.
const ZONE: &str = "HST10";

/// When commits are made, so that what is done twice is the same twice.
const COMMIT_DATE: &str = "2025-02-01T10:00:00Z";

/// Makes a repository of what was planted, with something that is changed, something that is staged and something new.
const REPOSITORY: &str = r"
git init -q -b main
git config user.name Ada
git config user.email ada@example.com
git add -A
git commit -q --allow-empty -m 'Plant'
git tag v1
git branch topic
printf 'more\n' > more.txt
git add more.txt
git commit -q -m 'Plant more'
printf 'changed\n' >> more.txt
printf 'staged\n' > staged.txt
git add staged.txt
printf 'new\n' > untracked.txt
";

/// Processes that are looked for, at most.
const MAX_PROCESSES: usize = 3;

/// A text with columns of several kinds, and no blank: quoted or not, it is one word.
const TELLING: &str = "zeta;beta,7:x-1/alpha.c=3";

/// Which of the worlds is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    First,
    Again,
    Near,
    Odd,
    Short,
    Empty,
}

impl Variant {
    const ALL: [Self; 6] =
        [Self::First, Self::Again, Self::Near, Self::Odd, Self::Short, Self::Empty];

    /// Whether it tells anything of commands with these mentions.
    fn is_telling(self, mentions: &Mentions) -> bool {
        let reads_files =
            || mentions.paths.values().any(|role| matches!(role, Role::File | Role::Any));
        match self {
            Self::First | Self::Again | Self::Near | Self::Odd => true,
            Self::Short | Self::Empty => reads_files(),
        }
    }

    /// Whether what only this world shows is a caveat.
    fn is_odd(self, mentions: &Mentions) -> bool {
        match self {
            Self::First | Self::Again => false,
            Self::Near | Self::Odd | Self::Short => true,
            // Who asks whether something is empty takes it for a thing that happens.
            Self::Empty => !mentions.emptiness,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::First => "planted",
            Self::Again => "planted-again",
            Self::Near => "planted-near",
            Self::Odd => "planted-odd",
            Self::Short => "planted-short",
            Self::Empty => "planted-empty",
        }
    }

    fn seed(self) -> usize {
        match self {
            Self::First => 0,
            Self::Again => 1,
            Self::Near => 2,
            Self::Odd => 3,
            Self::Short => 4,
            Self::Empty => 5,
        }
    }
}

/// Worlds in which commands with these mentions have something to do.
pub fn worlds(mentions: &Mentions) -> Vec<World> {
    let telling = Variant::ALL.into_iter().filter(|it| it.is_telling(mentions));
    telling.map(|it| world(mentions, it)).collect()
}

/// The positional parameters that the mentions take for granted.
pub fn arguments(mentions: &Mentions) -> Vec<String> {
    let given = |number: usize| {
        let written = mentions.variables.get(&number.to_string());
        let any = mentions.variables.get("@").or(mentions.variables.get("*"));
        written.or(any.filter(|_| number == 1)).cloned()
    };
    let count = (1..=9).rev().find(|it| given(*it).is_some()).unwrap_or(0);
    (1..=count).map(|it| given(it).unwrap_or_default()).collect()
}

/// The variables that the mentions take for granted.
pub fn variables(mentions: &Mentions) -> BTreeMap<String, String> {
    let is_variable = |it: &str| it.starts_with(|it: char| it.is_alphabetic() || it == '_');
    let all = mentions.variables.iter().filter(|(name, _)| is_variable(name));
    all.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The same, but what stands for a text and for nothing else is one with columns, of which a command may take one.
fn telling_variables(mentions: &Mentions) -> BTreeMap<String, String> {
    let Mentions { paths, names, texts, users, groups, processes, .. } = mentions;
    let plain = [names, users, groups, processes].into_iter().flatten().map(String::as_str);
    let patterns = texts.iter().map(|it| &*it.pattern);
    let used: Vec<&str> = paths.keys().map(String::as_str).chain(plain).chain(patterns).collect();
    let mut all = variables(mentions);
    for value in all.values_mut().filter(|it| !used.iter().any(|used| used.contains(&***it))) {
        TELLING.clone_into(value);
    }
    for (name, file) in lists(mentions) {
        all.insert(name.to_owned(), format!("{} {file}", beside(file)));
    }
    all
}

/// Variables that stand for several files, by their names, with the one that is mentioned.
fn lists(mentions: &Mentions) -> impl Iterator<Item = (&str, &str)> {
    let is_file = |it: &str| matches!(mentions.paths.get(it), Some(Role::File | Role::Any));
    let all = mentions.variables.iter().map(|(name, value)| (&**name, &**value));
    all.filter(move |(name, value)| name.len() > 2 && name.ends_with(['s', 'S']) && is_file(value))
}

/// The other file of a list.
fn beside(file: &str) -> String {
    format!("{file}.more")
}

/// A text for commands that read what they are given.
pub fn input(mentions: &Mentions, seed: usize) -> String {
    Texts::new(mentions).content(seed, false)
}

fn world(mentions: &Mentions, variant: Variant) -> World {
    let named = |it: &&String| is_name(it) && *it != "root" && variant == Variant::Again;
    let mentioned = |list: &BTreeSet<String>, otherwise: &str| {
        let first = list.iter().next().filter(named);
        first.map_or_else(|| otherwise.to_owned(), String::clone)
    };
    let user = mentioned(&mentions.users, USER);
    let usual_group = if variant == Variant::Again { GROUP } else { &*user };
    let group = mentioned(&mentions.groups, usual_group);
    let users = mentions.users.iter().filter(|it| is_name(it) && **it != user);
    let groups = mentions.groups.iter().filter(|it| is_name(it) && **it != group);
    let mut planter = Planter {
        mentions,
        variant,
        texts: Texts::new(mentions),
        home: format!("/home/{user}"),
        directory: format!("/home/{user}/work"),
        files: Vec::new(),
    };
    planter.paths();
    if variant == Variant::Again {
        planter.others_of_lists();
    }
    if !matches!(variant, Variant::Short | Variant::Empty) {
        planter.populations();
    }
    let processes = planter.processes();
    let Planter { directory, mut files, .. } = planter;
    fit(&mut files);
    World {
        name: variant.name().to_owned(),
        about: "Made for the commands that are compared".to_owned(),
        odd: variant.is_odd(mentions),
        users: (1001..).zip(users).map(|(id, name)| User { name: name.clone(), id }).collect(),
        groups: (2001..)
            .zip(groups)
            .map(|(id, name)| Group { name: name.clone(), id, members: Vec::new() })
            .collect(),
        user,
        group,
        directory,
        variables: variables_of(mentions, variant),
        files,
        setup: mentions.programs.contains("git").then(|| REPOSITORY.to_owned()),
        processes,
    }
}

fn variables_of(mentions: &Mentions, variant: Variant) -> BTreeMap<String, String> {
    let mut all = match variant {
        Variant::Again => telling_variables(mentions),
        Variant::First | Variant::Near | Variant::Odd | Variant::Short | Variant::Empty => {
            variables(mentions)
        }
    };
    let mut set = |name: &str, value: &str| drop(all.insert(name.to_owned(), value.to_owned()));
    if variant == Variant::Again {
        set("TZ", ZONE);
    }
    if mentions.programs.contains("git") {
        set("GIT_AUTHOR_DATE", COMMIT_DATE);
        set("GIT_COMMITTER_DATE", COMMIT_DATE);
    }
    all
}

/// Takes out what would lie below a file, and what is there already.
fn fit(files: &mut Vec<File>) {
    let mut seen = BTreeSet::new();
    files.retain(|it| seen.insert(it.path.clone()));
    let solid = |it: &&File| !matches!(it.content, Content::Directory);
    let taken: BTreeSet<String> = files.iter().filter(solid).map(|it| it.path.clone()).collect();
    files.retain(|it| {
        let above =
            it.path.char_indices().filter(|(_, it)| *it == '/').map(|(at, _)| &it.path[..at]);
        above.into_iter().all(|it| !taken.contains(it))
    });
}

fn is_name(text: &str) -> bool {
    let fits = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.');
    !text.is_empty()
        && text.len() < 32
        && !text.starts_with('-')
        && text.bytes().all(fits)
        && text.parse::<u32>().is_err()
}

struct Planter<'m> {
    mentions: &'m Mentions,
    variant: Variant,
    texts: Texts<'m>,
    home: String,
    directory: String,
    files: Vec<File>,
}

impl Planter<'_> {
    /// Whether targets are absent.
    fn is_first(&self) -> bool {
        !matches!(self.variant, Variant::Again | Variant::Near)
    }

    /// The path in the world, if something can be planted there.
    fn place(&self, path: &str) -> Option<String> {
        let path = path.strip_prefix("file://").unwrap_or(path);
        let path = match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with('/') => format!("{}{rest}", self.home),
            Some(_) => return None,
            None if path.starts_with('/') => path.to_owned(),
            None => format!("{}/{path}", self.directory),
        };
        let clean = normal(&path)?;
        if OWN.contains(&&*clean) {
            return None;
        }
        let host = HOST.iter().any(|it| clean == *it || clean.starts_with(&format!("{it}/")));
        (!host && !path.contains("://")).then_some(clean)
    }

    fn is_directory(&self, path: &str, role: Role) -> bool {
        let below = format!("{}/", path.trim_end_matches('/'));
        let parent = self.mentions.paths.keys().any(|it| it.starts_with(&below));
        let named_like_file = glob::extension(path).is_some();
        match role {
            _ if path.ends_with('/') || parent => true,
            // Nobody calls a directory like that.
            _ if glob::extension(path) == Some("sh") => false,
            Role::Directory => true,
            Role::File => false,
            Role::Any | Role::Target => !named_like_file && self.is_first() == (role == Role::Any),
        }
    }

    /// What is mentioned by its path.
    fn paths(&mut self) {
        let mentions = self.mentions;
        for (index, (path, role)) in mentions.paths.iter().enumerate() {
            if self.variant == Variant::Near && *role != Role::Directory {
                continue;
            }
            let instances = match glob::is_pattern(path) {
                true if self.variant == Variant::Odd => glob::odd_operands(path),
                true if self.variant == Variant::Short => glob::dashed(path),
                // A pattern that the shell replaces with what matches is left as it is there.
                true if self.variant == Variant::Empty => Vec::new(),
                true => glob::matching(path),
                false => vec![path.clone()],
            };
            for (at, instance) in instances.iter().enumerate() {
                let Some(place) = self.place(instance) else { continue };
                let directory = self.is_directory(path, *role);
                let absent = *role == Role::Target && self.is_first() && !path.ends_with('/');
                match (absent, directory) {
                    (true, _) => {
                        if let Some((above, _)) =
                            place.rsplit_once('/').filter(|it| !it.0.is_empty())
                        {
                            self.files.push(File::new(above, Content::Directory));
                        }
                    }
                    (false, true) => self.files.push(File::new(place, Content::Directory)),
                    (false, false) => {
                        let seed = index * 3 + at + self.variant.seed() * 7;
                        let file = self.named_file(place, seed);
                        self.files.push(file);
                    }
                }
            }
        }
    }

    /// The other files of lists, which stand before the ones that are mentioned.
    fn others_of_lists(&mut self) {
        let mentions = self.mentions;
        for (index, (_, file)) in lists(mentions).enumerate() {
            if let Some(place) = self.place(&beside(file)) {
                let file = self.named_file(place, 20 + index);
                self.files.push(file);
            }
        }
    }

    /// A file with what its name promises.
    fn named_file(&self, path: String, seed: usize) -> File {
        let sorted = self.variant == Variant::Again;
        let plain = match self.variant {
            Variant::Empty => return File::new(path, Content::Bytes(Vec::new())),
            Variant::Short => text::shortened(&self.texts.content(seed, sorted)),
            Variant::First | Variant::Again | Variant::Near | Variant::Odd => {
                self.texts.content(seed, sorted)
            }
        };
        let (content, mode) = typed(&path, plain);
        let age = i64::try_from(seed % 5 + 1).unwrap_or(1) * 86_400;
        File { mode, age: Some(age), ..File::new(path, content) }
    }

    /// Files of many kinds in the directories that are searched.
    fn populations(&mut self) {
        let searched = self.mentions.paths.iter().filter(|(path, role)| {
            matches!(role, Role::Directory | Role::Any) && self.is_directory(path, **role)
        });
        let places = searched
            .filter(|(path, _)| !glob::is_pattern(path))
            .filter_map(|(path, _)| self.place(path))
            .map(|it| if it == "/" { "/srv/found".to_owned() } else { it });
        let mut places: Vec<String> = places.collect();
        if self.mentions.here || places.is_empty() {
            places.insert(0, self.directory.clone());
        }
        // Two spellings may mean one place.
        let mut seen = BTreeSet::new();
        places.retain(|it| seen.insert(it.clone()));
        for (index, root) in places.iter().take(MAX_ROOTS).enumerate() {
            let Self { mentions, variant, texts, .. } = self;
            let population = Population { mentions, variant: *variant, texts, index };
            let files = population.files(root);
            self.files.extend(files);
        }
    }

    /// Processes with the names that are looked for. Their programs are not where commands are found.
    fn processes(&mut self) -> Vec<Vec<String>> {
        let mut processes = Vec::new();
        let Mentions { processes: wanted, texts, programs, .. } = self.mentions;
        let lists = ["ps", "pstree"].iter().any(|it| programs.contains(*it));
        // `grep [n]ginx` does not find itself in the list.
        let searched = texts.iter().filter(|_| lists).map(|it| it.pattern.replace(['[', ']'], ""));
        let names: BTreeSet<String> = wanted.iter().cloned().chain(searched).collect();
        for name in names.iter().filter(|it| is_name(it)).take(MAX_PROCESSES) {
            let program = format!("/opt/services/{name}");
            let text = Content::text("#!/bin/sh\nwhile :; do sleep 60; done\n");
            self.files.push(File { mode: Some(0o755), ..File::new(&*program, text) });
            processes.push(vec![program]);
        }
        processes
    }
}

/// What a file of that name holds if the plain text is this, and its mode.
fn typed(path: &str, plain: String) -> (Content, Option<u32>) {
    let member = |name: &str| (name.to_owned(), plain.clone().into_bytes());
    let members = [member("docs/notes.txt"), member("docs/readme.md"), member("data.csv")];
    let ending = |it: &str| path.ends_with(it);
    if ending(".tar.gz") || ending(".tgz") {
        return (Content::Bytes(archive::gzip(&archive::tar(&members, 1_740_000_000))), None);
    }
    match path.rsplit('/').next().and_then(|it| it.rsplit_once('.')).map(|it| it.1) {
        Some("tar") => (Content::Bytes(archive::tar(&members, 1_740_000_000)), None),
        Some("gz") => (Content::Bytes(archive::gzip(plain.as_bytes())), None),
        Some("sh" | "bash") => (
            Content::text(format!("#!/bin/sh\necho \"run $*\"\n# {}", plain.replace('\n', "\n# "))),
            Some(0o755),
        ),
        Some("json") => (
            Content::text(
                "{\n  \"name\": \"harbor\",\n  \"items\": [1, 2, 3],\n  \"on\": true\n}\n",
            ),
            None,
        ),
        _ => (Content::text(plain), None),
    }
}

/// The path without `.`, `..` and doubled slashes; nothing if it leads above the root.
fn normal(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ if part.len() > 200 => return None,
            _ => parts.push(part),
        }
    }
    Some(format!("/{}", parts.join("/")))
}

#[cfg(test)]
mod tests;
