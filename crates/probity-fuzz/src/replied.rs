//! What models, judges and scorers write.

use probity_core::{
    case::RubricCriterion,
    criteria::JsonLevel,
    json::{Limits, parse},
    scored::Scored,
    visible,
};
use probity_grade::{
    internal::{agent, judge::Question, routing::says_yes},
    json::{Wanted, extract},
    policy::Policies,
    refusal::RefusalRules,
};
use probity_shell::{
    equivalence::{self, Verdict},
    extract as commands, posix,
    safety::{self, Level, Rules},
};
use probity_text::{
    bleu, choice,
    chrf::{self, Variant},
    edit,
    extract::{Extraction, Marker, Take, Until},
    f1, number,
    pattern::Pattern,
    rouge::{self, Words},
};

use crate::input::texts;

/// At any level, what was found is JSON that strict parsing accepts, and stands where the span says.
pub fn json(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let strict = parse(&text, &Limits::default());
    for level in JsonLevel::ALL {
        for wanted in [Wanted::Any, Wanted::Object, Wanted::Array] {
            let found = extract(&text, level, wanted);
            assert_eq!(found.error.is_none(), strict.is_ok());
            if let (Some(value), Ok(parsed)) = (&found.value, &strict) {
                assert_eq!(value, &parsed.value);
                assert!(found.steps.is_empty());
            }
            if let Some(span) = found.span {
                assert!(text.get(span).is_some());
            }
            if let Some(value) = found.value {
                assert!(parse(&value.to_string(), &Limits::default()).is_ok());
            }
        }
    }
}

/// Of a judge's reply only whole points from 1 to 5 are believed. What an agent did is the same twice.
pub fn judge(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let criterion = |name: &str| RubricCriterion {
        name: name.to_owned(),
        weight: 0.5,
        description: "x".to_owned(),
    };
    let criteria = [criterion("right"), criterion("short")];
    for answers in [&["one"][..], &["one", "two"]] {
        let question = Question { task: &text, criteria: &criteria, answers };
        if let Ok(judgement) = question.read(&text) {
            assert_eq!(judgement.criteria.len(), criteria.len());
            let points = judgement.criteria.iter().flat_map(|it| &it.points);
            assert!(points.into_iter().all(|it| (1..=5).contains(it)));
        }
        let marker = question.marker(0);
        assert!(!text.contains(&marker));
    }
    let _ = says_yes(&text);
    assert_eq!(agent::read(&text, &[]), agent::read(&text, &[]));
}

/// The phrase of a refusal stands where the span says, and so does what a policy finds. What people are shown has no
/// controls in it.
pub fn refusal(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(found) = RefusalRules::builtin().detect(&text) {
        assert_eq!(text.get(found.span), Some(found.phrase.as_str()));
    }
    for hit in Policies::secrets().scan(&text) {
        assert!(text.get(hit.span).is_some());
    }
    let shown = visible::safe(&text);
    assert!(!shown.contains(|it: char| it.is_control() && it != '\n' && it != '\t'), "{shown:?}");
    assert_eq!(visible::safe(&shown), shown);
}

/// Of what a scorer returns only finite scores are believed.
pub fn scored(bytes: &[u8]) {
    let Ok(returned) = serde_json::from_slice(bytes) else { return };
    for threshold in [None, Some(0.5)] {
        if let Ok(scored) = Scored::read(&returned, threshold) {
            assert!(scored.score.is_finite());
            assert!(scored.scores.iter().all(|it| it.1.is_finite()));
        }
    }
}

/// As a command and as a reply: spans are inside the text, and a command is equal to itself.
pub fn shell(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for found in commands::all(&text) {
        assert!(text.get(found.span.start..found.span.end).is_some());
    }
    let judged = safety::judge(&text, Rules::builtin(), Level::default());
    for finding in judged.assessment.iter().flat_map(|it| &it.findings) {
        assert!(text.get(finding.span.start..finding.span.end).is_some(), "{finding:?}");
    }
    let Ok(script) = judged.script else { return };
    for violation in posix::check(&script, posix::Edition::default()).violations {
        assert!(text.get(violation.span.start..violation.span.end).is_some(), "{violation:?}");
    }
    if !script.is_empty() {
        assert_eq!(equivalence::compare(&script, &script).verdict, Verdict::Equal);
    }
}

/// Two texts: what is taken out of one stands where the span says, and similarities are from 0 to 1.
pub fn text(bytes: &[u8]) {
    let mut parts = texts(bytes);
    let (text, other) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    for take in [Take::First, Take::Last] {
        let mut all = vec![
            Extraction::Number(take),
            Extraction::Boxed(take),
            Extraction::CodeBlock { language: None, take },
            Extraction::XmlTag { name: "answer".to_owned(), take },
        ];
        let after = |marker| Extraction::After { marker, take, until: Until::Line };
        all.extend(Marker::new(&other).map(after));
        let regex = |pattern| Extraction::Regex { pattern, take };
        all.extend(Pattern::new(&other, None).ok().map(regex));
        for extraction in all {
            if let Ok(span) = extraction.find(&text) {
                assert!(text.get(span).is_some());
            }
        }
    }
    let _ = (number::only(&text), choice::read(&text, &[&*other, "blue"]));
    let scores = [
        Some(f1::token_f1(&text, &other)),
        Some(rouge::rouge_n(&text, &other, 2, Words::Stemmed)),
        rouge::rouge_l(&text, &other, Words::AsWritten),
        Some(bleu::sentence(&text, &[&*other])),
        Some(chrf::sentence(&text, &[&*other], Variant::WithWords)),
        edit::similarity(&text, &other),
    ];
    assert!(scores.into_iter().flatten().all(|score| (0.0..=1.0).contains(&score)), "{scores:?}");
}
