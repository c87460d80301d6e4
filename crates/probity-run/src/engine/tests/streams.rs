//! Whatever happens, the events of a run are in order.

use proptest::prelude::*;

use super::{
    judges::{compared, judge, judged},
    *,
};

fn act() -> impl Strategy<Value = (Duration, Act)> {
    let act = prop_oneof![
        6 => Just(Act::Reply),
        1 => Just(Act::Fail(ErrorKind::Server, None)),
        1 => Just(Act::Fail(ErrorKind::Auth, None)),
        1 => Just(Act::Fail(ErrorKind::RateLimit, Some(3.0))),
        1 => Just(Act::Hang),
    ];
    (0_u64..3000, act).prop_map(|(millis, act)| (Duration::from_millis(millis), act))
}

proptest! {
    #[test]
    fn every_stream_is_well_formed(
        scripts in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(act(), 1..4), 1..20), 1..4),
        total in 1_u64..20,
        own in 1_u64..10,
        threshold in 1_u64..4,
        max_calls in prop::option::of(1_u64..60),
        stop_after in prop::option::of(0_u64..20_000),
        repeat in 1_u32..3,
        judging in prop::collection::vec((act(), any::<bool>()), 0..4),
        is_compared in any::<bool>(),
        timeout in prop::option::of(0_u64..15_000),
        is_parallel in any::<bool>(),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let run_once = || {
            let mut backends: Vec<_> = scripts
                .iter()
                .enumerate()
                .map(|(at, acts)| backend(&format!("b{at}"), acts.clone(), own))
                .collect();
            let fail_fast = Some(FailFast { threshold, permanent_threshold: threshold });
            let budget = Budget { max_calls, ..Budget::default() };
            let settings =
                Settings { max_concurrency: total, fail_fast, budget, ..settings() };
            let runtime = runtime.as_ref().unwrap();
            let stop_after = stop_after.map(Duration::from_millis);
            let mut plan = plan(&backends, settings, repeat);
            // Some answers of the judge can be read and some cannot.
            let says = |((wait, act), content): &((Duration, Act), bool)| match act {
                Act::Reply if *content => (*wait, Act::Judge),
                act => (*wait, act.clone()),
            };
            let judge = judge(judging.iter().map(says).collect(), own);
            plan = match (judging.is_empty(), is_compared) {
                (true, _) => plan,
                (false, true) => compared(plan, &judge),
                (false, false) => judged(plan, &judge, &[0]),
            };
            if !is_parallel {
                plan.stages = (0..backends.len()).map(|at| vec![at]).collect();
            }
            plan.lanes[0].timeout = timeout.map(Duration::from_millis);
            let (outcome, events) = runtime.block_on(trace(plan, stop_after));
            backends.push(judge);
            let peaks: Vec<u64> =
                backends.iter().map(|it| script(it).peak.load(Ordering::SeqCst)).collect();
            let calls: usize = backends.iter().map(|it| script(it).calls()).sum();
            (outcome, events, peaks, calls)
        };
        let (outcome, events, peaks, calls) = run_once();
        check_stream(&events);
        prop_assert!(peaks.iter().all(|peak| *peak <= own));
        prop_assert!(peaks.iter().max().copied().unwrap_or(0) <= total);
        prop_assert_eq!(outcome.used.calls, calls as u64);
        if let Some(most) = max_calls {
            prop_assert!(outcome.used.calls <= most);
        }
        for (lane, status) in outcome.lanes.iter().enumerate() {
            let planned = scripts[lane].len() * repeat as usize;
            let all = finished(&events, lane) == planned;
            // The last case may be the one too many, or the one that somebody stops.
            let explained = matches!(
                status,
                LaneStatus::FailFast { .. } | LaneStatus::Interrupted | LaneStatus::TimedOut { .. }
            );
            prop_assert!(status.is_complete() == all || all && explained,
                "{:?} with {} of {}", status, finished(&events, lane), planned);
        }
        let (again, events_again, ..) = run_once();
        prop_assert_eq!(outcome, again);
        prop_assert_eq!(shown(&events), shown(&events_again));
    }
}

/// What is the same in two runs of the same script: everything but the clock on the wall.
fn shown(events: &[Event]) -> Vec<String> {
    let show = |event: &Event| match event {
        Event::CaseFinished { lane, record } => {
            format!("finished {lane} {} {} {:?}", record.case_id, record.repeat, record.class)
        }
        other => format!("{other:?}"),
    };
    events.iter().map(show).collect()
}
