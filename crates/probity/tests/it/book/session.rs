//! A page, followed from top to bottom in a folder of its own, with an empty home.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use regex::Regex;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use super::{
    is_updating,
    page::{Block, Page},
    root, sample,
};

/// No command of a page takes longer.
const LIMIT: Duration = Duration::from_secs(40);

/// Variables that pages name.
const KEYS: [&str; 10] = [
    "ANTHROPIC_API_KEY",
    "APP_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AWS_REGION",
    "AWS_SECRET_ACCESS_KEY",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_OAUTH_ACCESS_TOKEN",
    "MY_API_KEY",
    "OPENAI_API_KEY",
    "TONE_KEY",
];

/// What stands for any lines.
const ANY_LINES: &str = "…";

/// What stands for any text within a line.
const ANY_TEXT: &str = "[..]";

pub(super) struct Session<'p> {
    page: &'p Page,
    top: TempDir,
    /// Where the reader is: `cd` of a command lasts.
    folder: PathBuf,
    runs: Runs,
    /// Lines of the page, from the first to before the second, and what stands there now.
    edits: Vec<(usize, usize, Vec<String>)>,
}

/// What a command did.
pub(super) struct Done {
    pub(super) code: i32,
    pub(super) output: String,
}

/// A command of a block, and what it prints by the page.
struct Shown {
    /// The number of its line.
    line: usize,
    command: String,
    /// The numbers of the lines of its output, from the first to before the second.
    place: (usize, usize),
    output: Vec<String>,
}

impl<'p> Session<'p> {
    pub(super) fn new(page: &'p Page) -> Self {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("you/project");
        fs::create_dir_all(&folder).unwrap();
        let programs = top.path().join("bin");
        fs::create_dir_all(&programs).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_probity"));
        std::os::unix::fs::symlink(program, programs.join("probity")).unwrap();
        // What comes with the program, for pages that are about it: copies, since pages may write.
        for name in ["first", "shell"] {
            let (from, to) =
                (root().join("examples").join(name), folder.join("examples").join(name));
            fs::create_dir_all(&to).unwrap();
            for file in fs::read_dir(from).unwrap().map(Result::unwrap) {
                fs::copy(file.path(), to.join(file.file_name())).unwrap();
            }
        }
        let results = "examples/results.jsonl";
        fs::copy(root().join(results), folder.join(results)).unwrap();
        let (runs, edits) = (Runs::default(), Vec::new());
        Self { page, top, folder, runs, edits }
    }

    /// What is wrong with the blocks of the page.
    pub(super) fn check(&mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        let checked: Vec<&Block> =
            self.page.blocks.iter().filter(|it| self.is_checked(it)).collect();
        for block in &checked {
            wrong.extend(self.carried_out(block));
        }
        // What is read may name files that stand further down.
        for block in checked {
            wrong.extend(sample::problem(block, self).map(|it| (block.line, it)));
        }
        let wrong = wrong
            .iter()
            .map(|(line, what)| format!("{}:{line}: {}", self.page.name, what.trim_end()));
        let wrong = wrong.collect();
        if is_updating() && !self.edits.is_empty() && root().join(&self.page.name).exists() {
            fs::write(root().join(&self.page.name), self.updated()).unwrap();
        }
        wrong
    }

    fn is_checked(&self, block: &Block) -> bool {
        if block.says("not run").is_some() || block.says("not checked").is_some() {
            return false;
        }
        let without = block.says("needs") == Some("sandbox")
            && self.probity(&["sandbox", "doctor"]).code != 0;
        if without {
            let place = format!("{}:{}", self.page.name, block.line);
            let _ = writeln!(io::stderr(), "{place}: skipped, there is no sandbox");
        }
        !without
    }

