//! Who is there, and whether everything is as it should be.

use std::time::Duration;

use async_nats::HeaderMap;
use jiff::Timestamp;
use probity_core::record::InputDigest;
use probity_run::{carrier::CallId, clock};
use serde_json::json;

use crate::{
    jetstream::{JetStream, JsError, only_once},
    link::{Link, LinkError},
    names::Names,
    objects,
    setup::Setup,
    wire::{self, WorkerNote},
};

/// The oldest server that is known to do.
const OLDEST: (i64, i64, i64) = (2, 9, 0);
/// How far clocks may be apart.
const SKEW: Duration = Duration::from_secs(2);
/// The least payload that is worth a word: what is larger goes through the object store.
const SMALL: usize = 64 * 1024;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What it is.
    pub what: &'static str,
    /// How it is.
    pub finding: Finding,
}

/// How something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// As it should be.
    Fine(String),
    /// It works, and people may want to know.
    Odd(String),
    /// It does not work.
    Wrong(String),
}

/// The workers that were there lately, each with how many milliseconds ago it was heard of.
pub async fn workers(link: &Link, names: &Names) -> Result<Vec<(WorkerNote, i64)>, LinkError> {
    let js = JetStream::new(link.client.clone());
    let subjects = match js.subjects(&names.workers(), &names.every("worker")).await {
        Ok(subjects) => subjects,
        // Nobody has run anything yet.
        Err(error) if error.is_missing() => Vec::new(),
        Err(error) => return Err(LinkError::Server(format!("failed to list workers: {error}"))),
    };
    let mut found = Vec::new();
    for subject in subjects {
        let Ok(stored) = js.last(&names.workers(), &subject).await else { continue };
        let Ok(note) = wire::read::<WorkerNote>(&stored.payload()) else { continue };
        let heard = stored_ms(&stored.time).unwrap_or_else(clock::now_ms);
        found.push((note, (clock::now_ms() - heard).max(0)));
    }
    found.sort_by(|one, other| one.0.name.cmp(&other.0.name));
    Ok(found)
}

fn stored_ms(time: &str) -> Option<i64> {
    Some(time.parse::<Timestamp>().ok()?.as_millisecond())
}

/// Looks at a server as a run would use it.
pub async fn check(link: &Link, names: &Names, setup: &Setup) -> Vec<Check> {
    let js = JetStream::new(link.client.clone());
    let mut all = vec![version(link)];
    let account = js.account().await;
    all.push(jetstream(&account.as_ref().map(|it| (it.limits.max_streams, it.limits.max_storage))));
    if account.is_err() {
        return all;
    }
    all.push(payload(link));
    let rights = rights(&js, names, setup).await;
    let may = rights.is_ok();
    all.push(Check {
        what: "permissions",
        finding: match rights {
            Ok(()) => Finding::Fine("streams, consumers, calls, results and objects".to_owned()),
            Err(why) => {
                let said = link.complaint.lock().ok().and_then(|mut it| it.take());
                let said = said.map(|it| format!("; the server says: {it}")).unwrap_or_default();
                Finding::Wrong(format!("{why}{said}"))
            }
        },
    });
    if may {
        all.push(our_clock(&js, names).await);
        all.extend(their_clocks(&js, names).await);
    }
    all
}

fn version(link: &Link) -> Check {
    let (major, minor, patch) = OLDEST;
    let found = link.client.server_info().version;
    let finding = match link.client.is_server_compatible(major, minor, patch) {
        true => Finding::Fine(found),
        false => Finding::Wrong(format!("{found}: {major}.{minor}.{patch} or later is needed")),
    };
    Check { what: "server", finding }
}

fn jetstream(account: &Result<(i64, i64), &JsError>) -> Check {
    let finding = match account {
        Err(error) => Finding::Wrong(format!(
            "{error}: start the server with -js, or allow it to the account"
        )),
        Ok((streams, storage)) => {
            let limit = |count: i64| match count {
                ..=0 => "any number of".to_owned(),
                count => count.to_string(),
            };
            let storage = match storage {
                ..=0 => "no limit of storage".to_owned(),
                bytes => format!("{} MiB of storage", bytes >> 20),
            };
            let text = format!("{} streams, {storage}", limit(*streams));
            match (1..7).contains(streams) {
                true => Finding::Wrong(format!("{text}: 7 streams are needed")),
                false => Finding::Fine(text),
            }
        }
    };
    Check { what: "JetStream", finding }
}

