//! Mutated inputs for everything that reads foreign bytes, in this process: no panic, no hang, bounded memory, and what
//! the fuzz targets hold their readers to. The seeds are the corpus of those targets.
//!
//! The shots are made in a process of its own, whose memory is limited. It writes down which shots are under way, so that one that brings
//! the process down (a stack that is full, no memory) can be named.

mod mutate;

use std::{
    env,
    fs::{self, File},
    io,
    os::unix::{fs::FileExt as _, process::ExitStatusExt as _},
    panic,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use probity_fuzz::{TARGETS, Target};

use super::{Campaign, Shot, room::Lab};

pub(super) const CAMPAIGN: Campaign = Campaign {
    name: "inputs",
    about: "mutated inputs for every loader, importer, template, detector and decoder, in this process",
    kinds: &[PANIC, SLOW, DOWN],
    short: 3000,
    long: 1_000_000,
    threads: 2,
    shoot,
};

/// The reader panicked, or the target did because something does not hold.
const PANIC: &str = "panicked";
const SLOW: &str = "slow";
const DOWN: &str = "brought down";

/// CPU time that no input of a few KiB may take, in a build without optimisation.
const SLOW_FROM: Duration = Duration::from_secs(1);
/// What takes longer hangs.
const HANGS_FROM: Duration = Duration::from_mins(1);
/// MiB of address space.
const MEMORY: u64 = 3072;

/// Names the file in which a child writes down what it is at.
const UNDER_WAY: &str = "PROBITY_CAMPAIGN_UNDER_WAY";

/// Makes the shots in a child. The number of findings that it could not count itself is returned; none if this is the child.
pub(super) fn apart(words: &[String]) -> io::Result<Option<u64>> {
    if env::var_os(UNDER_WAY).is_some() {
        // Panics are findings, and told as such.
        panic::set_hook(Box::new(|_| {}));
        return Ok(None);
    }
    let file = tempfile::NamedTempFile::new()?;
    let mut child = Command::new("bash");
    let script = format!("ulimit -c 0; ulimit -v {}; exec \"$0\" campaign \"$@\"", MEMORY << 10);
    child.arg("-c").arg(script).arg(env::current_exe()?).args(words);
    let status = child.env(UNDER_WAY, file.path()).status()?;
    match status.code() {
        Some(0) => Ok(Some(0)),
        Some(1) => Ok(Some(1)),
        _ => {
            let how =
                status.signal().map_or_else(|| status.to_string(), |it| format!("signal {it}"));
            let shots = under_way(file.path())?;
            println!("inputs: {DOWN}: {how} in one of these:");
            let seed = words.iter().position(|it| it == "--seed").and_then(|at| words.get(at + 1));
            let seed = seed.map_or("1", String::as_str);
            for shot in shots {
                println!("  repeat: probity-bench campaign inputs --seed {seed} --shot {shot}");
            }
            Ok(Some(1))
        }
    }
}

fn under_way(path: &Path) -> io::Result<Vec<u64>> {
    let bytes = fs::read(path)?;
    let numbers = bytes.chunks_exact(8).filter_map(|it| it.try_into().ok()).map(u64::from_le_bytes);
    Ok(numbers.filter(|it| *it > 0).map(|it| it - 1).collect())
}

/// The places in the file where threads write what they are at.
fn note(number: Option<u64>) {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PLACE: u64 = THREADS.fetch_add(1, Ordering::Relaxed) as u64 * 8;
    }
    let open = || File::options().write(true).open(env::var_os(UNDER_WAY)?).ok();
    if let Some(file) = FILE.get_or_init(open) {
        let number = number.map_or(0, |it| it + 1).to_le_bytes();
        // Without it a crash is only harder to find.
        let _ = file.write_all_at(&number, PLACE.with(|it| *it));
    }
}

/// Ends the process, as a crash would, when a shot does not come to its end.
fn watch() {
    static WATCHED: OnceLock<()> = OnceLock::new();
    WATCHED.get_or_init(|| {
        thread::spawn(|| {
            let mut before: Vec<u64> = Vec::new();
            let mut since = Instant::now();
            loop {
                thread::sleep(Duration::from_secs(1));
                let path = env::var_os(UNDER_WAY).unwrap_or_default();
                let now = under_way(Path::new(&path)).unwrap_or_default();
                let is_same = now.iter().any(|it| before.contains(it));
                if !is_same {
                    since = Instant::now();
                }
                before = now;
                if since.elapsed() > HANGS_FROM {
                    std::process::abort();
                }
            }
        });
    });
}

/// A fuzz target, and what is in its corpus.
struct Reader {
    target: Target,
    seeds: Vec<Vec<u8>>,
}

impl Reader {
    fn of(target: Target) -> io::Result<Self> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus");
        let entries = fs::read_dir(Path::new(folder).join(target.name))?;
        let mut paths: Vec<PathBuf> =
            entries.map(|it| it.map(|it| it.path())).collect::<io::Result<_>>()?;
        // The order must not depend on the file system: a shot can be repeated.
        paths.sort_unstable();
        let seeds = paths.into_iter().map(fs::read).collect::<io::Result<_>>()?;
        Ok(Self { target, seeds })
    }

    fn all() -> io::Result<&'static [Self]> {
        static ALL: OnceLock<Vec<Reader>> = OnceLock::new();
        if let Some(known) = ALL.get() {
            return Ok(known);
        }
        let read = TARGETS.iter().map(|it| Self::of(*it)).collect::<io::Result<_>>()?;
        Ok(ALL.get_or_init(|| read))
    }
}

fn shoot(_: &Lab, shot: &mut Shot) -> io::Result<()> {
    watch();
    note(Some(shot.number));
    let Reader { target, seeds } = shot.in_turn(Reader::all()?);
    let input = mutate::any(seeds, &mut shot.random);
    let begun = spent();
    let outcome = panic::catch_unwind(|| (target.read)(&input));
    let took = spent().saturating_sub(begun);
    note(None);
    let number = shot.number;
    let what = || {
        let kept = env::temp_dir().join(format!("campaign-input-{number}"));
        // Who cannot have it can repeat the shot.
        let _ = fs::write(&kept, &input);
        format!(
            "{} on {} bytes ({}): {}",
            target.name,
            input.len(),
            kept.display(),
            excerpt(&input)
        )
    };
    if let Err(reason) = outcome {
        let text = reason.downcast_ref::<String>().cloned();
        let text = text.or_else(|| reason.downcast_ref::<&str>().map(|it| (*it).to_owned()));
        shot.find(PANIC, format!("{}: {}", what(), text.unwrap_or_default()));
    }
    shot.expect(took < SLOW_FROM, SLOW, || format!("{}: {took:?}", what()));
    Ok(())
}

/// CPU time of this thread: what others do on this machine does not matter.
fn spent() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn excerpt(input: &[u8]) -> String {
    String::from_utf8_lossy(&input[..input.len().min(160)]).escape_debug().to_string()
}
