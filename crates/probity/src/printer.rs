//! The only place that prints. Standard output is data, standard error is for people.

use std::{
    collections::BTreeMap,
    io::{self, BufWriter, IsTerminal as _, Write},
    os::fd::AsFd,
    sync::Arc,
    time::{Duration, Instant},
};

use anstream::{AutoStream, ColorChoice, adapter::strip_str};
use anstyle::Style;

use crate::{
    cli::ColorArg, diagnostic, environment::Environment, failure::Failure, terminal::wrapped,
};
use probity_core::{
    classification::Verdict,
    problem::Problem,
    visible::{push_safe, safe},
};
use probity_report::{
    palette::{self, Tint},
    text::USUAL_WIDTH,
};

const ERROR: Style = Tint::of_verdict(Verdict::Fail).style().bold();
/// Columns below which lines are wrapped by the terminal.
const LEAST_WIDTH: usize = 40;
/// The height of a terminal that does not say how high it is.
const USUAL_HEIGHT: usize = 24;
const HINT: Style = Tint::of_verdict(Verdict::Pass).style().bold();

/// Hands out the two streams, with or without colour.
pub(crate) struct Printer {
    choice: ColorChoice,
    silent: bool,
    /// Who is told instead of the two streams.
    hearer: Option<Hearer>,
}

