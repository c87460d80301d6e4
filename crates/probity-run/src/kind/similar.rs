//! How many texts a case has embedded.

use probity_core::criteria::Assertion;
use serde_json::Value;

/// How many texts assertions have embedded: for each the reply and what it is compared with.
pub(super) fn texts_in(assertions: &[Assertion]) -> u64 {
    let own = |it: &Assertion| match &it.value {
        _ if !it.kind.test.is_similar() => 0,
        Some(Value::Array(texts)) => 1 + texts.len() as u64,
        Some(_) | None => 2,
    };
    assertions.iter().map(|it| own(it) + texts_in(&it.members)).sum()
}
