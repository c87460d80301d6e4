//! What people say of results: forms over a real socket, and what commands make of it.

mod labels;

use std::{fmt::Write as _, io::Write as _};

use rusqlite::Connection;
use serde_json::{Value, json};

use super::{Got, View, project_with_a_run, run};
use crate::project::Project;

const EDIT: &[&str] = &["--allow-edit"];
const CASE: &str = "/runs/latest/cases/case%2F00";

/// A browser: it keeps its cookies, and sends what the forms of a page hold.
pub(super) struct Browser<'a> {
    view: &'a View,
    cookies: Vec<(String, String)>,
}

impl<'a> Browser<'a> {
    pub(super) fn new(view: &'a View) -> Self {
        Self { view, cookies: Vec::new() }
    }

    /// One of somebody who has said who they are.
    pub(super) fn of(view: &'a View, person: &str) -> Self {
        Self::of_page(view, person, CASE)
    }

    pub(super) fn of_page(view: &'a View, person: &str, page: &str) -> Self {
        let mut browser = Self::new(view);
        let sent = browser.send(page, "/person", &[("name", person), ("back", "/")]);
        assert_eq!((sent.status, location(&sent)), (303, "/".to_owned()), "{}", sent.body);
        browser
    }

    fn open(&mut self, target: &str) -> String {
        let got = self.view.ask(&format!(
            "GET {target} HTTP/1.1\r\nHost: {}\r\nCookie: {}",
            self.view.address,
            self.cookie()
        ));
        assert_eq!(got.status, 200, "{target}: {}", got.body);
        self.keep(&got);
        got.body
    }

    /// Sends a form of a page, with its hidden fields.
    fn send(&mut self, page: &str, action: &str, fields: &[(&str, &str)]) -> Got {
        let page = self.open(page);
        let mut all = vec![("token", hidden(&page, "token"))];
        if action != "/person" {
            all.push(("reply", hidden(&page, "reply")));
        }
        all.extend(fields.iter().map(|(name, value)| (*name, (*value).to_owned())));
        self.post(action, &form(&all), "Accept: text/html")
    }

    /// Sends a text as a form, whatever is in it.
    fn post(&mut self, action: &str, body: &str, headers: &str) -> Got {
        let host = &self.view.address;
        let head = format!("Host: {host}\r\nOrigin: http://{host}\r\nCookie: {}", self.cookie());
        let got = post(self.view, action, &format!("{head}\r\n{headers}"), body);
        self.keep(&got);
        got
    }

    /// Says something of a result, and expects that it is kept.
    pub(super) fn say(&mut self, page: &str, fields: &[(&str, &str)]) {
        let (path, query) = page.split_once('?').unwrap_or((page, ""));
        let got = self.send(page, &format!("{path}/remarks?{query}"), fields);
        assert_eq!(got.status, 303, "{page} {fields:?}: {}", got.body);
        assert!(location(&got).ends_with("#people"), "{}", got.head);
    }

    fn cookie(&self) -> String {
        let pairs = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join("; ")
    }

    fn keep(&mut self, got: &Got) {
        for line in got.whole_head.lines() {
            let Some(cookie) = line.strip_prefix("set-cookie: ") else { continue };
            assert!(cookie.contains("; HttpOnly; SameSite="), "{cookie}");
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.retain(|(known, _)| known != name);
            self.cookies.push((name.to_owned(), value.to_owned()));
        }
    }
}

fn post(view: &View, action: &str, headers: &str, body: &str) -> Got {
    let mut stream = view.connect();
    let length = body.len();
    write!(
        stream,
        "POST {action} HTTP/1.1\r\n{headers}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .unwrap();
    View::answer(stream)
}

fn location(got: &Got) -> String {
    let line = got.whole_head.lines().find_map(|it| it.strip_prefix("location: "));
    line.unwrap_or_default().to_owned()
}

fn form(fields: &[(&str, String)]) -> String {
    let encode = |text: &str| {
        let mut encoded = String::new();
        for byte in text.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => encoded.push(char::from(byte)),
                byte => write!(encoded, "%{byte:02x}").unwrap(),
            }
        }
        encoded
    };
    let pairs = fields.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// The value of a hidden field.
