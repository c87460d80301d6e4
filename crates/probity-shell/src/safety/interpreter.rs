//! Programs that are fed programs: shells, scripting languages, database clients.

use super::{code, expand, feed::Feed, statements, walk::Walker};
use crate::{field::Field, tree::Span};

/// Whether a program of that name is a shell.
pub(super) fn is_shell(name: &str) -> bool {
    matches!(
        name,
        "sh" | "bash"
            | "zsh"
            | "dash"
            | "ksh"
            | "mksh"
            | "ash"
            | "fish"
            | "csh"
            | "tcsh"
            | "rbash"
            | "yash"
            | "pwsh"
            | "elvish"
            | "nu"
    )
}

/// A name without its version: `python` for `python3.12`.
pub(super) fn plain_name(name: &str) -> &str {
    let stem = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.' || it == '-');
    match stem {
        "python" | "pypy" | "perl" | "ruby" | "php" | "lua" | "node" | "nodejs" | "pip"
        | "tclsh" => stem,
        _ => name,
    }
}

/// How a language takes its program.
struct Language {
    /// Options whose value is the program.
    inline: &'static [&'static str],
    /// Other options that take a value.
    values: &'static [&'static str],
}

fn language(name: &str) -> Option<Language> {
    let (inline, values): (&[&str], &[&str]) = match name {
        "python" | "pypy" => (&["-c"], &["-W", "-X"]),
        "perl" => (&["-e", "-E"], &["-I"]),
        "ruby" => (&["-e"], &["-r", "-I", "-C"]),
        "node" | "nodejs" | "bun" => {
            (&["-e", "--eval", "-p", "--print", "-pe"], &["-r", "--require"])
        }
        "deno" => (&["eval"], &[]),
        "php" => (&["-r", "-B", "-R"], &["-d", "-c"]),
        "lua" | "luajit" | "Rscript" | "R" | "groovy" | "elixir" | "julia" | "osascript"
        | "tclsh" | "scala" => (&["-e"], &["-l"]),
        _ => return None,
    };
    Some(Language { inline, values })
}

/// Where a database client takes its statements.
struct Client {
    options: &'static [&'static str],
    /// Operands from this one on are statements.
    operands: Option<usize>,
    mongo: bool,
}

fn client(name: &str) -> Option<Client> {
    let (options, operands): (&[&str], Option<usize>) = match name {
        "psql" | "usql" | "pgcli" | "heroku" | "supabase" => (&["-c", "--command"], None),
        "mysql" | "mariadb" | "mycli" | "cockroach" | "hive" | "beeline" | "vsql" | "cqlsh" => {
            (&["-e", "--execute"], None)
        }
        "sqlite3" | "sqlite" => (&["-cmd", "--cmd"], Some(1)),
        "duckdb" => (&["-c", "-s", "-cmd"], Some(1)),
        "sqlcmd" => (&["-Q", "-q"], None),
        "clickhouse-client" | "clickhouse" | "clickhouse-local" | "snowsql" | "dolt"
        | "impala-shell" => (&["-q", "--query"], None),
        "trino" | "presto" | "influx" => (&["--execute", "-execute"], None),
        "bq" => (&[], Some(1)),
        "wrangler" => (&["--command"], None),
        "turso" => (&[], Some(2)),
        "gcloud" => (&["--sql"], None),
        "sqlplus" => (&[], None),
        "mongosh" | "mongo" => {
            return Some(Client { options: &["--eval"], operands: None, mongo: true });
        }
        _ => return None,
    };
    Some(Client { options, operands, mongo: false })
}

