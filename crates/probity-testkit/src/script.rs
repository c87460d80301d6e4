//! What the server does: rules, limits, latency. Plain data.

use std::{ops::Range, time::Duration};

use crate::answer::{Answer, Reply, RetryAfter};

/// What the server does. The first rule that matches decides.
#[derive(Debug, Clone)]
pub struct Script {
    /// The rules, in order.
    pub rules: Vec<Rule>,
    /// What happens when no rule matches: a proper answer, unless set.
    pub otherwise: Answer,
    /// How long an answer takes when its rule does not say.
    pub latency: Latency,
    /// When requests are turned away before any rule is looked at.
    pub limits: Limits,
    /// The models that the server lists. It answers for any other as well.
    pub models: Vec<String>,
    /// What is remembered.
    pub record: Record,
    /// Decides what [`When::Share`] takes and how latencies vary.
    pub seed: u64,
}

impl Script {
    /// A server that gives this answer to everything.
    pub fn always(answer: Answer) -> Self {
        Self { otherwise: answer, ..Self::default() }
    }

    /// Adds a rule after those there are.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }
}

impl Default for Script {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            otherwise: Answer::Reply(Reply::default()),
            latency: Latency::default(),
            limits: Limits::default(),
            models: vec!["fake-small".to_owned(), "fake-large".to_owned()],
            record: Record::default(),
            seed: 0,
        }
    }
}

/// When, what, and how often.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Which requests it is for.
    pub when: When,
    /// What they get.
    pub then: Answer,
    /// How many requests it serves before it is used up.
    pub times: Option<u32>,
    /// How long the answer takes; the script's latency, if not set.
    pub latency: Option<Latency>,
}

impl Rule {
    /// A rule that is never used up.
    pub fn new(when: When, then: Answer) -> Self {
        Self { when, then, times: None, latency: None }
    }

    /// Uses the rule up after so many requests.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Makes the answer take so long.
    #[must_use]
    pub fn after(mut self, latency: Latency) -> Self {
        self.latency = Some(latency);
        self
    }
}

/// Which requests a rule is for. Only requests for an answer count.
#[derive(Debug, Clone)]
pub enum When {
    /// All.
    Any,
    /// The prompt (the last message of the user) has this in it.
    PromptContains(String),
    /// A message of the system, which only the OpenAI dialect has among the others, has this in it.
    SystemContains(String),
    /// The model asked for.
    ModelIs(String),
    /// The API key that was sent.
    KeyIs(String),
    /// Every so many requests, first at that number.
    Every(u64),
    /// These requests, counted from 1.
    Requests(Range<u64>),
    /// This share of the requests, 0 to 1. Which ones follows from the seed, the rule's
    /// place, the prompt, and how often that prompt was sent: not from the order in which
    /// different prompts arrive.
    Share(f64),
    /// All of these hold.
    All(Vec<Self>),
    /// This does not hold.
    Not(Box<Self>),
}

impl When {
    /// The instructions have this in them.
    pub fn system_contains(text: &str) -> Self {
        Self::SystemContains(text.to_owned())
    }

    /// The prompt has this in it.
    pub fn prompt_contains(text: &str) -> Self {
        Self::PromptContains(text.to_owned())
    }
}

/// How long an answer takes. Timers count in milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Latency {
    /// At least this long.
    pub fixed: Duration,
    /// Up to this much longer, by the seed and the number of the request.
    pub jitter: Duration,
}

impl Latency {
    /// Always this long.
    pub fn fixed(fixed: Duration) -> Self {
        Self { fixed, jitter: Duration::ZERO }
    }
}

/// When requests are turned away with 429, at once.
#[derive(Debug, Clone)]
pub struct Limits {
    /// More requests than this at the same time are turned away.
    pub max_concurrent: Option<u32>,
    /// Requests that come faster than this are turned away.
    pub rate: Option<Rate>,
    /// When those turned away are told to come back.
    pub retry: Vec<RetryAfter>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_concurrent: None, rate: None, retry: vec![RetryAfter::Seconds(1)] }
    }
}

/// A token bucket, full at the start.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// How many requests a second refill it.
    pub per_second: f64,
    /// How many requests it holds.
    pub burst: u32,
}

/// What is remembered of each request, besides counts.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// Count each prompt. Benches with very many prompts switch it off.
    pub prompts: bool,
    /// Keep the last so many requests whole.
    pub requests: usize,
}

impl Default for Record {
    fn default() -> Self {
        Self { prompts: true, requests: 100 }
    }
}
