//! What this machine offers to keep commands from doing harm.

use std::{collections::BTreeMap, fmt, path::Path};

use serde::Serialize;

use crate::{
    execution::{Command, End, Execution, Limits},
    sandbox::{Engine, Keeper, Unavailable},
    world::Prepared,
};

/// What keeps commands from doing harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// Namespaces of the kernel, set up by the keeper.
    Namespaces,
    /// The program `bwrap`.
    Bubblewrap,
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Namespaces => "namespaces",
            Self::Bubblewrap => "bubblewrap",
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
    for means in [Means::Namespaces, Means::Bubblewrap] {
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
        [Means::Namespaces, Means::Bubblewrap]
            .map(|means| Self { means, obstacle: open(means, keeper).err() })
            .into()
    }
}

#[cfg(not(target_os = "linux"))]
fn open(means: Means, _: &Keeper) -> Result<Box<dyn Engine>, Obstacle> {
    let remedy = Some("run Probity on Linux, also in a virtual machine".to_owned());
    Err(Obstacle { means, why: "it needs Linux".to_owned(), remedy })
}

#[cfg(target_os = "linux")]
fn open(means: Means, keeper: &Keeper) -> Result<Box<dyn Engine>, Obstacle> {
    use crate::{bubblewrap::Bubblewrap, namespaces::Namespaces};
    let engine: Box<dyn Engine> = match means {
        Means::Namespaces => Box::new(Namespaces::new(keeper.program.clone())),
        Means::Bubblewrap => Box::new(Bubblewrap::find().map_err(|why| obstacle(means, why))?),
    };
    try_out(&*engine).map_err(|why| obstacle(means, why))?;
    Ok(engine)
}

/// Shows whether the command is nobody in particular, sees nothing of `host`, and whether what it does is seen.
fn trial(host: &Path) -> Command {
    let host = host.display();
    Command::Shell(format!(
        "printf x > /tmp/seen && test ! -e '{host}' && test \"$(id -u)\" != 0 && echo done"
    ))
}

fn try_out(engine: &dyn Engine) -> Result<(), String> {
    let tree = tempfile::tempdir().map_err(|error| format!("making a directory: {error}"))?;
    let prepared = empty(tree.path());
    let execution = engine
        .execute(&prepared, &trial(tree.path()), &Limits::default())
        .map_err(|failure| failure.to_string())?;
    let Execution { end, stdout, changes, .. } = &execution;
    let seen = changes.iter().any(|change| change.path == "/tmp/seen" && change.before.is_none());
    match (end, &*stdout.bytes, seen) {
        (End::Exit(0), b"done\n", true) => Ok(()),
        _ => Err(format!(
            "a trial did not do what it should: {end:?}, {}",
            String::from_utf8_lossy(&execution.stderr.bytes).trim_end()
        )),
    }
}

/// A world with nothing in it but what every world has.
fn empty(tree: &Path) -> Prepared {
    let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
    Prepared {
        name: "empty".to_owned(),
        digest: "empty".to_owned(),
        tree: tree.to_owned(),
        directory: "/".to_owned(),
        variables: BTreeMap::from([("PATH".to_owned(), path)]),
        processes: Vec::new(),
    }
}

#[cfg(target_os = "linux")]
fn obstacle(means: Means, why: String) -> Obstacle {
    let remedy = match means {
        Means::Namespaces => remedy_for_namespaces(&why),
        Means::Bubblewrap => Some("install the package `bubblewrap`".to_owned()),
    };
    Obstacle { means, why, remedy }
}

#[cfg(target_os = "linux")]
fn remedy_for_namespaces(why: &str) -> Option<String> {
    let setting =
        |name: &str| std::fs::read_to_string(name).ok().map(|text| text.trim().to_owned());
    let is = |name: &str, value: &str| setting(name).as_deref() == Some(value);
    let contained =
        ["/.dockerenv", "/run/.containerenv"].iter().any(|file| Path::new(file).exists());
    let remedy = if is("/proc/sys/user/max_user_namespaces", "0") {
        "sudo sysctl user.max_user_namespaces=10000"
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "sudo sysctl kernel.unprivileged_userns_clone=1"
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for probity with `userns,`"
    } else if contained {
        "start the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
    } else if why.contains("overlay") {
        "a kernel of version 6.6 or newer"
    } else {
        return None;
    };
    Some(remedy.to_owned())
}
