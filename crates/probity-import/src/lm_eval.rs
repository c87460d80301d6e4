//! Tasks of lm-eval (lm-evaluation-harness): YAML files that say what is made of documents.
//!
//! Templates are filled in while importing, so that a case is what lm-eval sends. Functions of Python are
//! never run: documents may bring what they make of them.

mod config;
mod documents;
mod fields;
mod literal;
mod scoring;
mod task;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use probity_core::{
    case::TestCase,
    criteria::{Criteria, Matcher},
    located::{Node, NodeValue},
    reading::Reading,
};
use serde_json::Value;

use self::{
    config::{Field, Kept, Reader, Says, one_or_many, text_of},
    documents::{Given, Row},
    fields::{Document, Target},
    scoring::TARGET,
    task::{Kind, ShotsFrom, Task},
};
use crate::{
    ImportError, NOBODY,
    cases::{Ids, literal, usable_id},
    choices,
    draft::{
        Asks, CaseDraft, DatasetDraft, DatasetRef, Draft, Examples, RunnerDraft, Setup,
        VariantDraft,
    },
    nobody,
    note::Notes,
    source::Source,
};

/// The seed that examples are drawn with, as lm-eval's.
const SEED: u64 = 1234;

/// Whether a table is a task, or a group of them.
pub(crate) fn is_task(root: &Node) -> bool {
    const BESIDE: &[&str] = &[
        "dataset_path",
        "dataset_name",
        "doc_to_text",
        "output_type",
        "include",
        "group",
        "tag",
        "class",
        "test_split",
        "metric_list",
        "task_alias",
    ];
    root.get("task").is_some() && BESIDE.iter().any(|it| root.get(it).is_some())
}

/// Whether a folder has tasks: one of its own YAML files is one.
pub(crate) fn has_tasks(source: &mut Source) -> bool {
    let files = source.glob("*.yaml").unwrap_or_default();
    files.iter().any(|it| config::peek(it, source).is_some_and(|root| is_task(&root)))
}

/// Imports a task, a group of tasks, or all tasks of a folder if no file is named.
pub(crate) fn import(
    name: Option<&str>,
    documents: Option<&Path>,
    source: &mut Source,
    notes: &mut Notes,
) -> Result<Draft, ImportError> {
    let mut found = Found::default();
    match name {
        Some(name) => found.file(name, source, notes),
        None => found.folder(source, notes),
    }
    if found.tasks.is_empty() {
        return Err(ImportError::shape("there is no task that can be read"));
    }
    let shown = name.unwrap_or("a folder of tasks");
    let at = source.at(&found.tasks[0].span);
    let mut making = Making {
        draft: Draft {
            comments: vec![format!("From {shown}, by `probity import`.")],
            ..Draft::default()
        },
        names: Ids::default(),
        given: Given { path: documents },
        source,
        notes,
    };
    for node in &found.tasks {
        if let Some(task) = Task::read(node, making.source, making.notes) {
            making.task(&task);
        }
    }
    let Making { mut draft, .. } = making;
    if draft.runners.is_empty() {
        return Err(ImportError::shape("there is no task that can be asked"));
    }
    draft.backends.push(nobody(at, notes));
    Ok(draft)
}

/// Tasks that were found.
#[derive(Default)]
struct Found {
    tasks: Vec<Node>,
    /// Groups and tasks that were looked at.
    seen: BTreeSet<String>,
    /// All tables of the folder, once they are needed.
    index: Option<Vec<(String, Node)>>,
    kept: Kept,
}

impl Found {
    fn file(&mut self, name: &str, source: &mut Source, notes: &mut Notes) {
        let root = Reader::new(source, notes, &mut self.kept).load(name);
        if let Some(root) = root {
            self.table(root, name, source, notes);
        }
    }

    fn folder(&mut self, source: &mut Source, notes: &mut Notes) {
        for (name, root) in self.index(source).to_vec() {
            if root.get("task").is_some_and(|it| it.as_str().is_some()) && is_task(&root) {
                self.file(&name, source, notes);
            }
        }
    }

