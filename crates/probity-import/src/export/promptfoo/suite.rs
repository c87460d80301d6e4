//! A suite as a configuration.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use probity_core::{case::TestCase, request::Request};
use probity_load::{
    suite::{BackendConfig, RunnerConfig, Suite},
    template,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    assertions::{self, Said},
    prompt,
    providers::{self, Provider},
};
use crate::{
    cases::literal,
    export::{Exported, file_name},
    names::{Names, numbered},
};

/// A configuration of one runner.
#[derive(Debug, Serialize)]
struct ConfigFile {
    description: String,
    prompts: Vec<PromptEntry>,
    providers: Vec<Provider>,
    tests: Vec<Test>,
    #[serde(rename = "evaluateOptions", skip_serializing_if = "Map::is_empty")]
    options: Map<String, Value>,
}

#[derive(Debug, Serialize)]
struct PromptEntry {
    raw: String,
    label: String,
}

#[derive(Debug, Serialize)]
struct Test {
    description: String,
    vars: BTreeMap<String, Value>,
    #[serde(rename = "assert", skip_serializing_if = "Vec::is_empty")]
    assertions: Vec<Said>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    options: Map<String, Value>,
}

/// A suite that is being written: a configuration for each runner.
#[derive(Debug)]
pub struct SuiteExport {
    name: String,
    runners: Vec<Runner>,
    exported: Exported,
}

/// A runner that is being written.
#[derive(Debug)]
struct Runner {
    name: String,
    config: ConfigFile,
    /// Places of tests by their case.
    places: BTreeMap<String, usize>,
    /// The variables that hold what each variant asks, by the names of the variants.
    variables: BTreeMap<String, String>,
}

impl SuiteExport {
    /// A configuration without anything.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), runners: Vec::new(), exported: Exported::default() }
    }

    /// Takes in a runner with its backends and prompts.
    pub fn runner(&mut self, runner: &RunnerConfig, suite: &Suite) {
        let about = format!("runner `{}`", runner.name);
        if runner.kind.as_str() != "respond" {
            let kind = runner.kind;
            self.exported.lose(&about, &format!("promptfoo has nothing like the kind `{kind}`"));
        }
        let mut providers = Vec::new();
        for name in &runner.backends {
            let Some(backend) = suite.backends.iter().find(|it| it.name == *name) else { continue };
            match providers::of(backend) {
                Some(provider) => providers.push(provider),
                None => self.lose_backend(backend),
            }
        }
        if !runner.gates.is_empty() {
            self.exported.lose(&about, "gates; promptfoo fails if any test fails");
        }
        if !runner.derived.is_empty() {
            let what = "derived figures; write them as `derivedMetrics`, where the sum of a score has its bare name";
            self.exported.lose(&about, what);
        }
        if runner.prompts.iter().any(|it| !it.sampling.is_empty()) {
            self.exported.lose(&about, "settings of prompt variants");
        }
        let mut options = Map::new();
        if runner.repeat > 1 {
            options.insert("repeat".to_owned(), runner.repeat.into());
        }
        let description = format!("{}, {}", self.name, runner.name);
        let config =
            ConfigFile { description, prompts: Vec::new(), providers, tests: Vec::new(), options };
        let (places, variables) = (BTreeMap::new(), BTreeMap::new());
        self.runners.push(Runner { name: runner.name.clone(), config, places, variables });
    }

    fn lose_backend(&mut self, backend: &BackendConfig) {
        let what = format!("promptfoo has no provider like the kind `{}`", backend.kind.as_str());
        self.exported.lose(&format!("backend `{}`", backend.name), &what);
    }

    /// Takes in a case of the runner that came last, with what a variant asks.
    pub fn case(&mut self, variant: Option<&str>, case: &TestCase, request: &Request) {
        let Some(runner) = self.runners.last_mut() else { return };
        let Runner { config, places, variables, .. } = runner;
        // Each variant's prompt is a variable of its name, so that what is sent is what we send.
        let key = variant.unwrap_or_default();
        if !variables.contains_key(key) {
            let name = variable(variant, &variables.values().collect());
            variables.insert(key.to_owned(), name);
        }
        let name = variables[key].clone();
        let label = variant.unwrap_or("prompt");
        if !config.prompts.iter().any(|it| it.label == label) {
            let raw = format!("{{{{ {name} }}}}");
            config.prompts.push(PromptEntry { raw, label: label.to_owned() });
        }
        let place = *places.entry(case.id.clone()).or_insert_with(|| {
            config.tests.push(test(case, &mut self.exported));
            config.tests.len() - 1
        });
        // promptfoo fills in the templates of values, too.
        let text = Value::from(literal(&prompt(request)));
        if config.tests[place].vars.insert(name.clone(), text).is_some() {
            let what = format!("its variable `{name}`, which holds the prompt there");
            self.exported.lose(&format!("case `{}`", case.id), &what);
        }
        if !request.tools.is_empty() {
            self.exported.lose(&format!("case `{}`", case.id), "its tools are not sent");
        }
    }

    /// The files: one for each runner.
    pub fn finish(self) -> Exported {
        let Self { runners, mut exported, .. } = self;
        let several = runners.len() > 1;
        let mut names = Names::default();
        for Runner { config, name, .. } in runners.into_iter().filter(|it| !it.places.is_empty()) {
            let file = match several {
                true => format!("{}.promptfooconfig.yaml", file_name(&mut names, &name)),
                false => "promptfooconfig.yaml".to_owned(),
            };
            let mut text = String::from(
                "# yaml-language-server: $schema=https://promptfoo.dev/config-schema.json\n\
                 # Written by `probity export --as promptfoo`.\n",
            );
            // JSON is YAML; a list item to a line keeps it readable.
            write_yaml(&mut text, &config);
            exported.files.push((file, text));
        }
        exported
    }
}

