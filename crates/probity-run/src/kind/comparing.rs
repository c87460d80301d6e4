//! Answers with more and less of a skill, compared by a judge: what the kinds share that ask for
//! this.

use std::{collections::BTreeMap, sync::Arc};

use probity_core::{
    case::{RubricCriterion, TestCase},
    criteria::CriteriaProblem,
    evidence::{
        Compared, Condition, CriterionScore, Duel, JudgedBy, NOT_JUDGED, Pair, Round, Size, Tier,
        Win,
    },
    failure::ErrorKind,
    kind::{Evidence, KindSpec, RunnerKind},
    problem::Problem,
    record::{Aborted, CacheKind, CallError, InputDigest, SkillsInfo},
    request::Request,
};
use probity_grade::internal::judge::{Judgement, Marked, Question};
use probity_load::{
    skill::{Library, Skill},
    suite::RunnerConfig,
};

use super::{Asking, Calls, Kind, Questions, Running, Site, Work, skills};
use crate::{
    backend::Reply,
    engine::{Ended, Handle, JudgeCall, Query, Target, Unanswered, ask_judge, failed_with, finish},
    source::Prepared,
};

/// What tells these kinds apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) kind: RunnerKind,
    /// What is kept of a case.
    pub(super) evidence: fn(Compared) -> Evidence,
    /// How much of a skill a model is given, the whole of it first.
    pub(super) conditions: fn(&Skill) -> &'static [Condition],
    /// Which answers are compared, the pair that decides the case first.
    pub(super) pairs: fn(&Skill) -> &'static [Pair],
    /// Whether a case has to say what a judge looks at.
    pub(super) needs_rubric: bool,
}

/// A runner with its skills, ready to be given to a model.
#[derive(Debug)]
struct Comparing {
    rules: Rules,
    library: Library,
    /// Instructions of the runner's own.
    system: Option<String>,
    /// Whether pairs are judged in both orders.
    swap: bool,
    /// Texts of skills, by skill and condition.
    texts: BTreeMap<(String, Condition), Arc<str>>,
    sizes: BTreeMap<String, Size>,
}

pub(super) fn open(
    rules: Rules,
    runner: &RunnerConfig,
    site: &Site<'_>,
    report: &mut dyn FnMut(Problem),
) -> Option<Arc<dyn Kind>> {
    let library = skills::load(runner, site, report)?;
    let mut texts = BTreeMap::new();
    let mut sizes = BTreeMap::new();
    for skill in library.skills.values() {
        let summary = skill.summary();
        let mut add = |condition, text: &str| {
            texts.insert((skill.id.clone(), condition), as_instructions(&skill.id, text).into());
        };
        add(Condition::Full, &skill.body);
        add(Condition::Summary, &summary);
        if !skill.companions.is_empty() {
            add(Condition::Companions, &skill.with_companions(runner.companion_bytes));
        }
        sizes.insert(
            skill.id.clone(),
            Size {
                tier: Tier::of(skill.bytes),
                full: skill.bytes,
                summary: summary.len() as u64,
                companions: skill.companion_bytes(),
            },
        );
    }
    let (system, swap) = (runner.system.clone(), runner.panel.swap);
    Some(Arc::new(Comparing { rules, library, system, swap, texts, sizes }))
}

impl Comparing {
    /// The skill that a case is about.
    fn skill(&self, case: &TestCase) -> Option<&Skill> {
        self.library.skills.get(case.routing.skill.as_deref()?)
    }

    fn text(&self, skill: &Skill, condition: Condition) -> Option<&Arc<str>> {
        self.texts.get(&(skill.id.clone(), condition))
    }

