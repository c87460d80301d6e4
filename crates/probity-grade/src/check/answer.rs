//! Numbers and choices, of which a reply has to have one.

use probity_core::difference::{Difference, TextDifference};
use probity_text::{
    choice::{self, Answer, letter},
    number::{self, Several, Tolerance},
};

use super::Checked;
use crate::excerpt::excerpt;

/// Numbers of which any is right.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    pub(crate) expected: Vec<f64>,
    pub(crate) tolerance: Tolerance,
}

impl Numbers {
    pub(super) fn check(&self, text: &str) -> Checked {
        let actual = match number::only(text) {
            Ok(actual) => actual,
            Err(Several(found)) if found.is_empty() => {
                return Checked::fails(format!("there is no number in `{}`", excerpt(text, 0)));
            }
            Err(Several(found)) => {
                let found = listed(found.iter().map(ToString::to_string));
                let message = format!("there are several numbers: {found}; `extract` says which");
                return Checked::fails(message);
            }
        };
        let near = |expected: &f64| self.tolerance.allows(*expected, actual);
        Checked::any(self.expected.iter().position(near), || {
            let within = match self.tolerance {
                Tolerance::Absolute(0.0) | Tolerance::Relative(0.0) => String::new(),
                Tolerance::Absolute(most) => format!(" (within {most})"),
                // Shares are off in their last digits, which nobody wrote.
                Tolerance::Relative(share) => {
                    format!(" (within {}%)", (share * 1e11).round() / 1e9)
                }
            };
            let expected = listed(self.expected.iter().map(ToString::to_string));
            Difference::Text(TextDifference {
                at: 0,
                expected: expected + &within,
                actual: actual.to_string(),
            })
        })
    }
}

/// Choices, and those of them that are right.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    pub(crate) choices: Vec<String>,
    pub(crate) expected: Vec<usize>,
}

impl Choices {
    pub(super) fn check(&self, text: &str) -> Checked {
        let named = |index: &usize| {
            let choice = self.choices.get(*index).map_or("", String::as_str);
            format!("{} ({})", letter(*index), excerpt(choice, 0))
        };
        match choice::read(text, &self.choices) {
            Answer::One(index) => {
                let found = self.expected.iter().position(|it| *it == index);
                Checked::any(found, || {
                    Difference::Text(TextDifference {
                        at: 0,
                        expected: listed(self.expected.iter().map(named)),
                        actual: named(&index),
                    })
                })
            }
            Answer::Several(seen) => {
                let seen = listed(seen.iter().map(named));
                Checked::fails(format!("the reply names several choices: {seen}"))
            }
            Answer::Nothing => {
                Checked::fails(format!("the reply names no choice: `{}`", excerpt(text, 0)))
            }
        }
    }
}

fn listed(all: impl Iterator<Item = String>) -> String {
    all.collect::<Vec<_>>().join(", ")
}
