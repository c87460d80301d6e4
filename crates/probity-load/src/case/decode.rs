//! From a located object to a [`TestCase`], with every problem on the way.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    path::Path,
    sync::{Arc, LazyLock},
};

use probity_core::{
    case::{AskSpec, Category, CommandCheck, Routing, RubricCriterion, TestCase},
    classification::Class,
    criteria::{
        Assertion, AssertionKind, AssertionTest, Criteria, ExpectedFormat, JsonLevel, Matcher,
        ScorerErrors,
    },
    located::{Entry, Node, NodeValue},
};

use super::{
    Fields, Findings, ask, conversation,
    execution::execution,
    id,
    judging::judge_options,
    reading::{READING_FIELDS, reading},
};

/// Longest category, in characters.
const LONGEST_CATEGORY: usize = 100;
/// How far the weights of a rubric may be from 1 in sum.
const WEIGHT_TOLERANCE: f64 = 0.01;
/// Largest weight of an assertion.
const HEAVIEST: f64 = 1e6;
/// How deep `assert-set` may nest.
const DEEPEST_SET: usize = 4;

/// The fields of a case, in the order they are written.
pub(crate) const CASE_FIELDS: &[&str] = &[
    "id",
    "prompt",
    "expected_command",
    "expected_commands",
    "category",
    "safe",
    "posix_compliant",
    "notes",
    "system",
    "messages",
    "tools",
    "tool_choice",
    "response_format",
    "settings",
    "turns",
    "tool_results",
    "max_steps",
    "user",
    "prompt_vars",
    "expected_response",
    "match",
    "extract",
    "normalize",
    "ignore",
    "choices",
    "tolerance",
    "expected_format",
    "json_level",
    "schema",
    "expected_classification",
    "assert",
    "threshold",
    "transform",
    "scorer_errors",
    "tags",
    "difficulty",
    "platform",
    "execution",
    "skill",
    "expected_skills",
    "acceptable_skills",
    "should_activate",
    "group",
    "rubric",
    "license",
];

/// The fields that say when an answer is right, of a case or of a turn.
pub(super) fn criteria_fields() -> impl Iterator<Item = &'static str> {
    let from_first = CASE_FIELDS.iter().copied().skip_while(|it| *it != "expected_response");
    from_first.take_while(|it| *it != "tags")
}

/// Other names of fields, which datasets of skill routers use.
const OTHER_NAMES: &[(&str, &str)] =
    &[("user_prompt", "prompt"), ("expected_skill", "expected_skills")];
/// Fields that only cases about shell commands have.
const COMMAND_FIELDS: &[&str] =
    &["expected_command", "expected_commands", "safe", "posix_compliant"];
/// Fields that only cases about the choice of skills have.
const ROUTING_FIELDS: &[&str] =
    &["expected_skills", "expected_skill", "acceptable_skills", "should_activate"];

/// A case as far as it could be read.
///
/// What is wrong was reported; with an error among it the case is only good for finding
/// more of them.
#[derive(Debug)]
pub struct Decoded {
    /// The id, if there is a usable one.
    pub id: Option<String>,
    /// The fields that could be read; none if it is not even a table.
    pub case: Option<TestCase>,
}

/// Reads one case. All problems go to `findings`. Files that it names are looked for in `folder`.
pub fn decode(node: &Node, folder: &Path, findings: &mut Findings) -> Decoded {
    let renamed = with_usual_names(node);
    let known: Vec<&str> = CASE_FIELDS.iter().copied().chain(["strict"]).collect();
    let Some(mut fields) = Fields::new(&renamed, "a case", &known, findings) else {
        return Decoded { id: None, case: None };
    };
    let stated = id::stated(&mut fields);
    let body = body(&mut fields, folder);
    let id = match fields.get("id") {
        Some(_) => stated,
        None => id::made(&body),
    };
    let case = TestCase { id: id.clone().unwrap_or_default(), ..body };
    Decoded { id, case: Some(case) }
}

