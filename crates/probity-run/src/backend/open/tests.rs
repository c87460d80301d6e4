use std::sync::LazyLock;

use probity_load::settings::Resolved;

use super::*;

static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);

fn open(config: &BackendConfig, variables: &[(&str, &str)]) -> Result<Backend, String> {
    open_with(config, variables, None)
}

/// The same, with prices of a user's own.
fn open_with(
    config: &BackendConfig,
    variables: &[(&str, &str)],
    prices: Option<&str>,
) -> Result<Backend, String> {
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let factory = BackendFactory {
        client: &Client::new(1),
        variables: &variables,
        settings: &Resolved::of([]).settings(),
        rules: &RULES,
        prices: &Prices::with(prices).unwrap(),
        folder: Path::new("."),
        callables: &Callables::default(),
    };
    factory.open(config).map_err(|error| error.to_string())
}

fn config(kind: BackendKind) -> BackendConfig {
    BackendConfig { model: Some("gpt-4o-mini".to_owned()), ..BackendConfig::new("b", kind) }
}

fn url(backend: &Backend) -> &str {
    match &backend.wire {
        Wire::Http(http) => http.url(),
        Wire::Echo
        | Wire::Program(_)
        | Wire::Function(_)
        | Wire::Embedded(_)
        | Wire::Elsewhere
        | Wire::Replay(_)
        | Wire::Scripted(_) => {
            unreachable!("asked over HTTP")
        }
    }
}

#[test]
fn a_missing_key_is_named() {
    let error = open(&config(BackendKind::Openai), &[]).unwrap_err();
    assert_eq!(error, "backend `b` needs a key in the variable `OPENAI_API_KEY`, which is not set");
}

#[test]
fn a_server_of_ones_own_gets_no_key_and_has_no_list_price() {
    let local = BackendConfig {
        base_url: Some("http://127.0.0.1:1/v1".to_owned()),
        ..config(BackendKind::Openai)
    };
    let backend = open(&local, &[("OPENAI_API_KEY", "sk-secret-key")]).unwrap();
    assert_eq!((url(&backend), backend.price), ("http://127.0.0.1:1/v1/chat/completions", None));
    let vendor =
        open(&config(BackendKind::Openai), &[("OPENAI_API_KEY", "sk-secret-key")]).unwrap();
    assert_eq!(vendor.price.map(|price| price.input), Some(0.15));
    assert!(!format!("{vendor:?}").contains("sk-secret-key"));
}

#[test]
fn a_key_goes_to_nobody_who_only_looks_like_the_vendor() {
    for url in [
        "http://127.0.0.1:1/proxy/https://api.openai.com/v1",
        "http://127.0.0.1:1/v1?x=://api.openai.com",
        "http://api.openai.com@127.0.0.1:1/v1",
        "http://api.openai.com/v1",
        "https://api.openai.com.example/v1",
    ] {
        let config =
            BackendConfig { base_url: Some(url.to_owned()), ..config(BackendKind::Openai) };
        // Whoever is to get the key cannot be asked without one.
        let backend = open(&config, &[]).unwrap();
        assert_eq!(backend.price, None, "{url}");
    }
}

