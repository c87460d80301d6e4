//! What a command promises about what it writes: whether the order of lines and the width of blanks mean anything.
//!
//! The table is `data/output.toml`. What is not in it promises everything.

mod exit;

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use crate::{
    Script,
    argv::Invocation,
    awk,
    field::{self, CLOSE, Expand, Field, OPEN_QUOTED},
    tree::{Command, Part, RedirectOp, Stmt},
    utility,
};

/// What a command promises about its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// What the order of lines means.
    pub order: Order,
    /// Whether some blanks only line up columns.
    pub padded: bool,
    /// Whether a program in it needs a network.
    pub network: bool,
    /// What exit code 1 says.
    pub one: One,
}

/// What exit code 1 of a command says, beside that it failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum One {
    /// Nothing.
    #[default]
    Failed,
    /// If it complains: that it did what it could, and that there was something that it could not look at.
    Partly,
    /// That there was nothing to be found, or that things differ.
    Nothing,
}

/// What the order of lines means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Nothing: another run may write them in another order.
    None,
    /// It comes about by itself, as that of lines in a file does.
    Natural,
    /// The command asks for it.
    Asked,
}

impl Order {
    /// What the order of two outputs means, one written after the other.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Asked, _) | (_, Self::Asked) => Self::Asked,
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::Natural, Self::Natural) => Self::Natural,
        }
    }
}

/// Programs that run others.
const WRAPPERS: &[&str] =
    &["xargs", "find", "sudo", "time", "nice", "nohup", "timeout", "env", "command"];

impl Promise {
    /// What a script promises.
    pub fn of(script: &Script<'_>) -> Self {
        let one = script.body.last().map_or(One::Failed, exit::one);
        let mut promise = Self { order: Order::Natural, padded: false, network: false, one };
        promise.statements(&script.body);
        promise
    }

    fn statements(&mut self, body: &[Stmt]) {
        self.list(body.iter());
    }

    /// Statements that run one after the other. Each may read what the whole reads.
    fn list<'s>(&mut self, statements: impl Iterator<Item = &'s Stmt>) {
        let before = (self.order, self.padded);
        let mut together: Option<(Order, bool)> = None;
        for stmt in statements {
            (self.order, self.padded) = before;
            self.statement(stmt);
            if !writes_elsewhere(stmt) && !is_quiet(stmt) {
                // Blanks mean nothing only if they mean nothing in all that is written.
                let own = (self.order, self.padded);
                together = Some(together.map_or(own, |it| (it.0.and(own.0), it.1 && own.1)));
            }
        }
        (self.order, self.padded) = together.unwrap_or(before);
    }

    fn statement(&mut self, stmt: &Stmt) {
        match &stmt.command {
            Command::Simple(it) => {
                for it in &it.assignments {
                    field::encode_single(&it.value, &mut Within(self));
                }
                let mut fields = Vec::new();
                for word in &it.words {
                    field::push_fields(word, &mut Within(self), &mut fields);
                }
                self.run(&fields);
            }
            Command::Pipeline(stages) => stages.iter().for_each(|it| self.statement(&it.stmt)),
            Command::AndOr(it) => {
                self.list(std::iter::once(&it.first).chain(it.rest.iter().map(|(_, stmt)| stmt)));
            }
            Command::Group(body) | Command::Subshell(body) => self.statements(body),
            Command::If(it) => {
                for (condition, body) in &it.branches {
                    self.statements(condition);
                    self.statements(body);
                }
                self.statements(it.otherwise.as_deref().unwrap_or_default());
            }
            Command::For(it) => {
                for word in it.words.iter().flatten() {
                    field::push_fields(word, &mut Within(self), &mut Vec::new());
                }
                self.statements(&it.body);
            }
            Command::ArithmeticFor(it) => self.statements(&it.body),
            Command::While(it) => {
                self.statements(&it.condition);
                self.statements(&it.body);
            }
            Command::Case(it) => it.arms.iter().for_each(|arm| self.statements(&arm.body)),
            Command::Condition(_) | Command::Arithmetic(_) => {}
            Command::Function(it) => self.statement(&it.body),
            Command::Time(it) => it.stmt.iter().for_each(|it| self.statement(it)),
            Command::Coproc(it) => self.statement(it),
            Command::Foreign(it) => it.bodies.iter().for_each(|it| self.statements(it)),
        }
    }

    fn run(&mut self, fields: &[Field]) {
        let Some((word, arguments)) = fields.split_first() else { return };
        let name = word.text.rsplit('/').next().unwrap_or_default();
        if let Some(habit) = TABLE.get(name) {
            let call = utility::lookup(name).map(|it| Invocation::read(it, arguments));
            let given = |when: &When| match when {
                When::Always(always) => *always,
                When::With(options) => {
                    call.as_ref().is_some_and(|call| options.iter().any(|it| call.has(it)))
                }
            };
            if given(&habit.sorts) {
                self.order = Order::Asked;
            } else if given(&habit.scrambles) {
                self.order = Order::None;
            }
            // What takes lines apart writes blanks of its own.
            self.padded = given(&habit.pads) || self.padded && !habit.reshapes;
            // Without an operand there is nobody to talk to: `ssh -V`.
            self.network |= habit.network && call.is_none_or(|it| !it.operands.is_empty());
            self.network |=
                arguments.iter().any(|it| habit.network_with.iter().any(|with| it.text == *with));
        }
        // Names that are sorted for a program say nothing about the order of what that program writes.
        if name == "xargs" && self.order == Order::Asked {
            self.order = Order::Natural;
        }
        // An array of `awk` is gone through in any order.
        if name.ends_with("awk") && arguments.iter().any(|it| walks_array(&it.text)) {
            self.order = Order::None;
        }
        let inner = arguments.iter().position(|it| TABLE.contains_key(&*it.text));
        if let Some(at) = inner.filter(|_| WRAPPERS.contains(&name)) {
            self.run(&arguments[at..]);
        }
    }
}

