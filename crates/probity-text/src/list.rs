//! Lists that are written as one text.

/// The texts between commas; one with commas has quotation marks around it.
pub fn split(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
    while let Some(first) = rest.chars().next() {
        let (field, after) = match first {
            '"' => quoted(&rest[1..]),
            _ => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].trim().to_owned(), &rest[end..])
            }
        };
        found.push(field);
        rest = after.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
    }
    found
}

/// What stands before the next quotation mark, and what follows it.
fn quoted(text: &str) -> (String, &str) {
    let mut field = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let doubled = ["\\\"", "\\\\", "\"\""].iter().any(|it| rest.starts_with(it));
        if doubled {
            field.extend(rest[1..].chars().next());
            rest = &rest[2..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        if c == '"' {
            break;
        }
        field.push(c);
    }
    (field, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_between_commas_may_be_quoted() {
        assert_eq!(split("a, \"b, c\",\"d\"\"e\" ,, f"), ["a", "b, c", "d\"e", "f"]);
        assert_eq!(split("\"open, end"), ["open, end"]);
        assert_eq!(split("\"a\",\r\n\"b\"\r\n"), ["a", "b"]);
    }
}
