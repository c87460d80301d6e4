//! How near a text is to another, by the metrics of the field.
//!
//! Plain functions over texts: answers are taken out of replies, normalised and compared. BLEU and
//! chrF give what sacrebleu gives, ROUGE what rouge-score gives, GLEU and METEOR what NLTK gives, F1 and the normalised match what the
//! `SQuAD` script gives; `scripts/text-fixtures` makes the pairs that the tests hold them to. What each
//! metric means is in `docs/metrics.md`.
//!
//! Nothing fails, panics or does input or output. Similarities go from 0 to 1.

#![forbid(unsafe_code)]

pub mod bleu;
pub mod choice;
pub mod chrf;
mod count;
pub mod edit;
pub mod extract;
pub mod f1;
pub mod fence;
pub mod gleu;
pub mod limited;
pub mod list;
pub mod meteor;
pub mod normalize;
pub mod number;
pub mod pattern;
mod porter;
pub mod rouge;
mod space;
