//! What a reply was found to be: the closed set of eight, the deciding rule, the evidence.

use std::{fmt, ops::Range, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::evidence::Evidence;

/// The one thing a run result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Primary {
    /// The reply meets the case's criteria.
    Pass,
    /// It does not, and nothing more specific is wrong with it.
    Fail,
    /// The call could not be completed.
    Error,
    /// The model declined.
    Refusal,
    /// The reply is not in the format the case asks for.
    WrongFormat,
    /// The reply breaks a policy.
    PolicyViolation,
    /// The call crashed, or came back with nothing.
    Crash,
    /// The call took too long.
    Timeout,
}

/// The three kinds of outcome that people act on differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Nothing to do.
    Pass,
    /// The model's doing: fail, refusal, wrong format, policy violation.
    Quality,
    /// Not the model's doing: error, timeout, crash.
    Infrastructure,
}

impl Primary {
    /// All eight, in the order they are reported.
    pub const ALL: [Self; 8] = [
        Self::Pass,
        Self::Fail,
        Self::Error,
        Self::Refusal,
        Self::WrongFormat,
        Self::PolicyViolation,
        Self::Crash,
        Self::Timeout,
    ];

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Error => "error",
            Self::Refusal => "refusal",
            Self::WrongFormat => "wrong_format",
            Self::PolicyViolation => "policy_violation",
            Self::Crash => "crash",
            Self::Timeout => "timeout",
        }
    }

    /// Which kind of outcome it is.
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

impl fmt::Display for Primary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Primary {
    type Err = UnknownPrimary;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|primary| primary.as_str() == text)
            .ok_or_else(|| UnknownPrimary(text.to_owned()))
    }
}

/// A name that is none of the eight.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no classification")]
pub struct UnknownPrimary(String);

/// The rules in the order they are consulted; the first that fires decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The error is a timeout.
    Timeout,
    /// The error is a crash.
    Crash,
    /// There is an error.
    Error,
    /// There is neither an error nor a reply.
    EmptyResponse,
    /// The reply, or the vendor's interface, declines.
    Refusal,
    /// The reply is not in the expected format.
    Format,
    /// A policy fires.
    Policy,
    /// A criterion of the case does not hold.
    Mismatch,
    /// None of the above.
    Pass,
}

impl Rule {
    /// All rules in order.
    pub const ALL: [Self; 9] = [
        Self::Timeout,
        Self::Crash,
        Self::Error,
        Self::EmptyResponse,
        Self::Refusal,
        Self::Format,
        Self::Policy,
        Self::Mismatch,
        Self::Pass,
    ];

    /// What a result is when this rule decides.
    pub const fn primary(self) -> Primary {
        match self {
            Self::Timeout => Primary::Timeout,
            Self::Crash | Self::EmptyResponse => Primary::Crash,
            Self::Error => Primary::Error,
            Self::Refusal => Primary::Refusal,
            Self::Format => Primary::WrongFormat,
            Self::Policy => Primary::PolicyViolation,
            Self::Mismatch => Primary::Fail,
            Self::Pass => Primary::Pass,
        }
    }

    /// The rules consulted until this one decided, itself last.
    pub fn trace(self) -> &'static [Self] {
        const ALL: &[Rule] = &Rule::ALL;
        &ALL[..=self as usize]
    }
}

/// What a run result is, which rule said so, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Classification {
    /// The deciding rule; it fixes [`Classification::primary`].
    pub rule: Rule,
    /// The evidence, in a fixed order of keys.
    pub details: Details,
}

impl Classification {
    /// One of the eight.
    pub fn primary(&self) -> Primary {
        self.rule.primary()
    }
}

impl Serialize for Classification {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut fields = serializer.serialize_struct("Classification", 4)?;
        fields.serialize_field("primary", &self.primary())?;
        fields.serialize_field("rule", &self.rule)?;
        fields.serialize_field("trace", self.rule.trace())?;
        fields.serialize_field("details", &self.details)?;
        fields.end()
    }
}

/// The evidence behind a classification. Only what applies is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Details {
    /// `wrong_format`: what the strict parser or the schema says, and where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// `timeout`: the limit that was exceeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<serde_json::Number>,
    /// `policy_violation`: the first policy in file order that fired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_name: Option<String>,
    /// `error`, `timeout`, `crash`: the error's text, cut to a bounded size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_details: Option<String>,
    /// `crash`: what kind, such as `empty_response` or `signal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// `crash`: the signal that ended the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Where the evidence was found: the reply, the stop reason, or the interface's error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'static str>,
    /// `refusal`: the words that decline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phrase: Option<String>,
    /// Byte range of the evidence in the reply.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "pair")]
    pub span: Option<Range<usize>>,
    /// Every policy hit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hits: Vec<PolicyHit>,
    /// What it took to read JSON out of the reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<&'static str>,
    /// Names that an object of the reply holds more than once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub duplicate_keys: Vec<String>,
    /// `fail`: how the reply differs from what was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<Value>,
    /// `pass`: the matcher that held, or `none` where the case states no criterion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criteria: Option<&'static str>,
    /// `any_of`: which of the expected answers it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched_index: Option<usize>,
    /// Each assertion's outcome.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assertions: Vec<AssertionOutcome>,
    /// What was found out about the shell command in the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<CommandDetails>>,
    /// What a skill runner found out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Box<Evidence>>,
    /// There was a reply beside the error.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial_reply: bool,
    /// The other rules that fired, each with its own evidence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Also>,
}

