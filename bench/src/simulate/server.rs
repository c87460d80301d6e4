//! Servers of a world, and what is known of the calls that they get.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use probity_core::{
    record::{CacheKind, InputDigest},
    request::Message,
};
use probity_run::{
    backend::{Answers, Ask},
    clock::wall_ms,
    simulated::{Bytes, HttpError, HttpResponse, Sending, Server, http::Response},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    session::Fate,
    world::{Fault, Lane, Place, Truth, World},
};

/// What lasts longer than a process: the servers, the cache, and what is known of both.
#[derive(Debug)]
pub(crate) struct Outside {
    pub(crate) world: World,
    known: Mutex<Known>,
    /// How the process that runs now ends.
    pub(crate) fate: Fate,
    /// What is wrong with the world, to see that it is noticed.
    pub(crate) defect: Option<Defect>,
}

/// What is wrong with a world: then what must be true of its runs is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// The disk forgets what it said was written.
    Disk,
    /// Calls are not counted before they are made.
    Counts,
    /// Servers answer as they like.
    Answers,
}

/// What is known of the calls so far.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// How often each question was asked.
    asked: BTreeMap<String, usize>,
    /// Calls that began, by runner, and those of lanes whose answers nobody compares.
    pub(crate) calls: BTreeMap<String, u64>,
    pub(crate) tokens: u64,
    in_flight: BTreeMap<String, u64>,
    /// Results that are on the disk, and those of them that are errors.
    pub(crate) durable: BTreeMap<Place, bool>,
    /// Results that somebody was told of.
    pub(crate) visible: BTreeSet<Place>,
    /// Whether results that are errors may be asked again.
    pub(crate) retries_errors: bool,
    /// What must not have happened.
    pub(crate) wrong: Vec<String>,
    /// When the first process began.
    pub(crate) begun: Option<Instant>,
    /// Time that passed in earlier processes.
    pub(crate) before: Duration,
    cache: BTreeMap<(CacheKind, InputDigest), String>,
    /// What a kill would take.
    unkept: BTreeMap<(CacheKind, InputDigest), String>,
}

impl Outside {
    pub(crate) fn new(world: World, defect: Option<Defect>) -> Self {
        Self { world, known: Mutex::default(), fate: Fate::default(), defect }
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process ended: calls in flight are gone, and what the cache had not written if it was killed.
    pub(crate) fn process_ended(&self, was_killed: bool) {
        let mut known = self.known();
        known.in_flight.clear();
        let unkept = std::mem::take(&mut known.unkept);
        if !was_killed {
            known.cache.extend(unkept);
        }
    }

    /// Time stands still until the next process begins.
    pub(crate) fn stop_clock(&self) {
        let now = self.now();
        let mut known = self.known();
        known.begun = None;
        known.before = now;
    }

    /// How long it is since the first process began.
    fn now(&self) -> Duration {
        let known = self.known();
        known.before + known.begun.map(|it| it.elapsed()).unwrap_or_default()
    }
}

/// A server of the world.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) name: String,
    pub(crate) outside: Arc<Outside>,
}

/// A call in flight, which may be dropped halfway.
struct Flight<'a>(&'a Backend);

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.0.outside.known().in_flight.get_mut(&self.0.name) {
            *count = count.saturating_sub(1);
        }
    }
}

/// What is asked.
struct Question {
    /// The results that it is about: one, or those that are compared.
    about: Vec<Place>,
    is_judgement: bool,
    key: String,
}

impl Backend {
    /// What a request asks: a case, or a judge's opinion of answers.
    fn question(&self, ask: &Ask<'_>) -> Option<Question> {
        let text: String = ask.request.messages.iter().map(Message::joined).collect();
        let mut answers: Vec<Place> = between(&text, "[[", "]]").filter_map(Place::parse).collect();
        answers.sort();
        answers.dedup();
        if !answers.is_empty() {
            let keys: Vec<String> = answers.iter().map(Place::key).collect();
            let key = format!("{} judges {}", self.name, keys.join(", "));
            return Some(Question { about: answers, is_judgement: true, key });
        }
        let (runner, case) = between(&text, "<<", ">>").next()?.split_once(' ')?;
        let variant = text.split_once(' ').map(|it| it.0).filter(|it| it.starts_with('v'));
        let lane = Lane {
            runner: runner.to_owned(),
            variant: variant.unwrap_or_default().to_owned(),
            backend: self.name.clone(),
        };
        let place = Place { lane, case: case.to_owned(), repeat: ask.repeat };
        let key = place.key();
        Some(Question { about: vec![place], is_judgement: false, key })
    }

