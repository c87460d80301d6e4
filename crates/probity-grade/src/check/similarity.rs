//! How near a reply is to a text, by a metric that goes from 0 to 1.

use probity_text::{
    bleu,
    chrf::{self, Variant},
    edit, f1, gleu, meteor,
    rouge::{self, Words},
};

use super::Checked;
use crate::excerpt::excerpt;

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    TokenF1,
    RougeN(usize, Words),
    RougeL(Words),
    Bleu,
    Gleu,
    Meteor,
    Chrf(Variant),
    Edit,
}

impl Metric {
    /// The score from which on the reply is near enough, if nothing else is said.
    pub(crate) const fn default_least(self) -> f64 {
        match self {
            Self::RougeN(..) | Self::RougeL(_) | Self::Edit => 0.75,
            Self::TokenF1 | Self::Bleu | Self::Gleu | Self::Meteor | Self::Chrf(_) => 0.5,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::TokenF1 => "F1",
            Self::RougeN(1, _) => "ROUGE-1",
            Self::RougeN(..) => "ROUGE-2",
            Self::RougeL(_) => "ROUGE-L",
            Self::Bleu => "BLEU",
            Self::Gleu => "GLEU",
            Self::Meteor => "METEOR",
            Self::Chrf(Variant::Characters) => "chrF",
            Self::Chrf(Variant::WithWords) => "chrF++",
            Self::Edit => "the edit similarity",
        }
    }

    /// The score of a text against one reference; none if they are too long to say.
    fn of_one(self, text: &str, reference: &str) -> Option<f64> {
        match self {
            Self::TokenF1 => Some(f1::token_f1(text, reference)),
            Self::RougeN(n, words) => Some(rouge::rouge_n(text, reference, n, words)),
            Self::RougeL(words) => rouge::rouge_l(text, reference, words),
            Self::Bleu => Some(bleu::sentence(text, &[reference])),
            Self::Gleu => Some(gleu::gleu(text, reference)),
            Self::Meteor => Some(meteor::meteor(text, reference)),
            Self::Chrf(variant) => Some(chrf::sentence(text, &[reference], variant)),
            Self::Edit => edit::similarity(text, reference),
        }
    }

    /// The score against several references: the best of them. BLEU counts in all of them at once.
    fn of(self, text: &str, references: &[String]) -> Option<f64> {
        match self {
            Self::Bleu => Some(bleu::sentence(text, references)),
            Self::TokenF1
            | Self::RougeN(..)
            | Self::RougeL(_)
            | Self::Gleu
            | Self::Meteor
            | Self::Chrf(_)
            | Self::Edit => {
                references.iter().filter_map(|it| self.of_one(text, it)).max_by(f64::total_cmp)
            }
        }
    }
}

/// A reply is near enough to one of several texts.
#[derive(Clone, Debug)]
pub(crate) struct Similarity {
    pub(crate) metric: Metric,
    pub(crate) references: Vec<String>,
    pub(crate) least: f64,
}

impl Similarity {
    pub(super) fn check(&self, text: &str) -> Checked {
        let Self { metric, references, least } = self;
        let Some(value) = metric.of(text, references) else {
            return Checked::fails("the texts are too long to compare".to_owned());
        };
        // Sums are off in their last digits, which nobody meant.
        let passed = value + 1e-9 >= *least;
        let reason = || {
            let name = metric.name();
            format!("{name} of `{}` is {value:.3}, below {least}", excerpt(text, 0))
        };
        Checked {
            value: Some(value.clamp(0.0, 1.0)),
            passed,
            reason: (!passed).then(reason),
            ..Checked::holds()
        }
    }
}
