//! How a task scores answers: filters take the answer out of a reply, metrics compare it.

use std::collections::BTreeSet;

use probity_core::{
    case::TestCase,
    criteria::{Assertion, AssertionKind, AssertionTest, Criteria, Matcher},
    located::Node,
    reading::{Extract, ExtractRegex, Reading, Take, Uncounted},
};
use probity_grade::{Compiler, Rules};
use serde_json::Value;

use super::{
    config::{count_of, function, one_or_many, text_of},
    task::Kind,
};
use crate::{
    note::{At, Notes},
    source::Source,
};

/// What assertions call the answer.
pub(super) const TARGET: &str = "target";

/// How answers of a task are scored.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoring {
    /// What decides; none if nothing does.
    pub(super) decides: Option<Comparison>,
    /// What is only reported, with the answer in the variable [`TARGET`].
    pub(super) reported: Vec<Assertion>,
    /// How often each question is asked, and how often the answer has to be right.
    pub(super) repeat: Option<(u32, u32)>,
}

/// How an answer is compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison {
    pub(super) matcher: Matcher,
    pub(super) reading: Reading,
}

/// What filters do to a reply.
#[derive(Clone, Debug, Default)]
struct Pipeline {
    name: String,
    extract: Vec<Extract>,
    does: BTreeSet<Does>,
    /// Where the answers vote, if they do.
    vote: Option<At>,
    /// How many of the answers are taken, if not one or all.
    takes: Option<(usize, At)>,
}

/// What a filter does beside taking something out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Does {
    Trim,
    IgnoreCase,
    /// Read one of the choices.
    Choose,
}

struct Reader<'a> {
    task: &'a Node,
    source: &'a Source,
    notes: &'a mut Notes,
}

const BY_HAND: &str = "score it with an assertion of your own, see docs/scorers.md";

/// Reads how a task scores its answers.
pub(super) fn read(task: &Node, kind: Kind, source: &Source, notes: &mut Notes) -> Scoring {
    let mut reader = Reader { task, source, notes };
    if let Some(node) = task.get("process_results")
        && let Some(name) = function(node)
    {
        let what =
            format!("`process_results` is the Python function `{name}`, which scores answers");
        reader.notes.lost(source.at(&node.span), what, BY_HAND);
        return Scoring::default();
    }
    match kind {
        Kind::Choose => reader.choosing(),
        Kind::Generate => reader.generating(),
    }
}

