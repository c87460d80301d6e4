//! Servers that fail in every way we know, in every dialect, whole and streamed: how often each is asked, what kind of error it is, and
//! that a run ends.

mod mangler;

use std::{io, time::Duration};

use fastrand::Rng;
use probity_testkit::{
    Answer, FakeServer, Fault, Finish, Reply, RetryAfter, Rule, Script, Trouble, When,
};
use serde_json::Value;

use super::{
    Campaign, Shot,
    room::{Lab, Ran, Room},
};
use mangler::{Mangle, Mangler};

pub(super) const CAMPAIGN: Campaign = Campaign {
    name: "server",
    about: "faults of servers in every dialect, whole and streamed: exact request counts, kinds of errors",
    kinds: &[COUNT, KIND, STUCK, CRASH, LEAK],
    short: 54,
    long: 2000,
    threads: 4,
    shoot,
};

const COUNT: &str = "wrong count";
const KIND: &str = "wrong kind";
const STUCK: &str = "not ended";
const CRASH: &str = "crash";
const LEAK: &str = "led elsewhere";

/// Tries of a case: one, and two more.
const TRIES: u64 = 3;

/// Kinds of backends, and what else they need.
const DIALECTS: [(&str, &str); 9] = [
    ("openai", ""),
    ("openai-responses", ""),
    ("anthropic", ""),
    ("ollama", ""),
    ("gemini", ""),
    ("azure", ""),
    ("bedrock", ""),
    ("vertex", "/v1/projects/p/locations/l"),
    ("vertex-anthropic", "/v1/projects/p/locations/l"),
];

/// What has to come of a fault.
#[derive(Clone, Copy)]
enum Wanted {
    /// An error of one of these kinds that is not tried again.
    Once(&'static [&'static str]),
    /// An error of one of these kinds after all tries.
    Tried(&'static [&'static str]),
    /// An error of one of these kinds, after as many tries as make sense: a pause that is too long is none.
    Bounded(&'static [&'static str]),
    /// The right answer, after so many requests.
    Right(u64),
    /// No more requests than tries, and never a wrong answer that passes.
    Sane,
}

enum Attack {
    /// The server answers like this, always.
    Always(fn(&mut Rng) -> Answer),
    /// It answers like this once.
    First(fn(&mut Rng) -> Answer),
    /// What it answers is spoilt on the way.
    Mangled(Mangle),
}

struct Case {
    name: &'static str,
    attack: Attack,
    wanted: Wanted,
}

const fn always(name: &'static str, answer: fn(&mut Rng) -> Answer, wanted: Wanted) -> Case {
    Case { name, attack: Attack::Always(answer), wanted }
}

const fn first(name: &'static str, answer: fn(&mut Rng) -> Answer) -> Case {
    Case { name, attack: Attack::First(answer), wanted: Wanted::Right(2) }
}

const fn mangled(name: &'static str, mangle: Mangle, wanted: Wanted) -> Case {
    Case { name, attack: Attack::Mangled(mangle), wanted }
}

fn trouble(trouble: Trouble) -> Answer {
    Answer::fault(trouble)
}

fn limited(retry: RetryAfter) -> Answer {
    Answer::Fault(Fault::new(Trouble::RateLimit).retry(retry))
}

/// What a broken answer may be called.
const BROKEN: &[&str] = &["server", "network", "empty", "unknown"];

