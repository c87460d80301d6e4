//! Looking at a program without asking a model.

use std::time::Duration;

use probity_load::suite::{BackendConfig, BackendKind, Transport};
use probity_run::backend::program::Support;

use crate::lab::{LONG, Lab, command_config};

#[tokio::test]
async fn a_program_that_is_not_there_is_said_to_be_missing() {
    let mut lab = Lab::new();
    lab.env.insert("PATH".into(), lab.path("").into());
    let probe = lab.program(&BackendConfig::new("b", BackendKind::Claude)).probe(LONG).await;
    assert_eq!((probe.found, probe.version), (None, None));
    assert!(probe.notes[0].starts_with("the program `claude` is not installed"));
}

#[tokio::test]
async fn version_and_flags_are_read_once_and_nothing_is_asked() {
    let lab = Lab::new();
    let help = "echo x >> @lab@/count\n\
                case \"$*\" in\n\
                --version) echo '2.1.325 (Claude Code)' ;;\n\
                --help) echo '  -p, --print\n  --output-format <format>\n  --tools <tools...>\n  \
                --strict-mcp-config\n  --system-prompt <prompt>\n --disable-slash-commands' ;;\n\
                *) echo asked > @lab@/asked ;;\n\
                esac";
    let path = lab.script("claude", help);
    let program = lab.program(&BackendConfig::new("b", BackendKind::Claude));
    let probe = program.probe(LONG).await;
    assert_eq!(probe.found, Some(path));
    assert_eq!(probe.version.as_deref(), Some("2.1.325 (Claude Code)"));
    assert_eq!((probe.transport, probe.json), (Transport::Stdin, Support::Yes));
    assert_eq!(probe.notes, ["its help does not mention --no-session-persistence"]);
    assert!(probe.flags.contains(&("--tools".to_owned(), Support::Yes)), "{:?}", probe.flags);
    assert!(
        probe.auth_hint.as_deref().is_some_and(|it| it.starts_with("none of ANTHROPIC_API_KEY"))
    );
    assert_eq!(program.probe(LONG).await, probe);
    assert_eq!(std::fs::read_to_string(lab.path("count")).unwrap(), "x\nx\n");
    assert!(!lab.path("asked").exists());
}

#[tokio::test]
async fn a_program_that_hangs_is_given_up_each_capability_on_its_own() {
    let lab = Lab::new();
    let script =
        "case \"$*\" in *--version) exec sleep 1000 ;; 'exec --help') echo ' --json ' ;; esac";
    lab.script("codex", script);
    let program = lab.program(&BackendConfig::new("b", BackendKind::Codex));
    let probe = program.probe(Duration::from_secs(2)).await;
    assert_eq!((probe.version, probe.json), (None, Support::Yes));
    assert_eq!(probe.notes[0], "`--version`: no answer within 2 s");
}

#[tokio::test]
async fn a_command_of_ones_own_is_found_but_not_started() {
    let lab = Lab::new();
    let path = lab.script("mine", "echo asked > @lab@/asked");
    let probe = lab.program(&command_config(&["mine"])).probe(LONG).await;
    assert_eq!((probe.found, probe.json), (Some(path), Support::Unused));
    assert!(!lab.path("asked").exists());
}

#[tokio::test]
async fn what_there_is_to_log_in_with_is_named_not_shown() {
    let mut lab = Lab::new();
    lab.env.insert("GH_TOKEN".into(), "made-up-token".into());
    let probe = lab.program(&BackendConfig::new("b", BackendKind::Copilot)).probe(LONG).await;
    assert_eq!(probe.auth_hint.as_deref(), Some("the variable `GH_TOKEN` is set"));
}