#[test]
fn every_service_wants_the_key_that_its_vendor_names() {
    let services = [
        (BackendKind::Anthropic, "ANTHROPIC_API_KEY"),
        (BackendKind::Openrouter, "OPENROUTER_API_KEY"),
        (BackendKind::Groq, "GROQ_API_KEY"),
        (BackendKind::Mistral, "MISTRAL_API_KEY"),
        (BackendKind::Deepseek, "DEEPSEEK_API_KEY"),
        (BackendKind::Together, "TOGETHER_API_KEY"),
        (BackendKind::Fireworks, "FIREWORKS_API_KEY"),
        (BackendKind::Xai, "XAI_API_KEY"),
        (BackendKind::Cerebras, "CEREBRAS_API_KEY"),
        (BackendKind::Perplexity, "PERPLEXITY_API_KEY"),
        (BackendKind::Nvidia, "NVIDIA_API_KEY"),
        (BackendKind::GithubModels, "GITHUB_TOKEN"),
    ];
    for (kind, variable) in services {
        let missing = open(&config(kind), &[]).unwrap_err();
        assert!(missing.contains(&format!("`{variable}`")), "{missing}");
        let opened = open(&config(kind), &[(variable, "sk-secret-key")]).unwrap();
        assert!(url(&opened).starts_with("https://"), "{}", url(&opened));
        assert!(!format!("{opened:?}").contains("sk-secret-key"));
    }
    let azure = open(&config(BackendKind::Azure), &[]).unwrap_err();
    assert!(azure.contains("`AZURE_OPENAI_ENDPOINT`"), "{azure}");
    let azure = [
        ("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com/"),
        ("AZURE_OPENAI_API_KEY", "secret-key"),
    ];
    assert!(open(&config(BackendKind::Azure), &azure[..1]).is_err(), "it wants a key");
    assert!(open(&config(BackendKind::Azure), &azure).is_ok());
    let other = open(&config(BackendKind::GithubModels), &[("GH_TOKEN", "gh-secret")]);
    assert_eq!(url(&other.unwrap()), "https://models.github.ai/inference/chat/completions");
}

#[test]
fn aws_takes_a_key_before_credentials_and_only_at_home() {
    let bedrock = config(BackendKind::Bedrock);
    let all = [
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "a-secret-key"),
        ("AWS_BEARER_TOKEN_BEDROCK", "a-bearer-token"),
    ];
    let shown = |config: &BackendConfig, variables: &[(&str, &str)]| {
        let shown = format!("{:?}", open(config, variables).unwrap());
        let secrets = ["AKIDEXAMPLE", "a-secret-key", "a-bearer-token"];
        assert!(!secrets.iter().any(|it| shown.contains(it)), "{shown}");
        (shown.contains("Signer(bedrock in "), shown.contains("\"authorization\""))
    };
    assert_eq!(shown(&bedrock, &all), (false, true));
    assert_eq!(shown(&bedrock, &all[..3]), (true, false));
    let named =
        BackendConfig { api_key_env: Some("AWS_SECRET_ACCESS_KEY".to_owned()), ..bedrock.clone() };
    assert_eq!(shown(&named, &all), (true, false));
    let elsewhere =
        BackendConfig { base_url: Some("https://h.example".to_owned()), ..bedrock.clone() };
    assert_eq!(shown(&elsewhere, &all), (false, false));
    let paris = "https://bedrock-runtime.eu-west-3.amazonaws.com";
    let there = BackendConfig { base_url: Some(paris.to_owned()), ..bedrock };
    let opened = format!("{:?}", open(&there, &all[..3]).unwrap());
    assert!(opened.contains("Signer(bedrock in eu-west-3)"), "{opened}");
}

#[test]
fn every_kind_that_embeds_has_a_dialect_for_it() {
    for kind in BackendKind::ALL.into_iter().filter(|it| it.way() == Way::Server) {
        assert_eq!(kind.embeds(), Service::of(kind).embeddings.is_some(), "{kind:?}");
    }
}

#[test]
fn addresses_come_from_where_people_put_them() {
    let at =
        |kind, variables: &[(&str, &str)]| url(&open(&config(kind), variables).unwrap()).to_owned();
    assert_eq!(at(BackendKind::Ollama, &[]), "http://127.0.0.1:11434/api/chat");
    assert_eq!(at(BackendKind::Ollama, &[("OLLAMA_HOST", "h:1")]), "http://h:1/api/chat");
    let anywhere = at(BackendKind::Ollama, &[("OLLAMA_HOST", "0.0.0.0")]);
    assert_eq!(anywhere, "http://127.0.0.1:11434/api/chat");
    assert_eq!(at(BackendKind::Vllm, &[]), "http://127.0.0.1:8000/v1/chat/completions");
    let bad =
        BackendConfig { base_url: Some("ftp://u:p@h".to_owned()), ..config(BackendKind::Openai) };
    let error = open(&bad, &[]).unwrap_err();
    assert_eq!(error, "`ftp://[redacted]@h` of backend `b` is not the URL of a server");
}

