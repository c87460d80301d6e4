//! Threads that engines live on.
//!
//! The engine looks at its limits once in ten thousand calls and jumps, and one operation on a large
//! text or number may take long. So scripts run on another thread than that of whoever wants their
//! value, who stops waiting for it. The thread ends when the engine looks at its limits.

use std::{
    cell::RefCell,
    io,
    sync::{Mutex, PoisonError, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::{engine::Engine, error::ScriptError};

/// Threads that may run on while nobody waits for them. With so many, no script is started.
const MOST_LEFT: usize = 4;
/// Stack of a thread; the engine has a limit of its own that is lower.
const STACK: usize = 2 << 20;

/// The threads that nobody waits for.
static LEFT: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

type Job = Box<dyn FnOnce(&mut Option<Engine>) + Send>;

struct Worker {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn new() -> io::Result<Self> {
        let (jobs, wanted) = mpsc::channel::<Job>();
        let work = move || {
            let mut engine = None;
            for job in wanted {
                job(&mut engine);
            }
        };
        let thread = thread::Builder::new().name("script".to_owned()).stack_size(STACK);
        Ok(Self { jobs, thread: thread.spawn(work)? })
    }
}

/// Does something with the engine that belongs to this thread. `limit` is when the engine stops by
/// itself; it is waited for twice as long, since it may try twice.
pub(crate) fn with_engine<T: Send + 'static>(
    limit: Duration,
    job: impl FnOnce(&mut Option<Engine>) -> T + Send + 'static,
) -> Result<T, ScriptError> {
    thread_local! {
        static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
    }
    let worker = match WORKER.take() {
        Some(worker) => worker,
        None if left() >= MOST_LEFT => return Err(ScriptError::Unstoppable(MOST_LEFT)),
        None => Worker::new().map_err(|error| not_started(&error))?,
    };
    let (answer, answered) = mpsc::sync_channel(1);
    let job = move |engine: &mut Option<Engine>| {
        // Nobody may be waiting any more.
        let _ = answer.send(job(engine));
    };
    // A thread that is gone drops the job, and with it the way to answer.
    let _ = worker.jobs.send(Box::new(job));
    match answered.recv_timeout(limit.saturating_mul(2)) {
        Ok(value) => {
            WORKER.set(Some(worker));
            Ok(value)
        }
        Err(mpsc::RecvTimeoutError::Timeout) => {
            LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(worker.thread);
            Err(ScriptError::Time(limit))
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(not_started(&"its thread has ended")),
    }
}

/// How many threads still run that nobody waits for.
fn left() -> usize {
    let mut threads = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    threads.retain(|it| !it.is_finished());
    threads.len()
}

pub(crate) fn not_started(why: &dyn std::fmt::Display) -> ScriptError {
    let message = format!("the JavaScript engine did not start: {why}");
    ScriptError::Thrown { message, line: None, file: None }
}
