//! Streams as the vendors document them, whole, cut anywhere and gone wrong.

use std::fmt::Write as _;

use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::*;
use crate::backend::stream::{Listener, Misheard};

const CHAT: &str = r#": keep-alive

data: {"id":"x","object":"chat.completion.chunk","model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}

data: {"choices":[{"index":0,"delta":{"reasoning_content":"h"},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"reasoning_content":"m"},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"content":"grüß "},"finish_reason":null}]}

data: {"choices":[{"index":1,"delta":{"content":"another choice"},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"content":"dich"},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"add","arguments":""}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}},{"index":1,"id":"c2","function":{"name":"sub","arguments":"{}"}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":2}}}

data: [DONE]

"#;

const MESSAGES: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m-1","stop_reason":null,"usage":{"input_tokens":3,"cache_read_input_tokens":2,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"xyz"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"grüß "}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"dich"}}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c1","name":"add","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":" 1}"}}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"c2","name":"sub","input":{}}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":7}}

event: message_stop
data: {"type":"message_stop"}

"#;

const RESPONSES: &str = r#"event: response.created
data: {"type":"response.created","response":{"id":"resp_1","status":"in_progress","output":[]}}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","delta":"hm"}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"delta":"grüß dich"}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"{\"a\":1}"}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","model":"m-1","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"message","content":[{"type":"output_text","text":"grüß dich"}]},{"type":"function_call","call_id":"c1","name":"add","arguments":"{\"a\":1}"},{"type":"function_call","call_id":"c2","name":"sub","arguments":"{}"}],"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":2},"output_tokens":7}}}

"#;

const GEMINI: &str = r#"data: {"candidates":[{"content":{"parts":[{"text":"hm","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":5},"modelVersion":"m-1"}

data: {"candidates":[{"content":{"parts":[{"text":"grüß "}],"role":"model"},"index":0}],"modelVersion":"m-1"}