#[test]
fn what_is_read_and_handed_over_makes_another_call() {
    let program = BackendConfig {
        command: vec!["cat".to_owned()],
        env: vec!["MODE".to_owned()],
        ..BackendConfig::new("b", BackendKind::Command)
    };
    let pointed = |pointer: &str| BackendConfig {
        output: Some(Output::Json(pointer.to_owned())),
        ..program.clone()
    };
    let lines = BackendConfig { output: Some(Output::Jsonl("/a".to_owned())), ..program.clone() };
    let server = BackendConfig {
        base_url: Some("http://h/v1".to_owned()),
        headers_env: [("x-beta".to_owned(), "BETA".to_owned())].into(),
        ..config(BackendKind::Openai)
    };
    let of = |config: &BackendConfig, variables: &[(&str, &str)]| {
        open(config, variables).unwrap().parameters
    };
    let all = [
        of(&program, &[]),
        of(&program, &[("MODE", "")]),
        of(&program, &[("MODE", "fast-mode")]),
        of(&pointed("/a"), &[]),
        of(&pointed("/b"), &[]),
        of(&lines, &[]),
        of(&server, &[("BETA", "beta-one")]),
        of(&server, &[("BETA", "beta-two")]),
    ];
    let different: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len(), "{all:#?}");
    assert!(all.iter().all(|it| !it.contains("beta-") && !it.contains("fast")), "{all:#?}");
}

#[test]
fn a_server_without_an_address_cannot_be_opened() {
    let error = open(&config(BackendKind::Http), &[]).unwrap_err();
    assert_eq!(error, "backend `b` needs a `url`");
}

const KEY: &str = "sk-secret-key";

