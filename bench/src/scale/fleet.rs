//! A model of a fleet of workers behind a queue of messages.
//!
//! A call goes to the queue, waits for a worker with a free place, is worked on, and its result comes back. A worker that dies
//! takes its calls with it; each is delivered again when nothing was heard of it for `ack_wait`. Every random number belongs to
//! a call or a worker and not to an order, so that the same seed gives the same history.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use fastrand::Rng;
use probity_core::{failure::ErrorKind, record::CallError};
use probity_run::{
    backend::{Ask, Failed, Reply},
    simulated::{Answering, Model},
};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, sleep_until},
};

/// What the fleet is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    /// Calls that a worker works on at once.
    pub(crate) places: usize,
    /// The median of how long a call takes on an average worker; its logarithm is normal.
    pub(crate) median: Duration,
    pub(crate) sigma: f64,
    /// How long a message takes at least, and on average beyond that.
    pub(crate) network: (Duration, Duration),
    /// After how long without a sign a call is delivered again; a worker gives a sign three times as often.
    pub(crate) ack_wait: Duration,
    /// After so many deliveries a call is given up.
    pub(crate) max_deliver: u32,
    /// How long a worker lives on average, and how long until it is back.
    pub(crate) mtbf: Duration,
    pub(crate) restart: Duration,
    /// Shares of results that are lost on their way and sent again, and of calls that are worked on twice.
    pub(crate) lost: f64,
    pub(crate) twice: f64,
    /// When a share of all workers dies at once, and for how long.
    pub(crate) disaster: Option<Disaster>,
    /// When no message gets through, and for how long.
    pub(crate) outage: Option<(Duration, Duration)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Disaster {
    pub(crate) at: Duration,
    pub(crate) share: f64,
    pub(crate) lasts: Duration,
}

/// How long a worker waits for the receipt of a result before it sends it again.
const RECEIPT: Duration = Duration::from_secs(5);

impl Spec {
    /// What a call takes on average.
    pub(crate) fn mean(&self) -> Duration {
        self.median.mul_f64((self.sigma * self.sigma / 2.0).exp())
    }

    fn rng(&self, of: u64, which: u64) -> Rng {
        // Neighbours must not have similar seeds.
        let mixed = (of ^ which.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut rng = Rng::with_seed(self.seed ^ mixed ^ (mixed >> 31));
        rng.u64(..);
        rng
    }
}

/// A number whose logarithm is normal, with a median of 1.
fn lognormal(rng: &mut Rng, sigma: f64) -> f64 {
    let (radius, angle) =
        ((-2.0 * (1.0 - rng.f64()).ln()).sqrt(), std::f64::consts::TAU * rng.f64());
    (sigma * radius * angle.cos()).exp()
}

fn exponential(rng: &mut Rng, mean: Duration) -> Duration {
    mean.mul_f64(-(1.0 - rng.f64()).ln())
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) answered: u64,
    pub(crate) deaths: u64,
    pub(crate) redelivered: u64,
    pub(crate) given_up: u64,
    pub(crate) sent_again: u64,
    pub(crate) doubled: u64,
    pub(crate) deepest: usize,
    /// Calls that the disaster took, those that are not answered yet, and when the last one was.
    pub(crate) orphans: u64,
    pub(crate) orphans_left: u64,
    pub(crate) orphans_done: Option<Duration>,
    /// By how long calls waited in the queue, in milliseconds: buckets of powers of 1.25.
    pub(crate) waits: Waits,
}

/// A histogram with buckets that grow by a quarter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits(BTreeMap<u32, u64>);

impl Waits {
    fn add(&mut self, waited: Duration) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let bucket = ((waited.as_secs_f64() * 1e3).max(1.0).ln() / 1.25_f64.ln()).ceil() as u32;
        *self.0.entry(bucket).or_default() += 1;
    }

    /// The upper bound of the bucket that a share of all lies below.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let total: u64 = self.0.values().sum();
        let mut below = 0;
        for (bucket, count) in &self.0 {
            below += count;
            #[expect(clippy::cast_precision_loss, reason = "far below 2^53 calls")]
            let is_reached = below as f64 >= share * total as f64;
            if is_reached {
                return Duration::from_secs_f64(1.25_f64.powf(f64::from(*bucket)) / 1e3);
            }
        }
        Duration::ZERO
    }
}

