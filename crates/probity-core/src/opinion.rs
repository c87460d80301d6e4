//! What judges said of a reply, and what that comes to together.

use std::{borrow::Cow, collections::BTreeSet};

use probity_stats::agreement::{Weights, cohen_kappa, fleiss_kappa};
use serde::{Deserialize, Serialize};

use crate::named_enum;

/// Differences of scores that nobody meant: sums are off in their last digits.
const ROUNDING: f64 = 1e-9;

named_enum! {
    /// How the opinions of several judges make one.
    #[derive(Default)]
    pub enum Combine ("a way to combine judges") {
        /// More than half of them have to be content; the score is their median.
        #[default]
        Majority = "majority",
        /// All of them have to be; the score is the lowest.
        All = "all",
        /// One of them has to be; the score is the highest.
        Any = "any",
        /// The mean of their scores has to reach the threshold.
        Mean = "mean",
    }
}

impl Combine {
    /// Whether so many judges of a panel are enough to go by.
    pub const fn has_quorum(self, answered: usize, panel: usize) -> bool {
        match self {
            Self::All => answered == panel && panel > 0,
            Self::Majority | Self::Any | Self::Mean => answered * 2 > panel,
        }
    }
}

/// The score from which on a reply is good enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// What the assertion states.
    pub stated: Option<f64>,
    /// What holds where it states nothing, and the judge does not say itself whether it is content.
    pub usual: f64,
}

impl Threshold {
    fn least(self) -> f64 {
        self.stated.unwrap_or(self.usual)
    }

    fn is_met(self, judged: &Judged) -> bool {
        let reaches = |least: f64| judged.score + ROUNDING >= least;
        match judged.passed {
            Some(own) => own && self.stated.is_none_or(reaches),
            None => reaches(self.least()),
        }
    }
}

/// What judges said of a reply, by one assertion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assessment {
    /// Every time that a judge was asked, judge by judge. None if nobody was.
    pub opinions: Vec<Opinion>,
    /// How they make one.
    pub combine: Combine,
}

/// What a judge said, one time that it was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opinion {
    /// The backend that judged.
    pub judge: String,
    /// What it said.
    #[serde(flatten)]
    pub said: Said,
}

/// What a judge said, or why that is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Said {
    /// An answer that can be used.
    Judged(Judged),
    /// None.
    Failed {
        /// Why not.
        error: String,
    },
}

/// An answer of a judge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// From 0 to 1.
    pub score: f64,
    /// Whether the judge is content with the reply; none where only a threshold can say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// Why, in its words.
    pub reason: String,
    /// The statements that it found, where the score is a share of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<Statement>,
}

/// A statement and what a judge said of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// The statement, cut to a bounded size.
    pub text: String,
    /// Whether it counts.
    pub holds: bool,
    /// Why, in the judge's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The opinions behind one score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedCheck {
    /// The name of the score.
    pub check: Cow<'static, str>,
    /// How the opinions of several judges make one.
    pub combine: Combine,
    /// Every time that a judge was asked, judge by judge.
    pub opinions: Vec<Opinion>,
    /// The share of pairs of judges that agree; none of one judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<f64>,
}

/// What opinions come to together.
#[derive(Clone, Debug, PartialEq)]
pub struct Consensus {
    /// From 0 to 1.
    pub score: f64,
    /// Whether the reply is good enough.
    pub passed: bool,
    /// What each judge came to.
    pub judges: Vec<JudgeSum>,
}

/// What one judge came to, over all times that it was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgeSum {
    /// The backend that judged.
    pub judge: String,
    /// None if too few of its answers can be used.
    pub score: Option<f64>,
    /// Whether it is content with the reply.
    pub passed: bool,
    /// The first reason that it gave.
    pub reason: Option<String>,
}

impl Opinion {
    /// The answer, if there is one.
    pub fn judged(&self) -> Option<&Judged> {
        match &self.said {
            Said::Judged(judged) => Some(judged),
            Said::Failed { .. } => None,
        }
    }
}

