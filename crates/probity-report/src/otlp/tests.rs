use std::collections::{BTreeMap, BTreeSet};

use probity_core::{
    failure::ErrorKind,
    record::{Asked, CallError, CaseRecord, Source as From, Usage},
    request::{Message, Part, Request, Role, Sampling, Tool, ToolCall, ToolResult},
};
use serde_json::{Value, json};

use super::*;
use crate::sample::{self, Sample};

const TOLD: Options = Options { texts: Texts::Told, traces: Traces::Run, encoding: Encoding::Json };

fn batches(sample: &Sample, options: Options) -> Vec<Batch> {
    let mut all = Vec::new();
    let taken = write(&sample.view, sample, options, &mut |batch| {
        all.push(batch);
        Ok(())
    });
    taken.unwrap();
    all
}

fn spans(sample: &Sample, options: Options) -> Vec<Value> {
    let of_batch = |batch: &Batch| {
        let body: Value = serde_json::from_slice(&batch.body).unwrap();
        let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
        assert_eq!(spans.len(), batch.spans);
        spans
    };
    batches(sample, options).iter().flat_map(of_batch).collect()
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let attributes = span["attributes"].as_array().unwrap();
    attributes.iter().find(|it| it["key"] == key).map_or(&Value::Null, |it| &it["value"])
}

