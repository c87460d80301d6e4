//! The worlds that ship.

use std::sync::LazyLock;

use super::{World, read};

macro_rules! worlds {
    ($($name:literal),* $(,)?) => {
        &[$((concat!($name, ".toml"), include_str!(concat!("../../worlds/", $name, ".toml")))),*]
    };
}

const FILES: &[(&str, &str)] = worlds![
    "archives",
    "deep-tree",
    "empty",
    "home",
    "permissions",
    "processes",
    "project",
    "repository",
    "sizes-and-ages",
    "system",
    "tables",
    "texts",
    "web-logs",
];

static WORLDS: LazyLock<Vec<World>> = LazyLock::new(|| {
    let parse = |(file, text): &(&str, &str)| {
        read(file, text).unwrap_or_else(|error| panic!("a test reads every world: {error}"))
    };
    FILES.iter().map(parse).collect()
});

/// All of them, ordered by name.
pub fn all() -> &'static [World] {
    &WORLDS
}

/// The one of that name.
pub fn named(name: &str) -> Option<&'static World> {
    WORLDS.iter().find(|it| it.name == name)
}