/// Somebody who is told what would be printed.
pub(crate) type Hearer = Arc<dyn Fn(Told<'_>) + Send + Sync>;

/// What would be printed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told<'t> {
    /// What is wrong with a file.
    Problem(&'t str),
    /// Anything else.
    Note(&'t str),
}

impl Printer {
    pub(crate) fn new(color: ColorArg) -> Self {
        let choice = match color {
            ColorArg::Auto => ColorChoice::Auto,
            ColorArg::Always => ColorChoice::Always,
            ColorArg::Never => ColorChoice::Never,
        };
        choice.write_global();
        Self { choice, silent: false, hearer: None }
    }

    /// A printer that prints nothing, and tells somebody instead.
    pub(crate) fn telling(hearer: Hearer) -> Self {
        Self { choice: ColorChoice::Never, silent: false, hearer: Some(hearer) }
    }

    /// Tells whoever listens instead of the streams; false if nobody does.
    fn tell(&self, told: Told<'_>) -> bool {
        self.hearer.as_ref().map(|hearer| hearer(told)).is_some()
    }

    /// When to use colour, as `--color` has it.
    pub(crate) fn color(&self) -> &'static str {
        match self.choice {
            ColorChoice::Auto => "auto",
            ColorChoice::Always | ColorChoice::AlwaysAnsi => "always",
            ColorChoice::Never => "never",
        }
    }

    /// A printer that tells people nothing, for work whose problems were shown before.
    pub(crate) fn silent() -> Self {
        Self { choice: ColorChoice::Never, silent: true, hearer: None }
    }

    /// Whether nobody watches: continuous integration keeps what is written, line by line.
    pub(crate) fn in_ci() -> bool {
        Environment::of_process("CI").is_some_and(|value| !value.is_empty() && value != "false")
    }

    /// Columns of the terminal that standard output is; as many as usual if it is none.
    pub(crate) fn width() -> usize {
        columns(io::stdout())
    }

    /// The same for standard error.
    pub(crate) fn err_width() -> usize {
        columns(io::stderr())
    }

    /// The text as standard output shows it best: on a terminal, long lines go on in the next.
    pub(crate) fn laid_out(text: &str) -> String {
        match io::stdout().is_terminal() {
            true => wrapped(text, Self::width()),
            false => text.to_owned(),
        }
    }

    /// Columns and lines of the terminal that standard error is, however few they are: what is drawn
    /// there has to know on how many lines it is.
    pub(crate) fn err_size() -> (usize, usize) {
        let size = terminal_size::terminal_size_of(io::stderr());
        size.map_or((USUAL_WIDTH, USUAL_HEIGHT), |(width, height)| {
            // A terminal that does not know says zero.
            let width = if width.0 == 0 { USUAL_WIDTH } else { usize::from(width.0) };
            (width, usize::from(height.0).max(2))
        })
    }

    /// Whether what is drawn on standard error may have colours.
    pub(crate) fn colours_err() -> bool {
        AutoStream::choice(&io::stderr()) != ColorChoice::Never
    }

    /// Standard output for data: buffered, never coloured.
    pub(crate) fn data() -> BufWriter<Output> {
        BufWriter::with_capacity(256 << 10, Output::default())
    }

    /// Standard error, for people.
    pub(crate) fn err(&self) -> AutoStream<io::StderrLock<'static>> {
        AutoStream::new(io::stderr().lock(), self.choice)
    }

    /// Shows a problem of a file with its source line.
    pub(crate) fn problem(&self, problem: &Problem) {
        let text = || strip_str(&styled(&diagnostic::render(problem))).to_string();
        if self.hearer.is_some() {
            self.tell(Told::Problem(&text()));
        } else if !self.silent {
            // Nothing sensible can be done when standard error is gone.
            let _ = writeln!(self.err(), "{}\n", styled(&diagnostic::render(problem)));
        }
    }

    /// Writes an answer that people read, to standard output. What cannot be seen is spelled
    /// out.
    pub(crate) fn show(&self, text: &str) -> Result<(), Failure> {
        self.show_styled(&safe(text))
    }

    /// Writes an answer with colours of our own. Whatever was put into it is safe already.
    pub(crate) fn show_styled(&self, text: &str) -> Result<(), Failure> {
        if self.tell(Told::Note(&strip_str(&styled(text)).to_string())) {
            return Ok(());
        }
        let is_plain = match self.choice {
            ColorChoice::Auto => AutoStream::choice(&io::stdout()) == ColorChoice::Never,
            ColorChoice::Never => true,
            ColorChoice::Always | ColorChoice::AlwaysAnsi => false,
        };
        let text = styled(text);
        match is_plain {
            true => Self::emit(&strip_str(&text).to_string()),
            false => Self::emit(&text),
        }
    }

    /// Writes data, to standard output and as it is.
    pub(crate) fn emit(text: &str) -> Result<(), Failure> {
        // GitHub obeys lines that begin with two colons, and a model may have written one.
        let is_command = |line: &str| line.trim_start().starts_with("::");
        let in_actions = || Environment::of_process("GITHUB_ACTIONS").as_deref() == Some("true");
        match text.lines().any(is_command) && in_actions() {
            false => Self::command(text),
            true => {
                let token = format!("{:016x}", fastrand::u64(..));
                Self::command(&format!("::stop-commands::{token}\n{text}\n::{token}::\n"))
            }
        }
    }

    /// Writes lines that GitHub is to obey, to standard output.
    pub(crate) fn command(lines: &str) -> Result<(), Failure> {
        let mut out = Output::default();
        out.write_all(lines.as_bytes()).and_then(|()| out.flush()).map_err(Failure::output)
    }

    /// Shows problems, but no more of each kind than people read.
    pub(crate) fn problems(&self) -> Problems<'_> {
        Problems { printer: self, seen: BTreeMap::new() }
    }

    /// Shows one line to people.
    pub(crate) fn note(&self, line: &str) {
        if self.tell(Told::Note(&safe(line))) {
            return;
        }
        let _ = writeln!(self.err(), "{}", safe(line));
    }

    /// Shows a text with colours of our own to people, where standard output is for scripts.
    pub(crate) fn note_styled(&self, text: &str) {
        if self.tell(Told::Note(&strip_str(&styled(text)).to_string())) {
            return;
        }
        let _ = writeln!(self.err(), "{}", styled(text));
    }

    /// A line on a terminal that says how far a long job has come, and goes when it is done.
    pub(crate) fn progress(&self) -> Progress {
        // Data on the same terminal is progress enough.
        let shown = io::stderr().is_terminal() && !io::stdout().is_terminal() && !self.silent;
        Progress { shown, last: None }
    }

    /// The same for a job that prints nothing meanwhile.
    pub(crate) fn long_progress(&self) -> Progress {
        Progress { shown: io::stderr().is_terminal() && !self.silent, last: None }
    }

    /// Shows why the command failed.
    pub(crate) fn failure(&self, failure: &Failure) {
        let mut err = self.err();
        let _ = writeln!(err, "{ERROR}error{ERROR:#}: {}", safe(&failure.to_string()));
        for cause in failure.causes() {
            let _ = writeln!(err, "  caused by: {}", safe(&cause));
        }
        if let Some(hint) = failure.hint_text() {
            let _ = writeln!(err, "{HINT}hint{HINT:#}: {}", safe(hint));
        }
    }
}

