//! What a rule in a data file cannot say: redirections, data flow, self-calling functions, commands that feed commands.

use super::{
    call::{Call, Kind},
    expand,
    feed::Feed,
    interpreter,
    later::Write,
    remote,
    target::{Classes, classify},
    unwrap::base_name,
    walk::Walker,
};
use crate::{
    field::{self, Field},
    tree::{Command, Function, Redirect, RedirectOp, Span, Stage, Stmt, While, Word},
};

impl Walker<'_> {
    /// Judges a redirection; gives where the output goes if it is taken away from the pipe.
    pub(super) fn redirect(
        &mut self,
        redirect: &Redirect,
        command: &Command,
        stdin: &mut Feed,
    ) -> Option<Classes> {
        if let Some(heredoc) = &redirect.heredoc {
            *stdin = Feed::Known(self.heredoc(heredoc));
            return None;
        }
        let file = field::encode_single(&redirect.target, self);
        let classes = classify(&file, &self.cwd);
        let span = redirect.span;
        if classes.meets(Classes::SOCKET) {
            self.socket(command, span);
        }
        match redirect.op {
            RedirectOp::HereString => *stdin = Feed::Known(file),
            RedirectOp::Input => {
                self.secret_input(command, classes, span);
                *stdin = self.read_from(&file, classes);
            }
            RedirectOp::HereDoc | RedirectOp::DupInput => {}
            RedirectOp::DupOutput if file.bytes().all(|it| it.is_ascii_digit() || it == b'-') => {
                return None;
            }
            RedirectOp::Append | RedirectOp::AppendBoth => {
                self.written_to(classes, Write::Append, span);
                return (redirect.fd != Some(2)).then_some(classes);
            }
            RedirectOp::Output
            | RedirectOp::Clobber
            | RedirectOp::ReadWrite
            | RedirectOp::DupOutput
            | RedirectOp::OutputBoth => {
                self.written_to(classes, Write::Over, span);
                self.fill_check(command, classes, span);
                self.fetch_check(command, &file);
                return (redirect.fd != Some(2)).then_some(classes);
            }
        }
        None
    }

    fn read_from(&mut self, file: &str, classes: Classes) -> Feed {
        if expand::holds_download(file) {
            return Feed::Download;
        }
        let process = expand::whole_unknown(file).and_then(|it| it.strip_prefix(expand::PROCESS));
        match process.and_then(|it| it.parse::<usize>().ok()).and_then(|at| self.processes.get(at))
        {
            Some(feed) => feed.clone(),
            None if classes.meets(Classes::SECRET) => Feed::Secret,
            None => Feed::Unknown,
        }
    }

    /// `yes > file`, `cat /dev/zero > file`: only a full disk ends it.
    fn fill_check(&mut self, command: &Command, classes: Classes, span: Span) {
        let Command::Simple(simple) = command else { return };
        let is = |at: usize, value: &str| simple.words.get(at).is_some_and(|it| spelled(it, value));
        let size = (is(0, "head") && is(1, "-c")).then(|| simple.words.get(2)?.literal()).flatten();
        let endless = is(0, "yes")
            || (is(0, "cat") && (is(1, "/dev/zero") || is(1, "/dev/urandom")))
            || size.is_some_and(|it| is_huge(&it));
        if endless && !classes.meets(Classes::SINK | Classes::DEVICE) {
            self.report_check("fill-disk", span);
        }
    }

    /// `curl URL > FILE` saves what was fetched.
    fn fetch_check(&mut self, command: &Command, file: &str) {
        let Command::Simple(simple) = command else { return };
        if simple.words.first().is_some_and(|it| spelled(it, "curl") || spelled(it, "wget")) {
            self.fetched.push(base_name(file).into());
        }
    }

    /// A shell between the ends of a network connection: `nc ... | sh`, `sh -i | nc ...`.
    pub(super) fn pipeline_check(&mut self, stages: &[Stage], span: Span) {
        let names: Vec<Option<&str>> = stages.iter().map(|it| first_word(&it.stmt)).collect();
        let is_net = |name: &&str| matches!(*name, "nc" | "ncat" | "netcat" | "telnet" | "socat");
        let net = names.iter().flatten().any(is_net)
            || stages.iter().any(|it| words_begin(&it.stmt, &["openssl", "s_client"]));
        let shell = names.iter().flatten().any(|it| interpreter::is_shell(it));
        if net && shell {
            self.report_check("socket-shell", span);
        }
    }

    /// `while true; do something & done`: processes without end.
    pub(super) fn loop_check(&mut self, it: &While, span: Span) {
        let endless = matches!(it.condition.as_slice(), [only] if matches!(first_word(only), Some("true" | ":")));
        let spawns = |stmt: &Stmt| {
            stmt.background
                && first_word(stmt).is_some_and(|name| {
                    interpreter::is_shell(name) || name == "yes" || is_script(stmt)
                })
        };
        let waits =
            |stmt: &Stmt| matches!(first_word(stmt), Some("sleep" | "wait" | "read" | "break"));
        if endless && !it.until && it.body.iter().any(spawns) && !it.body.iter().any(waits) {
            self.report_check("spawn-loop", span);
        }
    }

    /// The checks that are code, for one call.
    pub(super) fn checks(&mut self, call: &Call<'_>, known: bool, stdin: &Feed) {
        match call.name {
            "find" | "fd" | "gfind" | "fdfind" => self.find(call),
            "xargs" => self.xargs(call, stdin),
            "parallel" => self.parallel(call, stdin),
            "curl" | "wget" | "http" | "https" | "xh" => remote::check(self, call, stdin),
            "nc" | "ncat" | "netcat" | "socat" | "ssh" | "telnet" | "mail" | "sendmail" | "ftp"
            | "mutt" => {
                if *stdin == Feed::Secret {
                    self.report_check("send-secret", call.span);
                }
                if let Feed::Known(text) = stdin
                    && controls_server(text, call)
                {
                    self.report_check("server-control", call.span);
                }
                if call.name == "ssh" {
                    self.ssh(call);
                }
            }
            "tee" | "sponge" => {
                let write = match call.has_any(&["-a", "--append"]) {
                    true => Write::Append,
                    false => Write::Over,
                };
                for operand in call.operands(0) {
                    let classes = classify(operand.text, call.cwd);
                    self.written_to(classes, write, operand.span);
                    self.run_later(classes, stdin, operand.span);
                }
            }
            "at" | "batch" => {
                if let Feed::Known(text) = stdin {
                    self.scoped(|walker| walker.text(text, call.span));
                }
            }
            "git" => self.git(call),
            "dd" => self.dd(call),
            "fallocate" if call.value(&["-l", "--length"]).is_some_and(is_huge) => {
                self.report_check("fill-disk", call.span);
            }
            "tar" | "bsdtar" => self.tar(call),
            "make" | "gmake" => self.make(call, stdin),
            "sed" | "gsed" => self.sed(call),
            "ed" | "red" => self.ed(call, stdin),
            "vim" | "vi" | "nvim" | "ex" | "view" | "vimdiff" | "gvim" => self.vim(call, stdin),
            "emacs" | "emacsclient" => self.emacs(call),
            "scp" | "sftp" | "rsync" | "autossh" => self.ssh(call),
            "crontab" if call.operands(0).any(|it| it.text == "-") || call.args.is_empty() => {
                if let Feed::Known(text) = stdin {
                    self.crontab(text, call.span);
                }
            }
            _ => {}
        }
        if !known {
            remote::guess(self, call);
        }
    }

    fn crontab(&mut self, text: &str, span: Span) {
        for line in text.lines().filter(|it| !it.trim_start().starts_with('#')) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let skip = if line.trim_start().starts_with('@') { 1 } else { 5 };
            if fields.len() > skip {
                let command = fields[skip..].join(" ");
                self.scoped(|walker| walker.text(&command, span));
            }
        }
    }

    fn dd(&mut self, call: &Call<'_>) {
        let value = |name: &str| {
            call.args.iter().find_map(|it| Some((it.text.strip_prefix(name)?, it.span)))
        };
        if let Some((file, span)) = value("of=") {
            let classes = classify(file, call.cwd);
            self.written_to(classes, Write::Over, span);
            let endless =
                value("if=").is_some_and(|(it, _)| matches!(it, "/dev/zero" | "/dev/urandom"));
            if endless
                && value("count=").is_none()
                && !classes.meets(Classes::SINK | Classes::DEVICE)
            {
                self.report_check("fill-disk", span);
            }
        }
        if let Some((file, span)) = value("if=") {
            let classes = classify(file, call.cwd);
            if classes.meets(Classes::RAW) {
                self.report_check("read-memory", span);
            }
            self.secret_read(classes, span);
        }
    }

    fn xargs(&mut self, call: &Call<'_>, stdin: &Feed) {
        let place = call.value(&["-I", "-J"]).or_else(|| xargs_place(call));
        let start = xargs_command(call);
        let mut fields: Vec<Field> = call.args[start..]
            .iter()
            .map(|it| Field { text: it.text.into(), span: it.span })
            .collect();
        if fields.is_empty() {
            return;
        }
        let reads_file = call.args[..start].iter().any(|it| names_arguments_file(it.text));
        let given: Vec<String> = match stdin {
            Feed::Found(found) if !reads_file => {
                let words: Vec<&str> = fields.iter().map(|it| it.text.as_str()).collect();
                self.found_are_removed(call, &words, found);
                found.paths()
            }
            Feed::Known(text) if !reads_file => text
                .split([' ', '\n', '\t', '\0'])
                .filter(|it| !it.is_empty())
                .take(64)
                .map(str::to_owned)
                .collect(),
            Feed::Known(_)
            | Feed::Found(_)
            | Feed::Nothing
            | Feed::Download
            | Feed::Secret
            | Feed::Unknown => {
                vec![expand::unknown(expand::INPUT)]
            }
        };
        // `xargs sh -c`: what is read is the text to run.
        if let [shell, option] = &*fields
            && interpreter::is_shell(base_name(&shell.text))
            && option.text == "-c"
            && place.is_none()
            && matches!(stdin, Feed::Known(_))
        {
            let all = given.join(" ");
            self.scoped(|walker| walker.text(&all, call.span));
            return;
        }
        match place {
            // `xargs -i rm` puts nothing behind `rm`, but whoever wrote it meant to.
            Some(place) if fields.iter().any(|it| !place.is_empty() && it.text.contains(place)) => {
                let all = given.join(" ");
                fields.iter_mut().for_each(|it| it.text = replaced(&it.text, place, &all).into());
            }
            Some(_) | None => {
                fields
                    .extend(given.into_iter().map(|it| Field { text: it.into(), span: call.span }));
            }
        }
        call.cwd.clone_into(&mut self.cwd);
        self.scoped(|walker| walker.run(&fields, &Feed::Unknown));
        self.cwd.clear();
    }

    fn parallel(&mut self, call: &Call<'_>, stdin: &Feed) {
        let words: Vec<&str> =
            call.args.iter().filter(|it| it.kind != Kind::Value).map(|it| it.text).collect();
        if words.contains(&"--dry-run") {
            return;
        }
        let colons = words.iter().position(|it| it.starts_with(":::"));
        let (command, given) = words.split_at(colons.unwrap_or(words.len()));
        let command: Vec<&str> =
            command.iter().copied().skip_while(|it| it.starts_with('-')).collect();
        let mut given: Vec<String> =
            given.iter().filter(|it| !it.starts_with(":::")).map(|it| (*it).to_owned()).collect();
        if given.is_empty() && colons.is_none() {
            given = match stdin {
                Feed::Known(text) => text.lines().take(16).map(str::to_owned).collect(),
                Feed::Found(found) => {
                    self.found_are_removed(call, &command, found);
                    found.paths()
                }
                Feed::Nothing | Feed::Download | Feed::Secret | Feed::Unknown => {
                    vec![expand::unknown(expand::INPUT)]
                }
            };
        }
        // A shell puts the words together again; one that holds blanks was meant as one.
        let whole = |it: &&str| match it.contains(' ') && command.len() > 1 {
            true => quoted(it),
            false => (*it).to_owned(),
        };
        let template = command.iter().map(whole).collect::<Vec<_>>().join(" ");
        call.cwd.clone_into(&mut self.cwd);
        for one in given.iter().take(16) {
            let text = match template.as_str() {
                "" => one.clone(),
                template if template.contains('\'') => replaced(template, "{}", one),
                template if template.contains("{}") => replaced(template, "{}", &quoted(one)),
                template => format!("{template} {}", quoted(one)),
            };
            self.scoped(|walker| walker.text(&text, call.span));
        }
        self.cwd.clear();
    }
}

