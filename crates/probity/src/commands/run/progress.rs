//! How far a run has come, for people.
//!
//! On a terminal a few lines that are drawn again and again; elsewhere a line now and
//! then. What is shown is what the recorder has taken, so that nothing is shown that a
//! crash could lose.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, IsTerminal as _, Write as _},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use probity_core::{
    classification::{Class, Counts},
    event::{CaseKey, Event, Stamped},
    span::Span,
    visible::safe,
};

use crate::{printer::Printer, terminal::one_line};

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
    board: Mutex<Board>,
    /// Told when the run is over.
    over: Condvar,
}

impl Progress {
    pub(super) fn start(style: Style) -> Self {
        let board = Mutex::new(Board::new());
        let shared = Arc::new(Shared { style, board, over: Condvar::new() });
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
        let mut board = self.shared.board();
        let notes: Vec<String> = batch.iter().filter_map(|it| board.take(&it.event)).collect();
        if !notes.is_empty() {
            board.erase();
            let mut err = io::stderr().lock();
            // Nothing sensible can be done when standard error is gone.
            let _ = notes.iter().try_for_each(|note| writeln!(err, "{note}"));
        }
    }

    /// Says something that cannot wait, also to those who want no progress.
    pub(super) fn note(&self, note: &str) {
        let mut board = self.shared.board();
        board.erase();
        // Nothing sensible can be done when standard error is gone.
        let _ = writeln!(io::stderr(), "{}", safe(note));
    }

