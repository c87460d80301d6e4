//! Documents with every field that the program's own types have. None of them makes sense.

mod figures;

use std::sync::Arc;

use probity_core::{
    case::{AskSpec, Category, Routing, RubricCriterion, TestCase},
    classification::{Class, Classification, Rule, Verdict},
    conversation::{ConversationSpec, ScriptedResult, SimulatedUser, Turn},
    crew::{Crew, CrewMember},
    criteria::{
        Assertion, AssertionKind, AssertionTest, Criteria, ExpectedFormat, FactCategory, JsonLevel,
        JudgeOptions, Matcher, PromptMessage, RubricPrompt, ScorerErrors,
    },
    derived::Derivation,
    details::{
        Also, CommandDetails, Criterion, Details, Equivalence, Extracted, JsonStep, PolicyHit,
        RefusalSource, Risk, Trouble,
    },
    difference::Difference,
    event::{CaseKey, Event, Stamped},
    evidence::JudgedBy,
    execution::{
        EffectFound, EffectVerdict, ExecutionCriteria, ExitCode, FileMode, Likeness, PathCriteria,
        PathState, TextCriteria, Timeout, Unchanged, WorldRef,
    },
    failure::ErrorKind,
    gate::{Decimal, GateStatus},
    kind::{Evidence, RunnerKind},
    reading::{
        Extract, ExtractAfter, ExtractCodeBlock, ExtractJsonPointer, ExtractName, ExtractRegex,
        ExtractXmlTag, Group as Captured, Reading, Take, Tolerance, Uncounted, Until,
    },
    record::{
        Aborted, Asked, CallError, CaseRecord, FailedAttempt, InputDigest, Judging, Lane,
        LaneStatus, SkillsInfo, Source, Spent, Usage,
    },
    reply::{Logprobs, TokenLogprob},
    request::{
        Image, Message, Part, Request, ResponseFormat, Role, Sampling, Tool, ToolCall, ToolChoice,
        ToolResult,
    },
    score::Score,
    selection::{Candidate, Selection},
};
use serde_json::{Value, json};

pub(super) use figures::{consistency, evaluations, figures};
use figures::{evidence, gates, judged_check};

fn text(text: &str) -> String {
    text.to_owned()
}

fn error() -> CallError {
    CallError {
        status: Some(500),
        exit_code: Some(-1),
        signal: Some(text("SIGSEGV")),
        retry_after: Some(1.5),
        url: Some(text("http://h/v1")),
        ..CallError::new(ErrorKind::Server, "broken")
    }
}

fn attempt() -> FailedAttempt {
    FailedAttempt {
        attempt: 1,
        error: error(),
        latency_ms: 1,
        retry_in_ms: Some(1),
        worker: Some("w".to_owned()),
    }
}

fn usage() -> Usage {
    Usage { input_tokens: Some(1), output_tokens: Some(1), cached_tokens: Some(1), estimated: true }
}

fn used() -> Spent {
    Spent { calls: 1, usage: usage(), cost_usd: 0.1 }
}

fn effect() -> EffectFound {
    EffectFound {
        command: text("c"),
        against: text("a"),
        verdict: EffectVerdict::Different,
        reason: text("r"),
        world: Some(text("w")),
        difference: Some(text("d")),
        caveat: Some(text("c")),
        agreed: vec![text("w")],
        silent: vec![text("w")],
        likeness: Some(Likeness { overall: 0.5, words: 0.5, effects: Some(0.5) }),
    }
}

fn execution() -> ExecutionCriteria {
    let is = |text: &str| Some(TextCriteria::Text(text.to_owned()));
    let path =
        PathCriteria { state: PathState::Created, content: is("x"), mode: Some(FileMode(0o644)) };
    ExecutionCriteria {
        worlds: vec![WorldRef::File { file: text("w.toml"), text: text("name = \"w\"") }],
        files: [(text("f"), text("x"))].into(),
        setup: Some(text("s")),
        file: Some(text("answer")),
        run: Some(text("sh answer")),
        stdin: Some(text("i")),
        timeout: Some(Timeout(1_000)),
        exit_code: Some(ExitCode::One(0)),
        stdout: is("o"),
        stderr: is("e"),
        paths: [(text("p"), path)].into(),
        unchanged: Some(Unchanged::Others(true)),
        left_behind: true,
    }
}

