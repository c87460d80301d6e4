//! Editors that are given their commands: `sed`, `ed`, `ex`, `vim -c`, `emacs --eval`.

use super::{
    call::Call,
    code,
    feed::Feed,
    later::Write,
    target::{Classes, classify},
    walk::Walker,
};
use crate::{field::STAR, sed, tree::Span};

/// What `sed` is told to do, and to which files.
#[derive(Default)]
struct Edit<'a> {
    scripts: Vec<(&'a str, Span)>,
    files: Vec<(&'a str, Span)>,
    in_place: bool,
}

/// How many files of an editor are looked at.
const MAX_FILES: usize = 64;

impl Walker<'_> {
    /// Judges the scripts of `sed` and the files it changes.
    pub(super) fn sed(&mut self, call: &Call<'_>) {
        let edit = Edit::read(call);
        let mut empties = false;
        for (script, span) in &edit.scripts {
            let Some(commands) = sed::read(script) else { continue };
            empties |= commands.first().is_some_and(sed::Command::deletes_all);
            for command in &commands {
                self.sed_command(command, call.cwd, *span);
            }
        }
        if !edit.in_place {
            return;
        }
        let several = edit.files.len() > 1;
        for (file, span) in &edit.files {
            let classes = classify(file, call.cwd);
            if classes.meets(Classes::LOG) {
                self.report_check("truncate-log", *span);
            } else if classes.meets(Classes::HISTORY) {
                self.report_check("truncate-history", *span);
            } else if empties && !classes.meets(Classes::TEMPORARY | Classes::BUILD) {
                let many = several || file.contains(STAR) || classes.meets(Classes::UNKNOWN);
                self.report_check(if many { "empty-files" } else { "empty-file" }, *span);
            }
        }
    }

    fn sed_command(&mut self, command: &sed::Command<'_>, cwd: &str, span: Span) {
        let writes = matches!(command.name, 'w' | 'W') || command.name == 's';
        if writes && !command.operand.is_empty() {
            self.written_to(classify(command.operand, cwd), Write::Over, span);
        }
        match command.name {
            // What was read is run.
            'e' if command.operand.is_empty() => self.report_check("run-input", span),
            'e' => {
                self.scoped(|walker| walker.text(command.operand, span));
            }
            's' if command.flags.contains('e') => {
                let holds_input = command.replacement.contains('&')
                    || (1..10).any(|it| command.replacement.contains(&format!("\\{it}")));
                match holds_input {
                    true => self.report_check("run-input", span),
                    false => {
                        self.scoped(|walker| walker.text(command.replacement, span));
                    }
                }
            }
            _ => {}
        }
    }

    /// `ed FILE`, whose commands come through a pipe.
    pub(super) fn ed(&mut self, call: &Call<'_>, stdin: &Feed) {
        let Feed::Known(text) = stdin else { return };
        let commands: Vec<&str> = text.lines().collect();
        self.edited(call, &commands);
    }

    /// `vim -c COMMAND FILE`, `ex -s +COMMAND FILE`, and `ex` with its commands from a pipe.
    pub(super) fn vim(&mut self, call: &Call<'_>, stdin: &Feed) {
        let mut commands: Vec<&str> = Vec::new();
        for (at, arg) in call.args.iter().enumerate() {
            match arg.text {
                "-c" | "--cmd" => commands.extend(call.args.get(at + 1).map(|it| it.text)),
                text if text.starts_with('+') => commands.push(&text[1..]),
                text => commands.extend(text.strip_prefix("-c").filter(|it| it.len() > 1)),
            }
        }
        let silent = call.has_any(&["-s", "-e", "-E"]) || call.name == "ex";
        if let Feed::Known(text) = stdin
            && silent
        {
            commands.extend(text.lines());
        }
        self.edited(call, &commands);
    }

    /// Judges an editor's commands on the files it was given.
    fn edited(&mut self, call: &Call<'_>, commands: &[&str]) {
        let (mut saves, mut empties) = (false, false);
        for command in commands.iter().flat_map(|it| parts(it)) {
            match editor_command(command) {
                Some(Editing::Runs(text)) => {
                    self.scoped(|walker| walker.text(text, call.span));
                }
                Some(Editing::Code(text)) => self.code(text, call.span),
                Some(Editing::SavesTo(file)) => {
                    self.written_to(classify(file, call.cwd), Write::Over, call.span);
                }
                Some(Editing::Saves) => saves = true,
                Some(Editing::Empties) => empties = true,
                None => {}
            }
        }
        if !saves {
            return;
        }
        let is_file = |it: &&str| !commands.contains(it) && !it.starts_with('+');
        let files: Vec<&str> =
            call.operands(0).map(|it| it.text).take(MAX_FILES).filter(is_file).collect();
        for file in files {
            let classes = classify(file, call.cwd);
            self.written_to(classes, Write::Over, call.span);
            if empties && !classes.meets(Classes::TEMPORARY | Classes::BUILD) {
                self.report_check("empty-file", call.span);
            }
        }
    }

    /// `emacs --batch --eval '(shell-command "...")'`
    pub(super) fn emacs(&mut self, call: &Call<'_>) {
        let programs: Vec<&str> =
            call.values(&["--eval", "-eval", "--execute"]).flatten().collect();
        for program in programs {
            for found in code::lisp(program) {
                self.found_in_code(found, call.span);
            }
        }
    }
}

