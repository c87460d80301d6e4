//! What a scorer of one's own says about a reply: one contract, whatever language it is written in.

use serde_json::{Map, Value};

/// What a scorer said.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// Whether the reply is good enough.
    pub pass: bool,
    /// How good it is; from 0 to 1 unless the scorer has a scale of its own.
    pub score: f64,
    /// Why.
    pub reason: Option<String>,
    /// Further scores, by name, for reports.
    pub scores: Vec<(String, f64)>,
}

impl Scored {
    /// Reads what a scorer returned: whether, how much, or a table with `pass`, `score`, `reason`
    /// and `scores`.
    ///
    /// A number passes from `threshold` on, or above 0 without one. A table that says `pass` has to
    /// reach the threshold as well.
    pub fn read(returned: &Value, threshold: Option<f64>) -> Result<Self, String> {
        let plain = |pass, score| Self { pass, score, reason: None, scores: Vec::new() };
        match returned {
            Value::Bool(pass) => Ok(plain(*pass, f64::from(u8::from(*pass)))),
            Value::Number(_) => {
                let score = number(returned).ok_or("its score is not a finite number")?;
                Ok(plain(is_enough(score, threshold), score))
            }
            Value::Object(table) => read_table(table, threshold),
            Value::Null => Err("it returned nothing; a scorer returns true or false, a number, or a table with `pass` or `score`".to_owned()),
            Value::String(_) | Value::Array(_) => {
                let what = if returned.is_array() { "a list" } else { "a text" };
                Err(format!("it returned {what}; a scorer returns true or false, a number, or a table with `pass` or `score`"))
            }
        }
    }
}

fn is_enough(score: f64, threshold: Option<f64>) -> bool {
    threshold.map_or(score > 0.0, |least| score >= least)
}

fn number(value: &Value) -> Option<f64> {
    let flag = value.as_bool().map(|it| f64::from(u8::from(it)));
    let number = flag.or_else(|| value.as_f64());
    number.filter(|it| it.is_finite())
}

fn read_table(table: &Map<String, Value>, threshold: Option<f64>) -> Result<Scored, String> {
    let said =
        |names: &[&str]| names.iter().find_map(|name| table.get(*name)).filter(|it| !it.is_null());
    // Python's users cannot name a keyword argument `pass`.
    let pass = match said(&["pass", "pass_", "passed"]) {
        None => None,
        Some(Value::Bool(pass)) => Some(*pass),
        Some(_) => return Err("its `pass` is neither true nor false".to_owned()),
    };
    let score = match said(&["score"]) {
        None => None,
        Some(score) => Some(number(score).ok_or("its `score` is not a finite number")?),
    };
    let (pass, score) = match (pass, score) {
        (None, None) => return Err("it says neither `pass` nor `score`".to_owned()),
        (Some(pass), None) => (pass, f64::from(u8::from(pass))),
        (None, Some(score)) => (is_enough(score, threshold), score),
        (Some(pass), Some(score)) => (pass && threshold.is_none_or(|least| score >= least), score),
    };
    let parts = said(&["componentResults", "component_results"]).and_then(Value::as_array);
    let text = |of: &Map<String, Value>| {
        let reason = of.get("reason").and_then(Value::as_str).filter(|it| !it.trim().is_empty());
        reason.map(ToOwned::to_owned)
    };
    let of_parts = || {
        let failed = |it: &&Map<String, Value>| it.get("pass") == Some(&Value::Bool(false));
        parts?.iter().filter_map(Value::as_object).find(failed).and_then(text)
    };
    let reason = text(table).or_else(of_parts);
    let mut scores = Vec::new();
    add_named(table, &mut scores)?;
    for part in parts.into_iter().flatten().filter_map(Value::as_object) {
        add_named(part, &mut scores)?;
    }
    Ok(Scored { pass, score, reason, scores })
}

/// Adds the named scores of a table, or of a part of one. Those of the whole go first and stay.
fn add_named(table: &Map<String, Value>, scores: &mut Vec<(String, f64)>) -> Result<(), String> {
    let keys = ["scores", "namedScores", "named_scores"];
    let own = keys.iter().find_map(|key| table.get(*key)).filter(|it| !it.is_null());
    let Some(own) = own else { return Ok(()) };
    for (name, value) in own.as_object().ok_or("its `scores` are not a table")? {
        let value =
            number(value).ok_or_else(|| format!("its score `{name}` is not a finite number"))?;
        if !scores.iter().any(|(earlier, _)| earlier == name) {
            scores.push((name.clone(), value));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(returned: &Value, threshold: Option<f64>, pass: bool, score: f64) {
        let scored = Scored::read(returned, threshold).unwrap();
        assert_eq!((scored.pass, scored.score), (pass, score), "{returned}");
    }

    #[test]
    fn every_form_is_read() {
        check(&json!(true), None, true, 1.0);
        check(&json!(false), Some(0.0), false, 0.0);
        check(&json!(0.4), None, true, 0.4);
        check(&json!(0), None, false, 0.0);
        check(&json!(0.4), Some(0.5), false, 0.4);
        check(&json!(0), Some(0.0), true, 0.0);
        check(&json!({"pass": true}), None, true, 1.0);
        check(&json!({"score": 0.5}), Some(0.5), true, 0.5);
        check(&json!({"pass": true, "score": 0.2}), Some(0.5), false, 0.2);
        check(&json!({"pass": true, "score": 0.0}), None, true, 0.0);
        check(&json!({"pass_": false, "score": 1}), None, false, 1.0);
    }

    #[test]
    fn what_else_is_said_is_kept() {
        let returned = json!({
            "pass": false, "score": 0.5, "namedScores": {"tone": 0.5, "polite": true},
            "componentResults": [
                {"pass": true, "reason": "fine", "namedScores": {"tone": 1, "brief": 0.25}},
                {"pass": false, "reason": "rude"},
            ],
        });
        let scored = Scored::read(&returned, None).unwrap();
        assert_eq!(scored.reason.as_deref(), Some("rude"));
        let expected = [("tone", 0.5), ("polite", 1.0), ("brief", 0.25)];
        assert_eq!(scored.scores, expected.map(|(name, score)| (name.to_owned(), score)));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let keys = "pass|pass_|score|reason|scores|namedScores|componentResults|a";
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-z]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((keys, inner), 0..6)
                    .prop_map(|it| Value::Object(it.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_is_returned_is_a_finite_score_or_refused(
            returned in any_json(),
            threshold in proptest::option::of(0.0..1.0),
        ) {
            if let Ok(scored) = Scored::read(&returned, threshold) {
                prop_assert!(scored.score.is_finite());
                prop_assert!(scored.scores.iter().all(|it| it.1.is_finite()));
                let said_no = returned == Value::Bool(false) || returned["pass"] == false;
                prop_assert!(!(scored.pass && said_no));
                let reached = threshold.is_none_or(|least| scored.score >= least);
                prop_assert!(!scored.pass || reached || returned.is_boolean() || returned.get("score").is_none());
            }
        }
    }

    #[test]
    fn what_is_no_score_is_refused() {
        for returned in [
            json!(null),
            json!("true"),
            json!([true]),
            json!({}),
            json!({"reason": "good"}),
            json!({"pass": "yes"}),
            json!({"score": "0.5"}),
            json!({"pass": true, "scores": [1]}),
            json!({"pass": true, "scores": {"a": "b"}}),
        ] {
            assert!(Scored::read(&returned, None).is_err(), "{returned}");
        }
    }
}
