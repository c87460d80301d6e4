//! Ctrl-C and SIGTERM, heard from the first file that is begun until the program ends.
//!
//! While a run goes on the first signal stops it in good order. At any other time it ends the
//! program, and so does the second one at any time. No half-written file stays behind.

use std::{
    sync::{
        Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::{exit::Exit, output};

/// What is said before the program ends.
pub(crate) type LastWords = Box<dyn FnOnce(Exit) + Send>;

/// Nobody waits longer for the last words: whoever should hear them may not be listening.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether signals are somebody else's.
static FOREIGN: AtomicBool = AtomicBool::new(false);

static STATE: Mutex<State> = Mutex::new(State { heard: false, run: None, last_words: None });

struct State {
    /// Whether there has been a signal.
    heard: bool,
    /// Stops the run that goes on.
    run: Option<watch::Sender<bool>>,
    last_words: Option<LastWords>,
}

/// Sees to it that signals are heard from now on. Without this they do what they do by default.
pub(crate) fn listen() {
    static LISTENING: Once = Once::new();
    if FOREIGN.load(Ordering::Relaxed) {
        return;
    }
    LISTENING.call_once(|| {
        let (ready, is_ready) = mpsc::sync_channel(1);
        let started = thread::Builder::new().name("signals".to_owned()).spawn(move || hear(&ready));
        if started.is_ok() {
            // It fails when signals cannot be heard.
            let _ = is_ready.recv();
        }
    });
}

/// Leaves signals to the program that ours is a library of.
pub(crate) fn leave_alone() {
    FOREIGN.store(true, Ordering::Relaxed);
}

/// A run begins: the first signal stops it. True is sent when there is one.
pub(crate) fn run_begins() -> watch::Receiver<bool> {
    listen();
    let (stop, stopped) = watch::channel(false);
    state().run = Some(stop);
    stopped
}

/// The run is over: the next signal ends the program. So does one that came too late to stop the run,
/// which then `went_on` to its end.
pub(crate) fn run_is_over(went_on: bool) {
    let mut state = state();
    state.run = None;
    if went_on && state.heard {
        let words = state.last_words.take();
        drop(state);
        leave(Exit::Aborted, words);
    }
}

/// What is said if a signal ends the program.
pub(crate) fn set_last_words(words: LastWords) {
    state().last_words = Some(words);
}

/// All is said.
pub(crate) fn forget_last_words() {
    state().last_words = None;
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for signals, on a thread and a runtime of its own: nothing that the program does can
/// keep it from hearing them.
fn hear(ready: &mpsc::SyncSender<()>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return;
    };
    runtime.block_on(async {
        let interrupt = signal(SignalKind::interrupt());
        let terminate = signal(SignalKind::terminate());
        let (Ok(mut interrupt), Ok(mut terminate)) = (interrupt, terminate) else { return };
        let _ = ready.send(());
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            obey();
        }
    });
}

fn obey() {
    let mut state = state();
    let was_heard = std::mem::replace(&mut state.heard, true);
    let exit = match (was_heard, &state.run) {
        (false, Some(stop)) => {
            // The run may just have ended by itself.
            let _ = stop.send(true);
            return;
        }
        (false, None) => Exit::Aborted,
        (true, _) => Exit::Interrupted,
    };
    let words = state.last_words.take();
    drop(state);
    leave(exit, words);
}

/// Ends the program. What was recorded is kept.
#[expect(clippy::exit, clippy::disallowed_methods, reason = "asked for, and nothing is lost")]
fn leave(exit: Exit, words: Option<LastWords>) {
    if let Some(words) = words {
        let (done, is_done) = mpsc::sync_channel(1);
        // Standard output may be in the hands of somebody who waits for its reader.
        thread::spawn(move || {
            words(exit);
            let _ = done.send(());
        });
        let _ = is_done.recv_timeout(PATIENCE);
    }
    output::abandon_all();
    std::process::exit(i32::from(exit.code()));
}
