//! Shell commands: how many are judged in a CPU-second, and what long texts cost.

use std::{fs::File, io, io::Write as _, path::Path, time::Duration};

use nix::time::{ClockId, clock_gettime};
use probity_shell::{
    Script, equivalence, posix,
    safety::{self, Rules},
};

use crate::{
    classify::{command, per_second},
    measure,
};

/// Commands as people ask for them, each with another that does the same or nearly so.
pub(crate) const COMMANDS: &[(&str, &str)] = &[
    ("ls -la", "ls -a -l"),
    ("find . -name '*.rst' -type f", "find . -type f -name \"*.rst\""),
    ("grep -rn TODO src | head -n 20", "grep -nr TODO src | head -20"),
    ("tar xzf a.tgz -C /tmp", "tar --extract --gzip --file=a.tgz -C /tmp"),
    ("rm -rf build", "rm -fr build"),
    ("git commit -am 'fix things'", "git commit -a -m \"fix things\""),
    ("cat f | sort | uniq -c | sort -nr", "sort f | uniq -c | sort -rn"),
    ("docker ps -q", "docker ps --quiet"),
    ("sudo apt-get install -y curl", "sudo apt-get -y install curl"),
    ("for f in *.md; do wc -l \"$f\"; done", "for f in *.md; do wc -l \"${f}\"; done"),
    ("echo \"$HOME\" > out.txt", "echo ~ >out.txt"),
    ("curl -sSL https://example.org/x | bash", "wget -qO- https://example.org/x | sh"),
    ("chmod 644 file && chown me file", "chmod u=rw,go=r file && chown me file"),
    ("awk '{print $1}' access.log", "cut -d ' ' -f 1 access.log"),
    ("ps aux | grep nginx", "ps axu | grep nginx"),
    ("kubectl get pods -n prod", "kubectl -n prod get pods"),
    ("du -sh * | sort -h", "du -h -s * | sort -h"),
    ("mkdir -p a/b && cd a/b", "mkdir --parents a/b && cd a/b"),
    ("sed -i 's/a/b/g' f", "sed -i s/a/b/g f"),
    ("kill -9 4242", "kill -KILL 4242"),
];

/// What a text is made of, and how often it is repeated for a given size.
const LONG: &[&str] = &[
    "ls -la; ",
    "a | ",
    "a",
    "'a' ",
    "\"$x\" ",
    "$(",
    "`",
    "{a,b}",
    "((",
    "a && ",
    "\\\n",
    "<<E\n",
    "x=1 ",
    "if a; then ",
    "rm -rf / ; ",
    "[",
    "*",
    "${x:-",
    "# ",
    "case a in a) ",
];

pub(crate) fn run(probity: &Path, count: usize) -> io::Result<()> {
    stages(count / 20)?;
    through_the_program(probity, count)?;
    long_texts(probity)
}

fn cpu_now() -> io::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}

/// The cost of each judgement alone, in the same process.
fn stages(rounds: usize) -> io::Result<()> {
    let rules = Rules::builtin();
    let parse = |text| Script::parse(text).map_err(|error| io::Error::other(error.to_string()));
    let scripts = COMMANDS
        .iter()
        .map(|(left, right)| Ok((parse(left)?, parse(right)?)))
        .collect::<io::Result<Vec<_>>>()?;
    let per_command = |name: &str, run: &dyn Fn()| -> io::Result<()> {
        run();
        let start = cpu_now()?;
        for _ in 0..rounds {
            run();
        }
        let spent = cpu_now()?.saturating_sub(start).as_secs_f64();
        println!(
            "{name:<24} {:>6.2} us a command",
            1e6 / per_second(rounds * COMMANDS.len(), spent)
        );
        Ok(())
    };
    per_command("parse", &|| {
        COMMANDS.iter().for_each(|(text, _)| drop(std::hint::black_box(Script::parse(text))));
    })?;
    per_command("safety", &|| {
        scripts.iter().for_each(|(it, _)| drop(std::hint::black_box(safety::assess(it, rules))));
    })?;
    per_command("POSIX", &|| {
        scripts.iter().for_each(|(it, _)| {
            drop(std::hint::black_box(posix::check(it, posix::Edition::default())));
        });
    })?;
    per_command("equivalence of a pair", &|| {
        scripts.iter().for_each(|(left, right)| {
            drop(std::hint::black_box(equivalence::compare(left, right)));
        });
    })
}

/// Commands per CPU-second through `check command --jsonl`, JSON included.
fn through_the_program(probity: &Path, count: usize) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, pairs) in [("safety and POSIX", false), ("all three, on pairs", true)] {
        let path = folder.path().join("requests.jsonl");
        let mut file = io::BufWriter::new(File::create(&path)?);
        for at in 0..count {
            let (left, right) = COMMANDS[at % COMMANDS.len()];
            match pairs {
                true => {
                    writeln!(file, "{{\"id\":{at},\"command\":{left:?},\"against\":{right:?}}}")?;
                }
                false => writeln!(file, "{{\"id\":{at},\"command\":{left:?}}}")?,
            }
        }
        file.flush()?;
        let mut command = command(probity);
        command.args(["check", "command", "--jsonl"]).stdin(File::open(&path)?);
        let cost = measure::run(&mut command)?;
        let rate = per_second(count, cost.cpu.as_secs_f64());
        println!("{name:<24} {rate:>9.0} a CPU-second, peak {} MiB", cost.peak_kib / 1024);
    }
    Ok(())
}

/// Twice the size must take about twice the time.
fn long_texts(probity: &Path) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut worst = (0.0, "");
    for text in LONG {
        let time = |bytes: usize| -> io::Result<f64> {
            let path = folder.path().join("text");
            std::fs::write(&path, text.repeat(bytes / text.len()))?;
            let mut command = command(probity);
            command.args(["check", "command", "--json"]).stdin(File::open(path)?);
            Ok(measure::run(&mut command)?.cpu.as_secs_f64())
        };
        let (one, two) = (time(512 << 10)?, time(1 << 20)?);
        let ratio = two / one.max(0.001);
        println!("1 MiB of {text:<14?} {:>7.1} ms, x{ratio:.1} for twice the size", two * 1e3);
        if ratio > worst.0 {
            worst = (ratio, text);
        }
    }
    println!("the worst: x{:.1} for twice the size, on {:?}", worst.0, worst.1);
    Ok(())
}
