"""Comparisons of recipes over an index of every shape."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import pytest
from hopfuse.diagnose import RANKINGS, compare_recipes
from hopfuse.errors import InputError
from hopfuse.evaluate import Qrels
from refusals import refused
from retriever.shapes import QUESTION, Letters, built, words_graph

QUESTIONS, GOLD = [QUESTION, "Where is the Thames?"], Qrels(["q", "r"], [[1], [2, 3]])
SHAPES: dict[str, tuple[Any, str, set[str]]] = {
    "texts": (built, "words", {"words", "plain-hybrid", "hybrid-rrf", "hybrid-convex"}),
    "graph": (lambda: built("graph"), "words", {"words", "plain-hybrid", "hybrid-rrf", "hybrid-convex"}),
    "words graph": (words_graph, "words", {"words", "plain-hybrid", "hybrid-rrf", "hybrid-convex"}),
    "vectors": (lambda: built("vectors"), "dense", {"dense", "words", "plain-hybrid", "hybrid-rrf", "hybrid-convex"}),
    "vectors and graph": (
        lambda: built("vectors", "graph"),
        "dense",
        {name for name in RANKINGS if not name.startswith("triple")},
    ),
}


@pytest.mark.parametrize(("make", "baseline", "least"), SHAPES.values(), ids=SHAPES)
def test_every_shape_of_an_index_is_compared(make: Any, baseline: str, least: set[str]) -> None:
    index = make()
    retriever = hf.Retriever(index, encoder=None if index.corpus is None else Letters())
    found = compare_recipes(retriever, QUESTIONS, GOLD, ["recall@2"], words="fts5")
    runs = set(found.evaluation.runs)
    assert found.evaluation.baseline == baseline
    assert runs | set(found.left_out) == set(RANKINGS)
    assert runs >= least
    assert not any(name in found.left_out for name in ("plain-hybrid", "hybrid-rrf"))


def test_the_plain_hybrid_is_words_and_vectors_without_a_walk() -> None:
    index = built("vectors", "graph")
    retriever = hf.Retriever(index, encoder=Letters(), words="fts5")
    plain = retriever.variant("plain-hybrid")
    assert (plain.needs.entities, plain.needs.words, plain.needs.vectors) == (False, True, True)
    lists = [
        retriever.words.search([QUESTION], 4),
        hf.dense_topk(Letters().encode_queries([QUESTION]), index.corpus, 4),
    ]
    assert plain.search(QUESTION, k=3).hits.row(0) == hf.fuse(lists, method="rrf", k=3).row(0)
    with refused(InputError, "unused", "damping"):
        retriever.variant("plain-hybrid", damping=0.5)


def test_an_index_without_vectors_and_words_has_no_baseline() -> None:
    with refused(InputError, "missing", "words"):
        compare_recipes(built("graph"), QUESTIONS, GOLD, ["recall@2"], words="none")
    with refused(InputError, "unused", "vectors"):
        compare_recipes(built(), QUESTIONS, GOLD, ["recall@2"], vectors=[[1.0, 0.0]] * 2)
