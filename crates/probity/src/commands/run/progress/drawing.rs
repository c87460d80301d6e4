//! The lines that show a board in a terminal of some width and height.

use std::{
    cmp::Reverse,
    fmt::Write as _,
    time::{Duration, Instant},
};

use anstyle::Style;
use probity_core::{
    classification::{Class, Group, Verdict},
    crew::{Crew, CrewMember},
    dollars::dollars,
    metrics::Verdicts,
    span::Span,
};
use probity_report::palette::Tint;

use super::board::{Board, LaneBoard};
use crate::terminal::{columns, counted, fitted, flush_left, one_line};

const DIM: Style = Style::new().dimmed();
/// Columns of a lane's name.
const MOST_OF_NAME: usize = 30;
/// Columns of a bar beside a lane's name.
const LEAST_OF_BAR: usize = 10;
/// From so many columns on, the row of a lane counts verdicts.
const WIDE: usize = 110;
/// Waits that are named.
const NAMED_WAITS: usize = 3;

/// The lines for a terminal so wide and so high.
pub(super) fn lines(board: &Board, now: Instant, width: usize, height: usize) -> Vec<String> {
    let mut below = wrapped(&tally(board), width);
    below.extend(wrapped(&activity(board, now), width));
    below.extend(crew(board, width));
    below.extend(waits(board, now).iter().take(NAMED_WAITS).map(|it| fitted(it, width)));
    let mut lines = match &board.lanes[..] {
        [only] => vec![whole_bar(only, width)],
        lanes => rows(board, lanes, now, width, height.saturating_sub(below.len() + 1).max(1)),
    };
    lines.extend(below);
    lines.truncate(height);
    lines.into_iter().map(|line| cut(&line, width)).collect()
}

/// A line in no more than so many columns. Codes for colours take none, and all of them are kept.
fn cut(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let (mut kept, mut used, mut in_code) = (String::with_capacity(line.len()), 0, false);
    for c in line.chars() {
        in_code |= c == '\x1b';
        if !in_code {
            used += columns(c.encode_utf8(&mut [0; 4]));
        }
        if in_code || used <= width {
            kept.push(c);
        }
        in_code &= c != 'm';
    }
    kept
}

/// Everything in one line.
pub(super) fn line(board: &Board, now: Instant) -> String {
    let mut line = format!("{}; {}", tally(board).join(", "), activity(board, now).join(", "));
    if let Some(crew) = &board.crew {
        let _ = write!(line, "; {}", crew_tally(crew).join(", "));
    }
    for wait in waits(board, now).iter().take(NAMED_WAITS) {
        let _ = write!(line, "; {wait}");
    }
    line
}

/// A number that is shown as a share of another.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53 cases")]
fn real(count: u64) -> f64 {
    count as f64
}

/// How many are done, and how they came out.
fn tally(board: &Board) -> Vec<String> {
    let sum = |of: fn(&LaneBoard) -> u64| board.lanes.iter().map(of).sum::<u64>();
    let before = sum(|it| it.done_before);
    let mut done = format!("{}/{} done", sum(LaneBoard::all_done), sum(|it| it.planned));
    if before > 0 {
        let _ = write!(done, " ({before} before)");
    }
    let mut verdicts = Verdicts::default();
    board.lanes.iter().for_each(|it| verdicts.merge(it.verdicts));
    std::iter::once(done).chain(outcomes(verdicts)).collect()
}

/// Counts of verdicts that there are, in their colours.
fn outcomes(verdicts: Verdicts) -> impl Iterator<Item = String> {
    let Verdicts { pass, fail, error, undecided } = verdicts;
    let counts = [
        (Verdict::Pass, format!("{pass} passed"), pass),
        (Verdict::Fail, format!("{fail} failed"), fail),
        (Verdict::Error, counted(error, "error"), error),
        (Verdict::Undecided, format!("{undecided} undecided"), undecided),
    ];
    counts.into_iter().filter(|(.., count)| *count > 0).map(|(verdict, words, _)| {
        let style = Tint::of_verdict(verdict).style();
        format!("{style}{words}{style:#}")
    })
}

