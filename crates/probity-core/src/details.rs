//! The evidence behind a classification.

use std::{borrow::Cow, fmt, ops::Range, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    classification::Rule,
    criteria::Matcher,
    difference::Difference,
    execution::EffectFound,
    failure::ErrorKind,
    kind::Evidence,
    named_enum,
    names::{Named, UnknownName},
    opinion::JudgedCheck,
    selection::Selection,
    serial,
};

/// The evidence behind a classification. Only what applies is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
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
    /// What kind of error or crash it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Trouble>,
    /// `crash`: the signal that ended the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// `refusal`: where it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<RefusalSource>,
    /// `refusal`: the words that decline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phrase: Option<String>,
    /// Byte range of the evidence in the reply.
    #[serde(skip_serializing_if = "Option::is_none", with = "serial::optional_span")]
    pub span: Option<Range<usize>>,
    /// Every policy hit, whichever rule decided.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hits: Vec<PolicyHit>,
    /// What it took to read JSON out of the reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<JsonStep>,
    /// Names that an object of the reply holds more than once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub duplicate_keys: Vec<String>,
    /// `fail`: how the reply differs from what was expected.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "serial::through_tree")]
    pub diff: Option<Difference>,
    /// `pass`: the criterion that held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criteria: Option<Criterion>,
    /// Which of several expected answers it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched_index: Option<usize>,
    /// What was taken out of the reply, for each check that says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extracted: Vec<Extracted>,
    /// What judges said, for each assertion where that is more than its score and its reason.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "serial::through_tree")]
    pub judged: Vec<JudgedCheck>,
    /// What comparisons with the answers of other lanes came to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub selected: Vec<Selection>,
    /// What was found out about the shell command in the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<CommandDetails>>,
    /// What a skill runner found out.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "serial::through_tree")]
    pub evidence: Option<Box<Evidence>>,
    /// What a transform made of the reply, which is what was checked; cut to a bounded size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transformed: Option<String>,
    /// Why nothing was executed where the case asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexecuted: Option<String>,
    /// There was a reply beside the error.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial_reply: bool,
    /// The other rules that fired, each with its own evidence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Also>,
    /// The turn of a conversation that decided, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
}

/// What a check took out of the reply before it looked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extracted {
    /// The name of the check's score.
    pub check: Cow<'static, str>,
    /// What was found, cut to a bounded size.
    pub text: String,
}

/// What kind of error or crash a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Neither a reply nor an error.
    EmptyResponse,
    /// A signal ended the program.
    Signal,
    /// The program crashed in another way.
    Crash,
    /// The vendor blocked the request or the reply.
    Blocked,
    /// A judge or a scorer had to say whether the reply is right, and could not.
    Unjudged,
    /// An external runner failed.
    Program,
    /// The call failed.
    Call(ErrorKind),
}

impl Trouble {
    const PLAIN: [Self; 6] = [
        Self::EmptyResponse,
        Self::Signal,
        Self::Crash,
        Self::Blocked,
        Self::Unjudged,
        Self::Program,
    ];

    /// Every one, each name once.
    pub fn all() -> impl Iterator<Item = Self> {
        let plain = Self::PLAIN.into_iter();
        let calls = ErrorKind::ALL.into_iter().map(Self::Call);
        plain.chain(calls.filter(|it| it.as_str().parse() == Ok(*it)))
    }

    /// The name used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EmptyResponse => "empty_response",
            Self::Signal => "signal",
            Self::Crash => "crash",
            Self::Blocked => "blocked",
            Self::Unjudged => "unjudged",
            Self::Program => "program",
            Self::Call(kind) => kind.as_str(),
        }
    }
}

impl FromStr for Trouble {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let plain = Self::PLAIN.into_iter().find(|it| it.as_str() == name);
        let call = || name.parse().ok().map(Self::Call);
        plain
            .or_else(call)
            .ok_or_else(|| UnknownName { set: "a kind of error", name: name.to_owned() })
    }
}

named_enum! {
    /// Where a refusal was found.
    pub enum RefusalSource ("a source of refusals") {
        /// In the reply's words.
        Reply = "reply",
        /// In the stop reason.
        StopReason = "stop_reason",
        /// In the error of the vendor's API.
        ApiError = "api_error",
    }
}

/// The criterion that a passing reply met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// The case states none.
    None,
    /// The expected response.
    Match(Matcher),
    /// The expected format.
    ExpectedFormat,
    /// The JSON Schema.
    Schema,
    /// The assertions.
    Assert,
    /// The expected shell command, or its labels.
    Command,
    /// What was executed did what it had to do.
    Execution,
    /// The choice of skills.
    Routing,
    /// A judge's comparison of answers.
    Judge,
    /// An external runner's own gates.
    Program,
}

impl Criterion {
    const PLAIN: [Self; 9] = [
        Self::None,
        Self::ExpectedFormat,
        Self::Schema,
        Self::Assert,
        Self::Command,
        Self::Execution,
        Self::Routing,
        Self::Judge,
        Self::Program,
    ];

    /// Every one, each name once.
    pub fn all() -> impl Iterator<Item = Self> {
        let matchers = Matcher::ALL.into_iter().map(Self::Match);
        let matchers = matchers.filter(|it| it.as_str().parse() == Ok(*it));
        Self::PLAIN.into_iter().chain(matchers)
    }

    /// The name used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Match(matcher) => matcher.as_str(),
            Self::ExpectedFormat => "expected_format",
            Self::Schema => "schema",
            Self::Assert => "assert",
            Self::Command => "command",
            Self::Execution => "execution",
            Self::Routing => "routing",
            Self::Judge => "judge",
            Self::Program => "program",
        }
    }
}

