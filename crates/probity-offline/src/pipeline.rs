//! Handles the lines of a stream on several threads, in order and in bounded memory.
//!
//! The input is cut into chunks at line ends. Chunk `i` goes to worker `i % n` and
//! its result is awaited from worker `i % n`, so the order is kept without a queue
//! of results that came too early, and the output is the same for any `n`.
//!
//! A chunk is what one read gives, so that a program that waits for its answers gets them. Of lines that take long each is a
//! chunk.

use std::{
    io::{self, Read},
    num::NonZero,
    ops::ControlFlow,
    sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    thread,
};

use probity_load::lines::{LONGEST_LINE, Line};

/// Bytes of input in a chunk, at most; more only if a line is longer.
const CHUNK: usize = 512 << 10;
/// Chunks that may wait for a worker, and results that may wait for the writer.
const WAITING: usize = 2;
/// Bytes kept of a line that is too long, to show where it is.
const SHOWN: usize = 1000;

/// What is done with each line.
pub trait Job: Sync {
    /// What a thread keeps from line to line.
    type Worker<'j>
    where
        Self: 'j;
    /// What comes of lines beside the output.
    type Found: Default + Send;

    /// A new thread begins.
    fn worker(&self) -> Self::Worker<'_>;

    /// Whether some of these lines take so long that each should be dealt out alone.
    fn is_slow(&self, _lines: &[u8]) -> bool {
        false
    }

    /// Handles one line, which is not blank.
    fn line(&self, worker: &mut Self::Worker<'_>, line: Line<'_>, done: &mut Done<Self::Found>);
}

/// What came of some lines.
#[derive(Debug, Default)]
pub struct Done<Found> {
    /// What is to be written.
    pub output: Vec<u8>,
    /// What else was found.
    pub found: Found,
}

