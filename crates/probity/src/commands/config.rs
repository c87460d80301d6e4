//! `probity config`: the settings that hold, and where they come from.

use std::fmt::Write as _;

use probity_load::settings::{DEFAULTS, variable};

use super::project::{self, Project, Reading};
use crate::{cli::run::ConfigCommand, exit::Exit, failure::Failure, printer::Printer};

pub(super) fn run(command: &ConfigCommand, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Default => printer.show(DEFAULTS)?,
        ConfigCommand::Show { suite, foreign, limits, place } => {
            let reading = Reading::strict(printer, *foreign);
            let project = Project::load(suite, place, project::flags(limits)?, &reading)?;
            printer.show(&render(&project))?;
        }
    }
    Ok(Exit::Success)
}

fn render(project: &Project) -> String {
    let mut text = String::new();
    for (key, value, origin) in project.resolved.iter() {
        let value = value.to_string();
        let _ = writeln!(text, "{key:<30} = {value:<22} # {origin}");
    }
    let _ = writeln!(
        text,
        "\neach can be set by a variable, such as {}",
        variable("retry.max_retries")
    );
    for backend in &project.suite.backends {
        let model = backend.model.as_deref().unwrap_or("its default model");
        let key = match &backend.api_key_env {
            // Whether it is there, never what it is.
            Some(name) if project.environment.get(name).is_some() => format!(", key in {name}"),
            Some(name) => format!(", key in {name}, which is not set"),
            None => String::new(),
        };
        let _ =
            writeln!(text, "backend {}: {} ({model}{key})", backend.name, backend.kind.as_str());
    }
    for runner in &project.suite.runners {
        let variants: Vec<&str> = runner.variants().collect();
        let variants = match variants.as_slice() {
            [] => String::new(),
            variants => format!(" with {}", variants.join(", ")),
        };
        let _ = writeln!(
            text,
            "runner {}: {} over {} on {}{variants}",
            runner.name,
            runner.kind.as_str(),
            runner.dataset.join(", "),
            runner.backends.join(", ")
        );
    }
    text
}
