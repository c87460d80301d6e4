//! The folder that models are kept in.
//!
//! A file counts as a model when it has its own name, `NAME.gguf`. What is still being fetched has another
//! ending, and gets its name in one step when it is whole and its checksum is right.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use crate::catalogue;

/// The variable that names the folder.
pub const VARIABLE: &str = "PROBITY_MODELS";
/// What the files end with.
const ENDING: &str = ".gguf";
/// What files end with that are not whole yet.
pub(crate) const UNFINISHED: &str = ".part";
/// How deep folders are: the owner and the repository, and folders in it.
const DEPTH: usize = 5;

/// A folder of models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Models {
    folder: PathBuf,
}

/// A model that is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// What suites call it.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// Bytes of its file.
    pub bytes: u64,
    /// Whether it is only a part, which a pull would continue.
    pub is_unfinished: bool,
}

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    /// Nothing says where it is.
    #[error("it is not known where models are kept: neither `{VARIABLE}` nor `HOME` is set")]
    NoFolder,
    /// It cannot be read.
    #[error("failed to read the models in `{path}`")]
    Read {
        /// The folder.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file cannot be removed.
    #[error("failed to remove `{path}`")]
    Remove {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The model is not here.
    #[error("there is no model `{name}` in `{folder}`")]
    Absent {
        /// What was asked for.
        name: String,
        /// The folder.
        folder: PathBuf,
    },
    /// The name would lead elsewhere.
    #[error("`{name}` cannot be the name of a model")]
    BadName {
        /// The name.
        name: String,
    },
    /// Another process fetches a model.
    #[error("another process is fetching a model into `{folder}`")]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder cannot be made or locked.
    #[error("failed to write into the folder `{folder}`")]
    Write {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl ModelsError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoFolder => Some(format!("name a folder in `{VARIABLE}`")),
            Self::Absent { name, .. } | Self::BadName { name } if is_own_file(name) => {
                Some(format!("a file of yours is named with `file = \"{name}\"`"))
            }
            Self::Absent { name, .. } => Some(match catalogue::Wanted::parse(name) {
                Ok(_) => format!("get it with `probity model pull {name}`"),
                Err(_) => format!("`probity model pull` knows {}", catalogue::known_names()),
            }),
            Self::Busy { .. } => Some("wait for it, or end it".to_owned()),
            Self::Read { .. } | Self::Remove { .. } | Self::BadName { .. } | Self::Write { .. } => {
                None
            }
        }
    }
}

