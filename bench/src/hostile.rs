//! Texts made to hurt: twice the size must take about twice the time.

use std::{fs::File, io, path::Path};

use crate::{classify::command, measure};

const MIB: usize = 1 << 20;
const TEXTS: &[&str] = &[
    "[",
    "{",
    "\"",
    "{\"a\":",
    "[1,",
    "{\"a\":[",
    "\\",
    "'",
    "```\n",
    "```json\n{\"a\":1,\n",
    "/*",
    "I'm sorry, ",
    "I cannot ",
    "As an AI, I can't ",
    "but here is ",
    "429 ",
    "error: ",
    "a@",
    "1.2.3.",
    "4111 1111 ",
    "AKIA",
    "sk-",
    "password=",
    "-----BEGIN ",
];
const CHECKS: &[&[&str]] = &[
    &["check", "json", "--level", "lenient"],
    &["check", "json", "--level", "repair"],
    &["check", "refusal"],
    &["check", "policy"],
    &["check", "error"],
];

/// Prints the worst ratio of the times for two sizes.
pub(crate) fn run(probity: &Path) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut worst = (0.0, String::new());
    for text in TEXTS {
        let (small, large) = (folder.path().join("small"), folder.path().join("large"));
        std::fs::write(&small, text.repeat(MIB / text.len()))?;
        std::fs::write(&large, text.repeat(2 * MIB / text.len()))?;
        for check in CHECKS {
            let time = |path: &Path| -> io::Result<f64> {
                let mut command = command(probity);
                command.args(*check).stdin(File::open(path)?);
                Ok(measure::run(&mut command)?.cpu.as_secs_f64())
            };
            let (one, two) = (time(&small)?, time(&large)?);
            let ratio = two / one.max(0.001);
            println!("{:<32} {text:<22?} {:>7.1} ms, x{ratio:.1}", check.join(" "), one * 1e3);
            if ratio > worst.0 {
                worst = (ratio, format!("{} on {text:?}", check.join(" ")));
            }
        }
    }
    println!("the worst: x{:.1} for twice the size, {}", worst.0, worst.1);
    Ok(())
}