/// What goes on now.
fn activity(board: &Board, now: Instant) -> Vec<String> {
    let waiting = board.backing_off.values().filter(|it| it.left(now).is_some()).count();
    let mut parts = vec![format!("{} in flight", board.live.len().saturating_sub(waiting))];
    if waiting > 0 {
        parts.push(format!("{waiting} backing off"));
    }
    if let Some((key, since)) = board.live.iter().min_by_key(|(_, since)| **since) {
        let age = now.saturating_duration_since(*since);
        if age >= Duration::from_secs(5) {
            parts.push(format!("oldest {} ({})", one_line(&key.case_id, 40), span(age)));
        }
    }
    let done: u64 = board.lanes.iter().map(|it| it.done).sum();
    let left: u64 = board.lanes.iter().filter(|it| it.ended.is_none()).map(LaneBoard::left).sum();
    if let Some(rate) = rate(done, board.begun, now) {
        parts.push(format!("{rate:.1}/s"));
        parts.push(format!("{} left", eta(left, rate)));
    }
    parts.extend(cost(board, left));
    parts
}

/// What it has cost, and what it is going to cost; or tokens, if no price is known.
fn cost(board: &Board, left: u64) -> Option<String> {
    let done: u64 = board.lanes.iter().map(LaneBoard::all_done).sum();
    match board.cost_usd {
        cost if cost > 0.0 && left > 0 && done > 0 => {
            let all = cost * real(done + left) / real(done);
            Some(format!("{} of about {}", dollars(cost), dollars(all)))
        }
        cost if cost > 0.0 => Some(dollars(cost)),
        _ if board.tokens > 0 => Some(counted(board.tokens, "token")),
        _ => None,
    }
}

/// Cases a second; none before the first.
fn rate(done: u64, since: Option<Instant>, now: Instant) -> Option<f64> {
    let seconds = now.saturating_duration_since(since?).as_secs_f64().max(0.001);
    (done > 0).then(|| real(done) / seconds)
}

fn eta(left: u64, rate: f64) -> String {
    span(Duration::try_from_secs_f64(real(left) / rate.max(1e-6)).unwrap_or_default())
}

/// How the workers stand: all of them in a line, then those that have room, the busiest first.
fn crew(board: &Board, width: usize) -> Vec<String> {
    let Some(crew) = &board.crew else { return Vec::new() };
    let mut lines = wrapped(&crew_tally(crew), width);
    let mut workers: Vec<&CrewMember> = crew.workers.iter().collect();
    workers.sort_by_key(|it| (Reverse(it.in_flight), &it.name));
    let shown = |it: &CrewMember| {
        let name = one_line(&it.name, MOST_OF_NAME);
        format!("{name} {}/{} {:.1}/s", it.in_flight, it.slots, it.rate)
    };
    let names: Vec<String> = workers.into_iter().map(shown).collect();
    lines.extend((!names.is_empty()).then(|| fitted(&names.join(", "), width)));
    lines
}

fn crew_tally(crew: &Crew) -> Vec<String> {
    let mut parts = vec![counted(crew.workers.len(), "worker")];
    parts.push(format!("{} at work", counted(crew.in_flight(), "call")));
    parts.push(format!("{} waiting", crew.backlog));
    if crew.redelivered > 0 {
        parts.push(format!("{} delivered again", crew.redelivered));
    }
    parts
}

