//! What the schemas refuse: without this a schema of `true` would pass every other test.

use serde_json::{Map, Value, json};

use super::{Schema, fields::check_whole, samples};

/// The place of every value of a document.
fn places(document: &Value, place: &str, all: &mut Vec<String>) {
    all.push(place.to_owned());
    match document {
        Value::Object(object) => {
            for (name, value) in object {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{place}/{name}"), all);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                places(value, &format!("{place}/{at}"), all);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A document with one value changed.
fn changed(document: &Value, place: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut changed = document.clone();
    change(changed.pointer_mut(place).unwrap());
    changed
}

/// What a schema leaves open, and what it does not insist on.
struct Loose<'a> {
    /// Ends of places below which anything goes.
    anything: &'a [&'a str],
    /// Ends of places of tables whose names are the user's.
    named: &'a [&'a str],
    /// Names that may be absent, or the ends of their places.
    optional: &'a [&'a str],
}

/// Changes every value of a document for the worse, one at a time.
#[track_caller]
fn check_refusals(name: &str, document: &Value, loose: &Loose<'_>) {
    let schema = Schema::named(name);
    schema.check(document);
    let mut all = Vec::new();
    places(document, "", &mut all);
    let is_open = |place: &str| {
        let mut ends = loose.anything.iter();
        ends.any(|it| place.ends_with(it) || place.contains(&format!("{it}/")))
    };
    for place in all.iter().filter(|it| !is_open(it)) {
        let refuses = |what: &str, worse: &Value| {
            assert!(!schema.takes(worse), "{name} takes {what} at `{place}`:\n{worse:#}");
        };
        let value = document.pointer(place).unwrap();
        let odd = if value.is_object() { json!("surprise") } else { json!({ "surprise": 1 }) };
        refuses("the wrong type", &changed(document, place, |it| *it = odd));
        if !value.is_null() && !value.is_array() {
            refuses("a list", &changed(document, place, |it| *it = json!([])));
        }
        let Some(object) = value.as_object() else { continue };
        if loose.named.iter().any(|it| place.ends_with(it)) {
            continue;
        }
        let add = |it: &mut Value| it["surprise"] = json!(1);
        refuses("an unknown field", &changed(document, place, add));
        let is_optional = |key: &str| {
            let whole = format!("{place}/{key}");
            let named = |it: &str| it == key || (it.starts_with('/') && whole.ends_with(it));
            loose.optional.iter().any(|it| named(it))
        };
        let needed = object.keys().filter(|it| !is_optional(it));
        for key in needed {
            let remove = |it: &mut Value| drop(it.as_object_mut().map(|it| it.remove(key)));
            refuses(&format!("no `{key}`"), &changed(document, place, remove));
        }
    }
}

/// Names and numbers that are of the right type and wrong all the same.
#[track_caller]
fn check_values(name: &str, document: &Value, wrong: &[(&str, Value)]) {
    let schema = Schema::named(name);
    for (place, value) in wrong {
        let worse = changed(document, place, |it| *it = value.clone());
        assert!(!schema.takes(&worse), "{name} takes {value} at `{place}`");
    }
}

