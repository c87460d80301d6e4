//! The operators of `test` and `[`.

use super::{Checker, args::Arg, rules::Rule, standard::Utility};

/// What is known about a word in the place of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    /// Both editions have it.
    Standard,
    /// It came with POSIX.1-2024.
    Later,
    /// Other shells have it.
    Foreign(&'static str),
}

impl Checker<'_> {
    pub(super) fn condition(&mut self, name: &str, utility: &'static Utility, args: &[Arg<'_>]) {
        self.about(name, utility, args);
        let mut rest = args.get(1..).unwrap_or_default();
        if name == "["
            && let Some((last, before)) = rest.split_last()
            && last.is("]")
        {
            rest = before;
        }
        self.expression(rest);
    }

    fn expression<'a>(&mut self, mut rest: &'a [Arg<'a>]) {
        while !rest.is_empty() {
            while let [first, after @ ..] = rest
                && (first.is("!") || first.is("("))
                && !after.is_empty()
                && !is_compared(rest)
            {
                if first.is("(") {
                    self.joint(first);
                }
                rest = after;
            }
            rest = self.primary(rest);
            while let [first, after @ ..] = rest
                && first.is(")")
            {
                self.joint(first);
                rest = after;
            }
            if let [first, after @ ..] = rest
                && (first.is("-a") || first.is("-o"))
            {
                self.joint(first);
                rest = after;
            }
        }
    }

    /// `-a`, `-o`, `(` and `)` were an extension of 2017, and 2024 took them away.
    fn joint(&mut self, arg: &Arg<'_>) {
        if !self.is_2017() {
            self.report(Rule::TestAndOr, arg.span());
        }
    }

    /// Reads one comparison or one test; returns what follows it.
    fn primary<'a>(&mut self, rest: &'a [Arg<'a>]) -> &'a [Arg<'a>] {
        if let [_, operator, _, ..] = rest
            && let Some(found) = operator.value().and_then(binary)
        {
            self.operator(operator, found);
            return &rest[3..];
        }
        if let [operator, _, ..] = rest
            && let Some(found) = operator.value().and_then(unary)
        {
            self.operator(operator, found);
            return &rest[2..];
        }
        rest.get(1..).unwrap_or_default()
    }

    fn operator(&mut self, arg: &Arg<'_>, operator: Operator) {
        let text = &arg.text;
        match operator {
            Operator::Standard => {}
            Operator::Later if !self.is_2017() => {}
            Operator::Later => {
                let message = format!("`{text}` of `test` came with POSIX.1-2024");
                let instead = match &**text {
                    "-nt" => Some("`[ -n \"$(find FILE1 -prune -newer FILE2)\" ]`"),
                    "-ot" => Some("`[ -n \"$(find FILE2 -prune -newer FILE1)\" ]`"),
                    "-ef" => Some("compare `ls -di` of both"),
                    _ => Some("`expr \"x$a\" \\< \"x$b\" >/dev/null`"),
                };
                self.report_with(Rule::TestOperator, arg.span(), message, instead);
            }
            Operator::Foreign(instead) => {
                let message = format!("`{text}` is not an operator of `test` in the standard");
                self.report_with(Rule::TestOperator, arg.span(), message, Some(instead));
            }
        }
    }
}

/// `[ ( = x ]`: what looks like a joint is compared.
fn is_compared(rest: &[Arg<'_>]) -> bool {
    matches!(rest, [_, operator, _, ..] if operator.value().and_then(binary).is_some())
}

fn binary(text: &str) -> Option<Operator> {
    Some(match text {
        "=" | "!=" | "-eq" | "-ne" | "-gt" | "-ge" | "-lt" | "-le" => Operator::Standard,
        "-nt" | "-ot" | "-ef" | "<" | ">" => Operator::Later,
        "==" => Operator::Foreign("`=`"),
        "=~" => Operator::Foreign(
            "`expr \"$x\" : 'RE' >/dev/null`, `grep -E`, or `case` with a pattern",
        ),
        "!==" | "===" => Operator::Foreign("`=` or `!=`"),
        "<=" | ">=" => {
            Operator::Foreign("`! [ \"$a\" \\> \"$b\" ]` (POSIX.1-2024), or `-le` for numbers")
        }
        _ => return None,
    })
}

fn unary(text: &str) -> Option<Operator> {
    Some(match text {
        "-b" | "-c" | "-d" | "-e" | "-f" | "-g" | "-h" | "-L" | "-n" | "-p" | "-r" | "-S"
        | "-s" | "-t" | "-u" | "-w" | "-x" | "-z" => Operator::Standard,
        "-a" => Operator::Foreign("`-e`"),
        "-k" => Operator::Foreign("`[ -n \"$(find FILE -prune -perm -1000)\" ]`"),
        "-o" => Operator::Foreign("look at `$-`, or at `set +o`"),
        "-v" => Operator::Foreign("`[ -n \"${NAME+set}\" ]`"),
        "-R" => Operator::Foreign("leave it out"),
        "-O" => Operator::Foreign("`[ -n \"$(find FILE -prune -user \"$(id -u)\")\" ]`"),
        "-G" => Operator::Foreign("`[ -n \"$(find FILE -prune -group \"$(id -g)\")\" ]`"),
        "-N" => Operator::Foreign("no portable form; compare times with `find -newer`"),
        _ => return None,
    })
}