    fn index(&mut self, source: &mut Source) -> &[(String, Node)] {
        self.index.get_or_insert_with(|| {
            let names = ["**/*.yaml", "**/*.yml"];
            let names = names.iter().flat_map(|it| source.glob(it).unwrap_or_default());
            let names: Vec<String> = names.collect();
            names
                .into_iter()
                .filter_map(|name| {
                    let root = config::peek(&name, source)?;
                    Some((name, root))
                })
                .collect()
        })
    }

    /// Takes in a task, or the tasks of a group.
    fn table(&mut self, root: Node, name: &str, source: &mut Source, notes: &mut Notes) {
        let Some(task) = root.get("task") else {
            notes.lost(source.at(&root.span), "there is no `task`", "name the file of a task");
            return;
        };
        if !matches!(task.value, NodeValue::Array(_)) {
            self.tasks.push(root);
            return;
        }
        for member in one_or_many(task).to_vec() {
            match &member.value {
                NodeValue::String(wanted) => self.named(wanted, &member, source, notes),
                NodeValue::Object(_) => self.inline(member, name, source, notes),
                NodeValue::Null
                | NodeValue::Bool(_)
                | NodeValue::Number(_)
                | NodeValue::Array(_) => {
                    let what = "a group has something in it that is no task";
                    notes.lost(source.at(&member.span), what, "correct the file");
                }
            }
        }
    }

    /// A task of a group that is written in it, or changes one that is elsewhere.
    fn inline(&mut self, member: Node, name: &str, source: &mut Source, notes: &mut Notes) {
        let own = Reader::new(source, notes, &mut self.kept).table(member, name);
        let Some(own) = own else { return };
        let wanted = text_of(&own, "task").map(ToOwned::to_owned);
        let before = self.tasks.len();
        match wanted.filter(|_| own.get("doc_to_text").is_none()) {
            Some(wanted) => self.named(&wanted, &own, source, notes),
            None => return self.table(own, name, source, notes),
        }
        for task in &mut self.tasks[before..] {
            let NodeValue::Object(entries) = &mut task.value else { continue };
            let changes = own.entries().iter().filter(|it| it.key != "task").cloned();
            *entries = config::merged(std::mem::take(entries).into_iter().chain(changes));
        }
    }

    /// The tasks that a name of a group means: a task, a group, or a tag.
    fn named(&mut self, wanted: &str, member: &Node, source: &mut Source, notes: &mut Notes) {
        if !self.seen.insert(wanted.to_owned()) {
            return;
        }
        let is_meant = |root: &Node| {
            let is_tagged = || {
                let tags = root.get("tag").map(one_or_many).unwrap_or_default();
                tags.iter().any(|it| it.as_str() == Some(wanted))
            };
            text_of(root, "task") == Some(wanted)
                || text_of(root, "group") == Some(wanted)
                || is_tagged()
        };
        let files = self.index(source).iter().filter(|(_, root)| is_meant(root));
        let files: Vec<String> = files.map(|it| it.0.clone()).collect();
        if files.is_empty() {
            let what = format!("task `{wanted}` is not in this folder");
            notes.lost(source.at(&member.span), what, "import the folder that it is in");
        }
        for file in files {
            self.file(&file, source, notes);
        }
    }
}

struct Making<'a> {
    draft: Draft,
    names: Ids,
    given: Given<'a>,
    source: &'a mut Source,
    notes: &'a mut Notes,
}

/// What a document became.
struct Made {
    text: String,
    choices: Vec<String>,
    target: Target,
}