const CASES: &[Case] = &[
    always("400", |_| trouble(Trouble::BadRequest), Wanted::Once(&["bad_request"])),
    always("context length", |_| trouble(Trouble::ContextLength), Wanted::Once(&["too_large"])),
    always(
        "content policy",
        |_| trouble(Trouble::ContentPolicy),
        Wanted::Once(&["content_filter"]),
    ),
    always(
        "Azure's filter",
        |_| trouble(Trouble::AzureContentFilter),
        Wanted::Once(&["content_filter"]),
    ),
    always("401", |_| trouble(Trouble::BadKey), Wanted::Once(&["auth"])),
    always("403", |_| trouble(Trouble::Forbidden), Wanted::Once(&["auth"])),
    always("404", |_| trouble(Trouble::NoSuchModel), Wanted::Once(&["not_found"])),
    always("408", |_| trouble(Trouble::RequestTimeout), Wanted::Tried(&["timeout"])),
    always("413", |_| trouble(Trouble::TooLarge), Wanted::Once(&["too_large"])),
    always("429", |_| trouble(Trouble::RateLimit), Wanted::Tried(&["rate_limit"])),
    always("quota", |_| trouble(Trouble::Quota), Wanted::Once(&["quota"])),
    // Ollama's says that its runner died.
    always("500", |_| trouble(Trouble::Internal), Wanted::Tried(&["server", "crash"])),
    always("502", |_| trouble(Trouble::BadGateway), Wanted::Tried(&["server"])),
    always("503", |_| trouble(Trouble::Unavailable), Wanted::Tried(&["overloaded", "server"])),
    always(
        "503 while loading",
        |_| trouble(Trouble::Loading),
        Wanted::Tried(&["overloaded", "server"]),
    ),
    always("504", |_| trouble(Trouble::GatewayTimeout), Wanted::Tried(&["timeout"])),
    always("529", |_| trouble(Trouble::Overloaded), Wanted::Tried(&["overloaded"])),
    always("garbage", |_| Answer::Garbage, Wanted::Tried(BROKEN)),
    always("no body", |_| Answer::EmptyBody, Wanted::Tried(BROKEN)),
    always("no text", |_| Answer::EmptyText, Wanted::Tried(&["empty"])),
    always("reset", |_| Answer::Reset, Wanted::Tried(&["network"])),
    always("close", |_| Answer::Close, Wanted::Tried(&["network"])),
    always("half an answer", |_| Answer::Truncated, Wanted::Tried(BROKEN)),
    always("no answer", |_| Answer::Hang, Wanted::Tried(&["timeout"])),
    always("no body after the headers", |_| Answer::HangAfterHeaders, Wanted::Tried(&["timeout"])),
    always(
        "a byte at a time",
        |_| Answer::SlowBody { chunk: 1, every: Duration::from_millis(40) },
        Wanted::Tried(&["timeout"]),
    ),
    always("40 MiB", |_| Answer::HugeBody { bytes: 40 << 20 }, Wanted::Sane),
    always(
        "redirect",
        |random| Answer::Redirect {
            status: [301, 302, 303, 307, 308][random.usize(..5)],
            location: String::new(),
        },
        Wanted::Once(&["bad_request", "not_found", "unknown", "server", "network"]),
    ),
    always("a strange status", strange_status, Wanted::Sane),
    always("429 with any header", any_pause, Wanted::Bounded(&["rate_limit", "quota"])),
    first("429, Retry-After: 1", |_| limited(RetryAfter::Seconds(1))),
    first("429, Retry-After: 0", |_| limited(RetryAfter::Seconds(0))),
    first("429, retry-after-ms", |_| limited(RetryAfter::Millis(50))),
    first("429, a date", |_| limited(RetryAfter::Date(1))),
    first("429, the vendor's own header", |_| {
        limited(RetryAfter::Reset(Duration::from_millis(300)))
    }),
    first("500 once", |_| trouble(Trouble::Internal)),
    first("reset once", |_| Answer::Reset),
    first("cut once", |_| Answer::Truncated),
    first("nothing once", |_| Answer::EmptyText),
    mangled("as it is", Mangle::Nothing, Wanted::Right(1)),
    mangled("a byte order mark", Mangle::Mark, Wanted::Right(1)),
    mangled("gzip", Mangle::Gzip, Wanted::Right(1)),
    mangled("half of a gzip", Mangle::HalfGzip, Wanted::Tried(BROKEN)),
    mangled("gzip that is none", Mangle::FalseGzip, Wanted::Tried(BROKEN)),
    mangled("chunks of a byte", Mangle::TinyChunks, Wanted::Right(1)),
    mangled("a chunk that is none", Mangle::BadChunk, Wanted::Tried(BROKEN)),
    mangled("cut anywhere", Mangle::Cut, Wanted::Tried(BROKEN)),
    mangled("cut anywhere, its length told so", Mangle::ShortLength, Wanted::Sane),
    mangled("longer than it says", Mangle::LongBody, Wanted::Sane),
    mangled("another type", Mangle::OtherType, Wanted::Sane),
    mangled("a byte changed", Mangle::Flip, Wanted::Sane),
    mangled("a page before it", Mangle::Prefixed, Wanted::Sane),
    mangled("a header of 1 MiB", Mangle::LongHeader, Wanted::Sane),
    mangled("no HTTP", Mangle::NoHttp, Wanted::Tried(&["network"])),
];

