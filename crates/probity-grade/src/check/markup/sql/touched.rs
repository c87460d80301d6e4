//! Which tables and columns statements touch, and how: as `operation::database::table` and
//! `operation::table::column`, the form that promptfoo's lists have.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax is that of the parser, and most of it touches nothing"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
};

use sqlparser::ast::{
    AssignmentTarget, Expr, FromTable, ObjectName, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, Statement, TableFactor, TableObject, Visit as _, Visitor,
};

/// All columns of a table.
const ALL: &str = "(.*)";
/// What stands where no name is written.
const NONE: &str = "null";
/// Reading.
const SELECT: &str = "select";

/// What statements touch.
#[derive(Debug, Default)]
pub(super) struct Touched {
    pub(super) tables: BTreeSet<String>,
    pub(super) columns: BTreeSet<String>,
}

impl Touched {
    pub(super) fn by(statements: &[Statement]) -> Self {
        let mut touched = Self::default();
        for statement in statements {
            let mut names = Names::default();
            let _ = statement.visit(&mut names);
            touched.targets(statement);
            let mut walk =
                Walk { touched: &mut touched, names, operation: operation(statement), depth: 0 };
            let _ = statement.visit(&mut walk);
        }
        touched
    }

    fn table(&mut self, operation: &str, name: &ObjectName) {
        let (database, table) = parts(name);
        self.tables.insert(format!("{operation}::{database}::{table}"));
    }

    fn column(&mut self, operation: &str, table: &str, column: &str) {
        self.columns.insert(format!("{operation}::{table}::{column}"));
    }

    /// What a statement changes, as far as it is no expression.
    fn targets(&mut self, statement: &Statement) {
        match statement {
            Statement::Insert(insert) => {
                let TableObject::TableName(name) = &insert.table else { return };
                let table = parts(name).1;
                if insert.columns.is_empty() {
                    self.column("insert", &table, ALL);
                }
                for column in &insert.columns {
                    self.column("insert", &table, &parts(column).1);
                }
            }
            Statement::Update(update) => {
                for assignment in &update.assignments {
                    let targets = match &assignment.target {
                        AssignmentTarget::ColumnName(name) => std::slice::from_ref(name),
                        AssignmentTarget::Tuple(names) => names.as_slice(),
                    };
                    for target in targets {
                        let (table, column) = parts(target);
                        self.column("update", &table, &column);
                    }
                }
            }
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) =
                    &delete.from;
                for table in tables {
                    if let TableFactor::Table { name, .. } = &table.relation {
                        self.column("delete", &parts(name).1, ALL);
                    }
                }
            }
            Statement::CreateTable(create) => {
                for column in &create.columns {
                    self.column("create", NONE, &column.name.value);
                }
            }
            Statement::Drop { names, .. } => {
                names.iter().for_each(|name| self.table("drop", name));
            }
            Statement::Truncate(truncate) => {
                truncate.table_names.iter().for_each(|it| self.table("truncate", &it.name));
            }
            _ => {}
        }
    }
}

/// What a statement does to the tables that it names outside of queries.
fn operation(statement: &Statement) -> &'static str {
    match statement {
        Statement::Insert(_) => "insert",
        Statement::Update(_) => "update",
        Statement::Delete(_) => "delete",
        Statement::CreateTable(_) | Statement::CreateView(_) | Statement::CreateIndex(_) => {
            "create"
        }
        Statement::AlterTable(_) => "alter",
        Statement::Drop { .. } => "drop",
        Statement::Truncate(_) => "truncate",
        _ => SELECT,
    }
}

/// The last two parts of a name.
fn parts(name: &ObjectName) -> (String, String) {
    let mut words = name.0.iter().rev().map(|it| match it.as_ident() {
        Some(ident) => ident.value.clone(),
        None => it.to_string(),
    });
    let last = words.next().unwrap_or_default();
    (words.next().unwrap_or_else(|| NONE.to_owned()), last)
}

/// Tables by their other names.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn table(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias: Some(alias), .. } = factor {
            self.0.insert(alias.name.value.clone(), parts(name).1);
        }
        ControlFlow::Continue(())
    }
}

struct Walk<'t> {
    touched: &'t mut Touched,
    names: Names,
    operation: &'static str,
    /// How many queries this place is in.
    depth: usize,
}

impl Visitor for Walk<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            match item {
                SelectItem::Wildcard(_) => self.touched.column(SELECT, NONE, ALL),
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => {
                    let table = self.names.table(&parts(name).1);
                    self.touched.column(SELECT, &table, ALL);
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let operation = if self.depth > 0 { SELECT } else { self.operation };
        self.touched.table(operation, relation);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => self.touched.column(SELECT, NONE, &name.value),
            Expr::CompoundIdentifier(names) => {
                if let [.., table, column] = names.as_slice() {
                    let table = self.names.table(&table.value);
                    self.touched.column(SELECT, &table, &column.value);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::{dialect::MySqlDialect, parser::Parser};

    use super::*;

    /// What node-sql-parser 5, which promptfoo asks, says of the same statements.
    #[test]
    fn the_lists_are_those_of_node_sql_parser() {
        for (text, tables, columns) in [
            (
                "SELECT a, t.b FROM t WHERE c>1",
                "select::null::t",
                "select::null::a select::null::c select::t::b",
            ),
            ("SELECT * FROM db.t", "select::db::t", "select::null::(.*)"),
            (
                "SELECT x.a FROM t x JOIN u ON x.id=u.id",
                "select::null::t select::null::u",
                "select::t::a select::t::id select::u::id",
            ),
            ("INSERT INTO t (a,b) VALUES (1,2)", "insert::null::t", "insert::t::a insert::t::b"),
            (
                "INSERT INTO t SELECT a FROM u",
                "insert::null::t select::null::u",
                "insert::t::(.*) select::null::a",
            ),
            ("UPDATE t SET a=1 WHERE b=2", "update::null::t", "select::null::b update::null::a"),
            ("DELETE FROM t WHERE a=1", "delete::null::t", "delete::t::(.*) select::null::a"),
            (
                "WITH c AS (SELECT a FROM t) SELECT a FROM c",
                "select::null::c select::null::t",
                "select::null::a",
            ),
            (
                "SELECT count(*) FROM t GROUP BY a ORDER BY b",
                "select::null::t",
                "select::null::a select::null::b",
            ),
            (
                "SELECT a FROM t WHERE b IN (SELECT c FROM u)",
                "select::null::t select::null::u",
                "select::null::a select::null::b select::null::c",
            ),
            ("SELECT t.* FROM t", "select::null::t", "select::t::(.*)"),
            ("SELECT `A` FROM `T`", "select::null::T", "select::null::A"),
            ("SELECT 1", "", ""),
        ] {
            let statements = Parser::parse_sql(&MySqlDialect {}, text).unwrap();
            let touched = Touched::by(&statements);
            let joined = |all: BTreeSet<String>| all.into_iter().collect::<Vec<_>>().join(" ");
            assert_eq!(joined(touched.tables), tables, "{text}");
            assert_eq!(joined(touched.columns), columns, "{text}");
        }
    }
}
