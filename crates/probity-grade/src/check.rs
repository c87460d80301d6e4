//! The checks that matchers and assertions compile to, asked about a reply.

mod answer;
mod distance;
mod judged;
mod markup;
mod perplexity;
mod scored;
mod selected;
mod similarity;
mod tools;

use std::{ops::Range, sync::Arc};

use memchr::memmem;
use probity_core::{
    criteria::JsonLevel,
    details::Extracted,
    difference::{Difference, Missing, OtherCommand, PatternDifference, StartDifference},
    json::Limits,
    opinion::{JudgedCheck, Threshold},
    score::Score,
    selection::Selection,
};
use probity_shell::{Script, equivalence::Verdict, extract::extract as extract_command};
use probity_text::normalize::{Normalizer, lowercase};
use regex::Regex;
use serde_json::Value;

pub(crate) use answer::{Choices, Numbers};
pub(crate) use markup::{Allowed, Markup, Sql, SqlDialect};
pub(crate) use perplexity::Perplexity;
pub(crate) use scored::{AskedScorer, Embedded, Scripted};
pub(crate) use similarity::{Metric, Similarity};
pub(crate) use tools::{ToolTest, WantedCall, known_fields};

use crate::{
    assertion::CompiledAssertion,
    command::{Accepted, equivalence_of, nearest},
    difference::{Extra, json_difference, json_equal, shown, text_difference},
    excerpt::excerpt,
    json::{Wanted, extract},
    reading::{Answer, BadReading, Reader},
    reply::{Reply, blocked_stop},
    schema::{Held, Schema},
};

/// The names of the dialects of SQL that `is-sql` and `contains-sql` know.
pub fn sql_dialects() -> impl Iterator<Item = &'static str> {
    SqlDialect::ALL.into_iter().map(SqlDialect::as_str)
}

/// A check of the answer that is read out of a reply.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    reader: Reader,
    pub(crate) test: Test,
}

impl Check {
    /// A check with what it looks at, or what of that makes no sense for it.
    pub(crate) fn new(test: Test, reader: Reader) -> Result<Self, BadReading> {
        if reader.extracts() && !test.looks_at_text() {
            let message = "it does not look at the text of the reply: there is nothing to extract";
            return Err(BadReading::new("extract", message));
        }
        let test = match reader.normalizer().is_empty() {
            true => test,
            false => test.normalized(reader.normalizer())?,
        };
        Ok(Self { reader, test })
    }

    /// Whether a long reply takes next to no time: it is searched, counted or compared at most, and nothing in it is read.
    pub(crate) fn is_quick(&self) -> bool {
        !self.reader.extracts() && self.reader.normalizer().is_empty() && self.test.is_quick()
    }

    /// Asks about a reply. `json` is what was read out of it, where the case wants JSON.
    pub(crate) fn check(&self, reply: &Reply<'_, '_>, json: Option<&Value>) -> Checked {
        let Answer { text, span, is_verbatim, extracted } = match self.reader.read(reply.text) {
            Ok(answer) => answer,
            Err(absent) => return Checked::fails(format!("nothing to extract: {absent}")),
        };
        if is_verbatim && extracted.is_none() {
            return self.test.check(reply, json);
        }
        let checked = self.test.check(&reply.with_text(&text), json);
        let span = match (&span, &checked.span) {
            (Some(outer), Some(inner)) if is_verbatim => {
                Some(outer.start + inner.start..outer.start + inner.end)
            }
            _ if extracted.is_some() => span,
            _ => None,
        };
        let mut told = checked.told;
        // It is named where the check is.
        told.extracted.extend(extracted.map(|text| Extracted { check: "".into(), text }));
        Checked { span, told, ..checked }
    }
}

