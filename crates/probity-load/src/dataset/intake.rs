//! The one door through which cases of every format come in.

use std::{
    collections::BTreeMap,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;

use super::{
    CaseAt, Completion, CriteriaCheck, DigestBuilder, FORMAT_MAJOR, Item, Summary,
    digest::{CaseDigest, Contents, Hashed},
    display_name,
    ids::Ids,
};
use crate::{
    bounded,
    case::{Decoded, Fields, Finding, Findings, check_results, criteria_of_rubric, decode},
    template::{self, BadAssertion, BadMessage, TemplateError},
};
use probity_core::{
    case::TestCase,
    criteria::{Criteria, CriteriaProblem},
    json,
    located::{Entry, Node, NodeValue},
    problem::{Problem, Severity, Source},
    request::Message,
};

/// How many problems of one file are handed on; the others are counted.
pub const MOST_PROBLEMS: usize = 1000;
/// How many variables without a value are named in one text; the others are counted.
const MOST_UNDEFINED: usize = 100;
/// Largest schema file that a case may name, in bytes.
const LARGEST_SCHEMA: u64 = 16 << 20;

/// Checks cases as they are read, and passes them on.
pub struct Intake<'a> {
    complete: Completion<'a>,
    /// Whether cases are passed on as they are judged, with their assertions filled in.
    fills: bool,
    check: CriteriaCheck<'a>,
    sink: &'a mut dyn FnMut(Item),
    file: Arc<str>,
    folder: PathBuf,
    /// The name of the file without folder and suffix.
    stem: String,
    /// The terms that the file states for all its cases.
    license: Option<String>,
    seen: usize,
    /// None where the cases were checked before: they are what they were if the files are.
    ids: Option<Ids>,
    schemas: BTreeMap<PathBuf, Result<Value, String>>,
    digest: DigestBuilder,
    contents: Contents,
    summary: Summary,
    /// Problems of the file that were handed on.
    kept: usize,
    /// Errors and warnings of the file that were not.
    left_out: (usize, usize),
}

impl<'a> Intake<'a> {
    pub(super) fn new(check: CriteriaCheck<'a>, sink: &'a mut dyn FnMut(Item)) -> Self {
        Self {
            complete: &|_| {},
            fills: false,
            check,
            sink,
            file: "".into(),
            folder: PathBuf::new(),
            stem: String::new(),
            license: None,
            seen: 0,
            ids: Some(Ids::default()),
            schemas: BTreeMap::new(),
            digest: DigestBuilder::default(),
            contents: Contents::default(),
            summary: Summary::default(),
            kept: 0,
            left_out: (0, 0),
        }
    }

    /// Completes every case before it is checked, and fills in what it asserts.
    pub(super) fn completing(self, complete: Completion<'a>) -> Self {
        Self { complete, fills: true, ..self }
    }

    /// Believes that no id is used twice, and so remembers none, and makes no digest of the cases.
    pub(super) fn trusting(self) -> Self {
        Self { ids: None, ..self }
    }

    pub(super) fn open(&mut self, path: &Path) {
        self.close();
        self.file = display_name(path);
        self.folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let stem = path.file_stem().map(|it| it.to_string_lossy().into_owned());
        self.stem = stem.unwrap_or_default();
        self.license = None;
        if let Some(ids) = &mut self.ids {
            ids.next_file(self.file.clone());
        }
    }

    /// How many cases came in, usable or not.
    pub(super) fn seen(&self) -> usize {
        self.seen
    }

    /// How many errors there were.
    pub(super) fn errors(&self) -> usize {
        self.summary.errors
    }

    pub(super) fn finish(mut self) -> Summary {
        self.close();
        let (digest, contents) = (self.digest.finish(), self.contents.finish());
        Summary { digest, contents, ..self.summary }
    }

    /// Takes note of a file that was read.
    pub(super) fn has_read<R>(&mut self, file: &Hashed<R>) {
        self.contents.add_read(file);
    }

