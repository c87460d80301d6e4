//! What an agent does in its world.

use std::{collections::BTreeMap, time::Duration};

use probity_core::execution::{Executed, ExecutionCall};
use probity_grade::internal::agent::{Action, Told};
use probity_sandbox::{
    Execution, Limits,
    execution::{ADDRESS_SPACE, Change, End, Entry},
};

use crate::{engine::Handle, sandbox::Visit};

/// What a command of an agent may use.
const LIMITS: Limits = Limits {
    time: Duration::from_mins(1),
    cpu: Duration::from_mins(1),
    memory: 1 << 30,
    space: ADDRESS_SPACE,
    disk: 256 << 20,
    file: 64 << 20,
    processes: 128,
    descriptors: 512,
    output: 64 << 10,
};

/// Writes what it reads into the file that is its first argument.
const WRITE: &str = r#"case $1 in */*) mkdir -p -- "${1%/*}/" ;; esac && cat > "$1""#;

/// The world of an agent, which is entered when it is first needed.
pub(super) struct World {
    /// Which one it is, and what is executed there in the end.
    call: ExecutionCall,
    visit: Option<Visit>,
    /// What was different when the last command had ended.
    changes: Vec<Change>,
}

/// What came of an action.
pub(super) struct Acted {
    /// What the model is told.
    pub(super) told: String,
    /// Whether it ended in another way than with exit code 0.
    pub(super) failed: bool,
    pub(super) took_ms: u64,
}

impl World {
    pub(super) fn new(call: ExecutionCall) -> Self {
        Self { call, visit: None, changes: Vec::new() }
    }

    /// Does something. An error means that the world is lost.
    pub(super) async fn act(
        &mut self,
        action: &Action,
        left: Duration,
        handle: &mut Handle,
    ) -> Result<Acted, String> {
        let time = LIMITS.time.min(left);
        let limits = Limits { time, ..LIMITS };
        let (argv, stdin) = program(action);
        let execution = self.visit(handle).await?.execute(argv, stdin, limits).await?;
        let changed = changed(&self.changes, &execution.changes);
        let Execution { end, stdout, stderr, changes, ended: _, refused, took_us, began: _ } =
            execution;
        self.changes = changes;
        let failed = end != End::Exit(0);
        let told = Told {
            end: &match end {
                End::TimedOut => format!("{end}, after {} s", time.as_secs().max(1)),
                End::Exit(_) | End::Signal(_) | End::OutOfMemory => end.to_string(),
            },
            stdout: (&stdout.bytes, stdout.total),
            stderr: (&stderr.bytes, stderr.total),
            changed: &changed,
            refused: &refused,
        };
        let told = match action {
            Action::Read { .. } if !failed => told.content(),
            Action::Read { .. } | Action::Bash { .. } | Action::Write { .. } => told.text(),
        };
        Ok(Acted { told, failed, took_ms: took_us / 1000 })
    }

    /// Executes what the case asks for, and looks at what the agent left behind.
    pub(super) async fn judge(&mut self, handle: &mut Handle) -> Result<Executed, String> {
        let call = self.call.clone();
        self.visit(handle).await?;
        match &self.visit {
            Some(visit) => handle.execute_after(visit, call).await,
            None => Err("there is no world".to_owned()),
        }
    }

    async fn visit(&mut self, handle: &mut Handle) -> Result<&Visit, String> {
        if self.visit.is_none() {
            self.visit = Some(handle.visit(&self.call).await?);
        }
        self.visit.as_ref().ok_or_else(|| "there is no world".to_owned())
    }
}

/// The program that does it, and what that reads.
fn program(action: &Action) -> (Vec<String>, Option<String>) {
    let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect();
    match action {
        Action::Bash { command } => (words(&["bash", "-c", command]), None),
        Action::Read { path } => (words(&["cat", "--", path]), None),
        Action::Write { path, content } => {
            (words(&["bash", "-c", WRITE, "write_file", path]), Some(content.clone()))
        }
    }
}