fn payload(link: &Link) -> Check {
    let most = link.client.max_payload();
    let text = format!("{} KiB; what is larger goes through the object store", most >> 10);
    let finding = if most < SMALL { Finding::Odd(text) } else { Finding::Fine(text) };
    Check { what: "payload", finding }
}

/// Does everything once that a run does.
async fn rights(js: &JetStream, names: &Names, setup: &Setup) -> Result<(), String> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: JsError| format!("{what}: {error}")
    };
    setup.ensure(js, names).await.map_err(failed("streams cannot be made"))?;
    let offer = "doctor";
    let config = setup.calls_consumer(names, offer);
    let consumer = js.ensure_consumer(&names.calls(), offer, config).await;
    consumer.map_err(failed("consumers cannot be made"))?;
    let id = CallId(InputDigest::of([&fastrand::u64(..).to_le_bytes()[..]]));
    let call = js.publish(names.call(offer, "doctor", id), only_once(), "{}".into()).await;
    call.map_err(failed("calls cannot be handed over"))?;
    let purged = js.purge(&names.calls(), &names.calls_of("doctor")).await;
    purged.map_err(failed("calls cannot be taken back"))?;
    let gone = js.delete_consumer(&names.calls(), offer).await;
    gone.map_err(failed("consumers cannot be taken away"))?;
    for bucket in [names.objects_in(), names.objects_out()] {
        js.put(&bucket, "doctor", b"doctor").await.map_err(failed("objects cannot be stored"))?;
        js.get(&bucket, "doctor").await.map_err(failed("objects cannot be read"))?;
        js.forget(&bucket, "doctor").await.map_err(failed("objects cannot be forgotten"))?;
    }
    Ok(())
}

/// How far the server's clock is from ours.
async fn our_clock(js: &JetStream, names: &Names) -> Check {
    let bucket = names.objects_in();
    let subject = format!("$O.{bucket}.M.{}", data_encoding::BASE64URL.encode(b"clock"));
    let before = clock::wall_ms();
    let text = json!({}).to_string();
    let stored = match js.publish(subject.clone(), HeaderMap::new(), text.into()).await {
        Ok(_) => js.last(&objects::stream(&bucket), &subject).await,
        Err(error) => Err(error),
    };
    let after = clock::wall_ms();
    let _ = js.purge(&objects::stream(&bucket), &subject).await;
    let finding = match stored.ok().and_then(|it| stored_ms(&it.time)) {
        None => Finding::Odd("the server does not say what time it is".to_owned()),
        Some(at) if at < before - skew_ms() || at > after + skew_ms() => {
            let apart = (at - i64::midpoint(before, after)).abs();
            Finding::Odd(format!("{:.1} s away from that of the server", seconds(apart)))
        }
        Some(_) => Finding::Fine("that of the server is the same".to_owned()),
    };
    Check { what: "clock", finding }
}

/// Workers whose clocks are far from the server's.
async fn their_clocks(js: &JetStream, names: &Names) -> Option<Check> {
    let subjects = js.subjects(&names.workers(), &names.every("worker")).await.ok()?;
    let mut apart = Vec::new();
    for subject in &subjects {
        let Ok(stored) = js.last(&names.workers(), subject).await else { continue };
        let Ok(note) = wire::read::<WorkerNote>(&stored.payload()) else { continue };
        let Some(at) = stored_ms(&stored.time) else { continue };
        if (at - note.at_ms).abs() > skew_ms() {
            apart.push(format!("`{}` {:.1} s", note.name, seconds((at - note.at_ms).abs())));
        }
    }
    let finding = match (subjects.len(), apart.is_empty()) {
        (0, _) => Finding::Odd("there is none".to_owned()),
        (count, true) => Finding::Fine(format!("{count}, whose clocks are right")),
        (_, false) => Finding::Odd(format!("clocks are wrong: {}", apart.join(", "))),
    };
    Some(Check { what: "workers", finding })
}

fn skew_ms() -> i64 {
    i64::try_from(SKEW.as_millis()).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "it is shown with one digit")]
fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}
