//! What an expression of `find` looks for.

use super::{Role, Syntax, walk::Walker};
use crate::field::{self, Field};

pub(super) fn read(walker: &mut Walker, arguments: &[Field]) {
    let starts = |it: &Field| it.text.starts_with(['-', '(', '!', ')']) && it.text.len() <= 20;
    let roots = arguments.iter().skip_while(|it| matches!(&*it.text, "-H" | "-L" | "-P"));
    let roots: Vec<_> = roots.take_while(|it| !starts(it)).collect();
    for root in &roots {
        walker.operand(&root.text, Role::Directory);
    }
    walker.found.here |= roots.is_empty();
    let mut at = 0;
    while let Some(test) = arguments.get(at) {
        at += 1;
        let test = test.text.as_str();
        if matches!(test, "-exec" | "-execdir" | "-ok" | "-okdir") {
            let rest = &arguments[at..];
            let end = rest.iter().position(|it| matches!(&*it.text, ";" | "+"));
            let end = end.unwrap_or(rest.len());
            walker.run(&rest[..end]);
            at += end;
            continue;
        }
        walker.found.emptiness |= test == "-empty";
        let Some(value) = arguments.get(at).filter(|_| takes_value(test)) else { continue };
        at += 1;
        primary(walker, test, &field::display(&value.text));
    }
}

fn takes_value(test: &str) -> bool {
    matches!(
        test,
        "-name"
            | "-iname"
            | "-lname"
            | "-ilname"
            | "-path"
            | "-ipath"
            | "-wholename"
            | "-iwholename"
            | "-regex"
            | "-iregex"
            | "-size"
            | "-mtime"
            | "-atime"
            | "-ctime"
            | "-mmin"
            | "-amin"
            | "-cmin"
            | "-newer"
            | "-anewer"
            | "-cnewer"
            | "-samefile"
            | "-perm"
            | "-user"
            | "-group"
            | "-uid"
            | "-gid"
            | "-type"
            | "-xtype"
            | "-maxdepth"
            | "-mindepth"
            | "-links"
            | "-inum"
            | "-fprint"
            | "-fprint0"
            | "-fls"
            | "-printf"
    ) || test.starts_with("-newer")
}

fn primary(walker: &mut Walker, test: &str, value: &str) {
    let found = &mut walker.found;
    match test {
        "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-iwholename" => {
            found.names.insert(value.to_owned());
        }
        "-regex" | "-iregex" => found.text(value, Syntax::Extended),
        "-size" => found.sizes.extend(size(value)),
        "-mtime" | "-atime" | "-ctime" => found.ages.extend(count(value).map(|it| it * 86_400)),
        "-mmin" | "-amin" | "-cmin" => found.ages.extend(count(value).map(|it| it * 60)),
        "-perm" => found.modes.extend(mode(value)),
        "-user" => {
            found.users.insert(value.to_owned());
        }
        "-group" => {
            found.groups.insert(value.to_owned());
        }
        "-type" | "-xtype" => found.kinds.extend(value.chars()),
        "-maxdepth" | "-mindepth" | "-links" => found.numbers_in(value),
        "-fprint" | "-fprint0" | "-fls" => walker.operand(value, Role::Target),
        _ if test.starts_with("-newer") || matches!(test, "-anewer" | "-cnewer" | "-samefile") => {
            walker.operand(value, Role::File);
        }
        _ => {}
    }
}

fn count(value: &str) -> Option<u64> {
    value.trim_start_matches(['+', '-']).parse().ok().filter(|it| *it < 100_000)
}

/// A size in bytes, of what `find` counts in.
pub(super) fn size(value: &str) -> Option<u64> {
    let value = value.trim_start_matches(['+', '-']);
    let digits = value.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let unit: u64 = match &value[digits.len()..] {
        "c" => 1,
        "w" => 2,
        "" | "b" => 512,
        "k" | "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Permission bits, of octal digits or of clauses such as `u+rw,g=x`.
pub(super) fn mode(value: &str) -> Option<u32> {
    let value = value.trim_start_matches(['-', '/', '+']);
    if !value.is_empty() && value.bytes().all(|it| it.is_ascii_digit()) {
        return u32::from_str_radix(value, 8).ok().filter(|it| *it <= 0o7777);
    }
    let mut bits = 0;
    for clause in value.split(',') {
        let at = clause.find(['+', '-', '='])?;
        let (who, what) = (&clause[..at], &clause[at + 1..]);
        let who = if who.is_empty() || who.contains('a') { "ugo" } else { who };
        for class in who.chars() {
            let shift = match class {
                'u' => 6,
                'g' => 3,
                _ => 0,
            };
            for letter in what.chars() {
                bits |= match letter {
                    'r' => 4 << shift,
                    'w' => 2 << shift,
                    'x' | 'X' => 1 << shift,
                    's' if shift == 6 => 0o4000,
                    's' if shift == 3 => 0o2000,
                    't' => 0o1000,
                    _ => 0,
                };
            }
        }
    }
    Some(bits)
}
