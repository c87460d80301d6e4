//! Kills and signals at random moments over every command that writes.
//!
//! After each, what was finished is not asked again, no file is half written, no process and no temporary folder stays; and once the
//! command was given again, everything is as if nothing had happened.

mod hub;
pub(super) mod outcome;
pub(super) mod scenes;
mod view;

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use probity_testkit::{Answer, FakeServer, Latency, Rule, Script, When};
use rustix::process::Signal;

use super::{
    Campaign, Shot,
    room::{Lab, Ran, Room, Running},
};
use scenes::{SCENES, Scene};

pub(super) const CAMPAIGN: Campaign = Campaign {
    name: "kills",
    about: "kill -9, SIGTERM and Ctrl-C at random moments of every command that writes",
    kinds: &[
        "lost",
        "counted twice",
        "asked again",
        "differing",
        "half written",
        "left behind",
        "not ended",
    ],
    short: SCENES.len() as u64 + 1,
    long: 2000,
    threads: 4,
    shoot,
};

const LOST: &str = "lost";
const TWICE: &str = "counted twice";
const AGAIN: &str = "asked again";
const DIFFERING: &str = "differing";
const HALF: &str = "half written";
const LEFT: &str = "left behind";
const STUCK: &str = "not ended";

/// As long as a person waits after Ctrl-C without thinking that something is wrong, on a machine that does more than this.
const PROMPTLY: Duration = Duration::from_secs(15);

/// How a command is hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    Kill,
    Term,
    Interrupt,
    InterruptTwice,
}

pub(super) const HITS: [Hit; 4] = [Hit::Kill, Hit::Term, Hit::Interrupt, Hit::InterruptTwice];

/// A room, and the model that is asked from there.
pub(super) struct Stand<'a> {
    pub(super) room: Room<'a>,
    pub(super) model: FakeServer,
}

impl<'a> Stand<'a> {
    pub(super) fn new(lab: &'a Lab) -> io::Result<Self> {
        // Most answers are right.
        let wrong = Rule::new(When::prompt_contains("7"), Answer::text("wrong"));
        let latency = Latency { fixed: Duration::from_millis(2), jitter: Duration::from_millis(6) };
        let script = Script { latency, ..Script::default().rule(wrong) };
        let hub = hub::address();
        let room = Room::new(lab)?.with("PROBITY_MODELS", "models");
        let room = room.with("HF_ENDPOINT", hub).with("PIP_INDEX_URL", hub);
        Ok(Self { room, model: FakeServer::bind(script, 0)? })
    }
}

/// How a scene goes when nobody disturbs it.
struct Reference {
    took: Duration,
    code: Option<i32>,
    outcome: String,
    files: BTreeMap<&'static str, String>,
}

impl Reference {
    fn make(lab: &Lab, scene: &Scene) -> io::Result<Self> {
        let stand = Stand::new(lab)?;
        (scene.prepare)(&stand)?;
        let asked = stand.model.seen().asked;
        let ran = stand.room.run(scene.words)?;
        if !matches!(ran.code, Some(0 | 1)) {
            return Err(io::Error::other(format!("{} undisturbed: {}", scene.name, ran.tail())));
        }
        let asked = stand.model.seen().asked - asked;
        if asked != scene.calls {
            return Err(io::Error::other(format!("{} undisturbed asked {asked}", scene.name)));
        }
        let files = scene.files.iter().map(|it| (*it, outcome::of_file(&stand, it))).collect();
        let outcome = (scene.outcome)(&stand)?;
        Ok(Self { took: ran.took, code: ran.code, outcome, files })
    }

    /// That of a scene, made once.
    fn of(lab: &Lab, scene: usize) -> io::Result<Arc<Self>> {
        static MADE: [OnceLock<Result<Arc<Reference>, String>>; SCENES.len()] =
            [const { OnceLock::new() }; SCENES.len()];
        let make = || Self::make(lab, &SCENES[scene]).map(Arc::new).map_err(|it| it.to_string());
        MADE[scene].get_or_init(make).clone().map_err(io::Error::other)
    }
}

fn shoot(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    let at = usize::try_from(shot.number).unwrap_or(0) % (SCENES.len() + 1);
    let Some(scene) = SCENES.get(at) else { return view::shoot(lab, shot) };
    let reference = match Reference::of(lab, at) {
        Err(error) if error.to_string().contains("--features parquet") => {
            shot.skip("built without the feature parquet");
            return Ok(());
        }
        made => made?,
    };
    let stand = Stand::new(lab)?;
    (scene.prepare)(&stand)?;
    let mut aim = Aim { scene, stand: &stand, reference: &reference, durable: BTreeMap::new() };
    // What takes it up again may be hit as well.
    let hits: u32 = if shot.random.u8(..4) == 0 { 2 } else { 1 };
    for _ in 0..hits {
        aim.hit(shot)?;
    }
    aim.finish(shot)?;
    // At each hit a call may have been under way, or its answer not yet on disk.
    let mut counts = stand.model.seen().prompts;
    counts.retain(|_, count| *count > hits + 1);
    shot.expect(counts.is_empty() || scene.calls == 0, AGAIN, || {
        format!("{}: {counts:?}", scene.name)
    });
    Ok(())
}

struct Aim<'a> {
    scene: &'a Scene,
    stand: &'a Stand<'a>,
    reference: &'a Reference,
    /// What was on disk after the last hit: how often each prompt had been sent.
    durable: BTreeMap<String, u32>,
}

