//! A suite for cases that come without anybody to ask.

use std::collections::BTreeMap;

use probity_core::{
    case::{Routing, TestCase},
    located::Node,
    request::Sampling,
};

use crate::{
    At, ImportError, NOBODY, Notes, Origin, artisan, caro,
    cases::Imported,
    choices, deepeval,
    draft::{Asks, CaseDraft, DatasetDraft, DatasetRef, Draft, RunnerDraft, Setup, VariantDraft},
    failproof, nobody, plain,
    source::Source,
};

/// Where the skills of a project are looked for, from the folder of its cases.
const SKILLS: &[&str] =
    &["skills", "../skills", "../../skills", "../../../skills", "../../../../skills"];

pub(crate) fn import(
    origin: Origin,
    root: &Node,
    name: &str,
    source: &Source,
    notes: &mut Notes,
) -> Result<Draft, ImportError> {
    let at = source.at(&root.span);
    let mut imported = Imported::new(notes, at.clone());
    match origin {
        Origin::Caro => caro::import(root, source, &mut imported)?,
        Origin::Failproof => failproof::import(root, source, &mut imported)?,
        Origin::Artisan => artisan::import(root, source, &mut imported)?,
        Origin::DeepEval => deepeval::import(root, source, &mut imported)?,
        Origin::Plain => plain::import(root, source, &mut imported)?,
        Origin::Promptfoo | Origin::LmEval | Origin::OpenaiEvals => {}
    }
    let cases = imported.cases;
    let has_choices = |it: &&CaseDraft| !choices::are_letters(&it.case.criteria.reading.choices);
    if let Some(first) = cases.iter().find(has_choices) {
        let what = "choices are listed with letters after the question, and a letter is asked for";
        notes.assumed(first.at.clone(), what, "");
    }
    let mut by_way: BTreeMap<Way, Vec<CaseDraft>> = BTreeMap::new();
    for case in cases {
        by_way.entry(Way::of(&case.case)).or_default().push(case);
    }
    if by_way.is_empty() {
        return Err(ImportError::shape("no case could be carried over"));
    }
    let mut draft =
        Draft { comments: vec![format!("From {name}, by `probity import`.")], ..Draft::default() };
    let is_alone = by_way.len() == 1;
    for (way, cases) in by_way {
        let name = if is_alone { Way::Plain.name() } else { way.name() };
        let dataset = match name == Way::Plain.name() {
            true => name.to_owned(),
            // What is imported may have the plain name, in the same folder.
            false => format!("{name}-cases"),
        };
        let dataset = DatasetDraft { name: dataset, cases, ..DatasetDraft::default() };
        draft.runners.push(runner(way, name, &dataset, source, notes));
        draft.datasets.push(dataset);
    }
    draft.backends.push(nobody(at, notes));
    Ok(draft)
}

/// How cases are asked. Those that are asked in another way need another runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Plain,
    /// With their choices, which are not in the question.
    Choices,
    Activation,
    Confusion,
    Effectiveness,
}

impl Way {
    fn of(case: &TestCase) -> Self {
        let Routing { skill, expected_skills, should_activate, group, .. } = &case.routing;
        if skill.is_some() {
            Self::Effectiveness
        } else if group.is_some() {
            Self::Confusion
        } else if should_activate.is_some() || !expected_skills.is_empty() {
            Self::Activation
        } else if choices::are_letters(&case.criteria.reading.choices)
            || !case.ask.messages.is_empty()
        {
            Self::Plain
        } else {
            Self::Choices
        }
    }

    /// A name for the runner and its dataset.
    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "cases",
            Self::Choices => "choices",
            Self::Activation => "activation",
            Self::Confusion => "confusion",
            Self::Effectiveness => "effectiveness",
        }
    }
}

/// A runner for a dataset, which has at least one case.
fn runner(
    way: Way,
    name: &str,
    dataset: &DatasetDraft,
    source: &Source,
    notes: &mut Notes,
) -> RunnerDraft {
    let DatasetDraft { name: dataset, cases, .. } = dataset;
    let at = cases[0].at.clone();
    let has_user = cases.iter().any(|it| it.case.conversation.user.is_some());
    let mut runner = RunnerDraft {
        name: name.to_owned(),
        at: at.clone(),
        comments: Vec::new(),
        kind: None,
        dataset: vec![DatasetRef::Draft(dataset.clone())],
        backends: vec![NOBODY.to_owned()],
        setup: Setup { user: has_user.then(|| NOBODY.to_owned()), ..Setup::default() },
        prompts: Vec::new(),
    };
    match way {
        Way::Plain => {
            let is_command = cases.iter().all(|it| it.case.expected_command.is_some());
            runner.kind = is_command.then_some("command");
        }
        Way::Choices => runner.prompts.push(with_choices(at)),
        Way::Activation | Way::Confusion | Way::Effectiveness => {
            about_skills(way.name(), &mut runner, source, notes);
        }
    }
    runner
}

fn with_choices(at: At) -> VariantDraft {
    VariantDraft {
        name: "choices".to_owned(),
        at,
        comments: Vec::new(),
        asks: Asks::Template(format!("{{{{ prompt }}}}{}", choices::asked())),
        file: None,
        sampling: Sampling::default(),
    }
}

/// Makes a runner one of a kind that is about skills, if they are there.
fn about_skills(kind: &'static str, runner: &mut RunnerDraft, source: &Source, notes: &mut Notes) {
    let found = SKILLS.iter().find_map(|it| source.reference_folder(it).ok());
    match found {
        Some(folder) => {
            notes.assumed(runner.at.clone(), format!("the skills are those in `{folder}`"), "");
            runner.kind = Some(kind);
            runner.setup.skills = Some(folder);
        }
        None => {
            let what =
                format!("the skills are not here: nothing decides the cases of `{}`", runner.name);
            let advice = format!("add kind = \"{kind}\" and skills = \"FOLDER\" to the runner");
            notes.lost(runner.at.clone(), what, advice);
        }
    }
}