/// A status that no vendor sends.
fn strange_status(random: &mut Rng) -> Answer {
    let status = [
        201, 204, 205, 206, 299, 304, 402, 405, 406, 409, 410, 418, 421, 422, 423, 424, 425, 426,
        428, 431, 451, 501, 505, 506, 507, 508, 511, 520, 521, 522, 523, 524, 525, 526, 530, 598,
        599,
    ][random.usize(..37)];
    let body = ["", "{}", "null", "<html>", "{\"error\":\"x\"}", "{\"error\":{\"message\":[1]}}"]
        [random.usize(..6)];
    Answer::Raw { status, headers: Vec::new(), body: body.to_owned() }
}

/// A pause in any form, also forms that no pause has.
fn any_pause(random: &mut Rng) -> Answer {
    const NAMES: [&str; 9] = [
        "retry-after",
        "retry-after-ms",
        "x-ratelimit-reset",
        "x-ratelimit-reset-requests",
        "x-ratelimit-reset-tokens",
        "anthropic-ratelimit-requests-reset",
        "anthropic-ratelimit-tokens-reset",
        "ratelimit-reset",
        "x-ms-retry-after-ms",
    ];
    const VALUES: [&str; 22] = [
        "",
        "0",
        "1",
        "-1",
        "0.2",
        "1e99",
        "NaN",
        "inf",
        "soon",
        "1s",
        "6m0s",
        "20ms",
        "1794908713",
        "1794908713000",
        "99999999999999999999999",
        "31536000",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "9999-12-31T23:59:59Z",
        "2026-11-17T10:00:00Z",
        "Thu, 32 Foo 2026",
        "1;w=60",
    ];
    let count = random.usize(1..4);
    let pair = |random: &mut Rng| {
        let (name, value) =
            (NAMES[random.usize(..NAMES.len())], VALUES[random.usize(..VALUES.len())]);
        (name.to_owned(), value.to_owned())
    };
    let headers = (0..count).map(|_| pair(random)).collect();
    Answer::Raw {
        status: 429,
        headers,
        body: r#"{"error":{"message":"too many requests"}}"#.to_owned(),
    }
}

fn shoot(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    // A round has every fault, and all dialects. Each round moves the dialects on by one; when they have been around, it is
    // streamed what was whole, and the other way round.
    let number = usize::try_from(shot.number).unwrap_or(0);
    let round = number / CASES.len();
    let case = &CASES[number % CASES.len()];
    let (kind, path) = DIALECTS[(number + round) % DIALECTS.len()];
    let stream = (number / DIALECTS.len() + round / DIALECTS.len()).is_multiple_of(2);
    let elsewhere = FakeServer::bind(Script::default(), 0)?;
    let mut said = String::new();
    let script = match &case.attack {
        Attack::Always(answer) => {
            let answer = aimed(spoken(answer(&mut shot.random), kind), &elsewhere);
            if let Answer::Raw { status, headers, body } = &answer {
                said = format!(" ({status} {headers:?} {body})");
            }
            Script::always(answer)
        }
        Attack::First(answer) => {
            let rule = Rule::new(When::Requests(1..2), answer(&mut shot.random));
            Script::default().rule(rule)
        }
        Attack::Mangled(_) => Script::default(),
    };
    let server = FakeServer::bind(script, 0)?;
    let (url, mangler) = match &case.attack {
        Attack::Mangled(mangle) => {
            let mangler = Mangler::start(server.url(), *mangle, shot.random.u64(..))?;
            (mangler.url.clone(), Some(mangler))
        }
        Attack::Always(_) | Attack::First(_) => (server.url(), None),
    };
    // What never ends has to be given up soon; nothing else may be, however busy the machine is.
    let never_ends = matches!(case.wanted, Wanted::Tried(&["timeout"]));
    let attempt = if never_ends { "700ms" } else { "30s" };
    let room = Room::new(lab)?.with("A_KEY", "sk-of-the-vendor-0123456789");
    room.write(
        "cases.jsonl",
        "{\"id\":\"a\",\"prompt\":\"Return the number 0\",\"expected_response\":\"0\"}\n",
    )?;
    room.write(
        "probity.toml",
        format!(
            "max_error_rate = 1.0\n[backends.b]\nkind = \"{kind}\"\nbase_url = \"{url}{path}\"\nmodel = \"m-1\"\n\
             api_key_env = \"A_KEY\"\nstream = {stream}\n[[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n\
             [retry]\nmax_retries = 2\nbackoff_base = 0.01\n[timeouts]\nattempt = \"{attempt}\"\n[pace]\nmax_pause = \"2s\"\n"
        ),
    )?;
    let ran = room.run(&["run", "--porcelain", "--no-fail-fast"])?;
    let asked = mangler.as_ref().map_or_else(|| server.seen().asked, Mangler::asked);
    let what = format!("{}{said}, {kind}{}", case.name, if stream { " streamed" } else { "" });
    shot.expect(!ran.is_late, STUCK, || what.clone());
    shot.expect(!ran.is_crash() && ran.code != Some(2), CRASH, || {
        format!("{what}: {}", ran.tail())
    });
    shot.expect(elsewhere.seen().requests == 0, LEAK, || what.clone());
    judge(case.wanted, asked, &ran, &Stored::of(&room)?, &what, shot);
    Ok(())
}

