//! Assertions about calls of tools: from the words of a file to checks.

use serde_json::Value;

use super::Context;
use crate::{
    check::{Test, ToolTest, WantedCall, known_fields},
    compile::Compiler,
};

impl Context<'_> {
    pub(super) fn called(&mut self, compiler: &mut Compiler<'_>) -> Option<Test> {
        Some(Test::Tools(ToolTest::Called(self.wanted_calls(compiler)?)))
    }

    /// Calls that are looked for: one, or a list.
    fn wanted_calls(&mut self, compiler: &mut Compiler<'_>) -> Option<Vec<WantedCall>> {
        match &self.assertion.value {
            Some(Value::Array(items)) if !items.is_empty() => self.calls_of(items, compiler),
            Some(one @ (Value::String(_) | Value::Object(_))) => {
                self.calls_of(std::slice::from_ref(one), compiler)
            }
            Some(_) | None => {
                self.wrong("the name of a tool, a table with `name`, or a list of these")
            }
        }
    }

    fn calls_of(
        &mut self,
        items: &[Value],
        compiler: &mut Compiler<'_>,
    ) -> Option<Vec<WantedCall>> {
        let calls: Result<_, _> = items.iter().map(|it| WantedCall::of(it, compiler)).collect();
        calls.map_or_else(|why| self.problem("value", "bad-assertion", why), Some)
    }

    /// A list of calls, or a table with `calls` and maybe `exact`.
    pub(super) fn in_order(&mut self, compiler: &mut Compiler<'_>) -> Option<Test> {
        const WANTED: &str = "a list of calls, or a table with `calls` and maybe `exact`";
        let (items, exact) = match &self.assertion.value {
            Some(Value::Array(items)) => (items, false),
            Some(Value::Object(fields)) => {
                if let Err(why) = known_fields(fields.keys(), &["calls", "exact"]) {
                    return self.problem("value", "bad-assertion", why);
                }
                let exact = fields.get("exact").map_or(Some(false), Value::as_bool);
                match (fields.get("calls").and_then(Value::as_array), exact) {
                    (Some(items), Some(exact)) => (items, exact),
                    (Some(_) | None, Some(_) | None) => return self.wrong(WANTED),
                }
            }
            Some(_) | None => return self.wrong(WANTED),
        };
        // Nothing in order says something only where nothing else may be called.
        if items.is_empty() && !exact {
            return self.wrong(WANTED);
        }
        let wanted = self.calls_of(items, compiler)?;
        Some(Test::Tools(ToolTest::InOrder { wanted, exact }))
    }

    pub(super) fn tool_count(&mut self) -> Option<Test> {
        let name = match &self.assertion.value {
            Some(Value::Object(fields)) => {
                if let Err(why) = known_fields(fields.keys(), &["name", "min", "max"]) {
                    return self.problem("value", "bad-assertion", why);
                }
                match fields.get("name") {
                    None => None,
                    Some(Value::String(name)) => Some(name.clone()),
                    Some(_) => return self.wrong("a table whose `name` is a text"),
                }
            }
            Some(_) | None => None,
        };
        let (least, most) = self.range()?;
        Some(Test::Tools(ToolTest::Count { name, least, most }))
    }

    /// A list of names; one text is a list with commas between them.
    pub(super) fn tool_f1(&mut self) -> Option<Test> {
        let names = match &self.assertion.value {
            Some(Value::String(text)) => text.split(',').map(|it| it.trim().to_owned()).collect(),
            Some(Value::Array(items)) => {
                let name = |it: &Value| it.as_str().map(|it| it.trim().to_owned());
                items.iter().map(name).collect::<Option<Vec<_>>>().unwrap_or_default()
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
                Vec::new()
            }
        };
        if names.is_empty() || names.iter().any(String::is_empty) {
            return self.wrong("a list of names of tools");
        }
        let least = self.share(1.0)?;
        Some(Test::Tools(ToolTest::F1 { wanted: names.into_iter().collect(), least }))
    }

    pub(super) fn valid_calls(&mut self, compiler: &mut Compiler<'_>) -> Option<Test> {
        if self.assertion.value.is_some() {
            return self.wrong("left out: the tools are those of the case");
        }
        let tools = compiler.tools();
        match ToolTest::valid(&tools, compiler) {
            Ok(test) => Some(Test::Tools(test)),
            Err(why) => self.problem("type", "bad-assertion", why),
        }
    }
}
