//! What exit code 1 of a command says.

use super::{One, TABLE, WRAPPERS};
use crate::{
    field::{self, CLOSE, Expand, OPEN_QUOTED},
    tree::{Command, Part, Stmt, Word},
};

/// What exit code 1 of a statement says. It may come of any part of `a && b`.
pub(super) fn one(stmt: &Stmt) -> One {
    match &stmt.command {
        Command::Simple(it) => of_words(&it.words),
        Command::Pipeline(stages) => stages.last().map_or(One::Failed, |it| one(&it.stmt)),
        Command::AndOr(it) => {
            let all = std::iter::once(&it.first).chain(it.rest.iter().map(|(_, stmt)| stmt));
            all.map(one).max().unwrap_or_default()
        }
        Command::Group(body) | Command::Subshell(body) => last(body),
        Command::If(it) => {
            let bodies = it.branches.iter().map(|(_, body)| body).chain(&it.otherwise);
            bodies.map(|it| last(it)).max().unwrap_or_default()
        }
        Command::For(it) => last(&it.body),
        Command::ArithmeticFor(it) => last(&it.body),
        Command::While(it) => last(&it.body),
        Command::Case(it) => it.arms.iter().map(|it| last(&it.body)).max().unwrap_or_default(),
        Command::Condition(_) | Command::Arithmetic(_) => One::Nothing,
        Command::Time(it) => it.stmt.as_ref().map_or(One::Failed, one),
        Command::Function(_) | Command::Coproc(_) | Command::Foreign(_) => One::Failed,
    }
}

fn last(body: &[Stmt]) -> One {
    body.last().map_or(One::Failed, one)
}

/// Of `xargs grep` and `find -exec grep` both programs count.
fn of_words(words: &[Word]) -> One {
    let names: Vec<String> = words.iter().map(text).collect();
    let base = |it: &String| it.rsplit('/').next().unwrap_or_default().to_owned();
    let is_wrapper = names.first().is_some_and(|it| WRAPPERS.contains(&&*base(it)));
    let counted = if is_wrapper { names.len() } else { 1 };
    let known = names.iter().take(counted).filter_map(|it| TABLE.get(&base(it)));
    known.map(|it| it.one).max().unwrap_or_default()
}

/// A word, in which expansions say nothing.
pub(super) fn text(word: &Word) -> String {
    field::encode_single(word, &mut Unread)
}

struct Unread;

impl Expand for Unread {
    fn expand(&mut self, _part: &Part, out: &mut String) {
        out.extend([OPEN_QUOTED, CLOSE]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Script, internal::output::Promise};

    #[test]
    fn who_ends_a_command_says_what_one_means() {
        for (text, one) in [
            ("grep x f", One::Nothing),
            ("cat f | grep x", One::Nothing),
            ("grep x f | wc -l", One::Partly),
            ("grep x f; exit 1", One::Failed),
            ("cat f; false", One::Failed),
            ("find . -type f | xargs grep x", One::Nothing),
            ("find . -name x", One::Partly),
            ("test -f x && echo y", One::Nothing),
            ("[ -f x ] || echo y", One::Nothing),
            ("if true; then diff a b; fi", One::Nothing),
            ("python3 x.py", One::Failed),
        ] {
            assert_eq!(Promise::of(&Script::parse(text).unwrap()).one, one, "{text}");
        }
    }
}
