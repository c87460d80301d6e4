//! How an answer is read out of a reply before it is compared: what is taken, what does not count, how
//! near is near enough.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::named_enum;

/// How an answer is read out of a reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reading {
    /// What is taken out of the reply, one step after the other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extract: Vec<Extract>,
    /// What does not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub normalize: Vec<Uncounted>,
    /// Regular expressions; what they match does not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// The choices that the reply has to name one of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// How far a number may be from the expected one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
}

/// What is taken out of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Extract {
    /// Something that needs no words of its own.
    Named(ExtractName),
    /// What a regular expression matches.
    Regex(ExtractRegex),
    /// What stands after a marker.
    After(ExtractAfter),
    /// A fenced block of code.
    CodeBlock(ExtractCodeBlock),
    /// A value of the JSON in the reply.
    JsonPointer(ExtractJsonPointer),
    /// What stands between a tag and its end.
    XmlTag(ExtractXmlTag),
}

named_enum! {
    /// What can be taken out of a reply by its name alone.
    pub enum ExtractName ("an extraction") {
        /// The first number.
        FirstNumber = "first-number",
        /// The last number.
        LastNumber = "last-number",
        /// The last `\boxed{…}`.
        Boxed = "boxed",
        /// The last block of code, in whatever language.
        CodeBlock = "code-block",
    }
}

named_enum! {
    /// Which of several is taken.
    pub enum Take ("first or last") {
        /// The first.
        First = "first",
        /// The last.
        Last = "last",
    }
}

named_enum! {
    /// How much is taken after a marker.
    pub enum Until ("a place to stop at") {
        /// The rest of the line, or the next line that is not blank.
        Line = "line",
        /// The rest of the reply.
        End = "end",
    }
}

named_enum! {
    /// Something that does not count when two texts are compared.
    pub enum Uncounted ("a step of normalisation") {
        /// Upper and lower case.
        Case = "case",
        /// ASCII punctuation.
        Punctuation = "punctuation",
        /// The digits 0 to 9.
        Digits = "digits",
        /// The words `a`, `an` and `the`.
        Articles = "articles",
        /// Blanks at both ends, and how many there are between words.
        Whitespace = "whitespace",
        /// How characters are composed (NFC).
        Unicode = "unicode",
        /// Which of several compatible characters it is (NFKC).
        Nfkc = "nfkc",
    }
}

impl Uncounted {
    /// The name of the steps that the `SQuAD` script takes.
    pub const SQUAD_NAME: &'static str = "squad";
    /// The steps that the `SQuAD` script takes.
    pub const SQUAD: [Self; 4] = [Self::Case, Self::Punctuation, Self::Articles, Self::Whitespace];
}

macro_rules! closed {
    ($($(#[doc = $doc:literal])+ $name:ident { $($(#[$meta:meta])* $field:ident: $type:ty,)+ })+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$meta])* pub $field: $type,)+
        }
    )+};
}

closed! {
    /// What a regular expression matches.
    ExtractRegex {
        /// The expression; it may look around.
        regex: String,
        /// The part of the match that is taken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<Group>,
        /// Which match; the last unless stated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        take: Option<Take>,
    }

    /// What stands after a marker.
    ExtractAfter {
        /// The marker, whatever the case of its letters.
        after: String,
        /// Which occurrence; the last unless stated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        take: Option<Take>,
        /// How much; the rest of the line unless stated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Until>,
    }

    /// A fenced block of code.
    ExtractCodeBlock {
        /// Its language.
        code_block: String,
        /// Which of several; the last unless stated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        take: Option<Take>,
    }

    /// A value of the JSON in the reply.
    ExtractJsonPointer {
        /// The way to it, such as `/a/0`.
        json_pointer: String,
    }

    /// What stands between a tag and its end.
    ExtractXmlTag {
        /// The tag's name.
        xml_tag: String,
        /// Which of several; the last unless stated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        take: Option<Take>,
    }
}

/// A part of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// The group of that number; 0 is the whole match.
    Number(u32),
    /// The group of that name.
    Name(String),
}

impl Group {
    /// The group that a value of a file names.
    pub fn of(value: &Value) -> Option<Self> {
        let number = || value.as_u64().and_then(|it| u32::try_from(it).ok()).map(Self::Number);
        value.as_str().map(|name| Self::Name(name.to_owned())).or_else(number)
    }
}

impl Serialize for Group {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u32(*number),
            Self::Name(name) => serializer.serialize_str(name),
        }
    }
}

impl<'de> Deserialize<'de> for Group {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::of(&value).ok_or_else(|| serde::de::Error::custom("a group is a number or a name"))
    }
}

/// How far a number may be from the expected one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// So much.
    Absolute(f64),
    /// So many percent of the expected number.
    Percent(f64),
}

impl Tolerance {
    /// The tolerance that a value of a file states: `0.01`, or `"1%"`.
    pub fn of(value: &Value) -> Option<Self> {
        let sound = |number: f64| (number.is_finite() && number >= 0.0).then_some(number);
        match value.as_str() {
            Some(text) => {
                let number = text.trim().strip_suffix('%')?.trim().parse().ok();
                number.and_then(sound).map(Self::Percent)
            }
            None => value.as_f64().and_then(sound).map(Self::Absolute),
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absolute(most) => write!(f, "{most}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl Serialize for Tolerance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absolute(most) => serializer.serialize_f64(*most),
            Self::Percent(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Tolerance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom("a tolerance is a number or a percentage");
        Self::of(&value).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let written = serde_json::json!({
            "extract": [
                "last-number",
                { "regex": "a(b)", "group": 1, "take": "first" },
                { "regex": "a(?<b>b)", "group": "b" },
                { "after": "ANSWER:", "until": "end" },
                { "code_block": "python", "take": "first" },
                { "json_pointer": "/a/0" },
                { "xml_tag": "answer" }
            ],
            "normalize": ["case", "nfkc"],
            "ignore": [","],
            "choices": ["a", "b"],
            "tolerance": "1.5%"
        });
        let read: Reading = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(read.tolerance, Some(Tolerance::Percent(1.5)));
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
    }

    #[test]
    fn a_tolerance_is_never_negative() {
        assert_eq!(Tolerance::of(&serde_json::json!(-1)), None);
        assert_eq!(Tolerance::of(&serde_json::json!("5")), None);
        assert_eq!(Tolerance::of(&serde_json::json!("5 %")), Some(Tolerance::Percent(5.0)));
    }
}
