//! What users write: datasets, suites, worlds, skills, rules, settings.

use std::{fs, path::Path, time::Duration};

use probity_core::{
    case::TestCase,
    derived::Expression,
    gate::{Decimal, Metric},
    judging::RuleConfig,
};
use probity_grade::{Rules, policy::Policies};
use probity_load::{
    dataset::{Format, Item, MOST_PROBLEMS, Writer, read_bytes},
    dotenv,
    settings::{Layer, Origin, Resolved, parse_duration},
    skill,
    suite::Suite,
};
use probity_run::prices::Prices;

use crate::input::{BETWEEN, Folder, check, choice, texts};

/// In any format: every problem has a place, and cases that are written are read back as they are.
pub fn dataset(bytes: &[u8]) {
    const FORMATS: [Format; 5] =
        [Format::Toml, Format::Jsonl, Format::Json, Format::Yaml, Format::Csv];
    let Some((format, bytes)) = choice(bytes, &FORMATS) else { return };
    let cases = cases(format, bytes, true);
    if cases.is_empty() {
        return;
    }
    for format in FORMATS {
        let mut writer = Writer::new(format, None, Vec::new()).expect("memory takes everything");
        // A format may be unable to say something, such as null in TOML, and says so.
        let said: Vec<&TestCase> = cases.iter().filter(|it| writer.case(it).is_ok()).collect();
        let written = writer.finish().expect("memory takes everything");
        let read = self::cases(format, &written, false);
        let read: Vec<&TestCase> = read.iter().collect();
        assert_eq!(read, said, "{format:?}: {}", String::from_utf8_lossy(&written));
    }
}

fn cases(format: Format, bytes: &[u8], may_be_wrong: bool) -> Vec<TestCase> {
    let (mut problems, mut cases) = (0, Vec::new());
    let summary =
        read_bytes(Path::new("cases"), format, bytes, &|_| Vec::new(), &mut |item| match item {
            Item::Problem(problem) => {
                problems += 1;
                check(&problem);
                let is_error = problem.severity == probity_core::problem::Severity::Error;
                assert!(may_be_wrong || !is_error, "{problem:?}");
            }
            Item::Case(case) => cases.push(case.case),
        });
    // Of very many only the first are told.
    assert!(problems == summary.errors + summary.warnings || problems > MOST_PROBLEMS);
    cases
}

/// In TOML or YAML: every problem has a place, the same twice, and what is no suite has a problem.
pub fn suite(bytes: &[u8]) {
    let Some((file, bytes)) = choice(bytes, &["probity.toml", "probity.yaml"]) else { return };
    let text = String::from_utf8_lossy(bytes);
    let parse = || Suite::parse(&text, &file.into(), Path::new("/nowhere"), &|_| Vec::new());
    let (suite, problems) = parse();
    problems.iter().for_each(check);
    assert!(suite.is_some() || !problems.is_empty());
    let (again, problems_again) = parse();
    assert_eq!(format!("{suite:?} {problems:?}"), format!("{again:?} {problems_again:?}"));
    if let Some(suite) = suite {
        let _ = Resolved::of([suite.settings]).settings();
    }
}

/// A world: a problem is in one of its lines.
pub fn world(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match probity_sandbox::world::read("w.toml", &text) {
        Ok(world) => assert_eq!(probity_sandbox::world::read("w.toml", &text), Ok(world)),
        Err(error) => {
            assert!((1..=text.matches('\n').count() + 1).contains(&error.line), "{error:?}");
        }
    }
}

/// A skill, and a file beside it: problems have places, and what models are shown is bounded.
pub fn skill(bytes: &[u8]) {
    thread_local! {
        static FOLDER: Folder = Folder::new();
    }
    let (skill, companion) = match bytes.iter().position(|it| *it == BETWEEN) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[][..]),
    };
    FOLDER.with(|folder| {
        folder.write("skills/one/SKILL.md", skill);
        folder.write("skills/one/more.md", companion);
        let library = skill::load(&[folder.path().join("skills")], &mut |it| check(&it));
        for skill in library.iter().flat_map(|it| it.skills.values()) {
            assert!(skill.short().chars().count() <= skill::INDEX_CHARACTERS + 1);
            assert!(skill.bytes >= skill.body.len() as u64);
            let _ = (skill.summary(), skill.with_companions(100), skill.companion_bytes());
        }
        fs::remove_dir_all(folder.path().join("skills")).expect("the folder is ours");
    });
}

/// Rules of users for errors, policies and refusals, and a text for them: every problem has words, the same twice.
pub fn rules(bytes: &[u8]) {
    let mut parts = texts(bytes);
    let (rules, text) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let suite = format!("{rules}\n");
    let (suite, _) =
        Suite::parse(&suite, &"rules.toml".into(), Path::new("/nowhere"), &|_| Vec::new());
    let error_rules = Some(rules.to_string());
    let mut configs = vec![RuleConfig { error_rules, ..RuleConfig::default() }];
    configs.extend(suite.map(|it| it.rules));
    for config in configs {
        match Rules::compile(&config) {
            Ok(rules) => {
                let found = || {
                    let refusal = rules.refusal().detect(&text);
                    let policies = Policies::compile(&config.policies, &mut Vec::new());
                    let hits = policies.expect("they were compiled before").scan(&text);
                    for span in
                        refusal.iter().map(|it| &it.span).chain(hits.iter().map(|it| &it.span))
                    {
                        assert!(text.get(span.clone()).is_some());
                    }
                    format!("{refusal:?} {hits:?}")
                };
                assert_eq!(found(), found());
            }
            Err(problems) => assert!(problems.iter().all(|it| !it.message.is_empty())),
        }
    }
}

/// Variables, durations, sizes and prices: what is taken is within its bounds, and is read back as it is shown.
pub fn settings(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(duration) = parse_duration(&text) {
        assert!(duration <= Duration::from_hours(366 * 24));
    }
    if let Some(number) = Decimal::parse(&text) {
        assert_eq!(Decimal::parse(&number.to_string()), Some(number));
    }
    if let Ok(metric) = text.parse::<Metric>() {
        assert_eq!(metric.to_string().parse(), Ok(metric));
    }
    if let Ok(prices) = Prices::with(Some(&text)) {
        let _ = prices.find("openai", "gpt-4o-2024-08-06");
    }
    match dotenv::parse(&text) {
        Ok(variables) => {
            let lookup = |name: &str| variables.get(name).cloned();
            if let Ok(layer) = Layer::from_variables(lookup, Origin::DotEnv) {
                let _ = Resolved::of([layer]).settings();
            }
        }
        Err(line) => assert!((1..=text.lines().count()).contains(&line)),
    }
}

/// An expression over figures: what is understood is written so that it is read back the same.
pub fn expression(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match text.parse::<Expression>() {
        Ok(expression) => {
            let written = expression.to_string();
            let again = Expression::try_from(written.clone());
            assert_eq!(again.as_ref(), Ok(&expression), "{written}");
            assert_eq!(again.map(|it| it.to_string()), Ok(written));
        }
        Err(error) => assert!(text.is_char_boundary(error.at) && error.at <= text.len()),
    }
}
