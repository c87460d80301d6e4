//! The way of events to whoever records them, bounded by their number and by their bytes.
//!
//! What has been taken and is not yet recorded counts as well: a recorder that is slow, or that
//! waits, holds back whoever sends. One that rests between its transactions is woken before that.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, Thread},
    time::Instant,
};

use probity_core::event::{Event, Stamped};
use tokio::sync::{Semaphore, mpsc};

/// What bytes are counted in.
const UNIT: usize = 1024;

/// The end that events are put in.
#[derive(Debug)]
pub struct Sender {
    queue: mpsc::Sender<Stamped>,
    room: Arc<Room>,
}

/// The end that events come out of.
#[derive(Debug)]
pub struct Receiver {
    queue: mpsc::Receiver<Stamped>,
    room: Arc<Room>,
    batch: Vec<Stamped>,
}

/// How much may be on its way.
#[derive(Debug)]
struct Room {
    units: u32,
    free: Semaphore,
    /// Whether whoever takes events should not rest now.
    pressed: AtomicBool,
    /// Whether nobody sends any more, which is not taken back.
    ended: AtomicBool,
    /// Who takes them, once it has rested.
    taker: OnceLock<Thread>,
}

impl Room {
    /// What an event takes. One that is larger than all the room there is takes all of it.
    fn needed(&self, event: &Event) -> u32 {
        let units = u32::try_from(event.text_bytes().div_ceil(UNIT)).unwrap_or(u32::MAX);
        units.clamp(1, self.units)
    }

    /// Ends the rest of whoever takes events.
    fn press(&self) {
        // Only the first has to wake it.
        if !self.pressed.swap(true, Ordering::AcqRel)
            && let Some(taker) = self.taker.get()
        {
            taker.unpark();
        }
    }
}

/// A way for at most so many events, and so many bytes of texts.
pub fn channel(events: usize, bytes: usize) -> (Sender, Receiver) {
    let (sender, receiver) = mpsc::channel(events);
    let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX).max(1);
    let room = Arc::new(Room {
        units,
        free: Semaphore::new(units as usize),
        pressed: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        taker: OnceLock::new(),
    });
    let batch = Vec::with_capacity(events);
    (Sender { queue: sender, room: room.clone() }, Receiver { queue: receiver, room, batch })
}

/// Nobody takes events any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed;

impl Sender {
    /// Puts an event in, as soon as there is room for it.
    pub(crate) async fn send(&self, event: Stamped) -> Result<(), Closed> {
        let needed = self.room.needed(&event.event);
        if self.queue.capacity() == 0 || self.room.free.available_permits() < needed as usize {
            self.room.press();
        }
        let room = self.room.free.acquire_many(needed).await.map_err(|_| Closed)?;
        let is_last = is_awaited(&event.event);
        self.queue.send(event).await.map_err(|_| Closed)?;
        // It is given back when the event has been recorded.
        room.forget();
        if is_last || self.is_half_full() {
            self.room.press();
        }
        Ok(())
    }

    fn is_half_full(&self) -> bool {
        self.queue.capacity() < self.queue.max_capacity() / 2
            || self.room.free.available_permits() < self.room.units as usize / 2
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.room.ended.store(true, Ordering::Release);
        self.room.press();
    }
}

/// Whether somebody waits for this event: the run ends, or is stopped.
fn is_awaited(event: &Event) -> bool {
    match event {
        Event::CancelStarted { .. } | Event::RunFinished { .. } => true,
        Event::RunStarted { .. }
        | Event::CaseStarted(_)
        | Event::AttemptFailed { .. }
        | Event::BackendPaused { .. }
        | Event::BackendTripped { .. }
        | Event::WorkersPaused { .. }
        | Event::WorkersResumed { .. }
        | Event::WorkersSeen(_)
        | Event::CaseFinished { .. }
        | Event::CaseAborted { .. }
        | Event::LaneFinished { .. } => false,
    }
}

impl Receiver {
    /// Waits for events, and takes all that are there. None when nobody sends any more. With the
    /// next call, or with a rest, these count as recorded.
    pub fn next_batch(&mut self) -> Option<&[Stamped]> {
        self.forget_batch();
        // Whoever presses from here on may mean what is not taken yet.
        self.room.pressed.store(false, Ordering::Release);
        let first = self.queue.blocking_recv()?;
        Some(self.fill_batch(first))
    }

    /// Takes all that is there after a first event.
    fn fill_batch(&mut self, first: Stamped) -> &[Stamped] {
        self.batch.push(first);
        while self.batch.len() < self.batch.capacity()
            && let Ok(next) = self.queue.try_recv()
        {
            self.batch.push(next);
        }
        &self.batch
    }

