"""Exports runs as tables and asks other programs about them; `scripts/tables-test` runs it.

    tables_test.py PROBITY FOLDER RESULTS
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import polars
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.parquet

# What an export may need, however large the run is.
MOST_MIB = 250
# The texts of so many results are compared one by one.
COMPARED = 50_000


def check(holds, what):
    if not holds:
        sys.exit(f"tables-test: {what}")


class Peak(threading.Thread):
    """The most memory that a process had. What the system says at its end includes that of its parent."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.path, self.mib = f"/proc/{pid}/status", 0
        self.start()

    def run(self):
        while True:
            try:
                found = re.search(r"^VmHWM:\s+(\d+) kB", Path(self.path).read_text(), re.M)
            except OSError:
                return
            if not found:
                return
            self.mib = max(self.mib, int(found[1]) / 1024)
            time.sleep(0.01)


def run(probity, folder, *words, code=0):
    """Runs a command; returns what it printed, its CPU time, its time and its peak memory in MiB."""
    begun = time.monotonic()
    with open(folder / "err", "w+") as err:
        child = subprocess.Popen([probity, *words], cwd=folder, stdout=subprocess.PIPE, stderr=err, text=True)
        peak = Peak(child.pid)
        out = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        peak.join()
        child.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        told = err.read()
    check(child.returncode == code, f"{words}: exit code {child.returncode}: {told}")
    return out + told, used.ru_utime + used.ru_stime, time.monotonic() - begun, peak.mib


