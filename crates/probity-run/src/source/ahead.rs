//! How much is read ahead of the calls: long cases are few, short ones are many.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Prepared;

/// Cases that are read ahead of the calls of a lane.
pub(super) const CASES: usize = 256;
/// Bytes of their texts, of all lanes that are fed together.
pub(super) const BYTES: usize = 32 << 20;

/// How many bytes may be ahead.
#[derive(Debug)]
pub(super) struct Room {
    most: usize,
    taken: Mutex<usize>,
    freed: Condvar,
}

/// What a case that is ahead takes. It is given back when the case is taken, or nobody wants it any more.
#[derive(Debug)]
pub(crate) struct Held {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::new(0), freed: Condvar::new() })
    }

    /// Waits until there is room. A case that is larger than all the room there is takes all of it.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Held {
        let bytes = bytes.min(self.most);
        let mut taken = self.taken();
        while *taken + bytes > self.most {
            taken = self.freed.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += bytes;
        drop(taken);
        Held { room: self.clone(), bytes }
    }

    fn taken(&self) -> MutexGuard<'_, usize> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        *self.room.taken() -= self.bytes;
        self.room.freed.notify_one();
    }
}

/// What the texts of a case take: what is asked, and what that was made from.
pub(super) fn weight(prepared: &Prepared) -> usize {
    2 * prepared.request.text_bytes()
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
}
