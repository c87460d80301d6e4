use std::sync::Arc;

use probity_core::request::{Message, Request};
use probity_load::suite::UsagePointers;

use super::*;
use crate::backend::About;

fn spec(body: Value) -> CustomHttp {
    CustomHttp {
        url: "http://h/{{ team }}?q={{ prompt }}".to_owned(),
        method: Method::Post,
        headers: BTreeMap::new(),
        body: Some(CustomBody::Json(body)),
        reply: Some("/answer".to_owned()),
        error: Some("/problem".to_owned()),
        usage: UsagePointers {
            input_tokens: Some("/used/0".to_owned()),
            output_tokens: Some("/used/1".to_owned()),
            ..UsagePointers::default()
        },
        session: None,
        aws_service: None,
    }
}

fn custom(spec: CustomHttp) -> Custom {
    let env = Environment([("TOKEN".to_owned(), "hush".to_owned())].into());
    let (origin, model) = ("http://h".to_owned(), Some("m".to_owned()));
    let parts = Parts { origin, headers: Vec::new(), env, model, sampling: Sampling::default() };
    Custom::new(spec, parts)
}

fn about(id: &str) -> About {
    let prompt_vars = [("team".to_owned(), json!("a/b"))].into();
    About::new(Arc::new(TestCase { id: id.to_owned(), prompt_vars, ..TestCase::default() }))
}

fn sent(custom: &Custom, about: &About, request: &Request) -> (String, Value) {
    let ask = Ask { request, repeat: 0, about: Some(about) };
    let sent = custom.outgoing(&ask).unwrap();
    (sent.url.into_owned(), serde_json::from_slice(&sent.body.unwrap()).unwrap())
}

fn decoded(custom: &Custom, body: &str) -> Result<Reply, Undecoded> {
    let request = Request::new(None, "hi");
    custom.decode(body.as_bytes(), &Ask { request: &request, repeat: 0, about: None })
}

#[test]
fn everything_about_a_case_can_be_sent() {
    let body = json!({
        "say": "{{ prompt }}!", "by": "{{ id }} of {{ team }}", "model": "{{ model }}",
        "all": "{{ messages }}", "rules": "{{ system }}", "key": "{{ env.TOKEN }}",
        "limit": "{{ max_tokens }}",
    });
    let custom = custom(spec(body));
    let request = Request::new(Some("brief".into()), "1 & 2?");
    let (url, body) = sent(&custom, &about("c"), &request);
    assert_eq!(url, "http://h/a%2Fb?q=1%20%26%202%3F");
    let expected = json!({
        "say": "1 & 2?!", "by": "c of a/b", "model": "m", "rules": "brief", "key": "hush",
        "all": [{ "role": "system", "content": "brief" }, { "role": "user", "content": "1 & 2?" }],
    });
    assert_eq!(body, expected);
    let shown = custom.shown_body(&Ask { request: &request, repeat: 0, about: Some(&about("c")) });
    assert_eq!(shown.unwrap()["key"], "[redacted]");
    let nobody = custom.outgoing(&Ask { request: &request, repeat: 0, about: None }).unwrap_err();
    assert_eq!(nobody.message, "`body` of the backend cannot be filled in: `id` has no value");
}

