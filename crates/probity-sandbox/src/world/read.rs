//! Worlds as files: TOML, every field known, every problem with its line.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::Error as _};

use super::{Content, File, Group, LineForm, USER, User, World, value};

/// What is wrong with the file of a world.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct ReadError {
    /// The file.
    pub file: String,
    /// The line, counted from one.
    pub line: usize,
    /// What is wrong; it names the field.
    pub message: String,
}

/// Reads a world; `file` is what problems call it.
pub fn read(file: &str, text: &str) -> Result<World, ReadError> {
    let problem = |at: usize, message: &str| ReadError {
        file: file.to_owned(),
        line: text[..at.min(text.len())].matches('\n').count() + 1,
        message: message.to_owned(),
    };
    let raw: RawWorld = toml::from_str(text)
        .map_err(|error| problem(error.span().map_or(0, |it| it.start), error.message()))?;
    let RawWorld {
        name,
        about,
        odd,
        user,
        group,
        directory,
        variables,
        users,
        groups,
        files,
        setup,
        processes,
    } = raw;
    check_names(&user, group.as_deref(), &users, &groups).map_err(|it| problem(0, &it))?;
    if let Some(name) = variables.keys().find(|it| !is_variable(it)) {
        return Err(problem(0, &format!("`variables`: `{name}` is no name of a variable")));
    }
    if processes.len() > MOST_PROCESSES {
        let message = format!("`processes` has more than {MOST_PROCESSES} entries");
        return Err(problem(0, &message));
    }
    let mut made = Vec::with_capacity(files.len());
    let mut total = 0_u64;
    for spanned in files {
        let at = spanned.span().start;
        let file = spanned.into_inner().into_file().map_err(|message| problem(at, &message))?;
        total = total.saturating_add(room(&file.content));
        if total > MOST_BYTES {
            let message = format!(
                "`files`: with `{}` they are larger than {} MiB together",
                file.path,
                MOST_BYTES >> 20
            );
            return Err(problem(at, &message));
        }
        made.push(file);
    }
    let directory = directory.unwrap_or_else(|| format!("/home/{user}"));
    if !directory.starts_with('/') {
        return Err(problem(0, "`directory` has to begin with a slash"));
    }
    let group = group.unwrap_or_else(|| user.clone());
    Ok(World {
        name,
        about,
        odd,
        user,
        group,
        directory,
        variables,
        users,
        groups,
        files: made,
        setup,
        processes,
    })
}

/// Bytes of all files of a world together, without holes. Worlds are kept in memory.
const MOST_BYTES: u64 = 128 << 20;
/// The largest file with holes.
const LARGEST_SPARSE: u64 = 1 << 40;
/// What a generated line takes at most.
const LONGEST_LINE: u64 = 200;
/// Processes that run when a command starts. They count for the limit of processes that the command has.
const MOST_PROCESSES: usize = 16;

/// The room that a content takes.
fn room(content: &Content) -> u64 {
    match content {
        Content::Bytes(bytes) => bytes.len() as u64,
        Content::Noise { size, .. } => *size,
        Content::Lines { count, .. } => u64::from(*count) * LONGEST_LINE,
        Content::Sparse(_) | Content::Directory | Content::Link(_) | Content::Hard(_) => 0,
    }
}

/// Names stand in `/etc/passwd` and `/etc/group`, where some characters mean something.
fn check_names(
    user: &str,
    group: Option<&str>,
    users: &[User],
    groups: &[Group],
) -> Result<(), String> {
    let is_name = |it: &str| {
        let fits = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-' | '.' | '$');
        !it.is_empty() && it.len() <= 64 && !it.starts_with('-') && it.chars().all(fits)
    };
    let own = [("user", Some(user)), ("group", group)];
    let own = own.into_iter().filter_map(|(field, name)| Some((field, name?)));
    let others = users.iter().map(|it| ("users", &*it.name));
    let more = groups.iter().flat_map(|it| {
        let members = it.members.iter().map(String::as_str);
        members.chain([&*it.name]).map(|it| ("groups", it))
    });
    match own.chain(others).chain(more).find(|(_, name)| !is_name(name)) {
        Some((field, name)) => Err(format!("`{field}`: {name:?} is no name of a user or a group")),
        None => Ok(()),
    }
}