/// Why a stream was not handled to its end.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The input cannot be read.
    #[error("failed to read the input")]
    Input(#[source] io::Error),
    /// The output cannot be written.
    #[error("failed to write the output")]
    Output(#[source] io::Error),
}

/// As many threads as there are cores.
pub fn all_cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Handles all of `input`. `take` gets what came of it in order, and whether nothing more is ready yet;
/// it may end the work.
pub fn run<J: Job>(
    job: &J,
    threads: usize,
    input: impl Read,
    mut take: impl FnMut(Done<J::Found>, bool) -> io::Result<ControlFlow<()>> + Send,
) -> Result<(), Broken> {
    let threads = threads.max(1);
    thread::scope(|scope| {
        let mut to_workers = Vec::with_capacity(threads);
        let mut from_workers = Vec::with_capacity(threads);
        for _ in 0..threads {
            let (chunks, inbox) = sync_channel(WAITING);
            let (outbox, results) = sync_channel(WAITING);
            scope.spawn(move || work(job, &inbox, &outbox));
            to_workers.push(chunks);
            from_workers.push(results);
        }
        let taker = scope.spawn(move || take_all(&from_workers, &mut take));
        let read = read_all(job, input, &to_workers);
        drop(to_workers);
        let handed_on = taker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        handed_on.map_err(Broken::Output)?;
        read.map_err(Broken::Input)
    })
}

struct Chunk {
    bytes: Vec<u8>,
    first_line: usize,
    /// It is only the beginning of a line that is longer than any that is accepted.
    overlong: bool,
}

/// Cuts the input into chunks and deals them out. Stops early when nobody takes the results.
fn read_all<J: Job>(
    job: &J,
    mut input: impl Read,
    workers: &[SyncSender<Chunk>],
) -> io::Result<()> {
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
                let end = match job.is_slow(&bytes) {
                    true => memchr::memchr(b'\n', &bytes),
                    false => memchr::memrchr(b'\n', &bytes),
                };
                let end = end.map_or(bytes.len(), |at| at + 1);
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

/// Reads until there is a line end.
fn fill(input: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<Filled> {
    if memchr::memchr(b'\n', bytes).is_some() {
        return Ok(Filled::Lines);
    }
    loop {
        let old = bytes.len();
        bytes.resize(old + CHUNK, 0);
        let read = read_once(input, &mut bytes[old..])?;
        bytes.truncate(old + read);
        match read {
            0 => return Ok(Filled::Ended),
            _ if memchr::memchr(b'\n', &bytes[old..]).is_some() => return Ok(Filled::Lines),
            _ if bytes.len() > LONGEST_LINE => return Ok(Filled::Overlong),
            _ => {}
        }
    }
}

/// What is there, as far as it fits; 0 at the end.
fn read_once(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Drops the rest of a line; what follows it goes to `rest`. True at the end of the input.
fn skip_line(input: &mut impl Read, rest: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = read_once(input, &mut buffer)?;
        if read == 0 {
            return Ok(true);
        }
        if let Some(at) = memchr::memchr(b'\n', &buffer[..read]) {
            rest.extend_from_slice(&buffer[at + 1..read]);
            return Ok(false);
        }
    }
}

fn work<J: Job>(job: &J, inbox: &Receiver<Chunk>, outbox: &SyncSender<Done<J::Found>>) {
    let mut worker = job.worker();
    for chunk in inbox {
        if outbox.send(handle(job, &mut worker, &chunk)).is_err() {
            return;
        }
    }
}

fn handle<'j, J: Job>(job: &'j J, worker: &mut J::Worker<'j>, chunk: &Chunk) -> Done<J::Found> {
    let mut done = Done { output: Vec::new(), found: J::Found::default() };
    if chunk.overlong {
        let line = Line { number: chunk.first_line, bytes: &chunk.bytes, too_long: true };
        job.line(worker, line, &mut done);
        return done;
    }
    done.output.reserve(chunk.bytes.len() + chunk.bytes.len() / 2);
    let mut rest = Some(chunk.bytes.as_slice());
    for number in chunk.first_line.. {
        let Some(bytes) = rest else { break };
        let (bytes, later) = match memchr::memchr(b'\n', bytes) {
            Some(end) => (&bytes[..end], Some(&bytes[end + 1..])),
            None => (bytes, None),
        };
        rest = later;
        let bytes = match number {
            1 => bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes),
            _ => bytes,
        };
        if !bytes.trim_ascii().is_empty() {
            job.line(worker, Line { number, bytes, too_long: false }, &mut done);
        }
    }
    done
}

/// Hands the results on in order.
fn take_all<Found>(
    workers: &[Receiver<Done<Found>>],
    take: &mut impl FnMut(Done<Found>, bool) -> io::Result<ControlFlow<()>>,
) -> io::Result<()> {
    let mut workers = workers.iter().cycle();
    let mut next = workers.next().and_then(|it| it.recv().ok());
    while let Some(done) = next {
        let Some(worker) = workers.next() else { break };
        let following = worker.try_recv();
        let flow = take(done, following.is_err())?;
        if flow.is_break() {
            break;
        }
        next = match following {
            Ok(done) => Some(done),
            Err(TryRecvError::Empty) => worker.recv().ok(),
            Err(TryRecvError::Disconnected) => None,
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Says the number and the length of each line.
    struct Numbers;

    impl Job for Numbers {
        type Worker<'j> = ();
        type Found = usize;

        fn worker(&self) {}

        fn line(&self, (): &mut (), line: Line<'_>, done: &mut Done<usize>) {
            done.found += 1;
            let text = format!("{}:{}:{}\n", line.number, line.bytes.len(), line.too_long);
            done.output.extend_from_slice(text.as_bytes());
        }
    }

    fn all(input: &[u8], threads: usize) -> (String, usize) {
        let (mut output, mut count) = (Vec::new(), 0);
        let taken = run(&Numbers, threads, input, |done, _| {
            output.extend(done.output);
            count += done.found;
            Ok(ControlFlow::Continue(()))
        });
        assert!(taken.is_ok(), "{taken:?}");
        (String::from_utf8_lossy(&output).into_owned(), count)
    }

    #[test]
    fn blank_lines_count_and_are_not_handled() {
        assert_eq!(all(b"\xef\xbb\xbfab\n\n  \ncde", 2).0, "1:2:false\n4:3:false\n");
    }

    #[test]
    fn the_output_is_the_same_on_any_number_of_threads() {
        let input = "a line of some length\n".repeat(200_000);
        let one = all(input.as_bytes(), 1);
        assert_eq!(one.1, 200_000);
        assert!(all(input.as_bytes(), 5) == one, "the order differs");
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_the_next_one_is_read() {
        let mut input = vec![b'x'; LONGEST_LINE + CHUNK];
        input.extend_from_slice(b"\nshort\n");
        assert_eq!(all(&input, 1).0, format!("1:{SHOWN}:true\n2:5:false\n"));
    }

    /// Lines that wait for each other: none ends before all have begun.
    struct Together(std::sync::Barrier);

    impl Job for Together {
        type Worker<'j> = ();
        type Found = usize;

        fn worker(&self) {}

        fn is_slow(&self, _lines: &[u8]) -> bool {
            true
        }

        fn line(&self, (): &mut (), _line: Line<'_>, done: &mut Done<usize>) {
            self.0.wait();
            done.found += 1;
        }
    }

    #[test]
    fn lines_that_take_long_are_handled_at_the_same_time() {
        let mut count = 0;
        let taken = run(&Together(std::sync::Barrier::new(3)), 3, &b"a\nb\nc\n"[..], |done, _| {
            count += done.found;
            Ok(ControlFlow::Continue(()))
        });
        assert!(taken.is_ok(), "{taken:?}");
        assert_eq!(count, 3);
    }

    /// Gives one line, and the next one only when the first was answered.
    struct Asker {
        answered: mpsc::Receiver<()>,
        lines: usize,
    }

    impl Read for Asker {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.lines == 0 {
                return Ok(0);
            }
            if self.lines < 3 && self.answered.recv().is_err() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.lines -= 1;
            buffer[..2].copy_from_slice(b"a\n");
            Ok(2)
        }
    }

    #[test]
    fn a_program_that_waits_for_each_answer_gets_it() {
        let (answer, answered) = mpsc::channel();
        let mut seen = 0;
        let taken = run(&Numbers, 2, Asker { answered, lines: 3 }, |done, caught_up| {
            seen += done.found;
            if caught_up && done.found > 0 {
                // The asker is gone after the last line.
                let _ = answer.send(());
            }
            Ok(ControlFlow::Continue(()))
        });
        assert!(taken.is_ok(), "{taken:?}");
        assert_eq!(seen, 3);
    }
}