#[test]
fn what_there_is_not_is_left_out_or_refused() {
    let request = Request::new(None, "hi");
    let sent = |url: &str, body: Value| {
        let custom = custom(CustomHttp { url: url.to_owned(), ..spec(body) });
        let sent = custom.outgoing(&Ask { request: &request, repeat: 0, about: Some(&about("c")) });
        sent.map(|it| String::from_utf8(it.body.unwrap()).unwrap()).map_err(|it| it.message)
    };
    let left_out = json!({ "a": "{{ category }}", "b": "{{ system }}", "c": "{{ prompt }}" });
    assert_eq!(sent("http://h", left_out).unwrap(), r#"{"c":"hi"}"#);
    let refused = |what: &str, name: &str| {
        Err(format!("`{what}` of the backend cannot be filled in: `{name}` has no value"))
    };
    assert_eq!(sent("http://h/{{ difficulty }}", json!({})), refused("url", "difficulty"));
    assert_eq!(sent("http://h", json!(["{{ system }}!"])), refused("body", "system"));
    assert_eq!(sent("http://h/{{ category or 'any' }}", json!({})).unwrap(), "{}");
}

fn turn(before: &[(Role, &str)], prompt: &str) -> Request {
    let before = before.iter().map(|(role, text)| Message::text(*role, *text));
    Request::of(before.chain([Message::text(Role::User, prompt)]).collect())
}

#[test]
fn a_conversation_keeps_its_session() {
    let custom = custom(spec(json!({ "say": "{{ prompt }}", "session": "{{ session }}" })));
    assert!(custom.has_sessions() && !custom.lacks().contains(&Need::Conversation));
    let (one, other) = (about("one"), about("other"));
    let (first, second) = (turn(&[], "a"), turn(&[(Role::User, "a"), (Role::Assistant, "b")], "c"));
    let session = |about: &About, request: &Request| {
        sent(&custom, about, request).1["session"].as_str().unwrap().to_owned()
    };
    let id = session(&one, &first);
    assert_eq!(id, session(&one, &first), "a retry is the same conversation");
    assert_ne!(id, session(&other, &first));
    assert_ne!(id, session(&one, &turn(&[], "another question of the case")));
    let again =
        Request { sampling: Sampling { seed: Some(1), ..Sampling::default() }, ..turn(&[], "a") };
    assert_ne!(id, session(&one, &again), "a judge that is asked again");
    // Nobody has told the server how this one began.
    let ask = Ask { request: &second, repeat: 0, about: Some(&one) };
    assert!(custom.outgoing(&ask).unwrap_err().message.contains("began elsewhere"));
    let ask = Ask { request: &first, repeat: 0, about: Some(&one) };
    custom.decode(br#"{"answer":"b"}"#, &ask).unwrap();
    assert_eq!(session(&one, &second), id);
}

#[test]
fn a_server_may_name_the_session() {
    let spec = spec(json!({ "say": "{{ prompt }}", "session": "{{ session }}" }));
    let custom = custom(CustomHttp { session: Some("/id".to_owned()), ..spec });
    let (about, first) = (about("one"), turn(&[], "a"));
    assert_eq!(sent(&custom, &about, &first).1, json!({ "say": "a" }));
    let ask = Ask { request: &first, repeat: 0, about: Some(&about) };
    let nameless = custom.decode(br#"{"answer":"b"}"#, &ask);
    assert_eq!(nameless, Err(Undecoded::Nothing("/id".to_owned())));
    custom.decode(br#"{"answer":"b","id":7}"#, &ask).unwrap();
    let second = turn(&[(Role::User, "a"), (Role::Assistant, "b")], "c");
    assert_eq!(sent(&custom, &about, &second).1, json!({ "say": "c", "session": "7" }));
}

#[test]
fn a_reply_is_found_by_its_pointer() {
    let custom = custom(spec(json!({})));
    let reply = decoded(&custom, r#"{"answer":"hello","used":[3,2],"problem":null}"#).unwrap();
    assert_eq!((&*reply.text, reply.usage.total()), ("hello", 5));
    let json = decoded(&custom, r#"{"answer":{"x":[1]},"problem":""}"#).unwrap();
    assert_eq!(json.text, r#"{"x":[1]}"#);
    assert_eq!(decoded(&custom, r#"{"answer":"x","problem":"no"}"#), Err(Undecoded::Error));
    assert_eq!(decoded(&custom, r#"{"error":{"message":"no"}}"#), Err(Undecoded::Error));
    assert_eq!(decoded(&custom, "{}"), Err(Undecoded::Nothing("/answer".to_owned())));
    assert_eq!(decoded(&custom, "<p>"), Err(Undecoded::Shape("it is not JSON")));
    let said = custom.error_in(r#"{"problem":{"code":5}}"#);
    assert_eq!(said.as_deref(), Some(r#"{"code":5}"#));
}

#[test]
fn without_pointers_all_is_the_reply() {
    let spec = CustomHttp { reply: None, error: None, ..spec(json!({})) };
    assert_eq!(decoded(&custom(spec), "plain text").unwrap().text, "plain text");
}

#[test]
fn a_text_has_to_be_json_unless_it_says_what_it_is() {
    let body = |text: &str| CustomHttp {
        url: "http://h".to_owned(),
        body: Some(CustomBody::Text(text.to_owned())),
        ..spec(json!({}))
    };
    let request = Request::new(None, "say \"x\"");
    let ask = Ask { request: &request, repeat: 0, about: None };
    let quoted = custom(body(r#"{"q": "{{ prompt }}"}"#)).outgoing(&ask).unwrap_err();
    assert!(quoted.message.contains("not JSON") && quoted.permanent, "{quoted:?}");
    let sent = custom(body(r#"{"q": {{ prompt | tojson }}}"#)).outgoing(&ask).unwrap().body;
    assert_eq!(sent.unwrap(), br#"{"q": "say \"x\""}"#);
}

#[test]
fn settings_that_nobody_made_are_not_sent() {
    let names = ["stop", "seed", "top_p", "temperature", "presence_penalty", "frequency_penalty"];
    let body: serde_json::Map<String, Value> = names
        .map(|name| (name.to_owned(), json!(format!("{{{{ {name} }}}}"))))
        .into_iter()
        .collect();
    let custom = custom(spec(Value::Object(body)));
    let mut request = Request::new(None, "hi");
    assert_eq!(sent(&custom, &about("c"), &request).1, json!({}));
    request.sampling.stop = vec!["END".to_owned()];
    request.sampling.frequency_penalty = Some(0.5);
    let expected = json!({ "stop": ["END"], "frequency_penalty": 0.5 });
    assert_eq!(sent(&custom, &about("c"), &request).1, expected);
}
