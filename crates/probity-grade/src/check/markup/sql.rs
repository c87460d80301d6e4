//! SQL that a parser for it reads, and what it touches.

mod touched;

use probity_core::named_enum;
use probity_text::extract::{Extraction, Take};
use regex::Regex;
use sqlparser::{
    ast::Statement,
    dialect::{
        AnsiDialect, BigQueryDialect, DuckDbDialect, GenericDialect, HiveDialect, MsSqlDialect,
        MySqlDialect, PostgreSqlDialect, RedshiftSqlDialect, SQLiteDialect, SnowflakeDialect,
    },
    parser::Parser,
    tokenizer::{Token, Tokenizer},
};

use self::touched::Touched;
use crate::excerpt::excerpt;

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
        /// Hive.
        Hive = "hive",
        /// Microsoft SQL Server.
        MsSql = "mssql",
        /// MySQL and MariaDB.
        MySql = "mysql",
        /// PostgreSQL.
        PostgreSql = "postgresql",
        /// Amazon Redshift.
        Redshift = "redshift",
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
            Self::Hive => &HiveDialect {},
            Self::MsSql => &MsSqlDialect {},
            Self::MySql => &MySqlDialect {},
            Self::PostgreSql => &PostgreSqlDialect {},
            Self::Redshift => &RedshiftSqlDialect {},
            Self::Snowflake => &SnowflakeDialect,
            Self::Sqlite => &SQLiteDialect {},
        }
    }
}

/// What SQL has to be.
#[derive(Clone, Debug)]
pub(crate) struct Sql {
    pub(crate) dialect: SqlDialect,
    /// Tables that it may touch; none: all.
    pub(crate) tables: Option<Allowed>,
    /// Columns that it may touch; none: all.
    pub(crate) columns: Option<Allowed>,
}

/// What may be touched: `operation::database::table`, `operation::table::column`, or a name alone.
#[derive(Clone, Debug)]
pub(crate) struct Allowed(Vec<Regex>);