    /// Reads a table with `version` and `test_cases`, or a plain list of cases.
    pub(super) fn document(&mut self, source: &Source<'_>, root: &Node) {
        const KNOWN: &[&str] =
            &["version", "test_cases", "name", "description", "license", "source", "safety_level"];
        if let NodeValue::Array(items) = &root.value {
            items.iter().for_each(|item| self.case(source, item));
            return;
        }
        self.license = root.get("license").and_then(Node::as_str).map(ToOwned::to_owned);
        if root.get("test_prompts").is_some() {
            return self.rubric(source, root);
        }
        let mut findings = Findings::default();
        let Some(fields) = Fields::new(root, "a dataset", KNOWN, &mut findings) else {
            return self.findings(source, findings, None);
        };
        match fields.get("version") {
            Some(version) => self.version(version, &mut findings),
            None => findings.0.push(Finding {
                severity: Severity::Warning,
                code: "missing-version",
                message: "field `version` is missing".to_owned(),
                span: root.span.start..root.span.start,
                help: Some(format!("write `version = \"{}\"`", super::DEFAULT_VERSION)),
            }),
        }
        match root.get("test_cases") {
            None => {
                let help = "a dataset is a list of cases under `test_cases`".to_owned();
                let message = "field `test_cases` is missing".to_owned();
                let start = root.span.start..root.span.start;
                findings.error_with_help("missing-field", &start, message, help);
                self.findings(source, findings, None);
            }
            Some(Node { value: NodeValue::Array(items), .. }) => {
                self.findings(source, findings, None);
                items.iter().for_each(|item| self.case(source, item));
            }
            Some(other) => {
                let message = format!("field `test_cases` must be a list, not {}", other.kind());
                findings.error("wrong-type", &other.span, message);
                self.findings(source, findings, None);
            }
        }
    }

    /// Reads the rubric of a skill: each of its prompts is a case.
    fn rubric(&mut self, source: &Source<'_>, root: &Node) {
        const KNOWN: &[&str] =
            &["version", "skill_name", "test_prompts", "criteria", "license", "description"];
        let mut findings = Findings::default();
        let Some(mut fields) = Fields::new(root, "a rubric", KNOWN, &mut findings) else {
            return self.findings(source, findings, None);
        };
        let skill = fields.required_text("skill_name");
        let span = fields.span("skill_name");
        let prompts = fields.get("test_prompts").map(Node::items).unwrap_or_default();
        if prompts.is_empty() {
            let span = fields.span("test_prompts");
            let message = "field `test_prompts` must be a list of prompts".to_owned();
            fields.findings().error("missing-field", &span, message);
        }
        let criteria = fields.get("criteria").filter(|it| !it.items().is_empty());
        if criteria.is_none() {
            let message = "field `criteria` is missing".to_owned();
            fields.findings().error("missing-field", &root.span, message);
        }
        if let Some(version) = root.get("version") {
            self.version(version, &mut findings);
        }
        if let Some(skill) = skill.as_ref().filter(|skill| **skill != self.stem) {
            let message =
                format!("the rubric is of skill `{skill}`, and its file is called `{}`", self.stem);
            let help = format!("call the file `{skill}` as well");
            findings.error_with_help("rubric-name", &span, message, help);
        }
        if let Some(criteria) = criteria {
            // Once for the file, and not again for each of its prompts.
            criteria_of_rubric(criteria, "criteria", &mut findings);
        }
        let usable = !findings.any_error();
        self.findings(source, findings, None);
        let (Some(skill), Some(criteria), true) = (skill, criteria, usable) else { return };
        for (at, prompt) in prompts.iter().enumerate() {
            let place = &prompt.span;
            let text = |text: String| Node { span: place.clone(), value: NodeValue::String(text) };
            let entry = |key: &str, node: Node| Entry {
                key: key.to_owned(),
                key_span: place.clone(),
                node,
            };
            let entries = vec![
                entry("id", text(format!("{skill}-{}", at + 1))),
                entry("prompt", prompt.clone()),
                entry("skill", text(skill.clone())),
                entry("rubric", criteria.clone()),
            ];
            let value = NodeValue::Object(entries);
            self.case(source, &Node { span: place.clone(), value });
        }
    }

    /// Checks the version a dataset states.
    pub(super) fn version(&mut self, node: &Node, findings: &mut Findings) {
        let text = match &node.value {
            NodeValue::String(text) | NodeValue::Number(text) => text.trim(),
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Array(_) | NodeValue::Object(_) => "",
        };
        // `1` and `1.0` are what people write when they mean `1.0.0`.
        let padded = match text.matches('.').count() {
            0 => format!("{text}.0.0"),
            1 => format!("{text}.0"),
            _ => text.to_owned(),
        };
        match semver::Version::parse(&padded) {
            Ok(version) if version.major > FORMAT_MAJOR => {
                let message = format!("dataset version {version} is newer than this program");
                let help = format!("it reads versions up to {FORMAT_MAJOR}.x: update it");
                findings.error_with_help("newer-version", &node.span, message, help);
            }
            Ok(version) => self.summary.version = Some(version.to_string()),
            Err(_) => {
                let message = "`version` is not a version such as `1.0.0`".to_owned();
                findings.error("bad-version", &node.span, message);
            }
        }
    }

