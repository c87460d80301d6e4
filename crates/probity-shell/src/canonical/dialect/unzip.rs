//! `unzip`: the one option that may stand behind the archive.

use super::super::command::reads_one;
use crate::field::{self, Field};

/// `unzip a.zip -d dir` is `unzip -d dir a.zip`. Behind the archive it is read right there or as the last of all, and
/// once; any other word that begins with a dash is the name of a member.
pub(super) fn rewritten(arguments: &[Field]) -> Option<Vec<Field>> {
    let options = leading_options(arguments)?;
    let (archive, behind) = arguments[options..].split_first()?;
    let at = behind.iter().position(|it| it.text.starts_with('-'))?;
    let end = match behind[at].text.strip_prefix("-d")? {
        "" => at + 2,
        attached if field::is_literal(attached) => at + 1,
        _ => return None,
    };
    if end > behind.len() || at > 0 && end < behind.len() || !reads_one(&archive.text) {
        return None;
    }
    let directory = &behind[at..end];
    let members: Vec<Field> = [&behind[..at], &behind[end..]].concat();
    let is_member = |it: &Field| field::is_literal(&it.text) && !it.text.starts_with('-');
    if !members.iter().all(is_member) || !directory.iter().all(|it| reads_one(&it.text)) {
        return None;
    }
    let mut moved = arguments[..options].to_vec();
    moved.extend_from_slice(directory);
    moved.push(archive.clone());
    moved.extend(members);
    Some(moved)
}

/// How many words before the archive are options; `None` if the directory is already among them, or the archive is not
/// surely the next word.
fn leading_options(arguments: &[Field]) -> Option<usize> {
    let mut at = 0;
    while let Some(letters) = arguments.get(at)?.text.strip_prefix('-') {
        let valued = letters.find(['d', 'P', 'x', '-', 'Z']);
        at += match valued.map(|it| letters.split_at(it + 1)) {
            None => 1,
            Some((before, "")) if before.ends_with('P') => 2,
            Some((before, _)) if before.ends_with('P') => 1,
            Some(_) => return None,
        };
    }
    Some(at)
}
