//! `find`: what it deletes, writes and runs, from where it starts.

use super::{
    call::Call,
    feed::Feed,
    special::{Write, replaced},
    target::{self, Classes, classify},
    walk::Walker,
};
use crate::field::{self, Field};

/// Where nothing may be removed by a pattern.
const HIGH: Classes = Classes::ROOT.or(Classes::HOME).or(Classes::CORE);

/// How many of the directories that `find` starts from are looked at.
const MAX_STARTS: usize = 16;

/// Tests of `find` that narrow down what it finds.
const FILTERS: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-mtime",
    "-ctime",
    "-atime",
    "-mmin",
    "-cmin",
    "-amin",
    "-newer",
    "-size",
    "-user",
    "-group",
    "-perm",
    "-type",
    "-inum",
    "-links",
    "-maxdepth",
];

/// What `find` is told to do.
#[derive(Default)]
struct Expression<'a> {
    deletes: bool,
    pattern: Option<&'a str>,
    filtered: bool,
    /// Only what is empty is found.
    empty: bool,
    runs: Vec<&'a [&'a str]>,
}

impl Walker<'_> {
    pub(super) fn find(&mut self, call: &Call<'_>) {
        let args: Vec<&str> = call.args.iter().map(|it| it.text).collect();
        let begins = |it: &&str| it.starts_with(['-', '(', '!']);
        let paths: Vec<&str> = args.iter().copied().take_while(|it| !begins(it)).collect();
        let starts_given = !paths.is_empty();
        let starts: Vec<&str> = if starts_given { paths } else { vec!["."] };
        let mut expression = Expression::default();
        let mut at = if starts_given { starts.len() } else { 0 };
        while let Some(word) = args.get(at).copied() {
            at += 1;
            match word {
                "-delete" => expression.deletes = true,
                "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec"
                | "--exec-batch" => {
                    let end = |it: &&str| matches!(*it, ";" | "+");
                    let words = args[at..].iter().take_while(|it| !end(it)).count();
                    expression.runs.push(&args[at..at + words]);
                    at += words + 1;
                }
                "-fprint" | "-fprintf" | "-fls" | "-fprint0" => {
                    if let Some(file) = args.get(at) {
                        self.written_to(classify(file, call.cwd), Write::Over, call.span);
                    }
                    at += 1;
                }
                "-empty" => expression.empty = true,
                "-name" | "-iname" => {
                    expression.pattern = args.get(at).copied();
                    at += 1;
                }
                test if FILTERS.contains(&test) => {
                    expression.filtered = true;
                    at += 1;
                }
                _ => {}
            }
        }
        expression.filtered |= expression.pattern.is_some() || expression.empty;
        if expression.deletes {
            self.find_deletes(call, &starts, &expression);
        }
        for words in &expression.runs {
            self.find_exec(call, words, &starts, &expression);
        }
    }

    /// What is found is removed, from wherever `find` starts.
    fn find_deletes(&mut self, call: &Call<'_>, starts: &[&str], expression: &Expression<'_>) {
        let litter = expression.empty || expression.pattern.is_some_and(target::is_litter);
        for start in starts.iter().take(MAX_STARTS) {
            let classes = classify(start, call.cwd);
            let rule = match () {
                () if classes.meets(HIGH) => "find-delete-system",
                () if litter || classes.meets(Classes::TEMPORARY | Classes::BUILD) => {
                    "find-delete-litter"
                }
                () => "find-delete",
            };
            self.report_check(rule, call.span);
        }
    }

    fn find_exec(
        &mut self,
        call: &Call<'_>,
        words: &[&str],
        starts: &[&str],
        expression: &Expression<'_>,
    ) {
        let name = match expression.pattern {
            Some(pattern) => pattern.replace('*', "x"),
            None if expression.empty => "x".to_owned(),
            None => field::STAR.to_string(),
        };
        let found: Vec<String> =
            starts.iter().take(MAX_STARTS).map(|start| format!("{start}/{name}")).collect();
        let mut fields: Vec<Field> = Vec::new();
        for word in words {
            match *word == "{}" {
                true => fields
                    .extend(found.iter().map(|it| Field { text: it.clone(), span: call.span })),
                false => {
                    let text = replaced(word, "{}", found.first().map_or("x", String::as_str));
                    fields.push(Field { text, span: call.span });
                }
            }
        }
        let is_rm = words.iter().any(|it| matches!(it.rsplit('/').next(), Some("rm")));
        let recursive = words
            .iter()
            .any(|it| it.starts_with('-') && !it.starts_with("--") && it.contains(['r', 'R']));
        if is_rm
            && (expression.pattern.is_none()
                || starts.iter().any(|it| classify(it, call.cwd).meets(HIGH)))
        {
            self.find_deletes(call, starts, expression);
        }
        if is_rm && recursive && !expression.filtered {
            self.report_check("find-remove-trees", call.span);
        }
        call.cwd.clone_into(&mut self.cwd);
        self.scoped(|walker| walker.run(&fields, &Feed::Nothing));
        self.cwd.clear();
    }
}