/// Classifications that together have all the evidence that there can be.
pub(super) fn classifications() -> Vec<Classification> {
    let details = |diff: Difference, evidence: Evidence| Details {
        evidence: Some(Box::new(evidence)),
        error_message: Some(text("e")),
        limit_seconds: Some(30.into()),
        policy_name: Some(text("p")),
        error_details: Some(text("d")),
        reason: Some(Trouble::Signal),
        signal: Some(text("11")),
        source: Some(RefusalSource::Reply),
        phrase: Some(text("no")),
        span: Some(0..2),
        hits: vec![PolicyHit {
            policy: text("p"),
            rule: text("r"),
            span: 0..1,
            severity: Some(text("high")),
        }],
        steps: vec![JsonStep::Fence],
        duplicate_keys: vec![text("/a")],
        extracted: vec![Extracted { check: "number".into(), text: text("4") }],
        judged: vec![judged_check()],
        selected: vec![Selection {
            check: "select-best".into(),
            by: text("c"),
            answers: vec![Candidate { lanes: vec![text("l")], score: Some(0.5) }],
            own: 0,
            best: vec![0],
            judge: Some(text("j")),
            reason: Some(text("r")),
        }],
        diff: Some(diff),
        criteria: Some(Criterion::None),
        turn: Some(2),
        matched_index: Some(1),
        command: Some(Box::new(CommandDetails {
            command: Some(text("ls")),
            steps: vec!["prose".into()],
            alternatives: 1,
            parse_error: Some(text("e")),
            equivalence: Some(Equivalence::Equal),
            reason: Some(text("r")),
            matched_index: Some(0),
            canonical: Some([text("a"), text("b")]),
            difference: Some(text("d")),
            executed: true,
            effect: Some(Box::new(effect())),
            risk: Some(Risk::Safe),
            safe: Some(true),
            opaque: true,
            findings: vec![text("f")],
            posix: Some(true),
            violations: vec!["v".into()],
        })),
        transformed: Some(text("x")),
        unexecuted: Some(text("u")),
        partial_reply: true,
        also: vec![Also { rule: Rule::Policy, evidence: text("e") }],
    };
    // `probity-grade` makes these; real runs of `output` and `input` meet most of them.
    let differences = [
        json!({ "type": "incorrect_command" }),
        json!({ "type": "posix_mismatch", "expected": true, "actual": false }),
        json!({ "at": 1, "expected": "a", "actual": "b" }),
        json!({ "expected_any_of": ["a", "b"], "actual": "c" }),
        json!({ "missing": "a" }),
        json!({ "expected_start": "a", "actual": "b" }),
        json!({ "pattern": ["a", "b"] }),
        json!({ "path": "/a", "expected": null, "actual": "1" }),
        json!({ "command": null, "parse_error": "e", "equivalence": "unknown", "reason": "r",
                "difference": "d", "canonical": ["a", "b"] }),
        json!({ "assertion": "equals", "score": 0.5 }),
        json!({ "expected": ["a"], "chosen": ["b", "c"] }),
        json!({ "result": "tie", "more": 3.5, "less": 3.5 }),
        json!({ "exit_code": 1 }),
    ];
    let score = Score {
        name: "m".into(),
        named: true,
        value: Some(0.5),
        said: Some(1.5),
        weight: 2.0,
        span: Some(0..2),
        ..Score::new("not-contains", Some(text("r")))
    };
    let of = |(diff, evidence): (Value, Evidence)| {
        let details = details(serde_json::from_value(diff).unwrap(), evidence);
        Classification { rule: Rule::Mismatch, scores: vec![score.clone()], details }
    };
    differences.into_iter().zip(evidence().into_iter().cycle()).map(of).collect()
}

fn records() -> Vec<CaseRecord> {
    let record = |classification: Classification| CaseRecord {
        case_id: text("a"),
        repeat: 0,
        input: InputDigest::default(),
        case: Arc::default(),
        request: Request::new(Some("s".into()), "p"),
        reply: Some(text("r")),
        error: Some(error()),
        reasoning: Some(text("t")),
        stop_reason: Some(text("stop")),
        model: Some(text("m")),
        source: Source::Cache,
        latency_ms: 1,
        ttft_ms: Some(1),
        tokens_per_second: Some(9.5),
        usage: usage(),
        cost_usd: Some(0.1),
        calls: 2,
        worker: Some(text("w")),
        failures: vec![attempt()],
        started_ms: 1,
        elapsed_ms: 1,
        class: Class::Fail,
        verdict: Verdict::Fail,
        classification,
        asked: vec![asked()],
    };
    let mut all: Vec<CaseRecord> = classifications().into_iter().map(record).collect();
    let mut talk = all[0].clone();
    talk.request = conversation();
    talk.asked[0].request = conversation();
    all.push(talk);
    all
}

