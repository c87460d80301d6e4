//! Prompts as templates.
//!
//! A text without `{{`, `{%` or `{#` is itself, which spares most prompts the engine. Templates come
//! from datasets, so nothing in one may end the program: how deep it nests, how many steps it takes
//! and how much text it makes are bounded, and what goes too far is an error like any other.

mod assertions;
mod engine;
mod env;
mod fill;
mod python;
mod scan;

use std::{borrow::Cow, collections::BTreeMap, ops::Range};

use minijinja::{ErrorKind, value::Value};
use probity_text::limited::Limited;

pub(crate) use assertions::{BadAssertion, fill_assertions, fill_keys, has_templates};
pub use env::{env_variables, names_only_env, texts_in};
pub use fill::{ARGUMENTS, BadMessage, fill_json, fill_messages, fill_result, fill_values};

/// Bytes of the longest text that a template may become.
pub const LARGEST_RESULT: usize = 16 << 20;
/// Steps that a template of ordinary size may take; one turn of a loop takes about six.
pub const MOST_STEPS: u64 = 1 << 17;
/// Operators and opening brackets in one tag.
pub const MOST_OPERATORS: usize = 100;
/// `elif` in one template.
pub const MOST_BRANCHES: usize = 100;
/// Numbers in one range.
pub const LARGEST_RANGE: u64 = 10_000;
/// The largest number that a text or a list may be multiplied with.
pub const LARGEST_FACTOR: u64 = 10_000;
/// Bytes that filters may make of nothing.
pub const FREE_BYTES: u64 = 64 << 10;
/// Bytes that filters may make of each byte of the template and its variables.
pub const BYTES_PER_BYTE: u64 = 8;

/// Bytes that all steps together may move, as far as can be known beforehand.
const MOVED_BYTES: u64 = 1 << 33;
/// Steps that every template may take.
const LEAST_STEPS: u64 = 20_000;
/// Bytes of the largest value that operators may make on the way.
const LARGEST_VALUE: u64 = 256 << 20;

/// Why a template cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}", self.in_its_line())]
pub struct TemplateError {
    /// One sentence, lower case, no final period.
    pub reason: String,
    /// The part of the template that it is about.
    pub span: Option<Range<usize>>,
    /// Whether a variable or an attribute has no value.
    pub is_undefined: bool,
    line: usize,
}

impl TemplateError {
    fn at(text: &str, span: Range<usize>, reason: String) -> Self {
        let line = text[..span.start].matches('\n').count() + 1;
        Self { reason, span: Some(span), is_undefined: false, line }
    }

    fn of(error: &minijinja::Error, text: &str) -> Self {
        let mut span =
            error.range().filter(|it| text.get(it.clone()).is_some_and(|it| !it.is_empty()));
        let is_undefined = error.kind() == ErrorKind::UndefinedError;
        // An attribute is known by the name before it.
        if let Some(span) = span.as_mut().filter(|it| text[it.start..].starts_with('.')) {
            let is_part = |it: char| it.is_alphanumeric() || it == '_' || it == '.';
            span.start = text[..span.start].trim_end_matches(is_part).len();
        }
        let reason = match (&span, error.detail()) {
            (Some(span), _) if is_undefined => format!("`{}` has no value", &text[span.clone()]),
            (_, _) if error.kind() == ErrorKind::OutOfFuel => {
                "it takes more steps than a template is allowed".to_owned()
            }
            (_, Some(detail)) => match detail.strip_suffix(" is unknown") {
                Some(name) => format!("there is no function `{name}`"),
                None => detail.to_owned(),
            },
            (_, None) => error.kind().to_string(),
        };
        Self { reason, span, is_undefined, line: error.line().unwrap_or(1) }
    }

    /// A variable that has no value.
    pub fn undefined(text: &str, name: &str) -> Self {
        let is_part = |it: char| it.is_alphanumeric() || it == '_' || it == '.';
        let is_whole = |at: usize| {
            !text[..at].ends_with(is_part)
                && !text[at + name.len()..].starts_with(|it| is_part(it) && it != '.')
        };
        let found = text.match_indices(name).map(|(at, _)| at).find(|at| is_whole(*at));
        let reason = format!("`{name}` has no value");
        match found {
            Some(at) => Self { is_undefined: true, ..Self::at(text, at..at + name.len(), reason) },
            None => Self { is_undefined: true, ..Self::whole(reason) },
        }
    }

