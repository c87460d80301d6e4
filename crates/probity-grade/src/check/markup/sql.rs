//! SQL that a parser for it reads.

use probity_core::named_enum;
use probity_text::extract::{Extraction, Take};
use sqlparser::{
    dialect::{
        AnsiDialect, BigQueryDialect, DuckDbDialect, GenericDialect, MsSqlDialect, MySqlDialect,
        PostgreSqlDialect, SQLiteDialect, SnowflakeDialect,
    },
    parser::Parser,
    tokenizer::{Token, Tokenizer},
};

/// How deep statements may nest. The parser tries some nestings twice at every level.
const DEEPEST: usize = 16;
/// The longest text that is parsed, in bytes.
const LONGEST: usize = 64 << 10;
/// Most tokens that are parsed: a tree is as deep as a sum is long, and is taken down by recursion.
const MOST_TOKENS: usize = 2_000;
/// Places at which a statement may begin that are tried.
const TRIES: usize = 16;

named_enum! {
    /// A dialect of SQL.
    pub(crate) enum SqlDialect ("a dialect of SQL") {
        /// What most dialects have.
        Generic = "generic",
        /// The standard.
        Ansi = "ansi",
        /// BigQuery.
        BigQuery = "bigquery",
        /// DuckDB.
        DuckDb = "duckdb",
        /// Microsoft SQL Server.
        MsSql = "mssql",
        /// MySQL and MariaDB.
        MySql = "mysql",
        /// PostgreSQL.
        PostgreSql = "postgresql",
        /// Snowflake.
        Snowflake = "snowflake",
        /// SQLite.
        Sqlite = "sqlite",
    }
}

impl SqlDialect {
    fn rules(self) -> &'static dyn sqlparser::dialect::Dialect {
        match self {
            Self::Generic => &GenericDialect {},
            Self::Ansi => &AnsiDialect {},
            Self::BigQuery => &BigQueryDialect,
            Self::DuckDb => &DuckDbDialect {},
            Self::MsSql => &MsSqlDialect {},
            Self::MySql => &MySqlDialect {},
            Self::PostgreSql => &PostgreSqlDialect {},
            Self::Snowflake => &SnowflakeDialect,
            Self::Sqlite => &SQLiteDialect {},
        }
    }
}

/// Whether a text is statements and nothing else; else what the parser says.
pub(super) fn statements(text: &str, dialect: SqlDialect) -> Result<(), String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {} KiB", LONGEST >> 10));
    }
    let tokens = Tokenizer::new(dialect.rules(), text).tokenize().map_err(|it| it.to_string())?;
    if tokens.iter().filter(|it| !matches!(it, Token::Whitespace(_))).count() > MOST_TOKENS {
        return Err(format!("it has more than {MOST_TOKENS} words and signs"));
    }
    let parser = Parser::new(dialect.rules()).with_recursion_limit(DEEPEST);
    let mut parser = parser.with_tokens(tokens);
    match parser.parse_statements() {
        Ok(statements) if statements.is_empty() => Err("there is no statement".to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether a statement is in a text: in a block of code, or from a line that begins as one.
pub(super) fn is_in(text: &str, dialect: SqlDialect) -> bool {
    const BEGINNINGS: [&str; 8] =
        ["SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "WITH"];
    let block = |take| Extraction::CodeBlock { language: None, take };
    let blocks =
        [Take::First, Take::Last].into_iter().filter_map(|take| block(take).find(text).ok());
    if blocks.into_iter().any(|span| statements(&text[span], dialect).is_ok()) {
        return true;
    }
    let begins = |line: &str| {
        let word = line.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
        BEGINNINGS.iter().any(|it| it.eq_ignore_ascii_case(word))
    };
    let lines = text.match_indices('\n').map(|it| it.0 + 1);
    let starts = std::iter::once(0).chain(lines);
    // A blank line begins nothing, whatever follows it.
    let starts = starts.map(|at| text[at..].trim_start_matches([' ', '\t']));
    starts.filter(|it| begins(it)).take(TRIES).any(|rest| {
        let end = rest.find(';').or_else(|| rest.find("\n\n")).unwrap_or(rest.len());
        statements(&rest[..end], dialect).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_sql_and_prose_is_not() {
        let is_sql = |text| statements(text, SqlDialect::Generic).is_ok();
        assert!(is_sql("SELECT a, count(*) FROM t WHERE b > 1 GROUP BY a; DELETE FROM t"));
        assert!(!is_sql("SELECT a FROM"));
        assert!(!is_sql("Here is the query you asked for."));
        assert!(!is_sql(""));
    }

    #[test]
    fn dialects_differ() {
        let quoted = "SELECT [a] FROM [t]";
        assert!(statements(quoted, SqlDialect::MsSql).is_ok());
        assert!(statements(quoted, SqlDialect::PostgreSql).is_err());
    }

    #[test]
    fn a_statement_may_stand_in_other_text() {
        let is_in = |text: &str| is_in(text, SqlDialect::Generic);
        assert!(is_in("Use this:\n```sql\nSELECT 1\n```\nIt works."));
        assert!(is_in("Use ```sql SELECT 1```."));
        assert!(is_in("Use this:\nSELECT a\nFROM t;\nIt works."));
        let blank = "\n".repeat(20);
        let spaced = format!("{blank}Select one.{blank}SELECT 1;");
        assert!(is_in(&spaced));
        assert!(!is_in("Select the best answer.\nThere is none."));
    }

    #[test]
    fn a_long_sum_needs_little_stack() {
        let text = format!("SELECT 1{}", "+1".repeat(990));
        let longer = format!("SELECT 1{}", "+1".repeat(20_000));
        let check = move || {
            (statements(&text, SqlDialect::Generic), statements(&longer, SqlDialect::Generic))
        };
        let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(check).unwrap();
        let (ok, too_long) = thread.join().unwrap();
        assert_eq!(ok, Ok(()));
        assert!(too_long.is_err());
    }

    #[test]
    fn nesting_costs_little() {
        for (open, close) in
            [("(", ")"), ("f(", ")"), ("CASE WHEN ", " THEN 1 END"), ("(SELECT ", ")")]
        {
            for depth in [10, 16, 1000] {
                let text = format!("SELECT {}1{}", open.repeat(depth), close.repeat(depth));
                let _ = statements(&text, SqlDialect::Generic);
                let _ = statements(
                    &format!("SELECT * FROM {}", open.repeat(depth)),
                    SqlDialect::Generic,
                );
            }
        }
    }
}
