//! The registry of OpenAI's evals: definitions in YAML, samples in JSONL, prompts of judges in YAML.

mod graded;

use std::path::Path;

use probity_core::{
    case::TestCase,
    criteria::{Assertion, AssertionKind, AssertionTest, Criteria, JsonLevel, Matcher},
    located::{Node, NodeValue},
    request::{Role, Sampling},
};
use serde_json::Value;

use crate::{
    ImportError, NOBODY,
    cases::{Ids, literal, usable_id},
    choices,
    draft::{Asks, CaseDraft, DatasetDraft, DatasetRef, Draft, RunnerDraft, Setup, VariantDraft},
    input, nobody,
    note::{At, Notes},
    source::Source,
};

/// Whether a table defines evals.
pub(crate) fn is_registry(root: &Node) -> bool {
    let is_class =
        |it: &Node| it.as_str().is_some_and(|it| it.contains(':') && it.contains("evals."));
    root.entries().iter().any(|it| it.node.get("class").is_some_and(is_class))
}

/// Whether a folder is a registry.
pub(crate) fn is_folder(source: &Source) -> bool {
    source.has_folder("evals") && source.has_folder("data")
}

/// The registry that a file is in, and the name of the file there.
pub(crate) fn registry_of(path: &Path) -> Option<(&Path, String)> {
    let (folder, name) = (path.parent()?, path.file_name()?.to_str()?);
    let registry = folder.parent()?;
    let is_registry = folder.file_name()? == "evals"
        && (registry.join("data").is_dir() || registry.join("modelgraded").is_dir());
    is_registry.then(|| (registry, format!("evals/{name}")))
}

/// Imports the definitions of a file, or of all files of a registry.
pub(crate) fn import(
    name: Option<&str>,
    documents: Option<&Path>,
    source: &mut Source,
    notes: &mut Notes,
) -> Result<Draft, ImportError> {
    let files = match name {
        Some(name) => vec![name.to_owned()],
        None => source.glob("evals/**/*.yaml")?,
    };
    let shown = name.unwrap_or("a registry of evals");
    let mut making = Making {
        draft: Draft {
            comments: vec![format!("From {shown}, by `probity import`.")],
            ..Draft::default()
        },
        names: Ids::default(),
        documents,
        specs: graded::Specs::read(source, notes),
        source,
        notes,
    };
    for file in &files {
        let (root, _) = making.source.tree_as(file, probity_load::dataset::Format::Yaml)?;
        for entry in root.entries() {
            let at = making.source.at(&entry.key_span);
            match entry.node.get("class").and_then(Node::as_str) {
                Some(class) => making.definition(&Definition {
                    name: &entry.key,
                    class,
                    node: &entry.node,
                    at,
                }),
                // Another name of an eval.
                None if entry.node.get("id").is_some() => {}
                None => {
                    let what = format!("`{}` is no eval: it has no `class`", entry.key);
                    making.notes.lost(at, what, "correct the file");
                }
            }
        }
    }
    let Making { mut draft, .. } = making;
    let Some(first) = draft.runners.first() else {
        return Err(ImportError::shape("there is no eval that can be carried over"));
    };
    let backend = nobody(first.at.clone(), notes);
    draft.backends.push(backend);
    Ok(draft)
}

struct Definition<'n> {
    name: &'n str,
    class: &'n str,
    node: &'n Node,
    at: At,
}

impl<'n> Definition<'n> {
    fn arg(&self, name: &str) -> Option<&'n Node> {
        self.node.get("args")?.get(name)
    }

    fn text(&self, name: &str) -> Option<&'n str> {
        self.arg(name).and_then(Node::as_str)
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.arg(name).and_then(|it| it.to_json().as_u64())
    }
}

/// How an eval compares answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Match { capitalizes: bool },
    Includes { ignores_case: bool },
    FuzzyMatch,
    JsonMatch,
    Graded,
}

