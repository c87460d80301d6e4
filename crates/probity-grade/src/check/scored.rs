//! Checks that are code of users, a script in process or a scorer outside of it; and how near the
//! reply is to texts. What is outside was asked before.

use std::sync::Arc;

use probity_core::{score::Score, scored::Scored};
use serde::Deserialize as _;
use serde_json::Value;

use super::{Checked, Told};
use crate::{
    excerpt::{beginning, excerpt},
    internal::{
        script::{self, Script},
        similar::{Nearness, Similar},
    },
    reply::Reply,
};

/// Characters of a scorer's reason that are kept.
const LONGEST_REASON: usize = 1000;

/// Longest code that a reason repeats, in characters.
const LONGEST_CODE: usize = 80;

/// A script that scores replies.
#[derive(Clone, Debug)]
pub(crate) struct Scripted {
    /// The code, or the file with it.
    pub(crate) source: String,
    pub(crate) script: Arc<dyn Script>,
    pub(crate) config: Option<Value>,
    pub(crate) threshold: Option<f64>,
}

impl Scripted {
    pub(super) fn check(&self, reply: &Reply<'_, '_>) -> Checked {
        let scored = script::score(&*self.script, self.config.as_ref(), self.threshold, reply);
        checked(scored.map(|mut it| {
            it.reason = it.reason.take().or_else(|| self.why(&it));
            it
        }))
    }

    /// Why a reply fails: code that gives no reason is one itself if it is short.
    fn why(&self, scored: &Scored) -> Option<String> {
        let code = self.source.trim();
        let is_short = code.chars().take(LONGEST_CODE + 1).count() <= LONGEST_CODE;
        let is_shown = !scored.pass && is_short && !code.contains('\n');
        is_shown.then(|| match scored.score {
            0.0 => format!("`{code}` does not hold"),
            score => format!("`{code}` gives {score}"),
        })
    }
}

/// A scorer that was asked before the reply is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedScorer {
    /// Which of those of the case.
    pub(crate) number: usize,
    pub(crate) threshold: Option<f64>,
}

impl AskedScorer {
    pub(super) fn check(self, reply: &Reply<'_, '_>) -> Checked {
        match reply.result.scored.get(self.number) {
            Some(Ok(returned)) => {
                let scored = Scored::read(returned, self.threshold);
                checked(scored.map_err(|why| format!("the scorer failed: {why}")))
            }
            Some(Err(why)) => Checked::unjudged(why.clone()),
            None => Checked::unjudged("the scorer was not asked".to_owned()),
        }
    }
}

/// How near a reply is to texts, which was found out before it is judged.
#[derive(Clone, Debug)]
pub(crate) struct Embedded {
    /// Which of those that were asked.
    pub(crate) number: usize,
    pub(crate) similar: Similar,
    pub(crate) threshold: f64,
}

impl Embedded {
    pub(super) fn check(&self, reply: &Reply<'_, '_>) -> Checked {
        let known = match reply.result.scored.get(self.number) {
            // Nothing was left of the reply.
            Some(Ok(Value::Null)) => {
                return Checked::fails("there is no text to compare".to_owned());
            }
            Some(Ok(known)) => known,
            Some(Err(why)) => return Checked::unjudged(why.clone()),
            None => return Checked::unjudged("the reply was not compared".to_owned()),
        };
        let Ok(Nearness { value, nearest }) = Nearness::deserialize(known) else {
            return Checked::unjudged("the stored similarity cannot be read".to_owned());
        };
        let Self { similar: Similar { metric, texts }, threshold, .. } = self;
        let reason = || {
            let text = texts.get(nearest).map_or("", String::as_str);
            let noun = metric.noun();
            let beyond = metric.beyond();
            format!("the {noun} to `{}` is {value:.4}, {beyond} {threshold}", excerpt(text, 0))
        };
        let passed = metric.is_enough(value, *threshold);
        Checked {
            value: Some(metric.score(value)),
            passed,
            reason: (!passed).then(reason),
            index: Some(nearest),
            ..Checked::holds()
        }
    }
}

/// How relevant a reply is, which was found out before it is judged.
pub(super) fn relevance(reply: &Reply<'_, '_>, number: usize, threshold: f64) -> Checked {
    let known = match reply.result.scored.get(number) {
        // Nothing was left of the reply.
        Some(Ok(Value::Null)) => return Checked::fails("there is no text to rank".to_owned()),
        Some(Ok(known)) => known.as_f64(),
        Some(Err(why)) => return Checked::unjudged(why.clone()),
        None => return Checked::unjudged("the reply was not ranked".to_owned()),
    };
    let Some(value) = known else {
        return Checked::unjudged("the stored relevance cannot be read".to_owned());
    };
    let passed = value >= threshold;
    Checked {
        value: Some(value.clamp(0.0, 1.0)),
        passed,
        reason: (!passed).then(|| format!("the relevance is {value:.4}, below {threshold}")),
        ..Checked::holds()
    }
}

/// What was said of a reply, or why nothing was.
fn checked(said: Result<Scored, String>) -> Checked {
    let Scored { pass, score, reason, scores } = match said {
        Ok(scored) => scored,
        Err(why) => return Checked::unjudged(why),
    };
    let why = || (!pass).then(|| format!("the score is {score}"));
    let reason = reason.map(|it| beginning(&it, LONGEST_REASON)).or_else(why);
    let named = scores.into_iter().map(|(name, value)| {
        let named = Score { name: name.into(), named: true, ..Score::new("", None).reported() };
        named.saying(value)
    });
    let told = Told { named: named.collect(), ..Told::default() };
    let Score { value, said, .. } = Score::new("", None).saying(score);
    Checked { value, said, passed: pass, reason, told, ..Checked::holds() }
}
