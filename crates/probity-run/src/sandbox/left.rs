//! What a program leaves behind in its world: what is different there, and what a case executes there afterwards.

use probity_core::execution::{Executed, ExecutionCall, PathChange, PathKind};
use probity_sandbox::{Execution, Session, World, execution::Output, world::Prepared};

use super::{
    Ground,
    call::{Before, MOST_CHANGES, record, world_of},
};

/// Changes that are recorded where no case asks for them.
const MOST_TOLD: usize = 1_000;

/// A world in which a program was at work.
pub(crate) struct Left<'l> {
    /// The world as it was prepared, with its own variables and none of the program's.
    pub(crate) prepared: &'l Prepared,
    /// What came of the program.
    pub(crate) execution: &'l Execution,
    /// What the program is called; what it keeps for itself is no change.
    pub(crate) program: Option<&'static str>,
}

impl Ground {
    /// The world of a call, with what the case puts into it; `usual` where the case names none.
    pub(crate) fn place_of(&self, call: &ExecutionCall, usual: &World) -> Result<Prepared, String> {
        let world = match call.worlds.first() {
            Some(world) => world_of(world)?,
            None => usual.clone(),
        };
        self.prepare(self.open()?, world, call)
    }

    /// What is different in the world, and what comes of a call there.
    pub(crate) fn look_back(
        &self,
        session: &mut Session<'_>,
        left: &Left<'_>,
        call: Option<&ExecutionCall>,
    ) -> Result<Executed, String> {
        let Left { prepared, execution, program } = *left;
        let mut executed = match call {
            Some(call) => {
                session.takes_slots();
                let before = Before { left: Some(execution.changes.clone()), ..Before::default() };
                self.execute_after(session, prepared, call, before)?
            }
            None => self.told(prepared, execution)?,
        };
        let home = prepared.variables.get("HOME").map_or("/", String::as_str);
        for world in &mut executed.worlds {
            let looks: Vec<&str> = world.paths.values().map(|it| it.path.as_str()).collect();
            let own = program.map(|it| Own { program: it, home, looks: &looks });
            if let Some(own) = own {
                world.changes = own.without(std::mem::take(&mut world.changes));
            }
            if call.is_none() {
                world.changes.truncate(MOST_TOLD);
            }
        }
        Ok(executed)
    }

    /// What is different, where nothing is executed and nothing is judged: the first changes of many. What the program said
    /// is its reply.
    fn told(&self, prepared: &Prepared, execution: &Execution) -> Result<Executed, String> {
        let mut silent =
            Execution { stdout: Output::default(), stderr: Output::default(), ..execution.clone() };
        silent.changes.truncate(MOST_CHANGES);
        let world = record(prepared, silent, std::collections::BTreeMap::new(), &[])?;
        let means = self.open()?.means().to_string();
        Ok(Executed { means, worlds: vec![world], ..Executed::default() })
    }
}

/// What a program keeps for itself: settings, logs, caches. It is no work of anybody.
struct Own<'o> {
    program: &'static str,
    home: &'o str,
    /// Paths that the case asks for; these are work.
    looks: &'o [&'o str],
}

impl Own<'_> {
    fn without(&self, changes: Vec<PathChange>) -> Vec<PathChange> {
        let is_own: Vec<bool> = changes.iter().map(|it| self.is_own(&it.path)).collect();
        let paths: Vec<String> = changes.iter().map(|it| it.path.clone()).collect();
        // A directory is its own that was made for nothing but that.
        let holds_own = |change: &PathChange| {
            let is_made = change.before.is_none()
                && matches!(&change.after, Some(it) if it.kind == PathKind::Directory);
            if !is_made || !self.is_hidden(&change.path) {
                return false;
            }
            let below = format!("{}/", change.path);
            let mut inside = paths.iter().zip(&is_own).filter(|(path, _)| path.starts_with(&below));
            inside.clone().next().is_some() && inside.all(|it| *it.1)
        };
        let keeps = |at: usize, change: &PathChange| {
            self.looks.contains(&&*change.path) || !(is_own[at] || holds_own(change))
        };
        let all = changes.into_iter().enumerate();
        all.filter(|(at, change)| keeps(*at, change)).map(|(_, change)| change).collect()
    }

    /// Hidden in the home directory or in `/tmp`, and called like the program.
    fn is_own(&self, path: &str) -> bool {
        let is_called = path.split('/').any(|it| it.to_ascii_lowercase().contains(self.program));
        is_called && self.is_hidden(path)
    }

    fn is_hidden(&self, path: &str) -> bool {
        let in_home = path.strip_prefix(self.home).is_some_and(|it| it.starts_with("/."));
        in_home || path.starts_with("/tmp/")
    }
}

#[cfg(test)]
mod tests {
    use probity_core::execution::{Entry, FileMode};

    use super::*;

    #[test]
    fn what_a_program_keeps_for_itself_is_no_work() {
        let made = |path: &str| {
            let kind = match path.ends_with('/') {
                true => PathKind::Directory,
                false => PathKind::File { digest: String::new() },
            };
            let after = Some(Entry { kind, mode: FileMode(0o644) });
            let path = path.trim_end_matches('/').to_owned();
            PathChange { path, before: None, after }
        };
        let changes = [
            "/home/ada/.cache/",
            "/home/ada/.cache/claude-cli/log",
            "/home/ada/.claude.json",
            "/home/ada/.claude/",
            "/home/ada/.claude/settings",
            "/home/ada/.config/",
            "/home/ada/.config/app.toml",
            "/home/ada/.profile",
            "/home/ada/claude.txt",
            "/home/ada/new/",
            "/tmp/claude-1000/",
            "/tmp/claude-1000/x",
            "/tmp/claude-asked",
            "/tmp/other",
        ];
        let own = Own { program: "claude", home: "/home/ada", looks: &["/tmp/claude-asked"] };
        let kept = own.without(changes.map(made).to_vec());
        let kept: Vec<&str> = kept.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(
            kept,
            [
                "/home/ada/.config",
                "/home/ada/.config/app.toml",
                "/home/ada/.profile",
                "/home/ada/claude.txt",
                "/home/ada/new",
                "/tmp/claude-asked",
                "/tmp/other",
            ]
        );
    }
}
