//! Which of two stored answers is better, as a judge finds now.

use std::sync::Arc;

use probity_core::{
    preference::{JudgedPair, Points, Preference},
    record::{CaseRecord, Lane},
};
use probity_grade::internal::judge::{Judgement, rubric_of};
use probity_load::settings::Layer;
use probity_report::compare::Comparison;
use probity_run::{
    backend::Answers,
    calibrate::{self, Judge, Labelled},
};
use probity_store::{LaneView, Reader};
use tokio::runtime::Runtime;

use crate::{
    cli::report::CompareArgs,
    commands::{
        judge::{not_asked, open_judge},
        project::{Project, Reading},
        run::answers::open_cache,
    },
    failure::Failure,
    printer::Printer,
};

/// Cases whose answers are in memory at once.
const BATCH: usize = 256;

/// Has the answers of each pair of lanes judged.
pub(super) fn add(
    comparison: &mut Comparison,
    reader: &Reader,
    lanes: &[&LaneView],
    (name, args): (&str, &CompareArgs),
    printer: &Printer,
) -> Result<(), Failure> {
    let reading = Reading::strict(printer, args.foreign);
    let project = Project::load(&args.suite, &args.place, Layer::default(), &reading)?;
    let cache = match args.no_cache {
        true => None,
        false => Some(open_cache(&project, printer)?),
    };
    let judge = open_judge(Some(name), args.judge_model.as_deref(), &project)?;
    let judge = Judge { cache: cache.clone().map(|it| it as Arc<dyn Answers>), ..judge };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("failed to start").because(error))?;
    let asking = Asking { reader, judge: &judge, project: &project, args, runtime: &runtime };
    for pair in &mut comparison.pairs {
        let both = [lanes[pair.first], lanes[pair.second]];
        pair.preference = Some(asking.prefer(both, printer)?);
        if both.iter().any(|it| is_own(&judge, &it.lane)) {
            let note = format!("the judge `{name}` judges its own answers");
            if !comparison.notes.contains(&note) {
                comparison.notes.push(note);
            }
        }
    }
    if let Some(cache) = cache {
        cache.tell_of_damage(printer);
    }
    Ok(())
}

/// Whether a judge gave the answers of a lane.
fn is_own(judge: &Judge, lane: &Lane) -> bool {
    let same_model = judge.backend.model.is_some() && judge.backend.model == lane.model;
    judge.backend.name == lane.backend || same_model
}

struct Asking<'a> {
    reader: &'a Reader,
    judge: &'a Judge,
    project: &'a Project,
    args: &'a CompareArgs,
    runtime: &'a Runtime,
}

/// Two answers to a case that are not the same.
struct Answered {
    case: usize,
    task: String,
    answers: [String; 2],
}

impl Asking<'_> {
    /// Which of two lanes the judge prefers, over the cases that both have answered.
    fn prefer(&self, lanes: [&LaneView; 2], printer: &Printer) -> Result<Preference, Failure> {
        let mut ids = Vec::new();
        self.reader.paired_verdicts(lanes, |case_id, _| ids.push(case_id.to_owned()))?;
        let mut found = Preference {
            judge: self.judge.backend.name.clone(),
            criteria: self.args.criteria.clone(),
            ..Preference::default()
        };
        let mut progress = printer.progress();
        for (at, batch) in ids.chunks(BATCH).enumerate() {
            progress.update(|| format!("{} of {} cases judged", at * BATCH, ids.len()));
            self.judge_batch(lanes, batch, &mut found)?;
        }
        progress.clear();
        Ok(found)
    }

    fn judge_batch(
        &self,
        lanes: [&LaneView; 2],
        ids: &[String],
        found: &mut Preference,
    ) -> Result<(), Failure> {
        let mut cases: Vec<Vec<Option<JudgedPair>>> = vec![Vec::new(); ids.len()];
        let mut asked = Vec::new();
        for (case, id) in ids.iter().enumerate() {
            let [first, second] =
                [self.reader.case(lanes[0], id)?, self.reader.case(lanes[1], id)?];
            for (one, other) in answered(&first, &second) {
                if one.reply == other.reply {
                    let reason = "the answers are the same".to_owned();
                    cases[case].push(Some(JudgedPair { orders: Vec::new(), reason }));
                    continue;
                }
                let text = |it: &CaseRecord| it.reply.clone().unwrap_or_default();
                asked.push(Answered {
                    case,
                    task: task(one, other),
                    answers: [text(one), text(other)],
                });
            }
        }
        for (Answered { case, .. }, pair) in asked.iter().zip(self.ask(&asked)?) {
            cases[*case].push(pair);
        }
        for (id, repeats) in ids.iter().zip(cases) {
            let judged: Vec<JudgedPair> = repeats.iter().flatten().cloned().collect();
            match (judged.is_empty(), repeats.is_empty()) {
                (false, _) => found.add(id, &judged),
                (true, false) => found.unjudged += 1,
                (true, true) => {}
            }
        }
        Ok(())
    }

    /// Asks about pairs of answers, each in both orders. None where the judge cannot be understood.
    fn ask(&self, pairs: &[Answered]) -> Result<Vec<Option<JudgedPair>>, Failure> {
        let criteria = rubric_of(&self.args.criteria.as_str().into());
        let criteria = criteria.ok_or_else(|| Failure::new("`--criteria` must be a text"))?;
        let question = |task: &str, answers: [&String; 2]| Labelled {
            task: task.to_owned(),
            criteria: criteria.clone(),
            answers: answers.map(Clone::clone).to_vec(),
        };
        let questions =
            pairs.iter().flat_map(|Answered { task, answers: [first, second], .. }| {
                [question(task, [first, second]), question(task, [second, first])]
            });
        let asked =
            calibrate::ask_all(self.judge, &self.project.settings, questions.collect(), |_| {});
        let said = self.runtime.block_on(asked);
        let said = said.map_err(|error| not_asked(&self.judge.backend.name, &error))?;
        let pair = |orders: &[Result<Judgement, String>]| {
            let [Ok(drawn), Ok(reversed)] = orders else { return None };
            let reason = drawn.criteria.first().map(|it| it.reason.clone()).unwrap_or_default();
            let [points, turned] = [points_of(drawn)?, points_of(reversed)?];
            let reversed = Points { first: turned.second, second: turned.first };
            Some(JudgedPair { orders: vec![points, reversed], reason })
        };
        Ok(said.chunks(2).map(pair).collect())
    }
}

/// The points of two answers, in the order in which they were shown.
fn points_of(judgement: &Judgement) -> Option<Points> {
    match judgement.criteria.first()?.points.as_slice() {
        [first, second] => Some(Points { first: f64::from(*first), second: f64::from(*second) }),
        _ => None,
    }
}

/// The repeats that both have answered.
fn answered<'a>(
    first: &'a [CaseRecord],
    second: &'a [CaseRecord],
) -> impl Iterator<Item = (&'a CaseRecord, &'a CaseRecord)> {
    let has_answer = |it: &&CaseRecord| it.reply.is_some() && it.error.is_none();
    first.iter().filter(has_answer).filter_map(move |one| {
        let other = second.iter().filter(has_answer).find(|it| it.repeat == one.repeat)?;
        Some((one, other))
    })
}

/// What both were asked. Variants of a prompt are asked in other words.
fn task(one: &CaseRecord, other: &CaseRecord) -> String {
    let [first, second] = [one.request.shown(), other.request.shown()];
    match first == second {
        true => first.into_owned(),
        false => {
            format!("{first}\n\n(One of the answers was given to these words instead:)\n\n{second}")
        }
    }
}
