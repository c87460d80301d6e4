//! Any two texts: no panic, extracted text stands where the span says, similarities are from 0 to 1.
#![no_main]

use libfuzzer_sys::fuzz_target;
use probity_text::{
    bleu, choice,
    chrf::{self, Variant},
    edit,
    extract::{Extraction, Marker, Take, Until},
    f1, number,
    pattern::Pattern,
    rouge::{self, Words},
};

fuzz_target!(|texts: (&str, &str)| {
    let (text, other) = texts;
    for take in [Take::First, Take::Last] {
        let mut all = vec![
            Extraction::Number(take),
            Extraction::Boxed(take),
            Extraction::CodeBlock { language: None, take },
            Extraction::XmlTag { name: "answer".to_owned(), take },
        ];
        all.extend(Marker::new(other).map(|marker| Extraction::After { marker, take, until: Until::Line }));
        all.extend(Pattern::new(other, None).ok().map(|pattern| Extraction::Regex { pattern, take }));
        for extraction in all {
            if let Ok(span) = extraction.find(text) {
                assert!(text.get(span).is_some());
            }
        }
    }
    let _ = (number::only(text), choice::read(text, &[other, "blue"]));
    let scores = [
        Some(f1::token_f1(text, other)),
        Some(rouge::rouge_n(text, other, 2, Words::Stemmed)),
        rouge::rouge_l(text, other, Words::AsWritten),
        Some(bleu::sentence(text, &[other])),
        Some(chrf::sentence(text, &[other], Variant::WithWords)),
        edit::similarity(text, other),
    ];
    assert!(scores.into_iter().flatten().all(|score| (0.0..=1.0).contains(&score)));
});
