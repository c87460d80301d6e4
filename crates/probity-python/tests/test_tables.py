"""Results as tables of Arrow."""

from __future__ import annotations

from pathlib import Path

import pandas
import polars
import pyarrow
import pytest

import probity

ROW = {"case_id": "a", "suite_id": "s", "expected_response": "Paris", "match": "contains", "raw_response": "Paris"}


def test_classified_rows_are_a_table() -> None:
    results = probity.classify([ROW, {**ROW, "case_id": "2", "raw_response": "Rome"}])
    table = polars.DataFrame(results)
    assert table.columns == ["case_id", "suite_id", "class", "verdict", "rule", "reason"]
    assert table["case_id"].to_list() == ["a", "2"]
    assert table["verdict"].to_list() == ["pass", "fail"]
    assert "Paris" in table["reason"][1]
    # It can be taken more than once.
    assert pyarrow.table(results).num_rows == 2
    assert pyarrow.table(probity.classify([])).num_rows == 0


def test_a_run_is_a_table(suite: Path) -> None:
    run = probity.run(suite).wait()
    table = run.to_polars()
    assert sorted(table["case_id"].to_list()) == ["hello", "sum", "wrong"]
    assert set(table["verdict"].to_list()) == {"pass", "fail"}
    assert table["reply"].null_count() == 0
    assert table.filter(polars.col("case_id") == "wrong")["score"].to_list() == [0.0]
    frame = run.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == table.columns
    assert frame["latency_ms"].sum() >= 0
    records = {it["case_id"]: it for it in run}
    for row in table.iter_rows(named=True):
        assert records[row["case_id"]]["reason"] == row["reason"]
        assert records[row["case_id"]]["prompt"] == row["prompt"]


def test_many_results_come_in_batches(own_folder: Path) -> None:
    lines = "".join(f'{{"id": "{n:05}", "prompt": "p{n}", "match": "contains", "expected_response": "p"}}\n' for n in range(3000))
    Path("many.jsonl").write_text(lines)
    Path("many.toml").write_text(
        '[backends.parrot]\nkind = "echo"\n[[runners]]\nname = "r"\nkind = "respond"\ndataset = "many.jsonl"\n'
    )
    run = probity.run("many.toml").wait()
    reader = pyarrow.RecordBatchReader.from_stream(run)
    batches = [it.num_rows for it in reader]
    assert sum(batches) == 3000
    assert len(batches) == 3
    assert sum(1 for _ in run) == 3000
    # Whoever leaves early leaves nothing waiting.
    next(iter(run))
    pyarrow.RecordBatchReader.from_stream(run).read_next_batch()


def test_a_store_that_is_not_there_is_told(own_folder: Path) -> None:
    with pytest.raises(probity.ProbityError, match="there is no store `nowhere.db`"):
        probity.load_run(store="nowhere.db")


def test_a_store_that_is_none_is_told(own_folder: Path) -> None:
    Path("text.db").write_text("no database at all, but long enough to be read as one" * 20)
    with pytest.raises(probity.ProbityError, match="the store cannot be used"):
        probity.load_run(store="text.db")


def test_runs_are_found_by_name(suite: Path) -> None:
    first = probity.run(suite, store="a.db").wait()
    second = probity.run(suite, store="a.db").wait()
    assert probity.load_run(store="a.db").id == second.id
    assert probity.load_run(first.id, "a.db").id == first.id
    assert [it["run_id"] for it in probity.list_runs("a.db")] == [second.id, first.id]
    with pytest.raises(probity.ProbityError, match="no run"):
        probity.load_run("xyz", "a.db")
