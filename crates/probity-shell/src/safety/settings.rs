//! Commands that stand in settings: variables such as `PAGER`, `git -c`, `ssh -o`, `make --eval`, `tar --to-command`.

use super::{
    call::{Call, Kind},
    expand,
    feed::Feed,
    target::{Classes, classify},
    walk::Walker,
};
use crate::tree::Span;

/// Variables whose value other programs run.
const COMMAND_VARIABLES: &[&str] = &[
    "BROWSER",
    "EDITOR",
    "FCEDIT",
    "FZF_DEFAULT_COMMAND",
    "GIT_ASKPASS",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "KUBECTL_EXTERNAL_DIFF",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "PROMPT_COMMAND",
    "RSYNC_RSH",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "VISUAL",
];

/// Settings of git whose value is run by a shell.
const GIT_COMMANDS: &[&str] = &[
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.pager",
    "core.sshcommand",
    "diff.external",
    "gpg.program",
    "interactive.difffilter",
    "sequence.editor",
    "uploadpack.packobjectshook",
    "web.browser",
];

/// Parts of git's settings that have a name in the middle: `filter.lfs.clean`, `difftool.meld.cmd`.
const GIT_NAMED_COMMANDS: &[(&str, &[&str])] = &[
    ("browser", &["cmd"]),
    ("diff", &["command", "textconv"]),
    ("difftool", &["cmd"]),
    ("filter", &["clean", "process", "smudge"]),
    ("gpg", &["program"]),
    ("merge", &["driver"]),
    ("mergetool", &["cmd"]),
];

/// Options of `ssh` whose value is run, here or there.
const SSH_COMMANDS: &[&str] =
    &["knownhostscommand", "localcommand", "proxycommand", "remotecommand"];

/// How many `$(shell ...)` of a makefile are read.
const MAX_SHELLS: usize = 16;

