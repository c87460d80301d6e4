"""Classifies a partitioned dataset on a cluster of Dask: each partition is a task, which a worker classifies on one thread.

    python dask_classify.py 'results/part-*.jsonl'

Without the address of a scheduler the cluster is on this machine. With a distributed file system, or paths that all workers
see, nothing else changes for a cluster of many machines.
"""

from __future__ import annotations

import argparse
import glob

import pandas
from dask.delayed import delayed
from dask.distributed import Client, LocalCluster

import probity


def classify_part(path: str) -> pandas.DataFrame:
    """What the results of a file are, as a table of pandas."""
    with open(path, "rb") as lines:
        results = probity.classify(lines, threads=1)
    return results.to_pandas()


def classify_on_cluster(pattern: str, workers: int = 2, scheduler: str | None = None) -> pandas.DataFrame:
    """The results of all files that match, in the order of the names of the files."""
    paths = sorted(glob.glob(pattern))
    if not paths:
        raise SystemExit(f"no file matches `{pattern}`")
    if scheduler is not None:
        with Client(scheduler) as client:
            return _gathered(client, paths)
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        return _gathered(client, paths)


def _gathered(client: Client, paths: list[str]) -> pandas.DataFrame:
    parts: list[pandas.DataFrame] = client.gather(client.compute([delayed(classify_part)(it) for it in paths]))
    return pandas.concat(parts, ignore_index=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pattern")
    parser.add_argument("--scheduler", help="the address of a cluster, such as tcp://10.0.0.1:8786")
    given = parser.parse_args()
    table = classify_on_cluster(given.pattern, scheduler=given.scheduler)
    print(table["class"].value_counts().to_string())