/// The comparison of `FuzzyMatch`: one contains the other, without case, punctuation and articles.
const FUZZY: &str = "\
const plain = (text) => text.toLowerCase().replace(/[!-\\/:-@\\[-`{-~]/g, '')
  .replace(/\\b(a|an|the)\\b/g, ' ').split(/\\s+/).filter(Boolean).join(' ');
const reply = plain(output);
return [context.vars.ideal].flat().some((it) => {
  const ideal = plain(String(it));
  return reply && ideal ? reply.includes(ideal) || ideal.includes(reply) : reply === ideal;
});";

struct Making<'a> {
    draft: Draft,
    names: Ids,
    documents: Option<&'a Path>,
    specs: graded::Specs,
    source: &'a mut Source,
    notes: &'a mut Notes,
}

impl Making<'_> {
    fn definition(&mut self, eval: &Definition<'_>) {
        let class = eval.class.rsplit([':', '.']).next().unwrap_or_default();
        let says = |name: &str| eval.arg(name).is_some_and(|it| it.to_json() == Value::Bool(true));
        let (class, known): (Class, &[&str]) = match class {
            "Match" => (
                Class::Match { capitalizes: false },
                &["few_shot_jsonl", "num_few_shot", "max_tokens"],
            ),
            "MatchWithSolvers" => {
                (Class::Match { capitalizes: true }, &["task_description", "shuffle", "n_samples"])
            }
            "Includes" => (Class::Includes { ignores_case: says("ignore_case") }, &["ignore_case"]),
            "FuzzyMatch" => (Class::FuzzyMatch, &["max_tokens"]),
            "JsonMatch" => (Class::JsonMatch, &["max_tokens"]),
            "ModelBasedClassify" => (
                Class::Graded,
                &["modelgraded_spec", "modelgraded_spec_args", "eval_type", "sample_kwargs"],
            ),
            "MultipleChoice" => return self.choices(eval),
            _ => {
                let what = format!("eval `{}` is the class `{}` of Python", eval.name, eval.class);
                let advice = "write its cases as a dataset, and its scoring as an assertion";
                return self.notes.lost(eval.at.clone(), what, advice);
            }
        };
        let args = eval.node.get("args").map(Node::entries).unwrap_or_default();
        for entry in args {
            let is_known = entry.key == "samples_jsonl" || known.contains(&entry.key.as_str());
            if !is_known {
                let what = format!("`{}` of eval `{}` has no counterpart", entry.key, eval.name);
                self.notes.lost(self.source.at(&entry.key_span), what, "leave it out");
            }
        }
        let system = eval.text("task_description").map(literal);
        let mut setup = Setup { system, ..Setup::default() };
        if class == Class::Graded {
            match self.specs.setup(eval, self.source, self.notes) {
                Some(graded) => setup = graded,
                None => return,
            }
        }
        let Some(samples) = self.samples(eval, eval.text("samples_jsonl")) else { return };
        let shots = self.shots(eval);
        self.cases(eval, class, setup, &samples, &shots);
    }

    fn cases(
        &mut self,
        eval: &Definition<'_>,
        class: Class,
        mut setup: Setup,
        samples: &Node,
        shots: &input::Said,
    ) {
        let mut cases = Vec::new();
        let most = eval.count("n_samples").and_then(|it| usize::try_from(it).ok());
        if let Some(most) = most {
            let what = format!("the first {most} samples are asked, which OpenAI evals draws");
            self.notes.assumed(eval.at.clone(), what, "");
        }
        let samples = samples.items().iter().take(most.unwrap_or(usize::MAX));
        for (number, sample) in samples.enumerate() {
            let at = self.source.at(&sample.span);
            match case(class, number, sample, shots) {
                Ok(case) => cases.push(CaseDraft { case, at }),
                Err(why) => {
                    let what = format!("a sample of eval `{}`: {why}", eval.name);
                    self.notes.lost(at, what, "correct it");
                }
            }
        }
        compare(class, &mut setup);
        let longest = match class {
            Class::Match { .. } | Class::Includes { .. } => None,
            Class::FuzzyMatch => Some(eval.count("max_tokens").unwrap_or(100)),
            Class::JsonMatch => Some(eval.count("max_tokens").unwrap_or(512)),
            Class::Graded => {
                let said = eval.arg("sample_kwargs").and_then(|it| it.get("max_tokens"));
                Some(said.and_then(|it| it.to_json().as_u64()).unwrap_or(1024))
            }
        };
        let is_greedy = matches!(class, Class::Match { .. } | Class::FuzzyMatch | Class::JsonMatch);
        let sampling = Sampling {
            temperature: is_greedy.then_some(0.0),
            max_tokens: longest,
            ..Sampling::default()
        };
        self.runner(eval, setup, "{{ prompt }}", sampling, cases);
    }

    fn runner(
        &mut self,
        eval: &Definition<'_>,
        setup: Setup,
        template: &str,
        sampling: Sampling,
        cases: Vec<CaseDraft>,
    ) {
        if cases.is_empty() {
            return;
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
        let name: String = eval.name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
        let name = self.names.unique(&usable_id(&name));
        let variant = VariantDraft {
            name: "eval".to_owned(),
            at: eval.at.clone(),
            comments: Vec::new(),
            asks: Asks::Template(template.to_owned()),
            file: None,
            sampling,
        };
        let is_plain = variant.sampling.is_empty() && template == "{{ prompt }}";
        let dataset = self.names.unique(&format!("{name}-cases"));
        self.draft.runners.push(RunnerDraft {
            name,
            at: eval.at.clone(),
            comments: vec![format!("The eval {} ({}).", eval.name, eval.class)],
            kind: None,
            dataset: vec![DatasetRef::Draft(dataset.clone())],
            backends: vec![NOBODY.to_owned()],
            setup,
            prompts: if is_plain { Vec::new() } else { vec![variant] },
        });
        self.draft.datasets.push(DatasetDraft { name: dataset, cases, ..DatasetDraft::default() });
    }

    /// The samples in a file of the registry.
    fn samples(&mut self, eval: &Definition<'_>, file: Option<&str>) -> Option<Node> {
        let Some(file) = file else {
            let what = format!("eval `{}` names no samples", eval.name);
            self.notes.lost(eval.at.clone(), what, "add `samples_jsonl`");
            return None;
        };
        let in_data = format!("data/{file}");
        let name = if self.source.has_file(&in_data) { in_data } else { file.to_owned() };
        let read = self.source.text(&name).and_then(|text| {
            let is_pointer = text.text.starts_with("version https://git-lfs");
            let (root, wrong) = self.source.parse(&text, probity_load::dataset::Format::Jsonl)?;
            Ok((is_pointer, root, wrong))
        });
        match read {
            Ok((true, _, _)) => {
                let what = format!(
                    "the samples of eval `{}` are not here: `{name}` is a pointer of Git LFS",
                    eval.name
                );
                self.notes.lost(eval.at.clone(), what, format!("git lfs pull --include '{name}'"));
                None
            }
            Ok((false, root, wrong)) => {
                for error in &wrong {
                    crate::note_unreadable(self.source, &root, error, self.notes);
                }
                Some(root)
            }
            Err(error) => {
                let what = format!("the samples of eval `{}` are not here: {error}", eval.name);
                self.notes.lost(eval.at.clone(), what, error.advice());
                None
            }
        }
    }

    /// Messages that go before the last one of each sample.
    fn shots(&mut self, eval: &Definition<'_>) -> input::Said {
        let count = eval.count("num_few_shot").and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
        let Some(file) = eval.text("few_shot_jsonl").filter(|_| count > 0) else {
            return Vec::new();
        };
        let Some(root) = self.samples(eval, Some(file)) else { return Vec::new() };
        let mut all = Vec::new();
        for shot in root.items().iter().take(count) {
            match shot.get("sample").ok_or_else(|| "no `sample`".to_owned()).and_then(input::said) {
                Ok(said) => all.extend(said),
                Err(why) => {
                    let at = self.source.at(&shot.span);
                    self.notes.lost(at, format!("an example: {why}"), "correct it");
                }
            }
        }
        all
    }

    /// An eval whose questions are in a dataset of Hugging Face.
    fn choices(&mut self, eval: &Definition<'_>) {
        let rows = self.exported(eval);
        let mut cases = Vec::new();
        for (number, row) in rows.iter().flat_map(Node::items).enumerate() {
            let at = self.source.at(&row.span);
            match choice(number, row) {
                Some(case) => cases.push(CaseDraft { case, at }),
                None => {
                    let what = "a question without `question`, `choices` and `answer` (or `ctx`, \
                                `endings` and `label`)";
                    self.notes.lost(at, what, "correct it");
                }
            }
        }
        let instructions = literal(eval.text("instructions").unwrap_or_default());
        let template = format!(
            "{instructions}\nPlease answer with the letter of the correct answer.\n\n{{{{ prompt }}}}{}",
            choices::lines(")")
        );
        if !cases.is_empty() {
            let what = "choices stand in the order of the file, which OpenAI evals shuffles";
            self.notes.assumed(
                eval.at.clone(),
                what,
                "`shuffle_choices` in the runner shuffles them",
            );
        }
        let sampling = Sampling { temperature: Some(0.0), ..Sampling::default() };
        self.runner(eval, Setup::default(), &template, sampling, cases);
    }

    fn exported(&mut self, eval: &Definition<'_>) -> Option<Node> {
        let folder = self.documents.filter(|it| it.is_dir());
        let own = folder.map(|it| it.join(format!("{}.jsonl", eval.name)));
        let beside = Path::new("documents").join(format!("{}.jsonl", eval.name));
        let file = self.documents.filter(|it| it.is_file()).map(Path::to_owned);
        let named = [file, own, Some(beside)];
        let named = named.into_iter().flatten().filter_map(|it| it.to_str().map(ToOwned::to_owned));
        let found = named.into_iter().find(|it| self.source.has_file(it));
        if let Some(found) = found {
            return self.samples(eval, Some(&found));
        }
        let dataset = eval.text("dataset").unwrap_or_default();
        let what = format!(
            "the samples of eval `{}` are not here: they are in the dataset `{dataset}`",
            eval.name
        );
        let advice = format!(
            "export them with load_dataset(…).to_json('documents/{}.jsonl'), or name the file with \
             --documents",
            eval.name
        );
        self.notes.lost(eval.at.clone(), what, advice);
        None
    }
}