impl Reader<'_> {
    fn at(&self, node: &Node) -> At {
        self.source.at(&node.span)
    }

    fn lost(&mut self, node: &Node, what: impl Into<String>) {
        let at = self.at(node);
        self.notes.lost(at, what, BY_HAND);
    }

    fn metrics(&self) -> &[Node] {
        self.task.get("metric_list").map(one_or_many).unwrap_or_default()
    }

    fn choosing(&mut self) -> Scoring {
        const ACCURACIES: &[&str] =
            &["acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match"];
        let at = self.at(self.task);
        let what = "choices are told apart by what the model writes, not by log probabilities: the \
                    numbers are others than lm-eval's";
        self.notes.assumed(at, what, "");
        for metric in self.metrics().to_vec() {
            match metric_name(&metric) {
                Some(name) if ACCURACIES.contains(&name) => {}
                Some(name) => {
                    self.lost(&metric, format!("metric `{name}` of choices is not reckoned"));
                }
                None => self.custom_metric(&metric),
            }
        }
        let decides = Comparison { matcher: Matcher::Choice, reading: Reading::default() };
        Scoring { decides: Some(decides), ..Scoring::default() }
    }

    fn custom_metric(&mut self, metric: &Node) {
        let named = metric.get("metric").and_then(function).unwrap_or("");
        self.lost(metric, format!("metric `{named}` is a function of Python"));
    }

    fn generating(&mut self) -> Scoring {
        let pipelines = self.pipelines();
        let mut scoring = Scoring::default();
        let metrics = self.metrics().to_vec();
        let alone = pipelines.len() == 1;
        for pipeline in &pipelines {
            let named = |metric: &str| match alone {
                true => metric.to_owned(),
                false => format!("{metric},{}", pipeline.name),
            };
            if metrics.is_empty() {
                add_comparison(&mut scoring, comparison(pipeline, None), named("exact_match"));
            }
            for metric in &metrics {
                self.metric(metric, pipeline, &named, &mut scoring);
            }
        }
        scoring.repeat = self.repeat(pipelines.first().is_some_and(|it| it.vote.is_some()));
        if pipelines.len() > 1 && scoring.decides.is_some() {
            let what = format!(
                "there are several filters: the first one, `{}`, decides whether a case passes, the \
                 others are only reported",
                pipelines[0].name
            );
            let at = self.task.get("filter_list").map_or(self.at(self.task), |it| self.at(it));
            self.notes.assumed(at, what, "");
        }
        scoring
    }

    fn metric(
        &mut self,
        metric: &Node,
        pipeline: &Pipeline,
        named: &impl Fn(&str) -> String,
        scoring: &mut Scoring,
    ) {
        let Some(name) = metric_name(metric) else { return self.custom_metric(metric) };
        match name {
            "bypass" => {}
            "exact_match" | "acc" => {
                if name == "acc" {
                    let what = "metric `acc` of written answers is taken as `exact_match`";
                    let at = self.at(metric);
                    self.notes.assumed(at, what, "");
                }
                let comparison = comparison(pipeline, Some(metric));
                if self.compiles(metric, &comparison) {
                    add_comparison(scoring, comparison, named(name));
                }
            }
            "bleu" => self.similarity(metric, AssertionTest::Bleu, pipeline, named(name), scoring),
            "chrf" => self.similarity(metric, AssertionTest::Chrf, pipeline, named(name), scoring),
            "rouge1" => {
                self.similarity(metric, AssertionTest::Rouge1, pipeline, named(name), scoring);
            }
            "rouge2" => {
                self.similarity(metric, AssertionTest::Rouge2, pipeline, named(name), scoring);
            }
            "rougeL" | "rouge" => {
                self.similarity(metric, AssertionTest::RougeL, pipeline, named(name), scoring);
            }
            other => self.lost(metric, format!("metric `{other}` is not reckoned")),
        }
    }

    /// A score of each answer, of which the mean is the result.
    fn similarity(
        &mut self,
        metric: &Node,
        test: AssertionTest,
        pipeline: &Pipeline,
        name: String,
        scoring: &mut Scoring,
    ) {
        let what = format!(
            "`{test}` is the mean over all answers, where lm-eval takes all of them together; no \
             answer fails by it"
        );
        let at = self.at(metric);
        self.notes.assumed(at, what, "");
        let reading = Reading { extract: pipeline.extract.clone(), ..Reading::default() };
        scoring.reported.push(Assertion {
            value: Some(Value::from(format!("{{{{ {TARGET} }}}}"))),
            threshold: Some(0.0),
            metric: Some(name),
            reading,
            ..Assertion::new(AssertionKind { negated: false, test })
        });
    }

    /// Whether our own loader takes a comparison; what it does not take is noted.
    fn compiles(&mut self, metric: &Node, comparison: &Comparison) -> bool {
        let rules = Rules::default();
        let case = TestCase {
            id: "case".to_owned(),
            prompt: "?".into(),
            criteria: Criteria {
                expected_response: Some(Value::from("answer")),
                matcher: Some(Matcher::Exact),
                reading: comparison.reading.clone(),
                ..Criteria::default()
            },
            ..TestCase::default()
        };
        let problems = Compiler::new(&rules).compile(&case).err().unwrap_or_default();
        for problem in &problems {
            self.lost(metric, format!("a comparison: {}", problem.message));
        }
        problems.is_empty()
    }

    fn repeat(&self, votes: bool) -> Option<(u32, u32)> {
        let count = count_of(self.task, "repeats").and_then(|it| u32::try_from(it).ok())?;
        // Without a vote lm-eval looks at the first answer alone.
        (votes && count > 1).then_some((count, count / 2 + 1))
    }

    fn pipelines(&mut self) -> Vec<Pipeline> {
        let Some(list) = self.task.get("filter_list") else { return vec![Pipeline::default()] };
        let lists = one_or_many(list).to_vec();
        let mut all = Vec::new();
        for (at, node) in lists.iter().enumerate() {
            let name =
                text_of(node, "name").map_or_else(|| format!("filter-{}", at + 1), Into::into);
            let mut pipeline = Pipeline { name, ..Pipeline::default() };
            let steps = node.get("filter").map(one_or_many).unwrap_or_default();
            if steps.iter().all(|step| self.step(step, &mut pipeline))
                && self.takes_all(&pipeline)
                && self.votes_first(&pipeline, all.is_empty())
            {
                all.push(pipeline);
            }
        }
        match lists.is_empty() {
            true => vec![Pipeline::default()],
            false => all,
        }
    }

    /// Whether a pipeline takes all answers, if it takes several. It is noted if not.
    fn takes_all(&mut self, pipeline: &Pipeline) -> bool {
        let Some((count, at)) = &pipeline.takes else { return true };
        let asked = count_of(self.task, "repeats").unwrap_or(1);
        if pipeline.vote.is_some() && *count >= asked {
            return true;
        }
        let what = format!(
            "filter `{}`: `take_first_k` takes {count} of {asked} answers, which has no counterpart",
            pipeline.name
        );
        self.notes.lost(at.clone(), what, BY_HAND);
        false
    }

    /// Whether a pipeline in which answers vote is the first one, which decides: the others see each
    /// answer for itself. It is noted if not.
    fn votes_first(&mut self, pipeline: &Pipeline, is_first: bool) -> bool {
        let Some(at) = pipeline.vote.clone() else { return true };
        if is_first {
            let what = "`majority_vote`: more than half of the answers have to be right";
            self.notes.assumed(at, what, "");
            return true;
        }
        let what = format!(
            "filter `{}`: `majority_vote` has a counterpart only in the first filter",
            pipeline.name
        );
        self.notes.lost(at, what, "make it the first filter in a task of its own");
        false
    }

    /// Adds a filter; false if it cannot be.
    fn step(&mut self, step: &Node, pipeline: &mut Pipeline) -> bool {
        let Some(name) = text_of(step, "function") else {
            let named = step.get("function").and_then(function).unwrap_or("");
            self.lost(step, format!("filter `{named}` is a class of Python"));
            return false;
        };
        match name {
            "take_first" => {}
            "take_first_k" => match count_of(step, "k") {
                Some(1) => {}
                Some(count) => pipeline.takes = Some((count, self.at(step))),
                None => {
                    self.lost(step, "filter `take_first_k` has no number `k`");
                    return false;
                }
            },
            "remove_whitespace" | "strip" => drop(pipeline.does.insert(Does::Trim)),
            "lowercase" | "uppercase" => {
                let what = format!("filter `{name}`: the case of letters does not count");
                let at = self.at(step);
                self.notes.assumed(at, what, "");
                pipeline.does.insert(Does::IgnoreCase);
            }
            "majority_vote" => pipeline.vote = Some(self.at(step)),
            "regex" => return self.regex(step, pipeline),
            "multi_choice_regex" => {
                let what = "`multi_choice_regex`: the choice is read out of the reply by our rules";
                let at = self.at(step);
                self.notes.assumed(at, what, "see docs/metrics.md, multiple choice");
                pipeline.does.insert(Does::Choose);
            }
            other => {
                self.lost(step, format!("filter `{other}` has no counterpart"));
                return false;
            }
        }
        true
    }

    fn regex(&mut self, step: &Node, pipeline: &mut Pipeline) -> bool {
        const USUAL: &str = r"#### (\-?[0-9\.\,]+)";
        let regex = text_of(step, "regex_pattern").unwrap_or(USUAL).to_owned();
        let which = step.get("group_select").map_or(Some(0), |it| it.to_json().as_i64());
        let take = match which {
            Some(0) => Some(Take::First),
            Some(-1) => None,
            Some(_) | None => {
                self.lost(step, "`group_select` is neither the first match (0) nor the last (-1)");
                return false;
            }
        };
        let regex = ExtractRegex { regex, group: None, take };
        let reading =
            Reading { extract: vec![Extract::Regex(regex.clone())], ..Reading::default() };
        let comparison = Comparison { matcher: Matcher::Exact, reading };
        if !self.compiles(step, &comparison) {
            return false;
        }
        pipeline.extract.push(Extract::Regex(regex));
        true
    }
}

