//! Every simple command of a script, wrappers removed, with its words as far as they are known.

use super::{Mentions, Role, call, find};
use crate::{
    Script,
    field::{self, CLOSE, Expand, Field, OPEN_QUOTED, TILDE},
    tree::{Command, Parameter, ParameterOp, Part, Redirect, RedirectOp, Simple, Stmt, Text, Word},
    utility,
};

/// Texts within texts and commands within commands are followed this far.
const MAX_DEPTH: usize = 12;

/// Programs that run the program after their own options.
const PREFIXES: &[&str] = &[
    "builtin", "command", "doas", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf",
    "sudo", "time", "timeout", "unbuffer",
];

/// What a shell or the world sets.
const SET: &[&str] = &[
    "_", "BASHPID", "EUID", "HOSTNAME", "IFS", "LANG", "LINENO", "LOGNAME", "OLDPWD", "OPTARG",
    "OPTIND", "PATH", "PPID", "RANDOM", "REPLY", "SECONDS", "SHELL", "SHLVL", "TERM", "TZ", "UID",
    "USER",
];

#[derive(Default)]
pub(super) struct Walker {
    pub(super) found: Mentions,
    /// Variables that the text sets, with the value if it is known.
    set: Vec<(Text, Option<String>)>,
    depth: usize,
}

impl Walker {
    pub(super) fn statements(&mut self, body: &[Stmt]) {
        if self.depth >= MAX_DEPTH {
            return;
        }
        self.depth += 1;
        body.iter().for_each(|it| self.statement(it));
        self.depth -= 1;
    }

    fn statement(&mut self, stmt: &Stmt) {
        match &stmt.command {
            Command::Simple(it) => self.simple(it),
            Command::Pipeline(stages) => stages.iter().for_each(|it| self.statement(&it.stmt)),
            Command::AndOr(it) => {
                self.statement(&it.first);
                it.rest.iter().for_each(|(_, stmt)| self.statement(stmt));
            }
            Command::Group(body) | Command::Subshell(body) => self.statements(body),
            Command::If(it) => {
                for (condition, body) in &it.branches {
                    self.statements(condition);
                    self.statements(body);
                }
                self.statements(it.otherwise.as_deref().unwrap_or_default());
            }
            Command::For(it) => {
                let words = self.fields(it.words.as_deref().unwrap_or_default());
                for word in &words {
                    self.operand(&word.text, Role::Any);
                }
                let first = words.into_iter().next().map(|it| it.text.into());
                self.set.push((it.name.clone(), first));
                self.statements(&it.body);
            }
            Command::ArithmeticFor(it) => {
                self.found.numbers_in(&it.head.text);
                self.statements(&it.body);
            }
            Command::While(it) => {
                self.statements(&it.condition);
                self.statements(&it.body);
            }
            Command::Case(it) => {
                self.fields(std::slice::from_ref(&it.word));
                it.arms.iter().for_each(|arm| self.statements(&arm.body));
            }
            Command::Condition(it) => {
                let words = self.fields(&it.words);
                call::condition(self, &words);
            }
            Command::Arithmetic(it) => self.found.numbers_in(&it.text),
            Command::Function(it) => self.statement(&it.body),
            Command::Time(it) => it.stmt.iter().for_each(|it| self.statement(it)),
            Command::Coproc(it) => self.statement(it),
            Command::Foreign(it) => it.bodies.iter().for_each(|it| self.statements(it)),
        }
        stmt.redirects.iter().for_each(|it| self.redirect(it));
    }

    fn simple(&mut self, simple: &Simple) {
        for it in &simple.assignments {
            let value = field::encode_single(&it.value, self);
            self.set.push((it.name.clone(), Some(value)));
        }
        let fields = self.fields(&simple.words);
        self.run(&fields);
    }

    pub(super) fn fields(&mut self, words: &[Word]) -> Vec<Field> {
        let mut fields = Vec::new();
        for word in words {
            field::push_fields(word, self, &mut fields);
        }
        fields
    }

    /// A program with its arguments.
    pub(super) fn run(&mut self, fields: &[Field]) {
        let Some((word, arguments)) = fields.split_first() else { return };
        let name = word.text.rsplit('/').next().unwrap_or_default();
        if !field::is_literal(name) || name.is_empty() || self.depth >= MAX_DEPTH {
            return;
        }
        self.depth += 1;
        self.found.programs.insert(name.to_owned());
        if word.text.contains('/') {
            self.operand(&word.text, Role::File);
        }
        let other = utility::lookup(name).and_then(|it| it.same_as.as_deref());
        match (name, other) {
            (_, Some(words)) => {
                let words = words.iter().map(|it| Field { text: (**it).into(), span: word.span });
                let all: Vec<_> = words.chain(arguments.iter().cloned()).collect();
                self.run(&all);
            }
            ("find", None) => find::read(self, arguments),
            ("sh" | "bash" | "dash" | "zsh" | "ksh", None) => self.shell(arguments),
            ("eval", None) => {
                let words: Vec<&str> = arguments.iter().map(|it| &*it.text).collect();
                self.shell_text(&words.join(" "));
            }
            (_, None) if PREFIXES.contains(&name) => {
                let program = arguments.iter().position(|it| utility::is_known(&it.text));
                self.run(program.map_or(&[], |at| &arguments[at..]));
            }
            (_, None) => call::read(self, name, arguments),
        }
        self.depth -= 1;
    }

