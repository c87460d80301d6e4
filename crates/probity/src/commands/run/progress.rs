//! How far a run has come, for people.
//!
//! On a terminal a few lines that are drawn again and again; elsewhere a line now and
//! then. What is shown is what the recorder has taken, so that nothing is shown that a
//! crash could lose.

mod board;
mod drawing;

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _, Write as _},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anstream::adapter::strip_str;
use probity_core::{event::Stamped, visible::safe};

use crate::{printer::Printer, terminal::folded};
pub(super) use board::Board;

/// How often the lines on a terminal are drawn.
const REDRAW: Duration = Duration::from_millis(100);
/// How often a line is written where there is no terminal.
const REPORT: Duration = Duration::from_secs(10);

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Not at all.
    Quiet,
    /// Lines that stay.
    Plain,
    /// Lines that are drawn again.
    Live,
}

impl Style {
    pub(super) fn of(quiet: bool) -> Self {
        match quiet {
            true => Self::Quiet,
            false if io::stderr().is_terminal() && !Printer::in_ci() && !is_dumb() => Self::Live,
            false => Self::Plain,
        }
    }
}

/// Whether the terminal says that it can move no cursor.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Shows progress from a thread of its own.
pub(super) struct Progress {
    shared: Arc<Shared>,
    drawer: Option<JoinHandle<()>>,
}

struct Shared {
    style: Style,
    screen: Mutex<Screen>,
    /// Told when the run is over.
    over: Condvar,
}

/// The board, and what of it is on the terminal.
struct Screen {
    board: Board,
    over: bool,
    /// Lines that are there now.
    drawn: usize,
}

impl Progress {
    pub(super) fn start(style: Style, board: Board) -> Self {
        let screen = Mutex::new(Screen { board, over: false, drawn: 0 });
        let shared = Arc::new(Shared { style, screen, over: Condvar::new() });
        let drawer = (style != Style::Quiet).then(|| {
            let shared = shared.clone();
            thread::spawn(move || shared.draw_until_over())
        });
        Self { shared, drawer }
    }

    /// Takes in what has happened.
    pub(super) fn show(&self, batch: &[Stamped]) {
        if self.shared.style == Style::Quiet {
            return;
        }
        let mut screen = self.shared.screen();
        let now = Instant::now();
        let notes = batch.iter().filter_map(|it| screen.board.take(&it.event, now));
        let notes: Vec<String> = notes.collect();
        if !notes.is_empty() {
            screen.erase();
            let shown = |note: &String| match self.shared.style {
                Style::Live => folded(note, Printer::err_width(), "  "),
                Style::Plain | Style::Quiet => note.clone(),
            };
            let mut err = io::stderr().lock();
            // Nothing sensible can be done when standard error is gone.
            let _ = notes.iter().try_for_each(|note| writeln!(err, "{}", shown(note)));
        }
    }

    /// Says something that cannot wait, also to those who want no progress.
    pub(super) fn note(&self, note: &str) {
        let mut screen = self.shared.screen();
        screen.erase();
        // Nothing sensible can be done when standard error is gone.
        let _ = writeln!(io::stderr(), "{}", safe(note));
    }

    /// Takes the lines away.
    pub(super) fn finish(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        self.shared.screen().over = true;
        self.shared.over.notify_all();
        if let Some(drawer) = self.drawer.take() {
            let _ = drawer.join();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// A thread that panicked while it had the board leaves numbers that are still shown.
    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw_until_over(&self) {
        let every = if self.style == Style::Live { REDRAW } else { REPORT };
        let mut screen = self.screen();
        while !screen.over {
            let waited = self.over.wait_timeout_while(screen, every, |screen| !screen.over);
            screen = waited.unwrap_or_else(PoisonError::into_inner).0;
            if screen.over {
                break;
            }
            match self.style {
                Style::Live => screen.draw(),
                Style::Plain if screen.board.has_started() => {
                    let line = drawing::line(&screen.board, Instant::now());
                    let _ = writeln!(io::stderr(), "{}", uncoloured(&line));
                }
                Style::Plain | Style::Quiet => {}
            }
        }
        screen.erase();
    }
}

impl Screen {
    /// Draws over what was drawn before, in one go: nothing is taken away before its successor
    /// is there.
    fn draw(&mut self) {
        if !self.board.has_started() {
            return;
        }
        let (width, height) = Printer::err_size();
        // The last column is left free: some terminals begin a new line when it is written. So is
        // the last line, where the cursor stands.
        let lines = drawing::lines(&self.board, Instant::now(), width - 1, height - 1);
        let mut text = match self.drawn {
            0 => String::new(),
            drawn => format!("\r\x1b[{drawn}A"),
        };
        for line in &lines {
            let shown = if Printer::colours_err() { line.clone() } else { uncoloured(line) };
            let _ = writeln!(text, "{shown}\x1b[K");
        }
        text.push_str("\x1b[J");
        let mut err = io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
        self.drawn = lines.len();
    }

    /// Takes away what was drawn.
    fn erase(&mut self) {
        if self.drawn > 0 {
            let _ = write!(io::stderr(), "\r\x1b[{}A\x1b[J", self.drawn);
            self.drawn = 0;
        }
    }
}

fn uncoloured(text: &str) -> String {
    strip_str(text).to_string()
}

#[cfg(test)]
mod tests;
