//! Phrases of a suite file, which are taken as they are.

use std::ops::ControlFlow;

use super::{
    automaton::{Vocabulary, WordId},
    words,
};

/// The words of a phrase, with contractions spelled out; none if it has no word.
pub(super) fn literal(phrase: &str, vocabulary: &mut Vocabulary) -> Vec<WordId> {
    let mut ids = Vec::new();
    words::each(phrase, |word, _| {
        match vocabulary.get(word) {
            Some(known) => ids.extend_from_slice(known),
            None => ids.extend(word.parts().map(|part| vocabulary.add(part))),
        }
        ControlFlow::Continue(())
    });
    ids
}
