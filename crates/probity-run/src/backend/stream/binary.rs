//! Events as AWS frames them: `application/vnd.amazon.eventstream`.
//!
//! A frame is its length, the length of its headers, a checksum of these two, headers, a payload,
//! and a checksum of all before it. Numbers have the highest byte first.

use serde_json::{Map, Value, json};

use super::Event;

/// The lengths and their checksum.
const PRELUDE: usize = 12;
/// What a frame has beside headers and payload.
const AROUND: usize = PRELUDE + 4;
/// No frame is larger; AWS allows 16 MiB of payload.
const LARGEST: usize = 17 << 20;

/// The frames in a stream of bytes.
#[derive(Debug, Default)]
pub(super) struct BinaryFrames {
    waiting: Vec<u8>,
    /// Whether a frame was damaged: what comes after it cannot be told apart.
    is_damaged: bool,
}

impl BinaryFrames {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// The next event; none as long as its frame is not whole.
    pub(super) fn next(&mut self) -> Option<Event> {
        if self.is_damaged || self.waiting.len() < PRELUDE {
            return None;
        }
        let length = frame_length(&self.waiting);
        if length.is_some_and(|it| self.waiting.len() < it) {
            return None;
        }
        let event = length.and_then(|it| read(&self.waiting[..it]));
        match (length, event) {
            (Some(length), Some(event)) => {
                self.waiting.drain(..length);
                Some(event)
            }
            (_, _) => {
                self.is_damaged = true;
                let data = "a frame of the event stream is damaged".to_owned();
                Some(Event { name: String::new(), data })
            }
        }
    }
}

/// The length of the frame that begins here; none if it cannot be right.
fn frame_length(bytes: &[u8]) -> Option<usize> {
    let length = number(bytes, 0)?;
    let is_right = number(bytes, 8)? == crc(&bytes[..8])
        && (AROUND..=LARGEST).contains(&length)
        && number(bytes, 4)? <= length - AROUND;
    is_right.then_some(length)
}

fn read(frame: &[u8]) -> Option<Event> {
    let end = frame.len() - 4;
    if number(frame, end)? != crc(&frame[..end]) {
        return None;
    }
    let payload_at = PRELUDE + number(frame, 4)?;
    let headers = headers(&frame[PRELUDE..payload_at])?;
    let find = |name: &str| headers.iter().find(|it| it.0 == name).map(|it| it.1.as_str());
    let payload = String::from_utf8_lossy(&frame[payload_at..end]).into_owned();
    Some(match find(":message-type") {
        Some("exception") => failed(&payload, find(":exception-type"), None),
        Some("error") => failed("", find(":error-code"), find(":error-message")),
        Some(_) | None => {
            Event { name: find(":event-type").unwrap_or_default().to_owned(), data: payload }
        }
    })
}

/// An error, with its kind in the same object as its message.
fn failed(payload: &str, kind: Option<&str>, message: Option<&str>) -> Event {
    let mut body: Map<String, Value> = serde_json::from_str(payload).unwrap_or_else(|_| {
        let said = message.unwrap_or(payload);
        Map::from_iter([("message".to_owned(), json!(said))])
    });
    if let Some(kind) = kind {
        body.insert("type".to_owned(), json!(kind));
    }
    Event { name: "error".to_owned(), data: Value::Object(body).to_string() }
}

/// The headers that are text; none if they cannot be read.
fn headers(mut bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (kind, rest) = rest.split_first()?;
        let (size, rest) = match kind {
            // Yes and no.
            0 | 1 => (0, rest),
            // Numbers of 1, 2, 4 and 8 bytes, and a time.
            2 => (1, rest),
            3 => (2, rest),
            4 => (4, rest),
            5 | 8 => (8, rest),
            // Bytes and texts say how long they are.
            6 | 7 => {
                let (size, rest) = rest.split_first_chunk::<2>()?;
                (usize::from(u16::from_be_bytes(*size)), rest)
            }
            // A UUID.
            9 => (16, rest),
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(size)?;
        if *kind == 7 {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            found.push((text(name), text(value)));
        }
        bytes = rest;
    }
    Some(found)
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_be_bytes(*bytes)).ok()
}