    fn shell(&mut self, arguments: &[Field]) {
        let is_text = |it: &Field| {
            it.text.starts_with('-') && !it.text.starts_with("--") && it.text.ends_with('c')
        };
        match arguments.iter().position(is_text) {
            Some(at) => {
                if let Some(text) = arguments.get(at + 1) {
                    self.shell_text(&text.text);
                }
            }
            None => {
                if let Some(file) = arguments.iter().find(|it| !it.text.starts_with('-')) {
                    self.operand(&file.text, Role::File);
                }
            }
        }
    }

    fn shell_text(&mut self, text: &str) {
        if let Ok(script) = Script::parse(&field::display(text)) {
            // What a text within the text calls `$1` is given to it by the command around it.
            let outer = std::mem::take(&mut self.found.variables);
            self.statements(&script.body);
            self.found.variables = outer;
        }
    }

    fn redirect(&mut self, it: &Redirect) {
        let role = match it.op {
            RedirectOp::Output
            | RedirectOp::Clobber
            | RedirectOp::Append
            | RedirectOp::OutputBoth
            | RedirectOp::AppendBoth => Role::Target,
            RedirectOp::Input | RedirectOp::ReadWrite => Role::File,
            RedirectOp::HereDoc
            | RedirectOp::HereString
            | RedirectOp::DupOutput
            | RedirectOp::DupInput => {
                field::encode_single(&it.target, self);
                return;
            }
        };
        let target = field::encode_single(&it.target, self);
        self.operand(&target, role);
    }

    /// A word that is a path, if all of it is known but for patterns.
    pub(super) fn operand(&mut self, text: &str, role: Role) {
        let relative = !text.starts_with(['/', TILDE, '{', '-', OPEN_QUOTED, field::OPEN]);
        self.found.here |= relative;
        let open = text.contains([field::OPEN, OPEN_QUOTED, '\n', '\0']);
        let special = matches!(text, "" | "-" | "{}" | "." | "..") || text.starts_with("/dev/");
        if !open && !special && !text.contains("{}") && text.len() < 200 {
            self.found.path(&field::display(text), role);
        }
    }
}

/// Words where what is unset has a value of its own: its name in small letters.
impl Expand for Walker {
    fn expand(&mut self, part: &Part, out: &mut String) {
        match part {
            Part::Text { text, .. } => out.push_str(text),
            Part::Parameter(it) => self.parameter(it, out),
            Part::Command(it) => {
                self.statements(&it.body);
                unknown(out);
            }
            Part::Process(it) => {
                self.statements(&it.body);
                unknown(out);
            }
            Part::Arithmetic(it) => {
                self.found.numbers_in(&it.expression.text);
                unknown(out);
            }
            Part::Array(it) => {
                for (_, word) in &it.elements {
                    field::encode_single(word, self);
                }
                unknown(out);
            }
        }
    }
}

impl Walker {
    fn parameter(&mut self, it: &Parameter, out: &mut String) {
        let operands: Vec<_> =
            it.operands.iter().map(|word| field::encode_single(word, self)).collect();
        if let Some((_, value)) = self.set.iter().rev().find(|(name, _)| *name == it.name) {
            match (it.op, value) {
                (ParameterOp::Value, Some(value)) => out.push_str(value),
                _ => unknown(out),
            }
            return;
        }
        match (&*it.name, it.op) {
            ("HOME", ParameterOp::Value) => out.push(TILDE),
            ("PWD", ParameterOp::Value) => out.push('.'),
            (_, ParameterOp::Default(_) | ParameterOp::Assign(_)) => {
                out.push_str(operands.first().map_or("", String::as_str));
            }
            (name, ParameterOp::Value) => match assumed(name) {
                Some(value) => {
                    out.push_str(&value);
                    self.found.variables.insert(name.to_owned(), value);
                }
                None => unknown(out),
            },
            _ => unknown(out),
        }
    }
}

/// What a variable that nobody sets is taken to hold.
fn assumed(name: &str) -> Option<String> {
    if SET.contains(&name) || name.starts_with("BASH") {
        return None;
    }
    match name.parse::<u32>() {
        Ok(0) => None,
        Ok(number) => Some(format!("arg{number}")),
        Err(_) => match name {
            "@" | "*" => Some("arg1".to_owned()),
            _ if name.starts_with(|it: char| it.is_alphabetic() || it == '_') => {
                Some(name.to_lowercase())
            }
            _ => None,
        },
    }
}

fn unknown(out: &mut String) {
    out.push(OPEN_QUOTED);
    out.push(CLOSE);
}
