"""Ablations of PolicyRAG on a tiny folder, end to end."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.recipes import Policy

from experiments import ablations

NAMES = ["Ada Lovelace", "Charles Babbage", "London", "Analytical Engine", "Luigi Menabrea", "International Wine Fund"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a folder in the format of musique-openie; one of its texts explains an abbreviation."""
    for module in ("wordllama", "bm25s", "ahocorasick"):
        pytest.importorskip(module, reason="the build counts words, and names are found in the questions")
    folder = tmp_path / "musique-openie"
    folder.mkdir()
    rows = [(i, NAMES[i % 6], NAMES[(i + 1) % 6]) for i in range(24)]
    text = "The International Wine Fund (IWF) met. "
    write(
        folder / "passages.jsonl",
        [{"id": i, "title": a, "text": f"{text}{a} wrote to {b}: {i}."} for i, a, b in rows],
    )
    write(folder / "openie.jsonl", [{"id": i, "entities": [a, b], "triples": [[a, "wrote to", b]]} for i, a, b in rows])
    asked = [
        {"id": f"q{i}", "question": f"To whom did {a} write {i}?", "answer": b, "gold": [i], "hops": [[i]]}
        for i, a, b in rows
    ]
    write(folder / "queries.jsonl", asked)
    return tmp_path


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.full
def test_every_switch_and_source_is_measured_and_reworded(data: Path) -> None:
    switches = [f"without {one.name}" for one in fields(Policy().switches) if one.name != "reranking"]
    runs = [
        "dense",
        "phasegraph",
        ablations.WHOLE,
        *switches,
        "seeds: question",
        "seeds: both",
        "facts: 10",
        "facts: 20",
        ablations.PAPER,
    ]
    (found,) = ablations.measured(data, WordLlamaEncoder()).values()
    means = found["groups"]["all"]["means"]
    assert list(means) == runs
    assert list(means["dense"]) == list(ablations.METRICS)
    assert means["dense"]["distractor_suppression@5"] == 0
    assert set(found["against baseline"]) == set(runs) - {ablations.WHOLE}
    assert found["against baseline"][ablations.PAPER][ablations.AGAINST]["p_holm"] <= 1
    # Of the six names one has another, in four of the questions; every question has a paraphrase.
    stable = found["stability"]
    assert stable["rewritten"] == {"other name": [4, 24], "paraphrase": [24, 24]}
    assert list(stable["runs"]) == runs
    values = [value for kinds in stable["runs"].values() for one in kinds.values() for value in one.values()]
    assert all(0 <= value <= 1 for value in values if value == value)


def test_each_policy_differs_by_the_part_in_its_name() -> None:
    made = ablations.policies()
    whole = made.pop(ablations.WHOLE)
    assert (whole, made.pop(ablations.PAPER)) == (Policy(), Policy.paper())
    for name, policy in made.items():
        kind, _, part = name.partition(" ")
        if kind == "without":
            assert policy == whole.without(part)
        elif kind == "facts:":
            assert (policy.facts.candidates, policy.seeds) == (int(part), whole.seeds)
        else:
            assert (policy.seeds.source, policy.switches) == (part, whole.switches)
