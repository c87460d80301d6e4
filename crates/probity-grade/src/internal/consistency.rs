//! Sorts the commands of several backends by what they do.
//!
//! Each text is read once for a case, however many backends wrote it. Two commands that could be read are
//! the same or unlike by their canonical forms; one that could not be read is the same as its own text, and
//! nothing is said of it beside any other.

use probity_core::{
    classification::Verdict,
    consistency::{
        Answer, Asked, Consistency, Divergence, DivergenceKind, Diverging, Group, Pair, Uncompared,
        Without,
    },
};
use probity_shell::{
    ParseError, Script,
    equivalence::{Form, are_equal},
};

/// Divergences that are kept with their texts; all are counted.
pub const MOST_LISTED: usize = 1_000;
/// Characters of a command that are kept in a divergence.
pub const MOST_TEXT: usize = 2_000;

/// Cases in the making of a [`Consistency`]. What it holds does not grow with the cases.
#[derive(Debug)]
pub struct Fold {
    runner: String,
    variant: Option<String>,
    backends: Vec<String>,
    repeats: u32,
    agree: u64,
    diverge: Diverging,
    uncompared: Uncompared,
    pairs: Vec<Pair>,
    /// By kind, each in the order of the cases.
    listed: [Vec<Divergence>; 3],
}

impl Fold {
    /// Nothing yet of a runner on these backends, with one of its variants.
    pub fn new(runner: &str, variant: Option<&str>, backends: Vec<String>, repeats: u32) -> Self {
        let count = backends.len();
        let pairs = (0..count).flat_map(|left| (left + 1..count).map(move |right| [left, right]));
        let pairs = pairs.map(|backends| Pair { backends, compared: 0, equal: 0, unknown: 0 });
        Self {
            runner: runner.to_owned(),
            variant: variant.map(ToOwned::to_owned),
            repeats,
            agree: 0,
            diverge: Diverging::default(),
            uncompared: Uncompared::default(),
            pairs: pairs.collect(),
            listed: [const { Vec::new() }; 3],
            backends,
        }
    }

    /// Adds a case. It has an answer, or the lack of one, for each backend.
    pub fn add(&mut self, asked: &Asked<'_>) {
        let sorted = Sorted::of(asked.answers);
        for pair in &mut self.pairs {
            let [left, right] = pair.backends.map(|at| sorted.class_of.get(at).copied().flatten());
            let (Some(left), Some(right)) = (left, right) else { continue };
            let is_read = |class: usize| sorted.classes[class].form.is_some();
            match left == right || (is_read(left) && is_read(right)) {
                true => pair.compared += 1,
                false => pair.unknown += 1,
            }
            pair.equal += u64::from(left == right);
        }
        if sorted.classes.iter().filter(|it| it.form.is_some()).count() > 1 {
            let kind = sorted.kind();
            self.diverge.add(kind);
            self.list(kind, || sorted.divergence(asked, kind));
            return;
        }
        let lacks = |why: Without| sorted.without.iter().any(|(_, it)| *it == why);
        let count = match sorted.classes.len() {
            _ if lacks(Without::Error) => &mut self.uncompared.error,
            _ if lacks(Without::NoCommand) => &mut self.uncompared.no_command,
            _ if lacks(Without::Missing) => &mut self.uncompared.missing,
            1 => &mut self.agree,
            _ => &mut self.uncompared.unparsable,
        };
        *count += 1;
    }

    /// What has come together.
    pub fn finish(self) -> Consistency {
        let Self { runner, variant, backends, repeats, agree, diverge, uncompared, pairs, listed } =
            self;
        let divergences = listed.into_iter().flatten().collect();
        Consistency {
            runner,
            variant,
            backends,
            repeats,
            agree,
            diverge,
            uncompared,
            pairs,
            divergences,
        }
    }

    /// Keeps a divergence if there is room, or something that matters less to make it.
    fn list(&mut self, kind: DivergenceKind, divergence: impl FnOnce() -> Divergence) {
        let own = kind as usize;
        if self.listed.iter().map(Vec::len).sum::<usize>() >= MOST_LISTED {
            let lesser = self.listed[own + 1..].iter_mut().rev().find(|it| !it.is_empty());
            let Some(lesser) = lesser else { return };
            lesser.pop();
        }
        self.listed[own].push(divergence());
    }
}