/// Whether a statement writes nothing whatever happens.
fn is_quiet(stmt: &Stmt) -> bool {
    const QUIET: &[&str] =
        &["cd", "export", "set", "shopt", "umask", "mkdir", "touch", "true", "false", "exit"];
    let Command::Simple(it) = &stmt.command else { return false };
    it.words.first().is_none_or(|it| QUIET.contains(&&*exit::text(it)))
}

/// Whether the output goes to a file.
fn writes_elsewhere(stmt: &Stmt) -> bool {
    let last = if let Command::Pipeline(stages) = &stmt.command {
        stages.last().map_or(stmt, |it| &it.stmt)
    } else {
        stmt
    };
    [stmt, last].iter().flat_map(|it| &it.redirects).any(|it| {
        matches!(it.op, RedirectOp::Output | RedirectOp::Clobber | RedirectOp::Append)
            && it.fd.is_none_or(|it| it == 1)
    })
}

/// `for (key in array)`.
fn walks_array(program: &str) -> bool {
    let tokens = awk::tokens(program);
    tokens.windows(4).any(|it| {
        matches!(
            it,
            [
                awk::Token::Name("for"),
                awk::Token::Mark("("),
                awk::Token::Name(_),
                awk::Token::Name("in")
            ]
        )
    })
}

/// Commands in words are gone through, and their text is not known.
struct Within<'p>(&'p mut Promise);

impl Expand for Within<'_> {
    fn expand(&mut self, part: &Part, out: &mut String) {
        match part {
            Part::Command(it) => self.0.statements(&it.body),
            Part::Process(it) => self.0.statements(&it.body),
            Part::Text { .. } | Part::Parameter(_) | Part::Arithmetic(_) | Part::Array(_) => {}
        }
        out.extend([OPEN_QUOTED, CLOSE]);
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Habit {
    scrambles: When,
    sorts: When,
    pads: When,
    reshapes: bool,
    network: bool,
    /// Subcommands that need a network.
    network_with: Vec<String>,
    one: One,
}

enum When {
    Always(bool),
    With(Vec<String>),
}

impl Default for When {
    fn default() -> Self {
        Self::Always(false)
    }
}

impl<'de> Deserialize<'de> for When {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = When;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("`true` or a list of options")
            }

            fn visit_bool<E>(self, value: bool) -> Result<When, E> {
                Ok(When::Always(value))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<When, A::Error> {
                let mut options = Vec::new();
                while let Some(option) = seq.next_element()? {
                    options.push(option);
                }
                Ok(When::With(options))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

static TABLE: LazyLock<BTreeMap<String, Habit>> = LazyLock::new(|| table!("output"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_promises_an_order_or_does_not() {
        for (text, order) in [
            ("find . -name x", Order::None),
            ("find . -name x | sort", Order::Asked),
            ("sort f | head -3", Order::Asked),
            ("grep -rn x .", Order::None),
            ("grep -n x f", Order::Natural),
            ("ls", Order::Natural),
            ("ls -lt", Order::Asked),
            ("ls -U | cat", Order::None),
            ("for f in $(find .); do cat $f; done", Order::None),
            ("awk '{n[$1]++} END {for (k in n) print k}' f", Order::None),
            ("cat f | xargs du -s", Order::None),
            ("find . | sort | xargs wc -l", Order::Natural),
            ("sort f; find .", Order::Asked),
            ("find . && ls -t", Order::Asked),
            ("cd x && find .", Order::None),
            ("sort f > g; find .", Order::None),
            ("find . | while read f; do cat \"$f\"; done", Order::None),
            ("awk '/waiting for disk in /' f", Order::Natural),
        ] {
            assert_eq!(Promise::of(&Script::parse(text).unwrap()).order, order, "{text}");
        }
    }

    #[test]
    fn blanks_and_the_network_are_known() {
        let of = |text: &str| Promise::of(&Script::parse(text).unwrap());
        assert!(of("sort f | uniq -c").padded);
        assert!(of("find . | xargs wc -l").padded);
        assert!(!of("cat f").padded);
        assert!(!of("uniq f").padded && !of("ls").padded && of("ls -la").padded);
        assert!(of("cat -n f").padded);
        assert!(of("sort f | uniq -c | sort -rn").padded && of("cd x && wc -l f").padded);
        assert!(!of("wc -l f; cat f").padded && !of("wc -l f | awk '{print}'").padded);
        assert!(of("git push origin main").network && !of("git log").network);
        assert!(of("x=$(curl -s http://x)").network);
        assert!(!of("echo curl").network && !of("ssh -V").network);
    }
}