    async fn answer(&self, ask: &Ask<'_>) -> Result<HttpResponse, HttpError> {
        let Outside { world, fate, .. } = &*self.outside;
        let Some(question) = self.question(ask) else {
            let text = ask.request.prompt().to_owned();
            self.outside.known().wrong.push(format!("nobody knows who asks {text:?}"));
            return pending().await;
        };
        if fate.is_dead() {
            return pending().await;
        }
        let nth = self.begin(&question);
        let _flight = Flight(self);
        fate.tick();
        if fate.is_dead() {
            return pending().await;
        }
        let truth = (!question.is_judgement).then(|| world.truth(&question.key));
        let fault = match truth {
            Some(Truth::Error(fault)) => Some(fault),
            Some(Truth::Right | Truth::Wrong | Truth::Refused | Truth::Blocked) | None => {
                world.fault(&question.key, nth)
            }
        };
        let fault = if self.is_out() { Some(Fault::Overloaded) } else { fault };
        if fault == Some(Fault::NoFiles) {
            // Nobody heard of it, which is known at once.
            self.take_back(&question);
            return fail(Fault::NoFiles).await;
        }
        sleep(world.latency(&question.key, nth)).await;
        fate.tick();
        match (fault, truth) {
            (Some(fault), _) => fail(fault).await,
            (None, Some(truth)) => Ok(self.say(&question, truth)),
            (None, None) => Ok(self.judge(&question, ask)),
        }
    }

    /// Counts a call that begins, and looks whether it may.
    fn begin(&self, question: &Question) -> usize {
        let World { backends, max_concurrency, .. } = &self.outside.world;
        let mut known = self.outside.known();
        let known = &mut *known;
        let own = known.in_flight.entry(self.name.clone()).or_default();
        *own += 1;
        let most = backends.iter().find(|it| it.0 == self.name).map_or(0, |it| it.1);
        if *own > most {
            known.wrong.push(format!("{own} calls of {} in flight, {most} allowed", self.name));
        }
        let all: u64 = known.in_flight.values().sum();
        if all > *max_concurrency {
            known.wrong.push(format!("{all} calls in flight, {max_concurrency} allowed"));
        }
        for place in &question.about {
            // Answers that are compared have to be there together.
            let is_alone = question.about.len() == 1
                && self
                    .outside
                    .world
                    .runner(&place.lane.runner)
                    .is_some_and(|it| !it.is_compared());
            match known.durable.get(place) {
                Some(is_error) if is_alone && !(*is_error && known.retries_errors) => {
                    let key = &question.key;
                    known.wrong.push(format!("{key}: asked again, although its result is there"));
                }
                Some(_) | None => {}
            }
        }
        let runner = question.about[0].lane.runner.clone();
        *known.calls.entry(runner).or_default() += 1;
        let nth = known.asked.entry(question.key.clone()).or_default();
        *nth += 1;
        *nth - 1
    }

    fn take_back(&self, question: &Question) {
        let runner = &question.about[0].lane.runner;
        if let Some(calls) = self.outside.known().calls.get_mut(runner) {
            *calls -= 1;
        }
    }

    /// Whether it gives no answers at the moment.
    fn is_out(&self) -> bool {
        let World { backends, outages, .. } = &self.outside.world;
        let now = self.outside.now();
        let mut own = outages.iter().filter(|it| backends[it.0].0 == self.name);
        own.any(|(_, from, length)| now >= *from && now < *from + *length)
    }

    fn say(&self, question: &Question, truth: Truth) -> HttpResponse {
        let key = &question.key;
        let text = match truth {
            Truth::Right if self.outside.defect == Some(Defect::Answers) => {
                // Another one in each process.
                let is_first = self.outside.known().before.is_zero();
                format!("{} [[{key}]]", if is_first { "yes" } else { "no" })
            }
            Truth::Right => format!("yes [[{key}]]"),
            Truth::Wrong => format!("no [[{key}]]"),
            Truth::Refused => format!("I'm sorry, but I can't help with that. [[{key}]]"),
            Truth::Blocked | Truth::Error(_) => {
                let message = "The response was filtered due to the content management policy.";
                let error = json!({ "error": { "code": "content_filter", "message": message } });
                return response(400, &[], &error.to_string());
            }
        };
        self.message(&text)
    }

    fn judge(&self, question: &Question, ask: &Ask<'_>) -> HttpResponse {
        let text = match ask.request.prompt().contains("\"best\"") {
            true => json!({ "reason": "", "best": 1 }),
            false => {
                let score = if self.outside.world.is_content(&question.key) { 5 } else { 1 };
                json!({ "criteria": [{ "name": "rubric", "score": score, "reason": "" }] })
            }
        };
        self.message(&text.to_string())
    }

    fn message(&self, text: &str) -> HttpResponse {
        self.outside.known().tokens += TOKENS;
        let body = json!({
            "id": "x",
            "choices": [{ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": TOKENS - 5, "completion_tokens": 5 },
        });
        response(200, &[], &body.to_string())
    }
}

/// What each answer says that it took.
pub(crate) const TOKENS: u64 = 12;

impl Server for Backend {
    fn answer<'a>(&'a self, ask: &'a Ask<'a>) -> Sending<'a> {
        Box::pin(self.answer(ask))
    }
}

