"""Functions that ask nobody."""

from __future__ import annotations

import enum
import json
import subprocess
import threading
from collections import UserDict
from pathlib import Path
from typing import Any

import pytest

import probity
from conftest import COMMAND

ROW = {"case_id": "a", "expected_response": "Paris", "match": "contains", "raw_response": "It is Paris."}


def test_classify_says_what_the_command_says(own_folder: Path) -> None:
    rows = [ROW, {**ROW, "case_id": "ü\u2028", "raw_response": "I can't help with that."}, {**ROW, "error": "timeout"}]
    Path("rows.jsonl").write_text("".join(json.dumps(it) + "\n" for it in rows))
    told = subprocess.run([COMMAND, "classify", "rows.jsonl"], capture_output=True, check=True)
    by_command = [json.loads(it) for it in told.stdout.splitlines()]
    assert list(probity.classify(rows)) == by_command
    assert [probity.classify(it) for it in rows] == by_command
    assert list(probity.classify_iter(json.dumps(it) for it in rows)) == by_command
    assert list(probity.classify([json.dumps(it).encode() for it in rows])) == by_command


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_batch_has_the_order_of_its_rows(threads: int) -> None:
    rows = ({**ROW, "case_id": str(n)} for n in range(20_000))
    results = probity.classify(rows, threads=threads)
    assert len(results) == 20_000
    assert [results[at]["case_id"] for at in (0, 19_999, -1, -20_000)] == ["0", "19999", "19999", "0"]
    with pytest.raises(IndexError):
        results[20_000]
    assert len(results.lines().splitlines()) == 20_000


def test_values_of_other_types_are_written_as_json() -> None:
    class Colour(enum.IntEnum):
        RED = 3

    row: Any = UserDict({**ROW, "vars": {"n": Colour.RED, "big": 2**70, "f": 0.5, "t": (1, None, True)}})
    assert probity.classify(row)["vars"] == {"n": 3, "big": 2**70, "f": 0.5, "t": [1, None, True]}


@pytest.mark.parametrize(
    ("row", "kind", "words"),
    [
        ({"raw_response": "?"}, probity.ProbityError, "row 2: "),
        ("{", probity.ProbityError, "row 2: "),
        ("", ValueError, "row 2: a row that is a text must be one line"),
        ("{}\n{}", ValueError, "row 2: a row that is a text must be one line"),
        ({"x": float("nan")}, ValueError, "row 2: NaN cannot be written as JSON"),
        ({"x": object()}, TypeError, "row 2: a value of type `object`"),
        ({1: 2}, TypeError, "row 2: the keys of a table must be texts"),
        ({"x": "\ud800"}, ValueError, "row 2: a text cannot be written as UTF-8"),
        (7, probity.ProbityError, "row 2: "),
    ],
)
def test_a_row_that_is_none_is_named(row: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        probity.classify([ROW, row])
    with pytest.raises(kind, match=words):
        list(probity.classify_iter([ROW, row]))


def test_a_value_that_holds_itself_is_refused() -> None:
    row: dict[str, Any] = {**ROW}
    row["self"] = row
    with pytest.raises(ValueError, match="nest deeper"):
        probity.classify(row)


def test_what_an_iterator_raises_gets_through() -> None:
    def rows() -> Any:
        yield ROW
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        probity.classify(rows())
    with pytest.raises(KeyError, match="mine"):
        list(probity.classify_iter(rows()))


def test_a_stream_is_read_while_it_is_taken() -> None:
    """Rows without end: a stream that held them all would never give one."""

    def rows() -> Any:
        n = 0
        while True:
            n += 1
            yield {**ROW, "case_id": str(n)}

    stream = probity.classify_iter(rows())
    assert [next(stream)["case_id"] for _ in range(10)] == [str(n) for n in range(1, 11)]


def test_other_threads_go_on_meanwhile() -> None:
    """The interpreter is released: this thread gets on while others classify."""
    rows = [json.dumps({**ROW, "raw_response": "word " * 200}) for _ in range(20_000)]
    done = threading.Event()

    def work() -> None:
        probity.classify(rows, threads=1)
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    turns = 0
    while not done.is_set():
        turns += 1
        done.wait(0.0005)
    worker.join()
    assert turns > 20


def test_rules_of_a_suite(own_folder: Path) -> None:
    Path("s.toml").write_text('[[policies]]\nname = "names"\nregexes = ["Bob"]\n')
    row = {**ROW, "raw_response": "It is Paris, says Bob."}
    assert probity.classify(row)["classification"]["primary"] == "pass"
    for rules in ("s.toml", Path("s.toml"), probity.Rules("s.toml")):
        assert probity.classify(row, rules=rules)["classification"]["primary"] == "policy_violation"
        assert probity.check_policy("Bob", rules=rules)["hits"][0]["policy"] == "names"
    Path("bad.toml").write_text('[[policies]]\nname = "x"\nregexes = ["("]\n')
    with pytest.raises(probity.ProbityError, match="bad.toml:3"):
        probity.Rules("bad.toml")


def test_detectors_say_what_the_command_says() -> None:
    def command(*words: str, text: str) -> Any:
        line = json.dumps({"id": 1, "text": text, "command": text})
        told = subprocess.run([COMMAND, "check", *words, "--jsonl"], input=line, capture_output=True, text=True, check=True)
        found = json.loads(told.stdout)
        del found["id"]
        return found

    text = 'Sure ü: {"a": 1,} mail jo.doe@gmail.com'
    assert probity.check_json(text) == command("json", text=text)
    assert probity.check_refusal(text) == command("refusal", text=text)
    assert probity.check_policy(text) == command("policy", text=text)
    assert probity.check_error(text) == command("error", text=text)
    assert probity.command.judge("rm -rf / && ls") == command("command", text="rm -rf / && ls")
    assert probity.check_json([text, "no"]) == [command("json", text=text), command("json", text="no")]


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="`level` must be one of strict, lenient, repair, not `x`"):
        probity.check_json("{}", level="x")
    with pytest.raises(ValueError, match="`want` must be one of any, object, array"):
        probity.check_json("{}", want="x")
    with pytest.raises(ValueError, match="`edition` must be one of 2017, 2024"):
        probity.command.posix("ls", edition="x")
    with pytest.raises(ValueError, match="there are 1 texts, but 2 references"):
        probity.metrics.bleu(["a"], ["a", "b"])
    with pytest.raises(TypeError):
        probity.check_refusal(3)  # type: ignore[call-overload]


def test_metrics_of_a_batch_are_those_of_each() -> None:
    texts = ["the cat sat", "a dog", ""] * 50
    references: list[Any] = ["the cat sat down", ["a dog ran", "a dog"], "x"] * 50
    for metric in ("token_f1", "rouge_n", "rouge_l", "bleu", "chrf", "edit_similarity"):
        function = getattr(probity.metrics, metric)
        assert function(texts, references) == [function(t, r) for t, r in zip(texts, references)]
    assert probity.metrics.corpus_bleu(["the cat sat on the mat"], ["the cat sat on the mat"]) > 0.99
    assert 0 < probity.metrics.corpus_chrf(texts, references, words=True) < 1
