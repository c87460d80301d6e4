//! With a real model, whose file `PROBITY_TEST_MODEL` names.

use std::path::PathBuf;

use super::*;

/// The file. Without it, what is tested here cannot be.
fn file() -> PathBuf {
    let file = std::env::var_os("PROBITY_TEST_MODEL");
    file.expect("`PROBITY_TEST_MODEL` names a GGUF file of a small instruct model").into()
}

fn load(threads: u32, use_for: Use) -> Load {
    Load { path: file(), context: 1024, threads, use_for }
}

fn question(text: &str) -> Question {
    Question {
        text: format!("<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"),
        wants_beginning: true,
        temperature: 0.0,
        top_p: None,
        seed: 0,
        max_tokens: Some(24),
        stop: Vec::new(),
        grammar: None,
        logprobs: false,
    }
}

fn asked<const N: usize>(
    load: &Load,
    questions: [Question; N],
) -> [Result<Answer, EngineError>; N] {
    let mut questions = Some(questions);
    let mut answers = None;
    let serve = &mut |model: &mut dyn Model| {
        let questions = questions.take().unwrap();
        answers = Some(questions.map(|it| model.answer(&it, &|| false)));
    };
    with_model(load, serve).unwrap();
    answers.unwrap()
}

fn answer(question: Question) -> Answer {
    let [answer] = asked(&load(1, Use::Answers), [question]);
    answer.unwrap()
}

#[test]
fn the_same_question_has_the_same_answer_with_any_number_of_threads() {
    let prompts = ["Name three colours.", "What is the capital of France?", "Count to five."];
    let texts = |threads| {
        let answers = asked(
            &load(threads, Use::Answers),
            [0, 1, 2, 0, 1, 2].map(|it: usize| question(prompts[it])),
        );
        answers.map(|it| it.unwrap().text)
    };
    let one = texts(1);
    assert_eq!(one[..3], one[3..]);
    assert_eq!(one, texts(2));
    assert!(one.iter().all(|it| !it.trim().is_empty()));
}

#[test]
fn chance_begins_with_the_seed() {
    let hot = |seed| Question { temperature: 1.5, seed, ..question("Tell a story.") };
    let answers = asked(&load(1, Use::Answers), [hot(1), hot(1), hot(2)]);
    let [first, same, other] = answers.map(|it| it.unwrap().text);
    assert_eq!(first, same);
    assert_ne!(first, other);
}

#[test]
fn an_answer_ends_where_it_is_told_to() {
    let long = answer(Question { max_tokens: Some(5), ..question("Write a long poem.") });
    assert_eq!((long.output_tokens, long.is_cut), (5, true));
    let whole =
        answer(Question { max_tokens: Some(60), ..question("List the numbers from 1 to 9.") });
    let stop = whole.text.chars().skip(4).take(3).collect::<String>();
    let cut = answer(Question {
        max_tokens: Some(60),
        stop: vec![stop.clone()],
        ..question("List the numbers from 1 to 9.")
    });
    assert_eq!(whole.text.split(&stop).next().unwrap(), cut.text);
    assert!(!cut.is_cut);
}

#[test]
fn a_grammar_is_kept_to() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}, "kind": {"enum": ["cat", "dog"]}},
        "required": ["name", "kind"],
    });
    let grammar = crate::grammar::of_schema(&schema).unwrap();
    let text = answer(Question {
        grammar: Some(grammar.into()),
        max_tokens: Some(60),
        ..question("Describe a pet.")
    })
    .text;
    let value: serde_json::Value = serde_json::from_str(&text).expect(&text);
    assert!(["cat", "dog"].contains(&value["kind"].as_str().unwrap()), "{text}");
    let any = crate::grammar::any_object();
    let [any, bad] = asked(
        &load(1, Use::Answers),
        [
            Question { grammar: Some(any.into()), ..question("Describe a pet as JSON.") },
            Question { grammar: Some("root ::= missing".into()), ..question("x") },
        ],
    );
    assert!(any.unwrap().text.starts_with('{'));
    assert!(matches!(bad, Err(EngineError::BadGrammar { .. })), "{bad:?}");
}

#[test]
fn a_grammar_that_no_token_fits_is_an_error_and_the_next_question_is_answered() {
    let nothing = |temperature| Question {
        grammar: Some("root ::= [^\\x00-\\U0010FFFF]".into()),
        temperature,
        top_p: Some(0.9),
        ..question("Hi")
    };
    let token = Question { grammar: Some("root ::= <[999999]>".into()), ..question("Hi") };
    let answers =
        asked(&load(1, Use::Answers), [nothing(0.0), nothing(1.0), token, question("Hi")]);
    let [cold, hot, token, next] = answers;
    for answer in [cold, hot, token] {
        assert!(matches!(answer, Err(EngineError::BadGrammar { .. })), "{answer:?}");
    }
    assert!(!next.unwrap().text.is_empty());
}

#[test]
fn an_empty_question_is_an_error() {
    let empty = || Question { text: String::new(), wants_beginning: false, ..question("") };
    let [_, answer] = asked(&load(1, Use::Answers), [question("Hi"), empty()]);
    assert_eq!(answer, Err(EngineError::Empty));
    let [vector] = asked(&load(1, Use::Embeddings), [empty()]);
    assert_eq!(vector, Err(EngineError::Empty));
}

#[test]
fn likelihoods_are_those_of_the_tokens() {
    let answer = answer(Question { logprobs: true, ..question("What is 1 + 1?") });
    assert_eq!(answer.logprobs.len() as u64 + u64::from(!answer.is_cut), answer.output_tokens);
    let joined: String = answer.logprobs.iter().map(|(token, _)| token.as_str()).collect();
    assert_eq!(joined, answer.text);
    assert!(
        answer.logprobs.iter().all(|(_, it)| *it <= 0.0 && *it > -20.0),
        "{:?}",
        answer.logprobs
    );
}

#[test]
fn a_question_that_is_too_long_is_an_error_and_the_next_one_is_answered() {
    let [long, next] =
        asked(&load(1, Use::Answers), [question(&"word ".repeat(300_000)), question("Hi")]);
    assert!(
        matches!(long, Err(EngineError::TooLarge { tokens: 300_000.., context: 1024 })),
        "{long:?}"
    );
    assert!(!next.unwrap().text.is_empty());
}

#[test]
fn texts_have_vectors_and_similar_texts_similar_ones() {
    let plain = |text: &str| Question { text: text.to_owned(), ..question("") };
    let answers = asked(
        &load(1, Use::Embeddings),
        [
            plain("The cat sleeps on the sofa."),
            plain("A cat is sleeping on a couch."),
            plain("Quarterly revenue rose by nine per cent."),
        ],
    );
    let [cat, couch, money] = answers.map(|it| it.unwrap().vector);
    let cosine = |a: &[f32], b: &[f32]| {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    assert!(cosine(&cat, &couch) > cosine(&cat, &money));
}

#[test]
fn why_a_file_cannot_be_loaded_is_what_the_engine_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.gguf");
    std::fs::write(&path, crate::gguf::tests::sample(None)).unwrap();
    let load = Load { path: path.clone(), context: 64, threads: 1, use_for: Use::Answers };
    let error = with_model(&load, &mut |_| ()).unwrap_err();
    let EngineError::Load { path: named, why } = &error else { panic!("{error}") };
    assert_eq!(named, &path);
    assert!(why.len() > 20 && !why.contains("null result"), "{why}");
}