/// How long a text may become by replacing `{}`.
const MAX_REPLACED: usize = 16 * 1024;

/// `-i` and `--replace` take their value attached, and stand for `{}` without one.
fn xargs_place<'a>(call: &Call<'a>) -> Option<&'a str> {
    let start = xargs_command(call);
    let mut options = call.args[..start].iter().map(|it| it.text);
    options.find_map(|it| match it {
        "-i" | "--replace" => Some("{}"),
        text => text.strip_prefix("--replace=").or_else(|| text.strip_prefix("-i")),
    })
}

/// Replaces, unless the text would grow out of bounds.
pub(super) fn replaced(text: &str, from: &str, to: &str) -> String {
    match text.matches(from).count().saturating_mul(to.len()) > MAX_REPLACED {
        true => expand::unknown(expand::INPUT),
        false => text.replace(from, to),
    }
}

/// Text as one word of a shell.
fn quoted(text: &str) -> String {
    match field::is_literal(text) {
        true => format!("'{}'", text.replace('\'', "'\\''")),
        false => text.to_owned(),
    }
}

/// `-a FILE`, alone or behind letters without a value: `xargs` does not read what is piped to it.
fn names_arguments_file(option: &str) -> bool {
    let letters = option.trim_start_matches(['-', '0', 'r', 't', 'x', 'p', 'o']);
    option.starts_with("--arg-file") || !option.starts_with("--") && letters.starts_with('a')
}

