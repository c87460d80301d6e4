//! `probity rescore` on stored runs of two sizes: what a result costs, and whether memory grows.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::Path,
};

use crate::cost::{self, Ran};

/// Measures `probity rescore` on `count` stored results, and on a fifth of them.
pub(crate) fn run(probity: &Path, count: usize) -> io::Result<()> {
    let mut peaks = Vec::new();
    for cases in [count / 5, count] {
        let Ran { wall, cpu, peak_mib, .. } = of(probity, cases)?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 cases")]
        let a_minute = cases as f64 / cpu.as_secs_f64() * 60.0;
        println!(
            "{cases} results: {a_minute:.0} per CPU-minute, {:.2} s CPU, {:.2} s wall, peak {peak_mib:.1} MiB",
            cpu.as_secs_f64(),
            wall.as_secs_f64(),
        );
        peaks.push(peak_mib);
    }
    if let [small, large] = peaks.as_slice() {
        println!("peak memory / that of a fifth: {:.2}", large / small);
    }
    Ok(())
}

/// What judging again costs, of cases whose answers half pass and half fail.
fn of(probity: &Path, cases: usize) -> io::Result<Ran> {
    let folder = tempfile::tempdir()?;
    let path = folder.path();
    fs::write(
        path.join("probity.toml"),
        "[backends.echo]\nkind = \"echo\"\n[[runners]]\nname = \"numbers\"\ndataset = \"cases.jsonl\"\n",
    )?;
    let mut file = BufWriter::new(File::create(path.join("cases.jsonl"))?);
    for at in 0..cases {
        let expected = if at % 2 == 0 { at } else { at + 1 };
        writeln!(
            file,
            r#"{{"id":"case-{at}","prompt":"Return the number {at}","expected_response":"the number {expected}","match":"icontains"}}"#
        )?;
    }
    file.flush()?;
    cost::of(probity, path, &["run", "--quiet"])?;
    let ran = cost::of(probity, path, &["rescore"])?;
    match ran.output.contains("rescored from") {
        true => Ok(ran),
        false => Err(io::Error::other(format!("nothing was judged again: {}", ran.output))),
    }
}
