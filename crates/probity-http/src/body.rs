//! What a server answers.

use std::io::Write as _;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH},
    response::Parts,
};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use crate::Error;

/// What is unpacked at once. It may become a thousand times as much.
const STEP: usize = 4 << 10;

/// An answer, of which the body is still to come.
#[derive(Debug)]
pub struct Response {
    head: Parts,
    body: Source,
    /// What unpacks the body, if it is packed.
    packed: Option<Packed>,
}

/// Where a body comes from.
#[derive(Debug)]
enum Source {
    Server(Incoming),
    #[cfg(feature = "simulated")]
    Simulated(std::vec::IntoIter<Result<Bytes, std::io::Error>>),
}

impl Source {
    /// The next piece; none at the end.
    async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        match self {
            Self::Server(body) => loop {
                let frame = match body.frame().await? {
                    Ok(frame) => frame,
                    Err(error) => return Some(Err(Error::Body(error))),
                };
                // Everything else is a header that comes late.
                if let Ok(data) = frame.into_data() {
                    return Some(Ok(data));
                }
            },
            #[cfg(feature = "simulated")]
            Self::Simulated(pieces) => pieces.next().map(|it| it.map_err(Error::Simulated)),
        }
    }

    fn exact_length(&self) -> Option<u64> {
        match self {
            Self::Server(body) => body.size_hint().exact(),
            #[cfg(feature = "simulated")]
            Self::Simulated(_) => None,
        }
    }
}

/// A body that is packed by gzip.
#[derive(Debug)]
struct Packed {
    /// What has come and is not unpacked yet.
    waiting: Bytes,
    /// Whether anything has come.
    has_begun: bool,
    unpacker: MultiGzDecoder<Vec<u8>>,
}

impl Response {
    pub(crate) fn new(response: http::Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        Self::of(head, Source::Server(body))
    }

    /// An answer that no server gave, whose body comes in pieces.
    #[cfg(feature = "simulated")]
    pub fn simulated(response: http::Response<Vec<Result<Bytes, std::io::Error>>>) -> Self {
        let (head, pieces) = response.into_parts();
        Self::of(head, Source::Simulated(pieces.into_iter()))
    }

    fn of(mut head: Parts, body: Source) -> Self {
        let is_packed =
            head.headers.get(CONTENT_ENCODING).is_some_and(|it| it == "gzip" || it == "x-gzip");
        let packed = is_packed.then(|| Packed {
            waiting: Bytes::new(),
            has_begun: false,
            unpacker: MultiGzDecoder::new(Vec::new()),
        });
        if is_packed {
            // What is handed out is neither.
            head.headers.remove(CONTENT_ENCODING);
            head.headers.remove(CONTENT_LENGTH);
        }
        Self { head, body, packed }
    }

    /// Whether it went well.
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// What is said beside the body.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// How much is still to come, if that is known.
    pub fn content_length(&self) -> Option<u64> {
        match self.packed {
            Some(_) => None,
            None => self.body.exact_length(),
        }
    }

    /// The next piece of the body, unpacked; none at its end. A piece has a few megabytes at most, however well it was packed.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(packed) = &mut self.packed
                && let Some(piece) = packed.unpack().map_err(Error::Packed)?
            {
                return Ok(Some(piece));
            }
            let Some(piece) = self.body.next().await else {
                return match self.packed.take() {
                    Some(packed) => packed.finish().map_err(Error::Packed),
                    None => Ok(None),
                };
            };
            let piece = piece?;
            match &mut self.packed {
                Some(packed) => packed.waiting = piece,
                None => return Ok(Some(piece)),
            }
        }
    }
}

impl Packed {
    /// The next piece of what has come; none if more has to come first.
    fn unpack(&mut self) -> std::io::Result<Option<Bytes>> {
        while !self.waiting.is_empty() {
            let step = self.waiting.split_to(self.waiting.len().min(STEP));
            self.has_begun = true;
            self.unpacker.write_all(&step)?;
            if !self.unpacker.get_ref().is_empty() {
                return Ok(Some(std::mem::take(self.unpacker.get_mut()).into()));
            }
        }
        Ok(None)
    }

    /// What is left at the end. One that is no end is an error.
    fn finish(mut self) -> std::io::Result<Option<Bytes>> {
        if !self.has_begun {
            return Ok(None);
        }
        self.unpacker.try_finish()?;
        let rest = std::mem::take(self.unpacker.get_mut());
        Ok((!rest.is_empty()).then(|| rest.into()))
    }
}