/// A name for the variable that holds what a variant asks.
fn variable(variant: Option<&str>, taken: &BTreeSet<&String>) -> String {
    let as_name = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
    };
    let base = variant.map_or_else(|| "prompt".to_owned(), |it| format!("prompt_{}", as_name(it)));
    as_name(&numbered(&base, |it| !taken.contains(&as_name(it))))
}

fn test(case: &TestCase, exported: &mut Exported) -> Test {
    let about = format!("case `{}`", case.id);
    let mut lose = |what: &str| exported.lose(&about, what);
    let said = assertions::of_case(case, &mut lose);
    for unknown in case.criteria.assertions.iter().filter(|it| !assertions::is_known(it)) {
        lose(&format!("the assertion `{}`, which promptfoo does not have", unknown.kind));
    }
    if !case.conversation.turns.is_empty() {
        lose("its turns after the first");
    }
    if case.execution.is_some() {
        lose("`execution`: promptfoo does not execute what a reply says");
    }
    let tags = case.tags.iter().filter_map(|it| it.split_once(':'));
    let tags = tags.map(|(name, value)| (name.to_owned(), Value::from(value)));
    let category = case.category.as_ref().map(|it| ("category".to_owned(), it.as_str().into()));
    let mut options = Map::new();
    if let Some(transform) = &case.criteria.transform {
        options.insert("transform".to_owned(), Value::from(transform.as_str()));
    }
    // What a template of an assertion may name; texts are as they are.
    let vars = case.prompt_vars.iter().map(|(name, value)| (name.clone(), filled(value)));
    Test {
        description: case.id.clone(),
        vars: vars.collect(),
        assertions: said,
        threshold: case.criteria.threshold,
        metadata: tags.chain(category).collect(),
        options,
    }
}

/// A value that promptfoo does not take for a template, and a list that it does not take apart.
fn filled(value: &Value) -> Value {
    match value {
        Value::String(text) if template::is_template(text) => Value::from(literal(text)),
        Value::Array(_) => Value::from(value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            value.clone()
        }
    }
}

/// A document of tables and lists as YAML, with texts and numbers as JSON writes them.
fn write_yaml(text: &mut String, value: &impl Serialize) {
    let Ok(Value::Object(fields)) = serde_json::to_value(value) else { return };
    for (name, value) in &fields {
        let _ = match listed(value) {
            Some(items) => {
                let _ = writeln!(text, "{name}:");
                items.iter().try_for_each(|item| write_item(text, item))
            }
            None => writeln!(text, "{name}: {value}"),
        };
    }
}

/// The items of a list that has some.
fn listed(value: &Value) -> Option<&Vec<Value>> {
    value.as_array().filter(|it| !it.is_empty())
}

fn write_item(text: &mut String, item: &Value) -> std::fmt::Result {
    let Value::Object(fields) = item else { return writeln!(text, "  - {item}") };
    let mut mark = "  - ";
    for (name, value) in fields {
        match listed(value) {
            Some(items) => {
                writeln!(text, "{mark}{name}:")?;
                items.iter().try_for_each(|it| writeln!(text, "      - {it}"))?;
            }
            None => writeln!(text, "{mark}{name}: {value}")?,
        }
        mark = "    ";
    }
    Ok(())
}
