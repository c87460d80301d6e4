//! Says whether a reply refuses, and by which phrase.
//!
//! A reply refuses if its opening declines and it does not go on to answer. The
//! phrases are in `data/refusal.toml`, in families with weights; a reply is the
//! sum of what it says. Code, quotations and a reasoning model's thoughts are
//! not what the reply says. Every refusal names its phrase and where it stands.
//!
//! The time taken is linear in the size of the reply, and only its opening is
//! read word by word.

mod automaton;
mod grammar;
mod layout;
mod list;
pub(crate) mod quoted;
mod weigh;
mod words;

use std::{
    cell::RefCell,
    ops::{ControlFlow, Range},
    sync::LazyLock,
};

use automaton::{Automaton, Match, Token, UNKNOWN, Vocabulary};
use list::Compiled;
use probity_core::{criteria::CriteriaProblem, judging::RefusalConfig, located::Step};
use serde::Serialize;
use weigh::Counted;
use words::Folded;

/// How many words of a reply are its opening. Later words weigh nothing.
const OPENING_WORDS: usize = 170;

/// The rule that a phrase from the suite file is reported under.
const OWN_PHRASES: &str = "phrases";

/// What to look for, compiled.
#[derive(Debug)]
pub struct RefusalRules {
    compiled: Compiled,
    /// Phrases from the suite file: those that are refusals and those that never are.
    own: Automaton,
    replace: bool,
    anywhere: bool,
}

/// Why a [`RefusalConfig`] cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RefusalConfigError {
    /// A phrase of only blanks or punctuation would match nothing.
    #[error("the refusal phrase `{phrase}` has no word")]
    NoWord {
        /// The phrase as it was written.
        phrase: String,
    },
    /// Without any phrase, no reply could ever be a refusal.
    #[error("`replace` is set, but there are no refusal phrases")]
    NothingLeft,
}

/// A reply that refuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The phrase that says most for a refusal, as it stands in the reply.
    pub phrase: String,
    /// Where the phrase stands: bytes of the reply, on character boundaries.
    pub span: Range<usize>,
    /// The family of the phrase in `refusal.toml`, or `phrases` for one from the suite file.
    pub rule: String,
}

/// One thing that was weighed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Where the phrase stands.
    pub span: Range<usize>,
    /// The family of the phrase.
    pub rule: String,
    /// What it adds: positive for a refusal, negative for an answer.
    pub weight: i32,
    /// Whether it stands in the first two sentences, which weigh more.
    pub opening: bool,
}

/// Everything that went into a decision, for people who doubt it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The phrases, in the order of the reply.
    pub evidence: Vec<Evidence>,
    /// The sum of the phrases and of the reply's shape.
    pub score: i32,
    /// The score from which a reply is a refusal.
    pub threshold: i32,
}

/// Which list of the suite file a phrase is from.
#[derive(Clone, Copy)]
#[repr(u16)]
enum Own {
    Refuses,
    Allowed,
}

/// The words of a reply that are part of an allowed phrase.
#[derive(Default)]
struct Allowed {
    /// Empty if there are none.
    words: Vec<bool>,
}

impl Allowed {
    fn add(&mut self, phrase: Match, words: usize) {
        self.words.resize(words, false);
        self.words[phrase.first..phrase.end].fill(true);
    }

    fn overlaps(&self, phrase: Match) -> bool {
        let words = self.words.get(phrase.first..phrase.end);
        words.is_some_and(|words| words.contains(&true))
    }
}

