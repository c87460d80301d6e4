//! Templates of tools that are written in Python: methods of Python's texts, lists and tables, and values
//! that are written as Python writes them. The bounds are the same.

use std::sync::LazyLock;

use minijinja::{
    Environment, Error, ErrorKind, State,
    value::{Value, ValueKind},
};

use super::engine::{self, items, size, spend};

/// The engine, ready to be cloned for one template with `steps` of fuel.
pub(super) fn engine(steps: u64, allowance: u64) -> Environment<'static> {
    engine::allow(allowance);
    let mut engine = ENGINE.clone();
    engine.set_fuel(Some(steps));
    engine
}

static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = engine::ENGINE.clone();
    engine.set_formatter(|output, state, value| {
        if value.is_undefined() {
            return Err(ErrorKind::UndefinedError.into());
        }
        if value.as_str().is_some() {
            return minijinja::escape_formatter(output, state, value);
        }
        spend(size(value))?;
        output.write_str(&repr(value)?).map_err(|_| ErrorKind::WriteFailure.into())
    });
    engine.set_unknown_method_callback(method);
    engine
});

/// A value as `str()` writes it.
fn written(value: &Value) -> Result<String, Error> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => repr(value),
    }
}

/// A value as `repr()` writes it.
fn repr(value: &Value) -> Result<String, Error> {
    Ok(match value.kind() {
        ValueKind::None | ValueKind::Undefined => "None".to_owned(),
        ValueKind::Bool => if value.is_true() { "True" } else { "False" }.to_owned(),
        ValueKind::String => quoted(value.as_str().unwrap_or_default()),
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<String> = items(value).map(|it| repr(&it)).collect::<Result<_, _>>()?;
            format!("[{}]", items.join(", "))
        }
        ValueKind::Map => {
            let entry = |key: &Value| -> Result<String, Error> {
                let inner = value.get_item(key).unwrap_or_default();
                Ok(format!("{}: {}", repr(key)?, repr(&inner)?))
            };
            let entries = items(value).map(|it| entry(&it)).collect::<Result<Vec<String>, _>>()?;
            format!("{{{}}}", entries.join(", "))
        }
        ValueKind::Number | ValueKind::Bytes | ValueKind::Plain | ValueKind::Invalid | _ => {
            value.to_string()
        }
    })
}

/// More arguments than are heeded would mean something else.
fn at_most(count: usize, args: &[Value]) -> Result<(), Error> {
    match args.len() <= count {
        true => Ok(()),
        false => Err(ErrorKind::TooManyArguments.into()),
    }
}

fn quoted(text: &str) -> String {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut quoted = String::from(mark);
    for c in text.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\\' => quoted.push_str("\\\\"),
            c if c == mark => quoted.extend(['\\', c]),
            c => quoted.push(c),
        }
    }
    quoted.push(mark);
    quoted
}

fn method(
    _: &mut State<'_, '_>,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    spend(size(value).saturating_add(args.iter().map(size).fold(0, u64::saturating_add)))?;
    let found = match (value.as_str(), value.kind()) {
        (Some(text), _) => of_text(text, name, args)?,
        (None, ValueKind::Map) => of_table(value, name, args)?,
        (None, ValueKind::Seq | ValueKind::Iterable) => of_list(value, name, args)?,
        (None, _) => None,
    };
    found.ok_or_else(|| {
        let reason = format!("there is no method `{name}`");
        Error::new(ErrorKind::UnknownMethod, reason)
    })
}

fn text_at(args: &[Value], at: usize) -> Option<&str> {
    args.get(at).and_then(Value::as_str)
}

fn of_text(text: &str, name: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let stripped = |c: char| match text_at(args, 0) {
        Some(chars) => chars.contains(c),
        None => c.is_whitespace(),
    };
    let first = || text_at(args, 0).ok_or_else(|| Error::from(ErrorKind::MissingArgument));
    let heeded = match name {
        "replace" => 3,
        "split" | "rsplit" => 2,
        "lower" | "casefold" | "upper" | "capitalize" | "title" | "isdigit" | "isupper"
        | "islower" | "splitlines" => 0,
        _ => 1,
    };
    at_most(heeded, args)?;
    Ok(Some(match name {
        "strip" => Value::from(text.trim_matches(stripped)),
        "lstrip" => Value::from(text.trim_start_matches(stripped)),
        "rstrip" => Value::from(text.trim_end_matches(stripped)),
        "lower" | "casefold" => Value::from(text.to_lowercase()),
        "upper" => Value::from(text.to_uppercase()),
        "capitalize" => Value::from(capitalized(text)),
        "title" => Value::from(titled(text)),
        "startswith" => Value::from(text.starts_with(first()?)),
        "endswith" => Value::from(text.ends_with(first()?)),
        "removeprefix" => Value::from(text.strip_prefix(first()?).unwrap_or(text)),
        "removesuffix" => Value::from(text.strip_suffix(first()?).unwrap_or(text)),
        "isdigit" => Value::from(!text.is_empty() && text.chars().all(char::is_numeric)),
        "isupper" => Value::from(is_all(text, char::is_uppercase)),
        "islower" => Value::from(is_all(text, char::is_lowercase)),
        "count" => Value::from(text.matches(first()?).count()),
        "find" => Value::from(place(text, first()?).unwrap_or(-1)),
        "index" => Value::from(place(text, first()?).ok_or_else(|| absent(first()))?),
        "replace" => {
            let (from, to) = (first()?, text_at(args, 1).unwrap_or_default());
            let found = text.matches(from).count() as u64;
            spend(found.saturating_mul(to.len() as u64))?;
            match args.get(2).and_then(Value::as_usize) {
                Some(most) => Value::from(text.replacen(from, to, most)),
                None => Value::from(text.replace(from, to)),
            }
        }
        "split" => split(text, args)?,
        "rsplit" => rsplit(text, args)?,
        "splitlines" => text.lines().map(Value::from).collect(),
        "join" => {
            let list = args.first().ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
            let parts: Vec<String> =
                items(list).map(|it| written(&it)).collect::<Result<_, _>>()?;
            spend((parts.len() as u64).saturating_mul(text.len() as u64))?;
            Value::from(parts.join(text))
        }
        _ => return Ok(None),
    }))
}

