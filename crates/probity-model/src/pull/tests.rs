//! Against a small server of our own that can be told to break.

use std::{
    io::Write as _,
    sync::{Arc, Mutex},
};

use flate2::{Compression, write::DeflateEncoder};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::gguf::tests::sample;

/// What a path answers with.
#[derive(Clone, Default)]
struct Route {
    path: &'static str,
    body: Vec<u8>,
    status: u16,
    headers: String,
    /// Bytes after which each connection breaks.
    breaks_after: Option<usize>,
    ignores_ranges: bool,
}

/// A server and the requests that it saw, as path and first byte.
struct Server {
    address: String,
    seen: Arc<Mutex<Vec<(String, u64)>>>,
}

impl Server {
    async fn start(routes: Vec<Route>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<_>>> = Arc::default();
        let log = Arc::clone(&seen);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (routes, log) = (routes.clone(), Arc::clone(&log));
                tokio::spawn(async move { answer(stream, &routes, &log).await });
            }
        });
        Self { address, seen }
    }

    fn seen(&self) -> Vec<(String, u64)> {
        self.seen.lock().unwrap().clone()
    }
}

async fn answer(mut stream: TcpStream, routes: &[Route], log: &Mutex<Vec<(String, u64)>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    let range = head.lines().find_map(|it| {
        it.to_ascii_lowercase()
            .strip_prefix("range: bytes=")?
            .strip_suffix('-')?
            .parse::<usize>()
            .ok()
    });
    log.lock().unwrap().push((path.clone(), range.unwrap_or(0) as u64));
    let Some(route) = routes.iter().find(|it| it.path == path) else {
        let _ = stream
            .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .await;
        return;
    };
    let from = range.filter(|_| !route.ignores_ranges).unwrap_or(0);
    let (status, range) = match from {
        _ if from > 0 && from >= route.body.len() => {
            ("416 Range Not Satisfiable".to_owned(), String::new())
        }
        0 => (format!("{} Said", route.status), String::new()),
        from => (
            "206 Partial".to_owned(),
            format!(
                "content-range: bytes {from}-{}/{}\r\n",
                route.body.len() - 1,
                route.body.len()
            ),
        ),
    };
    let body = route.body.get(from..).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{range}{}connection: close\r\n\r\n",
        body.len(),
        route.headers
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let sent = body.len().min(route.breaks_after.unwrap_or(usize::MAX));
    let _ = stream.write_all(&body[..sent]).await;
    let _ = stream.shutdown().await;
}

/// An empty cache, and a server for everything.
struct Scene {
    folder: tempfile::TempDir,
    server: Server,
    variables: BTreeMap<OsString, OsString>,
}

impl Scene {
    async fn new(routes: Vec<Route>) -> Self {
        let server = Server::start(routes).await;
        let pairs = [
            ("HF_ENDPOINT", server.address.clone()),
            ("PIP_INDEX_URL", format!("{}/simple", server.address)),
        ];
        let variables =
            pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { folder: tempfile::tempdir().unwrap(), server, variables }
    }

    fn models(&self) -> Models {
        Models::in_folder(self.folder.path())
    }

    async fn pull(
        &self,
        wanted: Wanted<'_>,
        sha256: Option<&str>,
    ) -> (Result<Pulled, PullError>, Vec<Step>) {
        let models = self.models();
        let mut steps = Vec::new();
        let request = Pull { wanted, sha256, models: &models, variables: &self.variables };
        let outcome = pull(&request, &mut |step| steps.push(step)).await;
        (outcome, steps)
    }

    /// The names of all files in the cache.
    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => files.push(file_name(&path)),
                }
            }
        }
        files.sort();
        files
    }
}

const WANTED: &str = "owner/repo/small.gguf";
const AT_HUB: &str = "/owner/repo/resolve/main/small.gguf";

fn wanted() -> Wanted<'static> {
    Wanted::parse(WANTED).unwrap()
}

/// A model that takes several pieces to send.
fn model() -> Vec<u8> {
    let mut bytes = sample(Some("x"));
    bytes.extend((0..200_000_u32).flat_map(u32::to_le_bytes));
    bytes
}

