"""Graphs with few distinct weights on a device, whose entries are words with codes (kernels/device/packing.h).

The fixture ``runtime`` makes every call on the CPU too, whose weights have no codes, and compares the bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import entities_graph, random_graph, random_restart
from variants import use_sizes

NODES = 190
#: Of blocks of 4 lanes, which have slices, 8, 16 and 32.
BATCHES = (4, 7, 12, 19)


def coded_graph(weights: int) -> hf.Graph:
    """Return a random graph, with a row of several segments, that has so many distinct weights: 1/3, 2/3 and so on."""
    rng = np.random.default_rng(weights)
    pairs = np.concatenate([rng.integers(1, NODES, (2, 700)), [np.zeros(NODES - 1, np.int64), np.arange(1, NODES)]], 1)
    src, dst = np.unique(np.sort(pairs, axis=0), axis=1)
    number = np.concatenate([np.arange(weights), rng.integers(0, weights, src.size - weights)])
    return hf.Graph.from_edges(src, dst, (1 + number) / 3, num_nodes=NODES)


def resident(runtime: Any, graph: hf.Graph) -> int:
    """Return the bytes that a graph takes on the device."""
    before = int(runtime.device.used_bytes())
    hf.ppr_topk(graph, [{0: 1.0}], 1)
    size = int(runtime.device.used_bytes()) - before
    hf.free_device_memory(graph)
    return size


@pytest.mark.parametrize("codes", [7, 6])
@pytest.mark.parametrize("batch", BATCHES)
def test_passes_in_all_widths(runtime: Any, batch: int, codes: int) -> None:
    """Of seven weights, with codes and without: first and full passes, pass by pass and in one launch, long rows."""
    use_sizes(most_codes=codes)
    graph = coded_graph(7)
    restart = [{3 * query + 1: 1.0, 2: 0.3} for query in range(batch)]
    for at_once in (True, False):
        runtime.cooperative = at_once
        hf.ppr(graph, restart, damping=np.linspace(0.2, 0.9, batch), tol=1e-4)
    kinds = {kernel.rsplit("_l", 1)[0] for kernel, _, _ in runtime.launches}
    expected = {"ppr_walk_sliced", "ppr_pass_sliced"} if batch == 4 else {"ppr_walk", "ppr_pass_weighted"}
    assert {*expected, "ppr_residual", "ppr_residual_segments", "ppr_early", "ppr_early_segments"} <= kinds


@pytest.mark.parametrize("codes", [5, 4])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("norm", ["joint", "per_type"])
def test_types_masks_and_node_weights(runtime: Any, norm: str, directed: bool, codes: int) -> None:
    """Weights times eta, degrees of subgraphs and of edges into a node, and segments of masked lanes."""
    use_sizes(most_codes=codes)
    rng = np.random.default_rng(3)
    base = coded_graph(5)
    count = 900
    graph = hf.Graph.from_edges(
        *rng.integers(1, NODES, (2, count)), rng.integers(1, 6, count) / 7, num_nodes=NODES, directed=directed,
        edge_type=rng.integers(0, 2, count), edge_type_names=["a", "b"],
    )  # fmt: skip
    allowed = rng.random((6, NODES)) < 0.8
    restart = random_restart(rng, NODES, 6, allowed)
    options: Sequence[dict[str, Any]] = (
        {"edge_type_weights": rng.random((6, 2)) / 2},
        {"edge_type_weights": [0.4, 0.5], "allow": allowed},
        {"edge_type_weights": [0.4, 0.5], "node_weights": rng.random((6, NODES)) + 0.1},
    )
    for own in options:
        hf.ppr(graph, restart, edge_type_norm=norm, damping=0.7, tol=1e-4, **own)
    hf.ppr(base, restart, allow=allowed, damping=0.7, tol=1e-4)
    hf.ppr_topk(graph, restart, 9, edge_type_norm=norm, edge_type_weights=[0.4, 0.5], allow=allowed)


@pytest.mark.parametrize("codes", [4096, 0])
def test_lists_are_settled(runtime: Any, codes: int) -> None:
    """Proofs, twins, refinement and float64 steps; weights of 1, 2 and 3 and sums of parallel edges."""
    use_sizes(most_codes=codes)
    rng = np.random.default_rng(9)
    graph = entities_graph(rng)
    restart = [{300 + int(v): 1.0 for v in rng.choice(200, 4, False)} for _ in range(6)]
    for prove in ("order", "set"):
        hf.ppr_topk(graph, restart, 60, candidates=np.arange(300), prove=prove, damping=0.5)
    hf.ppr(
        random_graph(rng, NODES, 600, weights="integer", hub=3), random_restart(rng, NODES, 6), damping=0.95, tol=1e-7
    )
    kinds = {kernel.rsplit("_l", 1)[0] for kernel, _, _ in runtime.launches}
    assert {"ppr_settle_around", "ppr_refine_around", "ppr_keep"} <= kinds


@pytest.mark.parametrize("codes", [7, 6])
def test_reranking_by_shared_neighbours(runtime: Any, codes: int) -> None:
    use_sizes(most_codes=codes)
    rng = np.random.default_rng(4)
    hits = hf.Hits(rng.permutation(NODES)[:30][None], -np.sort(-rng.random((1, 30))))
    hf.ising_rerank(hits, coded_graph(7), k=10)


@pytest.mark.parametrize("weights", [256, 257])
def test_the_bound_of_codes(runtime: Any, weights: int) -> None:
    """A graph of as many weights as there are codes, and of one more."""
    use_sizes(most_codes=256)
    graph = coded_graph(weights)
    for batch in (3, 6):
        hf.ppr(graph, random_restart(np.random.default_rng(5), NODES, batch), damping=0.6, tol=1e-4)


@pytest.mark.parametrize("weights", [1, 7, 256])
def test_words_take_half_the_memory(runtime: Any, weights: int) -> None:
    """Of rows and slices: 4 bytes an entry less in each, and slices have more places; the table takes 4 a weight."""
    sizes = []
    for codes in (256, 0):
        use_sizes(most_codes=codes)
        sizes.append(resident(runtime, coded_graph(weights)))
    stored = coded_graph(weights).num_stored
    assert 8 * stored - 4 * weights - 1024 <= sizes[1] - sizes[0] <= 13 * stored


def test_the_estimate_counts_words() -> None:
    rng = np.random.default_rng(6)
    edges = rng.integers(0, 20_000, (2, 60_000))
    few = hf.Graph.from_edges(*edges, np.ones(60_000), num_nodes=20_000)
    many = hf.Graph.from_edges(*edges, rng.random(60_000), num_nodes=20_000)
    saved = hf.estimate_device_memory(many).graph - hf.estimate_device_memory(few).graph
    assert 8 * many.num_stored - 4096 <= saved <= 13 * many.num_stored
