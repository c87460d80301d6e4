//! Whether two commands do the same.
//!
//! `equal` is a proof: the canonical forms are the same. `different` says that the same programs run with something
//! that our tables say matters. Everything else is `unknown`, which is never a pass.

mod slight;

use std::fmt;

use serde::Serialize;

pub use crate::canonical::Form;
use crate::{
    Script,
    canonical::{CommandForm, Compound, Token, TokenKind},
};

/// What is known about two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// They do the same.
    Equal,
    /// They do not.
    Different,
    /// It cannot be said.
    Unknown,
}

impl Verdict {
    /// The name in results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Different => "different",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The verdict and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Equivalence {
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub reason: String,
    /// The canonical forms, as shell text.
    pub canonical: [String; 2],
    /// The first place where the forms part.
    pub difference: Option<Difference>,
    /// Whether all that differs makes no difference in most places, so that both may have the same effect there.
    pub is_slight: bool,
}

/// The first place where two canonical forms part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What kind of thing differs.
    pub what: What,
    /// What the first command has there; empty if nothing.
    pub left: String,
    /// What the second command has there.
    pub right: String,
}

/// What kind of thing differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// Another program, or commands joined in another way.
    Structure,
    /// An assignment before the command.
    Assignment,
    /// An option or its value.
    Option,
    /// An operand.
    Operand,
    /// A redirection.
    Redirection,
}

impl What {
    /// The name in results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Structure => "structure",
            Self::Assignment => "assignment",
            Self::Option => "option",
            Self::Operand => "operand",
            Self::Redirection => "redirection",
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side =
            |text: &str| if text.is_empty() { "nothing".to_owned() } else { format!("`{text}`") };
        write!(f, "{}: {} instead of {}", self.what.as_str(), side(&self.left), side(&self.right))
    }
}

/// Compares two parsed commands.
pub fn compare(left: &Script<'_>, right: &Script<'_>) -> Equivalence {
    compare_forms(&Form::of(left), &Form::of(right))
}

/// Compares two canonical forms.
pub fn compare_forms(left: &Form, right: &Form) -> Equivalence {
    let (verdict, reason, difference) = judge(left, right);
    let shown = left.shown();
    let canonical = if left == right { [shown.clone(), shown] } else { [shown, right.shown()] };
    let is_slight = verdict == Verdict::Different
        && (slight::gist(left) == slight::gist(right)
            || (slight::is_constant(left) && slight::is_constant(right)));
    Equivalence { verdict, reason: reason.to_owned(), canonical, difference, is_slight }
}

/// The commands in a text that run a program, in canonical form and in their order: what the text does with it.
pub fn uses(script: &Script<'_>, program: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(&Form::of(script), program, &mut found);
    found
}

fn collect(form: &Form, program: &str, found: &mut Vec<String>) {
    let is_word = |word: &str| word == program || word.rsplit('/').next() == Some(program);
    match form {
        Form::Command(it) if it.tokens.iter().any(|it| is_word(&it.text)) => {
            found.push(form.to_string());
        }
        Form::Compound(it) => it.parts.iter().for_each(|it| collect(it, program, found)),
        Form::Text(text) if text.contains(program) => found.push(text.clone()),
        Form::Command(_) | Form::Text(_) => {}
    }
}

/// Whether the verdict on two canonical forms is `equal`.
///
/// Forms that hold a command fall into classes by it, so that many commands can be sorted into groups
/// without reading any of them twice.
pub fn are_equal(left: &Form, right: &Form) -> bool {
    judge(left, right).0 == Verdict::Equal
}

fn judge(left: &Form, right: &Form) -> (Verdict, &'static str, Option<Difference>) {
    if left.is_empty() || right.is_empty() {
        return (Verdict::Unknown, "one of them holds no command", None);
    }
    let differs = (left != right).then(|| difference(left, right)).flatten();
    let Some(difference) = differs else {
        return (Verdict::Equal, "both have the same canonical form", None);
    };
    let known = left.is_known() && right.is_known();
    let (verdict, reason) = match difference.what {
        What::Structure => {
            (Verdict::Unknown, "they run other programs, which may still do the same")
        }
        What::Assignment | What::Option | What::Operand | What::Redirection if known => {
            (Verdict::Different, "they run the same programs on something else")
        }
        What::Assignment | What::Option | What::Operand | What::Redirection => {
            (Verdict::Unknown, "they use a utility or an option that no table describes")
        }
    };
    (verdict, reason, Some(difference))
}

fn difference(left: &Form, right: &Form) -> Option<Difference> {
    match (left, right) {
        (Form::Command(left), Form::Command(right)) => commands(left, right),
        (Form::Compound(left), Form::Compound(right)) => compounds(left, right),
        _ if left == right => None,
        _ => Some(structure(left, right)),
    }
}

fn structure(left: &Form, right: &Form) -> Difference {
    Difference { what: What::Structure, left: left.to_string(), right: right.to_string() }
}

