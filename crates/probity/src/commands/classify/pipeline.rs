//! Classifies a stream on several threads, in order and in bounded memory.
//!
//! The input is cut into chunks at line ends. Chunk `i` goes to worker `i % n` and
//! its result is awaited from worker `i % n`, so the order is kept without a queue
//! of results that came too early, and the output is the same for any `n`.

use std::{
    io::{self, Read, Write},
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use probity_core::problem::{Problem, Source};
use probity_grade::{Compiler, Rules};
use probity_load::{case::Findings, lines::LONGEST_LINE};

use super::{line::classify_line, tally::Tally};
use crate::{failure::Failure, printer::Printer};

/// Bytes of input in a chunk, about.
const CHUNK: usize = 512 << 10;
/// Chunks that may wait for a worker, and results that may wait for the writer.
const WAITING: usize = 2;
/// Bytes kept of a line that is too long, to show where it is.
const SHOWN: usize = 1000;

pub(super) struct Settings<'a> {
    pub(super) rules: &'a Rules,
    /// The input's name in messages.
    pub(super) name: Arc<str>,
    pub(super) require_criteria: bool,
    pub(super) threads: usize,
}

struct Chunk {
    bytes: Vec<u8>,
    first_line: usize,
    /// It is only the beginning of a line that is longer than any that is accepted.
    overlong: bool,
}

#[derive(Default)]
struct Classified {
    bytes: Vec<u8>,
    tally: Tally,
    problems: Vec<Problem>,
}

impl Classified {
    /// Counts a line that is no run result, and keeps what is wrong with it.
    fn report(&mut self, settings: &Settings<'_>, text: &str, line: usize, findings: Findings) {
        self.tally.broken += 1;
        let source = Source::part(text, line);
        let problems = findings.0.into_iter().map(|it| it.at(&settings.name, &source));
        self.problems.extend(problems);
    }
}

/// Reads all of `input` and writes it classified.
pub(super) fn run(
    settings: &Settings<'_>,
    input: impl Read,
    output: &mut (impl Write + Send),
    printer: &Printer,
) -> Result<Tally, Failure> {
    thread::scope(|scope| {
        let mut to_workers = Vec::with_capacity(settings.threads);
        let mut from_workers = Vec::with_capacity(settings.threads);
        for _ in 0..settings.threads {
            let (chunks, inbox) = sync_channel(WAITING);
            let (outbox, results) = sync_channel(WAITING);
            scope.spawn(move || work(settings, &inbox, &outbox));
            to_workers.push(chunks);
            from_workers.push(results);
        }
        let writer = scope.spawn(move || write_all(&from_workers, output, printer));
        let read = read_all(input, &to_workers);
        drop(to_workers);
        let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let tally = written.map_err(Failure::output)?;
        read.map_err(|error| {
            Failure::new(format!("failed to read `{}`", settings.name)).because(error)
        })?;
        Ok(tally)
    })
}

/// Cuts the input into chunks and deals them out. Stops early when the writer is gone.
fn read_all(mut input: impl Read, workers: &[SyncSender<Chunk>]) -> io::Result<()> {
    let mut rest = Vec::new();
    let mut first_line = 1;
    for worker in workers.iter().cycle() {
        let mut bytes = std::mem::take(&mut rest);
        let filled = fill(&mut input, &mut bytes)?;
        let overlong = filled == Filled::Overlong;
        let mut ended = filled == Filled::Ended;
        match filled {
            Filled::Ended => {}
            Filled::Lines => {
                let end = memchr::memrchr(b'\n', &bytes).map_or(bytes.len(), |at| at + 1);
                rest = bytes.split_off(end);
            }
            Filled::Overlong => {
                bytes.truncate(SHOWN);
                bytes.shrink_to_fit();
                ended = skip_line(&mut input, &mut rest)?;
            }
        }
        let lines = memchr::memchr_iter(b'\n', &bytes).count() + usize::from(overlong);
        if worker.send(Chunk { bytes, first_line, overlong }).is_err() || ended {
            return Ok(());
        }
        first_line += lines;
    }
    Ok(())
}

