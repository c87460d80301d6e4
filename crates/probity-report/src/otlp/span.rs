//! Spans as values, before anybody has said in which encoding they are told.

use probity_core::record::InputDigest;

/// A span.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) ids: Ids,
    /// The span that it is a part of.
    pub(super) parent: Option<SpanId>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    /// From and to, in milliseconds since 1970.
    pub(super) time: (i64, i64),
    pub(super) attributes: Attributes,
    pub(super) events: Vec<Event>,
    /// A span of another trace that it has to do with.
    pub(super) link: Option<Ids>,
    pub(super) status: Status,
}

/// What happened within a span.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) name: &'static str,
    pub(super) at_ms: i64,
    pub(super) attributes: Attributes,
}

/// Who takes part in a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanKind {
    Internal,
    /// Somebody else was asked.
    Client,
}

impl SpanKind {
    /// Its number in OTLP.
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Internal => 1,
            Self::Client => 3,
        }
    }
}

/// Whether a span went wrong.
#[derive(Debug)]
pub(super) enum Status {
    /// OTLP leaves `ok` to people; what programs do not complain about is unset.
    Unset,
    /// It did, and what was said about it.
    Error(Option<String>),
}

impl Status {
    /// The number of an error in OTLP.
    pub(super) const ERROR: u8 = 2;
}

/// The id of a span.
pub(super) type SpanId = [u8; 8];

/// The trace and the span of something. They are made of names, so that the same run has the same ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ids {
    pub(super) trace: [u8; 16],
    pub(super) span: SpanId,
}

impl Ids {
    pub(super) fn new(parts: &[&str]) -> Self {
        let digest = |kind: &'static str| {
            let parts = parts.iter().map(|it| it.as_bytes());
            InputDigest::of([kind.as_bytes()].into_iter().chain(parts)).0
        };
        let mut span = SpanId::default();
        span.copy_from_slice(&digest("span")[..8]);
        Self { trace: digest("trace"), span }
    }
}

/// The value of an attribute.
#[derive(Debug)]
pub(super) enum Any {
    Text(String),
    Count(u64),
    Number(f64),
    List(Vec<String>),
}

impl From<&str> for Any {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Any {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Any {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u32> for Any {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<f64> for Any {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

/// Attributes, in the order in which they are added.
#[derive(Debug, Default)]
pub(super) struct Attributes(pub(super) Vec<(&'static str, Any)>);

impl Attributes {
    pub(super) fn with(mut self, key: &'static str, value: impl Into<Any>) -> Self {
        self.0.push((key, value.into()));
        self
    }

    /// One that may have no value.
    pub(super) fn maybe(self, key: &'static str, value: Option<impl Into<Any>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// A list of texts, unless it is empty.
    pub(super) fn list<'a>(
        mut self,
        key: &'static str,
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        if !texts.is_empty() {
            self.0.push((key, Any::List(texts)));
        }
        self
    }
}

/// A time in nanoseconds since 1970.
pub(super) fn nanos(milliseconds: i64) -> u64 {
    u64::try_from(milliseconds).unwrap_or(0).saturating_mul(1_000_000)
}
