//! One JSON object in, one out: the streaming side of `probity check`.

use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Write};

use probity_core::{json, located::NodeValue};
use probity_load::lines::{LONGEST_LINE, Lines};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use crate::{exit::Exit, failure::Failure, printer::Printer};

/// Answers every line of standard input in order. A line that is no request gets an
/// answer with `error`, so that answers and requests stay side by side.
pub(crate) fn stream<Request: DeserializeOwned, Answer: Serialize>(
    printer: &Printer,
    mut answer: impl FnMut(Request) -> Answer,
) -> Result<Exit, Failure> {
    let mut output = Printer::data();
    let mut buffer = Vec::new();
    let mut lines = Lines::new(BufReader::with_capacity(256 << 10, io::stdin().lock()));
    let mut broken = 0_usize;
    loop {
        // A slow producer waits for its answers.
        if lines.reader().buffer().is_empty() {
            output.flush().map_err(Failure::output)?;
            if output.get_ref().is_deserted() {
                break;
            }
        }
        let Some(line) = lines.next_line().map_err(input_failure)? else { break };
        if line.bytes.trim_ascii().is_empty() {
            continue;
        }
        let written = match parse::<Request>(line.bytes, line.too_long) {
            Ok((id, request)) => write_answer(&mut output, &mut buffer, id, &answer(request)),
            Err((id, message)) => {
                broken += 1;
                let message = format!("line {}: {message}", line.number);
                printer.note(&format!("error: {message}"));
                write_answer(&mut output, &mut buffer, id, &serde_json::json!({ "error": message }))
            }
        };
        written.map_err(Failure::output)?;
    }
    output.flush().map_err(Failure::output)?;
    Ok(if broken == 0 { Exit::Success } else { Exit::Usage })
}

/// The fields of the answer after the id, which is copied as it was written.
fn write_answer(
    output: &mut impl Write,
    buffer: &mut Vec<u8>,
    id: &str,
    answer: &impl Serialize,
) -> io::Result<()> {
    buffer.clear();
    serde_json::to_writer(&mut *buffer, answer)?;
    write!(output, "{{\"id\":{id}")?;
    let fields = buffer.strip_prefix(b"{").unwrap_or(buffer);
    if fields != b"}" {
        output.write_all(b",")?;
    }
    output.write_all(fields)?;
    output.write_all(b"\n")
}

/// The id of a request, as it was written.
#[derive(Deserialize)]
struct Id<'t> {
    #[serde(borrow)]
    id: Option<&'t RawValue>,
}

/// A request and its id, or the id as far as there is one and what is wrong.
fn parse<Request: DeserializeOwned>(
    bytes: &[u8],
    too_long: bool,
) -> Result<(&str, Request), (&str, String)> {
    const NO_ID: &str = "null";
    if too_long {
        return Err((NO_ID, format!("longer than {} MiB", LONGEST_LINE >> 20)));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| (NO_ID, format!("not UTF-8 from byte {} on", error.valid_up_to())))?;
    // A line that reads at once needs no tree with places for its mistakes.
    if let (Ok(Id { id }), Ok(request)) = (serde_json::from_str(text), serde_json::from_str(text)) {
        return Ok((id.map_or(NO_ID, RawValue::get), request));
    }
    let node = json::parse_located(text, &json::Limits::default())
        .map_err(|error| (NO_ID, format!("{} (column {})", error.kind, error.column)))?;
    if !matches!(node.value, NodeValue::Object(_)) {
        return Err((NO_ID, format!("a request must be a JSON object, not {}", node.kind())));
    }
    let id = node.get("id").map_or(NO_ID, |id| &text[id.span.clone()]);
    let request = serde_json::from_value(node.to_json());
    request.map(|request| (id, request)).map_err(|error| (id, error.to_string()))
}

/// The whole of standard input as text. What is not UTF-8 is replaced.
pub(crate) fn read_input(printer: &Printer) -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        printer.note("reading the text from standard input; end it with Ctrl-D");
    }
    let mut bytes = Vec::new();
    let mut input = io::stdin().lock();
    loop {
        let chunk = input.fill_buf().map_err(input_failure)?;
        if chunk.is_empty() {
            break;
        }
        bytes.extend_from_slice(chunk);
        let length = chunk.len();
        input.consume(length);
        if bytes.len() > LONGEST_LINE {
            let limit = LONGEST_LINE >> 20;
            return Err(Failure::new(format!("the text is longer than {limit} MiB")));
        }
    }
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

fn input_failure(error: io::Error) -> Failure {
    Failure::new("failed to read standard input").because(error)
}

/// A byte range as a JSON pair.
pub(crate) fn span_json(span: &std::ops::Range<usize>) -> Value {
    [span.start, span.end].into_iter().collect()
}
