use super::*;
use crate::{
    answer::Trouble,
    route::Dialect,
    script::{Record, Rule},
};

fn question(prompt: &str) -> Question {
    Question {
        dialect: Dialect::OpenAi,
        model: "m".to_owned(),
        prompt: prompt.to_owned(),
        key: None,
        system: String::new(),
        stream: false,
        stream_usage: false,
        wants: crate::question::Wants::Answer,
    }
}

fn decide(shared: &Arc<Shared>, prompt: &str) -> &'static str {
    let mut ticket = shared.enter("/");
    ticket.take_number();
    let outcome = match shared.decide(&question(prompt), &mut ticket) {
        Decision::Limited => "limited",
        Decision::Answer { answer, .. } => answer.name(),
    };
    ticket.answered();
    outcome
}

fn shares(seed: u64) -> Arc<Shared> {
    let record = Record { prompts: false, requests: 0 };
    let script = Script { record, seed, ..Script::default() }
        .rule(Rule::new(When::Share(0.2), Answer::fault(Trouble::Internal)))
        .rule(Rule::new(When::Share(0.5), Answer::Hang));
    Arc::new(Shared::new(script))
}

#[test]
fn a_share_of_the_requests_is_about_that_large() {
    let shared = shares(1);
    for n in 0..10_000 {
        decide(&shared, &format!("prompt {n}"));
    }
    let outcomes = shared.seen().outcomes;
    assert!((1_850..2_150).contains(&outcomes["internal"]), "{outcomes:?}");
    assert!((3_850..4_150).contains(&outcomes["hang"]), "{outcomes:?}");
    assert!(shared.seen().prompts.is_empty());
}

#[test]
fn which_requests_a_share_takes_does_not_depend_on_their_order() {
    let (one, two, other) = (shares(1), shares(1), shares(2));
    let prompts: Vec<String> = (0..200).map(|n| format!("prompt {}", n % 40)).collect();
    let forward: Vec<_> = prompts.iter().map(|prompt| decide(&one, prompt)).collect();
    // Another order of prompts, the same order of each prompt's repetitions.
    let mut again = vec![""; prompts.len()];
    for first in (0..40).rev() {
        for n in (first..200).step_by(40) {
            again[n] = decide(&two, &prompts[n]);
        }
    }
    assert_eq!(forward, again);
    let elsewhere: Vec<_> = prompts.iter().map(|prompt| decide(&other, prompt)).collect();
    assert_ne!(forward, elsewhere);
}

#[test]
fn a_prompt_that_failed_may_succeed_later() {
    let shared = shares(1);
    let outcomes: Vec<_> = (0..50).map(|_| decide(&shared, "the same")).collect();
    assert!(outcomes.contains(&"internal") && outcomes.contains(&"reply"), "{outcomes:?}");
}

#[test]
fn a_bucket_refills_with_time_and_never_overflows() {
    let rate = Rate { per_second: 10.0, burst: 2 };
    let start = Instant::now();
    let mut bucket = Bucket { level: None, at: None };
    let mut take = |millis| bucket.take(rate, start + Duration::from_millis(millis));
    assert_eq!([take(0), take(0), take(0)], [true, true, false]);
    assert_eq!([take(50), take(110), take(110)], [false, true, false]);
    assert_eq!([take(9_000), take(9_000), take(9_000)], [true, true, false]);
}

#[test]
fn latency_varies_within_its_bounds() {
    let latency = Latency { fixed: Duration::from_millis(5), jitter: Duration::from_millis(10) };
    let all: Vec<_> = (0..100).map(|n| duration(latency, mix(n))).collect();
    assert!(all.iter().all(|it| (5..=15).contains(&it.as_millis())), "{all:?}");
    assert!(all.iter().min() < all.iter().max());
}
