use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn load() -> Load {
    Load { path: "m.gguf".into(), context: 16, threads: 1, use_for: Use::Answers }
}

fn question(text: &str) -> Question {
    Question {
        text: text.to_owned(),
        wants_beginning: true,
        temperature: 0.0,
        top_p: None,
        seed: 0,
        max_tokens: None,
        stop: Vec::new(),
        grammar: None,
        logprobs: false,
    }
}

/// Says what it is asked; `endless` has no end but that nobody waits.
struct Parrot {
    abandoned: Arc<AtomicUsize>,
}

impl Model for Parrot {
    fn answer(
        &mut self,
        question: &Question,
        is_abandoned: &dyn Fn() -> bool,
    ) -> Result<Answer, EngineError> {
        if question.text == "endless" {
            while !is_abandoned() {
                thread::yield_now();
            }
            self.abandoned.fetch_add(1, Ordering::SeqCst);
            return Err(EngineError::Abandoned);
        }
        Ok(Answer { text: question.text.clone(), ..Answer::default() })
    }
}

fn parrot(loads: &Arc<AtomicUsize>, abandoned: &Arc<AtomicUsize>) -> Engine {
    let (loads, abandoned) = (Arc::clone(loads), Arc::clone(abandoned));
    Engine::start(load(), move |serve| {
        loads.fetch_add(1, Ordering::SeqCst);
        serve(&mut Parrot { abandoned: Arc::clone(&abandoned) });
        Ok(())
    })
}

#[tokio::test]
async fn questions_are_answered_one_by_one_by_one_model() {
    let (loads, abandoned) = (Arc::default(), Arc::default());
    let engine = parrot(&loads, &abandoned);
    assert_eq!(loads.load(Ordering::SeqCst), 0, "nobody has asked yet");
    let (a, b) = tokio::join!(engine.ask(question("a")), engine.ask(question("b")));
    assert_eq!((a.unwrap().text, b.unwrap().text), ("a".to_owned(), "b".to_owned()));
    assert_eq!(loads.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_work_ends_when_nobody_waits_for_it() {
    let (loads, abandoned) = (Arc::default(), Arc::default());
    let engine = parrot(&loads, &abandoned);
    let limit = Duration::from_millis(20);
    assert!(tokio::time::timeout(limit, engine.ask(question("endless"))).await.is_err());
    assert_eq!(engine.ask(question("next")).await.unwrap().text, "next");
    assert_eq!(abandoned.load(Ordering::SeqCst), 1);
    // A question that nobody waits for any more when its turn comes is not begun.
    let (_, second) = tokio::join!(
        tokio::time::timeout(limit, engine.ask(question("endless"))),
        tokio::time::timeout(limit, engine.ask(question("endless"))),
    );
    assert!(second.is_err());
    drop(engine);
    assert_eq!(abandoned.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_model_that_cannot_be_loaded_is_tried_again_and_says_why() {
    let tries: Arc<AtomicUsize> = Arc::default();
    let counted = Arc::clone(&tries);
    let engine = Engine::start(load(), move |_| {
        let tries = counted.fetch_add(1, Ordering::SeqCst);
        Err(EngineError::Load { path: "m.gguf".into(), why: format!("try {tries}") })
    });
    let error = engine.ask(question("a")).await.unwrap_err();
    assert_eq!(error.to_string(), "the model `m.gguf` cannot be loaded: try 0");
    let error = engine.ask(question("a")).await.unwrap_err();
    assert_eq!(error.to_string(), "the model `m.gguf` cannot be loaded: try 1");
}

#[test]
fn small_models_have_one_thread() {
    assert_eq!(usual_threads(98_362_432, 64), 1);
    assert_eq!(usual_threads(8 << 30, 2), 1);
    assert_eq!(usual_threads(8 << 30, 8), 4);
    assert_eq!(usual_threads(8 << 30, 128), 8);
}

#[cfg(not(feature = "engine"))]
#[test]
fn a_build_without_an_engine_says_so() {
    assert!(matches!(Engine::open(&load()), Err(EngineError::NotBuiltIn)));
}
