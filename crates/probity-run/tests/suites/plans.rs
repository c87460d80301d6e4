//! What is known of a suite before anything is asked.

use probity_core::{
    case::Category,
    classification::{Class, Verdict},
    record::{CacheKind, Lane, LaneStatus},
    request::Need,
};
use probity_run::{
    backend::{About, Answers as _, Ask},
    decide::Certainty,
    filter::{Filter, Shard},
    plan::{Choice, Compared, SampleSize},
    source::{DoneCase, Stored},
};
use serde_json::{Value, json};

use crate::project::{Kept, Project, errors, ran};

const BACKENDS: &str = "[backends.e]\nkind = \"echo\"\nmodel = \"m-1\"\n\
                        [backends.f]\nkind = \"echo\"\nmodel = \"m-1\"\n";

fn suite(runner: &str) -> String {
    format!(
        "{BACKENDS}[[runners]]\nname = \"r\"\nbackends = [\"e\"]\ndataset = \"cases.jsonl\"\n{runner}\n"
    )
}

fn cases() -> Vec<Value> {
    let case = |at: u32, category: &str| {
        json!({
            "id": format!("c{at}"), "prompt": format!("Say {at}"), "category": category,
            "expected_response": format!("Say {at}"),
        })
    };
    vec![case(0, "math"), case(1, "math"), case(2, "code"), case(3, "code"), case(4, "code")]
}

#[test]
fn what_a_dataset_comes_to_is_added_up() {
    let mut all = cases();
    all[1].as_object_mut().unwrap().remove("expected_response");
    all[2]["assert"] = json!([{ "type": "llm-rubric", "value": "x" }]);
    all[3]["turns"] = json!(["Say 3", "And 4"]);
    all[3].as_object_mut().unwrap().remove("prompt");
    let project = Project::new().cases(&all).file("known.txt", "c0\ngone\n");
    let read = project.read(&suite(
        "repeat = 2\nsystem = \"be brief\"\nknown_failures = \"known.txt\"\njudges = [\"e\", \"f\"]\njudge_repeats = 3",
    ));
    let scanned = read.scanned(&Choice::default()).remove(0);
    assert_eq!((scanned.selected, scanned.total, scanned.of_all_shards), (5, 5, 5));
    let (math, code) = (Category::named("math"), Category::named("code"));
    assert_eq!((scanned.categories[&math], scanned.categories[&code]), (2, 3));
    assert_eq!(scanned.unknown_failures, ["gone"]);
    assert_eq!(
        (scanned.undecided.without_criterion.count, scanned.undecided.is_empty()),
        (1, false)
    );
    assert_eq!(scanned.undecided.without_criterion.first, ["c1"]);
    assert_eq!((scanned.calls.answers, scanned.calls.judgements), (6, 6));
    assert!(scanned.needs.contains(&Need::Conversation) && !scanned.needs.contains(&Need::Tools));
    assert!(scanned.needs_judge() && !scanned.needs_embeddings() && !scanned.needs_reranking());
    let plan = read.plan();
    let lane = &plan.lanes[0];
    assert_eq!((lane.info.planned, lane.info.repeat), (10, 2));
    assert_eq!((lane.calls.answers, lane.calls.judgements), (12, 12));
    // Instructions and prompt once, and once more with what is said next.
    assert_eq!(lane.prompt_bytes, 5 * 13 + (13 + 5));
    assert_eq!((lane.info.runner.as_str(), lane.info.backend.as_str()), ("r", "e"));
    assert_eq!(
        (lane.info.backend_kind.as_str(), lane.info.model.as_deref()),
        ("echo", Some("m-1"))
    );
    assert_eq!(lane.info.dataset.len(), 1);
    assert_eq!(lane.info.dataset_digest, scanned.dataset_digest());
    assert!(!lane.info.dataset_digest.is_empty());
}

#[test]
fn another_dataset_has_another_digest() {
    let digest = |all: &[Value]| {
        let read = Project::new().cases(all).read(&suite(""));
        read.scanned(&Choice::default())[0].dataset_digest().to_owned()
    };
    assert_eq!(digest(&cases()), digest(&cases()));
    let mut other = cases();
    other[4]["prompt"] = json!("Say 5");
    assert_ne!(digest(&cases()), digest(&other));
}

