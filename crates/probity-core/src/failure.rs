//! Why a call to a backend failed: a closed set of kinds, and whether trying again can help.

use crate::named_enum;

named_enum! {
    /// Why a call failed.
    pub enum ErrorKind ("a kind of error") {
        /// The key is missing, wrong, expired or not allowed to do this.
        Auth = "auth",
        /// The account has nothing left to spend.
        Quota = "quota",
        /// Too many calls for now.
        RateLimit = "rate_limit",
        /// The service has more work than it can take.
        Overloaded = "overloaded",
        /// The service broke.
        Server = "server",
        /// The service could not be reached.
        Network = "network",
        /// It took too long.
        Timeout = "timeout",
        /// The request makes no sense to the service.
        BadRequest = "bad_request",
        /// There is no such model or address.
        NotFound = "not_found",
        /// The prompt is too long.
        TooLarge = "too_large",
        /// The program does not know an option it was given.
        BadFlag = "bad_flag",
        /// The program is not there or cannot be run.
        NotInstalled = "not_installed",
        /// The service blocked the prompt or the reply for what it says.
        ContentFilter = "content_filter",
        /// The program died.
        Crash = "crash",
        /// The program ended well and said nothing.
        Empty = "empty",
        /// None of the above can be told.
        Unknown = "unknown",
    }
}

impl ErrorKind {
    /// Whether trying again is hopeless, unless there is evidence to the contrary.
    pub const fn is_permanent(self) -> bool {
        match self {
            Self::Auth
            | Self::Quota
            | Self::BadRequest
            | Self::NotFound
            | Self::TooLarge
            | Self::BadFlag
            | Self::NotInstalled
            | Self::ContentFilter => true,
            Self::RateLimit
            | Self::Overloaded
            | Self::Server
            | Self::Network
            | Self::Timeout
            | Self::Crash
            | Self::Empty
            | Self::Unknown => false,
        }
    }
}

/// The number of a signal and its name on Linux.
const SIGNALS: &[(i32, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (10, "SIGUSR1"),
    (11, "SIGSEGV"),
    (12, "SIGUSR2"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
    (25, "SIGXFSZ"),
    (31, "SIGSYS"),
];

/// The name of a signal.
pub fn signal_name(number: i32) -> String {
    let known = SIGNALS.iter().find(|(it, _)| *it == number);
    known.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}
