//! What could be asked from here, and the question which of it should be.

use std::{
    fmt::Write as _,
    io::{self, BufRead, IsTerminal as _, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use probity_load::suite::BackendKind;
use probity_report::plain::shell_word;
use probity_run::backend::{
    found::{self, LocalServer},
    http::Client,
};

use super::backend::{BackendChoice, InvalidBackend};
use crate::{environment::Environment, failure::Failure, terminal::one_line};

/// How long a local server may take to list its models.
const LIMIT: Duration = Duration::from_millis(400);
/// Models of a server that are offered.
const MODELS: usize = 5;
/// The names of a configuration of promptfoo that can be imported.
const PROMPTFOO: [&str; 3] =
    ["promptfooconfig.yaml", "promptfooconfig.yml", "promptfooconfig.json"];

/// A backend that could be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// A server that runs, and one of its models.
    Server { kind: BackendKind, model: String, url: String },
    /// A service whose key is in this variable.
    Key { kind: BackendKind, variable: &'static str },
    /// A program that is installed.
    Program(BackendKind),
}

/// What the user wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// The suite as it is.
    Nothing,
    /// This backend.
    Backend(BackendChoice),
    /// The configuration of another tool instead.
    Import(PathBuf),
}

/// What there is on this machine, those that cost nothing first.
pub(super) fn look() -> Result<Vec<Offer>, Failure> {
    let client = Client::new(1);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("failed to start").because(error))?;
    let variable = |name: &str| Environment::of_process(name);
    let servers = runtime.block_on(found::servers(&client, variable, LIMIT));
    let path = std::env::var_os("PATH");
    let programs = found::programs(path.as_deref());
    Ok(servers
        .into_iter()
        .flat_map(of_server)
        .chain(programs.into_iter().map(Offer::Program))
        .chain(
            found::keys(variable).into_iter().map(|(kind, variable)| Offer::Key { kind, variable }),
        )
        .collect())
}