    fn whole(reason: String) -> Self {
        Self { reason, span: None, is_undefined: false, line: 1 }
    }

    fn in_its_line(&self) -> String {
        match self.line {
            0 | 1 => String::new(),
            line => format!(", in its line {line}"),
        }
    }

    /// The place of the part that the error is about, where the template was read from `source`.
    ///
    /// A file may write a text otherwise than it is, so the part is looked for by its own words.
    pub fn place_in(&self, template: &str, source: &str, whole: &Range<usize>) -> Range<usize> {
        let found = self.span.as_ref().and_then(|span| {
            let part = template.get(span.clone()).filter(|it| !it.is_empty())?;
            let earlier = template.get(..span.start)?.matches(part).count();
            let written = source.get(whole.clone())?;
            let (at, _) = written.match_indices(part).nth(earlier)?;
            Some(whole.start + at..whole.start + at + part.len())
        });
        found.unwrap_or_else(|| whole.clone())
    }
}

/// Whether a text has anything for the template engine to do.
pub fn is_template(text: &str) -> bool {
    let text = text.as_bytes();
    memchr::memchr_iter(b'{', text).any(|at| matches!(text.get(at + 1), Some(b'{' | b'%' | b'#')))
}

/// Whether a text is a template at all, whatever its variables are.
pub fn check(text: &str) -> Result<(), TemplateError> {
    undefined_variables(text, |_| true).map(drop)
}

/// The variables a template uses that `known` does not know, sorted.
pub fn undefined_variables(
    text: &str,
    known: impl Fn(&str) -> bool,
) -> Result<Vec<String>, TemplateError> {
    if !is_template(text) {
        return Ok(Vec::new());
    }
    scan::scan(text)?;
    let engine = engine::engine(MOST_STEPS, 0);
    let template =
        engine.template_from_str(text).map_err(|error| TemplateError::of(&error, text))?;
    let is_function = |name: &str| engine.globals().any(|(global, _)| global == name);
    let mut missing: Vec<String> = template
        .undeclared_variables(false)
        .into_iter()
        .filter(|name| !known(name) && !is_function(name))
        .collect();
    missing.sort_unstable();
    Ok(missing)
}

/// The variables that a template uses, each with the members of it that are named: `v` and `a` of
/// `{{ v.a }}`.
pub fn paths(text: &str) -> Result<Vec<Vec<String>>, TemplateError> {
    if !is_template(text) {
        return Ok(Vec::new());
    }
    scan::scan(text)?;
    let engine = engine::engine(MOST_STEPS, 0);
    let template =
        engine.template_from_str(text).map_err(|error| TemplateError::of(&error, text))?;
    let is_function = |name: &str| engine.globals().any(|(global, _)| global == name);
    let path = |name: &String| name.split('.').map(ToOwned::to_owned).collect::<Vec<_>>();
    let mut paths: Vec<Vec<String>> =
        template.undeclared_variables(true).iter().map(path).collect();
    paths.retain(|it| it.first().is_some_and(|first| !is_function(first)));
    paths.sort_unstable();
    Ok(paths)
}

/// The members of a variable that a template names, such as `a` and `b` of `{{ v.a ~ v.b }}`; an
/// empty one where it uses the variable as a whole.
pub fn members_of(text: &str, variable: &str) -> Result<Vec<String>, TemplateError> {
    let member = |path: Vec<String>| {
        let mut path = path.into_iter();
        (path.next().as_deref() == Some(variable)).then(|| path.next().unwrap_or_default())
    };
    let mut members: Vec<String> = paths(text)?.into_iter().filter_map(member).collect();
    members.sort_unstable();
    members.dedup();
    Ok(members)
}

/// Whose templates they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Ours,
    /// Those of a tool in Python.
    Python,
}

/// The text with its variables filled in; a variable without a value is an error.
pub fn render(
    text: &str,
    vars: &BTreeMap<String, serde_json::Value>,
) -> Result<String, TemplateError> {
    render_as(Dialect::Ours, text, vars)
}