impl Allowed {
    /// Reads a list of patterns, or says which is none.
    pub(crate) fn new(patterns: &[String]) -> Result<Self, String> {
        let compile = |pattern: &String| {
            let whole = match pattern.contains("::") {
                true => format!("(?i)^(?:{pattern})$"),
                false => format!("(?i)^.*::.*::(?:{pattern})$"),
            };
            Regex::new(&whole).map_err(|error| format!("`{pattern}` is no pattern: {error}"))
        };
        patterns.iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// Those of columns allow them of tables that are not named as well.
    pub(crate) fn columns(patterns: &[String]) -> Result<Self, String> {
        let without_table = |pattern: &String| match *pattern.split("::").collect::<Vec<_>>() {
            [operation, table, column] if table != "null" => {
                Some(format!("{operation}::null::{column}"))
            }
            _ => None,
        };
        let more: Vec<String> = patterns.iter().filter_map(without_table).collect();
        Self::new(&[patterns, &more].concat())
    }

    fn allows(&self, touched: &str) -> bool {
        self.0.iter().any(|it| it.is_match(touched))
    }
}

impl Sql {
    /// Whether statements touch only what they may; else what they touch beside it.
    fn allows(&self, statements: &[Statement]) -> Result<(), String> {
        if self.tables.is_none() && self.columns.is_none() {
            return Ok(());
        }
        let Touched { tables, columns } = Touched::by(statements);
        for (what, touched, allowed) in
            [("table", tables, &self.tables), ("column", columns, &self.columns)]
        {
            let Some(allowed) = allowed else { continue };
            if let Some(found) = touched.iter().find(|it| !allowed.allows(it)) {
                return Err(format!("the {what} `{}` is not allowed", excerpt(found, 0)));
            }
        }
        Ok(())
    }
}

/// Whether a text is statements and nothing else, which touch what they may; else why not.
pub(super) fn statements(text: &str, sql: &Sql) -> Result<(), String> {
    sql.allows(&parsed(text, sql.dialect)?)
}

fn parsed(text: &str, dialect: SqlDialect) -> Result<Vec<Statement>, String> {
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
        Ok(statements) => Ok(statements),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether a statement is in a text that touches what it may: in a block of code, or from a line that begins as
/// one. An error says what is not allowed, if there is a statement at all.
pub(super) fn is_in(text: &str, sql: &Sql) -> Result<(), Option<String>> {
    const BEGINNINGS: [&str; 8] =
        ["SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "WITH"];
    let block = |take| Extraction::CodeBlock { language: None, take };
    let blocks =
        [Take::First, Take::Last].into_iter().filter_map(|take| block(take).find(text).ok());
    let mut denied = None;
    let mut is_good = |text: &str| match parsed(text, sql.dialect).map(|it| sql.allows(&it)) {
        Ok(Ok(())) => true,
        Ok(Err(why)) => {
            denied.get_or_insert(why);
            false
        }
        Err(_) => false,
    };
    if blocks.into_iter().any(|span| is_good(&text[span])) {
        return Ok(());
    }
    let begins = |line: &str| {
        let word = line.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
        BEGINNINGS.iter().any(|it| it.eq_ignore_ascii_case(word))
    };
    let lines = text.match_indices('\n').map(|it| it.0 + 1);
    let starts = std::iter::once(0).chain(lines);
    // A blank line begins nothing, whatever follows it.
    let starts = starts.map(|at| text[at..].trim_start_matches([' ', '\t']));
    let found = starts.filter(|it| begins(it)).take(TRIES).any(|rest| {
        let end = rest.find(';').or_else(|| rest.find("\n\n")).unwrap_or(rest.len());
        is_good(&rest[..end])
    });
    if found { Ok(()) } else { Err(denied) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn of(dialect: SqlDialect) -> Sql {
        Sql { dialect, tables: None, columns: None }
    }

    #[test]
    fn statements_are_sql_and_prose_is_not() {
        let is_sql = |text| statements(text, &of(SqlDialect::Generic)).is_ok();
        assert!(is_sql("SELECT a, count(*) FROM t WHERE b > 1 GROUP BY a; DELETE FROM t"));
        assert!(!is_sql("SELECT a FROM"));
        assert!(!is_sql("Here is the query you asked for."));
        assert!(!is_sql(""));
    }

    #[test]
    fn dialects_differ() {
        let quoted = "SELECT [a] FROM [t]";
        assert!(statements(quoted, &of(SqlDialect::MsSql)).is_ok());
        assert!(statements(quoted, &of(SqlDialect::PostgreSql)).is_err());
    }

    #[test]
    fn a_statement_may_stand_in_other_text() {
        let is_in = |text: &str| is_in(text, &of(SqlDialect::Generic)).is_ok();
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
            let generic = of(SqlDialect::Generic);
            (statements(&text, &generic), statements(&longer, &generic))
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
                let _ = statements(&text, &of(SqlDialect::Generic));
                let _ = statements(
                    &format!("SELECT * FROM {}", open.repeat(depth)),
                    &of(SqlDialect::Generic),
                );
            }
        }
    }

    #[test]
    fn what_is_touched_has_to_be_allowed() {
        let list = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let sql = Sql {
            dialect: SqlDialect::MySql,
            tables: Some(Allowed::new(&list(&["select::null::users", "orders"])).unwrap()),
            columns: Some(Allowed::columns(&list(&["select::users::(id|name)", "total"])).unwrap()),
        };
        for text in ["SELECT id, Name FROM Users", "SELECT sum(total) FROM orders", "SELECT 1"] {
            assert_eq!(statements(text, &sql), Ok(()), "{text}");
        }
        for (text, denied) in [
            ("SELECT id FROM accounts", "table `select::null::accounts`"),
            ("DELETE FROM users", "table `delete::null::users`"),
            ("SELECT secret FROM users", "column `select::null::secret`"),
            ("SELECT * FROM users", "column `select::null::(.*)`"),
        ] {
            let why = format!("the {denied} is not allowed");
            assert_eq!(statements(text, &sql), Err(why.clone()), "{text}");
            assert_eq!(is_in(&format!("So:\n{text};"), &sql), Err(Some(why)), "{text}");
        }
        assert!(Allowed::new(&list(&["a("])).is_err());
    }
}
