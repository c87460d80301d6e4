//! What is run or filled in: templates, scripts, schemas, and the criteria of cases.

use std::{collections::BTreeMap, path::Path, sync::LazyLock, time::Duration};

use probity_core::run_result::RunResult;
use probity_grade::{Compiler, Rules, classify};
use probity_load::{
    dataset::{Format, Item, read_bytes},
    template as templates,
};
use probity_model::grammar;
use probity_script::{Limits, Script, ScriptError};
use serde_json::{Value, json};

use crate::input::{BETWEEN, check, texts};

/// A template: what is refused cannot be rendered, what is made is bounded, the same twice.
pub fn template(bytes: &[u8]) {
    static VARS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
        let values = json!({
            "name": "Ada", "list": [1, "two", null, 4.5], "map": { "key": 3, "a b": [] }, "x": "y",
            "none": null, "yes": true, "long": "ab".repeat(200),
        });
        values.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect()
    });
    let text = String::from_utf8_lossy(bytes);
    let is_right = match templates::check(&text) {
        Ok(()) => true,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(error.span.is_none_or(|it| text.get(it).is_some()));
            false
        }
    };
    for render in [templates::render, templates::render_python] {
        match render(&text, &VARS) {
            Ok(made) => {
                assert!(is_right, "refused, and rendered");
                assert!(made.len() <= templates::LARGEST_RESULT, "{} bytes", made.len());
                assert_eq!(render(&text, &VARS).ok(), Some(made));
            }
            Err(error) => assert!(error.span.is_none_or(|it| text.get(it).is_some())),
        }
    }
    assert_eq!(templates::paths(&text).is_ok(), is_right);
}

/// JavaScript: the same twice, within its limits, and a problem is in one of its lines. The parts are the script and the output.
pub fn script(bytes: &[u8]) {
    let mut parts = texts(bytes);
    let (source, output) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let limits = Limits {
        million_steps: 1,
        time: Duration::from_secs(20),
        memory: 8 << 20,
        returned: 64 << 10,
    };
    let script = match Script::inline(&source) {
        Ok(script) => script,
        Err(problem) => {
            let lines = u32::try_from(source.lines().count()).unwrap_or(u32::MAX);
            assert!(problem.line.is_none_or(|it| it <= lines), "{problem:?}");
            return;
        }
    };
    let output = Value::from(&*output);
    let context = r#"{"vars":{"a":[1,2]},"prompt":"p"}"#;
    let run = || probity_script::run(&script, &output, context, &limits);
    match (run(), run()) {
        // What took too long or too much may do so elsewhere the next time.
        (Err(ScriptError::Time(_) | ScriptError::Unstoppable(_) | ScriptError::Memory(_)), _)
        | (_, Err(ScriptError::Time(_) | ScriptError::Unstoppable(_) | ScriptError::Memory(_))) => {
        }
        (Ok(one), Ok(other)) => {
            assert!(one.to_string().len() <= limits.returned);
            assert_eq!(one, other);
        }
        (one, other) => assert_eq!(format!("{one:?}"), format!("{other:?}")),
    }
}

/// A schema: the grammar that is made of it is one that the engine takes.
pub fn schema(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if grammar::check(&text).is_ok() {
        assert!(text.contains("::="));
    }
    let Ok(schema) = serde_json::from_str::<Value>(&text) else { return };
    if let Ok(grammar) = grammar::of_schema(&schema) {
        assert_eq!(grammar::check(&grammar), Ok(()), "{grammar}");
        assert_eq!(grammar::of_schema(&schema), Ok(grammar));
    }
}

/// A case with any criteria, and a reply: the same twice, and scores are finite. The parts are the case and the reply.
pub fn grade(bytes: &[u8]) {
    static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);
    let mut parts = bytes.split(|it| *it == BETWEEN);
    let case = parts.next().unwrap_or_default();
    let reply = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let mut cases = Vec::new();
    let sink = &mut |item| match item {
        Item::Problem(problem) => check(&problem),
        Item::Case(case) => cases.push(case.case),
    };
    read_bytes(Path::new("cases"), Format::Jsonl, case, &|_| Vec::new(), sink);
    for case in cases.iter().take(2) {
        let expectation = match Compiler::new(&RULES).compile(case) {
            Ok(expectation) => expectation,
            Err(problems) => {
                assert!(!problems.is_empty() && problems.iter().all(|it| !it.message.is_empty()));
                continue;
            }
        };
        let result = RunResult { raw_response: Some(&reply), ..RunResult::default() };
        let classification = classify(&expectation, &result);
        let again = classify(&expectation, &result);
        assert_eq!(classification, again);
        let _ = expectation.verdict(&classification);
        let values = classification.scores.iter().filter_map(|it| it.value);
        assert!(values.into_iter().all(f64::is_finite), "{classification:?}");
    }
}
