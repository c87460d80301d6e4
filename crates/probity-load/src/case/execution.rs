//! What the command or the script in a reply has to do.

use std::{collections::BTreeMap, path::Path};

use probity_core::{
    execution::{
        AnyExit, ExecutionCriteria, ExitCode, FileMode, PathCriteria, PathState, TextCriteria,
        Timeout, Unchanged, WorldRef,
    },
    located::{Node, NodeValue},
};
use probity_sandbox::world;

use super::{
    Fields, Findings,
    decode::assertions_of,
    fields::{did_you_mean, one_of_list},
};
use crate::{bounded, settings::parse_duration};

const KNOWN: &[&str] = &[
    "world",
    "worlds",
    "files",
    "setup",
    "file",
    "run",
    "stdin",
    "timeout",
    "exit_code",
    "stdout",
    "stderr",
    "paths",
    "unchanged",
    "left_behind",
];

/// The longest time limit.
const LONGEST_MS: u64 = 10 * 60 * 1000;
/// The most bytes that the file of a world may have.
const LARGEST_WORLD: u64 = 4 << 20;

/// Reads what an execution has to come to. Files of worlds are looked for in `folder`.
pub(crate) fn execution(
    fields: &mut Fields<'_, '_>,
    folder: &Path,
) -> Option<Box<ExecutionCriteria>> {
    let node = fields.get("execution")?;
    let mut of = Fields::new(node, "field `execution`", KNOWN, fields.findings())?;
    let worlds = worlds(&mut of, folder);
    let files = of.get("files").map(|it| files(it, of.findings())).unwrap_or_default();
    let (stdout, stderr) = (text_of(&mut of, "stdout"), text_of(&mut of, "stderr"));
    let paths = of.get("paths").map(|it| paths(it, of.findings())).unwrap_or_default();
    let criteria = ExecutionCriteria {
        worlds,
        files,
        setup: of.text("setup"),
        file: of.text("file").filter(|it| is_path("file", it, &node.span, of.findings())),
        run: of.text("run"),
        stdin: of.str("stdin").map(ToOwned::to_owned),
        timeout: timeout(&mut of),
        exit_code: exit_code(&mut of),
        stdout,
        stderr,
        paths,
        unchanged: unchanged(&mut of),
        left_behind: of.boolean("left_behind").unwrap_or(false),
    };
    if criteria.file.is_some() && criteria.run.is_none() {
        let span = of.span("file");
        let message = "`file` goes with `run`, which says what is done with it".to_owned();
        of.findings().error("missing-field", &span, message);
    }
    Some(Box::new(criteria))
}

fn worlds(of: &mut Fields<'_, '_>, folder: &Path) -> Vec<WorldRef> {
    if let (Some(_), Some(both)) = (of.get("world"), of.get("worlds")) {
        let message = "`execution` has a `world` or `worlds`, not both".to_owned();
        of.findings().error("contradiction", &both.span, message);
    }
    let Some(node) = of.get("worlds") else {
        return of
            .get("world")
            .and_then(|it| world_of(it, folder, of.findings()))
            .into_iter()
            .collect();
    };
    let NodeValue::Array(items) = &node.value else {
        let message = format!("field `worlds` must be a list of worlds, not {}", node.kind());
        of.findings().error("wrong-type", &node.span, message);
        return Vec::new();
    };
    if items.is_empty() {
        of.findings().error("blank-field", &node.span, "field `worlds` is empty".to_owned());
    }
    items.iter().filter_map(|it| world_of(it, folder, of.findings())).collect()
}

