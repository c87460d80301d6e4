"""Examples in docstrings and in the documentation are run."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
FENCE = re.compile(r"(?:^<!-- file: (\S+) -->\n)?(?:^<!-- [^\n]* -->\n)*^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("module", ["", "._check", "._detect", "._run", ".command", ".metrics"])
def test_docstrings(module: str) -> None:
    failed, run = doctest.testmod(importlib.import_module(f"probity{module}"))
    assert failed == 0
    assert run > 0


@pytest.mark.parametrize("page", ["docs/python.md"])
def test_documentation(page: str) -> None:
    """A block with the name of a file is written, one of Python is run and compared."""
    runner, names = doctest.DocTestRunner(), {}
    text = (REPOSITORY / page).read_text()
    for found in FENCE.finditer(text):
        name, language, block = found.groups()
        if name:
            Path(name).write_text(block)
        elif language == "pycon":
            line = text[: found.start()].count("\n")
            test = doctest.DocTestParser().get_doctest(block, names, page, page, line)
            assert test.examples, f"{page}:{line}: a block without an example"
            runner.run(test, clear_globs=False)
            names = test.globs
    assert runner.summarize().failed == 0
