//! The way to the server.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use percent_encoding::percent_decode_str;
use tokio::sync::watch;

/// How to get to a server, and as whom.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Addresses such as `nats://host:4222`, one or several of a cluster with commas between them.
    pub url: String,
    /// The text of a credentials file.
    pub credentials: Option<String>,
    /// The seed of an nkey.
    pub nkey: Option<String>,
    /// A user and a password.
    pub user: Option<(String, String)>,
    /// A token.
    pub token: Option<String>,
    /// Certificates of authorities that are trusted beside those of the system.
    pub ca: Option<PathBuf>,
    /// A certificate and its key, which say who we are.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// Why there is no way to a server.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// An address is none.
    #[error("`{0}` is no address of a NATS server, such as nats://host:4222")]
    Address(String),
    /// The credentials cannot be read.
    #[error("the credentials cannot be used: {0}")]
    Credentials(String),
    /// The server cannot be reached, or does not let us in.
    #[error("failed to connect to `{url}`: {reason}")]
    Connect {
        /// Where, without passwords.
        url: String,
        /// Why not.
        reason: String,
    },
    /// It is there, and something that is needed is not.
    #[error("{0}")]
    Server(String),
}

/// A connection that comes back by itself when it is lost.
#[derive(Clone, Debug)]
pub struct Link {
    pub(crate) client: Client,
    /// How often a connection was made.
    pub(crate) connected: watch::Receiver<u64>,
    pauses: Arc<Mutex<Pauses>>,
    /// What the server said last that kept something from being done.
    pub(crate) complaint: Arc<Mutex<Option<String>>>,
}

/// For how long there was no connection.
#[derive(Debug, Default)]
struct Pauses {
    over: Duration,
    since: Option<Instant>,
}

impl Pauses {
    fn total(&self) -> Duration {
        self.over + self.since.map_or(Duration::ZERO, |it| it.elapsed())
    }
}

/// The longest wait between two tries to connect.
const SLOWEST: Duration = Duration::from_millis(500);

impl Link {
    /// Connects. What is lost later is tried again for ever. Answers come to subjects that begin with `inbox`.
    pub async fn connect(access: &Access, name: &str, inbox: &str) -> Result<Self, LinkError> {
        let addresses = access
            .url
            .split(',')
            .map(|it| it.trim().parse::<ServerAddr>())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| LinkError::Address(access.shown()))?;
        let (made, connected) = watch::channel(0);
        let pauses = Arc::new(Mutex::new(Pauses::default()));
        let complaint = Arc::new(Mutex::new(None));
        let (told, said) = (pauses.clone(), complaint.clone());
        let hear = move |event: Event| {
            let mut pauses = told.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                Event::Connected => {
                    pauses.over = pauses.total();
                    pauses.since = None;
                    made.send_modify(|it| *it += 1);
                }
                Event::Disconnected => {
                    pauses.since.get_or_insert_with(Instant::now);
                }
                Event::ServerError(error) => {
                    let text = Some(error.to_string());
                    *said.lock().unwrap_or_else(PoisonError::into_inner) = text;
                }
                Event::LameDuckMode
                | Event::Draining
                | Event::Closed
                | Event::SlowConsumer(_)
                | Event::ClientError(_) => {}
            }
            async {}
        };
        let options = access
            .options()?
            .name(name)
            .custom_inbox_prefix(inbox)
            .max_reconnects(None::<usize>)
            .reconnect_delay_callback(|tries| {
                let wait = u32::try_from(tries.saturating_sub(1)).unwrap_or(u32::MAX);
                Duration::from_millis(50).saturating_mul(wait).min(SLOWEST)
            })
            .request_timeout(Some(crate::jetstream::PATIENCE))
            .subscription_capacity(64 * 1024)
            .event_callback(hear);
        let client = options
            .connect(addresses)
            .await
            .map_err(|error| LinkError::Connect { url: access.shown(), reason: chain(&error) })?;
        Ok(Self { client, connected, pauses, complaint })
    }

    /// For how long there was no connection so far.
    pub(crate) fn paused(&self) -> Duration {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner).total()
    }

    pub(crate) fn is_down(&self) -> bool {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner).since.is_some()
    }

    /// Waits until what was sent is with the server, but not for ever.
    pub async fn flush(&self) {
        let _ = tokio::time::timeout(crate::jetstream::PATIENCE, self.client.flush()).await;
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

impl Access {
    /// The addresses without passwords.
    pub fn shown(&self) -> String {
        let plain = |it: &str| match (it.split_once("://"), it.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
            (None, Some((_, host))) => host.to_owned(),
            (_, None) => it.to_owned(),
        };
        self.url.split(',').map(|it| plain(it.trim())).collect::<Vec<_>>().join(",")
    }

    /// The user and the password that an address has.
    fn in_url(&self) -> Option<(String, String)> {
        let decoded = |it: &str| percent_decode_str(it).decode_utf8_lossy().into_owned();
        self.url.split(',').find_map(|it| {
            let (_, rest) = it.trim().split_once("://")?;
            let (user, _) = rest.rsplit_once('@')?;
            let (user, password) = user.split_once(':')?;
            Some((decoded(user), decoded(password)))
        })
    }

    fn options(&self) -> Result<ConnectOptions, LinkError> {
        let mut options = ConnectOptions::new();
        if let Some(credentials) = &self.credentials {
            // Its own message may quote what it could not read.
            let bad = |_| LinkError::Credentials("they have no JWT and seed of a user".to_owned());
            options = options.credentials(credentials).map_err(bad)?;
        } else if let Some(seed) = &self.nkey {
            options = options.nkey(seed.trim().to_owned());
        } else if let Some((user, password)) = self.in_url().or_else(|| self.user.clone()) {
            options = options.user_and_password(user, password);
        } else if let Some(token) = &self.token {
            options = options.token(token.clone());
        }
        if let Some(ca) = &self.ca {
            options = options.add_root_certificates(ca.clone()).require_tls(true);
        }
        if let Some((certificate, key)) = &self.certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let shown = |url: &str| Access { url: url.to_owned(), ..Access::default() }.shown();
        assert_eq!(shown("nats://me:pass@host:4222"), "nats://host:4222");
        assert_eq!(shown("tls://tok@a, b:1"), "tls://a,b:1");
    }
}