#[test]
fn a_filter_a_shard_and_a_sample_choose_what_is_asked() {
    let project = Project::new().cases(&cases());
    let read = project.read(&suite(""));
    let ids = |choice: &Choice| {
        let plan = read.plan_of(choice);
        let mut ids = Vec::new();
        plan.lanes[0].requests(|case, _| ids.push(case.id.clone()));
        assert_eq!(plan.lanes[0].info.planned, ids.len() as u64);
        ids
    };
    let limited =
        Choice { filter: Filter { limit: Some(2), ..Filter::default() }, ..Choice::default() };
    assert_eq!(ids(&limited), ["c0", "c1"]);
    let sample =
        |seed| ids(&Choice { sample: Some(SampleSize { size: 3, seed }), ..Choice::default() });
    assert_eq!((sample(1).len(), sample(1)), (3, sample(1)));
    assert!((2..20).any(|seed| sample(seed) != sample(1)));
    let shard = |index| Choice {
        filter: Filter { shard: Some(Shard { index, count: 2 }), ..Filter::default() },
        ..Choice::default()
    };
    let (one, two) = (ids(&shard(1)), ids(&shard(2)));
    let mut both = [one.clone(), two].concat();
    both.sort();
    assert_eq!(both, ["c0", "c1", "c2", "c3", "c4"]);
    let scanned = read.scanned(&shard(1)).remove(0);
    assert_eq!((scanned.selected, scanned.of_all_shards), (one.len() as u64, 5));
}

#[test]
fn a_gate_that_no_case_can_be_judged_by_is_refused() {
    let problems = |gates: &str| {
        let mut all = cases();
        all[0]["assert"] = json!([{ "type": "contains", "value": "0", "metric": "polite" }]);
        let project = Project::new().cases(&all);
        let found = project.problems(&suite(gates));
        let read = project.read(&suite(gates));
        assert_eq!(read.scan(&Choice::default()).0[0].is_none(), !errors(&found).is_empty());
        found
    };
    assert_eq!(problems("gates = { \"score.polite\" = 0.5 }").len(), 0);
    assert_eq!(problems("gates = { pass_rate = { min = 0.5, category = \"math\" } }").len(), 0);
    let misspelt = problems("gates = { \"score.polit\" = 0.5 }");
    let message = "runner `r` has a gate on `score.polit`, but no case has a score of that name";
    assert_eq!(errors(&misspelt), [("unknown-score", message)]);
    assert_eq!(misspelt[0].help.as_deref(), Some("did you mean `polite`?"));
    let unknown = problems("gates = { pass_rate = { min = 0.5, category = \"history\" } }");
    let message = "runner `r` has a gate on `pass_rate`, but no case has the category `history`";
    assert_eq!(errors(&unknown), [("unknown-category", message)]);
    assert_eq!(unknown[0].help.as_deref(), Some("the cases have code, math"));
}

#[test]
fn the_longest_reply_is_that_of_the_variant_or_else_of_the_backend() {
    let text = suite("[[runners.prompts]]\nname = \"short\"\ntemplate = \"{{ prompt }}\"\nsettings = { max_tokens = 7 }\n[[runners.prompts]]\nname = \"usual\"\ntemplate = \"{{ prompt }}!\"")
        .replace("[backends.e]\nkind = \"echo\"", "[backends.e]\nkind = \"echo\"\nmax_tokens = 9");
    let plan = Project::new().cases(&cases()).read(&text).plan();
    let longest: Vec<Option<u64>> =
        plan.lanes.iter().map(|it| it.max_tokens(&plan.backends[it.backend])).collect();
    assert_eq!(longest, [Some(7), Some(9)]);
    let names: Vec<Option<&str>> = plan.lanes.iter().map(|it| it.info.variant.as_deref()).collect();
    assert_eq!(names, [Some("short"), Some("usual")]);
}

#[test]
fn answers_that_are_there_to_be_judged_are_counted() {
    let skill = "---\ndescription: Queries.\n---\nSQL-BODY\n";
    let rubric = "skill_name = \"sql\"\ntest_prompts = [\"Count.\", \"Join.\"]\n[[criteria]]\nname = \"right\"\nweight = 1.0\ndescription = \"It is right.\"\n";
    let project =
        Project::new().file("skills/sql/SKILL.md", skill).file("rubrics/sql.toml", rubric);
    let text = format!(
        "{BACKENDS}[[runners]]\nname = \"r\"\nkind = \"effectiveness\"\nbackends = [\"e\"]\njudge = \"f\"\ndataset = \"rubrics\"\nskills = \"skills\"\n"
    );
    let plan = project.read(&text).plan();
    let (kept, backend) = (Kept::default(), &plan.backends[plan.lanes[0].backend]);
    assert_eq!(plan.lanes[0].known_generations(backend, &kept), 0);
    let mut requests = Vec::new();
    plan.lanes[0].requests(|case, request| requests.push((case.clone(), request)));
    for (case, request) in &requests {
        let about = About::new(case.clone().into());
        let ask = Ask { request, repeat: 0, about: Some(&about) };
        kept.put(CacheKind::Generation, backend.cache_key(&ask), "{}");
    }
    // The answers with the skill are there, and those without it are not.
    assert_eq!(plan.lanes[0].known_generations(backend, &kept), 2);
}

