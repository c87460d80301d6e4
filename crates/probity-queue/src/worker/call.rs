//! Making one call.

use std::{
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use async_nats::{Message, Request};
use bytes::Bytes;
use futures_util::FutureExt as _;
use probity_run::carrier::{CallId, CallResult};
use tokio::{
    sync::oneshot,
    time::{interval_at, timeout},
};

use super::{ACK, PROGRESS, Shop, TERM, Tool};
use crate::{
    jetstream::{PATIENCE, WRONG_LAST_SEQUENCE, delivery, only_once},
    names::last_token,
    wire::{self, CallMessage, OBJECT, Outcome, Started, WIRE},
};

/// How much longer than its limit a call may take to come to its end by itself.
const GRACE: Duration = Duration::from_secs(10);
/// How often an acknowledgement is tried that the server does not confirm.
const ACKS: usize = 3;
/// What a message needs beside its body.
const ROOM: usize = 4096;
/// How often the server hears of a call whose message has not been read yet.
pub(super) const FIRST: Duration = Duration::from_millis(500);

impl Shop {
    /// Makes a call and hands its result back. The server hears of it all the time.
    pub(super) async fn work(&self, message: Message, tool: &Tool) {
        let Some(reply) = message.reply.clone() else { return };
        let token = last_token(&message.subject).to_owned();
        let Ok(id) = token.parse::<CallId>() else {
            // Nobody waits for what has no name.
            let _ = self.link.client.publish(reply, Bytes::from_static(TERM)).await;
            return;
        };
        let (cancel, given_up) = oneshot::channel();
        self.state().running.insert(token.clone(), cancel);
        let work = self.make(&message, id, tool);
        let ended = tokio::select! {
            () = work => true,
            Ok(()) = given_up => false,
        };
        self.state().running.remove(&token);
        if !ended {
            let _ = self.link.client.publish(reply, Bytes::from_static(TERM)).await;
        }
    }

    async fn make(&self, message: &Message, id: CallId, tool: &Tool) {
        let Some(reply) = message.reply.clone() else { return };
        let delivery = delivery(&reply).unwrap_or(1);
        let run = message.subject.rsplit('.').nth(1).unwrap_or_default().to_owned();
        let name = self.config.name.clone();
        let note =
            Started { id: id.to_string(), worker: name.clone(), delivery, handed_back: false };
        self.tell_started(&run, &note).await;
        let call = match self.still_at_it(&reply, FIRST, self.read(message)).await {
            Ok(call) if call.wire == WIRE => Ok(call),
            Ok(call) => Err(format!(
                "worker `{name}` speaks version {WIRE} of the wire, and the call is of version {}",
                call.wire
            )),
            Err(why) => Err(format!("worker `{name}` cannot read the call: {why}")),
        };
        let began = Instant::now();
        let (every, result) = match call {
            Err(why) => (FIRST, Err(why)),
            Ok(CallMessage { limit, ack_wait, call, .. }) => {
                let every = ack_wait / 3;
                let made = timeout(limit + GRACE, tool.make(call, limit));
                let made = AssertUnwindSafe(made).catch_unwind();
                let result = match self.still_at_it(&reply, every, made).await {
                    Ok(Ok(result)) => Ok(result),
                    Ok(Err(_)) => {
                        Err(format!("worker `{name}` did not keep to the limit of the call"))
                    }
                    Err(_) => Err(format!("the call broke worker `{name}`")),
                };
                (every, result)
            }
        };
        let elapsed = began.elapsed();
        self.count(&result);
        let outcome = Outcome { wire: WIRE, worker: name, delivery, took: elapsed, result };
        self.still_at_it(&reply, every, self.hand_in(&run, id, outcome)).await;
        self.acknowledge(&reply).await;
    }

    /// What is to be done, from the message or from the object that it names.
    async fn read(&self, message: &Message) -> Result<CallMessage, String> {
        let object = message.headers.as_ref().and_then(|it| it.get(OBJECT));
        let body = match object {
            None => return wire::read(&message.payload).map_err(|it| it.to_string()),
            Some(name) => self.js.get(&self.names.objects_in(), name.as_str()).await,
        };
        let body = body.map_err(|error| error.to_string())?;
        wire::read(&body).map_err(|error| error.to_string())
    }

    /// Does something that takes a while, and tells the server now and then that it is being done.
    pub(super) async fn still_at_it<T>(
        &self,
        reply: &async_nats::Subject,
        every: Duration,
        work: impl Future<Output = T>,
    ) -> T {
        let every = every.max(Duration::from_millis(50));
        let mut ticks = interval_at(tokio::time::Instant::now() + every, every);
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                _ = ticks.tick() => {
                    let _ = self.link.client.publish(reply.clone(), Bytes::from_static(PROGRESS)).await;
                }
            }
        }
    }

    /// Puts a result into the stream of results, once whatever happens. One that is there already is another worker's.
    async fn hand_in(&self, run: &str, id: CallId, outcome: Outcome) {
        let subject = self.names.result(run, id);
        let mut headers = only_once();
        let text = serde_json::to_vec(&outcome).unwrap_or_default();
        let most = self.link.client.max_payload().saturating_sub(ROOM);
        let mut body: Bytes = text.into();
        if body.len() > most {
            let name = format!("result-{id}");
            match self.js.put(&self.names.objects_out(), &name, &body).await {
                Ok(()) => {
                    headers.insert(OBJECT, name.as_str());
                    body = Bytes::new();
                }
                Err(error) => {
                    let why = format!("the result could not be stored: {error}");
                    let result: Result<CallResult, String> = Err(why);
                    let outcome = Outcome { result, ..outcome };
                    body = serde_json::to_vec(&outcome).unwrap_or_default().into();
                }
            }
        }
        match self.js.publish_at_last(&subject, &headers, &body).await {
            Ok(_) => {}
            Err(error) if error.is(WRONG_LAST_SEQUENCE) => {}
            // Nothing can be handed in: the call goes to another worker when its time is over.
            Err(_) => std::future::pending().await,
        }
    }

    /// Takes a call off the queue, and waits until the server says so.
    async fn acknowledge(&self, reply: &async_nats::Subject) {
        for _ in 0..ACKS {
            let request = Request::new().payload(Bytes::from_static(ACK)).timeout(Some(PATIENCE));
            if self.link.client.send_request(reply.clone(), request).await.is_ok() {
                return;
            }
        }
    }
}
