//! The walk through a script: every command that would run, in the order it would.

use std::{rc::Rc, sync::Arc};

use super::{
    Assessment, Finding, Opaque, Risk, Rules, code,
    expand::{self, Variable},
    feed::Feed,
    matching,
    target::Classes,
};
use crate::{
    field::{self, Field},
    parse::{ParseError, Script},
    tree::{Assignment, Command, For, Function, Heredoc, Part, Simple, Span, Stmt, Text, Word},
};

/// How deep statements, wrappers and texts within texts may nest before the rest is called opaque.
const MAX_NESTING: usize = 120;
/// Commands that run commands are followed this far; some levels copy the words that are left.
const MAX_WRAPPED: usize = 24;
/// How many texts within texts are read.
const MAX_TEXTS: usize = 6;
/// How many commands are looked at, functions and loops counted each time.
const MAX_COMMANDS: usize = 5000;
/// How many bytes of texts within texts are read.
const MAX_READ: usize = 512 * 1024;
/// How many of a loop's words are tried.
const MAX_ROUNDS: usize = 8;

pub(super) struct Walker<'r> {
    pub(super) rules: &'r Rules,
    findings: Vec<Finding>,
    opaque: Option<Opaque>,
    pub(super) variables: Vec<Variable>,
    functions: Vec<Defined>,
    /// What process substitutions print.
    pub(super) processes: Vec<Feed>,
    /// The working directory, as far as the text says; empty at first.
    pub(super) cwd: String,
    /// The word whose text is being read, if it is not the script itself.
    outer: Option<Span>,
    texts: usize,
    /// How many bytes of texts within texts were read.
    read: usize,
    nesting: usize,
    wrapped: usize,
    commands: usize,
    /// Base names of files that were fetched from elsewhere.
    pub(super) fetched: Vec<Text>,
    /// Where a connection to the network was opened that later commands can use.
    pub(super) socket: Option<Span>,
    /// Whether anything reads what is written.
    pub(super) wanted: bool,
    /// Under `sudo` and its like.
    pub(super) privileged: bool,
}

#[derive(Clone)]
struct Defined {
    name: Text,
    body: Rc<Stmt>,
    called: bool,
}

impl<'r> Walker<'r> {
    pub(super) fn new(rules: &'r Rules) -> Self {
        Self {
            rules,
            findings: Vec::new(),
            opaque: None,
            variables: Vec::new(),
            functions: Vec::new(),
            processes: Vec::new(),
            cwd: String::new(),
            outer: None,
            texts: 0,
            read: 0,
            nesting: 0,
            wrapped: 0,
            commands: 0,
            fetched: Vec::new(),
            socket: None,
            wanted: false,
            privileged: false,
        }
    }

    pub(super) fn script(&mut self, body: &[Stmt]) {
        self.statements(body, &Feed::Nothing);
        // What was defined and never called is judged for what a call would do.
        let uncalled: Vec<_> =
            self.functions.iter().filter(|it| !it.called).map(|it| Rc::clone(&it.body)).collect();
        for body in uncalled {
            self.scoped(|walker| walker.statement(&body, Feed::Nothing));
        }
    }

    /// A text that is no shell command but a call in another language, whether the parser lets it pass or not.
    pub(super) fn foreign_call(&mut self, source: &str) {
        if source.trim_end().ends_with([')', ';']) && code::is_destroying_call(source) {
            self.report_check("code-destroy", Span { start: 0, end: source.len() });
        }
    }

    pub(super) fn finish(self) -> Assessment {
        let mut findings = self.findings;
        findings.sort_by(|a, b| {
            (a.span, std::cmp::Reverse(a.risk), &a.rule).cmp(&(
                b.span,
                std::cmp::Reverse(b.risk),
                &b.rule,
            ))
        });
        findings.dedup_by(|a, b| a.span == b.span && a.rule == b.rule);
        let findings = gravest(findings);
        let risk = findings.iter().map(|it| it.risk).max().unwrap_or(Risk::Safe);
        Assessment { risk, findings, opaque: self.opaque }
    }