impl Walker<'_> {
    /// Judges what an interpreter is fed; `None` if the program is none.
    pub(super) fn interpreter(
        &mut self,
        name: &str,
        arguments: &[Field],
        stdin: &Feed,
        span: Span,
    ) -> Option<Feed> {
        if is_shell(name) {
            return Some(self.shell(arguments, stdin, span));
        }
        if let Some(client) = client(name) {
            self.statements_of(&client, arguments, stdin, span);
            return None;
        }
        if matches!(name, "awk" | "gawk" | "mawk" | "nawk") {
            if let Some(program) = awk_program(arguments) {
                let given: Vec<_> = awk_values(arguments).collect();
                self.awk(&program.text, &given, program.span);
            }
            return None;
        }
        if name == "java" {
            let jar = arguments.iter().position(|it| it.text == "-jar")?;
            return Some(self.run(&arguments[jar + 1..], stdin));
        }
        let language = language(name)?;
        self.script_of(&language, arguments, stdin, span)
    }

    fn shell(&mut self, arguments: &[Field], stdin: &Feed, span: Span) -> Feed {
        let mut text_wanted = false;
        let mut reads_stdin = false;
        let mut keeps_rights = false;
        let mut at = 0;
        while let Some(argument) = arguments.get(at) {
            let text = argument.text.as_str();
            let is_option = text.len() > 1 && text.starts_with(['-', '+']);
            if !is_option && text != "-" {
                break;
            }
            at += 1;
            let letters = text.len() > 1 && text.starts_with('-') && !text.starts_with("--");
            text_wanted |=
                letters && text.contains('c') || text == "--command" || text == "-Command";
            reads_stdin |= letters && text.contains('s');
            keeps_rights |= letters && text.contains('p');
            if matches!(text, "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file") {
                at += 1;
            }
            if text == "--" || text == "-" {
                break;
            }
        }
        let rest = arguments.get(at..).unwrap_or_default();
        if keeps_rights && !text_wanted {
            self.report_check("shell-keep-rights", span);
        }
        self.socket_is_run();
        if self.privileged && rest.is_empty() && *stdin == Feed::Nothing {
            self.report_check("shell-as-root", span);
        }
        self.scoped(|walker| match rest.first() {
            Some(text) if text_wanted => {
                walker.positional(&rest[1..]);
                walker.text(&text.text, text.span)
            }
            Some(file) if !reads_stdin && file.text != "/dev/stdin" => {
                walker.run_file(file);
                Feed::Unknown
            }
            Some(_) | None => walker.run_feed(stdin, span),
        })
    }

    /// `sh -c TEXT NAME ONE TWO`: the words after the text are `$0`, `$1`, `$2`.
    fn positional(&mut self, rest: &[Field]) {
        for (at, field) in rest.iter().enumerate().take(16) {
            self.assign(&at.to_string(), Some(field.text.to_string()));
        }
        let all: Vec<&str> = rest.iter().skip(1).map(|it| it.text.as_str()).collect();
        if !all.is_empty() {
            self.assign("@", Some(all.join(" ")));
        }
    }

    /// A shell that reads its commands from a pipe.
    fn run_feed(&mut self, stdin: &Feed, span: Span) -> Feed {
        match stdin {
            Feed::Known(text) => return self.text(text, span),
            Feed::Download => self.report_check(self.download_rule(), span),
            Feed::Found(_) | Feed::Secret | Feed::Unknown => {
                self.opaque(span, "a shell runs what another command prints");
            }
            Feed::Nothing => {}
        }
        Feed::Unknown
    }

    fn script_of(
        &mut self,
        language: &Language,
        arguments: &[Field],
        stdin: &Feed,
        span: Span,
    ) -> Option<Feed> {
        let mut at = 0;
        let mut inline = false;
        while let Some(argument) = arguments.get(at) {
            let text = argument.text.as_str();
            at += 1;
            // `ruby -e'CODE'`: the program is attached.
            let code = language.inline.iter().filter(|it| it.len() == 2).find_map(|it| {
                text.strip_prefix(*it).filter(|it| it.contains(['(', '=', ';', ' ', '\'', '"']))
            });
            if let Some(code) = code {
                inline = true;
                self.code(code, argument.span);
                continue;
            }
            // `perl -ne CODE`: the option that takes the program may end a bundle; `-MSome::Module` is none.
            let attached = |it: &&str| it.len() == 2 && text.starts_with(*it);
            let is_bundle = text.len() > 2
                && text.starts_with('-')
                && text[1..].bytes().all(|it| it.is_ascii_alphanumeric())
                && !language.values.iter().any(attached)
                && !text.starts_with("-M");
            let takes = |it: &&str| {
                **it == *text || (it.len() == 2 && is_bundle && text.ends_with(&it[1..]))
            };
            if language.inline.iter().any(takes) {
                inline = true;
                if let Some(program) = arguments.get(at) {
                    self.code(&program.text, program.span);
                }
                at += 1;
            } else if text == "-m" {
                return Some(self.run(&arguments[at..], stdin));
            } else if language.values.contains(&text) {
                at += 1;
            } else if !text.starts_with('-') || text == "-" {
                if inline {
                    break;
                }
                if text != "-" && text != "/dev/stdin" {
                    return Some(self.script_file(&arguments[at - 1..], stdin));
                }
                break;
            }
        }
        if !inline {
            match stdin {
                Feed::Known(text) => self.code(text, span),
                Feed::Download => self.report_check(self.download_rule(), span),
                Feed::Found(_) | Feed::Nothing | Feed::Secret | Feed::Unknown => {}
            }
        }
        None
    }

    /// `python manage.py migrate` is `manage.py migrate`.
    fn script_file(&mut self, words: &[Field], stdin: &Feed) -> Feed {
        let unknown = words.first().and_then(|it| expand::whole_unknown(&it.text));
        if let Some(name) = unknown {
            let process =
                name.strip_prefix(expand::PROCESS).and_then(|it| it.parse::<usize>().ok());
            if let Some(Feed::Known(text)) = process.and_then(|at| self.processes.get(at)).cloned()
            {
                self.code(&text, words[0].span);
            }
            if name == expand::DOWNLOAD {
                self.report_check(self.download_rule(), words[0].span);
            }
            return Feed::Unknown;
        }
        if words.first().is_some_and(|it| self.is_fetched(&it.text)) {
            self.report_check(self.download_rule(), words[0].span);
        }
        self.run(words, stdin)
    }

    pub(super) fn code(&mut self, text: &str, span: Span) {
        if expand::holds_download(text) {
            return self.report_check(self.download_rule(), span);
        }
        // A shell command that was given to the wrong interpreter was still meant.
        if text.trim_start().starts_with("rm ") || text.trim_start().starts_with("git ") {
            self.scoped(|walker| walker.text(text, span));
        }
        for found in code::read(text) {
            self.found_in_code(found, span);
        }
    }

    /// Judges what a program in another language does.
    pub(super) fn found_in_code(&mut self, found: code::Found, span: Span) {
        match found {
            code::Found::Rule(rule) => self.report_check(rule, span),
            code::Found::Shell(text) => {
                self.nested(span, Feed::Unknown, |walker| walker.scoped(|it| it.text(&text, span)));
            }
        }
    }

    fn statements_of(&mut self, client: &Client, arguments: &[Field], stdin: &Feed, span: Span) {
        let mut given = false;
        let mut operands = 0;
        for (at, argument) in arguments.iter().enumerate() {
            let text = argument.text.as_str();
            let attached =
                client.options.iter().find_map(|it| text.strip_prefix(it)?.strip_prefix('='));
            let next = client
                .options
                .iter()
                .any(|it| is_option(text, it))
                .then(|| arguments.get(at + 1))
                .flatten();
            let stuck = client.options.iter().find_map(|it| match it.len() {
                2 => text.strip_prefix(it).filter(|rest| rest.contains(' ')),
                _ => None,
            });
            if !text.starts_with('-') {
                operands += 1;
                if client.operands.is_some_and(|first| operands > first) {
                    self.query(client, text, argument.span);
                    given = true;
                }
            }
            if let Some(query) = attached.or(stuck) {
                self.query(client, query, argument.span);
                given = true;
            } else if let Some(next) = next {
                self.query(client, &next.text, next.span);
                given = true;
            }
        }
        if let (Feed::Known(text), false) = (stdin, given) {
            self.query(client, text, span);
        }
    }

    fn query(&mut self, client: &Client, text: &str, span: Span) {
        // SQLite: `.shell date`.
        let command = text.strip_prefix(".shell ").or_else(|| text.strip_prefix(".system "));
        if let Some(command) = command {
            self.scoped(|walker| walker.text(command, span));
        }
        let rule = match client.mongo {
            true => statements::mongo(text),
            false => statements::sql(text),
        };
        if let Some(rule) = rule {
            self.report_check(rule, span);
        }
    }
}

/// Whether `text` is the option, or a bundle of letters that ends in it.
fn is_option(text: &str, option: &str) -> bool {
    text == option
        || (option.len() == 2
            && text.starts_with('-')
            && !text.starts_with("--")
            && text.len() < 6
            && text.ends_with(&option[1..]))
}

/// What `-v` assigns.
fn awk_values(arguments: &[Field]) -> impl Iterator<Item = (&str, &str)> {
    let next = arguments.windows(2).filter(|it| it[0].text == "-v").map(|it| it[1].text.as_str());
    let attached = arguments.iter().filter_map(|it| it.text.strip_prefix("-v"));
    next.chain(attached).filter_map(|it| it.split_once('='))
}

fn awk_program(arguments: &[Field]) -> Option<&Field> {
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        match argument.text.as_str() {
            "-F" | "-v" => at += 2,
            "-f" => return None,
            text if text.starts_with('-') && text.len() > 1 => at += 1,
            _ => return Some(argument),
        }
    }
    None
}
