//! The template engine with its filters and functions bounded.
//!
//! Every filter that makes text or lists pays for it from an allowance, before it makes them.

use std::{cell::Cell, sync::LazyLock};

use minijinja::{
    Environment, Error, ErrorKind, State, UndefinedBehavior, filters,
    syntax::SyntaxConfig,
    value::{Rest, Value, ValueKind},
};

use super::LARGEST_RANGE;
use crate::case::did_you_mean;

thread_local! {
    /// Bytes that the filters of the template that is being filled in may still make.
    static ALLOWANCE: Cell<u64> = const { Cell::new(0) };
}

/// What an item of a list counts for, in bytes.
const ITEM: u64 = 16;

/// What a filter pays for.
#[derive(Clone, Copy)]
enum Cost {
    /// Nothing: it hands on what is there.
    Free,
    /// The size of its arguments.
    Linear,
    Indent,
    Join,
    /// JSON text: characters may be escaped, and lines indented.
    Json,
    Replace,
    Sum,
}

/// The engine, ready to be cloned for one template with `steps` of fuel.
pub(super) fn engine(steps: u64, allowance: u64) -> Environment<'static> {
    allow(allowance);
    let mut engine = ENGINE.clone();
    engine.set_fuel(Some(steps));
    engine
}

/// Says how many bytes filters may make.
pub(super) fn allow(allowance: u64) {
    ALLOWANCE.set(allowance);
}

/// A sentence about a filter that there is not.
pub(super) fn missing_filter(name: &str) -> Option<String> {
    let known: Vec<&str> = FILTERS.iter().map(|(name, _, _)| *name).collect();
    missing(name, "filter", &known)
}

/// A sentence about a test that there is not.
pub(super) fn missing_test(name: &str) -> Option<String> {
    missing(name, "test", TESTS)
}

fn missing(name: &str, what: &str, known: &[&str]) -> Option<String> {
    if known.contains(&name) {
        return None;
    }
    let meant = did_you_mean(name, known).map(|it| format!(" ({it})")).unwrap_or_default();
    Some(format!("there is no {what} `{name}`{meant}"))
}

pub(super) static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .keep_trailing_newline(true)
        .build()
        .expect("the default delimiters are valid");
    engine.set_syntax(syntax);
    // The engine would write the word `none`.
    engine.set_formatter(|output, state, value| match value.is_none() {
        true => Err(ErrorKind::UndefinedError.into()),
        false => minijinja::escape_formatter(output, state, value),
    });
    for (name, filter, cost) in FILTERS.iter() {
        engine.add_filter(*name, move |state: &mut State, args: Rest<Value>| {
            pay(*cost, &args)?;
            filter.call(state, &args)
        });
    }
    for name in ["batch", "chain", "format", "pprint", "slice", "zip"] {
        engine.remove_filter(name);
    }
    // What a namespace holds outlives a turn of its loop, and can grow in each of them.
    for name in ["debug", "namespace"] {
        engine.remove_global(name);
    }
    engine.add_function("range", range);
    engine
});