/// What one judge came to, over all times that it was asked.
struct Voice<'a> {
    judge: &'a str,
    opinions: &'a [Opinion],
    /// None if too few of its answers can be used.
    vote: Option<Vote>,
}

impl Voice<'_> {
    fn sum(&self) -> JudgeSum {
        JudgeSum {
            judge: self.judge.to_owned(),
            score: self.vote.map(|it| it.score),
            passed: self.vote.is_some_and(|it| it.passed),
            reason: self.opinions.iter().find_map(Opinion::judged).map(|it| it.reason.clone()),
        }
    }
}

#[derive(Clone, Copy)]
struct Vote {
    score: f64,
    passed: bool,
}

impl Vote {
    /// What most of some answers say, and the median of their scores, the lower of two.
    fn of(votes: &[Self]) -> Option<Self> {
        let mut scores: Vec<f64> = votes.iter().map(|it| it.score).collect();
        scores.sort_by(f64::total_cmp);
        let score = *scores.get(scores.len().checked_sub(1)? / 2)?;
        let passed = votes.iter().filter(|it| it.passed).count() * 2 > votes.len();
        Some(Self { score, passed })
    }
}

/// The judges in the order in which they were asked.
fn voices(opinions: &[Opinion]) -> Vec<Voice<'_>> {
    let voice = |of: &'_ [Opinion]| -> Option<Vote> {
        let votes: Vec<Vote> = of
            .iter()
            .filter_map(Opinion::judged)
            .map(|it| Vote { score: it.score, passed: it.passed.unwrap_or(false) })
            .collect();
        Vote::of(&votes).filter(|_| votes.len() * 2 > of.len())
    };
    opinions
        .chunk_by(|one, next| one.judge == next.judge)
        .map(|of| Voice { judge: &of[0].judge, opinions: of, vote: voice(of) })
        .collect()
}

impl Assessment {
    /// The same, of judges who are content from some score on.
    #[must_use]
    pub fn by(&self, threshold: Threshold) -> Self {
        let opinion = |it: &Opinion| {
            let said = match &it.said {
                Said::Judged(judged) => Said::Judged(Judged {
                    passed: Some(threshold.is_met(judged)),
                    ..judged.clone()
                }),
                Said::Failed { error } => Said::Failed { error: error.clone() },
            };
            Opinion { judge: it.judge.clone(), said }
        };
        Self { opinions: self.opinions.iter().map(opinion).collect(), combine: self.combine }
    }

    /// What the opinions come to, or why they come to nothing.
    pub fn consensus(&self, threshold: Threshold) -> Result<Consensus, String> {
        let voices = voices(&self.opinions);
        let votes: Vec<Vote> = voices.iter().filter_map(|it| it.vote).collect();
        if !self.combine.has_quorum(votes.len(), voices.len()) {
            return Err(self.failure(votes.len(), voices.len()));
        }
        let scores = || votes.iter().map(|it| it.score);
        let content = votes.iter().filter(|it| it.passed).count();
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        let mean = scores().sum::<f64>() / votes.len() as f64;
        let (score, passed) = match self.combine {
            Combine::Majority => Vote::of(&votes).map_or((0.0, false), |it| (it.score, it.passed)),
            Combine::All => (scores().fold(1.0, f64::min), content == votes.len()),
            Combine::Any => (scores().fold(0.0, f64::max), content > 0),
            Combine::Mean => (mean, mean + ROUNDING >= threshold.least()),
        };
        Ok(Consensus { score, passed, judges: voices.iter().map(Voice::sum).collect() })
    }

    /// The share of pairs of judges that agree; none of one judge.
    pub fn agreement(&self) -> Option<f64> {
        let voices = voices(&self.opinions);
        let votes: Vec<bool> = voices.iter().filter_map(|it| Some(it.vote?.passed)).collect();
        let (mut same, mut pairs) = (0_u32, 0_u32);
        for (at, one) in votes.iter().enumerate() {
            for other in &votes[at + 1..] {
                pairs += 1;
                same += u32::from(one == other);
            }
        }
        (pairs > 0).then(|| f64::from(same) / f64::from(pairs))
    }