fn case(
    class: Class,
    number: usize,
    sample: &Node,
    shots: &input::Said,
) -> Result<TestCase, String> {
    let asked = sample.get("input").ok_or("there is no `input`")?;
    let mut said = input::said(asked)?;
    if !shots.is_empty() {
        let last = said.pop();
        said.extend(shots.iter().cloned());
        said.extend(last);
    }
    let mut case = TestCase { id: format!("sample-{number}"), ..TestCase::default() };
    input::ask(&mut case, said);
    if class == Class::Graded {
        let fields = sample.entries().iter().filter(|it| it.key != "input");
        case.prompt_vars =
            fields.map(|it| (it.key.clone(), graded::variable(&it.node.to_json()))).collect();
        return Ok(case);
    }
    let ideal = sample.get("ideal").ok_or("there is no `ideal`")?;
    let texts = match &ideal.value {
        NodeValue::Array(items) => items.iter().map(text).collect::<Option<Vec<_>>>(),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::String(_)
        | NodeValue::Object(_) => text(ideal).map(|it| vec![it]),
    };
    let texts = texts.filter(|it| !it.is_empty());
    let mut texts = texts.ok_or("`ideal` is neither a text nor a list of texts")?;
    if class == (Class::Match { capitalizes: true }) {
        texts.truncate(1);
        texts.extend(texts.first().map(|it| capitalized(it)).filter(|it| *it != texts[0]));
    }
    if class == Class::JsonMatch {
        case.criteria = json(&texts)?;
        return Ok(case);
    }
    let ideal = if texts.len() == 1 { Value::from(texts.remove(0)) } else { Value::from(texts) };
    match class {
        Class::FuzzyMatch => drop(case.prompt_vars.insert("ideal".to_owned(), ideal)),
        Class::Match { .. } | Class::Includes { .. } | Class::JsonMatch | Class::Graded => {
            case.criteria.expected_response = Some(ideal);
        }
    }
    Ok(case)
}