#[test]
fn a_run_is_a_trace_of_results_and_questions() {
    let sample = Sample::usual();
    let spans = spans(&sample, TOLD);
    let names: BTreeMap<&str, &str> = spans
        .iter()
        .map(|it| {
            (
                it["spanId"].as_str().unwrap(),
                it["name"].as_str().unwrap().split(' ').next().unwrap(),
            )
        })
        .collect();
    assert_eq!(names.len(), spans.len(), "two spans have the same id");
    let traces: BTreeSet<&str> = spans.iter().map(|it| it["traceId"].as_str().unwrap()).collect();
    assert_eq!(traces.len(), 1);
    for span in &spans {
        let parent = span["parentSpanId"].as_str().map(|it| names[it]);
        let wanted = match names[span["spanId"].as_str().unwrap()] {
            "run" => None,
            "case" => Some("run"),
            _ => Some("case"),
        };
        assert_eq!(parent, wanted, "{span}");
        assert_eq!(span["traceId"].as_str().unwrap().len(), 32);
        let time = |key: &str| span[key].as_str().unwrap().parse::<u128>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
    let of = |kind: &str| names.values().filter(|it| **it == kind).count();
    assert_eq!(of("run"), 1);
    assert!(of("case") > 1 && of("chat") >= of("case"));
}

#[test]
fn checks_are_evaluation_results() {
    let sample = Sample::usual();
    let spans = spans(&sample, TOLD);
    let cases = spans.iter().filter(|it| it["name"].as_str().unwrap().starts_with("case "));
    for case in cases {
        let events = case["events"].as_array().unwrap();
        let verdict = events.iter().find(|it| {
            it["name"] == "gen_ai.evaluation.result"
                && attribute(it, "gen_ai.evaluation.name")["stringValue"] == "verdict"
        });
        let label = &attribute(verdict.unwrap(), "gen_ai.evaluation.score.label")["stringValue"];
        assert_eq!(*label, attribute(case, "probity.verdict")["stringValue"]);
    }
}

#[test]
fn each_result_can_be_a_trace_with_a_link() {
    let sample = Sample::usual();
    let spans = spans(&sample, Options { traces: Traces::Case, ..TOLD });
    let traces: BTreeSet<&str> = spans.iter().map(|it| it["traceId"].as_str().unwrap()).collect();
    let cases: Vec<&Value> = spans.iter().filter(|it| it.get("links").is_some()).collect();
    assert_eq!(traces.len(), cases.len() + 1);
    let run = spans.iter().find(|it| it["name"].as_str().unwrap().starts_with("run ")).unwrap();
    assert!(cases.iter().all(|it| it["links"][0]["spanId"] == run["spanId"]));
    assert!(cases.iter().all(|it| it.get("parentSpanId").is_none()));
}

/// The whole of a run as text.
fn written(sample: &Sample, options: Options) -> String {
    let bodies = batches(sample, options).into_iter().map(|it| it.body);
    bodies.map(|it| String::from_utf8(it).unwrap()).collect()
}

/// A question of a scorer, a judge or a turn, with this text wherever there can be one.
fn asked(role: &str, text: &str) -> Asked {
    let call = ToolCall::new(Some("call-1".to_owned()), "look".to_owned(), json!({ "at": text }));
    let result =
        ToolResult { id: Some("call-1".to_owned()), name: "look".to_owned(), content: text.into() };
    let messages = vec![
        Message::text(Role::System, text),
        Message::text(Role::User, text),
        Message { role: Role::Assistant, content: vec![Part::ToolCall(call.clone())] },
        Message { role: Role::Tool, content: vec![Part::ToolResult(result)] },
    ];
    let tool = Tool {
        name: "look".to_owned(),
        description: Some(text.to_owned()),
        parameters: json!({ "title": text }),
    };
    let sampling = Sampling {
        temperature: Some(0.5),
        max_tokens: Some(9),
        stop: vec![text.to_owned()],
        ..Sampling::default()
    };
    let request = Request { tools: [tool].into(), sampling, ..Request::of(messages) };
    Asked {
        role: role.to_owned(),
        turn: None,
        backend: "small".to_owned(),
        request,
        reply: Some(text.to_owned()),
        tool_calls: vec![call],
        reasoning: Some(text.to_owned()),
        stop_reason: Some("tool_use".to_owned()),
        logprobs: None,
        error: None,
        model: Some("model-as-answered".to_owned()),
        source: From::Backend,
        latency_ms: 10,
        usage: Usage { input_tokens: Some(7), cached_tokens: Some(4), ..Usage::default() },
        cost_usd: None,
        calls: 1,
    }
}

fn of_questions(asked: Vec<Asked>) -> Vec<Value> {
    let case = CaseRecord { asked, ..sample::passed("copy") };
    let mut spans = spans(&Sample::of(vec![case]), TOLD);
    spans.truncate(spans.len() - 2);
    spans
}

#[test]
fn nothing_that_was_said_is_told_where_texts_are_left_out() {
    const SAID: &str = "what-nobody-may-read";
    let failed = CaseRecord {
        error: Some(CallError::new(ErrorKind::BadRequest, SAID)),
        asked: Vec::new(),
        ..sample::saying(SAID)
    };
    let talked = CaseRecord {
        asked: vec![
            asked("turn 1", SAID),
            Asked { error: Some(format!("bad_request: {SAID}")), ..asked("judge", SAID) },
            Asked { model: None, calls: 0, ..asked("scorer 1", SAID) },
            Asked { backend: "sandbox".to_owned(), calls: 0, ..asked("execution", SAID) },
        ],
        ..sample::saying(SAID)
    };
    // What the dataset and the vendor call things is told.
    let named = |mut case: CaseRecord| {
        case.case_id = "one".to_owned();
        (case.model, case.stop_reason) = (None, None);
        let plain = probity_core::case::TestCase::default();
        case.case = std::sync::Arc::new(plain);
        case.classification.scores.iter_mut().for_each(|it| it.name = "contains".into());
        case
    };
    let sample = Sample::of(vec![named(failed), named(talked)]);
    let quiet = written(&sample, Options { texts: Texts::LeftOut, ..TOLD });
    assert!(!quiet.contains(SAID), "{quiet}");
    assert!(quiet.contains("gen_ai.usage.input_tokens"));
    assert!(written(&sample, TOLD).contains(SAID));
}

#[test]
fn each_kind_of_question_has_its_own_name() {
    let similar = json!({ "metric": "cosine", "texts": ["a"] }).to_string();
    let of = |role: &str, backend: &str, question: &str, calls: u32| Asked {
        backend: backend.to_owned(),
        model: (calls > 0).then(|| "m".to_owned()),
        request: Request::new(None, question),
        calls,
        ..asked(role, "x")
    };
    let spans = of_questions(vec![
        of("full", "small", "hello", 1),
        of("judge", "somebody", "hello", 1),
        of("scorer 1", "vectors", &similar, 2),
        of("scorer 2", "ranks", "what is asked", 1),
        of("scorer 3", "python", "def f(): ...", 0),
        of("execution", "sandbox", "ls", 0),
    ]);
    let shown = |span: &Value| {
        let text =
            |key: &str| attribute(span, key)["stringValue"].as_str().unwrap_or("-").to_owned();
        let name = span["name"].as_str().unwrap();
        let kind = &span["kind"];
        let operation = text("gen_ai.operation.name");
        format!(
            "{name} {kind} {operation} {} {}",
            text("gen_ai.provider.name"),
            text("openinference.span.kind")
        )
    };
    let shown: Vec<String> = spans.iter().map(shown).collect();
    assert_eq!(
        shown,
        [
            "chat m 3 chat openai LLM",
            "chat m 3 chat _OTHER LLM",
            "embeddings m 3 embeddings _OTHER EMBEDDING",
            "rerank m 3 rerank _OTHER RERANKER",
            "score python 1 - - EVALUATOR",
            "execute_tool sandbox 1 execute_tool - TOOL",
        ]
    );
}

#[test]
fn a_question_has_what_is_recorded_of_it() {
    let turn = Asked { turn: Some(1), ..asked("turn 1", "hello") };
    let spans = of_questions(vec![turn, Asked { source: From::Cache, ..asked("judge", "hello") }]);
    let of = |key: &str| attribute(&spans[0], key);
    assert_eq!(of("gen_ai.request.temperature")["doubleValue"], 0.5);
    assert_eq!(of("gen_ai.request.max_tokens")["intValue"], "9");
    assert_eq!(of("gen_ai.usage.cache_read.input_tokens")["intValue"], "4");
    let id = of("gen_ai.conversation.id")["stringValue"].as_str().unwrap();
    assert_eq!(id, "20261115T120000-0123456789abcdef/commands on small/copy/0");
    let json = |key: &str| -> Value {
        serde_json::from_str(of(key)["stringValue"].as_str().unwrap()).unwrap()
    };
    let output = json("gen_ai.output.messages");
    assert_eq!(output[0]["finish_reason"], "tool_call");
    let types: Vec<&str> = output[0]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["reasoning", "text", "tool_call"]);
    let input = json("gen_ai.input.messages");
    assert_eq!(input[1]["parts"][0]["id"], "call-1");
    assert_eq!(input[2]["parts"][0]["id"], "call-1");
    assert_eq!(json("gen_ai.tool.definitions")[0]["name"], "look");
    // What comes from the cache was asked of nobody, and a judge is no part of the conversation.
    assert_eq!(spans[1]["kind"], 1);
    assert_eq!(attribute(&spans[1], "gen_ai.conversation.id"), &Value::Null);
}