    /// Runs the commands of a block, and writes the file that it is.
    fn carried_out(&mut self, block: &Block) -> Vec<(usize, String)> {
        if let Some(name) = block.says("file") {
            let path = self.project().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, block.text()).unwrap();
        }
        match block.language.as_str() {
            "console" => self.console(block),
            "sh" | "run" => self.script(block).map(|it| (block.line, it)).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn script(&mut self, block: &Block) -> Option<String> {
        let done = self.carry_out(&format!("set -e\n{}", block.text()));
        let lines: Vec<String> = done.output.lines().map(ToOwned::to_owned).collect();
        // A comment of what is unseen can name the runs that it makes.
        self.runs.meet(&block.lines, &lines);
        (done.code != 0).then(|| format!("it ended with {}\n{}", done.code, done.output))
    }

    /// Runs commands of the page, on the runs that there are.
    fn carry_out(&mut self, text: &str) -> Done {
        let mut folder = self.folder.clone();
        let done = self.run(&mut folder, &self.runs.as_they_are(text));
        self.folder = folder;
        done
    }

    pub(super) fn project(&self) -> PathBuf {
        self.folder.clone()
    }

    fn console(&mut self, block: &Block) -> Vec<(usize, String)> {
        let mut wrong = Vec::new();
        for shown in shown(block) {
            let done = self.carry_out(&shown.command);
            let mut lines: Vec<String> = done.output.lines().map(ToOwned::to_owned).collect();
            while lines.last().is_some_and(|it| it.trim().is_empty()) {
                lines.pop();
            }
            if done.code != 0 {
                lines.push(format!("# exit code {}", done.code));
            }
            self.runs.meet(&shown.output, &lines);
            let expected: Vec<String> =
                shown.output.iter().map(|it| self.runs.plain_told(it)).collect();
            let actual: Vec<String> = lines.iter().map(|it| self.runs.plain_real(it)).collect();
            if matches(&expected, &actual) {
                continue;
            }
            let told = lines.iter().map(|it| self.runs.as_told(it));
            let indent = " ".repeat(block.indent);
            let told = told.map(|it| format!("{indent}{it}").trim_end().to_owned()).collect();
            self.edits.push((shown.place.0, shown.place.1, told));
            let what = format!("`{}`\n{}", shown.command, difference(&expected, &actual));
            wrong.push((shown.line, what));
        }
        wrong
    }

    /// The page with what was printed.
    pub(super) fn updated(&self) -> String {
        let mut lines: Vec<String> = self.page.text.lines().map(ToOwned::to_owned).collect();
        for (begin, end, new) in self.edits.iter().rev() {
            lines.splice(begin - 1..end - 1, new.clone());
        }
        lines.join("\n") + "\n"
    }

    pub(super) fn probity(&self, words: &[&str]) -> Done {
        let words: Vec<String> = words.iter().map(|it| format!("'{it}'")).collect();
        // A suite loads if the variables have values that its backends take their keys from.
        let keys = KEYS.map(|it| format!("export {it}=stand-in; "));
        self.run(&mut self.project(), &format!("{}probity {}", keys.concat(), words.join(" ")))
    }

    /// Runs shell text with both outputs in one, as on a terminal that shows no colours.
    pub(super) fn run(&self, folder: &mut PathBuf, text: &str) -> Done {
        let top = self.top.path();
        let (printed, ended) = (top.join("printed"), top.join("ended"));
        let out = fs::File::create(&printed).unwrap();
        let script = format!("trap 'pwd > \"$ENDED\"' EXIT\n{text}");
        let path = format!(
            "{}:{}",
            top.join("bin").display(),
            std::env::var_os("PATH").unwrap().display()
        );
        let mut child = Command::new("bash")
            .args(["-c", &script])
            .current_dir(&*folder)
            .env_clear()
            .env("PATH", path)
            .env("HOME", top.join("you"))
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .env("TERM", "dumb")
            .env("ENDED", &ended)
            .env("REPOSITORY", root())
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .process_group(0)
            .spawn()
            .unwrap();
        let group = Pid::from_child(&child);
        let (tell, told) = mpsc::channel();
        let waiter = thread::spawn(move || {
            let status = child.wait().unwrap();
            let _ = tell.send(());
            status
        });
        let in_time = told.recv_timeout(LIMIT).is_ok();
        if !in_time {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let status = waiter.join().unwrap();
        if let Ok(ended) = fs::read_to_string(&ended) {
            *folder = PathBuf::from(ended.trim_end());
        }
        let output = String::from_utf8_lossy(&fs::read(&printed).unwrap()).into_owned();
        let real = fs::canonicalize(top).unwrap();
        let output = output.replace(real.to_str().unwrap(), "/home");
        let output = output.replace(top.to_str().unwrap(), "/home");
        let note = if in_time { "" } else { "\nit took too long" };
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Done { code, output: output + note }
    }
}

/// The commands of a block.
fn shown(block: &Block) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    for (at, line) in block.lines.iter().enumerate() {
        let number = block.line + at;
        let place = (number + 1, number + 1);
        if let Some(command) = line.strip_prefix("$ ") {
            let (command, output) = (command.to_owned(), Vec::new());
            all.push(Shown { line: number, command, place, output });
            continue;
        }
        let Some(last) = all.last_mut() else { continue };
        match line.strip_prefix("> ") {
            Some(more) if last.output.is_empty() && last.place.0 == number => {
                last.command = format!("{}\n{more}", last.command);
                last.place = place;
            }
            _ => {
                last.output.push(line.clone());
                last.place.1 = number + 1;
            }
        }
    }
    // Blank lines before the next command are for the eye.
    for shown in &mut all {
        while shown.output.last().is_some_and(|it| it.trim().is_empty()) {
            shown.output.pop();
            shown.place.1 -= 1;
        }
    }
    all
}

/// Whether lines are what a page has, with its gaps.
fn matches(expected: &[String], actual: &[String]) -> bool {
    match expected {
        [] => actual.is_empty(),
        [gap, rest @ ..] if gap.trim() == ANY_LINES => {
            (1..=actual.len()).any(|it| matches(rest, &actual[it..]))
        }
        [first, rest @ ..] => {
            actual.first().is_some_and(|it| fits(first, it)) && matches(rest, &actual[1..])
        }
    }
}

/// Whether a line is what a page has, but for blanks at its end.
fn fits(expected: &str, actual: &str) -> bool {
    let parts: Vec<String> = expected.trim_end().split(ANY_TEXT).map(regex::escape).collect();
    let whole = format!("^{}$", parts.join(".*"));
    Regex::new(&whole).unwrap().is_match(actual.trim_end())
}

/// What differs, without the lines at both ends that are the same.
fn difference(expected: &[String], actual: &[String]) -> String {
    let same = expected.iter().zip(actual).take_while(|(a, b)| fits(a, b)).count();
    let (expected, actual) = (&expected[same..], &actual[same..]);
    let end =
        expected.iter().rev().zip(actual.iter().rev()).take_while(|(a, b)| fits(a, b)).count();
    let lines = |sign: &str, lines: &[String]| -> String {
        lines[..lines.len() - end].iter().flat_map(|it| [sign, " ", it, "\n"]).collect()
    };
    lines("-", expected) + &lines("+", actual)
}

/// The runs that a page names, and those that there were: the first of the one is the first of the
/// other, and so on.
#[derive(Default)]
struct Runs {
    pairs: Vec<(Option<String>, String)>,
}

/// The short name of a run.
fn short(name: &str) -> &str {
    name.rsplit('-').next().unwrap()
}

impl Runs {
    fn named(lines: &[String], known: &dyn Fn(&str) -> bool) -> Vec<String> {
        let name = Regex::new(r"\b\d{8}-\d{6}-[a-z0-9]{6}\b").unwrap();
        let mut found: Vec<String> = Vec::new();
        for it in lines.iter().flat_map(|it| name.find_iter(it)).map(|it| it.as_str()) {
            if !known(it) && found.iter().all(|old| old != it) {
                found.push(it.to_owned());
            }
        }
        found
    }

