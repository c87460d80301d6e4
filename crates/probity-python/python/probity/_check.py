"""Checks of replies for tests, and the cases of datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from . import _probity
from ._detect import RulesLike

_SHOWN = 500


def shortened(text: str) -> str:
    """A text for a message: its beginning, if it is long."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class Check:
    """A reply that is checked. Each method is an assertion of `docs/reference/assertions.md` and raises `AssertionError` with the
    reason if it does not hold; else it gives the same object, so that checks can be chained.

    >>> Check('{"city": "Paris"}').contains("Paris").is_json({"required": ["city"]})
    <probity.Check: all held>
    >>> Check("Rome").contains("Paris")
    Traceback (most recent call last):
        ...
    AssertionError: contains: `Paris` is missing
    reply: Rome
    """

    def __init__(self, output: str, *, prompt: str = "", rules: RulesLike = None) -> None:
        if not isinstance(output, str):
            raise TypeError(f"a reply is a text, not a value of type `{type(output).__name__}`")
        self.output = output
        self._prompt = prompt
        self._rules = rules

    def holds(self, kind: str, value: Any = None, **more: Any) -> Check:
        """Any assertion by its name, such as `holds("rouge-l", "A fox jumps.", threshold=0.4)`."""
        __tracebackhide__ = True
        assertion: dict[str, Any] = {"type": kind, **more}
        if value is not None:
            assertion["value"] = value
        found = self._judged({"assert": [assertion]})
        scores = found["classification"].get("scores") or ()
        if not scores:
            # Nothing was looked at: there is no reply.
            raise AssertionError(f"{kind}: {_probity.reason_of(found)}\n{self._shown()}")
        for score in scores:
            if not score["passed"]:
                reason = score.get("reason") or "it does not hold"
                raise AssertionError(f"{kind}: {reason}\n{self._shown()}")
        return self

    def contains(self, *texts: str) -> Check:
        """Every text is in the reply."""
        __tracebackhide__ = True
        return self.holds("contains-all", list(texts)) if len(texts) != 1 else self.holds("contains", texts[0])

    def icontains(self, *texts: str) -> Check:
        """Every text is in the reply, whatever the case of its letters."""
        __tracebackhide__ = True
        return self.holds("icontains-all", list(texts)) if len(texts) != 1 else self.holds("icontains", texts[0])

    def contains_any(self, *texts: str) -> Check:
        """One of the texts is in the reply."""
        __tracebackhide__ = True
        return self.holds("contains-any", list(texts))

    def not_contains(self, text: str) -> Check:
        """The text is not in the reply."""
        __tracebackhide__ = True
        return self.holds("not-contains", text)

    def equals(self, value: Any) -> Check:
        """The reply is the text, or the JSON value."""
        __tracebackhide__ = True
        return self.holds("equals", value)

    def starts_with(self, text: str) -> Check:
        """The reply begins with the text."""
        __tracebackhide__ = True
        return self.holds("starts-with", text)

    def matches(self, pattern: str) -> Check:
        """A regular expression matches somewhere in the reply."""
        __tracebackhide__ = True
        return self.holds("regex", pattern)

    def is_json(self, schema: Mapping[str, Any] | None = None) -> Check:
        """The reply is JSON, and satisfies the schema."""
        __tracebackhide__ = True
        return self.holds("is-json", dict(schema) if schema is not None else None)

    def is_refusal(self) -> Check:
        """The reply declines."""
        __tracebackhide__ = True
        if not _probity.check_refusal(self.output, self._rules, None)["refusal"]:
            raise AssertionError(f"is-refusal: the reply does not decline\n{self._shown()}")
        return self

    def is_not_refusal(self) -> Check:
        """The reply does not decline."""
        __tracebackhide__ = True
        found = _probity.check_refusal(self.output, self._rules, None)
        if found["refusal"]:
            raise AssertionError(f"not-is-refusal: the reply declines: \"{found['phrase']}\"\n{self._shown()}")
        return self

    def keeps_policies(self, *policies: str) -> Check:
        """The reply breaks none of these policies, or none at all."""
        __tracebackhide__ = True
        hits = _probity.check_policy(self.output, list(policies), self._rules, None)["hits"]
        if hits:
            told = ", ".join(f"{it['policy']}: {it['rule']}" for it in hits)
            raise AssertionError(f"policy: the reply breaks {told}\n{self._shown()}")
        return self

    def _judged(self, case: Mapping[str, Any]) -> dict[str, Any]:
        row = {"case_id": "check", "case": {"prompt": self._prompt or "-", **case}, "raw_response": self.output}
        return _probity.classify_one(row, self._rules)

    def _shown(self) -> str:
        return f"reply: {shortened(self.output)}"

    def __repr__(self) -> str:
        return "<probity.Check: all held>"


def check(output: str, *, prompt: str = "", rules: RulesLike = None) -> Check:
    """Begins checks of a reply: `probity.check(output).contains("Paris").is_json(schema)`."""
    return Check(output, prompt=prompt, rules=rules)


class Case(Mapping[str, Any]):
    """A case of a dataset: its fields by name, and what judges a reply to it.

    >>> case = Case("sum", {"prompt": "3 + 4?", "expected_response": 7, "match": "number"})
    >>> case.id, case.prompt
    ('sum', '3 + 4?')
    >>> case.judge("It is 7.")["verdict"]
    'pass'
    >>> case.check("It is 8.")
    Traceback (most recent call last):
        ...
    AssertionError: sum: expected `7`, got `8`
    reply: It is 8.
    """

    def __init__(self, id: str, fields: Mapping[str, Any], *, rules: RulesLike = None) -> None:
        self.id = id
        self._fields = dict(fields)
        self._rules = rules

    @property
    def prompt(self) -> str:
        """What is asked."""
        return str(self._fields.get("prompt", ""))

    @property
    def tags(self) -> list[str]:
        """Its tags."""
        return [str(it) for it in self._fields.get("tags") or ()]

    def judge(self, output: str) -> dict[str, Any]:
        """What a reply to it is: the same as `probity.classify` says."""
        row = {"case_id": self.id, "case": self._fields, "raw_response": output}
        return _probity.classify_one(row, self._rules)

    def check(self, output: str) -> dict[str, Any]:
        """Judges a reply, and raises `AssertionError` with the reason unless it passes."""
        __tracebackhide__ = True
        found = self.judge(output)
        if found["verdict"] == "undecided":
            raise AssertionError(f"{self.id}: the case has no criterion, so it is undecided")
        if found["verdict"] != "pass":
            raise AssertionError(f"{self.id}: {_probity.reason_of(found)}\nreply: {shortened(output)}")
        return found

    def __getitem__(self, key: str) -> Any:
        return self._fields[key]

    def __iter__(self) -> Any:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"<probity.Case: {self.id}>"


def cases(*datasets: str | PathLike[str], rules: RulesLike = None) -> list[Case]:
    """The cases of datasets, in the order of the files. Whatever is wrong with one raises `ProbityError`."""
    found: Iterable[Mapping[str, Any]] = (
        it for dataset in datasets for it in _probity.load_cases(dataset, rules)
    )
    return [Case(it["id"], it["case"], rules=rules) for it in found]
