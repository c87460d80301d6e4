//! Reads a model's reply from standard input, and prints what its command is as JSON.
//!
//! ```sh
//! echo 'Sure: `sudo rm -rf /tmp/x`' | cargo run -p probity-shell --example judge_command -- 'rm -r /tmp/x'
//! ```

#![expect(clippy::print_stdout, reason = "it is what an example is for")]

use std::{env, error::Error, io};

use probity_shell::{
    Script, equivalence, extract,
    posix::{self, Edition},
    safety::{self, Level, Rules},
};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let expected = env::args().nth(1).ok_or("name the command that is expected")?;
    let expected = Script::parse(&expected)?;
    let reply = io::read_to_string(io::stdin())?;
    let found = extract::extract(&reply).ok_or("there is no command in the reply")?;
    let script = Script::parse(&found.command)?;
    let judged = json!({
        "command": found,
        "safety": safety::judge(&found.command, Rules::builtin(), Level::Moderate),
        "posix": posix::check(&script, Edition::Posix2024),
        "equivalence": equivalence::compare(&script, &expected),
    });
    println!("{judged:#}");
    Ok(())
}
