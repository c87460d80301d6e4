//! What things are called on the server. Everything of a team begins with its prefix.

use probity_run::carrier::CallId;

/// The names of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    prefix: String,
    /// The same where no dot may stand.
    flat: String,
}

/// A prefix that no subject can begin with.
#[derive(Clone, Debug, thiserror::Error)]
#[error("`{0}` is no prefix: it has letters, digits, `-`, `_`, and dots between them")]
pub struct BadPrefix(String);

impl Names {
    /// The prefix of those who choose none.
    pub const USUAL: &'static str = "probity";

    /// The names that begin with a prefix.
    pub fn new(prefix: &str) -> Result<Self, BadPrefix> {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
        let is_token = |it: &str| !it.is_empty() && it.chars().all(is_plain);
        match prefix.len() <= 64 && prefix.split('.').all(is_token) {
            true => Ok(Self { prefix: prefix.to_owned(), flat: prefix.replace('.', "-") }),
            false => Err(BadPrefix(prefix.to_owned())),
        }
    }

    /// The prefix.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Where answers to a run, and to those who look at the server, come to.
    pub fn inbox_of_runs(&self) -> String {
        format!("{}.inbox", self.prefix)
    }

    /// Where answers to workers come to.
    pub fn inbox_of_workers(&self) -> String {
        format!("{}.reply", self.prefix)
    }

    /// The stream of calls that wait or are being made.
    pub fn calls(&self) -> String {
        format!("{}_calls", self.flat)
    }

    /// The stream of results that are not on the disk of the run yet.
    pub fn results(&self) -> String {
        format!("{}_results", self.flat)
    }

    /// The stream that says which runs there are.
    pub fn runs(&self) -> String {
        format!("{}_runs", self.flat)
    }

    /// The stream that says which workers there are.
    pub fn workers(&self) -> String {
        format!("{}_workers", self.flat)
    }

    /// The stream of calls that were delivered too often.
    pub fn lost(&self) -> String {
        format!("{}_lost", self.flat)
    }

    /// The object store of what workers read.
    pub fn objects_in(&self) -> String {
        format!("{}_in", self.flat)
    }

    /// The object store of what workers write.
    pub fn objects_out(&self) -> String {
        format!("{}_out", self.flat)
    }

    pub(crate) fn call(&self, offer: &str, run: &str, id: CallId) -> String {
        format!("{}.call.{offer}.{}.{id}", self.prefix, token(run))
    }

    /// All calls of an offer.
    pub(crate) fn calls_for(&self, offer: &str) -> String {
        format!("{}.call.{offer}.>", self.prefix)
    }

    /// All calls of a run.
    pub(crate) fn calls_of(&self, run: &str) -> String {
        format!("{}.call.*.{}.*", self.prefix, token(run))
    }

    pub(crate) fn result(&self, run: &str, id: CallId) -> String {
        format!("{}.result.{}.{id}", self.prefix, token(run))
    }

    pub(crate) fn results_of(&self, run: &str) -> String {
        format!("{}.result.{}.*", self.prefix, token(run))
    }

    pub(crate) fn run(&self, run: &str) -> String {
        format!("{}.run.{}", self.prefix, token(run))
    }

    /// The consumer of the results of a run.
    pub(crate) fn results_consumer(run: &str) -> String {
        token(run)
    }

    /// Where workers say that they have begun a call of a run.
    pub(crate) fn started(&self, run: &str) -> String {
        format!("{}.started.{}", self.prefix, token(run))
    }

    /// Where a run says that a call is not needed any more.
    pub(crate) fn cancel(&self, id: &str) -> String {
        format!("{}.cancel.{id}", self.prefix)
    }

    pub(crate) fn worker(&self, name: &str) -> String {
        format!("{}.worker.{}", self.prefix, token(name))
    }

    pub(crate) fn every(&self, what: &str) -> String {
        format!("{}.{what}.>", self.prefix)
    }

    /// Where the server says that a call was delivered too often.
    pub(crate) fn too_often(&self) -> String {
        format!("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{}.>", self.calls())
    }
}

/// A text as a part of a subject.
fn token(text: &str) -> String {
    let plain = |it: char| match it.is_ascii_alphanumeric() || it == '-' || it == '_' {
        true => it,
        false => '_',
    };
    text.chars().map(plain).collect()
}

/// The last part of a subject.
pub(crate) fn last_token(subject: &str) -> &str {
    subject.rsplit('.').next().unwrap_or(subject)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_the_beginning_of_subjects_and_nothing_else() {
        for good in ["probity", "team-a.evals", "A_1"] {
            assert_eq!(Names::new(good).unwrap().prefix(), good);
        }
        for bad in ["", ".", "a.", "a b", "a.*", ">", "$JS", "é", &"x".repeat(65)] {
            assert!(Names::new(bad).is_err(), "{bad}");
        }
        let names = Names::new("team.a").unwrap();
        assert_eq!(names.calls(), "team-a_calls");
        assert_eq!(names.run("2026 x"), "team.a.run.2026_x");
    }
}
