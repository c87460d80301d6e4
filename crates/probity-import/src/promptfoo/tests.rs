//! Tests: what is asked, and what is expected.

mod elsewhere;
mod found;
mod judges;
mod written;

use std::collections::BTreeMap;

use probity_core::{
    case::TestCase,
    criteria::{Assertion, Criteria},
    located::Node,
};
use probity_load::template;
use serde_json::Value;

use super::{
    Context,
    assertions::adapted,
    nunjucks,
    options::{Around, Helpers, Options},
    providers::Provider,
    vars::{self, Unasked},
};
use crate::{
    cases::text,
    draft::{CaseDraft, DatasetRef, Setup},
    note::At,
};
use found::{Found, FoundTest, collect, scenarios};
pub(super) use written::Written;
use written::written_vars;

/// Values of variables.
pub(super) type Vars = BTreeMap<String, Value>;

/// The variable with a reply that a test brings, as the adapter for it reads it.
const OUTPUT: &str = "provider_output";
/// Fields of a test that are read.
const USED: &[&str] = &[
    "description",
    "vars",
    "assert",
    "threshold",
    "metadata",
    "options",
    "prompts",
    "provider",
    "providers",
    "providerOutput",
];

/// A case, and who is asked it how.
#[derive(Clone, Debug)]
pub(super) struct Test {
    /// The case. Its prompt is empty: prompts are variants of the runner.
    pub(super) case: CaseDraft,
    /// The prompts that it is asked with, by label or id; empty for all.
    pub(super) prompts: Vec<String>,
    /// The providers that are asked, by label or id; empty for all.
    pub(super) providers: Vec<String>,
    /// The provider that is asked in the place of all others.
    pub(super) provider: Option<Provider>,
    /// What stands around its prompts.
    pub(super) around: Around,
    /// What its runner has to say beside what is said of all tests, such as the judge.
    pub(super) setup: Setup,
    /// Whether the assertions for all tests hold for it.
    pub(super) inherits: bool,
    /// The code that makes its variables, if there is some.
    pub(super) code: Option<VarsCode>,
    /// Whether it brings the reply, so that nobody is asked.
    pub(super) is_given: bool,
}

/// Code that makes variables: functions that are named in their places, and a transform of all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VarsCode {
    pub(super) transform: Option<String>,
}

/// What tests stand in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Configuration,
    /// A table of nothing but tests.
    Table,
}

/// All tests of a configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct Tests {
    /// Those that can be read.
    pub(super) cases: Vec<Test>,
    /// Functions that make tests.
    pub(super) functions: Vec<Generator>,
    /// What is said of all tests. It is all that the runners of these functions have to say.
    pub(super) setup: Setup,
    /// The provider that is asked the tests of these functions in the place of all others.
    pub(super) provider: Option<Provider>,
}

/// A function that makes tests.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    /// It, as the dataset that it makes.
    pub(super) dataset: DatasetRef,
    /// What it is told.
    pub(super) config: Option<Value>,
    /// Variables that it looks at.
    pub(super) env: Vec<String>,
    /// Where it is named.
    pub(super) at: At,
}

/// The tests of a configuration: `tests`, `scenarios`, `defaultTest`. Without any, each prompt is asked
/// once.
pub(super) fn read(root: &Node, form: Form, context: &mut Context<'_>) -> Tests {
    let mut tests = Tests::default();
    let default = default_test(root, context);
    let mut found = Found::default();
    match (root.get("tests"), form) {
        (Some(node), Form::Configuration) => collect(node, context, &mut found),
        (Some(node), Form::Table) => {
            let record = |it: &Node| FoundTest { is_record: true, ..FoundTest::written(it) };
            found.tests = node.items().iter().map(record).collect();
            found.is_empty = found.tests.is_empty();
        }
        (None, _) => {}
    }
    tests.functions = found.functions;
    let mut written: Vec<(Node, Written)> = Vec::new();
    for test in &found.tests {
        if let Ok(written_test) = Written::of(test, context) {
            written.push((test.node.clone(), written_test));
        }
    }
    let scenarios = root.get("scenarios").map(|it| scenarios(it, context));
    let is_empty = found.is_empty && scenarios.is_none() && tests.functions.is_empty();
    written.extend(scenarios.unwrap_or_default());
    if is_empty {
        written.push((root.clone(), Written::default()));
    }
    let stored: Vec<String> = written.iter().filter_map(|(node, _)| stored(node)).collect();
    for (number, (node, test)) in written.into_iter().enumerate() {
        if let Some(name) = stored.iter().find(|it| names(&test.vars, it)) {
            let what = format!("a test that goes on from the output `{name}` of another");
            context.lost(&node, what, "make one case with `turns` of both");
            continue;
        }
        let name = test.description.clone().unwrap_or_else(|| format!("test-{}", number + 1));
        // What cannot be asked is noted.
        if let Ok(cases) = cases(&name, &test, &default, &node, context) {
            tests.cases.extend(cases);
        }
    }
    tests.setup = default.shared_setup();
    match default.written.provider {
        Some(Ok(provider)) => tests.provider = Some(provider),
        // That nobody can be asked is noted.
        Some(Err(Unasked)) => tests.functions.clear(),
        None => {}
    }
    judges::settle(&mut tests, context);
    tests
}