    /// What is generated and compared. `system` are the runner's own instructions.
    fn comparison(
        &self,
        case: &TestCase,
        system: Option<&str>,
        judge: &JudgedBy,
    ) -> Option<Comparison> {
        let skill = self.skill(case)?;
        let conditions = (self.rules.conditions)(skill).iter().map(|condition| {
            let text = match condition {
                Condition::Baseline => system.map(Arc::from),
                Condition::Summary | Condition::Full | Condition::Companions => {
                    self.text(skill, *condition).map(|text| with_skill(system, text))
                }
            };
            (*condition, text)
        });
        Some(Comparison {
            evidence: self.rules.evidence,
            skill: skill.id.clone(),
            size: *self.sizes.get(&skill.id)?,
            conditions: conditions.collect(),
            pairs: (self.rules.pairs)(skill),
            rubric: match case.rubric.is_empty() {
                true => usual_rubric(),
                false => case.rubric.clone(),
            },
            swap: self.swap,
            judge: judge.clone(),
        })
    }
}

impl Kind for Comparing {
    fn spec(&self) -> &'static KindSpec {
        self.rules.kind.spec()
    }

    fn check(&self, case: &TestCase) -> Vec<CriteriaProblem> {
        let mut problems = skills::check(&self.library, case);
        if case.routing.skill.is_none() {
            problems.push(skills::missing("skill", None));
        }
        if self.rules.needs_rubric && case.rubric.is_empty() {
            let help = "say what a judge has to look at, with weights that add up to 1";
            problems.push(skills::missing("rubric", Some(help)));
        }
        problems
    }

    fn decides(&self, _case: &TestCase) -> bool {
        true
    }

    fn calls(&self, case: &TestCase) -> Calls {
        let Some(skill) = self.skill(case) else { return Calls::default() };
        let orders = if self.swap { 2 } else { 1 };
        Calls {
            answers: (self.rules.conditions)(skill).len() as u64,
            judgements: (self.rules.pairs)(skill).len() as u64 * orders,
            ..Calls::default()
        }
    }

    fn sent_bytes(&self, case: &TestCase, _filled: Option<&Request>) -> u64 {
        let prompt = case.prompt.len();
        let own = self.system.as_ref().map_or(0, String::len);
        let Some(skill) = self.skill(case) else { return prompt as u64 };
        let text = |condition: Condition| self.text(skill, condition).map_or(0, |it| it.len());
        let conditions = (self.rules.conditions)(skill).iter();
        conditions.map(|condition| (prompt + own + text(*condition)) as u64).sum()
    }

    fn strata(&self) -> Option<fn(&TestCase) -> String> {
        Some(|case| case.routing.skill.clone().unwrap_or_default())
    }

    fn skills(&self) -> Option<SkillsInfo> {
        Some(skills::info(&self.library))
    }

    fn questions(
        &self,
        case: &TestCase,
        filled: Request,
        judge: Option<&JudgedBy>,
    ) -> Option<Questions> {
        let comparison = self.comparison(case, filled.system(), judge?)?;
        // The answer with the whole skill is the case's own.
        let system = comparison.conditions.first().and_then(|(_, system)| system.clone());
        let request = Request::new(system, filled.prompt());
        Some(Questions { request, work: Arc::new(comparison) })
    }
}

/// Answers to generate, and how to compare them.
#[derive(Debug)]
struct Comparison {
    evidence: fn(Compared) -> Evidence,
    skill: String,
    size: Size,
    /// Each with the instructions that go before the prompt.
    conditions: Vec<(Condition, Option<Arc<str>>)>,
    pairs: &'static [Pair],
    rubric: Vec<RubricCriterion>,
    /// Whether both orders are judged.
    swap: bool,
    judge: JudgedBy,
}

impl Comparison {
    /// What is asked under each condition: the request of the case, with other instructions.
    fn requests(&self, case: &Request) -> Vec<(Condition, Request)> {
        let prompt: Arc<str> = case.prompt().into();
        let request = |system: &Option<Arc<str>>| Request::new(system.clone(), prompt.clone());
        self.conditions.iter().map(|(condition, system)| (*condition, request(system))).collect()
    }