fn checksum(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

fn at_hub(route: Route) -> Vec<Route> {
    vec![Route { path: AT_HUB, body: model(), status: 200, ..route }]
}

#[tokio::test]
async fn a_file_of_the_hub_is_fetched_checked_and_found_by_its_name() {
    let scene = Scene::new(at_hub(Route::default())).await;
    let due = checksum(&model());
    let (pulled, steps) = scene.pull(wanted(), Some(&due.to_ascii_uppercase())).await;
    let pulled = pulled.unwrap();
    assert_eq!((pulled.name.as_str(), &pulled.sha256, pulled.was_here), (WANTED, &due, false));
    assert_eq!(fs::read(scene.models().find(WANTED).unwrap()).unwrap(), model());
    assert_eq!(scene.files(), ["small.gguf"]);
    assert_eq!(steps.last(), Some(&Step::Checking));
    let total = model().len() as u64;
    assert!(steps.contains(&Step::Fetched { bytes: total, total: Some(total) }));
    // A second time nobody is asked.
    let (again, _) = scene.pull(wanted(), Some(&due)).await;
    assert!(again.unwrap().was_here);
    assert_eq!(scene.server.seen().len(), 1);
}

#[tokio::test]
async fn what_was_begun_is_continued() {
    let scene = Scene::new(at_hub(Route::default())).await;
    let part = beside(&scene.models().path(WANTED).unwrap(), "hub");
    fs::create_dir_all(part.parent().unwrap()).unwrap();
    fs::write(&part, &model()[..1000]).unwrap();
    let (pulled, _) = scene.pull(wanted(), Some(&checksum(&model()))).await;
    pulled.unwrap();
    assert_eq!(scene.server.seen(), [(AT_HUB.to_owned(), 1000)]);
}

#[tokio::test]
async fn a_damaged_beginning_is_fetched_anew() {
    let scene = Scene::new(at_hub(Route::default())).await;
    let due = checksum(&model());
    let part = beside(&scene.models().path(WANTED).unwrap(), "hub");
    fs::create_dir_all(part.parent().unwrap()).unwrap();
    fs::write(&part, vec![0; 5000]).unwrap();
    let (pulled, steps) = scene.pull(wanted(), Some(&due)).await;
    assert_eq!(pulled.unwrap().sha256, due);
    let asked: Vec<u64> = scene.server.seen().into_iter().map(|(_, from)| from).collect();
    assert_eq!(asked, [5000, 0]);
    assert!(
        steps.iter().any(|it| matches!(it, Step::Failed { why, .. } if why.contains("anew"))),
        "{steps:?}"
    );
    assert_eq!(scene.files(), ["small.gguf"]);
}

#[tokio::test]
async fn a_server_without_ranges_is_asked_from_the_beginning() {
    let scene = Scene::new(at_hub(Route { ignores_ranges: true, ..Route::default() })).await;
    let part = beside(&scene.models().path(WANTED).unwrap(), "hub");
    fs::create_dir_all(part.parent().unwrap()).unwrap();
    fs::write(&part, "something else").unwrap();
    let (pulled, _) = scene.pull(wanted(), Some(&checksum(&model()))).await;
    pulled.unwrap();
}

#[tokio::test]
async fn each_revision_is_a_model_of_its_own() {
    let other = [model(), vec![1]].concat();
    let path = "/owner/repo/resolve/1f2e/small.gguf";
    let revision = Route { path, body: other.clone(), status: 200, ..Route::default() };
    let scene = Scene::new([at_hub(Route::default()), vec![revision]].concat()).await;
    scene.pull(wanted(), None).await.0.unwrap();
    let asked = "owner/repo/small.gguf@1f2e";
    let (pulled, _) = scene.pull(Wanted::parse(asked).unwrap(), None).await;
    assert_eq!((pulled.unwrap().name.as_str()), asked);
    assert_eq!(fs::read(scene.models().find(asked).unwrap()).unwrap(), other);
    assert_eq!(fs::read(scene.models().find(WANTED).unwrap()).unwrap(), model());
    let listed = scene.models().list().unwrap();
    assert_eq!(listed.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), [WANTED, asked]);
    assert_eq!(scene.models().remove(asked).unwrap(), other.len() as u64);
    assert!(scene.models().find(WANTED).is_ok());
}

#[tokio::test]
async fn connections_that_break_are_made_again() {
    let third = model().len() / 3 + 1;
    let scene = Scene::new(at_hub(Route { breaks_after: Some(third), ..Route::default() })).await;
    let (pulled, _) = scene.pull(wanted(), Some(&checksum(&model()))).await;
    pulled.unwrap();
    let begins: Vec<u64> = scene.server.seen().into_iter().map(|(_, from)| from).collect();
    assert_eq!(begins, [0, third as u64, 2 * third as u64]);
}

