//! What can be asked from here: servers that run on this machine, services whose key is set,
//! programs that are installed.

use std::{ffi::OsStr, path::Path, time::Duration};

use probity_load::suite::{BackendKind, Way};
use serde::Deserialize;
use tokio::task::JoinSet;

use super::{
    dialect::{self, SERVICES, Service},
    http::Client,
};
use crate::process;

/// A server on this machine that lists its models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalServer {
    /// The kind of backend that asks it.
    pub kind: BackendKind,
    /// Where it listens.
    pub url: String,
    /// Its models, in its own order.
    pub models: Vec<String>,
}

/// A list of models: OpenAI's has `data` with ids, Ollama's has `models` with names, llama.cpp's has both.
#[derive(Deserialize)]
struct Listed {
    data: Option<Vec<Model>>,
    models: Option<Vec<Model>>,
}

#[derive(Deserialize)]
struct Model {
    id: Option<String>,
    name: Option<String>,
}

/// The servers that answer within the time. All places are tried at once.
pub async fn servers(
    client: &Client,
    variable: impl Fn(&str) -> Option<String>,
    limit: Duration,
) -> Vec<LocalServer> {
    let mut asked = JoinSet::new();
    for (service, url) in places(variable) {
        let (kind, spec) = (service.kind, service.dialect);
        let (_, list) = dialect::addresses(spec, &url, "");
        let Ok(list) = list.parse() else { continue };
        let request = client.to(&list).get(list).timeout(limit);
        asked.spawn(async move {
            let response = request.send().await.ok()?;
            let body = response.error_for_status().ok()?.bytes().await.ok()?;
            let Listed { data, models } = serde_json::from_slice(&body).ok()?;
            let models = data.or(models)?.into_iter().filter_map(|it| it.id.or(it.name)).collect();
            Some(LocalServer { kind, url, models })
        });
    }
    let mut found: Vec<LocalServer> = asked.join_all().await.into_iter().flatten().collect();
    found.sort_by_key(|it| it.kind as usize);
    found
}

/// Where local servers listen. Of several kinds that listen at the same place, one is enough: they
/// speak the same language.
fn places(variable: impl Fn(&str) -> Option<String>) -> Vec<(&'static Service, String)> {
    let mut places: Vec<(&'static Service, String)> = Vec::new();
    for service in SERVICES.iter().filter(|it| is_local(it)) {
        let stated: Vec<_> = service.base_variables.iter().map(|name| variable(name)).collect();
        let url = (service.address)(&stated).unwrap_or_else(|| service.base_url.to_owned());
        places.retain(|(_, place)| *place != url);
        places.push((service, url));
    }
    places
}

fn is_local(service: &Service) -> bool {
    service.base_url.starts_with("http://127.0.0.1:")
}

/// The services whose key is in the environment, with the variable that holds it.
pub fn keys(variable: impl Fn(&str) -> Option<String>) -> Vec<(BackendKind, &'static str)> {
    let mut found: Vec<(BackendKind, &'static str)> = Vec::new();
    for service in SERVICES.iter().filter(|it| !it.base_url.is_empty()) {
        let is_set = |name: &&&str| variable(name).is_some_and(|value| !value.is_empty());
        let name = service.key_variables.iter().find(is_set);
        // A key that opens two services is told of once.
        if let Some(name) = name.filter(|name| found.iter().all(|(_, it)| it != *name)) {
            found.push((service.kind, name));
        }
    }
    found
}

/// The programs with a kind of their own that are installed.
pub fn programs(path: Option<&OsStr>) -> Vec<BackendKind> {
    let kinds = BackendKind::ALL.into_iter();
    let kinds = kinds.filter(|it| it.way() == Way::Program && it.needs().is_none());
    let is_there = |kind: &BackendKind| process::find(kind.as_str(), path, Path::new("")).is_ok();
    kinds.filter(is_there).collect()
}
