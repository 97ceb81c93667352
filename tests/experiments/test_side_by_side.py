"""The recipes side by side, by the program: a tiny folder end to end; the setting tuned on one half."""

from __future__ import annotations

import json
from pathlib import Path

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.evaluate import Qrels, in_test_half

from experiments import metaqa, metaqa_files, side_by_side, tuned

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
    numbers, results = side_by_side.run(folder), tmp_path / "results.json"
    results.write_text(json.dumps({"musique-openie": numbers}), encoding="utf-8")
    assert {"dense", "phase-graph", "hybrid-rrf", "policy-rag", "triple-hybrid"} <= set(numbers["runs"])
    text = side_by_side.section(results)
    rows = [
        line.split(" | ") for line in text.split("### musique-openie")[1].split("###")[0].splitlines() if "|" in line
    ]
    assert [row[0].strip("| ") for row in rows[2:]] == numbers["runs"]
    mean = numbers["means"]["policy-rag"]["recall@5"]
    row = next(row for row in rows if row[0] == "| policy-rag")
    assert row[2] == f"{100 * mean:.1f}"
    assert float(row[-2]) == pytest.approx(numbers["ms per query"]["policy-rag"]["12"], abs=0.01)
    taken = 12 * numbers["ms per query"]["policy-rag"]["12"]
    assert f"policy-rag {taken:.0f}" in text.split("A batch of 12 takes, in milliseconds: ")[1].split(".")[0]


def test_recipes_that_take_longer_than_their_time_are_named() -> None:
    numbers = {
        "phase-graph": {"1": 5.0, "32": 0.7},
        "policy-rag": {"1": 9.0, "32": 1.7},
        "dense": {"1": 9.0, "32": 9.0},
    }
    said = side_by_side.times(numbers, "32")
    assert said == (
        "A batch of 32 takes, in milliseconds: phase-graph 22, policy-rag 54. "
        "More than the 50 that are allowed: policy-rag."
    )
    assert side_by_side.times({"phase-graph": {"32": 1.0}}, "32").endswith("phase-graph 32. None takes the 50 allowed.")


def test_metaqa_is_compared_by_a_passage_about_each_entity(metaqa_folder: Path, tmp_path: Path) -> None:
    numbers, results = side_by_side.run(metaqa_folder), tmp_path / "results.json"
    results.write_text(json.dumps({"metaqa": numbers}), encoding="utf-8")
    assert {"dense", "words", "phase-graph", "hybrid-rrf", "policy-rag", "triple-hybrid"} <= set(numbers["runs"])
    assert (numbers["left out"], numbers["questions"]) == ({}, 3)
    assert numbers["means"]["graph"]["recall@5"] == pytest.approx(5 / 6)  # no path leads to Jaws
    assert "### metaqa\n" in side_by_side.section(results)


def test_the_files_of_metaqa_are_an_index_of_it(metaqa_folder: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    metaqa_files.write_files(metaqa_folder, work)
    index = hf.Index.build(
        passages=work / "passages.jsonl",
        entities=work / "entities.jsonl",
        graph=work / "edges.tsv",
        facts=work / "facts.tsv",
        fact_ends="node",
    )
    assert index.titles[1] == index.entity_names[1] == "Ridley Scott"
    assert index.texts[1] == "Ridley Scott. Alien directed by Ridley Scott"
    assert index.graph is not None
    mentions = hf.Incidence.from_graph(index.graph, index.num_passages)
    assert mentions.indices[mentions.indptr[1] : mentions.indptr[2]].tolist() == [5, 6]  # Alien and himself
    assert index.facts is not None
    assert len(index.facts) == 3
    stated = np.split(index.facts.passages, index.facts.indptr[1:-1])
    assert [told.tolist() for told in stated] == [[0, 1], [0, 2], [3, 4]]
    rows = [json.loads(line) for line in (work / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    asked = {row["question"]: (row["topic"], row["gold"], row["hops"]) for row in rows}
    assert asked["films of the director of Alien"] == ("Alien", [0, 3], [[], [0, 3]])


def test_a_passage_states_and_mentions_what_its_text_has_room_for(
    metaqa_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metaqa, "FACTS_OF_A_TEXT", 1)
    work = tmp_path / "work"
    work.mkdir()
    metaqa_files.write_files(metaqa_folder, work)
    first = json.loads((work / "passages.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert first["text"] == "Alien. Alien directed by Ridley Scott"
    facts = (work / "facts.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert [line for line in facts if line.startswith("5\thas genre")] == ["5\thas genre\t7\t2"]
    edges = (work / "edges.tsv").read_text(encoding="utf-8").splitlines()
    mentioned = [line for line in edges if line.startswith("0\t")]
    assert mentioned == ["0\t5\tcontext\t1.0", "0\t6\tcontext\t1.0"]


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
