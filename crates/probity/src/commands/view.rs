//! `probity view`: the runs of the store in a browser.

mod survey;

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Stdio},
};

use probity_load::suite::usual_file;
use probity_web::{Edits, Options, Server};
use tokio::signal::unix::{SignalKind, signal};

use super::{project::settings_alone, run::real_path};
use crate::{cli::view::ViewArgs, clock, exit::Exit, failure::Failure, printer::Printer};

/// Where it listens unless told otherwise, so that links stay good.
const USUAL_PORT: u16 = 7357;

pub(super) fn run(args: &ViewArgs, printer: &Printer) -> Result<Exit, Failure> {
    let settings = settings_alone(&args.place)?;
    let surveyor = survey::surveyor(&args.place);
    let options = |port: u16| Options {
        store: PathBuf::from(&settings.store),
        address: SocketAddr::new(args.host, port),
        max_error_rate: settings.max_error_rate,
        suite: real_path(usual_file()).map(PathBuf::from),
        surveyor: surveyor.clone(),
        edits: args.allow_edit.then_some(Edits { now_ms: clock::now_ms }),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new("failed to start").because(error))?;
    let ended = runtime.block_on(async {
        let server = match args.port {
            Some(port) => listen(options(port)).await?,
            None => match Server::bind(options(USUAL_PORT)).await {
                Ok(server) => server,
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    listen(options(0)).await?
                }
                Err(error) => return Err(unheard(&options(USUAL_PORT), error)),
            },
        };
        let url = server.url();
        Printer::emit(&format!("{url}\n"))?;
        let doing = if args.allow_edit { "showing and taking notes on" } else { "showing" };
        printer.note(&format!("{doing} the runs of {}; Ctrl-C ends this", settings.store));
        if args.open {
            open(&url, printer);
        }
        serve(server).await
    });
    runtime.shutdown_background();
    ended.map(|()| Exit::Success)
}

async fn listen(options: Options) -> Result<Server, Failure> {
    Server::bind(options.clone()).await.map_err(|error| unheard(&options, error))
}

fn unheard(options: &Options, error: io::Error) -> Failure {
    Failure::new(format!("failed to listen on {}", options.address))
        .because(error)
        .hint("`--port 0` takes any port that is free")
}

/// Answers until somebody stops it.
async fn serve(server: Server) -> Result<(), Failure> {
    let failed = |error| Failure::new("failed to hear signals").because(error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    tokio::select! {
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
        ended = server.serve() => match ended {
            Ok(never) => match never {},
            Err(error) => Err(Failure::new("the server ended").because(error)),
        },
    }
}

/// Opens an address with whatever the system opens addresses with.
fn open(url: &str, printer: &Printer) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(opener);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        printer.note(&format!("`{opener}` cannot be started ({error}); open the address yourself"));
    }
}