/// The name that a test gives its output, for other tests.
fn stored(node: &Node) -> Option<String> {
    text(node.get("options")?, "storeOutputAs")
}

/// Whether a value of these variables names another variable.
fn names(vars: &Vars, name: &str) -> bool {
    let texts = vars.values().filter_map(Value::as_str).filter(|it| template::is_template(it));
    let names = |text: &str| template::undefined_variables(text, |other| other != name);
    texts.into_iter().any(|it| names(it).is_ok_and(|it| !it.is_empty()))
}

/// `defaultTest`, written out or in a file.
fn default_test(root: &Node, context: &mut Context<'_>) -> Default {
    let Some(node) = root.get("defaultTest") else { return Default::default() };
    let in_file = node.as_str().and_then(|it| it.strip_prefix("file://"));
    let read = in_file.and_then(|name| context.tree(node, name));
    let node = read.as_ref().unwrap_or(node);
    let mut written = Written::without_vars(node, context);
    // Without a file of variables, all else holds. That there is none is noted.
    written.vars = written_vars(node, "", context).unwrap_or_default();
    Default::of(written, node, context)
}

/// What holds for all tests.
#[derive(Clone, Debug, Default)]
struct Default {
    written: Written,
    /// Values that every case has unless it says otherwise.
    shared: Vars,
    /// Values that stand for several, and make several cases of each test.
    several: Vars,
}

impl Default {
    fn of(written: Written, node: &Node, context: &mut Context<'_>) -> Self {
        let mut default = Self::default();
        for (name, value) in &written.vars {
            if vars::is_several(value) {
                default.several.insert(name.clone(), value.clone());
            } else if let Ok(value) = vars::filled(value, node, context) {
                default.shared.insert(name.clone(), value);
            }
        }
        let helpers = written.helpers.clone().or(&written.options.helpers);
        let assertions = completed(&written.assertions, &helpers, node, context);
        Self { written: Written { assertions, ..written }, ..default }
    }

    /// What a runner says about tests with these options, beside what is said of all tests.
    fn setup(&self, test: &Written) -> Setup {
        let Options { helpers, repeat, .. } = test.options.clone().or(&self.written.options);
        let own = test.helpers.clone().or(&self.written.helpers).or(&helpers);
        Setup {
            judge: own.judge,
            embeddings: own.embeddings,
            rubric_prompt: own.rubric_prompt,
            repeat,
            ..Setup::default()
        }
    }

    /// What is said of all tests.
    fn shared_setup(&self) -> Setup {
        let is_shared = |it: &&Assertion| !is_filled_in_beforehand(it);
        Setup {
            prompt_vars: self.shared.clone(),
            assertions: self.written.assertions.iter().filter(is_shared).cloned().collect(),
            threshold: self.written.threshold,
            transform: self.written.options.transform.clone(),
            ..self.setup(&Written::default())
        }
    }
}

/// Whether an assertion has templates in places where ours has none: code, and the names of scores.
fn is_filled_in_beforehand(assertion: &Assertion) -> bool {
    let is_template = |it: &str| template::is_template(it);
    let code = assertion.value.as_ref().and_then(Value::as_str);
    assertion.metric.as_deref().is_some_and(is_template)
        || (assertion.kind.test.runs_code() && code.is_some_and(is_template))
        || assertion.members.iter().any(is_filled_in_beforehand)
}

/// The assertion with such templates filled in.
fn filled_in(assertion: &Assertion, vars: &Vars) -> Assertion {
    let fill = |text: &String| {
        let missing = template::undefined_variables(text, |name| vars.contains_key(name));
        let mut vars = vars.clone();
        vars.extend(missing.unwrap_or_default().into_iter().map(|it| (it, Value::from(""))));
        template::render(text, &vars).unwrap_or_else(|_| text.clone())
    };
    let mut made = assertion.clone();
    made.metric = made.metric.as_ref().map(fill);
    if let (true, Some(Value::String(code))) = (made.kind.test.runs_code(), &mut made.value) {
        *code = fill(code);
    }
    made.members = made.members.iter().map(|it| filled_in(it, vars)).collect();
    made
}

