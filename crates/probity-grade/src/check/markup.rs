//! Whether a reply is XML, HTML or SQL, or has some in it.

mod html;
mod sql;
mod xml;

use super::Checked;
use crate::excerpt::excerpt;

pub(crate) use sql::SqlDialect;

/// What form a reply has to have, as a whole or somewhere in it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Markup {
    IsXml,
    ContainsXml,
    IsHtml,
    ContainsHtml,
    IsSql(SqlDialect),
    ContainsSql(SqlDialect),
}

impl Markup {
    pub(super) fn check(self, text: &str) -> Checked {
        let none = |what: &str| format!("there is no {what} in `{}`", excerpt(text, 0));
        match self {
            Self::IsXml => of(xml::document(text)),
            Self::ContainsXml => Checked::of(xml::is_in(text), || none("XML")),
            Self::IsHtml => of(html::document(text)),
            Self::ContainsHtml => Checked::of(html::is_in(text), || none("HTML")),
            Self::IsSql(dialect) => of(sql::statements(text, dialect)),
            Self::ContainsSql(dialect) => Checked::of(sql::is_in(text, dialect), || none("SQL")),
        }
    }
}

fn of(result: Result<(), String>) -> Checked {
    result.map_or_else(Checked::fails, |()| Checked::holds())
}
