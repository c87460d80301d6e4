//! What stands between an opening and a closing mark of the same kind.

use std::ops::Range;

use super::Take;

/// What stands in the first or last `\boxed{…}` whose braces are balanced.
pub(super) fn boxed(text: &str, take: Take) -> Option<Range<usize>> {
    const NAMES: [&str; 2] = ["\\boxed", "\\fbox"];
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut chosen = Chosen::new(take);
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\\' => {
                escaped = !escaped;
                continue;
            }
            b'{' if !escaped => {
                let before = text[..at].trim_end_matches(' ');
                open.push((at + 1, NAMES.iter().any(|it| before.ends_with(it))));
            }
            b'}' if !escaped => {
                if let Some((start, true)) = open.pop() {
                    chosen.offer(start..at);
                }
            }
            _ => {}
        }
        escaped = false;
    }
    chosen.span
}

/// What stands in the first or last element of that name that has an end.
pub(super) fn element(text: &str, name: &str, take: Take) -> Option<Range<usize>> {
    let mut open: Vec<usize> = Vec::new();
    let mut chosen = Chosen::new(take);
    let mut at = 0;
    while let Some(found) = text[at..].find('<') {
        let start = at + found;
        at = start + 1;
        let is_end = text[at..].starts_with('/');
        let after = at + usize::from(is_end) + name.len();
        let named = text.get(at + usize::from(is_end)..after);
        if !named.is_some_and(|it| it.eq_ignore_ascii_case(name)) {
            continue;
        }
        let Some(close) = tag_end(text, after) else { continue };
        at = close + 1;
        match is_end {
            true => {
                if let Some(opened) = open.pop() {
                    chosen.offer(opened..start);
                }
            }
            false if text[..close].ends_with('/') => chosen.offer(close..close),
            false => open.push(close + 1),
        }
    }
    chosen.span
}

/// Where the tag ends whose name ends at a byte; none if the name goes on or the tag has no end.
fn tag_end(text: &str, after: usize) -> Option<usize> {
    let rest = &text[after..];
    if !rest.starts_with(|c: char| c == '>' || c == '/' || c.is_whitespace()) {
        return None;
    }
    let end = rest.find(['<', '>'])?;
    rest[end..].starts_with('>').then_some(after + end)
}

/// The span that begins first, or last.
struct Chosen {
    take: Take,
    span: Option<Range<usize>>,
}

impl Chosen {
    fn new(take: Take) -> Self {
        Self { take, span: None }
    }

    fn offer(&mut self, span: Range<usize>) {
        let better = self.span.as_ref().is_none_or(|it| match self.take {
            Take::First => span.start < it.start,
            Take::Last => span.start > it.start,
        });
        if better {
            self.span = Some(span);
        }
    }
}