def make(probity, folder, results):
    """A run of echoes on two backends, of which one has a price; a long text now and then."""
    folder.mkdir()
    (folder / "probity.toml").write_text(
        '[backends.free]\nkind = "echo"\n'
        '[backends.paid]\nkind = "echo"\nprice = { input = 0.15, output = 0.6 }\n'
        '[[runners]]\nname = "numbers"\ndataset = "cases.jsonl"\n'
    )
    words = "Some words that make it as long as prompts are. " * 6
    with open(folder / "cases.jsonl", "w") as file:
        for at in range(results // 2):
            case = {"id": f"case-{at:07}", "prompt": f"Return the number {at}. {words}", "category": "abc"[at % 3]}
            case["tags"] = ["odd" if at % 2 else "even"] + (["third"] if at % 3 == 0 else [])
            if at % 10_000 == 9_999:
                case["prompt"] += "x\u00e9\u2028\"" * 100_000
            if at % 7:
                expected = at + 1 if at % 10 == 0 else at
                case["assert"] = [
                    {"type": "contains", "value": f"number {expected}."},
                    {"type": "contains", "value": "words", "metric": "words"},
                ]
            file.write(json.dumps(case) + "\n")
    # The gate of a runner that declares none is on undecided results as well.
    return run(probity, folder, "run", "--quiet", "--store", "s.db", "--informational", "-o", "s.summary.json", code=0)


def described():
    """The columns of `docs/reference/tables.md`, with their types."""
    page = Path(__file__).parent.parent.joinpath("docs/reference/tables.md").read_text()
    tables = re.findall(r"^## `(\w+)`\n(.*?)(?=^##|\Z)", page, re.M | re.S)
    return {name: re.findall(r"^\| `(\w+)` \| `(.*?)` \|", text, re.M) for name, text in tables}


def exported(probity, folder, form, *words, code=0):
    return run(probity, folder, "export", *words, "--as", form, "--store", "s.db", "-o", form, code=code)


def check_columns(database, folder):
    for table, columns in described().items():
        found = database.sql(f"DESCRIBE SELECT * FROM read_parquet('{folder}/parquet/{table}/*/*.parquet', hive_partitioning = false)")
        found = [(row[0], row[1].replace('"', "")) for row in found.fetchall()]
        check(found == columns, f"{table}: DuckDB sees {found}, the page has {columns}")


def check_sums(database, folder, summary):
    """Counts and sums of each lane, against the summary of the run."""
    cases = f"read_parquet('{folder}/parquet/cases/*/*.parquet', hive_partitioning = true)"
    found = database.sql(
        f"""SELECT runner, backend, count(*), count(*) FILTER (verdict = 'pass'), count(*) FILTER (verdict = 'fail'),
                   count(*) FILTER (verdict = 'error'), count(*) FILTER (verdict = 'undecided'), sum(calls), sum(cost_usd)
            FROM {cases} GROUP BY ALL ORDER BY ALL"""
    ).fetchall()
    wanted = [
        tuple(lane[key] for key in ("runner", "backend", "results", "passed", "failed", "errors", "undecided", "calls", "cost_usd"))
        for lane in sorted(summary["runners"], key=lambda it: (it["runner"], it["backend"]))
    ]
    for row, lane in zip(found, wanted, strict=True):
        check(row[:-1] == lane[:-1], f"DuckDB counts {row}, the summary has {lane}")
        same = row[-1] == lane[-1] or abs(row[-1] - lane[-1]) <= 1e-9 * abs(lane[-1])
        check(same, f"DuckDB adds up {row[-1]} dollars, the summary has {lane[-1]}")
    row = database.sql(
        f"""SELECT results, pass, fail, calls, cost_usd, status, len(lanes), run FROM
            read_parquet('{folder}/parquet/runs/*/*.parquet', hive_partitioning = true)"""
    ).fetchall()
    total = [sum(it[at] for it in wanted) for at in (2, 3, 4, 7)]
    check(len(row) == 1 and list(row[0][:4]) == total, f"the row of the run is {row}, and the lanes add up to {total}")
    check(row[0][5] == "complete" and row[0][6] == 2, f"the row of the run is {row}")
    runs = database.sql(f"SELECT DISTINCT run, run_id FROM {cases}").fetchall()
    check(runs == [(row[0][7], row[0][7])], f"partitions and columns name {runs}")
    for table in ("scores", "calls"):
        loose = database.sql(
            f"SELECT count(*) FROM '{folder}/parquet/{table}/*/*.parquet' ANTI JOIN {cases} USING (run_id, runner, backend, case_id, repeat)"
        ).fetchall()[0][0]
        check(loose == 0, f"{loose} rows of {table} belong to no case")
    asked = database.sql(f"SELECT count(*), sum(calls) FROM '{folder}/parquet/calls/*/*.parquet'").fetchall()[0]
    check(asked == (total[0], total[3]), f"calls: {asked}")
    scores = database.sql(f"SELECT name, count(*), sum(value) FROM '{folder}/parquet/scores/*/*.parquet' GROUP BY ALL ORDER BY ALL").fetchall()
    with sqlite3.connect(f"file:{folder}/s.db?mode=ro", uri=True) as store:
        stored = store.execute("SELECT name, count(*), sum(value) FROM scores GROUP BY name ORDER BY name").fetchall()
    check(scores == stored, f"scores: DuckDB has {scores}, the store {stored}")
    tagged = database.sql(f"SELECT count(*) FROM {cases} WHERE list_contains(tags, 'third')").fetchall()[0][0]
    check(tagged == 2 * len(range(0, total[0] // 2, 3)), f"{tagged} results have a tag")


def check_readers(folder, total):
    """pyarrow and polars, on both forms."""
    for form, kind in (("parquet", "parquet"), ("arrow", "arrow")):
        for table in ("cases", "scores", "calls", "runs"):
            read = pyarrow.dataset.dataset(folder / form / table, format=kind, partitioning="hive")
            rows = read.count_rows()
            check(table != "cases" or rows == total, f"pyarrow counts {rows} rows of {form}/{table}")
            glob = str(folder / form / table / "*" / f"*.{form}")
            scan = polars.scan_parquet(glob) if form == "parquet" else polars.scan_ipc(glob)
            seen = scan.select(polars.len()).collect().item()
            check(seen == rows, f"polars counts {seen} rows of {form}/{table}, pyarrow {rows}")
        scan = polars.scan_parquet if form == "parquet" else polars.scan_ipc
        verdicts = scan(str(folder / form / "cases" / "*" / f"*.{form}")).group_by("verdict").len().collect()
        check(sum(verdicts["len"]) == total and "pass" in verdicts["verdict"].cast(polars.String), f"polars: {verdicts}")
    groups, largest = 0, 0
    for path in (folder / "parquet").glob("*/*/*.parquet"):
        about = pyarrow.parquet.ParquetFile(path).metadata
        for at in range(about.num_row_groups):
            groups, largest = groups + 1, max(largest, about.row_group(at).total_byte_size)
    check(largest < 256 << 20, f"a row group has {largest} bytes")


def check_texts(probity, folder):
    """Every result, against the report in JSON lines."""
    run(probity, folder, "report", "--store", "s.db", "-o", "s.jsonl")
    read = {form: pyarrow.dataset.dataset(folder / form / "cases", format=form) for form in ("parquet", "arrow")}
    columns = ["backend", "case_id", "repeat", "verdict", "prompt", "reply", "tags", "cost_usd", "latency_ms", "reason"]
    rows = {form: it.to_table(columns=columns).to_pylist() for form, it in read.items()}
    check(rows["parquet"] == rows["arrow"], "the forms differ")
    by_key = {(row["backend"], row["case_id"], row["repeat"]): row for row in rows["parquet"]}
    lines = [json.loads(line) for line in open(folder / "s.jsonl")]
    check(len(lines) == len(by_key), f"{len(lines)} lines, {len(by_key)} rows")
    for line in lines:
        row = by_key[line["backend"], line["case_id"], line["repeat"]]
        check(row["prompt"] == line["prompt"] and row["reply"] == line["raw_response"], f"{row['case_id']}: other texts")
        check(row["verdict"] == line["verdict"] and row["tags"] == line["case"].get("tags", []), f"{row['case_id']}: {row}")
        check(row["cost_usd"] == line["cost_usd"] and row["latency_ms"] == line["latency_ms"], f"{row['case_id']}: {row}")


def check_care(probity, folder):
    """What is there stays, and a store that is damaged leaves nothing behind."""
    told = exported(probity, folder, "parquet", code=2)[0]
    check("is there already" in told and "--overwrite" in told, f"not refused: {told}")
    extra = next((folder / "parquet" / "cases").iterdir()) / "part-00099.parquet"
    extra.write_bytes(b"left over")
    exported(probity, folder, "parquet", "--overwrite")
    check(not extra.exists(), "a part of an earlier export is still there")
    check(not list(folder.glob("**/*.partial")), "half a file is still there")
    with sqlite3.connect(folder / "s.db") as store:
        store.execute("UPDATE results SET verdict = 'fail', class = 'fail' WHERE id = (SELECT max(id) FROM results WHERE verdict = 'pass')")
    store.close()
    told = run(probity, folder, "export", "--as", "parquet", "--store", "s.db", "-o", "damaged", code=2)[0]
    check("cannot be read" in told, f"not noticed: {told}")
    check(not [it for it in folder.glob("damaged/**/*") if it.is_file()], "something was written of a damaged store")


def check_questions(probity, folder):
    """Conversations, errors that were retried, and several runs in one folder."""
    folder.mkdir()
    (folder / "probity.toml").write_text(
        '[backends.echo]\nkind = "echo"\n'
        '[backends.dead]\nkind = "openai"\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "none"\n'
        '[retry]\nmax_retries = 1\nbackoff_base = 0.01\n'
        '[[runners]]\nname = "talk"\ndataset = "cases.jsonl"\n'
    )
    (folder / "cases.jsonl").write_text(
        '{"id":"a","turns":[{"user":"One"},{"user":"Two"}],"assert":[{"type":"contains","value":"Two"}]}\n'
        '{"id":"b","prompt":"Three","assert":[{"type":"contains","value":"Three"}]}\n'
    )
    for _ in range(2):
        run(probity, folder, "run", "-q", "--store", "s.db", "--backend", "echo")
    run(probity, folder, "run", "-q", "--store", "s.db", "--backend", "dead", code=3)
    exported(probity, folder, "parquet", "--all")
    database = duckdb.connect()
    calls = database.sql(f"SELECT case_id, turn, prompt FROM '{folder}/parquet/calls/*/*.parquet' WHERE asked = 'echo' ORDER BY ALL").fetchall()
    check(calls == [("a", 1, "One")] * 2 + [("a", 2, "Two")] * 2 + [("b", None, "Three")] * 2, f"calls: {calls}")
    failed = database.sql(
        f"""SELECT count(*), count(DISTINCT run_id) FROM (SELECT run_id, unnest(failures) AS it FROM '{folder}/parquet/cases/*/*.parquet')
            WHERE it.error_kind = 'network'"""
    ).fetchall()[0]
    check(failed[0] > 0 and failed[1] == 1, f"failures: {failed}")
    runs = database.sql(f"SELECT status, pass, error FROM '{folder}/parquet/runs/*/*.parquet' ORDER BY started_at").fetchall()
    check(len(runs) == 3 and runs[0] == ("complete", 2, 0) and runs[2][1:] == (0, 2), f"runs: {runs}")


def main():
    probity, work, results = sys.argv[1], Path(sys.argv[2]).resolve(), int(sys.argv[3])
    check_questions(probity, work / "questions")
    peaks = {}
    for count in (results // 10, results):
        folder = work / str(count)
        _, cpu, wall, _ = make(probity, folder, count)
        print(f"{count} results made in {wall:.0f} s, store of {(folder / 's.db').stat().st_size / 1e6:.0f} MB")
        for form in ("parquet", "arrow"):
            _, cpu, wall, peak = exported(probity, folder, form)
            size = sum(it.stat().st_size for it in (folder / form).glob("*/*/*"))
            parts = len(list((folder / form).glob("*/*/*")))
            print(f"  {form}: {wall:.1f} s, {cpu:.1f} s CPU, peak {peak:.0f} MiB, {size / 1e6:.0f} MB in {parts} files")
            peaks.setdefault(form, []).append(peak)
            check(peak < MOST_MIB, f"{peak:.0f} MiB to export {count} results")
    folder = work / str(results)
    summary = json.loads((folder / "s.summary.json").read_text())
    database = duckdb.connect()
    check_columns(database, folder)
    begun = time.monotonic()
    check_sums(database, folder, summary)
    print(f"  DuckDB answered all questions in {time.monotonic() - begun:.1f} s")
    check_readers(folder, sum(it["results"] for it in summary["runners"]))
    if results <= COMPARED:
        check_texts(probity, folder)
    check_care(probity, folder)
    for form, (small, large) in peaks.items():
        print(f"  {form}: peak memory / that of a tenth: {large / small:.2f}")
    print(f"DuckDB {duckdb.__version__}, pyarrow {pyarrow.__version__}, polars {polars.__version__}: all agree")


main()