#[derive(Debug, Default)]
struct State {
    /// Places of workers, with the life that they belong to. Those of an earlier life are skipped.
    free: VecDeque<(usize, u32)>,
    waiting: VecDeque<oneshot::Sender<(usize, u32)>>,
    workers: Vec<Worker>,
    seen: Seen,
}

#[derive(Debug)]
struct Worker {
    /// How long it takes for what others take 1 for.
    slowness: f64,
    life: u32,
    dies_at: Instant,
}

/// The fleet.
#[derive(Debug)]
pub(crate) struct Fleet {
    spec: Spec,
    begun: Instant,
    state: Mutex<State>,
    /// Itself, for work that goes on when nobody waits for it.
    this: Weak<Self>,
}

impl Fleet {
    /// Starts its workers; within a runtime.
    pub(crate) fn start(spec: Spec) -> Arc<Self> {
        let begun = Instant::now();
        let fleet = Arc::new_cyclic(|this| Self {
            spec,
            begun,
            state: Mutex::default(),
            this: this.clone(),
        });
        for at in 0..spec.workers {
            let slowness = lognormal(&mut spec.rng(at as u64, u64::MAX), 0.2);
            fleet.state().workers.push(Worker { slowness, life: 0, dies_at: begun });
            tokio::spawn(live(Arc::downgrade(&fleet), spec, at));
        }
        fleet
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn seen(&self) -> Seen {
        self.state().seen.clone()
    }

    /// A message on its way; while nothing gets through it waits.
    async fn travel(&self, rng: &mut Rng) {
        let (least, beyond) = self.spec.network;
        sleep(least + exponential(rng, beyond)).await;
        if let Some((at, lasts)) = self.spec.outage {
            let over = self.begun + at + lasts;
            if Instant::now() >= self.begun + at && Instant::now() < over {
                sleep_until(over + least + exponential(rng, beyond)).await;
            }
        }
    }

    /// A place with a worker that lives, as soon as there is one.
    async fn place(&self) -> Option<(usize, u32)> {
        let turn = {
            let mut state = self.state();
            while let Some((worker, life)) = state.free.pop_front() {
                if state.workers[worker].life == life
                    && state.workers[worker].dies_at > Instant::now()
                {
                    return Some((worker, life));
                }
            }
            let (sender, turn) = oneshot::channel();
            state.waiting.push_back(sender);
            state.seen.deepest = state.seen.deepest.max(state.waiting.len());
            turn
        };
        turn.await.ok()
    }

    fn release(&self, place: (usize, u32)) {
        let mut state = self.state();
        let worker = &state.workers[place.0];
        if worker.life != place.1 || worker.dies_at <= Instant::now() {
            return;
        }
        let mut place = place;
        while let Some(turn) = state.waiting.pop_front() {
            match turn.send(place) {
                Ok(()) => return,
                // Whoever waited gave up.
                Err(back) => place = back,
            }
        }
        state.free.push_back(place);
    }

    /// Works on a call until its result is there; none if its worker died, when it is to be delivered again.
    async fn work(&self, place: (usize, u32), rng: &mut Rng) -> Result<(), Lost> {
        let begun = Instant::now();
        let (slowness, dies_at) = {
            let state = self.state();
            let worker = &state.workers[place.0];
            (worker.slowness, worker.dies_at)
        };
        let takes = self.spec.median.mul_f64(slowness * lognormal(rng, self.spec.sigma));
        if begun + takes <= dies_at {
            sleep(takes).await;
            self.release(place);
            return Ok(());
        }
        let every = self.spec.ack_wait / 3;
        let signs = (dies_at - begun).as_nanos() / every.as_nanos();
        let last_sign = begun + every * u32::try_from(signs).unwrap_or(u32::MAX);
        let by_disaster = self.spec.disaster.is_some_and(|it| dies_at == self.begun + it.at);
        sleep_until(dies_at).await;
        Err(Lost { again_at: last_sign + self.spec.ack_wait, by_disaster })
    }

    async fn answer(&self, case: &str) -> Result<Reply, Failed> {
        let number = case
            .bytes()
            .filter(u8::is_ascii_digit)
            .fold(0_u64, |sum, digit| sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
        let mut orphaned = false;
        for delivery in 0..self.spec.max_deliver {
            let mut rng = self.spec.rng(number, u64::from(delivery) + 1);
            if delivery == 0 {
                self.travel(&mut rng).await;
            }
            let queued = Instant::now();
            let Some(place) = self.place().await else { break };
            self.state().seen.waits.add(queued.elapsed());
            self.travel(&mut rng).await;
            match self.work(place, &mut rng).await {
                Ok(()) => {
                    self.deliver_result(number, &mut rng).await;
                    self.answered(orphaned);
                    let text = format!("The answer to case {number} is {}.", number % 10);
                    return Ok(Reply { text, ..Reply::default() });
                }
                Err(Lost { again_at, by_disaster }) => {
                    if by_disaster && !orphaned {
                        orphaned = true;
                        let mut state = self.state();
                        state.seen.orphans += 1;
                        state.seen.orphans_left += 1;
                    }
                    self.state().seen.redelivered += 1;
                    sleep_until(again_at).await;
                }
            }
        }
        self.state().seen.given_up += 1;
        let told = format!("given up after {} deliveries", self.spec.max_deliver);
        Err(CallError::new(ErrorKind::Crash, told).into())
    }

    async fn deliver_result(&self, number: u64, rng: &mut Rng) {
        if rng.f64() < self.spec.twice
            && let Some(fleet) = self.this.upgrade()
        {
            self.state().seen.doubled += 1;
            // Somebody else gets it as well. The result is the same attempt's, so nobody takes it.
            tokio::spawn(async move {
                let mut rng = fleet.spec.rng(number, u64::MAX - 1);
                if let Some(place) = fleet.place().await {
                    _ = fleet.work(place, &mut rng).await;
                }
            });
        }
        while rng.f64() < self.spec.lost {
            self.state().seen.sent_again += 1;
            sleep(RECEIPT).await;
        }
        self.travel(rng).await;
    }

    fn answered(&self, orphaned: bool) {
        let mut state = self.state();
        state.seen.answered += 1;
        if orphaned {
            state.seen.orphans_left -= 1;
            if state.seen.orphans_left == 0 {
                state.seen.orphans_done = Some(self.begun.elapsed());
            }
        }
    }
}

/// A call whose worker died.
struct Lost {
    again_at: Instant,
    by_disaster: bool,
}

impl Model for Fleet {
    fn ask<'a>(&'a self, ask: &'a Ask<'a>) -> Answering<'a> {
        Box::pin(async move {
            let case = ask.about.map_or("", |about| &about.case.id);
            self.answer(case).await
        })
    }
}

