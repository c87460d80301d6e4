//! Regular expressions that users write.

use regex::{Regex, RegexBuilder};

/// Largest compiled regular expression, in bytes.
const LARGEST: usize = 4 << 20;

/// Compiles a pattern, or says why it is none.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern).size_limit(LARGEST).build().map_err(|error| message(&error))
}

/// The last line of an error; the others draw the pattern, which the diagnostic does itself.
fn message(error: &regex::Error) -> String {
    if let regex::Error::CompiledTooBig(limit) = error {
        return format!("the regular expression is larger than {} MiB", limit >> 20);
    }
    let text = error.to_string();
    let last = text.lines().last().unwrap_or("").trim();
    let what = last.strip_prefix("error: ").unwrap_or(last);
    format!("the regular expression does not compile: {what}")
}