    /// Reports what a rule finds at a place.
    pub(super) fn report(&mut self, rule: usize, span: Span) {
        let rule = self.rules.rule(rule);
        self.push(rule, rule.risk, span);
    }

    /// Reports what is found by a rule that is code, by its id.
    pub(super) fn report_check(&mut self, id: &str, span: Span) {
        let rule = self
            .rules
            .by_id(id)
            .expect("a test reads data/safety/checks.toml for every id in the code");
        self.push(rule, rule.risk, span);
    }

    fn push(&mut self, rule: &super::rule::Rule, risk: Risk, span: Span) {
        if self.rules.allow.iter().any(|it| matching::silences(it, &rule.id)) {
            return;
        }
        self.findings.push(Finding {
            rule: rule.id.clone(),
            category: rule.category,
            risk,
            span: self.outer.unwrap_or(span),
            why: Arc::clone(&rule.why),
            safer: rule.safer.clone(),
        });
    }

    /// How many findings there are so far.
    pub(super) fn count(&self) -> usize {
        self.findings.len()
    }

    /// Takes back findings that an allow entry is about.
    pub(super) fn allow(&mut self, since: usize, rules: &[Text]) {
        let mut at = 0;
        self.findings.retain(|it| {
            at += 1;
            at <= since || !(rules.is_empty() || rules.contains(&it.rule))
        });
    }

    pub(super) fn opaque(&mut self, span: Span, why: &'static str) {
        self.socket_is_run();
        let span = self.outer.unwrap_or(span);
        self.opaque.get_or_insert(Opaque { span, why });
    }

    /// Forgets what was opaque, to be put back later.
    pub(super) fn take_opaque(&mut self) -> Option<Opaque> {
        self.opaque.take()
    }

    /// Puts back what was opaque, and nothing since.
    pub(super) fn put_opaque(&mut self, opaque: Option<Opaque>) {
        self.opaque = opaque;
    }