/// Where the command begins after the options of `xargs`.
fn xargs_command(call: &Call<'_>) -> usize {
    let ends = |at: &usize| matches!(call.args[*at].kind, Kind::Word | Kind::Maybe);
    (0..call.args.len()).find(ends).unwrap_or(call.args.len())
}

/// Whether a text sent to a control socket takes a server out of service.
fn controls_server(text: &str, call: &Call<'_>) -> bool {
    let socket =
        call.operands(0).any(|it| it.text.contains(".sock") || it.text.contains("haproxy"));
    let verb = text.split_whitespace().next().unwrap_or_default();
    socket
        && matches!(
            verb,
            "disable"
                | "shutdown"
                | "clear"
                | "del"
                | "set"
                | "flushall"
                | "quit"
                | "kill"
                | "stop"
        )
}

fn spelled(word: &Word, value: &str) -> bool {
    word.literal().is_some_and(|it| it == value)
}

fn first_word(stmt: &Stmt) -> Option<&str> {
    let Command::Simple(simple) = &stmt.command else { return None };
    match simple.words.first()?.parts.as_slice() {
        [crate::tree::Part::Text { text, .. }] => text.rsplit('/').next(),
        _ => None,
    }
}

/// Whether a program of the working directory is run.
fn is_script(stmt: &Stmt) -> bool {
    let Command::Simple(simple) = &stmt.command else { return false };
    simple.words.first().and_then(Word::literal).is_some_and(|it| it.starts_with("./"))
}

