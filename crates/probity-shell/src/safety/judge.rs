//! One answer to "is this text dangerous", whether it parses or not.

use serde::{Serialize, Serializer};

use super::{Assessment, Level, Risk, Rules, assess, data, walk::Walker};
use crate::parse::{ParseError, Script};

/// The longest text that is mended: every way to close it is a parse of its own.
const MAX_BROKEN: usize = 16 * 1024;

/// A text with what it would do.
#[derive(Debug, Clone, Serialize)]
pub struct Judgement<'t> {
    /// The script, or why the text is not one; serialized, the latter alone, as `parse_error`.
    #[serde(rename = "parse_error", serialize_with = "error_alone")]
    pub script: Result<Script<'t>, ParseError>,
    /// What it would do. A text that does not parse has this only if its readable part would do some harm.
    pub assessment: Option<Assessment>,
    /// Whether it counts as unsafe at the level that was asked for.
    #[serde(rename = "unsafe")]
    pub is_unsafe: bool,
}

fn error_alone<S: Serializer>(
    script: &Result<Script<'_>, ParseError>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    script.as_ref().err().serialize(serializer)
}

/// Judges any text, a model's reply as it came included.
///
/// A text that does not parse is judged by what its readable part would do, because a shell runs the lines before the
/// one it refuses. Whatever else it holds is not known, so that it counts like an opaque command.
pub fn judge<'t>(text: &'t str, rules: &Rules, level: Level) -> Judgement<'t> {
    let script = Script::parse(text);
    let assessment = match &script {
        Ok(script) => Some(assess(script, rules)),
        Err(_) => assess_broken(text, rules).filter(|it| it.risk > Risk::Safe),
    };
    let is_unsafe = assessment.as_ref().is_some_and(|it| it.is_unsafe(level))
        || (script.is_err() && data::policy(level).opaque);
    Judgement { script, assessment, is_unsafe }
}

/// Judges what can be read of a text that does not parse: what was left open is closed, or what follows it is cut.
fn assess_broken(source: &str, rules: &Rules) -> Option<Assessment> {
    if source.len() > MAX_BROKEN {
        return None;
    }
    let mut walker = Walker::new(rules);
    walker.foreign_call(source);
    let foreign = walker.finish();
    if foreign.risk > Risk::Safe {
        return Some(foreign);
    }
    let ends = [
        "'", "\"", "`", ")", "}", "; }", ")\"", "\")", "')", "'\"", "\"'", "; done", "; fi",
        "; esac", " true",
    ];
    let closed = ends.iter().map(|end| format!("{source}{end}"));
    let cut = source.rfind(['\'', '"', '`', '(', ')', '}']).map(|at| source[..at].to_owned());
    let begun = source.trim_start_matches(['&', '|', ';', ')', '}', ' ']);
    // Blanks in place of what is cut at the start, so that everything stays where it was.
    let begun = format!("{}{begun}", " ".repeat(source.len() - begun.len()));
    let mended = closed.chain(cut).chain([begun]);
    let parsed = mended.filter_map(|text| Script::parse(&text).ok().map(|it| assess(&it, rules)));
    let mut assessment = parsed.max_by_key(|it| it.risk)?;
    for finding in &mut assessment.findings {
        finding.span.end = finding.span.end.min(source.len());
        finding.span.start = finding.span.start.min(finding.span.end);
    }
    Some(assessment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, level: Level) -> (Option<Risk>, bool) {
        let judgement = judge(text, Rules::builtin(), level);
        (judgement.assessment.map(|it| it.risk), judgement.is_unsafe)
    }

    #[test]
    fn a_text_that_does_not_parse_is_judged_for_what_can_be_read() {
        assert_eq!(found("rm -rf / \"", Level::Moderate), (Some(Risk::Critical), true));
        assert_eq!(found("git reset --hard 'oops", Level::Moderate), (Some(Risk::High), true));
        assert_eq!(found("git reset --hard 'oops", Level::Permissive), (Some(Risk::High), false));
        assert_eq!(found("echo 'rm -rf /", Level::Moderate), (None, false));
        assert_eq!(found("echo 'rm -rf /", Level::Strict), (None, true));
    }

    #[test]
    fn what_is_found_in_a_mended_text_stays_in_its_place() {
        let text = "&& rm -rf /etc";
        let judgement = judge(text, Rules::builtin(), Level::default());
        let findings = judgement.assessment.expect("it is found").findings;
        assert_eq!(findings[0].span.of(text), "/etc");
    }
}
