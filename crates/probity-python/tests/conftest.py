"""What all tests need."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

#: The command that the package installs.
COMMAND = Path(sysconfig.get_path("scripts")) / "probity"
#: The program that is not of Python, which `scripts/python-test` builds.
BINARY = os.environ.get("PROBITY_BINARY")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test works in a folder of its own, without settings of its surroundings."""
    monkeypatch.chdir(tmp_path)
    for name in [it for it in os.environ if it.startswith("PROBITY_") and it != "PROBITY_BINARY"]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def suite(own_folder: Path) -> Path:
    """A suite with three cases, of which one fails. The backend says what it is asked."""
    (own_folder / "cases.jsonl").write_text(
        '{"id": "hello", "prompt": "hello", "match": "contains", "expected_response": "hell"}\n'
        '{"id": "sum", "prompt": "7", "match": "number", "expected_response": 7}\n'
        '{"id": "wrong", "prompt": "no", "match": "exact", "expected_response": "yes"}\n'
    )
    path = own_folder / "suite.toml"
    path.write_text(
        '[backends.parrot]\nkind = "echo"\n\n'
        '[[runners]]\nname = "words"\nkind = "respond"\ndataset = "cases.jsonl"\ngates = false\n'
    )
    return path