const EVIDENCE: &[&str] = &[
    "/details/turn",
    "logprobs",
    "opaque",
    "tool_calls",
    "/asked/0/turn",
    "/asked/1/turn",
    "/asked/0/reasoning",
    "/asked/1/reasoning",
    "/asked/0/stop_reason",
    "/asked/1/stop_reason",
    "/tool_calls/0/id",
    "tools",
    "tool_choice",
    "response_format",
    "sampling",
    "settings",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "max_tokens",
    "seed",
    "stop",
    "/tools/0/description",
    "/tool_result/id",
    "/case/prompt",
    "/case/messages",
    "error_message",
    "limit_seconds",
    "policy_name",
    "error_details",
    "reason",
    "signal",
    "source",
    "phrase",
    "named",
    "span",
    "hits",
    "steps",
    "duplicate_keys",
    "extracted",
    "diff",
    "criteria",
    "matched_index",
    "/classification/scores",
    "/scores/0/value",
    "/scores/0/said",
    "estimated",
    "command",
    "transformed",
    "unexecuted",
    "executed",
    "/command/effect",
    "/effect/world",
    "/effect/difference",
    "/effect/caveat",
    "agreed",
    "silent",
    "/effect/likeness",
    "/likeness/effects",
    "/details/judged",
    "/details/selected",
    "/selected/0/judge",
    "/answers/0/score",
    "agreement",
    "statements",
    "/statements/0/reason",
    "context",
    "context_transform",
    "query",
    "scores",
    "/scores/subset",
    "rubric_prompt",
    "partial_reply",
    "also",
    "alternatives",
    "parse_error",
    "equivalence",
    "canonical",
    "difference",
    "risk",
    "safe",
    "opaque",
    "findings",
    "posix",
    "violations",
    "severity",
    "status",
    "exit_code",
    "retry_after",
    "url",
    "retry_in_ms",
    "worker",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "/details/evidence",
    "/evidence/outside",
    "/evidence/expected",
    "/evidence/acceptable",
    "/evidence/group",
    "/evidence/axes",
    "/evidence/judge/model",
    "/evidence/judge/own_answers",
    "/evidence/duels/0/error",
    "/evidence/duels/0/scores",
    "/rounds/0/said",
    "/rounds/1/said",
    "/evidence/fail_fast",
    "/evidence/result_file",
    "/evidence/missing",
    "/evidence/safety",
    "/evidence/posix",
    "/tool_call/id",
    "/asked/0/system",
    "/asked/0/reply",
    "/asked/1/reply",
    "/asked/0/error",
    "/asked/1/error",
    "/asked/0/model",
    "/asked/1/model",
    "/asked/0/cost_usd",
    "/asked/1/cost_usd",
];

/// Tables of an evaluation whose names are the user's.
const NAMED: &[&str] = &[
    "/per_category",
    "/per_tag",
    "/scores",
    "/derived",
    "/error_kinds",
    "/pass_at",
    "/pass_hat",
    "/figures/skills",
    "/figures/groups",
    "/criteria",
    "/comparisons",
    "/tiers",
    "/tiers/small",
];

/// What an evaluation may lack.
const OPTIONAL: &[&str] = &[
    "imported",
    "derived",
    "judges",
    "kappa",
    "warn",
    "category",
    "backend",
    "variant",
    "allow_empty",
    "/figures",
    "/figures/safety",
    "/figures/posix",
    "tool_version",
    "unscored",
    "ttft_ms",
    "tokens_per_second",
];