fn compounds(left: &Compound, right: &Compound) -> Option<Difference> {
    if left.join != right.join || left.parts.len() != right.parts.len() {
        let whole = |it: &Compound| Form::Compound(Box::new(it.clone()));
        return Some(structure(&whole(left), &whole(right)));
    }
    let found: Vec<Difference> = left
        .parts
        .iter()
        .zip(&right.parts)
        .filter_map(|(left, right)| difference(left, right))
        .collect();
    // Where other programs run, what the others are told may well make up for it.
    let structure = found.iter().position(|it| it.what == What::Structure).unwrap_or(0);
    let parts = found.into_iter().nth(structure);
    parts.or_else(|| first(What::Redirection, &left.redirects, &right.redirects))
}

fn commands(left: &CommandForm, right: &CommandForm) -> Option<Difference> {
    let named = |it: &&Token| it.kind == TokenKind::Program;
    let (left_names, right_names) =
        (left.tokens.iter().filter(named), right.tokens.iter().filter(named));
    if !left_names.clone().eq(right_names.clone()) {
        let shown = |names: Vec<String>| names.join(" ");
        return Some(Difference {
            what: What::Structure,
            left: shown(left_names.map(Token::display).collect()),
            right: shown(right_names.map(Token::display).collect()),
        });
    }
    first(What::Assignment, &left.assignments, &right.assignments)
        .or_else(|| tokens(&left.tokens, &right.tokens))
        .or_else(|| {
            let texts = |it: &CommandForm| {
                it.redirects.iter().map(std::string::ToString::to_string).collect::<Vec<_>>()
            };
            first(What::Redirection, &texts(left), &texts(right))
        })
}

fn tokens(left: &[Token], right: &[Token]) -> Option<Difference> {
    let at = (0..left.len().max(right.len())).find(|at| left.get(*at) != right.get(*at))?;
    let (left, right) = (left.get(at), right.get(at));
    let is_option = |it: &&Token| matches!(it.kind, TokenKind::Option | TokenKind::Value);
    let what = match left.iter().chain(right.iter()).any(is_option) {
        true => What::Option,
        false => What::Operand,
    };
    let shown = |it: Option<&Token>| it.map(Token::display).unwrap_or_default();
    Some(Difference { what, left: shown(left), right: shown(right) })
}

fn first(what: What, left: &[String], right: &[String]) -> Option<Difference> {
    let at = (0..left.len().max(right.len())).find(|at| left.get(*at) != right.get(*at))?;
    let side = |it: &[String]| it.get(at).cloned().unwrap_or_default();
    Some(Difference { what, left: side(left), right: side(right) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slight_differences_are_told_from_others() {
        let slight = |left: &str, right: &str| {
            let parse = |text| Script::parse(text).unwrap();
            let found = compare(&parse(left), &parse(right));
            assert_eq!(found.verdict, Verdict::Different, "{left} and {right}");
            found.is_slight
        };
        for (left, right) in [
            ("diff -r a/ b", "diff -r a b/"),
            ("find $x -delete", "find \"$x\" -delete"),
            ("find . -name a 2> /dev/null", "find . -name a"),
            ("find . -name a", "find . -type f -name a"),
            ("echo -n a", "echo a"),
            ("mkdir -p a/b", "mkdir a/b"),
            ("sudo rm -f a", "sudo rm a"),
            ("git checkout -q a", "git checkout a"),
            ("ls ./a", "ls a"),
            ("seq 1 2 10", "seq 1 2 9"),
            ("printf '%d\\n' -0", "printf '%d\\n' 0"),
        ] {
            assert!(slight(left, right), "{left} and {right}");
        }
        for (left, right) in [
            ("head -n 5 f", "head -n 6 f"),
            ("cut -d: -f1 f", "cut -d: -f2 f"),
            ("cat a", "cat b"),
            ("find / -name a", "find . -name a"),
            ("find . -type d -name a", "find . -name a"),
            ("find . -mtime 1", "find . -mtime 2"),
            ("cat a > b", "cat a > c"),
            ("sort -n f", "sort f"),
            ("date -u", "date"),
            ("git branch -d a", "git branch -D a"),
            ("ls -f", "ls"),
            ("printf '%s' $x", "printf '%s' $y"),
            ("printf '%s' *.a", "printf '%s' *.b"),
            ("seq 3 > a", "seq 3 > b"),
        ] {
            assert!(!slight(left, right), "{left} and {right}");
        }
    }

    #[test]
    fn the_uses_of_a_program_are_found_wherever_they_are() {
        let of = |text: &str, program: &str| uses(&Script::parse(text).unwrap(), program);
        assert_eq!(of("chown bob f; ls", "chown"), ["chown bob f"]);
        assert_eq!(of("ls && sudo chown bob f", "chown"), ["sudo chown bob f"]);
        assert_eq!(of("find . -exec chown bob {} ';'", "chown").len(), 1);
        assert_eq!(of("ls", "chown"), [""; 0]);
    }
}
