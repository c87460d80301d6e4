//! The streams and consumers of a team.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    jetstream::{JetStream, JsError, StreamConfig},
    names::Names,
    objects,
};

/// How the streams of a team are made.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// On how many servers of a cluster each message is.
    pub replicas: usize,
    /// How long a worker may be silent before a call goes to another one.
    pub ack_wait: Duration,
    /// How often a call is delivered before it is given up.
    pub max_deliver: u32,
}

impl Default for Setup {
    fn default() -> Self {
        Self { replicas: 1, ack_wait: Duration::from_secs(30), max_deliver: 4 }
    }
}

const DAY: Duration = Duration::from_hours(24);

impl Setup {
    /// Makes what is not there yet.
    pub(crate) async fn ensure(&self, js: &JetStream, names: &Names) -> Result<(), JsError> {
        for config in self.streams(names) {
            js.ensure_stream(&config).await?;
        }
        Ok(())
    }

    pub(crate) fn streams(&self, names: &Names) -> Vec<StreamConfig> {
        let plain = |name: String, subject: String| StreamConfig {
            name,
            subjects: vec![subject],
            retention: "limits",
            storage: "file",
            num_replicas: self.replicas.max(1),
            max_age: nanos(DAY * 7),
            max_msgs_per_subject: -1,
            discard: "old",
            allow_rollup_hdrs: false,
            max_consumers: -1,
            max_msgs: -1,
            max_bytes: -1,
        };
        let queue = |name, subject| StreamConfig { retention: "workqueue", ..plain(name, subject) };
        let latest =
            |name, subject| StreamConfig { max_msgs_per_subject: 1, ..plain(name, subject) };
        let objects = |bucket: String| StreamConfig {
            subjects: objects::subjects(&bucket),
            allow_rollup_hdrs: true,
            discard: "new",
            ..plain(objects::stream(&bucket), String::new())
        };
        vec![
            queue(names.calls(), names.every("call")),
            queue(names.results(), names.every("result")),
            latest(names.runs(), names.every("run")),
            StreamConfig {
                max_age: nanos(Duration::from_hours(1)),
                storage: "memory",
                ..latest(names.workers(), names.every("worker"))
            },
            plain(names.lost(), names.too_often()),
            objects(names.objects_in()),
            objects(names.objects_out()),
        ]
    }

    /// How calls of an offer are handed out: workers that do the same share a consumer.
    pub(crate) fn calls_consumer(&self, names: &Names, offer: &str) -> Value {
        json!({
            "ack_policy": "explicit",
            "ack_wait": nanos(self.ack_wait),
            "max_deliver": self.max_deliver,
            "max_ack_pending": -1,
            "max_waiting": 4096,
            "deliver_policy": "all",
            "filter_subject": names.calls_for(offer),
        })
    }

    /// How results of a run come back. They are acknowledged when they are on the disk, which may take a while.
    pub(crate) fn results_consumer(names: &Names, run: &str, deliver: &str) -> Value {
        json!({
            "ack_policy": "explicit",
            "ack_wait": nanos(DAY),
            "max_ack_pending": -1,
            "deliver_policy": "all",
            "filter_subject": names.results_of(run),
            "deliver_subject": deliver,
        })
    }

    /// How calls that were delivered too often are told of.
    pub(crate) fn lost_consumer(deliver: &str) -> Value {
        json!({ "ack_policy": "none", "deliver_policy": "all", "deliver_subject": deliver })
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
