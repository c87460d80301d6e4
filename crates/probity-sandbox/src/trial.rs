//! Tries out whether a means works here, and says what can be done if it does not.

use std::{collections::BTreeMap, path::Path};

use crate::{
    execution::{Command, End, Execution, Limits},
    namespaces::{Namespaces, PATIENCE},
    probe::{Means, Obstacle},
    sandbox::{Engine, Keeper},
    world::Prepared,
};

/// The engine of a means, if it does what it should.
pub(crate) fn open(means: Means, keeper: &Keeper) -> Result<Box<dyn Engine>, Obstacle> {
    let engine: Box<dyn Engine> = match means {
        Means::Namespaces => Box::new(Namespaces::new(keeper.program.clone(), PATIENCE)),
    };
    try_out(&*engine).map_err(|why| obstacle(means, why))?;
    Ok(engine)
}

/// Shows whether the command is nobody in particular, sees nothing of `host`, can replace a directory of the world, and
/// whether what it does is seen.
fn trial(host: &Path) -> Command {
    let host = host.display();
    Command::Shell(format!(
        "printf x > /tmp/seen && rmdir /var/tmp && mkdir /var/tmp && test ! -e '{host}' && test \"$(id -u)\" != 0 && echo done"
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
        digest: String::new(),
        tree: tree.to_owned(),
        directory: "/".to_owned(),
        variables: BTreeMap::from([("PATH".to_owned(), path)]),
        processes: Vec::new(),
    }
}

fn obstacle(means: Means, why: String) -> Obstacle {
    let remedy = match means {
        Means::Namespaces => remedy_for_namespaces(&why),
    };
    Obstacle { means, why, remedy }
}

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
    } else if why.contains("overlay") || why.contains("trial") {
        "a kernel of version 6.6 or newer"
    } else {
        return None;
    };
    Some(remedy.to_owned())
}