fn columns(stream: impl AsFd) -> usize {
    let size = terminal_size::terminal_size_of(stream);
    size.map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0).max(LEAST_WIDTH))
}

/// The text with nothing left in it that steers a terminal but the colours that we use.
fn styled(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        let (before, escape) = rest.split_at(at);
        shown.push_str(&safe(before));
        let length = colour(escape);
        match length {
            Some(length) => shown.push_str(&escape[..length]),
            None => push_safe(&mut shown, '\x1b'),
        }
        rest = &escape[length.unwrap_or(1)..];
    }
    shown.push_str(&safe(rest));
    shown
}

/// The length of the sequence that a text begins with, if all it does is to colour text.
fn colour(text: &str) -> Option<usize> {
    let codes = text.strip_prefix("\x1b[")?;
    let end = codes.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    if !codes[end..].starts_with('m') {
        return None;
    }
    // Reset, bold, underlined, and colours of letters: nothing that hides them.
    let is_ours = |code: &str| matches!(code.parse(), Ok(0 | 1 | 4 | 31..=36 | 91..=97_u8));
    let of_palette = codes[..end].strip_prefix("38;5;").and_then(|it| it.parse().ok());
    let is_of_palette = of_palette.is_some_and(palette::has);
    let is_ours = is_of_palette || codes[..end].split(';').all(is_ours);
    is_ours.then_some("\x1b[".len() + end + 1)
}

/// Standard output. Whoever reads it may leave at any time: the rest is not written, and
/// what the command has found out stands all the same.
#[derive(Debug, Default)]
pub(crate) struct Output {
    is_deserted: bool,
}

impl Output {
    /// Whether nobody reads any more, so that a command that only prints may end.
    pub(crate) fn is_deserted(&self) -> bool {
        self.is_deserted
    }

    fn forgive<T>(&mut self, result: io::Result<T>, instead: T) -> io::Result<T> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_deserted = true;
                Ok(instead)
            }
            other => other,
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.is_deserted {
            true => Ok(bytes.len()),
            false => {
                let written = io::stdout().write(bytes);
                self.forgive(written, bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = io::stdout().flush();
        self.forgive(flushed, ())
    }
}

/// Shows problems one by one, and counts what it does not show.
pub(crate) struct Problems<'p> {
    printer: &'p Printer,
    seen: BTreeMap<&'static str, usize>,
}

impl Problems<'_> {
    /// Problems of one kind that are shown.
    const MOST: usize = 100;

    pub(crate) fn show(&mut self, problem: &Problem) {
        let seen = self.seen.entry(problem.code).or_default();
        *seen += 1;
        if *seen <= Self::MOST {
            self.printer.problem(problem);
        }
    }
}

impl Drop for Problems<'_> {
    fn drop(&mut self) {
        for (code, seen) in self.seen.iter().filter(|(_, seen)| **seen > Self::MOST) {
            let more = seen - Self::MOST;
            self.printer.note(&format!("and {more} more like the last `{code}`"));
        }
    }
}

/// How far a long job has come.
pub(crate) struct Progress {
    shown: bool,
    last: Option<Instant>,
}

impl Progress {
    const EVERY: Duration = Duration::from_millis(200);

    /// Shows the text, unless the last one is still fresh.
    pub(crate) fn update(&mut self, text: impl FnOnce() -> String) {
        let due = self.last.is_none_or(|last| last.elapsed() >= Self::EVERY);
        if self.shown && due {
            self.last = Some(Instant::now());
            let _ = write!(io::stderr(), "\r\x1b[K{}", text());
        }
    }

    /// Takes the line away, so that other text can stand there.
    pub(crate) fn clear(&mut self) {
        if self.shown && self.last.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_colours_get_through() {
        assert_eq!(styled("\x1b[1m\x1b[91mred\x1b[0m"), "\x1b[1m\x1b[91mred\x1b[0m");
        assert_eq!(styled("\x1b[38;5;166mx"), "\x1b[38;5;166mx");
        // Hidden text, a cleared screen, a title, half a sequence, and C1.
        for text in [
            "\x1b[8m",
            "\x1b[2J",
            "\x1b]0;x\x07",
            "\x1b[31",
            "\x1b[1;8m",
            "\u{9b}31m",
            "\x1b[38;5;8;8m",
        ] {
            let shown = styled(text);
            assert!(!shown.contains(char::is_control), "{shown:?}");
        }
    }
}