    /// Pairs what a page and the program print of one command.
    fn meet(&mut self, told: &[String], real: &[String]) {
        let told =
            Self::named(told, &|it| self.pairs.iter().any(|(old, _)| old.as_deref() == Some(it)));
        let real = Self::named(real, &|it| self.pairs.iter().any(|(_, old)| old == it));
        let mut told = told.into_iter();
        self.pairs.extend(real.into_iter().map(|real| (told.next(), real)));
    }

    fn replaced(
        &self,
        text: &str,
        by: impl Fn(usize, &Option<String>, &str) -> (String, String),
    ) -> String {
        let mut text = text.to_owned();
        for (at, (told, real)) in self.pairs.iter().enumerate() {
            let (old, new) = by(at, told, real);
            if !old.is_empty() {
                text = text.replace(&old, &new).replace(short(&old), short(&new));
            }
        }
        text
    }

    /// A command of the page, with the runs that there are.
    fn as_they_are(&self, text: &str) -> String {
        self.replaced(text, |_, told, real| (told.clone().unwrap_or_default(), real.to_owned()))
    }

    /// What was printed, with the runs of the page.
    fn as_told(&self, text: &str) -> String {
        self.replaced(text, |_, told, real| match told {
            Some(told) => (real.to_owned(), told.clone()),
            None => (String::new(), String::new()),
        })
    }

    fn plain_told(&self, text: &str) -> String {
        plain(
            &self.replaced(text, |at, told, _| {
                (told.clone().unwrap_or_default(), format!("RUN{at}"))
            }),
        )
    }

    fn plain_real(&self, text: &str) -> String {
        plain(&self.replaced(text, |at, _, real| (real.to_owned(), format!("RUN{at}"))))
    }
}

/// A line without the times of a machine: dates, and durations that were measured, which have
/// milliseconds, a fraction, or a line that says so. The blanks before one depend on its length.
fn plain(line: &str) -> String {
    let date = Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").unwrap();
    let line = date.replace_all(line, "DATE");
    let duration = Regex::new(r" *\b(\d+ ?ms|\d+\.\d+s)\b").unwrap();
    let line = duration.replace_all(&line, " DURATION");
    let whole = Regex::new(r"\btook \d+s\b").unwrap();
    whole.replace_all(&line, "took DURATION").into_owned()
}
