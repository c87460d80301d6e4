//! Small JavaScript that only looks something up, as a JSON Pointer.

/// The pointer of `json.a[0].b`, of `(json) => json.a`, or of the same with any of these names as the root.
pub(super) fn pointer(script: &str, roots: &[&str]) -> Option<String> {
    let script = script.trim().trim_end_matches(';').trim();
    let (root, path) = match script.split_once("=>") {
        Some((arguments, body)) => {
            let first = arguments.trim().trim_start_matches('(').split([',', ')']).next()?.trim();
            (first, body.trim())
        }
        None => (*roots.iter().find(|it| script.starts_with(**it))?, script),
    };
    let is_name = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$')
    };
    if !is_name(root) {
        return None;
    }
    let mut rest = path.strip_prefix(root)?;
    let mut pointer = String::new();
    while !rest.is_empty() {
        let member = rest.strip_prefix("?.").or_else(|| rest.strip_prefix('.'));
        let (name, after) = match member {
            Some(member) if !member.starts_with('[') => {
                let end = member.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
                member.split_at(end.unwrap_or(member.len()))
            }
            other => {
                let (inner, after) = other.unwrap_or(rest).strip_prefix('[')?.split_once(']')?;
                let inner = inner.trim();
                let name = match inner.strip_prefix(['"', '\'']) {
                    Some(text) => text.strip_suffix(['"', '\''])?,
                    None if inner.chars().all(|c| c.is_ascii_digit()) => inner,
                    None => return None,
                };
                (name, after)
            }
        };
        if name.is_empty() || after.starts_with('(') {
            return None;
        }
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        rest = after;
    }
    Some(pointer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_up_is_a_pointer() {
        let of = |text| pointer(text, &["json"]);
        assert_eq!(
            of("json.choices[0].message.content").as_deref(),
            Some("/choices/0/message/content")
        );
        assert_eq!(of("(json, text) => json?.a['b/c']").as_deref(), Some("/a/b~1c"));
        assert_eq!(of("data => data.x;").as_deref(), Some("/x"));
        assert_eq!(of("json").as_deref(), Some(""));
        for other in [
            "json.a || text",
            "json.a.trim()",
            "text",
            "(json) => { return json.a }",
            "jsonx.a",
            "json[i]",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
