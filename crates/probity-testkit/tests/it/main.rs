//! The server as seen from the other end of a socket.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod answers;
mod client;
mod counts;
mod faults;
mod http2;
mod program;
mod serving;
