//! Workers on other machines: `probity worker`, `probity workers`, and how a run hands its calls to them.

mod listing;
mod run;
mod serving;

use std::{fs, path::Path, time::Duration};

use probity_load::{
    function::split_name,
    settings::parse_duration,
    suite::{Start, Suite},
};
use probity_queue::{Access, Definition, Link, Names, OfferKind, Setup};
use tokio::runtime::Runtime;

pub(super) use listing::{check, list};
pub(super) use run::{Hands, Work, again, are_wanted};
pub(super) use serving::serve;

use crate::{
    cli::workers::{HandOverArgs, NatsArgs},
    environment::Environment,
    failure::Failure,
};

/// How to get to a server, and as whom: what the command line says, else the variables that NATS' own tools read.
fn access(url: &str, args: &NatsArgs, environment: &Environment) -> Result<Access, Failure> {
    let text = |path: &Path| fs::read_to_string(path).map_err(|error| Failure::read(path, error));
    let variable = |name: &str| environment.get(name).filter(|it| !it.trim().is_empty());
    let credentials = match (&args.creds, variable("NATS_CREDS")) {
        (Some(path), _) => Some(text(path)?),
        (None, Some(path)) if args.nkey.is_none() => Some(text(Path::new(&path))?),
        (None, _) => None,
    };
    let nkey = match &args.nkey {
        Some(path) => Some(text(path)?),
        None => variable("NATS_NKEY").filter(|_| credentials.is_none()),
    };
    Ok(Access {
        url: url.to_owned(),
        credentials,
        nkey,
        user: variable("NATS_USER").zip(variable("NATS_PASSWORD")),
        token: variable("NATS_TOKEN"),
        ca: args.ca.clone(),
        certificate: args.cert.clone().zip(args.key.clone()),
    })
}

fn names(args: &NatsArgs) -> Result<Names, Failure> {
    Names::new(args.prefix.as_deref().unwrap_or(Names::USUAL))
        .map_err(|error| Failure::new(error.to_string()))
}

fn setup(args: &HandOverArgs) -> Result<Setup, Failure> {
    let usual = Setup::default();
    let ack_wait = match &args.ack_wait {
        None => usual.ack_wait,
        Some(text) => parse_duration(text)
            .filter(|it| *it >= Duration::from_millis(500))
            .ok_or_else(|| Failure::new("`--ack-wait` must be a duration of at least 500ms"))?,
    };
    Ok(Setup {
        replicas: args.nats_replicas.map_or(usual.replicas, usize::from),
        ack_wait,
        max_deliver: args.max_deliver.unwrap_or(usual.max_deliver),
    })
}

fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("failed to start").because(error))
}

fn connect(runtime: &Runtime, access: &Access, name: &str, inbox: &str) -> Result<Link, Failure> {
    runtime.block_on(Link::connect(access, name, inbox)).map_err(|error| {
        Failure::new(error.to_string()).hint("`probity doctor --workers URL` looks at a server")
    })
}

/// What of a suite makes its calls what they are.
fn definition(suite: &Suite) -> Definition {
    Definition { parts: suite.parts.clone(), error_rules: suite.rules.error_rules.clone() }
}

/// The files of the suite's folder that something is made of, as far as they are there.
fn files(suite: &Suite, kind: &OfferKind) -> Vec<Vec<u8>> {
    file_names(suite, kind)
        .iter()
        .filter_map(|name| fs::read(suite.folder.join(split_name(name).0)).ok())
        .collect()
}

/// The names of the files that something is made of.
fn file_names(suite: &Suite, kind: &OfferKind) -> Vec<String> {
    match kind {
        OfferKind::Backend { name, .. } => suite
            .backend(name)
            .filter(|it| it.kind.is_function())
            .and_then(|it| it.file.clone())
            .into_iter()
            .collect(),
        OfferKind::Scorers => suite
            .scorers
            .iter()
            .filter_map(|it| match &it.start {
                Start::Python(file) | Start::Node(file) => Some(file.clone()),
                Start::Command(_) => None,
            })
            .collect(),
        OfferKind::Sandbox => Vec::new(),
    }
}
