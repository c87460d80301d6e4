//! Programs that run in the sandbox.

use std::path::Path;

use crate::case::{Fields, world_of};
use probity_core::{
    execution::WorldRef,
    located::{Node, NodeValue},
};

/// Where the sandbox of a program has openings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxedProgram {
    /// The world that it finds; an empty one if not given.
    pub world: Option<WorldRef>,
    /// Files and directories of this machine that it needs beside its own, read-only.
    pub paths: Vec<String>,
    /// Addresses that it may reach beside its API.
    pub reach: Vec<HostPort>,
}

/// An address of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// A name or a number.
    pub host: String,
    /// The port; that of HTTPS if not given.
    pub port: u16,
}

impl HostPort {
    /// `HOST` or `HOST:PORT`.
    fn read(text: &str) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().ok().filter(|port| *port != 0)?),
            None => (text, 443),
        };
        let is_host = |it: u8| it.is_ascii_alphanumeric() || b"-._".contains(&it);
        let fits = !host.is_empty() && host.bytes().all(is_host);
        fits.then(|| Self { host: host.to_ascii_lowercase(), port })
    }
}

/// `true`, or a table with the openings.
pub(super) fn decode(fields: &mut Fields<'_, '_>, folder: &Path) -> Option<SandboxedProgram> {
    let node = fields.get("sandbox")?;
    match &node.value {
        NodeValue::Bool(is_on) => is_on.then(SandboxedProgram::default),
        NodeValue::Object(_) => openings(node, fields, folder),
        NodeValue::Null | NodeValue::Number(_) | NodeValue::String(_) | NodeValue::Array(_) => {
            let message = "`sandbox` is true, false or a table".to_owned();
            let help = "the table has `world`, `paths` and `reach`".to_owned();
            fields.findings().error_with_help("wrong-type", &node.span, message, help);
            None
        }
    }
}

fn openings(node: &Node, fields: &mut Fields<'_, '_>, folder: &Path) -> Option<SandboxedProgram> {
    let known = ["world", "paths", "reach"];
    let mut inner = Fields::new(node, "`sandbox`", &known, fields.findings())?;
    let world = inner.get("world").and_then(|it| world_of(it, folder, inner.findings()));
    let paths = inner.texts("paths");
    if let Some(path) = paths.iter().find(|path| !path.starts_with('/')) {
        let span = inner.span("paths");
        let message = format!("`paths`: `{path}` has to begin with a slash");
        inner.findings().error("bad-path", &span, message);
    }
    let mut reach = Vec::new();
    for text in inner.texts("reach") {
        match HostPort::read(&text) {
            Some(address) => reach.push(address),
            None => {
                let span = inner.span("reach");
                let message = format!("`reach`: `{text}` is no address");
                let help = "an address is `HOST` or `HOST:PORT`, without a scheme".to_owned();
                inner.findings().error_with_help("bad-address", &span, message, help);
            }
        }
    }
    Some(SandboxedProgram { world, paths, reach })
}
