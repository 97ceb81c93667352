"""ising_rerank on every kernel variant: the float64 oracle's answers, the contract's bits, recordings."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph, random_lists
from compare import assert_bitwise, assert_hits_close, assert_hits_equal
from devices import on_device, on_host
from hopfuse import reference
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from kernels.canonical_ising import scores32, tanh32
from refusals import refused
from variants import SIMT, use, use_sizes

DEFAULTS = {"coupling": 1.0, "temperature": 2.0, "relaxation": 0.5, "steps": 20, "blend": 0.25}
NODES = 60


def check(hits: hf.Hits, graph: hf.Graph, k: int | None = None, *, atol: float = 1e-6, **options: Any) -> hf.Hits:
    """The oracle's ranking within ``atol``, with exactly the bits that the contract's operations give."""
    found = hf.ising_rerank(hits, graph, k=k, **options)
    everything = reference.ising_rerank(hits, graph, **options)
    exact = np.full((len(hits), graph.num_nodes), -np.inf)
    canonical = np.full((len(hits), graph.num_nodes), -np.inf, np.float32)
    for b, n in enumerate(hits.counts):
        exact[b, everything.ids[b, :n]] = everything.scores[b, :n]
        if n:
            ids = hits.ids[b, :n]
            canonical[b, ids] = scores32(graph, ids, hits.scores[b, :n], **(DEFAULTS | options))
    assert_hits_close(found, exact, atol=atol)
    for b, n in enumerate(found.counts):
        assert_bitwise(found.scores[b, :n], canonical[b, found.ids[b, :n]], f"row {b}")
    assert found.shape == (len(hits), hits.shape[1] if k is None else min(k, hits.shape[1]))
    return found


def lists(rng: np.random.Generator, batch: int, *, width: int = 20, grid: int | None = None) -> hf.Hits:
    return random_lists(rng, batch, 1, width=width, ids=NODES, grid=grid)[0]


def test_the_canonical_tanh_is_within_three_ulp_everywhere() -> None:
    """The definition that the next tests hold the kernels to."""
    x = np.concatenate(
        [
            np.linspace(-12, 12, 200_001),
            np.linspace(-0.63, 0.63, 20_001),
            10.0 ** np.linspace(-44, 38, 2001),
            -(10.0 ** np.linspace(-44, 38, 2001)),
            [0.0, -0.0, np.nextafter(np.float32(0.625), np.float32(0)), 0.625],
        ]
    ).astype(np.float32)
    exact = np.tanh(x.astype(np.float64))
    made = tanh32(x)
    assert (np.abs(made - exact) <= 3 * np.spacing(np.abs(exact).astype(np.float32))).all()
    assert (np.abs(made) <= 1).all()
    assert_bitwise(tanh32(-x), -made, "odd")


@pytest.mark.parametrize("weights", ["none", "random", "integer", "spread"])
@pytest.mark.parametrize("types", [1, 3])
@pytest.mark.parametrize("hub", [None, 7])
def test_every_kind_of_graph(variant: str, weights: str, types: int, hub: int | None) -> None:
    rng = np.random.default_rng(1)
    graph = random_graph(rng, NODES, 200, weights=weights, types=types, hub=hub)
    for k in (0, 1, 7, None, 50):
        check(lists(rng, 6), graph, k)


@pytest.mark.parametrize(
    "options",
    [
        {"coupling": 0.0},
        {"coupling": 0.5, "temperature": 0.3},
        {"coupling": 1e30, "temperature": 1e30},
        {"coupling": 3.4e38, "temperature": 1e-45, "steps": 3},
        {"temperature": 3.4e38},
        {"relaxation": 1.0, "temperature": 1.1},
        {"relaxation": 1e-45},
        {"steps": 0},
        {"steps": 1},
        {"steps": 200},
        {"blend": 0.0},
        {"blend": 1.0},
    ],
)
@pytest.mark.parametrize("grid", [None, 3])
def test_every_option(variant: str, options: dict[str, Any], grid: int | None) -> None:
    rng = np.random.default_rng(2)
    frozen = options.get("temperature", 1.0) < 1e-30  # a sign that rounding decides
    check(lists(rng, 6, grid=grid), random_graph(rng, NODES, 150), atol=2.0 if frozen else 2e-6, **options)


@pytest.mark.parametrize("width", [1, 2, 31, 32, 33, 60])
def test_widths_beside_those_of_a_warp(variant: str, width: int) -> None:
    rng = np.random.default_rng(width)
    ids = rng.permutation(NODES)[None, :width]
    hits = hf.Hits(ids, rng.random((1, width)).astype(np.float32))
    check(hits, random_graph(rng, NODES, 300, hub=2), coupling=1.5)


def test_rows_longer_and_shorter_than_their_partners(variant: str) -> None:
    """A hub among the candidates, joined to all; types make a neighbour stand twice in a row."""
    rng = np.random.default_rng(4)
    graph = random_graph(rng, NODES, 400, types=2, hub=0)
    hits = hf.Hits([[0, 5, 9, 11, 13, 30]], [[0.1, 0.9, 0.5, 0.4, 0.3, 0.2]])
    check(hits, graph)


def test_candidates_without_neighbours_keep_their_field(variant: str) -> None:
    graph = hf.Graph.from_edges([0, 1, 2], [5, 5, 6], num_nodes=9)
    hits = hf.Hits([[0, 1, 2, 8]], [[4.0, 3.0, 2.0, 0.0]])
    options = {"coupling": 1.0, "temperature": 2.0, "relaxation": 1.0, "steps": 30, "blend": 1.0}
    found = dict(check(hits, graph, **options).row(0))
    assert found[8] == tanh32(np.float32([-0.5]))[0]  # alone: tanh(h/T), and h is -1
    assert found[2] == 0.0
    assert found[1] > tanh32(np.float32([0.25]))[0]  # lifted by 0, with which it shares node 5


def test_ties_go_to_the_lower_id(variant: str) -> None:
    graph = hf.Graph.from_edges([9, 4, 6, 1], [11, 11, 11, 11])
    found = check(hf.Hits([[9, 4, 6, 1, 0]], [[1.0, 1.0, 1.0, 1.0, 0.0]]), graph, 3)
    assert found.ids[0].tolist() == [1, 4, 6]


def test_empty_lists_single_candidates_and_equal_scores(variant: str) -> None:
    graph = hf.Graph.from_edges([0, 1, 2], [3, 3, 3])
    hits = hf.Hits.from_lists([[], [(2, -7.0)], [(2, 7.0), (0, 7.0)], []])
    found = check(hits, graph, 3)
    assert [found.row(b) for b in range(4)] == [[], [(2, 0.0)], [(0, 0.0), (2, 0.0)], []]
    for shape in ((0, 4), (3, 0)):
        empty = hf.Hits(np.zeros(shape, int), np.zeros(shape))
        assert hf.ising_rerank(empty, graph, k=2).shape == (shape[0], min(2, shape[1]))
        assert hf.ising_rerank(empty, graph).shape == shape


def test_scores_at_the_ends_of_float32_and_weights_far_apart(variant: str) -> None:
    rng = np.random.default_rng(5)
    graph = random_graph(rng, NODES, 200, weights="extreme")
    largest = float(np.finfo(np.float32).max)
    hits = hf.Hits([[3, 1, 4, 15], [9, 2, 6, 5]], [[largest, 1.0, 0.0, -largest], [4e-45, 3e-45, 1e-45, 0.0]])
    check(hits, graph)


def test_a_graph_without_edges_and_self_loops(variant: str) -> None:
    hits = hf.Hits([[0, 1, 2]], [[3.0, 2.0, 1.0]])
    check(hits, hf.Graph.from_edges([], [], num_nodes=3))
    check(hits, hf.Graph.from_edges([0, 1, 0, 2], [0, 1, 1, 2]))  # 0 is its own neighbour, and 1's


def test_the_largest_number_of_candidates(every_isa: list[str]) -> None:
    """The widest block of the tree; the CPU's variants against each other, and one of them against the bits."""
    rng = np.random.default_rng(6)
    graph = random_graph(rng, 1500, 3000, weights="random", hub=3)
    hits = hf.Hits(rng.permutation(1500)[None, :1024], rng.random((1, 1024)))
    found = []
    for isa in every_isa:
        use(isa)
        found.append(hf.ising_rerank(hits, graph, steps=5))
    for other in found[1:]:
        assert_hits_equal(other, found[0])
    canonical = scores32(graph, hits.ids[0], hits.scores[0], **(DEFAULTS | {"steps": 5}))
    by_id = dict(zip(hits.ids[0].tolist(), canonical, strict=True))
    assert_bitwise(found[0].scores[0], np.array([by_id[i] for i in found[0].ids[0].tolist()], np.float32))


