//! What servers, collectors and workers send.

use std::{
    fmt::Debug,
    io::Write as _,
    pin::pin,
    sync::LazyLock,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use probity_core::request::Request;
use probity_grade::{
    Rules,
    errors::{ErrorInput, fingerprint},
};
use probity_http::Response;
use probity_load::suite::BackendKind;
use probity_queue::{Definition, OfferKind, RunNote, WorkerNote, offer_digest, read};
use probity_run::{
    backend::{
        collector::{Encoding, answered},
        decoded, streamed,
    },
    carrier::{Call, CallId, CallResult},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::input::{choice, texts};

const KINDS: [BackendKind; 6] = [
    BackendKind::Openai,
    BackendKind::OpenaiResponses,
    BackendKind::Anthropic,
    BackendKind::Gemini,
    BackendKind::Ollama,
    BackendKind::Bedrock,
];

/// A stream of a kind of server: where it is cut makes no difference. The first byte is the kind, the second where to cut.
pub fn stream(bytes: &[u8]) {
    let Some((kind, bytes)) = choice(bytes, &KINDS) else { return };
    let Some((at, stream)) = bytes.split_first() else { return };
    let whole = streamed(kind, &[stream]);
    let (first, second) = stream.split_at(usize::from(*at) * stream.len() / 256);
    assert_eq!(streamed(kind, &[first, second]), whole);
    let single: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(streamed(kind, &single), whole);
}

/// The whole answer of a kind of server: the same twice, and no longer without what the model thought.
pub fn body(bytes: &[u8]) {
    let Some((kind, body)) = choice(bytes, &KINDS) else { return };
    let reply = decoded(kind, body);
    assert_eq!(decoded(kind, body), reply);
    if let Some(reply) = reply {
        let apart = reply.clone().with_reasoning_apart();
        assert!(apart.text.len() <= reply.text.len());
    }
}

/// An error of a server or a program: the same verdict twice, a bounded fingerprint, and no time to wait that is no time. The
/// parts are the text and the output of a program, after a byte each for the backend, the status and the exit code.
pub fn error(bytes: &[u8]) {
    static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);
    const BACKENDS: [Option<&str>; 6] =
        [None, Some("claude"), Some("codex"), Some("gemini"), Some("azure"), Some("shell")];
    const STATUSES: [Option<u16>; 8] =
        [None, Some(400), Some(401), Some(404), Some(429), Some(500), Some(503), Some(529)];
    const CODES: [Option<i32>; 5] = [None, Some(0), Some(1), Some(124), Some(137)];
    let Some((backend, bytes)) = choice(bytes, &BACKENDS) else { return };
    let Some((status, bytes)) = choice(bytes, &STATUSES) else { return };
    let Some((exit_code, bytes)) = choice(bytes, &CODES) else { return };
    let mut parts = texts(bytes);
    let (text, stdout) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let after = parts.next().unwrap_or_default();
    let headers = [("retry-after", &*after), ("x-ratelimit-reset-requests", &*after)];
    let input = ErrorInput {
        backend,
        status,
        exit_code,
        text: &text,
        stdout: &stdout,
        stderr: &text,
        headers: &headers,
        ..ErrorInput::default()
    };
    let verdict = RULES.errors().classify(&input);
    assert_eq!(verdict, RULES.errors().classify(&input));
    assert!(verdict.retry_after.is_none_or(|it| it.is_finite() && it >= 0.0), "{verdict:?}");
    assert!(fingerprint(verdict.kind, &text).chars().count() <= 220);
}

/// What a collector answers, in either encoding: the same twice, and a complaint that is not too long.
pub fn otlp(bytes: &[u8]) {
    let Some((encoding, body)) = choice(bytes, &[Encoding::Json, Encoding::Protobuf]) else {
        return;
    };
    let (taken, complaint) = answered(body, encoding);
    assert!(complaint.chars().count() <= 500, "{complaint}");
    assert_eq!(answered(body, encoding), (taken, complaint));
}

/// A body that is said to be packed: where it is cut makes no difference, a piece is bounded, and what was packed comes out as
/// it was. The first byte says where to cut.
pub fn gzip(bytes: &[u8]) {
    let Some((at, body)) = bytes.split_first() else { return };
    let at = usize::from(*at) * body.len() / 256;
    let (first, second) = body.split_at(at);
    let whole = unpacked(&[body]);
    assert_eq!(unpacked(&[first, second]).is_ok(), whole.is_ok());
    if let Ok(whole) = whole {
        assert_eq!(unpacked(&[first, second]).ok(), Some(whole));
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).expect("memory takes everything");
    let packed = encoder.finish().expect("memory takes everything");
    assert_eq!(unpacked(&[&packed[..5], &packed[5..]]).ok().as_deref(), Some(body));
}

/// The most that a piece may have.
const LARGEST_PIECE: usize = 8 << 20;
/// Where we stop to read: whoever asks has a limit as well.
const ENOUGH: usize = 32 << 20;

fn unpacked(pieces: &[&[u8]]) -> Result<Vec<u8>, String> {
    let pieces = pieces.iter().map(|it| Ok(Bytes::copy_from_slice(it))).collect();
    let head = http::Response::builder().header("content-encoding", "gzip");
    let mut response = Response::simulated(head.body(pieces).expect("the head is sound"));
    let mut all = Vec::new();
    while all.len() < ENOUGH {
        let Some(piece) = now(response.chunk()).map_err(|it| it.to_string())? else { break };
        assert!(piece.len() <= LARGEST_PIECE, "{} bytes", piece.len());
        all.extend_from_slice(&piece);
    }
    Ok(all)
}

/// What a future comes to that waits for nobody.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits for somebody"),
    }
}

/// Messages between runs and workers: what is understood is written so that it is read back the same.
pub fn wire(bytes: &[u8]) {
    let Some((kind, bytes)) = choice(bytes, &[0, 1, 2, 3, 4, 5]) else { return };
    match kind {
        0 => comes_back::<Call>(bytes),
        1 => comes_back::<CallResult>(bytes),
        2 => comes_back::<RunNote>(bytes),
        3 => comes_back::<WorkerNote>(bytes),
        4 => comes_back::<Request>(bytes),
        _ => {
            comes_back::<Definition>(bytes);
            if let Ok(definition) = read::<Definition>(bytes) {
                let kind = OfferKind::Scorers;
                let digest = offer_digest(&definition, &kind, &[]);
                assert_eq!(offer_digest(&definition, &kind, &[]), digest);
                assert!(digest.parse::<CallId>().is_ok(), "{digest}");
            }
        }
    }
}

fn comes_back<T: PartialEq + Debug + Serialize + DeserializeOwned>(bytes: &[u8]) {
    let Ok(message) = read::<T>(bytes) else { return };
    let written = serde_json::to_vec(&message).expect("its keys are texts");
    let again = read::<T>(&written).map_err(|it| it.to_string());
    assert_eq!(again, Ok(message), "{}", String::from_utf8_lossy(&written));
}