/// What was found out about the shell command in a reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CommandDetails {
    /// The command; none if the reply holds none.
    pub command: Option<String>,
    /// What was cut away to get it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<&'static str>,
    /// How many other commands the reply offers.
    #[serde(skip_serializing_if = "is_zero")]
    pub alternatives: usize,
    /// Why it cannot be read as shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parse_error: Option<String>,
    /// `equal`, `different` or `unknown`, against what was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equivalence: Option<&'static str>,
    /// Why, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Which of several expected commands it is equal to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched_index: Option<usize>,
    /// The canonical forms of the expected command and of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canonical: Option<[String; 2]>,
    /// The first place where the forms part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
    /// The highest risk found in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<&'static str>,
    /// Whether it is safe at the level of the suite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safe: Option<bool>,
    /// Part of it cannot be judged without running it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub opaque: bool,
    /// The safety rules that fired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Whether it is POSIX.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub posix: Option<bool>,
    /// The POSIX rules it breaks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<&'static str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A rule that fired without deciding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Also {
    /// The rule.
    pub rule: Rule,
    /// A few words of evidence.
    pub evidence: String,
}

/// One place where a policy fires.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyHit {
    /// The policy's name.
    pub policy: String,
    /// The rule inside it.
    pub rule: String,
    /// Byte range in the reply.
    #[serde(serialize_with = "range")]
    pub span: Range<usize>,
    /// How grave the policy says it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
}

/// What one assertion came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AssertionOutcome {
    /// Its type as the case names it, `not-` included.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub pass: bool,
    /// Between 0 and 1; most assertions know only the two ends.
    pub score: f64,
    /// How much it counts.
    pub weight: f64,
    /// The metric it reports under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Why it does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What gates count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The case went as it should.
    Pass,
    /// It did not, and the model is to answer for it.
    Fail,
    /// It could not be judged.
    Error,
}

impl Verdict {
    /// The verdict on a case that came to `primary` where `expected` was asked for.
    ///
    /// Without an expectation only a pass passes. An outage that was expected is a
    /// pass as well; one that was not is an error and never a fail.
    pub fn of(primary: Primary, expected: Option<Primary>) -> Self {
        match (primary == expected.unwrap_or(Primary::Pass), primary.group()) {
            (true, _) => Self::Pass,
            (false, Group::Pass | Group::Quality) => Self::Fail,
            (false, Group::Infrastructure) => Self::Error,
        }
    }

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Error => "error",
        }
    }
}

/// How many results came to each of the eight; they add up to the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; 8]);

impl Counts {
    /// Counts one more result.
    pub fn add(&mut self, primary: Primary) {
        self.add_many(primary, 1);
    }

    /// Counts several results of one kind.
    pub fn add_many(&mut self, primary: Primary, count: u64) {
        self.0[primary as usize] += count;
    }

    /// How many results came to `primary`.
    pub fn get(&self, primary: Primary) -> u64 {
        self.0[primary as usize]
    }

    /// Each of the eight with how many there are, in reporting order.
    pub fn iter(&self) -> impl Iterator<Item = (Primary, u64)> + '_ {
        Primary::ALL.into_iter().map(|primary| (primary, self.get(primary)))
    }

    /// How many results there are.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Counts all that another one counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// The eight by name, in reporting order.
    pub fn to_json(&self) -> Map<String, Value> {
        Primary::ALL
            .into_iter()
            .map(|primary| (primary.as_str().to_owned(), self.get(primary).into()))
            .collect()
    }
}

fn range<S: serde::Serializer>(span: &Range<usize>, serializer: S) -> Result<S::Ok, S::Error> {
    [span.start, span.end].serialize(serializer)
}

#[expect(clippy::ref_option, reason = "the signature that serde asks for")]
fn pair<S: serde::Serializer>(
    span: &Option<Range<usize>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    span.as_ref().map(|span| [span.start, span.end]).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for primary in Primary::ALL {
            assert_eq!(primary.as_str().parse::<Primary>().unwrap(), primary);
            assert_eq!(serde_json::to_value(primary).unwrap(), primary.as_str());
        }
        assert!("passed".parse::<Primary>().is_err());
    }

    #[test]
    fn an_expected_refusal_passes_and_an_outage_is_no_fail() {
        assert_eq!(Verdict::of(Primary::Refusal, Some(Primary::Refusal)), Verdict::Pass);
        assert_eq!(Verdict::of(Primary::Pass, Some(Primary::Refusal)), Verdict::Fail);
        assert_eq!(Verdict::of(Primary::Timeout, None), Verdict::Error);
        assert_eq!(Verdict::of(Primary::Timeout, Some(Primary::Timeout)), Verdict::Pass);
        assert_eq!(Verdict::of(Primary::Refusal, None), Verdict::Fail);
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
        for primary in Primary::ALL {
            counts.add(primary);
        }
        counts.merge(&counts.clone());
        assert_eq!(counts.total(), 16);
        assert_eq!(counts.get(Primary::Crash), 2);
    }
}
