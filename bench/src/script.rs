//! What a script costs: assertions as promptfoo's users write them, by CPU time of all threads.

use std::{hint::black_box, io, time::Instant};

use nix::sys::resource::{UsageWho, getrusage};
use probity_script::{Limits, Script, run};
use serde_json::Value;

use crate::measure::cpu;

const ASSERTIONS: &[&str] = &[
    "output.length > 10 && output.includes('Paris')",
    "output.toLowerCase().includes(context.vars.city.toLowerCase())",
    "JSON.parse('{\"a\": 1}').a === 1 && /paris|lyon/i.test(output)",
    "const words = output.split(/\\s+/);\nreturn words.length <= 50 ? 1 : 50 / words.length;",
    "(output, context) => ({ pass: output.startsWith('The'), score: 0.8, reason: context.vars.city })",
];
const CONTEXT: &str = r#"{"vars":{"city":"Paris","language":"en"},"prompt":"What is the capital of France?","test":{"description":"capital","vars":{"city":"Paris"}},"provider":{"id":"x","label":"x"},"logProbs":null}"#;

/// Prints assertions per CPU-second, each and all together.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
pub(crate) fn run_all(count: usize) -> io::Result<()> {
    let output = Value::from("The capital of France is Paris, a city on the Seine.");
    let limits = Limits::default();
    let spent = || getrusage(UsageWho::RUSAGE_SELF).map(|it| cpu(&it)).map_err(io::Error::from);
    let began = (spent()?, Instant::now());
    for source in ASSERTIONS {
        let script = Script::inline(source).map_err(io::Error::other)?;
        let before = spent()?;
        for _ in 0..count {
            black_box(run(&script, &output, CONTEXT, &limits)).map_err(io::Error::other)?;
        }
        let each = spent()?.saturating_sub(before).as_secs_f64() / count as f64;
        println!("{:>9.0} a CPU-second  {}", 1.0 / each, source.lines().next().unwrap_or(""));
    }
    let each = spent()?.saturating_sub(began.0).as_secs_f64() / (count * ASSERTIONS.len()) as f64;
    println!("{:>9.0} a CPU-second over all ({:.1?})", 1.0 / each, began.1.elapsed());
    Ok(())
}