#[test]
fn the_same_run_is_told_in_the_same_bytes() {
    let sample = Sample::usual();
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let options = Options { encoding, ..TOLD };
        let all = || batches(&sample, options).into_iter().map(|it| it.body).collect::<Vec<_>>();
        assert_eq!(all(), all());
    }
}

/// The fields of a message of protobuf: number and what is in it, where that is bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        number
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let length = match tag & 7 {
            0 => {
                varint(&mut bytes);
                0
            }
            1 => 8,
            2 => usize::try_from(varint(&mut bytes)).unwrap(),
            other => panic!("{other} is no way to write a field"),
        };
        let (inner, rest) = bytes.split_at(length);
        found.push((tag >> 3, inner));
        bytes = rest;
    }
    found
}

fn field(bytes: &[u8], number: u64) -> Vec<&[u8]> {
    fields(bytes).into_iter().filter(|it| it.0 == number).map(|it| it.1).collect()
}

#[test]
fn both_encodings_tell_the_same_spans() {
    let sample = Sample::usual();
    let in_json: Vec<(String, String)> = spans(&sample, TOLD)
        .iter()
        .map(|it| {
            (it["spanId"].as_str().unwrap().to_owned(), it["name"].as_str().unwrap().to_owned())
        })
        .collect();
    let hex =
        |bytes: &[u8]| bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let mut in_protobuf = Vec::new();
    for batch in batches(&sample, Options { encoding: Encoding::Protobuf, ..TOLD }) {
        let of_resource = field(&batch.body, 1)[0];
        let of_scope = field(of_resource, 2)[0];
        for span in field(of_scope, 2) {
            let name = String::from_utf8(field(span, 5)[0].to_vec()).unwrap();
            in_protobuf.push((hex(field(span, 2)[0]), name));
        }
    }
    assert_eq!(in_protobuf, in_json);
}
