"""The pytest plugin: suites and datasets as tests.

`@pytest.mark.probity("cases.jsonl")` gives a test its `case` once for each case of the dataset, with the case's id as the
id of the test. Suites that the ini option `probity_suites` names, or that are named on the command line of pytest, are
collected: each case on each backend is a test.

The selected cases of a runner on a backend are one run, which begins with the first of their tests and goes on beside them. In a
worker of pytest-xdist each test is a run of its own, because a worker does not know which tests it will get.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ._check import Case

# What a suite, or a configuration of promptfoo, has at its top level. Other files of these kinds belong to others.
_SUITES = {
    ".toml": re.compile(r"^\s*(\[\[\s*runners\s*\]\]|runners\s*=)", re.MULTILINE),
    ".yaml": re.compile(r"^[\"']?(runners|providers|targets)[\"']?\s*:", re.MULTILINE),
}
_SUITES[".yml"] = _SUITES[".yaml"]
_LANE_RUNS = pytest.StashKey["dict[Lane, LaneRun]"]()

Lane = tuple[Path, str, "str | None", str]
"""A runner of a suite on a backend, with a variant if it has any."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("probity_suites", "Suites of Probity that are collected", type="paths", default=[])
    parser.addini("probity_options", "Further options of `probity run`", type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "probity(*datasets, rules=None): gives the test its `case`, once for each case of the datasets. "
        "Tests of suites have the mark as well",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("probity")
    if mark is None or "case" not in metafunc.fixturenames:
        return
    from . import ProbityError, cases

    folder = metafunc.definition.path.parent
    datasets = [folder / it for it in mark.args]
    try:
        found = cases(*datasets, rules=mark.kwargs.get("rules"))
    except ProbityError as error:
        raise pytest.UsageError(str(error)) from None
    metafunc.parametrize("case", [pytest.param(it, id=it.id) for it in found])


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix not in _SUITES:
        return None
    is_chosen = file_path in parent.config.getini("probity_suites")
    if is_chosen or (parent.session.isinitpath(file_path) and _is_suite(file_path)):
        collector: pytest.Collector = SuiteFile.from_parent(parent, path=file_path)
        return collector
    return None


def _is_suite(path: Path) -> bool:
    try:
        return _SUITES[path.suffix].search(path.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return False


def pytest_sessionfinish(session: pytest.Session) -> None:
    for it in session.stash.get(_LANE_RUNS, {}).values():
        it.close()


class SuiteFile(pytest.File):
    """A suite: a test for each case on each backend."""

    def collect(self) -> Iterator[pytest.Item]:
        from . import ProbityError, run

        options = [*self.config.getini("probity_options")]
        with tempfile.TemporaryDirectory() as folder:
            requests = os.path.join(folder, "requests.jsonl")
            rehearsal = run(self.path, options=[*options, "--dry-run", f"--requests={requests}"])
            try:
                for _ in rehearsal:
                    pass
            except ProbityError as error:
                raise self.CollectError(str(error)) from None
            with open(requests, encoding="utf-8") as lines:
                planned = [json.loads(line) for line in lines]
        for it in planned:
            lane = "/".join(filter(None, (it["runner"], it.get("variant"), it["backend"])))
            item: CaseItem = CaseItem.from_parent(self, name=f"{lane}[{it['case_id']}]", planned=it)
            yield item


class LaneRun:
    """A run of cases of one lane, which goes on while tests take its results."""

    def __init__(self, lane: Lane, cases: list[str], options: list[str]) -> None:
        from . import run

        path, runner, variant, backend = lane
        self._folder = tempfile.TemporaryDirectory()
        self._store = os.path.join(self._folder.name, "run.db")
        words = [*options, f"--case={','.join(cases)}", f"--backend={backend}"]
        if variant:
            words.append(f"--variant={variant}")
        self._run = run(path, [runner], store=self._store, options=words)
        self._finished: Counter[str] = Counter()
        self._id = ""
        self._is_over = False

    def results(self, case_id: str, repeats: int) -> list[dict[str, Any]]:
        """The results of a case, as soon as all of them are there, or the run is over."""
        from . import load_run

        while self._finished[case_id] < repeats and not self._is_over:
            event = next(self._run, None)
            if event is None:
                self._is_over = True
            elif event["event"] == "run-started":
                self._id = event["data"]["run_id"]
            elif event["event"] == "case-finished":
                # Events are told after they are recorded, so that the result can be read already.
                self._finished[event["data"]["record"]["case_id"]] += 1
        return load_run(self._id, self._store).case(case_id) if self._id else []

    def close(self) -> None:
        """Ends the run; nobody asks for the rest of it."""
        with self._run:
            pass
        self._folder.cleanup()


class CaseItem(pytest.Item):
    """A case of a suite on a backend."""

    def __init__(self, *, planned: dict[str, Any], **more: Any) -> None:
        super().__init__(**more)
        self.planned = planned
        self.lane: Lane = (self.path, planned["runner"], planned.get("variant"), planned["backend"])
        self.results: list[dict[str, Any]] = []
        self.add_marker(pytest.mark.probity)
        self.extra_keyword_matches.update((planned["runner"], planned["backend"], planned["case_id"]))

    def setup(self) -> None:
        """Has the case asked. What says nothing about the answer, such as an outage, is an error of pytest and no failure."""
        case_id = self.planned["case_id"]
        self.results = self._asked()
        if not self.results:
            pytest.fail(f"{case_id}: the case came to no end", pytrace=False)
        for result in self.results:
            self.user_properties += [("class", result["classification"]["primary"]), ("verdict", result["verdict"])]
        for result in self.results:
            if result["verdict"] == "error":
                pytest.fail(f"{case_id}: {result['reason']}", pytrace=False)

    def _asked(self) -> list[dict[str, Any]]:
        case_id, repeats = self.planned["case_id"], self.planned.get("repeat", 1)
        options = [*self.config.getini("probity_options")]
        if hasattr(self.config, "workerinput"):
            alone = LaneRun(self.lane, [case_id], options)
            try:
                return alone.results(case_id, repeats)
            finally:
                alone.close()
        runs = self.session.stash.setdefault(_LANE_RUNS, {})
        if self.lane not in runs:
            chosen = [it for it in self.session.items if isinstance(it, CaseItem) and it.lane == self.lane]
            runs[self.lane] = LaneRun(self.lane, [it.planned["case_id"] for it in chosen], options)
        return runs[self.lane].results(case_id, repeats)

    def runtest(self) -> None:
        from ._check import shortened

        for result in self.results:
            if result["verdict"] == "undecided":
                pytest.skip(result["reason"])
            if result["verdict"] == "fail":
                prompt, reply = shortened(result["prompt"]), shortened(result.get("raw_response") or "")
                raise CaseFailure(f"{self.planned['case_id']}: {result['reason']}\nprompt: {prompt}\nreply: {reply}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CaseFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name


class CaseFailure(Exception):
    """A case that did not pass."""


@pytest.fixture
def probity_case(case: Case) -> Case:
    """The `case` of the test, under a name that no other plugin has."""
    return case
