//! How an answer is read: `extract`, `normalize`, `ignore`, `choices` and `tolerance`, of a case or of
//! an assertion.

use probity_core::{
    located::{Node, NodeValue},
    reading::{
        Extract, ExtractAfter, ExtractCodeBlock, ExtractJsonPointer, ExtractName, ExtractRegex,
        ExtractXmlTag, Group, Reading, Take, Tolerance, Uncounted, Until,
    },
};

use super::{Fields, Findings, did_you_mean, fields::one_of_list};

/// The fields that say how an answer is read.
pub(super) const READING_FIELDS: [&str; 5] =
    ["extract", "normalize", "ignore", "choices", "tolerance"];

/// The fields that an extraction is known by, each with the others that go with it.
const FORMS: [(&str, &[&str]); 5] = [
    ("regex", &["group", "take"]),
    ("after", &["take", "until"]),
    ("code_block", &["take"]),
    ("json_pointer", &[]),
    ("xml_tag", &["take"]),
];

/// Most steps of a pipeline.
const MOST_STEPS: usize = 16;

pub(super) fn reading(fields: &mut Fields<'_, '_>) -> Reading {
    Reading {
        extract: fields.get("extract").map_or_else(Vec::new, |it| steps(it, fields.findings())),
        normalize: normalize(fields),
        ignore: fields.texts("ignore"),
        choices: fields.texts("choices"),
        tolerance: tolerance(fields),
    }
}

fn steps(node: &Node, findings: &mut Findings) -> Vec<Extract> {
    let NodeValue::Array(items) = &node.value else {
        return step(node, findings).into_iter().collect();
    };
    if items.is_empty() || items.len() > MOST_STEPS {
        let message = format!("field `extract` must have 1 to {MOST_STEPS} steps");
        findings.error("out-of-range", &node.span, message);
        return Vec::new();
    }
    items.iter().filter_map(|item| step(item, findings)).collect()
}

fn step(node: &Node, findings: &mut Findings) -> Option<Extract> {
    let NodeValue::String(name) = &node.value else { return table(node, findings) };
    let found = ExtractName::ALL.into_iter().find(|it| it.as_str() == name.replace('_', "-"));
    if found.is_none() {
        let names = ExtractName::NAMES;
        let message = format!("unknown extraction `{name}`");
        let help = did_you_mean(name, &names).unwrap_or_else(|| {
            format!("{}, or a table such as {{ regex = \"…\" }}", one_of_list(&names))
        });
        findings.error_with_help("unknown-value", &node.span, message, help);
    }
    found.map(Extract::Named)
}

fn table(node: &Node, findings: &mut Findings) -> Option<Extract> {
    let keys = FORMS.map(|it| it.0);
    let mut forms = FORMS.iter().filter(|it| node.get(it.0).is_some());
    let (form, others) = match (forms.next(), forms.next()) {
        (Some((form, others)), None) => (*form, *others),
        (Some(_), Some(_)) => {
            let message = "an extraction is one thing: make two steps of it".to_owned();
            findings.error("contradiction", &node.span, message);
            return None;
        }
        (None, _) => {
            // Says which names are unknown, and what was probably meant.
            Fields::new(node, "an extraction", &keys, findings)?;
            let message = "it is not said what is to be extracted".to_owned();
            let help = one_of_list(&keys);
            findings.error_with_help("missing-field", &node.span, message, help);
            return None;
        }
    };
    let known: Vec<&str> = others.iter().copied().chain([form]).collect();
    let mut fields = Fields::new(node, "an extraction", &known, findings)?;
    let text = fields.text(form);
    let take = fields.one_of("take", "place", &Take::NAMES, |it| it.parse().ok());
    let until = fields.one_of("until", "place", &Until::NAMES, |it| it.parse().ok());
    let group = group(&mut fields);
    let text = text?;
    Some(match form {
        "regex" => Extract::Regex(ExtractRegex { regex: text, group, take }),
        "after" => Extract::After(ExtractAfter { after: text, take, until }),
        "code_block" => Extract::CodeBlock(ExtractCodeBlock { code_block: text, take }),
        "json_pointer" => Extract::JsonPointer(ExtractJsonPointer { json_pointer: text }),
        _ => Extract::XmlTag(ExtractXmlTag { xml_tag: text, take }),
    })
}

fn group(fields: &mut Fields<'_, '_>) -> Option<Group> {
    let value = fields.json("group")?;
    let group = Group::of(&value);
    if group.is_none() {
        let span = fields.span("group");
        let message = "a group is a whole number from 0 on, or a name".to_owned();
        fields.findings().error("wrong-type", &span, message);
    }
    group
}

/// Steps by their names, or by the name of several.
fn normalize(fields: &mut Fields<'_, '_>) -> Vec<Uncounted> {
    let Some(node) = fields.get("normalize") else { return Vec::new() };
    let mut steps: Vec<Uncounted> = Vec::new();
    for name in fields.texts("normalize") {
        let named: &[Uncounted] = match Uncounted::ALL.iter().position(|it| it.as_str() == name) {
            Some(at) => &Uncounted::ALL[at..=at],
            None if name == Uncounted::SQUAD_NAME => &Uncounted::SQUAD,
            None => {
                let place = node.items().iter().find(|it| it.as_str() == Some(&name));
                let span = place.unwrap_or(node).span.clone();
                let names = Uncounted::NAMES;
                let names: Vec<&str> = names.into_iter().chain([Uncounted::SQUAD_NAME]).collect();
                let message = format!("unknown step of normalisation `{name}`");
                let help = did_you_mean(&name, &names).unwrap_or_else(|| one_of_list(&names));
                fields.findings().error_with_help("unknown-value", &span, message, help);
                &[]
            }
        };
        steps.extend(named.iter().filter(|it| !steps.contains(it)).copied().collect::<Vec<_>>());
    }
    steps
}

fn tolerance(fields: &mut Fields<'_, '_>) -> Option<Tolerance> {
    let value = fields.json("tolerance")?;
    let tolerance = Tolerance::of(&value);
    if tolerance.is_none() {
        let span = fields.span("tolerance");
        let message =
            "a tolerance is a number from 0 on, or a percentage such as \"1%\"".to_owned();
        fields.findings().error("wrong-type", &span, message);
    }
    tolerance
}
