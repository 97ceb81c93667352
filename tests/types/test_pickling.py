"""Frozen types go to other processes, also after they were used: what was derived from them stays behind."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import hopfuse as hf
import numpy as np
import pytest


def used_graph() -> hf.Graph:
    graph = hf.Graph.from_edges([0, 1, 2], [1, 2, 3], [1.0, 2.0, 3.0], edge_type=[0, 1, 0], edge_type_names=["a", "b"])
    hf.ppr(graph, [{0: 1.0}])
    hf.ppr(graph, [{0: 1.0}], edge_type_weights=[1.0, 0.5])
    return graph


def used_corpus() -> hf.Corpus:
    corpus = hf.Corpus.from_array(np.arange(12.0).reshape(4, 3) + 1, metric="cosine")
    hf.dense_topk(np.eye(3), corpus, 2)
    return corpus


def used_incidence() -> hf.Incidence:
    incidence = hf.Incidence.from_pairs([0, 0, 2], [1, 3, 1], [1.0, 2.0, 0.5], num_rows=3, num_columns=4)
    hf.project(np.ones((2, 4), np.float32), incidence)
    return incidence


def used_labels() -> hf.LabelSets:
    labels = hf.LabelSets.from_labels(["directed by", "written by"])
    hf.dice_scores(["who directed"], labels, [0, 1], indptr=[0, 2])
    return labels


ANSWERS: list[tuple[Callable[[], Any], Callable[[Any], Any]]] = [
    (used_graph, lambda graph: hf.ppr(graph, [{0: 1.0}], edge_type_weights=[1.0, 0.5]).scores),
    (used_corpus, lambda corpus: hf.dense_topk(np.eye(3), corpus, 2).scores),
    (used_incidence, lambda incidence: hf.project(np.ones((2, 4), np.float32), incidence)),
    (used_labels, lambda labels: hf.dice_scores(["who directed"], labels, [0, 1], indptr=[0, 2])),
]


@pytest.mark.parametrize(("make", "answer"), ANSWERS)
def test_a_used_type_pickles_and_copies(make: Callable[[], Any], answer: Callable[[Any], Any]) -> None:
    used = make()
    used.derived["here"] = lambda: None  # prepared memory of this process does not pickle either
    for again in (pickle.loads(pickle.dumps(used)), copy.copy(used), copy.deepcopy(used)):
        assert type(again) is type(used)
        assert again.derived == {}
        assert np.array_equal(answer(again), answer(used))
        assert repr(again) == repr(used)
    assert "here" in used.derived


def test_the_other_types_pickle() -> None:
    facts = hf.Facts.from_names([("Ada", "wrote", "notes", 0)], ["Ada", "notes"], 1)
    seeds, hits = hf.Seeds.from_rows([{0: 1.0}]), hf.Hits([[1, 0]], [[0.5, 0.25]])
    for one in (facts, seeds, hits):
        assert repr(pickle.loads(pickle.dumps(one))) == repr(one)
