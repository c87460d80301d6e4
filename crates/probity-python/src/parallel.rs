//! Batches on several threads.

use std::{num::NonZero, thread};

use probity_offline::pipeline::all_cores;

/// Items for which it is not worth to start a thread.
const FEWEST: usize = 32;

/// How many threads are meant: so many, or as many as there are cores.
pub(crate) fn threads(named: Option<usize>) -> usize {
    named.and_then(NonZero::new).map_or_else(all_cores, NonZero::get)
}

/// What comes of each item, in order.
pub(crate) fn map<T: Sync, U: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> U + Sync,
) -> Vec<U> {
    let share = items.len().div_ceil(threads.max(1)).max(FEWEST);
    if items.len() <= share {
        return items.iter().map(work).collect();
    }
    let work = &work;
    thread::scope(|scope| {
        let parts: Vec<_> = items
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().map(work).collect::<Vec<U>>()))
            .collect();
        let join = |it: thread::ScopedJoinHandle<'_, Vec<U>>| {
            it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        parts.into_iter().flat_map(join).collect()
    })
}
