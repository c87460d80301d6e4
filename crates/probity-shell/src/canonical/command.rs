//! A simple command in canonical form: options spelled one way and sorted, operands in the order that matters.

use compact_str::format_compact;

use super::{
    Builder, Form, MAX_WRAPPED, dialect,
    expand::Canonical,
    find,
    program::{self, Program},
    redirect::RedirectForm,
    render, xargs,
};
use crate::{
    argv::{Given, Invocation},
    field::{self, Field},
    tree::{Simple, Text},
    utility::{self, Many, Repeat, Utility, Value},
};

/// A simple command in canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandForm {
    /// `NAME=value` before it.
    pub assignments: Vec<String>,
    /// The command word and its arguments.
    pub tokens: Vec<Token>,
    /// Its redirections.
    pub redirects: Vec<RedirectForm>,
    /// Whether its table knows the utility and every option given.
    pub known: bool,
}

/// A word of a canonical command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Its text, with markers.
    pub text: Text,
}

/// What a word of a canonical command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenKind {
    /// The name of a program or subcommand.
    Program,
    /// An option, with its value if that is attached.
    Option,
    /// The value of the option before it.
    Value,
    /// An operand.
    Operand,
}

impl Token {
    pub(super) fn new(kind: TokenKind, text: impl Into<Text>) -> Self {
        Self { kind, text: text.into() }
    }

    pub(super) fn operand(text: impl Into<Text>) -> Self {
        Self::new(TokenKind::Operand, text)
    }

    /// The token as people would write it.
    pub fn display(&self) -> String {
        render::word(&self.text)
    }
}

impl CommandForm {
    /// The program, if its name is known.
    pub(super) fn program(&self) -> Option<&str> {
        self.tokens.first().map(|it| &*it.text)
    }

    /// A plain command: no assignments.
    pub(super) fn is(&self, program: &str) -> bool {
        self.assignments.is_empty() && self.program() == Some(program)
    }
}

pub(super) fn simple(builder: Builder<'_>, simple: &Simple, redirects: Vec<RedirectForm>) -> Form {
    let mut expand = Canonical::new(builder);
    let assignments = simple
        .assignments
        .iter()
        .map(|it| {
            let subscript = it.subscript.as_ref().map(|it| format!("[{it}]")).unwrap_or_default();
            let sign = if it.append { "+=" } else { "=" };
            format!("{}{subscript}{sign}{}", it.name, render::assigned(&expand.unsplit(&it.value)))
        })
        .collect();
    let mut fields = Vec::with_capacity(simple.words.len());
    for word in &simple.words {
        field::push_fields(word, &mut expand, &mut fields);
    }
    fields.iter_mut().for_each(home);
    let Argv { mut tokens, known, input } = canonical_argv(builder, &fields);
    if builder.synonyms
        && input.is_none()
        && let Some(other) = dialect::synonym(&tokens)
    {
        tokens = other;
    }
    let mut redirects = redirects;
    // A file that the utility would read itself and a file on its standard input are one thing, unless both are there.
    match input {
        Some(file) if !redirects.iter().any(RedirectForm::is_input) => {
            redirects.insert(0, RedirectForm::input(&file));
        }
        Some(file) => tokens.push(Token::operand(file)),
        None => {}
    }
    Form::Command(Box::new(CommandForm { assignments, tokens, redirects, known }))
}

/// `~` is `"$HOME"`; `~user` is somebody else's.
fn home(field: &mut Field) {
    if let Some(rest) = field.text.strip_prefix(field::TILDE)
        && (rest.is_empty() || rest.starts_with('/'))
    {
        field.text = format_compact!("{}${{HOME}}{}{rest}", field::OPEN_QUOTED, field::CLOSE);
    }
}

/// Canonical arguments.
pub(super) struct Argv {
    pub(super) tokens: Vec<Token>,
    pub(super) known: bool,
    /// The one file it reads, taken out of the operands.
    pub(super) input: Option<Text>,
}

