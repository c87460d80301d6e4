//! Whether a reply is XML, HTML or SQL, or has some in it.

mod html;
mod sql;
mod xml;

use super::Checked;
use crate::excerpt::excerpt;

pub(crate) use sql::{Allowed, Sql, SqlDialect};

/// What form a reply has to have, as a whole or somewhere in it.
#[derive(Clone, Debug)]
pub(crate) enum Markup {
    /// The paths of elements that have to be there.
    IsXml(Vec<String>),
    ContainsXml(Vec<String>),
    IsHtml,
    ContainsHtml,
    IsSql(Sql),
    ContainsSql(Sql),
}

impl Markup {
    pub(super) fn check(&self, text: &str) -> Checked {
        let none = |what: &str| format!("there is no {what} in `{}`", excerpt(text, 0));
        match self {
            Self::IsXml(required) => of(xml::document(text, required)),
            Self::ContainsXml(required) => match xml::is_in(text, required) {
                Err(Some(missing)) => Checked::fails(missing),
                found => Checked::of(found.is_ok(), || none("XML")),
            },
            Self::IsHtml => of(html::document(text)),
            Self::ContainsHtml => Checked::of(html::is_in(text), || none("HTML")),
            Self::IsSql(sql) => of(sql::statements(text, sql)),
            Self::ContainsSql(sql) => match sql::is_in(text, sql) {
                Err(Some(why)) => Checked::fails(why),
                found => Checked::of(found.is_ok(), || none("SQL")),
            },
        }
    }
}

fn of(result: Result<(), String>) -> Checked {
    result.map_or_else(Checked::fails, |()| Checked::holds())
}
