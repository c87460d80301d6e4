//! How expansions stand in a canonical form: as the shell text that makes them, between markers.

use super::{Builder, render};
use crate::{
    field::{self, CLOSE, Expand, OPEN, OPEN_QUOTED},
    tree::{Parameter, ParameterOp, Part, Word},
};

/// Writes expansions canonically: `$(...)` for backquotes, `${x}` for `$x`.
pub(super) struct Canonical<'s> {
    builder: Builder<'s>,
    /// Nothing is split here (assignments, `case` words), so quotes make no difference.
    unsplit: bool,
}

impl<'s> Canonical<'s> {
    pub(super) fn new(builder: Builder<'s>) -> Self {
        Canonical { builder, unsplit: false }
    }

    /// The word where its value is neither split nor globbed.
    pub(super) fn unsplit(&mut self, word: &Word) -> String {
        self.unsplit = true;
        let text = field::encode_single(word, self);
        self.unsplit = false;
        text
    }

    /// The body of a here-document, as it would be written.
    pub(super) fn body(&mut self, word: &Word, literal: bool) -> String {
        let mut body = String::new();
        for part in &word.parts {
            match part {
                Part::Text { text, .. } if literal => body.push_str(text),
                Part::Text { text, .. } => {
                    for character in text.chars() {
                        if matches!(character, '$' | '`' | '\\') {
                            body.push('\\');
                        }
                        body.push(character);
                    }
                }
                Part::Parameter(_)
                | Part::Command(_)
                | Part::Arithmetic(_)
                | Part::Process(_)
                | Part::Array(_) => {
                    let mut encoded = String::new();
                    self.expand(part, &mut encoded);
                    body.extend(encoded.chars().filter(|it| !field::is_marker(*it)));
                }
            }
        }
        body
    }

    fn push(&self, text: &str, quoted: bool, out: &mut String) {
        out.push(if quoted || self.unsplit { OPEN_QUOTED } else { OPEN });
        out.push_str(text);
        out.push(CLOSE);
    }

    fn parameter(&mut self, it: &Parameter) -> String {
        let subscript = it.subscript.as_ref().map(|it| format!("[{it}]")).unwrap_or_default();
        let name = format!("{}{subscript}", it.name);
        let outer = std::mem::take(&mut self.unsplit);
        let operands: Vec<_> = it
            .operands
            .iter()
            .map(|word| render::word(&field::encode_single(word, self)))
            .collect();
        self.unsplit = outer;
        let operand = operands.first().map(String::as_str).unwrap_or_default();
        let colon = |with: bool| if with { ":" } else { "" };
        let twice =
            |sign: &str, longest: bool| if longest { sign.repeat(2) } else { sign.to_owned() };
        match it.op {
            ParameterOp::Value => format!("${{{name}}}"),
            ParameterOp::Length => format!("${{#{name}}}"),
            ParameterOp::Default(with) => format!("${{{name}{}-{operand}}}", colon(with)),
            ParameterOp::Assign(with) => format!("${{{name}{}={operand}}}", colon(with)),
            ParameterOp::Alternative(with) => format!("${{{name}{}+{operand}}}", colon(with)),
            ParameterOp::Error(with) => format!("${{{name}{}?{operand}}}", colon(with)),
            ParameterOp::RemovePrefix(longest) => {
                format!("${{{name}{}{operand}}}", twice("#", longest))
            }
            ParameterOp::RemoveSuffix(longest) => {
                format!("${{{name}{}{operand}}}", twice("%", longest))
            }
            ParameterOp::Replace
            | ParameterOp::Slice
            | ParameterOp::Indirect
            | ParameterOp::Keys
            | ParameterOp::Names
            | ParameterOp::Case
            | ParameterOp::Transform
            | ParameterOp::Foreign => it.span.of(self.builder.source).to_owned(),
        }
    }
}

/// A number or a list that is never split further: quotes around it change nothing.
fn is_one_word(it: &Parameter) -> bool {
    it.op == ParameterOp::Length
        || it.op == ParameterOp::Value && matches!(&*it.name, "?" | "#" | "$" | "!")
        // A home directory with blanks in its name breaks every other program long before this one.
        || it.op == ParameterOp::Value && it.name == "HOME"
}

impl Expand for Canonical<'_> {
    fn expand(&mut self, part: &Part, out: &mut String) {
        match part {
            Part::Text { text, .. } => out.push_str(text),
            Part::Parameter(it) => {
                let text = self.parameter(it);
                self.push(&text, it.quoted || is_one_word(it), out);
            }
            Part::Command(it) => {
                let text = match it.body.is_empty() {
                    true => String::new(),
                    false => render::form(&self.builder.list(&it.body)),
                };
                // A parenthesis right after `$(` would begin arithmetic.
                let gap = if text.starts_with('(') { " " } else { "" };
                self.push(&format!("$({gap}{text})"), it.quoted, out);
            }
            Part::Arithmetic(it) => {
                let text: Vec<_> = it.expression.text.split_whitespace().collect();
                let text = match it.expression.text.contains(['"', '\'', '`']) {
                    true => it.expression.text.to_string(),
                    false => text.join(" "),
                };
                // Its value is a number, which is not split with any usual IFS.
                self.push(&format!("$(({text}))"), true, out);
            }
            Part::Process(it) => {
                let sign = if it.output { '>' } else { '<' };
                let text = format!("{sign}({})", render::form(&self.builder.list(&it.body)));
                self.push(&text, false, out);
            }
            Part::Array(it) => self.push(it.span.of(self.builder.source), false, out),
        }
    }
}
