//! From words to the program that runs: builtins, functions, wrappers, then the rules.

use compact_str::format_compact;

use super::{
    call::Call,
    data::{self, Run, Wrapper},
    expand,
    feed::{Feed, joined},
    interpreter, matching, remote,
    target::classify,
    walk::Walker,
};
use crate::{
    field::{self, Field},
    tree::Span,
};

impl Walker<'_> {
    /// Judges a program with its arguments; gives what it writes.
    pub(super) fn run(&mut self, fields: &[Field], stdin: &Feed) -> Feed {
        let Some((word, arguments)) = fields.split_first() else { return Feed::Nothing };
        let span = word.span.to(fields.last().map_or(word.span, |it| it.span));
        let base = base_name(&word.text);
        if !field::is_literal(base) {
            self.dynamic_program(word);
            return Feed::Unknown;
        }
        self.wrapped(span, Feed::Unknown, |walker| {
            walker.program(base, word, arguments, stdin, span)
        })
    }

    fn dynamic_program(&mut self, word: &Field) {
        if expand::holds_download(&word.text) {
            self.report_check(self.download_rule(), word.span);
        } else {
            self.opaque(word.span, "the program is a value that is not in the command");
        }
    }

    fn program(
        &mut self,
        name: &str,
        word: &Field,
        arguments: &[Field],
        stdin: &Feed,
        span: Span,
    ) -> Feed {
        if let Some(written) = self.call_function(&word.text, arguments, stdin) {
            return written;
        }
        if let Some(written) = self.builtin(name, arguments, span) {
            return written;
        }
        if let Some(compose) = compose_call(name, word, arguments) {
            return self.run(&compose, stdin);
        }
        if word.text.contains('/') && self.is_fetched(&word.text) {
            self.report_check(self.download_rule(), word.span);
        }
        // Some file systems do not tell `GIT` from `git`.
        let lower;
        let mut known = self.rules.program(name);
        let mut name = name;
        if known.is_none()
            && name.bytes().any(|it| it.is_ascii_uppercase())
            && !matches!(name, "R" | "Rscript")
        {
            lower = name.to_ascii_lowercase();
            name = &lower;
        }
        let plain = interpreter::plain_name(name);
        if known.is_none() {
            known = self.rules.program(plain);
        }
        let name = plain;
        let since = self.count();
        let cwd = std::mem::take(&mut self.cwd);
        let subcommands = known.is_some_and(|it| it.subcommands);
        let call = Call::read(name, arguments, subcommands, (span, &cwd));
        // What these are given is another command, whose `--help` is not theirs.
        let harmless =
            call.is_harmless() && !matches!(name, "find" | "xargs" | "parallel" | "env" | "sudo");
        let rules = self.rules;
        for (rule, span) in matching::found_by(rules, known, &call, harmless) {
            self.report(rule, span);
        }
        if !harmless {
            self.checks(&call, known.is_some(), stdin);
        }
        for allow in &rules.allow {
            if matching::allows(allow, &call) {
                self.allow(since, &allow.rules);
            }
        }
        if let Some(file) = remote::saved_as(&call) {
            self.saved_to(classify(file, call.cwd), span);
            self.fetched.push(base_name(file).into());
        }
        let call_args = call.args.len();
        drop(call);
        self.cwd = cwd;
        if let Some(written) = self.interpreter(name, arguments, stdin, span) {
            return written;
        }
        if is_lookup(name, arguments) {
            return Feed::written_by("which", &arguments[1..], stdin);
        }
        let mut unwrapped = None;
        if call_args > 0 {
            for wrapper in data::wrappers(name) {
                unwrapped = unwrapped.or(self.unwrap(wrapper, arguments, stdin, span));
            }
        }
        match unwrapped {
            Some(Feed::Nothing) | None if !self.wanted => Feed::Unknown,
            Some(Feed::Nothing) | None => Feed::written_by(name, arguments, stdin),
            Some(written) => written,
        }
    }

    fn builtin(&mut self, name: &str, arguments: &[Field], span: Span) -> Option<Feed> {
        match name {
            "cd" | "pushd" => self.change_directory(arguments),
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                for argument in arguments {
                    if let Some((name, value)) = argument.text.split_once('=') {
                        self.setting_check(name, value, argument.span);
                        self.assign(name, Some(value.to_owned()));
                    }
                }
            }
            "read" | "mapfile" | "readarray" | "unset" => {
                for argument in arguments.iter().filter(|it| !it.text.starts_with('-')) {
                    if name == "unset" {
                        self.setting_check(&argument.text, "", argument.span);
                    }
                    self.assign(&argument.text, None);
                }
            }
            "eval" => return Some(self.text(&joined(arguments), span)),
            "trap" => {
                let text = arguments.first().filter(|it| arguments.len() > 1 && it.text != "-");
                if let Some(text) = text {
                    self.scoped(|walker| walker.text(&text.text, text.span));
                }
            }
            "alias" => {
                for argument in arguments {
                    if let Some((_, text)) = argument.text.split_once('=') {
                        self.scoped(|walker| walker.text(text, argument.span));
                    }
                }
            }
            "." | "source" => {
                if let Some(argument) = arguments.first() {
                    self.run_file(argument);
                }
            }
            _ => return None,
        }
        Some(Feed::Nothing)
    }

    fn change_directory(&mut self, arguments: &[Field]) {
        let operand = arguments.iter().find(|it| !it.text.starts_with('-') || it.text == "-");
        self.cwd = match operand.map(|it| it.text.as_str()) {
            None => field::TILDE.to_string(),
            Some("-") => expand::unknown("OLDPWD"),
            Some(path)
                if path.starts_with(['/', field::TILDE, field::OPEN, field::OPEN_QUOTED]) =>
            {
                path.to_owned()
            }
            Some(path) if self.cwd.is_empty() => path.to_owned(),
            Some(path) => format!("{}/{path}", self.cwd),
        };
        if self.cwd.len() > 4096 {
            self.cwd = expand::unknown("PWD");
        }
    }

    /// Whether a file of that name was fetched by this text.
    pub(super) fn is_fetched(&self, file: &str) -> bool {
        !self.fetched.is_empty() && self.fetched.iter().any(|it| *it == base_name(file))
    }

    /// A file that is run as shell text: only a process substitution's text is known.
    pub(super) fn run_file(&mut self, file: &Field) {
        if expand::holds_download(&file.text) || self.is_fetched(&file.text) {
            return self.report_check(self.download_rule(), file.span);
        }
        if expand::whole_unknown(&file.text) == Some(expand::INPUT) {
            return self.report_check("run-input", file.span);
        }
        let process =
            expand::whole_unknown(&file.text).and_then(|it| it.strip_prefix(expand::PROCESS));
        let Some(at) = process.and_then(|it| it.parse::<usize>().ok()) else { return };
        match self.processes.get(at).cloned() {
            Some(Feed::Known(text)) => {
                self.text(&text, file.span);
            }
            Some(_) | None => self.opaque(file.span, "it runs what another command prints"),
        }
    }

    fn unwrap(
        &mut self,
        wrapper: &Wrapper,
        arguments: &[Field],
        stdin: &Feed,
        span: Span,
    ) -> Option<Feed> {
        let inner = Inner::read(wrapper, arguments)?;
        Some(self.scoped(|walker| {
            walker.privileged |= wrapper.privileged;
            if wrapper.remote {
                // Elsewhere a command starts in the home directory.
                walker.cwd = field::TILDE.to_string();
            }
            for text in &inner.texts {
                walker.text(text.0, text.1);
            }
            let rest = inner.rest;
            for field in rest.iter().take(inner.assignments) {
                if let Some((name, value)) = field.text.split_once('=') {
                    walker.setting_check(name, value, field.span);
                    walker.assign(name, Some(value.to_owned()));
                }
            }
            let rest = &rest[inner.assignments..];
            match wrapper.run {
                Run::Words => walker.run(rest, stdin),
                Run::Text if rest.is_empty() => Feed::Nothing,
                Run::Text => walker.text(&joined(rest), rest[0].span.to(span)),
                Run::Each => {
                    for field in rest {
                        walker.text(&field.text, field.span);
                    }
                    Feed::Nothing
                }
                Run::Options => Feed::Nothing,
            }
        }))
    }
}

