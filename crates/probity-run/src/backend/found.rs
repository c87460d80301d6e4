//! What can be asked from here: servers that run on this machine, services whose key is set,
//! programs that are installed.

use std::{ffi::OsStr, path::Path, time::Duration};

use probity_http::{Bytes, HeaderMap, Method, Request, Target};
use probity_load::suite::{BackendKind, Way};
use tokio::task::JoinSet;

use super::{
    address,
    dialect::{self, SERVICES, Service},
    http::{self, Client},
};
use crate::process;

/// A server on this machine that lists its models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalServer {
    /// The kind of backend that asks it.
    pub kind: BackendKind,
    /// Where it listens, without what is secret.
    pub url: String,
    /// Its models, in its own order.
    pub models: Vec<String>,
}

/// The servers on this machine that answer within the time. All places are tried at once.
pub async fn servers(
    client: &Client,
    variable: impl Fn(&str) -> Option<String>,
    limit: Duration,
) -> Vec<LocalServer> {
    let mut asked = JoinSet::new();
    for (service, url) in places(variable) {
        let (kind, spec) = (service.kind, service.dialect);
        let (_, list) = dialect::addresses(spec, &url, "");
        let client = address::parse(&list).and_then(|it| client.to(&it).ok());
        let (Some(client), Ok(target)) = (client, Target::parse(&list)) else { continue };
        let models = async move { listed(&client, &target).await };
        asked.spawn(async move {
            let models = tokio::time::timeout(limit, models).await.ok()??;
            let url = address::shown(&url).trim_end_matches('/').to_owned();
            Some(LocalServer { kind, url, models })
        });
    }
    let mut found: Vec<LocalServer> = asked.join_all().await.into_iter().flatten().collect();
    found.sort_by_key(|it| it.kind as usize);
    found
}

/// The models that a server lists, if it is one.
async fn listed(client: &probity_http::Client, target: &Target) -> Option<Vec<String>> {
    let (method, headers) = (Method::GET, HeaderMap::new());
    let request = Request { method, target, headers, body: Bytes::new() };
    let mut response = client.send(request).await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let body = http::read_body(&mut response, http::LARGEST_BODY).await.ok()?;
    http::listed_models(&http::json_of(&body))
}

/// Where servers on this machine listen: what a variable says may be elsewhere. Of several kinds that listen at the same place, one is enough: they
/// speak the same language.
fn places(variable: impl Fn(&str) -> Option<String>) -> Vec<(&'static Service, String)> {
    let mut places: Vec<(&'static Service, String)> = Vec::new();
    for service in SERVICES.iter().filter(|it| is_local(it)) {
        let stated: Vec<_> = service.base_variables.iter().map(|name| variable(name)).collect();
        let url = (service.address)(&stated).unwrap_or_else(|| service.base_url.to_owned());
        if !address::parse(&url).is_some_and(|url| address::is_loopback(&url)) {
            continue;
        }
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use probity_testkit::{FakeServer, Script};

    use super::*;

    #[test]
    fn only_this_machine_is_looked_at() {
        let of_ollama = |host: &str| {
            let places = places(|name| (name == "OLLAMA_HOST").then(|| host.to_owned()));
            let found = places.into_iter().find(|(service, _)| service.kind == BackendKind::Ollama);
            found.map(|(_, url)| url)
        };
        assert_eq!(of_ollama("https://me:pw@gpu.example"), None);
        assert_eq!(of_ollama("10.0.0.7:11434"), None);
        assert_eq!(of_ollama("127.0.0.1:99").as_deref(), Some("http://127.0.0.1:99"));
        assert_eq!(of_ollama("0.0.0.0").as_deref(), Some("http://127.0.0.1:11434"));
    }

    #[test]
    fn a_key_that_is_set_is_told_of_once() {
        let found = |set: &[(&str, &str)]| {
            keys(|name| set.iter().find(|it| it.0 == name).map(|it| it.1.to_owned()))
        };
        assert_eq!(found(&[]), []);
        let all = found(&[
            ("OPENAI_API_KEY", "a"),
            ("GOOGLE_API_KEY", "b"),
            ("GROQ_API_KEY", ""),
            ("AZURE_OPENAI_API_KEY", "c"),
        ]);
        // One that is empty is none, and Azure has no address of its own.
        let expected =
            [(BackendKind::Openai, "OPENAI_API_KEY"), (BackendKind::Gemini, "GOOGLE_API_KEY")];
        assert_eq!(all, expected);
    }

    #[test]
    fn servers_of_this_machine_are_found_with_their_models() {
        let server = FakeServer::start(Script::default());
        let host = server.url();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ollama = |name: &str| (name == "OLLAMA_HOST").then(|| format!("{host}/"));
        let found = runtime.block_on(servers(&Client::new(4), ollama, Duration::from_secs(20)));
        let ours = found.iter().find(|it| it.kind == BackendKind::Ollama).unwrap();
        assert_eq!(ours.url, server.url());
        assert_eq!(ours.models, ["fake-small", "fake-large"]);
    }

    #[test]
    fn programs_are_found_on_the_path() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["codex", "python3"] {
            let path = folder.path().join(name);
            std::fs::write(&path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        assert_eq!(programs(Some(folder.path().as_os_str())), [BackendKind::Codex]);
        assert_eq!(programs(None), []);
    }
}
