//! `probity sandbox`: what a command does, shown to a person.

mod changes;

use std::{fmt::Write as _, fs, path::Path};

use probity_core::visible::safe;
use probity_load::settings::parse_duration;
use probity_sandbox::{
    Command, Execution, Keeper, Limits, Means, Offer, Sandbox, World,
    execution::{Change, End, Output},
    world,
};
use serde::Serialize;

use crate::{
    cli::sandbox::{SandboxArgs, SandboxCommand},
    clock,
    environment::Environment,
    exit::Exit,
    failure::Failure,
    printer::Printer,
};

pub(super) fn run(args: &SandboxArgs, printer: &Printer) -> Result<Exit, Failure> {
    match args.command {
        Some(SandboxCommand::Doctor) => doctor(printer),
        Some(SandboxCommand::Worlds) => worlds(printer),
        None => execute(args, printer),
    }
}

fn execute(args: &SandboxArgs, printer: &Printer) -> Result<Exit, Failure> {
    let command = match &args.text {
        Some(text) => Command::Shell(text.clone()),
        None if args.argv.is_empty() => {
            return Err(Failure::new("there is no command to execute")
                .hint("probity sandbox 'ls -l', or probity sandbox -- ls -l"));
        }
        None => Command::Argv(args.argv.clone()),
    };
    let time = parse_duration(&args.timeout).filter(|time| !time.is_zero());
    let time = time
        .ok_or_else(|| Failure::new("--timeout has to be a time above 0, such as 500ms or 1m"))?;
    let limits = Limits { time, cpu: time, ..Limits::default() };
    let world = find(&args.world)?;
    let sandbox = Sandbox::open(&Keeper::this_program()).map_err(|unavailable| {
        Failure::new(unavailable.to_string())
            .hint("`probity sandbox doctor` says what to do about it")
            .exit(Exit::Aborted)
    })?;
    let unusable = |what: &str| Failure::new(format!("{what} `{}`", safe(&world.name)));
    let cache = world::cache_folder(&Environment::default().all());
    fs::create_dir_all(&cache).map_err(|error| {
        let folder = safe(&cache.to_string_lossy()).into_owned();
        Failure::new(format!("failed to make the folder of worlds `{folder}`"))
            .because(error)
            .hint("PROBITY_WORLDS names another")
    })?;
    let prepared = sandbox
        .prepare(&world, &cache, clock::now())
        .map_err(|error| unusable("failed to make the world").because(error))?;
    let execution = sandbox.execute(&prepared, &command, &limits).map_err(|error| {
        unusable("nothing was executed in the world").because(error).exit(Exit::Aborted)
    })?;
    match args.json {
        true => Printer::emit(&json(&world.name, sandbox.means(), execution))?,
        false => printer.show(&text(&world.name, sandbox.means(), &execution))?,
    }
    Ok(Exit::Success)
}

/// The world of this name, or in this file.
fn find(name: &str) -> Result<World, Failure> {
    if let Some(world) = world::builtin::named(name) {
        return Ok(world.clone());
    }
    if Path::new(name).extension().is_none_or(|ending| ending != "toml") {
        return Err(Failure::new(format!("there is no world `{}`", safe(name)))
            .hint("`probity sandbox worlds` lists them; a file of your own ends with .toml"));
    }
    let text = fs::read_to_string(name).map_err(|error| Failure::read(Path::new(name), error))?;
    world::read(name, &text).map_err(|error| Failure::new(error.to_string()))
}

/// What `--json` prints.
#[derive(Serialize)]
struct Shown {
    world: String,
    means: Means,
    end: End,
    stdout: String,
    stdout_bytes: u64,
    stderr: String,
    stderr_bytes: u64,
    changes: Vec<Change>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ended: Vec<String>,
    refused: Vec<String>,
    took_us: u64,
}

fn json(world: &str, means: Means, execution: Execution) -> String {
    let Execution { end, stdout, stderr, changes, ended, refused, began: _, took_us } = execution;
    let shown = Shown {
        world: world.to_owned(),
        means,
        end,
        stdout: String::from_utf8_lossy(&stdout.bytes).into_owned(),
        stdout_bytes: stdout.total,
        stderr: String::from_utf8_lossy(&stderr.bytes).into_owned(),
        stderr_bytes: stderr.total,
        changes,
        ended,
        refused,
        took_us,
    };
    let json = serde_json::to_string_pretty(&shown).expect("plain data is always JSON");
    format!("{json}\n")
}

fn text(world: &str, means: Means, execution: &Execution) -> String {
    let Execution { end, stdout, stderr, changes, ended, refused, began: _, took_us } = execution;
    let ms = took_us / 1000;
    let mut text = format!("{end} after {ms} ms, in the world {world} ({means})\n");
    stream(&mut text, "standard output", stdout);
    stream(&mut text, "standard error", stderr);
    match &**changes {
        [] => text += "no file is different\n",
        _ => changes::list(&mut text, changes),
    }
    if !ended.is_empty() {
        let _ = writeln!(text, "processes that are gone: {}", ended.join(", "));
    }
    if !refused.is_empty() {
        let _ = writeln!(text, "refused: {}", refused.join(", "));
    }
    text
}

fn stream(text: &mut String, name: &str, output: &Output) {
    if output.total == 0 {
        return;
    }
    let kept = output.bytes.len() as u64;
    let _ = match output.total - kept {
        0 => writeln!(text, "{name}:"),
        dropped => writeln!(text, "{name}, without the last {dropped} bytes:"),
    };
    for line in String::from_utf8_lossy(&output.bytes).lines() {
        let _ = writeln!(text, "  {line}");
    }
}

fn doctor(printer: &Printer) -> Result<Exit, Failure> {
    let offers = Offer::all(&Keeper::this_program());
    let mut text = String::new();
    for Offer { means, obstacle } in &offers {
        let _ = match obstacle {
            None => writeln!(text, "{means:<12} works"),
            Some(obstacle) => writeln!(text, "{means:<12} {}", obstacle.why),
        };
        if let Some(remedy) = obstacle.as_ref().and_then(|obstacle| obstacle.remedy.as_ref()) {
            let _ = writeln!(text, "{:<12} to do: {remedy}", "");
        }
    }
    let used = offers.iter().find(|offer| offer.obstacle.is_none());
    let _ = match used {
        Some(offer) => writeln!(text, "commands are executed with {}", offer.means),
        None => writeln!(text, "no command is executed on this machine"),
    };
    printer.show(&text)?;
    Ok(if used.is_some() { Exit::Success } else { Exit::Aborted })
}

fn worlds(printer: &Printer) -> Result<Exit, Failure> {
    let mut text = String::new();
    for World { name, about, .. } in world::builtin::all() {
        let _ = writeln!(text, "{name:<16} {about}");
    }
    printer.show(&text)?;
    Ok(Exit::Success)
}
