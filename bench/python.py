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
PIECE = (
    "import time; t, c = time.perf_counter(), time.process_time(); import probity; "
    "print(time.perf_counter() - t, time.process_time() - c)"
)


def row(n: int) -> dict[str, object]:
    reply = REPLIES[n % len(REPLIES)]
    return {"case_id": f"case-{n}", "prompt": "What is the capital?", "match": "contains", "expected_response": "Paris", "raw_response": reply}


def used() -> float:
    """Seconds of the processor that this process and those that it started have used."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def timed(work: object) -> tuple[float, float]:
    """Seconds on the wall, and of the processor: those say more on a machine that others use as well."""
    begin, before = time.perf_counter(), used()
    work()  # type: ignore[operator]
    return time.perf_counter() - begin, used() - before


def main() -> None:
    program, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    imports = [subprocess.check_output([sys.executable, "-c", PIECE]).split() for _ in range(11)]
    wall, cpu = (1000 * statistics.median(map(float, it)) for it in zip(*imports))
    print(f"import: {wall:.1f} ms, {cpu:.1f} ms of the processor (medians of {len(imports)})")

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
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(3):
        for name, work in ways.items():
            times[name].append(timed(work))
    best = {name: tuple(map(min, zip(*it))) for name, it in times.items()}
    for name, (wall, cpu) in best.items():
        print(f"{name}: {wall:.2f} s, {cpu:.2f} s of the processor, {count / wall:,.0f} rows/s")
    program_wall, program_cpu = next(iter(best.values()))
    for name, (wall, cpu) in list(best.items())[1:]:
        print(f"ratio {name}: {program_wall / wall:.2f} of the program's rate, {program_cpu / cpu:.2f} by the processor's time")


main()
