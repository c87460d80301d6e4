use std::time::Duration;

use probity_load::suite::BackendKind;

use super::*;

fn filled(config: &BackendConfig, request: &Request) -> Invocation {
    let surroundings = Surroundings {
        env: BTreeMap::new(),
        base: "/suite".into(),
        kill_grace: Duration::from_secs(1),
    };
    let template =
        Template::new(Tool::of(config.kind).unwrap(), config, &BTreeMap::new(), &surroundings)
            .unwrap();
    template.fill(request, &Room::new().unwrap()).unwrap()
}

fn command(args: &[&str]) -> BackendConfig {
    let command = ["tool"].iter().chain(args).map(|&arg| arg.to_owned()).collect();
    BackendConfig { command, ..BackendConfig::new("b", BackendKind::Command) }
}

fn hi() -> Request {
    Request::new(Some("be {{prompt}}".into()), "hi {{model}}")
}

#[test]
fn what_is_put_in_place_is_not_looked_at_again() {
    let mut config = command(&["--m={{model}}", "{{ system }}:{{prompt}}", "{{.Name}}", "{{"]);
    config.model = Some("{{system}}".to_owned());
    let Invocation { args, stdin } = filled(&config, &hi());
    let expected = ["--m={{system}}", "be {{prompt}}:hi {{model}}", "{{.Name}}", "{{"];
    assert_eq!((args, stdin), (expected.map(ToOwned::to_owned).to_vec(), Input::Null));
}

#[test]
fn without_a_place_the_prompt_goes_to_standard_input() {
    let Invocation { args, stdin } = filled(&command(&["-x"]), &hi());
    let joined = "be {{prompt}}\n\nhi {{model}}".to_owned();
    assert_eq!((args, stdin), (vec!["-x".to_owned()], Input::Pipe(joined)));
}

#[test]
fn a_place_and_another_transport_do_not_go_together() {
    let check = |args: &[&str], transport| {
        let config = BackendConfig { transport: Some(transport), ..command(args) };
        let surroundings =
            Surroundings { env: BTreeMap::new(), base: "/".into(), kill_grace: Duration::ZERO };
        Template::new(Tool::Command, &config, &BTreeMap::new(), &surroundings)
            .map_err(|it| it.to_string())
    };
    let message = "backend `b` has transport `stdin`, but its command has `{{prompt}}`";
    assert_eq!(check(&["{{prompt}}"], Transport::Stdin).unwrap_err(), message);
    assert!(check(&["{{prompt_file}}"], Transport::Arg).is_err());
    assert!(check(&["{{prompt}}"], Transport::Arg).is_ok());
    assert!(check(&["{{promt}}"], Transport::Arg).unwrap_err().contains("`{{prompt}}`"));
    assert!(check(&["{{model}}"], Transport::Stdin).unwrap_err().contains("no `model`"));
}

#[test]
fn each_program_is_called_with_its_flags() {
    let line = |kind, transport| {
        let model = Some("m".to_owned());
        let config = BackendConfig { model, transport, ..BackendConfig::new("b", kind) };
        filled(&config, &Request::new(Some("brief".into()), "-hi"))
    };
    let Invocation { args, stdin } = line(BackendKind::Claude, None);
    let expected = "-p --output-format json --strict-mcp-config --no-session-persistence \
                    --disable-slash-commands --model m --tools  --system-prompt brief";
    assert_eq!((args.join(" ").as_str(), stdin), (expected, Input::Pipe("-hi".to_owned())));
    let Invocation { args, stdin } = line(BackendKind::Claude, Some(Transport::Arg));
    assert_eq!((args[args.len() - 2..].join(" ").as_str(), stdin), ("-- -hi", Input::Null));
    let Invocation { args, stdin } = line(BackendKind::Codex, None);
    let expected = "exec --json --skip-git-repo-check --ephemeral --color never --sandbox \
                    read-only -m m -";
    let joined = Input::Pipe("brief\n\n-hi".to_owned());
    assert_eq!((args.join(" ").as_str(), stdin), (expected, joined));
    let Invocation { args, .. } = line(BackendKind::Copilot, None);
    let expected = "-s --no-color --no-auto-update --disable-builtin-mcps \
                    --no-custom-instructions --available-tools= --model m";
    assert_eq!(args.join(" "), expected);
    let Invocation { args, stdin } = line(BackendKind::Copilot, Some(Transport::Arg));
    assert_eq!(
        (&args[args.len() - 2..], stdin),
        (&["-p".to_owned(), "brief\n\n-hi".to_owned()][..], Input::Null)
    );
}

#[test]
fn a_server_for_codex_is_a_provider_that_does_not_retry() {
    let mut config = BackendConfig::new("b", BackendKind::Codex);
    config.base_url = Some("http://h/v1".to_owned());
    config.api_key_env = Some("MINE".to_owned());
    let Invocation { args, .. } = filled(&config, &hi());
    let expected = "model_providers.probity={name=\"probity\",base_url=\"http://h/v1\",\
                    env_key=\"MINE\",wire_api=\"responses\",request_max_retries=0,\
                    stream_max_retries=0}";
    assert!(args.iter().any(|arg| arg == expected), "{args:?}");
}