    /// Lets events pile up until then; no longer once half of the room is taken, somebody waits for the last one, or
    /// nobody sends any more.
    pub fn rest_until(&mut self, then: Instant) {
        self.forget_batch();
        self.room.taker.get_or_init(thread::current);
        let goes_on = |flag: &AtomicBool| !flag.load(Ordering::Acquire);
        while goes_on(&self.room.pressed) && goes_on(&self.room.ended) {
            let left = then.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }

    /// Ends the way. What was taken last and what still waits comes out.
    pub fn close(mut self) -> Vec<Stamped> {
        self.queue.close();
        let mut rest = std::mem::take(&mut self.batch);
        while let Ok(event) = self.queue.try_recv() {
            rest.push(event);
        }
        rest
    }

    fn forget_batch(&mut self) {
        let taken: u32 = self.batch.iter().map(|it| self.room.needed(&it.event)).sum();
        self.room.free.add_permits(taken as usize);
        self.batch.clear();
    }

    /// The next batch, for simulations: nobody blocks, so that time stands still.
    #[cfg(feature = "simulated")]
    pub async fn next_batch_in_time(&mut self) -> Option<&[Stamped]> {
        self.forget_batch();
        self.room.pressed.store(false, Ordering::Release);
        let first = self.queue.recv().await?;
        Some(self.fill_batch(first))
    }

    /// A rest between two batches, for simulations.
    #[cfg(feature = "simulated")]
    pub async fn rest_in_time(&mut self, length: std::time::Duration) {
        /// How often is looked whether anybody waits.
        const STEPS: u32 = 4;
        self.forget_batch();
        for _ in 0..STEPS {
            let goes_on = |flag: &AtomicBool| !flag.load(Ordering::Acquire);
            if goes_on(&self.room.pressed) && goes_on(&self.room.ended) {
                tokio::time::sleep(length / STEPS).await;
            }
        }
    }

    /// The next event, for tests and simulations: nobody blocks, so that time stands still.
    #[cfg(any(test, feature = "simulated"))]
    pub async fn recv(&mut self) -> Option<Stamped> {
        let event = self.queue.recv().await?;
        self.room.free.add_permits(self.room.needed(&event.event) as usize);
        Some(event)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Whoever waits for room waits in vain.
        self.room.free.close();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::sync_channel, time::Duration};

    use tokio::time::timeout;

    use super::*;

    fn event(bytes: usize) -> Stamped {
        Stamped { at_ms: 0, event: Event::CancelStarted { reason: "x".repeat(bytes) } }
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_hold_back_as_numbers_do() {
        let (sender, mut receiver) = channel(100, 10 * UNIT);
        for _ in 0..2 {
            sender.send(event(5 * UNIT)).await.unwrap();
        }
        let waiting = sender.send(event(1));
        assert!(timeout(Duration::from_secs(1), waiting).await.is_err());
        receiver.recv().await.unwrap();
        sender.send(event(1)).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_taken_and_not_recorded_counts() {
        let (sender, mut receiver) = channel(100, UNIT);
        sender.send(event(5 * UNIT)).await.unwrap();
        let (go, gone) = sync_channel::<()>(0);
        let taker = std::thread::spawn(move || {
            assert_eq!(receiver.next_batch().map(<[Stamped]>::len), Some(1));
            gone.recv().unwrap();
            assert_eq!(receiver.next_batch().map(<[Stamped]>::len), Some(1));
            receiver
        });
        assert!(timeout(Duration::from_millis(50), sender.send(event(1))).await.is_err());
        go.send(()).unwrap();
        sender.send(event(1)).await.unwrap();
        drop(taker.join().unwrap());
        assert!(sender.send(event(1)).await.is_err());
    }

    /// Rests for what would be an hour, and says what came meanwhile.
    fn resting(mut receiver: Receiver) -> thread::JoinHandle<Option<usize>> {
        let then = Instant::now() + Duration::from_hours(1);
        thread::spawn(move || {
            receiver.next_batch();
            receiver.rest_until(then);
            receiver.next_batch().map(<[Stamped]>::len)
        })
    }

    fn plain() -> Stamped {
        Stamped { at_ms: 0, event: Event::WorkersResumed { reason: String::new() } }
    }

    #[tokio::test]
    async fn a_rest_ends_when_half_of_the_room_is_taken() {
        for (events, bytes) in [(4, 100 * UNIT), (100, 4 * UNIT)] {
            let (sender, receiver) = channel(events, bytes);
            sender.send(plain()).await.unwrap();
            let taker = resting(receiver);
            // The first may be taken with others or alone: what is sent is more than half in any case.
            for _ in 0..8 {
                // The taker may have gone by now.
                let _ = sender.send(plain()).await;
            }
            assert!(taker.join().unwrap().is_some_and(|it| it > 0));
        }
    }

    #[tokio::test]
    async fn a_rest_ends_with_the_run() {
        for is_told in [true, false] {
            let (sender, receiver) = channel(100, 100 * UNIT);
            sender.send(plain()).await.unwrap();
            let taker = resting(receiver);
            if is_told {
                sender.send(event(1)).await.unwrap();
            }
            drop(sender);
            taker.join().unwrap();
        }
    }

    #[tokio::test]
    async fn what_came_before_a_rest_has_room_again() {
        let (sender, mut receiver) = channel(100, UNIT);
        sender.send(event(UNIT)).await.unwrap();
        let taker = thread::spawn(move || {
            receiver.next_batch();
            receiver.rest_until(Instant::now());
            receiver
        });
        let _receiver = taker.join().unwrap();
        sender.send(event(UNIT)).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_for_room_hears_that_nobody_takes_events() {
        let (sender, receiver) = channel(100, UNIT);
        sender.send(event(1)).await.unwrap();
        let (sent, rest) = tokio::join!(sender.send(event(1)), async { receiver.close().len() });
        assert!(sent.is_err());
        assert_eq!(rest, 1);
    }
}
