//! What collectors answer, in either encoding. Some say nothing, or nothing that can be read.

use serde_json::Value;

use super::Encoding;

/// Characters that are told of a complaint.
const LONGEST: usize = 500;

/// What was not taken of a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Partial {
    /// How many spans.
    pub(super) rejected: u64,
    /// Why, or what else the collector has to say.
    pub(super) message: Option<String>,
}

/// What an answer says of what was not taken.
pub(super) fn partial(body: &[u8], encoding: Encoding) -> Partial {
    let Partial { rejected, message } = match encoding {
        Encoding::Json => partial_json(body),
        Encoding::Protobuf => partial_protobuf(body).unwrap_or_default(),
    };
    Partial { rejected, message: message.filter(|it| !it.is_empty()) }
}

/// What an answer says of why nothing was taken.
pub(super) fn complaint(body: &[u8], encoding: Encoding) -> String {
    let text = match encoding {
        // `google.rpc.Status`: a message is its second field.
        Encoding::Protobuf => fields(body).and_then(|it| text(&it, 2)),
        Encoding::Json => None,
    };
    let text = text.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    text.trim().chars().take(LONGEST).collect()
}

fn partial_json(body: &[u8]) -> Partial {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let partial = &answer["partialSuccess"];
    // Numbers of 64 bits are texts in this JSON, and not everybody's are.
    let rejected = &partial["rejectedSpans"];
    let rejected = rejected.as_str().and_then(|it| it.parse().ok()).or(rejected.as_u64());
    Partial {
        rejected: rejected.unwrap_or(0),
        message: partial["errorMessage"].as_str().map(str::to_owned),
    }
}

/// `ExportTraceServiceResponse`: field 1 is `partial_success`, with the number in field 1 and the message in field 2.
fn partial_protobuf(body: &[u8]) -> Option<Partial> {
    let answer = fields(body)?;
    let Some((_, Field::Bytes(partial))) = answer.iter().find(|(number, _)| *number == 1) else {
        return None;
    };
    let partial = fields(partial)?;
    let rejected = partial.iter().find_map(|it| match it {
        (1, Field::Number(count)) => Some(*count),
        _ => None,
    });
    Some(Partial { rejected: rejected.unwrap_or(0), message: text(&partial, 2) })
}

/// A field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn text(fields: &[(u64, Field<'_>)], wanted: u64) -> Option<String> {
    fields.iter().find_map(|(number, field)| match field {
        Field::Bytes(bytes) if *number == wanted => String::from_utf8(bytes.to_vec()).ok(),
        Field::Bytes(_) | Field::Number(_) => None,
    })
}

/// The fields of a message of protobuf; none if it is no such message.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Field<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)?),
            1 => Field::Bytes(take(&mut bytes, 8)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                Field::Bytes(take(&mut bytes, length)?)
            }
            5 => Field::Bytes(take(&mut bytes, 4)?),
            _ => return None,
        };
        found.push((tag >> 3, field));
    }
    Some(found)
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(rejected: u64, message: &str) -> Partial {
        Partial { rejected, message: Some(message.to_owned()) }
    }

    #[test]
    fn what_was_not_taken_is_read_in_json() {
        let read = |text: &str| partial(text.as_bytes(), Encoding::Json);
        let both = [r#""3""#, "3"].map(|number| {
            read(&format!(
                r#"{{"partialSuccess":{{"rejectedSpans":{number},"errorMessage":"old"}}}}"#
            ))
        });
        assert_eq!(both, [taken(3, "old"), taken(3, "old")]);
        assert_eq!([read(""), read("{}"), read("ok")], [(); 3].map(|()| Partial::default()));
    }

    #[test]
    fn what_was_not_taken_is_read_in_protobuf() {
        let body = b"\x0a\x08\x08\xac\x02\x12\x03old";
        assert_eq!(partial(body, Encoding::Protobuf), taken(300, "old"));
        for end in 0..body.len() {
            partial(&body[..end], Encoding::Protobuf);
        }
        assert_eq!(partial(b"{}", Encoding::Protobuf), Partial::default());
        assert_eq!(
            partial(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", Encoding::Protobuf),
            Partial::default()
        );
    }

    #[test]
    fn complaints_are_read_in_both() {
        assert_eq!(complaint(b"\x08\x03\x12\x07too old", Encoding::Protobuf), "too old");
        assert_eq!(complaint(b" no such key ", Encoding::Protobuf), "no such key");
        assert_eq!(complaint(b"no such key", Encoding::Json), "no such key");
    }
}