/// One check, compiled.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    /// The reply is one of these texts.
    Equals {
        any: Vec<String>,
        ends: Ends,
    },
    /// The reply as a whole is this JSON.
    EqualsJson(Value),
    /// The JSON that was read out of the reply is this.
    Json {
        expected: Value,
        extra: Extra,
    },
    Contains {
        needles: Needles,
        need: Need,
    },
    StartsWith(Vec<String>),
    Regex(Vec<Arc<Regex>>),
    /// The command in the reply does what one of these does.
    Command(Vec<Accepted>),
    IsJson(Option<Arc<Schema>>),
    ContainsJson(Option<Arc<Schema>>),
    Markup(Markup),
    Numbers(Numbers),
    Choices(Choices),
    Similarity(Similarity),
    IsRefusal,
    Levenshtein {
        expected: String,
        edits: usize,
    },
    WordCount {
        least: usize,
        most: usize,
    },
    FinishReason(String),
    Latency(f64),
    Ttft(f64),
    Cost(f64),
    Tools(ToolTest),
    /// Nothing of the service stopped the reply.
    Guardrails,
    Perplexity(Perplexity),
    Judged {
        number: usize,
        threshold: Threshold,
    },
    /// One of the comparisons with other lanes.
    Selected(usize),
    Script(Scripted),
    Scorer(AskedScorer),
    Embedded(Embedded),
    /// How relevant the reply is, as a model found before.
    Reranked {
        number: usize,
        threshold: f64,
    },
    Set {
        members: Vec<CompiledAssertion>,
        threshold: Option<f64>,
    },
}

/// Whether blanks at both ends count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Kept,
    Trimmed,
}

/// How many of several texts have to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Any,
    All,
}

/// Whether the case of letters counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letters {
    AsTheyAre,
    Folded,
}

/// Texts that are looked for.
#[derive(Clone, Debug)]
pub(crate) struct Needles {
    /// As people wrote them, which is how they are told of.
    written: Vec<String>,
    /// As they are looked for.
    searched: Vec<String>,
    letters: Letters,
}

impl Needles {
    pub(crate) fn new(written: Vec<String>, letters: Letters) -> Self {
        let searched = match letters {
            Letters::AsTheyAre => written.clone(),
            Letters::Folded => written.iter().map(|it| it.to_lowercase()).collect(),
        };
        Self { written, searched, letters }
    }
}

/// What a check came to.
#[derive(Debug)]
pub(crate) struct Checked {
    /// From 0 to 1; none where nobody could say.
    pub(crate) value: Option<f64>,
    /// What a scorer said, where that is not from 0 to 1.
    pub(crate) said: Option<f64>,
    pub(crate) passed: bool,
    /// Why it does not hold, or what a judge said.
    pub(crate) reason: Option<String>,
    /// How the reply differs, where that can be said in a form of its own.
    pub(crate) difference: Option<Difference>,
    /// Which of several expected answers it was.
    pub(crate) index: Option<usize>,
    /// The bytes of the reply that it is about.
    pub(crate) span: Option<Range<usize>>,
    /// What else there is to tell of it.
    pub(crate) told: Told,
}

impl Checked {
    fn holds() -> Self {
        Self {
            value: Some(1.0),
            said: None,
            passed: true,
            reason: None,
            difference: None,
            index: None,
            span: None,
            told: Told::default(),
        }
    }

    fn fails(reason: String) -> Self {
        Self { value: Some(0.0), passed: false, reason: Some(reason), ..Self::holds() }
    }

    fn differs(difference: Difference) -> Self {
        let reason = difference.to_string();
        Self { difference: Some(difference), ..Self::fails(reason) }
    }

    /// Somebody has to say, and has not.
    pub(crate) fn unjudged(why: String) -> Self {
        Self { value: None, passed: false, reason: Some(why), ..Self::holds() }
    }

    fn of(holds: bool, reason: impl FnOnce() -> String) -> Self {
        if holds { Self::holds() } else { Self::fails(reason()) }
    }

    /// Holds by the first of several that fits; else differs.
    fn any(found: Option<usize>, difference: impl FnOnce() -> Difference) -> Self {
        match found {
            Some(index) => Self { index: Some(index), ..Self::holds() },
            None => Self::differs(difference()),
        }
    }

    fn at(self, span: Option<Range<usize>>) -> Self {
        Self { span, ..self }
    }
}

