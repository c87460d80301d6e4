//! How far backends agree, for programs.

use probity_core::consistency::{Consistency, Divergence, Diverging, Group, Pair};
use probity_stats::Interval;
use serde_json::{Map, Value, json};

/// Counts alone.
pub fn counts(found: &Consistency) -> Value {
    let Diverging { mixed, failing, passing } = found.diverge;
    let uncompared: Map<String, Value> = (found.uncompared.reasons().into_iter())
        .map(|(why, count)| (why.to_owned(), count.into()))
        .collect();
    json!({
        "runner": found.runner,
        "variant": found.variant,
        "backends": found.backends,
        "cases": found.cases(),
        "agree": found.agree,
        "diverge": { "mixed": mixed, "failing": failing, "passing": passing },
        "uncompared": uncompared,
    })
}

/// All that is known.
pub fn value(found: &Consistency) -> Value {
    let mut value = counts(found);
    value["pairs"] = found.pairs.iter().map(|it| pair(found, it)).collect();
    value["divergences"] = found.divergences.iter().map(|it| divergence(found, it)).collect();
    value["unlisted"] = found.unlisted().into();
    value
}

fn pair(found: &Consistency, pair: &Pair) -> Value {
    let interval = |Interval { low, high }| json!({ "low": rounded(low), "high": rounded(high), "method": "wilson" });
    json!({
        "backends": pair.backends.map(|at| &found.backends[at]),
        "compared": pair.compared,
        "equal": pair.equal,
        "unknown": pair.unknown,
        "agreement": pair.agreement().map(rounded),
        "interval": pair.interval().map(interval),
    })
}

fn divergence(found: &Consistency, divergence: &Divergence) -> Value {
    let Divergence { case_id, repeat, kind, groups, without } = divergence;
    let without = without
        .iter()
        .map(|(at, why)| json!({ "backend": found.backends[*at], "why": why.as_str() }));
    json!({
        "case_id": case_id,
        "repeat": repeat,
        "kind": kind.as_str(),
        "groups": groups.iter().map(|it| group(found, it)).collect::<Vec<_>>(),
        "without": without.collect::<Vec<_>>(),
    })
}

fn group(found: &Consistency, group: &Group) -> Value {
    let Group { command, cut, parsed, members } = group;
    let name = |at: &usize| found.backends[*at].as_str();
    let passed = members.iter().filter(|(_, passed)| *passed);
    json!({
        "command": command,
        "cut": cut,
        "parsed": parsed,
        "backends": members.iter().map(|(at, _)| name(at)).collect::<Vec<_>>(),
        "passed": passed.map(|(at, _)| name(at)).collect::<Vec<_>>(),
    })
}

/// Six decimals, as everywhere in evaluation results.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