impl Walker<'_> {
    /// Judges the value of a variable: what it switches off, and what it makes other programs run.
    pub(super) fn setting_check(&mut self, name: &str, value: &str, span: Span) {
        let off = match name {
            "HISTFILE" => value.is_empty() || value == "/dev/null",
            "HISTSIZE" | "HISTFILESIZE" => value == "0",
            _ => false,
        };
        if off {
            self.report_check("history-off", span);
        }
        let named = COMMAND_VARIABLES.binary_search(&name).is_ok()
            || name.ends_with("_PAGER")
            || name.ends_with("_EDITOR")
            || name.starts_with("GIT_CONFIG_VALUE_");
        if named {
            self.configured(value.trim_start_matches(['|', '-']), span);
        }
    }

    /// A command that something else will run. That its program is a variable's says nothing against it.
    fn configured(&mut self, text: &str, span: Span) {
        if text.is_empty() || expand::whole_unknown(text).is_some() && !expand::holds_download(text)
        {
            return;
        }
        let known = self.take_opaque();
        self.scoped(|walker| walker.text(text, span));
        self.put_opaque(known);
    }

    /// Commands that git is told to run.
    pub(super) fn git(&mut self, call: &Call<'_>) {
        for (at, arg) in call.args.iter().enumerate() {
            match arg.kind {
                Kind::Value => self.git_setting(arg.text, arg.span),
                Kind::Option => {
                    let next = call.args.get(at + 1).map(|it| it.text);
                    self.git_option(arg.text, next, arg.span);
                }
                Kind::Maybe | Kind::Word => self.git_transport(arg.text, arg.span),
            }
        }
        let words: Vec<_> = call.operands(0).collect();
        let starts = |path: [&str; 2]| {
            words.len() > 2 && words[0].text == path[0] && words[1].text == path[1]
        };
        if starts(["submodule", "foreach"]) || starts(["bisect", "run"]) {
            let rest = call.args.iter().skip_while(|it| it.span != words[2].span);
            let text = rest.map(|it| it.text).collect::<Vec<_>>().join(" ");
            self.scoped(|walker| walker.text(&text, words[2].span));
        }
        if words.first().is_some_and(|it| it.text == "config") {
            let from = if words.get(1).is_some_and(|it| it.text == "set") { 2 } else { 1 };
            if let Some([key, value, ..]) = words.get(from..) {
                self.git_setting(&format!("{}={}", key.text, value.text), value.span);
            }
        }
    }

    /// `NAME=value` of `-c`, or of `git config`.
    fn git_setting(&mut self, setting: &str, span: Span) {
        let Some((key, value)) = setting.split_once('=') else { return };
        let lower = key.to_ascii_lowercase();
        let mut parts = lower.split('.');
        let (section, name) = (parts.next().unwrap_or_default(), parts.next_back());
        let Some(name) = name else { return };
        let shell = match section {
            "alias" => value.strip_prefix('!'),
            "credential" if name == "helper" => value.strip_prefix('!'),
            "pager" => Some(value).filter(|it| !matches!(*it, "true" | "false")),
            _ if GIT_COMMANDS.binary_search(&&*lower).is_ok() => Some(value),
            _ => GIT_NAMED_COMMANDS
                .iter()
                .any(|(it, names)| *it == section && names.contains(&name))
                .then_some(value),
        };
        match shell {
            Some(text) => self.configured(text, span),
            // `alias.z=reset --hard`
            None if section == "alias" => self.configured(&format!("git {value}"), span),
            None => {}
        }
    }

    /// Options that name the program on the other end, or one that shows differences.
    fn git_option(&mut self, option: &str, next: Option<&str>, span: Span) {
        let names = ["--upload-pack", "--receive-pack", "--extcmd", "--open-files-in-pager"];
        let (name, attached) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        let value = match name {
            _ if names.contains(&name) => attached.or(next),
            _ => option.strip_prefix("-O").filter(|it| !it.is_empty()),
        };
        if let Some(value) = value {
            self.configured(value, span);
        }
    }

    /// `ext::sh -c ...`: an address that is a command.
    fn git_transport(&mut self, word: &str, span: Span) {
        if let Some(command) = word.strip_prefix("ext::") {
            self.configured(command, span);
        }
    }

    /// Commands that ssh and its kin are told to run on this machine.
    pub(super) fn ssh(&mut self, call: &Call<'_>) {
        let values: Vec<&str> = call.values(&["-o"]).flatten().collect();
        for setting in values {
            let Some((key, value)) = setting.split_once(['=', ' ']) else { continue };
            if SSH_COMMANDS.binary_search(&&*key.trim().to_ascii_lowercase()).is_ok() {
                self.configured(value.trim_start_matches([' ', '=']), call.span);
            }
        }
        if matches!(call.name, "scp" | "sftp")
            && let Some(program) = call.value(&["-S", "-D"])
        {
            self.configured(program, call.span);
        }
    }

    /// `make --eval TEXT`, and a makefile that comes through a pipe.
    pub(super) fn make(&mut self, call: &Call<'_>, stdin: &Feed) {
        for text in call.values(&["--eval", "-E"]).flatten() {
            self.makefile(text, call.span);
        }
        for word in call.operands(0) {
            if let Some(shell) = word.text.strip_prefix("SHELL=") {
                self.configured(shell, word.span);
            }
        }
        let piped = call.values(&["-f", "--file", "--makefile"]).flatten();
        if let Feed::Known(text) = stdin
            && piped.into_iter().any(|it| matches!(it, "-" | "/dev/stdin"))
        {
            self.makefile(text, call.span);
        }
    }

    /// Recipes, and what `$(shell ...)` runs.
    fn makefile(&mut self, text: &str, span: Span) {
        let mut rest = text;
        for _ in 0..MAX_SHELLS {
            let Some(at) = rest.find("$(shell ") else { break };
            rest = &rest[at + "$(shell ".len()..];
            let mut depth = 1_usize;
            let end = rest.find(|it: char| {
                depth = match it {
                    '(' => depth + 1,
                    ')' => depth - 1,
                    _ => depth,
                };
                depth == 0
            });
            self.configured(&rest[..end.unwrap_or(rest.len())].replace("$$", "$"), span);
        }
        for line in text.lines() {
            let recipe = line.strip_prefix('\t').or_else(|| {
                let (head, recipe) = line.split_once(';')?;
                head.contains(':').then_some(recipe)
            });
            if let Some(recipe) = recipe {
                let plain = recipe.trim_start_matches(['@', '-', '+', ' ', '\t']);
                self.configured(&plain.replace("$$", "$"), span);
            }
        }
    }

    pub(super) fn tar(&mut self, call: &Call<'_>) {
        if let Some(action) = call.value(&["--checkpoint-action"]) {
            let text = action.strip_prefix("exec=").unwrap_or_default().to_owned();
            self.scoped(|walker| walker.text(&text, call.span));
        }
        let extracts =
            call.args.first().is_some_and(|it| !it.text.starts_with("--") && it.text.contains('x'))
                || call.has_any(&["-x", "--extract", "--get"]);
        let place = call.value(&["-C", "--directory"]).map(|it| classify(it, call.cwd));
        if extracts && place.is_some_and(|it| it.meets(Classes::ROOT | Classes::CORE)) {
            self.report_check("unpack-over-system", call.span);
        }
        if call.has_any(&["--remove-files"]) {
            self.report_check("move-into-archive", call.span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_are_searched_are_sorted() {
        assert!(COMMAND_VARIABLES.is_sorted());
        assert!(GIT_COMMANDS.is_sorted());
        assert!(SSH_COMMANDS.is_sorted());
    }
}