impl Test {
    /// Whether it looks at the text of a reply, and at nothing that was found out about it before.
    pub(crate) fn looks_at_text(&self) -> bool {
        match self {
            Self::Json { .. }
            | Self::IsRefusal
            | Self::FinishReason(_)
            | Self::Latency(_)
            | Self::Ttft(_)
            | Self::Cost(_)
            | Self::Tools(_)
            | Self::Guardrails
            | Self::Perplexity(_)
            | Self::Judged { .. }
            | Self::Selected(_)
            | Self::Scorer(_)
            | Self::Embedded(_)
            | Self::Reranked { .. }
            | Self::Set { .. } => false,
            Self::Equals { .. }
            | Self::EqualsJson(_)
            | Self::Contains { .. }
            | Self::StartsWith(_)
            | Self::Regex(_)
            | Self::Command(_)
            | Self::IsJson(_)
            | Self::ContainsJson(_)
            | Self::Markup(_)
            | Self::Numbers(_)
            | Self::Choices(_)
            | Self::Similarity(_)
            | Self::Levenshtein { .. }
            | Self::WordCount { .. }
            | Self::Script(_) => true,
        }
    }

    fn is_quick(&self) -> bool {
        match self {
            Self::Equals { .. }
            | Self::Contains { .. }
            | Self::StartsWith(_)
            | Self::IsRefusal
            | Self::WordCount { .. }
            | Self::FinishReason(_)
            | Self::Latency(_)
            | Self::Ttft(_)
            | Self::Cost(_)
            | Self::Guardrails
            | Self::Judged { .. }
            | Self::Selected(_)
            | Self::Embedded(_)
            | Self::Reranked { .. } => true,
            Self::Set { members, .. } => members.iter().all(CompiledAssertion::is_quick),
            Self::EqualsJson(_)
            | Self::Json { .. }
            | Self::Regex(_)
            | Self::Command(_)
            | Self::IsJson(_)
            | Self::ContainsJson(_)
            | Self::Markup(_)
            | Self::Numbers(_)
            | Self::Choices(_)
            | Self::Similarity(_)
            | Self::Levenshtein { .. }
            | Self::Tools(_)
            | Self::Perplexity(_)
            | Self::Script(_)
            | Self::Scorer(_) => false,
        }
    }

    /// Whether somebody was asked about the reply before, by it or by a member of it.
    pub(crate) fn asks_others(&self) -> bool {
        let asks =
            |members: &[CompiledAssertion]| members.iter().any(CompiledAssertion::asks_others);
        matches!(
            self,
            Self::Scorer(_)
                | Self::Judged { .. }
                | Self::Selected(_)
                | Self::Embedded(_)
                | Self::Reranked { .. }
        ) || matches!(self, Self::Set { members, .. } if asks(members))
    }

    /// Whether its scores may have names that only a scorer knows.
    pub(crate) fn names_scores(&self) -> bool {
        match self {
            Self::Script(_) | Self::Scorer(_) => true,
            Self::Set { members, .. } => members.iter().any(CompiledAssertion::names_scores),
            Self::Equals { .. }
            | Self::EqualsJson(_)
            | Self::Json { .. }
            | Self::Contains { .. }
            | Self::StartsWith(_)
            | Self::Regex(_)
            | Self::Command(_)
            | Self::IsJson(_)
            | Self::ContainsJson(_)
            | Self::Markup(_)
            | Self::Numbers(_)
            | Self::Choices(_)
            | Self::Similarity(_)
            | Self::IsRefusal
            | Self::Levenshtein { .. }
            | Self::WordCount { .. }
            | Self::FinishReason(_)
            | Self::Latency(_)
            | Self::Ttft(_)
            | Self::Cost(_)
            | Self::Tools(_)
            | Self::Guardrails
            | Self::Perplexity(_)
            | Self::Embedded(_)
            | Self::Reranked { .. }
            | Self::Selected(_)
            | Self::Judged { .. } => false,
        }
    }

