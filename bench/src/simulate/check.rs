//! What must be true of a run, whatever befell it.

use std::{collections::BTreeMap, path::Path};

use probity_core::{
    classification::{Class, Verdict},
    failure::ErrorKind,
    gate::GateStatus,
    record::LaneStatus,
};
use probity_store::Reader;

use super::{
    server::{Known, TOKENS},
    session::{Ended, lane_of},
    world::{Judging, Place, Truth, World},
};

/// What a store says of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) run_id: Option<String>,
    pub(crate) results: BTreeMap<Place, Outcome>,
    /// Calls that are counted, by runner.
    calls: BTreeMap<String, u64>,
    statuses: Vec<Option<LaneStatus>>,
}

/// What is the same in every run of the same world.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    class: Class,
    pub(crate) verdict: Verdict,
    reply: Option<String>,
    pub(crate) error: Option<ErrorKind>,
}

/// What befell a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Past {
    /// Processes that did not come to an orderly end.
    pub(crate) cut_off: u64,
    pub(crate) power_cuts: u64,
}

impl Found {
    /// Reads a store.
    pub(crate) fn read(store: &Path) -> Result<Self, String> {
        let shown = |error: probity_store::StoreError| format!("the store cannot be read: {error}");
        let reader = Reader::open(store).map_err(shown)?;
        let mut runs = reader.runs().map_err(shown)?;
        let Some(run) = runs.pop() else { return Ok(Self::default()) };
        if !runs.is_empty() {
            return Err("there are several runs".to_owned());
        }
        let mut found = Self { run_id: Some(run.run_id.clone()), ..Self::default() };
        for view in reader.lanes(&run).map_err(shown)? {
            let lane = lane_of(&view.lane);
            *found.calls.entry(lane.runner.clone()).or_default() += view.calls;
            let mut twice = None;
            reader
                .cases(&view, |case| {
                    let place = Place {
                        lane: lane.clone(),
                        case: case.case_id.clone(),
                        repeat: case.repeat,
                    };
                    let outcome = Outcome {
                        class: case.class,
                        verdict: case.verdict,
                        reply: case.reply.as_deref().map(ToOwned::to_owned),
                        error: case.error.as_ref().map(|it| it.kind),
                    };
                    if found.results.insert(place.clone(), outcome).is_some() {
                        twice = Some(place.key());
                    }
                    Ok(())
                })
                .map_err(shown)?;
            if let Some(key) = twice {
                return Err(format!("{key}: two results"));
            }
            found.statuses.push(view.status);
        }
        Ok(found)
    }
}

/// After every process: nothing that somebody was told of is gone, and no budget was overrun.
pub(crate) fn always(
    world: &World,
    known: &mut Known,
    found: &Found,
    past: Past,
) -> Result<(), String> {
    if let Some(wrong) = known.wrong.first() {
        return Err(wrong.clone());
    }
    if let Some(lost) = known.visible.iter().find(|it| !found.results.contains_key(it)) {
        return Err(format!("{}: shown, and not in the store", lost.key()));
    }
    // What is there now is what counts: a kill may have taken more than the process knew, or less.
    known.durable =
        found.results.iter().map(|(place, it)| (place.clone(), it.error.is_some())).collect();
    let planned = world.planned();
    if let Some(alien) = found.results.keys().find(|it| !planned.contains(it)) {
        return Err(format!("{}: a result that nobody planned", alien.key()));
    }
    for (place, outcome) in &found.results {
        plausible(world, place, outcome)?;
    }
    if past.power_cuts > 0 {
        return Ok(());
    }
    let all: u64 = known.calls.values().sum();
    if let Some(most) = world.max_calls.filter(|most| all > *most) {
        return Err(format!("{all} calls were made, {most} were allowed"));
    }
    for runner in &world.runners {
        let calls = known.calls.get(&runner.name).copied().unwrap_or(0);
        if let Some(most) = runner.max_calls.filter(|most| calls > *most) {
            let name = &runner.name;
            return Err(format!("{calls} calls were made for {name}, {most} were allowed"));
        }
    }
    let most = world.max_tokens.filter(|_| world.max_calls.is_none() && past.cut_off == 0);
    let over = world.max_concurrency * TOKENS;
    if let Some(most) = most.filter(|most| known.tokens > *most + over) {
        return Err(format!("{} tokens were used, {most} were allowed", known.tokens));
    }
    Ok(())
}

/// A result is what the world gives for its case, or an error.
fn plausible(world: &World, place: &Place, outcome: &Outcome) -> Result<(), String> {
    let judging = world.runner(&place.lane.runner).map(|it| it.judging);
    let truth = world.truth(&place.key());
    let expected = match truth {
        Truth::Right if judging == Some(Judging::Text) => Verdict::Pass,
        Truth::Right => return Ok(()),
        Truth::Wrong | Truth::Refused | Truth::Blocked => Verdict::Fail,
        Truth::Error(_) => Verdict::Error,
    };
    let is_error = outcome.verdict == Verdict::Error;
    if outcome.verdict == expected || is_error && !world.is_calm {
        return Ok(());
    }
    Err(format!("{}: {truth:?} became {outcome:?}", place.key()))
}

