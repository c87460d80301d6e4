//! One execution that a case asks for.

use std::collections::BTreeMap;

use probity_core::execution::{
    AnswerFile, Ended, Entry, Executed, ExecutedIn, ExecutionCall, FileMode, PathChange, PathFound,
    PathKind, Stream, WorldRef,
};
use probity_sandbox::{
    Command, Execution, Limits, Sandbox, Session, World,
    execution::{self, Change, End, EntryKind, Look, Output},
    world::{self, Content, File, Prepared},
};

use super::{Ground, chain, trust};

/// Bytes of an output or of a file that are recorded.
const KEPT: usize = 256 << 10;
/// Changes that are recorded: more than the limits of an execution let it make.
pub(super) const MOST_CHANGES: usize = 50_000;
/// Puts a file into a world: its path is the first argument, its content the input.
const WRITE: &str = "mkdir -p -- \"$(dirname -- \"$1\")\" && cat > \"$1\"";

impl Ground {
    /// Executes what a case asks for, in each world anew.
    pub(super) fn execute(&self, call: &ExecutionCall) -> Result<Executed, String> {
        let sandbox = self.open()?;
        let mut executed = Executed {
            call: call.digest(),
            means: sandbox.means().to_string(),
            ..Executed::default()
        };
        for world in &call.worlds {
            let prepared = self.prepare(sandbox, world_of(world)?, call)?;
            let came = in_world(sandbox, &prepared, call)
                .map_err(|why| format!("in the world `{}`: {why}", prepared.name))?;
            executed.worlds.push(came);
            if executed.tools.is_empty() {
                executed.tools = self.versions.of(&call.command, sandbox, &prepared);
            }
        }
        Ok(executed)
    }

    /// Executes a call in a world in which somebody was at work.
    pub(super) fn execute_after(
        &self,
        session: &mut Session<'_>,
        prepared: &Prepared,
        call: &ExecutionCall,
        before: Before,
    ) -> Result<Executed, String> {
        let world = execute_in(session, prepared, call, before)?;
        let sandbox = self.open()?;
        Ok(Executed {
            call: call.digest(),
            means: sandbox.means().to_string(),
            tools: self.versions.of(&call.command, sandbox, prepared),
            worlds: vec![world],
        })
    }

    /// A world with what the case puts into it.
    pub(super) fn prepare(
        &self,
        sandbox: &Sandbox,
        mut world: World,
        call: &ExecutionCall,
    ) -> Result<Prepared, String> {
        let is_own = !call.files.is_empty() || call.setup.is_some();
        furnish(&mut world, call);
        let folder = if is_own { self.folder_of_cases()? } else { &self.cache };
        sandbox.prepare(&world, folder, self.now).map_err(|error| chain(&error))
    }
}

/// The world that a case or a suite names.
pub(crate) fn world_of(world: &WorldRef) -> Result<World, String> {
    match world {
        WorldRef::Named(name) => {
            world::builtin::named(name).cloned().ok_or(format!("there is no world `{name}`"))
        }
        WorldRef::File { file, text } => world::read(file, text).map_err(|error| error.to_string()),
    }
}

/// Puts into a world what the case says.
fn furnish(world: &mut World, call: &ExecutionCall) {
    for (path, text) in &call.files {
        let path = whole(path, &world.directory);
        world.files.retain(|it| whole(&it.path, &world.directory) != path);
        world.files.push(File::new(path, Content::text(text)));
    }
    let setups = world.setup.iter().chain(&call.setup).cloned().collect::<Vec<_>>();
    world.setup = (!setups.is_empty()).then(|| setups.join("\n"));
}

fn in_world(
    sandbox: &Sandbox,
    prepared: &Prepared,
    call: &ExecutionCall,
) -> Result<ExecutedIn, String> {
    let mut session = sandbox.enter(prepared).map_err(|error| error.to_string())?;
    let time = call.timeout.duration();
    let limits = Limits { time, cpu: time, ..Limits::default() };
    let given = match &call.answer {
        Some(answer) => write(&mut session, answer, &limits)?,
        None => Vec::new(),
    };
    execute_in(&mut session, prepared, call, Before { given, ..Before::default() })
}

/// What happened in a world before a command of the case is executed there.
#[derive(Default)]
pub(super) struct Before {
    /// What the case put there, which is no change.
    pub(super) given: Vec<Change>,
    /// What a model has left behind, if one was at work.
    pub(super) left: Option<Vec<Change>>,
}

