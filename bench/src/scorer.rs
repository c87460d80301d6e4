//! What a scorer that stays up costs: runs whose replies a Python function judges, in one process.
//!
//! `taskset -c 0` in front of the command keeps both sides of the pipe on one core.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::Path,
};

use crate::cost::{self, Ran};

const SUITE: &str = "store = \"runs.db\"\n[backends.echo]\nkind = \"echo\"\n\
                     [[runners]]\nname = \"cities\"\ndataset = \"cases.jsonl\"\n\
                     [scorers.own]\npython = \"own.py\"\n";
const FUNCTION: &str = "def get_assert(output, context):\n    \
                        found = context[\"vars\"][\"city\"] in output\n    \
                        return {\"pass\": found, \"score\": 0.8, \"reason\": \"looked for\"}\n";
const BY_PYTHON: &str = r#"{"type":"scorer","value":"own"}"#;
const BY_US: &str = r#"{"type":"contains","value":"Paris"}"#;

/// Measures `probity run` of `count` cases on `echo`: judged by a Python function, and by us.
pub(crate) fn run(probity: &Path, count: usize) -> io::Result<()> {
    let with = of(probity, count, BY_PYTHON)?;
    let without = of(probity, count, BY_US)?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 cases")]
    let count = count as f64;
    let told = |what: &str, ran: &Ran| {
        let Ran { wall, cpu, peak_mib, .. } = ran;
        let (wall, cpu) = (wall.as_secs_f64(), cpu.as_secs_f64());
        let (a_second, a_cpu_second) = (count / wall, count / cpu);
        println!(
            "{what}: {a_second:.0} cases a second, {a_cpu_second:.0} a CPU-second, {wall:.2} s, \
             {cpu:.2} s of CPU time, {peak_mib:.1} MiB"
        );
    };
    told("judged by a Python function", &with);
    told("judged by `contains`", &without);
    let more = with.wall.saturating_sub(without.wall).as_secs_f64();
    let more_cpu = with.cpu.saturating_sub(without.cpu).as_secs_f64();
    println!(
        "the scorer alone, by the difference: {:.0} cases a second, {:.0} a CPU-second",
        count / more,
        count / more_cpu
    );
    Ok(())
}

fn of(probity: &Path, cases: usize, assertion: &str) -> io::Result<Ran> {
    let folder = tempfile::tempdir()?;
    let path = folder.path();
    fs::write(path.join("probity.toml"), SUITE)?;
    fs::write(path.join("own.py"), FUNCTION)?;
    let mut file = BufWriter::new(File::create(path.join("cases.jsonl"))?);
    for at in 0..cases {
        writeln!(
            file,
            r#"{{"id":"case-{at}","prompt":"Is Paris the capital? Number {at}.","prompt_vars":{{"city":"Paris"}},"assert":[{assertion}]}}"#
        )?;
    }
    file.flush()?;
    let ran = cost::of(probity, path, &["run", "--quiet"])?;
    let shown = cost::of(probity, path, &["runs", "--json"])?.output;
    match shown.contains(&format!("\"pass\":{cases}")) {
        true => Ok(ran),
        false => Err(io::Error::other(format!("not all cases passed: {shown}"))),
    }
}
