//! `probity demo`: a tour on the own machine, without a model, a key or a network.
//!
//! Everything is done by the program's own commands, which are started as people would start them.
//! Only the server that they ask is scripted.

mod model;
mod server;

use std::{
    fmt::Write as _,
    fs, io,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use anstyle::Style;
use probity_load::suite::Suite;
use probity_report::plain::{folded, shell_word, wrapped};
use probity_store::Reader;

use self::server::Server;
use crate::{
    cli::demo::DemoArgs, environment::Environment, exit::Exit, failure::Failure,
    output::OutputFile, printer::Printer, program,
};

const TITLE: Style = Style::new().bold();
/// The folder that is made if none is named.
const FOLDER: &str = "probity-demo";
/// What stands for the server's port in the files of the demo.
const PORT: &str = "PORT";
const FILES: [(&str, &str); 5] = [
    ("classes.toml", include_str!("../../demo/classes.toml")),
    ("classes-cases.toml", include_str!("../../demo/classes-cases.toml")),
    ("keys.toml", include_str!("../../demo/keys.toml")),
    (SUMS, include_str!("../../demo/sums.toml")),
    ("sums.jsonl", include_str!("../../demo/sums.jsonl")),
];
/// The suite that says where the server is expected.
const SUMS: &str = "sums.toml";
/// The run is killed when so many answers have come.
const BEFORE_KILL: u64 = 8;
/// Nothing that the demo waits for takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn run(args: &DemoArgs, printer: &Printer) -> Result<Exit, Failure> {
    match args.serve {
        true => serve(args.folder.as_deref().unwrap_or(Path::new(FOLDER)), printer),
        false => tour(args.folder.as_deref(), printer),
    }
}

/// Serves an earlier demo until somebody ends it.
fn serve(folder: &Path, printer: &Printer) -> Result<Exit, Failure> {
    let port = port_of(&folder.join(SUMS))?;
    let _server = Server::start(port).map_err(|error| {
        Failure::new(format!("failed to listen on 127.0.0.1:{port}"))
            .because(error)
            .hint("another program has the port; `probity demo` takes a free one")
    })?;
    printer.note(&format!(
        "the demo's server listens on http://127.0.0.1:{port} until Ctrl-C; its suites are in `{}`",
        folder.display()
    ));
    loop {
        thread::park();
    }
}

/// The port that a suite of the demo names.
fn port_of(path: &Path) -> Result<u16, Failure> {
    let unusable = || {
        Failure::new(format!("`{}` is not a suite of the demo", path.display()))
            .hint("name the folder of an earlier demo: probity demo --serve DIR")
    };
    let text = fs::read_to_string(path).map_err(|error| unusable().because(error))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path.display().to_string().into();
    let (suite, _) = Suite::parse(&text, &name, folder, &|_| Vec::new());
    let suite = suite.ok_or_else(unusable)?;
    let url = suite.backends.iter().find_map(|it| it.base_url.as_deref());
    let address = url.and_then(|it| it.strip_prefix("http://127.0.0.1:"));
    let port = address.and_then(|it| it.split('/').next()).and_then(|it| it.parse().ok());
    port.ok_or_else(unusable)
}

/// The tour from its first act to its last.
fn tour(folder: Option<&Path>, printer: &Printer) -> Result<Exit, Failure> {
    let program = program::file()
        .map_err(|error| Failure::new("failed to find this program").because(error))?;
    let server = Server::start(0)
        .map_err(|error| Failure::new("failed to listen on 127.0.0.1").because(error))?;
    let folder = make_folder(folder)?;
    write_files(&folder, server.port())?;
    let stage = Stage { program, folder, server, printer };
    stage.begin()?;
    stage.classes()?;
    stage.keys()?;
    let first = stage.kill_and_resume()?;
    stage.regression(&first)?;
    stage.end()?;
    Ok(Exit::Success)
}

/// Makes the folder that was named, or the first one whose name is free.
fn make_folder(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let refused = |path: &Path, error| {
        let message = format!("failed to create the folder `{}`", path.display());
        Failure::new(message).because(error).hint("name a new folder: probity demo DIR")
    };
    if let Some(path) = named {
        fs::create_dir(path).map_err(|error| refused(path, error))?;
        return Ok(path.to_owned());
    }
    let mut path = PathBuf::from(FOLDER);
    for number in 2.. {
        match fs::create_dir(&path) {
            Ok(()) => break,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                path = PathBuf::from(format!("{FOLDER}-{number}"));
            }
            Err(error) => return Err(refused(&path, error)),
        }
    }
    Ok(path)
}

fn write_files(folder: &Path, port: u16) -> Result<(), Failure> {
    for (name, text) in FILES {
        let text = text.replace(PORT, &port.to_string());
        OutputFile::write(&folder.join(name), &text)?;
    }
    Ok(())
}

/// What all acts need.
struct Stage<'p> {
    program: PathBuf,
    folder: PathBuf,
    server: Server,
    printer: &'p Printer,
}

/// A command of the tour, as it is typed.
struct Typed<'a> {
    variables: &'a [(&'a str, &'a str)],
    words: &'a [&'a str],
}

impl<'a> Typed<'a> {
    const fn new(words: &'a [&'a str]) -> Self {
        Self { variables: &[], words }
    }

    fn shown(&self) -> String {
        let variables = self.variables.iter().map(|(name, value)| format!("{name}={value}"));
        let words = self.words.iter().map(|word| shell_word(word));
        let program = std::iter::once("probity".to_owned());
        variables.chain(program).chain(words).collect::<Vec<_>>().join(" ")
    }
}