    /// Runs `act` as a process of its own would: what it assigns and where it goes is forgotten.
    pub(super) fn scoped<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let (variables, cwd, privileged) =
            (self.variables.len(), self.cwd.clone(), self.privileged);
        let result = act(self);
        self.variables.truncate(variables);
        self.cwd = cwd;
        self.privileged = privileged;
        result
    }

    /// Guards everything that recurses.
    pub(super) fn nested<T>(
        &mut self,
        span: Span,
        otherwise: T,
        act: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.commands += 1;
        if self.nesting >= MAX_NESTING || self.commands > MAX_COMMANDS {
            self.opaque(span, "it is nested too deeply or too long to be followed");
            return otherwise;
        }
        self.nesting += 1;
        let result = act(self);
        self.nesting -= 1;
        result
    }

    /// Guards commands that run commands.
    pub(super) fn wrapped<T>(
        &mut self,
        span: Span,
        otherwise: T,
        act: impl FnOnce(&mut Self) -> T,
    ) -> T {
        if self.wrapped >= MAX_WRAPPED {
            self.opaque(span, "too many commands stand around it");
            return otherwise;
        }
        self.wrapped += 1;
        let result = self.nested(span, otherwise, act);
        self.wrapped -= 1;
        result
    }

    /// Reads a text as a shell would.
    pub(super) fn text(&mut self, text: &str, span: Span) -> Feed {
        if expand::holds_download(text) {
            self.report_check(self.download_rule(), span);
            return Feed::Unknown;
        }
        let unknown = text.trim_matches(|it: char| it.is_whitespace() || it == '{' || it == '}');
        if expand::whole_unknown(unknown) == Some(expand::INPUT) {
            self.report_check("run-input", span);
        }
        if expand::whole_unknown(unknown).is_some() {
            self.opaque(span, "it runs a text that is not in the command");
            return Feed::Unknown;
        }
        if self.texts >= MAX_TEXTS {
            self.opaque(span, "it is nested too deeply or too long to be followed");
            return Feed::Unknown;
        }
        // A tilde means home only where nothing quotes it; this does everywhere.
        let plain = field::display(&text.replace(field::TILDE, "${HOME}"));
        self.read += plain.len();
        if self.read > MAX_READ {
            self.opaque(span, "it is nested too deeply or too long to be followed");
            return Feed::Unknown;
        }
        let script = match Script::parse(&plain) {
            Ok(script) => script,
            Err(ParseError::Empty) => return Feed::Nothing,
            Err(_) => {
                self.opaque(span, "it runs a text that does not parse");
                return Feed::Unknown;
            }
        };
        let outer = self.outer;
        self.outer = Some(outer.unwrap_or(span));
        self.texts += 1;
        let written = self.statements(&script.body, &Feed::Nothing);
        self.texts -= 1;
        self.outer = outer;
        written
    }

    pub(super) fn download_rule(&self) -> &'static str {
        match self.privileged {
            true => "download-run-as-root",
            false => "download-run",
        }
    }

    /// Walks what a substitution runs; gives what it prints.
    pub(super) fn substitution(&mut self, body: &[Stmt]) -> Feed {
        let wanted = std::mem::replace(&mut self.wanted, true);
        let written = self.scoped(|walker| walker.statements(body, &Feed::Nothing));
        self.wanted = wanted;
        written
    }

    /// Walks the expansions of a word that is not an argument.
    pub(super) fn word(&mut self, word: &Word) {
        if word.parts.iter().any(|it| !matches!(it, Part::Text { .. })) {
            let _ = field::encode_single(word, self);
        }
    }

    /// What several statements print: known only if one of them prints.
    fn statements(&mut self, body: &[Stmt], stdin: &Feed) -> Feed {
        let mut written = Feed::Nothing;
        for stmt in body {
            let next = self.statement(stmt, stdin.clone());
            written = match (written, next) {
                (written, Feed::Nothing) => written,
                (Feed::Nothing, next) => next,
                (Feed::Known(a), Feed::Known(b)) => Feed::Known(a + &b),
                (Feed::Download, _) | (_, Feed::Download) => Feed::Download,
                (Feed::Secret, _) | (_, Feed::Secret) => Feed::Secret,
                (
                    Feed::Known(_) | Feed::Found(_) | Feed::Unknown,
                    Feed::Known(_) | Feed::Found(_) | Feed::Unknown,
                ) => Feed::Unknown,
            };
        }
        written
    }

    fn statement(&mut self, stmt: &Stmt, stdin: Feed) -> Feed {
        self.nested(stmt.span, Feed::Unknown, |walker| {
            let mut stdin = stdin;
            let mut captured = false;
            let mut later = Classes::default();
            for redirect in &stmt.redirects {
                let file = walker.redirect(redirect, &stmt.command, &mut stdin);
                captured |= file.is_some();
                later |= file.unwrap_or_default();
            }
            let wanted = walker.wanted;
            walker.wanted |= later.meets(Classes::STARTUP);
            let written = walker.command(&stmt.command, stdin, stmt.span);
            walker.wanted = wanted;
            walker.run_later(later, &written, stmt.span);
            if captured { Feed::Nothing } else { written }
        })
    }

    /// The text of a here-document, markers included.
    pub(super) fn heredoc(&mut self, heredoc: &Heredoc) -> String {
        field::encode_single(&heredoc.body, self)
    }

    fn command(&mut self, command: &Command, stdin: Feed, span: Span) -> Feed {
        match command {
            Command::Simple(simple) => self.simple(simple, &stdin),
            Command::Pipeline(stages) => {
                let mut feed = stdin;
                self.pipeline_check(stages, span);
                let wanted = self.wanted;
                for (at, stage) in stages.iter().enumerate() {
                    self.wanted = wanted || at + 1 < stages.len();
                    feed = self.scoped(|walker| walker.statement(&stage.stmt, feed));
                }
                self.wanted = wanted;
                feed
            }
            Command::AndOr(list) => {
                let mut written = self.statement(&list.first, stdin.clone());
                for (_, stmt) in &list.rest {
                    let next = self.statement(stmt, stdin.clone());
                    if next != Feed::Nothing {
                        written = next;
                    }
                }
                written
            }
            Command::Group(body) => self.statements(body, &stdin),
            Command::Subshell(body) => self.scoped(|walker| walker.statements(body, &stdin)),
            Command::If(it) => {
                for (condition, body) in &it.branches {
                    self.statements(condition, &stdin);
                    self.statements(body, &stdin);
                }
                if let Some(body) = &it.otherwise {
                    self.statements(body, &stdin);
                }
                Feed::Unknown
            }
            Command::For(it) => self.for_loop(it, &stdin),
            Command::ArithmeticFor(it) => {
                self.word(&it.head.word);
                self.statements(&it.body, &stdin)
            }
            Command::While(it) => {
                self.loop_check(it, span);
                self.statements(&it.condition, &stdin);
                self.statements(&it.body, &stdin);
                Feed::Unknown
            }
            Command::Case(it) => {
                self.word(&it.word);
                for arm in &it.arms {
                    arm.patterns.iter().for_each(|word| self.word(word));
                    self.statements(&arm.body, &stdin);
                }
                Feed::Unknown
            }
            Command::Condition(it) => {
                it.words.iter().for_each(|word| self.word(word));
                Feed::Nothing
            }
            Command::Arithmetic(it) => {
                self.word(&it.word);
                Feed::Nothing
            }
            Command::Function(it) => {
                self.define(it, span);
                Feed::Nothing
            }
            Command::Time(it) => match &it.stmt {
                Some(stmt) => self.statement(stmt, stdin),
                None => Feed::Nothing,
            },
            Command::Coproc(stmt) => self.statement(stmt, stdin),
            Command::Foreign(it) => {
                it.words.iter().for_each(|word| self.word(word));
                for body in &it.bodies {
                    self.statements(body, &stdin);
                }
                Feed::Unknown
            }
        }
    }

    fn define(&mut self, function: &Function, span: Span) {
        if super::special::is_fork_bomb(function) {
            return self.report_check("fork-bomb", span);
        }
        if self.functions.len() < 64 {
            let body = Rc::new(function.body.clone());
            self.functions.push(Defined { name: function.name.clone(), body, called: false });
        }
    }

    fn for_loop(&mut self, it: &For, stdin: &Feed) -> Feed {
        let mut fields = Vec::new();
        for word in it.words.iter().flatten() {
            field::push_fields(word, self, &mut fields);
        }
        let mut written = Feed::Nothing;
        let rounds = fields.len().clamp(1, MAX_ROUNDS);
        for round in 0..rounds {
            let value = fields.get(round).map(|it| it.text.to_string());
            self.assign(&it.name, value);
            written = self.statements(&it.body, stdin);
        }
        if rounds > 1 { Feed::Unknown } else { written }
    }

    fn simple(&mut self, simple: &Simple, stdin: &Feed) -> Feed {
        let before = self.variables.len();
        for assignment in &simple.assignments {
            self.assignment(assignment);
        }
        if simple.words.is_empty() {
            return Feed::Nothing;
        }
        let mut fields = Vec::with_capacity(simple.words.len());
        for word in &simple.words {
            field::push_fields(word, self, &mut fields);
        }
        if fields.iter().any(|it| !it.text.is_ascii()) {
            fields = fields.into_iter().flat_map(mend).collect();
        }
        let written = self.run(&fields, stdin);
        // `a=1 command` assigns for that command only.
        let after = (before + simple.assignments.len()).min(self.variables.len());
        self.variables.drain(before..after);
        written
    }

    /// A subscript is kept as text, although what stands in it is expanded.
    pub(super) fn subscript(&mut self, subscript: Option<&Text>, span: Span) {
        if let Some(text) = subscript.filter(|it| it.contains("$(") || it.contains('`')) {
            self.scoped(|walker| walker.text(&format!(": {text}"), span));
        }
    }

    fn assignment(&mut self, assignment: &Assignment) {
        self.subscript(assignment.subscript.as_ref(), assignment.span);
        let mut value = field::encode_single(&assignment.value, self);
        if assignment.append {
            let Some(before) = self.lookup(&assignment.name) else {
                return self.assign(&assignment.name, None);
            };
            value.insert_str(0, before);
        }
        self.setting_check(&assignment.name, &value, assignment.span);
        let whole = assignment.subscript.is_none().then_some(value);
        self.assign(&assignment.name, whole);
    }

    /// Calls a function of the script, if there is one of that name.
    pub(super) fn call_function(
        &mut self,
        name: &str,
        arguments: &[Field],
        stdin: &Feed,
    ) -> Option<Feed> {
        let function = self.functions.iter_mut().rev().find(|it| it.name == name)?;
        let first = !function.called;
        function.called = true;
        let body = Rc::clone(&function.body);
        let before = self.variables.len();
        let mut all = String::new();
        for (at, argument) in arguments.iter().enumerate() {
            self.assign(&(at + 1).to_string(), Some(argument.text.to_string()));
            if at > 0 {
                all.push(field::SPLIT);
            }
            all.push_str(&argument.text);
        }
        self.assign("@", Some(all));
        let written = match first || !arguments.is_empty() {
            true => self.statement(&body, stdin.clone()),
            false => Feed::Unknown,
        };
        // Positional parameters end with the call; what it assigned besides lives on.
        let positional = arguments.len() + 1;
        let after = (before + positional).min(self.variables.len());
        self.variables.drain(before..after);
        Some(written)
    }
}