impl Argv {
    /// A program with its arguments as they were written: nothing is known that would allow to move them.
    pub(super) fn as_written(program: &str, arguments: &[Field]) -> Self {
        let mut tokens = vec![Token::new(TokenKind::Program, program)];
        tokens.extend(arguments.iter().map(|it| Token::operand(&*it.text)));
        Self { tokens, known: false, input: None }
    }

    /// The arguments with the file they read put back: inside another command there is no redirection.
    pub(super) fn nested(self) -> (Vec<Token>, bool) {
        let Self { mut tokens, known, input } = self;
        tokens.extend(input.map(Token::operand));
        (tokens, known)
    }
}

/// The canonical arguments of a command given by its fields, the command word first.
pub(super) fn canonical_argv(builder: Builder<'_>, fields: &[Field]) -> Argv {
    let builder = Builder { wrapped: builder.wrapped + 1, ..builder };
    let program = program::resolve(fields).filter(|_| builder.wrapped <= MAX_WRAPPED);
    let Some(Program { name, words }) = program else {
        return match fields.split_first() {
            Some((first, rest)) => Argv::as_written(&first.text, rest),
            None => Argv { tokens: Vec::new(), known: false, input: None },
        };
    };
    let arguments = &*words;
    match &*name {
        "find" => return find::canonical(builder, arguments),
        "xargs" => return xargs::canonical(builder, arguments),
        _ => {}
    }
    if let Some(argv) = dialect::special(builder, &name, arguments) {
        return argv;
    }
    let Some(utility) = utility::lookup(&name) else { return Argv::as_written(&name, arguments) };
    by_table(builder, utility, &name, arguments)
}

/// More options than this are left as they are: looking which overrides which takes their square.
const MAX_OPTIONS: usize = 256;

fn by_table(
    builder: Builder<'_>,
    utility: &'static Utility,
    name: &str,
    arguments: &[Field],
) -> Argv {
    let rewritten = dialect::arguments(builder, name, arguments);
    let arguments = rewritten.as_deref().unwrap_or(arguments);
    let invocation = Invocation::read(utility, arguments);
    let countless = invocation.options.len() > MAX_OPTIONS;
    if countless
        || dialect::is_refused(name, &invocation)
        || !invocation.unknown.is_empty()
        || invocation.utility.slots.is_none()
    {
        // What an unknown option takes for its value is not known, so nothing is moved.
        return Argv::as_written(name, arguments);
    }
    let mut tokens = vec![Token::new(TokenKind::Program, name)];
    for (level, table) in invocation.levels.iter().enumerate().take(invocation.path.len()) {
        let given = invocation.global.iter().filter(|it| it.level == level);
        tokens.extend(options(table, given).into_iter().flat_map(|(_, tokens)| tokens));
        tokens.push(Token::new(TokenKind::Program, invocation.path[level]));
    }
    let mut parts = Parts::of(&invocation);
    let mut known = true;
    dialect::refine(builder, name, &invocation, &mut parts);
    // Only their places in the table are asked for after this.
    tokens.extend(parts.options.iter_mut().flat_map(|(_, tokens)| std::mem::take(tokens)));
    let input = match parts.nested {
        Some(at) => {
            let (plain, command) = parts.operands.split_at(at);
            tokens.extend(plain.iter().map(|it| Token::operand(&*it.text)));
            let (nested, nested_known) = dialect::nested(builder, name, command);
            tokens.extend(nested);
            known = nested_known;
            None
        }
        None => {
            let (mut operands, input) = place(&invocation, &parts.options, parts.operands);
            if keeps_dashdash(&invocation) {
                operands.insert(invocation.before_dashdash.min(operands.len()), "--".into());
            } else if operands.iter().any(|it| it.starts_with('-') && it.len() > 1) {
                tokens.push(Token::operand("--"));
            }
            tokens.extend(operands.into_iter().map(Token::operand));
            input
        }
    };
    Argv { tokens, known, input }
}

