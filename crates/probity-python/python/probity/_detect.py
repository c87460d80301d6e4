"""What replies are: stored results, and one detector at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, Union, overload

from . import _probity
from ._probity import Results, Rules

Row = Union[Mapping[str, Any], str, bytes]
"""A stored result: a table, or one line of JSON."""
RulesLike = Union[Rules, str, "PathLike[str]", None]
"""Rules, the file of a suite that has them, or nothing for the usual ones."""


# A line of JSON is an iterable of texts as well, but it is one row.
@overload
def classify(  # type: ignore[overload-overlap]
    rows: Row, *, rules: RulesLike = None, threads: int | None = None
) -> dict[str, Any]: ...
@overload
def classify(
    rows: Iterable[Row], *, rules: RulesLike = None, threads: int | None = None
) -> Results: ...
def classify(
    rows: Row | Iterable[Row], *, rules: RulesLike = None, threads: int | None = None
) -> dict[str, Any] | Results:
    """Says what a stored result is, or what many are.

    A row is what `probity classify` reads: `case_id`, `raw_response` and what the case expects. What comes back is the row
    with `classification`, `verdict` and `scores`.

    >>> row = {"case_id": "capital", "expected_response": "Paris", "match": "contains", "raw_response": "It is Paris."}
    >>> classify(row)["verdict"]
    'pass'
    >>> classify({**row, "raw_response": "I cannot help with that."})["classification"]["primary"]
    'refusal'

    Many rows are classified on all cores, or on so many `threads`, while other threads of Python go on:

    >>> results = classify([row] * 3)
    >>> len(results), results[0]["verdict"], results.summary()["verdicts"]["pass"]
    (3, 'pass', 3)

    `Results` is a table of Arrow, too: `polars.DataFrame(results)`. A row that is none raises `ProbityError`:

    >>> classify([row, {"raw_response": "?"}])
    Traceback (most recent call last):
        ...
    probity.ProbityError: row 2: field `case_id` is missing
    """
    if isinstance(rows, (Mapping, str, bytes)):
        return _probity.classify_one(rows, rules)
    found: dict[str, Any] | Results = _probity.classify_many(rows, rules, threads)
    return found


def classify_iter(
    rows: Iterable[Row], *, rules: RulesLike = None, threads: int | None = None
) -> Iterator[dict[str, Any]]:
    """Classifies rows one after the other, in bounded memory: rows are read while results are taken.

    >>> rows = ({"case_id": str(n), "expected_response": "4", "raw_response": str(n)} for n in range(5))
    >>> [it["case_id"] for it in classify_iter(rows) if it["verdict"] == "pass"]
    ['4']
    """
    return _probity.classify_stream(rows, rules, threads)


@overload
def check_refusal(
    text: str, *, rules: RulesLike = None, threads: int | None = None
) -> dict[str, Any]: ...
@overload
def check_refusal(
    text: list[str], *, rules: RulesLike = None, threads: int | None = None
) -> list[dict[str, Any]]: ...
def check_refusal(
    text: str | list[str], *, rules: RulesLike = None, threads: int | None = None
) -> dict[str, Any] | list[dict[str, Any]]:
    """Says whether a text declines, or whether each of a list does.

    >>> check_refusal("I'm sorry, but I can't help with that.")["refusal"]
    True
    >>> [it["refusal"] for it in check_refusal(["Paris.", "I won't do that."])]
    [False, True]
    """
    found: dict[str, Any] | list[dict[str, Any]] = _probity.check_refusal(text, rules, threads)
    return found


@overload
def check_json(
    text: str, *, level: str = "lenient", want: str = "any", threads: int | None = None
) -> dict[str, Any]: ...
@overload
def check_json(
    text: list[str], *, level: str = "lenient", want: str = "any", threads: int | None = None
) -> list[dict[str, Any]]: ...
def check_json(
    text: str | list[str], *, level: str = "lenient", want: str = "any", threads: int | None = None
) -> dict[str, Any] | list[dict[str, Any]]:
    """Finds the JSON value in a text, or in each of a list.

    `level` is how much is forgiven: `strict`, `lenient` or `repair`. `want` is `any`, `object` or `array`.

    >>> check_json('{"a": 1,}')["value"]
    {'a': 1}
    >>> check_json('{"a": 1,}', level="strict")["value"] is None
    True
    """
    found: dict[str, Any] | list[dict[str, Any]] = _probity.check_json(text, level, want, threads)
    return found


@overload
def check_policy(
    text: str,
    policies: Iterable[str] = (),
    *,
    rules: RulesLike = None,
    threads: int | None = None,
) -> dict[str, Any]: ...
@overload
def check_policy(
    text: list[str],
    policies: Iterable[str] = (),
    *,
    rules: RulesLike = None,
    threads: int | None = None,
) -> list[dict[str, Any]]: ...
def check_policy(
    text: str | list[str],
    policies: Iterable[str] = (),
    *,
    rules: RulesLike = None,
    threads: int | None = None,
) -> dict[str, Any] | list[dict[str, Any]]:
    """Finds where a text breaks policies: those that are named, or else all of the suite, or else all built-in ones.

    >>> check_policy("Mail me at jo.doe@gmail.com")["hits"][0]["policy"]
    'pii'
    >>> check_policy("x", ["nonsense"])
    Traceback (most recent call last):
        ...
    probity.ProbityError: unknown policy `nonsense`
    hint: built-in policies are secrets, pii, dangerous_shell
    """
    found: dict[str, Any] | list[dict[str, Any]] = _probity.check_policy(text, list(policies), rules, threads)
    return found


@overload
def check_error(
    text: str = "",
    *,
    backend: str | None = None,
    status: int | None = None,
    exit_code: int | None = None,
    signal: str | None = None,
    stdout: str | None = None,
    stderr: str | None = None,
    headers: Mapping[str, str] | None = None,
    rules: RulesLike = None,
    threads: int | None = None,
) -> dict[str, Any]: ...
@overload
def check_error(
    text: list[str],
    *,
    backend: str | None = None,
    status: int | None = None,
    exit_code: int | None = None,
    signal: str | None = None,
    stdout: str | None = None,
    stderr: str | None = None,
    headers: Mapping[str, str] | None = None,
    rules: RulesLike = None,
    threads: int | None = None,
) -> list[dict[str, Any]]: ...
def check_error(
    text: str | list[str] = "",
    *,
    backend: str | None = None,
    status: int | None = None,
    exit_code: int | None = None,
    signal: str | None = None,
    stdout: str | None = None,
    stderr: str | None = None,
    headers: Mapping[str, str] | None = None,
    rules: RulesLike = None,
    threads: int | None = None,
) -> dict[str, Any] | list[dict[str, Any]]:
    """Says what an error means, and whether trying again can help. Of a list of texts, what else is known holds for each.

    >>> found = check_error("Rate limit reached, try again in 20s", status=429)
    >>> found["kind"], found["permanent"], found["retry_after"]
    ('rate_limit', False, 20.0)
    >>> [it["kind"] for it in check_error(["overloaded", "invalid api key"])]
    ['overloaded', 'auth']
    """
    known: dict[str, Any] = {
        "backend": backend,
        "status": status,
        "exit_code": exit_code,
        "signal": signal,
        "stdout": stdout,
        "stderr": stderr,
        "headers": headers,
    }
    known = {key: it for key, it in known.items() if it is not None}
    request: Any = [{**known, "text": it} for it in text] if isinstance(text, list) else {**known, "text": text}
    found: dict[str, Any] | list[dict[str, Any]] = _probity.check_error(request, rules, threads)
    return found
