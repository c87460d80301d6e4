//! Values of variables that hold templates: what a run makes of them is what promptfoo makes of them.
//!
//! promptfoo fills in a value unless it names a variable that there is not, or has a tag that does not end in its
//! line; of the latter it replaces `{{ name }}` alone. A run of ours fills in a value that is a template and names
//! a variable that there is, and leaves all others as they are. What this module writes comes out alike in both.

use std::collections::{BTreeMap, BTreeSet};

use probity_load::template;
use serde_json::Value;

use super::{Context, nunjucks, templates, tests::Vars};
use crate::{cases::literal, draft::CaseDraft};

/// Settles the values of cases, and those that all have. Cases with a value that nobody could fill in are taken out
/// and noted.
pub(super) fn settle(cases: &mut Vec<CaseDraft>, shared: &mut Vars, context: &mut Context<'_>) {
    let common: BTreeSet<String> = shared.keys().cloned().collect();
    cases.retain_mut(|it| {
        let vars = &mut it.case.prompt_vars;
        let names: BTreeSet<String> = common.iter().chain(vars.keys()).cloned().collect();
        match settle_all(vars, &names) {
            Ok(()) => true,
            Err((name, why)) => {
                let what = format!("test `{}`: the value of `{name}`: {why}", it.case.id);
                context.notes.lost(it.at.clone(), what, ADVICE);
                false
            }
        }
    });
    let of_cases = cases.iter().flat_map(|it| it.case.prompt_vars.keys());
    let names: BTreeSet<String> = of_cases.chain(&common).cloned().collect();
    if let (Err((name, why)), Some(first)) = (settle_all(shared, &names), cases.first()) {
        let what = format!("the value of `{name}` that all tests have: {why}");
        context.notes.lost(first.at.clone(), what, ADVICE);
        cases.clear();
    }
}

const ADVICE: &str = "write it without what only promptfoo's templates have";

fn settle_all(vars: &mut Vars, names: &BTreeSet<String>) -> Result<(), (String, String)> {
    for (name, value) in vars {
        let Value::String(text) = value else { continue };
        if template::is_template(text) {
            *text = settled(name, text, names).map_err(|why| (name.clone(), why))?;
        }
    }
    Ok(())
}

/// The value of a variable as a run has to see it, or why there is none.
fn settled(own: &str, text: &str, names: &BTreeSet<String>) -> Result<String, String> {
    let is_known = |name: &str| names.contains(name);
    if nunjucks::is_partial(text) {
        return match templates::only_references(text, is_known, plain) {
            Some(filled) => Ok(filled),
            None => as_it_is(own, text, names),
        };
    }
    match template::undefined_variables(text, |_| false) {
        Err(_) if templates::first_names(text).iter().any(|it| !is_known(it)) => {
            Ok(text.to_owned())
        }
        Err(error) => Err(error.to_string()),
        // Always the same, whatever the variables are.
        Ok(used) if used.is_empty() => {
            let text = template::render(text, &BTreeMap::new()).map_err(|it| it.to_string())?;
            as_it_is(own, &text, names)
        }
        Ok(_) => Ok(text.to_owned()),
    }
}

/// A text between tags.
fn plain(text: &str) -> String {
    match text.ends_with('{') && !template::is_template(text) {
        true => format!("{{% raw %}}{text}{{% endraw %}}"),
        false => literal(text),
    }
}

/// A text that is to be seen as it is, although it may look like a template. A run would fill in one that names a
/// variable that there is.
fn as_it_is(own: &str, text: &str, names: &BTreeSet<String>) -> Result<String, String> {
    let used = template::undefined_variables(text, |_| false).unwrap_or_default();
    if !used.iter().any(|it| names.contains(it)) {
        return Ok(text.to_owned());
    }
    let other = names.iter().find(|it| *it != own);
    let other = other.ok_or("it names itself, and is no template in promptfoo")?;
    Ok(format!("{{% if {other} is defined %}}{}{{% endif %}}", plain(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a run makes of a value, beside `a` and `c`.
    fn made(text: &str) -> Result<String, String> {
        let values = [("a", "A"), ("c", "C")].map(|(name, it)| (name.to_owned(), Value::from(it)));
        let mut vars: Vars = values.into_iter().collect();
        vars.insert("t".to_owned(), nunjucks::value(text).into());
        let names = vars.keys().cloned().collect();
        settle_all(&mut vars, &names).map_err(|it| it.1)?;
        let filled = template::fill_values(&vars).map_err(|it| it.1.to_string())?;
        Ok(filled["t"].as_str().unwrap_or_default().to_owned())
    }

    #[test]
    fn a_run_makes_of_a_value_what_promptfoo_makes_of_it() {
        // The right sides are what promptfoo 0.121.20 sends.
        for (text, expected) in [
            ("x {{DIT IS GARBAGE}} {{/>", "x {{DIT IS GARBAGE}} {{/>"),
            ("x {{DIT IS GARBAGE}}", "x {{DIT IS GARBAGE}}"),
            ("{{ c }} {{ nothing", "C {{ nothing"),
            ("multi {{ c\n}} x", "multi C x"),
            ("{% raw %}{{ b }}{% endraw %}", "{{ b }}"),
            ("{% raw %}{{ a | upper }}{% endraw %}", "{{ a | upper }}"),
            ("{{ 1 + 1 }}{# hi #}", "2"),
            ("x {% if c %}yes{% endif %}", "x yes"),
            ("{{ nothing }}", "{{ nothing }}"),
            ("{% if (a) { {{ b", "{% if (a) { {{ b"),
        ] {
            assert_eq!(made(text).as_deref(), Ok(expected), "{text}");
        }
        assert!(made("{{ a b }}").is_err());
    }
}
