//! What a run would ask, and what that would cost.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    path::Path,
    sync::Arc,
};

use probity_core::{
    dollars::dollars,
    evidence::JudgedBy,
    execution::ExecutionUse,
    request::{Request, short},
};
use probity_load::settings::Settings;
use probity_run::{
    backend::{About, Answers, Ask, Backend, CacheAccess, http::Http},
    plan::{Calls, PlannedLane, ScannedRunner},
};
use serde::Serialize;
use serde_json::Value;

use crate::{failure::Failure, output::OutputFile};

/// Bytes of a token, roughly, in prose.
const BYTES_PER_TOKEN: u64 = 4;
/// Tokens of a reply where nothing limits it.
const REPLY_TOKENS: u64 = 256;

/// What is going to be run.
pub(super) struct Plan<'a> {
    pub(super) backends: &'a [Arc<Backend>],
    pub(super) lanes: &'a [PlannedLane],
    pub(super) scanned: &'a [ScannedRunner],
    pub(super) settings: &'a Settings,
    /// What becomes of commands that reading does not decide.
    pub(super) execution: ExecutionUse,
    /// Answers of earlier runs.
    pub(super) cache: Option<&'a dyn Answers>,
    pub(super) access: CacheAccess,
}

/// Sums over all lanes.
#[derive(Default)]
struct Sums {
    calls: u64,
    cost: f64,
    unpriced: bool,
    programs: u64,
}

/// The plan, for people.
pub(super) fn render(plan: &Plan<'_>) -> String {
    let mut text = String::from("dry run: nothing is asked\n");
    let mut sums = Sums::default();
    let tries = plan.settings.retry.max_retries.saturating_add(1);
    for lane in plan.lanes {
        if lane.info.kind.spec().is_external {
            sums.programs += 1;
            let name = lane.info.key();
            let command = plan.scanned[lane.runner].runner.command.join(" ");
            let _ = writeln!(text, "{name}\n  runs {command}");
        } else {
            plan.lane(&mut text, lane, tries, &mut sums);
        }
    }
    let Sums { calls, cost, unpriced, programs } = sums;
    let cost = match (unpriced, cost > 0.0) {
        (true, true) => format!("{} plus calls without a known price", at_most(cost, tries)),
        (true, false) => "no price is known".to_owned(),
        (false, _) => at_most(cost, tries),
    };
    let programs = match programs {
        0 => String::new(),
        count => format!(", plus the calls of {count} programs"),
    };
    let _ = writeln!(text, "{calls} calls, {cost}{programs}");
    text
}