    /// Why there is no consensus.
    fn failure(&self, answered: usize, panel: usize) -> String {
        let mut errors = self.opinions.iter().filter_map(|it| match &it.said {
            Said::Failed { error } => Some((&it.judge, error)),
            Said::Judged(_) => None,
        });
        match (errors.next(), panel) {
            (None, _) => "no judge was asked".to_owned(),
            (Some((_, error)), 1) => error.clone(),
            (Some((judge, error)), _) => {
                format!("only {answered} of {panel} judges gave an answer; {judge}: {error}")
            }
        }
    }
}

/// How far judges agree with each other and with themselves, over a lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JudgeFigures {
    /// The judges, by name.
    pub judges: Vec<String>,
    /// Scores that more than one judge had a say in.
    pub shared: u64,
    /// Those of them where all judges agree.
    pub unanimous: u64,
    /// How far they agree beyond chance: Cohen's kappa of two judges, Fleiss' of more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kappa: Option<f64>,
    /// Answers of judges that were asked the same several times.
    pub repeated: u64,
    /// Those of them that are not what the same judge said most often.
    pub flipped: u64,
    /// Answers that could not be had or used, while the others were enough.
    pub failed: u64,
}

/// Folds opinions into figures.
#[derive(Debug, Default)]
pub struct JudgeFold {
    figures: JudgeFigures,
    /// For each score, how many judges were not content and how many were.
    votes: Vec<[u64; 2]>,
    /// For two judges: what the first said by what the second said.
    table: [[u64; 2]; 2],
    judges: BTreeSet<String>,
}

impl JudgeFold {
    /// Takes in the opinions behind a score.
    pub fn add(&mut self, check: &JudgedCheck) {
        let voices = voices(&check.opinions);
        for voice in &voices {
            self.judges.insert(voice.judge.to_owned());
            let answers = || voice.opinions.iter().filter_map(Opinion::judged);
            self.figures.failed += (voice.opinions.len() - answers().count()) as u64;
            if let Some(vote) = voice.vote.filter(|_| voice.opinions.len() > 1) {
                self.figures.repeated += answers().count() as u64;
                let other = answers().filter(|it| it.passed != Some(vote.passed));
                self.figures.flipped += other.count() as u64;
            }
        }
        let votes: Vec<bool> = voices.iter().filter_map(|it| Some(it.vote?.passed)).collect();
        if votes.len() < 2 {
            return;
        }
        self.figures.shared += 1;
        self.figures.unanimous += u64::from(votes.windows(2).all(|it| it[0] == it[1]));
        // Coefficients need the word of every judge.
        if votes.len() == voices.len() {
            let content = votes.iter().filter(|it| **it).count() as u64;
            self.votes.push([votes.len() as u64 - content, content]);
            if let [first, second] = votes.as_slice() {
                self.table[usize::from(*first)][usize::from(*second)] += 1;
            }
        }
    }

    /// The figures; none if there is nothing to say.
    pub fn finish(self) -> Option<JudgeFigures> {
        let Self { figures, votes, table, judges } = self;
        if figures.shared == 0 && figures.repeated == 0 {
            return None;
        }
        let most = votes.iter().map(|it| it[0] + it[1]).max().unwrap_or(0);
        let kappa = match most {
            2 => cohen_kappa(&table.map(Vec::from), Weights::Equal),
            _ => {
                let full: Vec<Vec<u64>> =
                    votes.iter().filter(|it| it[0] + it[1] == most).map(|it| it.to_vec()).collect();
                fleiss_kappa(&full)
            }
        };
        Some(JudgeFigures { judges: judges.into_iter().collect(), kappa, ..figures })
    }
}
