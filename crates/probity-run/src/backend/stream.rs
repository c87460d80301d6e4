//! Events of a reply that is read while it is written.
//!
//! Bytes come in pieces of any size: a character, a line break or an event may be cut in two.
//! Nothing here is bounded by itself, so whoever hands over bytes counts them.

mod binary;

use std::collections::VecDeque;

use probity_core::reply::Reply;

use self::binary::BinaryFrames;
use super::dialect::{Assembly, Heard, StreamSpec, Undecoded};

#[cfg(test)]
pub(super) use binary::frame;

/// How events are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events, with a blank line after each.
    Events,
    /// One event a line.
    Lines,
    /// Frames of AWS.
    Binary,
}

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// What kind of event it is, where that is said apart.
    pub(super) name: String,
    /// What it says.
    pub(super) data: String,
}

/// Puts a reply together from the bytes of a stream.
pub(super) struct Listener {
    frames: Frames,
    pieces: Box<dyn Assembly>,
    /// Whether an event came.
    has_heard: bool,
    /// Whether the last event came; what comes after it does not matter.
    is_ended: bool,
}

/// Why a stream is no reply, and the event that says so.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misheard {
    pub(super) why: Undecoded,
    pub(super) event: String,
}

impl Listener {
    /// One that has heard nothing.
    pub(super) fn new(spec: &StreamSpec) -> Self {
        Self {
            frames: Frames::new(spec.framing),
            pieces: (spec.open)(),
            has_heard: false,
            is_ended: false,
        }
    }

    /// Whether an event came.
    pub(super) fn has_heard(&self) -> bool {
        self.has_heard
    }

    /// Whether the last event came.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Takes in the next bytes, and says whether the model wrote something in them.
    pub(super) fn hear(&mut self, bytes: &[u8]) -> Result<bool, Misheard> {
        self.frames.push(bytes);
        self.take_events()
    }

    fn take_events(&mut self) -> Result<bool, Misheard> {
        let mut is_token = false;
        while !self.is_ended
            && let Some(event) = self.frames.next()
        {
            self.has_heard = true;
            let heard = match event.name.as_str() {
                "error" => Err(Undecoded::Error),
                _ => self.pieces.take(&event),
            };
            match heard {
                Ok(Heard::Token) => is_token = true,
                Ok(Heard::Other) => {}
                Ok(Heard::End) => self.is_ended = true,
                Err(why) => return Err(Misheard { why, event: event.data }),
            }
        }
        Ok(is_token)
    }

    /// The reply, when no more bytes come; nothing if they are no events at all.
    pub(super) fn finish(mut self) -> Option<Result<Reply, Misheard>> {
        self.frames.finish();
        let taken = self.take_events();
        self.has_heard.then(|| match taken {
            // The last event may be the half of one.
            Err(Misheard { why: Undecoded::Shape(_), .. }) => Err(Undecoded::Cut.into()),
            Err(misheard) => Err(misheard),
            Ok(_) => self.pieces.finish().map_err(Misheard::from),
        })
    }
}

impl From<Undecoded> for Misheard {
    /// No single event says so.
    fn from(why: Undecoded) -> Self {
        Self { why, event: String::new() }
    }
}

/// Takes events out of a stream of bytes.
#[derive(Debug)]
pub(super) struct Frames {
    framing: Framing,
    /// The line that is coming in.
    line: Vec<u8>,
    /// Whether a carriage return came last, so that a line feed belongs to it.
    is_returned: bool,
    /// Whether no line has ended yet.
    is_first: bool,
    name: String,
    data: Option<String>,
    ready: VecDeque<Event>,
    binary: BinaryFrames,
}

