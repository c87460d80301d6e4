"""How near a text is to another, from 0 to 1. `docs/metrics.md` says what each metric means.

Each takes a text and its reference (several references are a list; the best counts, or the metric takes them all), or a
list of texts and a list of references, which are compared on all cores.

>>> token_f1("the cat sat", "a cat sat down")
0.8
>>> rouge_n(["a b", "c"], ["a b", "d"], n=1)
[1.0, 0.0]
>>> numbers("from 3 to 1,200.5")
[3.0, 1200.5]
>>> choice("The answer is (B).", ["red", "blue"])
1
"""

from __future__ import annotations

from typing import Union, overload

from . import _probity

__all__ = [
    "bleu",
    "choice",
    "chrf",
    "corpus_bleu",
    "corpus_chrf",
    "edit_similarity",
    "normalize",
    "numbers",
    "rouge_l",
    "rouge_n",
    "token_f1",
]

References = Union[str, list[str]]

choice = _probity.choice
normalize = _probity.normalize
numbers = _probity.numbers


@overload
def token_f1(text: str, reference: References, *, threads: int | None = None) -> float: ...
@overload
def token_f1(
    text: list[str], reference: list[References], *, threads: int | None = None
) -> list[float]: ...
def token_f1(
    text: str | list[str],
    reference: References | list[References],
    *,
    threads: int | None = None,
) -> float | list[float]:
    """The words that both have, as the script of SQuAD counts them."""
    found: float | list[float] = _probity.token_f1(text, reference, threads)
    return found


@overload
def rouge_n(
    text: str,
    reference: References,
    *,
    n: int = 1,
    stemmer: bool = False,
    threads: int | None = None,
) -> float: ...
@overload
def rouge_n(
    text: list[str],
    reference: list[References],
    *,
    n: int = 1,
    stemmer: bool = False,
    threads: int | None = None,
) -> list[float]: ...
def rouge_n(
    text: str | list[str],
    reference: References | list[References],
    *,
    n: int = 1,
    stemmer: bool = False,
    threads: int | None = None,
) -> float | list[float]:
    """The runs of `n` words that both have: ROUGE-1, ROUGE-2 and so on."""
    found: float | list[float] = _probity.rouge_n(text, reference, n, stemmer, threads)
    return found


@overload
def rouge_l(
    text: str, reference: References, *, stemmer: bool = False, threads: int | None = None
) -> float | None: ...
@overload
def rouge_l(
    text: list[str],
    reference: list[References],
    *,
    stemmer: bool = False,
    threads: int | None = None,
) -> list[float | None]: ...
def rouge_l(
    text: str | list[str],
    reference: References | list[References],
    *,
    stemmer: bool = False,
    threads: int | None = None,
) -> float | None | list[float | None]:
    """The longest sequence of words that both have; `None` for texts that are too long to compare."""
    found: float | None | list[float | None] = _probity.rouge_l(text, reference, stemmer, threads)
    return found


@overload
def bleu(text: str, reference: References, *, threads: int | None = None) -> float: ...
@overload
def bleu(
    text: list[str], reference: list[References], *, threads: int | None = None
) -> list[float]: ...
def bleu(
    text: str | list[str],
    reference: References | list[References],
    *,
    threads: int | None = None,
) -> float | list[float]:
    """BLEU of a sentence, as sacrebleu has it.

    >>> round(bleu("the cat sat on the mat", ["the cat sat on a mat", "a cat sat"]), 3)
    0.537
    """
    found: float | list[float] = _probity.bleu(text, reference, threads)
    return found


@overload
def chrf(
    text: str, reference: References, *, words: bool = False, threads: int | None = None
) -> float: ...
@overload
def chrf(
    text: list[str],
    reference: list[References],
    *,
    words: bool = False,
    threads: int | None = None,
) -> list[float]: ...
def chrf(
    text: str | list[str],
    reference: References | list[References],
    *,
    words: bool = False,
    threads: int | None = None,
) -> float | list[float]:
    """chrF of a sentence, or chrF++ with `words`, as sacrebleu has it."""
    found: float | list[float] = _probity.chrf(text, reference, words, threads)
    return found


def corpus_bleu(
    texts: list[str], references: list[References], *, threads: int | None = None
) -> float:
    """BLEU of a corpus."""
    return _probity.corpus_bleu(texts, references, threads)


def corpus_chrf(
    texts: list[str],
    references: list[References],
    *,
    words: bool = False,
    threads: int | None = None,
) -> float:
    """chrF of a corpus, or chrF++ with `words`."""
    return _probity.corpus_chrf(texts, references, words, threads)


@overload
def edit_similarity(
    text: str, reference: References, *, threads: int | None = None
) -> float | None: ...
@overload
def edit_similarity(
    text: list[str], reference: list[References], *, threads: int | None = None
) -> list[float | None]: ...
def edit_similarity(
    text: str | list[str],
    reference: References | list[References],
    *,
    threads: int | None = None,
) -> float | None | list[float | None]:
    """How few characters have to change; `None` for texts that are too long to compare.

    >>> edit_similarity("kitten", "sitting")
    0.5714285714285714
    """
    found: float | None | list[float | None] = _probity.edit_similarity(text, reference, threads)
    return found