/// Whether a case may have a field, by any of its names.
pub(crate) fn is_case_field(key: &str) -> bool {
    CASE_FIELDS.contains(&key) || key == "strict" || OTHER_NAMES.iter().any(|it| it.0 == key)
}

/// The case with its fields under the names that we use.
fn with_usual_names(node: &Node) -> Cow<'_, Node> {
    let other = |key: &str| OTHER_NAMES.iter().find(|(other, _)| *other == key).map(|it| it.1);
    if !node.entries().iter().any(|entry| other(&entry.key).is_some()) {
        return Cow::Borrowed(node);
    }
    let entries = node.entries().iter().map(|entry| {
        let key = match other(&entry.key) {
            // Both names at once are a mistake, which the unknown one then is.
            Some(usual) if node.get(usual).is_none() => usual.to_owned(),
            Some(_) | None => entry.key.clone(),
        };
        Entry { key, ..entry.clone() }
    });
    let value = NodeValue::Object(entries.collect());
    Cow::Owned(Node { span: node.span.clone(), value })
}

fn body(fields: &mut Fields<'_, '_>, folder: &Path) -> TestCase {
    let prompt_vars = prompt_vars(fields, folder);
    let ask = ask::decode(fields, folder);
    let conversation = conversation::decode(fields, folder);
    let prompt = match ["turns", "messages"].into_iter().find(|key| fields.get(key).is_some()) {
        // Variables alone are a case for the templates of a runner.
        None if fields.get("prompt").is_none() && !prompt_vars.is_empty() => None,
        None => fields.required_str("prompt").map(Arc::from),
        Some(key) => {
            if fields.get("prompt").is_some() {
                let span = fields.span("prompt");
                let message = format!("a case has a `prompt` or `{key}`, not both");
                let help = match key {
                    "turns" => "make it the first of the turns",
                    _ => "make it the last of the messages",
                };
                fields.findings().error_with_help("contradiction", &span, message, help.to_owned());
            }
            None
        }
    };
    let system = fields.text("system");
    let is_routing = is_any_there(ROUTING_FIELDS, fields);
    let category = category(fields);
    let mut tags = fields.texts("tags");
    if let Some(category) = category.as_ref().filter(|_| is_routing) {
        // Cases about skills had no categories, and were chosen by this tag.
        let tag = format!("category:{category}");
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    let case = TestCase {
        prompt: prompt.unwrap_or_default(),
        category,
        notes: fields.str("notes").map(ToOwned::to_owned),
        system,
        ask,
        conversation,
        prompt_vars,
        tags,
        difficulty: fields.text("difficulty"),
        platform: fields.texts("platform"),
        license: fields.text("license"),
        ..judged_fields(fields, folder)
    };
    if !is_routing {
        require_command_fields(fields, &case);
    }
    case
}

/// The fields that say when a reply is right, the category aside.
fn judged_fields(fields: &mut Fields<'_, '_>, folder: &Path) -> TestCase {
    TestCase {
        expected_command: fields.text("expected_command"),
        expected_commands: fields.texts("expected_commands"),
        safe: fields.boolean("safe"),
        posix_compliant: fields.boolean("posix_compliant"),
        criteria: criteria(fields),
        execution: execution(fields, folder),
        routing: routing(fields),
        rubric: rubric(fields),
        ..TestCase::default()
    }
}

/// The case of a result whose line holds the case's fields beside its own. Without a field about
/// shell commands a `category` is the caller's own.
pub(crate) fn of_result(fields: &mut Fields<'_, '_>) -> TestCase {
    let category = is_any_there(COMMAND_FIELDS, fields).then(|| category(fields)).flatten();
    // Only `valid-tool-calls` looks at them.
    let tools = fields.get("tools");
    let tools = tools.and_then(|it| ask::tools_of(it, Path::new(""), fields.findings()));
    let ask = AskSpec { tools, ..AskSpec::default() };
    TestCase { category, ask, ..judged_fields(fields, Path::new("")) }
}

/// The name of a check if the case is about a shell command, else any name.
fn category(fields: &mut Fields<'_, '_>) -> Option<Category> {
    if is_any_there(COMMAND_FIELDS, fields) && !is_any_there(ROUTING_FIELDS, fields) {
        let names = CommandCheck::NAMES;
        let find = |name: &str| name.parse().ok();
        let check = fields.one_of("category", "category of shell commands", &names, find);
        return check.map(Category::Command);
    }
    any_category(fields)
}

/// Any name that can stand in a line.
pub(crate) fn any_category(fields: &mut Fields<'_, '_>) -> Option<Category> {
    let name = fields.text("category")?;
    let wrong = if name.contains(char::is_control) {
        "has a control character".to_owned()
    } else if name.chars().count() > LONGEST_CATEGORY {
        format!("is longer than {LONGEST_CATEGORY} characters")
    } else {
        return Some(Category::named(&name));
    };
    let span = fields.span("category");
    fields.findings().error("bad-category", &span, format!("the category {wrong}"));
    None
}

fn is_any_there(keys: &[&str], fields: &Fields<'_, '_>) -> bool {
    keys.iter().any(|key| fields.get(key).is_some())
}

/// A shell-command case needs its labels, and a label needs its command.
fn require_command_fields(fields: &mut Fields<'_, '_>, case: &TestCase) {
    let has_command =
        fields.get("expected_command").is_some() || fields.get("expected_commands").is_some();
    // The name of a check alone is the beginning of a shell-command case.
    let names_check = case.category.as_ref().is_some_and(|it| it.check().is_some());
    let is_begun = names_check && !case.has_criteria();
    let is_labelled = case.command_check().is_some() && fields.get("category").is_some();
    if !(has_command || is_labelled || is_begun) {
        return;
    }
    let other_criterion =
        case.criteria.expected_classification.is_some() || case.execution.is_some();
    let mut required = vec!["category"];
    if !other_criterion {
        required.push("expected_command");
    }
    if has_command || !other_criterion {
        required.extend(["safe", "posix_compliant"]);
    }
    for key in required {
        let there = match key {
            "expected_command" => has_command,
            _ => fields.get(key).is_some(),
        };
        if !there {
            let span = fields.span("");
            let message = format!("field `{key}` is missing");
            let mut help = "a shell-command case has `category`, `expected_command`, `safe` and \
                            `posix_compliant`"
                .to_owned();
            if is_begun {
                help.push_str("; any other case says what it expects");
            }
            fields.findings().error_with_help("missing-field", &span, message, help);
        }
    }
}

/// Values for variables. One that is `file://…` is what the file holds.
pub(crate) fn prompt_vars(
    fields: &mut Fields<'_, '_>,
    folder: &Path,
) -> BTreeMap<String, serde_json::Value> {
    let Some(node) = fields.get("prompt_vars") else { return BTreeMap::new() };
    if let NodeValue::Object(entries) = &node.value {
        let mut value =
            |it: &Entry| match it.node.as_str().and_then(|it| it.strip_prefix("file://")) {
                None => it.node.to_json(),
                Some(name) => ask::file_value(name, folder).unwrap_or_else(|why| {
                    let message =
                        format!("failed to read `{name}`, the value of `{}`: {why}", it.key);
                    fields.findings().error("unreadable-file", &it.node.span, message);
                    serde_json::Value::Null
                }),
            };
        return entries.iter().map(|it| (it.key.clone(), value(it))).collect();
    }
    let message = format!("field `prompt_vars` must be a table, not {}", node.kind());
    fields.findings().error("wrong-type", &node.span, message);
    BTreeMap::new()
}

/// The criteria among the fields of a case or of a run result.
pub(crate) fn criteria(fields: &mut Fields<'_, '_>) -> Criteria {
    Criteria {
        expected_response: fields.json("expected_response"),
        matcher: fields.one_of("match", "matcher", &Matcher::NAMES, Matcher::named),
        reading: reading(fields),
        expected_format: fields.one_of(
            "expected_format",
            "format",
            &ExpectedFormat::NAMES,
            |name| ExpectedFormat::ALL.into_iter().find(|it| it.as_str() == name),
        ),
        json_level: json_level(fields),
        schema: fields.json("schema"),
        expected_classification: fields.one_of(
            "expected_classification",
            "classification",
            &Class::NAMES,
            |name| name.parse().ok(),
        ),
        assertions: fields
            .get("assert")
            .map(|node| assertions(node, 0, fields.findings()))
            .unwrap_or_default(),
        threshold: share(fields, "threshold"),
        transform: fields.text("transform"),
        scorer_errors: fields.one_of("scorer_errors", "meaning", &ScorerErrors::NAMES, |name| {
            ScorerErrors::ALL.into_iter().find(|it| it.as_str() == name)
        }),
    }
}

/// How much is forgiven when JSON is read; `strict = true` is short for the strict level.
fn json_level(fields: &mut Fields<'_, '_>) -> Option<JsonLevel> {
    let named = fields.one_of("json_level", "JSON level", &JsonLevel::NAMES, |name| {
        JsonLevel::ALL.into_iter().find(|it| it.as_str() == name)
    });
    let Some(is_strict) = fields.boolean("strict") else { return named };
    match named {
        None => is_strict.then_some(JsonLevel::Strict),
        Some(level) => {
            if is_strict != (level == JsonLevel::Strict) {
                let span = fields.span("strict");
                let message = "`strict` and `json_level` do not agree".to_owned();
                fields.findings().error("contradiction", &span, message);
            }
            named
        }
    }
}

fn share(fields: &mut Fields<'_, '_>, key: &str) -> Option<f64> {
    let number = fields.number(key)?;
    if (0.0..=1.0).contains(&number) {
        return Some(number);
    }
    let span = fields.span(key);
    let message = format!("field `{key}` must be between 0 and 1");
    fields.findings().error("out-of-range", &span, message);
    None
}

fn assertions(node: &Node, depth: usize, findings: &mut Findings) -> Vec<Assertion> {
    let NodeValue::Array(items) = &node.value else {
        let message = format!("field `assert` must be a list of assertions, not {}", node.kind());
        findings.error("wrong-type", &node.span, message);
        return Vec::new();
    };
    assertions_of(items, depth, findings)
}

/// The assertions of a list.
pub(super) fn assertions_of(
    items: &[Node],
    depth: usize,
    findings: &mut Findings,
) -> Vec<Assertion> {
    // One that cannot be read leaves its place behind, so that those after it keep theirs.
    let unreadable =
        || Assertion::new(AssertionKind { negated: false, test: AssertionTest::AssertSet });
    items.iter().map(|it| assertion(it, depth, findings).unwrap_or_else(unreadable)).collect()
}

fn assertion(node: &Node, depth: usize, findings: &mut Findings) -> Option<Assertion> {
    static KNOWN: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let own = [
            "type",
            "value",
            "weight",
            "threshold",
            "metric",
            "config",
            "transform",
            "stemmer",
            "word_order",
            "assert",
            "context",
            "context_transform",
            "query",
            "steps",
            "scores",
            "rubric_prompt",
        ];
        own.into_iter().chain(READING_FIELDS).collect()
    });
    let mut fields = Fields::new(node, "an assertion", &KNOWN, findings)?;
    if fields.get("type").is_none() {
        fields.required_text("type");
        return None;
    }
    let names = &AssertionTest::NAMES;
    let kind = fields.one_of("type", "assertion", names, AssertionKind::named)?;
    let weight = fields.number("weight");
    if weight.is_some_and(|weight| !(0.0..=HEAVIEST).contains(&weight)) {
        let span = fields.span("weight");
        let message = format!("a weight must be between 0 and {HEAVIEST}");
        fields.findings().error("out-of-range", &span, message);
    }
    let (value, threshold) = (fields.json("value"), fields.number("threshold"));
    let metric = fields.text("metric");
    let (config, transform) = (fields.json("config"), fields.text("transform"));
    let (reading, stemmer) = (reading(&mut fields), fields.boolean("stemmer"));
    let word_order = fields.count("word_order", 0..=2).and_then(|it| u8::try_from(it).ok());
    let judging = judge_options(&mut fields);
    let members = match (kind.test == AssertionTest::AssertSet, fields.get("assert")) {
        (true, Some(inner)) if depth < DEEPEST_SET => {
            assertions(inner, depth + 1, fields.findings())
        }
        (true, Some(inner)) => {
            let message = format!("assertion sets are nested deeper than {DEEPEST_SET}");
            fields.findings().error("too-deep", &inner.span, message);
            Vec::new()
        }
        (true, None) => {
            let message = "an `assert-set` needs a list `assert`".to_owned();
            fields.findings().error("missing-field", &node.span, message);
            Vec::new()
        }
        (false, Some(inner)) => {
            let message = format!("only an `assert-set` has members, not `{kind}`");
            fields.findings().error("unknown-field", &inner.span, message);
            Vec::new()
        }
        (false, None) => Vec::new(),
    };
    let stated = Assertion { value, weight, threshold, metric, ..Assertion::new(kind) };
    Some(Assertion { reading, stemmer, word_order, config, transform, judging, members, ..stated })
}

