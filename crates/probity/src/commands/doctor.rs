//! `probity doctor`: can the backends be asked?

use std::{fmt::Write as _, sync::Arc, time::Duration};

use probity_core::{checkup::Checkup, request::Request, span::Span, visible::safe};
use probity_load::{
    settings::Layer,
    suite::{BackendConfig, Suite},
};
use probity_run::{
    backend::{
        About, Ask, Backend, Wire,
        embedded::Embedded,
        http::{Client, Http, HttpProbe},
        program::{Probe, Support},
    },
    process,
};

use super::project::{Project, Reading};
use crate::{
    cli::run::DoctorArgs, exit::Exit, failure::Failure, printer::Printer, terminal::one_line,
};

/// What is asked with `--call`.
const QUESTION: &str = "Reply with the word OK.";
/// What is embedded with `--call`.
const TEXT: &str = "The quick brown fox";
/// Models that are listed by name.
const LISTED: usize = 5;

pub(super) fn run(args: &DoctorArgs, printer: &Printer) -> Result<Exit, Failure> {
    #[cfg(feature = "workers")]
    if let Some(url) = &args.workers {
        let environment = crate::environment::Environment::load(args.place.env_file.as_deref())?;
        let sound = super::workers::check(url, &args.nats, &environment, printer)?;
        return Ok(if sound { Exit::Success } else { Exit::Aborted });
    }
    let reading = Reading::strict(printer, args.foreign);
    let project = Project::load(&args.suite, &args.place, Layer::default(), &reading)?;
    let client = Client::new(1);
    let chosen: Vec<&BackendConfig> = project
        .suite
        .backends
        .iter()
        .filter(|config| args.backends.is_empty() || args.backends.contains(&config.name))
        .collect();
    if chosen.is_empty() {
        return Err(Failure::new("there is no backend to check")
            .hint("describe one under [backends.NAME] of the suite"));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("failed to start").because(error))?;
    let depth = if args.call { Depth::Call } else { Depth::Probe };
    let examination = Examination { project: &project, client: &client, depth };
    let mut sound = true;
    for config in chosen {
        let checkup = runtime.block_on(examination.of(config));
        printer.show(&shown(&checkup))?;
        sound &= checkup.is_sound();
    }
    runtime
        .block_on(process::drained(project.settings.timeouts.kill_grace + Duration::from_secs(1)));
    runtime.shutdown_background();
    Ok(if sound { Exit::Success } else { Exit::Aborted })
}

/// How far a backend is looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Nobody is asked and nothing is started.
    Look,
    /// Servers say what models they have, programs what they support.
    Probe,
    /// One real call is made, too.
    Call,
}

/// What backends are examined with.
pub(super) struct Examination<'a> {
    pub(super) project: &'a Project,
    pub(super) client: &'a Client,
    pub(super) depth: Depth,
}

impl Examination<'_> {
    /// What there is to say about a backend.
    pub(super) async fn of(&self, config: &BackendConfig) -> Checkup {
        let mut report = Report(Checkup::new(config.name.clone(), config.kind.as_str()));
        report.examine(config, self).await;
        report.0
    }
}

fn shown(checkup: &Checkup) -> String {
    let mut text = format!("{} ({})\n", safe(&checkup.backend), checkup.kind);
    for it in &checkup.findings {
        let _ = writeln!(text, "  {:<10} {}", it.name, it.text);
    }
    text
}

/// A checkup that is being made.
struct Report(Checkup);

impl Report {
    fn line(&mut self, name: &'static str, value: &str) {
        self.0.fact(name, value);
    }

    fn trouble(&mut self, name: &'static str, value: &str) {
        self.0.trouble(name, value);
    }

