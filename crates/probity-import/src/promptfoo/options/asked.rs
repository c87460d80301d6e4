//! Options of tests that promptfoo puts over the `config` of the provider: how words are chosen, and the form of
//! answers.

use probity_core::{
    case::AskSpec,
    located::{Entry, Node},
};
use probity_load::suite::{BackendKind, Way};

use crate::{
    draft::BackendDraft,
    promptfoo::{
        Context, Table,
        prompts::response_format,
        providers::{is_setting, reasons},
    },
};

/// Settings that a case can have.
const CARRIED: &[&str] = &[
    "temperature",
    "top_p",
    "max_tokens",
    "seed",
    "stop",
    "presence_penalty",
    "frequency_penalty",
    "response_format",
];
/// Settings that only providers of Google and AWS read.
const ELSEWHERE: &[&str] = &[
    "maxTokens",
    "maxOutputTokens",
    "topP",
    "topK",
    "stopSequences",
    "generationConfig",
    "responseSchema",
    "response_schema",
];

/// Who of those that are asked reads a setting of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readers {
    None,
    Some,
    All,
}

/// The settings in the options of a test. Those that nobody reads are noted.
pub(super) fn read(node: &Node, context: &mut Context<'_>) -> AskSpec {
    let mut asked = AskSpec::default();
    for entry in node.entries().iter().filter(|it| is_setting(&it.key)) {
        let at = context.source.at(&entry.key_span);
        match readers(&entry.key, &context.asked) {
            Readers::None => context.ignored_key(at, &entry.key, Table::TestOptions, String::new()),
            Readers::All if CARRIED.contains(&entry.key.as_str()) => {
                set(&mut asked, entry, node, context);
            }
            Readers::All => context.unused_key(at, &entry.key, Table::TestOptions),
            Readers::Some => {
                let key = &entry.key;
                let what =
                    format!("`{key}` of the options of a test, which only some providers read");
                context.notes.lost(at, what, "state it under each backend that is meant");
            }
        }
    }
    asked
}

fn set(asked: &mut AskSpec, entry: &Entry, node: &Node, context: &mut Context<'_>) {
    let sampling = &mut asked.sampling;
    match entry.key.as_str() {
        key @ "temperature" => sampling.temperature = context.number(node, key),
        key @ "top_p" => sampling.top_p = context.number(node, key),
        key @ "max_tokens" => sampling.max_tokens = context.number(node, key),
        key @ "seed" => sampling.seed = context.number(node, key),
        key @ "presence_penalty" => sampling.presence_penalty = context.number(node, key),
        key @ "frequency_penalty" => sampling.frequency_penalty = context.number(node, key),
        key @ "stop" => sampling.stop = crate::cases::texts(node, key),
        _ => asked.response_format = response_format(&entry.node, context),
    }
}

/// Who reads a setting. What is no server with an API of its own is told the prompt and nothing else.
fn readers(key: &str, asked: &[BackendDraft]) -> Readers {
    let servers = asked.iter().filter(|it| it.kind.way() == Way::Server);
    let reads: Vec<bool> = servers.map(|it| is_read(key, it)).collect();
    match (reads.contains(&true), reads.contains(&false)) {
        (false, _) => Readers::None,
        (true, true) => Readers::Some,
        (true, false) => Readers::All,
    }
}

fn is_read(key: &str, server: &BackendDraft) -> bool {
    let is = |kinds: &[BackendKind]| kinds.contains(&server.kind);
    if is(&[BackendKind::Gemini, BackendKind::Vertex, BackendKind::Bedrock]) {
        return true;
    }
    let reasons = server.model.as_deref().is_some_and(reasons);
    match key {
        _ if server.kind == BackendKind::Ollama || ELSEWHERE.contains(&key) => false,
        "response_format" => !is(&[BackendKind::Anthropic, BackendKind::VertexAnthropic]),
        "temperature" | "max_tokens" => !reasons,
        _ => true,
    }
}

/// What is not said here is as said there.
pub(super) fn or(own: AskSpec, other: &AskSpec) -> AskSpec {
    AskSpec {
        sampling: own.sampling.or(&other.sampling),
        response_format: own.response_format.or_else(|| other.response_format.clone()),
        ..own
    }
}
