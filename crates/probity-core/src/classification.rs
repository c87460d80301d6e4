//! What a reply was found to be: one of eight classes, the deciding rule, the scores, the evidence.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{details::Details, kind::Evidence, named_enum, score::Score};

named_enum! {
    /// The one thing a result is.
    pub enum Class ("a class") {
        /// The reply meets the case's criteria.
        Pass = "pass",
        /// It does not, and nothing more specific is wrong with it.
        Fail = "fail",
        /// The call could not be completed.
        Error = "error",
        /// The model declined.
        Refusal = "refusal",
        /// The reply is not in the format the case asks for.
        WrongFormat = "wrong_format",
        /// The reply breaks a policy.
        PolicyViolation = "policy_violation",
        /// The call crashed, or came back with nothing.
        Crash = "crash",
        /// The call took too long.
        Timeout = "timeout",
    }
}

/// Three groups of classes that people act on differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Nothing to do.
    Pass,
    /// The model is to blame: fail, refusal, wrong format, policy violation.
    Quality,
    /// The model is not to blame: error, timeout, crash.
    Infrastructure,
}

impl Class {
    /// The group it belongs to.
    pub const fn group(self) -> Group {
        match self {
            Self::Pass => Group::Pass,
            Self::Fail | Self::Refusal | Self::WrongFormat | Self::PolicyViolation => {
                Group::Quality
            }
            Self::Error | Self::Timeout | Self::Crash => Group::Infrastructure,
        }
    }
}

named_enum! {
    /// The rules in the order they are consulted; the first that fires decides.
    pub enum Rule ("a rule") {
        /// The error is a timeout.
        Timeout = "timeout",
        /// The error is a crash.
        Crash = "crash",
        /// There is an error.
        Error = "error",
        /// There is neither an error nor a reply.
        EmptyResponse = "empty_response",
        /// The reply, or the vendor's API, declines.
        Refusal = "refusal",
        /// The reply is not in the expected format.
        Format = "format",
        /// A policy fires.
        Policy = "policy",
        /// A criterion of the case does not hold.
        Mismatch = "mismatch",
        /// None of the above.
        Pass = "pass",
    }
}

impl Rule {
    /// The class of a result that this rule decides.
    pub const fn class(self) -> Class {
        match self {
            Self::Timeout => Class::Timeout,
            Self::Crash | Self::EmptyResponse => Class::Crash,
            Self::Error => Class::Error,
            Self::Refusal => Class::Refusal,
            Self::Format => Class::WrongFormat,
            Self::Policy => Class::PolicyViolation,
            Self::Mismatch => Class::Fail,
            Self::Pass => Class::Pass,
        }
    }

    /// The rules consulted until this one decided, itself last.
    pub fn trace(self) -> &'static [Self] {
        const ALL: &[Rule] = &Rule::ALL;
        &ALL[..=self as usize]
    }
}

/// What a result is, which rule said so, every score, and the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Classification {
    /// The deciding rule; it fixes [`Classification::class`].
    pub rule: Rule,
    /// Every check of the case, in the order of the case.
    pub scores: Vec<Score>,
    /// The evidence, in a fixed order of keys.
    pub details: Details,
}

impl Classification {
    /// A result without scores.
    pub fn new(rule: Rule, details: Details) -> Self {
        Self { rule, scores: Vec::new(), details }
    }

    /// The same, with what is kept of the case.
    #[must_use]
    pub fn with_evidence(self, evidence: Evidence) -> Self {
        let details = Details { evidence: Some(Box::new(evidence)), ..self.details };
        Self { details, ..self }
    }

    /// One of the eight.
    pub fn class(&self) -> Class {
        self.rule.class()
    }

    /// Whether the reply breaks a policy, whichever rule decided.
    pub fn breaks_policy(&self) -> bool {
        !self.details.hits.is_empty()
    }
}

/// A classification as it is written, put together from its parts.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The deciding rule.
    pub rule: Rule,
    /// The scores that are written with it.
    pub scores: &'a [Score],
    /// The evidence that is written with it.
    pub details: &'a Details,
}