type Filter = (&'static str, Value, Cost);

static FILTERS: LazyLock<Vec<Filter>> = LazyLock::new(|| {
    use Cost::{Free, Indent, Join, Json, Linear, Replace, Sum};
    vec![
        ("abs", Value::from_function(filters::abs), Free),
        ("attr", Value::from_function(filters::attr), Free),
        ("bool", Value::from_function(filters::bool), Free),
        ("capitalize", Value::from_function(filters::capitalize), Linear),
        ("count", Value::from_function(filters::length), Linear),
        ("d", Value::from_function(filters::default), Free),
        ("default", Value::from_function(filters::default), Free),
        ("dictsort", Value::from_function(filters::dictsort), Linear),
        ("dump", Value::from_function(to_json), Json),
        ("e", Value::from_function(filters::escape), Linear),
        ("escape", Value::from_function(filters::escape), Linear),
        ("first", Value::from_function(filters::first), Free),
        ("float", Value::from_function(filters::float), Free),
        ("groupby", Value::from_function(filters::groupby), Linear),
        ("indent", Value::from_function(filters::indent), Indent),
        ("int", Value::from_function(filters::int), Free),
        ("items", Value::from_function(filters::items), Linear),
        ("join", Value::from_function(filters::join), Join),
        ("last", Value::from_function(filters::last), Linear),
        ("length", Value::from_function(filters::length), Linear),
        ("lines", Value::from_function(filters::lines), Linear),
        ("list", Value::from_function(filters::list), Linear),
        ("load", Value::from_function(load), Linear),
        ("lower", Value::from_function(filters::lower), Linear),
        ("map", Value::from_function(filters::map), Linear),
        ("max", Value::from_function(filters::max), Linear),
        ("min", Value::from_function(filters::min), Linear),
        ("reject", Value::from_function(filters::reject), Linear),
        ("rejectattr", Value::from_function(filters::rejectattr), Linear),
        ("replace", Value::from_function(filters::replace), Replace),
        ("reverse", Value::from_function(filters::reverse), Linear),
        ("round", Value::from_function(filters::round), Free),
        ("safe", Value::from_function(filters::safe), Linear),
        ("select", Value::from_function(filters::select), Linear),
        ("selectattr", Value::from_function(filters::selectattr), Linear),
        ("sort", Value::from_function(filters::sort), Linear),
        ("split", Value::from_function(filters::split), Linear),
        ("string", Value::from_function(filters::string), Linear),
        ("sum", Value::from_function(filters::sum), Sum),
        ("tojson", Value::from_function(to_json), Json),
        ("title", Value::from_function(filters::title), Linear),
        ("trim", Value::from_function(filters::trim), Linear),
        ("unique", Value::from_function(filters::unique), Linear),
        ("upper", Value::from_function(filters::upper), Linear),
        ("wordcount", Value::from_function(word_count), Linear),
    ]
});

const TESTS: &[&str] = &[
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "safe",
    "sameas",
    "sequence",
    "startingwith",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
];

/// Takes what a filter is going to make from the allowance.
fn pay(cost: Cost, args: &[Value]) -> Result<(), Error> {
    let Some(value) = args.first() else { return Ok(()) };
    let all = || args.iter().map(size).fold(0, u64::saturating_add);
    let text = |at: usize| args.get(at).and_then(Value::as_str).unwrap_or("");
    let price = match cost {
        Cost::Free => 0,
        Cost::Linear => all(),
        Cost::Indent => {
            let named = args.iter().filter_map(|it| it.get_attr("width").ok());
            let widths = args.iter().skip(1).cloned().chain(named);
            let width = widths.filter_map(|it| u64::try_from(it).ok()).max().unwrap_or(4);
            let lines = text(0).lines().count() as u64 + 1;
            all().saturating_add(lines.saturating_mul(width))
        }
        Cost::Json => {
            let indent = args.iter().skip(1).filter_map(|it| u64::try_from(it.clone()).ok()).max();
            all().saturating_mul(6 + indent.unwrap_or(0).min(MOST_INDENT as u64))
        }
        Cost::Join => {
            let count = value.len().unwrap_or_default() as u64;
            let between = args.iter().skip(1).map(size).fold(0, u64::saturating_add);
            all().saturating_add(count.saturating_mul(between))
        }
        Cost::Replace => {
            let found = text(0).matches(text(1)).count() as u64;
            all().saturating_add(found.saturating_mul(text(2).len() as u64))
        }
        Cost::Sum if items(value).all(|it| it.kind() == ValueKind::Number) => all(),
        // Texts are joined one by one, each time from the beginning.
        Cost::Sum => all().saturating_mul(value.len().unwrap_or(1) as u64 / ITEM + 1),
    };
    spend(price)
}

pub(super) fn spend(bytes: u64) -> Result<(), Error> {
    match ALLOWANCE.get().checked_sub(bytes) {
        Some(left) => {
            ALLOWANCE.set(left);
            Ok(())
        }
        None => {
            let reason = "its filters and ranges produce more text than a template is allowed";
            Err(Error::new(ErrorKind::InvalidOperation, reason))
        }
    }
}

/// About how many bytes a value is; no more is counted than could still be paid.
pub(super) fn size(value: &Value) -> u64 {
    let most = ALLOWANCE.get();
    let mut waiting = vec![value.clone()];
    let mut bytes = 0_u64;
    while let Some(value) = waiting.pop() {
        bytes = bytes.saturating_add(value.as_str().map_or(ITEM, |it| it.len() as u64));
        if bytes > most {
            return u64::MAX;
        }
        for item in items(&value) {
            bytes = bytes.saturating_add(ITEM);
            if bytes > most {
                return u64::MAX;
            }
            if value.kind() == ValueKind::Map
                && let Ok(inner) = value.get_item(&item)
            {
                waiting.push(inner);
            }
            waiting.push(item);
        }
    }
    bytes
}

/// The items of a list or the keys of a table; nothing for any other value.
pub(super) fn items(value: &Value) -> impl Iterator<Item = Value> {
    let is_list = matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map);
    is_list.then(|| value.try_iter().ok()).flatten().into_iter().flatten()
}