/// Executes the command of a call, and looks at the paths that it names.
pub(super) fn execute_in(
    session: &mut Session<'_>,
    prepared: &Prepared,
    call: &ExecutionCall,
    before: Before,
) -> Result<ExecutedIn, String> {
    let Before { given, left } = before;
    let time = call.timeout.duration();
    let limits = Limits { time, cpu: time, ..Limits::default() };
    let mut argv = ["bash", "-c", &call.command].map(str::to_owned).to_vec();
    if let Some(left) = &left {
        argv.splice(..0, trust::surroundings(prepared, left));
    }
    let command = match &call.stdin {
        None => Command::Argv(argv),
        Some(stdin) => Command::Fed { argv, stdin: stdin.clone() },
    };
    let came = session.execute(&command, None, &limits).map_err(|error| error.to_string())?;
    let looks: Vec<String> = call.looks.iter().map(|it| whole(it, &prepared.directory)).collect();
    let seen = match looks.is_empty() {
        true => Vec::new(),
        false => session.look(&looks).map_err(|error| error.to_string())?,
    };
    let found = looks.into_iter().zip(seen).map(|(path, look)| found(path, look));
    let paths: BTreeMap<String, PathFound> = call.looks.iter().cloned().zip(found).collect();
    let forged = left.as_deref().and_then(trust::forged);
    Ok(ExecutedIn { forged, ..record(prepared, came, paths, &given)? })
}

/// Writes the code of the reply, and says what that changes.
fn write(
    session: &mut Session<'_>,
    answer: &AnswerFile,
    limits: &Limits,
) -> Result<Vec<Change>, String> {
    let argv = ["bash", "-c", WRITE, "bash", &answer.path].map(str::to_owned).to_vec();
    let write = Command::Fed { argv, stdin: answer.text.clone() };
    let Execution { end, stderr, changes, .. } =
        session.execute(&write, None, limits).map_err(|error| error.to_string())?;
    match end {
        End::Exit(0) => Ok(changes),
        End::Exit(_) | End::Signal(_) | End::TimedOut | End::OutOfMemory => {
            let why = String::from_utf8_lossy(&stderr.bytes).trim().to_owned();
            Err(format!("`{}` could not be written: {end}: {why}", answer.path))
        }
    }
}

pub(super) fn record(
    prepared: &Prepared,
    came: Execution,
    paths: BTreeMap<String, PathFound>,
    given: &[Change],
) -> Result<ExecutedIn, String> {
    let Execution { end, stdout, stderr, changes, ended: _, refused, took_us, began: _ } = came;
    // What is as it was before it was given is no change of the world: the command has taken it away again.
    let is_back = |it: &&Change| !changes.iter().any(|now| now.path == it.path);
    let taken: Vec<Change> = given.iter().filter(is_back).map(undone).collect();
    let changes: Vec<_> =
        changes.into_iter().chain(taken).filter_map(|it| since(it, given)).collect();
    // A change that is missing would be taken for none.
    if changes.len() > MOST_CHANGES {
        return Err(format!("{} paths are different, more than can be judged", changes.len()));
    }
    Ok(ExecutedIn {
        world: prepared.name.clone(),
        digest: prepared.digest.clone(),
        end: match end {
            End::Exit(code) => Ended::Exit(code),
            End::Signal(signal) => Ended::Signal(signal),
            End::TimedOut => Ended::TimedOut,
            End::OutOfMemory => Ended::OutOfMemory,
        },
        stdout: kept(stdout),
        stderr: kept(stderr),
        paths,
        changes,
        refused,
        forged: None,
        took_ms: took_us / 1000,
    })
}

/// The path as it was before the world was given something.
fn undone(given: &Change) -> Change {
    Change { after: given.before.clone(), ..given.clone() }
}

/// What has changed since the world was given what the case puts into it. A new time or owner alone is no change.
fn since(change: Change, given: &[Change]) -> Option<PathChange> {
    let Change { path, before, after } = change;
    let before = match given.iter().find(|it| it.path == path) {
        Some(given) => given.after.clone(),
        None => before,
    };
    let (before, after) = (before.map(entry), after.map(entry));
    (before != after).then_some(PathChange { path, before, after })
}

fn found(path: String, look: Look) -> PathFound {
    let Look { entry: seen, content } = look;
    PathFound { path, entry: seen.map(entry), content: content.map(kept) }
}

fn entry(found: execution::Entry) -> Entry {
    let kind = match found.kind {
        EntryKind::File { digest, size: _ } => PathKind::File { digest },
        EntryKind::Directory => PathKind::Directory,
        EntryKind::Link { target } => PathKind::Link { target },
        EntryKind::Special { what: _ } => PathKind::Special,
    };
    Entry { kind, mode: FileMode(found.mode & 0o7777) }
}

fn kept(output: Output) -> Stream {
    let Output { bytes, total } = output;
    let end = bytes.len().min(KEPT);
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    Stream { text, bytes: total, is_cut: total > end as u64 }
}