    fn compared(&self, duels: Vec<Duel>) -> Compared {
        let (skill, judge) = (self.skill.clone(), self.judge.clone());
        Compared { skill, size: self.size, judge, duels }
    }
}

impl Work for Comparison {
    fn input(&self, asking: &Asking<'_>) -> InputDigest {
        let requests = self.requests(asking.request);
        let all: Vec<InputDigest> =
            requests.iter().map(|(_, request)| asking.digest(request)).collect();
        let rubric = serde_json::to_string(&self.rubric).unwrap_or_default();
        let orders: &[u8] = if self.swap { b"both" } else { b"one" };
        let how = [asking.judge.as_bytes(), rubric.as_bytes(), orders];
        InputDigest::of(how.into_iter().chain(all.iter().map(|it| &it.0[..])))
    }

    fn generations(&self, request: &Request) -> Vec<Request> {
        self.requests(request).into_iter().map(|(_, request)| request).collect()
    }

    fn run(self: Arc<Self>, case: Box<Prepared>, handle: Box<Handle>) -> Running {
        Box::pin(async move { compare(&self, case, handle).await })
    }
}

/// Generates an answer under each condition, and has them judged pair by pair.
async fn compare(
    work: &Comparison,
    case: Box<Prepared>,
    mut handle: Box<Handle>,
) -> Result<Ended, Aborted> {
    let mut answers: BTreeMap<Condition, Reply> = BTreeMap::new();
    for (condition, request) in work.requests(&case.request) {
        let query = Query {
            target: Target::Subject,
            role: condition.as_str(),
            turn: None,
            kept: CacheKind::Generation,
            request: &request,
            repeat: case.repeat,
        };
        let answer = handle.query(query).await.and_then(|reply| {
            // Nothing cannot be compared with anything.
            match reply.is_empty() {
                false => Ok(reply),
                true => Err(Unanswered::Failed {
                    error: CallError::new(ErrorKind::Empty, "the reply is empty"),
                    backend: handle.subject.at,
                }),
            }
        });
        match answer {
            Ok(reply) => {
                answers.insert(condition, reply);
            }
            // What a service will not answer is judged as what it is: no answer.
            Err(Unanswered::Failed { error, .. }) if error.kind == ErrorKind::ContentFilter => {
                let text = "(The service blocked its own answer.)".to_owned();
                answers.insert(condition, Reply { text, ..Reply::default() });
            }
            Err(unanswered) => return unjudged(case, work, Vec::new(), None, handle, unanswered),
        }
    }
    let mut duels = Vec::with_capacity(work.pairs.len());
    for pair in work.pairs {
        match duel(&case, work, *pair, &answers, &mut handle).await {
            Ok(duel) => duels.push(duel),
            Err(unanswered) => {
                let reply = answers.remove(&Condition::Full);
                return unjudged(case, work, duels, reply, handle, unanswered);
            }
        }
    }
    let compared = work.compared(duels);
    let judged = compared.classify().with_evidence((work.evidence)(compared));
    let reply = answers.remove(&Condition::Full);
    Ok(finish(case, handle, reply, judged))
}

/// A case that ends in an error keeps what is known of it.
fn unjudged(
    case: Box<Prepared>,
    work: &Comparison,
    duels: Vec<Duel>,
    reply: Option<Reply>,
    handle: Box<Handle>,
    unanswered: Unanswered,
) -> Result<Ended, Aborted> {
    let mut duels = duels;
    for pair in &work.pairs[duels.len()..] {
        duels.push(Duel::new(*pair, Vec::new(), Some(NOT_JUDGED.to_owned())));
    }
    failed_with(case, reply, Some((work.evidence)(work.compared(duels))), handle, unanswered)
}

