//! `probity judge agreement`: how far a judge agrees with people.

mod labels;
mod matters;
pub(super) mod stored;
mod told;

use std::{io::Write as _, path::Path, sync::Arc};

use probity_core::{calibration::Label, record::CallError};
use probity_grade::internal::judge::Judgement;
use probity_load::settings::Layer;
use probity_run::{
    backend::http::Client,
    calibrate::{self, Judge},
};
use probity_store::Reader;
use serde_json::{Value, json};

use super::project::{Project, Reading, settings_alone};
use crate::{
    cli::judge::{AgreementArgs, JudgeCommand},
    exit::Exit,
    failure::Failure,
    output::OutputFile,
    printer::Printer,
};
use labels::{Asked, Item, Matter, Said};

pub(super) fn run(command: &JudgeCommand, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        JudgeCommand::Agreement(args) => agreement(args, printer),
    }
}

/// Read the labels, hear the judge, compare.
fn agreement(args: &AgreementArgs, printer: &Printer) -> Result<Exit, Failure> {
    if args.min_kappa.is_some_and(|least| !(-1.0..=1.0).contains(&least)) {
        return Err(Failure::new("`--min-kappa` must lie between -1 and 1"));
    }
    let items = match (&args.labels, &args.from_store) {
        (Some(path), _) => labels::read(path, printer)?,
        (None, runs) => stored::read(args, runs.as_deref().unwrap_or_default())?,
    };
    let mut said: Vec<Result<Option<Label>, String>> = Vec::with_capacity(items.len());
    for item in &items {
        said.push(match &item.said {
            Said::Known(label) => Ok(label.clone()),
            Said::Stored(_) | Said::Asked(_) => Ok(None),
        });
    }
    hear_from_store(args, &items, &mut said)?;
    hear_from_judge(args, &items, &mut said, printer)?;
    if let Some(path) = &args.output {
        write_scores(path, &items, &said)?;
    }
    let compared = matters::compare(&items, &said, printer)?;
    match args.json {
        true => Printer::emit(&format!("{:#}\n", matters::json(&compared)))?,
        false => printer.show(&matters::render(&compared))?,
    }
    let least = args.min_kappa;
    let below = compared.iter().filter(|it| !it.reaches(least, printer)).count();
    Ok(if below == 0 { Exit::Success } else { Exit::Failed(1) })
}

/// What a judge said in a run of the store.
fn hear_from_store(
    args: &AgreementArgs,
    items: &[Item],
    said: &mut [Result<Option<Label>, String>],
) -> Result<(), Failure> {
    let wants = |item: &Item| matches!(item.said, Said::Stored(_));
    if !items.iter().any(wants) {
        return Ok(());
    }
    let settings = settings_alone(&args.place)?;
    let reader = Reader::open(Path::new(&settings.store))?;
    let run = reader.find(&args.run)?;
    let lanes = reader.lanes(&run)?;
    for (item, said) in items.iter().zip(said) {
        let Said::Stored(wanted) = &item.said else { continue };
        let mut found = Vec::new();
        for lane in lanes.iter().filter(|lane| wanted.is_of(&lane.lane)) {
            let cases = reader.case(lane, &wanted.case_id)?;
            found.extend(cases.iter().filter_map(|case| wanted.find(case)));
        }
        if found.len() > 1 {
            let (id, count) = (&item.id, found.len());
            return Err(Failure::new(format!("label `{id}` matches {count} judgements"))
                .hint("say which with `runner`, `backend` and `repeat`"));
        }
        *said = found.pop().map(Some).ok_or_else(|| "the run has no such judgement".to_owned());
    }
    Ok(())
}