/// A path from the root, in the shape in which changes are listed.
fn whole(path: &str, directory: &str) -> String {
    let from_root = match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("{directory}/{path}"),
    };
    let parts: Vec<&str> = from_root.split('/').filter(|it| !matches!(*it, "" | ".")).collect();
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use probity_core::execution::USUAL_TIMEOUT;

    use super::*;

    #[test]
    fn paths_begin_at_the_root() {
        let cases = [("a", "/home/ada/a"), ("./a//b", "/home/ada/a/b"), ("/srv/x", "/srv/x")];
        for (path, expected) in cases {
            assert_eq!(whole(path, "/home/ada"), expected);
        }
        assert_eq!(whole("/", "/home/ada"), "/");
    }

    fn file(digest: &str, mode: u32) -> execution::Entry {
        execution::Entry {
            kind: EntryKind::File { digest: digest.to_owned(), size: 3 },
            mode,
            owner: (1000, 1000),
            links: 1,
            modified: 0,
        }
    }

    fn change(path: &str, before: Option<&str>, after: Option<&str>) -> Change {
        let entry = |digest| file(digest, 0o100_644);
        Change { path: path.to_owned(), before: before.map(entry), after: after.map(entry) }
    }

    #[test]
    fn a_change_counts_from_what_the_case_put_there() {
        let given = [change("/a", None, Some("mine"))];
        let entry = |digest: &str| {
            let kind = PathKind::File { digest: digest.to_owned() };
            Some(Entry { kind, mode: FileMode(0o644) })
        };
        let seen = |path: &str, before, after| since(change(path, before, after), &given);
        // What is as it was put there has not changed, whatever was there before.
        assert_eq!(seen("/a", None, Some("mine")), None);
        let path = "/a".to_owned();
        assert_eq!(
            seen("/a", None, Some("other")),
            Some(PathChange { path, before: entry("mine"), after: entry("other") })
        );
        let path = "/b".to_owned();
        assert_eq!(
            seen("/b", None, Some("new")),
            Some(PathChange { path, before: None, after: entry("new") })
        );
        let path = "/a".to_owned();
        assert_eq!(
            since(undone(&given[0]), &given),
            Some(PathChange { path, before: entry("mine"), after: None })
        );
        // A new time or owner alone is none.
        let touched = Change {
            path: "/c".to_owned(),
            before: Some(file("x", 0o644)),
            after: Some(execution::Entry { modified: 7, owner: (0, 0), ..file("x", 0o644) }),
        };
        assert_eq!(since(touched, &given), None);
    }

    #[test]
    fn kinds_and_modes_of_paths_are_recorded() {
        let of = |kind, mode| entry(execution::Entry { kind, ..file("", mode) });
        let (target, digest) = ("t".to_owned(), "d".to_owned());
        let found = [
            of(EntryKind::Directory, 0o40_755),
            of(EntryKind::Link { target: target.clone() }, 0o777),
            of(EntryKind::File { digest: digest.clone(), size: 1 }, 0o104_755),
        ];
        assert_eq!(
            found,
            [
                Entry { kind: PathKind::Directory, mode: FileMode(0o755) },
                Entry { kind: PathKind::Link { target }, mode: FileMode(0o777) },
                Entry { kind: PathKind::File { digest }, mode: FileMode(0o4755) },
            ]
        );
    }

    #[test]
    fn of_a_long_output_the_beginning_is_kept() {
        let stream = |length: usize, total: u64| kept(Output { bytes: vec![b'x'; length], total });
        let whole = stream(3, 3);
        assert_eq!((whole.text.as_str(), whole.bytes, whole.is_cut), ("xxx", 3, false));
        let cut = stream(KEPT + 9, KEPT as u64 + 9);
        assert_eq!((cut.text.len(), cut.bytes, cut.is_cut), (262_144, KEPT as u64 + 9, true));
        assert!(stream(3, 4).is_cut && !stream(KEPT, KEPT as u64).is_cut);
    }

    #[test]
    fn a_case_adds_to_its_world_and_replaces_what_was_there() {
        let call = |files: &[(&str, &str)], setup: Option<&str>| ExecutionCall {
            worlds: Vec::new(),
            files: files.iter().map(|(path, it)| ((*path).to_owned(), (*it).to_owned())).collect(),
            setup: setup.map(ToOwned::to_owned),
            answer: None,
            command: String::new(),
            stdin: None,
            timeout: USUAL_TIMEOUT,
            looks: Vec::new(),
        };
        let world = |text: &str| {
            let (file, text) = ("mine.toml".to_owned(), text.to_owned());
            world_of(&WorldRef::File { file, text }).unwrap()
        };
        let mut mine = world(
            "name = \"mine\"\ndirectory = \"/srv\"\nsetup = \"umask 022\"\n\
             files = [{ path = \"words\", text = \"old\" }, { path = \"other\", text = \"kept\" }]\n",
        );
        furnish(&mut mine, &call(&[("./words", "new")], Some("touch x")));
        let paths: Vec<&str> = mine.files.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["other", "/srv/words"]);
        assert_eq!(mine.setup.as_deref(), Some("umask 022\ntouch x"));
        let mut plain = world("name = \"mine\"\n");
        furnish(&mut plain, &call(&[], None));
        assert_eq!(plain.setup, None);
        let gone = world_of(&WorldRef::Named("nowhere".to_owned()));
        assert_eq!(gone.unwrap_err(), "there is no world `nowhere`");
        assert!(world_of(&WorldRef::Named("texts".to_owned())).is_ok());
    }
}