#[tokio::test]
async fn a_server_that_sends_nothing_any_more_is_given_up_and_the_part_stays() {
    let scene = Scene::new(at_hub(Route { breaks_after: Some(0), ..Route::default() })).await;
    let part = beside(&scene.models().path(WANTED).unwrap(), "hub");
    fs::create_dir_all(part.parent().unwrap()).unwrap();
    fs::write(&part, &model()[..1000]).unwrap();
    let (pulled, _) = scene.pull(wanted(), None).await;
    let error = pulled.unwrap_err().to_string();
    assert!(
        error.contains("the connection breaks after 1000 bytes; the next pull continues there"),
        "{error}"
    );
    assert_eq!(scene.files(), ["small.gguf.hub.part"]);
    assert!(scene.models().find(WANTED).is_err());
}

#[tokio::test]
async fn a_wrong_checksum_leaves_nothing() {
    let scene = Scene::new(at_hub(Route::default())).await;
    let (pulled, _) = scene.pull(wanted(), Some(&"0".repeat(64))).await;
    let error = pulled.unwrap_err().to_string();
    assert!(error.contains("its checksum is wrong"), "{error}");
    assert_eq!(scene.files(), [""; 0]);
    let (pulled, _) = scene.pull(wanted(), Some("abc")).await;
    assert!(matches!(pulled, Err(PullError::BadChecksum { .. })));
}

#[tokio::test]
async fn the_hub_says_the_checksum_when_it_redirects() {
    let redirect = |sha256: &str| Route {
        path: AT_HUB,
        status: 302,
        headers: format!("location: /elsewhere\r\nx-linked-etag: \"{sha256}\"\r\n"),
        ..Route::default()
    };
    let elsewhere = Route { path: "/elsewhere", body: model(), status: 200, ..Route::default() };
    let scene = Scene::new(vec![redirect(&checksum(&model())), elsewhere.clone()]).await;
    assert!(scene.pull(wanted(), None).await.0.unwrap().is_verified);
    let scene = Scene::new(vec![redirect(&"1".repeat(64)), elsewhere]).await;
    assert!(
        scene.pull(wanted(), None).await.0.unwrap_err().to_string().contains("checksum is wrong")
    );
}

#[tokio::test]
async fn a_page_that_is_sent_as_a_model_is_none() {
    let page = Route {
        path: AT_HUB,
        body: b"<html>Log in</html>".to_vec(),
        status: 200,
        ..Route::default()
    };
    let scene = Scene::new(vec![page]).await;
    let error = scene.pull(wanted(), None).await.0.unwrap_err().to_string();
    assert!(error.contains("it is not a model: it begins like a text"), "{error}");
    assert_eq!(scene.files(), [""; 0]);
    let scene = Scene::new(Vec::new()).await;
    let error = scene.pull(wanted(), None).await.0.unwrap_err().to_string();
    assert!(error.contains("it answers with 404 Not Found"), "{error}");
}

/// Why a model of the catalogue cannot be pulled. It is given up in the end.
async fn given_up(routes: Vec<Route>) -> String {
    let scene = Scene::new(routes).await;
    let pulled = scene.pull(Wanted::Known(entry()), None);
    let limit = std::time::Duration::from_secs(30);
    let (pulled, _) = tokio::time::timeout(limit, pulled).await.expect("a pull has an end");
    pulled.unwrap_err().to_string()
}

#[tokio::test]
async fn a_page_that_is_shorter_than_the_model_is_given_up() {
    let page = Route { path: AT_HUB, body: b"Log in".to_vec(), status: 200, ..Route::default() };
    let plain = Route { ignores_ranges: true, ..page.clone() };
    for route in [page, plain] {
        let error = given_up(vec![route]).await;
        assert!(error.contains("the connection breaks after 6 bytes"), "{error}");
    }
}

#[tokio::test]
async fn a_server_without_ranges_that_breaks_is_given_up() {
    let route = Route { ignores_ranges: true, breaks_after: Some(1000), ..Route::default() };
    let error = given_up(at_hub(route)).await;
    assert!(error.contains("the connection breaks after 1000 bytes"), "{error}");
}

#[tokio::test]
async fn only_one_pull_at_a_time() {
    let scene = Scene::new(at_hub(Route::default())).await;
    let models = scene.models();
    let _held = models.lock().unwrap();
    let (pulled, _) = scene.pull(wanted(), None).await;
    assert!(matches!(pulled, Err(PullError::Models(ModelsError::Busy { .. }))));
}

/// A wheel with one member.
fn wheel_with(member: &str, bytes: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    let mut archive = rawzip::ZipArchiveWriter::new(&mut output);
    let (mut entry, config) = archive
        .new_file(member)
        .compression_method(rawzip::CompressionMethod::DEFLATE)
        .start()
        .unwrap();
    let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::fast()));
    writer.write_all(bytes).unwrap();
    let (encoder, descriptor) = writer.finish().unwrap();
    encoder.finish().unwrap();
    entry.finish(descriptor).unwrap();
    archive.finish().unwrap();
    output
}

