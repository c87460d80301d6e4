//! A fake model server for tests and benches: it answers as its [`Script`] says, breaks
//! where the script says, and remembers what it was asked.
//!
//! It runs on its own thread, so that a plain `#[test]` can start the real program
//! against it:
//!
//! ```
//! use std::time::Duration;
//! use probity_testkit::{Answer, FakeServer, Fault, RetryAfter, Rule, Script, Trouble, When};
//!
//! let overloaded = Fault::new(Trouble::RateLimit).retry(RetryAfter::Seconds(1));
//! let script = Script::default()
//!     .rule(Rule::new(When::Requests(1..3), Answer::Fault(overloaded)))
//!     .rule(Rule::new(When::prompt_contains("forever"), Answer::Hang));
//! let server = FakeServer::start(script);
//! // … run the program against `server.url()` …
//! assert!(server.wait_until(|seen| seen.in_flight == 0, Duration::from_secs(5)));
//! assert_eq!(server.seen().requests, 0);
//! ```
//!
//! Which API it speaks follows from the path: `OpenAI` (`/v1/chat/completions`),
//! `OpenAI`'s responses (`/v1/responses`), Anthropic (`/v1/messages`), Ollama (`/api/chat`), Gemini (`:generateContent`)
//! or Bedrock (`/model/MODEL/converse`), whose signatures it checks.
//! It makes embeddings as `OpenAI` (`/v1/embeddings`) and Ollama (`/api/embed`) do. Nothing it answers depends on the
//! clock, except times to retry at.

mod answer;
mod bedrock;
mod body;
mod embeddings;
mod fault;
mod gemini;
mod question;
mod reply;
mod rerank;
mod responses;
mod route;
mod script;
mod seen;
mod server;
mod sigv4;
mod state;
mod stream;
mod wire;

pub use answer::{Answer, Call, Fault, Finish, Reply, RetryAfter, Text, Trouble};
pub use route::Dialect;
pub use script::{Latency, Limits, Rate, Record, Rule, Script, When};
pub use seen::{Received, Seen};
pub use server::FakeServer;
pub use sigv4::{AWS_ACCESS_KEY, AWS_SECRET_KEY};
