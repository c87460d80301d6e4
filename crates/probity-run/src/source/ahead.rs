//! How much is read ahead of the calls: long cases are few, short ones are many.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Prepared;

/// Cases that are read ahead of the calls of a lane.
pub(super) const CASES: usize = 256;
/// Bytes of their texts, of all lanes that are fed together.
pub(super) const BYTES: usize = 4 << 20;

/// What may be ahead.
///
/// A reader that has to wait is woken when half of the room is free. To wake it for each case that is taken would cost more
/// than the case.
#[derive(Debug)]
pub(super) struct Room {
    bytes: usize,
    taken: Mutex<Taken>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Taken {
    cases: usize,
    bytes: usize,
    /// The bytes that a reader waits for.
    awaited: Option<usize>,
}

/// What a case that is ahead takes. It is given back when the case is taken, or nobody wants it any more.
#[derive(Debug)]
pub(crate) struct Held {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    /// Room for so many bytes, and for `CASES`.
    pub(super) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { bytes, taken: Mutex::default(), freed: Condvar::new() })
    }

    /// Waits until there is room. A case that is larger than all the room there is takes all of it.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Held {
        let bytes = bytes.min(self.bytes);
        let mut taken = self.taken();
        if taken.cases >= CASES || taken.bytes + bytes > self.bytes {
            taken.awaited = Some(bytes);
            let waiting = self.freed.wait_while(taken, |it| it.awaited.is_some());
            taken = waiting.unwrap_or_else(PoisonError::into_inner);
        }
        taken.cases += 1;
        taken.bytes += bytes;
        drop(taken);
        Held { room: self.clone(), bytes }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let most = self.room.bytes;
        let mut taken = self.room.taken();
        taken.cases -= 1;
        taken.bytes -= self.bytes;
        let bytes = taken.bytes;
        let is_half_free = taken.cases <= CASES / 2 && bytes <= most / 2;
        if is_half_free && taken.awaited.take_if(|it| bytes + *it <= most).is_some() {
            drop(taken);
            self.room.freed.notify_one();
        }
    }
}

/// What a case takes: what is asked, and what that was made from.
pub(crate) fn weight(prepared: &Prepared) -> usize {
    2 * prepared.request.own_bytes()
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    #[test]
    fn who_reads_waits_until_there_is_room() {
        let room = Room::new(10);
        let (first, second) = (room.take(6), room.take(4));
        let (sender, receiver) = mpsc::channel();
        let reader = thread::spawn(move || {
            let third = room.take(5);
            sender.send(()).unwrap();
            // It is larger than all there is.
            drop(third);
            room.take(100).bytes
        });
        assert!(receiver.try_recv().is_err());
        drop(second);
        drop(first);
        receiver.recv().unwrap();
        assert_eq!(reader.join().unwrap(), 10);
    }

    #[test]
    fn who_waits_is_woken_when_half_of_the_room_is_free() {
        let room = Room::new(1 << 20);
        let mut ahead: Vec<Held> = (0..CASES).map(|_| room.take(1)).collect();
        let reader = {
            let room = room.clone();
            thread::spawn(move || drop(room.take(1)))
        };
        while room.taken().awaited.is_none() {
            thread::yield_now();
        }
        ahead.truncate(CASES / 2 + 1);
        assert!(room.taken().awaited.is_some());
        ahead.pop();
        reader.join().unwrap();
    }
}
