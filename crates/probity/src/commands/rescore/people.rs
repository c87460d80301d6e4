//! What people said of the replies that are judged again.

use std::path::Path;

use probity_core::people::marks;
use probity_store::{Reader, RunRow, StoreError, carry_remarks};

use crate::{commands::dataset::counted, failure::Failure};

/// Verdicts that people marked: how many, how many they confirm now, and how many they confirmed before.
#[derive(Default)]
struct Marked {
    all: usize,
    now: usize,
    before: usize,
}

/// Carries over what people said, and tells whether the verdicts are now more as people say.
pub(super) fn carry(
    store: &Path,
    reader: &Reader,
    origin: &RunRow,
    run: &RunRow,
) -> Result<String, Failure> {
    let carried = carry_remarks(store, origin, run)?;
    if carried == 0 {
        return Ok(String::new());
    }
    let results = counted(usize::try_from(carried).unwrap_or(usize::MAX), "result");
    let told = format!("what people said of {results} was carried over");
    let Marked { all, now, before } = marked(reader, origin, run)?;
    Ok(match all {
        0 => format!("{told}\n"),
        all => {
            let marks = counted(all, "mark");
            format!("{told}; of {marks}, {now} confirm the verdict, {before} did before\n")
        }
    })
}

fn marked(reader: &Reader, origin: &RunRow, run: &RunRow) -> Result<Marked, Failure> {
    let earlier = reader.lanes(origin)?;
    let mut marked = Marked::default();
    for lane in reader.lanes(run)? {
        let Some(before) = earlier.iter().find(|it| it.lane.key() == lane.lane.key()) else {
            continue;
        };
        reader.rated(&lane, |rated| {
            let records = reader.case(before, &rated.record.case_id)?;
            let was = records.iter().find(|it| it.repeat == rated.record.repeat);
            for (_, mark) in marks(&rated.history) {
                let confirms = |verdict| usize::from(mark.confirms(verdict) == Some(true));
                marked.all += 1;
                marked.now += confirms(rated.record.verdict);
                marked.before += was.map_or(0, |it| confirms(it.verdict));
            }
            Ok::<_, StoreError>(())
        })?;
    }
    Ok(marked)
}
