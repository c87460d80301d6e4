//! Assertions about XML, HTML and SQL: from the words of a file to checks.

use serde_json::Value;

use super::Context;
use crate::check::{Allowed, Markup, Sql, SqlDialect, Test, known_fields};

impl Context<'_> {
    pub(super) fn markup(&mut self, markup: Markup) -> Option<Test> {
        match &self.assertion.value {
            None => Some(Test::Markup(markup)),
            Some(_) => self.wrong("left out"),
        }
    }

    /// Paths of elements: a list, or one text with commas between them.
    pub(super) fn elements(&mut self) -> Option<Vec<String>> {
        let all = match &self.assertion.value {
            None => return Some(Vec::new()),
            Some(Value::String(text)) => text.split(',').map(|it| it.trim().to_owned()).collect(),
            Some(Value::Array(items)) => {
                let path = |it: &Value| it.as_str().map(|it| it.trim().to_owned());
                items.iter().map(path).collect::<Option<Vec<_>>>().unwrap_or_default()
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => Vec::new(),
        };
        match all.is_empty() || all.iter().any(String::is_empty) {
            true => self.wrong("a list of elements, such as `root.item`"),
            false => Some(all),
        }
    }

    /// A dialect, or a table with `dialect`, `tables` and `columns`.
    pub(super) fn sql(&mut self) -> Option<Sql> {
        let assertion = self.assertion;
        let Some(Value::Object(fields)) = &assertion.value else {
            let dialect = self.dialect(assertion.value.as_ref())?;
            return Some(Sql { dialect, tables: None, columns: None });
        };
        if let Err(why) = known_fields(fields.keys(), &["dialect", "tables", "columns"]) {
            return self.problem("value", "bad-assertion", why);
        }
        let dialect = self.dialect(fields.get("dialect"))?;
        let mut list = |name: &str, read: fn(&[String]) -> Result<Allowed, String>| {
            let Some(value) = fields.get(name) else { return Some(None) };
            let texts = value.as_array().and_then(|items| {
                items.iter().map(|it| it.as_str().map(ToOwned::to_owned)).collect::<Option<_>>()
            });
            let Some(texts) = texts.filter(|it: &Vec<String>| !it.is_empty()) else {
                return self.wrong(&format!("a table whose `{name}` is a list of texts"));
            };
            match read(&texts) {
                Ok(allowed) => Some(Some(allowed)),
                Err(why) => self.problem("value", "bad-regex", why),
            }
        };
        let tables = list("tables", Allowed::new)?;
        let columns = list("columns", Allowed::columns)?;
        Some(Sql { dialect, tables, columns })
    }

    fn dialect(&mut self, value: Option<&Value>) -> Option<SqlDialect> {
        let Some(value) = value else { return Some(SqlDialect::Generic) };
        match value.as_str().map(str::parse) {
            Some(Ok(dialect)) => Some(dialect),
            Some(Err(_)) | None => {
                let names = SqlDialect::ALL.map(|it| format!("`{it}`")).join(", ");
                self.wrong(&format!(
                    "a dialect of SQL: {names}; or a table with `dialect`, `tables` and `columns`"
                ))
            }
        }
    }
}