/// Options and operands on their way into a canonical form.
pub(super) struct Parts {
    /// Each option with its place in the table.
    pub(super) options: Vec<(usize, Vec<Token>)>,
    pub(super) operands: Vec<Field>,
    /// Where among the operands another command begins.
    pub(super) nested: Option<usize>,
}

impl Parts {
    fn of(invocation: &Invocation<'_>) -> Self {
        let mut options = options(invocation.utility, invocation.options.iter());
        let mut operands: Vec<Field> = invocation.operands.iter().map(|it| (*it).clone()).collect();
        said_by_option(invocation, &mut options, &mut operands);
        let is_command = |slot: &utility::Slot| &*slot.name == "COMMAND";
        let nested = match invocation.utility.slots.iter().flatten().any(is_command) {
            true => invocation.slots().iter().position(|it| it.is_some_and(is_command)),
            false => None,
        };
        let nested = nested.map(|at| skip_assignments(invocation, at));
        Self { options, operands, nested }
    }
}

/// `env A=1 B=2 cmd`: the words before the command.
fn skip_assignments(invocation: &Invocation<'_>, at: usize) -> usize {
    let takes = invocation.utility.slots.iter().flatten().any(|it| &*it.name == "ASSIGN");
    if !takes {
        return at;
    }
    let is_assignment = |it: &&&Field| field::known_prefix(&it.text).contains('=');
    invocation.operands.iter().take_while(is_assignment).count()
}

/// One pattern or script given by its option is the same as one given as an operand.
fn said_by_option(
    invocation: &Invocation<'_>,
    options: &mut Vec<(usize, Vec<Token>)>,
    operands: &mut Vec<Field>,
) {
    for slot in invocation.utility.slots.iter().flatten() {
        if !matches!(&*slot.name, "PATTERN" | "SCRIPT") {
            continue;
        }
        let given: Vec<_> =
            invocation.options.iter().filter(|it| slot.absent_with.contains(&it.index)).collect();
        let [only] = &*given else { continue };
        // A value that begins with a dash is only a value after its option.
        let Some(value) =
            only.value.filter(|it| only.spec.placeholder == slot.name && !it.starts_with('-'))
        else {
            continue;
        };
        options.retain(|it| it.0 != only.index);
        operands.insert(0, Field { text: value.into(), span: only.field.span });
    }
}

/// The options in canonical spelling: repetitions, cancellations and defaults resolved.
pub(super) fn options<'g>(
    table: &'static Utility,
    given: impl Iterator<Item = &'g Given<'g>>,
) -> Vec<(usize, Vec<Token>)> {
    let mut plain = Vec::new();
    for it in given {
        push_option(table, it.index, it.value, &mut plain);
    }
    let kept = resolve(table, plain);
    kept.into_iter().map(|(index, value)| (index, spelled(&table.options[index], value))).collect()
}

fn push_option(
    utility: &Utility,
    index: usize,
    value: Option<&str>,
    out: &mut Vec<(usize, Option<String>)>,
) {
    let spec = &utility.options[index];
    if spec.noop {
        return;
    }
    if spec.expands.is_empty() {
        return out.push((index, value.map(str::to_owned)));
    }
    for (spelling, fixed) in &spec.expands {
        // What it stands for may stand for something in turn; a test makes sure that this ends.
        if let Some(other) = utility.option(spelling).filter(|it| *it != index) {
            push_option(utility, other, fixed.as_deref().or(value), out);
        }
    }
}

