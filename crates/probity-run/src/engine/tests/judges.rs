//! Answers that are judged, each alone or against those of other lanes.

use super::*;

/// A backend that judges: these acts, again and again.
pub(super) fn judge(acts: Vec<(Duration, Act)>, max_concurrency: u64) -> Arc<Backend> {
    let wire = Wire::Scripted(Scripted { otherwise: acts, ..Scripted::default() });
    Arc::new(Backend {
        max_concurrency,
        timeout: Duration::from_secs(10),
        wire,
        ..Backend::nobody("judge")
    })
}

/// Has the answers of some lanes judged.
pub(super) fn judged(plan: Plan, judge: &Arc<Backend>, lanes: &[usize]) -> Plan {
    asserted(plan, judge, lanes, AssertionTest::LlmRubric)
}

/// Has the answers of all lanes compared with each other.
pub(super) fn compared(plan: Plan, judge: &Arc<Backend>) -> Plan {
    let all: Vec<usize> = (0..plan.lanes.len()).collect();
    asserted(plan, judge, &all, AssertionTest::SelectBest)
}

fn asserted(mut plan: Plan, judge: &Arc<Backend>, lanes: &[usize], test: AssertionTest) -> Plan {
    let place = plan.backends.len();
    plan.backends.push(judge.clone());
    for at in lanes {
        let lane = &mut plan.lanes[*at];
        lane.judges = vec![place];
        for case in &mut lane.cases.given {
            let kind = AssertionKind { negated: false, test };
            case.criteria.assertions =
                vec![Assertion { value: Some("is good".into()), ..Assertion::new(kind) }];
        }
    }
    plan
}

#[tokio::test(start_paused = true)]
async fn a_dead_judge_costs_three_answers_and_spares_what_needs_no_judge() {
    let (one, two) = (backend("one", replies(50), 64), backend("two", replies(50), 64));
    let judge = judge(vec![(SOON, Act::Fail(ErrorKind::Auth, None))], 64);
    let plan = plan(&[one.clone(), two], settings(), 1);
    let (outcome, events) = trace(judged(plan, &judge, &[0]), None).await;
    let reason = "auth: judge `judge`: auth".to_owned();
    assert_eq!(
        outcome.lanes,
        [LaneStatus::FailFast { reason, permanent: true }, LaneStatus::Complete]
    );
    assert_eq!((script(&one).calls(), script(&judge).calls()), (3, 3));
    assert_eq!((finished(&events, 0), finished(&events, 1)), (3, 50));
}

#[tokio::test(start_paused = true)]
async fn a_slow_judge_is_not_flooded() {
    let fast = backend("fast", replies(200), 64);
    let judge = judge(vec![(Duration::from_secs(1), Act::Judge)], 2);
    let plan = plan(std::slice::from_ref(&fast), settings(), 1);
    let (outcome, events) = trace(judged(plan, &judge, &[0]), None).await;
    assert_eq!((outcome.used.calls, finished(&events, 0)), (400, 200));
    assert_eq!(script(&judge).peak.load(Ordering::SeqCst), 2);
    let (mut open, mut most) = (0, 0);
    for event in &events {
        match event {
            Event::CaseStarted(_) => open += 1,
            Event::CaseFinished { .. } => open -= 1,
            _ => {}
        }
        most = most.max(open);
    }
    assert!(most < 100, "{most} answers waited for the judge at once");
}

/// The verdicts of a lane, by how many times each is there.
fn verdicts(events: &[Event], lane: usize) -> BTreeMap<Verdict, usize> {
    let mut all = BTreeMap::new();
    for event in events {
        if let Event::CaseFinished { lane: at, record } = event
            && *at == lane
        {
            *all.entry(record.verdict).or_default() += 1;
        }
    }
    all
}

#[tokio::test(start_paused = true)]
async fn one_question_finds_the_best_of_all_lanes() {
    let slow = vec![vec![(Duration::from_secs(3), Act::Reply)]; 40];
    let lanes =
        [backend("a", replies(40), 64), backend("b", slow, 4), backend("c", replies(40), 1)];
    let judge = judge(vec![(SOON, Act::Judge)], 2);
    let (outcome, events) = trace(compared(plan(&lanes, settings(), 1), &judge), None).await;
    assert_eq!(outcome.used.calls, 3 * 40 + 40);
    let all: Vec<_> = (0..3).map(|lane| verdicts(&events, lane)).collect();
    let sum = |verdict| all.iter().filter_map(|it| it.get(&verdict)).sum::<usize>();
    assert_eq!((sum(Verdict::Pass), sum(Verdict::Fail)), (40, 80));
    check_stream(&events);
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_is_given_up_leaves_the_others_to_be_compared() {
    let dead = failures(20, ErrorKind::Auth);
    let lanes =
        [backend("dead", dead, 8), backend("a", replies(20), 8), backend("b", replies(20), 8)];
    let judge = judge(vec![(SOON, Act::Judge)], 2);
    let (outcome, events) = trace(compared(plan(&lanes, settings(), 1), &judge), None).await;
    assert!(matches!(outcome.lanes[0], LaneStatus::FailFast { .. }));
    assert_eq!(outcome.lanes[1..], [LaneStatus::Complete, LaneStatus::Complete]);
    assert_eq!((finished(&events, 1), finished(&events, 2), script(&judge).calls()), (20, 20, 20));
}

#[tokio::test(start_paused = true)]
async fn a_dead_judge_is_an_error_of_every_lane_that_it_compares() {
    let lanes = [backend("a", replies(50), 64), backend("b", replies(50), 64)];
    let judge = judge(vec![(SOON, Act::Fail(ErrorKind::Auth, None))], 64);
    let (outcome, events) = trace(compared(plan(&lanes, settings(), 1), &judge), None).await;
    assert!(outcome.lanes.iter().all(|it| matches!(it, LaneStatus::FailFast { .. })));
    for lane in 0..2 {
        let found = verdicts(&events, lane);
        assert!(found.keys().all(|it| *it == Verdict::Error), "{found:?}");
    }
    assert!(script(&judge).calls() <= 3, "{}", script(&judge).calls());
}
