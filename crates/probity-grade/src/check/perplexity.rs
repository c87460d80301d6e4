//! How surprised a model was by its own words.

use super::{Checked, at_most};

/// What is asked of the perplexity of replies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Perplexity {
    /// It is at most this.
    AtMost(f64),
    /// One divided by one more than it is at least this.
    Score(f64),
}

impl Perplexity {
    pub(super) fn check(self, found: Option<f64>) -> Checked {
        let Some(perplexity) = found else {
            // That nobody recorded it is no fault of the model.
            let why = "no log probabilities were recorded; `logprobs = true` asks for them";
            return Checked::unjudged(why.to_owned());
        };
        match self {
            Self::AtMost(most) => at_most(found, most, "perplexity"),
            Self::Score(least) => {
                let score = 1.0 / (1.0 + perplexity);
                let checked = Checked::of(score >= least, || format!("perplexity is {perplexity}"));
                Checked { value: Some(score), ..checked }
            }
        }
    }
}
