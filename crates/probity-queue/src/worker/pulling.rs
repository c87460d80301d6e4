//! Taking calls: one at a time, and only while there is a free slot.

use std::{sync::Arc, time::Duration};

use async_nats::{Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::{sleep, timeout},
};

use super::{NAK, Shop, Tool, call::FIRST};
use crate::{jetstream::delivery, names::last_token, setup::nanos, wire::Started};

/// How long the server keeps a request for a call. A worker that leaves waits that long at most.
const EXPIRES: Duration = Duration::from_secs(2);
/// How much longer its answer may take.
const GRACE: Duration = Duration::from_millis(500);
/// How long to wait after something went wrong.
const AGAIN: Duration = Duration::from_millis(200);

impl Shop {
    /// Takes calls of an offer until it is stopped.
    pub(super) async fn pull(
        self: Arc<Self>,
        digest: String,
        tool: Tool,
        stop: watch::Receiver<bool>,
    ) {
        let inbox = self.link.client.new_inbox();
        let Ok(mut answers) = self.link.client.subscribe(inbox.clone()).await else { return };
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{digest}", self.names.calls());
        let request = json!({ "batch": 1, "expires": nanos(EXPIRES) }).to_string();
        while !*stop.borrow() {
            // Whoever has no free slot leaves calls to others.
            let Ok(slot) = self.slots.clone().acquire_owned().await else { return };
            // Others may take it while this waits for a call, so that no offer keeps it from another.
            drop(slot);
            if *stop.borrow() {
                break;
            }
            let asked = self
                .link
                .client
                .publish_with_reply(subject.clone(), inbox.clone(), request.clone().into())
                .await;
            match asked {
                Ok(()) => {}
                Err(_) => {
                    sleep(AGAIN).await;
                    continue;
                }
            }
            match self.answer(&mut answers).await {
                Answer::Call(message) if *stop.borrow() => self.hand_back(&message).await,
                Answer::Call(message) => {
                    let own = self.clone();
                    let Some(slot) = self.slot_for(&message).await else { return };
                    let tool = tool.clone();
                    tokio::spawn(async move {
                        own.work(*message, &tool).await;
                        drop(slot);
                    });
                }
                Answer::Nothing => {}
                Answer::Trouble => sleep(AGAIN).await,
            }
        }
    }

    /// A slot for a call that was taken. Calls of other offers may have been quicker: until they are done, the server hears
    /// that this one is not lost.
    async fn slot_for(&self, message: &Message) -> Option<OwnedSemaphorePermit> {
        let slot = self.slots.clone().acquire_owned();
        match &message.reply {
            Some(reply) => self.still_at_it(reply, FIRST, slot).await.ok(),
            None => slot.await.ok(),
        }
    }

    async fn answer(&self, answers: &mut Subscriber) -> Answer {
        let mut connected = self.link.connected.clone();
        connected.mark_unchanged();
        let message = tokio::select! {
            message = timeout(EXPIRES + GRACE, answers.next()) => message,
            // A request that was made before is forgotten.
            _ = connected.changed() => return Answer::Nothing,
        };
        match message {
            Ok(Some(message)) => match message.status.map(|it| it.as_u16()) {
                None | Some(200) => Answer::Call(Box::new(message)),
                // Nothing came in time.
                Some(404 | 408) => Answer::Nothing,
                Some(_) => Answer::Trouble,
            },
            Ok(None) => Answer::Trouble,
            Err(_) => Answer::Nothing,
        }
    }

    /// Gives a call back that came when this worker was about to leave.
    async fn hand_back(&self, message: &Message) {
        let Some(reply) = &message.reply else { return };
        let mut tokens = message.subject.rsplit('.');
        let run = tokens.nth(1).unwrap_or_default();
        let note = Started {
            id: last_token(&message.subject).to_owned(),
            worker: self.config.name.clone(),
            delivery: delivery(reply).unwrap_or(1),
            handed_back: true,
        };
        self.tell_started(run, &note).await;
        let _ = self.link.client.publish(reply.clone(), Bytes::from_static(NAK)).await;
        self.link.flush().await;
    }

    pub(super) async fn tell_started(&self, run: &str, note: &Started) {
        let text = serde_json::to_vec(note).unwrap_or_default();
        // Without it the run does not know who was lost, if somebody is.
        let _ = self.link.client.publish(self.names.started(run), text.into()).await;
    }
}

enum Answer {
    Call(Box<Message>),
    Nothing,
    Trouble,
}
