"""Empty places cannot be felt (hopfuse/ppr.h, SUMS): a graph with nodes that have no edges, or that ``allow`` excludes,
gives the bits of the graph rebuilt without them, bound and proof included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from hopfuse import _native
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

EVIDENCE = ("iterations", "residual", "bound", "converged")
HITS = ("counts", "scores", "score_bounds", "proven", *EVIDENCE)


@dataclass
class Places:
    """One graph twice: as it is, and among empty places."""

    rebuilt: hf.Graph
    roomy: hf.Graph
    place: NDArray[np.int64]  # of each node of the one in the other, ascending
    allow: NDArray[np.bool_] | None  # None: nothing needs to be excluded


def among_empty_places(
    rng: np.random.Generator, nodes: int, edges: int, *, free: int, dead: int, directed: bool, types: int, weights: str
) -> Places:
    """``free`` places without edges, and ``dead`` nodes with edges to all kinds of nodes."""
    src, dst = rng.integers(0, max(1, nodes - nodes // 6), (2, edges))  # the last nodes stay without edges
    if edges > 6:
        src[: edges // 3] = src[0]  # a hub
    other = rng.integers(0, nodes + dead, (2, 4 * dead)) if dead else np.zeros((2, 0), np.int64)
    other = other[:, (other >= nodes).any(axis=0)]
    place = rng.permutation(nodes + dead + free)[: nodes + dead]
    place[:nodes].sort()
    kind = rng.integers(0, types, edges + other.shape[1])
    value = {
        "none": np.ones(kind.size),
        "integer": rng.integers(1, 4, kind.size).astype(np.float64),
        "random": rng.random(kind.size) + 0.01,
    }[weights]
    order = rng.permutation(kind.size)  # edges of the dead stand among the others, which keep their order
    order[order < edges] = np.arange(edges)
    names = [f"t{i}" for i in range(types)]
    both_src, both_dst = np.concatenate([src, other[0]])[order], np.concatenate([dst, other[1]])[order]
    roomy = hf.Graph.from_edges(
        place[both_src],
        place[both_dst],
        value[order],
        num_nodes=place.size + free,
        directed=directed,
        edge_type=kind[order],
        edge_type_names=names,
    )
    rebuilt = hf.Graph.from_edges(
        src, dst, value[:edges], num_nodes=nodes, directed=directed, edge_type=kind[:edges], edge_type_names=names
    )
    allow = np.ones(place.size + free, bool)
    allow[place[nodes:]] = False
    empty = np.setdiff1d(np.arange(allow.size), place)
    allow[empty] = rng.random(empty.size) < 0.5  # a free place may be excluded, too
    return Places(rebuilt, roomy, place[:nodes], allow if dead else None)


def moved(restart: list[dict[int, float]], places: Places) -> list[dict[int, float]]:
    return [{int(places.place[v]): w for v, w in row.items()} for row in restart]


def assert_not_felt(places: Places, restart: list[dict[int, float]], **options: Any) -> None:
    scores = hf.ppr(places.roomy, moved(restart, places), allow=places.allow, **options)
    expected = hf.ppr(places.rebuilt, restart, **options)
    spread = np.zeros((len(restart), places.roomy.num_nodes), np.float32)
    spread[:, places.place] = expected.scores
    assert_bitwise(scores.scores, spread, "scores")
    for name in EVIDENCE:
        assert_bitwise(getattr(scores, name), getattr(expected, name), name)


def assert_hits_not_felt(places: Places, restart: list[dict[int, float]], k: int, **options: Any) -> None:
    among = options.pop("candidates", None)
    hits = hf.ppr_topk(
        places.roomy,
        moved(restart, places),
        k,
        allow=places.allow,
        candidates=None if among is None else places.place[among],
        **options,
    )
    expected = hf.ppr_topk(places.rebuilt, restart, k, candidates=among, **options)
    width = expected.ids.shape[1]
    assert (hits.ids[:, width:] == -1).all()
    assert_bitwise(hits.ids[:, :width], np.where(expected.ids < 0, -1, places.place[expected.ids]), "ids")
    for name in HITS:
        found, wanted = getattr(hits, name), getattr(expected, name)
        assert_bitwise(found[:, :width] if found.ndim == 2 else found, wanted, name)


GRAPH_OPTIONS = {
    "free": st.sampled_from([0, 1, 70, 300]),
    "dead": st.sampled_from([0, 1, 40]),
    "directed": st.booleans(),
    "types": st.sampled_from([1, 3]),
    "weights": st.sampled_from(["none", "integer", "random"]),
}


@st.composite
def roomy_cases(draw: st.DrawFn) -> tuple[Places, list[dict[int, float]], dict[str, Any]]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nodes = draw(st.sampled_from([1, 2, 7, 64, 150]))
    places = among_empty_places(
        rng,
        nodes,
        draw(st.sampled_from([0, nodes, 5 * nodes])),
        **{name: draw(of) for name, of in GRAPH_OPTIONS.items()},
    )
    batch, types = draw(st.sampled_from([1, 3, 9, 17])), places.rebuilt.num_edge_types
    restart = [
        {int(v): float(rng.random() + 0.1) for v in rng.choice(nodes, min(nodes, int(rng.integers(1, 4))), False)}
        for _ in range(batch)
    ]
    options: dict[str, Any] = {
        "damping": rng.choice([0.0, 0.5, 0.85], batch),
        "tol": draw(st.sampled_from([1e-3, 1e-6, 1e-9])),
        "max_iter": draw(st.sampled_from([None, None, 2, 6])),
        "edge_type_norm": draw(st.sampled_from(["joint", "per_type"])),
    }
    if draw(st.booleans()):
        options["edge_type_weights"] = rng.choice([0.0, 0.1, 0.3], (batch, types))
    return places, restart, options


@pytest.mark.emulator_full
@given(case=roomy_cases())
def test_empty_places_cannot_be_felt(variant: str, case: tuple[Places, list[dict[int, float]], dict[str, Any]]) -> None:
    places, restart, options = case
    assert_not_felt(places, restart, **options)


@pytest.mark.emulator_full
@given(
    case=roomy_cases(),
    k=st.sampled_from([1, 5, 40, 200]),
    stop=st.sampled_from(["tol", "proven"]),
    chooses=st.booleans(),
)
def test_empty_places_cannot_be_felt_in_lists(
    variant: str,
    case: tuple[Places, list[dict[int, float]], dict[str, Any]],
    k: int,
    stop: str,
    chooses: bool,
) -> None:
    places, restart, options = case
    nodes = places.place.size
    among = np.flatnonzero(np.arange(nodes) % 3 != 1) if chooses else None
    assert_hits_not_felt(places, restart, k, stop=stop, candidates=among, **options)


@pytest.mark.parametrize("directed", [False, True])
def test_thousands_of_empty_places_in_any_batch_on_any_threads(every_isa: list[str], directed: bool) -> None:
    rng = np.random.default_rng(1)
    places = among_empty_places(rng, 2500, 9000, free=2000, dead=700, directed=directed, types=1, weights="random")
    restart = [{int(v): 1.0} for v in rng.integers(0, 2500, 40)]
    for batch in (1, 3, 40):
        assert_not_felt(places, restart[:batch], threads=2)
        assert_hits_not_felt(places, restart[:batch], 30, threads=2)


def test_nodes_whose_entries_that_count_are_equal_are_known_to_tie(variant: str) -> None:
    """One of two passages has an entity that is excluded; without it both have the same."""
    src, dst = np.array([0, 0, 1, 1, 2, 2]), np.array([3, 4, 3, 4, 4, 5])
    rebuilt = hf.Graph.from_edges(src, dst, num_nodes=6)
    roomy = hf.Graph.from_edges(np.append(src, 1), np.append(dst, 6), num_nodes=7)
    places = Places(rebuilt, roomy, np.arange(6), np.arange(7) < 6)
    assert_hits_not_felt(places, [{3: 1.0}, {4: 1.0, 5: 0.5}], 2, candidates=np.arange(3))
    hits = hf.ppr_topk(roomy, [{3: 1.0}], 2, candidates=np.arange(3), allow=np.arange(7) < 6)
    assert hits.ids[0].tolist() == [0, 1]
    assert hits.proven.all()


def test_a_list_of_all_that_can_be_hit_is_proven(variant: str) -> None:
    """Empty places have the score 0 by the graph, so a list without them lacks nothing."""
    graph = hf.Graph.from_edges([2, 5], [5, 7], num_nodes=90)
    hits = hf.ppr_topk(graph, [{5: 1.0}], 50)
    assert hits.counts.tolist() == [3]
    assert hits.proven.all()


def test_a_bound_reads_only_what_a_query_may_touch(variant: str) -> None:
    """The entries of an excluded hub, and those that lead to excluded nodes, count in no bound."""
    src, dst = np.arange(30), np.arange(1, 31)
    alone = hf.Graph.from_edges(src, dst, num_nodes=600)
    crowded = hf.Graph.from_edges(
        np.concatenate([src, np.full(500, 99), np.zeros(400, int)]),
        np.concatenate([dst, np.arange(100, 600), np.arange(200, 600)]),
        num_nodes=600,
    )
    mask = np.arange(600) < 31
    first, second = (hf.ppr(graph, [{0: 1.0}], allow=mask) for graph in (alone, crowded))
    assert_bitwise(second.bound, first.bound, "bound")


def test_a_volume_of_any_scale_is_one_sum_for_every_order() -> None:
    """Its grain follows from the largest term and their number, and whole numbers stay exact."""
    rng = np.random.default_rng(0)
    for scale in (1e-30, 1e-3, 1.0, 1e9, 1e38):
        degree = rng.random(5000) ** 8 * scale
        volumes = {_volume(np.concatenate([rng.permutation(degree), np.zeros(gaps)])) for gaps in (0, 1, 700)}
        assert len(volumes) == 1
        np.testing.assert_allclose(volumes.pop(), math.fsum(degree), rtol=1e-12)
    whole = rng.integers(1, 1 << 20, 5000).astype(np.float64)
    assert _volume(whole) == whole.sum()
    assert _volume(np.zeros(3)) == 0.0


def _volume(degree: np.ndarray[Any, Any]) -> float:
    """The volume of a graph with these degrees."""
    nodes = np.arange(degree.size, dtype=np.int32)
    prepared = _native.PreparedGraph(
        directed=False,
        num_types=1,
        indptr=np.zeros(degree.size + 1, np.int64),
        indices=np.zeros(0, np.int32),
        weight=None,
        edge_type=None,
        degree=degree[:, None],
        node_of=nodes,
        internal_of=nodes,
    )
    volume: float = prepared.degrees(per_type=False)["volume"]
    return volume


@pytest.mark.parametrize("types", [1, 3])
def test_a_graph_and_a_filter_of_all_of_it_walk_equally_long(types: int) -> None:
    """Pass limits read the volume that the graph has, and the one that lanes of their own are given."""
    rng = np.random.default_rng(types)
    src, dst = rng.integers(0, 300, (2, 900))
    kinds = {"edge_type": rng.integers(0, types, 900), "edge_type_names": [f"t{i}" for i in range(types)]}
    for weights in (rng.random(900) ** 6 + 1e-4, rng.integers(1, 9, 900).astype(float)):
        graph = hf.Graph.from_edges(src, dst, weights, num_nodes=310, **kinds)
        restart = [{int(src[i]): 1.0, int(dst[i + 9]): 0.3} for i in range(6)]
        for tol in (1e-3, 1e-5, 1e-6):
            plain = hf.ppr(graph, restart, tol=tol)
            allowed = hf.ppr(graph, restart, tol=tol, allow=np.ones(310, np.bool_))
            assert_bitwise(allowed.iterations, plain.iterations, "iterations")
            assert_bitwise(allowed.scores, plain.scores, "scores")