/// What a wrapper runs.
struct Inner<'a> {
    /// Shell texts given by options.
    texts: Vec<(&'a str, Span)>,
    rest: &'a [Field],
    /// How many words of `rest` are assignments.
    assignments: usize,
}

impl<'a> Inner<'a> {
    fn read(wrapper: &Wrapper, arguments: &'a [Field]) -> Option<Self> {
        let mut texts = Vec::new();
        let (mut at, mut skipped) = (0, 0);
        let mut commands = &*wrapper.commands;
        let is_text = |it: &str| wrapper.text_options.iter().any(|name| **name == *it);
        let takes_value =
            |it: &str| wrapper.values.iter().any(|name| **name == *it || ends_in(it, name));
        while let Some(argument) = arguments.get(at) {
            let text = argument.text.as_str();
            if text == "--" {
                at += 1;
                if commands.is_empty() || wrapper.after_dashes {
                    return Some(Self::rest(texts, &arguments[at..], wrapper));
                }
                continue;
            }
            // A lone `-` is an option too: `env - ls`, `su - ada`.
            if text.starts_with('-') {
                let (name, attached) = match text.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (text, None),
                };
                if is_text(name) {
                    match (attached, arguments.get(at + 1)) {
                        (Some(value), _) => texts.push((value, argument.span)),
                        (None, Some(next)) => texts.push((next.text.as_str(), next.span)),
                        (None, None) => {}
                    }
                }
                let value = attached.is_none() && (is_text(name) || takes_value(name));
                at += 1 + usize::from(value);
                continue;
            }
            if !commands.is_empty() {
                let found = commands.iter().any(|it| **it == *text);
                if !found {
                    return None;
                }
                commands = &[];
                at += 1;
                continue;
            }
            if skipped < wrapper.skip {
                skipped += 1;
                at += 1;
                continue;
            }
            if wrapper.after_dashes || wrapper.run == Run::Options {
                at += 1;
                continue;
            }
            return Some(Self::rest(texts, &arguments[at..], wrapper));
        }
        (!texts.is_empty()).then_some(Self { texts, rest: &[], assignments: 0 })
    }

    fn rest(texts: Vec<(&'a str, Span)>, rest: &'a [Field], wrapper: &Wrapper) -> Self {
        let assignments = match wrapper.assignments {
            true => rest.iter().take_while(|it| is_assignment(&it.text)).count(),
            false => 0,
        };
        Self { texts, rest, assignments }
    }
}

