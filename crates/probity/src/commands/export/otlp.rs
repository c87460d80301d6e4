//! Runs for collectors of OpenTelemetry: written to a file, or sent.

use std::io::{self, Write as _};

use probity_report::otlp::{self, Batch, Encoding, Options, Texts, Traces};
use probity_run::backend::collector::{self, Collector, CollectorError, Destination, Taken};
use probity_store::StoredCases;

use crate::{
    cli::export::{EncodingName, ExportArgs},
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
    let collector = collector(args)?;
    let view = reader.view(&run, settings.max_error_rate)?;
    let cases = StoredCases::of(&reader, &run)?;
    let options = Options {
        texts: if args.no_texts { Texts::LeftOut } else { Texts::Told },
        traces: if args.trace_per_case { Traces::Case } else { Traces::Run },
        encoding: collector.as_ref().map_or(Encoding::Json, |it| it.1),
    };
    let each =
        |take: &mut dyn FnMut(Batch) -> io::Result<()>| otlp::write(&view, &cases, options, take);
    match (collector, &args.output) {
        (Some((collector, _)), _) => send(&collector, each, printer),
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

/// The collector that is sent to, and in which encoding; none if nothing is sent.
fn collector(args: &ExportArgs) -> Result<Option<(Collector, Encoding)>, Failure> {
    if args.to.is_none() && !args.send {
        return Ok(None);
    }
    let environment = Environment::load(None)?;
    let encoding = encoding(args, &environment)?;
    let (address, is_whole, named) = match &args.to {
        Some(to) => (to.clone(), false, args.headers_env.clone()),
        None => endpoint(&environment)?,
    };
    let headers = match &named {
        None => String::new(),
        Some(name) => environment.get(name).ok_or_else(|| {
            Failure::new(format!("the variable `{name}` is not set"))
                .hint("it holds headers as NAME=VALUE,NAME=VALUE")
        })?,
    };
    let on_the_wire = match encoding {
        Encoding::Json => collector::Encoding::Json,
        Encoding::Protobuf => collector::Encoding::Protobuf,
    };
    let to = Destination { address, is_whole, headers, encoding: on_the_wire };
    let collector = Collector::new(&to).map_err(|error| match (&error, &named) {
        (CollectorError::Header(_), Some(name)) => {
            Failure::new(format!("the variable `{name}` cannot be used")).because(error)
        }
        (_, _) => Failure::new("the collector cannot be used").because(error),
    })?;
    Ok(Some((collector, encoding)))
}

/// Where the variables of OpenTelemetry say that traces go, whether that is the whole address, and which variable has headers.
fn endpoint(environment: &Environment) -> Result<(String, bool, Option<String>), Failure> {
    let of = |signal: &str, what: &str| {
        let name = format!("OTEL_EXPORTER_OTLP_{signal}{what}");
        environment.get(&name).filter(|it| !it.is_empty()).map(|value| (name, value))
    };
    let headers = of("TRACES_", "HEADERS").or_else(|| of("", "HEADERS")).map(|it| it.0);
    // The address of a signal is taken as it is, and only the common one is completed.
    match (of("TRACES_", "ENDPOINT"), of("", "ENDPOINT")) {
        (Some((_, address)), _) => Ok((address, true, headers)),
        (None, Some((_, address))) => Ok((address, false, headers)),
        (None, None) => Err(Failure::new("`OTEL_EXPORTER_OTLP_ENDPOINT` is not set")
            .hint("`--to URL` names a collector without it")),
    }
}

/// The encoding that is asked for, by an option or by the variables of OpenTelemetry.
fn encoding(args: &ExportArgs, environment: &Environment) -> Result<Encoding, Failure> {
    match args.encoding {
        Some(EncodingName::Protobuf) => return Ok(Encoding::Protobuf),
        Some(EncodingName::Json) => return Ok(Encoding::Json),
        None => {}
    }
    let names = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
    let found = names.iter().find_map(|name| {
        environment.get(name).filter(|it| !it.is_empty()).map(|value| (*name, value))
    });
    let Some((name, protocol)) = found else { return Ok(Encoding::Protobuf) };
    match protocol.as_str() {
        "http/protobuf" => Ok(Encoding::Protobuf),
        "http/json" => Ok(Encoding::Json),
        other => Err(Failure::new(format!("`{name}` is `{other}`"))
            .hint("OTLP is sent over HTTP: `http/protobuf` or `http/json`, or give `--encoding`")),
    }
}

fn write(
    each: impl FnOnce(&mut dyn FnMut(Batch) -> io::Result<()>) -> io::Result<()>,
    out: &mut dyn io::Write,
) -> io::Result<usize> {
    let mut spans = 0;
    each(&mut |batch| {
        spans += batch.spans;
        out.write_all(&batch.body)?;
        out.write_all(b"\n")
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
    let (mut sent, mut all) = (0, Taken::default());
    let mut failed = None;
    let read = each(&mut |batch| {
        let spans = batch.spans;
        match runtime.block_on(collector.send(batch.body)) {
            Ok(taken) => {
                sent += spans;
                all.add(&taken);
                if let Some(message) = taken.message {
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
    let Taken { rejected, retries, .. } = all;
    printer
        .note(&format!("{} sent, {rejected} not taken, {retries} retries", counted(sent, "span")));
    Ok(if rejected > 0 { Exit::Failed(1) } else { Exit::Success })
}
