//! Adapters: functions of ours that are written beside a suite and do what no backend, dataset or assertion can.
//! They are in JavaScript, and Node runs them like functions of the user.

use serde_json::Value;

use super::Context;

/// What the others share.
const SHARED: (&str, &str) = ("support.mjs", include_str!("adapters/support.mjs"));
/// All others.
const FILES: &[(&str, &str)] = &[
    ("azure-assistant.mjs", include_str!("adapters/azure-assistant.mjs")),
    ("browser.mjs", include_str!("adapters/browser.mjs")),
    ("cases.mjs", include_str!("adapters/cases.mjs")),
    ("classifier.mjs", include_str!("adapters/classifier.mjs")),
    ("configured.mjs", include_str!("adapters/configured.mjs")),
    ("exec.mjs", include_str!("adapters/exec.mjs")),
    ("filters.mjs", include_str!("adapters/filters.mjs")),
    ("given.mjs", include_str!("adapters/given.mjs")),
    ("http.mjs", include_str!("adapters/http.mjs")),
    ("huggingface.mjs", include_str!("adapters/huggingface.mjs")),
    ("langfuse.mjs", include_str!("adapters/langfuse.mjs")),
    ("mcp.mjs", include_str!("adapters/mcp.mjs")),
    ("moderation.mjs", include_str!("adapters/moderation.mjs")),
    ("package.mjs", include_str!("adapters/package.mjs")),
    ("sheet.mjs", include_str!("adapters/sheet.mjs")),
    ("similar.mjs", include_str!("adapters/similar.mjs")),
    ("slack.mjs", include_str!("adapters/slack.mjs")),
    ("transformers.mjs", include_str!("adapters/transformers.mjs")),
    ("watsonx.mjs", include_str!("adapters/watsonx.mjs")),
    ("webhook.mjs", include_str!("adapters/webhook.mjs")),
    ("websocket.mjs", include_str!("adapters/websocket.mjs")),
];

impl Context<'_> {
    /// The file of an adapter, which is going to be written.
    pub(super) fn adapter(&mut self, name: &'static str) -> String {
        let text = text(name).to_owned();
        self.keep_adapter(name.to_owned(), text)
    }

    /// The same with a constant that it needs: each has a file of its own.
    pub(super) fn adapter_with(
        &mut self,
        name: &'static str,
        constant: &str,
        value: &Value,
    ) -> String {
        let text = format!("const {constant} = {value};\n\n{}", text(name));
        self.numbered_adapter(name, text)
    }

    /// A file with code of the user: each has its own.
    pub(super) fn inline_adapter(&mut self, function: &str) -> String {
        let text = format!(
            "// JavaScript of an assertion that needs Node.\n\
             import {{ createRequire }} from 'node:module';\n\n\
             const require = createRequire(import.meta.url);\n\n\
             export default {function};\n"
        );
        self.numbered_adapter("inline.mjs", text)
    }

    fn numbered_adapter(&mut self, name: &str, text: String) -> String {
        let stem = name.trim_end_matches(".mjs");
        let numbered = (1..).map(|number| match number {
            1 => name.to_owned(),
            number => format!("{stem}-{number}.mjs"),
        });
        let is_free =
            |name: &String| self.draft.adapters.get(name).is_none_or(|other| *other == text);
        let name = numbered.into_iter().find(is_free).unwrap_or_else(|| name.to_owned());
        self.keep_adapter(name, text)
    }

    fn keep_adapter(&mut self, name: String, text: String) -> String {
        if text.contains("./support.mjs") {
            self.draft.adapters.insert(SHARED.0.to_owned(), SHARED.1.to_owned());
        }
        self.draft.adapters.insert(name.clone(), text);
        name
    }
}

fn text(name: &str) -> &'static str {
    FILES.iter().find(|(file, _)| *file == name).map_or("", |(_, text)| text)
}

/// Whether an adapter can fill in a text: it knows `{{ name }}`, `{{ table.name }}` and `{{ name | dump }}`.
pub(super) fn can_fill(text: &str) -> bool {
    let known = ["dump", "tojson", "safe"];
    filters_of(text).is_some_and(|all| all.iter().all(|it| known.contains(it)))
}

/// The filters in a text whose tags are all `{{ name }}`, with filters that have no arguments.
pub(super) fn filters_of(text: &str) -> Option<Vec<&str>> {
    let is_name =
        |it: &&str| !it.is_empty() && it.chars().all(|c| c.is_alphanumeric() || "_.$".contains(c));
    let mut filters = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let end = start + rest[start..].find("}}")?;
        let inner = rest[start + 2..end].trim_matches(|c: char| c == '-' || c.is_whitespace());
        let mut parts = inner.split('|').map(str::trim);
        parts.next().filter(is_name)?;
        for filter in parts {
            filters.push(Some(filter).filter(is_name)?);
        }
        rest = &rest[end + 2..];
    }
    (!text.contains("{%")).then_some(filters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_adapter_says_what_it_is() {
        for (name, text) in FILES.iter().chain([&SHARED]) {
            assert!(text.starts_with("// "), "{name}");
        }
    }

    #[test]
    fn adapters_know_which_texts_they_can_fill_in() {
        for text in ["{\"a\": {{ prompt | dump }}}", "{{x.y}} {{ z }}", "plain", "{{-a-}}"] {
            assert!(can_fill(text), "{text}");
        }
        for text in ["{{ a | upper }}", "{% if a %}", "{{ a", "{{ a + b }}", "{{ f(x) }}"] {
            assert!(!can_fill(text), "{text}");
        }
    }
}