/// A kind of server with what it takes to find it, where it answers then, and its section in the file of prices.
type Found = (BackendKind, &'static [(&'static str, &'static str)], &'static str, &'static str);

const SERVICES: [Found; 24] = [
    (
        BackendKind::Openai,
        &[("OPENAI_API_KEY", KEY)],
        "https://api.openai.com/v1/chat/completions",
        "openai",
    ),
    (
        BackendKind::OpenaiResponses,
        &[("OPENAI_API_KEY", KEY)],
        "https://api.openai.com/v1/responses",
        "openai",
    ),
    (
        BackendKind::Azure,
        &[("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com"), ("AZURE_OPENAI_API_KEY", KEY)],
        "https://me.openai.azure.com/openai/deployments/gpt-4o-mini/chat/completions?api-version=2024-10-21",
        "azure",
    ),
    (
        BackendKind::Anthropic,
        &[("ANTHROPIC_API_KEY", KEY)],
        "https://api.anthropic.com/v1/messages",
        "anthropic",
    ),
    (
        BackendKind::Gemini,
        &[("GEMINI_API_KEY", KEY)],
        "https://generativelanguage.googleapis.com/v1beta/models/gpt-4o-mini:generateContent",
        "gemini",
    ),
    (
        BackendKind::Vertex,
        &[("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_OAUTH_ACCESS_TOKEN", KEY)],
        "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/gpt-4o-mini:generateContent",
        "vertex",
    ),
    (
        BackendKind::VertexAnthropic,
        &[
            ("GOOGLE_CLOUD_PROJECT", "p"),
            ("GOOGLE_CLOUD_LOCATION", "us-east5"),
            ("CLOUDSDK_AUTH_ACCESS_TOKEN", KEY),
        ],
        "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models/gpt-4o-mini:rawPredict",
        "vertex",
    ),
    (
        BackendKind::Bedrock,
        &[("AWS_DEFAULT_REGION", "eu-west-1"), ("AWS_BEARER_TOKEN_BEDROCK", KEY)],
        "https://bedrock-runtime.eu-west-1.amazonaws.com/model/gpt-4o-mini/converse",
        "bedrock",
    ),
    (BackendKind::Ollama, &[], "http://127.0.0.1:11434/api/chat", ""),
    (BackendKind::Vllm, &[], "http://127.0.0.1:8000/v1/chat/completions", ""),
    (BackendKind::Mlx, &[], "http://127.0.0.1:8080/v1/chat/completions", ""),
    (BackendKind::Lmstudio, &[], "http://127.0.0.1:1234/v1/chat/completions", ""),
    (BackendKind::Llamacpp, &[], "http://127.0.0.1:8080/v1/chat/completions", ""),
    (
        BackendKind::Openrouter,
        &[("OPENROUTER_API_KEY", KEY)],
        "https://openrouter.ai/api/v1/chat/completions",
        "openrouter",
    ),
    (
        BackendKind::Groq,
        &[("GROQ_API_KEY", KEY)],
        "https://api.groq.com/openai/v1/chat/completions",
        "groq",
    ),
    (
        BackendKind::Mistral,
        &[("MISTRAL_API_KEY", KEY)],
        "https://api.mistral.ai/v1/chat/completions",
        "mistral",
    ),
    (
        BackendKind::Deepseek,
        &[("DEEPSEEK_API_KEY", KEY)],
        "https://api.deepseek.com/chat/completions",
        "deepseek",
    ),
    (
        BackendKind::Together,
        &[("TOGETHER_API_KEY", KEY)],
        "https://api.together.xyz/v1/chat/completions",
        "together",
    ),
    (
        BackendKind::Fireworks,
        &[("FIREWORKS_API_KEY", KEY)],
        "https://api.fireworks.ai/inference/v1/chat/completions",
        "fireworks",
    ),
    (BackendKind::Xai, &[("XAI_API_KEY", KEY)], "https://api.x.ai/v1/chat/completions", "xai"),
    (
        BackendKind::Cerebras,
        &[("CEREBRAS_API_KEY", KEY)],
        "https://api.cerebras.ai/v1/chat/completions",
        "cerebras",
    ),
    (
        BackendKind::Perplexity,
        &[("PERPLEXITY_API_KEY", KEY)],
        "https://api.perplexity.ai/chat/completions",
        "perplexity",
    ),
    (
        BackendKind::Nvidia,
        &[("NVIDIA_API_KEY", KEY)],
        "https://integrate.api.nvidia.com/v1/chat/completions",
        "nvidia",
    ),
    (
        BackendKind::GithubModels,
        &[("GITHUB_TOKEN", KEY)],
        "https://models.github.ai/inference/chat/completions",
        "github-models",
    ),
];

#[test]
fn every_service_is_found_with_its_variables_and_has_prices_of_its_own() {
    for (kind, variables, expected, section) in SERVICES {
        let kind_name = kind.as_str();
        let own = format!("[{section}]\ngpt-4o-mini = {{ input = 7.5, output = 1 }}");
        let own = (!section.is_empty()).then_some(own);
        let backend = open_with(&config(kind), variables, own.as_deref()).unwrap();
        assert_eq!(url(&backend), expected, "{kind_name}");
        let input = (!section.is_empty()).then_some(7.5);
        assert_eq!(backend.price.map(|it| it.input), input, "{kind_name}");
        assert_eq!((backend.kind, backend.kind_name()), (Some(kind), kind_name));
        let reports = matches!(kind, BackendKind::Openrouter | BackendKind::Perplexity);
        assert_eq!(backend.reports_cost, reports, "{kind_name}");
        // Nobody finds it without one of them.
        for at in 0..variables.len() {
            let mut fewer = variables.to_vec();
            let (name, value) = fewer.remove(at);
            let found = open(&config(kind), &fewer);
            let is_location = name == "GOOGLE_CLOUD_LOCATION";
            assert_eq!(found.is_ok(), is_location, "{kind_name} without {name}");
            let shown = format!("{backend:?}");
            assert!(value != KEY || !shown.contains(KEY), "{kind_name}");
        }
        // Another address gets neither the key nor the list price.
        let elsewhere =
            BackendConfig { base_url: Some("https://h.example".to_owned()), ..config(kind) };
        let backend = open_with(&elsewhere, &[], own.as_deref()).unwrap();
        assert_eq!((backend.price, backend.reports_cost), (None, false), "{kind_name}");
    }
}

#[test]
fn services_differ_in_what_they_are_told() {
    let told = |kind: BackendKind, stream: bool| {
        let (_, variables, ..) = SERVICES.into_iter().find(|it| it.0 == kind).unwrap();
        let sampling = Sampling { max_tokens: Some(9), seed: Some(1), ..Sampling::default() };
        let config = BackendConfig { sampling, stream, ..config(kind) };
        let backend = open(&config, variables).unwrap();
        let request = probity_core::request::Request::new(None, "hi");
        let ask = super::super::Ask { request: &request, repeat: 0, about: None };
        let body = backend.http().unwrap().shown_body(&ask).unwrap();
        (body, backend.not_applied.clone(), backend.is_sent_schemas(None))
    };
    for (kind, ..) in SERVICES {
        let (body, not_applied, keeps) = told(kind, false);
        let keeping = matches!(
            kind,
            BackendKind::OpenaiResponses
                | BackendKind::Gemini
                | BackendKind::Vertex
                | BackendKind::Ollama
                | BackendKind::Vllm
                | BackendKind::Llamacpp
        );
        assert_eq!(keeps, keeping, "{kind:?}");
        let seedless = matches!(
            kind,
            BackendKind::OpenaiResponses
                | BackendKind::Anthropic
                | BackendKind::VertexAnthropic
                | BackendKind::Bedrock
        );
        assert_eq!(not_applied.contains(&"seed"), seedless, "{kind:?}");
        let newer = matches!(kind, BackendKind::Openai | BackendKind::Azure);
        assert_eq!(body["max_completion_tokens"] == 9, newer, "{kind:?} {body}");
    }
    assert_eq!(told(BackendKind::Mistral, false).0["random_seed"], 1);
    assert_eq!(told(BackendKind::Groq, true).0["stream_options"], json!({ "include_usage": true }));
    assert_eq!(told(BackendKind::Mistral, true).0.get("stream_options"), None);
}

#[test]
fn variables_say_where_else_a_vendor_is() {
    for (kind, variable, key, expected) in [
        (BackendKind::Openai, "OPENAI_BASE_URL", "OPENAI_API_KEY", "http://h/chat/completions"),
        (BackendKind::OpenaiResponses, "OPENAI_BASE_URL", "OPENAI_API_KEY", "http://h/responses"),
        (BackendKind::Anthropic, "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "http://h/v1/messages"),
        (
            BackendKind::Gemini,
            "GOOGLE_GEMINI_BASE_URL",
            "GEMINI_API_KEY",
            "http://h/v1beta/models/gpt-4o-mini:generateContent",
        ),
    ] {
        // With and without a scheme.
        for value in ["http://h", "h"] {
            let backend = open(&config(kind), &[(variable, value), (key, KEY)]).unwrap();
            assert_eq!(url(&backend), expected, "{variable}={value}");
        }
    }
    let google = open(&config(BackendKind::Gemini), &[("GOOGLE_API_KEY", KEY)]);
    assert!(google.is_ok(), "{google:?}");
    let region = open(
        &config(BackendKind::Bedrock),
        &[("AWS_REGION", "eu-west-3"), ("AWS_BEARER_TOKEN_BEDROCK", KEY)],
    );
    assert!(url(&region.unwrap()).contains(".eu-west-3."));
}