/// A catalogue's entry for our small model. It lives as long as the tests do.
fn entry() -> &'static Entry {
    entry_with(&wheel_with("small/small.gguf", &model()))
}

/// The same for a wheel that is another.
fn entry_with(wheel: &[u8]) -> &'static Entry {
    Box::leak(Box::new(Entry {
        name: "small",
        about: "",
        licence: "",
        bytes: model().len() as u64,
        sha256: Box::leak(checksum(&model()).into_boxed_str()),
        hub: HubFile { repository: "owner/repo", file: "small.gguf", revision: "main" },
        package: Some(Package {
            name: "small-model",
            wheel: "small-1.whl",
            bytes: wheel.len() as u64,
            member: "small/small.gguf",
        }),
    }))
}

fn at_index(wheel: Vec<u8>) -> Vec<Route> {
    let page = "<a href=\"../../files/small-1.whl#sha256=00\">small-1.whl</a>";
    vec![
        Route { path: "/simple/small-model/", body: page.into(), status: 200, ..Route::default() },
        Route { path: "/files/small-1.whl", body: wheel, status: 200, ..Route::default() },
    ]
}

#[tokio::test]
async fn where_the_hub_has_nothing_the_package_does() {
    let scene = Scene::new(at_index(wheel_with("small/small.gguf", &model()))).await;
    let (pulled, steps) = scene.pull(Wanted::Known(entry()), None).await;
    let pulled = pulled.unwrap();
    assert_eq!((pulled.name.as_str(), pulled.is_verified), ("small", true));
    assert_eq!(fs::read(scene.models().find("small").unwrap()).unwrap(), model());
    assert_eq!(scene.files(), ["small.gguf"]);
    let failed = steps.iter().find_map(|it| match it {
        Step::Failed { why, .. } => Some(why.as_str()),
        Step::Asking { .. } | Step::Fetched { .. } | Step::Checking => None,
    });
    assert_eq!(failed, Some("it answers with 404 Not Found"));
}

#[tokio::test]
async fn a_package_that_is_not_what_it_should_be_leaves_nothing() {
    let mut broken = wheel_with("small/small.gguf", &model());
    let middle = broken.len() / 2;
    broken[middle] ^= 0xff;
    let larger = [model(), vec![0]].concat();
    let cases = [
        (broken, "cannot be unpacked"),
        (b"no archive".to_vec(), "cannot be unpacked"),
        (wheel_with("other", &model()), "it has no `small/small.gguf`"),
        (wheel_with("small/small.gguf", &larger), "it is larger than it should be"),
        (wheel_with("small/small.gguf", &model()[1..]), "checksum is wrong"),
    ];
    for (wheel, why) in cases {
        let entry = entry_with(&wheel);
        let scene = Scene::new(at_index(wheel)).await;
        let (pulled, _) = scene.pull(Wanted::Known(entry), None).await;
        let error = pulled.unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
        assert_eq!(scene.files(), [""; 0], "{why}");
    }
    let longer = [wheel_with("small/small.gguf", &model()), vec![0]].concat();
    let scene = Scene::new(at_index(longer)).await;
    let error = scene.pull(Wanted::Known(entry()), None).await.0.unwrap_err().to_string();
    assert!(error.contains("it sends more than the"), "{error}");
    assert_eq!(scene.files(), [""; 0]);
    let scene = Scene::new(vec![at_index(Vec::new()).swap_remove(0)]).await;
    let error = scene.pull(Wanted::Known(entry()), None).await.0.unwrap_err().to_string();
    assert!(error.contains("404"), "{error}");
}

#[tokio::test]
async fn no_address_is_told() {
    let mut scene = Scene::new(Vec::new()).await;
    scene.variables.insert("HF_ENDPOINT".into(), "http://me:secret@a b".into());
    let error = scene.pull(wanted(), None).await.0.unwrap_err().to_string();
    assert!(error.contains("it has an address that cannot be used"), "{error}");
    assert!(!error.contains("secret"), "{error}");
}

#[tokio::test]
async fn a_model_that_does_not_fit_on_the_disk_is_not_begun() {
    let scene = Scene::new(at_hub(Route::default())).await;
    let part = scene.folder.path().join("x.part");
    let error = make_room(&part, u64::MAX).unwrap_err();
    assert!(matches!(error, FetchError::NoRoom { needed: u64::MAX, .. }), "{error}");
    make_room(&part, 1).unwrap();
}
