//! What one case about skills came to, in shapes that several kinds of runners share.

use serde::{Deserialize, Serialize};

/// How many skills a reply names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// One, and it is in the index.
    Single,
    /// Several.
    Multi,
    /// None.
    None,
    /// One that is not in the index.
    Outside,
    /// It cannot be read.
    Unreadable,
    /// There is no reply.
    Error,
}

impl Choice {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Single, Self::Multi, Self::None, Self::Outside, Self::Unreadable, Self::Error];

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Multi => "multi",
            Self::None => "none",
            Self::Outside => "outside",
            Self::Unreadable => "unreadable",
            Self::Error => "error",
        }
    }
}

/// How it was found out what was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detection {
    /// It was read from the reply.
    Structured,
    /// The reply could not be read, and each candidate was asked about.
    Fallback,
    /// It was not.
    None,
}

/// Which skills were chosen, and which should have been.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routed {
    /// How many were named.
    pub choice: Choice,
    /// Those that are in the index, sorted.
    pub chosen: Vec<String>,
    /// Names that are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<String>,
    /// Any of these is right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<String>,
    /// Any of these will do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptable: Vec<String>,
    /// False where no skill may be chosen.
    pub should_activate: bool,
    /// How it was found out.
    pub detection: Detection,
    /// The group of look-alikes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The skills that the group's index shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<String>,
}

impl Routed {
    /// Whether a skill is right, or will do.
    pub fn accepts(&self, skill: &str) -> bool {
        self.expected.iter().chain(&self.acceptable).any(|it| it == skill)
    }
}

/// How much of a skill a model was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Nothing.
    Baseline,
    /// The description and the scope.
    Summary,
    /// All of it.
    Full,
    /// All of it, and what lies beside it.
    Companions,
}

impl Condition {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Baseline, Self::Summary, Self::Full, Self::Companions];

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Summary => "summary",
            Self::Full => "full",
            Self::Companions => "companions",
        }
    }
}

/// Two answers that are compared: the one that ought to be better, and the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pair {
    /// More of the skill.
    pub more: Condition,
    /// Less of it.
    pub less: Condition,
}

impl Pair {
    /// Does the skill help at all?
    pub const HELPS: Self = Self { more: Condition::Full, less: Condition::Baseline };
    /// The comparisons of a skill's sizes, the one that decides a case first.
    pub const SIZES: [Self; 4] = [
        Self::HELPS,
        Self { more: Condition::Full, less: Condition::Summary },
        Self { more: Condition::Summary, less: Condition::Baseline },
        Self { more: Condition::Companions, less: Condition::Full },
    ];
}

impl std::fmt::Display for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} vs {}", self.more.as_str(), self.less.as_str())
    }
}

/// What a judge made of answers to one prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The skill.
    pub skill: String,
    /// How large it is.
    pub size: Size,
    /// Who judged.
    pub judge: JudgedBy,
    /// Each comparison; none where there was nothing to compare.
    pub duels: Vec<Duel>,
}

/// How large a skill is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Below 5,000 bytes.
    Small,
    /// Up to 15,000 bytes.
    Medium,
    /// Above that.
    Large,
}

impl Tier {
    /// All three, the smallest first.
    pub const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    /// The tier of a size in bytes.
    pub const fn of(bytes: u64) -> Self {
        match bytes {
            0..5_000 => Self::Small,
            5_000..=15_000 => Self::Medium,
            _ => Self::Large,
        }
    }

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}

/// How large a skill is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// By the bytes of the whole.
    pub tier: Tier,
    /// The whole file.
    pub full: u64,
    /// Its summary.
    pub summary: u64,
    /// What lies beside it.
    pub companions: u64,
}

/// Who judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedBy {
    /// The backend.
    pub backend: String,
    /// The model it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it judged its own answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_answers: bool,
}

/// Why a comparison has no result that it never came to.
pub const NOT_JUDGED: &str = "it was not judged";

/// One comparison of two answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Duel {
    /// Which two.
    #[serde(flatten)]
    pub pair: Pair,
    /// What the judge said, once, or once for each order of the answers.
    pub rounds: Vec<Round>,
    /// Why there is no result, though the judge answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The weighted scores, the mean of all rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<Scores>,
}

/// Weighted scores of two answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Of the answer with more of the skill.
    pub more: f64,
    /// Of the other.
    pub less: f64,
}

impl Scores {
    /// By how much the first is better.
    pub fn difference(self) -> f64 {
        self.more - self.less
    }

    /// Which is better. Sums of weights are off in their last digits, which nobody meant.
    pub fn result(self) -> Win {
        let difference = self.difference();
        if difference.abs() < 1e-9 {
            Win::Tie
        } else if difference > 0.0 {
            Win::Win
        } else {
            Win::Loss
        }
    }
}

/// How the answer with more of the skill did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Win {
    /// Better.
    Win,
    /// As well.
    Tie,
    /// Worse.
    Loss,
}

impl Win {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Win, Self::Tie, Self::Loss];

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Win => "win",
            Self::Tie => "tie",
            Self::Loss => "loss",
        }
    }
}

/// What the judge said to two answers in one order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The answer that was shown first.
    pub shown_first: Condition,
    /// How often the judge was asked until its answer could be read.
    pub attempts: u32,
    /// Points by criterion.
    pub criteria: Vec<CriterionScore>,
    /// The winner that the judge named. The scores decide, whatever it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Win>,
    /// The winner by the scores.
    pub result: Win,
}

/// Points of two answers for one criterion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CriterionScore {
    /// The criterion.
    pub name: String,
    /// Its share.
    pub weight: f64,
    /// From 1 to 5, for the answer with more of the skill.
    pub more: u8,
    /// For the other.
    pub less: u8,
    /// Why, in the judge's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Round {
    /// The weighted scores.
    pub fn scores(criteria: &[CriterionScore]) -> Scores {
        // Weights may miss 1 by a little, which must not move the scale.
        let whole: f64 = criteria.iter().map(|it| it.weight).sum();
        let sum = |of: fn(&CriterionScore) -> u8| {
            criteria.iter().map(|it| it.weight * f64::from(of(it))).sum::<f64>() / whole
        };
        Scores { more: sum(|it| it.more), less: sum(|it| it.less) }
    }
}

impl Duel {
    /// A comparison from what the judge said.
    pub fn new(pair: Pair, rounds: Vec<Round>, error: Option<String>) -> Self {
        let scores = (error.is_none() && !rounds.is_empty()).then(|| {
            #[expect(clippy::cast_precision_loss, reason = "one or two")]
            let count = rounds.len() as f64;
            let all = || rounds.iter().map(|it| Round::scores(&it.criteria));
            Scores {
                more: all().map(|it| it.more).sum::<f64>() / count,
                less: all().map(|it| it.less).sum::<f64>() / count,
            }
        });
        Self { pair, rounds, error, scores }
    }

    /// How the answer with more of the skill did.
    pub fn result(&self) -> Option<Win> {
        self.scores.map(Scores::result)
    }

    /// Whether both orders of the answers had the same winner; none if only one was tried.
    pub fn orders_agree(&self) -> Option<bool> {
        match self.rounds.as_slice() {
            [one, other] if self.error.is_none() => Some(one.result == other.result),
            _ => None,
        }
    }
}
