//! Why there is no answer, or not all of it.

use std::{error::Error as StdError, fmt, io};

use hyper_util::client::legacy;

/// Why there is no answer, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The certificates that are to be trusted cannot be used.
    #[error("no secure connection can be made")]
    Tls(#[source] rustls::Error),
    /// The address cannot be written into a request.
    #[error("the address cannot be used")]
    Address(#[source] Box<dyn StdError + Send + Sync>),
    /// There is no connection, so that nothing was asked.
    #[error("failed to connect")]
    Connect(#[source] legacy::Error),
    /// There was a connection, and no answer.
    #[error("the connection failed")]
    Exchange(#[source] legacy::Error),
    /// The answer began and did not end.
    #[error("the answer breaks off")]
    Body(#[source] hyper::Error),
    /// The answer is packed, and cannot be unpacked.
    #[error("the answer cannot be unpacked")]
    Packed(#[source] io::Error),
    /// There was nothing for too long.
    #[error("no answer in time")]
    Silence,
    /// What a simulation says that the system said.
    #[cfg(feature = "simulated")]
    #[error("the simulated connection failed")]
    Simulated(#[source] io::Error),
}

/// A connection took too long.
#[derive(Debug)]
pub(crate) struct TimedOut;

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("operation timed out")
    }
}

impl StdError for TimedOut {}

impl Error {
    pub(crate) fn of_exchange(error: legacy::Error) -> Self {
        match error.is_connect() {
            true => Self::Connect(error),
            false => Self::Exchange(error),
        }
    }

    /// Whether something took too long.
    pub fn is_timeout(&self) -> bool {
        let took_too_long = |cause: &(dyn StdError + 'static)| {
            cause.is::<TimedOut>()
                || cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout)
                || cause
                    .downcast_ref::<io::Error>()
                    .is_some_and(|it| it.kind() == io::ErrorKind::TimedOut)
        };
        matches!(self, Self::Silence) || self.causes().any(took_too_long)
    }

    /// What the system said, if that is the cause.
    pub fn io_error(&self) -> Option<&io::Error> {
        self.causes().find_map(|it| it.downcast_ref())
    }

    /// Why, and why that, to the first cause.
    pub fn causes(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        std::iter::successors(self.source(), |&it| it.source())
    }
}
