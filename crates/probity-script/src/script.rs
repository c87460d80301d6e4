//! A script as a user wrote it, and the function that is made of it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{engine, error::ScriptProblem, exports::rewrite, quick};

/// A script whose syntax was checked. It can be run on every thread.
#[derive(Clone, Debug)]
pub struct Script(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// By which engines find what they have compiled.
    id: u64,
    code: Code,
    /// The most bytes of output and context on which it needs no thread of its own.
    quick: Option<usize>,
}

/// What an engine compiles.
#[derive(Debug)]
pub(crate) enum Code {
    /// A function of `output` and `context`, as an expression.
    Function(String),
    /// Files that each are a function of `module`, `exports` and `require`.
    Files { factories: BTreeMap<String, String>, entry: String, wanted: Option<String> },
}

/// The name that code written in place has in the engine's messages.
pub(crate) const INLINE: &str = "script";

impl Script {
    /// Compiles code that stands in a dataset or a suite: an expression over `output` and
    /// `context`, the body of a function of them, or a function.
    pub fn inline(source: &str) -> Result<Self, ScriptProblem> {
        let expression = source.trim_end().trim_end_matches(';');
        // The code begins on a line of its own, so that its lines can be counted.
        let as_expression =
            format!("(function (output, context) {{ return (\n{expression}\n); }})");
        let as_body = format!("(function (output, context) {{\n{source}\n}})");
        let quick = quick::largest(source);
        let tried = match Self::checked(Code::Function(as_expression), quick) {
            Ok(script) => return Ok(script),
            Err(problem) => problem,
        };
        let of_body = |problem| match looks_like_a_body(source) {
            true => problem,
            false => tried,
        };
        let lines = u32::try_from(source.lines().count()).unwrap_or(u32::MAX);
        // What is missing at the end is missed on the line after it.
        let within =
            |it: ScriptProblem| ScriptProblem { line: it.line.map(|at| at.min(lines)), ..it };
        Self::checked(Code::Function(as_body), quick).map_err(of_body).map_err(within)
    }

    /// Whether it takes so little on an output that it may run on any thread.
    pub fn is_quick(&self, output: &serde_json::Value, context: &str) -> bool {
        let length = output.as_str().map(|it| it.len() + context.len());
        self.0.quick.zip(length).is_some_and(|(most, length)| length <= most)
    }

    /// Compiles a file that exports a function, with the files of its folder that it requires.
    ///
    /// `wanted` names the function, where it is not the only one. All files go by their path from
    /// the folder of the script.
    pub fn files(
        files: &BTreeMap<String, String>,
        entry: &str,
        wanted: Option<&str>,
    ) -> Result<Self, ScriptProblem> {
        let mut factories = BTreeMap::new();
        for (name, text) in files {
            let body = match is_json(name) {
                true => format!(
                    "module.exports = JSON.parse({});",
                    serde_json::Value::from(text.as_str())
                ),
                false => rewrite(text).map_err(|(line, message)| ScriptProblem {
                    line: Some(line),
                    file: Some(name.clone()),
                    message,
                })?,
            };
            let factory = format!("(function (module, exports, require) {{\n{body}\n}})");
            factories.insert(name.clone(), factory);
        }
        let (entry, wanted) = (entry.to_owned(), wanted.map(ToOwned::to_owned));
        Self::checked(Code::Files { factories, entry, wanted }, None)
    }

    fn checked(code: Code, quick: Option<usize>) -> Result<Self, ScriptProblem> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let script = Self(Arc::new(Inner { id, code, quick }));
        engine::check(&script).map(|()| script)
    }

    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    pub(crate) fn code(&self) -> &Code {
        &self.0.code
    }
}

/// The files that a file may require, as it names them: texts in `require('./…')`.
///
/// Names that are made at run time are not found, and cannot be had.
pub fn required(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    for rest in source.split("require(").skip(1) {
        let rest = rest.trim_start();
        let Some(quote) = rest.chars().next().filter(|it| matches!(it, '\'' | '"' | '`')) else {
            continue;
        };
        if let Some((name, _)) = rest[1..].split_once(quote)
            && is_required_file(name)
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// Whether a required name means a file, and not a package.
pub fn is_required_file(name: &str) -> bool {
    name.starts_with("./") || name.starts_with("../")
}

fn is_json(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("json"))
}

fn looks_like_a_body(source: &str) -> bool {
    source.trim_end().contains('\n') || source.contains("return")
}