/// `-it` ends in the option `-t`, whose value may be the next word.
fn ends_in(bundle: &str, name: &str) -> bool {
    name.len() == 2 && !bundle.starts_with("--") && bundle.len() > 2 && bundle.ends_with(&name[1..])
}

/// `docker compose` is `docker-compose`.
fn compose_call(name: &str, word: &Field, arguments: &[Field]) -> Option<Vec<Field>> {
    if !matches!(name, "docker" | "podman") {
        return None;
    }
    let at = arguments.iter().position(|it| !it.text.starts_with('-'))?;
    if arguments[at].text != "compose" {
        return None;
    }
    let program = Field { text: format_compact!("{name}-compose"), span: word.span };
    Some([program].into_iter().chain(arguments[at + 1..].iter().cloned()).collect())
}

/// `command -v NAME` only looks the name up. With more words after it we do not rely on that.
fn is_lookup(name: &str, arguments: &[Field]) -> bool {
    let [options, _] = arguments else { return false };
    name == "command" && options.text.starts_with('-') && options.text.contains(['v', 'V'])
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
    })
}

/// `rm` for `/usr/bin/../bin/rm`.
pub(super) fn base_name(text: &str) -> &str {
    let base = text.rsplit('/').next().unwrap_or(text);
    base.strip_suffix(".exe").unwrap_or(base)
}
