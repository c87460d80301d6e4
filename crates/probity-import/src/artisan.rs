//! The datasets of dotnet-artisan's evaluations: activation and confusion cases, rubrics.

use crate::{
    ImportError,
    cases::{Imported, boolean, labelled, text, texts},
    source::Source,
};
use probity_core::{
    case::{Routing, RubricCriterion, TestCase},
    located::{Node, NodeValue},
};

pub(crate) fn import(
    root: &Node,
    source: &Source,
    imported: &mut Imported<'_>,
) -> Result<(), ImportError> {
    let items = if let NodeValue::Array(items) = &root.value {
        items.as_slice()
    } else {
        std::slice::from_ref(root)
    };
    if items.is_empty() {
        return Err(ImportError::shape("there is no case in the file"));
    }
    for (at, node) in items.iter().enumerate() {
        imported.now_at(source.at(&node.span));
        if node.get("test_prompts").is_some() {
            rubric(node, imported);
        } else {
            routing(at, node, imported);
        }
    }
    Ok(())
}

fn routing(at: usize, node: &Node, imported: &mut Imported<'_>) {
    const USED: &[&str] = &[
        "id",
        "user_prompt",
        "expected_skills",
        "expected_skill",
        "acceptable_skills",
        "should_activate",
        "category",
        "group",
    ];
    let id = text(node, "id").unwrap_or_else(|| format!("case-{}", at + 1));
    let Some(prompt) = text(node, "user_prompt") else {
        return imported.lose("a case without a prompt was left out");
    };
    imported.note_unused(node, USED);
    let mut expected_skills = texts(node, "expected_skills");
    expected_skills.extend(texts(node, "expected_skill"));
    let should_activate = boolean(node, "should_activate").or(Some(!expected_skills.is_empty()));
    let routing = Routing {
        skill: None,
        expected_skills,
        acceptable_skills: texts(node, "acceptable_skills"),
        should_activate,
        group: text(node, "group"),
    };
    let tags = labelled("category", text(node, "category")).into_iter().collect();
    imported.add(TestCase { id, prompt: prompt.into(), tags, routing, ..TestCase::default() });
}

fn rubric(node: &Node, imported: &mut Imported<'_>) {
    const USED: &[&str] = &["skill_name", "test_prompts", "criteria"];
    let skill = text(node, "skill_name").unwrap_or_else(|| "skill".to_owned());
    imported.note_unused(node, USED);
    let criteria = node.get("criteria").map(Node::items).unwrap_or_default();
    let rubric: Vec<RubricCriterion> = criteria.iter().filter_map(criterion).collect();
    if rubric.len() < criteria.len() {
        imported.lose("a criterion without a name, weight or description was left out");
    }
    for (at, prompt) in texts(node, "test_prompts").into_iter().enumerate() {
        imported.add(TestCase {
            id: format!("{skill}-{}", at + 1),
            prompt: prompt.into(),
            routing: Routing { skill: Some(skill.clone()), ..Routing::default() },
            rubric: rubric.clone(),
            ..TestCase::default()
        });
    }
}

fn criterion(node: &Node) -> Option<RubricCriterion> {
    Some(RubricCriterion {
        name: text(node, "name")?,
        weight: text(node, "weight")?.parse().ok()?,
        description: text(node, "description")?,
    })
}