/// Has two answers judged, in an order that chance draws, or in both.
async fn duel(
    case: &Prepared,
    work: &Comparison,
    pair: Pair,
    answers: &BTreeMap<Condition, Reply>,
    handle: &mut Handle,
) -> Result<Duel, Unanswered> {
    let drawn = order(handle.seed(), work, case.request.prompt(), case.repeat, pair);
    let orders = match work.swap {
        true => vec![drawn, !drawn],
        false => vec![drawn],
    };
    let mut rounds = Vec::with_capacity(orders.len());
    for more_first in orders {
        let (first, second) = match more_first {
            true => (pair.more, pair.less),
            false => (pair.less, pair.more),
        };
        let text = |condition| answers.get(&condition).map(Reply::answer).unwrap_or_default();
        let (first_text, second_text) = (text(first), text(second));
        let shown = [&*first_text, &*second_text];
        let task = case.request.prompt();
        let question = Question { task, criteria: &work.rubric, answers: &shown };
        let role = format!("judge {pair}, {} first", first.as_str());
        let structured = case.panel.structured;
        let call = JudgeCall { judge: 0, role: &role, repeat: case.repeat, again: 0, structured };
        match ask_judge(&Marked::new(question, handle.seed()), call, handle).await? {
            Ok((judgement, attempts)) => {
                rounds.push(round(work, judgement, more_first, first, attempts));
            }
            Err(why) => return Ok(Duel::new(pair, rounds, Some(why))),
        }
    }
    Ok(Duel::new(pair, rounds, None))
}

/// Whether the answer with more of the skill is shown first: a coin that the same case always
/// throws the same way.
fn order(seed: u64, work: &Comparison, prompt: &str, repeat: u32, pair: Pair) -> bool {
    let digest = InputDigest::of([
        b"order",
        &seed.to_le_bytes()[..],
        work.skill.as_bytes(),
        prompt.as_bytes(),
        &repeat.to_le_bytes(),
        pair.to_string().as_bytes(),
    ]);
    digest.0[0] & 1 == 0
}

fn round(
    work: &Comparison,
    judgement: Judgement,
    more_first: bool,
    shown_first: Condition,
    attempts: u32,
) -> Round {
    let (more, less) = if more_first { (0, 1) } else { (1, 0) };
    let criteria: Vec<CriterionScore> = work
        .rubric
        .iter()
        .zip(judgement.criteria)
        .map(|(criterion, points)| CriterionScore {
            name: criterion.name.clone(),
            weight: criterion.weight,
            more: points.points[more],
            less: points.points[less],
            reason: points.reason,
        })
        .collect();
    let said = judgement.said.map(|winner| match winner {
        None => Win::Tie,
        Some(place) if place == more => Win::Win,
        Some(_) => Win::Loss,
    });
    let result = Round::scores(&criteria).result();
    Round { shown_first, attempts, criteria, said, result }
}

/// What a judge looks at where a case does not say so.
fn usual_rubric() -> Vec<RubricCriterion> {
    let criterion = |name: &str, weight, description: &str| RubricCriterion {
        name: name.to_owned(),
        weight,
        description: description.to_owned(),
    };
    vec![
        criterion(
            "correct",
            0.30,
            "What it states and the code it shows are right, current and would work as they stand.",
        ),
        criterion(
            "complete",
            0.25,
            "It deals with every part of the task, the less obvious ones included.",
        ),
        criterion(
            "practice",
            0.25,
            "It follows the conventions and good practice of the field the task is from.",
        ),
        criterion(
            "clear",
            0.20,
            "It is to the point, well ordered, and can be acted on without further questions.",
        ),
    ]
}

/// A skill as instructions.
fn as_instructions(id: &str, text: &str) -> String {
    format!(
        "The following instructions are about the work at hand. Follow them wherever they \
         apply.\n\n# {id}\n\n{}",
        text.trim()
    )
}

/// Instructions with those of a skill behind them.
fn with_skill(own: Option<&str>, skill: &Arc<str>) -> Arc<str> {
    match own {
        Some(own) => format!("{}\n\n{skill}", own.trim_end()).into(),
        None => skill.clone(),
    }
}