/// The cases of a test: one for each combination of its values.
fn cases(
    name: &str,
    test: &Written,
    default: &Default,
    node: &Node,
    context: &mut Context<'_>,
) -> Result<Vec<Test>, Unasked> {
    let options = test.options.clone().or(&default.written.options);
    let provider =
        test.provider.clone().or_else(|| default.written.provider.clone()).transpose()?;
    let mut own = default.several.clone();
    own.extend(test.vars.clone());
    let is_expanded = !options.keeps_lists.unwrap_or_default();
    let setup = default.setup(test);
    let inherited = match test.options.without_defaults {
        true => &[][..],
        false => &default.written.assertions,
    };
    let helpers = test.helpers.clone().or(&default.written.helpers).or(&options.helpers);
    let own_assertions = completed(&test.assertions, &helpers, node, context);
    let made_here: Vec<&Assertion> =
        inherited.iter().filter(|it| is_filled_in_beforehand(it)).chain(&own_assertions).collect();
    let mut cases = Vec::new();
    for mut vars in vars::combinations(&own, is_expanded, node, context)? {
        if let Some(output) = &test.output {
            vars.insert(OUTPUT.to_owned(), Value::String(nunjucks::value(output)));
        }
        let assertions = made_here.iter().map(|it| match is_filled_in_beforehand(it) {
            true => filled_in(it, &all_vars(&vars, &default.shared)),
            false => (*it).clone(),
        });
        let assertions: Vec<Assertion> = assertions.collect();
        let is_made = vars.values().chain(default.shared.values()).any(vars::is_made);
        let transform = options.transform_vars.clone();
        let code = (is_made || transform.is_some()).then_some(VarsCode { transform });
        let id = context.ids.unique(name);
        let prompt = prompt_of(vars.get("prompt").or_else(|| default.shared.get("prompt")));
        let prompt_vars = own_vars(&id, vars, &default.shared);
        let case = TestCase {
            id,
            prompt: prompt.into(),
            prompt_vars,
            ask: options.asked.clone(),
            criteria: Criteria {
                assertions,
                threshold: test.threshold,
                transform: test.options.transform.clone(),
                ..Criteria::default()
            },
            tags: test.tags.iter().chain(&default.written.tags).cloned().collect(),
            ..TestCase::default()
        };
        cases.push(Test {
            case: CaseDraft { case, at: context.at(node) },
            prompts: either(&test.prompts, &default.written.prompts),
            providers: either(&test.providers, &default.written.providers),
            provider: provider.clone(),
            around: options.around.clone(),
            setup: setup.clone(),
            inherits: !test.options.without_defaults,
            code,
            is_given: test.output.is_some(),
        });
    }
    Ok(cases)
}

/// Assertions with whom a test names for them. Those that nobody can be asked for are left out and noted.
fn completed(
    assertions: &[Assertion],
    helpers: &Helpers,
    node: &Node,
    context: &mut Context<'_>,
) -> Vec<Assertion> {
    let made = assertions.iter().map(|it| adapted::completed(it, helpers, context));
    let (lost, kept): (Vec<_>, Vec<_>) = made
        .collect::<Vec<_>>()
        .into_iter()
        .partition(|it| adapted::lacks_classifier(it, &context.draft));
    for _ in lost {
        context.lost(node, "assertion `classifier` without a classifier", "name it as `provider`");
    }
    kept
}

/// The variables of a case and those that all have.
fn all_vars(own: &Vars, shared: &Vars) -> Vars {
    let mut all = shared.clone();
    all.extend(own.clone());
    all
}

/// The variables of a case. One without any would have nothing to say for itself: it gets those that all
/// have, or its name.
fn own_vars(id: &str, vars: Vars, shared: &Vars) -> Vars {
    match (vars.is_empty(), shared.is_empty()) {
        (false, _) => vars,
        (true, false) => shared.clone(),
        (true, true) => Vars::from([("test".to_owned(), Value::from(id))]),
    }
}

/// What the variable `prompt` says is what a case of ours asks.
fn prompt_of(asked: Option<&Value>) -> String {
    let text = asked.and_then(Value::as_str).filter(|it| !it.trim().is_empty());
    text.unwrap_or_default().to_owned()
}

/// What is said here, or else there.
fn either(own: &[String], other: &[String]) -> Vec<String> {
    if own.is_empty() { other.to_vec() } else { own.to_vec() }
}

#[cfg(test)]
mod once;
