"""``python -m experiments.times``: every ranking is timed in every round, over the graph of its set."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import hopfuse as hf
import numpy as np
import pytest

from experiments import times


def test_the_quartiles_of_rounds() -> None:
    assert times.spread([4.0, 1.0, 3.0, 2.0, 5.0]) == {"least": 1.0, "q1": 2.0, "median": 3.0, "q3": 4.0}


def test_rounds_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "debian-whole"
    folder.mkdir()
    (folder / "queries.jsonl").write_text(json.dumps({"id": "q", "question": "Which?", "gold": [0]}) + "\n")
    np.save(folder / "query_emb.f16.npy", np.ones((1, 2), np.float16))
    asked: list[dict[str, object]] = []

    def compared(index: hf.Index, questions: list[str], qrels: object, metrics: list[str], **given: object) -> object:
        asked.append(given)
        took = {name: {1: 2.0, 32: float(len(asked))} for name in times.RANKINGS}
        evaluation = SimpleNamespace(estimate=lambda name, metric: SimpleNamespace(mean=0.5))
        return SimpleNamespace(left_out={}, milliseconds=took, evaluation=evaluation)

    def build(command: list[str], **options: object) -> None:
        assert command[command.index("--reader") + 1] == times.SETS["debian-whole"] == "words"
        hf.Index.build(passages=[{"text": "One."}], vectors=np.ones((1, 2))).save(command[-1])

    monkeypatch.setattr(times, "compare_recipes", compared)
    monkeypatch.setattr(times.subprocess, "run", build)
    found = times.run(folder, 3)
    assert [one["timed"] for one in asked] == [True] * 3
    assert {one["rankings"] for one in asked} == {times.RANKINGS}
    assert {name: sizes["32"]["median"] for name, sizes in found["ms"].items()} == dict.fromkeys(times.RANKINGS, 2.0)
