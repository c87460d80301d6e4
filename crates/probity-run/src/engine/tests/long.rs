//! Cases with long texts.

use super::*;
use crate::engine::schedule::MOST_LIVE_BYTES;

/// A backend that is asked so many cases, and answers every text after a time.
fn answering(name: &str, cases: usize, latency: Duration, max_concurrency: u64) -> Arc<Backend> {
    let otherwise = vec![(latency, Act::Reply)];
    let Backend { wire, .. } = Arc::into_inner(backend(name, replies(cases), 1)).unwrap();
    let Wire::Scripted(script) = wire else { unreachable!("`backend` makes scripts") };
    let wire = Wire::Scripted(Scripted { otherwise, ..script });
    Arc::new(Backend { max_concurrency, wire, ..Backend::nobody(name) })
}

/// Makes every prompt so many bytes longer.
fn lengthen(plan: &mut Plan, bytes: usize) {
    for case in plan.lanes.iter_mut().flat_map(|lane| &mut lane.cases.given) {
        case.prompt = format!("{}{}", case.prompt, "x".repeat(bytes)).into();
    }
}

#[tokio::test(start_paused = true)]
async fn long_texts_are_few_at_a_time() {
    for (bytes, most) in [(MOST_LIVE_BYTES / 8, 4), (MOST_LIVE_BYTES, 1)] {
        let backend = answering("a", 20, SOON, 64);
        let mut plan = plan(std::slice::from_ref(&backend), settings(), 1);
        lengthen(&mut plan, bytes);
        let (outcome, events) = trace(plan, None).await;
        assert_eq!((&outcome.lanes[..], finished(&events, 0)), (&[LaneStatus::Complete][..], 20));
        assert_eq!(script(&backend).peak.load(Ordering::SeqCst), most, "{bytes}");
    }
}

#[tokio::test(start_paused = true)]
async fn long_cases_that_wait_for_other_lanes_do_not_keep_these_from_beginning() {
    // The first lane has had all its answers long before the second begins its last case.
    let lanes = [answering("a", 6, SOON, 64), answering("b", 6, Duration::from_secs(3), 1)];
    let judge = judges::judge(vec![(SOON, Act::Judge)], 2);
    let mut plan = judges::compared(plan(&lanes, settings(), 1), &judge);
    lengthen(&mut plan, MOST_LIVE_BYTES / 2);
    let (outcome, events) = trace(plan, None).await;
    assert_eq!(outcome.lanes, [LaneStatus::Complete, LaneStatus::Complete]);
    assert_eq!((finished(&events, 0), finished(&events, 1)), (6, 6));
}
