"""What a notebook shows of a run."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

_COLUMNS = ("runner", "variant", "backend", "passed", "failed", "errors", "undecided")


def summary(found: Mapping[str, Any]) -> str:
    """A table with a row for each runner on each backend."""
    head = "".join(f"<th>{it}</th>" for it in (*_COLUMNS, "rate", "gates"))
    rows = "".join(_row(it) for it in found["runners"])
    title = f"{found['suite']}: {found['conclusion']}"
    return (
        f'<div class="probity"><p><b>{escape(title)}</b> <code>{escape(str(found["run_id"]))}</code></p>'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(runner: Mapping[str, Any]) -> str:
    cells = [runner.get(it) for it in _COLUMNS]
    judged = (runner.get("passed") or 0) + (runner.get("failed") or 0)
    cells.append(f"{100 * (runner.get('passed') or 0) / judged:.1f} %" if judged else "")
    cells.append("; ".join(str(it.get("status", "")) for it in runner.get("gates") or ()))
    return "<tr>" + "".join(f"<td>{escape('' if it is None else str(it))}</td>" for it in cells) + "</tr>"
