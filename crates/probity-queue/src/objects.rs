//! Bodies that are too large for a message, in NATS' object store: chunks, and a message that lists them.

use async_nats::HeaderMap;
use bytes::Bytes;
use data_encoding::BASE64URL;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::jetstream::{JetStream, JsError, at_last};

/// Bytes of a chunk, if the server takes messages of that size.
const CHUNK: usize = 128 * 1024;
/// What a message needs beside its body.
const ROOM: usize = 1024;
/// The largest body that is read.
const LARGEST: u64 = 1 << 30;

/// The stream of an object store.
pub(crate) fn stream(bucket: &str) -> String {
    format!("OBJ_{bucket}")
}

pub(crate) fn subjects(bucket: &str) -> Vec<String> {
    vec![format!("$O.{bucket}.C.>"), format!("$O.{bucket}.M.>")]
}

/// What is known of an object.
#[derive(Debug, Serialize, Deserialize)]
struct Meta {
    name: String,
    bucket: String,
    /// The name of its chunks.
    nuid: String,
    size: u64,
    chunks: u64,
    digest: String,
}

fn meta_subject(bucket: &str, name: &str) -> String {
    format!("$O.{bucket}.M.{}", BASE64URL.encode(name.as_bytes()))
}

fn digest(bytes: &[u8]) -> String {
    format!("SHA-256={}", BASE64URL.encode(&Sha256::digest(bytes)))
}

impl JetStream {
    /// Keeps a body under a name.
    pub(crate) async fn put(&self, bucket: &str, name: &str, body: &[u8]) -> Result<(), JsError> {
        let nuid = format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
        let chunk_subject = format!("$O.{bucket}.C.{nuid}");
        let none = HeaderMap::new();
        let most = self.client.max_payload().saturating_sub(ROOM).max(1);
        let length = CHUNK.min(most);
        for chunk in body.chunks(length) {
            let chunk = Bytes::copy_from_slice(chunk);
            self.publish_at_last(&chunk_subject, &none, &chunk).await?;
        }
        let meta = Meta {
            name: name.to_owned(),
            bucket: bucket.to_owned(),
            nuid,
            size: body.len() as u64,
            chunks: body.len().div_ceil(length) as u64,
            digest: digest(body),
        };
        let text = serde_json::to_vec(&meta).unwrap_or_default();
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Rollup", "sub");
        self.publish_at_last(&meta_subject(bucket, name), &headers, &text.into()).await?;
        Ok(())
    }

    /// The body of a name.
    pub(crate) async fn get(&self, bucket: &str, name: &str) -> Result<Vec<u8>, JsError> {
        let stream = stream(bucket);
        let subject = meta_subject(bucket, name);
        let broken = |why: &str| JsError::Unread(format!("object {name}"), why.to_owned());
        let stored = at_last(|| self.last(&stream, &subject)).await?;
        let meta: Meta = serde_json::from_slice(&stored.payload())
            .map_err(|error| broken(&error.to_string()))?;
        if meta.size > LARGEST {
            return Err(broken("it is larger than any body of ours"));
        }
        let chunk_subject = format!("$O.{bucket}.C.{}", meta.nuid);
        let mut body = Vec::with_capacity(usize::try_from(meta.size).unwrap_or(0));
        let mut seq = 1;
        for _ in 0..meta.chunks {
            let (at, chunk) = at_last(|| self.next(&stream, &chunk_subject, seq)).await?;
            body.extend_from_slice(&chunk.payload());
            seq = at + 1;
        }
        match body.len() as u64 == meta.size && digest(&body) == meta.digest {
            true => Ok(body),
            false => Err(broken("it is not what was written")),
        }
    }

    /// Forgets the body of a name.
    pub(crate) async fn forget(&self, bucket: &str, name: &str) -> Result<(), JsError> {
        let (stream, subject) = (stream(bucket), meta_subject(bucket, name));
        let stored = match self.last(&stream, &subject).await {
            Err(error) if error.is_missing() => return Ok(()),
            stored => stored?,
        };
        if let Ok(meta) = serde_json::from_slice::<Meta>(&stored.payload()) {
            self.purge(&stream, &format!("$O.{bucket}.C.{}", meta.nuid)).await?;
        }
        self.purge(&stream, &subject).await
    }
}