/// A name of a world that ships, a file, or a file as it was read before.
pub(crate) fn world_of(node: &Node, folder: &Path, findings: &mut Findings) -> Option<WorldRef> {
    let read = match &node.value {
        NodeValue::String(name) if world::builtin::named(name).is_some() => {
            return Some(WorldRef::Named(name.clone()));
        }
        NodeValue::String(name) if !is_file(name) => {
            let names: Vec<&str> =
                world::builtin::all().iter().map(|it| it.name.as_str()).collect();
            let help = did_you_mean(name, &names)
                .unwrap_or_else(|| one_of_list(&names) + ", or a file that ends in `.toml`");
            let message = format!("there is no world `{name}`");
            findings.error_with_help("unknown-value", &node.span, message, help);
            return None;
        }
        NodeValue::String(file) => {
            let text = bounded::read_named_text(folder, file, LARGEST_WORLD);
            text.map(|text| WorldRef::File { file: file.clone(), text })
                .map_err(|why| format!("failed to read the world `{file}`: {why}"))
        }
        NodeValue::Object(_) => {
            let mut of = Fields::new(node, "a world", &["file", "text"], findings)?;
            let (file, text) = (of.required_text("file")?, of.required_text("text")?);
            Ok(WorldRef::File { file, text })
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::Array(_) => {
            Err(format!("a world must be a name or a file, not {}", node.kind()))
        }
    };
    let checked = read.and_then(|it| match &it {
        WorldRef::File { file, text } => match world::read(file, text) {
            Ok(_) => Ok(it),
            Err(error) => Err(format!("the world is wrong: {error}")),
        },
        WorldRef::Named(_) => Ok(it),
    });
    checked.map_err(|message| findings.error("bad-world", &node.span, message)).ok()
}

fn is_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|it| it.eq_ignore_ascii_case("toml"))
}

fn files(node: &Node, findings: &mut Findings) -> BTreeMap<String, String> {
    let NodeValue::Object(entries) = &node.value else {
        let message = format!("field `files` must be a table of texts, not {}", node.kind());
        findings.error("wrong-type", &node.span, message);
        return BTreeMap::new();
    };
    let mut files = BTreeMap::new();
    for entry in entries {
        let Some(text) = entry.node.as_str() else {
            let message =
                format!("`{}` in `files` must be a string, not {}", entry.key, entry.node.kind());
            findings.error("wrong-type", &entry.node.span, message);
            continue;
        };
        if is_path("files", &entry.key, &entry.key_span, findings) {
            files.insert(entry.key.clone(), text.to_owned());
        }
    }
    files
}

/// Whether a text can be the path of something in a world.
fn is_path(
    field: &str,
    path: &str,
    span: &std::ops::Range<usize>,
    findings: &mut Findings,
) -> bool {
    let wrong = if path.is_empty() || path.ends_with('/') && path != "/" {
        "has no name at its end"
    } else if path.split('/').any(|it| it == "..") {
        "has `..` in it"
    } else if path.contains('\0') {
        "has a NUL in it"
    } else {
        return true;
    };
    findings.error("bad-path", span, format!("the path `{path}` in `{field}` {wrong}"));
    false
}

fn paths(node: &Node, findings: &mut Findings) -> BTreeMap<String, PathCriteria> {
    let NodeValue::Object(entries) = &node.value else {
        let message = format!("field `paths` must be a table, not {}", node.kind());
        findings.error("wrong-type", &node.span, message);
        return BTreeMap::new();
    };
    let mut paths = BTreeMap::new();
    for entry in entries {
        if is_path("paths", &entry.key, &entry.key_span, findings)
            && let Some(criteria) = path_of(&entry.node, &entry.key, findings)
        {
            paths.insert(entry.key.clone(), criteria);
        }
    }
    paths
}

fn path_of(node: &Node, path: &str, findings: &mut Findings) -> Option<PathCriteria> {
    let states = PathState::NAMES;
    let named = |name: &str| PathState::ALL.into_iter().find(|it| it.as_str() == name);
    if let NodeValue::String(name) = &node.value {
        let state = named(name);
        if state.is_none() {
            let help = did_you_mean(name, &states).unwrap_or_else(|| one_of_list(&states));
            let message = format!("unknown state `{name}` of the path `{path}`");
            findings.error_with_help("unknown-value", &node.span, message, help);
        }
        return state.map(|state| PathCriteria { state, ..PathCriteria::default() });
    }
    let what = format!("`{path}` in `paths`");
    let mut of = Fields::new(node, &what, &["state", "content", "mode"], findings)?;
    let criteria = PathCriteria {
        state: of.one_of("state", "state of a path", &states, named).unwrap_or_default(),
        content: text_of(&mut of, "content"),
        mode: mode(&mut of),
    };
    if criteria.state == PathState::Absent
        && (criteria.content.is_some() || criteria.mode.is_some())
    {
        let message =
            format!("the path `{path}` is to be absent, so it has no content and no mode");
        of.findings().error("contradiction", &node.span, message);
    }
    Some(criteria)
}