/// The place of a text in another, in characters.
fn place(text: &str, part: &str) -> Option<i64> {
    let at = text.find(part)?;
    i64::try_from(text[..at].chars().count()).ok()
}

fn absent(wanted: Result<&str, Error>) -> Error {
    let reason = format!("`{}` is not in it", wanted.unwrap_or_default());
    Error::new(ErrorKind::InvalidOperation, reason)
}

fn is_all(text: &str, is: fn(char) -> bool) -> bool {
    let mut letters = text.chars().filter(|it| it.is_alphabetic()).peekable();
    letters.peek().is_some() && letters.all(is)
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|it| it.to_uppercase().to_string()).unwrap_or_default();
    first + &chars.as_str().to_lowercase()
}

fn titled(text: &str) -> String {
    let mut after_letter = false;
    let mut titled = String::with_capacity(text.len());
    for c in text.chars() {
        match after_letter {
            true => titled.extend(c.to_lowercase()),
            false => titled.extend(c.to_uppercase()),
        }
        after_letter = c.is_alphabetic();
    }
    titled
}

fn split(text: &str, args: &[Value]) -> Result<Value, Error> {
    let most = args.get(1).and_then(Value::as_usize);
    Ok(match (separator(args)?, most) {
        (Some(mark), None) => text.split(mark).map(Value::from).collect(),
        (Some(mark), Some(most)) => {
            text.splitn(most.saturating_add(1), mark).map(Value::from).collect()
        }
        (None, None) => text.split_whitespace().map(Value::from).collect(),
        (None, Some(most)) => {
            let (mut parts, mut rest) = (Vec::new(), text.trim_start());
            while parts.len() < most
                && let Some((part, after)) = rest.split_once(char::is_whitespace)
            {
                parts.push(part);
                rest = after.trim_start();
            }
            let rest = if parts.len() < most { rest.trim_end() } else { rest };
            parts.extend(Some(rest).filter(|it| !it.is_empty()));
            parts.into_iter().map(Value::from).collect()
        }
    })
}

fn rsplit(text: &str, args: &[Value]) -> Result<Value, Error> {
    let most = args.get(1).and_then(Value::as_usize).unwrap_or(usize::MAX - 1);
    let Some(mark) = separator(args)? else {
        let (mut parts, mut rest) = (Vec::new(), text.trim_end());
        while parts.len() < most
            && let Some((before, part)) = rest.rsplit_once(char::is_whitespace)
        {
            parts.push(part);
            rest = before.trim_end();
        }
        let rest = if parts.len() < most { rest.trim_start() } else { rest };
        parts.extend(Some(rest).filter(|it| !it.is_empty()));
        return Ok(parts.into_iter().rev().map(Value::from).collect());
    };
    let mut parts: Vec<&str> = text.rsplitn(most.saturating_add(1), mark).collect();
    parts.reverse();
    Ok(parts.into_iter().map(Value::from).collect())
}

/// What a text is split at; none for blanks.
fn separator(args: &[Value]) -> Result<Option<&str>, Error> {
    match args.first() {
        None => Ok(None),
        Some(value) if value.is_none() => Ok(None),
        Some(value) => match value.as_str().filter(|it| !it.is_empty()) {
            Some(mark) => Ok(Some(mark)),
            None => Err(Error::new(ErrorKind::InvalidOperation, "a text is split at a text")),
        },
    }
}

fn of_list(value: &Value, name: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let Some(wanted) = args.first() else { return Ok(None) };
    at_most(1, args)?;
    Ok(match name {
        "index" => {
            let at = items(value).position(|it| it == *wanted);
            let Some(at) = at else {
                let reason = format!("{} is not in the list", repr(wanted)?);
                return Err(Error::new(ErrorKind::InvalidOperation, reason));
            };
            Some(Value::from(at))
        }
        "count" => Some(Value::from(items(value).filter(|it| it == wanted).count())),
        _ => None,
    })
}

fn of_table(value: &Value, name: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let inner = |key: &Value| value.get_item(key).ok().filter(|it| !it.is_undefined());
    at_most(if name == "get" { 2 } else { 0 }, args)?;
    Ok(match name {
        "keys" => Some(items(value).collect()),
        "values" => Some(items(value).filter_map(|it| inner(&it)).collect()),
        "items" => {
            let pair = |key: Value| Value::from(vec![key.clone(), inner(&key).unwrap_or_default()]);
            Some(items(value).map(pair).collect())
        }
        "get" => {
            let found = args.first().and_then(inner);
            Some(found.or_else(|| args.get(1).cloned()).unwrap_or(Value::from(())))
        }
        _ => None,
    })
}