impl Making<'_> {
    fn task(&mut self, task: &Task) {
        let Some(rows) =
            self.given.rows(&task.name, &task.data, &task.data.split, self.source, self.notes)
        else {
            self.check_templates(task);
            return;
        };
        let mut cases: Vec<CaseDraft> = Vec::new();
        let mut is_lettered = true;
        let mut wrong = Wrong::default();
        for (number, row) in rows.iter().enumerate() {
            match made(task, &row.document).and_then(|made| case(task, number, made, &row.document))
            {
                Ok(case) => {
                    is_lettered &= choices::are_letters(&case.criteria.reading.choices);
                    cases.push(CaseDraft { case, at: row.at.clone() });
                }
                Err(why) => wrong.add(row, why),
            }
        }
        wrong.note("document", &task.name, self.notes);
        if cases.is_empty() {
            return;
        }
        let name = self.names.unique(&file_name(&task.name));
        // The task itself has the plain name, often in the same folder.
        let dataset = self.names.unique(&format!("{name}-cases"));
        let examples = self.examples(task, &name, &rows);
        let shots = examples.as_ref().map_or(0, |it| it.count.unwrap_or_default());
        let asks_letters = task.kind == Kind::Choose && !is_lettered;
        let variant = VariantDraft {
            name: format!("{shots}-shot"),
            at: task.at.clone(),
            comments: Vec::new(),
            asks: Asks::Template(template(task, shots, asks_letters)),
            file: None,
            sampling: task.sampling.clone(),
        };
        self.draft.runners.push(RunnerDraft {
            name,
            at: task.at.clone(),
            comments: comments(task),
            kind: None,
            dataset: vec![DatasetRef::Draft(dataset.clone())],
            backends: vec![NOBODY.to_owned()],
            setup: Setup { examples, ..setup(task) },
            prompts: vec![variant],
        });
        self.draft.datasets.push(DatasetDraft { name: dataset, cases, ..DatasetDraft::default() });
    }

    /// The examples of a task, as a dataset of their own.
    fn examples(&mut self, task: &Task, name: &str, asked: &[Row]) -> Option<Examples> {
        let shots = &task.shots;
        if shots.count == 0 {
            return None;
        }
        let rows = match &shots.from {
            ShotsFrom::Listed(samples) => samples.iter().map(|it| self.sample(it)).collect(),
            ShotsFrom::Split(split) if *split == task.data.split => asked.to_vec(),
            ShotsFrom::Split(split) => {
                self.given.rows(&task.name, &task.data, split, self.source, self.notes)?
            }
        };
        let (mut cases, mut wrong) = (Vec::new(), Wrong::default());
        // One of the first ones may be the question itself.
        let most = if shots.is_first { shots.count.saturating_add(1) } else { rows.len() };
        let as_example = as_example(task);
        for (number, row) in rows.iter().enumerate().take(most) {
            match example(&as_example, task.prefix.as_ref(), number, &row.document) {
                Ok(case) => cases.push(CaseDraft { case, at: row.at.clone() }),
                Err(why) => wrong.add(row, why),
            }
        }
        wrong.note("example", &task.name, self.notes);
        let count = shots.count.min(cases.len());
        if count < shots.count {
            let what = format!("there are {count} examples for {} that are wanted", shots.count);
            self.notes.lost(shots.at.clone(), what, "add examples");
        }
        if !shots.is_first && count > 0 {
            let what = "the examples of each question are drawn, but others than lm-eval draws";
            self.notes.assumed(
                shots.at.clone(),
                what,
                "leave out `examples_seed` for the first ones",
            );
        }
        let dataset = self.names.unique(&format!("{name}-examples"));
        let seed = (!shots.is_first).then_some(SEED);
        let comments = vec!["Examples that go before a question.".to_owned()];
        if count == 0 {
            return None;
        }
        self.draft.datasets.push(DatasetDraft {
            name: dataset.clone(),
            comments,
            cases,
            ..DatasetDraft::default()
        });
        Some(Examples { dataset, count: Some(count), seed })
    }

    fn sample(&self, node: &Node) -> Row {
        let entries = node.entries().iter();
        let document = entries.map(|it| (it.key.clone(), it.node.to_json())).collect();
        Row { document, at: self.source.at(&node.span) }
    }

    /// Says what is wrong with templates that no document is there for.
    fn check_templates(&mut self, task: &Task) {
        let shots = [&task.shots.text, &task.shots.target, &task.shots.choices];
        let own = [&task.target, &task.choices, &task.description, &task.prefix];
        let fields = own.into_iter().chain(shots).flatten().chain([&task.text]);
        for Field { at, says } in fields {
            match says {
                Says::Template(text) => {
                    if let Err(error) = probity_load::template::check(text) {
                        let what = format!("a template of task `{}`: {error}", task.name);
                        self.notes.lost(at.clone(), what, "write it as docs/datasets.md says");
                    }
                }
                Says::Function { name, field } => {
                    let what = format!(
                        "`{field}` of task `{}` is the Python function `{name}`: it is taken from the \
                         field `{field}` of documents",
                        task.name
                    );
                    let advice = "export them as docs/coming-from/lm-eval.md says";
                    self.notes.assumed(at.clone(), what, advice);
                }
                Says::Value(_) => {}
            }
        }
    }
}

