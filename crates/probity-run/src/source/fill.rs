//! What a case asks: its own prompt, in what a runner or one of its variants puts around it.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use probity_core::{
    case::{AskSpec, TestCase},
    criteria::CriteriaProblem,
    located::Step,
    problem::Problem,
    request::{Message, Request, Role},
};
use probity_load::{
    case::made_messages,
    suite::PromptConfig,
    template::{self, BadMessage, TemplateError},
};
use serde_json::Value;

use super::Cases;
use crate::loading;

/// Values for the variables of templates.
pub(super) type Vars = BTreeMap<String, Value>;

/// Why a case cannot be asked.
pub(crate) enum Unfilled {
    /// One of its own templates is wrong, which the dataset was refused for.
    Case,
    /// A template of the runner is wrong.
    Runner(Box<BadTemplate>),
}

/// A template of a runner that cannot be filled in.
pub(crate) struct BadTemplate {
    pub(super) part: PromptPart,
    why: Why,
    /// The example that it cannot be filled in for, if it is not the case.
    example: Option<String>,
}

pub(super) enum Why {
    Template {
        text: Arc<str>,
        error: TemplateError,
    },
    /// What went wrong with a function.
    Function(String),
    /// What is wrong with what a template made.
    Made(String),
}

/// What makes the prompts of a runner, or of one of its variants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PromptPart {
    System,
    Template,
    Function,
    /// One of the messages.
    Message(usize),
}

impl From<BadTemplate> for Unfilled {
    fn from(bad: BadTemplate) -> Self {
        Self::Runner(Box::new(bad))
    }
}

impl BadTemplate {
    pub(super) fn new(part: PromptPart, why: Why) -> Self {
        Self { part, why, example: None }
    }

    pub(super) fn of_example(self, id: &str) -> Self {
        Self { example: Some(id.to_owned()), ..self }
    }

    /// What is wrong, at its place.
    pub(super) fn problem(&self, prompt: &PromptConfig, case_id: &str) -> Option<Problem> {
        let at = match self.part {
            PromptPart::System => &prompt.system.as_ref()?.at,
            PromptPart::Template => &prompt.template.as_ref()?.at,
            PromptPart::Function => &prompt.function.as_ref()?.at,
            PromptPart::Message(at) => &prompt.messages.get(at)?.1,
        };
        let problem = match &self.why {
            Why::Template { text, error } => at.problem(text, error),
            Why::Function(why) => at.unusable(loading::BAD, why),
            Why::Made(why) => at.unusable("bad-template", why),
        };
        let case_id = self.example.as_deref().unwrap_or(case_id);
        Some(Problem { case_id: Some(case_id.to_owned()), ..problem })
    }
}

impl Cases {
    /// What a case asks, with its templates filled in.
    pub(crate) fn fill_in(&self, case: &TestCase) -> Result<Request, Unfilled> {
        // The braces in the arguments of a program are filled in for each backend.
        if self.kind.spec().is_external {
            let system = case.system.as_deref().map(Arc::from);
            let system = system.or_else(|| self.prompt.system.as_ref().map(|it| it.text.clone()));
            return Ok(Request::new(system, case.prompt.clone()));
        }
        let given = case.vars();
        let mut vars = template::fill_values(&given).map_err(|_| Unfilled::Case)?;
        let config = self.prompt.examples.as_ref();
        let examples = config.map(|it| self.examples.chosen(it, case)).unwrap_or_default();
        let in_template = config.is_some_and(|it| it.in_template);
        if in_template {
            vars.to_mut().insert("examples".to_owned(), Self::listed(&examples));
        }
        let AskSpec { messages, tools, tool_choice, response_format, sampling } = &case.ask;
        let mut said = if !self.prompt.messages.is_empty() {
            self.fill_messages(case, &vars)?
        } else if messages.is_empty() && case.conversation.turns.is_empty() {
            self.fill_prompt(case, &vars)?
        } else {
            self.fill_conversation(case, &vars)?
        };
        if !in_template && !examples.is_empty() {
            self.put_before(&mut said.messages, &examples)?;
        }
        let filled = Request {
            tools: tools.clone().unwrap_or(said.tools),
            tool_choice: tool_choice.clone().or(said.tool_choice),
            response_format: response_format.clone().or(said.response_format),
            sampling: sampling.or(&said.sampling).or(&self.prompt.sampling),
            messages: said.messages,
        };
        Ok(self.kind.complete(case, filled))
    }

    /// The conversation of a case. Instructions go before it if it does not begin with some.
    fn fill_conversation(&self, case: &TestCase, vars: &Vars) -> Result<Request, Unfilled> {
        let first = case.conversation.turns.first().map(|it| Message::user(it.user.clone()));
        let messages: Vec<Message> = case.ask.messages.iter().cloned().chain(first).collect();
        let messages = template::fill_messages(&messages, vars);
        self.instructed(messages.map_err(|_| Unfilled::Case)?, case, vars, "")
    }

    /// The conversation of the variant, around the case's own prompt.
    fn fill_messages(&self, case: &TestCase, vars: &Vars) -> Result<Request, Unfilled> {
        let own = template::filled(&case.prompt, vars).map_err(|_| Unfilled::Case)?;
        let seen = seen_by_runner(case, vars, &own);
        let messages = template::fill_messages(self.prompt.conversation(), &seen);
        let messages = messages.map_err(|BadMessage { message, text, error }| {
            let why = Why::Template { text, error };
            BadTemplate::new(PromptPart::Message(message), why)
        })?;
        self.instructed(messages, case, vars, &own)
    }