/// What a server does that does not answer.
async fn fail(fault: Fault) -> Result<HttpResponse, HttpError> {
    let io = |kind: io::ErrorKind| HttpError::Simulated(kind.into());
    let error = |text: &str| json!({ "error": { "message": text } }).to_string();
    let limited = |headers: &[(&str, String)], text: &str| response(429, headers, &error(text));
    Ok(match fault {
        Fault::Limit => limited(&[], "Rate limit reached"),
        Fault::LimitSeconds(wait) => {
            limited(&[("retry-after", wait.to_string())], "Rate limit reached")
        }
        Fault::LimitMillis(wait) => {
            limited(&[("retry-after-ms", wait.to_string())], "Rate limit reached")
        }
        Fault::LimitDate(wait) => {
            let then = wall_ms() + i64::try_from(wait).unwrap_or(0) * 1000;
            limited(&[("retry-after", date(then))], "Rate limit reached")
        }
        Fault::LimitSentence(wait) => {
            limited(&[], &format!("Rate limit reached. Please try again in {wait}s."))
        }
        Fault::Broken => response(500, &[], &error("internal error")),
        Fault::BadGateway => response(502, &[], "<html><h1>502 Bad Gateway</h1></html>"),
        Fault::Overloaded => response(503, &[], &error("The engine is currently overloaded")),
        Fault::Hangs => return pending().await,
        Fault::Refused => return Err(io(io::ErrorKind::ConnectionRefused)),
        Fault::Reset => return Err(io(io::ErrorKind::ConnectionReset)),
        Fault::Cut => {
            let pieces = vec![
                Ok(Bytes::from_static(b"{\"choices\": [{\"message\": {\"content\": \"y")),
                Err(io::ErrorKind::UnexpectedEof.into()),
            ];
            HttpResponse::simulated(Response::new(pieces))
        }
        Fault::Garbage => response(200, &[], "<html>Welcome to our hotel</html>"),
        Fault::Nothing => response(200, &[], ""),
        Fault::Silence => {
            let message = json!({ "role": "assistant", "content": "" });
            let body = json!({ "choices": [{ "message": message, "finish_reason": "stop" }] });
            response(200, &[], &body.to_string())
        }
        Fault::BadGzip => response(200, &[("content-encoding", "gzip".to_owned())], "no gzip"),
        Fault::NoFiles => return Err(HttpError::Simulated(io::Error::from_raw_os_error(24))),
        Fault::Key => response(401, &[], &error("Incorrect API key provided")),
        Fault::BadRequest => response(400, &[], &error("invalid request: no such parameter")),
        Fault::NotFound => response(404, &[], &error("The model `m` does not exist")),
    })
}

fn response(status: u16, headers: &[(&str, String)], body: &str) -> HttpResponse {
    let body = vec![Ok(Bytes::copy_from_slice(body.as_bytes()))];
    let made = Response::builder().status(status).header("content-type", "application/json");
    let made = headers.iter().fold(made, |made, (name, value)| made.header(*name, value));
    HttpResponse::simulated(made.body(body).unwrap_or_default())
}

/// A time as headers have it.
fn date(ms: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    // All of it lies in the first days of 2027.
    let seconds = ms / 1000 - super::session::NEW_YEAR_MS / 1000;
    let (day, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let weekday = DAYS[usize::try_from((day + 20_819).rem_euclid(7)).unwrap_or(0)];
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{weekday}, {:02} Jan 2027 {hour:02}:{minute:02}:{second:02} GMT", day + 1)
}

/// The texts between two marks.
fn between<'t>(text: &'t str, open: &'t str, close: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(open).skip(1).filter_map(move |it| it.split_once(close).map(|it| it.0))
}

/// The cache of a run. What was put in is there at once; a kill takes what was not written yet.
#[derive(Debug)]
pub(crate) struct Cache(pub(crate) Arc<Outside>);

/// How much is put in before it is written.
const UNKEPT: usize = 3;

impl Answers for Cache {
    fn get(&self, kept: CacheKind, key: InputDigest) -> Option<String> {
        let known = self.0.known();
        let place = (kept, key);
        known.unkept.get(&place).or_else(|| known.cache.get(&place)).cloned()
    }

    fn put(&self, kept: CacheKind, key: InputDigest, answer: &str) {
        let mut known = self.0.known();
        known.unkept.insert((kept, key), answer.to_owned());
        if known.unkept.len() >= UNKEPT && !self.0.fate.is_dead() {
            let unkept = std::mem::take(&mut known.unkept);
            known.cache.extend(unkept);
        }
    }
}
