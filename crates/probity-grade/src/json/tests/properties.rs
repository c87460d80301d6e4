//! What holds for every text.

use proptest::prelude::*;

use super::*;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[ -~\n]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Texts over the characters that decide everything.
fn brackets_and_quotes() -> impl Strategy<Value = String> {
    "[\\[\\]{}\",:'\\\\ \n0a`+/*.“é-]{0,40}"
}

fn answers_in_order(text: &str) -> Result<(), TestCaseError> {
    let strict = extract(text, JsonLevel::Strict, Wanted::Any);
    let lenient = extract(text, JsonLevel::Lenient, Wanted::Any);
    let repaired = extract(text, JsonLevel::Repair, Wanted::Any);
    prop_assert_eq!(&strict.error, &lenient.error);
    prop_assert_eq!(&strict.error, &repaired.error);
    prop_assert_eq!(strict.value.is_some(), strict.error.is_none());
    // A level only adds to the level before it.
    if strict.value.is_some() {
        prop_assert_eq!(&strict, &lenient);
    }
    if lenient.value.is_some() {
        prop_assert_eq!(&lenient, &repaired);
    }
    for found in [&lenient, &repaired] {
        prop_assert!(found.value.is_some() || found.steps.is_empty());
        prop_assert!(found.steps.is_sorted());
        if let Some(span) = &found.span {
            prop_assert!(text.get(span.clone()).is_some());
        }
    }
    prop_assert_eq!(&repaired, &extract(text, JsonLevel::Repair, Wanted::Any));
    Ok(())
}

proptest! {
    #[test]
    fn json_is_its_own_repair(value in any_json()) {
        for text in [value.to_string(), format!("{value:#}")] {
            let found = extract(&text, JsonLevel::Repair, Wanted::Any);
            prop_assert_eq!(found.value.map(|it| it.to_string()), Some(value.to_string()));
            prop_assert_eq!(found.steps, []);
            prop_assert_eq!(found.error, None);
        }
    }

    #[test]
    fn a_fence_changes_nothing(value in any_json()) {
        let text = format!("Here it is:\n```json\n{value:#}\n```\n");
        let found = extract(&text, JsonLevel::Lenient, Wanted::Any);
        prop_assert_eq!(found.value.map(|it| it.to_string()), Some(value.to_string()));
        prop_assert_eq!(found.steps, [Step::Fence]);
    }

    #[test]
    fn an_object_that_was_cut_off_is_never_lenient(value in any_json(), cut in 1_usize..200) {
        let text = json!({"a": value, "b": 1}).to_string();
        let cut = text.floor_char_boundary(cut.min(text.len() - 1));
        prop_assert_eq!(extract(&text[..cut], JsonLevel::Lenient, Wanted::Any).value, None);
    }

    #[test]
    fn an_object_that_was_cut_off_is_repaired_to_an_object(value in any_json(), cut in 1_usize..200) {
        let text = json!({"a": value, "b": 1}).to_string();
        let cut = text.floor_char_boundary(cut.min(text.len() - 1));
        let found = extract(&text[..cut], JsonLevel::Repair, Wanted::Any);
        prop_assert!(found.value.is_some_and(|it| it.is_object()));
        prop_assert!(!found.steps.is_empty());
    }

    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        answers_in_order(&text)?;
    }

    #[test]
    fn any_mess_is_answered(text in brackets_and_quotes()) {
        answers_in_order(&text)?;
        answers_in_order(&format!("{{\"a\": {text}"))?;
        answers_in_order(&format!("[\"{text}"))?;
    }
}