    /// The same check, of texts without what does not count.
    fn normalized(self, normalizer: &Normalizer) -> Result<Self, BadReading> {
        let apply = |text: String| normalizer.apply(&text).into_owned();
        // Every text contains the empty one.
        let needles = |texts: Vec<String>| -> Result<Vec<String>, BadReading> {
            let left: Vec<String> = texts.iter().cloned().map(apply).collect();
            match left.iter().position(String::is_empty) {
                Some(at) => {
                    let message = format!("nothing of `{}` would count", excerpt(&texts[at], 0));
                    Err(BadReading::new("normalize", message))
                }
                None => Ok(left),
            }
        };
        match self {
            Self::Equals { any, ends } => {
                Ok(Self::Equals { any: any.into_iter().map(apply).collect(), ends })
            }
            Self::Contains { needles: Needles { written, letters, .. }, need } => {
                Ok(Self::Contains { needles: Needles::new(needles(written)?, letters), need })
            }
            Self::StartsWith(starts) => Ok(Self::StartsWith(needles(starts)?)),
            Self::Levenshtein { expected, edits } => {
                Ok(Self::Levenshtein { expected: apply(expected), edits })
            }
            Self::Similarity(it) if it.metric == Metric::Edit => {
                let references = it.references.into_iter().map(apply).collect();
                Ok(Self::Similarity(Similarity { references, ..it }))
            }
            Self::EqualsJson(_)
            | Self::Json { .. }
            | Self::Regex(_)
            | Self::Command(_)
            | Self::IsJson(_)
            | Self::ContainsJson(_)
            | Self::Markup(_)
            | Self::Numbers(_)
            | Self::Choices(_)
            | Self::Similarity(_)
            | Self::IsRefusal
            | Self::WordCount { .. }
            | Self::FinishReason(_)
            | Self::Latency(_)
            | Self::Ttft(_)
            | Self::Cost(_)
            | Self::Tools(_)
            | Self::Guardrails
            | Self::Perplexity(_)
            | Self::Judged { .. }
            | Self::Selected(_)
            | Self::Script(_)
            | Self::Scorer(_)
            | Self::Embedded(_)
            | Self::Reranked { .. }
            | Self::Set { .. } => {
                let message = "only checks that compare texts have `normalize` and `ignore`";
                Err(BadReading::new("normalize", message))
            }
        }
    }

    /// Asks about a reply. `json` is what was read out of it, where the case wants JSON.
    pub(crate) fn check(&self, reply: &Reply<'_, '_>, json: Option<&Value>) -> Checked {
        let text = reply.text;
        match self {
            Self::Equals { any, ends: Ends::Kept } => {
                Checked::any(any.iter().position(|it| it == text), || text_difference(any, text))
            }
            Self::Equals { any, ends: Ends::Trimmed } => {
                let found = any.iter().position(|it| it.trim() == text.trim());
                Checked::any(found, || {
                    let trimmed: Vec<&str> = any.iter().map(|it| it.trim()).collect();
                    text_difference(&trimmed, text.trim())
                })
            }
            Self::EqualsJson(expected) => {
                let parsed = probity_core::json::parse(text.trim(), &Limits::default());
                let equal = parsed.is_ok_and(|it| json_equal(expected, &it.value));
                Checked::of(equal, || format!("the reply is `{}`", excerpt(text, 0)))
            }
            Self::Json { expected, extra } => match json {
                None => Checked::fails("the reply is not JSON".to_owned()),
                Some(json) => match json_difference(expected, json, *extra) {
                    None => Checked::holds(),
                    Some(difference) => Checked::differs(Difference::Json(difference)),
                },
            },
            Self::Contains { needles, need } => contains(text, needles, *need),
            Self::StartsWith(starts) => {
                let found = starts.iter().position(|it| text.starts_with(it.as_str()));
                let span = found.map(|at| 0..starts[at].len());
                let start =
                    || StartDifference { expected_start: shown(starts), actual: excerpt(text, 0) };
                Checked::any(found, || Difference::Start(start())).at(span)
            }
            Self::Regex(all) => {
                let found = all.iter().enumerate().find_map(|(at, it)| Some((at, it.find(text)?)));
                let pattern = || {
                    let patterns: Vec<&str> = all.iter().map(|it| it.as_str()).collect();
                    Difference::Pattern(PatternDifference { pattern: shown(&patterns) })
                };
                Checked::any(found.map(|it| it.0), pattern).at(found.map(|it| it.1.range()))
            }
            Self::Command(accepted) => command(accepted, text),
            Self::IsJson(schema) => {
                match probity_core::json::parse(text.trim(), &Limits::default()) {
                    Ok(parsed) => satisfies(schema.as_deref(), &parsed.value),
                    Err(error) => Checked::fails(error.to_string()),
                }
            }
            Self::ContainsJson(schema) => {
                match extract(text, JsonLevel::Lenient, Wanted::Any).value {
                    Some(value) => satisfies(schema.as_deref(), &value),
                    None => Checked::fails("there is no JSON in the reply".to_owned()),
                }
            }
            Self::Markup(markup) => markup.check(text),
            Self::Numbers(numbers) => numbers.check(text),
            Self::Choices(choices) => choices.check(text),
            Self::Similarity(similarity) => similarity.check(text),
            Self::IsRefusal => {
                let found = reply.refusal().map(|it| it.span.clone());
                Checked::of(reply.is_refusal(), || "the reply is not a refusal".to_owned())
                    .at(found)
            }
            Self::Levenshtein { expected, edits } => {
                Checked::of(distance::within(text, expected, *edits), || {
                    format!("it takes more than {edits} edits to `{}`", excerpt(expected, 0))
                })
            }
            Self::WordCount { least, most } => {
                let words = text.split_whitespace().count();
                Checked::of((least..=most).contains(&&words), || format!("{words} words"))
            }
            Self::FinishReason(expected) => {
                let found = reply.result.stop_reason.map(finish_reason);
                Checked::of(found.as_ref() == Some(expected), || match found {
                    Some(found) => format!("it is `{}`", excerpt(&found, 0)),
                    None => "no stop reason was recorded".to_owned(),
                })
            }
            Self::Latency(most) => at_most(reply.result.latency_ms, *most, "latency"),
            Self::Ttft(most) => at_most(reply.result.ttft_ms, *most, "time to first token"),
            Self::Cost(most) => at_most(reply.result.cost_usd, *most, "cost"),
            Self::Tools(asked) => asked.check(&reply.tool_calls(), text),
            Self::Guardrails => match blocked_stop(reply.result) {
                Some(why) => {
                    Checked::fails(format!("the service stopped it: `{}`", excerpt(why, 0)))
                }
                None => Checked::holds(),
            },
            Self::Perplexity(wanted) => wanted.check(reply.perplexity()),
            Self::Judged { number, threshold } => {
                judged::check(reply.result.assessments.get(*number), *threshold)
            }
            Self::Selected(number) => selected::check(reply.result.selections.get(*number)),
            Self::Script(script) => script.check(reply),
            Self::Scorer(scorer) => scorer.check(reply),
            Self::Embedded(embedded) => embedded.check(reply),
            Self::Reranked { number, threshold } => scored::relevance(reply, *number, *threshold),
            Self::Set { members, threshold } => set(members, *threshold, reply),
        }
    }
}

