//! What people say of results. It stands beside what was measured and changes none of it.
//!
//! A later remark of a person on the same matter takes the place of the earlier one, which stays in the history.

mod agreement;

use std::{fmt, str::FromStr};

use serde::Serialize;

use crate::{
    classification::Verdict,
    named_enum,
    record::{CaseRecord, InputDigest},
    visible::is_hidden,
};

pub use agreement::{Agreement, Opinions};

/// Characters of a name or a tag.
const LONGEST_NAME: usize = 60;
/// Characters of a note.
const LONGEST_NOTE: usize = 4000;
/// The fewest and the most points, as judges give them.
pub const POINTS: std::ops::RangeInclusive<u8> = 1..=5;
/// What points are for where a case has no criterion of a judge.
pub const OVERALL: &str = "overall";

/// A text that may not be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// There is nothing in it.
    #[error("the {0} is empty")]
    Empty(&'static str),
    /// There is too much in it.
    #[error("the {what} is longer than {most} characters")]
    TooLong {
        /// What it is.
        what: &'static str,
        /// How many characters it may have.
        most: usize,
    },
    /// People would not see all that is in it.
    #[error("the {0} has characters that cannot be seen")]
    Hidden(&'static str),
}

/// A short text in one line, all of which can be seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Name(String);

impl Name {
    /// The name of a person.
    pub fn of_person(text: &str) -> Result<Self, Unfit> {
        Self::read(text, "name")
    }

    /// A tag.
    pub fn of_tag(text: &str) -> Result<Self, Unfit> {
        Self::read(text, "tag")
    }

    /// What is in it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn read(text: &str, what: &'static str) -> Result<Self, Unfit> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Unfit::Empty(what));
        }
        if text.chars().count() > LONGEST_NAME {
            return Err(Unfit::TooLong { what, most: LONGEST_NAME });
        }
        match text.contains(|c| is_hidden(c) || c == '\n' || c == '\t') {
            true => Err(Unfit::Hidden(what)),
            false => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A text of several lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Note(String);

impl Note {
    /// What is in it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Note {
    type Err = Unfit;

    fn from_str(text: &str) -> Result<Self, Unfit> {
        // Forms send line ends in this way.
        let text = text.replace("\r\n", "\n").trim().to_owned();
        let what = "note";
        match text.chars().count() {
            0 => Err(Unfit::Empty(what)),
            1..=LONGEST_NOTE => Ok(Self(text)),
            _ => Err(Unfit::TooLong { what, most: LONGEST_NOTE }),
        }
    }
}

named_enum! {
    /// What the verdict ought to be. It is about the reply, so it holds when the criteria change.
    pub enum Mark ("a mark") {
        /// The reply is right.
        Pass = "pass",
        /// It is not.
        Fail = "fail",
    }
}

impl Mark {
    /// Whether it confirms a verdict; none where the run has none.
    pub fn confirms(self, verdict: Verdict) -> Option<bool> {
        match verdict {
            Verdict::Pass => Some(self == Self::Pass),
            Verdict::Fail => Some(self == Self::Fail),
            Verdict::Error | Verdict::Undecided => None,
        }
    }
}

/// What a person says about one matter; nothing if they take back what they said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "matter", rename_all = "lowercase")]
pub enum Remark {
    /// The verdict.
    Verdict {
        /// What it ought to be.
        mark: Option<Mark>,
    },
    /// A criterion of a rubric.
    Points {
        /// The criterion.
        about: String,
        /// From 1 to 5.
        points: Option<u8>,
    },
    /// Anything.
    Note {
        /// In the person's words.
        note: Option<Note>,
    },
    /// A tag.
    Tag {
        /// The tag.
        tag: Name,
        /// Whether the result has it.
        is_set: bool,
    },
}

impl Remark {
    /// Whether another remark is about the same matter.
    pub fn is_on_matter_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Verdict { .. }, Self::Verdict { .. })
            | (Self::Note { .. }, Self::Note { .. }) => true,
            (Self::Points { about: one, .. }, Self::Points { about: two, .. }) => one == two,
            (Self::Tag { tag: one, .. }, Self::Tag { tag: two, .. }) => one == two,
            (
                Self::Verdict { .. } | Self::Points { .. } | Self::Note { .. } | Self::Tag { .. },
                _,
            ) => false,
        }
    }

    /// Whether it only takes back what was said before.
    pub const fn is_withdrawal(&self) -> bool {
        match self {
            Self::Verdict { mark } => mark.is_none(),
            Self::Points { points, .. } => points.is_none(),
            Self::Note { note } => note.is_none(),
            Self::Tag { is_set, .. } => !*is_set,
        }
    }
}