impl<'a> Edit<'a> {
    fn read(call: &Call<'a>) -> Self {
        let mut edit = Self::default();
        let mut scripts_given = false;
        let mut args = call.args.iter();
        while let Some(arg) = args.next() {
            let text = arg.text;
            let Some(option) = text.strip_prefix('-').filter(|it| !it.is_empty()) else {
                edit.files.push((text, arg.span));
                continue;
            };
            if let Some(long) = option.strip_prefix('-') {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some((value, arg.span))),
                    None => (long, None),
                };
                match name {
                    "expression" | "file" => {
                        scripts_given = true;
                        let value = value.or_else(|| args.next().map(|it| (it.text, it.span)));
                        edit.scripts.extend(value.filter(|_| name == "expression"));
                    }
                    "in-place" => edit.in_place = true,
                    _ => {}
                }
                continue;
            }
            for (at, letter) in option.char_indices() {
                let rest = &option[at + letter.len_utf8()..];
                match letter {
                    'e' | 'f' => {
                        scripts_given = true;
                        let value = match rest {
                            "" => args.next().map(|it| (it.text, it.span)),
                            attached => Some((attached, arg.span)),
                        };
                        edit.scripts.extend(value.filter(|_| letter == 'e'));
                        break;
                    }
                    // What follows is the ending of a copy.
                    'i' | 'I' => {
                        edit.in_place = true;
                        break;
                    }
                    _ => {}
                }
            }
        }
        // BSD's `-i ''`
        if edit.in_place && edit.files.first().is_some_and(|it| it.0.is_empty()) {
            edit.files.remove(0);
        }
        if !scripts_given && !edit.files.is_empty() {
            edit.scripts.push(edit.files.remove(0));
        }
        edit
    }
}

/// What a command of `ed` or `vim` does.
#[derive(Debug, PartialEq, Eq)]
enum Editing<'c> {
    Runs(&'c str),
    /// A program of the editor's own language or of another one.
    Code(&'c str),
    Saves,
    SavesTo(&'c str),
    Empties,
}

/// The commands of a line. A bar ends one, except one that a shell runs: that one goes on to the end.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let (head, tail) = match line.split_once('|') {
            Some((head, tail)) => (head, Some(tail)),
            None => (line, None),
        };
        let runs = matches!(editor_command(head), Some(Editing::Runs(_) | Editing::Code(_)));
        rest = if runs { None } else { tail };
        Some(if runs { line } else { head })
    })
}