/// What there is to tell of checks beside their own scores. What a check itself tells has no name yet.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// What they took out of the reply.
    pub(crate) extracted: Vec<Extracted>,
    /// What judges said.
    pub(crate) judged: Vec<JudgedCheck>,
    /// What comparisons with other lanes came to.
    pub(crate) selected: Vec<Selection>,
    /// Further scores of scorers, which decide nothing.
    pub(crate) named: Vec<Score>,
}

/// What assertions came to, together.
pub(crate) struct Together {
    pub(crate) passed: bool,
    pub(crate) value: f64,
    pub(crate) scores: Vec<Score>,
    pub(crate) told: Told,
    /// Why the judge's part is not known; it is then taken to hold.
    pub(crate) unjudged: Option<String>,
}

/// Asks all assertions. They must all hold, or reach `threshold` by weight.
pub(crate) fn evaluate(
    assertions: &[CompiledAssertion],
    threshold: Option<f64>,
    reply: &Reply<'_, '_>,
) -> Together {
    let mut told = Told::default();
    let scores: Vec<Score> = assertions.iter().map(|it| it.score(reply, &mut told)).collect();
    let value_of = |it: &Score| it.value.unwrap_or(1.0);
    let weight: f64 = scores.iter().map(|it| it.weight).sum();
    let weighted: f64 = scores.iter().map(|it| it.weight * value_of(it)).sum();
    let value = if weight > 0.0 { weighted / weight } else { 1.0 };
    let passed = match threshold {
        Some(threshold) => value >= threshold,
        None => scores.iter().all(|it| it.passed || it.value.is_none() || !it.is_required()),
    };
    let unjudged = scores.iter().find(|it| it.value.is_none()).and_then(|it| it.reason.clone());
    Together { passed, value, scores, told, unjudged }
}