fn mode(of: &mut Fields<'_, '_>) -> Option<FileMode> {
    let digits = of.digits("mode")?;
    let mode = FileMode::parse(digits);
    if mode.is_none() {
        let span = of.span("mode");
        let message = format!("field `mode` must be octal digits such as \"644\", not `{digits}`");
        of.findings().error("wrong-type", &span, message);
    }
    mode
}

/// A text, an assertion, or a list of assertions.
fn text_of(of: &mut Fields<'_, '_>, key: &str) -> Option<TextCriteria> {
    let node = of.get(key)?;
    Some(match &node.value {
        NodeValue::String(text) => TextCriteria::Text(text.clone()),
        NodeValue::Object(_) => {
            TextCriteria::Assert(assertions_of(std::slice::from_ref(node), 0, of.findings()))
        }
        NodeValue::Array(items) if items.is_empty() => {
            of.findings().error("blank-field", &node.span, format!("field `{key}` is empty"));
            return None;
        }
        NodeValue::Array(items) => TextCriteria::Assert(assertions_of(items, 0, of.findings())),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {
            let message = format!(
                "field `{key}` must be a string, an assertion or a list of them, not {}",
                node.kind()
            );
            of.findings().error("wrong-type", &node.span, message);
            return None;
        }
    })
}

fn timeout(of: &mut Fields<'_, '_>) -> Option<Timeout> {
    let parsed = parse_duration(of.digits("timeout")?);
    let millis = parsed.and_then(|it| u64::try_from(it.as_millis()).ok());
    let millis = millis.filter(|it| (1..=LONGEST_MS).contains(it));
    if millis.is_none() {
        let span = of.span("timeout");
        let message = "field `timeout` must be a duration above 0 and up to 10m, such as \"30s\"";
        of.findings().error("wrong-type", &span, message.to_owned());
    }
    millis.map(Timeout)
}

fn exit_code(of: &mut Fields<'_, '_>) -> Option<ExitCode> {
    let node = of.get("exit_code")?;
    let code = |node: &Node| match &node.value {
        NodeValue::Number(digits) => digits.parse::<u8>().ok(),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::String(_)
        | NodeValue::Array(_)
        | NodeValue::Object(_) => None,
    };
    let read = match &node.value {
        NodeValue::String(word) => word.parse::<AnyExit>().ok().map(ExitCode::Named),
        NodeValue::Array(items) if !items.is_empty() => {
            items.iter().map(code).collect::<Option<_>>().map(ExitCode::OneOf)
        }
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::Array(_)
        | NodeValue::Object(_) => code(node).map(ExitCode::One),
    };
    if read.is_none() {
        let message =
            "field `exit_code` must be a whole number from 0 to 255, a list of them, or `any`";
        of.findings().error("wrong-type", &node.span, message.to_owned());
    }
    read
}

fn unchanged(of: &mut Fields<'_, '_>) -> Option<Unchanged> {
    let node = of.get("unchanged")?;
    if let NodeValue::Bool(others) = node.value {
        return Some(Unchanged::Others(others));
    }
    let paths = of.texts("unchanged");
    if node.items().is_empty() && node.as_str().is_none() && paths.is_empty() {
        let message = "field `unchanged` is empty".to_owned();
        of.findings().error("blank-field", &node.span, message);
    }
    paths.iter().for_each(|it| {
        is_path("unchanged", it, &node.span, of.findings());
    });
    Some(Unchanged::These(paths))
}
