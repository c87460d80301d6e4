//! Why a request is not answered.

use hyper::StatusCode;
use probity_store::StoreError;
use serde::Serialize;

/// What goes wrong, for people and for programs.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// What programs get.
#[derive(Serialize)]
pub(crate) struct Envelope<'a> {
    error: Error<'a>,
}

#[derive(Serialize)]
struct Error<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), hint: None }
    }

    /// What was asked makes no sense.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// What was asked for is not there.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// Whoever asks may not.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// Whoever asks has to say who they are.
    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// Nothing is done here but reading.
    pub(crate) fn not_allowed() -> Self {
        let message = "only GET and HEAD are answered here";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
    }

    /// What was asked was meant for something else than is there now.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// Others write to the store for longer than is waited.
    pub(crate) fn busy() -> Self {
        let message = "another program writes to the store, and nothing was changed";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
            .hint("go back and try again in a moment")
    }

    /// Our own fault, or the store's.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// Reading what was asked for takes too long.
    pub(crate) fn too_slow() -> Self {
        let message = "reading this takes longer than is allowed here";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "too_slow", message)
            .hint("ask for less: one lane, one class, fewer words")
    }

    /// Others have taken all there is.
    pub(crate) fn too_many(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "too_many", message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn envelope(&self) -> Envelope<'_> {
        let Self { code, message, hint, .. } = self;
        Envelope { error: Error { code, message, hint: hint.as_deref() } }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        if error.is_interrupted() {
            return Self::too_slow();
        }
        if error.is_locked() {
            return Self::busy();
        }
        let hint = error.hint();
        let mut message = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        let (status, code) = match &error {
            StoreError::UnknownRun(_) => (StatusCode::NOT_FOUND, "not_found"),
            StoreError::Missing { .. } => (StatusCode::NOT_FOUND, "no_store"),
            StoreError::AmbiguousRun { .. } => (StatusCode::BAD_REQUEST, "ambiguous"),
            StoreError::Folder { .. }
            | StoreError::Open { .. }
            | StoreError::Foreign { .. }
            | StoreError::OpenCache { .. }
            | StoreError::ForeignCache { .. }
            | StoreError::UseCache(_)
            | StoreError::Newer { .. }
            | StoreError::Write(_)
            | StoreError::Read(_)
            | StoreError::Damaged(_)
            | StoreError::Content(_)
            | StoreError::Incomplete { .. }
            | StoreError::Busy(_)
            | StoreError::Lock { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "store"),
        };
        Self { status, code, message, hint: hint.map(ToOwned::to_owned) }
    }
}
