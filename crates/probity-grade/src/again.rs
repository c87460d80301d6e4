//! Judges a reply that was stored, without asking anybody: what calls found out comes from the record.

use probity_core::{
    classification::{Classification, Verdict},
    kind::Judged,
    record::Asked,
    run_result::{Assessment, RunResult},
};

use serde_json::Value;

use crate::{
    classify::classify,
    compile::{Expectation, Rubric},
    judge::{self, Question},
    routing::says_yes,
    script::{self, ScorerCall},
};

/// What is known of a result beside its reply.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// The prompt that was sent.
    pub prompt: &'a str,
    /// Every question of a case that asked several.
    pub asked: &'a [Asked],
    /// What was found when the reply came.
    pub classified: Option<&'a Classification>,
}

/// Says again what a result is, by the expectation of now.
///
/// Answers of judges are read again. What a judge said of pairs of answers, and what an external
/// runner said of itself, is taken as it was found.
pub fn classify_again(
    expectation: &Expectation<'_>,
    result: &RunResult<'_>,
    known: Known<'_>,
) -> (Classification, Verdict) {
    let found = known.classified.and_then(|it| Some((it, it.details.evidence.as_deref()?)));
    let classification = match found.map(|(before, evidence)| (before, evidence, evidence.judged()))
    {
        Some((before, _, Judged::AsFound)) => before.clone(),
        Some((_, evidence, Judged::ByEvidence(judged))) => {
            let judged = match result.error {
                None => *judged,
                Some(_) => classify(expectation, result),
            };
            judged.with_evidence(evidence.clone())
        }
        Some((_, _, Judged::ByReply)) | None => by_reply(expectation, result, known),
    };
    let verdict = expectation.verdict(&classification);
    (classification, verdict)
}

/// Reads the reply again, with what others said of it.
fn by_reply(
    expectation: &Expectation<'_>,
    result: &RunResult<'_>,
    known: Known<'_>,
) -> Classification {
    let chosen = chosen(known.asked);
    let assessments = assessments(expectation, result, known);
    let scored = scored(expectation, known.asked);
    let (chosen, assessments) = (chosen.as_deref(), assessments.as_slice());
    let (scored, prompt) = (scored.as_slice(), Some(known.prompt));
    classify(expectation, &RunResult { prompt, chosen, assessments, scored, ..result.clone() })
}

/// The role of a question about one skill.
pub fn fallback_role(skill: &str) -> String {
    format!("fallback {skill}")
}

/// The role of a question to a judge about one rubric, which counts from 0.
pub fn rubric_role(number: usize) -> String {
    format!("judge rubric {}", number + 1)
}

/// The role of a question to a scorer, which counts from 0.
pub fn scorer_role(number: usize) -> String {
    format!("scorer {}", number + 1)
}

/// Whether a question went to a scorer and not to a backend.
pub fn is_of_scorer(asked: &Asked) -> bool {
    asked.role.starts_with("scorer ")
}

/// What the scorers of the case said when they were asked.
fn scored(expectation: &Expectation<'_>, asked: &[Asked]) -> Vec<Result<Value, String>> {
    let read = |(number, call): (usize, &ScorerCall)| {
        let role = scorer_role(number);
        let found = asked.iter().rfind(|it| it.role == role).ok_or("the scorer was not asked")?;
        if found.request.prompt() != call.question() {
            return Err("another scorer was asked, or with another `config`".to_owned());
        }
        match (&found.reply, &found.error) {
            (Some(reply), _) => script::stored(reply),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Err("the scorer gave no answer".to_owned()),
        }
    };
    expectation.scorers().iter().enumerate().map(read).collect()
}

/// Skills that were chosen when each was asked about; none if they were not.
fn chosen(asked: &[Asked]) -> Option<Vec<String>> {
    let prefix = fallback_role("");
    let about = || asked.iter().filter_map(|it| Some((it.role.strip_prefix(&prefix)?, it)));
    about().next()?;
    let yes = |it: &Asked| it.reply.as_deref().is_some_and(says_yes);
    Some(about().filter(|(_, it)| yes(it)).map(|(skill, _)| skill.to_owned()).collect())
}

/// What a judge made of the reply, for each rubric of the case.
fn assessments(
    expectation: &Expectation<'_>,
    result: &RunResult<'_>,
    known: Known<'_>,
) -> Vec<Result<Assessment, String>> {
    let reply = result.raw_response.unwrap_or_default();
    let read = |(number, rubric): (usize, &Rubric)| {
        let criteria = &rubric.criteria;
        let role = rubric_role(number);
        let said = known.asked.iter().rfind(|it| it.role == role).and_then(|it| it.reply.as_ref());
        let said = said.ok_or("no judge was asked")?;
        let question = Question { task: known.prompt, criteria, answers: &[reply] };
        let judgement = question.read(said).map_err(|why| {
            format!("the stored answer of the judge does not fit the current rubric: {why}")
        })?;
        Ok(judge::assessment(criteria, judgement))
    };
    expectation.rubrics().iter().enumerate().map(read).collect()
}
