//! Keeps the keys in use out of everything that is kept or shown.

use std::borrow::Cow;

/// Shorter values are words that stand in many texts.
const SHORTEST: usize = 6;

/// The values that must appear nowhere.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

impl Redactor {
    /// Keeps another value out.
    pub fn add(&mut self, secret: &str) {
        self.add_one(secret.trim());
        // As a body of JSON would hold it.
        let escaped = serde_json::Value::from(secret.trim()).to_string();
        self.add_one(escaped.trim_matches('"'));
    }

    fn add_one(&mut self, secret: &str) {
        if secret.len() >= SHORTEST && !self.secrets.iter().any(|known| known == secret) {
            self.secrets.push(secret.to_owned());
            // What holds another secret goes first.
            self.secrets.sort_by_key(|it| std::cmp::Reverse(it.len()));
        }
    }

    /// The text without the secrets; it is only copied if there is one in it.
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = Cow::Borrowed(text);
        for secret in &self.secrets {
            if clean.contains(secret.as_str()) {
                clean = Cow::Owned(clean.replace(secret.as_str(), "[redacted]"));
            }
        }
        clean
    }

    /// The same for a text that is owned already.
    pub fn cleaned(&self, text: String) -> String {
        match self.clean(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => clean,
        }
    }

    /// An error's text: without the keys in use, without what looks like one, of bounded size.
    pub fn error_text(&self, text: &str) -> String {
        probity_grade::redacted(&self.clean(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_out() {
        let mut redactor = Redactor::default();
        redactor.add("secret-of-mine");
        redactor.add("abc");
        assert_eq!(redactor.clean("key secret-of-mine, abc"), "key [redacted], abc");
        assert!(matches!(redactor.clean("nothing"), Cow::Borrowed("nothing")));
    }
}
