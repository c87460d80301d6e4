//! Examples that cases are asked with. None is ever the case itself.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use probity_core::{
    case::TestCase,
    criteria::CriteriaProblem,
    problem::{Problem, Severity},
    record::InputDigest,
    request::{Message, Role},
};
use probity_load::{
    dataset::{self, Item},
    suite::{ExamplesConfig, RunnerConfig},
    template,
};
use serde_json::Value;

type Vars = BTreeMap<String, Value>;

/// The examples of a runner and of its variants, by their files.
#[derive(Debug, Default)]
pub(crate) struct ExampleSets(BTreeMap<PathBuf, Vec<Example>>);

/// A question with its answer.
#[derive(Debug)]
pub(crate) struct Example {
    pub(crate) case: TestCase,
    /// Its prompt and its variables, with their templates filled in.
    pub(crate) prompt: String,
    pub(crate) vars: Vars,
    pub(crate) answer: String,
    asks: Asks,
    /// What stands for its id when examples are drawn.
    mark: u64,
    /// How each variant asks it, as far as it has been asked.
    asked: Mutex<BTreeMap<Option<String>, Message>>,
}

impl Example {
    /// How a variant asks it, which is the same before each case and so made once.
    pub(crate) fn asked_by<E>(
        &self,
        variant: Option<&String>,
        make: impl FnOnce() -> Result<Message, E>,
    ) -> Result<Message, E> {
        let variant = variant.cloned();
        // Whoever held it had a message or none, and either is sound.
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = asked.get(&variant) {
            return Ok(known.clone());
        }
        let message = make()?;
        asked.insert(variant, message.clone());
        Ok(message)
    }
}

impl ExampleSets {
    /// Reads the examples of a runner. Every problem goes to `report`; with an error there are none.
    pub(crate) fn of(runner: &RunnerConfig, report: &mut dyn FnMut(Problem)) -> Option<Self> {
        let mut sets = BTreeMap::new();
        let mut errors = 0;
        let mut told = |problem: Problem| {
            errors += usize::from(problem.severity == Severity::Error);
            report(problem);
        };
        for prompt in &runner.prompts {
            let Some(config) = &prompt.examples else { continue };
            let all =
                sets.entry(config.file.clone()).or_insert_with(|| read(config, runner, &mut told));
            if let Some(count) = config.count.filter(|it| *it > all.len()) {
                let why = format!("`examples_k` is {count}, and it has {} cases", all.len());
                told(config.at.unusable("bad-examples", &why));
            }
            if let Some(Example { case, .. }) = all.iter().find(|it| !it.case.asks())
                && !prompt.has_outer()
            {
                let why = format!("its case `{}` has no `prompt`, and no template asks", case.id);
                told(config.at.unusable("bad-examples", &why));
            }
        }
        (errors == 0).then_some(Self(sets))
    }

    /// Those that a case is asked with.
    pub(crate) fn chosen(&self, config: &ExamplesConfig, case: &TestCase) -> Vec<&Example> {
        let all = self.0.get(&config.file).map(Vec::as_slice).unwrap_or_default();
        let asks = Asks::of(case);
        let others = |it: &&Example| it.case.id != case.id && !it.asks.is_same(&asks);
        let count = config.count.unwrap_or(usize::MAX);
        let Some(seed) = config.seed else {
            return all.iter().filter(others).take(count).collect();
        };
        // There may be many cases and many examples: one digest for each, and not for each pair.
        let mark = mark([b"case", &seed.to_le_bytes(), case.id.as_bytes()]);
        let place = |it: &&Example| (mixed(mark ^ it.mark), it.mark);
        let mut drawn: Vec<&Example> = all.iter().filter(others).collect();
        if count < drawn.len() {
            drawn.select_nth_unstable_by_key(count, place);
            drawn.truncate(count);
        }
        drawn.sort_by_key(place);
        drawn
    }
}

/// A number that stands for some parts.
fn mark<const N: usize>(parts: [&[u8]; N]) -> u64 {
    let digest = u128::from_le_bytes(InputDigest::of(parts).0);
    // Half of its bits, which always fit.
    u64::try_from(digest & u128::from(u64::MAX)).unwrap_or_default()
}

/// A number whose bits all depend on those of another, as in the generator `SplitMix64`.
const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

fn read(
    config: &ExamplesConfig,
    runner: &RunnerConfig,
    told: &mut dyn FnMut(Problem),
) -> Vec<Example> {
    let mut all = Vec::new();
    let check = |case: &TestCase| wrong(case).into_iter().collect();
    let complete = |case: &mut TestCase| runner.defaults.apply_to_example(case);
    dataset::read_completed(&[&config.file], &complete, &check, &mut |item| match item {
        Item::Problem(problem) => told(problem),
        Item::Case(at) => {
            // One that cannot be filled in, or has no answer, was told of.
            if let Some((answer, (prompt, vars))) = answer(&at.case).zip(filled(&at.case)) {
                let asks = Asks::of(&at.case);
                let mark = mark([b"example", at.case.id.as_bytes()]);
                let asked = Mutex::default();
                all.push(Example { case: at.case, prompt, vars, answer, asks, mark, asked });
            }
        }
    });
    all
}