data: {"candidates":[{"content":{"parts":[{"text":"dich"},{"functionCall":{"id":"c1","name":"add","args":{"a":1}}},{"functionCall":{"id":"c2","name":"sub","args":{}}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":6,"thoughtsTokenCount":1,"cachedContentTokenCount":2},"modelVersion":"m-1"}

"#;

const OLLAMA: &str = r#"{"model":"m-1","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}
{"model":"m-1","message":{"role":"assistant","content":"grüß "},"done":false}
{"model":"m-1","message":{"role":"assistant","content":"dich"},"done":false}
{"model":"m-1","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"add","arguments":{"a":1}}},{"function":{"name":"sub","arguments":{}}}]},"done":false}
{"model":"m-1","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":5,"eval_count":7}
"#;

const STREAMS: [(BackendKind, &str); 5] = [
    (BackendKind::Openai, CHAT),
    (BackendKind::Anthropic, MESSAGES),
    (BackendKind::OpenaiResponses, RESPONSES),
    (BackendKind::Gemini, GEMINI),
    (BackendKind::Ollama, OLLAMA),
];

fn heard(kind: BackendKind, pieces: &[&[u8]]) -> Result<Reply, Misheard> {
    let mut listener = Listener::new(&Service::of(kind).dialect.stream);
    for piece in pieces {
        listener.hear(piece)?;
    }
    listener.finish().unwrap_or_else(|| Err(Undecoded::Cut.into()))
}

fn whole(kind: BackendKind, stream: &str) -> Result<Reply, Undecoded> {
    heard(kind, &[stream.as_bytes()]).map_err(|it| it.why)
}

#[test]
fn every_stream_comes_to_the_same_reply() {
    for (kind, stream) in STREAMS {
        let reply = whole(kind, stream).unwrap();
        assert_eq!((&*reply.text, reply.reasoning.as_deref()), ("grüß dich", Some("hm")));
        let calls: Vec<_> = reply.tool_calls.iter().map(|it| (&*it.name, &it.arguments)).collect();
        assert_eq!(calls, [("add", &json!({ "a": 1 })), ("sub", &json!({}))], "{kind:?}");
        assert_eq!(reply.model.as_deref(), Some("m-1"), "{kind:?}");
        let usage = reply.usage;
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(5), Some(7)), "{kind:?}");
        assert!(reply.stop_reason.is_some(), "{kind:?}");
        let crlf = stream.replace('\n', "\r\n");
        assert_eq!(whole(kind, &crlf).unwrap(), reply, "{kind:?}");
    }
}

#[test]
fn signatures_and_probabilities_are_heard_too() {
    let reply = whole(BackendKind::Anthropic, MESSAGES).unwrap();
    let thoughts = json!([{ "type": "thinking", "thinking": "hm", "signature": "xyz" }]);
    assert_eq!(reply.tool_calls[0].opaque, Some(thoughts));
    let chunk = |token: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{token}\"}},\
             \"logprobs\":{{\"content\":[{{\"token\":\"{token}\",\"logprob\":-0.5}}]}}}}]}}\n\n"
        )
    };
    let stream = format!("{}{}data: [DONE]\n\n", chunk("a"), chunk("b"));
    let reply = whole(BackendKind::Openai, &stream).unwrap();
    let tokens: Vec<String> = reply.logprobs.unwrap().0.into_iter().map(|it| it.token).collect();
    assert_eq!(tokens, ["a", "b"]);
}

#[test]
fn a_stream_that_is_cut_is_never_a_short_answer() {
    for (kind, stream) in STREAMS {
        let reply = whole(kind, stream).unwrap();
        for end in 0..stream.len() {
            match heard(kind, &[&stream.as_bytes()[..end]]) {
                Err(Misheard { why, .. }) => assert_eq!(why, Undecoded::Cut, "{kind:?} {end}"),
                // It said that it was at its end.
                Ok(early) => {
                    assert_eq!(
                        (early.text, early.tool_calls),
                        (reply.text.clone(), reply.tool_calls.clone())
                    );
                }
            }
        }
        assert_eq!(whole(kind, "").unwrap_err(), Undecoded::Cut);
    }
}

/// A server may send a token at a time for as long as bytes are read, and tests are given a minute.
#[test]
fn many_events_take_linear_time() {
    let part = r#"data: {"candidates":[{"content":{"parts":[{"text":"x"}]}}]}"#;
    let last = r#"data: {"candidates":[{"finishReason":"STOP"}]}"#;
    let stream = format!("{}{last}\n\n", format!("{part}\n\n").repeat(200_000));
    assert_eq!(whole(BackendKind::Gemini, &stream).unwrap().text.len(), 200_000);
    // Whatever part of the answer a piece belongs to.
    let mut stream = String::new();
    for at in 0..200_000 {
        let _ = write!(
            stream,
            "data: {{\"type\":\"content_block_start\",\"index\":{at},\"content_block\":{{\"type\":\"text\",\"text\":\"\"}}}}\n\n\
             data: {{\"type\":\"content_block_delta\",\"index\":{},\"delta\":{{\"text\":\"x\"}}}}\n\n",
            at / 2
        );
    }
    stream.push_str("data: {\"type\":\"message_stop\"}\n\n");
    assert_eq!(whole(BackendKind::Anthropic, &stream).unwrap().text.len(), 200_000);
    let mut stream = String::new();
    for at in 0..200_000 {
        let _ = write!(
            stream,
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{at},\"id\":\"c{at}\",\
             \"function\":{{\"name\":\"f\",\"arguments\":\"{{}}\"}}}},{{\"id\":\"c{}\"}}]}}}}]}}\n\n",
            at / 2
        );
    }
    stream.push_str("data: [DONE]\n\n");
    assert_eq!(whole(BackendKind::Openai, &stream).unwrap().tool_calls.len(), 200_000);
}

#[test]
fn an_error_in_a_stream_is_that_error() {
    let errors = [
        (BackendKind::Openai, "data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n"),
        (BackendKind::Openai, "event: error\ndata: {\"message\":\"overloaded\"}\n\n"),
        (
            BackendKind::Anthropic,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
        ),
        (
            BackendKind::OpenaiResponses,
            "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\"}}}\n\n",
        ),
        (
            BackendKind::OpenaiResponses,
            "data: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"no\"}\n\n",
        ),
        (BackendKind::Gemini, "data: {\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\"}}\n\n"),
        (BackendKind::Ollama, "{\"error\":\"an error was encountered\"}\n"),
    ];
    for (kind, error) in errors {
        // Also in the middle of a text.
        let stream = STREAMS.iter().find(|it| it.0 == kind).unwrap().1;
        let half = stream.find("grüß").unwrap();
        let end = half + stream[half..].find('\n').unwrap() + 1;
        for before in ["", &stream[..end]] {
            let text = format!("{before}\n{error}");
            assert_eq!(whole(kind, &text).unwrap_err(), Undecoded::Error, "{kind:?} {error}");
        }
    }
}

#[test]
fn what_is_no_event_of_the_server_is_told_apart() {
    for (kind, _) in STREAMS {
        let shape = whole(kind, "data: <p>\n\n<p>\n");
        assert!(matches!(shape, Err(Undecoded::Shape(_))), "{kind:?} {shape:?}");
    }
    let blocked = "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n";
    let reply = whole(BackendKind::Gemini, blocked).unwrap();
    assert_eq!(reply.stop_reason.as_deref(), Some("SAFETY"));
    let refused = "data: {\"choices\":[{\"delta\":{\"refusal\":\"I can't\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let reply = whole(BackendKind::Openai, refused).unwrap();
    assert_eq!((&*reply.text, reply.stop_reason.as_deref()), ("I can't", Some("refusal")));
    let nameless = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1}}}]},\"finish_reason\":\"tool_calls\"}]}\n\n";
    let reply = whole(BackendKind::Openai, nameless).unwrap();
    assert_eq!(reply.answer(), r#"[{"name":"f","arguments":{"x":1}}]"#);
    let bare = "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"content\":[{\"text\":\"hi\"}]}}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n";
    assert_eq!(whole(BackendKind::OpenaiResponses, bare).unwrap().text, "hi");
}

proptest! {
    #[test]
    fn where_a_stream_is_cut_makes_no_difference(
        which in 0..STREAMS.len(),
        cuts in vec(0_usize..2000, 0..20),
    ) {
        let (kind, stream) = STREAMS[which];
        let bytes = stream.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|it| it.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|it| &bytes[it[0]..it[1]]).collect();
        prop_assert_eq!(heard(kind, &pieces), heard(kind, &[bytes]));
    }

    #[test]
    fn any_stream_is_read_or_refused(bytes in vec(0_u8.., 0..200)) {
        for service in SERVICES {
            let _ = heard(service.kind, &[&bytes]);
        }
    }
}