fn is_variable(name: &str) -> bool {
    let fits = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    name.bytes().all(fits) && name.bytes().next().is_some_and(|it| !it.is_ascii_digit())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWorld {
    name: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    odd: bool,
    #[serde(default = "user")]
    user: String,
    group: Option<String>,
    directory: Option<String>,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    #[serde(default)]
    users: Vec<User>,
    #[serde(default)]
    groups: Vec<Group>,
    #[serde(default)]
    files: Vec<toml::Spanned<RawFile>>,
    setup: Option<String>,
    #[serde(default)]
    processes: Vec<Vec<String>>,
}

fn user() -> String {
    USER.to_owned()
}

/// A file as it is written: one of the fields from `text` to `hard` says what there is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    path: String,
    text: Option<String>,
    base64: Option<String>,
    #[serde(default, deserialize_with = "size")]
    sparse: Option<u64>,
    #[serde(default, deserialize_with = "size")]
    noise: Option<u64>,
    lines: Option<LineForm>,
    directory: Option<bool>,
    link: Option<String>,
    hard: Option<String>,
    count: Option<u32>,
    seed: Option<u64>,
    #[serde(default, deserialize_with = "mode")]
    mode: Option<u32>,
    #[serde(default, deserialize_with = "age")]
    age: Option<i64>,
    #[serde(default, deserialize_with = "age")]
    accessed: Option<i64>,
}

impl RawFile {
    fn into_file(self) -> Result<File, String> {
        let Self {
            path,
            text,
            base64,
            sparse,
            noise,
            lines,
            directory,
            link,
            hard,
            count,
            seed,
            mode,
            age,
            accessed,
        } = self;
        if path.is_empty() || path.split('/').any(|it| it == "..") {
            return Err(format!("`path`: `{path}` has to lie in the world"));
        }
        if sparse.is_some_and(|it| it > LARGEST_SPARSE) {
            return Err(format!(
                "`sparse`: `{path}` can have {} GiB at most",
                LARGEST_SPARSE >> 30
            ));
        }
        let needs_seed = noise.is_some() || lines.is_some();
        if seed.is_some() && !needs_seed {
            return Err("`seed` is for `noise` and `lines`".to_owned());
        }
        if count.is_some() != lines.is_some() {
            return Err("`count` and `lines` belong together".to_owned());
        }
        let seed = seed.unwrap_or(1);
        let bytes = base64
            .map(|it| {
                data_encoding::BASE64
                    .decode(it.as_bytes())
                    .map_err(|error| format!("`base64`: {error}"))
            })
            .transpose()?;
        let mut given = [
            text.map(Content::text),
            bytes.map(Content::Bytes),
            sparse.map(Content::Sparse),
            noise.map(|size| Content::Noise { size, seed }),
            lines.map(|form| Content::Lines { form, count: count.unwrap_or_default(), seed }),
            directory.filter(|it| *it).map(|_| Content::Directory),
            link.map(Content::Link),
            hard.map(Content::Hard),
        ]
        .into_iter()
        .flatten();
        let content = given.next().unwrap_or(Content::Bytes(Vec::new()));
        if given.next().is_some() {
            return Err(format!(
                "`{path}` can have only one of `text`, `base64`, `sparse`, `noise`, `lines`, `directory`, `link`, `hard`"
            ));
        }
        Ok(File { path, content, mode, age, accessed })
    }
}

fn parsed<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: fn(&str) -> Option<T>,
    wanted: &str,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).map(Some).ok_or_else(|| D::Error::custom(format!("`{text}` is not {wanted}")))
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    parsed(deserializer, value::size, "a size such as `10k`")
}

fn mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    parsed(deserializer, value::mode, "a mode such as `0644`")
}

fn age<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    parsed(deserializer, value::age, "an age such as `3d`")
}
