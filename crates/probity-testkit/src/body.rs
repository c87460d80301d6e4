//! Bodies that come whole, slowly, in part, or never.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::{state::Ticket, wire::Line};

/// A body, and the ticket of the request that it ends.
pub(crate) struct AnswerBody {
    content: Content,
    ticket: Option<Ticket>,
}

/// What is left to send.
pub(crate) enum Content {
    /// All at once.
    Whole(Bytes),
    /// In pieces with a pause before each.
    Slow { rest: Bytes, chunk: usize, every: Duration, pause: Pin<Box<Sleep>> },
    /// Nothing, without an end.
    Never,
    /// This, and then the connection closes.
    Cut { rest: Bytes, line: Arc<Line> },
    /// So much white space, and then this.
    Huge { spaces: u64, rest: Bytes },
}

const SPACES: &[u8] = &[b' '; 64 * 1024];

impl AnswerBody {
    pub(crate) fn new(content: Content, ticket: Option<Ticket>) -> Self {
        let mut body = Self { content, ticket };
        // Nobody asks for the pieces of an empty body.
        if body.is_end_stream() {
            body.settle();
        }
        body
    }

    fn settle(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            ticket.answered();
        }
    }
}

impl Content {
    pub(crate) fn slow(rest: Bytes, chunk: usize, every: Duration) -> Self {
        Self::Slow { rest, chunk: chunk.max(1), every, pause: Box::pin(sleep(every)) }
    }

    fn is_out(&self) -> bool {
        match self {
            Self::Whole(rest) | Self::Slow { rest, .. } | Self::Huge { rest, .. } => {
                rest.is_empty()
            }
            Self::Never => false,
            // The server goes first here, so the client does not go away.
            Self::Cut { .. } => true,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self {
            Self::Slow { rest, chunk, every, pause } => {
                if rest.is_empty() {
                    return Poll::Ready(None);
                }
                ready!(pause.as_mut().poll(context));
                *pause = Box::pin(sleep(*every));
                Poll::Ready(Some(rest.split_to(rest.len().min(*chunk))))
            }
            Self::Never => Poll::Pending,
            Self::Cut { rest, line } => match take(rest) {
                Some(first) => Poll::Ready(Some(first)),
                // Being pending makes hyper flush before the connection is dropped.
                None => {
                    line.close();
                    Poll::Pending
                }
            },
            Self::Whole(rest) | Self::Huge { spaces: 0, rest } => Poll::Ready(take(rest)),
            Self::Huge { spaces, rest: _ } => {
                let most = SPACES.len();
                let now = usize::try_from(*spaces).map_or(most, |spaces| spaces.min(most));
                *spaces -= u64::try_from(now).expect("a chunk is small");
                Poll::Ready(Some(Bytes::from_static(&SPACES[..now])))
            }
        }
    }
}

fn take(rest: &mut Bytes) -> Option<Bytes> {
    if rest.is_empty() { None } else { Some(std::mem::take(rest)) }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = ready!(self.content.poll(context));
        // Before the last bytes are on their way: a client that has them must find the
        // request gone from those in flight.
        if self.content.is_out() {
            self.settle();
        }
        Poll::Ready(piece.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Whole(rest) if rest.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(rest) => SizeHint::with_exact(rest.len() as u64),
            Content::Slow { .. } | Content::Never | Content::Cut { .. } | Content::Huge { .. } => {
                SizeHint::default()
            }
        }
    }
}