    /// Reads one case.
    pub(super) fn case(&mut self, source: &Source<'_>, node: &Node) {
        self.seen += 1;
        let mut findings = Findings::default();
        unsayable_numbers(node, &mut findings);
        let decoding = || decode(node, &self.folder, &mut findings);
        let (Decoded { id, mut case }, named) = bounded::hashing_named(decoding);
        if let Some(named) = named {
            self.contents.add(&named);
        }
        if let Some(id) = &id {
            self.check_unique(id, source, node, &mut findings);
        }
        let mut digest = None;
        if let Some(case) = &mut case {
            if case.license.is_none() {
                case.license.clone_from(&self.license);
            }
            self.load_schemas(case, node, &mut findings);
            // What a runner adds is no part of the dataset.
            digest = self.ids.is_some().then(|| CaseDigest::of(case));
            (self.complete)(case);
            check_results(case, node, &mut findings);
            if self.ids.is_some() {
                check_templates(case, node, source, &mut findings);
            }
            let problems = match template::has_templates(case) {
                false => (self.check)(case),
                true => self.check_filled(case, node, source, &mut findings),
            };
            findings.0.extend(problems.into_iter().map(|it| criteria_finding(it, node)));
        }
        let usable = !findings.any_error();
        self.findings(source, findings, id.as_deref());
        if let Some(case) = case.filter(|_| usable) {
            self.summary.cases += 1;
            if let Some(digest) = digest {
                self.digest.add_digest(digest);
            }
            let line = source.line(node.span.start);
            (self.sink)(Item::Case(Box::new(CaseAt { case, line })));
        }
    }

    /// Checks a case whose assertions are templates by what they come to.
    fn check_filled(
        &self,
        case: &mut TestCase,
        node: &Node,
        source: &Source<'_>,
        findings: &mut Findings,
    ) -> Vec<CriteriaProblem> {
        let written = (!self.fills).then(|| case.clone());
        let problems = match template::fill_assertions(case) {
            Ok(()) => (self.check)(case),
            Err(BadAssertion { path, kind, text, error }) => {
                let place = &node.nearest(&path).span;
                let span = error.place_in(&text, source.text(), place);
                bad_template(&kind.to_string(), &span, &error, findings);
                Vec::new()
            }
        };
        if let Some(written) = written {
            *case = written;
        }
        problems
    }

    fn check_unique(
        &mut self,
        id: &str,
        source: &Source<'_>,
        node: &Node,
        findings: &mut Findings,
    ) {
        let span = node.get("id").map_or_else(|| node.span.clone(), |id| id.span.clone());
        let line = source.line(span.start);
        if let Some(first) = self.ids.as_mut().and_then(|ids| ids.claim(id, line)) {
            let (which, then) = match node.get("id") {
                Some(_) => ("", ""),
                None => (", made of what is asked,", "; give one of the two another `id`"),
            };
            let message = format!("id `{id}`{which} is already taken");
            let help = format!("its first use is at {first}{then}");
            findings.error_with_help("duplicate-id", &span, message, help);
        }
    }

    /// Replaces schemas that are named by their files.
    fn load_schemas(&mut self, case: &mut TestCase, node: &Node, findings: &mut Findings) {
        self.load_schema(&mut case.criteria, node, findings);
        let places = node.get("turns").map(Node::items).unwrap_or_default();
        for (turn, place) in case.conversation.turns.iter_mut().zip(places) {
            self.load_schema(&mut turn.criteria, place, findings);
        }
    }

    fn load_schema(&mut self, criteria: &mut Criteria, node: &Node, findings: &mut Findings) {
        let Some(Value::String(name)) = &criteria.schema else { return };
        let folder = self.folder.as_path();
        let loaded = self.schemas.entry(folder.join(name));
        let loaded = loaded.or_insert_with(|| read_schema(folder, name, &mut self.contents));
        match loaded {
            Ok(schema) => criteria.schema = Some(schema.clone()),
            Err(why) => {
                let span =
                    node.get("schema").map_or_else(|| node.span.clone(), |it| it.span.clone());
                let message = format!("failed to load schema `{name}`: {why}");
                findings.error("bad-schema", &span, message);
                criteria.schema = None;
            }
        }
    }