/// The same, without a copy of a text that has nothing to fill in.
pub fn filled<'t>(
    text: &'t str,
    vars: &BTreeMap<String, serde_json::Value>,
) -> Result<Cow<'t, str>, TemplateError> {
    match is_template(text) {
        true => render(text, vars).map(Cow::Owned),
        false => Ok(Cow::Borrowed(text)),
    }
}

/// The same of a template for Jinja in Python: it may call methods of Python's texts, lists and tables, and
/// values are written as Python writes them.
pub fn render_python(
    text: &str,
    vars: &BTreeMap<String, serde_json::Value>,
) -> Result<String, TemplateError> {
    render_as(Dialect::Python, text, vars)
}

fn render_as(
    dialect: Dialect,
    text: &str,
    vars: &BTreeMap<String, serde_json::Value>,
) -> Result<String, TemplateError> {
    if !is_template(text) {
        return Ok(text.to_owned());
    }
    let scanned = scan::scan(text)?;
    // Values may be large, and a body of a request has many templates.
    let used = || vars.iter().filter(|(name, _)| scanned.names.contains(*name));
    let given = used().map(|(_, value)| bytes_of(value)).sum::<u64>() + text.len() as u64;
    let allowance = FREE_BYTES.saturating_add(given.saturating_mul(BYTES_PER_BYTE));
    let makes_text = scanned.has_filters || dialect == Dialect::Python;
    let parts = given.saturating_add(if makes_text { allowance } else { 0 });
    if parts.saturating_mul(scanned.growth) > LARGEST_VALUE.max(parts) {
        let reason = "its operators `+`, `*` and `~` can make too long a text".to_owned();
        return Err(TemplateError::whole(reason));
    }
    let steps = (MOVED_BYTES / given.max(1)).clamp(LEAST_STEPS, MOST_STEPS);
    let engine = match dialect {
        Dialect::Ours => engine::engine(steps, allowance),
        Dialect::Python => python::engine(steps, allowance),
    };
    let context = Value::from_pairs(used().map(|(name, it)| (name.as_str(), to_engine(it))));
    let mut output = Limited::new(LARGEST_RESULT);
    let template =
        engine.template_from_str(text).map_err(|error| TemplateError::of(&error, text))?;
    let rendered = template.render_captured_to(context, &mut output).map(drop);
    if output.is_full() {
        let most = LARGEST_RESULT >> 20;
        return Err(TemplateError::whole(format!("the text is longer than {most} MiB")));
    }
    rendered.map_err(|error| {
        let error = TemplateError::of(&error, text);
        let part = error.span.clone().map_or("", |span| &text[span]);
        // A filter that is given nothing is named by the engine, and not what it was given.
        match engine::missing_filter(part) {
            None if error.is_undefined => {
                let names = undefined_variables(text, |name| vars.contains_key(name));
                match names.unwrap_or_default().first() {
                    Some(name) => TemplateError::undefined(text, name),
                    None => error,
                }
            }
            None | Some(_) => error,
        }
    })?;
    String::from_utf8(output.into_bytes())
        .map_err(|_| TemplateError::whole("the text is not UTF-8".to_owned()))
}

fn bytes_of(value: &serde_json::Value) -> u64 {
    use serde_json::Value as Json;
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => 8,
        Json::String(text) => text.len() as u64,
        Json::Array(items) => items.iter().map(|it| 8 + bytes_of(it)).sum(),
        Json::Object(map) => map.iter().map(|(key, it)| key.len() as u64 + bytes_of(it)).sum(),
    }
}

