//! Whether a rule is about a call.

use super::{
    call::{Arg, Call, Kind},
    pattern::Step,
    rule::{Allow, Program, Rules, Shape},
};
use crate::tree::{Span, Text};

/// How far into its arguments a command's subcommands are looked for.
const MAX_PATH: usize = 48;

/// How the operands must meet a shape's targets and patterns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantity {
    Any,
    All,
}

/// The rules that find a call, each with the part it is about.
pub(super) fn found_by<'r>(
    rules: &'r Rules,
    program: Option<&'r Program>,
    call: &'r Call<'r>,
    harmless: bool,
) -> impl Iterator<Item = (usize, Span)> + 'r {
    let indexes = program.map(|it| it.rules.as_slice()).unwrap_or_default();
    indexes.iter().filter_map(move |index| {
        let rule = rules.rule(*index);
        if harmless && !rule.always {
            return None;
        }
        meets(&rule.shape, call, Quantity::Any).map(|span| (*index, span))
    })
}

/// Whether an allow entry is about a call.
pub(super) fn allows(allow: &Allow, call: &Call<'_>) -> bool {
    (allow.programs.is_empty() || allow.programs.iter().any(|it| it.matches(call.name)))
        && meets(&allow.shape, call, Quantity::All).is_some()
}

/// Whether an allow entry silences a rule everywhere.
pub(super) fn silences(allow: &Allow, rule: &Text) -> bool {
    allow.programs.is_empty() && allow.rules.contains(rule)
}

fn meets(shape: &Shape, call: &Call<'_>, quantity: Quantity) -> Option<Span> {
    let from = match shape.commands.as_slice() {
        [] => 0,
        paths => paths.iter().find_map(|path| follow(&path.0, &call.args, 0))?,
    };
    if !shape.with.iter().all(|it| call.has(it)) || shape.without.iter().any(|it| call.has(it)) {
        return None;
    }
    if shape.least > 0 && call.operands(from).count() < shape.least {
        return None;
    }
    if shape.targets.is_empty() && shape.operands.is_empty() {
        return Some(call.span);
    }
    let fits = |arg: &&Arg<'_>| {
        let target = || call.classes(arg).meets(shape.targets);
        let word = || shape.operands.iter().any(|it| it.matches(arg.text));
        (shape.targets.is_empty() || target()) && (shape.operands.is_empty() || word())
    };
    let mut operands = call.operands(from);
    match (shape.last, quantity) {
        (true, _) => operands.next_back().filter(fits).map(|it| it.span),
        (false, Quantity::Any) => operands.find(fits).map(|it| it.span),
        (false, Quantity::All) => {
            let first = operands.next().filter(fits)?;
            operands.all(|it| fits(&it)).then_some(first.span)
        }
    }
}

/// Follows a path of subcommands; gives the place of the first argument after it. A word that may be an option's value
/// can be passed over.
fn follow(steps: &[Step], args: &[Arg<'_>], from: usize) -> Option<usize> {
    let Some((step, rest)) = steps.split_first() else { return Some(from) };
    for at in from..args.len().min(MAX_PATH) {
        let arg = &args[at];
        if matches!(arg.kind, Kind::Option | Kind::Value) {
            continue;
        }
        let found = match step {
            Step::Word(pattern) if pattern.matches(arg.text) => follow(rest, args, at + 1),
            Step::Word(_) => None,
            Step::Any => follow(rest, args, at),
        };
        if found.is_some() {
            return found;
        }
        if arg.kind == Kind::Word && matches!(step, Step::Word(_)) {
            return None;
        }
    }
    None
}