/// Who said what, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Said {
    /// Who.
    pub person: Name,
    /// When, in milliseconds since 1970.
    #[serde(skip)]
    pub at_ms: i64,
    /// What.
    #[serde(flatten)]
    pub remark: Remark,
    /// The run that it was said of, where its result was judged again in this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carried_from: Option<String>,
}

/// What holds of a history, which begins with the first remark: the last word of everybody on every matter.
pub fn current(history: &[Said]) -> Vec<&Said> {
    let is_last = |at: usize| {
        let said = &history[at];
        !history[at + 1..]
            .iter()
            .any(|later| later.person == said.person && later.remark.is_on_matter_of(&said.remark))
    };
    let last = (0..history.len()).filter(|at| is_last(*at)).map(|at| &history[at]);
    last.filter(|it| !it.remark.is_withdrawal()).collect()
}

/// What everybody thinks the verdict ought to be.
pub fn marks(history: &[Said]) -> Vec<(&Name, Mark)> {
    let mark = |said: &&Said| match &said.remark {
        Remark::Verdict { mark } => *mark,
        Remark::Points { .. } | Remark::Note { .. } | Remark::Tag { .. } => None,
    };
    current(history).iter().filter_map(|it| Some((&it.person, mark(it)?))).collect()
}

/// The reply that remarks are about: the texts that the model wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyDigest(pub InputDigest);

impl ReplyDigest {
    /// The digest of all that the model said in a result.
    pub fn of(record: &CaseRecord) -> Self {
        let turns = record.asked.iter().filter(|it| it.turn.is_some()).map(|it| &it.reply);
        let texts = std::iter::once(&record.reply).chain(turns);
        // No reply is another one than an empty one.
        let parts = texts.flat_map(|text| match text {
            Some(text) => [&b"reply"[..], text.as_bytes()],
            None => [&b"none"[..], &b""[..]],
        });
        Self(InputDigest::of(parts))
    }
}

impl fmt::Display for ReplyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(person: &str, remark: Remark) -> Said {
        Said { person: Name::of_person(person).unwrap(), at_ms: 0, remark, carried_from: None }
    }

    fn tag(name: &str, is_set: bool) -> Remark {
        Remark::Tag { tag: Name::of_tag(name).unwrap(), is_set }
    }

    #[test]
    fn the_last_word_of_everybody_on_every_matter_holds() {
        let mark = |mark| Remark::Verdict { mark };
        let points = |about: &str, points| Remark::Points { about: about.to_owned(), points };
        let history = [
            said("ada", mark(Some(Mark::Pass))),
            said("bob", mark(Some(Mark::Pass))),
            said("ada", mark(Some(Mark::Fail))),
            said("ada", points("right", Some(3))),
            said("ada", points("short", Some(1))),
            said("ada", points("right", None)),
            said("ada", tag("odd", true)),
            said("bob", tag("odd", true)),
            said("ada", tag("odd", false)),
        ];
        let holds: Vec<(&str, &Remark)> =
            current(&history).into_iter().map(|it| (it.person.as_str(), &it.remark)).collect();
        let expected = [
            ("bob", &mark(Some(Mark::Pass))),
            ("ada", &mark(Some(Mark::Fail))),
            ("ada", &points("short", Some(1))),
            ("bob", &tag("odd", true)),
        ];
        assert_eq!(holds, expected);
    }

    #[test]
    fn names_and_notes_that_nobody_can_read_are_refused() {
        assert_eq!(Name::of_person("  Ada L. ").unwrap().as_str(), "Ada L.");
        assert_eq!(Name::of_person(" \n"), Err(Unfit::Empty("name")));
        for hidden in ["a\u{202e}b", "a\u{200b}b", "a\nb", "a\x1b[31m", "a\tb"] {
            assert_eq!(Name::of_person(hidden), Err(Unfit::Hidden("name")), "{hidden:?}");
        }
        let long = "x".repeat(61);
        assert_eq!(Name::of_tag(&long), Err(Unfit::TooLong { what: "tag", most: 60 }));
        assert_eq!("a\r\nb ".parse::<Note>().unwrap().as_str(), "a\nb");
        assert!("é".repeat(4000).parse::<Note>().is_ok());
        assert!("é".repeat(4001).parse::<Note>().is_err());
    }
}
