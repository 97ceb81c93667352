"""Ablations of GuidedWalk: the runs are the recipe's, title edges are correct, numbers are summed up."""

from __future__ import annotations

import hopfuse as hf
import numpy as np
from hopfuse.lexical import BM25
from hopfuse.recipes import GuidedWalk, GuidedWalkConfig

from experiments import guided
from experiments.guided import Questions, measured, summed_up, with_title_edges


def small() -> hf.Index:
    """Three passages of four entities; two titles are entities, one is named in its own passage."""
    index = hf.Index.build(
        passages=[
            {"title": "Ada", "text": "Ada wrote on the Engine."},
            {"title": "the  engine", "text": "Babbage built it in London."},
            {"title": "Notes", "text": "London."},
        ],
        vectors=np.eye(3, dtype=np.float32),
        entities=["Ada", "The Engine", "Babbage", "London"],
        graph=[{"src": a, "dst": b, "type": "context"} for a, b in ((0, 3), (0, 4), (1, 5), (1, 6), (2, 6))],
        storage="float16",
    )
    return index.with_lexical(BM25.build(index.texts_to_index()).matrix)


def edges_of(graph: hf.Graph) -> set[tuple[int, int, str]]:
    source, target, _, kind = graph.edges()
    names = graph.edge_type_names
    return {(*sorted(pair), names[k]) for *pair, k in zip(source.tolist(), target.tolist(), kind.tolist(), strict=True)}


def test_title_edges_join_a_title_with_its_passages_entities() -> None:
    index = small()
    titled = with_title_edges(index)
    assert edges_of(titled.graph) - edges_of(index.graph) == {(3, 4, "title"), (4, 5, "title"), (4, 6, "title")}
    assert edges_of(index.graph) < edges_of(titled.graph)
    assert list(titled.titles) == list(index.titles)
    assert np.array_equal(titled.vectors, index.vectors)


def test_shares_are_of_the_last_hop_by_the_recipe_with_the_options() -> None:
    index, vectors = small(), np.eye(3, dtype=np.float32)[[0, 1]]
    texts = ["Who wrote it with Ada?", "What was built in London?"]
    asked = Questions(texts, vectors, [["Ada"], ["London"]], [[1], [0, 2]], np.array([False, True]), np.arange(2))
    runs = {"default": {}, "other": {"second_top": 2, "floor": 1.0}}
    for name, shares in measured(index, asked, runs, None):
        recipe = GuidedWalk(index, lexical=BM25(index.lexical), **runs[name])
        hits = recipe.search(texts, vectors=vectors, entities=asked.entities, k=guided.K).hits
        found = [hits.ids[row].tolist() for row in range(2)]
        assert shares.tolist() == [float(1 in found[0]), np.mean([0 in found[1], 2 in found[1]])]


def test_every_run_differs_from_the_whole_by_what_the_recipe_has() -> None:
    made = [GuidedWalkConfig(**options) for options in guided.RUNS.values()]
    assert all(config != made[0] for config in made[1:])
    assert set(guided.BY_ENCODER) >= {guided.WHOLE, "without A"}


def test_numbers_are_summed_up_by_half_and_against_the_whole() -> None:
    test = np.arange(20) % 2 > 0
    whole, other = np.ones(20), np.where(test, 0.5, 0.25)
    runs = {guided.WHOLE: whole, "other": other}
    found = summed_up({"a": {"is_test": test, "runs": runs, "encoders": {"e": runs}}})
    assert found["questions"] == {"a": [10, 10]}
    for rows in (found["runs"], found["encoders"]["e"]):
        assert rows["other"]["halves"] == {"a": [0.25, 0.5]}
        assert rows["other"]["difference"] == rows["other"]["low"] == rows["other"]["high"] == -0.5