    async fn examine(&mut self, config: &BackendConfig, with: &Examination<'_>) {
        let Examination { project, client, depth } = *with;
        let uses = Uses::of(config, &project.suite);
        let opened = project.with_factory(client, |factory| match uses {
            Uses::Answers | Uses::Both => factory.open(config),
            Uses::Embeddings => factory.open_embedder(config),
            Uses::Reranking => factory.open_reranker(config),
        });
        let backend = match opened {
            Ok(backend) => backend,
            Err(error) => {
                let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
                return self.trouble("unusable", &format!("{error}{hint}"));
            }
        };
        if uses != Uses::Answers {
            self.line("used for", uses.as_str());
        }
        self.line("model", backend.model.as_deref().unwrap_or("its default"));
        let limit = project.settings.timeouts.probe;
        self.wire(&backend, config, (depth != Depth::Look).then_some(limit)).await;
        if !backend.not_applied.is_empty() {
            self.line("ignores", &backend.not_applied.join(", "));
        }
        if depth == Depth::Call && matches!(uses, Uses::Answers | Uses::Both) {
            self.call(&backend).await;
        }
        if depth == Depth::Call && matches!(uses, Uses::Embeddings | Uses::Both) {
            match project.with_factory(client, |factory| factory.open_embedder(config)) {
                Ok(embedder) => self.embed(&embedder).await,
                Err(error) => self.trouble("embedding", &error.to_string()),
            }
        }
    }

    /// How it is asked, and within a limit what it says of itself.
    async fn wire(&mut self, backend: &Backend, config: &BackendConfig, limit: Option<Duration>) {
        match &backend.wire {
            Wire::Http(http) => {
                self.line("address", &http.shown_url());
                if let Some(variable) = &config.api_key_env {
                    self.line("key", &format!("in {variable}"));
                }
                if let Some(limit) = limit {
                    self.server(http, &http.probe(limit).await, backend.model.as_deref());
                }
            }
            Wire::Program(program) => match limit {
                Some(limit) => self.program(&program.probe(limit).await),
                None => self.located(&program.locate()),
            },
            Wire::Function(function) => {
                self.line("file", config.file.as_deref().unwrap_or_default());
                let found = match limit {
                    Some(limit) => function.probe(limit).await,
                    None => function.locate(),
                };
                match found {
                    Ok(program) => self.line("program", &program.display().to_string()),
                    Err(why) => self.trouble("function", &one_line(&why, 300)),
                }
            }
            Wire::Embedded(model) => self.embedded(model),
            Wire::Replay(_) => self.line("answers", "from a recording, no backend is asked"),
            // Only runs with workers have it.
            Wire::Elsewhere => self.trouble("model", "it is not on this machine"),
            Wire::Echo => self.line("answers", "the prompt itself"),
        }
    }

