//! `probity-fake-model`: the fake model server as a program, for benches and for trying
//! things out by hand.

use std::{
    io::{self, Read, Write},
    process::ExitCode,
    thread,
    time::Duration,
};

use clap::Parser;
use probity_testkit::{
    Answer, FakeServer, Fault, Latency, Limits, Record, RetryAfter, Rule, Script, Trouble, When,
};
use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};

/// Serve a fake model that answers with the last word of the prompt
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// How long each answer takes
    #[arg(long, value_name = "MS", default_value_t = 0)]
    latency_ms: u64,
    /// How much longer an answer may take
    #[arg(long, value_name = "MS", default_value_t = 0)]
    jitter_ms: u64,
    /// Share of requests, 0 to 1, that are told to slow down
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    rate_429: f64,
    /// Share of requests that fail with 500
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    rate_500: f64,
    /// Share of requests whose answer is cut off
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    rate_broken: f64,
    /// Share of requests that are never answered
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    hang_rate: f64,
    /// Turn away more requests than this at the same time
    #[arg(long, value_name = "N")]
    max_concurrent: Option<u32>,
    /// Decides which requests fail and how latencies vary
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Remember prompts and requests, for `GET /__seen`; costs memory
    #[arg(long)]
    record: bool,
    /// Do not stop when stdin closes
    #[arg(long)]
    ignore_stdin: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell when stderr is closed.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    // Before the line is printed: whoever reads it may send a signal at once.
    let signals = {
        let _entered = runtime.enter();
        [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?]
    };
    let server = FakeServer::bind(script(args), args.port)?;
    writeln!(io::stdout(), "listening on {}", server.url())?;
    io::stdout().flush()?;
    runtime.block_on(end(signals, args.ignore_stdin));
    Ok(())
}

fn script(args: &Args) -> Script {
    let Args {
        port: _,
        latency_ms,
        jitter_ms,
        rate_429,
        rate_500,
        rate_broken,
        hang_rate,
        max_concurrent,
        seed,
        record,
        ignore_stdin: _,
    } = *args;
    let slow_down = Fault::new(Trouble::RateLimit).retry(RetryAfter::Seconds(1));
    let rules = [
        (rate_429, Answer::Fault(slow_down)),
        (rate_500, Answer::fault(Trouble::Internal)),
        (rate_broken, Answer::Truncated),
        (hang_rate, Answer::Hang),
    ];
    Script {
        rules: rules.map(|(share, answer)| Rule::new(When::Share(share), answer)).into(),
        latency: Latency {
            fixed: Duration::from_millis(latency_ms),
            jitter: Duration::from_millis(jitter_ms),
        },
        limits: Limits { max_concurrent, ..Limits::default() },
        record: if record { Record::default() } else { Record { prompts: false, requests: 0 } },
        seed,
        ..Script::default()
    }
}

/// Waits for a signal or the end of stdin.
async fn end([mut terminate, mut interrupt]: [Signal; 2], ignore_stdin: bool) {
    let (closed, stdin_closed) = oneshot::channel();
    // A thread of its own, because a read from stdin cannot be cancelled.
    thread::spawn(move || {
        let mut buffer = [0; 1024];
        while io::stdin().read(&mut buffer).is_ok_and(|n| n > 0) {}
        // If nobody listens any more, the end has come another way.
        let _ = closed.send(());
    });
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        _ = stdin_closed, if !ignore_stdin => {}
    }
}
