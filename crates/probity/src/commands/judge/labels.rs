//! What people said of answers, one JSON object a line.

use std::{collections::BTreeMap, fmt, fs, path::Path, sync::Arc};

use probity_core::{
    calibration::Label,
    evidence::Pair,
    json::{Limits, parse_located},
    located::{Node, NodeValue},
    problem::Source,
    record::{CaseRecord, Lane},
};
use probity_grade::internal::judge::{self, Judgement, Points};
use probity_load::case::{Fields, Findings};
use probity_run::calibrate::Labelled;

use crate::{failure::Failure, printer::Printer};

/// One label.
pub(super) struct Item {
    pub(super) id: String,
    /// What people said, each in their own place.
    pub(super) people: Vec<Option<Label>>,
    /// Who they are, if that is known.
    pub(super) names: Vec<String>,
    /// What they are about, where labels are about several matters.
    pub(super) matter: Option<Matter>,
    pub(super) said: Said,
}

/// What labels are about. Those of one matter are compared with each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Matter {
    pub(super) about: String,
    /// The judge.
    pub(super) by: Option<String>,
}

impl fmt::Display for Matter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.by {
            None => write!(f, "{}", self.about),
            Some(by) => write!(f, "{} by {by}", self.about),
        }
    }
}

/// Where to find what the judge said.
pub(super) enum Said {
    /// It stands beside the label.
    Known(Option<Label>),
    /// In a run of the store.
    Stored(Stored),
    /// It has to be asked, and this is the criterion that the label is about.
    Asked((Arc<Asked>, Option<usize>)),
}

/// A judgement in a run.
pub(super) struct Stored {
    pub(super) case_id: String,
    repeat: Option<u64>,
    runner: Option<String>,
    variant: Option<String>,
    backend: Option<String>,
    pair: String,
    /// Whose points, and for what; none for the winner.
    points: Option<(String, String)>,
}

/// A question for the judge.
pub(super) struct Asked {
    pub(super) labelled: Labelled,
}

impl Item {
    fn new(id: &str, people: Vec<Option<Label>>, said: Said) -> Self {
        Self { id: id.to_owned(), people, names: Vec::new(), matter: None, said }
    }
}

/// Reads all labels. Every problem is shown.
pub(super) fn read(path: &Path, printer: &Printer) -> Result<Vec<Item>, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::read(path, error))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let file: Arc<str> = path.display().to_string().into();
    let mut items = Vec::new();
    let mut usable = true;
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let source = Source::part(line, at + 1);
        let mut findings = Findings::default();
        match parse_located(line, &Limits::default()) {
            Ok(node) => items.extend(decode(&node, at + 1, &mut findings)),
            Err(error) => {
                let span = error.offset..error.offset + 1;
                findings.error("json", &span, error.kind.to_string());
            }
        }
        usable &= !findings.any_error();
        for finding in findings.0 {
            printer.problem(&finding.at(&file, &source));
        }
    }
    match (usable, items.is_empty()) {
        (false, _) => Err(Failure::new(format!("the labels `{}` have errors", path.display()))),
        (true, true) => Err(Failure::new(format!("there are no labels in `{}`", path.display()))),
        (true, false) => Ok(items),
    }
}

fn decode(node: &Node, line: usize, findings: &mut Findings) -> Vec<Item> {
    const KNOWN: &[&str] = &[
        "id",
        "about",
        "by",
        "people",
        "run",
        "text",
        "tags",
        "human",
        "judge",
        "prompt",
        "answer",
        "answers",
        "rubric",
        "case_id",
        "repeat",
        "runner",
        "variant",
        "backend",
        "pair",
        "criterion",
        "notes",
        "error",
    ];
    let Some(mut fields) = Fields::new(node, "a label", KNOWN, findings) else { return Vec::new() };
    let id = fields.text("id").unwrap_or_else(|| format!("line {line}"));
    let Some(human) = fields.get("human") else {
        let span = node.span.clone();
        fields.findings().error("missing-field", &span, "field `human` is missing".to_owned());
        return Vec::new();
    };
    let names = fields.texts("people");
    let by = fields.text("by");
    let matter = fields.text("about").map(|about| Matter { about, by });
    let mut items = decode_said(&mut fields, node, &id, human);
    for item in &mut items {
        item.matter.clone_from(&matter);
        // Whose is whose is known only if everybody has a name.
        if names.len() == item.people.len() {
            item.names.clone_from(&names);
        }
    }
    items
}