/// A configuration of promptfoo in a folder.
pub(super) fn promptfoo_in(folder: &Path) -> Option<PathBuf> {
    PROMPTFOO.into_iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

fn of_server(server: LocalServer) -> impl Iterator<Item = Offer> {
    let LocalServer { kind, url, models } = server;
    models.into_iter().take(MODELS).map(move |model| Offer::Server {
        kind,
        model,
        url: url.clone(),
    })
}

impl Offer {
    /// In words.
    fn shown(&self) -> String {
        match self {
            Self::Server { kind, model, url } => {
                format!("{}, model {}, at {url}", kind.as_str(), one_line(model, 60))
            }
            Self::Key { kind, variable } => {
                format!("{}, with the key in {variable}", kind.as_str())
            }
            Self::Program(kind) => format!("{}, the program", kind.as_str()),
        }
    }

    /// The backend that it is; a service is asked for this model.
    fn choice(&self, model: &str) -> Result<BackendChoice, InvalidBackend> {
        match self {
            Self::Server { kind, model, .. } => BackendChoice::new(*kind, Some(model), None),
            Self::Key { kind, .. } => BackendChoice::new(*kind, Some(model), None),
            Self::Program(kind) => BackendChoice::new(*kind, None, None),
        }
    }

    /// As `--backend` has it; none if it would be read as something else, such as an address.
    fn option(&self) -> Option<String> {
        let model = "MODEL";
        let option = match self {
            Self::Server { kind, model, .. } => format!("{}:{model}", kind.as_str()),
            Self::Key { kind, .. } => format!("{}:{model}", kind.as_str()),
            Self::Program(kind) => kind.as_str().to_owned(),
        };
        let choice = self.choice(model).ok()?;
        // What is cut when it is shown would name another model.
        let is_whole = one_line(&option, 80) == option;
        (is_whole && option.parse().ok() == Some(choice)).then_some(option)
    }
}

/// Whether somebody can be asked.
pub(super) fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// What was found, for those who cannot be asked.
pub(super) fn listed(offers: &[Offer], promptfoo: Option<&Path>) -> String {
    let mut text = String::new();
    let options: Vec<_> = offers.iter().filter_map(|it| Some((it, it.option()?))).collect();
    if !options.is_empty() {
        text.push_str("found here; to ask one of them, begin again with --force and:\n");
    }
    for (offer, option) in options {
        let option = shell_word(&option);
        let _ = writeln!(text, "  --backend {option:<32} {}", offer.shown());
    }
    if let Some(path) = promptfoo {
        let path = path.display().to_string();
        let word = shell_word(&path);
        let _ = writeln!(text, "`{path}` is here: `probity import -- {word}` carries it over");
    }
    text
}

/// Asks which of the offers it should be. Whoever leaves gets the suite as it is.
pub(super) fn ask(
    offers: &[Offer],
    promptfoo: Option<&Path>,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> io::Result<Wish> {
    if let Some(path) = promptfoo {
        let question = format!("`{}` is here. Import it instead? [Y/n] ", path.display());
        if matches!(answer(&question, input, out)?.as_deref(), Some("" | "y" | "Y" | "yes")) {
            return Ok(Wish::Import(path.to_owned()));
        }
    }
    if offers.is_empty() {
        return Ok(Wish::Nothing);
    }
    writeln!(out, "What should the suite ask?")?;
    for (at, offer) in offers.iter().enumerate() {
        writeln!(out, "  {:>2}  {}", at + 1, offer.shown())?;
    }
    let last = offers.len() + 1;
    writeln!(out, "  {last:>2}  nobody yet: prompts come back as answers, without a model")?;
    loop {
        let Some(words) = answer("number [1]: ", input, out)? else { return Ok(Wish::Nothing) };
        let number = if words.is_empty() { Ok(1) } else { words.parse::<usize>() };
        match number {
            Ok(number) if number == last => return Ok(Wish::Nothing),
            Ok(number) if (1..last).contains(&number) => {
                return choose(&offers[number - 1], input, out);
            }
            Ok(_) | Err(_) => writeln!(out, "a number from 1 to {last}, please")?,
        }
    }
}

/// A service is asked for a model, which its key does not say.
fn choose(offer: &Offer, input: &mut dyn BufRead, out: &mut dyn Write) -> io::Result<Wish> {
    let model = match offer {
        Offer::Key { kind, .. } => {
            let question = format!("model of {}: ", kind.as_str());
            answer(&question, input, out)?.unwrap_or_default()
        }
        Offer::Server { .. } | Offer::Program(_) => String::new(),
    };
    match offer.choice(&model) {
        Ok(choice) => Ok(Wish::Backend(choice)),
        Err(error) => {
            writeln!(out, "{error}")?;
            Ok(Wish::Nothing)
        }
    }
}

/// What somebody types; none if they left.
fn answer(
    question: &str,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> io::Result<Option<String>> {
    write!(out, "{question}")?;
    out.flush()?;
    let mut line = String::new();
    match input.read_line(&mut line)? {
        0 => Ok(None),
        _ => Ok(Some(line.trim().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers() -> Vec<Offer> {
        let url = "http://127.0.0.1:11434".to_owned();
        vec![
            Offer::Server { kind: BackendKind::Ollama, model: "llama3.2".to_owned(), url },
            Offer::Program(BackendKind::Claude),
            Offer::Key { kind: BackendKind::Groq, variable: "GROQ_API_KEY" },
        ]
    }

    /// What a server says of its models is not trusted.
    #[test]
    fn a_model_is_a_name_and_nothing_else() {
        let of = |model: &str| Offer::Server {
            kind: BackendKind::Ollama,
            model: model.to_owned(),
            url: "http://127.0.0.1:11434".to_owned(),
        };
        let strange = of("m@http://host/v1");
        let mut out = Vec::new();
        let wish = choose(&strange, &mut "".as_bytes(), &mut out).unwrap();
        let expected = BackendChoice::new(BackendKind::Ollama, Some("m@http://host/v1"), None);
        assert_eq!(wish, Wish::Backend(expected.unwrap()));
        assert_eq!(listed(&[strange], None), "");
        let text = listed(&[of("m; reboot")], None);
        assert!(text.contains("  --backend 'ollama:m; reboot' "), "{text}");
    }

    fn asked(typed: &str, promptfoo: Option<&Path>) -> (Wish, String) {
        let mut out = Vec::new();
        let wish = ask(&offers(), promptfoo, &mut typed.as_bytes(), &mut out).unwrap();
        (wish, String::from_utf8(out).unwrap())
    }

    fn backend(text: &str) -> Wish {
        Wish::Backend(text.parse().unwrap())
    }

    #[test]
    fn the_first_offer_is_taken_unless_another_is_named() {
        let (wish, shown) = asked("\n", None);
        assert_eq!(wish, backend("ollama:llama3.2"));
        insta::assert_snapshot!(shown.trim_end(), @"
        What should the suite ask?
           1  ollama, model llama3.2, at http://127.0.0.1:11434
           2  claude, the program
           3  groq, with the key in GROQ_API_KEY
           4  nobody yet: prompts come back as answers, without a model
        number [1]:
        ");
        assert_eq!(asked("nine\n2\n", None).0, backend("claude"));
        assert_eq!(asked("3\nsome-model\n", None).0, backend("groq:some-model"));
        assert_eq!(asked("4\n", None).0, Wish::Nothing);
        // Ctrl-D, and a service without a model.
        assert_eq!(asked("", None).0, Wish::Nothing);
        assert_eq!(asked("3\n\n", None).0, Wish::Nothing);
    }

    #[test]
    fn an_import_is_offered_first() {
        let path = Path::new("promptfooconfig.yaml");
        assert_eq!(asked("\n", Some(path)).0, Wish::Import(path.to_owned()));
        assert_eq!(asked("n\n2\n", Some(path)).0, backend("claude"));
    }

    #[test]
    fn what_was_found_is_listed_with_its_option() {
        insta::assert_snapshot!(listed(&offers(), Some(Path::new("promptfooconfig.yaml"))), @"
        found here; to ask one of them, begin again with --force and:
          --backend ollama:llama3.2                  ollama, model llama3.2, at http://127.0.0.1:11434
          --backend claude                           claude, the program
          --backend groq:MODEL                       groq, with the key in GROQ_API_KEY
        `promptfooconfig.yaml` is here: `probity import -- promptfooconfig.yaml` carries it over
        ");
    }
}
