//! What is taken out of the Markdown of a skill.

/// Text with every run of blanks made one.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first characters of a text, the last of them an ellipsis where something was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => {
            let kept: String = text.chars().take(most - 1).collect();
            format!("{}…", kept.trim_end())
        }
    }
}

/// The section about scope, or what stands before the second heading.
pub(super) fn scope(body: &str) -> String {
    let lines = prose(body);
    let level = |line: &str| {
        let marks = line.bytes().take_while(|byte| *byte == b'#').count();
        (marks > 0 && line[marks..].starts_with(' ')).then_some(marks)
    };
    let names_scope = |line: &&String| {
        let name = line.trim_start_matches('#').trim().trim_end_matches(':');
        level(line).is_some() && name.to_lowercase().starts_with("scope")
    };
    let chosen: Vec<&str> = match lines.iter().position(|line| names_scope(&line)) {
        Some(at) => {
            let own = level(&lines[at]).unwrap_or(1);
            let rest = lines[at + 1..].iter();
            rest.take_while(|line| level(line).is_none_or(|other| other > own))
                .map(String::as_str)
                .collect()
        }
        None => {
            let mut headings = 0;
            let before = lines.iter().take_while(|line| {
                headings += usize::from(level(line).is_some());
                headings < 2
            });
            before.filter(|line| level(line).is_none()).map(String::as_str).collect()
        }
    };
    let mut text = String::new();
    for line in chosen {
        // Blank lines that stood around something that is gone become one.
        if !line.trim().is_empty() || !(text.is_empty() || text.ends_with("\n\n")) {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text.trim_end().to_owned()
}

/// The lines outside code fences, without references to other files.
fn prose(body: &str) -> Vec<String> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for line in body.lines() {
        let trimmed = line.trim_start();
        match fence {
            Some(mark) => {
                if trimmed.starts_with(mark)
                    && trimmed.trim_end().trim_start_matches(mark).is_empty()
                {
                    fence = None;
                }
            }
            None if trimmed.starts_with("```") => fence = Some("```"),
            None if trimmed.starts_with("~~~") => fence = Some("~~~"),
            None => lines.push(without_references(line)),
        }
    }
    lines
}

/// A line in which links are their texts, and marks such as `[skill:other]` are gone.
fn without_references(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(open) = rest.find('[') {
        let Some(close) = rest[open..].find(']').map(|at| open + at) else { break };
        let inner = &rest[open + 1..close];
        let after = &rest[close + 1..];
        let target = after.strip_prefix('(').and_then(|it| it.find(')').map(|at| &it[at + 1..]));
        text.push_str(&rest[..open]);
        rest = match target {
            Some(behind) => {
                text.push_str(inner);
                behind
            }
            None if is_mark(inner) => after,
            None => {
                text.push_str(&rest[open..=close]);
                after
            }
        };
    }
    text.push_str(rest);
    text
}

/// Whether what stands in brackets names another skill.
fn is_mark(inner: &str) -> bool {
    inner.split_once(':').is_some_and(|(kind, name)| {
        kind == "skill" && !name.is_empty() && !name.contains(char::is_whitespace)
    })
}