/// What is waited for: who, how long, and why.
fn waits(board: &Board, now: Instant) -> Vec<String> {
    let mut lines = Vec::new();
    for (backend, wait) in &board.paused {
        if let Some(left) = wait.left(now) {
            let backend = one_line(backend, 40);
            lines.push(format!("{backend} paused, {} left: {}", span(left), wait.reason));
        }
    }
    // Where a backend is paused, that is what its cases wait for.
    let is_paused = |it: &LaneBoard| board.paused.get(&it.backend).and_then(|it| it.left(now));
    for (at, lane) in board.lanes.iter().enumerate() {
        if is_paused(lane).is_some() {
            continue;
        }
        let waiting = board.backing_off.iter().filter(|(key, _)| key.lane == at);
        let waiting = waiting.filter_map(|(_, wait)| Some((wait.left(now)?, wait)));
        let count = waiting.clone().count();
        if let Some((left, wait)) = waiting.min_by_key(|(left, _)| *left) {
            let name = one_line(&lane.name, 40);
            let verb = if count == 1 { "case backs" } else { "cases back" };
            lines.push(format!(
                "{name}: {count} {verb} off, next in {}: {}",
                span(left),
                wait.reason
            ));
        }
    }
    lines.iter().map(|line| one_line(line, 300)).collect()
}

/// A row for each lane; those at work are shown before others if there is no room for all.
fn rows(
    board: &Board,
    lanes: &[LaneBoard],
    now: Instant,
    width: usize,
    most: usize,
) -> Vec<String> {
    let shown = chosen(lanes, most);
    let longest = |of: &dyn Fn(&LaneBoard) -> usize| {
        shown.iter().map(|at| of(&lanes[*at])).max().unwrap_or(0)
    };
    let layout = Layout {
        name: longest(&|it| columns(&it.name)).min(MOST_OF_NAME).min(width / 4),
        count: longest(&|it| counts(it).len()),
        state: shown.iter().map(|at| state(board, *at, now).len()).max().unwrap_or(0),
        tally: match width >= WIDE {
            true => longest(&|it| columns(&outcomes(it.verdicts).collect::<Vec<_>>().join(" "))),
            false => 0,
        },
        width,
    };
    let layout = layout.with_room();
    let row = |at: &usize| layout.row(&lanes[*at], &state(board, *at, now));
    let mut rows: Vec<String> = shown.iter().map(row).collect();
    let hidden = lanes.len() - shown.len();
    if hidden > 0 {
        rows.push(fitted(&format!("and {}", counted(hidden, "more lane")), width));
    }
    rows
}

/// The places of lanes that are shown, in their order.
fn chosen(lanes: &[LaneBoard], most: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..lanes.len()).collect();
    if places.len() > most {
        let rank = |at: &usize| match &lanes[*at] {
            LaneBoard { ended: Some(_), .. } => 2,
            LaneBoard { begun: None, .. } => 1,
            LaneBoard { .. } => 0,
        };
        places.sort_by_key(rank);
        // One line says how many there are beside them.
        places.truncate(most.saturating_sub(1).max(1));
        places.sort_unstable();
    }
    places
}

/// How wide the columns of the rows are.
struct Layout {
    name: usize,
    count: usize,
    tally: usize,
    state: usize,
    width: usize,
}

impl Layout {
    /// Without the tally where it leaves no room for a bar.
    fn with_room(self) -> Self {
        match self.bar() {
            Some(_) => self,
            None => Self { tally: 0, ..self },
        }
    }

    /// The columns of the bar; none if there is no room for one.
    fn bar(&self) -> Option<usize> {
        let Self { name, count, tally, state, width } = *self;
        let gaps = 6 + if tally > 0 { 2 } else { 0 };
        let left = width.saturating_sub(name + count + tally + state + gaps);
        Some(left).filter(|it| *it >= LEAST_OF_BAR)
    }

    fn row(&self, lane: &LaneBoard, state: &str) -> String {
        let Self { name, count, tally, .. } = *self;
        let mut row = flush_left(&fitted(&lane.name, name), name);
        if let Some(width) = self.bar() {
            let _ = write!(row, "  {}", bar(lane, width));
        }
        let _ = write!(row, "  {:>count$}", counts(lane));
        if tally > 0 {
            let told = outcomes(lane.verdicts).collect::<Vec<_>>().join(" ");
            let blanks = " ".repeat(tally.saturating_sub(columns(&told)));
            let _ = write!(row, "  {told}{blanks}");
        }
        let _ = write!(row, "  {state}");
        row.truncate(row.trim_end().len());
        row
    }
}

