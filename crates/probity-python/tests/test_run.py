"""Suites that are run from Python."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import probity


def test_a_run_gives_its_events(suite: Path) -> None:
    run = probity.run(suite)
    events = [it["event"] for it in run]
    assert events[0] == "run-started"
    assert events[-1] == "run-finished"
    assert events.count("case-finished") == 3
    done = run.wait()
    assert done.exit_code == 0
    assert done.passed
    assert done.summary["passed"] == 2
    assert [it["verdict"] for it in done.case("wrong")] == ["fail"]
    assert probity.load_run(done.id).summary == done.summary
    assert "2 passed, 1 failed" in repr(done)


def test_a_notebook_shows_a_table(suite: Path) -> None:
    text = suite.read_text().replace('"words"', '"<words>"')
    suite.write_text(text)
    html = probity.run(suite).wait()._repr_html_()
    assert "<table>" in html
    assert "&lt;words&gt;" in html
    assert "<words>" not in html


def test_a_gate_that_fails_is_the_exit_code(suite: Path) -> None:
    suite.write_text(suite.read_text().replace("gates = false", "gates = { pass_rate = 0.9 }"))
    done = probity.run(suite).wait()
    assert done.exit_code == 1
    assert not done.passed


def test_a_suite_that_cannot_be_used_is_told(own_folder: Path) -> None:
    with pytest.raises(probity.ProbityError, match="there is no suite file `nowhere.toml`"):
        probity.run("nowhere.toml").wait()
    Path("bad.toml").write_text("[[runners]]\nname = 3\n")
    with pytest.raises(probity.ProbityError) as raised:
        list(probity.run("bad.toml"))
    assert "bad.toml:2" in str(raised.value)
    with pytest.raises(probity.ProbityError, match="--nonsense"):
        probity.run("bad.toml", options=["--nonsense"]).wait()
    with pytest.raises(probity.ProbityError, match="for the command line alone"):
        probity.run("bad.toml", options=["--porcelain"]).wait()


def test_notes_go_to_the_logger(suite: Path, caplog: pytest.LogCaptureFixture) -> None:
    Path("cases.jsonl").write_text('{"id": "a", "prompt": "x"}\n')
    with caplog.at_level(logging.INFO, "probity"):
        probity.run(suite).wait()
    assert "has no criterion" in caplog.text


def test_nothing_is_printed(suite: Path, capfd: pytest.CaptureFixture[str]) -> None:
    probity.run(suite).wait()
    assert capfd.readouterr() == ("", "")


def test_functions_answer_and_score(suite: Path) -> None:
    seen: list[Any] = []

    def answer(prompt: str, options: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
        seen.append((prompt, options["id"], context["vars"]))
        return {"output": prompt.upper(), "tokenUsage": {"prompt": 1, "completion": 2}, "cost": 0.5}

    async def short(output: str) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"pass": len(output) < 4, "score": 0.25, "reason": f"{len(output)} letters"}

    Path("cases.jsonl").write_text(
        '{"id": "a", "prompt": "abc", "assert": [{"type": "scorer", "value": "short"}]}\n'
        '{"id": "b", "prompt": "abcd", "assert": [{"type": "scorer", "value": "short"}]}\n'
    )
    done = probity.run(suite, backends={"mine": answer}, scorers={"short": short}, options=["--backend=mine"]).wait()
    [a], [b] = done.case("a"), done.case("b")
    assert (a["raw_response"], a["verdict"], a["cost_usd"], a["usage"]["output_tokens"]) == ("ABC", "pass", 0.5, 2)
    assert (b["verdict"], b["reason"]) == ("fail", "4 letters")
    assert sorted(it[0] for it in seen) == ["abc", "abcd"]
    assert {it[1] for it in seen} == {"mine"}


def test_a_function_takes_the_place_of_a_backend(suite: Path) -> None:
    done = probity.run(suite, backends={"parrot": lambda prompt: "yes"}).wait()
    assert [it["verdict"] for it in done.case("wrong")] == ["pass"]
    assert {it["backend"] for it in done} == {"parrot"}


def test_what_a_function_raises_is_an_error_of_the_backend(suite: Path) -> None:
    def answer(prompt: str) -> str:
        if prompt == "no":
            raise LookupError("the cupboard is bare")
        return prompt

    done = probity.run(suite, backends={"parrot": answer}, options=["--max-retries=0"]).wait()
    [wrong] = done.case("wrong")
    assert wrong["verdict"] == "error"
    assert "LookupError: the cupboard is bare" in wrong["error"]["message"]
    done = probity.run(suite, backends={"parrot": lambda prompt: 3}, options=["--max-retries=0"]).wait()
    assert "neither a text nor a table" in done.case("hello")[0]["error"]["message"]


def test_a_function_that_takes_too_long_is_given_up(suite: Path) -> None:
    gate = threading.Event()
    try:
        done = probity.run(
            suite,
            backends={"parrot": lambda prompt: gate.wait(60) and prompt},
            options=["--attempt-timeout=50ms", "--max-retries=0"],
            limit=1,
        ).wait()
    finally:
        gate.set()
    [only] = list(done)
    assert only["error"]["kind"] == "timeout"


def test_answers_of_one_function_are_not_those_of_another(suite: Path) -> None:
    def saying(word: str) -> Any:
        return lambda prompt: word

    for word in ("one", "two"):
        answers = {"parrot": saying(word)}
        done = probity.run(suite, backends=answers, cache=True).wait()
        assert {it["raw_response"] for it in done} == {word}
    again = probity.run(suite, backends={"parrot": saying("two")}, cache=True).wait()
    assert {it["source"] for it in again} == {"cache"}


def test_functions_are_told_apart_by_their_code_and_their_values() -> None:
    from probity._callables import identity

    class Model:
        def __init__(self, name: str) -> None:
            self.name = name

        def __call__(self, prompt: str) -> str:
            return self.name

        def answer(self, prompt: str) -> str:
            return self.name

        def __repr__(self) -> str:
            return f"Model({self.name})"

    pairs: list[tuple[Any, Any]] = [
        (lambda it: "a", lambda it: "b"),
        (lambda it, x=1: x, lambda it, x=2: x),
        (Model("a"), Model("b")),
        (Model("a").answer, Model("b").answer),
        (len, max),
    ]
    for one, other in pairs:
        assert identity(one) == identity(one)
        assert identity(one) != identity(other)
    assert identity(Model("a")) == identity(Model("a"))


def test_functions_are_called_at_the_same_time(suite: Path) -> None:
    together = threading.Barrier(3, timeout=30)

    def answer(prompt: str) -> str:
        together.wait()
        return prompt

    suite.write_text(suite.read_text() + '\n[backends.mine]\nkind = "python"\nfile = "x.py"\nmax_concurrency = 3\n')
    done = probity.run(suite, backends={"mine": answer}, options=["--backend=mine"]).wait()
    assert done.summary["errors"] == 0


def test_a_run_can_be_stopped(suite: Path) -> None:
    suite.write_text(suite.read_text().replace('kind = "echo"', 'kind = "python"\nfile = "x.py"\nmax_concurrency = 1'))
    run = probity.run(suite, backends={"parrot": lambda prompt: run.stop() or prompt})
    done = run.wait()
    assert done.exit_code == 3
    assert done.summary["results"] < 3


SCRIPT = """
import os, signal, threading
import probity

over = threading.Event()

def answer(prompt):
    os.kill(os.getpid(), signal.SIGINT)
    over.wait()
    return prompt

run = probity.run("suite.toml", backends={"parrot": answer})
try:
    for event in run:
        pass
except KeyboardInterrupt:
    print("interrupted", run.wait().exit_code, flush=True)
    # Python goes on, and a signal is Python's.
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("and again", flush=True)
over.set()
"""


def test_ctrl_c_ends_a_run_in_good_order(suite: Path) -> None:
    suite.write_text(suite.read_text().replace('kind = "echo"', 'kind = "python"\nfile = "x.py"\nmax_concurrency = 1'))
    told = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60)
    assert told.stdout == "interrupted 3\nand again\n", told
    assert probity.load_run().summary["results"] < 3


def test_runs_at_the_same_time_do_not_disturb_each_other(suite: Path) -> None:
    runs = [probity.run(suite, store=f"{n}.db") for n in range(3)]
    assert [it.wait().summary["passed"] for it in runs] == [2, 2, 2]
