//! Judges are asked about a reply, by one assertion.

use std::collections::BTreeMap;

use probity_core::{
    case::TestCase,
    criteria::{Assertion, AssertionTest, CriteriaProblem, RubricPrompt},
    located::Step,
    opinion::{Assessment, Judged, Opinion, Said},
    problem::Problem,
    record::CallError,
    request::{Message, Role},
};
use probity_grade::internal::{
    again::rubric_role,
    judge::{Inquiry, Shown, Talk},
};
use probity_load::{
    suite::PanelConfig,
    template::{self, TemplateError},
};
use serde_json::Value;

use crate::{
    engine::{Handle, JudgeCall, Target, Unanswered, ask_judge},
    grade::{self, Received},
    source::Prepared,
};

/// Asks every judge, as often as the suite wants. An error means that too few of them could be asked.
pub(super) async fn assess(
    case: &Prepared,
    at: usize,
    received: Received<'_>,
    handle: &mut Handle,
) -> Result<Assessment, Unanswered> {
    let inquiry = &case.expectation.inquiries()[at];
    let combine = case.panel.combine;
    let shown = grade::shown(case, handle, received, inquiry);
    let panel = handle.judges.len().max(1);
    let mut opinions = Vec::new();
    let mut first_failure: Option<(CallError, usize)> = None;
    let mut unheard = 0;
    for judge in 0..panel {
        let name = handle.party(Target::Judge(judge)).backend.name.clone();
        let mut answers = 0;
        for again in 0..case.panel.repeats {
            let role = rubric_role(at, again);
            let (repeat, structured) = (case.repeat, case.panel.structured);
            let call = JudgeCall { judge, role: &role, repeat, again, structured };
            let answer = match &shown {
                Ok(shown) => ask(case, inquiry, shown, call, handle).await,
                Err(why) => Ok(Err(why.clone())),
            };
            let (said, goes_on) = match answer {
                Ok(Ok(judged)) => (Said::Judged(judged), true),
                Ok(Err(error)) => (Said::Failed { error }, true),
                Err(Unanswered::Failed { error, backend }) => {
                    let said = Said::Failed { error: error.to_string() };
                    first_failure.get_or_insert((error, backend));
                    (said, false)
                }
                Err(aborted @ Unanswered::Aborted(_)) => return Err(aborted),
            };
            answers += usize::from(matches!(said, Said::Judged(_)));
            opinions.push(Opinion { judge: name.clone(), said });
            if !goes_on {
                break;
            }
        }
        let asked = opinions.iter().filter(|it| it.judge == name).count();
        unheard += usize::from(answers * 2 <= asked);
        if !combine.has_quorum(panel - unheard, panel) {
            return match first_failure {
                Some((error, backend)) => Err(Unanswered::Failed { error, backend }),
                None => Ok(Assessment { opinions, combine }),
            };
        }
    }
    Ok(Assessment { opinions, combine })
}

/// Asks one judge once.
async fn ask(
    case: &Prepared,
    inquiry: &Inquiry,
    shown: &Shown,
    call: JudgeCall<'_>,
    handle: &mut Handle,
) -> Result<Result<Judged, String>, Unanswered> {
    let mut talk = Talk::new(inquiry, shown, handle.seed());
    match in_words(&case.case, &case.panel, inquiry, shown, &talk) {
        Some(Ok(messages)) => talk = talk.in_words(messages),
        Some(Err(why)) => return Ok(Err(why)),
        None => {}
    }
    let answered = ask_judge(&talk, call, handle).await?;
    Ok(answered.map(|(judged, _)| judged))
}

/// The names that a user's prompt knows beside the variables of the case.
const PROMPT_NAMES: [&str; 3] = ["output", "rubric", "prompt"];

/// What such a prompt is told that it sees, where it names something else.
const SEEN: &str = "it sees `output`, `rubric`, `prompt` and the case's `prompt_vars`";

/// What is wrong with the prompts that assertions of a case ask judges with.
pub(crate) fn check_prompts(case: &TestCase) -> Vec<CriteriaProblem> {
    let mut problems = Vec::new();
    for (path, all) in case.asserted() {
        check_within(all, &path, case, &mut problems);
    }
    problems
}

