//! Reads a reply from standard input, and prints what it is as JSON.
//!
//! ```sh
//! echo 'It is Lyon.' | cargo run -p probity-grade --example classify_reply -- Paris
//! ```

#![expect(clippy::print_stdout, reason = "it is what an example is for")]

use std::{env, error::Error, io};

use probity_core::{case::TestCase, judging::RuleConfig, run_result::RunResult};
use probity_grade::{Compiler, Rules, classify};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let expected = env::args().nth(1).ok_or("name the answer that is expected")?;
    let mut case = TestCase::default();
    case.criteria.expected_response = Some(expected.into());
    let rules = Rules::compile(&RuleConfig::default()).map_err(|it| format!("{it:?}"))?;
    let expected = Compiler::new(&rules).compile(&case).map_err(|it| format!("{it:?}"))?;
    let reply = io::read_to_string(io::stdin())?;
    let result = RunResult { raw_response: Some(reply.trim_end()), ..RunResult::default() };
    let classification = classify(&expected, &result);
    let verdict = expected.verdict(&classification);
    println!("{:#}", json!({ "classification": classification, "verdict": verdict }));
    Ok(())
}
