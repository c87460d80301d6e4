//! `probity classify` and `probity dataset validate` on a million lines.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::Path,
    process::Command,
};

use crate::measure;

/// Measures `probity classify` on `count` results of about 500 bytes.
pub(crate) fn classify(probity: &Path, count: usize) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let input = folder.path().join("results.jsonl");
    let bytes = write_results(&input, count)?;
    println!("{count} results, {} bytes each on average", bytes / count.max(1));
    let mut outputs = Vec::new();
    for threads in ["1", "2", "4"] {
        let output = folder.path().join(format!("out-{threads}.jsonl"));
        let mut command = command(probity);
        command.arg("classify").arg(&input).arg("-o").arg(&output).args(["--quiet", "-j", threads]);
        let cost = measure::run(&mut command)?;
        println!(
            "{threads} thread(s): {:>9.0} results per CPU-second, {:.2} s wall, peak {} MiB",
            per_second(count, cost.cpu.as_secs_f64()),
            cost.wall.as_secs_f64(),
            cost.peak_kib / 1024,
        );
        outputs.push(output);
    }
    let first = fs::read(&outputs[0])?;
    let same = outputs[1..].iter().all(|it| fs::read(it).is_ok_and(|it| it == first));
    println!("output is the same for every thread count: {same}");
    Ok(())
}

/// Measures `probity dataset validate` on `count` cases.
pub(crate) fn validate(probity: &Path, count: usize) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let input = folder.path().join("cases.jsonl");
    let mut file = BufWriter::new(File::create(&input)?);
    for at in 0..count {
        let topic = TOPICS[at % TOPICS.len()];
        writeln!(
            file,
            r#"{{"id":"case-{at}","prompt":"Write a short note about {topic}, number {at}.","expected_response":"{topic}","match":"icontains","tags":["bench","{topic}"],"difficulty":"easy"}}"#
        )?;
    }
    file.flush()?;
    let cost = measure::run(command(probity).args(["dataset", "validate"]).arg(&input))?;
    println!(
        "{count} cases: {:.0} per CPU-second, {:.2} s wall, peak {} MiB",
        per_second(count, cost.cpu.as_secs_f64()),
        cost.wall.as_secs_f64(),
        cost.peak_kib / 1024,
    );
    Ok(())
}

const TOPICS: &[&str] = &["tides", "maps", "bread", "bridges", "clocks", "rivers", "moths"];

/// Results of every kind in the proportions of an ordinary run.
fn write_results(path: &Path, count: usize) -> io::Result<usize> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut bytes = 0;
    for at in 0..count {
        let topic = TOPICS[at % TOPICS.len()];
        let line = result_line(at, topic);
        bytes += line.len();
        file.write_all(line.as_bytes())?;
    }
    file.flush()?;
    Ok(bytes)
}

fn result_line(at: usize, topic: &str) -> String {
    let prose = format!(
        "There is a good deal to say about {topic}. The first thing is where they come from, the second \
         how people have used them, and the third what they may become. None of it is simple, and most \
         of it was found out by accident over some three hundred years."
    );
    let body = match at % 10 {
        0 => {
            format!(
                r#""raw_response":"I'm sorry, but I can't help with {topic}. {prose}","error":null"#
            )
        }
        1 | 2 => format!(
            r#""expected_format":"json_object","raw_response":"Here it is:\n```json\n{{\"topic\": \"{topic}\", \"n\": [1, 2, {at}], \"text\": \"{prose}\"}}\n```","error":null"#
        ),
        3 => format!(
            r#""raw_response":null,"error":"HTTP 529: overloaded_error: the service is busy, request {at}","note":"{prose}""#
        ),
        4 => format!(
            r#""raw_response":"{prose}","error":null,"assert":[{{"type":"icontains","value":"{topic}"}},{{"type":"not-contains","value":"zebra"}},{{"type":"regex","value":"three h[a-z]+"}}]"#
        ),
        _ => format!(
            r#""raw_response":"{prose}","error":null,"expected_response":"good deal to say about {topic}","match":"contains""#
        ),
    };
    format!(
        r#"{{"case_id":"case-{at}","suite_id":"suite-{}","run_id":"run-1","model_id":"model-x","timestamp_utc":"2026-01-01T00:00:00Z",{body}}}
"#,
        at % 5
    )
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
pub(crate) fn per_second(count: usize, seconds: f64) -> f64 {
    count as f64 / seconds.max(1e-9)
}

pub(crate) fn command(probity: &Path) -> Command {
    Command::new(probity)
}