/// What reading a chunk came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Filled {
    /// The input is at its end.
    Ended,
    /// There is a line end in the chunk.
    Lines,
    /// The chunk is the beginning of a line that is too long.
    Overlong,
}

/// Reads until there is a chunk with a line end in it.
fn fill(input: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<Filled> {
    let mut wanted = CHUNK;
    loop {
        let missing = wanted.saturating_sub(bytes.len()) as u64;
        let read = input.by_ref().take(missing).read_to_end(bytes)?;
        if (read as u64) < missing {
            return Ok(Filled::Ended);
        }
        if memchr::memchr(b'\n', bytes).is_some() {
            return Ok(Filled::Lines);
        }
        if bytes.len() > LONGEST_LINE {
            return Ok(Filled::Overlong);
        }
        wanted = bytes.len() * 2;
    }
}

/// Drops the rest of a line; what follows it goes to `rest`. True at the end of the input.
fn skip_line(input: &mut impl Read, rest: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = input.read(&mut buffer)?;
        if read == 0 {
            return Ok(true);
        }
        if let Some(at) = memchr::memchr(b'\n', &buffer[..read]) {
            rest.extend_from_slice(&buffer[at + 1..read]);
            return Ok(false);
        }
    }
}

fn work(settings: &Settings<'_>, inbox: &Receiver<Chunk>, outbox: &SyncSender<Classified>) {
    let mut compiler = Compiler::new(settings.rules);
    for chunk in inbox {
        if outbox.send(classify_chunk(settings, &chunk, &mut compiler)).is_err() {
            return;
        }
    }
}

fn classify_chunk(
    settings: &Settings<'_>,
    chunk: &Chunk,
    compiler: &mut Compiler<'_>,
) -> Classified {
    let mut done = Classified::default();
    if chunk.overlong {
        let text = String::from_utf8_lossy(&chunk.bytes);
        let mut findings = Findings::default();
        let message = format!("the line is longer than {} MiB", LONGEST_LINE >> 20);
        findings.error("too-large", &(0..1), message);
        done.report(settings, &text, chunk.first_line, findings);
        return done;
    }
    done.bytes.reserve(chunk.bytes.len() + chunk.bytes.len() / 2);
    for (at, line) in chunk.bytes.split(|byte| *byte == b'\n').enumerate() {
        let number = chunk.first_line + at;
        let line = match number {
            1 => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
            _ => line,
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Err((text, findings)) = one_line(settings, line, compiler, &mut done) {
            done.report(settings, &text, number, findings);
        }
    }
    done
}

fn one_line(
    settings: &Settings<'_>,
    line: &[u8],
    compiler: &mut Compiler<'_>,
    done: &mut Classified,
) -> Result<(), (String, Findings)> {
    let text = std::str::from_utf8(line).map_err(|error| {
        let mut findings = Findings::default();
        let at = error.valid_up_to();
        findings.error("not-utf8", &(at..at + 1), "the text is not UTF-8 from here on".to_owned());
        (String::from_utf8_lossy(line).into_owned(), findings)
    })?;
    classify_line(text, compiler, settings.require_criteria, &mut done.tally, &mut done.bytes)
        .map_err(|findings| (text.to_owned(), findings))
}

/// Writes the results in order, and shows what is wrong with the lines that have none.
fn write_all(
    workers: &[Receiver<Classified>],
    output: &mut impl Write,
    printer: &Printer,
) -> io::Result<Tally> {
    let mut tally = Tally::default();
    let mut progress = printer.progress();
    let mut shown = printer.problems();
    for worker in workers.iter().cycle() {
        let Ok(Classified { bytes, tally: part, problems }) = worker.recv() else { break };
        output.write_all(&bytes)?;
        if !problems.is_empty() {
            progress.clear();
            problems.iter().for_each(|problem| shown.show(problem));
        }
        tally.merge(&part);
        progress.update(|| format!("{} results classified", tally.total()));
    }
    output.flush()?;
    Ok(tally)
}