/// A conversation of everybody. A new role does not compile here until it is in the list.
fn conversation() -> Request {
    let call = tool_call();
    let said = |role| match role {
        Role::System => Message::text(role, "t"),
        Role::User => Message {
            role,
            content: vec![
                Part::Text("t".into()),
                Part::Image(image()),
                Part::Image(Image::Url("https://h/a.png".into())),
            ],
        },
        Role::Tool => Message {
            role,
            content: vec![Part::ToolResult(ToolResult {
                id: Some(text("c")),
                name: text("f"),
                content: "r".into(),
            })],
        },
        Role::Assistant => Message { role, content: vec![Part::ToolCall(call.clone())] },
    };
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
    Request {
        tools: [tool()].into(),
        tool_choice: Some(ToolChoice::Tool(text("f"))),
        response_format: Some(ResponseFormat::Json),
        sampling: sampling(),
        ..Request::of(roles.map(said).into())
    }
}

fn tool_call() -> ToolCall {
    let opaque = Some(json!("o"));
    ToolCall { id: Some(text("c")), name: text("f"), arguments: json!({ "a": 1 }), opaque }
}

fn image() -> Image {
    Image::from_bytes("a.gif", b"GIF89a.".to_vec()).unwrap()
}

fn tool() -> Tool {
    Tool { name: text("f"), description: Some(text("d")), parameters: json!({}) }
}

fn sampling() -> Sampling {
    Sampling {
        temperature: Some(0.5),
        top_p: Some(0.5),
        max_tokens: Some(1),
        seed: Some(1),
        stop: vec![text("x")],
        logprobs: Some(true),
        presence_penalty: Some(0.5),
        frequency_penalty: Some(0.5),
    }
}

fn judged_by() -> JudgedBy {
    JudgedBy { backend: text("j"), model: Some(text("m")), own_answers: true }
}

fn asked() -> Asked {
    Asked {
        role: text("full"),
        turn: Some(1),
        backend: text("b"),
        request: Request::new(Some("s".into()), "p"),
        reply: Some(text("r")),
        tool_calls: vec![tool_call()],
        reasoning: Some(text("h")),
        stop_reason: Some(text("s")),
        logprobs: Some(Logprobs(vec![TokenLogprob { token: text("r"), logprob: -0.5 }])),
        error: Some(text("e")),
        model: Some(text("m")),
        source: Source::Backend,
        latency_ms: 1,
        usage: usage(),
        cost_usd: Some(0.1),
        calls: 1,
    }
}

fn lane() -> Lane {
    Lane {
        runner: text("r"),
        variant: Some(text("v")),
        kind: RunnerKind::Respond,
        backend: text("b"),
        backend_kind: text("openai"),
        model: Some(text("m")),
        dataset_digest: "0".repeat(64),
        dataset: vec![text("d")],
        planned: 1,
        repeat: 1,
        replayed: true,
        imported: Some("promptfoo".to_owned()),
        judge: Some(judged_by()),
        judges: vec![judged_by(), judged_by()],
        skills: Some(SkillsInfo {
            count: 1,
            index_characters: 2,
            digest: "0".repeat(32),
            digests: [(text("s"), "0".repeat(32))].into(),
        }),
        judging: Judging {
            gates: gates(),
            min_pass: Some(1),
            errors_as_failures: true,
            max_undecided: Decimal::parse("0.5").unwrap(),
            known_failures: [text("a")].into_iter().collect(),
            tool_version: Some(text("1")),
            derived: vec![Derivation {
                name: text("d"),
                expression: "2 * sum.\"a b\" / results".parse().unwrap(),
            }],
        },
    }
}