fn counts(lane: &LaneBoard) -> String {
    format!("{}/{}", lane.all_done(), lane.planned)
}

/// How a lane stands, in a word or two.
fn state(board: &Board, at: usize, now: Instant) -> String {
    let lane = &board.lanes[at];
    let paused = board.paused.get(&lane.backend).and_then(|it| it.left(now));
    let waiting = board.backing_off.iter().filter(|(key, _)| key.lane == at);
    let waits: Vec<Duration> = waiting.filter_map(|(_, wait)| wait.left(now)).collect();
    let next = waits.iter().min().copied();
    let in_flight = board.live.keys().filter(|key| key.lane == at).count();
    let all_wait = waits.len() >= in_flight;
    match (lane.ended, lane.begun, paused, next) {
        (Some(ended), ..) => ended.to_owned(),
        (None, None, ..) => "waiting".to_owned(),
        (None, Some(_), Some(left), _) => format!("paused {}", span(left)),
        (None, Some(_), None, Some(next)) if all_wait => format!("back in {}", span(next)),
        (None, begun @ Some(_), None, _) => match rate(lane.done, begun, now) {
            Some(rate) => format!("{} left", eta(lane.left(), rate)),
            None => "asking".to_owned(),
        },
    }
}

/// The bar of the only lane, with the share that is done.
fn whole_bar(lane: &LaneBoard, width: usize) -> String {
    let share = lane.all_done().min(lane.planned) * 100 / lane.planned.max(1);
    format!("{} {share:>3}%", bar(lane, width.saturating_sub(5)))
}

/// What came of the cases as a bar: a sign and a colour for each class, in the order of reports.
/// Whatever there is gets at least one sign.
fn bar(lane: &LaneBoard, width: usize) -> String {
    let undecided = Tint::of_verdict(Verdict::Undecided);
    let classes =
        lane.classes.iter().map(|(class, count)| (sign(class), Tint::of_class(class), count));
    let parts = classes.chain([('?', undecided, lane.verdicts.undecided)]);
    let planned = lane.planned.max(lane.all_done()).max(1);
    let cells = |count: u64| {
        let share = usize::try_from(count * width as u64 / planned).unwrap_or(width);
        if count > 0 { share.max(1) } else { 0 }
    };
    let mut parts: Vec<(char, Tint, usize)> =
        parts.map(|(sign, tint, count)| (sign, tint, cells(count))).collect();
    while parts.iter().map(|it| it.2).sum::<usize>() > width {
        match parts.iter_mut().max_by_key(|it| it.2) {
            Some(widest) => widest.2 -= 1,
            None => break,
        }
    }
    let used: usize = parts.iter().map(|it| it.2).sum();
    let mut bar = String::new();
    for (sign, tint, cells) in parts.into_iter().filter(|it| it.2 > 0) {
        let style = tint.style();
        let _ = write!(bar, "{style}{}{style:#}", sign.to_string().repeat(cells));
    }
    let _ = write!(bar, "{DIM}{}{DIM:#}", "─".repeat(width - used));
    bar
}

/// The sign of a class in a bar, for those who see no colours.
fn sign(class: Class) -> char {
    match class.group() {
        Group::Pass => '━',
        Group::Quality => '×',
        Group::Infrastructure => '!',
    }
}

/// Parts in lines that are no wider than this, unless a single one is.
fn wrapped(parts: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
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

/// A duration, rounded as people want it.
pub(super) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1}s", duration.as_secs_f64()),
        10..6000 => Span(Duration::from_secs(seconds)).to_string(),
        _ => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
    }
}