    /// A conversation, after instructions if it does not begin with some.
    fn instructed(
        &self,
        mut messages: Vec<Message>,
        case: &TestCase,
        vars: &Vars,
        prompt: &str,
    ) -> Result<Request, Unfilled> {
        if messages.first().is_some_and(|it| it.role != Role::System)
            && let Some(system) = self.fill_system(case, vars, prompt)?
        {
            messages.insert(0, Message::text(Role::System, system));
        }
        Ok(Request::of(messages))
    }

    fn fill_prompt(&self, case: &TestCase, vars: &Vars) -> Result<Request, Unfilled> {
        let own = template::filled(&case.prompt, vars).map_err(|_| Unfilled::Case)?;
        if let Some(function) = &self.prompt.function {
            let made = self.call(&function.text, &seen_by_runner(case, vars, &own));
            let made =
                made.map_err(|why| BadTemplate::new(PromptPart::Function, Why::Function(why)))?;
            let AskSpec { messages, tools, tool_choice, response_format, sampling } = &*made;
            return Ok(Request {
                tools: tools.clone().unwrap_or_default(),
                tool_choice: tool_choice.clone(),
                response_format: response_format.clone(),
                sampling: sampling.clone(),
                ..self.instructed(messages.clone(), case, vars, &own)?
            });
        }
        let prompt = match &self.prompt.template {
            Some(outer) => Some(of_runner(PromptPart::Template, &outer.text, case, vars, &own)?),
            None => None,
        };
        if let Some(text) = prompt.as_ref().filter(|_| self.prompt.makes_messages) {
            let made = made_messages(text)
                .map_err(|why| BadTemplate::new(PromptPart::Template, Why::Made(why)))?;
            return self.instructed(made, case, vars, &own);
        }
        let system = self.fill_system(case, vars, &own)?;
        let prompt = match (prompt, own) {
            (Some(text), _) | (None, Cow::Owned(text)) => text.into(),
            // It may be long, and is there once.
            (None, Cow::Borrowed(_)) => case.prompt.clone(),
        };
        Ok(Request::new(system, prompt))
    }

    /// What a function makes of the variables of a case.
    fn call(&self, named: &str, seen: &Vars) -> Result<Arc<AskSpec>, String> {
        let function = self.functions.get(named).ok_or("it is not there")?;
        function.make(seen, &self.provider)
    }

    /// The instructions of the case, else those of the runner.
    fn fill_system(
        &self,
        case: &TestCase,
        vars: &Vars,
        prompt: &str,
    ) -> Result<Option<Arc<str>>, Unfilled> {
        if let Some(system) = &case.system {
            let filled = template::filled(system, vars).map_err(|_| Unfilled::Case)?;
            return Ok(Some(filled.into()));
        }
        // Instructions with an index in them are filled in with that.
        let has_index = self.kind.spec().choice.is_some();
        match self.prompt.system.as_ref().map(|it| &it.text) {
            Some(system) if !has_index && template::is_template(system) => {
                Ok(Some(of_runner(PromptPart::System, system, case, vars, prompt)?.into()))
            }
            system => Ok(system.cloned()),
        }
    }

    /// What keeps this runner from asking a case, whatever the case is about.
    pub(super) fn check_ask(&self, case: &TestCase) -> Option<CriteriaProblem> {
        let variant = &self.prompt.variant;
        let has_outer = self.prompt.has_outer();
        let spec = self.kind.spec();
        let beyond = [
            ("turns", !case.conversation.turns.is_empty()),
            ("messages", !case.ask.messages.is_empty()),
            ("tool_results", case.conversation.tool_results.is_some()),
            ("user", case.conversation.user.is_some()),
        ];
        let beyond = beyond.into_iter().find(|it| it.1).map(|it| it.0);
        // What comes after the first question goes with any prompt.
        let talk = beyond.filter(|key| !["tool_results", "user"].contains(key));
        let (key, message) = match (variant, talk, beyond) {
            (None, Some(key), _) if has_outer => {
                let message = format!(
                    "the runner has a `prompt`, which a case with `{key}` has no place for"
                );
                (key, message)
            }
            (Some(name), Some(key), _) if has_outer => {
                (key, format!("variant `{name}` has no place for a case with `{key}`"))
            }
            (Some(name), _, _) if case.system.is_some() && self.prompt.begins_with_system() => {
                ("system", format!("variant `{name}` has no place for a case with `system`"))
            }
            (None, _, Some(key)) if spec.keys.contains(&"skills") => {
                (key, format!("a case about skills has a `prompt`, and no `{key}`"))
            }
            (None, _, Some(key)) if spec.is_external => {
                (key, format!("a program is given a `prompt`, and no `{key}`"))
            }
            (_, _, _) if !case.asks() && !has_outer => {
                let message =
                    "the case has no `prompt`, and its runner has no template to ask with";
                ("prompt", message.to_owned())
            }
            (_, _, _) => return None,
        };
        let path = vec![Step::Key(key)];
        Some(CriteriaProblem { path, code: "bad-case", message, help: None })
    }
}

/// A template of the runner, which sees the fields of the case.
pub(super) fn of_runner(
    part: PromptPart,
    text: &Arc<str>,
    case: &TestCase,
    vars: &Vars,
    prompt: &str,
) -> Result<String, BadTemplate> {
    template::render(text, &seen_by_runner(case, vars, prompt))
        .map_err(|error| BadTemplate::new(part, Why::Template { text: text.clone(), error }))
}

/// The variables of a case, and its fields.
pub(super) fn seen_by_runner(case: &TestCase, vars: &Vars, prompt: &str) -> Vars {
    let mut vars = vars.clone();
    case.add_labels(&mut vars);
    if case.asks() {
        vars.insert("prompt".to_owned(), Value::from(prompt));
    }
    vars
}
