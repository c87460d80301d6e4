//! Reads a text from standard input, and prints the JSON in it and what had to be forgiven.
//!
//! ```sh
//! echo "Here: {'a': 1, b: 2,}" | cargo run -p probity-grade --example read_json
//! ```

#![expect(clippy::print_stdout, reason = "it is what an example is for")]

use std::{error::Error, io};

use probity_core::criteria::JsonLevel;
use probity_grade::json::{Wanted, extract};

fn main() -> Result<(), Box<dyn Error>> {
    let text = io::read_to_string(io::stdin())?;
    let found = extract(&text, JsonLevel::Repair, Wanted::Any);
    println!("{}", serde_json::to_string_pretty(&found)?);
    Ok(())
}
