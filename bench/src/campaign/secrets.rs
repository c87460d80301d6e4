//! Keys that come back: plain, escaped, encoded, in pieces, from servers and programs, in replies, errors and headers. None is found
//! in any file, report or line that is printed.

use std::{fmt::Write as _, fs, io};

use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use fastrand::Rng;
use probity_testkit::{Answer, FakeServer, Reply, Script, Text};
use serde_json::Value;

use super::{
    Campaign, Shot,
    room::{Lab, Room, walk},
};

pub(super) const CAMPAIGN: Campaign = Campaign {
    name: "secrets",
    about: "keys that servers and programs repeat in every form: found in no store, report, event or line",
    kinds: &[FOUND, CRASH],
    short: 18,
    long: 2000,
    threads: 4,
    shoot,
};

const FOUND: &str = "found";
const CRASH: &str = "crash";

/// A way to write a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    Json,
    JsonTwice,
    Unicode,
    Percent,
    Base64,
    Base64Url,
    Hex,
    UpperHex,
}

const FORMS: [Form; 9] = [
    Form::Plain,
    Form::Json,
    Form::JsonTwice,
    Form::Unicode,
    Form::Percent,
    Form::Base64,
    Form::Base64Url,
    Form::Hex,
    Form::UpperHex,
];

impl Form {
    fn of(self, key: &str) -> String {
        let json = |text: &str| Value::from(text).to_string().trim_matches('"').to_owned();
        match self {
            Self::Plain => key.to_owned(),
            Self::Json => json(key),
            Self::JsonTwice => json(&json(key)),
            Self::Unicode => key.encode_utf16().fold(String::new(), |mut text, unit| {
                let _ = write!(text, "\\u{unit:04x}");
                text
            }),
            Self::Percent => key.bytes().fold(String::new(), |mut text, byte| {
                match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                        text.push(char::from(byte));
                    }
                    byte => {
                        let _ = write!(text, "%{byte:02X}");
                    }
                }
                text
            }),
            Self::Base64 => BASE64.encode(key.as_bytes()),
            Self::Base64Url => BASE64URL_NOPAD.encode(key.as_bytes()),
            Self::Hex => HEXLOWER.encode(key.as_bytes()),
            Self::UpperHex => HEXUPPER.encode(key.as_bytes()),
        }
    }
}

fn key(random: &mut Rng) -> String {
    const PLAIN: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const OTHERS: &[u8] = b"+/=-_.~\"\\&<>'%$#!?*:";
    let length = random.usize(8..48);
    let odd = random.bool();
    let mut draw = |_| match odd && random.u8(..4) == 0 {
        true => char::from(OTHERS[random.usize(..OTHERS.len())]),
        false => char::from(PLAIN[random.usize(..PLAIN.len())]),
    };
    // Begins and ends like a key: what surrounds it is none of it.
    format!("sk{}Z", (0..length).map(&mut draw).collect::<String>())
}

fn shoot(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    let key = key(&mut shot.random);
    let form = *shot.in_turn(&FORMS);
    let echoed = form.of(&key);
    let place = shot.random.u8(..8);
    let room = Room::new(lab)?.with("A_KEY", &key);
    let kinds = ["openai", "openai-responses", "anthropic", "gemini", "ollama", "azure"];
    let kind = *shot.choose(&kinds);
    let stream = shot.random.bool();
    let reply = Reply { text: Text::Fixed(format!("the key is {echoed} so")), ..Reply::default() };
    let raw = |status: u16, headers: Vec<(String, String)>, body: String| Answer::Raw {
        status,
        headers,
        body,
    };
    let quoted = Value::from(format!("bad key {echoed} given")).to_string();
    let answer = match place {
        0 | 1 => Answer::Reply(reply),
        2 => raw(401, Vec::new(), format!("{{\"error\":{{\"message\":{quoted}}}}}")),
        3 => raw(500, Vec::new(), format!("<html>{echoed}</html>")),
        4 => raw(
            400,
            vec![("x-request-id".to_owned(), header(&echoed))],
            format!("{{\"error\":{quoted}}}"),
        ),
        5 => Answer::Redirect {
            status: 307,
            location: format!("http://127.0.0.1:1/?key={}", header(&echoed)),
        },
        _ => raw(200, Vec::new(), format!("no JSON, but {echoed}")),
    };
    let server = FakeServer::bind(Script::always(answer), 0)?;
    let by_program = place == 7 || shot.random.u8(..4) == 0;
    room.write(
        "cases.jsonl",
        "{\"id\":\"a\",\"prompt\":\"Return the number 0\",\"expected_response\":\"0\"}\n",
    )?;
    room.write("echoed", &echoed)?;
    let place_of_echo = room.path("echoed").display().to_string();
    let backend = match by_program {
        true => format!(
            "kind = \"command\"\nenv = [\"A_KEY\"]\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; cat {place_of_echo}; cat {place_of_echo} >&2; exit {}\"]",
            shot.random.u8(..2)
        ),
        false => format!(
            "kind = \"{kind}\"\nbase_url = \"{}\"\nmodel = \"m\"\napi_key_env = \"A_KEY\"\nstream = {stream}",
            server.url()
        ),
    };
    room.write(
        "probity.toml",
        format!("max_error_rate = 1.0\n[backends.b]\n{backend}\n[[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n[retry]\nmax_retries = 1\nbackoff_base = 0.01\n"),
    )?;
    let what = format!(
        "{form:?} in {}",
        if by_program {
            "what a program says".to_owned()
        } else {
            format!("place {place} of {kind}")
        }
    );
    let reports = ["r.json", "r.jsonl", "r.csv", "r.xml", "r.html", "r.md"];
    let mut words =
        vec!["run", "--no-fail-fast", "--cache", "--events", "e.jsonl", "--record", "rec.jsonl"];
    words.extend(reports.iter().flat_map(|it| ["-o", it]));
    let ran = room.run(&words)?;
    shot.expect(!ran.is_crash() && ran.code != Some(2), CRASH, || {
        format!("{what}: {}", ran.tail())
    });
    for words in [
        &["show", "latest", "a"][..],
        &["show", "latest", "--json"],
        &["gate"],
        &["doctor", "--call"],
    ] {
        room.run(words)?;
    }
    fs::remove_file(room.path("echoed"))?;
    // Whatever form it came in, it is in none of them: what is made of it may be another.
    let mut files = Vec::new();
    walk(room.root(), &mut |path| files.push(path.to_owned()));
    for file in files.into_iter().filter(|it| it.is_file()) {
        let bytes = fs::read(&file)?;
        for form in FORMS {
            let wanted = form.of(&key);
            if bytes.windows(wanted.len()).any(|it| it == wanted.as_bytes()) {
                let name = file.strip_prefix(room.root()).unwrap_or(&file).display().to_string();
                shot.find(FOUND, format!("{what}: {form:?} of {key} in {name}"));
                break;
            }
        }
    }
    Ok(())
}

/// What a header can hold.
fn header(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).collect()
}