fn text(node: &Node) -> Option<String> {
    match &node.value {
        NodeValue::String(text) | NodeValue::Number(text) => Some(text.clone()),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Array(_) | NodeValue::Object(_) => None,
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|it| it.to_uppercase().to_string()).unwrap_or_default();
    first + &chars.as_str().to_lowercase()
}

/// The reply is JSON, and equal to one of these.
fn json(texts: &[String]) -> Result<Criteria, String> {
    let parse = |text: &String| {
        serde_json::from_str::<Value>(text).map_err(|error| format!("`ideal` is no JSON: {error}"))
    };
    let mut values = texts.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    if values.len() == 1 {
        return Ok(Criteria {
            expected_response: Some(values.remove(0)),
            matcher: Some(Matcher::JsonEqual),
            json_level: Some(JsonLevel::Strict),
            ..Criteria::default()
        });
    }
    let kind = |test| AssertionKind { negated: false, test };
    #[expect(clippy::cast_precision_loss, reason = "there are few answers")]
    let share = 1.0 / values.len() as f64;
    let members = values
        .into_iter()
        .map(|it| Assertion { value: Some(it), ..Assertion::new(kind(AssertionTest::Equals)) });
    Ok(Criteria {
        assertions: vec![Assertion {
            members: members.collect(),
            threshold: Some(share),
            ..Assertion::new(kind(AssertionTest::AssertSet))
        }],
        ..Criteria::default()
    })
}

