//! One JSON object in, one out: the streaming side of `probity check`.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    ops::ControlFlow,
};

use probity_load::lines::LONGEST_LINE;
use probity_offline::{
    check::{Detector, answer_all},
    pipeline::{Broken, Done, all_cores},
};

use crate::{exit::Exit, failure::Failure, printer::Printer};

/// Answers every line of standard input in order.
pub(crate) fn stream(detector: &Detector<'_>, printer: &Printer) -> Result<Exit, Failure> {
    let mut output = Printer::data();
    let mut broken = 0_usize;
    let mut take = |done: Done<Vec<String>>, caught_up| {
        output.write_all(&done.output)?;
        // A slow producer waits for its answers.
        if caught_up {
            output.flush()?;
        }
        broken += done.found.len();
        done.found.iter().for_each(|message| printer.note(&format!("error: {message}")));
        let deserted = output.get_ref().is_deserted();
        Ok(if deserted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    answer_all(detector, all_cores(), &mut io::stdin().lock(), &mut take).map_err(|broken| {
        match broken {
            Broken::Output(error) => Failure::output(error),
            Broken::Input(error) => input_failure(error),
        }
    })?;
    output.flush().map_err(Failure::output)?;
    Ok(if broken == 0 { Exit::Success } else { Exit::Usage })
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