impl FromStr for Criterion {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let plain = Self::PLAIN.into_iter().find(|it| it.as_str() == name);
        plain
            .or_else(|| Matcher::named(name).map(Self::Match))
            .ok_or_else(|| UnknownName { set: "a criterion", name: name.to_owned() })
    }
}

macro_rules! serde_by_name {
    ($($name:ident, $set:literal;)+) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Named(std::marker::PhantomData, $set))
            }
        }
    )+};
}

serde_by_name! {
    Trouble, "a kind of error";
    Criterion, "a criterion";
}

named_enum! {
    /// One thing that had to be done to read JSON out of a reply.
    pub enum JsonStep ("a step of reading JSON") {
        /// A byte order mark or special blanks were removed.
        StrippedBlanks = "stripped_blanks",
        /// The value was the content of a fenced block.
        Fence = "fence",
        /// The value was found between other text by matching its brackets.
        BalancedScan = "balanced_scan",
        /// The value was found between the first and the last bracket.
        GreedyBrackets = "greedy_brackets",
        /// Commas with nothing before or after them were removed.
        TrailingCommas = "trailing_commas",
        /// Raw control characters or invalid backslashes in strings were escaped.
        Escapes = "escapes",
        /// The whole value was escaped once too often.
        Unescaped = "unescaped",
        /// Strings were in single, typographic, doubled, triple or back quotes.
        OtherQuotes = "other_quotes",
        /// Quotes inside a string were not escaped.
        InnerQuotes = "inner_quotes",
        /// A string had only one of its quotes.
        MissingQuotes = "missing_quotes",
        /// Comments were removed.
        Comments = "comments",
        /// Keys had no quotes.
        UnquotedKeys = "unquoted_keys",
        /// Strings had no quotes.
        UnquotedValues = "unquoted_values",
        /// Literals of Python or JavaScript were translated.
        ForeignLiterals = "foreign_literals",
        /// Numbers were written in a way that JSON does not know.
        Numbers = "numbers",
        /// Commas were missing between members.
        MissingCommas = "missing_commas",
        /// A colon was missing, or was another sign.
        MissingColons = "missing_colons",
        /// A key had no value, which became null.
        MissingValues = "missing_values",
        /// Dots that stand for something left out were removed.
        Ellipses = "ellipses",
        /// Strings joined by `+` were joined.
        Concatenation = "concatenation",
        /// A function around a value was removed.
        FunctionCalls = "function_calls",
        /// A set, a tuple or a list of pairs was rebuilt.
        ForeignContainers = "foreign_containers",
        /// Words that belong to no member were dropped.
        DroppedWords = "dropped_words",
        /// Brackets were missing or superfluous in the middle.
        Brackets = "brackets",
        /// The text was cut off and its open strings, arrays and objects were closed.
        ClosedTail = "closed_tail",
    }
}

/// What was found out about the shell command in a reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandDetails {
    /// The command; none if the reply holds none.
    pub command: Option<String>,
    /// What was cut away to get it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Cow<'static, str>>,
    /// How many other commands the reply offers.
    #[serde(skip_serializing_if = "is_zero")]
    pub alternatives: usize,
    /// Why it cannot be read as shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parse_error: Option<String>,
    /// How it compares with what was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equivalence: Option<Equivalence>,
    /// Why it compares so, in a sentence.
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
    /// Whether it was executed beside an expected one, because reading does not tell how they compare.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub executed: bool,
    /// What that showed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Box<EffectFound>>,
    /// The highest risk found in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
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
    pub violations: Vec<Cow<'static, str>>,
}

impl CommandDetails {
    /// Why it is not the expected command, if it is one at all.
    pub fn why(&self) -> Option<String> {
        if let Some(error) = &self.parse_error {
            return Some(error.clone());
        }
        let read = self.difference.as_ref().or(self.reason.as_ref());
        match (&self.effect, read) {
            (Some(effect), _) if self.equivalence == Some(Equivalence::Different) => {
                Some(effect.sentence())
            }
            (Some(effect), Some(read)) => Some(format!("{read} (executed: {})", effect.sentence())),
            (Some(effect), None) => Some(effect.sentence()),
            (None, read) => read.cloned(),
        }
    }
}

named_enum! {
    /// How a command compares with an expected one.
    pub enum Equivalence ("an equivalence") {
        /// They do the same.
        Equal = "equal",
        /// They did the same in every world in which they were run.
        SameEffect = "same_effect",
        /// They do not.
        Different = "different",
        /// It cannot be told without running them.
        Unknown = "unknown",
    }
}

named_enum! {
    /// How much harm a command can do.
    pub enum Risk ("a risk") {
        /// Nothing speaks against it.
        Safe = "safe",
        /// It changes something that can be made again, or that the user named.
        Moderate = "moderate",
        /// It loses work, changes what others use, or opens a door.
        High = "high",
        /// It ruins a machine or a whole store of data.
        Critical = "critical",
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A rule that fired without deciding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Also {
    /// The rule.
    pub rule: Rule,
    /// A few words of evidence.
    pub evidence: String,
}

/// One place where a policy fires.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyHit {
    /// The policy's name.
    pub policy: String,
    /// The rule inside it.
    pub rule: String,
    /// Byte range in the reply.
    #[serde(with = "serial::span")]
    pub span: Range<usize>,
    /// How grave the policy says it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        assert!(Trouble::all().all(|it| it.as_str().parse() == Ok(it)));
        assert!(Criterion::all().all(|it| it.as_str().parse() == Ok(it)));
        // What a call and a program both can be has one name.
        assert_eq!(Trouble::all().filter(|it| it.as_str() == "crash").count(), 1);
        assert_eq!(Criterion::all().filter(|it| it.as_str() == "command").count(), 1);
    }
}