impl Plan<'_> {
    /// How many lanes a runner has.
    fn lanes_of(&self, runner: usize) -> u64 {
        self.lanes.iter().filter(|it| it.runner == runner).count() as u64
    }

    fn lane(&self, text: &mut String, lane: &PlannedLane, tries: u64, sums: &mut Sums) {
        let backend = &self.backends[lane.backend];
        let runner = &self.scanned[lane.runner];
        let info = &lane.info;
        let Calls { answers, judgements, comparisons, embeddings, .. } = lane.calls;
        let Calls { rerankings, fallbacks, steps, user_turns, .. } = lane.calls;
        let known = match self.cache.filter(|_| self.access.generations.read) {
            Some(cache) if info.kind.spec().compares => lane.known_generations(backend, cache),
            Some(_) | None => 0,
        };
        let new = answers.saturating_sub(known);
        let calls = new + judgements + comparisons + embeddings + rerankings;
        sums.calls += calls;
        let model = info.model.as_deref().unwrap_or("its default model");
        let _ = writeln!(text, "{} ({}, {model})", info.key(), info.backend_kind);
        let _ = writeln!(
            text,
            "  {} of {} cases, {} each: {calls} calls, at most {} with retries",
            runner.selected,
            runner.total,
            match info.repeat {
                1 => "once".to_owned(),
                repeat => format!("{repeat} times"),
            },
            // A judge that cannot be read is asked twice more.
            (calls + fallbacks + steps + 2 * (user_turns + judgements + comparisons))
                .saturating_mul(tries),
        );
        let executed = runner.undecided.executed.count * u64::from(info.repeat);
        if executed > 0 {
            let _ = writeln!(text, "  {executed} executions in the sandbox");
        }
        let compared = runner.compared_commands * u64::from(info.repeat);
        if compared > 0 && self.execution != ExecutionUse::Off {
            let _ = writeln!(
                text,
                "  commands of {compared} answers are executed where reading does not decide"
            );
        }
        if let Some(skills) = &info.skills {
            let (count, characters) = (skills.count, skills.index_characters);
            let _ = writeln!(text, "  {count} skills, an index of {characters} characters");
        }
        if let Some(judge) = &info.judge {
            let named = |it: &JudgedBy| {
                format!("{} ({})", it.backend, it.model.as_deref().unwrap_or("its default model"))
            };
            let judges =
                if info.judges.is_empty() { std::slice::from_ref(judge) } else { &info.judges };
            let judges: Vec<String> = judges.iter().map(named).collect();
            let kept = if known > 0 { format!(", {known} more are cached") } else { String::new() };
            let at_most = if info.kind.spec().compares { "" } else { "at most " };
            if judgements > 0 {
                let _ = writeln!(
                    text,
                    "  {new} answers{kept}, {at_most}{judgements} judgements by {}",
                    judges.join(", ")
                );
            }
            if comparisons > 0 {
                let lanes = self.lanes_of(lane.runner);
                let _ = writeln!(
                    text,
                    "  at most {comparisons} comparisons of the answers of {lanes} lanes by {}",
                    judges.first().map_or("", String::as_str)
                );
            }
        }
        let dollars = self.tokens(text, lane, new);
        match dollars {
            Some(dollars) => {
                sums.cost += dollars;
                let _ = write!(text, ": {}", at_most(dollars, tries));
                if lane.max_tokens(backend).is_none() {
                    let _ =
                        write!(text, ", if replies have {REPLY_TOKENS} tokens (no `max_tokens`)");
                }
                text.push('\n');
            }
            None => {
                sums.unpriced = true;
                text.push_str(": no price is known\n");
            }
        }
    }

    /// How many tokens a lane may take, and what they cost; none if that is not known.
    fn tokens(&self, text: &mut String, lane: &PlannedLane, new: u64) -> Option<f64> {
        let backend = &self.backends[lane.backend];
        let Calls { judgements, comparisons, embeddings, rerankings, user_turns, .. } = lane.calls;
        let embedder = lane.embedder.map(|place| &self.backends[place]);
        let users: Vec<&Arc<Backend>> =
            lane.users.iter().map(|place| &self.backends[*place]).collect();
        let reranker = lane.reranker.map(|place| &self.backends[place]);
        beyond_answers(text, lane.calls, [embedder, reranker], &users);
        let output = lane.max_tokens(backend).unwrap_or(REPLY_TOKENS);
        let input = lane.prompt_bytes / BYTES_PER_TOKEN * u64::from(lane.info.repeat);
        let all = output.saturating_mul(new);
        let _ = write!(text, "  about {input} tokens in, up to {all} out");
        let mut dollars = price(backend, input, all);
        if judgements + comparisons > 0 {
            let (judging, cost) = self.judging(lane, input, output);
            let _ = write!(text, ", and up to {judging} for judging");
            dollars = dollars.zip(cost).map(|(a, b)| a + b);
        }
        if let Some(embedder) = embedder {
            let read = output.saturating_mul(embeddings);
            let _ = write!(text, ", and up to {read} for embeddings");
            dollars = dollars.zip(price(embedder, read, 0)).map(|(a, b)| a + b);
        }
        if let Some(reranker) = reranker {
            let read = output.saturating_mul(rerankings).saturating_add(input);
            let _ = write!(text, ", and up to {read} for ranking");
            dollars = dollars.zip(price(reranker, read, 0)).map(|(a, b)| a + b);
        }
        if !users.is_empty() {
            let longest = users.iter().map(|it| it.max_tokens.unwrap_or(REPLY_TOKENS)).max();
            let said = longest.unwrap_or(REPLY_TOKENS).saturating_mul(user_turns);
            let answers = output.saturating_mul(user_turns);
            // As if each text were read once by each side.
            let read = input.saturating_add(said).saturating_add(answers);
            let _ = write!(text, ", and up to {} with the user", read.saturating_mul(3));
            // As if the dearest one played all users.
            let prices: Option<Vec<f64>> = users.iter().map(|it| price(it, read, said)).collect();
            let dearest = prices.map(|all| all.into_iter().fold(0.0, f64::max));
            dollars = dollars.zip(dearest).map(|(a, b)| a + b);
            dollars = dollars.zip(price(backend, read, answers)).map(|(a, b)| a + b);
        }
        dollars
    }

    /// The tokens of all judges, and what they cost. Each answer is read again, at its full length.
    fn judging(&self, lane: &PlannedLane, input: u64, output: u64) -> (u64, Option<f64>) {
        let Calls { judgements, comparisons, .. } = lane.calls;
        let (mut tokens, mut dollars) = (0_u64, Some(0.0));
        for (at, place) in lane.judges.iter().enumerate() {
            let judge = &self.backends[*place];
            let compared = if at == 0 { comparisons } else { 0 };
            let own = judgements / lane.judges.len() as u64;
            let of_pairs = (2 * output).saturating_mul(own);
            let of_lanes = output.saturating_mul(self.lanes_of(lane.runner));
            let read =
                input.saturating_add(of_pairs).saturating_add(of_lanes.saturating_mul(compared));
            let said = judge.max_tokens.unwrap_or(REPLY_TOKENS).saturating_mul(own + compared);
            tokens = tokens.saturating_add(read).saturating_add(said);
            dollars = dollars.zip(price(judge, read, said)).map(|(a, b)| a + b);
        }
        (tokens, dollars)
    }
}

