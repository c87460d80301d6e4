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
    body: Incoming,
    /// What unpacks the body, if it is packed.
    packed: Option<Packed>,
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
        let (mut head, body) = response.into_parts();
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
            None => self.body.size_hint().exact(),
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
            let Some(frame) = self.body.frame().await else {
                return match self.packed.take() {
                    Some(packed) => packed.finish().map_err(Error::Packed),
                    None => Ok(None),
                };
            };
            // Everything else is a header that comes late.
            let Ok(data) = frame.map_err(Error::Body)?.into_data() else { continue };
            match &mut self.packed {
                Some(packed) => packed.waiting = data,
                None => return Ok(Some(data)),
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
