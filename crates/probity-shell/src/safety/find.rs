//! `find`: what it deletes, writes and runs, from where it starts.

use super::{
    call::Call,
    data,
    feed::Feed,
    later::Write,
    special::replaced,
    target::{self, Classes, classify},
    unwrap::base_name,
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

/// What `find` finds, as far as its arguments say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Where it starts.
    starts: Vec<String>,
    /// What names are like.
    pattern: Option<String>,
    /// Not everything is found.
    filtered: bool,
    /// Only what is empty is found.
    empty: bool,
}

/// What `find` is told to do.
#[derive(Default)]
struct Expression<'a> {
    found: Found,
    deletes: bool,
    runs: Vec<&'a [&'a str]>,
    /// Files that it writes what it found to.
    files: Vec<&'a str>,
    /// It prints something else than paths, or nothing.
    silent: bool,
    /// It is told to print paths.
    prints: bool,
}

impl<'a> Expression<'a> {
    fn read(args: &'a [&'a str]) -> Self {
        let begins = |it: &&&str| it.starts_with(['-', '(', '!']);
        let mut at = args.iter().take_while(|it| !begins(it)).count();
        let mut starts: Vec<String> =
            args[..at].iter().take(MAX_STARTS).map(|it| (*it).to_owned()).collect();
        if starts.is_empty() {
            starts.push(".".to_owned());
        }
        let mut it = Self { found: Found { starts, ..Found::default() }, ..Self::default() };
        while let Some(word) = args.get(at).copied() {
            at += 1;
            match word {
                "-delete" => (it.deletes, it.silent) = (true, true),
                "-print" | "-print0" => it.prints = true,
                "-printf" | "-ls" => it.silent = true,
                "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec"
                | "--exec-batch" => {
                    let end = |it: &&&str| matches!(**it, ";" | "+");
                    let words = args[at..].iter().take_while(|it| !end(it)).count();
                    it.runs.push(&args[at..at + words]);
                    it.silent = true;
                    at += words + 1;
                }
                "-fprint" | "-fprintf" | "-fls" | "-fprint0" => {
                    it.files.extend(args.get(at));
                    it.silent = true;
                    at += 1;
                }
                "-empty" => it.found.empty = true,
                "-name" | "-iname" => {
                    it.found.pattern = args.get(at).map(|it| (*it).to_owned());
                    at += 1;
                }
                test if FILTERS.contains(&test) => {
                    it.found.filtered = true;
                    at += 1;
                }
                _ => {}
            }
        }
        it.found.filtered |= it.found.pattern.is_some() || it.found.empty;
        it
    }
}

/// The arguments of `find` without the options that come before where it starts.
fn after_options<'s, 'a>(args: &'s [&'a str]) -> &'s [&'a str] {
    match args {
        ["-H" | "-L" | "-P", rest @ ..] | ["-D", _, rest @ ..] => after_options(rest),
        [level, rest @ ..] if level.starts_with("-O") => after_options(rest),
        _ => args,
    }
}

impl Found {
    /// What `find` with these arguments prints; `None` if that is something else than paths.
    pub(super) fn printed(arguments: &[Field]) -> Option<Self> {
        let args: Vec<&str> = arguments.iter().map(|it| it.text.as_str()).collect();
        let expression = Expression::read(after_options(&args));
        (expression.prints || !expression.silent).then_some(expression.found)
    }

    /// What is left of it by a choice of names.
    pub(super) fn chosen_by_name(mut self) -> Self {
        self.pattern.get_or_insert_with(|| "x".to_owned());
        self.chosen()
    }

    /// What is left of it by any other choice.
    pub(super) fn chosen(mut self) -> Self {
        self.filtered = true;
        self
    }

    /// A path for each place it starts from, such as may be found there.
    pub(super) fn paths(&self) -> Vec<String> {
        let name = match &self.pattern {
            Some(pattern) => pattern.replace('*', "x"),
            None if self.empty => "x".to_owned(),
            None => field::STAR.to_string(),
        };
        self.starts.iter().map(|start| format!("{start}/{name}")).collect()
    }
}

impl Walker<'_> {
    pub(super) fn find(&mut self, call: &Call<'_>) {
        let args: Vec<&str> = call.args.iter().map(|it| it.text).collect();
        let expression = Expression::read(match call.name {
            "find" | "gfind" => after_options(&args),
            _ => &args,
        });
        for file in &expression.files {
            self.written_to(classify(file, call.cwd), Write::Over, call.span);
        }
        if expression.deletes {
            self.find_deletes(call, &expression.found);
        }
        for words in &expression.runs {
            self.found_are_removed(call, words, &expression.found);
            self.find_exec(call, words, &expression.found);
        }
    }

    /// What is found is removed, from wherever `find` starts.
    fn find_deletes(&mut self, call: &Call<'_>, found: &Found) {
        let litter = found.empty || found.pattern.as_deref().is_some_and(target::is_litter);
        for start in &found.starts {
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

    /// Judges a command that is run on what is found, if it is `rm`.
    pub(super) fn found_are_removed(&mut self, call: &Call<'_>, words: &[&str], found: &Found) {
        // `grep rm` only looks for it; `sudo rm` runs it.
        let wraps = words.first().is_some_and(|it| data::wrappers(base_name(it)).next().is_some());
        let programs = if wraps { words } else { words.get(..1).unwrap_or_default() };
        let is_rm = programs.iter().any(|it| base_name(it) == "rm");
        let recursive = words
            .iter()
            .any(|it| it.starts_with('-') && !it.starts_with("--") && it.contains(['r', 'R']));
        if is_rm
            && (found.pattern.is_none()
                || found.starts.iter().any(|it| classify(it, call.cwd).meets(HIGH)))
        {
            self.find_deletes(call, found);
        }
        if is_rm && recursive && !found.filtered {
            self.report_check("find-remove-trees", call.span);
        }
    }

    fn find_exec(&mut self, call: &Call<'_>, words: &[&str], found: &Found) {
        let found = found.paths();
        let mut fields: Vec<Field> = Vec::new();
        for word in words {
            match *word == "{}" {
                true => fields.extend(
                    found.iter().map(|it| Field { text: it.as_str().into(), span: call.span }),
                ),
                false => {
                    let text = replaced(word, "{}", found.first().map_or("x", String::as_str));
                    fields.push(Field { text: text.into(), span: call.span });
                }
            }
        }
        call.cwd.clone_into(&mut self.cwd);
        self.scoped(|walker| walker.run(&fields, &Feed::Nothing));
        self.cwd.clear();
    }
}
