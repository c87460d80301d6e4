//! What this machine offers to keep commands from doing harm.

use std::fmt;

use serde::Serialize;

use crate::sandbox::{Engine, Keeper, Unavailable};
#[cfg(target_os = "linux")]
use crate::trial::open;

/// What keeps commands from doing harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// Namespaces of the kernel, set up by the keeper.
    Namespaces,
}

/// All of them, best first.
const ALL: [Means; 1] = [Means::Namespaces];

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Namespaces => "namespaces",
        })
    }
}

/// Why a means cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Obstacle {
    /// Which one.
    pub means: Means,
    /// What was tried and failed.
    pub why: String,
    /// What a person can do about it, if that is known.
    pub remedy: Option<String>,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.means, self.why)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, " ({remedy})"))
    }
}

/// What was found about a means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// Which one.
    pub means: Means,
    /// Why it cannot be used; nothing if it can.
    pub obstacle: Option<Obstacle>,
}

/// Tries each means out, best first.
pub(crate) fn best(keeper: &Keeper) -> Result<(Means, Box<dyn Engine>), Unavailable> {
    let mut obstacles = Vec::new();
    for means in ALL {
        match open(means, keeper) {
            Ok(engine) => return Ok((means, engine)),
            Err(obstacle) => obstacles.push(obstacle),
        }
    }
    Err(Unavailable { obstacles })
}

impl Offer {
    /// Tries out all means.
    pub fn all(keeper: &Keeper) -> Vec<Self> {
        ALL.map(|means| Self { means, obstacle: open(means, keeper).err() }).into()
    }
}

#[cfg(not(target_os = "linux"))]
fn open(means: Means, _: &Keeper) -> Result<Box<dyn Engine>, Obstacle> {
    let remedy = Some("run Probity on Linux, also in a virtual machine".to_owned());
    Err(Obstacle { means, why: "it needs Linux".to_owned(), remedy })
}