    /// Takes the lines away.
    pub(super) fn finish(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        self.shared.board().over = true;
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
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw_until_over(&self) {
        let every = if self.style == Style::Live { REDRAW } else { REPORT };
        let mut board = self.board();
        while !board.over {
            let waited = self.over.wait_timeout_while(board, every, |board| !board.over);
            board = waited.unwrap_or_else(PoisonError::into_inner).0;
            if board.over {
                break;
            }
            match self.style {
                Style::Live => board.draw(),
                Style::Plain if board.started => {
                    let _ = writeln!(io::stderr(), "{}", board.line());
                }
                Style::Plain | Style::Quiet => {}
            }
        }
        board.erase();
    }
}

/// What is known of the run.
#[derive(Debug)]
struct Board {
    begun: Instant,
    started: bool,
    over: bool,
    planned: u64,
    done_before: u64,
    done: u64,
    counts: Counts,
    /// Cases in the works, since when.
    live: BTreeMap<CaseKey, Instant>,
    /// Cases that wait for their next try, until when.
    backing_off: BTreeMap<CaseKey, Instant>,
    paused: BTreeMap<String, Instant>,
    cost_usd: f64,
    tokens: u64,
    drawn: usize,
}

/// A shorter pause is worth no line of its own.
const WORTH_A_LINE: Duration = Duration::from_secs(10);

impl Board {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            started: false,
            over: false,
            planned: 0,
            done_before: 0,
            done: 0,
            counts: Counts::default(),
            live: BTreeMap::new(),
            backing_off: BTreeMap::new(),
            paused: BTreeMap::new(),
            cost_usd: 0.0,
            tokens: 0,
            drawn: 0,
        }
    }

    /// Takes an event in. What everybody should read comes back as a line.
    fn take(&mut self, event: &Event) -> Option<String> {
        let now = Instant::now();
        match event {
            Event::RunStarted { lanes, done_before, .. } => {
                self.started = true;
                self.begun = now;
                self.planned = lanes.iter().map(|lane| lane.planned).sum();
                self.done_before = done_before.iter().sum();
            }
            Event::CaseStarted(key) => {
                self.live.insert(key.clone(), now);
            }
            Event::AttemptFailed { case, retry_in_ms, .. } => {
                if let Some(wait) = retry_in_ms {
                    self.backing_off.insert(case.clone(), now + Duration::from_millis(*wait));
                }
            }
            Event::BackendPaused { backend, for_ms, limit: _, reason } => {
                let length = Duration::from_millis(*for_ms);
                self.paused.insert(backend.clone(), now + length);
                if length >= WORTH_A_LINE {
                    return Some(format!(
                        "backend `{}` is left alone for {}: {}",
                        safe(backend),
                        span(length),
                        one_line(reason, 200)
                    ));
                }
            }
            Event::CaseFinished { lane, record } => {
                let case_id = record.case_id.clone();
                let key = CaseKey { lane: *lane, case_id, repeat: record.repeat };
                self.live.remove(&key);
                self.backing_off.remove(&key);
                self.done += 1;
                self.counts.add(record.class);
                self.cost_usd += record.cost_usd.unwrap_or(0.0);
                self.tokens += record.usage.total();
            }
            Event::CaseAborted { case, .. } => {
                self.live.remove(case);
                self.backing_off.remove(case);
            }
            Event::BackendTripped { backend, reason, permanent, .. } => {
                let hope = if *permanent { "permanent" } else { "transient" };
                return Some(format!(
                    "backend `{}` is given up: the same error again and again ({hope}): {}",
                    safe(backend),
                    one_line(reason, 200)
                ));
            }
            Event::CancelStarted { reason } => {
                return Some(format!("{reason}: cancelling {} cases", self.live.len()));
            }
            Event::LaneFinished { .. } | Event::RunFinished { .. } => {}
        }
        None
    }

    /// Everything in one line.
    fn line(&self) -> String {
        let mut line = format!("{}/{} done", self.done + self.done_before, self.planned);
        let classes = Class::ALL.into_iter().filter(|class| self.counts.get(*class) > 0);
        for class in classes {
            let _ = write!(line, ", {} {class}", self.counts.get(class));
        }
        let _ = write!(line, "; {}", self.activity());
        line
    }

    /// What goes on now.
    fn activity(&self) -> String {
        let now = Instant::now();
        let seconds = self.begun.elapsed().as_secs_f64();
        let waiting = self.backing_off.iter().filter(|(_, until)| **until > now);
        let next = waiting.clone().map(|(_, until)| *until - now).min();
        let waiting = waiting.count();
        let mut text = format!("{} in flight", self.live.len().saturating_sub(waiting));
        if let Some(next) = next {
            let _ = write!(text, ", {waiting} backing off (next in {})", span(next));
        }
        for (backend, until) in self.paused.iter().filter(|(_, until)| **until > now) {
            let _ = write!(text, ", {} paused for {}", safe(backend), span(*until - now));
        }
        if let Some((key, since)) = self.live.iter().min_by_key(|(_, since)| **since)
            && since.elapsed() >= Duration::from_secs(5)
        {
            let _ =
                write!(text, ", oldest {} ({})", one_line(&key.case_id, 24), span(since.elapsed()));
        }
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 cases")]
        let rate = self.done as f64 / seconds.max(0.001);
        let left = self.planned.saturating_sub(self.done + self.done_before);
        if self.done > 0 {
            let _ = write!(text, ", {rate:.1}/s");
            #[expect(clippy::cast_precision_loss, reason = "far below 2^53 cases")]
            let eta = Duration::try_from_secs_f64(left as f64 / rate.max(1e-6)).unwrap_or_default();
            let _ = write!(text, ", {} left", span(eta));
        }
        if self.cost_usd > 0.0 {
            let _ = write!(text, ", ${:.4}", self.cost_usd);
        } else if self.tokens > 0 {
            let _ = write!(text, ", {} tokens", self.tokens);
        }
        text
    }

    /// Draws over what was drawn before.
    fn draw(&mut self) {
        if !self.started {
            return;
        }
        let width = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| width.0);
        let width = usize::from(width).max(20) - 1;
        let line = self.line();
        let (done, activity) = line.split_once("; ").unwrap_or((&line, ""));
        let lines = [self.bar(width.min(60)), cut(done, width), cut(activity, width)];
        self.erase();
        let mut err = io::stderr().lock();
        let _ = lines.iter().try_for_each(|line| writeln!(err, "{line}"));
        let _ = err.flush();
        self.drawn = lines.len();
    }

    fn bar(&self, width: usize) -> String {
        let done = self.done + self.done_before;
        let inner = width.saturating_sub(7);
        let share = |of: usize| {
            let filled = done.min(self.planned) * of as u64 / self.planned.max(1);
            usize::try_from(filled).unwrap_or(of)
        };
        let filled = share(inner);
        format!("[{}{}] {:>3}%", "#".repeat(filled), ".".repeat(inner - filled), share(100))
    }

    /// Takes away what was drawn.
    fn erase(&mut self) {
        if self.drawn > 0 {
            let _ = write!(io::stderr(), "\r\x1b[{}A\x1b[J", self.drawn);
            self.drawn = 0;
        }
    }
}

fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

/// A duration, rounded as people want it.
fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1}s", duration.as_secs_f64()),
        10..6000 => Span(Duration::from_secs(seconds)).to_string(),
        _ => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests;
