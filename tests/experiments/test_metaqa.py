"""The report on MetaQA: for a knowledge graph of three films, and for the real one if it exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.data_sets import data_root
from experiments import metaqa
from experiments.record import figures

pytest.importorskip("wordllama", reason="entity texts become vectors by WordLlama (extra demo)")
for module in ("bm25s", "Stemmer"):
    pytest.importorskip(module, reason="the lexical mode is BM25's (extra text)")

DATA = data_root() / "metaqa"


def test_the_collection_is_what_the_files_say(metaqa_folder: Path) -> None:
    made = metaqa.Collection.read(metaqa_folder, metaqa.WordLlamaEncoder(64))
    assert list(made.index.entity_names) == ["Alien", "Ridley Scott", "Horror", "Jaws", "Steven Spielberg"]
    assert metaqa.entity_texts(list(made.index.entity_names), made.index.facts)[:2] == [
        "Alien. Alien directed by Ridley Scott. Alien has genre Horror",
        "Ridley Scott. Alien directed by Ridley Scott",
    ]
    asked = {q.text: (q.hops, q.answers) for q in made.questions}
    assert asked["who directed Alien"] == (1, ("Ridley Scott",))
    assert asked["films of the director of Alien"] == (2, ("Alien", "Jaws"))
    at = [q.text for q in made.questions].index("films of the director of Alien")
    assert made.qrels.gold[at] == (0, 3)
    assert made.qrels.num_hops.tolist() == [1, 1, 2]
    assert len(metaqa.questions_of(metaqa_folder, 1)) == 2


def test_every_run_has_figures_in_every_group(metaqa_folder: Path) -> None:
    collection = metaqa.Collection.read(metaqa_folder, metaqa.WordLlamaEncoder(64))
    found = figures(metaqa.evaluation(collection, metaqa.RUNS), (metaqa.COMPARED,))
    assert set(found["groups"]) == {"all", "1 hop", "2 hops"}
    for group in found["groups"].values():
        assert list(group["means"]) == list(metaqa.RUNS)
    one = found["groups"]["1 hop"]["means"]["graph"]
    assert one["hit@10"] == one["recall@10"] == 1.0  # both answers are an end of one of Alien's triples
    assert set(found["against baseline"]) == set(metaqa.RUNS) - {"vector"}


def test_the_timings_are_of_batches_of_32(metaqa_folder: Path) -> None:
    questions = [f"who directed [Alien] {at}\tRidley Scott" for at in range(3 * metaqa.BATCH + 5)]
    (metaqa_folder / "qa_1hop_dev.txt").write_text("\n".join(questions) + "\n", encoding="utf-8")
    numbers = metaqa.speed(metaqa.Collection.read(metaqa_folder, metaqa.WordLlamaEncoder(64)))
    assert [taken["batches"] for taken in numbers["seconds"].values()] == [2] * len(
        metaqa.RUNS
    )  # the first is left out
    assert all(0 < taken["median"] <= taken["p95"] for taken in numbers["seconds"].values())


@pytest.mark.full
def test_on_the_real_questions_the_graph_finds_what_vectors_do_not() -> None:
    if not DATA.is_dir():
        pytest.skip("the data folder metaqa is absent (set HOPFUSE_DATA)")
    made = metaqa.Collection.read(DATA, metaqa.WordLlamaEncoder(), 64)
    names: Any = ("vector", "graph", "hybrid")
    result = metaqa.evaluation(made, {name: metaqa.RUNS[name] for name in names})
    one = {name: result.estimate(name, "hit@10", group="1 hop").mean for name in names}
    assert one["graph"] > one["vector"]
    assert result.group("3 hops").queries == 64
