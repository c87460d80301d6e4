//! What the cases of a runner have in common.

use std::{collections::BTreeMap, sync::Arc};

use probity_core::{
    case::{AskSpec, TestCase},
    conversation::{ConversationSpec, SimulatedUser},
    criteria::{Assertion, Criteria, CriteriaProblem},
    execution::ExecutionCriteria,
    located::{Node, Step},
    problem::Problem,
};
use serde_json::Value;

use super::{AgentConfig, WrittenAt, check_texts, runner::Surroundings};
use crate::{
    case::{Fields, Findings, ask_of, criteria, execution, prompt_vars},
    template,
};

/// The keys of a runner that are about its cases.
pub(super) const KEYS: &[&str] = &[
    "assert",
    "match",
    "threshold",
    "extract",
    "normalize",
    "ignore",
    "expected_format",
    "json_level",
    "prompt_vars",
    "tools",
    "tool_choice",
    "response_format",
    "shuffle_choices",
    "transform",
    "scorer_errors",
    "execution",
];

/// Those of them that say what a model is asked with beside the prompt. Tools of ours need nothing of the kind.
pub(super) const ASKING_KEYS: &[&str] = &["tool_choice", "response_format"];

/// What every case of a runner has, unless it says otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseDefaults {
    prompt_vars: BTreeMap<String, Value>,
    ask: AskSpec,
    criteria: Criteria,
    execution: Option<Box<ExecutionCriteria>>,
    /// Who the user is, where a model plays it.
    user: Option<SimulatedUser>,
    /// Draws the order of choices.
    shuffle_choices: Option<u64>,
    /// Where the assertions and the transform stand.
    assertions_at: Vec<WrittenAt>,
    transform_at: Option<WrittenAt>,
    execution_at: Option<WrittenAt>,
}

impl CaseDefaults {
    /// Completes a case. Assertions are added to its own; of everything else its own counts.
    pub fn apply(&self, case: &mut TestCase) {
        self.apply_vars(case);
        let AskSpec { tools, tool_choice, response_format, .. } = &self.ask;
        let own = &mut case.ask;
        own.tools = own.tools.take().or_else(|| tools.clone());
        own.tool_choice = own.tool_choice.take().or_else(|| tool_choice.clone());
        own.response_format = own.response_format.take().or_else(|| response_format.clone());
        self.apply_user(&mut case.conversation);
        self.apply_criteria(&mut case.criteria);
        if case.execution.is_none() {
            case.execution.clone_from(&self.execution);
        }
        if let Some(seed) = self.shuffle_choices {
            // A key that is a template is a letter only then.
            template::fill_keys(case);
            case.shuffle_choices(seed);
        }
    }

    /// Completes an example, which is asked and answered, and never judged.
    pub fn apply_to_example(&self, case: &mut TestCase) {
        self.apply_vars(case);
        if let Some(seed) = self.shuffle_choices {
            case.shuffle_choices(seed);
        }
    }

    fn apply_vars(&self, case: &mut TestCase) {
        for (name, value) in &self.prompt_vars {
            if !case.prompt_vars.contains_key(name) {
                case.prompt_vars.insert(name.clone(), value.clone());
            }
        }
    }

    /// Without instructions, of the runner or of the case, nobody plays the user.
    fn apply_user(&self, own: &mut ConversationSpec) {
        let Some(ours) = &self.user else { return };
        match &mut own.user {
            Some(user) => {
                user.stop = user.stop.take().or_else(|| ours.stop.clone());
                user.max_turns = user.max_turns.or(ours.max_turns);
            }
            None if ours.instructions.is_empty() => {}
            None => own.user = Some(ours.clone()),
        }
    }

    fn apply_criteria(&self, own: &mut Criteria) {
        let ours = &self.criteria;
        if own.expected_response.is_some() {
            let is_stated = !own.reading.choices.is_empty() || own.reading.tolerance.is_some();
            if own.matcher.is_none() && !is_stated {
                own.matcher = ours.matcher;
            }
            let (own, ours) = (&mut own.reading, &ours.reading);
            if own.extract.is_empty() {
                own.extract.clone_from(&ours.extract);
            }
            if own.normalize.is_empty() {
                own.normalize.clone_from(&ours.normalize);
            }
            if own.ignore.is_empty() {
                own.ignore.clone_from(&ours.ignore);
            }
        }
        own.assertions.extend_from_slice(&ours.assertions);
        own.threshold = own.threshold.or(ours.threshold);
        own.expected_format = own.expected_format.or(ours.expected_format);
        own.json_level = own.json_level.or(ours.json_level);
        own.scorer_errors = own.scorer_errors.or(ours.scorer_errors);
        if own.transform.is_none() {
            own.transform.clone_from(&ours.transform);
        }
    }

    /// How many of the assertions of a case are not its own.
    pub fn assertions(&self) -> usize {
        self.criteria.assertions.len()
    }

    /// What is wrong with a completed case in the words of the suite, if it is the suite that is wrong.
    pub fn problem(&self, case: &TestCase, problem: &CriteriaProblem) -> Option<Problem> {
        let at = match problem.path.as_slice() {
            [Step::Key("assert"), Step::Index(at), ..] => {
                let own = case.criteria.assertions.len().checked_sub(self.assertions())?;
                self.assertions_at.get(at.checked_sub(own)?)
            }
            [Step::Key("transform"), ..] if case.criteria.transform == self.criteria.transform => {
                self.transform_at.as_ref()
            }
            [Step::Key("execution"), ..] if case.execution == self.execution => {
                self.execution_at.as_ref()
            }
            _ => None,
        };
        let problem = at?.criteria_problem(problem.clone());
        Some(Problem { case_id: Some(case.id.clone()), ..problem })
    }
}

pub(super) fn decode(
    fields: &mut Fields<'_, '_>,
    user: Option<SimulatedUser>,
    agent: Option<&AgentConfig>,
    surroundings: &Surroundings<'_>,
) -> Arc<CaseDefaults> {
    let assertions = fields.get("assert").map(Node::items).unwrap_or_default();
    let criteria = criteria(fields);
    check_assertions(&criteria.assertions, assertions, fields.findings());
    let place = |node: &Node, what: &str| surroundings.place(node, format!("{what} of the runner"));
    Arc::new(CaseDefaults {
        prompt_vars: prompt_vars(fields, surroundings.folder),
        ask: match agent {
            Some(agent) => AskSpec { tools: Some(agent.spec.definitions()), ..AskSpec::default() },
            None => ask_of(fields, surroundings.folder),
        },
        criteria,
        execution: execution(fields, surroundings.folder),
        user,
        shuffle_choices: fields.count("shuffle_choices", 0..=u64::MAX),
        assertions_at: assertions.iter().map(|it| place(it, "an assertion")).collect(),
        transform_at: fields.get("transform").map(|it| place(it, "`transform`")),
        execution_at: fields.get("execution").map(|it| place(it, "`execution`")),
    })
}

/// Templates of assertions have to be such. Code has none.
fn check_assertions(assertions: &[Assertion], nodes: &[Node], findings: &mut Findings) {
    for (assertion, node) in assertions.iter().zip(nodes) {
        let members = node.get("assert").map(Node::items).unwrap_or_default();
        check_assertions(&assertion.members, members, findings);
        if assertion.kind.test.runs_code() {
            continue;
        }
        for text in ["value", "context"].iter().filter_map(|key| node.get(key)) {
            check_texts(&assertion.kind.to_string(), text, findings);
        }
    }
}