impl RefusalRules {
    /// The built-in phrases, compiled when they are first used.
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<RefusalRules> = LazyLock::new(|| RefusalRules {
            compiled: list::builtin(),
            own: Automaton::default(),
            replace: false,
            anywhere: false,
        });
        &BUILTIN
    }

    /// The built-in phrases with a suite's changes, or what is wrong with the changes.
    pub fn compile(config: &RefusalConfig, problems: &mut Vec<CriteriaProblem>) -> Option<Self> {
        Self::with(config)
            .map_err(|error| {
                let path = vec![Step::Key("refusal")];
                let message = error.to_string();
                problems.push(CriteriaProblem { path, code: "bad-refusal", message, help: None });
            })
            .ok()
    }

    /// The built-in phrases with a suite's changes.
    pub fn with(config: &RefusalConfig) -> Result<Self, RefusalConfigError> {
        let RefusalConfig { phrases, allow, replace, anywhere, is_off } = config;
        if *is_off {
            let own = Automaton::default();
            return Ok(Self { compiled: list::builtin(), own, replace: true, anywhere: false });
        }
        if *replace && phrases.is_empty() {
            return Err(RefusalConfigError::NothingLeft);
        }
        let mut compiled = list::builtin();
        let mut own = Vec::new();
        for (kind, phrases) in [(Own::Refuses, phrases), (Own::Allowed, allow)] {
            for phrase in phrases {
                let words = grammar::literal(phrase, &mut compiled.vocabulary);
                if words.is_empty() {
                    return Err(RefusalConfigError::NoWord { phrase: phrase.clone() });
                }
                own.push((words, kind as u16));
            }
        }
        let own = Automaton::of_literals(&own);
        Ok(Self { compiled, own, replace: *replace, anywhere: *anywhere })
    }

    /// Says whether `text` refuses.
    pub fn detect(&self, text: &str) -> Option<Refusal> {
        thread_local! {
            /// The words of the reply at hand: kept, because asking for the memory anew for
            /// each of a million replies takes as long as reading them.
            static TOKENS: RefCell<Vec<Token>> = const { RefCell::new(Vec::new()) };
        }
        TOKENS.with_borrow_mut(|tokens| {
            tokens.clear();
            self.read(text, tokens);
            self.judge(text, tokens)
        })
    }

    fn judge(&self, text: &str, tokens: &[Token]) -> Option<Refusal> {
        let (own, allowed) = self.own_phrases(tokens);
        if let Some(first) = own {
            return Some(refusal(text, tokens, first, OWN_PHRASES));
        }
        if self.replace {
            return None;
        }
        let list = &self.compiled.list;
        let grounds = find(&self.compiled.grounds, tokens, &allowed);
        if !self.anywhere && weigh::at_most(list, &grounds, tokens) < list.threshold {
            // Most replies have too little to refuse with, whatever else they say.
            return None;
        }
        let found = self.found(grounds, tokens, &allowed);
        let decisive = if self.anywhere {
            let mut found = found.into_iter();
            found.find(|it| list.families[it.family].decisive)?
        } else {
            let counted = weigh::count(list, &found, tokens);
            let refuses = self.score(&counted, text) >= list.threshold;
            weigh::strongest(&counted).filter(|_| refuses)?
        };
        let rule = list.families[decisive.family].name;
        Some(refusal(text, tokens, decisive, rule))
    }

    /// Says what the built-in phrases find in the opening of `text`, and what it adds up to.
    pub fn explain(&self, text: &str) -> Explanation {
        let mut tokens = Vec::new();
        self.read(text, &mut tokens);
        let (_, allowed) = self.own_phrases(&tokens);
        let grounds = find(&self.compiled.grounds, &tokens, &allowed);
        let found = self.found(grounds, &tokens, &allowed);
        let counted = weigh::count(&self.compiled.list, &found, &tokens);
        let evidence = counted.iter().map(|it| Evidence {
            span: span(&tokens, it.found),
            rule: self.compiled.list.families[it.found.family].name.to_owned(),
            weight: it.weight,
            opening: it.opening,
        });
        Explanation {
            evidence: evidence.collect(),
            score: self.score(&counted, text),
            threshold: self.compiled.list.threshold,
        }
    }

    /// The words of the reply's prose, as far as they are looked at.
    fn read(&self, text: &str, tokens: &mut Vec<Token>) {
        let most = if self.anywhere { usize::MAX } else { OPENING_WORDS };
        words::each(text, |word, place| {
            let sentence = u32::try_from(place.sentence).unwrap_or(u32::MAX);
            let Range { start, end } = place.span;
            each_id(&self.compiled.vocabulary, word, |word| {
                tokens.push(Token { word, sentence, start, end });
            });
            if tokens.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    }

    /// The suite's first phrase that is no part of an allowed one, and all allowed ones.
    fn own_phrases(&self, tokens: &[Token]) -> (Option<Match>, Allowed) {
        let mut refuses = Vec::new();
        let mut allowed = Allowed::default();
        self.own.find(tokens, |found| {
            if found.family == Own::Allowed as usize {
                allowed.add(found, tokens.len());
            } else {
                refuses.push(found);
            }
        });
        let first = refuses.into_iter().find(|it| !allowed.overlaps(*it));
        (first, allowed)
    }

    /// Every built-in phrase that counts, given those that speak for a refusal.
    fn found(&self, grounds: Vec<Match>, tokens: &[Token], allowed: &Allowed) -> Vec<Match> {
        let mut found = grounds;
        found.extend(find(&self.compiled.rest, tokens, allowed));
        weigh::keep_longest(&self.compiled.list, found)
    }

    fn score(&self, counted: &[Counted], text: &str) -> i32 {
        let reply = text.get(quoted::after_thinking(text)..).unwrap_or(text);
        weigh::said(counted) + weigh::shape(&self.compiled.list, reply)
    }
}

/// The phrases of `automaton` that share no word with an allowed one.
fn find(automaton: &Automaton, tokens: &[Token], allowed: &Allowed) -> Vec<Match> {
    let mut found = Vec::new();
    automaton.find(tokens, |it| {
        if !allowed.overlaps(it) {
            found.push(it);
        }
    });
    found
}

fn each_id(vocabulary: &Vocabulary, word: &Folded, mut visit: impl FnMut(automaton::WordId)) {
    if let Some(ids) = vocabulary.get(word) {
        ids.iter().copied().for_each(visit);
        return;
    }
    if !word.has_apostrophe() || word.is_unknown() {
        return visit(UNKNOWN);
    }
    for part in word.parts() {
        let ids = vocabulary.get(&part).unwrap_or(&[UNKNOWN]);
        ids.iter().copied().for_each(&mut visit);
    }
}

fn refusal(text: &str, tokens: &[Token], found: Match, rule: &str) -> Refusal {
    let span = span(tokens, found);
    Refusal {
        phrase: text.get(span.clone()).unwrap_or_default().to_owned(),
        span,
        rule: rule.to_owned(),
    }
}

fn span(tokens: &[Token], found: Match) -> Range<usize> {
    tokens[found.first].start..tokens[found.end - 1].end
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
