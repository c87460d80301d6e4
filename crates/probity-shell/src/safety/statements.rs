//! Statements given to database clients: SQL, and the calls of mongo.

/// What a text of SQL statements destroys, the worst of it.
pub(super) fn sql(text: &str) -> Option<&'static str> {
    let statements = sql_statements(text);
    let judged = statements.iter().filter_map(|words| statement(words));
    judged.max_by_key(|it| *it != "sql-write")
}

/// Statements as upper-case words; strings, comments and quotes are left out.
fn sql_statements(text: &str) -> Vec<Vec<String>> {
    let mut statements = vec![Vec::new()];
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = match character {
            '\'' => string_length(rest),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |it| it + 2),
            ';' => {
                statements.push(Vec::new());
                1
            }
            _ if character.is_alphanumeric() || character == '_' => {
                let end = rest
                    .find(|it: char| !(it.is_alphanumeric() || it == '_' || it == '.'))
                    .unwrap_or(rest.len());
                if let Some(words) = statements.last_mut() {
                    words.push(rest[..end].to_ascii_uppercase());
                }
                end
            }
            '=' => {
                if let Some(words) = statements.last_mut() {
                    words.push("=".to_owned());
                }
                1
            }
            _ => character.len_utf8(),
        };
        rest = &rest[length.max(1).min(rest.len())..];
    }
    statements
}

fn string_length(text: &str) -> usize {
    text[1..].find('\'').map_or(text.len(), |it| it + 2)
}

fn statement(words: &[String]) -> Option<&'static str> {
    let at = |index: usize| words.get(index).map_or("", String::as_str);
    let has = |word: &str| words.iter().any(|it| it == word);
    let always_true = || {
        words.windows(4).any(|it| it[0] == "WHERE" && it[1] == it[3] && it[2] == "=")
            || (at(words.len().saturating_sub(2)) == "WHERE" && at(words.len() - 1) == "TRUE")
    };
    match (at(0), at(1)) {
        ("DROP", "DATABASE" | "SCHEMA" | "KEYSPACE" | "CATALOG") => Some("sql-drop-database"),
        ("DROP", "VIEW" | "INDEX" | "TRIGGER" | "FUNCTION" | "PROCEDURE" | "POLICY") => {
            Some("sql-drop")
        }
        ("DROP", kind) if !kind.is_empty() => Some("sql-drop"),
        ("TRUNCATE", _) if words.len() > 1 => Some("sql-truncate"),
        ("DELETE", _) if has("FROM") && (!has("WHERE") || always_true()) => Some("sql-delete-all"),
        ("UPDATE", _) if has("SET") && (!has("WHERE") || always_true()) => Some("sql-update-all"),
        ("DELETE" | "UPDATE" | "INSERT", _) if words.len() > 2 => Some("sql-write"),
        ("ALTER", "TABLE") if has("DROP") => Some("sql-drop-column"),
        ("GRANT", "ALL") | ("REVOKE", _) => Some("sql-grant"),
        ("SHUTDOWN" | "FLUSH", _) if words.len() == 1 => Some("sql-drop"),
        _ => None,
    }
}

/// What a mongo script destroys.
pub(super) fn mongo(text: &str) -> Option<&'static str> {
    let calls = |name: &str| {
        text.match_indices(name)
            .any(|(at, _)| text[at + name.len()..].trim_start().starts_with('('))
    };
    match () {
        () if calls(".dropDatabase") => Some("mongo-drop-database"),
        () if [
            ".drop",
            ".dropCollection",
            ".dropIndexes",
            ".dropUser",
            ".dropAllUsers",
            ".dropIndex",
        ]
        .iter()
        .any(|it| calls(it)) =>
        {
            Some("mongo-drop")
        }
        () if [
            ".deleteMany",
            ".remove",
            ".findAndRemove",
            ".bulkWrite",
            ".shutdownServer",
            ".deleteOne",
        ]
        .iter()
        .any(|it| calls(it)) =>
        {
            Some("mongo-delete")
        }
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_is_read_by_statement() {
        for (text, expected) in [
            ("DROP TABLE parcels", Some("sql-drop")),
            ("drop database depot;", Some("sql-drop-database")),
            ("SELECT 'DROP TABLE parcels'", None),
            ("-- DROP TABLE parcels\nSELECT 1", None),
            ("SELECT 1; TRUNCATE parcels", Some("sql-truncate")),
            ("DELETE FROM parcels", Some("sql-delete-all")),
            ("DELETE FROM parcels WHERE 1=1", Some("sql-delete-all")),
            ("DELETE FROM parcels WHERE id = 3", Some("sql-write")),
            ("SELECT * FROM drops", None),
        ] {
            assert_eq!(sql(text), expected, "{text}");
        }
    }
}