def test_threads_and_the_batch_change_nothing(variant: str) -> None:
    rng = np.random.default_rng(7)
    graph, hits = random_graph(rng, NODES, 300), lists(rng, 30)
    whole = hf.ising_rerank(hits, graph, threads=1)
    assert_hits_equal(hf.ising_rerank(hits, graph, threads=3), whole)
    for b in (0, 11, 29):
        alone = hf.ising_rerank(hf.Hits(hits.ids[b : b + 1], hits.scores[b : b + 1], hits.counts[b : b + 1]), graph)
        assert_bitwise(alone.scores[0], whole.scores[b], f"row {b}")


@pytest.mark.emulator_full
@given(
    seed=st.integers(0, 2**32 - 1),
    weights=st.sampled_from(["none", "integer", "random", "spread"]),
    types=st.integers(1, 3),
    edges=st.sampled_from([0, 30, 150, 500]),
    grid=st.sampled_from([None, 1, 2, 6]),
    k=st.sampled_from([None, 1, 5, 40]),
    coupling=st.floats(0.0, 4.0, width=32),
    temperature=st.floats(0.5, 8.0, width=32),
    relaxation=st.floats(0.125, 1.0, width=32),
    steps=st.integers(0, 30),
    blend=st.floats(0.0, 1.0, width=32),
)
def test_drawn_calls(
    variant: str, seed: int, weights: str, types: int, edges: int, grid: int | None, k: int | None, **options: Any
) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, NODES, edges, weights=weights, types=types, hub=int(rng.integers(NODES)))
    # Steps add up what they round; below T = J one may stretch what is there by J/T.
    stretched = max(1.0, options["coupling"] / options["temperature"]) ** options["steps"]
    atol = min(2.0, (1e-6 + 5e-7 * options["steps"]) * stretched)
    check(lists(rng, 4, width=40, grid=grid), graph, k, atol=atol, **options)


