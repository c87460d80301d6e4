//! What lanes are called, and how they are told apart.

use std::fmt;

/// What tells a lane from the others of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneKey<'a> {
    /// The runner.
    pub runner: &'a str,
    /// The prompt variant, if the runner has several.
    pub variant: Option<&'a str>,
    /// The backend.
    pub backend: &'a str,
}

impl LaneKey<'_> {
    /// `RUNNER`, or `RUNNER/VARIANT`: what is asked, whoever is asked.
    pub fn task(self) -> String {
        match self.variant {
            None => self.runner.to_owned(),
            Some(variant) => format!("{}/{variant}", self.runner),
        }
    }

    /// `BACKEND`, or `VARIANT@BACKEND`: what tells it from the other lanes of its runner.
    pub fn within_runner(self) -> String {
        match self.variant {
            None => self.backend.to_owned(),
            Some(variant) => format!("{variant}@{}", self.backend),
        }
    }

    /// Whether a name means this lane: that of its variant, that of its backend, or
    /// `VARIANT@BACKEND`.
    pub fn is_meant_by(self, name: &str) -> bool {
        let both = |(variant, backend): (&str, &str)| {
            self.variant == Some(variant) && self.backend == backend
        };
        self.backend == name || self.variant == Some(name) || name.split_once('@').is_some_and(both)
    }
}

/// `RUNNER on BACKEND`, or `RUNNER/VARIANT on BACKEND`.
impl fmt::Display for LaneKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.task(), self.backend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_called_by_all_that_tells_it_apart() {
        let plain = LaneKey { runner: "r", variant: None, backend: "b@1" };
        let terse = LaneKey { variant: Some("terse"), ..plain };
        assert_eq!((plain.to_string(), plain.task()), ("r on b@1".to_owned(), "r".to_owned()));
        assert_eq!(terse.to_string(), "r/terse on b@1");
        assert!(plain != terse);
        for (name, of_plain, of_terse) in [
            ("b@1", true, true),
            ("terse", false, true),
            ("terse@b@1", false, true),
            ("chatty@b@1", false, false),
            ("terse@b", false, false),
            ("b", false, false),
            ("", false, false),
        ] {
            let meant = (plain.is_meant_by(name), terse.is_meant_by(name));
            assert_eq!(meant, (of_plain, of_terse), "{name}");
        }
    }
}