/// The label with where to find what the judge said.
fn decode_said(fields: &mut Fields<'_, '_>, node: &Node, id: &str, human: &Node) -> Vec<Item> {
    if let Some(judge) = node.get("judge") {
        let said = match judge.value == NodeValue::Null {
            true => Some(None),
            false => label(judge).map(Some),
        };
        return match (said, people(human)) {
            (Some(said), Some(people)) => vec![Item::new(id, people, Said::Known(said))],
            (None, _) => wrong_label(fields, judge),
            (_, None) => wrong_label(fields, human),
        };
    }
    if fields.get("case_id").is_some() {
        return stored(fields, id, human);
    }
    asked(fields, id, human)
}

fn wrong_label(fields: &mut Fields<'_, '_>, node: &Node) -> Vec<Item> {
    let message = "a label is a number, a name, or a list of them".to_owned();
    fields.findings().error("wrong-type", &node.span, message);
    Vec::new()
}

fn stored(fields: &mut Fields<'_, '_>, id: &str, human: &Node) -> Vec<Item> {
    let Some(people) = people(human) else { return wrong_label(fields, human) };
    let (answer, criterion) = (fields.text("answer"), fields.text("criterion"));
    let points = match (answer, criterion) {
        (Some(answer), Some(criterion)) => Some((answer, criterion)),
        (None, None) => None,
        (_, _) => {
            let span = fields.span("case_id");
            let message = "points need both `answer` and `criterion`".to_owned();
            let help = "without both the label is `win`, `tie` or `loss`".to_owned();
            fields.findings().error_with_help("missing-field", &span, message, help);
            return Vec::new();
        }
    };
    let said = Said::Stored(Stored {
        case_id: fields.text("case_id").unwrap_or_default(),
        repeat: fields.count("repeat", 0..=u64::MAX),
        runner: fields.text("runner"),
        variant: fields.text("variant"),
        backend: fields.text("backend"),
        pair: fields.text("pair").unwrap_or_else(|| Pair::HELPS.to_string()),
        points,
    });
    vec![Item::new(id, people, said)]
}

fn asked(fields: &mut Fields<'_, '_>, id: &str, human: &Node) -> Vec<Item> {
    let (task, rubric) = (fields.required_text("prompt"), fields.get("rubric"));
    let answers = match fields.get("answers") {
        Some(_) => fields.texts("answers"),
        None => fields.required_text("answer").into_iter().collect(),
    };
    if answers.len() > 2 {
        let span = fields.span("answers");
        let message = "a judge compares two answers, not more".to_owned();
        fields.findings().error("bad-label", &span, message);
        return Vec::new();
    }
    let Some(criteria) = rubric.and_then(|it| judge::rubric_of(&it.to_json())) else {
        let span = rubric.map_or_else(|| fields.span(""), |it| it.span.clone());
        let message =
            "`rubric` must be a text, or a list of criteria with `name` and `description`";
        fields.findings().error("missing-field", &span, message.to_owned());
        return Vec::new();
    };
    let Some(task) = task.filter(|_| !answers.is_empty()) else { return Vec::new() };
    let labelled = Labelled { task, criteria, answers };
    let question = Arc::new(Asked { labelled });
    if let NodeValue::Object(entries) = &human.value {
        let mut items = Vec::new();
        for entry in entries {
            let at = question.labelled.criteria.iter().position(|it| it.name == entry.key);
            let (Some(at), Some(people)) = (at, people(&entry.node)) else {
                let message = format!("the rubric has no criterion `{}` for that label", entry.key);
                fields.findings().error("bad-label", &entry.key_span, message);
                continue;
            };
            let said = Said::Asked((question.clone(), Some(at)));
            items.push(Item::new(&format!("{id}/{}", entry.key), people, said));
        }
        return items;
    }
    match people(human) {
        Some(people) => {
            vec![Item::new(id, people, Said::Asked((question, None)))]
        }
        None => wrong_label(fields, human),
    }
}

