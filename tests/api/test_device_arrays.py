"""Device arrays in, device arrays out: results equal the host's, and only the status of queries is read back."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph
from compare import assert_bitwise
from devices import on_device, on_host
from hopfuse._native import DeviceArray
from hopfuse.adapters import dialects
from hopfuse.adapters.igraph import personalized_pagerank_batch
from hopfuse.errors import InputError
from refusals import refused
from variants import missing, simt_runtime

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(missing("simt") is not None, reason=str(missing("simt"))),
]
NODES, DIM = 190, 12


def assert_same(made: Any, expected: Any) -> None:
    for name, array in vars(expected).items():
        assert isinstance(getattr(made, name), DeviceArray)
        assert_bitwise(getattr(made, name).to_numpy(), array, name)


@pytest.fixture
def graph() -> hf.Graph:
    return random_graph(np.random.default_rng(1), NODES, 700, hub=3)


@pytest.fixture
def seeds() -> hf.Seeds:
    rng = np.random.default_rng(2)
    nodes = np.stack([rng.permutation(NODES)[:6] for _ in range(7)])
    nodes[rng.random(nodes.shape) < 0.3] = -1
    nodes[:, 0] = np.arange(7)
    return hf.Seeds(np.stack([rng.permutation(row) for row in nodes]), rng.random(nodes.shape) + 0.01)


@pytest.fixture
def corpus() -> hf.Corpus:
    return hf.Corpus.from_array(np.random.default_rng(3).standard_normal((150, DIM)).astype(np.float32))


@pytest.fixture
def vectors() -> Any:
    return np.random.default_rng(4).standard_normal((7, DIM)).astype(np.float32)


@pytest.mark.parametrize("stop", ["proven", "tol"])
def test_walks_from_seeds(graph: hf.Graph, seeds: hf.Seeds, stop: Any) -> None:
    expected = hf.ppr_topk(graph, seeds, 9, candidates=range(0, NODES, 2), stop=stop, backend="cpu")
    assert_same(hf.ppr_topk(graph, on_device(seeds), 9, candidates=range(0, NODES, 2), stop=stop), expected)


def test_scores_of_a_batch_for_igraph_stay_on_the_device(graph: hf.Graph, seeds: hf.Seeds) -> None:
    made = personalized_pagerank_batch(graph, on_device(seeds), damping=0.99)
    assert isinstance(made, DeviceArray)
    assert_bitwise(made.to_numpy(), hf.ppr(graph, seeds, damping=0.99, backend="cpu").scores, "scores")


def test_all_scores_of_a_walk(graph: hf.Graph, seeds: hf.Seeds) -> None:
    expected = hf.ppr(graph, seeds, backend="cpu")
    assert_same(hf.ppr(graph, on_device(seeds)), expected)
    out = on_device(np.zeros((7, NODES), np.float32))
    hf.ppr(graph, on_device(seeds), out=out)
    assert_bitwise(out.to_numpy(), expected.scores, "out")


def test_seeds_on_the_host_equal_dense_restarts(graph: hf.Graph, seeds: hf.Seeds) -> None:
    rows = [
        {node: weight for node, weight in zip(*row, strict=True) if node >= 0}
        for row in zip(seeds.nodes.tolist(), seeds.weights.tolist(), strict=True)
    ]
    assert_bitwise(hf.ppr(graph, seeds).scores, hf.ppr(graph, rows).scores, "scores")


def test_masks_and_type_weights(seeds: hf.Seeds) -> None:
    graph = random_graph(np.random.default_rng(5), NODES, 700, types=3)
    allowed = np.ones((7, NODES), np.bool_)
    allowed[:, 150:] = False
    rows = hf.Seeds(np.where(seeds.nodes < 150, seeds.nodes, -1), seeds.weights)
    options: dict[str, Any] = {"allow": allowed, "edge_type_weights": np.random.default_rng(6).random((7, 3))}
    expected = hf.ppr_topk(graph, rows, 5, backend="cpu", **options)
    assert_same(hf.ppr_topk(graph, on_device(rows), 5, **options), expected)


@pytest.mark.parametrize("device", [False, True])
def test_queries_without_seeds_may_return_nothing(graph: hf.Graph, seeds: hf.Seeds, device: bool) -> None:
    nodes = seeds.nodes.copy()
    nodes[[1, 4]] = -1
    some = hf.Seeds(nodes, seeds.weights)
    made = hf.ppr_topk(graph, on_device(some) if device else some, 5, empty="skip")
    made = on_host(made) if device else made
    assert made.counts[[1, 4]].tolist() == [0, 0]
    assert (made.ids[[1, 4]] == -1).all()
    assert made.proven[[1, 4]].all()
    assert made.converged[[1, 4]].all()
    rest = [0, 2, 3, 5, 6]
    expected = hf.ppr_topk(graph, hf.Seeds(nodes[rest], seeds.weights[rest]), 5, backend="cpu")
    for name, array in vars(expected).items():
        assert_bitwise(getattr(made, name)[rest], array, name)
    with refused(InputError, "zero", "restart[1]"):
        hf.ppr_topk(graph, on_device(some) if device else some, 5)


def test_dense_lists_and_their_fusion(corpus: hf.Corpus, vectors: Any, graph: hf.Graph, seeds: hf.Seeds) -> None:
    def search(vectors: Any, seeds: hf.Seeds, **options: Any) -> hf.Hits:
        dense = hf.dense_topk(vectors, corpus, 20, **options)
        walked = hf.ppr_topk(graph, seeds, 10, **options)
        lists = [hf.calibrate(dense, "min_max", **options), walked, dense]
        return hf.fuse(lists, method="boltzmann", weights=(1.0, 0.5, 0.2), k=8, **options)

    assert_same(search(on_device(vectors), on_device(seeds)), search(vectors, seeds, backend="cpu"))


def test_a_query_that_the_bound_cannot_prove_is_widened(vectors: Any) -> None:
    alike = hf.Corpus.from_array(np.repeat(vectors[:1], 300, axis=0))
    expected = hf.dense_topk(vectors, alike, 5, backend="cpu")
    assert_same(hf.dense_topk(on_device(vectors), alike, 5), expected)


def test_arrays_on_the_device_are_not_uploaded_again(corpus: hf.Corpus, vectors: Any) -> None:
    runtime, given = simt_runtime(), on_device(vectors)
    hf.dense_topk(given, corpus, 5)
    runtime.events.clear()
    hf.dense_topk(given, corpus, 5)
    assert [event for event in runtime.events if event.kind == "upload"] == []


NAN = np.full((2, DIM), np.nan, np.float32)
ZERO = np.zeros((2, DIM), np.float32)


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (lambda g, c, x: hf.dense_topk(on_device(np.stack([x[0], NAN[0]])), c, 3), ("finite", "queries[1]")),
        (lambda g, c, x: hf.dense_topk(on_device(np.stack([x[0], 1e30 * x[0]])), c, 3), ("finite", "queries[1]")),
        (
            lambda g, c, x: hf.dense_topk(on_device(ZERO), hf.Corpus.from_array(c.vectors, metric="cosine"), 3),
            ("zero", "queries[0]"),
        ),
        (lambda g, c, x: hf.dense_topk(on_device(x.astype(np.float64)), c, 3), ("dtype", "queries")),
        (lambda g, c, x: hf.dense_topk(on_device(x[:, :5]), c, 3), ("shape", "queries")),
        (lambda g, c, x: hf.dense_topk(on_device(x), c, 3, min_score=0.5), ("unsupported", "min_score")),
        (lambda g, c, x: hf.dense_above(on_device(x), c, 0.5), ("unsupported", "min_score")),
        (lambda g, c, x: hf.dense_topk(on_device(x), c, 3, backend="cpu"), ("conflict", "queries")),
        (
            lambda g, c, x: hf.ppr(g, on_device(np.ones((2, NODES), np.float32))),
            ("type", "restart"),
        ),
        (lambda g, c, x: hf.ppr_topk(g, on_device(hf.Seeds([[0, 1], [2, 500]])), 3), ("unknown", "restart[1]")),
        (
            lambda g, c, x: hf.ppr_topk(g, on_device(hf.Seeds([[0, 1], [2, 3]])), 3, allow=np.arange(NODES) != 3),
            ("unknown", "restart[1]"),
        ),
        (
            lambda g, c, x: hf.ppr_topk(g, hf.Seeds(on_device(np.array([[0, 0]])), on_device(np.ones((1, 2)))), 3),
            ("duplicate", "restart[0]"),
        ),
        (
            lambda g, c, x: hf.ppr_topk(g, hf.Seeds(on_device(np.array([[0, 2]])), on_device(-np.ones((1, 2)))), 3),
            ("range", "restart[0]"),
        ),
        (
            lambda g, c, x: hf.ppr_topk(
                g, hf.Seeds(on_device(np.array([[0, 2]])), on_device(np.full((1, 2), 1e308))), 3
            ),
            ("range", "restart[0]"),
        ),
        (
            lambda g, c, x: hf.ppr_topk(g, hf.Seeds(on_device(np.array([[0, 0]])), on_device(np.eye(2)[:1])), 3),
            ("duplicate", "restart[0]"),
        ),
        (
            lambda g, c, x: hf.ppr_topk(
                g, hf.Seeds(on_device(np.zeros((2, 0), np.int64)), on_device(np.zeros((2, 0)))), 3
            ),
            ("zero", "restart[0]"),
        ),
        (lambda g, c, x: hf.dense_topk(on_device(NAN), c, 0), ("finite", "queries[0]")),
        (lambda g, c, x: hf.dense_topk(on_device(NAN), c, 3, allow=[]), ("finite", "queries[0]")),
        (
            lambda g, c, x: hf.add_passage_seeds(hf.Seeds([[1]]), on_device(hf.Hits([[1]], [[1.0]])), 1.0),
            ("unavailable", "hits.ids"),
        ),
        (
            lambda g, c, x: hf.ppr_topk(
                g,
                hf.add_passage_seeds(
                    on_device(hf.Seeds([[1, 2]], [[1e308] * 2])), on_device(hf.Hits([[3]], [[1.0]])), 1.0
                ),
                3,
            ),
            ("range", "restart[0]"),
        ),
        (
            lambda g, c, x: hf.Seeds(on_device(np.ones((1, 2), np.int32)), on_device(np.ones((1, 2)))),
            ("dtype", "nodes"),
        ),
        (
            lambda g, c, x: hf.Seeds(on_device(np.ones((1, 2), np.int64)), np.ones((1, 2))),
            ("missing", "weights"),
        ),
        (
            lambda g, c, x: hf.fuse([hf.dense_topk(on_device(x), c, 3), hf.dense_topk(x, c, 3)]),
            ("conflict", "lists[1].ids"),
        ),
        (
            lambda g, c, x: hf.fuse([hf.dense_topk(on_device(x), c, 3)], method="boltzmann", calibration="max"),
            ("unsupported", "calibration"),
        ),
        (
            lambda g, c, x: dialects.fuse([hf.dense_topk(on_device(x), c, 3)], "qdrant", "dbsf"),
            ("unsupported", "lists"),
        ),
    ],
)
def test_errors_describe_what_is_wrong(
    graph: hf.Graph, corpus: hf.Corpus, vectors: Any, call: Any, refusal: tuple[str, str | None]
) -> None:
    with refused(InputError, *refusal):
        call(graph, corpus, vectors)
