//! Executions as people see them.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
};

use super::{EffectFound, Executed, ExecutedIn, Likeness, PathChange, Stream};
use crate::record::Asked;

/// The role of an execution of what is in a reply.
pub const EXECUTION_ROLE: &str = "execution";
/// The role of a look at what a program in the sandbox left behind, where no case asks for more.
pub const LEFT_ROLE: &str = "left behind";
/// What the roles of executions of two commands begin with.
const EFFECT: &str = "effect ";
/// Lines of an output, and changes, that are shown.
const MOST: usize = 40;

/// The role of an execution of the command of a reply and an accepted one. Pairs count from 0.
pub fn effect_role(number: usize) -> String {
    format!("{EFFECT}{}", number + 1)
}

impl Asked {
    /// Whether two commands were executed, and no backend asked.
    pub fn is_effect(&self) -> bool {
        self.role.starts_with(EFFECT)
    }

    /// Whether a world was looked at, and no backend asked.
    fn is_execution(&self) -> bool {
        matches!(&*self.role, EXECUTION_ROLE | LEFT_ROLE)
    }

    /// Whether something was executed, and no backend asked.
    pub fn is_of_sandbox(&self) -> bool {
        self.is_execution() || self.is_effect()
    }

    /// What was answered, for people.
    pub fn shown_reply(&self) -> Option<Cow<'_, str>> {
        let reply = self.reply.as_deref()?;
        let shown = match self.is_execution() {
            true => Executed::from_json(reply).ok().map(|it| it.shown()),
            false if self.is_effect() => EffectFound::from_json(reply).ok().map(|it| it.shown()),
            false => None,
        };
        Some(shown.map_or(Cow::Borrowed(reply), Cow::Owned))
    }
}

impl Executed {
    /// What came of it in each world.
    pub fn shown(&self) -> String {
        let mut text = String::new();
        self.worlds.iter().for_each(|it| it.show(&mut text));
        let tools: Vec<&str> = self.tools.values().map(String::as_str).collect();
        if !tools.is_empty() {
            let _ = writeln!(text, "with {}", tools.join("; "));
        }
        text
    }
}

impl ExecutedIn {
    fn show(&self, text: &mut String) {
        let Self { world, end, took_ms, stdout, stderr, changes, refused, .. } = self;
        let _ = writeln!(text, "in the world `{world}`: {end} after {took_ms} ms");
        show_stream(text, "standard output", stdout);
        show_stream(text, "standard error", stderr);
        for change in changes.iter().take(MOST) {
            let _ = writeln!(text, "{} {}", sign(change), change.path);
        }
        if changes.len() > MOST {
            let _ = writeln!(text, "and {} more changes", changes.len() - MOST);
        }
        if !refused.is_empty() {
            let _ = writeln!(text, "refused: {}", refused.join(", "));
        }
    }
}

fn show_stream(text: &mut String, name: &str, stream: &Stream) {
    if stream.is_empty() {
        return;
    }
    let _ = writeln!(text, "{name}:");
    let mut lines = stream.text.lines();
    for line in lines.by_ref().take(MOST) {
        let _ = writeln!(text, "  {line}");
    }
    let more = lines.count();
    if more > 0 || stream.is_cut {
        let _ = writeln!(text, "  … ({} bytes in all)", stream.bytes);
    }
}

fn sign(change: &PathChange) -> char {
    match (&change.before, &change.after) {
        (None, _) => '+',
        (_, None) => '-',
        (Some(_), Some(_)) => '~',
    }
}

impl fmt::Display for Likeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { overall, words, effects } = self;
        write!(f, "likeness: {overall:.2} (words {words:.2}")?;
        match effects {
            Some(effects) => write!(f, ", effects {effects:.2})"),
            None => f.write_str(")"),
        }
    }
}

impl EffectFound {
    /// What it shows, with all that belongs to it.
    pub fn shown(&self) -> String {
        let mut text = format!("{}: {}\n", self.verdict, self.sentence());
        if let Some(caveat) = &self.caveat {
            let _ = writeln!(text, "but in an odd world: {caveat}");
        }
        for (what, worlds) in [("the same in", &self.agreed), ("nothing in", &self.silent)] {
            if !worlds.is_empty() {
                let _ = writeln!(text, "{what}: {}", worlds.join(", "));
            }
        }
        if let Some(likeness) = &self.likeness {
            let _ = writeln!(text, "{likeness}");
        }
        text
    }
}
