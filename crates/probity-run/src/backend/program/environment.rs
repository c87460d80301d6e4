//! The variables that a program sees: the usual ones, those of its kind, those the suite names.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

use probity_load::suite::BackendConfig;

use super::{ProgramError, Tool};
use crate::redact::Redactor;

/// What every program may see.
const USUAL: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "XDG_*",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// What every program may see, and what is also true in the sandbox.
const EVERYWHERE: &[&str] = &["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];

/// What kinds may see that names folders of this machine.
const FOLDERS: &[&str] = &["CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"];

/// Whether a variable says something about this machine, and nothing that is true in the sandbox.
pub(super) fn is_of_host(name: &str) -> bool {
    let usual = matches(USUAL, name) && !matches(EVERYWHERE, name);
    usual || matches(FOLDERS, name)
}

/// What a kind needs; a star stands for any end.
fn own(tool: Tool) -> &'static [&'static str] {
    match tool {
        Tool::Claude => &["ANTHROPIC_*", "CLAUDE_CODE_*", "CLAUDE_CONFIG_DIR"],
        Tool::Codex => &["OPENAI_*", "CODEX_*"],
        Tool::Copilot => &["COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST"],
        Tool::Command => &[],
    }
}

/// What would make a program believe that it runs inside another of its kind.
const NESTED: &[&str] = &[
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_SESSION*",
    "CLAUDE_CODE_CHILD_SESSION*",
    "CLAUDE_CODE_PARENT*",
    "CLAUDE_CODE_REMOTE*",
    "CLAUDE_CODE_CONTAINER*",
    "CLAUDE_CODE_TASK*",
    "CLAUDE_CODE_AGENT*",
    "CODEX_THREAD*",
    "CODEX_SANDBOX*",
    "CODEX_INTERNAL*",
    "COPILOT_AGENT*",
    "COPILOT_SESSION*",
    "COPILOT_CLI*",
];

/// What is set unless the suite lets our own value through: no colours, no updates, and
/// no retries, which happen in one place.
fn set(tool: Tool) -> &'static [(&'static str, &'static str)] {
    match tool {
        Tool::Claude => &[
            ("CLAUDE_CODE_MAX_RETRIES", "0"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ],
        Tool::Copilot => &[("COPILOT_AUTO_UPDATE", "false")],
        Tool::Codex | Tool::Command => &[],
    }
}

/// Chooses the variables, and has the redactor keep the keys among them out of texts.
pub(super) fn of(
    tool: Tool,
    config: &BackendConfig,
    all: &BTreeMap<OsString, OsString>,
    redactor: &mut Redactor,
) -> Result<BTreeMap<OsString, OsString>, ProgramError> {
    let named = |name: &str| config.env.iter().any(|it| it == name);
    let mut env: BTreeMap<OsString, OsString> = all
        .iter()
        .filter(|(name, _)| {
            let name = name.to_str().unwrap_or("");
            let allowed =
                matches(USUAL, name) || (matches(own(tool), name) && !matches(NESTED, name));
            allowed || named(name)
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let fixed = [("TERM", "dumb"), ("NO_COLOR", "1")];
    for (name, value) in fixed.iter().chain(set(tool)) {
        if !named(name) {
            env.insert(name.into(), value.into());
        }
    }
    tell_key(tool, config, all, &mut env)?;
    tell_server(tool, config, &mut env);
    for (name, value) in &env {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        match () {
            () if config.api_key_env.as_deref() == Some(name) => redactor.add_key(value),
            () if named(name) => redactor.add_chosen_variable(name, value),
            () => redactor.add_variable(name, value),
        }
    }
    Ok(env)
}

/// The usual variables and those that are named, for a program that is no backend.
pub(crate) fn plain(
    all: &BTreeMap<OsString, OsString>,
    named: &[String],
) -> BTreeMap<OsString, OsString> {
    let allowed = |name: &str| matches(USUAL, name) || named.iter().any(|it| it == name);
    let seen = all.iter().filter(|(name, _)| allowed(name.to_str().unwrap_or("")));
    let seen = seen.map(|(name, value)| (name.clone(), value.clone()));
    let fixed = [("TERM", "dumb"), ("NO_COLOR", "1")];
    let fixed = fixed.into_iter().map(|(name, value)| (name.into(), value.into()));
    fixed.chain(seen).collect()
}

/// Hands over the key under the name that the program looks for.
fn tell_key(
    tool: Tool,
    config: &BackendConfig,
    all: &BTreeMap<OsString, OsString>,
    env: &mut BTreeMap<OsString, OsString>,
) -> Result<(), ProgramError> {
    let Some(variable) = &config.api_key_env else { return Ok(()) };
    let Some(key) = all.get(OsStr::new(variable)).filter(|it| !it.is_empty()) else {
        let (name, variable) = (config.name.clone(), variable.clone());
        return Err(ProgramError::NoKey { name, variable });
    };
    let name = match tool {
        Tool::Claude => "ANTHROPIC_API_KEY",
        // A provider of our own names the variable itself.
        Tool::Codex if config.base_url.is_none() => "CODEX_API_KEY",
        Tool::Copilot if config.base_url.is_some() => "COPILOT_PROVIDER_API_KEY",
        Tool::Copilot => "COPILOT_GITHUB_TOKEN",
        Tool::Codex | Tool::Command => variable,
    };
    env.insert(name.into(), key.clone());
    Ok(())
}

/// Names the server, where that is done by a variable.
fn tell_server(tool: Tool, config: &BackendConfig, env: &mut BTreeMap<OsString, OsString>) {
    let Some(url) = &config.base_url else { return };
    if tool == Tool::Claude {
        env.insert("ANTHROPIC_BASE_URL".into(), url.into());
    }
    if tool == Tool::Copilot {
        env.insert("COPILOT_PROVIDER_BASE_URL".into(), url.into());
        if let Some(model) = &config.model {
            env.insert("COPILOT_MODEL".into(), model.into());
        }
    }
}

fn matches(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *pattern,
    })
}

