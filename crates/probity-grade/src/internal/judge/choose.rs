//! A judge is asked which of several answers is the best.

use serde_json::{Value, json};

use super::{
    Dialogue, Interview,
    form::{self, WORDS},
    marked, marker,
    read::{object, only, text},
    talk::complaint,
};
use probity_core::request::Request;

/// An answer and what it answers.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// What was asked for.
    pub task: &'a str,
    /// The answer.
    pub answer: &'a str,
}

/// Which of several answers is the best.
#[derive(Clone, Debug)]
pub struct Choosing<'a> {
    criteria: &'a str,
    /// In the order in which they are shown.
    answers: Vec<Answered<'a>>,
    marker: String,
}

/// What a judge chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The place of the best answer among those that were shown.
    pub place: usize,
    /// Why, in the judge's words.
    pub reason: String,
}

impl<'a> Choosing<'a> {
    /// The marks around the answers depend on the seed.
    pub fn new(criteria: &'a str, answers: Vec<Answered<'a>>, seed: u64) -> Self {
        let texts: Vec<&str> = answers.iter().flat_map(|it| [it.task, it.answer]).collect();
        Self { criteria, marker: marker(seed, &texts), answers }
    }

    /// The answers. A task that is the same for all of them is shown once.
    fn shown(&self) -> String {
        let of_all = self.answers.first().map(|it| it.task);
        let of_all = of_all.filter(|task| self.answers.iter().all(|it| it.task == *task));
        let mut parts: Vec<String> = Vec::new();
        parts.extend(of_all.map(|task| marked("TASK", &self.marker, task)));
        for (number, it) in (1..).zip(&self.answers) {
            if of_all.is_none() {
                parts.push(marked(&format!("TASK {number}"), &self.marker, it.task));
            }
            parts.push(marked(&format!("ANSWER {number}"), &self.marker, it.answer));
        }
        parts.join("\n\n")
    }
}

impl Interview for Choosing<'_> {
    type Answer = Choice;

    fn request(&self, dialogue: &Dialogue) -> Request {
        let question = &WORDS.select_best;
        let (shown, ask, form) = (self.shown(), question.ask.trim(), &question.form);
        let criteria = self.criteria.trim();
        let mut prompt = format!("{shown}\n\n{ask}\n{criteria}\n\nAnswer in this form:\n{form}");
        prompt.push_str(&complaint(dialogue));
        Request::new(Some(WORDS.system.as_str().into()), prompt)
    }

    fn schema(&self) -> Value {
        let best = json!({ "type": "integer", "minimum": 1, "maximum": self.answers.len() });
        form::table(vec![("reason", form::text()), ("best", best)])
    }

    fn read(&self, reply: &str) -> Result<Choice, String> {
        let fields = object(reply)?;
        only(&fields, &["reason", "best"])?;
        let most = self.answers.len();
        let number = fields.get("best").and_then(Value::as_u64);
        let place = number.and_then(|it| usize::try_from(it).ok()?.checked_sub(1));
        let place = place.filter(|it| *it < most);
        let place = place.ok_or_else(|| format!("`best` is not a number from 1 to {most}"))?;
        Ok(Choice { place, reason: text(&fields, "reason")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choosing<'a>(tasks: [&'a str; 2]) -> Choosing<'a> {
        let answer = |(task, answer): (&'a str, &'a str)| Answered { task, answer };
        let answers = tasks.into_iter().zip(["first", "second"]).map(answer).collect();
        Choosing::new("The shorter one.", answers, 7)
    }

    #[test]
    fn a_task_of_all_answers_is_shown_once() {
        let prompt = |it: &Choosing<'_>| it.request(&Dialogue::default()).prompt().to_owned();
        let same = prompt(&choosing(["do it", "do it"]));
        assert_eq!(same.matches("do it").count(), 1);
        assert!(same.contains("<<<ANSWER 2 ") && same.contains("\nThe shorter one.\n"), "{same}");
        let other = prompt(&choosing(["do it", "do that"]));
        assert!(other.contains("<<<TASK 1 ") && other.contains("<<<TASK 2 "), "{other}");
    }

    #[test]
    fn only_an_answer_that_was_shown_can_be_the_best() {
        let it = choosing(["do it", "do it"]);
        let read = it.read("{\"reason\": \"short\", \"best\": 2}");
        assert_eq!(read, Ok(Choice { place: 1, reason: "short".to_owned() }));
        for wrong in ["{\"reason\": \"r\", \"best\": 0}", "{\"reason\": \"r\", \"best\": 3}"] {
            assert_eq!(it.read(wrong).unwrap_err(), "`best` is not a number from 1 to 2");
        }
        assert_eq!(it.read("{\"best\": 1}").unwrap_err(), "`reason` is not a text");
    }
}
