"""The example that classifies on a cluster."""

from __future__ import annotations

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "python" / "dask_classify.py"


def test_a_partitioned_dataset_is_classified_on_a_cluster(own_folder: Path) -> None:
    for part in range(3):
        rows = (
            f'{{"case_id": "{part}-{n}", "expected_response": "Paris", "match": "contains", "raw_response": "{word}"}}\n'
            for n, word in enumerate(["Paris", "Rome", "I can\'t help with that."])
        )
        Path(f"part-{part}.jsonl").write_text("".join(rows))
    module = runpy.run_path(str(EXAMPLE))
    table = module["classify_on_cluster"]("part-*.jsonl", workers=2)
    assert len(table) == 9
    assert table["class"].value_counts().to_dict() == {"pass": 3, "fail": 3, "refusal": 3}
    assert sorted(table["case_id"])[0] == "0-0"