fn resolve(
    utility: &Utility,
    mut given: Vec<(usize, Option<String>)>,
) -> Vec<(usize, Option<String>)> {
    if given.is_empty() {
        return given;
    }
    // One option has no other to exclude, to repeat or to stand behind.
    let alone = given.len() == 1;
    for group in utility.exclusive.iter().filter(|_| !alone) {
        if let Some(winner) = given.iter().rposition(|it| group.contains(&it.0)) {
            let index = given[winner].0;
            given.retain(|it| !group.contains(&it.0) || it.0 == index);
        }
    }
    let mut kept: Vec<(usize, Option<String>)> = Vec::with_capacity(given.len());
    for (at, (index, value)) in given.iter().enumerate() {
        let repeat = utility.options[*index].repeat;
        let later = given[at + 1..].iter().any(|it| it.0 == *index);
        let earlier = kept.iter().any(|it| it.0 == *index);
        let keep = match repeat {
            // Among others whose order matters, saying it again can change the outcome.
            Repeat::Same => !earlier || in_order_with_others(utility, &given, *index),
            Repeat::Last => !later,
            Repeat::Each | Repeat::Set | Repeat::Count => true,
        };
        if keep {
            kept.push((*index, value.clone()));
        }
    }
    for default in &utility.defaults {
        let overridden = kept.iter().any(|it| default.unless.contains(&it.0));
        let said = |it: &(usize, Option<String>)| {
            it.0 == default.option && it.1.as_deref() == default.value.as_deref()
        };
        if !overridden && kept.iter().filter(|it| it.0 == default.option).count() == 1 {
            kept.retain(|it| !said(it));
        }
    }
    if alone {
        return kept;
    }
    let ordered = groups_of_several(utility, &kept);
    let places: Vec<usize> = kept.iter().map(|it| sort_place(&ordered, &kept, it.0)).collect();
    let mut in_order: Vec<_> = places.into_iter().zip(kept).collect();
    in_order.sort_by(|(a_place, a), (b_place, b)| {
        let set = a.0 == b.0 && utility.options[a.0].repeat == Repeat::Set;
        a_place
            .cmp(b_place)
            .then_with(|| if set { a.1.cmp(&b.1) } else { std::cmp::Ordering::Equal })
    });
    in_order.into_iter().map(|(_, option)| option).collect()
}

/// Whether an option's place among other given ones matters.
fn in_order_with_others(
    utility: &Utility,
    given: &[(usize, Option<String>)],
    index: usize,
) -> bool {
    let groups = utility.ordered.iter().filter(|group| group.contains(&index));
    groups.flatten().any(|other| *other != index && given.iter().any(|it| it.0 == *other))
}

/// The groups whose order matters, without those that have less than two of the given options: nothing moves in them.
fn groups_of_several<'u>(
    utility: &'u Utility,
    given: &[(usize, Option<String>)],
) -> Vec<&'u [usize]> {
    let has_several =
        |group: &&[usize]| given.iter().filter(|it| group.contains(&it.0)).nth(1).is_some();
    utility.ordered.iter().map(Vec::as_slice).filter(has_several).collect()
}

/// Where an option sorts: members of a group whose order matters all sort where the first of the group would, and
/// sorting keeps them as they were given.
fn sort_place(ordered: &[&[usize]], given: &[(usize, Option<String>)], index: usize) -> usize {
    let mut place = index;
    // Groups can share members; a few rounds join them.
    for _ in 0..4 {
        let before = place;
        for group in ordered {
            if !group.contains(&index) && !group.contains(&place) {
                continue;
            }
            let members = given.iter().filter(|it| group.contains(&it.0)).map(|it| it.0);
            place = members.chain([place]).min().unwrap_or(place);
        }
        if place == before {
            break;
        }
    }
    place
}

fn spelled(spec: &crate::utility::OptionSpec, value: Option<String>) -> Vec<Token> {
    let name = spec.name();
    match (spec.value, value) {
        (_, None) => vec![Token::new(TokenKind::Option, name)],
        (Value::Required, Some(value)) if !name.starts_with("--") => {
            vec![Token::new(TokenKind::Option, name), Token::new(TokenKind::Value, value)]
        }
        (Value::Optional, Some(value)) if !name.starts_with("--") => {
            vec![Token::new(TokenKind::Option, format!("{name}{value}"))]
        }
        (Value::None | Value::Required | Value::Optional, Some(value)) => {
            vec![Token::new(TokenKind::Option, format!("{name}={value}"))]
        }
    }
}