impl Stage<'_> {
    fn say(&self, text: &str) -> Result<(), Failure> {
        self.printer.show_styled(text)
    }

    fn title(&self, title: &str, about: &str) -> Result<(), Failure> {
        let about = folded(about, Printer::width(), "");
        self.say(&format!("\n{TITLE}{title}{TITLE:#}\n{about}\n"))
    }

    fn begin(&self) -> Result<(), Failure> {
        let port = self.server.port();
        let folder = self.folder.display();
        let about = format!(
            "A tour in four parts. Files are written to `{folder}`; a scripted server answers on \
             127.0.0.1:{port}. No model is asked, no key is needed. Commands begin with `$`."
        );
        self.say(&format!("{}\n", folded(&about, Printer::width(), "")))
    }

    fn classes(&self) -> Result<(), Failure> {
        self.title(
            "1. Eight classes of results",
            "A wrong answer is not a refusal, and neither is a timeout. `asked-to-wait` gets 429 with \
             Retry-After first, waits as long, and passes.",
        )?;
        self.expect(&Typed::new(&["run", "classes.toml"]), 0)
    }

    fn keys(&self) -> Result<(), Failure> {
        self.title(
            "2. A wrong key",
            "One backend is refused and given up after three cases. The other one is not disturbed.",
        )?;
        let variables = &[("DEMO_KEY", "wrong")];
        self.expect(&Typed { variables, words: &["run", "keys.toml"] }, 3)
    }

    /// Kills a run half way and has it go on. Its name comes back.
    fn kill_and_resume(&self) -> Result<String, Failure> {
        self.title(
            "3. A kill, and what is left of it",
            "The run is killed with SIGKILL half way. What was answered is on disk and not asked again.",
        )?;
        let command = Typed::new(&["run", SUMS]);
        let wanted = self.server.answered() + BEFORE_KILL;
        let mut child = self.spawn(&command)?;
        let is_half_way = self.server.wait_for(wanted, PATIENCE);
        child.kill().map_err(|error| Failure::new("failed to kill the run").because(error))?;
        let status = self.wait(child)?;
        if !is_half_way || status.signal().is_none() {
            return Err(unexpected(&command, status));
        }
        self.say("  (killed: kill -9)\n")?;
        self.expect(&Typed::new(&["run", SUMS, "--resume"]), 0)?;
        let latest = Reader::open(&self.store())?.find("latest")?;
        Ok(latest.short().to_owned())
    }

    fn regression(&self, first: &str) -> Result<(), Failure> {
        self.title(
            "4. A regression",
            "A newer version of the model has forgotten how to carry. Is that a difference, or noise?",
        )?;
        self.expect(&Typed::new(&["run", SUMS, "--model", "adder-2"]), 0)?;
        self.expect(&Typed::new(&["compare", first, "latest"]), 0)
    }

    fn store(&self) -> PathBuf {
        self.folder.join(".probity/probity.db")
    }

    fn end(&self) -> Result<(), Failure> {
        let folder = shell_word(&self.folder.display().to_string());
        let mut text =
            format!("\n{TITLE}That was the tour.{TITLE:#} To look around, or to repeat it:\n");
        for (command, about) in [
            (format!("cd {folder}"), "what the commands ran on"),
            ("probity demo --serve . &".to_owned(), "the server, while commands are repeated"),
            ("probity show latest 17+25".to_owned(), "everything about one case"),
            ("probity report latest -o report.html".to_owned(), "a page for the browser"),
            ("probity init".to_owned(), "a suite of your own, in another folder"),
        ] {
            let _ = writeln!(text, "  {command:<38}{about}");
        }
        self.say(&wrapped(&text, Printer::width()))
    }

    /// Runs a command that has to end with this exit code.
    fn expect(&self, command: &Typed<'_>, code: i32) -> Result<(), Failure> {
        let child = self.spawn(command)?;
        match self.wait(child)? {
            status if status.code() == Some(code) => Ok(()),
            status => Err(unexpected(command, status)),
        }
    }

    fn wait(&self, mut child: Child) -> Result<ExitStatus, Failure> {
        let program = self.program.display();
        child.wait().map_err(|error| Failure::new(format!("lost `{program}`")).because(error))
    }

    /// Shows a command and starts it.
    fn spawn(&self, command: &Typed<'_>) -> Result<Child, Failure> {
        self.say(&format!("\n{TITLE}$ {}{TITLE:#}\n", command.shown()))?;
        let mut process = program::again().map_err(|error| self.not_started(error))?;
        process.args(["--color", self.printer.color()]);
        process.args(command.words).current_dir(&self.folder).stdin(Stdio::null());
        process.envs(command.variables.iter().copied());
        // Settings of the user are for the user's own suites.
        for name in Environment::default().names("PROBITY_")? {
            process.env_remove(name);
        }
        process.spawn().map_err(|error| self.not_started(error))
    }

    fn not_started(&self, error: io::Error) -> Failure {
        Failure::new(format!("failed to start `{}`", self.program.display())).because(error)
    }
}

fn unexpected(command: &Typed<'_>, status: ExitStatus) -> Failure {
    Failure::new(format!(
        "the demo did not go as planned: `{}` ended with {status}",
        command.shown()
    ))
    .exit(Exit::Aborted)
}