/// One request that would be sent.
#[derive(Serialize)]
struct Line<'a> {
    runner: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant: Option<&'a str>,
    backend: &'a str,
    case_id: &'a str,
    /// How often it is sent.
    repeat: u32,
    #[serde(flatten, serialize_with = "short::serialize")]
    request: &'a Request,
    /// Where a server gets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// What a server gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Value>,
}

/// Writes what each case asks of each backend, a line each.
pub(super) fn write_requests(
    path: &Path,
    lanes: &[PlannedLane],
    backends: &[Arc<Backend>],
) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::new(format!("failed to write the requests to `{}`", path.display())).because(error)
    };
    let mut file = OutputFile::create(path)?;
    for lane in lanes.iter().filter(|it| !it.info.kind.spec().is_external) {
        let http = backends[lane.backend].http();
        let mut written = Ok(());
        lane.requests(|case, request| {
            let about = About::new(Arc::new(case.clone()));
            let ask = Ask { request: &request, repeat: 0, about: Some(&about) };
            let line = Line {
                runner: &lane.info.runner,
                variant: lane.info.variant.as_deref(),
                backend: &lane.info.backend,
                case_id: &case.id,
                repeat: lane.info.repeat,
                request: &request,
                url: http.map(Http::shown_url),
                // One that cannot be filled in was refused before.
                body: http.and_then(|it| it.shown_body(&ask).ok()).filter(|it| !it.is_null()),
            };
            if written.is_ok() {
                written = serde_json::to_writer(&mut file, &line)
                    .map_err(io::Error::from)
                    .and_then(|()| file.write_all(b"\n"));
            }
        });
        written.map_err(failed)?;
    }
    file.finish()
}

/// What may be asked beside the answers and their judgements.
fn beyond_answers(
    text: &mut String,
    calls: Calls,
    [embedder, reranker]: [Option<&Arc<Backend>>; 2],
    users: &[&Arc<Backend>],
) {
    let Calls { embeddings, rerankings, fallbacks, steps, user_turns, .. } = calls;
    let called = |it: &Backend| {
        format!("{} ({})", it.name, it.model.as_deref().unwrap_or("its default model"))
    };
    if let Some(embedder) = embedder {
        let _ = writeln!(text, "  at most {embeddings} embeddings by {}", called(embedder));
    }
    if let Some(reranker) = reranker {
        let _ = writeln!(text, "  at most {rerankings} texts ranked by {}", called(reranker));
    }
    if !users.is_empty() {
        let users: Vec<String> = users.iter().map(|it| called(it)).collect();
        let users = users.join(", ");
        let _ = writeln!(text, "  up to {user_turns} more turns with {users} as the user");
    }
    if steps > 0 {
        let _ = writeln!(text, "  up to {steps} more where tools are called");
    }
    if fallbacks > 0 {
        let _ = writeln!(text, "  up to {fallbacks} more where a reply cannot be read");
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn price(backend: &Backend, input: u64, output: u64) -> Option<f64> {
    let price = backend.price?;
    Some((price.input * input as f64 + price.output * output as f64) / 1e6)
}

/// What calls cost, and what they would if each of them had to be made again each time.
fn at_most(amount: f64, tries: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let all = amount * tries as f64;
    match amount > 0.0 && tries > 1 {
        true => format!("up to {}, with all retries up to {}", dollars(amount), dollars(all)),
        false => format!("up to {}", dollars(amount)),
    }
}