    /// Passes on what was found in a piece of the file.
    pub(super) fn findings(&mut self, source: &Source<'_>, findings: Findings, id: Option<&str>) {
        for finding in findings.0 {
            if self.kept >= MOST_PROBLEMS {
                self.leave_out(finding.severity);
                continue;
            }
            let problem = finding.at(&self.file, source);
            self.problem(Problem { case_id: id.map(ToOwned::to_owned), ..problem });
        }
    }

    /// Passes on one error at a place.
    pub(super) fn error_at(
        &mut self,
        source: &Source<'_>,
        span: &Range<usize>,
        code: &'static str,
        message: String,
    ) {
        let mut findings = Findings::default();
        findings.error(code, span, message);
        self.findings(source, findings, None);
    }

    /// Passes on an error about the file as a whole.
    pub(super) fn file_problem(&mut self, code: &'static str, message: String, help: &str) {
        self.problem(Problem {
            severity: Severity::Error,
            code,
            message,
            file: self.file.clone(),
            place: None,
            case_id: None,
            help: (!help.is_empty()).then(|| help.to_owned()),
        });
    }

    /// Says where bytes stop being UTF-8. `first_line` is the line that `bytes` begins at.
    pub(super) fn not_utf8(&mut self, bytes: &[u8], valid_up_to: usize, first_line: usize) {
        let shown = String::from_utf8_lossy(bytes);
        let source = Source::part(&shown, first_line);
        let replacement = char::REPLACEMENT_CHARACTER.len_utf8();
        let span = valid_up_to..valid_up_to + replacement;
        self.error_at(&source, &span, "not-utf8", "the text is not UTF-8 from here on".to_owned());
    }

    fn problem(&mut self, problem: Problem) {
        self.count(problem.severity);
        self.kept += 1;
        (self.sink)(Item::Problem(problem));
    }

    fn count(&mut self, severity: Severity) {
        match severity {
            Severity::Error => self.summary.errors += 1,
            Severity::Warning => self.summary.warnings += 1,
        }
    }

    /// Counts a problem that nobody would read any more.
    fn leave_out(&mut self, severity: Severity) {
        self.count(severity);
        match severity {
            Severity::Error => self.left_out.0 += 1,
            Severity::Warning => self.left_out.1 += 1,
        }
    }

    /// Says how many problems of the file are not shown. They are counted already.
    fn close(&mut self) {
        let (errors, warnings) = std::mem::take(&mut self.left_out);
        self.kept = 0;
        if errors + warnings == 0 {
            return;
        }
        let counted = |count: usize, noun: &str| match count {
            0 => None,
            1 => Some(format!("1 more {noun}")),
            _ => Some(format!("{count} more {noun}s")),
        };
        let both = [counted(errors, "error"), counted(warnings, "warning")];
        let both: Vec<String> = both.into_iter().flatten().collect();
        (self.sink)(Item::Problem(Problem {
            severity: if errors > 0 { Severity::Error } else { Severity::Warning },
            code: "more-problems",
            message: format!("there are {}", both.join(" and ")),
            file: self.file.clone(),
            place: None,
            case_id: None,
            help: Some(format!("the first {MOST_PROBLEMS} problems of a file are shown")),
        }));
    }
}

fn criteria_finding(problem: CriteriaProblem, node: &Node) -> Finding {
    let severity = problem.severity();
    let CriteriaProblem { path, code, message, help } = problem;
    let span = node.nearest(&path).span.clone();
    Finding { severity, code, message, span, help }
}

