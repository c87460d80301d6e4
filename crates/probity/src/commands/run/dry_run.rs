//! What a run would ask, and what that would cost.

use std::{fmt::Write as _, sync::Arc};

use probity_core::settings::Settings;
use probity_run::{
    backend::Backend,
    plan::{PlannedLane, Surveyed},
};

/// Bytes of a token, roughly, in prose.
const BYTES_PER_TOKEN: u64 = 4;
/// Tokens of a reply where nothing limits it.
const REPLY_TOKENS: u64 = 256;

/// The plan, for people.
pub(super) fn render(
    backends: &[Arc<Backend>],
    lanes: &[PlannedLane],
    surveyed: &[Surveyed],
    settings: &Settings,
) -> String {
    let mut text = String::from("dry run: nothing is asked\n");
    let (mut calls, mut cost, mut unpriced) = (0, 0.0, false);
    let tries = settings.retry.max_retries.saturating_add(1);
    for lane in lanes {
        let backend = &backends[lane.backend];
        let runner = &surveyed[lane.runner];
        let info = &lane.info;
        let input = runner.prompt_bytes / BYTES_PER_TOKEN * u64::from(info.repeat);
        let output = backend.max_tokens.unwrap_or(REPLY_TOKENS).saturating_mul(info.planned);
        calls += info.planned;
        let model = info.model.as_deref().unwrap_or("its default model");
        let _ =
            writeln!(text, "{} on {} ({}, {model})", info.runner, info.backend, info.backend_kind);
        let _ = writeln!(
            text,
            "  {} of {} cases, {} each: {} calls, at most {} with retries",
            runner.selected,
            runner.total,
            match info.repeat {
                1 => "once".to_owned(),
                repeat => format!("{repeat} times"),
            },
            info.planned,
            info.planned.saturating_mul(tries),
        );
        let _ = write!(text, "  about {input} tokens in, up to {output} out");
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        match backend.price {
            Some(price) => {
                let dollars = (price.input * input as f64 + price.output * output as f64) / 1e6;
                cost += dollars;
                let _ = write!(text, ": {}", at_most(dollars, tries));
                if backend.max_tokens.is_none() {
                    let _ =
                        write!(text, ", if replies have {REPLY_TOKENS} tokens (no `max_tokens`)");
                }
                text.push('\n');
            }
            None => {
                unpriced = true;
                text.push_str(": no price is known\n");
            }
        }
    }
    let unknown = if unpriced { " plus what has no price" } else { "" };
    let _ = writeln!(text, "{calls} calls, {}{unknown}", at_most(cost, tries));
    text
}

/// What calls cost, and what they would if each of them had to be made again each time.
fn at_most(dollars: f64, tries: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let all = dollars * tries as f64;
    match dollars > 0.0 && tries > 1 {
        true => format!("up to ${dollars:.4}, with all retries up to ${all:.4}"),
        false => format!("up to ${dollars:.4}"),
    }
}
