//! Which program a command word names.

use std::borrow::Cow;

use crate::{field::Field, utility};

/// A program and its arguments.
pub(super) struct Program<'f> {
    pub(super) name: Cow<'f, str>,
    pub(super) words: Cow<'f, [Field]>,
}

/// Folders whose programs are the ones that the bare name finds.
const STANDARD: &[&str] = &["/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/"];

/// Names that a shell runs itself, and not as the program of that name would.
const BUILTINS: &[&str] = &["[", "echo", "kill", "printf", "pwd", "test", "time"];

/// The program that `fields` run, other names resolved; `None` if its name is not known or there is none.
pub(super) fn resolve(fields: &[Field]) -> Option<Program<'_>> {
    let (first, rest) = fields.split_first()?;
    let written = first.literal()?;
    let name = STANDARD
        .iter()
        .find_map(|folder| written.strip_prefix(folder))
        .filter(|it| !it.contains('/') && !BUILTINS.contains(it))
        .unwrap_or(written);
    let other = utility::lookup(name).and_then(|it| it.same_as.as_deref());
    let Some([name, words @ ..]) = other else {
        return Some(Program { name: name.into(), words: Cow::Borrowed(rest) });
    };
    let words = words.iter().map(|it| Field { text: (**it).into(), span: first.span });
    Some(Program { name: (&**name).into(), words: words.chain(rest.iter().cloned()).collect() })
}