/// What a vendor says that has no error for it: Google and Bedrock tell of their filters in an answer.
fn spoken(answer: Answer, kind: &str) -> Answer {
    let Answer::Fault(Fault {
        trouble: Trouble::ContentPolicy | Trouble::AzureContentFilter, ..
    }) = &answer
    else {
        return answer;
    };
    match kind {
        "gemini" | "vertex" | "bedrock" => {
            Answer::Reply(Reply { finish: Finish::ContentFilter, ..Reply::default() })
        }
        _ => answer,
    }
}

/// A redirection leads to a server that must not be asked.
fn aimed(answer: Answer, elsewhere: &FakeServer) -> Answer {
    let Answer::Redirect { status, .. } = answer else { return answer };
    Answer::Redirect { status, location: format!("{}/v1/chat/completions", elsewhere.url()) }
}

/// What is kept of the case.
struct Stored {
    verdict: String,
    kind: String,
    reply: Value,
}

impl Stored {
    fn of(room: &Room<'_>) -> io::Result<Self> {
        let shown = room.run(&["show", "latest", "--json"])?;
        let case: Value = serde_json::from_str(shown.out.lines().next().unwrap_or_default())
            .map_err(|error| io::Error::other(format!("{error}: {}", shown.tail())))?;
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        Ok(Self {
            verdict: text(&case["verdict"]),
            kind: text(&case["error"]["kind"]),
            reply: case["raw_response"].clone(),
        })
    }
}

fn judge(wanted: Wanted, asked: u64, ran: &Ran, stored: &Stored, what: &str, shot: &mut Shot) {
    let Stored { verdict, kind, reply } = stored;
    let (count, kinds) = match wanted {
        Wanted::Once(kinds) => (1..=1, Some(kinds)),
        Wanted::Tried(kinds) => (TRIES..=TRIES, Some(kinds)),
        Wanted::Bounded(kinds) => (1..=TRIES, Some(kinds)),
        Wanted::Right(count) => (count..=count, None),
        Wanted::Sane => (1..=TRIES, None),
    };
    shot.expect(count.contains(&asked), COUNT, || {
        format!("{what}: {asked} requests, {kind} {verdict}")
    });
    let told = ran.key("TOTAL_CALLS").and_then(|it| it.parse::<u64>().ok());
    shot.expect(told == Some(asked), COUNT, || format!("{what}: {told:?} told, {asked} made"));
    match (wanted, kinds) {
        (Wanted::Right(_), _) => {
            shot.expect(verdict == "pass", KIND, || format!("{what}: {verdict} {kind} {reply}"));
        }
        (_, Some(kinds)) => {
            let is_wanted = kinds.contains(&kind.as_str()) && verdict == "error";
            // A filter's word is a refusal, and no error.
            let is_filtered = kinds == ["content_filter"] && verdict == "fail";
            shot.expect(is_wanted || is_filtered, KIND, || {
                format!("{what}: {verdict} {kind}, {reply}")
            });
        }
        (_, None) => {
            let is_right = verdict != "pass" || reply == "0";
            shot.expect(is_right, KIND, || format!("{what}: {reply} passes"));
        }
    }
}