@pytest.mark.every_order
def test_orders_of_threads(variant: str) -> None:
    """Blocks that go on with another query, of more candidates than a warp has threads."""
    rng = np.random.default_rng(7)
    graph = random_graph(rng, NODES, 300, hub=4, weights="random", types=2)
    use_sizes(workspace=0)
    check(lists(rng, 2, width=45), graph, 50, steps=3)


# ---- On a device ----------------------------------------------------------------------------------------------------


def case(seed: int, batch: int, width: int) -> tuple[hf.Hits, hf.Graph]:
    rng = np.random.default_rng(seed)
    return lists(rng, batch, width=width), random_graph(rng, NODES, 300, hub=4)


def test_blocks_go_on_with_other_queries(runtime: Any) -> None:
    use_sizes(workspace=0)
    hf.ising_rerank(*case(5, 5, 40), steps=3)
    assert [grid for _, grid, _ in runtime.launches] == [1]


def test_nothing_to_rerank_launches_nothing(runtime: Any) -> None:
    graph = case(6, 1, 3)[1]
    for shape in ((0, 4), (3, 0)):
        hf.ising_rerank(hf.Hits(np.zeros(shape, int), np.zeros(shape)), graph, k=2)
    assert not runtime.launches


def test_device_arrays_give_device_arrays(runtime: Any) -> None:
    hits, graph = case(8, 4, 30)
    made = hf.ising_rerank(on_device(hits), graph, k=7)
    assert_hits_equal(on_host(made), hf.ising_rerank(hits, graph, k=7, backend="cpu"))


def test_a_document_outside_the_graph_is_named_by_its_row(runtime: Any) -> None:
    hits, graph = case(9, 4, 30)
    ids = hits.ids.copy()
    ids[2, 0] = NODES
    outside = hf.Hits.unchecked(ids, hits.scores, np.maximum(hits.counts, 1))
    with refused(InputError, "unknown", "hits[2]"):
        hf.ising_rerank(on_device(outside), graph)
    with refused(InputError, "unknown", "hits[2]", given=NODES):
        hf.ising_rerank(outside, graph, backend="cpu")


def test_a_captured_core_has_the_plain_calls_answers(runtime: Any) -> None:
    rng = np.random.default_rng(10)
    graph = random_graph(rng, NODES, 300, hub=4)
    corpus = hf.Corpus.from_array(rng.standard_normal((NODES - 10, 12)).astype(np.float32))

    def core(vectors: Any) -> hf.Hits:
        return hf.ising_rerank(hf.dense_topk(vectors, corpus, 20), graph, k=5)

    captured = hf.capture(core, [((12,), "float32")], backend=SIMT)
    for batch in (1, 3, 3):
        vectors = rng.standard_normal((batch, 12)).astype(np.float32)
        assert_hits_equal(captured(vectors), core(vectors))
