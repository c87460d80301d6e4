//! When a backend is given up, and how long it is waited for.

use super::*;

/// Cases that always fail among others that never do, no two of them neighbours.
fn scattered(count: usize, gaps: &[usize], latencies: &[u64]) -> Vec<Vec<(Duration, Act)>> {
    let mut acts: Vec<Vec<(Duration, Act)>> = (0..count)
        .map(|at| {
            let latency = latencies[at % latencies.len()];
            vec![(Duration::from_millis(latency), Act::Reply)]
        })
        .collect();
    let mut at = 0;
    for gap in gaps.iter().cycle() {
        at += 2 + gap;
        let Some(act) = acts.get_mut(at) else { break };
        act[0].1 = Act::Fail(ErrorKind::Server, None);
    }
    acts
}

#[tokio::test(start_paused = true)]
async fn four_scattered_errors_do_not_end_a_healthy_run() {
    let acts = scattered(200, &[46], &[50]);
    let (outcome, events) = trace(plan(&[backend("a", acts, 64)], settings(), 1), None).await;
    assert_eq!((outcome.lanes, finished(&events, 0)), (vec![LaneStatus::Complete], 200));
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_dies_half_way_costs_little_more_than_what_is_in_flight() {
    for kind in [ErrorKind::Auth, ErrorKind::Server] {
        let mut acts = replies(60);
        acts.extend(vec![vec![(SOON, Act::Fail(kind, None))]; 190]);
        let dying = backend("a", acts, 16);
        let (outcome, _) = trace(plan(std::slice::from_ref(&dying), settings(), 1), None).await;
        assert!(matches!(outcome.lanes[0], LaneStatus::FailFast { .. }), "{:?}", outcome.lanes);
        let wasted = script(&dying).calls() - 60;
        let most = if kind == ErrorKind::Auth { 16 + 3 } else { 4 * 2 * 16 + 12 };
        assert!(wasted <= most, "{kind}: {wasted}");
    }
}

proptest! {
    #[test]
    fn scattered_errors_never_end_a_run(
        count in 1_usize..300,
        gaps in prop::collection::vec(0_usize..60, 1..6),
        latencies in prop::collection::vec(0_u64..3000, 1..7),
        own in 1_u64..100,
        total in 1_u64..100,
        repeat in 1_u32..3,
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        // What is read ahead is bounded.
        let count = count.min(255 / repeat as usize);
        let backend = backend("a", scattered(count, &gaps, &latencies), own);
        let settings = Settings { max_concurrency: total, ..settings() };
        let plan = plan(std::slice::from_ref(&backend), settings, repeat);
        let (outcome, events) = runtime.unwrap().block_on(trace(plan, None));
        prop_assert_eq!(outcome.lanes, vec![LaneStatus::Complete]);
        prop_assert_eq!(finished(&events, 0), count * repeat as usize);
    }

    #[test]
    fn a_dead_backend_always_ends_a_run(
        healthy in 0_usize..100,
        dead in 3_usize..150,
        latencies in prop::collection::vec(0_u64..3000, 1..7),
        permanent in any::<bool>(),
        own in 1_u64..100,
        total in 1_u64..100,
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let kind = if permanent { ErrorKind::Auth } else { ErrorKind::Server };
        let acts = (0..healthy + dead).map(|at| {
            let latency = Duration::from_millis(latencies[at % latencies.len()]);
            let act = if at < healthy { Act::Reply } else { Act::Fail(kind, None) };
            vec![(latency, act)]
        });
        let backend = backend("a", acts.collect(), own);
        let settings = Settings { max_concurrency: total, ..settings() };
        let plan = plan(std::slice::from_ref(&backend), settings, 1);
        let (outcome, _) = runtime.unwrap().block_on(trace(plan, None));
        let ended = matches!(outcome.lanes[0], LaneStatus::FailFast { .. });
        prop_assert!(ended, "{:?}", outcome.lanes);
        if healthy == 0 {
            let tries = if permanent { 1 } else { 4 };
            prop_assert!(script(&backend).calls() <= 3 * tries);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_does_not_fit_into_a_case_is_not_begun() {
    let acts = vec![vec![(SOON, Act::Fail(ErrorKind::RateLimit, Some(20.0)))]; 3];
    let timeouts =
        probity_load::settings::Timeouts { case: Duration::from_secs(30), ..settings().timeouts };
    let settings = Settings { timeouts, ..settings() };
    let begun = Instant::now();
    let (_, events) = trace(plan(&[backend("a", acts, 1)], settings, 1), None).await;
    assert_eq!(finished(&events, 0), 3);
    for event in &events {
        if let Event::CaseFinished { record, .. } = event {
            assert!(record.elapsed_ms <= 30_000, "{}", record.elapsed_ms);
            let error = record.error.as_ref().expect("it failed");
            assert_eq!(error.kind, ErrorKind::RateLimit, "{error}");
            assert!(error.message.contains("longer than the time left"), "{error}");
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(100), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_header_cannot_stop_a_run_for_ever() {
    let year = 366.0 * 86_400.0;
    let acts = vec![vec![(SOON, Act::Fail(ErrorKind::RateLimit, Some(year)))]; 9];
    let begun = Instant::now();
    let (outcome, events) = trace(plan(&[backend("a", acts, 4)], settings(), 1), None).await;
    assert!(matches!(outcome.lanes[0], LaneStatus::FailFast { .. }));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(!events.iter().any(|it| matches!(it, Event::BackendPaused { .. })));
    assert!(format!("{events:?}").contains("it asks to wait 366 days"));
}
