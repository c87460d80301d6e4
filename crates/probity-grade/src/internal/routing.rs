//! Which skills a reply chooses from an index, and whether they are the right ones.

use std::{collections::BTreeSet, sync::Arc};

use probity_core::{
    case::{Routing, TestCase},
    criteria::JsonLevel,
    evidence::{Choice, Detection, Routed},
    kind::{ChoiceRule, Evidence},
};
use serde_json::Value;

use crate::{
    json::{Wanted, extract},
    refusal::quoted::after_thinking,
};

/// What a case expects to be chosen, and from what.
#[derive(Clone, Debug)]
pub struct RoutingExpectation {
    /// Any of these is right.
    pub expected: Vec<String>,
    /// Any of these will do.
    pub acceptable: Vec<String>,
    /// False where nothing may be chosen.
    pub should_activate: bool,
    /// The group of look-alikes.
    pub group: Option<String>,
    /// The skills that the index shows; none where that is not known, and every name is taken for one.
    pub index: Option<Arc<BTreeSet<String>>>,
    /// How it is judged.
    pub rule: ChoiceRule,
}

/// Whether a choice is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    Right,
    Wrong,
    Unreadable,
}

impl RoutingExpectation {
    /// What a case expects to be chosen. Skills that are expected are not listed as acceptable too.
    pub fn new(case: &TestCase, rule: ChoiceRule, index: Option<Arc<BTreeSet<String>>>) -> Self {
        let Routing { expected_skills, acceptable_skills, group, .. } = &case.routing;
        let unique = |names: &[String], but: &[String]| {
            let mut kept: Vec<String> = Vec::new();
            for name in names {
                if !kept.contains(name) && !but.contains(name) {
                    kept.push(name.clone());
                }
            }
            kept
        };
        Self {
            expected: unique(expected_skills, &[]),
            acceptable: unique(acceptable_skills, expected_skills),
            should_activate: case.routing.is_positive(),
            group: group.clone(),
            index,
            rule,
        }
    }

    /// What a reply chooses. `asked` are skills that were chosen when each was asked about.
    pub(crate) fn judge(&self, reply: &str, asked: Option<&[String]>) -> (Chosen, Routed) {
        let (names, detection) = match asked {
            Some(names) => (Some(names.to_vec()), Detection::Fallback),
            None => match read_names(reply) {
                Some(names) => (Some(names), Detection::Structured),
                None => (None, Detection::None),
            },
        };
        let Some(names) = names else {
            let routed = self.routed(Choice::Unreadable, Detection::None);
            return (Chosen::Unreadable, routed);
        };
        let known = |name: &String| match &self.index {
            Some(index) => {
                let exact = index.get(name);
                exact.or_else(|| index.iter().find(|it| it.eq_ignore_ascii_case(name))).cloned()
            }
            None => {
                let exact = self.candidates().find(|it| it.eq_ignore_ascii_case(name));
                Some(exact.map_or_else(|| name.clone(), ToOwned::to_owned))
            }
        };
        let chosen: BTreeSet<String> = names.iter().filter_map(known).collect();
        let outside: BTreeSet<String> =
            names.iter().filter(|it| known(it).is_none()).cloned().collect();
        let choice = match (chosen.len(), outside.len()) {
            (0, 0) => Choice::None,
            (1, 0) => Choice::Single,
            (0, 1) => Choice::Outside,
            (_, _) => Choice::Multi,
        };
        let routed = Routed {
            chosen: chosen.into_iter().collect(),
            outside: outside.into_iter().collect(),
            ..self.routed(choice, detection)
        };
        let hit = routed.chosen.iter().any(|it| routed.accepts(it));
        let right = match (self.should_activate, self.rule.is_single) {
            (false, _) => choice == Choice::None,
            (true, false) => hit,
            (true, true) => hit && choice == Choice::Single,
        };
        let routing = if right { Chosen::Right } else { Chosen::Wrong };
        (routing, routed)
    }

    /// What is known of a case without a reply.
    pub(crate) fn without_reply(&self, declined: bool) -> Evidence {
        // A service that declines has answered, and its answer cannot be read.
        let choice = if declined { Choice::Unreadable } else { Choice::Error };
        self.evidence(self.routed(choice, Detection::None))
    }

    /// The skills to ask about one by one where a reply cannot be read.
    pub fn candidates(&self) -> impl Iterator<Item = &str> {
        self.expected.iter().chain(&self.acceptable).map(String::as_str)
    }

    fn routed(&self, choice: Choice, detection: Detection) -> Routed {
        Routed {
            choice,
            chosen: Vec::new(),
            outside: Vec::new(),
            expected: self.expected.clone(),
            acceptable: self.acceptable.clone(),
            should_activate: self.should_activate,
            detection,
            group: self.group.clone(),
            axes: match self.rule.is_single {
                true => self.index.iter().flat_map(|it| it.iter().cloned()).collect(),
                false => Vec::new(),
            },
        }
    }

    /// What is kept of a choice.
    pub(crate) fn evidence(&self, routed: Routed) -> Evidence {
        (self.rule.evidence)(routed)
    }
}