#[test]
fn a_lane_that_nobody_can_decide_early_is_not() {
    let decided = |runner: &str, all: &[Value]| {
        let mut plan = Project::new().cases(all).read(&suite(runner)).plan();
        plan.lanes[0].decide_early(Certainty::Exact, 1)
    };
    assert!(decided("gates = { pass_rate = 0.5 }", &cases()));
    assert!(!decided("", &cases()));
    let mut undecided = cases();
    undecided[0].as_object_mut().unwrap().remove("expected_response");
    assert!(!decided("gates = { pass_rate = 0.5 }", &undecided));
}

#[test]
fn a_run_whose_gates_are_decided_ends_early() {
    let all: Vec<Value> = (0..40)
        .map(|at| json!({ "id": format!("c{at}"), "prompt": "p", "expected_response": "q" }))
        .collect();
    let project = Project::new().cases(&all);
    let read =
        project.read(&format!("max_concurrency = 1\n{}", suite("gates = { pass_rate = 0.9 }")));
    let mut plan = read.plan();
    assert!(plan.lanes[0].decide_early(Certainty::Exact, 1));
    let ran = ran(plan, read.rules);
    // With five failures of forty, nine of ten are out of reach.
    assert!((5..10).contains(&ran.records.len()), "{}", ran.records.len());
    assert!(matches!(ran.outcome.lanes[0], LaneStatus::Decided { .. }), "{:?}", ran.outcome);
}

#[test]
fn cases_whose_answers_are_compared_are_asked_again_in_all_lanes() {
    let all = [json!({ "id": "a", "prompt": "p" }), json!({ "id": "b", "prompt": "p" })];
    let runner = "assert = [{ type = \"select-best\", value = \"x\" }]\njudge = \"e\"";
    let text = suite(runner).replace("backends = [\"e\"]", "backends = [\"e\", \"f\"]");
    let project = Project::new().cases(&all);
    let mut plan = project.read(&text).plan();
    let mut compared = Compared::default();
    for at in 0..plan.lanes.len() {
        let mut known = Vec::new();
        let backend = &plan.backends[plan.lanes[at].backend];
        plan.lanes[at].inputs(backend, |case, input| known.push((case.clone(), input)));
        let mut stored = Stored::default();
        for (case, input) in &known {
            let class = Class::Pass;
            let done = DoneCase { input: *input, class, verdict: Verdict::Pass };
            // The second lane has no result of `b`.
            if at == 0 || case.id == "a" {
                stored.add(&case.id, 0, done, true);
            }
            compared.add(&plan.lanes[at], case);
        }
        plan.lanes[at].done = stored.settle();
        for (case, input) in known {
            plan.lanes[at].done.meet(&case.id, 0, input);
        }
    }
    compared.reopen(&mut plan.lanes);
    let done = |lane: usize, id: &str| plan.lanes[lane].done.has(id, 0);
    assert_eq!((done(0, "a"), done(1, "a")), (true, true));
    assert_eq!((done(0, "b"), done(1, "b")), (false, false));
}

#[test]
fn variants_ask_the_same_cases_in_their_own_words() {
    let runner = "[[runners.prompts]]\nname = \"plain\"\ntemplate = \"{{ prompt }}\"\n\
                  [[runners.prompts]]\nname = \"kind\"\ntemplate = \"Please: {{ prompt }} ({{ id }})\"\nsystem = \"be kind\"";
    let project = Project::new().cases(&cases()[..1]);
    let read = project.read(&suite(runner));
    let mut asked = Vec::new();
    read.scanned(&Choice::default())[0].requests(|variant, case, request| {
        let system = request.system().map(ToOwned::to_owned);
        asked.push((
            variant.unwrap().to_owned(),
            case.id.clone(),
            request.prompt().to_owned(),
            system,
        ));
    });
    let expected = |variant: &str, prompt: &str, system: Option<&str>| {
        (variant.to_owned(), "c0".to_owned(), prompt.to_owned(), system.map(ToOwned::to_owned))
    };
    assert_eq!(
        asked,
        [expected("plain", "Say 0", None), expected("kind", "Please: Say 0 (c0)", Some("be kind"))]
    );
    let bytes: Vec<u64> = read.plan().lanes.iter().map(|it| it.prompt_bytes).collect();
    assert_eq!(bytes, [5, "Please: Say 0 (c0)be kind".len() as u64]);
}