#[cfg(test)]
mod tests {
    use probity_load::suite::BackendKind;

    use super::*;

    fn seen(config: &BackendConfig, all: &[(&str, &str)]) -> Vec<String> {
        let all = all.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let env =
            of(Tool::of(config.kind).unwrap(), config, &all, &mut Redactor::default()).unwrap();
        env.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect()
    }

    #[test]
    fn each_kind_sees_its_own_variables_only() {
        let all = [
            ("ANTHROPIC_API_KEY", "a"),
            ("CLAUDECODE", "1"),
            ("CLAUDE_CODE_ENTRYPOINT", "cli"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "o"),
            ("OPENAI_API_KEY", "b"),
            ("GH_TOKEN", "c"),
            ("LC_ALL", "C"),
            ("LD_PRELOAD", "evil"),
            ("PATH", "/bin"),
            ("TERM", "xterm"),
        ];
        let claude = seen(&BackendConfig::new("c", BackendKind::Claude), &all);
        assert_eq!(
            claude,
            [
                "ANTHROPIC_API_KEY=a",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
                "CLAUDE_CODE_MAX_RETRIES=0",
                "CLAUDE_CODE_OAUTH_TOKEN=o",
                "DISABLE_AUTOUPDATER=1",
                "LC_ALL=C",
                "NO_COLOR=1",
                "PATH=/bin",
                "TERM=dumb"
            ]
        );
        let mut command = BackendConfig::new("c", BackendKind::Command);
        assert_eq!(seen(&command, &all), ["LC_ALL=C", "NO_COLOR=1", "PATH=/bin", "TERM=dumb"]);
        command.env = vec!["OPENAI_API_KEY".to_owned(), "TERM".to_owned()];
        let expected = ["LC_ALL=C", "NO_COLOR=1", "OPENAI_API_KEY=b", "PATH=/bin", "TERM=xterm"];
        assert_eq!(seen(&command, &all), expected);
    }

    #[test]
    fn a_key_goes_by_the_name_that_the_program_knows() {
        let all = [("MINE", "secret")];
        let mut config = BackendConfig::new("c", BackendKind::Claude);
        config.api_key_env = Some("MINE".to_owned());
        config.base_url = Some("http://h".to_owned());
        let claude = seen(&config, &all);
        assert!(claude.contains(&"ANTHROPIC_API_KEY=secret".to_owned()), "{claude:?}");
        assert!(claude.contains(&"ANTHROPIC_BASE_URL=http://h".to_owned()), "{claude:?}");
        config.api_key_env = Some("THINE".to_owned());
        let missing = of(Tool::Claude, &config, &BTreeMap::new(), &mut Redactor::default());
        let (name, variable) = ("c".to_owned(), "THINE".to_owned());
        assert_eq!(missing, Err(ProgramError::NoKey { name, variable }));
        let told = |kind, base_url: Option<&str>| {
            let config = BackendConfig {
                api_key_env: Some("MINE".to_owned()),
                base_url: base_url.map(ToOwned::to_owned),
                model: Some("m-1".to_owned()),
                ..BackendConfig::new("c", kind)
            };
            let mut seen = seen(&config, &all);
            seen.retain(|it| ["secret", "http:", "m-1"].iter().any(|what| it.contains(what)));
            seen
        };
        let server = Some("http://h");
        assert_eq!(told(BackendKind::Claude, None), ["ANTHROPIC_API_KEY=secret"]);
        assert_eq!(told(BackendKind::Codex, None), ["CODEX_API_KEY=secret"]);
        assert_eq!(told(BackendKind::Codex, server), ["MINE=secret"]);
        assert_eq!(told(BackendKind::Copilot, None), ["COPILOT_GITHUB_TOKEN=secret"]);
        let copilot = [
            "COPILOT_MODEL=m-1",
            "COPILOT_PROVIDER_API_KEY=secret",
            "COPILOT_PROVIDER_BASE_URL=http://h",
        ];
        assert_eq!(told(BackendKind::Copilot, server), copilot);
        assert_eq!(told(BackendKind::Command, None), ["MINE=secret"]);
    }
}
