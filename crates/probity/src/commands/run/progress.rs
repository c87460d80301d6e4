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

use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style as Colour};
use probity_core::{
    dollars::dollars,
    event::{CaseKey, Event, Stamped},
    metrics::Verdicts,
    span::Span,
    visible::safe,
};
use probity_run::plan::Plan;

use crate::{printer::Printer, terminal::one_line};

const GOOD: Colour = AnsiColor::Green.on_default();
const BAD: Colour = AnsiColor::Red.on_default();
const SO_SO: Colour = AnsiColor::Yellow.on_default();

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
    pub(super) fn start(style: Style, board: Board) -> Self {
        let board = Mutex::new(board);
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
                    let _ = writeln!(io::stderr(), "{}", uncoloured(&board.line()));
                }
                Style::Plain | Style::Quiet => {}
            }
        }
        board.erase();
    }
}

/// What is known of the run.
#[derive(Debug)]
pub(super) struct Board {
    begun: Instant,
    started: bool,
    over: bool,
    planned: u64,
    /// Cases that an earlier session brought to an end.
    done_before: u64,
    /// Those of this session.
    done: u64,
    /// How all of them came out.
    verdicts: Verdicts,
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
    /// What is known before the first call.
    pub(super) fn before(plan: &Plan) -> Self {
        let mut verdicts = Verdicts::default();
        let done = plan.lanes.iter().flat_map(|lane| lane.done.verdicts());
        done.for_each(|verdict| verdicts.add(verdict));
        Self::new(verdicts)
    }

    fn new(verdicts: Verdicts) -> Self {
        Self {
            begun: Instant::now(),
            started: false,
            over: false,
            planned: 0,
            done_before: 0,
            done: 0,
            verdicts,
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
                        "backend `{}` is paused for {}: {}",
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
                self.verdicts.add(record.verdict);
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
                    "backend `{}` is given up: the same {hope} error repeatedly: {}",
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
        format!("{}; {}", self.tally().join(", "), self.activity().join(", "))
    }

    /// How many are done, and how they came out.
    fn tally(&self) -> Vec<String> {
        let mut done = format!("{}/{} done", self.done + self.done_before, self.planned);
        if self.done_before > 0 {
            let _ = write!(done, " ({} before)", self.done_before);
        }
        let Verdicts { pass, fail, error, undecided } = self.verdicts;
        let errors = if error == 1 { "error" } else { "errors" };
        let counts = [
            (pass, GOOD, "passed"),
            (fail, BAD, "failed"),
            (error, SO_SO, errors),
            (undecided, SO_SO, "undecided"),
        ];
        let some = counts.into_iter().filter(|(count, ..)| *count > 0);
        let told = some.map(|(count, colour, word)| format!("{colour}{count} {word}{colour:#}"));
        std::iter::once(done).chain(told).collect()
    }

    /// What goes on now.
    fn activity(&self) -> Vec<String> {
        let now = Instant::now();
        let seconds = self.begun.elapsed().as_secs_f64();
        let waiting = self.backing_off.iter().filter(|(_, until)| **until > now);
        let next = waiting.clone().map(|(_, until)| *until - now).min();
        let waiting = waiting.count();
        let mut parts = vec![format!("{} in flight", self.live.len().saturating_sub(waiting))];
        if let Some(next) = next {
            parts.push(format!("{waiting} backing off (next in {})", span(next)));
        }
        for (backend, until) in self.paused.iter().filter(|(_, until)| **until > now) {
            parts.push(format!("{} paused for {}", one_line(backend, 40), span(*until - now)));
        }
        if let Some((key, since)) = self.live.iter().min_by_key(|(_, since)| **since)
            && since.elapsed() >= Duration::from_secs(5)
        {
            let id = one_line(&key.case_id, 40);
            parts.push(format!("oldest {id} ({})", span(since.elapsed())));
        }
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 cases")]
        let rate = self.done as f64 / seconds.max(0.001);
        let left = self.planned.saturating_sub(self.done + self.done_before);
        if self.done > 0 {
            parts.push(format!("{rate:.1}/s"));
            #[expect(clippy::cast_precision_loss, reason = "far below 2^53 cases")]
            let eta = Duration::try_from_secs_f64(left as f64 / rate.max(1e-6)).unwrap_or_default();
            parts.push(format!("{} left", span(eta)));
        }
        if self.cost_usd > 0.0 {
            parts.push(dollars(self.cost_usd));
        } else if self.tokens > 0 {
            parts.push(format!("{} tokens", self.tokens));
        }
        parts
    }

    /// The lines for a terminal so wide. What does not fit into one goes on in the next.
    fn lines(&self, width: usize) -> Vec<String> {
        let mut lines = vec![self.bar(width)];
        lines.extend(wrapped(&self.tally(), width));
        lines.extend(wrapped(&self.activity(), width));
        lines
    }

    /// Draws over what was drawn before, in one go: nothing is taken away before its successor
    /// is there.
    fn draw(&mut self) {
        if !self.started {
            return;
        }
        // The last column is left free: some terminals begin a new line when it is written.
        let lines = self.lines(Printer::err_width() - 1);
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

/// Parts in lines that are no wider than this, unless a single one is.
fn wrapped(parts: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let columns = |text: &str| uncoloured(text).chars().count();
        match lines.last_mut() {
            // A comma may follow.
            Some(line) if columns(line) + columns(part) + 3 <= width => {
                let _ = write!(line, ", {part}");
            }
            last => {
                if let Some(line) = last {
                    line.push(',');
                }
                lines.push(part.clone());
            }
        }
    }
    lines
}

fn uncoloured(text: &str) -> String {
    strip_str(text).to_string()
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
