//! The published schemas, held against what the program really reads and writes.

mod cases;
mod fields;
mod input;
mod output;
mod refused;
mod samples;
mod suites;

use std::sync::OnceLock;

use jsonschema::{Draft, Validator};
use serde_json::Value;

use crate::project::Project;

/// Every schema that is published.
const NAMES: [&str; 12] = [
    "suite",
    "case",
    "run-result",
    "evaluation",
    "summary",
    "event",
    "baseline",
    "comparison",
    "classify-input",
    "classified",
    "import",
    "imported-run",
];

/// A schema as the program prints it.
struct Schema {
    name: &'static str,
    document: Value,
    validator: Validator,
}

impl Schema {
    /// The schema of a name. It is printed once.
    fn named(name: &str) -> &'static Self {
        static ALL: [OnceLock<Schema>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
        let at = NAMES.iter().position(|it| *it == name).unwrap();
        ALL[at].get_or_init(|| Self::print(NAMES[at]))
    }

    fn print(name: &'static str) -> Self {
        let output = Project::new().run(&["schema", name]);
        assert!(output.status.success() && output.stderr.is_empty(), "{name}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let validator = validator(&document);
        Self { name, document, validator }
    }

    /// Insists on a document being what the schema describes.
    #[track_caller]
    fn check(&self, document: &Value) {
        let wrong: Vec<String> = self
            .validator
            .iter_errors(document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{}\n{}\n{document:#}", self.name, wrong.join("\n"));
    }

    fn takes(&self, document: &Value) -> bool {
        self.validator.is_valid(document)
    }
}

/// Insists on a document being what a schema describes.
#[track_caller]
pub(crate) fn check(name: &str, document: &Value) {
    Schema::named(name).check(document);
}

fn validator(document: &Value) -> Validator {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .build(document)
        .unwrap()
}

/// The objects of a text that has one a line.
fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_schemas_are_listed_with_a_line_each() {
    let project = Project::new();
    insta::assert_snapshot!(project.shown(&["schema"]), @"
    exit 0
    --- out
    suite           A suite file
    case            A case of a dataset
    run-result      A line of `show --json` and of a report that ends in .jsonl
    evaluation      A report that ends in .json
    summary         A report called `suite_summary.json`
    event           A line of `run --events`
    baseline        A file that `bless` writes
    comparison      What `compare --format json` prints
    classify-input  A line that `classify` reads
    classified      A line that `classify` writes
    import          What `import --json` prints
    imported-run    What `import --json` prints of results
    ");
    insta::assert_snapshot!(project.shown(&["schema", "sweet"]), @"
    exit 2
    --- err
    error: invalid value 'sweet' for '[NAME]'
      [possible values: suite, case, run-result, evaluation, summary, event, baseline, comparison, classify-input, classified, import, imported-run]

    For more information, try '--help'.
    ");
}

#[test]
fn every_schema_says_what_it_is_and_satisfies_the_meta_schema() {
    for name in NAMES {
        let schema = &Schema::named(name).document;
        jsonschema::meta::validate(schema).unwrap();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["$id"], format!("urn:probity:schema:{name}:1"));
        for key in ["title", "description"] {
            assert!(schema[key].as_str().is_some_and(|text| !text.is_empty()), "{name} {key}");
        }
    }
}

#[test]
fn every_property_has_a_description() {
    for name in NAMES {
        let schema = &Schema::named(name).document;
        for (place, property) in fields::properties(schema) {
            let told = property["description"].as_str().unwrap_or("");
            assert!(told.ends_with('.'), "{name} {place}: {told:?}");
        }
    }
}

#[test]
fn every_object_that_the_program_writes_is_closed() {
    for name in NAMES.into_iter().filter(|it| !it.starts_with("classif")) {
        fields::each_object(&Schema::named(name).document, &mut |place, object| {
            let closed = object["additionalProperties"] == false;
            assert!(closed, "{name} {place} takes any field");
        });
    }
}
