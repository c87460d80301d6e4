//! Any bytes as a stream of any server: no panic, and where they are cut makes no difference.
#![no_main]

use libfuzzer_sys::fuzz_target;
use probity_load::suite::BackendKind;
use probity_run::backend::streamed;

const KINDS: [BackendKind; 6] = [
    BackendKind::Openai,
    BackendKind::OpenaiResponses,
    BackendKind::Anthropic,
    BackendKind::Gemini,
    BackendKind::Ollama,
    BackendKind::Bedrock,
];

// The first byte is the kind, the second where the stream is cut in two.
fuzz_target!(|data: &[u8]| {
    let [kind, at, stream @ ..] = data else { return };
    let kind = KINDS[usize::from(*kind) % KINDS.len()];
    let whole = streamed(kind, &[stream]);
    let at = usize::from(*at) * stream.len() / 256;
    let (first, second) = stream.split_at(at);
    assert_eq!(streamed(kind, &[first, second]), whole);
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(streamed(kind, &bytes), whole);
});