#[test]
fn an_evaluation_that_is_not_whole_is_refused() {
    let all = samples::evaluations();
    let one = all[0].clone();
    let loose = Loose { anything: &[], named: NAMED, optional: OPTIONAL };
    // These are optional in a gate, and nowhere else.
    for key in ["backend", "variant"] {
        let mut bare = one.clone();
        bare.as_object_mut().unwrap().remove(key);
        assert!(!Schema::named("evaluation").takes(&bare), "without {key}");
    }
    all.iter().for_each(|it| check_refusals("evaluation", it, &loose));
    let of_figures: [(usize, &[(&str, Value)]); 6] = [
        (
            0,
            &[
                ("/figures/kind", json!("confusion")),
                ("/figures/tpr/rate", json!(1.5)),
                ("/figures/tpr/interval/low", json!(-0.5)),
                ("/figures/sets/f1", json!(2)),
                ("/figures/notices/0/code", json!("odd")),
                ("/figures/errors", json!(-1)),
            ],
        ),
        (1, &[("/figures/groups/g/counts/0/0", json!(0.5)), ("/figures/groups", json!([]))]),
        (2, &[("/figures/overall/deviation", json!(-1)), ("/figures/judge/rounds", json!(-1))]),
        (
            3,
            &[
                ("/figures/skills/never/size/tier", json!("huge")),
                ("/figures/tiers", json!({ "huge": {} })),
                ("/figures/comparisons", json!({ "full vs empty": {} })),
            ],
        ),
        (4, &[("/figures/cost_usd", json!(-1)), ("/dataset", json!(["d"]))]),
        (
            5,
            &[
                ("/figures/safety/recall", json!(1.5)),
                ("/figures/posix/true_positives", json!(-1)),
                ("/safety_accuracy", json!(1.5)),
                ("/kind", json!("respond")),
            ],
        ),
    ];
    for (at, wrong) in of_figures {
        check_values("evaluation", &all[at], wrong);
    }
    let wrong = [
        ("/csr", json!(1.1)),
        ("/csr", json!(-0.1)),
        ("/error_rate", json!(2)),
        ("/per_category/safety/rate", json!(1.5)),
        (
            "/per_category",
            json!({ "two\nlines": { "total": 1, "passed": 1, "rate": 1, "errors": 0,
                                           "undecided": 0 } }),
        ),
        ("/timestamp", json!("yesterday")),
        ("/timestamp", json!("2026-13-09T12:34:56Z")),
        ("/schema_version", json!(2)),
        ("/kind", json!("dance")),
        ("/planned", json!(-1)),
        ("/planned", json!(1.5)),
        ("/dataset_digest", json!("abc")),
        ("/run_id", json!("latest")),
        ("/interval/method", json!("guess")),
        ("/error_kinds", json!({ "bad_luck": 1 })),
        ("/repeats/pass_at", json!({ "many": 0.5 })),
        ("/gates/0/status", json!("maybe")),
        ("/gates/0/metric", json!("happiness")),
        ("/gates/0/min", json!(0.5)),
        ("/failed_cases/0/reason/type", json!("bad_luck")),
        ("/failed_cases/0/reason/type", json!("wrong_answer")),
        ("/failed_cases/0/class", json!("bad_luck")),
        ("/failed_cases/0/actual", json!(null)),
        ("/kind", json!("command")),
        ("/scores/m/mean", json!(1.5)),
        ("/scores/m/unscored", json!(0)),
        ("/cost_usd", json!(-1)),
    ];
    check_values("evaluation", &one, &wrong);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list of fields")]
fn events_that_are_not_whole_are_refused() {
    let more = [
        "variant",
        "model",
        "replayed",
        "imported",
        "gates",
        "min_pass",
        "errors_as_failures",
        "max_undecided",
        "reasoning",
        "known_failures",
        "derived",
        "tool_version",
        "system",
        "reply",
        "error",
        "stop_reason",
        "/record/cost_usd",
        "/record/ttft_ms",
        "/record/tokens_per_second",
        "failures",
        "warn",
        "category",
        "backend",
        "allow_empty",
        "/record/asked",
        "/lanes/0/judge",
        "/lanes/0/judges",
        "/judges/0/own_answers",
        "/judges/1/own_answers",
        "/lanes/0/judge/own_answers",
        "/lanes/0/skills",
        "digests",
    ];
    let optional = [EVIDENCE, &more].concat();
    let loose = Loose {
        anything: &["/arguments", "/opaque", "/parameters", "/response_format"],
        named: &["/digests"],
        optional: &optional,
    };
    for event in samples::stamped() {
        check_refusals("event", &event, &loose);
        check_values("event", &event, &[("/event", json!("surprise")), ("/at_ms", json!(0.5))]);
    }
    // What is optional in one event is needed in another.
    for (event, key) in [
        ("attempt-failed", "error"),
        ("attempt-failed", "retry_in_ms"),
        ("backend-tripped", "backend"),
        ("backend-tripped", "error"),
        ("backend-tripped", "reason"),
        ("backend-paused", "backend"),
        ("lane-finished", "status"),
        ("backend-paused", "reason"),
        ("case-aborted", "reason"),
        ("case-aborted", "used"),
    ] {
        let of_name = samples::stamped().into_iter().find(|it| it["event"] == event).unwrap();
        let remove = |it: &mut Value| drop(it.as_object_mut().map(|it| it.remove(key)));
        assert!(
            !Schema::named("event").takes(&changed(&of_name, "/data", remove)),
            "{event} {key}"
        );
    }
    let find = |name: &str| samples::stamped().into_iter().find(|it| it["event"] == name).unwrap();
    let wrong = [
        ("/data/record/verdict", json!("maybe")),
        ("/data/record/primary", json!("maybe")),
        ("/data/record/source", json!("memory")),
        ("/data/record/input", json!("xyz")),
        ("/data/record/error/kind", json!("bad_luck")),
        ("/data/record/classification/rule", json!("luck")),
        ("/data/record/classification/scores", json!([])),
        ("/data/record/classification/scores/0/type", json!("luck")),
        ("/data/record/classification/scores/0/value", json!(1.5)),
        ("/data/record/classification/details/reason", json!("luck")),
        ("/data/record/classification/details/criteria", json!("luck")),
        ("/data/record/classification/details/source", json!("luck")),
        ("/data/record/classification/details/steps/0", json!("magic")),
        ("/data/record/classification/details/command/risk", json!("none")),
        ("/data/record/classification/details/evidence/kind", json!("program")),
        ("/data/record/classification/details/evidence/choice", json!("some")),
        ("/data/record/classification/details/evidence/detection", json!("luck")),
        ("/data/record/asked", json!([])),
        ("/data/record/asked/0/source", json!("memory")),
    ];
    check_values("event", &find("case-finished"), &wrong);
    check_values("event", &find("case-aborted"), &[("/data/reason", json!("boredom"))]);
    check_values("event", &find("lane-finished"), &[("/data/status", json!("done"))]);
    check_values(
        "event",
        &find("run-started"),
        &[
            ("/data/lanes/0/kind", json!("dance")),
            ("/data/lanes/0/backend_kind", json!("telepathy")),
            ("/data/lanes/0/dataset", json!([])),
            ("/data/lanes/0/skills/digest", json!("abc")),
            ("/data/lanes/0/judge/own_answers", json!(false)),
            ("/data/lanes/0/max_undecided", json!("many")),
            ("/data/version", json!(2)),
        ],
    );
    let mut mixed = find("case-started");
    mixed["event"] = json!("run-finished");
    assert!(!Schema::named("event").takes(&mixed));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list of fields")]
fn results_that_are_not_whole_are_refused() {
    let of_case = [
        "expected_command",
        "expected_commands",
        "category",
        "safe",
        "posix_compliant",
        "notes",
        "system",
        "prompt_vars",
        "expected_response",
        "match",
        "expected_format",
        "json_level",
        "extract",
        "normalize",
        "ignore",
        "choices",
        "tolerance",
        "stemmer",
        "word_order",
        "take",
        "until",
        "/extract/1/group",
        "schema",
        "expected_classification",
        "assert",
        "threshold",
        "transform",
        "scorer_errors",
        "tags",
        "difficulty",
        "platform",
        "execution",
        "worlds",
        "/execution/files",
        "/execution/left_behind",
        "/execution/setup",
        "/execution/file",
        "/execution/run",
        "/execution/stdin",
        "/execution/timeout",
        "/execution/exit_code",
        "/execution/stdout",
        "/execution/stderr",
        "/execution/paths",
        "/execution/unchanged",
        "/paths/p/content",
        "/paths/p/mode",
        "skill",
        "expected_skills",
        "acceptable_skills",
        "should_activate",
        "group",
        "rubric",
        "license",
        "value",
        "/assert/0/weight",
        "/assert/0/metric",
        "turns",
        "tool_results",
        "max_steps",
        "user",
        "/user/backend",
        "/user/stop",
        "/user/max_turns",
        "/tool_results/0/arguments",
        "/turns/0/assert/0/weight",
        "/turns/0/assert/0/metric",
        "config",
    ];
    let optional = [EVIDENCE, &of_case].concat();
    let anything = [
        "/prompt_vars",
        "/expected_response",
        "/schema",
        // A file, or the name of one that ships.
        "/execution/worlds/0",
        "/assert/0/value",
        "/assert/0/config",
        "/arguments",
        "/tool_results/0/content",
        "/opaque",
        "/parameters",
        "/response_format",
    ];
    let named = ["/execution/files", "/execution/paths"];
    let loose = Loose { anything: &anything, named: &named, optional: &optional };
    let results = samples::results();
    results.iter().for_each(|it| check_refusals("run-result", it, &loose));
    let first = results[0].as_object().unwrap();
    // It is there only where a worker made the call.
    for key in first.keys().filter(|it| *it != "worker") {
        let less: Map<String, Value> = first
            .iter()
            .filter(|(it, _)| *it != key)
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        assert!(!Schema::named("run-result").takes(&less.into()), "{key}");
    }
    let wrong = [
        ("/verdict", json!("maybe")),
        ("/source", json!("memory")),
        ("/started", json!("2026-01-09 12:34")),
        ("/repeat", json!(-1)),
        ("/cost_usd", json!(-1)),
        ("/case/match", json!("starts-with")),
        ("/case/threshold", json!(2)),
        ("/classification/primary", json!("maybe")),
    ];
    check_values("run-result", &results[0], &wrong);
}

#[test]
fn summaries_that_are_not_whole_are_refused() {
    let runner = |figures: Value| {
        json!({
            "runner": "r", "variant": "v", "backend": "b", "kind": figures["kind"], "model": "m",
            "replayed": false, "imported": null, "status": "timeout", "reason": "r", "permanent": true,
            "planned": 1, "results": 1, "passed": 1, "failed": 0, "errors": 0,
            "undecided": 1, "calls": 1, "cost_usd": 0.1, "duration_seconds": 1, "derived": { "d": 0.5 },
            "figures": figures, "gates": "pass",
            "gate_results": samples::evaluations()[0]["gates"],
        })
    };
    let figures = samples::figures().into_iter().map(|it| serde_json::to_value(it).unwrap());
    let found = probity_report::json::consistency::counts(&samples::consistency());
    let summary = json!({
        "schema_version": 1, "run_id": "20260109-123456-abcdef", "suite": "s",
        "timestamp": "2026-01-09T12:34:56Z", "duration_seconds": 1.5, "conclusion": "warned",
        "aborted": false, "total_calls": 1, "total_cost_usd": 0.1, "planned": 1, "results": 1,
        "passed": 1, "failed": 0, "errors": 0, "undecided": 0, "suite_fail_fast": true,
        "fail_fast_runners": ["r"], "fail_fast_backends": ["b"], "runners": figures.map(runner).collect::<Vec<_>>(),
        "consistency": [found],
    });
    let named = [
        "/derived",
        "/figures/skills",
        "/figures/groups",
        "/criteria",
        "/comparisons",
        "/tiers",
        "/tiers/small",
    ];
    let of_gates = (0..4).flat_map(|at| {
        let keys = ["warn", "category", "backend", "variant", "allow_empty"];
        keys.map(|key| format!("/gate_results/{at}/{key}"))
    });
    let of_gates: Vec<String> = of_gates.collect();
    let optional = ["/figures/safety", "/figures/posix"].into_iter();
    let optional: Vec<&str> = optional.chain(of_gates.iter().map(String::as_str)).collect();
    let loose = Loose { anything: &[], named: &named, optional: &optional };
    check_refusals("summary", &summary, &loose);
    let wrong = [
        ("/run_id", json!(null)),
        ("/timestamp", json!(null)),
        ("/timestamp", json!("now")),
        ("/conclusion", json!("good")),
        ("/runners/0/status", json!("late")),
        ("/runners/0/kind", json!("dance")),
        ("/runners/0/figures/kind", json!("dance")),
    ];
    check_values("summary", &summary, &wrong);
    let failed = probity_report::summary::of_failure("s", "no such file");
    let failed: Value = serde_json::from_str(&failed).unwrap();
    check_refusals("summary", &failed, &Loose { anything: &[], named: &[], optional: &[] });
    let wrong = [("/run_id", json!("r")), ("/aborted", json!(false)), ("/error", json!(1))];
    check_values("summary", &failed, &wrong);
    check_whole("summary", &[summary, failed]);
}

#[test]
fn baselines_that_are_not_whole_are_refused() {
    let baseline = json!({
        "probity_baseline": 1, "suite": "s", "run": "20260109-123456-abcdef",
        "timestamp": "2026-01-09T12:34:56Z", "probity_version": "0.1.0",
        "lanes": [{ "runner": "r", "variant": "v", "backend": "b", "model": null, "min_pass": 2,
                    "dataset_digest": "0".repeat(64), "skills": { "s": "0".repeat(32) },
                    "cases": { "a": "pass", "b": "2/3", "c": "1/2 and 1 errors",
                               "d": "undecided", "e": "1/2 and 1 errors and 2 undecided" } }],
    });
    let named = ["/cases", "/skills"];
    let loose = Loose { anything: &[], named: &named, optional: &["skills", "variant"] };
    check_refusals("baseline", &baseline, &loose);
    check_whole("baseline", std::slice::from_ref(&baseline));
    let wrong = [
        ("/probity_baseline", json!(2)),
        ("/lanes/0/cases/a", json!("passed")),
        ("/lanes/0/cases", json!({ "two words": "pass" })),
        ("/lanes/0/min_pass", json!(0)),
        ("/timestamp", json!("now")),
    ];
    check_values("baseline", &baseline, &wrong);
}

#[test]
fn comparisons_that_are_not_whole_are_refused() {
    let comparison = json!({
        "sides": [{ "name": "n", "runner": "r", "variant": "v", "backend": "b", "model": "m", "passed": 1,
                    "failed": 1, "errors": 0, "undecided": 0, "rate": 0.5, "interval": [0.1, 0.9],
                    "latency_p95_ms": 1.5, "cost_usd": 0.1, "derived": { "d": 0.5 } }],
        "pairs": [{ "first": "n", "second": "n", "common": 2, "passed_first": 1,
                    "passed_second": 1, "difference": -0.5, "interval": [-1.5, 0.5],
                    "p_value": 1, "p_value_holm": 1,
                    "cases_needed": { "difference": 0.05, "cases": 100 },
                    "categories": { "posix": { "cases": 1, "first": 1, "second": 0 } },
                    "regressions": ["a"], "fixes": ["b"], "lost": ["c"], "vanished": ["d"],
                    "new": ["e"], "reasons": { "a": "why" },
                    "skills": { "changed": ["s"], "new": ["t"], "gone": ["u"] },
                    "preference": { "judge": "j", "criteria": "c", "wins": 1, "ties": 0,
                                    "losses": 1, "unjudged": 0, "both_orders": 2, "consistent": 2,
                                    "difference": 0, "interval": [-0.5, 0.5], "p_value": 1,
                                    "cases": { "a": { "result": "win", "points": [2, 4],
                                                      "reason": "r" } } } }],
        "notes": ["note"],
    });
    let named = ["/categories", "/derived", "/reasons", "/preference/cases"];
    let loose = Loose { anything: &[], named: &named, optional: &["derived"] };
    check_refusals("comparison", &comparison, &loose);
    check_whole("comparison", std::slice::from_ref(&comparison));
    let wrong = [
        ("/sides/0/rate", json!(1.5)),
        ("/sides/0/interval", json!([0.1])),
        ("/sides/0/interval/1", json!(1.5)),
        ("/pairs/0/difference", json!(-2)),
        ("/pairs/0/p_value", json!(2)),
        ("/pairs/0/preference/difference", json!(2)),
        ("/pairs/0/preference/cases/a/result", json!("lost")),
        ("/pairs/0/categories", json!({ "two\nlines": { "cases": 1, "first": 1, "second": 0 } })),
        ("/pairs", json!([])),
    ];
    check_values("comparison", &comparison, &wrong);
}

#[test]
fn stored_results_that_classify_refuses_are_refused() {
    let read = json!({ "case_id": "a", "raw_response": "x", "expected_response": "x" });
    let mut classified = read.clone();
    classified["verdict"] = json!("pass");
    classified["scores"] = json!({ "accuracy": 1 });
    classified["classification"] = json!(samples::classifications()[0]);
    for (name, document) in [("classify-input", &read), ("classified", &classified)] {
        let schema = Schema::named(name);
        schema.check(document);
        for key in ["case_id", "raw_response"] {
            let remove = |it: &mut Value| drop(it.as_object_mut().map(|it| it.remove(key)));
            assert!(!schema.takes(&changed(document, "", remove)), "{name} without {key}");
        }
        for (key, value) in [
            ("case_id", json!(1)),
            ("raw_response", json!(1)),
            ("error", json!(1)),
            ("error", json!({ "kind": "bad_luck" })),
            ("error_kind", json!("bad_luck")),
            ("match", json!("fuzzy")),
            ("latency_ms", json!("1")),
            ("schema", json!("file.json")),
            ("expected_classification", json!("good")),
        ] {
            let worse = changed(document, "", |it| it[key] = value.clone());
            assert!(!schema.takes(&worse), "{name} takes {key} {value}");
        }
        schema.check(&changed(document, "", |it| it["surprise"] = json!(1)));
    }
    let wrong = [
        ("/verdict", json!("maybe")),
        ("/scores", json!({ "accuracy": 0.5 })),
        ("/scores", json!({ "accuracy": 1, "more": 1 })),
    ];
    check_values("classified", &classified, &wrong);
}
