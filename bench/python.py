"""How long the package takes to import, and how fast it classifies compared with the program. `bench/python` calls it."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time

REPLIES = [
    "The capital of France is Paris, and it has been for a long time.",
    "I'm sorry, but I can't help with that request.",
    '{"city": "Paris", "country": "France"}',
    "It is Rome.",
    "Let me think about it. " * 12 + "It is Paris.",
]
PIECE = "import time; t = time.perf_counter(); import probity; print(time.perf_counter() - t)"


def row(n: int) -> dict[str, object]:
    reply = REPLIES[n % len(REPLIES)]
    return {"case_id": f"case-{n}", "prompt": "What is the capital?", "match": "contains", "expected_response": "Paris", "raw_response": reply}


def timed(work: object) -> float:
    begin = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - begin


def main() -> None:
    program, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    imports = [float(subprocess.check_output([sys.executable, "-c", PIECE])) for _ in range(11)]
    print(f"import: {statistics.median(imports) * 1000:.1f} ms (median of {len(imports)})")

    import probity

    rows = [row(n) for n in range(count)]
    path = os.path.join(folder, "rows.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(it) + "\n" for it in rows)

    def command() -> None:
        out = os.path.join(folder, "out.jsonl")
        subprocess.run([program, "classify", path, "--output", out, "--threads", "1", "--quiet"], check=True)

    def lines() -> None:
        with open(path, "rb") as file:
            probity.classify(file, threads=1)

    ways = {
        "the program, one thread, file to file": command,
        "classify(list of dicts, threads=1)": lambda: probity.classify(rows, threads=1),
        "classify(lines of a file, threads=1)": lines,
        "classify(list of dicts)": lambda: probity.classify(rows),
    }
    # In turns, so that whatever else the machine does hits all of them.
    times = {name: [] for name in ways}
    for _ in range(3):
        for name, work in ways.items():
            times[name].append(timed(work))
    best = {name: min(it) for name, it in times.items()}
    for name, seconds in best.items():
        print(f"{name}: {seconds:.2f} s, {count / seconds:,.0f} rows/s")
    names = list(ways)
    for name in names[1:]:
        print(f"ratio {name}: {best[names[0]] / best[name]:.2f} of the program's rate")


main()