/// Documents that nothing could be made of: the first one stands for all.
#[derive(Default)]
struct Wrong {
    first: Option<(crate::At, String)>,
    count: usize,
}

impl Wrong {
    fn add(&mut self, row: &Row, why: String) {
        self.count += 1;
        self.first.get_or_insert_with(|| (row.at.clone(), why));
    }

    fn note(self, kind: &str, task: &str, notes: &mut Notes) {
        let Some((at, why)) = self.first else { return };
        let more = match self.count - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        notes.lost(at, format!("a {kind} of task `{task}`{more}: {why}"), "correct it");
    }
}

/// The question and the answer of a document.
fn made(task: &Task, document: &Document) -> Result<Made, String> {
    let choices = task.choices.as_ref().map(|it| fields::choices(it, document)).transpose()?;
    let text = fields::text(&task.text, document)?;
    let is_index = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if is_index && choices.is_some() && task.kind == Kind::Choose {
        return Err("each choice is a context of its own, which needs log probabilities".to_owned());
    }
    let target = task.target.as_ref().ok_or("there is no `doc_to_target`")?;
    let target = fields::target(target, document, choices.as_deref())?;
    let text = match &task.prefix {
        Some(prefix) => with_prefix(&text, &fields::text(prefix, document)?, task),
        None => text,
    };
    Ok(Made { text, choices: choices.unwrap_or_default(), target })
}

/// A question with the words that its answer begins with.
fn with_prefix(text: &str, prefix: &str, task: &Task) -> String {
    let is_apart = text.is_empty()
        || text.ends_with(char::is_whitespace)
        || prefix.starts_with(char::is_whitespace);
    match is_apart {
        true => format!("{text}{prefix}"),
        false => format!("{text}{}{prefix}", task.shots.answer_delimiter),
    }
}

fn case(task: &Task, number: usize, made: Made, document: &Document) -> Result<TestCase, String> {
    let chooses = task.scoring.decides.as_ref().is_some_and(|it| it.matcher == Matcher::Choice);
    let (expected, choices) = match task.kind {
        Kind::Choose => {
            let Target::Choices(places) = &made.target else {
                return Err("a task of type `multiple_choice` needs `doc_to_choice`".to_owned());
            };
            (places.iter().map(|it| letter(*it)).collect::<Result<_, _>>()?, made.choices)
        }
        Kind::Generate if chooses => lettered(&made, document)?,
        Kind::Generate => (answers(&made), Vec::new()),
    };
    let expected = one_or_list(expected);
    // Without anything to compare with, there is nothing to choose.
    let choices = if task.scoring.decides.is_some() { choices } else { Vec::new() };
    let system = match &task.description {
        Some(field) if is_own(field) => Some(fields::text(field, document)?),
        Some(_) | None => None,
    };
    Ok(TestCase {
        id: number.to_string(),
        prompt: literal(&made.text).into(),
        system: system.filter(|it| !it.trim().is_empty()).map(|it| literal(&it)),
        prompt_vars: vars(task, &expected),
        criteria: Criteria {
            expected_response: task.scoring.decides.is_some().then_some(expected),
            reading: Reading { choices, ..Reading::default() },
            ..Criteria::default()
        },
        ..TestCase::default()
    })
}

/// The variables that assertions name.
fn vars(task: &Task, answer: &Value) -> BTreeMap<String, Value> {
    let is_named = !task.scoring.reported.is_empty();
    is_named.then(|| (TARGET.to_owned(), answer.clone())).into_iter().collect()
}