fn check_within(
    assertions: &[Assertion],
    path: &[Step<'static>],
    case: &TestCase,
    problems: &mut Vec<CriteriaProblem>,
) {
    for (at, assertion) in assertions.iter().enumerate() {
        let mut path = path.to_vec();
        path.extend([Step::Key("assert"), Step::Index(at)]);
        check_within(&assertion.members, &path, case, problems);
        let prompt = assertion.judging.rubric_prompt.as_ref();
        if let Some((_, name)) = prompt.and_then(|it| unknown_in(it, case)) {
            path.push(Step::Key("rubric_prompt"));
            problems.push(CriteriaProblem {
                path,
                code: "undefined-variable",
                message: format!("`{name}` in `rubric_prompt` has no value"),
                help: Some(SEEN.to_owned()),
            });
        }
    }
}

/// What a judge is asked in the words of a user, where the assertion or the panel has some.
pub(crate) fn in_words(
    case: &TestCase,
    panel: &PanelConfig,
    inquiry: &Inquiry,
    shown: &Shown,
    talk: &Talk<'_>,
) -> Option<Result<Vec<Message>, String>> {
    let of_panel = panel.rubric_prompt.as_ref().filter(|_| inquiry.takes_prompt());
    let prompt = inquiry.rubric_prompt().or(of_panel)?;
    Some(filled(prompt, case, inquiry, shown, talk))
}

/// What is wrong with the prompt of the panel, if a case asks judges with it.
pub(crate) fn check_panel_prompt(case: &TestCase, panel: &PanelConfig) -> Option<Problem> {
    fn takes_it(assertions: &[Assertion]) -> bool {
        assertions.iter().any(|it| {
            let is_rubric = it.kind.test == AssertionTest::LlmRubric;
            (is_rubric && it.judging.rubric_prompt.is_none()) || takes_it(&it.members)
        })
    }
    let (prompt, at) = panel.rubric_prompt.as_ref().zip(panel.rubric_prompt_at.as_ref())?;
    if !case.asserted().any(|(_, all)| takes_it(all)) {
        return None;
    }
    let (text, name) = unknown_in(prompt, case)?;
    let problem = at.problem(text, &TemplateError::undefined(text, &name));
    Some(Problem { case_id: Some(case.id.clone()), help: Some(SEEN.to_owned()), ..problem })
}

/// The first name in a prompt that has no value, and the text with it.
fn unknown_in<'p>(prompt: &'p RubricPrompt, case: &TestCase) -> Option<(&'p str, String)> {
    let vars = case.vars();
    let is_known = |name: &str| PROMPT_NAMES.contains(&name) || vars.contains_key(name);
    prompt.texts().find_map(|text| {
        let unknown = template::undefined_variables(text, is_known).unwrap_or_default();
        Some((text, unknown.into_iter().next()?))
    })
}

/// A user's prompt with its variables filled in. What models wrote stands between marks.
fn filled(
    prompt: &RubricPrompt,
    case: &TestCase,
    inquiry: &Inquiry,
    shown: &Shown,
    talk: &Talk<'_>,
) -> Result<Vec<Message>, String> {
    let given = case.vars();
    let filled = template::fill_values(&given).map_err(|(_, error)| error.to_string())?;
    let mut vars: BTreeMap<String, Value> = filled.into_owned();
    let own = [
        talk.marked("ANSWER", &shown.answer),
        inquiry.rubric(),
        talk.marked("TASK", &shown.question),
    ];
    vars.extend(PROMPT_NAMES.iter().map(|it| (*it).to_owned()).zip(own.map(Value::from)));
    let render = |role: Role, text: &str| {
        let text = template::render(text, &vars)
            .map_err(|error| format!("`rubric_prompt` cannot be filled in: {error}"))?;
        Ok(Message::text(role, text))
    };
    match prompt {
        RubricPrompt::Text(text) => Ok(vec![render(Role::User, text)?]),
        RubricPrompt::Messages(messages) => {
            messages.iter().map(|it| render(it.role, &it.content)).collect()
        }
    }
}