/// The name of a metric; none if it is a function.
fn metric_name(metric: &Node) -> Option<&str> {
    metric.as_str().or_else(|| text_of(metric, "metric"))
}

fn comparison(pipeline: &Pipeline, metric: Option<&Node>) -> Comparison {
    if pipeline.does.contains(&Does::Choose) {
        return Comparison { matcher: Matcher::Choice, reading: Reading::default() };
    }
    let says = |key: &str| {
        metric.and_then(|it| it.get(key)).is_some_and(|it| it.to_json() == Value::Bool(true))
    };
    let mut normalize = Vec::new();
    if says("ignore_case") || pipeline.does.contains(&Does::IgnoreCase) {
        normalize.push(Uncounted::Case);
    }
    if says("ignore_punctuation") {
        normalize.push(Uncounted::Punctuation);
    }
    if says("ignore_numbers") {
        normalize.push(Uncounted::Digits);
    }
    let ignore = metric.and_then(|it| it.get("regexes_to_ignore")).map(one_or_many);
    let ignore = ignore.unwrap_or_default().iter().filter_map(Node::as_str);
    let reading = Reading {
        extract: pipeline.extract.clone(),
        normalize,
        ignore: ignore.filter(|it| !it.is_empty()).map(seen).collect(),
        ..Reading::default()
    };
    let matcher = match pipeline.does.contains(&Does::Trim) {
        true => Matcher::Trimmed,
        false => Matcher::Exact,
    };
    Comparison { matcher, reading }
}

/// An expression as it was, but not of blanks alone, which nobody would see in a suite.
fn seen(regex: &str) -> String {
    match regex.trim().is_empty() {
        true => format!("(?:{regex})"),
        false => regex.to_owned(),
    }
}

/// The first comparison decides, the others are only reported.
fn add_comparison(scoring: &mut Scoring, comparison: Comparison, name: String) {
    if scoring.decides.is_none() {
        scoring.decides = Some(comparison);
        return;
    }
    let test = match comparison.matcher == Matcher::Choice {
        true => AssertionTest::Choice,
        false => AssertionTest::ExactMatch,
    };
    let assertion = Assertion {
        value: Some(Value::from(format!("{{{{ {TARGET} }}}}"))),
        weight: Some(0.0),
        metric: Some(name),
        reading: comparison.reading,
        ..Assertion::new(AssertionKind { negated: false, test })
    };
    if !scoring.reported.contains(&assertion) {
        scoring.reported.push(assertion);
    }
}