fn crc(bytes: &[u8]) -> usize {
    usize::try_from(crc32fast::hash(bytes)).unwrap_or(usize::MAX)
}

/// An event as AWS writes it.
#[cfg(test)]
pub(crate) fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let length = |it: usize| u32::try_from(it).unwrap().to_be_bytes();
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).unwrap());
        head.extend(name.as_bytes());
        head.push(7);
        head.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        head.extend(value.as_bytes());
    }
    let mut frame = [length(AROUND + head.len() + payload.len()), length(head.len())].concat();
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame.extend([&head, payload.as_bytes()].concat());
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn read_all(pieces: &[&[u8]]) -> Vec<Event> {
        let mut frames = BinaryFrames::default();
        let mut events = Vec::new();
        for piece in pieces {
            frames.push(piece);
            events.extend(std::iter::from_fn(|| frames.next()));
        }
        events
    }

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.to_owned(), data: data.to_owned() }
    }

    fn named(name: &str, payload: &str) -> Vec<u8> {
        let headers = [
            (":event-type", name),
            (":content-type", "application/json"),
            (":message-type", "event"),
        ];
        frame(&headers, payload)
    }

    /// The example of the format's description: no headers, and with one.
    #[test]
    fn documented_frames_are_read() {
        let empty = b"\x00\x00\x00\x10\x00\x00\x00\x00\x05\xc2\x48\xeb\x7d\x98\xc8\xff";
        assert_eq!(read_all(&[empty]), [event("", "")]);
        assert_eq!(frame(&[], ""), empty);
        let plain =
            b"\x00\x00\x00\x1d\x00\x00\x00\x00\xfd\x52\x8c\x5a{'foo':'bar'}\xc3\x65\x39\x36";
        assert_eq!(read_all(&[plain]), [event("", "{'foo':'bar'}")]);
    }

    #[test]
    fn headers_of_every_type_are_passed_over() {
        let mut headers = Vec::new();
        for (kind, size) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)] {
            headers.extend([1, b'x', kind]);
            headers.extend(vec![7; size]);
        }
        headers.extend(b"\x01b\x06\x00\x02\xff\xfe");
        headers.extend(b"\x01t\x07\x00\x02hi");
        assert_eq!(super::headers(&headers), Some(vec![("t".to_owned(), "hi".to_owned())]));
        for end in 1..headers.len() {
            let cut = super::headers(&headers[..end]);
            assert!(cut.is_none_or(|it| it.is_empty()), "{end}");
        }
    }

    #[test]
    fn an_exception_is_an_error_with_its_kind() {
        let thrown = frame(
            &[(":exception-type", "throttlingException"), (":message-type", "exception")],
            r#"{"message":"slow down"}"#,
        );
        let expected = event("error", r#"{"message":"slow down","type":"throttlingException"}"#);
        assert_eq!(read_all(&[&thrown]), [expected]);
        let failed = frame(
            &[(":message-type", "error"), (":error-code", "500"), (":error-message", "oh")],
            "",
        );
        assert_eq!(read_all(&[&failed]), [event("error", r#"{"message":"oh","type":"500"}"#)]);
    }

    #[test]
    fn a_damaged_frame_is_no_event_and_the_last() {
        let good = named("a", "{}");
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let read = read_all(&[&bad, &good]);
            let damaged = event("", "a frame of the event stream is damaged");
            assert!(read.is_empty() || read == [damaged], "{at}: {read:?}");
        }
    }

    proptest! {
        #[test]
        fn where_bytes_are_cut_makes_no_difference(cuts in vec(0_usize..300, 0..12)) {
            let bytes = [named("a", "{}"), named("b", "grüß dich"), named("", "")].concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|it| it.min(bytes.len())).collect();
            cuts.sort_unstable();
            cuts.insert(0, 0);
            cuts.push(bytes.len());
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|it| &bytes[it[0]..it[1]]).collect();
            let whole = [event("a", "{}"), event("b", "grüß dich"), event("", "")];
            prop_assert_eq!(read_all(&pieces), whole);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in vec(0_u8.., 0..200)) {
            read_all(&[&bytes]);
        }
    }
}