fn editor_command(command: &str) -> Option<Editing<'_>> {
    let command = command.trim_start_matches([':', ' ', '\t']).trim_end();
    let command = ["silent!", "silent", "sil", "noautocmd", "noau"]
        .iter()
        .find_map(|it| command.strip_prefix(it))
        .map_or(command, |it| it.trim_start());
    // Lines, such as `%`, `1,$` or `.`, and then the command's name.
    let plain =
        command.trim_start_matches(|it: char| it.is_ascii_digit() || ",.$%+-' ".contains(it));
    let range = command[..command.len() - plain.len()].trim();
    let length = plain.find(|it: char| !it.is_ascii_alphabetic()).unwrap_or(plain.len());
    let (name, rest) = plain.split_at(length);
    let forced = rest.strip_prefix('!');
    let operand = rest.trim_start();
    match name {
        "" => forced.map(str::trim).filter(|it| !it.is_empty()).map(Editing::Runs),
        "r" | "read" | "w" | "write" if operand.starts_with('!') && rest != operand => {
            Some(Editing::Runs(operand[1..].trim()))
        }
        "r" | "read" => forced.map(|it| Editing::Runs(it.trim())),
        "w" | "write" | "wq" | "wqa" | "wa" | "wall" | "x" | "xa" | "xit" | "up" | "update"
        | "exit" | "wqall" | "W" => {
            let file = forced.unwrap_or(rest).trim();
            let is_file = !file.is_empty() && !file.starts_with('|') && name != "x";
            Some(if is_file { Editing::SavesTo(file) } else { Editing::Saves })
        }
        "sav" | "saveas" => Some(Editing::SavesTo(forced.unwrap_or(rest).trim())),
        "d" | "delete" if matches!(range, "%" | "1,$" | ",") => Some(Editing::Empties),
        "g" if matches!(plain, "g/.*/d" | "g//d" | "g/^/d") => Some(Editing::Empties),
        "normal" | "norm" if operand == "ggdG" || operand == "ggVGd" => Some(Editing::Empties),
        "normal" | "norm" if operand.contains("ZZ") => Some(Editing::Saves),
        "ter" | "term" | "terminal" => Some(Editing::Runs(operand)).filter(|_| !operand.is_empty()),
        "exe" | "execute" => {
            let text = operand.trim_matches(['"', '\'']);
            text.strip_prefix('!').map(Editing::Runs)
        }
        "call" | "echo" | "let" | "lua" | "py" | "pyx" | "python" | "perl" | "ruby" => {
            Some(Editing::Code(operand))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_ends_a_command_but_not_a_shell_s() {
        assert_eq!(parts("%d|wq").collect::<Vec<_>>(), ["%d", "wq"]);
        assert_eq!(parts("%d|!a | b").collect::<Vec<_>>(), ["%d", "!a | b"]);
        assert_eq!(parts("").collect::<Vec<_>>(), [""]);
    }

    #[test]
    fn commands_of_editors_are_read() {
        for (command, expected) in [
            (":!date", Some(Editing::Runs("date"))),
            ("!date", Some(Editing::Runs("date"))),
            ("%!sort -u", Some(Editing::Runs("sort -u"))),
            ("silent !date", Some(Editing::Runs("date"))),
            ("r !date", Some(Editing::Runs("date"))),
            ("r!date", Some(Editing::Runs("date"))),
            ("w !sudo tee x", Some(Editing::Runs("sudo tee x"))),
            ("w! x", Some(Editing::SavesTo("x"))),
            ("w!", Some(Editing::Saves)),
            ("wq", Some(Editing::Saves)),
            ("%d", Some(Editing::Empties)),
            ("1,$d", Some(Editing::Empties)),
            ("3d", None),
            ("execute '!date'", Some(Editing::Runs("date"))),
            ("set number", None),
            ("q!", None),
            ("s/a/b/", None),
            ("PlugInstall", None),
            ("", None),
        ] {
            assert_eq!(editor_command(command), expected, "{command:?}");
        }
    }
}