impl Frames {
    /// An empty one.
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            line: Vec::new(),
            is_returned: false,
            is_first: true,
            name: String::new(),
            data: None,
            ready: VecDeque::new(),
            binary: BinaryFrames::default(),
        }
    }

    /// Takes in the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        match self.framing {
            Framing::Binary => self.binary.push(bytes),
            Framing::Events | Framing::Lines => self.push_text(bytes),
        }
    }

    fn push_text(&mut self, mut bytes: &[u8]) {
        if !bytes.is_empty() && std::mem::take(&mut self.is_returned) {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(at) = bytes.iter().position(|it| matches!(it, b'\n' | b'\r')) {
            self.line.extend_from_slice(&bytes[..at]);
            let rest = &bytes[at + 1..];
            let is_return = bytes[at] == b'\r';
            self.is_returned = is_return && rest.is_empty();
            bytes = if is_return { rest.strip_prefix(b"\n").unwrap_or(rest) } else { rest };
            self.end_line();
        }
        self.line.extend_from_slice(bytes);
    }

    /// Takes what there is for an event, when no more bytes come.
    pub(super) fn finish(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.end_event();
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = match std::mem::take(&mut self.is_first) {
            true => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line),
            false => &line,
        };
        let line = String::from_utf8_lossy(line);
        match self.framing {
            Framing::Lines if line.trim().is_empty() => {}
            Framing::Lines => {
                self.ready.push_back(Event { name: String::new(), data: line.into_owned() });
            }
            Framing::Events if line.is_empty() => self.end_event(),
            Framing::Events => self.field(&line),
            // It has no lines.
            Framing::Binary => {}
        }
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match (name, &mut self.data) {
            ("data", Some(data)) => {
                data.push('\n');
                data.push_str(value);
            }
            ("data", None) => self.data = Some(value.to_owned()),
            ("event", _) => value.clone_into(&mut self.name),
            // Comments, ids, and how soon to come back.
            (_, _) => {}
        }
    }

    fn end_event(&mut self) {
        let name = std::mem::take(&mut self.name);
        if let Some(data) = self.data.take() {
            self.ready.push_back(Event { name, data });
        }
    }
}

impl Iterator for Frames {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        self.ready.pop_front().or_else(|| self.binary.next())
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn read(framing: Framing, pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut frames = Frames::new(framing);
        pieces.iter().for_each(|piece| frames.push(piece));
        frames.finish();
        frames.map(|it| (it.name, it.data)).collect()
    }

    fn events(text: &str) -> Vec<(String, String)> {
        read(Framing::Events, &[text.as_bytes()])
    }

    fn plain(data: &str) -> (String, String) {
        (String::new(), data.to_owned())
    }

    #[test]
    fn events_end_with_a_blank_line() {
        for end in ["\n", "\r\n", "\r"] {
            let text = "\u{feff}: hi\n\ndata: a\nid: 7\n\nevent: e\ndata:b\ndata:  c\n\nevent: none\n\ndata\n\ndata: last";
            let read = events(&text.replace('\n', end));
            let expected =
                [plain("a"), ("e".to_owned(), "b\n c".to_owned()), plain(""), plain("last")];
            assert_eq!(read, expected, "{end:?}");
        }
    }

    #[test]
    fn lines_are_events() {
        let text = "{\"a\":1}\r\n\n  \n{\"b\":2}";
        let expected = [plain("{\"a\":1}"), plain("{\"b\":2}")];
        assert_eq!(read(Framing::Lines, &[text.as_bytes()]), expected);
    }

    #[test]
    fn an_empty_piece_is_none() {
        let pieces: [&[u8]; 3] = [b"data: a\r", b"", b"\ndata: b\n\n"];
        assert_eq!(read(Framing::Events, &pieces), [plain("a\nb")]);
    }

    proptest! {
        #[test]
        fn where_bytes_are_cut_makes_no_difference(
            text in vec(
                prop::sample::select(vec!["data", ":", " ", "\n", "\r", "\r\n", "ü", "event", "x", "\u{feff}"]),
                0..60,
            ),
            cuts in vec(0_usize..200, 0..12),
        ) {
            let bytes = text.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|it| it.min(bytes.len())).collect();
            cuts.sort_unstable();
            cuts.insert(0, 0);
            cuts.push(bytes.len());
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|it| &bytes[it[0]..it[1]]).collect();
            for framing in [Framing::Events, Framing::Lines] {
                prop_assert_eq!(read(framing, &pieces), read(framing, &[&bytes]));
            }
        }
    }
}