/// The prompt and the variables of a case, with their templates filled in.
fn filled(case: &TestCase) -> Option<(String, Vars)> {
    let given = case.vars();
    let vars = template::fill_values(&given).ok()?;
    let prompt = template::render(&case.prompt, &vars).ok()?;
    Some((prompt, vars.into_owned()))
}

/// Why a case cannot be an example.
fn wrong(case: &TestCase) -> Option<CriteriaProblem> {
    let message = if !case.ask.messages.is_empty() || !case.conversation.turns.is_empty() {
        "an example has a `prompt`, and no conversation"
    } else if answer(case).is_none() {
        "an example needs its answer: `expected_response` or `expected_command`"
    } else {
        return None;
    };
    let message = message.to_owned();
    Some(CriteriaProblem { path: Vec::new(), code: "bad-example", message, help: None })
}

/// The answer to a case, the first of several.
fn answer(case: &TestCase) -> Option<String> {
    let command = case.accepted_commands().next().map(ToOwned::to_owned);
    command.or_else(|| match case.criteria.expected_response.as_ref()? {
        Value::String(text) => Some(text.clone()),
        Value::Array(any) if any.iter().all(Value::is_string) => {
            any.first().and_then(Value::as_str).map(ToOwned::to_owned)
        }
        value @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_)) => Some(value.to_string()),
    })
}

/// What a case asks, whatever its id is and in whatever order its choices stand.
#[derive(Debug)]
struct Asks {
    prompt: String,
    vars: Vars,
}

impl Asks {
    fn of(case: &TestCase) -> Self {
        let mut vars = case.vars().into_owned();
        if let Some(Value::Array(choices)) =
            vars.get_mut("choices").filter(|_| !case.criteria.reading.choices.is_empty())
        {
            choices.sort_by_cached_key(ToString::to_string);
        }
        let text = said_by_user(case);
        let filled = template::fill_values(&vars).ok();
        let prompt = filled.and_then(|vars| template::render(&text, &vars).ok());
        // One that cannot be filled in is refused elsewhere.
        Self { prompt: prompt.unwrap_or(text), vars }
    }

    /// The same words, and the same values of all variables that both have.
    fn is_same(&self, other: &Self) -> bool {
        let differs =
            |(name, value): (&String, &Value)| other.vars.get(name).is_some_and(|it| it != value);
        self.prompt.trim() == other.prompt.trim() && !self.vars.iter().any(differs)
    }
}

/// The prompt; of a conversation, what the user says last.
fn said_by_user(case: &TestCase) -> String {
    let turn = case.conversation.turns.first().map(|it| Message::user(it.user.clone()).joined());
    let last = || case.ask.messages.iter().rfind(|it| it.role == Role::User).map(Message::joined);
    turn.or_else(last).unwrap_or_else(|| case.prompt.as_ref().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn case(id: &str, prompt: &str, vars: &Value) -> TestCase {
        let prompt_vars = vars.as_object().unwrap().clone().into_iter().collect();
        TestCase { id: id.to_owned(), prompt: prompt.into(), prompt_vars, ..TestCase::default() }
    }

    #[test]
    fn an_example_is_made_once_for_each_variant() {
        let case = case("a", "2 + 3?", &json!({}));
        let asks = Asks::of(&case);
        let (vars, answer) = (Vars::new(), "5".to_owned());
        let prompt = case.prompt.as_ref().to_owned();
        let example =
            Example { case, prompt, vars, answer, asks, mark: 0, asked: Mutex::default() };
        let mut made = 0;
        let mut ask = |variant: Option<&String>, fails: bool| {
            example.asked_by(variant, || {
                made += 1;
                if fails { Err(()) } else { Ok(Message::text(Role::User, made.to_string())) }
            })
        };
        let terse = "terse".to_owned();
        assert!(ask(None, true).is_err());
        let said: Vec<String> = [None, Some(&terse), None, Some(&terse)]
            .map(|variant| ask(variant, false).unwrap().joined())
            .to_vec();
        assert_eq!(said, ["2", "3", "2", "3"]);
    }

    #[test]
    fn cases_that_ask_the_same_are_the_same() {
        let same = |a: &TestCase, b: &TestCase| Asks::of(a).is_same(&Asks::of(b));
        let filled = case("a", "2 + {{ n }}?", &json!({ "n": 3 }));
        assert!(same(&filled, &case("b", "2 + 3? ", &json!({}))));
        assert!(!same(&filled, &case("b", "2 + {{ n }}?", &json!({ "n": 4 }))));
        // What is asked may be in the variables alone.
        let (one, two) = (json!({ "q": "one" }), json!({ "q": "two", "why": "so" }));
        assert!(!same(&case("a", "", &one), &case("b", "", &two)));
        assert!(same(&case("a", "", &json!({ "q": "two" })), &case("b", "", &two)));
        let choosing = |choices: [&str; 2]| {
            let mut case = case("a", "Which? {{ choices | join(' ') }}", &json!({}));
            case.criteria.reading.choices = choices.map(ToOwned::to_owned).to_vec();
            case
        };
        assert!(same(&choosing(["x", "y"]), &choosing(["y", "x"])));
        assert!(!same(&choosing(["x", "y"]), &choosing(["x", "z"])));
    }
}