fn hidden(page: &str, name: &str) -> String {
    let start = format!("type=\"hidden\" name=\"{name}\" value=\"");
    let rest = page.split_once(&start).unwrap_or_else(|| panic!("no {name} in {page}")).1;
    rest.split('"').next().unwrap().to_owned()
}

/// What people say of a case of the first lane.
fn said(view: &View, target: &str) -> Vec<Value> {
    let case = view.get(&format!("/api/v1{target}")).json();
    case["results"][0]["people"].as_array().unwrap().clone()
}

/// The digest of everything in a store but what people say.
fn measured(project: &Project) -> Vec<String> {
    let store = Connection::open(project.path(".probity/probity.db")).unwrap();
    let mut all = Vec::new();
    for table in ["runs", "lanes", "results", "scores", "asked", "texts"] {
        let mut statement = store.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values: Vec<rusqlite::types::Value> =
                (0..columns).map(|at| row.get(at).unwrap()).collect();
            all.push(format!("{table}: {values:?}"));
        }
    }
    all
}

#[test]
fn a_person_says_everything_and_others_see_it() {
    let project = project_with_a_run();
    let before = measured(&project);
    let view = View::start(&project, EDIT);
    let mut ada = Browser::of(&view, "Ada <b>L.</b>");
    ada.say(CASE, &[("what", "verdict"), ("mark", "pass")]);
    ada.say(CASE, &[("what", "points"), ("points overall", "4")]);
    ada.say(CASE, &[("what", "note"), ("note", "<script>alert(1)</script>\r\nsecond line")]);
    ada.say(CASE, &[("what", "tag"), ("tag", "odd & ends")]);
    ada.say(CASE, &[("what", "tag"), ("tag", "gone")]);
    ada.say(CASE, &[("what", "untag"), ("tag", "gone")]);
    ada.say(CASE, &[("what", "verdict"), ("mark", "fail")]);
    let now = said(&view, CASE);
    let without_time: Vec<Value> = now
        .iter()
        .map(|it| {
            let mut it = it.clone();
            assert!(it["at"].as_str().unwrap().ends_with('Z'), "{it}");
            it.as_object_mut().unwrap().remove("at");
            it
        })
        .collect();
    let ada_says = |mut what: Value| {
        what["person"] = json!("Ada <b>L.</b>");
        what
    };
    let expected = [
        json!({ "matter": "points", "about": "overall", "points": 4 }),
        json!({ "matter": "note", "note": "<script>alert(1)</script>\nsecond line" }),
        json!({ "matter": "tag", "tag": "odd & ends", "is_set": true }),
        json!({ "matter": "verdict", "mark": "fail" }),
    ];
    assert_eq!(without_time, expected.map(ada_says));
    let page = ada.open(CASE);
    for part in [
        "Ada &lt;b&gt;L.&lt;/b&gt;",
        "&lt;script&gt;alert(1)&lt;/script&gt;\nsecond line",
        "odd &amp; ends",
        "History (7)",
        "removed the tag gone",
        "value=\"fail\" aria-pressed=\"true\"",
        "value=\"4\" checked",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<script>alert"), "{page}");
    drop(view);
    // Without the flag it is shown, and nothing can be sent.
    let view = View::start(&project, &[]);
    let page = view.get(CASE).body;
    assert!(page.contains("odd &amp; ends") && !page.contains("method=\"post\""), "{page}");
    assert_eq!(measured(&project), before, "what was measured is as it was");
}

#[test]
fn what_is_taken_back_is_gone_and_in_the_history() {
    let project = project_with_a_run();
    let view = View::start(&project, EDIT);
    let mut ada = Browser::of(&view, "Ada");
    ada.say(CASE, &[("what", "verdict"), ("mark", "pass")]);
    ada.say(CASE, &[("what", "points"), ("points overall", "1")]);
    ada.say(CASE, &[("what", "note"), ("note", "x")]);
    for what in ["verdict", "points", "note"] {
        ada.say(CASE, &[("what", what)]);
    }
    assert_eq!(said(&view, CASE), Vec::<Value>::new());
    assert!(ada.open(CASE).contains("took back the points for overall"));
}

#[test]
fn nothing_is_written_without_the_flag() {
    let project = project_with_a_run();
    let view = View::start(&project, &[]);
    assert!(!view.get(CASE).body.contains("What people say"), "there is nothing to show");
    assert!(view.get(CASE).head.contains("referrer-policy: no-referrer"));
    let host = format!("Host: {0}\r\nOrigin: http://{0}", view.address);
    for action in ["/person", &format!("{CASE}/remarks")] {
        let got = post(&view, action, &host, "what=verdict&mark=pass");
        assert_eq!(got.status, 405, "{action}: {}", got.body);
        assert_eq!(got.json()["error"]["code"], "method_not_allowed");
        assert!(!got.head.contains("set-cookie"), "{}", got.head);
    }
    assert_eq!(said(&view, CASE), Vec::<Value>::new());
}

#[test]
fn a_form_of_another_page_is_refused() {
    let project = project_with_a_run();
    let view = View::start(&project, EDIT);
    let mut ada = Browser::of(&view, "Ada");
    let page = ada.open(CASE);
    assert!(view.get(CASE).head.contains("referrer-policy: same-origin"));
    let fields = |token: &str| {
        form(&[
            ("token", token.to_owned()),
            ("reply", hidden(&page, "reply")),
            ("what", "verdict".to_owned()),
            ("mark", "pass".to_owned()),
        ])
    };
    let token = hidden(&page, "token");
    let action = format!("{CASE}/remarks");
    let host = view.address.clone();
    let cookie = format!("Cookie: {}", ada.cookie());
    let own = format!("Origin: http://{host}");
    let send = |head: &[&str], token: &str| {
        post(&view, &action, &head.join("\r\n"), &fields(token)).status
    };
    let host_line = format!("Host: {host}");
    // Without the right origin, host, cookie or token nothing is taken.
    assert_eq!(send(&[&host_line, &cookie], &token), 403);
    assert_eq!(send(&[&host_line, &cookie, "Origin: http://evil.example"], &token), 403);
    assert_eq!(send(&[&host_line, &cookie, "Origin: null"], &token), 403);
    assert_eq!(send(&[&host_line, &cookie, &own, "Sec-Fetch-Site: cross-site"], &token), 403);
    let rebound = host.replace("127.0.0.1", "evil.example");
    let rebound = [format!("Host: {rebound}"), format!("Origin: http://{rebound}")];
    assert_eq!(send(&[&rebound[0], &cookie, &rebound[1]], &token), 403);
    assert_eq!(send(&[&host_line, &own], &token), 403);
    assert_eq!(send(&[&host_line, &cookie, &own], ""), 403);
    assert_eq!(send(&[&host_line, &cookie, &own], &"0".repeat(64)), 403);
    // The token of another browser does not fit either.
    let other = hidden(&Browser::of(&view, "Bob").open(CASE), "token");
    assert_ne!(other, token);
    assert_eq!(send(&[&host_line, &cookie, &own], &other), 403);
    assert_eq!(said(&view, CASE), Vec::<Value>::new());
    assert_eq!(send(&[&host_line, &cookie, &own], &token), 303);
    assert_eq!(said(&view, CASE).len(), 1);
    // Nor that of an earlier server.
    drop(view);
    let view = View::start(&project, EDIT);
    let head = format!("Host: {0}\r\nOrigin: http://{0}\r\n{cookie}", view.address);
    assert_eq!(post(&view, &action, &head, &fields(&token)).status, 403);
}

#[test]
fn hostile_forms_get_clean_answers() {
    let project = project_with_a_run();
    let view = View::start(&project, EDIT);
    let mut nobody = Browser::new(&view);
    let action = format!("{CASE}/remarks");
    let page = nobody.open(CASE);
    assert!(page.contains("Your name"), "{page}");
    let token = ("token", hidden(&page, "token"));
    let text = |fields: &[(&'static str, &str)]| {
        let more = fields.iter().map(|(name, value)| (*name, (*value).to_owned()));
        form(&std::iter::once(token.clone()).chain(more).collect::<Vec<_>>())
    };
    let unnamed = nobody.post(&action, &text(&[("what", "verdict"), ("mark", "pass")]), "X: y");
    assert_eq!(unnamed.status, 400);
    assert_eq!(unnamed.json()["error"]["message"], "nobody knows who says this");
    for name in ["", " ", "a\nb", "a\u{202e}b", "\u{1b}[31m", &"x".repeat(61), "a\0"] {
        let got = nobody.post("/person", &text(&[("name", name)]), "Accept: text/html");
        assert_eq!(got.status, 400, "{name:?}");
        assert!(!got.head.contains("set-cookie"), "{}", got.head);
    }
    let mut ada = Browser::of(&view, "Ada");
    let page = ada.open(CASE);
    let (token, reply) = (hidden(&page, "token"), hidden(&page, "reply"));
    let long = "x".repeat(4001);
    let huge = "é".repeat(1 << 19);
    let cases: &[(&[(&str, &str)], u16)] = &[
        (&[("what", "note"), ("note", &long)], 400),
        (&[("what", "note"), ("note", &huge)], 400),
        (&[("what", "tag"), ("tag", "")], 400),
        (&[("what", "tag"), ("tag", "a\u{200b}")], 400),
        (&[("what", "points"), ("points overall", "6")], 400),
        (&[("what", "points"), ("points overall", "0")], 400),
        (&[("what", "points"), ("points overall", "many")], 400),
        (&[("what", "points"), ("points other", "3")], 400),
        (&[("what", "verdict"), ("mark", "maybe")], 400),
        (&[("what", "verdict"), ("mark", "pass"), ("mark", "fail")], 400),
        (&[("what", "everything")], 400),
        (&[], 400),
    ];
    for (fields, status) in cases {
        let mut all = vec![("token", token.clone()), ("reply", reply.clone())];
        all.extend(fields.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let got = ada.post(&action, &form(&all), "Accept: */*");
        assert_eq!(got.status, *status, "{:.200}: {}", format!("{fields:?}"), got.body);
        assert_eq!(got.json()["error"]["code"], "bad_request");
        let page = ada.post(&action, &form(&all), "Accept: text/html");
        assert!(page.body.contains("This cannot be done"), "{}", page.body);
    }
    let mut stale = form(&[("token", token.clone()), ("reply", "0".repeat(32))]);
    stale += "&what=verdict&mark=pass";
    assert_eq!(ada.post(&action, &stale, "X: y").json()["error"]["code"], "conflict");
    let good = form(&[("token", token), ("reply", reply)]) + "&what=verdict&mark=pass";
    for (wrong, status) in [
        ("/runs/nope/cases/x/remarks", 404),
        ("/runs/latest/cases/nope/remarks", 404),
        ("/runs/latest/cases/case%2F00/remarks?lane=9", 404),
        ("/runs/latest/cases/case%2F00/remarks?x=1", 400),
        ("/runs/latest/cases/%ff/remarks", 400),
        ("/runs/latest/cases/case%2F00", 405),
        ("/api/v1/runs", 405),
    ] {
        assert_eq!(ada.post(wrong, &good, "X: y").status, status, "{wrong}");
    }
    assert_eq!(said(&view, CASE), Vec::<Value>::new());
}

#[test]
fn a_store_that_somebody_writes_to_is_waited_for_but_not_for_ever() {
    let project = project_with_a_run();
    let view = View::start(&project, EDIT);
    let mut ada = Browser::of(&view, "Ada");
    let page = ada.open(CASE);
    let fields = [("token", hidden(&page, "token")), ("reply", hidden(&page, "reply"))];
    let body = form(&fields) + "&what=verdict&mark=pass";
    let action = format!("{CASE}/remarks");
    let writer = Connection::open(project.path(".probity/probity.db")).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let got = ada.post(&action, &body, "Accept: application/json");
    assert_eq!(got.status, 503, "{}", got.body);
    assert_eq!(got.json()["error"]["code"], "busy");
    writer.execute_batch("ROLLBACK").unwrap();
    assert_eq!(ada.post(&action, &body, "X: y").status, 303);
    assert_eq!(said(&view, CASE).len(), 1);
}

#[test]
fn people_edit_at_the_same_time() {
    let project = project_with_a_run();
    let view = View::start(&project, EDIT);
    let listed = view.get("/api/v1/runs").json();
    let run_id = listed["runs"][0]["run_id"].as_str().unwrap();
    std::thread::scope(|scope| {
        for person in 0..4 {
            let view = &view;
            scope.spawn(move || {
                let mut browser = Browser::of(view, &format!("person {person}"));
                for at in 0..5 {
                    let case = format!("/runs/{run_id}/cases/case%2F{at:02}");
                    browser.say(&case, &[("what", "verdict"), ("mark", "pass")]);
                }
            });
        }
        // Meanwhile another run is written.
        scope.spawn(|| run(&project));
    });
    let people = view.get(&format!("/api/v1/runs/{run_id}/people")).json();
    assert_eq!((&people["results"], &people["marked"]), (&json!(5), &json!(20)));
    assert_eq!(view.get("/api/v1/runs").json()["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn two_raters_see_how_far_they_agree() {
    let project = project_with_a_run();
    let view = View::start(&project, EDIT);
    let (mut ada, mut bob) = (Browser::of(&view, "Ada"), Browser::of(&view, "Bob"));
    // Cases 0, 3 and 6 fail on the first lane, the others pass.
    for (at, of_ada, of_bob) in [
        (0, "pass", "pass"),
        (1, "pass", "fail"),
        (2, "pass", "pass"),
        (3, "fail", "fail"),
        (4, "fail", "pass"),
        (6, "fail", "fail"),
    ] {
        let case = format!("/runs/latest/cases/case%2F{at:02}?lane=1");
        ada.say(&case, &[("what", "verdict"), ("mark", of_ada)]);
        bob.say(&case, &[("what", "verdict"), ("mark", of_bob)]);
    }
    ada.say("/runs/latest/cases/case%2F07", &[("what", "verdict"), ("mark", "pass")]);
    let people = view.get("/api/v1/runs/latest/people").json();
    assert_eq!(people["people"], json!({ "Ada": 7, "Bob": 6 }));
    assert_eq!((&people["marked"], &people["confirmed"]), (&json!(13), &json!(9)));
    // 4 of 6 are the same; both say `pass` to half of them, so chance gives a half.
    let expected = json!([{
        "about": "verdict", "people": ["Ada", "Bob"], "rated": 6, "same": 4,
        "share": 4.0 / 6.0, "kappa": (4.0 / 6.0 - 0.5) / 0.5, "kappa_quadratic": null,
    }]);
    let round = |value: &Value| {
        let mut value = value.clone();
        for name in ["share", "kappa"] {
            value[0][name] = json!((value[0][name].as_f64().unwrap() * 1e9).round());
        }
        value
    };
    assert_eq!(round(&people["agreement"]), round(&expected));
    let wrong: Vec<&str> = people["wrong"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["case_id"].as_str().unwrap())
        .collect();
    assert_eq!(wrong, ["case/00", "case/01", "case/04"]);
    let page = view.get("/runs/latest").body;
    for part in ["7 results looked at by 2 people", "9 of 13", "Ada, Bob", "67 %", "0.33"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}