/// The names in a reply such as `{"skills": ["a", "b"]}`; none if it cannot be read.
///
/// Also understood: a list alone, one name instead of a list, `skill` for `skills`, tables with a
/// `name` or an `id`. `none` and blank names are no names.
fn read_names(reply: &str) -> Option<Vec<String>> {
    let reply = &reply[after_thinking(reply)..];
    let found = extract(reply, JsonLevel::Lenient, Wanted::Any);
    // Of two choices nobody can say which is meant.
    let span = found.span.unwrap_or(0..reply.len());
    if reply[..span.start].contains('{') || reply[span.end..].contains('{') {
        return None;
    }
    let value = found.value?;
    let list = match &value {
        Value::Object(fields) => fields.get("skills").or_else(|| fields.get("skill"))?,
        Value::Array(_) => &value,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    let items = match list {
        Value::Null => &[],
        Value::Array(items) => items.as_slice(),
        Value::String(_) => std::slice::from_ref(list),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    let name = |item: &Value| match item {
        Value::String(name) => Some(name.trim().trim_matches('`').to_owned()),
        Value::Object(fields) => {
            let name = fields.get("name").or_else(|| fields.get("id"))?;
            name.as_str().map(|name| name.trim().to_owned())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    };
    let names: Vec<String> = items.iter().map(name).collect::<Option<_>>()?;
    let is_name = |name: &String| !name.is_empty() && !name.eq_ignore_ascii_case("none");
    Some(names.into_iter().filter(is_name).collect())
}

/// Whether a reply to a question says yes. Anything that is not clearly a yes is a no.
pub fn says_yes(reply: &str) -> bool {
    let mut words = reply[after_thinking(reply)..]
        .split(|c: char| !c.is_alphanumeric())
        .filter(|it| !it.is_empty());
    let first = words.next().unwrap_or("");
    // `{"answer": "yes"}` and the like.
    let word = match first.eq_ignore_ascii_case("answer") {
        true => words.next().unwrap_or(""),
        false => first,
    };
    word.eq_ignore_ascii_case("yes")
}

#[cfg(test)]
mod tests {
    use probity_core::kind::RunnerKind;

    use super::*;

    #[test]
    fn names_are_read_out_of_what_models_write() {
        let cases: &[(&str, Option<&[&str]>)] = &[
            (r#"{"skills": ["a", "b"]}"#, Some(&["a", "b"])),
            ("```json\n{\"skills\": [\"a\"]}\n```", Some(&["a"])),
            ("Sure: {\"skills\": []}", Some(&[])),
            (r#"{"skills": null}"#, Some(&[])),
            (r#"{"skill": "a"}"#, Some(&["a"])),
            (r#"["a"]"#, Some(&["a"])),
            (r#"{"skills": [{"name": "a", "why": "x"}, {"id": "b"}]}"#, Some(&["a", "b"])),
            (r#"{"skills": ["none"]}"#, Some(&[])),
            (r#"{"skills": [" `a` "]}"#, Some(&["a"])),
            (r#"{"skills": [1]}"#, None),
            (r#"{"choice": "a"}"#, None),
            ("I would use a.", None),
            ("<think>maybe {\"skills\": [\"b\"]}?</think>{\"skills\": [\"a\"]}", Some(&["a"])),
            ("{\"skills\": [\"a\"]} or rather {\"skills\": [\"b\"]}", None),
            ("", None),
            ("\"a\"", None),
        ];
        for (reply, expected) in cases {
            let expected =
                expected.map(|it| it.iter().map(|&it| it.to_owned()).collect::<Vec<_>>());
            assert_eq!(read_names(reply), expected, "{reply}");
        }
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        for reply in ["yes", "Yes.", "**Yes**, because", "{\"answer\": \"yes\"}", " YES\n"] {
            assert!(says_yes(reply), "{reply}");
        }
        for reply in ["no", "", "yesterday", "maybe yes", "No, yes would be wrong"] {
            assert!(!says_yes(reply), "{reply}");
        }
    }

    fn expectation(expected: &[&str], kind: RunnerKind) -> RoutingExpectation {
        let names = |it: &[&str]| it.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        RoutingExpectation {
            expected: names(expected),
            acceptable: names(&["b"]),
            should_activate: !expected.is_empty(),
            group: None,
            index: Some(Arc::new(names(&["a", "b", "c"]).into_iter().collect())),
            rule: kind.spec().choice.unwrap(),
        }
    }

    #[test]
    fn look_alikes_have_to_be_chosen_alone() {
        let judge = |expected: &[&str], tells_apart, reply: &str| {
            let kind = if tells_apart { RunnerKind::Confusion } else { RunnerKind::Activation };
            expectation(expected, kind).judge(reply, None).0
        };
        let (right, wrong) = (Chosen::Right, Chosen::Wrong);
        assert_eq!(judge(&["a"], false, r#"["A", "c"]"#), right);
        assert_eq!(judge(&["a"], true, r#"["a", "c"]"#), wrong);
        assert_eq!(judge(&["a"], true, r#"["b"]"#), right);
        assert_eq!(judge(&["a"], true, r#"["x"]"#), wrong);
        assert_eq!(judge(&["a"], false, "[]"), wrong);
        assert_eq!(judge(&[], false, "[]"), right);
        assert_eq!(judge(&[], false, r#"["x"]"#), wrong);
        assert_eq!(judge(&[], true, "nothing fits"), Chosen::Unreadable);
    }

    #[test]
    fn what_was_asked_one_by_one_counts_instead() {
        let expectation = expectation(&["a"], RunnerKind::Activation);
        let (routing, routed) = expectation.judge("?", Some(&["b".to_owned()]));
        assert_eq!(routing, Chosen::Right);
        assert_eq!((routed.detection, routed.choice), (Detection::Fallback, Choice::Single));
    }
}