/// The widest indentation of JSON.
const MOST_INDENT: usize = 8;

/// A value as JSON, in one line or with its lines indented.
fn to_json(value: &Value, indent: Option<&Value>) -> Result<String, Error> {
    let width = match indent.map(|it| (usize::try_from(it.clone()), it.is_true())) {
        None => None,
        Some((Ok(width), _)) => Some(width.min(MOST_INDENT)).filter(|it| *it > 0),
        Some((Err(_), is_true)) => is_true.then_some(2),
    };
    let refused = |error: serde_json::Error| {
        Error::new(ErrorKind::InvalidOperation, format!("it cannot be written as JSON: {error}"))
    };
    let value = from_engine(value);
    let Some(width) = width else { return Ok(value.to_string()) };
    let blanks = [b' '; MOST_INDENT];
    let formatter = serde_json::ser::PrettyFormatter::with_indent(&blanks[..width]);
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, formatter);
    serde::Serialize::serialize(&value, &mut serializer).map_err(refused)?;
    String::from_utf8(text).map_err(|_| ErrorKind::InvalidOperation.into())
}

/// A value of the engine as JSON; what JSON has no word for is text.
fn from_engine(value: &Value) -> serde_json::Value {
    use serde_json::Value as Json;
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Json::Null,
        ValueKind::Bool => Json::Bool(value.is_true()),
        ValueKind::Number => match (i64::try_from(value.clone()), f64::try_from(value.clone())) {
            (Ok(number), _) if value.is_integer() => Json::from(number),
            (_, Ok(number)) => Json::from(number),
            (_, Err(_)) => Json::from(value.to_string()),
        },
        ValueKind::Seq | ValueKind::Iterable => items(value).map(|it| from_engine(&it)).collect(),
        ValueKind::Map => {
            let entry = |key: Value| {
                let value = value.get_item(&key).unwrap_or_default();
                (key.to_string(), from_engine(&value))
            };
            Json::Object(items(value).map(entry).collect())
        }
        ValueKind::String | ValueKind::Bytes | ValueKind::Plain | ValueKind::Invalid | _ => {
            Json::from(value.to_string())
        }
    }
}

/// The value that a text is as JSON.
fn load(text: &str) -> Result<Value, Error> {
    let read = probity_core::json::parse(text, &probity_core::json::Limits::default());
    read.map(|it| super::to_engine(&it.value)).map_err(|error| {
        Error::new(ErrorKind::InvalidOperation, format!("the text is not JSON: {error}"))
    })
}

fn word_count(text: &str) -> usize {
    text.split_whitespace().count()
}

/// The engine's own ranges end at a hundred thousand, and can be gone through again and again.
fn range(lower: i64, upper: Option<i64>, step: Option<i64>) -> Result<Value, Error> {
    let (start, end) = upper.map_or((0, lower), |upper| (lower, upper));
    let step = step.unwrap_or(1);
    let refused = |reason: String| Error::new(ErrorKind::InvalidOperation, reason);
    if step == 0 {
        return Err(refused("the step of a range must not be 0".to_owned()));
    }
    let distance = match step > 0 {
        true => i128::from(end) - i128::from(start),
        false => i128::from(start) - i128::from(end),
    };
    let width = i128::from(step.unsigned_abs());
    let count = u64::try_from((distance.max(0) + width - 1) / width).unwrap_or(u64::MAX);
    if count > LARGEST_RANGE {
        return Err(refused(format!("a range has more than {LARGEST_RANGE} numbers")));
    }
    spend(count)?;
    let numbers = (0..count).scan(start, |next, _| {
        let number = *next;
        *next = next.saturating_add(step);
        Some(Value::from(number))
    });
    Ok(numbers.collect::<Vec<Value>>().into())
}
