//! What trying version 0.1 brought to light, one check each, as far as no other campaign is about it.

mod answers;
mod attacks;
mod burdens;
mod commands;
mod figures;
mod imports;
mod refused;
mod shown;
mod verdicts;

use std::{
    io, thread,
    time::{Duration, Instant},
};

use probity_testkit::{Answer, FakeServer, Rule, Script, Trouble, When};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    Campaign, Shot,
    kills::outcome,
    room::{Lab, Ran, Room},
};

pub(super) const CAMPAIGN: Campaign = Campaign {
    name: "findings",
    about: "what did not hold in version 0.1, a check for each that is not part of another campaign",
    kinds: &["came back"],
    short: count(),
    long: count(),
    threads: 4,
    shoot,
};

type Check = fn(&mut Trial<'_>) -> io::Result<()>;

/// Number, name and check. Those that take long come first, so that others are made meanwhile.
const TOPICS: [&[(&str, Check)]; 9] = [
    burdens::CHECKS,
    verdicts::CHECKS,
    answers::CHECKS,
    figures::CHECKS,
    shown::CHECKS,
    refused::CHECKS,
    commands::CHECKS,
    imports::CHECKS,
    attacks::CHECKS,
];

const fn count() -> u64 {
    let (mut count, mut at) = (0, 0);
    while at < TOPICS.len() {
        count += TOPICS[at].len() as u64;
        at += 1;
    }
    count
}

fn shoot(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    let (name, check) = *shot.in_turn(&TOPICS.concat());
    let mut trial =
        Trial { room: Room::new(lab)?, model: FakeServer::bind(usual(), 0)?, wrong: None };
    check(&mut trial)?;
    if let Some(wrong) = trial.wrong {
        shot.find("came back", format!("{name}: {wrong}"));
    }
    Ok(())
}

/// A model that says the last word of its prompt, but for some words.
fn usual() -> Script {
    let reply = json!({ "choices": [{ "message": { "role": "assistant", "content": "marked" } }] });
    let rules = [
        ("fails", Answer::fault(Trouble::Internal)),
        ("tool", Answer::call("lookup", json!({}))),
        ("never", Answer::Hang),
        ("huge", Answer::text(&"x".repeat(4 << 20))),
        ("with a mark", Answer::json(&format!("\u{feff}{reply}"))),
    ];
    let rules =
        rules.into_iter().map(|(word, answer)| Rule::new(When::prompt_contains(word), answer));
    rules.fold(Script::default(), Script::rule)
}

/// A room and a model, and what is wrong if something is.
struct Trial<'a> {
    room: Room<'a>,
    model: FakeServer,
    wrong: Option<String>,
}

impl Trial<'_> {
    fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds && self.wrong.is_none() {
            self.wrong = Some(what());
        }
    }

    fn code(&mut self, ran: &Ran, code: i32) {
        self.expect(ran.code == Some(code), || format!("{} instead of {code}", ran.tail()));
    }

    /// Another model takes the place of the usual one; only suites that are written after that ask it.
    fn answers(&mut self, script: Script) -> io::Result<()> {
        self.model = FakeServer::bind(script, 0)?;
        Ok(())
    }

    /// A suite that asks the model the lines of a dataset.
    fn suite(&self, cases: &str, more: &str) -> io::Result<()> {
        let url = self.model.url();
        self.room.write("cases.jsonl", cases)?;
        self.room.write(
            "probity.toml",
            format!(
                "[backends.b]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"m\"\n[[runners]]\nname = \"r\"\n\
                 dataset = \"cases.jsonl\"\n{more}\n"
            ),
        )
    }

    /// Changes the suite.
    fn change(&self, from: &str, to: &str) -> io::Result<()> {
        self.room.write("probity.toml", self.room.read("probity.toml").replace(from, to))
    }

    fn run(&self, words: &[&str]) -> io::Result<Ran> {
        self.room.run(&[&["run", "--porcelain"], words].concat())
    }

    /// Runs, and presses Ctrl-C when the model was asked so often.
    fn interrupted(&self, words: &[&str], asked: u64) -> io::Result<Ran> {
        let words = [&["run", "--porcelain"], words].concat();
        let running = self.room.start(self.room.command(&words))?;
        wait_until(|| self.model.seen().asked >= asked);
        running.signal(Signal::INT);
        running.end()
    }

    /// What is stored of the latest run.
    fn stored(&self) -> io::Result<Vec<Value>> {
        outcome::stored(&self.room)
    }

    /// The first case of that; null if there is none.
    fn first(&self) -> io::Result<Value> {
        Ok(self.stored()?.into_iter().next().unwrap_or_default())
    }

    /// The report that a run was to write to `r.json`; null if it did not.
    fn report(&self) -> Value {
        serde_json::from_str(&self.room.read("r.json")).unwrap_or_default()
    }

    /// The names of two runs, the latest first.
    fn two_runs(&self) -> io::Result<[String; 2]> {
        let listed = self.room.run(&["runs", "--json"])?.out;
        let names: Vec<String> = listed
            .lines()
            .filter_map(|line| {
                serde_json::from_str::<Value>(line).ok()?["run_id"].as_str().map(str::to_owned)
            })
            .collect();
        names.try_into().map_err(|names| io::Error::other(format!("{names:?} instead of two runs")))
    }
}

const GATE: &str = "[runners.gates]\npass_rate = 1.0\n";

/// A case whose answer is the last word of its prompt.
fn case(id: &str, prompt: &str, expected: &str) -> String {
    format!("{}\n", json!({ "id": id, "prompt": prompt, "expected_response": expected }))
}

/// All that a command said.
fn said(ran: &Ran) -> String {
    format!("{}{}", ran.out, ran.err)
}

/// Waits for something that is about to happen.
fn wait_until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() && begun.elapsed() < Duration::from_mins(1) {
        thread::sleep(Duration::from_millis(10));
    }
}