/// More than a disk can be expected to hold: 100 GB and above.
fn is_huge(size: &str) -> bool {
    let digits = size.find(|it: char| !it.is_ascii_digit()).unwrap_or(size.len());
    let Ok(number) = size[..digits].parse::<u64>() else { return false };
    match size[digits..].chars().next() {
        Some('T' | 't' | 'P' | 'E') => number > 0,
        Some('G' | 'g') => number >= 100,
        Some('M' | 'm') => number >= 100_000,
        None => number >= 100_000_000_000,
        Some(_) => false,
    }
}

fn words_begin(stmt: &Stmt, start: &[&str]) -> bool {
    let Command::Simple(simple) = &stmt.command else { return false };
    start
        .iter()
        .enumerate()
        .all(|(at, value)| simple.words.get(at).is_some_and(|it| spelled(it, value)))
}

/// A function that calls itself in the background or on both sides of a pipe, whatever its name.
pub(super) fn is_fork_bomb(function: &Function) -> bool {
    let (Command::Group(body) | Command::Subshell(body)) = &function.body.command else {
        return multiplies(&function.body, &function.name);
    };
    body.iter().any(|stmt| multiplies(stmt, &function.name))
}

fn multiplies(stmt: &Stmt, name: &str) -> bool {
    let calls = |stmt: &Stmt| first_word(stmt).is_some_and(|it| it == name);
    let any = |body: &[Stmt]| body.iter().any(|it| multiplies(it, name));
    match &stmt.command {
        Command::Simple(_) => stmt.background && calls(stmt),
        Command::Pipeline(stages) => stages.iter().filter(|it| calls(&it.stmt)).count() > 1,
        Command::AndOr(list) => {
            multiplies(&list.first, name) || list.rest.iter().any(|it| multiplies(&it.1, name))
        }
        Command::Group(body) | Command::Subshell(body) => any(body),
        Command::While(it) => any(&it.body),
        Command::For(it) => any(&it.body),
        Command::ArithmeticFor(it) => any(&it.body),
        Command::If(it) => it.branches.iter().any(|(_, body)| any(body)),
        Command::Time(it) => it.stmt.as_ref().is_some_and(|it| multiplies(it, name)),
        Command::Coproc(stmt) => calls(stmt),
        Command::Case(_)
        | Command::Condition(_)
        | Command::Arithmetic(_)
        | Command::Function(_)
        | Command::Foreign(_) => false,
    }
}
