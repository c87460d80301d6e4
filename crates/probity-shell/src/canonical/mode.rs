//! Permission modes, numeric and symbolic.

use std::collections::BTreeSet;

/// One way to write a mode. `None` for text that is no mode we can read.
pub(super) fn canonical(mode: &str) -> Option<String> {
    if mode.is_empty() {
        return None;
    }
    if mode.bytes().all(|it| matches!(it, b'0'..=b'7')) {
        // Five digits clear the special bits of folders too, which four do not.
        return (mode.len() <= 4).then(|| numeric(mode));
    }
    symbolic(mode)
}

fn numeric(digits: &str) -> String {
    let value = digits.trim_start_matches('0');
    format!("{value:0>3}")
}

struct Clause<'m> {
    who: &'m str,
    op: u8,
    permissions: &'m str,
}

fn symbolic(mode: &str) -> Option<String> {
    let clauses: Vec<Clause<'_>> = mode.split(',').map(clause).collect::<Option<_>>()?;
    as_number(&clauses).or_else(|| as_atoms(&clauses))
}

/// `u+x`; a clause with several operators is left alone.
fn clause(text: &str) -> Option<Clause<'_>> {
    let at = text.find(['+', '-', '='])?;
    let (who, rest) = text.split_at(at);
    let (op, permissions) = (rest.as_bytes()[0], &rest[1..]);
    let fits = who.bytes().all(|it| b"ugoa".contains(&it))
        && permissions.bytes().all(|it| b"rwxXst".contains(&it));
    fits.then_some(Clause { who, op, permissions })
}

/// `u=rwx,go=rx` says all nine bits, so it is a number.
fn as_number(clauses: &[Clause<'_>]) -> Option<String> {
    let mut digits = [None; 3];
    for Clause { who, op, permissions } in clauses {
        if *op != b'=' || who.is_empty() || permissions.contains(['X', 's', 't']) {
            return None;
        }
        let bits = [('r', 4), ('w', 2), ('x', 1)];
        let value: u8 = bits
            .iter()
            .filter(|(letter, _)| permissions.contains(*letter))
            .map(|(_, bit)| bit)
            .sum();
        for (at, letter) in ['u', 'g', 'o'].into_iter().enumerate() {
            if who.contains(letter) || who.contains('a') {
                digits[at] = Some(value);
            }
        }
    }
    let [Some(user), Some(group), Some(other)] = digits else { return None };
    Some(format!("{user}{group}{other}"))
}

/// `ug+x` and `g+x,u+x`: single grants and refusals, in order, if none undoes another.
fn as_atoms(clauses: &[Clause<'_>]) -> Option<String> {
    let mut atoms = BTreeSet::new();
    for Clause { who, op, permissions } in clauses {
        // Without a who the umask has a say; `a` is who it says.
        // `X` looks at what was granted before it.
        let looks = permissions.contains('X') && clauses.len() > 1;
        if *op == b'=' || looks || who.is_empty() && clauses.len() > 1 {
            return None;
        }
        let who: &str = if who.contains('a') { "ugo" } else { who };
        for permission in permissions.chars() {
            let people = if who.is_empty() { vec![None] } else { who.chars().map(Some).collect() };
            atoms.extend(people.into_iter().map(|person| (person, permission, *op)));
        }
    }
    let touched: BTreeSet<_> = atoms.iter().map(|(who, permission, _)| (who, permission)).collect();
    if touched.len() != atoms.len() || atoms.is_empty() {
        return None;
    }
    let written: Vec<String> = atoms
        .iter()
        .map(|(who, permission, op)| {
            format!("{}{}{permission}", who.map(String::from).unwrap_or_default(), char::from(*op))
        })
        .collect();
    Some(written.join(","))
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn modes_that_say_the_same_are_written_the_same() {
        for (a, b) in [
            ("0755", "755"),
            ("u=rwx,go=rx", "755"),
            ("a=r", "444"),
            ("ug+x", "g+x,u+x"),
            ("a+x", "ugo+x"),
        ] {
            assert_eq!(canonical(a), canonical(b), "{a} {b}");
        }
    }

    #[test]
    fn modes_that_differ_stay_apart() {
        for (a, b) in [
            ("755", "775"),
            ("+x", "a+x"),
            ("u+x", "u-x"),
            ("4755", "755"),
            ("u+x,u-x", "u-x,u+x"),
            ("7", "70"),
        ] {
            let (left, right) = (canonical(a), canonical(b));
            assert!(left.is_none() && right.is_none() || left != right, "{a} {b}");
        }
    }
}