/// JSON as the engine's own values; numbers beyond its range become text.
fn to_engine(value: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::from(()),
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), _, _) => Value::from(number),
            (None, Some(number), _) => Value::from(number),
            (None, None, Some(float)) if float.is_finite() => Value::from(float),
            (None, None, Some(_) | None) => Value::from(number.to_string()),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => items.iter().map(to_engine).collect(),
        Json::Object(map) => {
            Value::from_pairs(map.iter().map(|(key, value)| (key.as_str(), to_engine(value))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(pairs: &[(&str, &str)]) -> BTreeMap<String, serde_json::Value> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect()
    }

    #[test]
    fn variables_are_filled_in() {
        let text = "Translate {{ text }} into {{ language | upper }}\n";
        let vars = vars(&[("text", "<b>hi</b>"), ("language", "fr")]);
        assert_eq!(render(text, &vars).unwrap(), "Translate <b>hi</b> into FR\n");
    }

    #[test]
    fn templates_for_python_call_its_methods_and_write_its_values() {
        let vars = BTreeMap::from([
            ("q".to_owned(), serde_json::json!("  What's it? ")),
            ("c".to_owned(), serde_json::json!({ "text": ["it's", "b\n"], "label": ["A", "B"] })),
            ("yes".to_owned(), serde_json::json!(true)),
            ("none".to_owned(), serde_json::Value::Null),
        ]);
        let check = |text: &str, expected: &str| {
            assert_eq!(render_python(text, &vars).unwrap(), expected, "{text}");
        };
        check("{{ q.strip() }}\n", "What's it?\n");
        check("{{ c.text }} {{ yes }} {{ none }}", r#"["it's", 'b\n'] True None"#);
        check("{{ c.label.index('B') }} {{ ['A', 'B'].index(c.label[0]) }}", "1 0");
        check("{{ 'a b  c'.split(' ')[:-1] | join('-') }}", "a-b-");
        check("{{ 'a b  c'.split()[-1] }} {{ 'x### 7'.split('### ')[-1] }}", "c 7");
        check("{{ ', '.join(c.label) }} {{ 'ABC'.lower().capitalize() }}", "A, B Abc");
        check("{{ c.get('z', 'd') }} {{ {'a': 1}.keys() | list }}", "d ['a']");
        check(
            "{{ ' a  b c '.split(none, 1) }} {{ ' a b  c '.rsplit(none, 1) }}",
            "['a', 'b c '] [' a b', 'c']",
        );
        check(
            "{{ ' a  b '.split(none, 5) }} {{ ' a  b '.rsplit(none, 5) }}",
            "['a', 'b'] ['a', 'b']",
        );
        check("{{ {'a': 1.0} }} {{ 'a-b-c'.rsplit('-', 1) }}", "{'a': 1.0} ['a-b', 'c']");
        assert!(render("{{ q.strip() }}", &vars).is_err());
        // As Python does, in the order of the document.
        check("{{ c.keys() | list }}", "['text', 'label']");
        check("{{ c }}", r#"{'text': ["it's", 'b\n'], 'label': ['A', 'B']}"#);
        check("{{ (c.items() | list)[1] }}", "['label', ['A', 'B']]");
        check("{% for name in c %}{{ name }} {% endfor %}", "text label ");
        check(
            "{% for name, it in c.items() %}{{ name }}={{ it[0] }} {% endfor %}",
            "text=it's label=A ",
        );
        // What Python does with these depends on another argument.
        for text in ["{{ q.find('W', 5) }}", "{{ 'a\\nb'.splitlines(true) }}"] {
            assert!(render_python(text, &vars).is_err(), "{text}");
        }
        for text in ["{{ q.encode() }}", "{{ c.label.index('Z') }}", "{{ z }}", "{{ q.split('') }}"]
        {
            assert!(render_python(text, &vars).is_err(), "{text}");
        }
        let long = "{% set x = 'ab'.replace('', 'y' * 9999) %}{{ x.replace('y', 'z' * 9999) }}";
        assert!(render_python(long, &vars).is_err());
    }

    #[test]
    fn a_missing_variable_is_named() {
        let missing = undefined_variables("{{ a }} {{ b.c }} {{ range(3) }}", |name| name == "a");
        assert_eq!(missing.unwrap(), ["b"]);
        assert!(render("{{ a }}", &BTreeMap::new()).is_err());
    }

    #[test]
    fn null_is_never_written_as_a_word() {
        let vars = BTreeMap::from([
            ("a".to_owned(), serde_json::Value::Null),
            ("b".to_owned(), serde_json::json!({ "c": null })),
        ]);
        let error = |text: &str| render(text, &vars).unwrap_err().to_string();
        assert_eq!(error("x {{ a }}"), "`a` has no value");
        assert_eq!(error("{{ b.c }}"), "`b.c` has no value");
        let text = "{% if a %}x{% endif %}{{ a or 'y' }}{{ a | tojson }}";
        assert_eq!(render(text, &vars).unwrap(), "ynull");
    }

    #[test]
    fn text_without_marks_is_left_alone() {
        let text = "awk '{ print $1 }' {a} }} %}";
        assert_eq!(render(text, &BTreeMap::new()).unwrap(), text);
    }

    #[test]
    fn broken_templates_say_where() {
        let error = undefined_variables("line\n{{ a", |_| true).unwrap_err();
        insta::assert_snapshot!(error, @"unexpected end of input, expected end of variable block, in its line 2");
    }

    #[test]
    fn what_goes_too_far_is_an_ordinary_error() {
        let texts: BTreeMap<_, _> = vars(&[("x", "word"), ("s", "a b c")]);
        let doubled = "{% set x = x ~ x %}".repeat(60) + "{{ x }}";
        let elifs = format!("{{% if x %}}{}{{% endif %}}", "{% elif x %}".repeat(2_000));
        let deep = |open: &str, close: &str, times| {
            format!("{{{{ {}x{} }}}}", open.repeat(times), close.repeat(times))
        };
        let refused = [
            deep("-", "", 7_000),
            deep("not ", "", 7_000),
            deep("(", ")", 7_000),
            deep("[", "]", 7_000),
            deep("", " + x", 7_000),
            deep("", ".y", 7_000),
            deep("", "[0]", 7_000),
            deep("", "|upper", 7_000),
            deep("", " ** 2", 7_000),
            deep("", " is string", 7_000),
            deep("", " if x else x", 7_000),
            "{% if x %}".repeat(5_000) + &"{% endif %}".repeat(5_000),
            elifs,
            doubled,
            "{{ x | indent(999999999999) }}".to_owned(),
            "{{ x | indent(width=999999999999) }}".to_owned(),
            "{{ 'x' * 10**9 }}".to_owned(),
            "{{ 'x' * 1000000000 }}".to_owned(),
            "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}"
                .to_owned(),
            "{% for i in range(9999) %}{% for j in range(9999) %}a{% endfor %}{% endfor %}"
                .to_owned(),
            "{% for i in range(9999) %}{{ ('a' * 9999) }}{% endfor %}".to_owned(),
            "{{ s | replace('', 'y' * 9999) | replace('y', 'z' * 9999) }}".to_owned(),
            "{{ range(9999) | join('y' * 9999) }}".to_owned(),
            "{{ range(9999) | map('string') | sum }}".to_owned(),
            "{% set n = namespace(x=x) %}{{ n.x }}".to_owned(),
            "{% for a in [[1]] recursive %}{{ loop([a ~ a]) }}{% endfor %}".to_owned(),
            "{% set y %}{{ x }}{% endset %}".to_owned(),
            "{{ '%999999999d' | format(3) }}".to_owned(),
        ];
        for text in refused {
            let began = std::time::Instant::now();
            let shown: String = text.chars().take(60).collect();
            assert!(render(&text, &texts).is_err(), "{shown}");
            assert!(began.elapsed().as_secs() < 2, "{shown}: {:?}", began.elapsed());
            let _ = check(&text);
        }
    }

    #[test]
    fn what_prompts_usually_do_is_within_the_bounds() {
        let mut vars = vars(&[("name", "Ada"), ("text", &"word ".repeat(50_000))]);
        vars.insert("items".to_owned(), (0..500).map(|it| format!("item {it}")).collect());
        vars.insert("n".to_owned(), 3.into());
        let check = |text: &str, expected: &str| {
            let rendered = render(text, &vars).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(rendered.starts_with(expected), "{text}: {}", &rendered[..20]);
        };
        check("{% for i in range(1, n + 1) %}{{ i * 2 }} {% endfor %}", "2 4 6 ");
        check("{% for it in items %}{{ loop.index }}. {{ it | upper }}\n{% endfor %}", "1. ITEM 0");
        check("{% set hi = 'Hi ' ~ name ~ ': ' %}{{ hi ~ text | trim }}", "Hi Ada: word");
        check("{{ 'word ' * 1000 }}", "word word");
        check("{{ items | map('replace', 'item', 'thing') | join(', ') }}", "thing 0, thing 1");
        check("{% if name is defined and n is not odd %}a{% elif n > 2 %}b{% endif %}", "b");
        check("{% raw %}{{ ----- }}{% endraw %}{# {{ #}", "{{ ----- }}");
        check("{{ {'a': {'b': 1}}['a']['b'] }}", "1");
        check("{{ [1, 2, 3] | sum }} {{ missing | default('none') }}", "6 none");
        check(
            "{{ {'a': [1, 2.5, none, true], 'b': '<é>'} | dump }}",
            r#"{"a":[1,2.5,null,true],"b":"<é>"}"#,
        );
        check("{{ [1] | tojson(2) }}", "[\n  1\n]");
        check(r#"{{ ('{"a": {"b": [1, 2]}}' | load).a.b[1] }}"#, "2");
        check("{{ 'one  two three' | wordcount }}", "3");
    }

    #[test]
    fn what_is_not_there_is_named_with_its_place() {
        let mut vars = vars(&[("name", "Ada")]);
        vars.insert("user".to_owned(), serde_json::json!({"name": "Ada"}));
        let check = |text: &str| {
            let error = render(text, &vars).unwrap_err();
            let part = error.span.clone().map(|span| &text[span]);
            format!("{error} | {}", part.unwrap_or("-"))
        };
        let all = [
            "Hi {{ nmae }}",
            "Hi\n{{ user.nmae }}",
            "{{ user.nmae.first }}",
            "{{ nmae | upper }}",
            "{{ name | uper }}",
            "{{ name is definde }}",
            "{{ shout(name) }}",
            "{% for x in nmae %}{% endfor %}",
            "{{ name + 1 }}",
        ]
        .map(check);
        insta::assert_snapshot!(all.join("\n"), @r"
        `nmae` has no value | nmae
        `user.nmae` has no value, in its line 2 | user.nmae
        `user.nmae.first` has no value | user.nmae.first
        `nmae` has no value | nmae
        there is no filter `uper` (did you mean `upper`?) | uper
        there is no test `definde` (did you mean `defined`?) | definde
        there is no function `shout` | shout(name)
        `nmae` has no value | nmae
        tried to use + operator on unsupported types string and number | name + 1
        ");
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2_000))]
        #[test]
        fn no_template_of_random_tokens_panics_or_hangs(
            tokens in proptest::collection::vec(proptest::sample::select(TOKENS), 0..60)
        ) {
            let text = tokens.concat();
            let began = std::time::Instant::now();
            let mut vars = vars(&[("x", "some words"), ("s", "a,b")]);
            vars.insert("l".to_owned(), serde_json::json!([1, "two", {"k": [3]}]));
            let _ = check(&text);
            if let Ok(rendered) = render(&text, &vars) {
                proptest::prop_assert!(rendered.len() <= LARGEST_RESULT);
            }
            proptest::prop_assert!(began.elapsed().as_secs_f64() < 1.0, "{text}");
        }
    }

    const TOKENS: &[&str] = &[
        "{{ ",
        " }}",
        "{% ",
        " %}",
        "{#",
        "#}",
        "{{- ",
        " -}}",
        "{% raw %}",
        "{% endraw %}",
        "{% for i in ",
        "{% for k in ",
        "{% endfor %}",
        "{% if ",
        "{% elif ",
        "{% else %}",
        "{% endif %}",
        "{% set x = ",
        "{% set l = ",
        "{% with x = ",
        "{% endwith %}",
        "range(9999)",
        "range(50)",
        "x",
        "s",
        "l",
        "i",
        "k",
        "loop",
        "loop.index",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        ".",
        "..",
        " ~ ",
        " + ",
        " * ",
        " ** ",
        " - ",
        "-",
        " // ",
        " % ",
        " not ",
        " in ",
        " is ",
        " and ",
        " or ",
        " if ",
        " else ",
        "|",
        "|upper",
        "|join(x)",
        "|list",
        "|indent(99999)",
        "|replace('', x)",
        "|length",
        "|string",
        "|map('upper')",
        "|sum",
        "|sort",
        "|last",
        "|default(x)",
        "'y'",
        "\"é\"",
        "'\\'",
        "9",
        "9999",
        "1e9",
        "0.5",
        "99999999999999999999",
        "defined",
        "string",
        "text",
        "\n",
        "é",
        "{",
        "%",
        "=",
        " == ",
    ];
}