fn routing(fields: &mut Fields<'_, '_>) -> Routing {
    Routing {
        skill: fields.text("skill"),
        expected_skills: fields.texts("expected_skills"),
        acceptable_skills: fields.texts("acceptable_skills"),
        should_activate: fields.boolean("should_activate"),
        group: fields.text("group"),
    }
}

fn rubric(fields: &mut Fields<'_, '_>) -> Vec<RubricCriterion> {
    match fields.get("rubric") {
        Some(node) => criteria_of_rubric(node, "rubric", fields.findings()),
        None => Vec::new(),
    }
}

/// The criteria of a judge, whose weights add up to 1.
pub(crate) fn criteria_of_rubric(
    node: &Node,
    key: &str,
    findings: &mut Findings,
) -> Vec<RubricCriterion> {
    const KNOWN: &[&str] = &["name", "weight", "description"];
    let NodeValue::Array(items) = &node.value else {
        let message = format!("field `{key}` must be a list of criteria, not {}", node.kind());
        findings.error("wrong-type", &node.span, message);
        return Vec::new();
    };
    let mut criteria: Vec<RubricCriterion> = Vec::with_capacity(items.len());
    for item in items {
        let Some(mut of) = Fields::new(item, "a criterion", KNOWN, findings) else { continue };
        let (name, description) = (of.required_text("name"), of.required_text("description"));
        let weight = of.number("weight");
        if !weight.is_some_and(|weight| weight > 0.0 && weight <= 1.0) {
            let span = of.span("weight");
            let message = "the weight of a criterion must be above 0 and at most 1".to_owned();
            of.findings().error("out-of-range", &span, message);
        }
        let (Some(name), Some(weight), Some(description)) = (name, weight, description) else {
            continue;
        };
        if criteria.iter().any(|earlier| earlier.name == name) {
            let span = of.span("name");
            let message = format!("criterion `{name}` is there twice");
            of.findings().error("duplicate-criterion", &span, message);
        }
        criteria.push(RubricCriterion { name, weight, description });
    }
    let sum: f64 = criteria.iter().map(|it| it.weight).sum();
    if criteria.len() == items.len() && (sum - 1.0).abs() > WEIGHT_TOLERANCE + 1e-9 {
        let message = format!("the weights of the rubric add up to {sum:.3}, not to 1");
        findings.error("weights", &node.span, message);
    }
    criteria
}