/// Fills in the templates of a case, as a run would.
fn check_templates(case: &TestCase, node: &Node, source: &Source<'_>, findings: &mut Findings) {
    let given = case.vars();
    let vars = match template::fill_values(&given) {
        Ok(vars) => vars,
        Err((name, error)) => {
            let at = node.get("prompt_vars").and_then(|it| it.get(&name)).unwrap_or(node);
            let text = at.as_str().unwrap_or("");
            let span = error.place_in(text, source.text(), &at.span);
            return bad_template(&format!("prompt_vars.{name}"), &span, &error, findings);
        }
    };
    let user = case.conversation.user.as_ref().map(|it| it.instructions.as_str());
    let texts =
        [("prompt", Some(&*case.prompt)), ("system", case.system.as_deref()), ("user", user)];
    for (key, text) in texts {
        let Some(text) = text else { continue };
        let at = node.get(key).unwrap_or(node);
        let whole = &at.get("instructions").unwrap_or(at).span;
        let (errors, more) = template_errors(text, &vars);
        for error in errors {
            bad_template(key, &error.place_in(text, source.text(), whole), &error, findings);
        }
        if more > 0 {
            let message = format!("{more} more variables have no value in `{key}`");
            findings.error("undefined-variable", whole, message);
        }
    }
    let turns = case.conversation.turns.iter();
    let turns: Vec<Message> = turns.map(|it| Message::user(it.user.clone())).collect();
    for (key, messages) in [("messages", &case.ask.messages), ("turns", &turns)] {
        if let Err(BadMessage { message, text, error }) = template::fill_messages(messages, &vars) {
            let at = node.get(key).and_then(|it| it.items().get(message)).unwrap_or(node);
            let span = error.place_in(&text, source.text(), &at.span);
            bad_template(key, &span, &error, findings);
        }
    }
    let known = |name: &str| name == template::ARGUMENTS || vars.contains_key(name);
    for result in case.conversation.tool_results.iter().flatten() {
        let Some(text) = result.content.as_str() else { continue };
        let whole = &node.get("tool_results").unwrap_or(node).span;
        let missing = template::undefined_variables(text, known).map(|it| it.into_iter().next());
        let error = match missing {
            Ok(None) => continue,
            Ok(Some(name)) => TemplateError::undefined(text, &name),
            Err(error) => error,
        };
        let span = error.place_in(text, source.text(), whole);
        bad_template("tool_results", &span, &error, findings);
    }
}

fn bad_template(key: &str, span: &Range<usize>, error: &TemplateError, findings: &mut Findings) {
    if error.is_undefined {
        let message = format!("{} in `{key}`", error.reason);
        let help = "add it to `prompt_vars`, or write braces that are not a variable as \
                    `{% raw %}{{ … }}{% endraw %}`"
            .to_owned();
        findings.error_with_help("undefined-variable", span, message, help);
    } else {
        let message = format!("`{key}` cannot be used as a template: {error}");
        let help = "write `{% raw %}…{% endraw %}` around text that is not a template".to_owned();
        findings.error_with_help("bad-template", span, message, help);
    }
}

/// Variables without a value, or else the first thing that is wrong, and how many more variables
/// have none. Each is looked for in the whole text, so that only the first ones are.
fn template_errors(text: &str, vars: &BTreeMap<String, Value>) -> (Vec<TemplateError>, usize) {
    match template::undefined_variables(text, |name| vars.contains_key(name)) {
        Err(error) => (vec![error], 0),
        Ok(missing) if missing.is_empty() => {
            (template::filled(text, vars).err().into_iter().collect(), 0)
        }
        Ok(missing) => {
            let located = missing.iter().take(MOST_UNDEFINED);
            let located = located.map(|it| TemplateError::undefined(text, it)).collect();
            (located, missing.len().saturating_sub(MOST_UNDEFINED))
        }
    }
}

/// TOML and YAML have numbers that JSON and every reply in it lack: infinity and not-a-number.
fn unsayable_numbers(node: &Node, findings: &mut Findings) {
    if let NodeValue::Number(text) = &node.value
        && text.parse::<serde_json::Number>().is_err()
    {
        let message = format!("`{text}` is a number that JSON cannot represent");
        findings.error("not-a-number", &node.span, message);
    }
    node.items().iter().for_each(|item| unsayable_numbers(item, findings));
    node.entries().iter().for_each(|entry| unsayable_numbers(&entry.node, findings));
}

fn read_schema(folder: &Path, name: &str, contents: &mut Contents) -> Result<Value, String> {
    let text = bounded::read_named_text(folder, name, LARGEST_SCHEMA);
    let text = text.map_err(|error| error.to_string())?;
    contents.add(&blake3::hash(text.as_bytes()));
    json::parse(&text, &json::Limits::default())
        .map(|parsed| parsed.value)
        .map_err(|error| error.to_string())
}