/// To a program with subcommands `--` can mean more than the end of options: `git checkout -- x` is about a file.
fn keeps_dashdash(invocation: &Invocation<'_>) -> bool {
    invocation.dashdash && invocation.levels.iter().any(|it| !it.commands.is_empty())
}

/// Whether the order of operands can be seen although it does not matter for the effect.
fn shows_order(invocation: &Invocation<'_>) -> bool {
    let telling = ["-v", "--verbose", "-i", "--interactive", "-I"];
    keeps_dashdash(invocation) || telling.iter().any(|it| invocation.has(it))
}

/// Whether a path lies below another: then one may have to be handled before the other.
fn nested_paths(paths: &[Text]) -> bool {
    // With the sign between folders before all others, a path stands right before what lies below it.
    let mut sorted: Vec<String> =
        paths.iter().map(|it| it.trim_end_matches('/').replace('/', "\0")).collect();
    sorted.sort();
    let below = |pair: &[String]| {
        pair[1]
            .strip_prefix(&*pair[0])
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('\0'))
    };
    let dotted = |it: &Text| it.split('/').any(|part| matches!(part, "." | ".."));
    paths.len() > 1 && (paths.iter().any(dotted) || sorted.windows(2).any(below))
}

/// Whether two paths could end in the same name, so that one is copied over the other.
fn same_names(paths: &[Text]) -> bool {
    let mut names: Vec<&str> = paths
        .iter()
        .map(|it| it.trim_end_matches('/').rsplit('/').next().unwrap_or_default())
        .collect();
    names.sort_unstable();
    paths.iter().any(|it| !field::is_literal(it)) || names.windows(2).any(|pair| pair[0] == pair[1])
}

/// Operands in canonical order, and the file that is read if there is exactly one.
fn place(
    invocation: &Invocation<'_>,
    options: &[(usize, Vec<Token>)],
    operands: Vec<Field>,
) -> (Vec<Text>, Option<Text>) {
    let added = operands.len().saturating_sub(invocation.operands.len());
    let mut texts: Vec<Text> = operands.into_iter().map(|it| it.text).collect();
    let slots: Vec<_> = std::iter::repeat_n(None, added).chain(invocation.slots()).collect();
    if let Some(unless) = &invocation.utility.stdin
        && !invocation.options.iter().any(|it| unless.contains(&it.index))
        && !options.iter().any(|(index, _)| unless.contains(index))
        && !dialect::minds_its_file(invocation, &texts)
    {
        let is_file =
            |it: Option<&'static utility::Slot>| it.is_some_and(|slot| &*slot.name == "FILE");
        let one = slots.iter().filter(|it| is_file(**it)).count() == 1;
        // An operand after the file would take its place.
        let last = slots.last().is_some_and(|it| is_file(*it))
            && texts.last().is_some_and(|it| reads_one(it));
        if one && last {
            let file = texts.pop().filter(|it| it != "-");
            return (texts, file);
        }
    }
    let mut start = 0;
    while start < texts.len() {
        let run = slots[start..].iter().take_while(|it| **it == slots[start]).count();
        let unordered = slots[start].is_some_and(|slot| slot.many == Many::Unordered);
        let run_of = &texts[start..start + run];
        let collides =
            slots[start].is_some_and(|slot| &*slot.name == "SOURCE") && same_names(run_of);
        if unordered && !shows_order(invocation) && !collides && !nested_paths(run_of) {
            texts[start..start + run].sort();
        }
        start += run;
    }
    (texts, None)
}

/// Whether a word is certain to name one file.
pub(super) fn reads_one(text: &str) -> bool {
    // `"$@"` and `"${a[@]}"` are as many words as there are.
    let many = text.contains(field::OPEN_QUOTED) && text.contains('@');
    !many
        && !text.is_empty()
        && !text.contains([field::STAR, field::ANY, field::BRACKET, field::OPEN])
}