#[test]
fn a_template_that_cannot_be_filled_in_is_told_of_once_and_a_case_each_time() {
    let project = Project::new().cases(&cases());
    let problems = project.problems(&suite(
        "[[runners.prompts]]\nname = \"v\"\ntemplate = \"{{ prompt }} {{ nobody }}\"",
    ));
    assert_eq!(errors(&problems).len(), 1, "{problems:#?}");
    let mut own = cases();
    own[0]["prompt"] = json!("{{ nobody }}");
    own[1]["prompt"] = json!("{{ nobody }}");
    let problems = Project::new().cases(&own).problems(&suite(""));
    assert_eq!(errors(&problems).len(), 2, "{problems:#?}");
    let turns = json!({ "id": "t", "turns": ["one", "two"] });
    let problems = Project::new().cases(&[turns]).problems(&suite("prompt = \"{{ prompt }}!\""));
    let message = "the runner has a `prompt`, which a case with `turns` has no place for";
    assert_eq!(errors(&problems), [("bad-case", message)]);
}

#[test]
fn a_dataset_that_changes_under_a_run_breaks_its_lane() {
    let project = Project::new().cases(&cases());
    let read = project.read(&suite(""));
    let plan = read.plan();
    let mut other = cases();
    other[4]["prompt"] = json!("Say 5");
    let project = project.cases(&other);
    let ran = ran(plan, read.rules);
    assert!(matches!(ran.outcome.lanes[0], LaneStatus::Broken { .. }), "{:?}", ran.outcome);
    drop(project);
}

#[test]
fn a_shuffled_run_asks_every_case_once() {
    let project = Project::new().cases(&cases());
    let read = project.read(&suite("repeat = 2\ngates = { pass_rate = 1.0 }"));
    let mut plan = read.plan();
    assert!(plan.lanes[0].decide_early(Certainty::Alpha(1e-12), 3));
    let ran = ran(plan, read.rules);
    let asked: Vec<(&str, u32)> =
        ran.records.iter().map(|(_, it)| (it.case_id.as_str(), it.repeat)).collect();
    let expected: Vec<(String, u32)> =
        (0..5).flat_map(|at| [(format!("c{at}"), 0), (format!("c{at}"), 1)]).collect();
    let expected: Vec<(&str, u32)> = expected.iter().map(|(id, it)| (id.as_str(), *it)).collect();
    assert_eq!(asked, expected);
}

#[test]
fn a_lane_of_an_earlier_run_is_judged_by_the_suite_of_now() {
    let before = Project::new().cases(&cases()).read(&suite("gates = { pass_rate = 0.5 }")).plan();
    let mut other = cases();
    other[0]["expected_response"] = json!("another");
    let now = Project::new().cases(&other).read(&suite("gates = { pass_rate = 0.75 }"));
    let (plan, scanned) = (now.plan(), now.scanned(&Choice::default()).remove(0));
    let earlier = Lane {
        model: Some("m-0".to_owned()),
        dataset: vec!["gone.jsonl".to_owned()],
        ..before.lanes[0].info.clone()
    };
    let again = scanned.again(&earlier, plan.lanes[0].info.judging.clone());
    let expected = Lane { model: Some("m-0".to_owned()), ..plan.lanes[0].info.clone() };
    assert_eq!(again, expected);
    assert_ne!(again.dataset_digest, earlier.dataset_digest);
    assert_ne!(again.judging, earlier.judging);
}

#[test]
fn what_a_backend_lacks_is_told_if_a_case_needs_it() {
    let text = suite("").replace(
        "[backends.f]\nkind = \"echo\"",
        "[backends.f]\nkind = \"command\"\ncommand = [\"cat\", \"{{ model }}\"]",
    );
    let lacking = |all: &[Value]| {
        let read = Project::new().cases(all).read(&text);
        let scanned = read.scanned(&Choice::default()).remove(0);
        (scanned.lacking(&read.backend("f")), scanned.lacking(&read.backend("e")))
    };
    assert_eq!(lacking(&cases()), (None, None));
    let turns = json!({ "id": "t", "turns": ["one", "two"] });
    assert_eq!(lacking(&[turns]), (Some(Need::Conversation), None));
}

#[test]
fn programs_keep_to_their_limit_themselves_unless_they_run_several_times() {
    let limit = |runner: &str| {
        let text = format!(
            "[[runners]]\nname = \"p\"\nkind = \"program\"\ncommand = [\"sh\", \"-c\", \"exec sleep 60\"]\n\
             timeout = \"100ms\"\n{runner}\n"
        );
        let ran = Project::new().run(&text);
        (ran.records.len(), matches!(ran.outcome.lanes[0], LaneStatus::TimedOut { .. }))
    };
    // It says itself what it had done by then; several of them are ended together.
    assert_eq!((limit(""), limit("repeat = 2").1), ((1, true), true));
}