/// What is different now and was not, or was otherwise, each with a sign before it.
fn changed(before: &[Change], now: &[Change]) -> Vec<String> {
    let states = |changes: &[Change]| -> BTreeMap<String, Change> {
        changes.iter().map(|it| (it.path.clone(), it.clone())).collect()
    };
    let (before, now) = (states(before), states(now));
    let mut paths: Vec<&String> = before.keys().chain(now.keys()).collect();
    paths.sort_unstable();
    paths.dedup();
    let line = |path: &String| {
        let (then, since) = (before.get(path), now.get(path));
        // What is not among the changes is as the world began.
        let first = then.or(since)?.before.as_ref();
        let was = then.map_or(first, |it| it.after.as_ref());
        let is = since.map_or(first, |it| it.after.as_ref());
        let sign = match (was, is) {
            (None, Some(_)) => '+',
            (Some(_), None) => '-',
            (Some(was), Some(is)) if !is_same(was, is) => '~',
            (Some(_), Some(_)) | (None, None) => return None,
        };
        Some(format!("{sign} {path}"))
    };
    paths.into_iter().filter_map(line).collect()
}

/// A new time alone is no change.
fn is_same(one: &Entry, other: &Entry) -> bool {
    (&one.kind, one.mode, one.owner) == (&other.kind, other.mode, other.owner)
}

#[cfg(test)]
mod tests {
    use probity_sandbox::execution::EntryKind;

    use super::*;

    /// A directory that had one mode and has another, or was not or is not there.
    fn change(path: &str, before: Option<u32>, after: Option<u32>) -> Change {
        let kind = EntryKind::Directory;
        let entry =
            |mode| Entry { kind: kind.clone(), mode, owner: (1000, 1000), links: 1, modified: 0 };
        Change { path: path.to_owned(), before: before.map(entry), after: after.map(entry) }
    }

    #[test]
    fn changes_are_those_since_the_command_before() {
        let before = [
            change("/again", Some(0o755), Some(0o700)),
            change("/kept", None, Some(0o755)),
            change("/left", None, Some(0o755)),
            change("/lost", Some(0o755), None),
        ];
        let now = [
            change("/kept", None, Some(0o755)),
            change("/lost", Some(0o755), Some(0o755)),
            change("/new", None, Some(0o755)),
        ];
        assert_eq!(changed(&before, &now), ["~ /again", "- /left", "+ /lost", "+ /new"]);
        assert_eq!(changed(&[], &before), ["~ /again", "+ /kept", "+ /left", "- /lost"]);
    }

    #[test]
    fn what_an_agent_does_is_done_by_a_program() {
        let of = |action: Action| {
            let (argv, stdin) = program(&action);
            (argv.join(" "), stdin)
        };
        let (path, content) = ("-a b".to_owned(), "text".to_owned());
        let command = "ls -l".to_owned();
        assert_eq!(of(Action::Bash { command }), ("bash -c ls -l".to_owned(), None));
        assert_eq!(of(Action::Read { path: path.clone() }), ("cat -- -a b".to_owned(), None));
        let (argv, stdin) = of(Action::Write { path, content });
        assert!(argv.starts_with("bash -c ") && argv.ends_with(" write_file -a b"), "{argv}");
        assert_eq!(stdin.as_deref(), Some("text"));
    }

    #[test]
    fn a_new_time_alone_is_no_change() {
        let mut touched = change("/a", Some(0o644), Some(0o644));
        touched.after.as_mut().unwrap().modified = 7;
        assert_eq!(changed(&[], &[touched.clone()]), [""; 0]);
        touched.after.as_mut().unwrap().owner = (0, 0);
        assert_eq!(changed(&[], &[touched]), ["~ /a"]);
    }

    #[test]
    fn a_command_of_an_agent_may_use_what_the_book_says() {
        let minute = Duration::from_mins(1);
        assert_eq!((LIMITS.time, LIMITS.cpu), (minute, minute));
        let mebibytes = [LIMITS.memory, LIMITS.disk, LIMITS.file].map(|it| it / 1_048_576);
        assert_eq!((mebibytes, LIMITS.output), ([1024, 256, 64], 65_536));
    }
}
