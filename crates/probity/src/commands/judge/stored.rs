//! Labels that people gave in `probity view`.

use probity_grade::internal::people::{Labelled, labels};
use probity_store::{LaneView, Rated, Reader, RunRow};

use super::labels::{Item, Matter, Said};
use crate::{cli::judge::AgreementArgs, commands::runs::open, failure::Failure};

/// Reads what people said of runs; of the latest if none is named.
pub(super) fn read(args: &AgreementArgs, runs: &[String]) -> Result<Vec<Item>, Failure> {
    let reader = open(&args.place)?;
    let latest = ["latest".to_owned()];
    let names = if runs.is_empty() { &latest } else { runs };
    let mut items = Vec::new();
    for name in names {
        let run = reader.find(name)?;
        each(&reader, &run, |lane, rated, labelled| {
            let of_judge = |it: &String| args.judge.as_ref().is_none_or(|name| name == it);
            if labelled.by.as_ref().is_none_or(of_judge) {
                items.push(item(&run, lane, rated, labelled));
            }
            Ok(())
        })?;
    }
    if items.is_empty() {
        return Err(Failure::new(format!("nobody has said anything of `{}`", names.join("`, `")))
            .hint("`probity view --allow-edit` is where people do"));
    }
    Ok(items)
}

/// Goes through everything that people said of a run.
pub(in crate::commands) fn each(
    reader: &Reader,
    run: &RunRow,
    mut take: impl FnMut(&LaneView, &Rated, Labelled) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for lane in reader.lanes(run)? {
        reader.rated(&lane, |rated| {
            let mut all = labels(&rated.record, &rated.history).into_iter();
            all.try_for_each(|it| take(&lane, &rated, it))
        })?;
    }
    Ok(())
}

/// What a label is called.
pub(in crate::commands) fn id(
    run: &RunRow,
    lane: &LaneView,
    rated: &Rated,
    labelled: &Labelled,
) -> String {
    let (short, lane, record) = (run.short(), lane.lane.key(), &rated.record);
    let by = labelled.by.as_ref().map(|it| format!(" by {it}")).unwrap_or_default();
    let (case_id, repeat, about) = (&record.case_id, record.repeat + 1, &labelled.about);
    format!("{short}/{lane}/{case_id}#{repeat}: {about}{by}")
}

fn item(run: &RunRow, lane: &LaneView, rated: &Rated, labelled: Labelled) -> Item {
    let id = id(run, lane, rated, &labelled);
    let Labelled { about, by, judge, people } = labelled;
    let (names, people) = people.into_iter().map(|(name, label)| (name, Some(label))).unzip();
    Item { id, people, names, matter: Some(Matter { about, by }), said: Said::Known(judge) }
}
