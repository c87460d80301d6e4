//! What llama.cpp says of itself. It is never printed; why something failed stands nowhere else.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use llama_cpp_2::{LogOptions, send_logs_to_tracing};
use tracing_core::{
    Dispatch, Event, Field, Level, Metadata, Subscriber,
    dispatcher::with_default,
    field::Visit,
    span::{Attributes, Id, Record},
};

/// Lines that are kept; the reason is among the last.
const MOST_LINES: usize = 8;

/// From now on everything goes to whoever listens on the thread, and nothing to the terminal.
pub(super) fn send_to_us() {
    send_logs_to_tracing(LogOptions::default());
}

/// Does something, and tells what errors the engine spoke of meanwhile.
pub(super) fn heard<T>(what: impl FnOnce() -> T) -> (T, Option<String>) {
    let lines = Lines::default();
    let outcome = with_default(&Dispatch::new(lines.clone()), what);
    let lines = lines.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (outcome, (!lines.is_empty()).then(|| lines.join("; ")))
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::ERROR
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        let line = line.0.trim().to_owned();
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !line.is_empty() && !lines.contains(&line) {
            if lines.len() == MOST_LINES {
                lines.remove(0);
            }
            lines.push(line);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.0);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
