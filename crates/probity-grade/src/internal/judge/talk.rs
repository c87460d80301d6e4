//! A judge is asked about one reply, by one assertion.

use std::fmt::Write as _;

use probity_core::{
    opinion::Judged,
    request::{Message, Part as Said, Request, Role},
};
use serde_json::Value;

use super::{
    Dialogue, Interview, Question,
    form::{self, Part, WORDS},
    inquiry::{Form, Inquiry, Shown},
    is_marker, judged, marked, marker, read,
};

/// How a complaint about the last answer begins.
pub(super) const COMPLAINT: &str = "\n\nYour last answer could not be used: ";

/// A user's words for a question, where there are some.
pub type Words<'w> =
    &'w dyn Fn(&Inquiry, &Shown, &Talk<'_>) -> Option<Result<Vec<Message>, String>>;

/// An inquiry about one reply.
#[derive(Debug)]
pub struct Talk<'a> {
    inquiry: &'a Inquiry,
    shown: &'a Shown,
    marker: String,
    /// A user's own prompt, filled in.
    own: Option<Vec<Message>>,
}

impl<'a> Talk<'a> {
    /// The marks around its data depend on the seed.
    pub fn new(inquiry: &'a Inquiry, shown: &'a Shown, seed: u64) -> Self {
        let Shown { question, answer, passages } = shown;
        let mut texts: Vec<&str> = vec![question, answer];
        texts.extend(passages.iter().map(String::as_str));
        Self { inquiry, shown, marker: marker(seed, &texts), own: None }
    }

    /// The same, in the words of a user.
    #[must_use]
    pub fn in_words(self, messages: Vec<Message>) -> Self {
        Self { own: Some(messages), ..self }
    }

    /// Data between marked lines.
    pub fn marked(&self, name: &str, content: &str) -> String {
        marked(name, &self.marker, content)
    }

    /// The talk that a stored request was part of; none if another question would be asked now.
    pub(crate) fn again(
        inquiry: &'a Inquiry,
        shown: &'a Shown,
        request: &Request,
        words: Option<Words<'_>>,
    ) -> Option<Self> {
        let talk =
            Self { inquiry, shown, marker: marker_in(request).unwrap_or_default(), own: None };
        let talk = match words.and_then(|words| words(inquiry, shown, &talk)) {
            Some(own) => talk.in_words(own.ok()?),
            None => talk,
        };
        match talk.asks(request) {
            true => Some(talk),
            // Where a user's words are not known, what they are about has to do.
            false => (words.is_none() && talk.may_ask(request)).then(|| talk.in_words(Vec::new())),
        }
    }

    /// Whether a request is this one, with or without a complaint about an earlier answer.
    fn asks(&self, request: &Request) -> bool {
        let now = self.request(&Dialogue::default());
        let is_same = |(now, then): (&Message, &Message)| {
            let (now, text) = (now.joined(), then.joined());
            text.strip_prefix(&now).is_some_and(|it| it.is_empty() || it.starts_with(COMPLAINT))
        };
        let (now, then) = (&now.messages, &request.messages);
        now.len() == then.len() && now.iter().zip(then).all(is_same)
    }

    /// Whether a request in a user's words may be about the same.
    fn may_ask(&self, request: &Request) -> bool {
        let text: String = request.messages.iter().map(Message::joined).collect();
        let parts = [WORDS.own.form.as_str(), &self.inquiry.rubric(), &self.shown.answer];
        self.inquiry.takes_prompt() && parts.iter().all(|it| text.contains(it))
    }

