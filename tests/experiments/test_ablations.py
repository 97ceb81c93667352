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


def rows_of(text: str) -> dict[str, list[str]]:
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    return {row[0]: row[1:] for row in cells}


@pytest.mark.full
def test_every_switch_and_source_has_a_row_in_both_tables(data: Path) -> None:
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
    about, text = ablations.section(data, WordLlamaEncoder()).split("### musique-openie, PolicyRAG")
    assert about.startswith("## Ablations of PolicyRAG")
    first, second = text.split("Rewritten: ")
    found = rows_of(first)
    assert [name for name in found if name not in ("run", "---")] == runs
    assert found["run"][: len(ablations.METRICS)] == list(ablations.METRICS)
    assert found["dense"][ablations.METRICS.index("distractor_suppression@5")] == "0.0"
    assert found[ablations.WHOLE][-3:] == ["", "", ""]
    assert float(found[ablations.PAPER][-1]) <= 1
    # Of the six names one has another, in four of the questions; every question has a paraphrase.
    assert second.startswith("4 of 24 questions by other name, 24 of 24 questions by paraphrase.")
    stable = rows_of(second)
    assert [name for name in stable if name not in ("run", "---")] == runs
    assert all(0 <= float(cell) <= 100 for name in runs for cell in stable[name] if cell != "-")


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