fn label(node: &Node) -> Option<Label> {
    match &node.value {
        NodeValue::Number(digits) => {
            digits.parse().ok().filter(|it: &f64| it.is_finite()).map(Label::Points)
        }
        NodeValue::String(name) => Some(Label::Name(name.trim().to_lowercase())),
        NodeValue::Bool(value) => Some(Label::Name(value.to_string())),
        NodeValue::Null | NodeValue::Array(_) | NodeValue::Object(_) => None,
    }
}

/// One label, or one of each human; null for those who said nothing.
fn people(node: &Node) -> Option<Vec<Option<Label>>> {
    let one = |node: &Node| match node.value == NodeValue::Null {
        true => Some(None),
        false => label(node).map(Some),
    };
    match &node.value {
        NodeValue::Array(items) => items.iter().map(one).collect(),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::String(_)
        | NodeValue::Object(_) => one(node).map(|it| vec![it]),
    }
}

impl Stored {
    pub(super) fn is_of(&self, lane: &Lane) -> bool {
        self.runner.as_ref().is_none_or(|it| *it == lane.runner)
            && self.variant.as_ref().is_none_or(|it| lane.variant.as_ref() == Some(it))
            && self.backend.as_ref().is_none_or(|it| *it == lane.backend)
    }

    /// What the judge said in a result.
    pub(super) fn find(&self, case: &CaseRecord) -> Option<Label> {
        if self.repeat.is_some_and(|it| it != u64::from(case.repeat)) {
            return None;
        }
        let evidence = case.classification.details.evidence.as_deref()?;
        let duel = evidence.duels().iter().find(|it| it.pair.to_string() == self.pair)?;
        let Some((answer, criterion)) = &self.points else {
            return duel.result().map(|it| Label::Name(it.as_str().to_owned()));
        };
        let round = duel.rounds.first()?;
        let score = round.criteria.iter().find(|it| it.name == *criterion)?;
        let points = BTreeMap::from([
            (duel.pair.more.as_str(), score.more),
            (duel.pair.less.as_str(), score.less),
        ]);
        points.get(answer.as_str()).map(|it| Label::Points(f64::from(*it)))
    }
}

impl Asked {
    /// What a judgement says: the winner of two, the points for a criterion, or the rounded mean.
    pub(super) fn label(&self, judgement: &Judgement, criterion: Option<usize>) -> Option<Label> {
        let criteria = &self.labelled.criteria;
        let mean = |answer: usize| {
            let whole: f64 = criteria.iter().map(|it| it.weight).sum();
            let points = |it: &Points| it.points.get(answer).copied().map(f64::from);
            let all = criteria.iter().zip(&judgement.criteria);
            let sum: Option<f64> = all.map(|(of, it)| Some(of.weight * points(it)?)).sum();
            sum.map(|sum| sum / whole)
        };
        if self.labelled.answers.len() > 1 {
            let difference = mean(0)? - mean(1)?;
            let winner = if difference.abs() < 1e-9 {
                "tie"
            } else if difference > 0.0 {
                "a"
            } else {
                "b"
            };
            return Some(Label::Name(winner.to_owned()));
        }
        let points = match criterion {
            Some(at) => judgement.criteria.get(at)?.points.first().copied().map(f64::from)?,
            None => mean(0)?.round(),
        };
        Some(Label::Points(points))
    }
}
