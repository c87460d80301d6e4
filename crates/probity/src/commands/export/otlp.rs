//! Runs for collectors of OpenTelemetry: written to a file, or sent.

use std::io::{self, Write as _};

use probity_report::otlp::{self, Batch, Options, Texts, Traces};
use probity_run::backend::collector::{Collector, CollectorError, Taken};
use probity_store::StoredCases;

use crate::{
    cli::export::ExportArgs,
    commands::{dataset::counted, project::settings_alone, report::refuse_inputs, runs::open},
    environment::Environment,
    exit::Exit,
    failure::Failure,
    output::OutputFile,
    printer::Printer,
};

pub(super) fn run(args: &ExportArgs, printer: &Printer) -> Result<Exit, Failure> {
    let settings = settings_alone(&args.place)?;
    let reader = open(&args.place)?;
    let run = reader.find(args.run()?)?;
    refuse_inputs(&reader, &run, None, args.output.as_slice())?;
    // Whatever is wrong with the address is said before anything is read.
    let collector = args.to.as_deref().map(|to| collector(to, args)).transpose()?;
    let view = reader.view(&run, settings.max_error_rate)?;
    let cases = StoredCases::of(&reader, &run)?;
    let options = Options {
        texts: if args.no_texts { Texts::LeftOut } else { Texts::Told },
        traces: if args.trace_per_case { Traces::Case } else { Traces::Run },
    };
    let each =
        |take: &mut dyn FnMut(Batch) -> io::Result<()>| otlp::write(&view, &cases, options, take);
    match (collector, &args.output) {
        (Some(collector), _) => send(&collector, each, printer),
        (None, Some(path)) => {
            let mut file = OutputFile::create(path)?;
            let spans = write(each, &mut file).map_err(|error| Failure::write(path, error))?;
            file.finish()?;
            printer.note(&counted(spans, "span"));
            Ok(Exit::Success)
        }
        (None, None) => {
            let mut out = Printer::data();
            let written = write(each, &mut out).and_then(|it| out.flush().map(|()| it));
            printer.note(&counted(written.map_err(Failure::output)?, "span"));
            Ok(Exit::Success)
        }
    }
}

fn collector(to: &str, args: &ExportArgs) -> Result<Collector, Failure> {
    let headers = match &args.headers_env {
        None => String::new(),
        Some(name) => {
            let environment = Environment::load(None)?;
            environment.get(name).ok_or_else(|| {
                Failure::new(format!("the variable `{name}` is not set"))
                    .hint("it holds headers as NAME=VALUE,NAME=VALUE")
            })?
        }
    };
    Collector::new(to, &headers).map_err(|error| match (&error, &args.headers_env) {
        (CollectorError::Header(_), Some(name)) => {
            Failure::new(format!("the variable `{name}` cannot be used")).because(error)
        }
        (_, _) => Failure::new("the collector cannot be used").because(error),
    })
}

fn write(
    each: impl FnOnce(&mut dyn FnMut(Batch) -> io::Result<()>) -> io::Result<()>,
    out: &mut dyn io::Write,
) -> io::Result<usize> {
    let mut spans = 0;
    each(&mut |batch| {
        spans += batch.spans;
        writeln!(out, "{}", batch.body)
    })?;
    Ok(spans)
}

/// Sends message after message. What was not taken is told, and makes the exit code 1.
fn send(
    collector: &Collector,
    each: impl FnOnce(&mut dyn FnMut(Batch) -> io::Result<()>) -> io::Result<()>,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new("no runtime can be made").because(error))?;
    let (mut sent, mut rejected, mut retries) = (0, 0, 0);
    let mut failed = None;
    let read = each(&mut |batch| {
        let spans = batch.spans;
        match runtime.block_on(collector.send(batch.body)) {
            Ok(Taken { rejected: not_taken, message, retries: again }) => {
                sent += spans;
                rejected += not_taken;
                retries += again;
                if let Some(message) = message {
                    printer.note(&format!("the collector says: {message}"));
                }
                Ok(())
            }
            Err(error) => {
                failed = Some(error);
                Err(io::Error::other("the collector refuses"))
            }
        }
    });
    if let Some(error) = failed {
        let message = format!("{} sent, and then the collector refused", counted(sent, "span"));
        return Err(Failure::new(message)
            .because(error)
            .hint("ids are the same each time, so that everything can be sent again"));
    }
    read.map_err(|error| Failure::new("the cases cannot be read").because(error))?;
    printer
        .note(&format!("{} sent, {rejected} not taken, {retries} retries", counted(sent, "span")));
    Ok(if rejected > 0 { Exit::Failed(1) } else { Exit::Success })
}