/// The letter of an answer such as `(B)`, and the choices that a document has.
fn lettered(made: &Made, document: &Document) -> Result<(Vec<String>, Vec<String>), String> {
    let choices = match document.get("choices") {
        Some(Value::Array(items)) => {
            items.iter().filter_map(Value::as_str).map(Into::into).collect()
        }
        Some(_) | None => return Err("`multi_choice_regex` needs a list `choices`".to_owned()),
    };
    let letters = answers(made);
    Ok((letters.iter().map(|it| it.trim_matches(['(', ')', ' ']).to_owned()).collect(), choices))
}

/// The answers as texts.
fn answers(made: &Made) -> Vec<String> {
    match &made.target {
        Target::Texts(texts) => texts.clone(),
        Target::Choices(places) => places.iter().map(|it| made.choices[*it].clone()).collect(),
    }
}

fn letter(at: usize) -> Result<String, String> {
    let letter = choices::letter(at).map(ToOwned::to_owned);
    letter.ok_or_else(|| format!("there are more than {} choices", choices::MOST))
}

fn one_or_list(mut texts: Vec<String>) -> Value {
    match texts.len() {
        1 => Value::from(texts.remove(0)),
        _ => Value::from(texts),
    }
}

/// A task that makes examples of documents.
fn as_example(task: &Task) -> Task {
    let shots = &task.shots;
    Task {
        text: shots.text.clone().unwrap_or_else(|| task.text.clone()),
        target: shots.target.clone().or_else(|| task.target.clone()),
        choices: shots.choices.clone().or_else(|| task.choices.clone()),
        prefix: None,
        ..task.clone()
    }
}

/// An example, whose answer is a text even where it is a choice. The prefix of answers is said in it.
fn example(
    task: &Task,
    prefix: Option<&Field>,
    number: usize,
    document: &Document,
) -> Result<TestCase, String> {
    let made = made(task, document)?;
    let answer = answers(&made).remove(0);
    let answer = match prefix {
        Some(prefix) => format!("{} {answer}", fields::text(prefix, document)?.trim_end()),
        None => answer,
    };
    let answer = Value::from(answer);
    Ok(TestCase {
        id: format!("example-{number}"),
        prompt: literal(&made.text).into(),
        prompt_vars: vars(task, &answer),
        criteria: Criteria { expected_response: Some(answer), ..Criteria::default() },
        ..TestCase::default()
    })
}

/// Whether a field has another value in each document.
fn is_own(field: &Field) -> bool {
    match &field.says {
        Says::Template(text) => probity_load::template::is_template(text),
        Says::Function { .. } => true,
        Says::Value(_) => false,
    }
}

/// What is sent: examples, the question, and choices that are not in it.
fn template(task: &Task, shots: usize, asks_letters: bool) -> String {
    let mut text = String::new();
    if shots > 0 {
        text.push_str("{% for it in examples %}{{ it.prompt }}");
        text.push_str(&literal(&task.shots.answer_delimiter));
        text.push_str("{{ it.answer }}");
        text.push_str(&literal(&task.shots.delimiter));
        text.push_str("{% endfor %}");
    }
    text.push_str("{{ prompt }}");
    if asks_letters {
        text.push_str(&choices::asked());
    }
    text
}

fn setup(task: &Task) -> Setup {
    let scoring = &task.scoring;
    let decides = scoring.decides.clone().filter(|it| it.matcher != Matcher::Choice);
    let system = task.description.as_ref().filter(|it| !is_own(it)).and_then(|it| match &it.says {
        Says::Template(text) => Some(text.clone()),
        Says::Value(_) | Says::Function { .. } => None,
    });
    Setup {
        system: system.filter(|it| !it.trim().is_empty()),
        matcher: decides.as_ref().map(|it| it.matcher),
        reading: decides.map(|it| it.reading).unwrap_or_default(),
        assertions: scoring.reported.clone(),
        repeat: scoring.repeat.map(|it| it.0),
        min_pass: scoring.repeat.map(|it| it.1),
        ..Setup::default()
    }
}

fn comments(task: &Task) -> Vec<String> {
    let mut comments = vec![format!("The lm-eval task {}.", task.name)];
    if task.kind == Kind::Choose {
        comments.push(
            "lm-eval compares the log probabilities of choices; here the model names one.".into(),
        );
    }
    comments
}

/// A name for files.
fn file_name(task: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    let name: String = task.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    usable_id(&name)
}