    fn server(&mut self, http: &Http, probe: &HttpProbe, model: Option<&str>) {
        let took =
            Span(Duration::from_millis(u64::try_from(probe.latency.as_millis()).unwrap_or(0)));
        match &probe.models {
            Err(error) if error.status == Some(404) => {
                self.line("reachable", &format!("yes, {took}; it does not list its models"));
            }
            Err(error) => {
                // It answered, and not as such a server does.
                let lead = if error.status == Some(200) { "yes, but" } else { "no:" };
                self.trouble("reachable", &format!("{lead} {}", one_line(&error.to_string(), 200)));
            }
            Ok(None) => self.line("reachable", &format!("yes, {took}")),
            Ok(Some(models)) => {
                self.line("reachable", &format!("yes, {took}"));
                let is_listed = |model| models.iter().any(|it| http.is_same_model(it, model));
                let listed = model.is_none_or(is_listed);
                let names: Vec<String> =
                    models.iter().take(LISTED).map(|it| one_line(it, 60)).collect();
                let more = models.len().saturating_sub(LISTED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let names = format!("{}{more}", names.join(", "));
                match listed {
                    true => self.line("models", &names),
                    false => {
                        let model = model.map(|it| one_line(it, 60)).unwrap_or_default();
                        self.trouble("models", &format!("{names}; `{model}` is not among them"));
                    }
                }
            }
        }
    }

    fn embedded(&mut self, model: &Embedded) {
        let (load, header) = (model.load(), model.header());
        self.line("file", &load.path.display().to_string());
        let name = header.name.as_deref().unwrap_or("a model without a name");
        self.line(
            "holds",
            &format!("{}, {}", one_line(name, 60), one_line(&header.architecture, 30)),
        );
        let trained =
            header.context.map(|it| format!(", the model takes {it}")).unwrap_or_default();
        self.line("context", &format!("{} tokens{trained}", load.context));
        self.line("threads", &load.threads.to_string());
    }

    /// A program that was not started.
    fn located(&mut self, probe: &Probe) {
        self.found(probe);
        self.line("transport", probe.transport.as_str());
        if let Some(hint) = &probe.auth_hint {
            self.line("login", hint);
        }
        for note in &probe.notes {
            self.line("note", &one_line(note, 200));
        }
    }

    fn found(&mut self, probe: &Probe) {
        match &probe.found {
            Some(path) if probe.broken => {
                self.trouble("program", &format!("{}, which cannot be run", path.display()));
            }
            Some(path) => self.line("program", &path.display().to_string()),
            None => self.trouble("program", "not found"),
        }
    }

    fn program(&mut self, probe: &Probe) {
        self.found(probe);
        let Probe { found: _, broken: _, version, transport, json, flags, auth_hint, notes } =
            probe;
        self.line("version", version.as_deref().unwrap_or("unknown"));
        self.line("transport", transport.as_str());
        self.line("json", support(*json));
        let missing: Vec<&str> = flags
            .iter()
            .filter(|(_, support)| *support == Support::No)
            .map(|(flag, _)| flag.as_str())
            .collect();
        if !missing.is_empty() {
            self.trouble("flags", &format!("it does not support {}", missing.join(", ")));
        }
        if let Some(hint) = auth_hint {
            self.line("login", hint);
        }
        for note in notes {
            self.line("note", &one_line(note, 200));
        }
    }

    async fn embed(&mut self, embedder: &Backend) {
        let request = Request::new(None, TEXT);
        let ask = Ask { request: &request, repeat: 0, about: None };
        let began = std::time::Instant::now();
        let answer = embedder.embed(&ask, embedder.timeout).await;
        let took = format!("{:.1} s", began.elapsed().as_secs_f64());
        match answer {
            Ok(vector) => {
                self.line("embedding", &format!("{} numbers after {took}", vector.len()));
            }
            Err(failed) => {
                let error = one_line(&failed.error.to_string(), 300);
                self.trouble("embedding", &format!("failed after {took}: {error}"));
            }
        }
    }

    async fn call(&mut self, backend: &Backend) {
        let request = Request::new(None, QUESTION);
        let about = About::new(Arc::default());
        let ask = Ask { request: &request, repeat: 0, about: Some(&about) };
        let began = std::time::Instant::now();
        let answer = backend.ask(&ask, backend.timeout).await.map_err(|failed| failed.error);
        let took = format!("{:.1} s", began.elapsed().as_secs_f64());
        match answer {
            Ok(reply) => {
                let model = reply.model.as_deref().unwrap_or("no model named");
                let said = format!(
                    "`{}` after {took} ({})",
                    one_line(&reply.answer(), 60),
                    one_line(model, 60)
                );
                self.line("call", &said);
            }
            Err(error) => {
                self.trouble(
                    "call",
                    &format!("failed after {took}: {}", one_line(&error.to_string(), 300)),
                );
            }
        }
    }
}

/// What the runners of a suite use a backend for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Uses {
    Answers,
    Embeddings,
    Both,
    Reranking,
}

impl Uses {
    /// One that nobody names is there to answer.
    fn of(config: &BackendConfig, suite: &Suite) -> Self {
        let name = &config.name;
        let embeds = suite.runners.iter().any(|it| it.embeddings.as_ref() == Some(name));
        let answers = suite.runners.iter().any(|it| {
            it.backends.contains(name)
                || it.panel.judges.contains(name)
                || it.user.as_ref() == Some(name)
        });
        let reranks = suite.runners.iter().any(|it| it.reranker.as_ref() == Some(name));
        match (answers, embeds) {
            (false, false) if reranks => Self::Reranking,
            (_, false) => Self::Answers,
            (false, true) => Self::Embeddings,
            (true, true) => Self::Both,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::Reranking => "ranking texts",
            Self::Embeddings => "embeddings",
            Self::Both => "answers and embeddings",
        }
    }
}

fn support(support: Support) -> &'static str {
    match support {
        Support::Yes => "yes",
        Support::No => "no",
        Support::Unknown => "unknown",
        Support::Unused => "not used",
    }
}
