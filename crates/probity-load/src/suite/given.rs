//! Functions that a program gives a suite which it reads. They stand in it as if its file described them.

use probity_core::located::{Entry, Node, NodeValue};

/// What stands where a file would be named.
const NAMELESS: &str = "<function>";

/// The names of functions that answer and of those that score.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Backends.
    pub backends: Vec<String>,
    /// Scorers.
    pub scorers: Vec<String>,
}

impl Given {
    /// The suite with them in it. A function takes the place of what has its name; what the suite says of a
    /// backend in Python, or of a scorer in Python, holds for the function as well.
    pub(super) fn put_into(&self, mut root: Node) -> Node {
        for name in &self.backends {
            let known = [("kind", "python"), ("file", NAMELESS)];
            put(&mut root, ["backends", name], &known, |it| it.key == "kind" && is_python(it));
        }
        for name in &self.scorers {
            put(&mut root, ["scorers", name], &[("python", NAMELESS)], |it| it.key == "python");
        }
        root
    }
}

fn is_python(entry: &Entry) -> bool {
    entry.node.as_str() == Some("python")
}

/// Sets keys of a table within a table. Other keys of it stay if one of its entries `is_alike`.
fn put(
    root: &mut Node,
    [table, name]: [&str; 2],
    keys: &[(&str, &str)],
    is_alike: impl Fn(&Entry) -> bool,
) {
    let Some(inner) = child(root, table).and_then(|it| child(it, name)) else { return };
    let NodeValue::Object(entries) = &mut inner.value else { return };
    if !entries.iter().any(is_alike) {
        entries.clear();
    }
    entries.retain(|it| !keys.iter().any(|(key, _)| it.key == *key));
    let span = inner.span.clone();
    entries.extend(keys.iter().map(|(key, value)| Entry {
        key: (*key).to_owned(),
        key_span: span.clone(),
        node: Node { span: span.clone(), value: NodeValue::String((*value).to_owned()) },
    }));
}

/// The table of a name, which is added if there is none. None where the outer value is no table: the
/// decoder says so.
fn child<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Node> {
    let span = node.span.start..node.span.start;
    let NodeValue::Object(entries) = &mut node.value else { return None };
    let at = entries.iter().rposition(|it| it.key == key).unwrap_or_else(|| {
        let table = Node { span: span.clone(), value: NodeValue::Object(Vec::new()) };
        entries.push(Entry { key: key.to_owned(), key_span: span, node: table });
        entries.len() - 1
    });
    entries.get_mut(at).map(|it| &mut it.node)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::suite::{Start, Suite};

    #[test]
    fn functions_take_the_place_of_what_has_their_name() {
        let text = "[backends.a]\nkind = \"echo\"\n[backends.b]\nkind = \"python\"\nfile = \"b.py\"\nmodel = \"m\"\n\
                    [[runners]]\nname = \"r\"\nkind = \"respond\"\ndataset = \"d.jsonl\"\n";
        let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        let given = Given { backends: names(&["a", "b", "c"]), scorers: names(&["s"]) };
        let check: super::super::SuiteCheck<'_> = &|_| Vec::new();
        let read = Suite::parse_with(text, &"s.toml".into(), Path::new(""), (&given, check));
        let suite = read.0.unwrap_or_else(|| panic!("{:?}", read.1));
        let models: Vec<_> =
            suite.backends.iter().map(|it| (it.name.as_str(), it.model.as_deref())).collect();
        assert_eq!(models, [("a", None), ("b", Some("m")), ("c", None)]);
        assert!(suite.backends.iter().all(|it| it.kind.is_function()));
        assert_eq!(
            suite.runners[0].backends,
            ["a", "b", "c"],
            "a new one is a backend of its suite"
        );
        assert_eq!(suite.scorers[0].start, Start::Python(NAMELESS.to_owned()));
    }
}