/// Leaves out what a graver finding of the same kind says about the same words.
fn gravest(findings: Vec<Finding>) -> Vec<Finding> {
    // Findings about the same words stand together; looking at a few keeps long scripts linear.
    const NEAR: usize = 8;
    let covered = |at: usize, it: &Finding| {
        let near = findings[at.saturating_sub(NEAR)..].iter().take(2 * NEAR + 1);
        near.filter(|other| other.category == it.category && other.risk > it.risk)
            .any(|other| other.span.start < it.span.end && it.span.start < other.span.end)
    };
    let kept: Vec<bool> = findings.iter().enumerate().map(|(at, it)| !covered(at, it)).collect();
    findings.into_iter().zip(kept).filter_map(|(it, keep)| keep.then_some(it)).collect()
}

/// What a text processor or a joker made of a command: other hyphens, blanks and letters that look the same, marks without
/// width. It was meant as the plain character, and whoever runs it will mend it.
fn mend(field: Field) -> Vec<Field> {
    const DASHES: [char; 9] = [
        '\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2015}', '\u{2212}',
        '\u{FE58}', '\u{FE63}',
    ];
    const UNSEEN: [char; 5] = ['\u{200B}', '\u{200C}', '\u{200D}', '\u{2060}', '\u{FEFF}'];
    if field.text.is_ascii() {
        return vec![field];
    }
    let leading = field.text.starts_with(DASHES);
    let mut dashes = leading;
    let text: String = field
        .text
        .chars()
        .filter(|it| !UNSEEN.contains(it))
        .map(|it| {
            dashes &= DASHES.contains(&it);
            match it {
                _ if dashes => '-',
                '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(it) - 0xFEE0).unwrap_or(it),
                '\u{A0}' | '\u{3000}' | '\u{2000}'..='\u{200A}' | '\u{202F}' => field::SPLIT,
                other => latin(other),
            }
        })
        .collect();
    let pieces = text.split(field::SPLIT).filter(|it| !it.is_empty());
    pieces.map(|it| Field { text: it.into(), span: field.span }).collect()
}

/// The Latin letter that a Cyrillic one looks like.
fn latin(character: char) -> char {
    match character {
        'а' => 'a',
        'с' => 'c',
        'ԁ' => 'd',
        'е' => 'e',
        'һ' => 'h',
        'і' => 'i',
        'ј' => 'j',
        'к' => 'k',
        'м' => 'm',
        'о' => 'o',
        'р' => 'p',
        'ѕ' => 's',
        'т' => 't',
        'у' => 'y',
        'х' => 'x',
        other => other,
    }
}