/// After a process that came to its end.
pub(crate) fn ended(
    world: &World,
    known: &Known,
    found: &Found,
    (ended, past): (&Ended, Past),
) -> Result<(), String> {
    let planned = world.planned();
    let missing = planned.iter().filter(|it| !found.results.contains_key(it)).count();
    let is_whole = |it: &LaneStatus| it.is_complete();
    if missing > 0 && ended.lanes.iter().all(is_whole) {
        return Err(format!("{missing} results are missing from a run that is complete"));
    }
    let stored: Vec<Option<LaneStatus>> = ended.lanes.iter().cloned().map(Some).collect();
    if stored != found.statuses {
        let statuses = &found.statuses;
        return Err(format!("the store says {statuses:?} of lanes that are {:?}", ended.lanes));
    }
    let is_sound = ended.lanes.iter().all(LaneStatus::is_sound);
    let Ended { exit, .. } = ended;
    if *exit == 0 && !is_sound {
        return Err(format!("exit code 0 with lanes that are {:?}", ended.lanes));
    }
    if !is_sound && *exit != 3 {
        return Err(format!("exit code {exit} with lanes that are {:?}", ended.lanes));
    }
    let count =
        |verdict: Verdict| found.results.values().filter(|it| it.verdict == verdict).count();
    let shown = ended.view.lanes.iter().map(|it| it.metrics.all.verdicts);
    let shown =
        shown.fold((0, 0, 0), |all, it| (all.0 + it.pass, all.1 + it.fail, all.2 + it.error));
    let stored = (count(Verdict::Pass), count(Verdict::Fail), count(Verdict::Error));
    let stored = (stored.0 as u64, stored.1 as u64, stored.2 as u64);
    if shown != stored {
        return Err(format!("the summary has {shown:?} and the store {stored:?}"));
    }
    if missing == 0 && is_sound && !world.is_decided_early {
        let expected = exit_code(world, found);
        if expected != *exit {
            return Err(format!("exit code {exit}, and {expected} by the results"));
        }
    }
    counted(world, known, found, past)
}

/// Every call that began is counted, and hardly another.
fn counted(world: &World, known: &Known, found: &Found, past: Past) -> Result<(), String> {
    if past.power_cuts > 0 {
        return Ok(());
    }
    for runner in &world.runners {
        let name = &runner.name;
        let begun = known.calls.get(name).copied().unwrap_or(0);
        let counted = found.calls.get(name).copied().unwrap_or(0);
        if counted < begun {
            return Err(format!("{name}: {begun} calls began, and {counted} are counted"));
        }
        // A kill may come between the count and the call.
        let most = begun + past.cut_off * world.max_concurrency;
        if world.is_calm && counted > most {
            return Err(format!("{name}: {counted} calls are counted, and {begun} began"));
        }
    }
    Ok(())
}

/// The exit code that results come to, by what the documentation says of it.
fn exit_code(world: &World, found: &Found) -> u8 {
    let is_error = |it: &&Outcome| it.verdict == Verdict::Error;
    let errors = found.results.values().filter(is_error).count();
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let is_degraded = errors as f64 > found.results.len() as f64 * world.max_error_rate;
    let is_locked_out = found
        .results
        .values()
        .any(|it| matches!(it.error, Some(ErrorKind::Auth | ErrorKind::Quota)));
    if is_degraded || is_locked_out {
        return 3;
    }
    for runner in &world.runners {
        let Some(percent) = runner.gate else { continue };
        let mut lanes: BTreeMap<_, (u32, u32)> = BTreeMap::new();
        for (place, it) in found.results.iter().filter(|it| it.0.lane.runner == runner.name) {
            let (passed, judged) = lanes.entry(place.lane.clone()).or_default();
            *passed += u32::from(it.verdict == Verdict::Pass);
            *judged += u32::from(matches!(it.verdict, Verdict::Pass | Verdict::Fail));
        }
        // A gate with nothing to judge fails.
        if lanes.values().any(|(passed, judged)| *judged == 0 || passed * 100 < judged * percent) {
            return 1;
        }
    }
    0
}

/// A run that was disturbed against one that was not.
pub(crate) fn same(
    world: &World,
    calm: (&Found, &Ended),
    disturbed: (&Found, &Ended),
) -> Result<(), String> {
    if !world.is_calm {
        return Ok(());
    }
    let gates = |ended: &Ended| -> Vec<GateStatus> {
        ended.view.lanes.iter().flat_map(|lane| &lane.gates).map(|it| it.status).collect()
    };
    if calm.1.exit != disturbed.1.exit || gates(calm.1) != gates(disturbed.1) {
        return Err(format!(
            "exit code {} and gates {:?}; without disturbances {} and {:?}",
            disturbed.1.exit,
            gates(disturbed.1),
            calm.1.exit,
            gates(calm.1)
        ));
    }
    if world.is_decided_early {
        return Ok(());
    }
    for place in world.planned() {
        let (one, other) = (calm.0.results.get(&place), disturbed.0.results.get(&place));
        if one != other || one.is_none() {
            let key = place.key();
            return Err(format!("{key}: {other:?}; without disturbances {one:?}"));
        }
    }
    Ok(())
}