/// The answers to a case, sorted by what they do.
struct Sorted<'a> {
    classes: Vec<Class<'a>>,
    /// The class of each backend that gave a command.
    class_of: Vec<Option<usize>>,
    without: Vec<(usize, Without)>,
}

/// Answers that do the same.
struct Class<'a> {
    /// What the first of them wrote.
    text: &'a str,
    /// Its canonical form, if it can be read.
    form: Option<Form>,
    /// The backends, and whether each passed.
    members: Vec<(usize, bool)>,
}

/// What is known of a text before it has a class.
enum Read {
    Form(Form),
    Unparsable,
    Empty,
}

impl<'a> Sorted<'a> {
    fn of(answers: &'a [Option<Answer>]) -> Self {
        let mut sorted = Self {
            classes: Vec::new(),
            class_of: Vec::with_capacity(answers.len()),
            without: Vec::new(),
        };
        // Texts with their classes; models often give the same one.
        let mut known: Vec<(&str, Option<usize>)> = Vec::with_capacity(answers.len());
        for (at, answer) in answers.iter().enumerate() {
            let (answer, text) = match given(answer.as_ref()) {
                Ok(given) => given,
                Err(why) => {
                    sorted.class_of.push(None);
                    sorted.without.push((at, why));
                    continue;
                }
            };
            let seen = known.iter().find(|(it, _)| *it == text).map(|(_, class)| *class);
            let class = seen.unwrap_or_else(|| {
                let class = sorted.class(text);
                known.push((text, class));
                class
            });
            match class {
                Some(class) => {
                    let passed = answer.verdict == Verdict::Pass;
                    sorted.classes[class].members.push((at, passed));
                }
                None => sorted.without.push((at, Without::NoCommand)),
            }
            sorted.class_of.push(class);
        }
        sorted
    }

    /// The class of a text that has not been read yet; none of a text without a command.
    fn class(&mut self, text: &'a str) -> Option<usize> {
        let form = match read(text) {
            Read::Form(form) => Some(form),
            Read::Unparsable => None,
            Read::Empty => return None,
        };
        let same = |class: &Class<'_>| match (&class.form, &form) {
            (Some(left), Some(right)) => are_equal(left, right),
            (None, _) | (_, None) => false,
        };
        self.classes.iter().position(same).or_else(|| {
            self.classes.push(Class { text, form, members: Vec::new() });
            Some(self.classes.len() - 1)
        })
    }

    /// What the verdicts of those that could be read are.
    fn kind(&self) -> DivergenceKind {
        let read = self.classes.iter().filter(|it| it.form.is_some());
        let mut verdicts = read.flat_map(|it| &it.members).map(|(_, passed)| *passed);
        match (verdicts.clone().any(|passed| passed), verdicts.all(|passed| passed)) {
            (_, true) => DivergenceKind::Passing,
            (true, false) => DivergenceKind::Mixed,
            (false, false) => DivergenceKind::Failing,
        }
    }

    fn divergence(self, asked: &Asked<'_>, kind: DivergenceKind) -> Divergence {
        let groups = self.classes.into_iter().map(|Class { text, form, members }| {
            let end = text.char_indices().nth(MOST_TEXT).map_or(text.len(), |(end, _)| end);
            let (kept, cut) = text.split_at(end);
            let cut = cut.chars().count() as u64;
            Group { command: kept.to_owned(), cut, parsed: form.is_some(), members }
        });
        Divergence {
            case_id: asked.case_id.to_owned(),
            repeat: asked.repeat,
            kind,
            groups: groups.collect(),
            without: self.without,
        }
    }
}

/// The command of an answer, or why there is none.
fn given(answer: Option<&Answer>) -> Result<(&Answer, &str), Without> {
    let answer = answer.ok_or(Without::Missing)?;
    // An error may leave half a reply behind, and half a command with it.
    match (answer.verdict, &answer.command) {
        (Verdict::Error, _) => Err(Without::Error),
        (Verdict::Pass | Verdict::Fail | Verdict::Undecided, None) => Err(Without::NoCommand),
        (Verdict::Pass | Verdict::Fail | Verdict::Undecided, Some(text)) => Ok((answer, text)),
    }
}

fn read(text: &str) -> Read {
    match Script::parse(text) {
        Err(ParseError::Empty) => Read::Empty,
        Err(_) => Read::Unparsable,
        Ok(script) => match Form::of(&script) {
            form if form.is_empty() => Read::Empty,
            form => Read::Form(form),
        },
    }
}

#[cfg(test)]
mod tests;