impl Aim<'_> {
    /// The words that begin the work, or take it up again.
    fn words(&self) -> &'static [&'static str] {
        match (self.scene.again, outcome::has_run(&self.stand.room)) {
            (Some(again), true) => again,
            _ => self.scene.words,
        }
    }

    fn hit(&mut self, shot: &mut Shot) -> io::Result<()> {
        let room = &self.stand.room;
        let hit = *shot.choose(&HITS);
        let after = self.reference.took.mul_f64(shot.random.f64() * 1.1);
        let what = format!("{}, {hit:?} after {after:?}", self.scene.name);
        let left = [room.partials(), room.temporary()].concat();
        let mut running = room.start(room.command(self.words()))?;
        if running.ends_within(after)?.is_none() {
            strike(hit, &running, shot);
        }
        let ran = end(running, self.reference.took, &what, shot)?;
        self.inspect(&ran, &what, shot);
        if hit != Hit::Kill && ran.signal.is_none() {
            // What kill -9 leaves is taken away by a later start.
            let mut new = room.partials();
            // Nor does the second Ctrl-C wait for programs, which may be in their folders.
            if hit != Hit::InterruptTwice {
                new.extend(room.temporary());
            }
            new.retain(|it| !left.contains(it));
            shot.expect(new.is_empty(), LEFT, || format!("{what}: {}", new.join(" ")));
        }
        self.remember(&what, shot)
    }

    /// What may not be there after a hit.
    fn inspect(&self, ran: &Ran, what: &str, shot: &mut Shot) {
        let room = &self.stand.room;
        let is_known = match ran.code {
            Some(code) => {
                [Some(code) == self.reference.code, code == 3, code == 130].contains(&true)
            }
            // It had not begun to listen.
            None => true,
        };
        shot.expect(is_known && !ran.is_crash(), DIFFERING, || format!("{what}: {}", ran.tail()));
        let orphans = room.orphans();
        shot.expect(orphans.is_empty(), LEFT, || format!("{what}: {}", orphans.join("; ")));
        for file in self.scene.files {
            let is_whole = outcome::is_whole(&room.path(file));
            shot.expect(is_whole, HALF, || format!("{what}: {file} is not whole"));
        }
    }

    /// Takes note of what is on disk. What was there at the hit before has to be there still, and was not asked for again.
    fn remember(&mut self, what: &str, shot: &mut Shot) -> io::Result<()> {
        if !self.scene.resumes {
            return Ok(());
        }
        let stored = outcome::stored(&self.stand.room)?;
        let seen = self.stand.model.seen();
        for (prompt, count) in &self.durable {
            let is_there = stored.iter().any(|it| it["prompt"] == **prompt);
            shot.expect(is_there, LOST, || format!("{what}: the answer to {prompt:?} is gone"));
            shot.expect(seen.prompt(prompt) == *count, AGAIN, || format!("{what}: {prompt:?}"));
        }
        let prompts = stored.iter().filter_map(|it| it["prompt"].as_str());
        self.durable = prompts.map(|it| (it.to_owned(), seen.prompt(it))).collect();
        Ok(())
    }

    /// Gives the command once more, and compares with what comes out undisturbed.
    fn finish(&mut self, shot: &mut Shot) -> io::Result<()> {
        let (room, reference) = (&self.stand.room, self.reference);
        let what = format!("{}, taken up again", self.scene.name);
        let ran = room.run(self.words())?;
        shot.expect(!ran.is_late, STUCK, || what.clone());
        shot.expect(ran.code == reference.code, DIFFERING, || format!("{what}: {}", ran.tail()));
        self.remember(&what, shot)?;
        if self.scene.resumes {
            let stored = outcome::stored(room)?;
            let twice = outcome::repeated(&stored);
            shot.expect(twice.is_empty(), TWICE, || format!("{what}: {twice:?}"));
        }
        let outcome = (self.scene.outcome)(self.stand)?;
        if let Some(differing) = outcome::difference(&reference.outcome, &outcome) {
            let missing = outcome.lines().count() < reference.outcome.lines().count();
            shot.find(if missing { LOST } else { DIFFERING }, format!("{what}: {differing}"));
        }
        for (file, text) in &reference.files {
            let differing = outcome::difference(text, &outcome::of_file(self.stand, file));
            if let Some(differing) = differing {
                shot.find(DIFFERING, format!("{what}: {file}: {differing}"));
            }
        }
        if !room.temporary().is_empty() {
            // They are not taken away before they are a minute old, and by somebody who needs one.
            room.age_temporary()?;
            room.write(
                "other/cases.jsonl",
                "{\"id\":\"a\",\"prompt\":\"a\",\"expected_response\":\"a\"}\n",
            )?;
            room.write("other/probity.toml", scenes::of_program("cat"))?;
            room.prepare(&["run", "-q", "other/probity.toml"])?;
        }
        let left = [room.partials(), room.orphans(), room.temporary()].concat();
        shot.expect(left.is_empty(), LEFT, || format!("{what}: {}", left.join(" ")));
        Ok(())
    }
}

pub(super) fn strike(hit: Hit, running: &Running, shot: &mut Shot) {
    match hit {
        Hit::Kill => running.signal(Signal::KILL),
        Hit::Term => running.signal(Signal::TERM),
        Hit::Interrupt => running.signal(Signal::INT),
        Hit::InterruptTwice => {
            running.signal(Signal::INT);
            std::thread::sleep(Duration::from_millis(shot.random.u64(0..40)));
            running.signal(Signal::INT);
        }
    }
}

/// Waits for the end of what was hit, which has to be soon.
pub(super) fn end(
    running: Running,
    usual: Duration,
    what: &str,
    shot: &mut Shot,
) -> io::Result<Ran> {
    let begun = std::time::Instant::now();
    let ran = running.end()?;
    // Where everything takes long, so does this.
    let is_soon = begun.elapsed() < PROMPTLY + usual * 5;
    shot.expect(is_soon, STUCK, || format!("{what}: {:?}", begun.elapsed()));
    Ok(ran)
}
