//! Which tools a model called, with which arguments, in which order, and how often.

mod named;

use std::{collections::BTreeSet, sync::Arc};

use probity_core::{
    difference::Difference,
    request::{Tool, ToolCall},
};
use serde_json::Value;

use super::Checked;
use crate::{
    compile::Compiler,
    difference::{Extra, json_difference},
    excerpt::excerpt,
    schema::{Held, Schema},
};

/// Calls that a reason names.
const NAMED: usize = 8;

/// What is asked about the calls of a conversation.
#[derive(Clone, Debug)]
pub(crate) enum ToolTest {
    /// Each of these is called.
    Called(Vec<WantedCall>),
    /// These are called in this order; with `exact`, nothing else is.
    InOrder { wanted: Vec<WantedCall>, exact: bool },
    /// So many calls, of one tool or of all.
    Count { name: Option<String>, least: usize, most: usize },
    /// The tools that are called are these, by F1 of their names.
    F1 { wanted: BTreeSet<String>, least: f64 },
    /// Every call is one that the tools of the case take, and there is one.
    Valid(Vec<(String, Arc<Schema>)>),
}

/// A call that is looked for.
#[derive(Clone, Debug)]
pub(crate) struct WantedCall {
    name: String,
    /// Arguments that it has, among others.
    arguments: Option<Value>,
    /// What its arguments satisfy.
    schema: Option<Arc<Schema>>,
}

/// What a call is to one that is looked for.
enum Fit {
    Fits,
    /// It is one of another tool.
    Other,
    /// Its arguments are others, and how.
    Differs(String),
    /// Nobody can say, and why.
    Unknown(String),
}

impl WantedCall {
    /// A name, or a table with `name` and maybe `arguments` and `schema`.
    pub(crate) fn of(value: &Value, compiler: &mut Compiler<'_>) -> Result<Self, String> {
        let fields = match value {
            Value::String(name) => {
                return Ok(Self { name: name.clone(), arguments: None, schema: None });
            }
            Value::Object(fields) => fields,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                return Err("a call is the name of a tool, or a table with `name`".to_owned());
            }
        };
        known_fields(fields.keys(), &["name", "arguments", "schema"])?;
        let Some(Value::String(name)) = fields.get("name") else {
            return Err("a call needs the `name` of a tool".to_owned());
        };
        let arguments = match fields.get("arguments") {
            None | Some(Value::Object(_)) => fields.get("arguments").cloned(),
            Some(_) => return Err("`arguments` of a call must be a table".to_owned()),
        };
        let schema = fields.get("schema").map(|it| compiler.schema(it)).transpose()?;
        Ok(Self { name: name.clone(), arguments, schema })
    }

    fn fit(&self, call: &ToolCall) -> Fit {
        if call.name != self.name {
            return Fit::Other;
        }
        let difference = self.arguments.as_ref();
        let difference =
            difference.and_then(|it| json_difference(it, &call.arguments, Extra::Allowed));
        if let Some(difference) = difference {
            return Fit::Differs(Difference::Json(difference).to_string());
        }
        match self.schema.as_ref().map(|it| it.hold(&call.arguments)) {
            None | Some(Held::Valid) => Fit::Fits,
            Some(Held::Invalid(why)) => Fit::Differs(why),
            Some(Held::Unknown(why)) => Fit::Unknown(why),
        }
    }

    /// As it is shown in reasons.
    fn shown(&self) -> String {
        match &self.arguments {
            Some(arguments) => {
                format!("`{}` with {}", self.name, excerpt(&arguments.to_string(), 0))
            }
            None => format!("`{}`", self.name),
        }
    }
}

impl ToolTest {
    /// The tools that calls have to be of.
    pub(crate) fn valid(tools: &[Tool], compiler: &mut Compiler<'_>) -> Result<Self, String> {
        if tools.is_empty() {
            return Err("the case has no `tools` that a call could be of".to_owned());
        }
        let schemas = tools.iter().map(|tool| {
            let schema = compiler.schema(&tool.parameters);
            let bad = |why| format!("the parameters of tool `{}` are no schema: {why}", tool.name);
            Ok((tool.name.clone(), schema.map_err(bad)?))
        });
        Ok(Self::Valid(schemas.collect::<Result<_, String>>()?))
    }

    pub(super) fn check(&self, calls: &[&ToolCall], text: &str) -> Checked {
        let checked = match self {
            Self::Called(wanted) => called(wanted, calls),
            Self::InOrder { wanted, exact } => in_order(wanted, *exact, calls),
            Self::Count { name, least, most } => {
                let of = |it: &&&ToolCall| name.as_ref().is_none_or(|name| it.name == *name);
                let count = calls.iter().filter(of).count();
                Checked::of((*least..=*most).contains(&count), || {
                    let many = if count == 1 { "call" } else { "calls" };
                    let of = name.as_ref().map(|it| format!(" of `{it}`")).unwrap_or_default();
                    format!("{count} {many}{of}; {}", shown(calls))
                })
            }
            Self::F1 { wanted, least } => f1(wanted, *least, calls, text),
            Self::Valid(tools) => valid(tools, calls),
        };
        match checked.reason {
            Some(_) => checked,
            None => Checked { reason: Some(shown(calls)), ..checked },
        }
    }
}

