"""The recipes side by side, by the program: a tiny folder end to end; the setting tuned on one half."""

from __future__ import annotations

import json
from pathlib import Path

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.evaluate import Qrels, in_test_half

from bench import side_by_side, tuned

NAMES = ["Ada Lovelace", "Charles Babbage", "London", "Analytical Engine", "Luigi Menabrea", "Turin"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in musique-openie's form."""
    made = tmp_path / "musique-openie"
    made.mkdir()
    rows = [(i, NAMES[i % 6], NAMES[(i + 1) % 6]) for i in range(12)]
    write(made / "passages.jsonl", [{"id": i, "title": a, "text": f"{a} wrote to {b}, note {i}."} for i, a, b in rows])
    write(made / "openie.jsonl", [{"id": i, "entities": [a, b], "triples": [[a, "wrote to", b]]} for i, a, b in rows])
    asked = [
        {"id": f"q{i}", "question": f"To whom did {a} write?", "answer": b, "gold": [i], "hops": [[i]], "last_hop": [i]}
        for i, a, b in rows
    ]
    write(made / "queries.jsonl", asked)
    return made


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_a_folder_is_built_compared_and_described(folder: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    side_by_side.run(folder, results / "compare-musique-openie.json")
    numbers = json.loads((results / "compare-musique-openie.json").read_text(encoding="utf-8"))
    assert {"dense", "phase-graph", "hybrid-rrf", "policy-rag", "triple-hybrid"} <= set(numbers["runs"])
    text = side_by_side.section(results)
    rows = [
        line.split(" | ") for line in text.split("### musique-openie")[1].split("###")[0].splitlines() if "|" in line
    ]
    assert [row[0].strip("| ") for row in rows[2:]] == numbers["runs"]
    mean = numbers["groups"][0]["estimates"]["policy-rag"]["recall@5"]["mean"]
    row = next(row for row in rows if row[0] == "| policy-rag")
    assert row[2] == f"{100 * mean:.1f}"
    assert float(row[-2]) == pytest.approx(numbers["ms per query"]["policy-rag"]["12"], abs=0.01)


def test_the_setting_is_chosen_on_one_half_and_reported_on_the_other() -> None:
    """The graph's list is right on the tune half alone, the dense one on the other alone."""
    ids = [f"q{i}" for i in range(40)]
    test = in_test_half(ids)
    gold = np.arange(40)
    dense = hf.Hits(np.tile(np.arange(40, 52), (40, 1)), np.tile(np.linspace(0.9, 0.4, 12), (40, 1)).astype(np.float32))
    right = np.where(test, 99, gold)
    graph = hf.Hits(np.stack([right, np.full(40, 98)], 1), np.tile([0.9, 0.1], (40, 1)).astype(np.float32))
    dense.ids[test, 0] = gold[test]
    text = tuned.section(dense, graph, Qrels(ids, gold[:, None].tolist(), last_hop=gold[:, None].tolist()))
    assert f"on the {int((~test).sum())} questions" in text
    assert "(100.0 there)" in text
    assert f"On the other {int(test.sum())}:" in text
    assert "| last_hop@5 | 100.0 | 100.0 |" in text
    assert "| mrr" not in text
