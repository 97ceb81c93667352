"""A type that is called with the data itself says which of its methods takes them."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from refusals import refused

sparse = pytest.importorskip("scipy.sparse")

EDGES = [(0, 1), (1, 2)]
SQUARE = np.ones((4, 4))


@pytest.mark.parametrize(
    ("given", "call"),
    [
        (EDGES, "Graph.from_edges(*zip(*edges))"),
        (np.array(EDGES), "Graph.from_edges(*zip(*edges))"),
        (sparse.csr_array(SQUARE), "Graph.from_scipy(A, directed=...)"),
        (sparse.coo_matrix(SQUARE), "Graph.from_scipy(A, directed=...)"),
        (SQUARE, "Graph.from_scipy(scipy.sparse.csr_array(A), directed=...)"),
        (np.array([0, 1]), "Graph.from_edges(src, dst)"),
    ],
)
def test_a_graph_of_data_names_the_method(given: Any, call: str) -> None:
    with refused(InputError, "type", type="Graph") as caught:
        hf.Graph(given)  # type: ignore[call-arg]
    assert caught.value.allowed.startswith(call)


def test_what_is_named_works() -> None:
    assert hf.Graph.from_edges(*zip(*EDGES, strict=True)).num_nodes == 3
    assert hf.Graph.from_scipy(sparse.csr_array(SQUARE), directed=False).num_nodes == 4
    with refused(InputError, "type", given="of the type list") as caught:
        hf.Graph([0, 1], [1, 2])  # type: ignore[call-arg]
    assert caught.value.allowed.startswith("Graph.from_edges(src, dst)")


@pytest.mark.parametrize("more", [{}, {"metric": "cosine"}])
def test_a_corpus_of_data_names_the_method(more: Any) -> None:
    with refused(InputError, "type", allowed="Corpus.from_array(X, metric=...)", given="of the type list"):
        hf.Corpus([[1.0, 0.0]], **more)
    with refused(InputError, "type", given="of the type ndarray and the shape (3, 3)"):
        hf.Corpus(np.eye(3), **more)


def test_the_other_prepared_types_name_theirs() -> None:
    for kind in (hf.Incidence, hf.LabelSets):
        with refused(InputError, "type", type=kind.__name__) as caught:
            kind([1, 2])  # type: ignore[call-arg,arg-type]
        assert caught.value.allowed.startswith(f"{kind.__name__}.from_")


def test_hits_print_their_best() -> None:
    hits = hf.Hits.from_lists([[(3, 0.5), (1, 0.25)], [], *([[(0, 1.0)]] * 9)])
    lines = str(hits).split("\n")
    assert repr(hits) == lines[0] == "Hits(queries=11, k=2, valid=11)"
    assert lines[1:4] == ["0: 3 0.5, 1 0.25", "1: none", "2: 0 1"]
    assert lines[-1] == "… 1 more"
    wide = hf.Hits([range(12)], [np.arange(12.0)])
    assert str(wide).endswith("2 2, … 2 more")
    assert str(hf.Hits.from_lists([])) == repr(hf.Hits.from_lists([]))
