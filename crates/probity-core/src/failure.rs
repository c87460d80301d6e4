//! Why a call to a backend failed: a closed set of kinds, and whether trying again can help.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

macro_rules! error_kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident => $name:literal, $permanent:literal;)+) => {
        /// Why a call failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorKind {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl ErrorKind {
            /// All of them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name used in files.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Whether trying again is hopeless, unless there is evidence to the contrary.
            pub const fn is_permanent(self) -> bool {
                match self {
                    $(Self::$variant => $permanent,)+
                }
            }
        }
    };
}

error_kinds! {
    /// The key is missing, wrong, expired or not allowed to do this.
    Auth => "auth", true;
    /// The account has nothing left to spend.
    Quota => "quota", true;
    /// Too many calls for now.
    RateLimit => "rate_limit", false;
    /// The service has more work than it can take.
    Overloaded => "overloaded", false;
    /// The service broke.
    Server => "server", false;
    /// The service could not be reached.
    Network => "network", false;
    /// It took too long.
    Timeout => "timeout", false;
    /// The request makes no sense to the service.
    BadRequest => "bad_request", true;
    /// There is no such model or address.
    NotFound => "not_found", true;
    /// The prompt is too long.
    TooLarge => "too_large", true;
    /// The program does not know an option it was given.
    BadFlag => "bad_flag", true;
    /// The program is not there or cannot be run.
    NotInstalled => "not_installed", true;
    /// The service blocked the prompt or the reply for what it says.
    ContentFilter => "content_filter", true;
    /// The program died.
    Crash => "crash", false;
    /// The program ended well and said nothing.
    Empty => "empty", false;
    /// None of the above can be told.
    Unknown => "unknown", false;
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ErrorKind {
    type Err = UnknownErrorKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| UnknownErrorKind(text.to_owned()))
    }
}

/// A name that is no kind of error.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no kind of error")]
pub struct UnknownErrorKind(String);
