//! Keys, templates and files under attack.

use std::{fs, io, os::unix::fs::PermissionsExt as _, time::Duration};

use probity_testkit::{Answer, FakeServer, Script};
use serde_json::{Value, json};

use super::{Check, Trial, case, said};
use crate::campaign::room::{Room, walk};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("29: a vendor's key goes elsewhere", vendors_key),
    ("29: a vendor's key goes out in the open", open_key),
    ("30: a header stops a run for ever", endless_pause),
    ("31: templates without bounds", templates),
    ("36: secrets whose names do not say so come back", unnamed_secrets),
    ("36: a short key comes back", short_key),
    ("36: the password of a proxy comes back", proxy_password),
    ("37: others may read what is kept", rights),
    ("37: others may read prompts in files", prompt_file),
];

fn vendors_key(trial: &mut Trial<'_>) -> io::Result<()> {
    let host = trial.model.url().trim_start_matches("http://").to_owned();
    // An address with a fragment is refused, so nobody is asked.
    for (url, is_asked) in [
        (format!("http://{host}/proxy/https://api.openai.com/v1"), true),
        (format!("http://{host}/v1?x=://api.openai.com"), true),
        (format!("http://api.openai.com@{host}/v1"), true),
        (format!("http://{host}/v1#https://api.openai.com"), false),
    ] {
        let before = trial.model.seen().requests;
        trial.suite(&case("a", "say 1", "1"), "")?;
        let suite = trial.room.read("probity.toml").replace(&format!("http://{host}/v1"), &url);
        trial.room.write("probity.toml", suite)?;
        let mut command = trial.room.command(&["run", "--porcelain", "--max-retries", "0"]);
        command.env("OPENAI_API_KEY", "sk-of-the-vendor-0123456789");
        trial.room.start(command)?.end()?;
        let seen = trial.model.seen();
        let has_key = |headers: &str| headers.contains("sk-of-the-vendor");
        let is_sent = seen.last.iter().any(|it| has_key(&format!("{:?}", it.headers)));
        let is_kept = !is_sent && seen.keys.is_empty();
        trial.expect(is_kept, || format!("{url} got the key"));
        let was_asked = seen.requests > before;
        trial.expect(was_asked == is_asked, || format!("{url} was asked: {was_asked}"));
    }
    Ok(())
}

/// Whoever is in between would read it: here a proxy, which is asked for all that is not encrypted.
fn open_key(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let own = format!("{}/v1", trial.model.url());
    trial.change(&own, "http://api.openai.com/v1")?;
    let mut command = trial.room.command(&["run", "--porcelain", "--max-retries", "0"]);
    command.env("OPENAI_API_KEY", "sk-of-the-vendor-0123456789");
    command.env("HTTP_PROXY", trial.model.url()).env("http_proxy", trial.model.url());
    trial.room.start(command)?.end()?;
    let seen = trial.model.seen();
    let is_sent = seen.last.iter().any(|it| format!("{:?}", it.headers).contains("sk-of-the"));
    trial.expect(!is_sent && seen.keys.is_empty(), || "the proxy got the key".to_owned());
    trial.expect(seen.requests > 0, || "the proxy was not asked".to_owned());
    Ok(())
}