/// What the judge says when it is asked now.
fn hear_from_judge(
    args: &AgreementArgs,
    items: &[Item],
    said: &mut [Result<Option<Label>, String>],
    printer: &Printer,
) -> Result<(), Failure> {
    // Several labels may be about one question.
    let mut questions: Vec<&Arc<Asked>> = Vec::new();
    for item in items {
        if let Said::Asked((question, _)) = &item.said
            && !questions.iter().any(|it| Arc::ptr_eq(it, question))
        {
            questions.push(question);
        }
    }
    if questions.is_empty() {
        return Ok(());
    }
    let reading = Reading::strict(printer, args.foreign);
    let project = Project::load(&args.suite, &args.place, Layer::default(), &reading)?;
    let judge = open_judge(args.judge.as_deref(), args.judge_model.as_deref(), &project)?;
    let all = questions.iter().map(|it| it.labelled.clone()).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("failed to start").because(error))?;
    let count = questions.len();
    let name = &judge.backend.name;
    let each = |done: usize| {
        if done.is_multiple_of(100) && done < count {
            printer.note(&format!("{done} of {count} asked"));
        }
    };
    let judged = runtime.block_on(calibrate::ask_all(&judge, &project.settings, all, each));
    let judged = judged.map_err(|error| not_asked(name, &error))?;
    for (item, said) in items.iter().zip(said) {
        let Said::Asked((question, criterion)) = &item.said else { continue };
        let place = questions.iter().position(|it| Arc::ptr_eq(it, question));
        let judgement: Option<&Result<Judgement, String>> = place.and_then(|at| judged.get(at));
        *said = match judgement {
            Some(Ok(judgement)) => Ok(question.label(judgement, *criterion)),
            Some(Err(why)) => Err(why.clone()),
            None => Ok(None),
        };
    }
    let unread = judged.iter().filter(|it| it.is_err()).count();
    if unread > 0 {
        printer.note(&format!("{unread} of {count} answers of the judge could not be used"));
    }
    Ok(())
}

/// A judge that is down, or that does not let us in.
pub(super) fn not_asked(name: &str, error: &CallError) -> Failure {
    Failure::new(format!("the judge `{name}` cannot be asked"))
        .because(std::io::Error::other(error.to_string()))
        .exit(Exit::Aborted)
}

/// The backend that judges: the one that is named, else the suite's, else its only one. It is asked as
/// runs ask it.
pub(super) fn open_judge(
    named: Option<&str>,
    model: Option<&str>,
    project: &Project,
) -> Result<Judge, Failure> {
    let suite = &project.suite;
    let of_runner = || suite.runners.iter().find_map(|it| it.panel.judges.first().cloned());
    let only = || match suite.backends.as_slice() {
        [one] => Some(one.name.clone()),
        _ => None,
    };
    let named = named.map(ToOwned::to_owned).or_else(|| suite.judge.judges.first().cloned());
    let name = named.or_else(of_runner).or_else(only).ok_or_else(|| {
        Failure::new("the suite names no judge")
            .hint("name a backend with --judge, or with [judge] in the suite")
    })?;
    let known: Vec<&str> = suite.backends.iter().map(|it| it.name.as_str()).collect();
    let config = suite.backend(&name).ok_or_else(|| {
        Failure::new(format!("there is no backend `{name}`"))
            .hint(format!("the suite has {}", known.join(", ")))
    })?;
    let mut panels = suite.runners.iter().map(|it| &it.panel);
    let panel = panels.find(|it| it.judges.contains(&name)).unwrap_or(&suite.judge);
    let mut config = config.clone();
    if let Some(model) = model {
        config.set_model(model);
    }
    let client =
        Client::new(usize::try_from(project.settings.max_concurrency).unwrap_or(usize::MAX));
    let backend = project.with_factory(&client, |factory| factory.open(&config));
    let backend =
        backend.map_err(|error| Failure::new("the judge cannot be used").because(error))?;
    Ok(Judge { backend: Arc::new(backend), structured: panel.structured, cache: None })
}

/// The labels with what the judge said, one a line: they can be read again without asking.
fn write_scores(
    path: &Path,
    items: &[Item],
    said: &[Result<Option<Label>, String>],
) -> Result<(), Failure> {
    let mut file = OutputFile::create(path)?;
    for (item, said) in items.iter().zip(said) {
        let people: Vec<_> = item.people.iter().map(|it| it.as_ref().map(label_json)).collect();
        let mut line = json!({ "id": item.id, "human": people });
        if !item.names.is_empty() {
            line["people"] = json!(item.names);
        }
        if let Some(Matter { about, by }) = &item.matter {
            line["about"] = json!(about);
            line["by"] = json!(by);
        }
        match said {
            Ok(Some(it)) => line["judge"] = label_json(it),
            Ok(None) => line["judge"] = json!(null),
            Err(why) => {
                line["judge"] = json!(null);
                line["error"] = json!(why);
            }
        }
        writeln!(file, "{line}").map_err(|error| Failure::write(path, error))?;
    }
    file.finish()
}

/// A label as it stands in files.
pub(super) fn label_json(label: &Label) -> Value {
    match label {
        // Whole points are written as people write them.
        #[expect(clippy::cast_possible_truncation, reason = "whole, and small enough")]
        Label::Points(points) if points.fract() == 0.0 && points.abs() < 1e9 => {
            json!(*points as i64)
        }
        Label::Points(points) => json!(points),
        Label::Name(name) => json!(name),
    }
}