    /// What is judged by a rubric.
    fn question<T>(&self, ask: impl FnOnce(&Question<'_>) -> T) -> Option<T> {
        let Form::Rubric(criteria) = &self.inquiry.form else { return None };
        let answers = [self.shown.answer.as_str()];
        Some(ask(&Question { task: &self.shown.question, criteria, answers: &answers }))
    }

    /// The prompt of one of our questions.
    fn prompt(&self, question: &form::Question) -> String {
        let mut text = String::new();
        let Shown { question: asked, answer, passages } = self.shown;
        for part in &question.shows {
            let data = match part {
                Part::Question => self.marked("QUESTION", asked),
                Part::Answer => self.marked("ANSWER", answer),
                Part::Context => self.marked("CONTEXT", &passages.join("\n\n")),
                Part::Reference => match self.reference() {
                    Some(reference) => self.marked("REFERENCE", reference),
                    None => continue,
                },
                Part::Passages => {
                    let marked = |(at, text): (usize, &String)| {
                        self.marked(&format!("PASSAGE {}", at + 1), text)
                    };
                    let all: Vec<String> = passages.iter().enumerate().map(marked).collect();
                    all.join("\n")
                }
            };
            text.push_str(&data);
            text.push_str("\n\n");
        }
        text.push_str(question.ask.trim());
        text.push('\n');
        self.push_criteria(&mut text, question);
        let _ = write!(text, "\nAnswer in this form:\n{}", question.form);
        text
    }

    /// What the author of the case asks for.
    fn push_criteria(&self, text: &mut String, question: &form::Question) {
        match &self.inquiry.form {
            Form::ClosedQa { criterion } => {
                let _ = writeln!(text, "{criterion}");
            }
            Form::GEval { criteria, steps } => {
                text.push_str("\nSteps:\n");
                match steps.is_empty() {
                    true => text.push_str(question.steps.trim()),
                    false => numbered(text, steps),
                }
                text.push_str("\nCriteria:\n");
                numbered(text, criteria);
            }
            Form::Rubric(_)
            | Form::Factuality { .. }
            | Form::ContextRecall { .. }
            | Form::ContextPrecision { .. }
            | Form::ContextRelevance
            | Form::ContextFaithfulness
            | Form::AnswerRelevance => {}
        }
    }

    fn reference(&self) -> Option<&str> {
        match &self.inquiry.form {
            Form::Factuality { reference, .. } | Form::ContextRecall { reference } => {
                Some(reference)
            }
            Form::ContextPrecision { reference } => reference.as_deref(),
            Form::Rubric(_)
            | Form::ClosedQa { .. }
            | Form::GEval { .. }
            | Form::ContextRelevance
            | Form::ContextFaithfulness
            | Form::AnswerRelevance => None,
        }
    }
}

impl Interview for Talk<'_> {
    type Answer = Judged;

    fn request(&self, dialogue: &Dialogue) -> Request {
        if let Some(messages) = &self.own {
            return in_own_words(messages, dialogue);
        }
        if let Some(question) = WORDS.of(&self.inquiry.form) {
            let prompt = self.prompt(question) + &complaint(dialogue);
            return Request::new(Some(WORDS.system.as_str().into()), prompt);
        }
        let asked = |it: &Question<'_>| (it.system(), it.prompt(&self.marker, dialogue));
        let (system, prompt) = self.question(asked).unwrap_or_default();
        Request::new(Some(system.into()), prompt)
    }

    fn schema(&self) -> Value {
        if self.own.is_some() {
            return form::own_schema();
        }
        let of_rubric = || self.question(|it| Some(it.schema())).flatten().unwrap_or_default();
        form::schema(&self.inquiry.form).unwrap_or_else(of_rubric)
    }

    fn read(&self, reply: &str) -> Result<Judged, String> {
        if self.own.is_some() {
            return read::own(reply);
        }
        let passages = &self.shown.passages;
        match &self.inquiry.form {
            Form::Rubric(criteria) => {
                let read = self.question(|it| it.read(reply));
                let judgement = read.ok_or("there is no rubric")??;
                Ok(judged(criteria, judgement))
            }
            Form::Factuality { scores, .. } => read::factuality(reply, scores),
            Form::ClosedQa { .. } => read::closed_qa(reply),
            Form::GEval { criteria, .. } => read::g_eval(reply, criteria.len()),
            Form::ContextRecall { .. } | Form::ContextFaithfulness | Form::AnswerRelevance => {
                read::statements(reply)
            }
            Form::ContextRelevance => read::passages(reply, passages).map(read::relevance),
            Form::ContextPrecision { .. } => read::passages(reply, passages).map(read::precision),
        }
    }
}

/// A user's prompt, and after it the form of the answer, which is ours.
fn in_own_words(messages: &[Message], dialogue: &Dialogue) -> Request {
    let own = &WORDS.own;
    let form = format!("\n\n{}\nAnswer in this form:\n{}", own.ask.trim(), own.form);
    let added = form + &complaint(dialogue);
    let mut messages = messages.to_vec();
    match messages.last_mut() {
        Some(last) if last.role == Role::User => {
            let text = last.joined() + &added;
            last.content = vec![Said::Text(text.into())];
        }
        Some(_) | None => messages.push(Message::text(Role::User, added.trim_start())),
    }
    Request::of(messages)
}

/// What was wrong with the last answer.
pub(super) fn complaint(dialogue: &Dialogue) -> String {
    match &dialogue.failure {
        Some(failure) => {
            let stricter = WORDS.stricter.trim();
            format!("{COMPLAINT}{failure}. {stricter}")
        }
        None => String::new(),
    }
}

/// What the marks around the data of a request have in common.
fn marker_in(request: &Request) -> Option<String> {
    let in_text = |text: &str| {
        let mut marks = text.split("<<<").skip(1).filter_map(|it| Some(it.split_once(">>>")?.0));
        let marker =
            marks.find_map(|it| Some(it.rsplit_once(' ')?.1).filter(|it| is_marker(it)))?;
        Some(marker.to_owned())
    };
    request.messages.iter().find_map(|it| in_text(&it.joined()))
}

fn numbered(text: &mut String, items: &[String]) {
    for (at, item) in items.iter().enumerate() {
        let _ = writeln!(text, "{}. {item}", at + 1);
    }
}
