"""The plugin of pytest: suites and datasets as tests.

`@pytest.mark.probity("cases.jsonl")` gives a test its `case` once for each case of the dataset, with the case's id as the
id of the test. Suites that the ini option `probity_suites` names, or that are named on the command line of pytest, are
collected: each case on each backend is a test, which is run when its turn comes.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ._check import Case

_SUFFIXES = (".toml", ".yaml", ".yml")


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
    if file_path.suffix not in _SUFFIXES:
        return None
    named = parent.session.isinitpath(file_path)
    if named or file_path in parent.config.getini("probity_suites"):
        collector: pytest.Collector = SuiteFile.from_parent(parent, path=file_path)
        return collector
    return None


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


class CaseItem(pytest.Item):
    """A case of a suite on a backend."""

    def __init__(self, *, planned: dict[str, Any], **more: Any) -> None:
        super().__init__(**more)
        self.planned = planned
        self.add_marker(pytest.mark.probity)
        self.extra_keyword_matches.update((planned["runner"], planned["backend"], planned["case_id"]))

    def runtest(self) -> None:
        from . import run

        it = self.planned
        options = [*self.config.getini("probity_options"), f"--case={it['case_id']}", f"--backend={it['backend']}"]
        if it.get("variant"):
            options.append(f"--variant={it['variant']}")
        with tempfile.TemporaryDirectory() as folder:
            store = os.path.join(folder, "run.db")
            done = run(self.path, [it["runner"]], store=store, options=options).wait()
            results = done.case(it["case_id"])
        if not results:
            raise CaseFailure(f"{it['case_id']}: the case came to no end")
        for result in results:
            self.user_properties += [("class", result["classification"]["primary"]), ("verdict", result["verdict"])]
        for result in results:
            if result["verdict"] == "undecided":
                pytest.skip(result["reason"])
            if result["verdict"] != "pass":
                reply = result.get("raw_response") or ""
                raise CaseFailure(f"{it['case_id']}: {result['reason']}\nprompt: {result['prompt']}\nreply: {reply}")

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