impl Models {
    /// Models in a folder.
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Where the environment says they are: `PROBITY_MODELS`, else `probity/models` in the user's cache.
    pub fn of(variables: &BTreeMap<OsString, OsString>) -> Result<Self, ModelsError> {
        let set = |name: &str| {
            variables.get(OsStr::new(name)).filter(|it| !it.is_empty()).map(PathBuf::from)
        };
        let cache = || {
            let named = set("XDG_CACHE_HOME").filter(|it| it.is_absolute());
            named.or_else(|| Some(set("HOME")?.join(".cache")))
        };
        let folder = set(VARIABLE).or_else(|| Some(cache()?.join("probity").join("models")));
        folder.map(|folder| Self { folder }).ok_or(ModelsError::NoFolder)
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file that a model of this name has, whether it is there or not.
    pub fn path(&self, name: &str) -> Result<PathBuf, ModelsError> {
        let is_sound =
            |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', '\0']);
        if !name.split('/').all(is_sound) {
            return Err(ModelsError::BadName { name: name.to_owned() });
        }
        let bare = name.strip_suffix(ENDING).unwrap_or(name);
        Ok(self.folder.join(format!("{bare}{ENDING}")))
    }

    /// The file of a model that is here.
    pub fn find(&self, name: &str) -> Result<PathBuf, ModelsError> {
        let path = self.path(name)?;
        match path.is_file() {
            true => Ok(path),
            false => {
                Err(ModelsError::Absent { name: name.to_owned(), folder: self.folder.clone() })
            }
        }
    }

    /// What is here, by name. Parts of one model that is not here yet are one.
    pub fn list(&self) -> Result<Vec<Model>, ModelsError> {
        let mut listed: Vec<Model> = Vec::new();
        for model in self.files()? {
            let same = |it: &&mut Model| it.name == model.name && it.is_unfinished;
            match listed.last_mut().filter(same).filter(|_| model.is_unfinished) {
                Some(before) => before.bytes += model.bytes,
                None => listed.push(model),
            }
        }
        Ok(listed)
    }

    /// Every file of a model, by name.
    fn files(&self) -> Result<Vec<Model>, ModelsError> {
        let mut found = Vec::new();
        walk(&self.folder, "", 0, &mut found)?;
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Removes a model and what there is of it; how many bytes that was.
    pub fn remove(&self, name: &str) -> Result<u64, ModelsError> {
        let path = self.path(name)?;
        let mut removed = None;
        let is_meant = |it: &&Model| self.path(&it.name).is_ok_and(|it| it == path);
        for model in self.files()?.iter().filter(is_meant) {
            fs::remove_file(&model.path)
                .map_err(|source| ModelsError::Remove { path: model.path.clone(), source })?;
            removed = Some(removed.unwrap_or(0) + model.bytes);
        }
        self.remove_empty_folders(&path);
        removed.ok_or_else(|| ModelsError::Absent {
            name: name.to_owned(),
            folder: self.folder.clone(),
        })
    }

    fn remove_empty_folders(&self, path: &Path) {
        let above = path.ancestors().skip(1).take_while(|it| *it != self.folder);
        for folder in above {
            // It stays if something else is in it.
            if fs::remove_dir(folder).is_err() {
                return;
            }
        }
    }

    /// Makes sure that nobody else fetches a model, until what is returned is dropped.
    pub(crate) fn lock(&self) -> Result<File, ModelsError> {
        let failed = |source| ModelsError::Write { folder: self.folder.clone(), source };
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let folder = File::open(&self.folder).map_err(failed)?;
        match folder.try_lock() {
            Ok(()) => Ok(folder),
            Err(fs::TryLockError::WouldBlock) => {
                Err(ModelsError::Busy { folder: self.folder.clone() })
            }
            Err(fs::TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}

/// Adds what is in a folder.
fn walk(
    folder: &Path,
    prefix: &str,
    depth: usize,
    found: &mut Vec<Model>,
) -> Result<(), ModelsError> {
    let unread = |source| ModelsError::Read { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unread(error)),
    };
    for entry in entries {
        let entry = entry.map_err(unread)?;
        let Ok(file) = entry.file_name().into_string() else { continue };
        let Ok(meta) = fs::metadata(entry.path()) else { continue };
        let named = format!("{prefix}{file}");
        if meta.is_dir() && depth < DEPTH {
            walk(&entry.path(), &format!("{named}/"), depth + 1, found)?;
        }
        let whole = named.strip_suffix(ENDING);
        let part = || Some(named.strip_suffix(UNFINISHED)?.rsplit_once(ENDING)?.0);
        if let Some(name) = whole.or_else(part).filter(|_| meta.is_file()) {
            found.push(Model {
                name: asked_for(name),
                path: entry.path(),
                bytes: meta.len(),
                is_unfinished: whole.is_none(),
            });
        }
    }
    Ok(())
}

/// Whether a name looks like the path of a file, and not like one of the hub: `owner/repository/file`.
fn is_own_file(name: &str) -> bool {
    let is_path = name.starts_with(['.', '/', '~']) || name.matches('/').count() != 2;
    is_path && name.to_ascii_lowercase().ends_with(ENDING)
}

/// A file without its ending, as people ask for it: those of the hub keep theirs, and a revision follows it.
fn asked_for(name: &str) -> String {
    // At the hub, the ending may be in upper case.
    let folded = name.to_ascii_lowercase();
    let has_ending = folded.ends_with(ENDING) || folded.contains(&format!("{ENDING}@"));
    if name.contains('/') && !has_ending { format!("{name}{ENDING}") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn the_environment_says_where_models_are() {
        let of = |pairs: &[(&str, &str)]| Models::of(&variables(pairs)).map(|it| it.folder);
        assert_eq!(of(&[("PROBITY_MODELS", "m"), ("HOME", "/h")]).unwrap(), Path::new("m"));
        assert_eq!(of(&[("XDG_CACHE_HOME", "/c")]).unwrap(), Path::new("/c/probity/models"));
        assert_eq!(
            of(&[("XDG_CACHE_HOME", "c"), ("HOME", "/h")]).unwrap(),
            Path::new("/h/.cache/probity/models")
        );
        assert!(matches!(of(&[("HOME", "")]), Err(ModelsError::NoFolder)));
    }

    #[test]
    fn models_are_listed_found_and_removed_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let models = Models::in_folder(&folder.path().join("models"));
        assert_eq!(models.list().unwrap(), []);
        fs::create_dir_all(models.folder().join("a/b")).unwrap();
        for (file, text) in
            [("x.gguf", "12"), ("a/b/c.gguf", "123"), ("y.gguf.hub.part", "1"), ("note.txt", "")]
        {
            fs::write(models.folder().join(file), text).unwrap();
        }
        let found = models.list().unwrap();
        let shown: Vec<_> =
            found.iter().map(|it| (it.name.as_str(), it.bytes, it.is_unfinished)).collect();
        assert_eq!(shown, [("a/b/c.gguf", 3, false), ("x", 2, false), ("y", 1, true)]);
        assert_eq!(models.find("x").unwrap(), models.folder().join("x.gguf"));
        assert!(matches!(models.find("y"), Err(ModelsError::Absent { .. })));
        assert_eq!(models.remove("a/b/c.gguf").unwrap(), 3);
        assert!(!models.folder().join("a").exists());
        assert_eq!(models.remove("y").unwrap(), 1);
        assert!(matches!(models.remove("y"), Err(ModelsError::Absent { .. })));
        assert!(models.folder().join("note.txt").exists());
    }

    #[test]
    fn an_interrupted_pull_is_listed_once_and_removed_whole() {
        let folder = tempfile::tempdir().unwrap();
        let models = Models::in_folder(folder.path());
        for (file, text) in [("y.gguf.package.part", "12"), ("y.gguf.unpacked.part", "1")] {
            fs::write(models.folder().join(file), text).unwrap();
        }
        let found = models.list().unwrap();
        let shown: Vec<_> =
            found.iter().map(|it| (it.name.as_str(), it.bytes, it.is_unfinished)).collect();
        assert_eq!(shown, [("y", 3, true)]);
        assert_eq!(models.remove("y").unwrap(), 3);
        assert_eq!(models.files().unwrap(), []);
    }

    #[test]
    fn the_path_of_a_file_in_the_place_of_a_name_is_told_apart() {
        let models = Models::in_folder(Path::new("/models"));
        let hint = |name: &str| models.find(name).unwrap_err().hint().unwrap_or_default();
        for name in ["t.gguf", "./t.gguf", "/m/t.GGUF", "../t.gguf"] {
            assert_eq!(hint(name), format!("a file of yours is named with `file = \"{name}\"`"));
        }
        assert!(!hint("owner/repo/small.gguf").contains("file ="));
    }

    #[test]
    fn models_of_the_hub_are_listed_by_the_names_that_find_them() {
        let folder = tempfile::tempdir().unwrap();
        let models = Models::in_folder(folder.path());
        for name in ["a/b/c.gguf", "a/b/c.gguf@main", "a/b/D.GGUF", "a/b/D.GGUF@main"] {
            let path = models.path(name).unwrap();
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "1").unwrap();
            let listed = models.list().unwrap();
            let found = listed.iter().find(|it| it.path == path).unwrap();
            assert_eq!(found.name, name);
            assert_eq!(models.find(&found.name).unwrap(), path);
        }
    }

    #[test]
    fn a_name_never_leads_out_of_the_folder() {
        let models = Models::in_folder(Path::new("/models"));
        for name in ["", "..", "../x", "/etc/x", "a//b", "a/./b", ".x"] {
            assert!(matches!(models.path(name), Err(ModelsError::BadName { .. })), "{name}");
        }
    }

    #[test]
    fn only_one_fetches_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let models = Models::in_folder(folder.path());
        let held = models.lock().unwrap();
        assert!(matches!(models.lock(), Err(ModelsError::Busy { .. })));
        drop(held);
        models.lock().unwrap();
    }
}