/// A question of a dataset of Hugging Face.
fn choice(number: usize, row: &Node) -> Option<TestCase> {
    let first = |names: [&str; 2]| names.iter().find_map(|it| row.get(it));
    let question = first(["question", "ctx"])?.as_str()?;
    let choices = first(["choices", "endings"])?.items();
    let choices: Vec<String> = choices.iter().filter_map(text).collect();
    let label = first(["answer", "label"])?;
    let label: usize = text(label)?.trim().parse().ok()?;
    let letter = choices::letter(label).filter(|_| label < choices.len())?;
    let mut criteria =
        Criteria { expected_response: Some(Value::from(letter)), ..Criteria::default() };
    criteria.reading.choices = choices;
    let mut case = TestCase { id: format!("sample-{number}"), criteria, ..TestCase::default() };
    input::ask(&mut case, vec![(Role::User, question.to_owned())]);
    Some(case)
}

/// What is said of all cases of a class.
fn compare(class: Class, setup: &mut Setup) {
    let assertion = |test, value: &str| Assertion {
        value: Some(Value::from(value)),
        ..Assertion::new(AssertionKind { negated: false, test })
    };
    match class {
        Class::Match { .. } => setup.matcher = Some(Matcher::StartsWith),
        Class::Includes { ignores_case: false } => setup.matcher = Some(Matcher::Contains),
        Class::Includes { ignores_case: true } => setup.matcher = Some(Matcher::Icontains),
        Class::FuzzyMatch => {
            let f1 = assertion(AssertionTest::TokenF1, "{{ ideal }}");
            setup.assertions = vec![
                Assertion {
                    metric: Some("accuracy".to_owned()),
                    ..assertion(AssertionTest::Javascript, FUZZY)
                },
                Assertion { metric: Some("f1_score".to_owned()), weight: Some(0.0), ..f1 },
            ];
        }
        Class::JsonMatch | Class::Graded => {}
    }
}
