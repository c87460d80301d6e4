//! How near texts are to others.

use probity_text::{
    bleu as bleu_of, choice as choice_of, chrf as chrf_of, edit, f1, normalize as normalize_of,
    number,
    rouge::{self, Words},
};
use pyo3::{IntoPyObjectExt as _, exceptions::PyValueError, prelude::*};

use crate::parallel::{map, threads};

/// What a text is compared with.
#[derive(FromPyObject)]
pub(crate) enum References {
    One(String),
    Several(Vec<String>),
}

impl References {
    fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Several(texts) => texts,
        }
    }
}

/// Texts and what each is compared with.
struct Pairs {
    pairs: Vec<(String, References)>,
    /// Whether a list was given.
    is_batch: bool,
}

impl Pairs {
    fn new(text: Bound<'_, PyAny>, reference: Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = text.extract::<String>() {
            let reference: References = reference.extract()?;
            return Ok(Self { pairs: vec![(text, reference)], is_batch: false });
        }
        let (texts, references): (Vec<String>, Vec<References>) =
            (text.extract()?, reference.extract()?);
        if texts.len() != references.len() {
            let (texts, references) = (texts.len(), references.len());
            return Err(PyValueError::new_err(format!(
                "there are {texts} texts, but {references} references"
            )));
        }
        Ok(Self { pairs: texts.into_iter().zip(references).collect(), is_batch: true })
    }

    /// The score of each text: the best one over its references.
    fn best(
        self,
        py: Python<'_>,
        named: Option<usize>,
        score: impl Fn(&str, &str) -> Option<f64> + Sync,
    ) -> PyResult<Bound<'_, PyAny>> {
        self.scores(py, named, |text, references| {
            references.iter().filter_map(|it| score(text, it)).reduce(f64::max)
        })
    }

    fn scores(
        self,
        py: Python<'_>,
        named: Option<usize>,
        score: impl Fn(&str, &[String]) -> Option<f64> + Sync,
    ) -> PyResult<Bound<'_, PyAny>> {
        let scores =
            py.detach(|| map(&self.pairs, threads(named), |(text, it)| score(text, it.as_slice())));
        match self.is_batch {
            true => scores.into_bound_py_any(py),
            false => scores.into_iter().next().flatten().into_bound_py_any(py),
        }
    }
}

fn words(stemmer: bool) -> Words {
    match stemmer {
        true => Words::Stemmed,
        false => Words::AsWritten,
    }
}

/// The words that two texts have in common.
#[pyfunction]
#[pyo3(signature = (text, reference, threads = None))]
pub(crate) fn token_f1<'py>(
    py: Python<'py>,
    text: Bound<'py, PyAny>,
    reference: Bound<'py, PyAny>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    Pairs::new(text, reference)?.best(py, threads, |text, it| Some(f1::token_f1(text, it)))
}

/// The runs of `n` words that two texts have in common.
#[pyfunction]
#[pyo3(signature = (text, reference, n, stemmer, threads = None))]
pub(crate) fn rouge_n<'py>(
    py: Python<'py>,
    text: Bound<'py, PyAny>,
    reference: Bound<'py, PyAny>,
    n: usize,
    stemmer: bool,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    Pairs::new(text, reference)?
        .best(py, threads, |text, it| Some(rouge::rouge_n(text, it, n, words(stemmer))))
}

/// The longest sequence of words that two texts have in common.
#[pyfunction]
#[pyo3(signature = (text, reference, stemmer, threads = None))]
pub(crate) fn rouge_l<'py>(
    py: Python<'py>,
    text: Bound<'py, PyAny>,
    reference: Bound<'py, PyAny>,
    stemmer: bool,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    Pairs::new(text, reference)?
        .best(py, threads, |text, it| rouge::rouge_l(text, it, words(stemmer)))
}

/// BLEU of sentences.
#[pyfunction]
#[pyo3(signature = (text, reference, threads = None))]
pub(crate) fn bleu<'py>(
    py: Python<'py>,
    text: Bound<'py, PyAny>,
    reference: Bound<'py, PyAny>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    Pairs::new(text, reference)?.scores(py, threads, |text, it| Some(bleu_of::sentence(text, it)))
}

fn variant(words: bool) -> chrf_of::Variant {
    match words {
        true => chrf_of::Variant::WithWords,
        false => chrf_of::Variant::Characters,
    }
}

/// chrF of sentences.
#[pyfunction]
#[pyo3(signature = (text, reference, words, threads = None))]
pub(crate) fn chrf<'py>(
    py: Python<'py>,
    text: Bound<'py, PyAny>,
    reference: Bound<'py, PyAny>,
    words: bool,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    Pairs::new(text, reference)?
        .scores(py, threads, |text, it| Some(chrf_of::sentence(text, it, variant(words))))
}

/// BLEU of a corpus.
#[pyfunction]
#[pyo3(signature = (texts, references, threads = None))]
pub(crate) fn corpus_bleu(
    py: Python<'_>,
    texts: Bound<'_, PyAny>,
    references: Bound<'_, PyAny>,
    threads: Option<usize>,
) -> PyResult<f64> {
    let Pairs { pairs, .. } = Pairs::new(texts, references)?;
    Ok(py.detach(|| {
        let of = |(text, it): &(String, References)| bleu_of::Statistics::of(text, it.as_slice());
        let all = map(&pairs, self::threads(threads), of);
        all.into_iter().sum::<bleu_of::Statistics>().score(bleu_of::Orders::All)
    }))
}

/// chrF of a corpus.
#[pyfunction]
#[pyo3(signature = (texts, references, words, threads = None))]
pub(crate) fn corpus_chrf(
    py: Python<'_>,
    texts: Bound<'_, PyAny>,
    references: Bound<'_, PyAny>,
    words: bool,
    threads: Option<usize>,
) -> PyResult<f64> {
    let Pairs { pairs, .. } = Pairs::new(texts, references)?;
    Ok(py.detach(|| {
        let of = |(text, it): &(String, References)| {
            chrf_of::Statistics::of(text, it.as_slice(), variant(words))
        };
        let all = map(&pairs, self::threads(threads), of);
        all.into_iter().sum::<chrf_of::Statistics>().score()
    }))
}

/// How few characters have to change.
#[pyfunction]
#[pyo3(signature = (text, reference, threads = None))]
pub(crate) fn edit_similarity<'py>(
    py: Python<'py>,
    text: Bound<'py, PyAny>,
    reference: Bound<'py, PyAny>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    Pairs::new(text, reference)?.best(py, threads, edit::similarity)
}

/// The numbers in a text.
#[pyfunction]
pub(crate) fn numbers(py: Python<'_>, text: &str) -> Vec<f64> {
    py.detach(|| number::find(text).map(|it| it.value).collect())
}

/// The index of the choice that a reply names; none if it names none, or several.
#[pyfunction]
pub(crate) fn choice(py: Python<'_>, reply: &str, choices: Vec<String>) -> Option<usize> {
    match py.detach(|| choice_of::read(reply, &choices)) {
        choice_of::Answer::One(at) => Some(at),
        choice_of::Answer::Several(_) | choice_of::Answer::Nothing => None,
    }
}

/// A text as the script of `SQuAD` compares it.
#[pyfunction]
pub(crate) fn normalize(py: Python<'_>, text: &str) -> String {
    py.detach(|| normalize_of::squad(text))
}
