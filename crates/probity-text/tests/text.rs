//! Our metrics against those of sacrebleu, rouge-score, NLTK, lm-eval and the `SQuAD` script.
//!
//! `scripts/text-fixtures` makes the fixture. Two scores agree if they differ by no more than 1e-6.

use probity_text::{
    bleu::{self, Orders},
    chrf::{self, Variant},
    f1::token_f1,
    gleu::gleu,
    meteor::meteor,
    normalize::{self, Normalizer, Step},
    rouge::{self, Words},
};
use regex::Regex;
use serde_json::Value;

const TOLERANCE: f64 = 1e-6;
const VARIANTS: [Variant; 2] = [Variant::Characters, Variant::WithWords];

/// The points of one part, at least so many.
fn points(part: &str, least: usize) -> Vec<Value> {
    let mut all: Value =
        serde_json::from_str(include_str!("fixtures/text.json")).expect("the fixture is JSON");
    let points: Vec<Value> = serde_json::from_value(all[part].take()).expect("a list of points");
    assert!(points.len() >= least, "{part} has {} points", points.len());
    points
}

fn pairs() -> Vec<Value> {
    points("pairs", 1000)
}

fn text<'v>(point: &'v Value, key: &str) -> &'v str {
    point[key].as_str().unwrap_or_else(|| panic!("no `{key}` in {point}"))
}

#[track_caller]
fn agree(ours: f64, theirs: &Value, point: &Value) {
    let theirs = theirs.as_f64().unwrap_or_else(|| panic!("no number in {point}"));
    assert!((ours - theirs).abs() <= TOLERANCE, "{ours} is not {theirs} for {point:#}");
    assert!((0.0..=1.0).contains(&ours), "{ours} for {point:#}");
}

#[test]
fn bleu_and_chrf_of_a_text_are_those_of_sacrebleu() {
    for point in pairs() {
        let (reply, reference) = (text(&point, "text"), text(&point, "reference"));
        agree(bleu::sentence(reply, &[reference]), &point["bleu"], &point);
        for (at, variant) in VARIANTS.into_iter().enumerate() {
            let ours = chrf::sentence(reply, &[reference], variant);
            agree(ours, &point["chrf"][at], &point);
        }
    }
}

#[test]
fn gleu_and_meteor_are_those_of_nltk() {
    for point in pairs() {
        let (reply, reference) = (text(&point, "text"), text(&point, "reference"));
        agree(gleu(reply, reference), &point["gleu"], &point);
        agree(meteor(reply, reference), &point["meteor"], &point);
    }
}

#[test]
fn several_references_are_taken_as_sacrebleu_takes_them() {
    for point in points("several", 150) {
        let reply = text(&point, "text");
        let references = point["references"].as_array().expect("a list");
        let references: Vec<&str> = references.iter().filter_map(Value::as_str).collect();
        agree(bleu::sentence(reply, &references), &point["bleu"], &point);
        for (at, variant) in VARIANTS.into_iter().enumerate() {
            let ours = chrf::sentence(reply, &references, variant);
            agree(ours, &point["chrf"][at], &point);
        }
    }
}

#[test]
fn bleu_and_chrf_of_a_corpus_are_those_of_sacrebleu() {
    let pairs = pairs();
    for point in points("corpora", 100) {
        let number = |key: &str| usize::try_from(point[key].as_u64().unwrap()).unwrap();
        let (start, size) = (number("start"), number("size"));
        let corpus = || {
            pairs[start..start + size].iter().map(|it| (text(it, "text"), text(it, "reference")))
        };
        let statistics: bleu::Statistics =
            corpus().map(|(text, reference)| bleu::Statistics::of(text, &[reference])).sum();
        agree(statistics.score(Orders::All), &point["bleu"], &point);
        for (at, variant) in VARIANTS.into_iter().enumerate() {
            let of =
                |(text, reference): (&str, &str)| chrf::Statistics::of(text, &[reference], variant);
            let statistics: chrf::Statistics = corpus().map(of).sum();
            agree(statistics.score(), &point["chrf"][at], &point);
        }
    }
}

#[test]
fn rouge_is_that_of_rouge_score() {
    for point in pairs() {
        let (reply, reference) = (text(&point, "text"), text(&point, "reference"));
        for (key, words) in [("rouge", Words::AsWritten), ("stemmed", Words::Stemmed)] {
            let theirs = &point[key];
            agree(rouge::rouge_n(reply, reference, 1, words), &theirs[0], &point);
            agree(rouge::rouge_n(reply, reference, 2, words), &theirs[1], &point);
            agree(rouge::rouge_l(reply, reference, words).unwrap(), &theirs[2], &point);
        }
    }
}

#[test]
fn stems_are_those_of_nltk() {
    for point in points("stems", 1000) {
        let (word, stem) = (point[0].as_str().unwrap(), point[1].as_str().unwrap());
        assert_eq!(rouge::stem(word), stem, "{word}");
    }
}

#[test]
fn f1_and_normalised_answers_are_those_of_the_squad_script() {
    for point in pairs() {
        let (reply, reference) = (text(&point, "text"), text(&point, "reference"));
        agree(token_f1(reply, reference), &point["f1"], &point);
        assert_eq!(normalize::squad(reply), point["squad"][0].as_str().unwrap(), "{point:#}");
        let same = normalize::squad(reply) == normalize::squad(reference);
        assert_eq!(Some(same), point["squad"][1].as_bool(), "{point:#}");
    }
}

#[test]
fn exact_matches_are_those_of_lm_eval() {
    let ignored = [",", r"\$", "(?s).*#### ", r"\.$"];
    let ignored: Vec<Regex> = ignored.iter().map(|it| Regex::new(it).unwrap()).collect();
    let all = vec![Step::Case, Step::Punctuation, Step::Digits];
    let normalizers = [
        Normalizer::new(vec![Step::Case], Vec::new()),
        Normalizer::new(vec![Step::Punctuation], Vec::new()),
        Normalizer::new(vec![Step::Digits], Vec::new()),
        Normalizer::new(all, ignored),
    ];
    for point in pairs() {
        let (reply, reference) = (text(&point, "text"), text(&point, "reference"));
        for (at, normalizer) in normalizers.iter().enumerate() {
            let same = normalizer.apply(reply) == normalizer.apply(reference);
            assert_eq!(Some(same), point["exact"][at].as_bool(), "{at}: {point:#}");
        }
    }
}