/// A time in milliseconds, a day, a year.
fn endless_pause(trial: &mut Trial<'_>) -> io::Result<()> {
    for (name, value) in [
        ("x-ratelimit-reset", "1894908713000"),
        ("retry-after", "86400"),
        ("retry-after", "31536000"),
    ] {
        let limited = Answer::Raw {
            status: 429,
            headers: [("x-ratelimit-remaining", "0"), (name, value)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            body: r#"{"error":{"message":"too many requests"}}"#.to_owned(),
        };
        trial.answers(Script::always(limited))?;
        trial.suite(&case("a", "say 1", "1"), "")?;
        let ran = trial.room.run(&["run", "--timeout", "3s"])?;
        trial.code(&ran, 3);
        trial.expect(ran.took < Duration::from_secs(20), || format!("{name}: {:?}", ran.took));
        let told = said(&ran);
        trial.expect(told.contains("wait"), || {
            format!("{name}: nothing says what it asks for: {told}")
        });
    }
    Ok(())
}

fn templates(trial: &mut Trial<'_>) -> io::Result<()> {
    let deep = format!("{{{{ {}1 }}}}", "-".repeat(7000));
    let long = "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}";
    let wide = "{{ x | indent(999999999999) }}";
    for prompt in [deep.as_str(), long, wide] {
        let line = json!({ "id": "a", "prompt": prompt, "prompt_vars": { "x": "a\nb" }, "expected_response": "1" });
        trial.suite(&format!("{line}\n"), "")?;
        for words in [&["run", "--dry-run"][..], &["run"], &["dataset", "validate", "cases.jsonl"]]
        {
            let ran = trial.room.run(words)?;
            let is_refused = ran.code == Some(2) && !ran.is_crash();
            let start: String = prompt.chars().take(30).collect();
            trial.expect(is_refused, || format!("{start}: {words:?}: {}", ran.tail()));
        }
    }
    Ok(())
}

/// What is in a file of a room, or was printed, of any of these texts.
fn find(room: &Room<'_>, texts: &[&str]) -> Option<String> {
    let mut found = None;
    walk(room.root(), &mut |path| {
        let bytes = fs::read(path).unwrap_or_default();
        let has = |text: &&&str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
        if let Some(text) = texts.iter().find(has) {
            let name = path.strip_prefix(room.root()).unwrap_or(path);
            found = Some(format!("{text:?} in {}", name.display()));
        }
    });
    found
}

const REPORTS: [&str; 12] = [
    "run",
    "--events",
    "e.jsonl",
    "--record",
    "rec.jsonl",
    "--cache",
    "-o",
    "r.json",
    "-o",
    "r.jsonl",
    "-o",
    "r.html",
];

fn unnamed_secrets(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let suite = "[backends.c]\nkind = \"command\"\nenv = [\"DATABASE_URL\", \"GH_PAT\"]\n\
                 command = [\"sh\", \"-c\", \"cat > /dev/null; echo $DATABASE_URL $GH_PAT; echo $GH_PAT >&2\"]\n\
                 [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n";
    trial.room.write("probity.toml", suite)?;
    let mut command = trial.room.command(&REPORTS);
    command.env("DATABASE_URL", "postgres://me:hunter2x@db/app").env("GH_PAT", "pat-of-mine-7351");
    trial.room.start(command)?.end()?;
    let reply = trial.first()?["raw_response"].clone();
    trial.expect(reply.as_str().is_some_and(|it| it.contains("[redacted]")), || {
        format!("the reply is {reply}")
    });
    let found = find(&trial.room, &["hunter2x", "pat-of-mine"]);
    trial.expect(found.is_none(), || found.unwrap_or_default());
    Ok(())
}

/// A key of four characters, in an error.
fn short_key(trial: &mut Trial<'_>) -> io::Result<()> {
    let refused = Answer::Raw {
        status: 401,
        headers: Vec::new(),
        body: json!({ "error": { "message": "the key k7Qz is not known" } }).to_string(),
    };
    trial.answers(Script::always(refused))?;
    trial.suite(&case("a", "say 1", "1"), "")?;
    trial.change("model = \"m\"", "model = \"m\"\napi_key_env = \"MINE\"")?;
    let mut command = trial.room.command(&REPORTS);
    command.env("MINE", "k7Qz");
    trial.room.start(command)?.end()?;
    let error = trial.first()?["error"].to_string();
    trial.expect(error.contains("is not known"), || format!("the error is {error}"));
    let found = find(&trial.room, &["key k7Qz"]);
    trial.expect(found.is_none(), || found.unwrap_or_default());
    Ok(())
}

fn proxy_password(trial: &mut Trial<'_>) -> io::Result<()> {
    // Of `me:proxy-pass-8812`.
    let sent = "bWU6cHJveHktcGFzcy04ODEy";
    let refused = Answer::Raw {
        status: 407,
        headers: Vec::new(),
        body:
            json!({ "error": { "message": format!("who is me:proxy-pass-8812 (Basic {sent})?") } })
                .to_string(),
    };
    let proxy = FakeServer::bind(Script::always(refused), 0)?;
    trial.suite(&case("a", "say 1", "1"), "")?;
    trial.change(&trial.model.url(), "http://models.invalid")?;
    let address =
        format!("http://me:proxy-pass-8812@{}", proxy.url().trim_start_matches("http://"));
    let mut command = trial.room.command(&REPORTS);
    command.env("HTTP_PROXY", &address).env("http_proxy", &address);
    trial.room.start(command)?.end()?;
    trial.expect(proxy.seen().requests > 0, || "the proxy was not asked".to_owned());
    let found = find(&trial.room, &["proxy-pass-8812", sent]);
    trial.expect(found.is_none(), || found.unwrap_or_default());
    Ok(())
}

fn rights(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let command = trial.room.limited("umask 000", &["run", "-q", "--cache"]);
    trial.room.start(command)?.end()?;
    let mode = |path: &str| {
        let about = fs::metadata(trial.room.path(path));
        about.map_or(0o777, |it| it.permissions().mode() & 0o777)
    };
    let found = [mode(".probity"), mode(".probity/probity.db"), mode(".probity/cache.db")];
    trial.expect(found == [0o700, 0o600, 0o600], || {
        format!("{:o} {:o} {:o}", found[0], found[1], found[2])
    });
    Ok(())
}

fn prompt_file(trial: &mut Trial<'_>) -> io::Result<()> {
    trial.suite(&case("a", "say 1", "1"), "")?;
    let seen = trial.room.path("seen").display().to_string();
    let script = format!(
        "stat -c '%a %n' \"$1\" > {seen}; stat -c %a \"$(dirname \"$1\")\" >> {seen}; echo 1"
    );
    let words = Value::from(vec!["sh", "-c", &script, "sh", "{{prompt_file}}"]);
    let suite = format!(
        "[backends.c]\nkind = \"command\"\ncommand = {words}\n[[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n"
    );
    trial.room.write("probity.toml", suite)?;
    let command = trial.room.limited("umask 000", &["run", "-q"]);
    let ran = trial.room.start(command)?.end()?;
    let seen = trial.room.read("seen");
    let lines: Vec<&str> = seen.lines().collect();
    let is_own = lines.len() == 2 && lines[0].starts_with("600 ") && lines[1] == "700";
    trial.expect(is_own, || format!("{seen:?}, {}", ran.tail()));
    Ok(())
}