impl Serialize for Parts<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let scored = !self.scores.is_empty();
        let count = 4 + usize::from(scored);
        let mut fields = serializer.serialize_struct("Classification", count)?;
        fields.serialize_field("primary", &self.rule.class())?;
        fields.serialize_field("rule", &self.rule)?;
        fields.serialize_field("trace", self.rule.trace())?;
        match scored {
            true => fields.serialize_field("scores", self.scores)?,
            false => fields.skip_field("scores")?,
        }
        fields.serialize_field("details", self.details)?;
        fields.end()
    }
}

impl Serialize for Classification {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { rule, scores, details } = self;
        Parts { rule: *rule, scores, details }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Classification {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The class and the trace follow from the rule.
        #[derive(Deserialize)]
        struct Written {
            rule: Rule,
            #[serde(default)]
            scores: Vec<Score>,
            #[serde(default)]
            details: Details,
        }
        let Written { rule, scores, details } = Written::deserialize(deserializer)?;
        Ok(Self { rule, scores, details })
    }
}

named_enum! {
    /// What gates count.
    pub enum Verdict ("a verdict") {
        /// The case went as it should.
        Pass = "pass",
        /// It did not, and the model is to blame.
        Fail = "fail",
        /// It could not be judged: a call or a judge failed.
        Error = "error",
        /// Nothing decides it: the case has no criterion, or one that was not checked.
        Undecided = "undecided",
    }
}

impl Verdict {
    /// The verdict on a result of `class` where `expected` was asked for.
    ///
    /// Without an expectation only a pass passes. An outage that was expected is a
    /// pass as well; one that was not is an error and never a fail.
    pub fn of(class: Class, expected: Option<Class>) -> Self {
        match (class == expected.unwrap_or(Class::Pass), class.group()) {
            (true, _) => Self::Pass,
            (false, Group::Pass | Group::Quality) => Self::Fail,
            (false, Group::Infrastructure) => Self::Error,
        }
    }
}

/// How many results each class has; they add up to the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Class::ALL.len()]);

impl Counts {
    /// Counts one more result.
    pub fn add(&mut self, class: Class) {
        self.add_many(class, 1);
    }

    /// Counts several results of one class.
    pub fn add_many(&mut self, class: Class, count: u64) {
        self.0[class as usize] += count;
    }

    /// How many results have this class.
    pub fn get(&self, class: Class) -> u64 {
        self.0[class as usize]
    }

    /// Each class with how many results it has, in reporting order.
    pub fn iter(&self) -> impl Iterator<Item = (Class, u64)> + '_ {
        Class::ALL.into_iter().map(|class| (class, self.get(class)))
    }

    /// How many results there are.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds the counts of another one.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// The counts by name, in reporting order.
    pub fn to_json(&self) -> Map<String, Value> {
        self.iter().map(|(class, count)| (class.as_str().to_owned(), count.into())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for class in Class::ALL {
            assert_eq!(class.as_str().parse(), Ok(class));
            assert_eq!(serde_json::to_value(class).unwrap(), class.as_str());
        }
        assert!("passed".parse::<Class>().is_err());
    }

    #[test]
    fn an_expected_refusal_passes_and_an_outage_is_no_fail() {
        assert_eq!(Verdict::of(Class::Refusal, Some(Class::Refusal)), Verdict::Pass);
        assert_eq!(Verdict::of(Class::Pass, Some(Class::Refusal)), Verdict::Fail);
        assert_eq!(Verdict::of(Class::Timeout, None), Verdict::Error);
        assert_eq!(Verdict::of(Class::Timeout, Some(Class::Timeout)), Verdict::Pass);
        assert_eq!(Verdict::of(Class::Refusal, None), Verdict::Fail);
    }

    #[test]
    fn the_trace_ends_with_the_deciding_rule() {
        for rule in Rule::ALL {
            assert_eq!(rule.trace().last(), Some(&rule));
        }
    }

    #[test]
    fn counters_add_up() {
        let mut counts = Counts::default();
        for class in Class::ALL {
            counts.add(class);
        }
        counts.merge(&counts.clone());
        assert_eq!(counts.total(), 16);
        assert_eq!(counts.get(Class::Crash), 2);
    }
}
