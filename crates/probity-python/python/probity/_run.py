"""Runs: those that go on, and those that are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Union

from . import _probity

if TYPE_CHECKING:
    import pandas
    import polars

Path = Union[str, "PathLike[str]"]
Function = Callable[..., Any]


class StoredRun:
    """A run that is kept in a store. It iterates over its results, and is a table of Arrow.

    `polars.DataFrame(run)` and `pyarrow.table(run)` take the table over without a copy. It is made when they ask for it.
    """

    def __init__(self, native: _probity.StoredRun, exit_code: int | None = None) -> None:
        self._native = native
        self._summary: dict[str, Any] | None = None
        #: What `probity run` would have ended with; none of a run that was loaded.
        self.exit_code = exit_code

    @property
    def id(self) -> str:
        """The run's id."""
        return self._native.id

    @property
    def store(self) -> str:
        """The file that it is kept in."""
        return fspath(self._native.store)

    @property
    def summary(self) -> dict[str, Any]:
        """What became of each runner, as `suite_summary.json` has it."""
        if self._summary is None:
            self._summary = self._native.summary()
        return self._summary

    @property
    def runners(self) -> list[dict[str, Any]]:
        """The figures of each runner on each backend."""
        return list(self.summary["runners"])

    @property
    def passed(self) -> bool:
        """Whether every gate passed."""
        return str(self.summary["conclusion"]) in ("passed", "warned")

    def case(self, case_id: str) -> list[dict[str, Any]]:
        """All results of a case, one for each runner, backend and repeat."""
        return self._native.case(case_id)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._native)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def to_polars(self) -> polars.DataFrame:
        """The results as a table of polars."""
        from ._tables import to_polars

        return to_polars(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The results as a table of pandas."""
        from ._tables import to_pandas

        return to_pandas(self)

    def __repr__(self) -> str:
        counts = self.summary
        told = ", ".join(f"{counts[it]} {it}" for it in ("passed", "failed", "errors", "undecided"))
        return f"<probity run {self.id} of {counts['suite']}: {counts['conclusion']}; {told}>"

    def _repr_html_(self) -> str:
        from ._html import summary

        return summary(self.summary)


class Run:
    """A run that goes on: an iterator over its events. `wait` gives what came of it."""

    def __init__(self, native: _probity.Running) -> None:
        self._native = native
        self._result: StoredRun | None = None

    def __iter__(self) -> Run:
        return self

    def __next__(self) -> dict[str, Any]:
        try:
            return next(self._native)
        except KeyboardInterrupt:
            self._end()
            raise

    def stop(self) -> None:
        """Has the run stop in good order: nothing new is asked, and what was answered is recorded."""
        self._native.stop()

    def wait(self) -> StoredRun:
        """Waits for the end of the run, and gives what is kept of it. Events that nobody took are dropped."""
        if self._result is None:
            try:
                run_id, store, exit_code = self._native.finish()
            except KeyboardInterrupt:
                self._end()
                raise
            if not run_id:
                raise _probity.ProbityError("nothing was run: this was a rehearsal")
            self._result = StoredRun(_probity.load_run(run_id, store), exit_code)
        return self._result

    def _end(self) -> None:
        """Stops the run, and waits for that. A second Ctrl-C ends the wait."""
        self._native.stop()
        try:
            self._native.finish()
        except _probity.ProbityError:
            # Whoever interrupts it does not ask why it ended.
            pass

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()


def run(
    suite: Path = "",
    runners: Iterable[str] = (),
    *,
    backends: Mapping[str, Function] | None = None,
    scorers: Mapping[str, Function] | None = None,
    store: Path | None = None,
    limit: int | None = None,
    repeat: int | None = None,
    model: str | None = None,
    cache: bool | None = None,
    max_cost: float | None = None,
    options: Sequence[str] = (),
) -> Run:
    """Runs a suite in this process, and gives its events as they happen.

    `backends` and `scorers` are functions that stand in the suite under these names, in addition to what its file
    describes or instead of it. A backend gets the prompt, and if it takes them its options and the context of the call; it
    returns a text, or a dict as `docs/programs.md` describes it. A scorer gets the reply and its context. Either may be
    `async`. They are called from several threads at once.

    `options` are further options of `probity run`. Notes go to the logger `probity`. Ctrl-C stops the run in good order.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "cases.jsonl").write_text('{"id": "france", "prompt": "Its capital?", "expected_response": "Paris"}')
    >>> _ = (folder / "suite.toml").write_text('[[runners]]\\nname = "capitals"\\ndataset = "cases.jsonl"\\ngates = false')
    >>> going = run(folder / "suite.toml", backends={"mine": lambda prompt: "Paris"}, store=folder / "runs.db")
    >>> [event["data"]["record"]["case_id"] for event in going if event["event"] == "case-finished"]
    ['france']
    >>> done = going.wait()
    >>> done.exit_code, done.summary["passed"], done.case("france")[0]["verdict"]
    (0, 1, 'pass')
    """
    words = [*options]
    for name, value in (("--store", store), ("--limit", limit), ("--repeat", repeat)):
        words += [] if value is None else [f"{name}={fspath(value) if not isinstance(value, int) else value}"]
    for name, text in (("--model", model), ("--max-cost", max_cost)):
        words += [] if text is None else [f"{name}={text}"]
    if cache is not None:
        words.append("--cache" if cache else "--no-cache")
    words += ["--", fspath(suite), *runners]
    return Run(_probity.start(words, _named(backends, 3), _named(scorers, 2)))


def load_run(run: str = "latest", store: Path | None = None) -> StoredRun:
    """A run of a store: by its id, the beginning of it, or the latest.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "cases.jsonl").write_text('{"id": "france", "prompt": "Its capital?", "expected_response": "Paris"}')
    >>> _ = (folder / "suite.toml").write_text('[[runners]]\\nname = "capitals"\\ndataset = "cases.jsonl"\\ngates = false')
    >>> done = run(folder / "suite.toml", backends={"mine": lambda prompt: "Lyon"}, store=folder / "runs.db").wait()
    >>> kept = load_run("latest", folder / "runs.db")
    >>> kept.id == done.id, [it["verdict"] for it in kept]
    (True, ['fail'])
    >>> [it["run_id"] == kept.id for it in list_runs(folder / "runs.db")]
    [True]
    """
    return StoredRun(_probity.load_run(run, store))


def list_runs(store: Path | None = None) -> list[dict[str, Any]]:
    """All runs of a store, the latest first."""
    return _probity.list_runs(store)


def _named(
    functions: Mapping[str, Function] | None, most: int
) -> dict[str, tuple[Function, str]]:
    if not functions:
        return {}
    from ._callables import identity, wrapped

    return {name: (wrapped(it, most), identity(it)) for name, it in functions.items()}
