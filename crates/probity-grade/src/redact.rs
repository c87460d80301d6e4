//! Takes secrets out of text that is going to be shown or stored.

use crate::policy::Policies;

/// Longest text that is kept of an error, in bytes.
const LONGEST: usize = 4096;

/// A text without its secrets, cut to a size that a report can bear.
pub fn redacted(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST);
    let kept = &text[..end];
    let mut output = String::with_capacity(kept.len());
    let mut at = 0;
    for hit in Policies::secrets().scan(kept) {
        // Hits may overlap.
        if hit.span.start >= at {
            output.push_str(&kept[at..hit.span.start]);
            output.push_str("[redacted]");
        }
        at = at.max(hit.span.end);
    }
    output.push_str(&kept[at.min(kept.len())..]);
    if end < text.len() {
        output.push('…');
    }
    output
}
