//! Finds the signal that an error text names.

use std::sync::LazyLock;

use probity_core::failure::signal_name;
use regex::Regex;

/// The signal that a text says a program was ended by.
pub(crate) fn named(text: &str) -> Option<String> {
    static SIGNAL: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i:\bsignal)[: ]{1,2}([0-9]{1,2})\b|\b(SIG[A-Z]{2,4}[12]?)\b")
            .expect("it is a constant, and a test uses it")
    });
    let found = SIGNAL.captures(text)?;
    match (found.get(1), found.get(2)) {
        (Some(number), _) => number.as_str().parse().ok().map(signal_name),
        (None, name) => {
            let name = name?.as_str();
            (1..=31).map(signal_name).find(|known| known == name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_found_by_number_and_by_name() {
        for (text, signal) in [
            ("killed by signal 9", Some("SIGKILL")),
            ("Killed (signal 9)", Some("SIGKILL")),
            ("signal: 9, SIGKILL: kill", Some("SIGKILL")),
            ("terminated by signal 15", Some("SIGTERM")),
            ("child died with SIGSEGV", Some("SIGSEGV")),
            ("killed by signal 40", Some("signal 40")),
            ("signal: killed", None),
            ("the signal 1234 was weak", None),
            ("sign off", None),
            ("SIGNAL lost", None),
        ] {
            assert_eq!(named(text).as_deref(), signal, "{text}");
        }
    }
}