/// Says which of the names is not known.
pub(crate) fn known_fields<'a>(
    names: impl Iterator<Item = &'a String>,
    known: &[&str],
) -> Result<(), String> {
    for name in names {
        if !known.contains(&name.as_str()) {
            return Err(format!(
                "`{name}` is not a field of it; there are `{}`",
                known.join("`, `")
            ));
        }
    }
    Ok(())
}

fn called(wanted: &[WantedCall], calls: &[&ToolCall]) -> Checked {
    for wanted in wanted {
        let (mut near, mut unknown, mut found) = (None, None, false);
        for call in calls {
            match wanted.fit(call) {
                Fit::Fits => found = true,
                Fit::Other => {}
                Fit::Differs(why) => near = Some(why),
                Fit::Unknown(why) => unknown = Some(why),
            }
        }
        match (found, unknown, near) {
            (true, _, _) => {}
            (false, Some(why), _) => return Checked::unjudged(why),
            (false, None, near) => {
                let near = near.map(|why| format!(" ({why})")).unwrap_or_default();
                let reason = format!("no call of {}{near}; {}", wanted.shown(), shown(calls));
                return Checked::fails(reason);
            }
        }
    }
    Checked::holds()
}

/// The first call that fits is taken for each, which finds an order if there is one.
fn in_order(wanted: &[WantedCall], exact: bool, calls: &[&ToolCall]) -> Checked {
    let mut left = wanted.iter();
    let mut next = left.next();
    for call in calls {
        match next.map(|it| it.fit(call)) {
            Some(Fit::Fits) => next = left.next(),
            Some(Fit::Unknown(why)) => return Checked::unjudged(why),
            Some(Fit::Other | Fit::Differs(_)) | None if exact => {
                let there = match next {
                    Some(wanted) => format!("in place of {}", wanted.shown()),
                    None => "at the end".to_owned(),
                };
                let reason = format!("`{}` is called {there}; {}", call.name, shown(calls));
                return Checked::fails(reason);
            }
            Some(Fit::Other | Fit::Differs(_)) | None => {}
        }
    }
    match next {
        None => Checked::holds(),
        Some(missing) => {
            let place = wanted.len() - left.len();
            let reason =
                format!("call {place}, of {}, is missing; {}", missing.shown(), shown(calls));
            Checked::fails(reason)
        }
    }
}

/// How well the names of the tools that are called fit, whatever their order and number. Without a recorded
/// call, those count that stand in the text.
fn f1(wanted: &BTreeSet<String>, least: f64, calls: &[&ToolCall], text: &str) -> Checked {
    let mut called: BTreeSet<String> = calls.iter().map(|it| it.name.clone()).collect();
    if called.is_empty() {
        called = named::names_in(text);
    }
    let same = wanted.intersection(&called).count();
    #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 tools")]
    let value = 2.0 * same as f64 / (wanted.len() + called.len()) as f64;
    let passed = value + 1e-9 >= least;
    let listed = |names: &BTreeSet<String>| match names.is_empty() {
        true => "none".to_owned(),
        false => names.iter().map(|it| excerpt(it, 0)).collect::<Vec<_>>().join(", "),
    };
    let reason = format!(
        "F1 of the tools is {value:.3}: expected {}; called {}",
        listed(wanted),
        listed(&called)
    );
    Checked { value: Some(value), passed, reason: Some(reason), ..Checked::holds() }
}

fn valid(tools: &[(String, Arc<Schema>)], calls: &[&ToolCall]) -> Checked {
    if calls.is_empty() {
        return Checked::fails(shown(calls));
    }
    for call in calls {
        let Some((_, schema)) = tools.iter().find(|(name, _)| *name == call.name) else {
            let reason = format!("there is no tool `{}`; {}", excerpt(&call.name, 0), shown(calls));
            return Checked::fails(reason);
        };
        if call.arguments.is_string() {
            let arguments = excerpt(call.arguments.as_str().unwrap_or(""), 0);
            let reason = format!("the arguments of `{}` are not JSON: `{arguments}`", call.name);
            return Checked::fails(reason);
        }
        match schema.hold(&call.arguments) {
            Held::Valid => {}
            Held::Invalid(why) => {
                return Checked::fails(format!("`{}`: {why}; {}", call.name, shown(calls)));
            }
            Held::Unknown(why) => return Checked::unjudged(why),
        }
    }
    Checked::holds()
}

/// The calls that there were.
fn shown(calls: &[&ToolCall]) -> String {
    if calls.is_empty() {
        return "no tool was called".to_owned();
    }
    let call = |it: &&ToolCall| {
        format!("{}({})", excerpt(&it.name, 0), excerpt(&it.arguments.to_string(), 0))
    };
    let mut all: Vec<String> = calls.iter().take(NAMED).map(call).collect();
    if calls.len() > NAMED {
        all.push(format!("and {} more", calls.len() - NAMED));
    }
    format!("called: {}", all.join(", "))
}