/// Every way a lane can end. A new one does not compile here until it is in the list.
fn statuses() -> Vec<LaneStatus> {
    let all = vec![
        LaneStatus::Complete,
        LaneStatus::FailFast { reason: text("r"), permanent: true },
        LaneStatus::Skipped { reason: text("r") },
        LaneStatus::Budget { reason: text("r") },
        LaneStatus::Decided { gates: GateStatus::Warn, reason: text("r") },
        LaneStatus::Interrupted,
        LaneStatus::TimedOut { reason: text("r") },
        LaneStatus::GaveUp { reason: text("r") },
        LaneStatus::Broken { reason: text("r") },
    ];
    for status in &all {
        match status {
            LaneStatus::Complete
            | LaneStatus::FailFast { .. }
            | LaneStatus::Skipped { .. }
            | LaneStatus::Budget { .. }
            | LaneStatus::Decided { .. }
            | LaneStatus::Interrupted
            | LaneStatus::TimedOut { .. }
            | LaneStatus::GaveUp { .. }
            | LaneStatus::Broken { .. } => {}
        }
    }
    all
}

/// Every event. A new one does not compile here until it is in the list.
fn events() -> Vec<Event> {
    let case = || CaseKey { lane: 0, case_id: text("a"), repeat: 0 };
    let (backend, reason) = (text("b"), text("r"));
    let mut all = vec![
        Event::RunStarted {
            version: probity_core::event::VERSION,
            run_id: text("20260109-123456-abcdef"),
            resumed: false,
            lanes: vec![lane()],
            done_before: vec![0],
        },
        Event::CaseStarted(case()),
        Event::AttemptFailed { case: case(), attempt: 1, error: error(), retry_in_ms: Some(1) },
        Event::BackendPaused {
            backend: backend.clone(),
            for_ms: 1,
            limit: 1,
            reason: text("wait"),
        },
        Event::WorkersPaused { reason: text("server") },
        Event::WorkersResumed { reason: text("back") },
        Event::WorkersSeen(Crew {
            backlog: 1,
            redelivered: 1,
            workers: vec![CrewMember {
                name: text("w"),
                slots: 4,
                in_flight: 2,
                done: 3,
                rate: 0.5,
            }],
        }),
        Event::BackendTripped {
            lane: 0,
            backend,
            reason: reason.clone(),
            error: text("no"),
            permanent: true,
        },
        Event::CancelStarted { reason },
        Event::RunFinished { complete: true },
    ];
    let record = |record| Event::CaseFinished { lane: 0, record: Box::new(record) };
    all.extend(records().into_iter().map(record));
    for reason in [
        Aborted::FailFast,
        Aborted::Budget,
        Aborted::Interrupted,
        Aborted::TimedOut,
        Aborted::Broken,
    ] {
        all.push(Event::CaseAborted { case: case(), reason, used: used() });
    }
    let ended = |status| Event::LaneFinished { lane: 0, status, calls: 1 };
    all.extend(statuses().into_iter().map(ended));
    for event in &all {
        match event {
            Event::RunStarted { .. }
            | Event::CaseStarted(_)
            | Event::AttemptFailed { .. }
            | Event::BackendPaused { .. }
            | Event::WorkersPaused { .. }
            | Event::WorkersResumed { .. }
            | Event::WorkersSeen(_)
            | Event::BackendTripped { .. }
            | Event::CaseFinished { .. }
            | Event::CaseAborted { .. }
            | Event::LaneFinished { .. }
            | Event::CancelStarted { .. }
            | Event::RunFinished { .. } => {}
        }
    }
    all
}

/// The same as they are written.
pub(super) fn stamped() -> Vec<Value> {
    let stamped = |event| serde_json::to_value(Stamped { at_ms: 1, event }).unwrap();
    events().into_iter().map(stamped).collect()
}

/// Every way to read an answer.
fn reading() -> Reading {
    let take = Some(Take::First);
    Reading {
        extract: vec![
            Extract::Named(ExtractName::Boxed),
            Extract::Regex(ExtractRegex {
                regex: text("a"),
                group: Some(Captured::Number(0)),
                take,
            }),
            Extract::After(ExtractAfter { after: text("a"), take, until: Some(Until::End) }),
            Extract::CodeBlock(ExtractCodeBlock { code_block: text("py"), take }),
            Extract::JsonPointer(ExtractJsonPointer { json_pointer: text("/a") }),
            Extract::XmlTag(ExtractXmlTag { xml_tag: text("a"), take }),
        ],
        normalize: vec![Uncounted::Case],
        ignore: vec![text(",")],
        choices: vec![text("a")],
        tolerance: Some(Tolerance::Percent(1.0)),
    }
}