fn set(members: &[CompiledAssertion], threshold: Option<f64>, reply: &Reply<'_, '_>) -> Checked {
    let Together { passed, value, scores, told, unjudged } = evaluate(members, threshold, reply);
    if let Some(why) = unjudged.filter(|_| passed) {
        return Checked { told, ..Checked::unjudged(why) };
    }
    let failing = scores.iter().find(|it| !it.passed).filter(|_| !passed);
    let reason = failing
        .map(|it| format!("`{}`: {}", it.kind, it.reason.as_deref().unwrap_or("does not hold")));
    Checked { value: Some(value), passed, reason, told, ..Checked::holds() }
}

fn contains(text: &str, needles: &Needles, need: Need) -> Checked {
    let Needles { written, searched, letters } = needles;
    let folded = (*letters == Letters::Folded).then(|| lowercase(text));
    let text = folded.as_deref().unwrap_or(text);
    let found = |needle: &String| {
        let at = memmem::find(text.as_bytes(), needle.as_bytes())?;
        Some(at..at + needle.len())
    };
    // Folding letters may move bytes: then the place in the reply is not known.
    let known = |span: Range<usize>| folded.is_none().then_some(span);
    match need {
        Need::All => match searched.iter().position(|it| found(it).is_none()) {
            Some(at) => Checked::fails(format!("`{}` is missing", excerpt(&written[at], 0))),
            None if folded.is_some() => Checked::holds(),
            None => Checked::holds().at(searched.first().and_then(found)),
        },
        Need::Any => {
            let hit = searched.iter().enumerate().find_map(|(at, it)| Some((at, found(it)?)));
            let missing = || Difference::Missing(Missing { missing: shown(written) });
            let index = hit.as_ref().map(|it| it.0);
            Checked::any(index, missing).at(hit.and_then(|it| known(it.1)))
        }
    }
}

/// Whether the command in the reply does what one of the accepted ones does.
fn command(accepted: &[Accepted], reply: &str) -> Checked {
    let nothing = OtherCommand {
        command: None,
        parse_error: None,
        equivalence: None,
        reason: None,
        difference: None,
        canonical: None,
    };
    let differs = |other: OtherCommand| Checked::differs(Difference::OtherCommand(Box::new(other)));
    let Some(found) = extract_command(reply) else { return differs(nothing) };
    let nothing = OtherCommand { command: Some(excerpt(&found.command, 0)), ..nothing };
    let script = match Script::parse(&found.command) {
        Ok(script) => script,
        Err(error) => {
            return differs(OtherCommand { parse_error: Some(error.to_string()), ..nothing });
        }
    };
    match nearest(accepted, &script) {
        Some((index, found)) if found.verdict == Verdict::Equal => {
            Checked { index: Some(index), ..Checked::holds() }
        }
        Some((_, found)) => {
            let [canonical, expected] = found.canonical.map(|it| excerpt(&it, 0));
            differs(OtherCommand {
                equivalence: Some(equivalence_of(found.verdict)),
                reason: Some(found.reason),
                difference: found.difference.map(|it| it.to_string()),
                canonical: Some([expected, canonical]),
                ..nothing
            })
        }
        None => differs(nothing),
    }
}

fn satisfies(schema: Option<&Schema>, value: &Value) -> Checked {
    match schema.map(|schema| schema.hold(value)) {
        None | Some(Held::Valid) => Checked::holds(),
        Some(Held::Invalid(violations)) => Checked::fails(violations),
        Some(Held::Unknown(why)) => Checked::unjudged(why),
    }
}

fn at_most(measured: Option<f64>, most: f64, what: &str) -> Checked {
    match measured {
        Some(measured) => Checked::of(measured <= most, || format!("{what} is {measured}")),
        None => Checked::fails(format!("no {what} was recorded")),
    }
}

/// The vendors' words for why a model stopped, in one vocabulary.
pub(crate) fn finish_reason(word: &str) -> String {
    let word = word.to_lowercase();
    match word.as_str() {
        "end_turn" | "stop_sequence" | "eos" | "complete" => "stop".to_owned(),
        "max_tokens" | "max_output_tokens" | "model_length" => "length".to_owned(),
        "tool_use" | "function_call" => "tool_calls".to_owned(),
        "safety" | "refusal" | "prohibited_content" | "blocklist" => "content_filter".to_owned(),
        _ => word,
    }
}