/// The lives of a worker, until nobody needs the fleet any more.
async fn live(fleet: Weak<Fleet>, spec: Spec, at: usize) {
    let mut rng = spec.rng(at as u64, u64::MAX - 2);
    let is_hit = rng.f64() < spec.disaster.map_or(0.0, |it| it.share);
    loop {
        let dies_at = {
            let Some(fleet) = fleet.upgrade() else { return };
            let now = Instant::now();
            let own = now + exponential(&mut rng, spec.mtbf);
            let disaster = spec.disaster.filter(|_| is_hit).map(|it| fleet.begun + it.at);
            let dies_at = disaster.filter(|it| *it > now).map_or(own, |it| it.min(own));
            let life = {
                let mut state = fleet.state();
                let worker = &mut state.workers[at];
                worker.life += 1;
                worker.dies_at = dies_at;
                worker.life
            };
            (0..spec.places).for_each(|_| fleet.release((at, life)));
            dies_at
        };
        sleep_until(dies_at).await;
        let down = {
            let Some(fleet) = fleet.upgrade() else { return };
            fleet.state().seen.deaths += 1;
            match spec.disaster {
                Some(disaster) if dies_at == fleet.begun + disaster.at => disaster.lasts,
                Some(_) | None => spec.restart,
            }
        };
        sleep(down).await;
    }
}
