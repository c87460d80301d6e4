//! What an execution costs: `true` in a world, with the list of its changes.

use std::{
    collections::BTreeMap,
    io,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use nix::sys::resource::{UsageWho, getrusage};
use probity_sandbox::{Command, Keeper, Limits, Sandbox, world::Prepared};

use crate::measure::cpu;

/// Prints the median time of an execution, how many there are in a second on all cores, CPU time and memory.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
pub(crate) fn run(count: usize) -> io::Result<()> {
    let tree = tempfile::tempdir()?;
    let prepared = world(tree.path());
    let sandbox = Sandbox::open(&Keeper::this_program()).map_err(io::Error::other)?;
    let bash = Command::Shell("true".to_owned());
    let execute = |command: &Command| -> io::Result<Duration> {
        let start = Instant::now();
        let execution = sandbox.execute_anew(&prepared, command, &Limits::default());
        execution.map_err(io::Error::other).map(|_| start.elapsed())
    };
    for command in [Command::Argv(vec!["true".to_owned()]), bash.clone()] {
        let mut times = (0..count).map(|_| execute(&command)).collect::<io::Result<Vec<_>>>()?;
        times.sort();
        let ms = |index: usize| times[index.min(count - 1)].as_secs_f64() * 1e3;
        println!(
            "{command:?}: median {:.1} ms, best {:.1}, 95th percentile {:.1}",
            ms(count / 2),
            ms(0),
            ms(count * 95 / 100)
        );
    }
    let threads = thread::available_parallelism().map_or(2, usize::from) * 2;
    let (start, next) = (Instant::now(), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < count && execute(&bash).is_ok() {}
            });
        }
    });
    let a_second = count as f64 / start.elapsed().as_secs_f64();
    println!("{a_second:.0} executions a second, {threads} at a time");
    // The keeper is waited for when the sandbox goes; all that it started is in its account.
    drop(sandbox);
    let (this, others) = (getrusage(UsageWho::RUSAGE_SELF)?, getrusage(UsageWho::RUSAGE_CHILDREN)?);
    let each = (cpu(&this) + cpu(&others)).as_secs_f64() * 1e3 / (3 * count) as f64;
    println!("{each:.1} ms of CPU time each");
    println!(
        "peak memory: {} MiB here, {} MiB in the largest process",
        this.max_rss() >> 10,
        others.max_rss() >> 10
    );
    Ok(())
}

fn world(tree: &std::path::Path) -> Prepared {
    Prepared {
        name: "bench".to_owned(),
        digest: "bench".to_owned(),
        tree: tree.to_owned(),
        directory: "/".to_owned(),
        variables: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        processes: Vec::new(),
    }
}
