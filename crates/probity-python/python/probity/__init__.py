"""Evaluate language models and the tools built on them.

>>> import probity
>>> probity.check_refusal("I'm sorry, but I can't help with that.")["refusal"]
True
>>> probity.check_json('Sure: {"a": 1,}')["value"]
{'a': 1}
>>> probity.check("The capital is Paris.").contains("Paris").is_not_refusal()
<probity.Check: all held>

`classify` says what stored results are, `check_json`, `check_refusal`, `check_policy` and `check_error` run one detector,
`command` reads shell commands, `metrics` compares texts, `run` runs a suite, `load_run` reads one that was run, and
`check` is for tests. Spans are offsets in bytes of the text in UTF-8, as everywhere in Probity.
"""

from __future__ import annotations

import os as _os

from . import _probity, command, metrics
from ._check import Case, Check, cases, check
from ._detect import (
    check_error,
    check_json,
    check_policy,
    check_refusal,
    classify,
    classify_iter,
)
from ._probity import ProbityError, Results, Rules
from ._run import Run, StoredRun, list_runs, load_run, run

__all__ = [
    "Case",
    "Check",
    "ProbityError",
    "Results",
    "Rules",
    "Run",
    "StoredRun",
    "cases",
    "check",
    "check_error",
    "check_json",
    "check_policy",
    "check_refusal",
    "classify",
    "classify_iter",
    "command",
    "list_runs",
    "load_run",
    "metrics",
    "run",
]

# The interpreter cannot keep the sandbox, so a program beside this file does. Without it nothing is executed.
_probity.set_keeper(_os.path.join(_os.path.dirname(__file__), "probity-keeper"))