/// A case with every field.
pub(super) fn case() -> TestCase {
    let assertion = |members| Assertion {
        kind: AssertionKind { negated: true, test: AssertionTest::AssertSet },
        value: Some(json!("v")),
        weight: Some(1.0),
        threshold: Some(0.5),
        metric: Some(text("m")),
        reading: reading(),
        stemmer: Some(true),
        word_order: Some(2),
        config: Some(json!({"a": 1})),
        transform: Some(text("output")),
        judging: JudgeOptions {
            context: Some(json!(["c"])),
            context_transform: Some(text("output")),
            query: Some(text("q")),
            steps: vec![text("s")],
            scores: [(FactCategory::Subset, 0.5)].into(),
            rubric_prompt: Some(RubricPrompt::Messages(vec![PromptMessage {
                role: Role::User,
                content: text("{{ output }}"),
            }])),
        },
        members,
    };
    let criteria = Criteria {
        expected_response: Some(json!("r")),
        matcher: Some(Matcher::Exact),
        reading: reading(),
        expected_format: Some(ExpectedFormat::Text),
        json_level: Some(JsonLevel::Strict),
        schema: Some(json!({})),
        expected_classification: Some(Class::Pass),
        assertions: vec![assertion(vec![assertion(Vec::new())])],
        threshold: Some(0.5),
        transform: Some(text("output")),
        scorer_errors: Some(ScorerErrors::Fail),
    };
    TestCase {
        license: Some(text("MIT")),
        id: text("a"),
        prompt: "p".into(),
        expected_command: Some(text("ls")),
        expected_commands: vec![text("ls -l")],
        category: Some(Category::CORRECTNESS),
        safe: Some(true),
        posix_compliant: Some(true),
        notes: Some(text("n")),
        system: Some(text("s")),
        ask: AskSpec {
            messages: conversation().messages,
            tools: Some([tool()].into()),
            tool_choice: Some(ToolChoice::Auto),
            response_format: Some(ResponseFormat::Json),
            sampling: sampling(),
        },
        prompt_vars: [(text("v"), json!(1))].into_iter().collect(),
        conversation: ConversationSpec {
            turns: vec![Turn { user: vec![Part::Text("u".into())], criteria: criteria.clone() }],
            tool_results: Some(vec![ScriptedResult {
                name: text("f"),
                arguments: Some(json!({ "a": 1 })),
                content: json!("c"),
            }]),
            max_steps: Some(2),
            user: Some(SimulatedUser {
                backend: Some(text("b")),
                instructions: text("i"),
                stop: Some(text("s")),
                max_turns: Some(1),
            }),
        },
        criteria,
        tags: vec![text("t")],
        difficulty: Some(text("easy")),
        platform: vec![text("linux")],
        execution: Some(Box::new(execution())),
        routing: Routing {
            skill: Some(text("s")),
            expected_skills: vec![text("s")],
            acceptable_skills: vec![text("s")],
            should_activate: Some(true),
            group: Some(text("g")),
        },
        rubric: vec![RubricCriterion { name: text("n"), weight: 1.0, description: text("d") }],
    }
}

/// Results that together have every field.
pub(super) fn results() -> Vec<Value> {
    let result = |classification: Classification| {
        json!({
            "runner": "r", "variant": "v", "backend": "b", "replayed": false, "imported": "promptfoo", "case_id": "a", "repeat": 0,
            "kind": "respond", "case": case(), "system": null, "prompt": "p",
            "messages": conversation().messages,
            "raw_response": "x", "reasoning": null, "reason": "r", "error": error(), "stop_reason": null, "model": null, "source": "backend",
            "started": "2026-01-09T12:34:56Z", "latency_ms": 1, "elapsed_ms": 1,
            "ttft_ms": 1, "tokens_per_second": 9.5,
            "usage": usage(), "cost_usd": null, "calls": 1, "worker": "w",
            "failures": [attempt()],
            "verdict": "fail", "classification": classification,
            "asked": [asked(), Asked { request: conversation(), ..asked() }],
        })
    };
    classifications().into_iter().map(result).collect()
}
