"""Local walks of ppr_topk: their bits, their proofs, and what decides whether a query walks so."""

from __future__ import annotations

import gc
import itertools
import weakref
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import awkward_graph, grid_graph, random_graph, random_restart
from compare import assert_bitwise, assert_hits_wellformed
from hopfuse import reference
from hopfuse.backends import cpu_push
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from kernels.canonical_push import Walk
from numpy.typing import NDArray
from refusals import refused

FIELDS = ("ids", "scores", "counts", "score_bounds", "proven", "residual", "bound", "converged")
KINDS = ("none", "integer", "random", "spread", "extreme")


def local(graph: hf.Graph, restart: Any, k: int, **options: Any) -> hf.PprHits:
    return hf.ppr_topk(graph, restart, k, walk="local", **options)


def assert_same(some: hf.PprHits, others: hf.PprHits) -> None:
    """Check that two results of local walks are equal in every bit."""
    for name in FIELDS:
        assert_bitwise(getattr(some, name), getattr(others, name), name)
    assert some.walks is not None
    assert others.walks is not None
    for name in some.walks._fields:
        assert_bitwise(getattr(some.walks, name), getattr(others.walks, name), name)


def assert_true(hits: hf.PprHits, exact: NDArray[np.float64], among: NDArray[np.bool_], prove: str = "order") -> None:
    """Check every claim of local walks against the exact scores (B, N)."""
    assert_hits_wellformed(hits)
    for b, scores in enumerate(exact):
        n = int(hits.counts[b])
        ids = hits.ids[b, :n]
        assert among[ids].all()
        assert (np.abs(hits.scores[b, :n] - scores[ids]) <= hits.score_bounds[b, :n] + 1e-13).all()
        if not hits.proven[b]:
            continue
        left = among & (scores > 0)
        left[ids] = False
        assert n == hits.ids.shape[1] or not left.any()
        worst = scores[ids].min(initial=np.inf)
        assert (scores[left] <= worst * (1 + 1e-12)).all()
        if prove == "order":
            assert (np.diff(scores[ids]) <= 1e-12 * scores[ids[1:]]).all()
            same = np.diff(hits.scores[b, :n]) == 0
            assert (np.diff(ids)[same] > 0).all()


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, types, kind = draw(st.integers(1, 90)), draw(st.sampled_from([1, 1, 3])), draw(st.sampled_from(KINDS))
    graph = random_graph(
        rng,
        n,
        int(n * draw(st.sampled_from([0.5, 2, 6]))) + 1,
        weights=kind,
        types=types,
        hub=draw(st.sampled_from([None, 0])),
    )
    eta = None if draw(st.booleans()) else np.where(rng.random(types) < 0.3, 0.0, rng.random(types) + 0.1)
    if eta is not None and not eta.any():
        eta = None
    among = None if draw(st.booleans()) else np.flatnonzero(rng.random(n) < 0.5)
    guide = draw(st.sampled_from([None, None, "some", "few", "spread"]))
    if kind == "extreme":  # products beyond float32 are refused
        guide = None
    weights = None
    if guide is not None:
        values = {"few": rng.choice([0.25, 1.0], (3, n)), "spread": 2.0 ** rng.uniform(-40, 5, (3, n))}
        weights = values.get(guide, rng.uniform(0.05, 3, (3, n))).astype(np.float32)
    return {
        "graph": graph,
        "restart": random_restart(rng, n, 3, most=draw(st.sampled_from([1, 4, n]))),
        "k": draw(st.sampled_from([1, 2, 5, 10, 40])),
        "candidates": among,
        "damping": draw(st.sampled_from([0.0, 0.3, 0.5, 0.85, 0.999])),
        "edge_type_weights": eta,
        "prove": draw(st.sampled_from(["order", "set"])),
        "node_weights": weights,
    }


def scaled(graph: hf.Graph, weights: NDArray[np.float32]) -> list[float]:
    """Return a query's node weights by internal node, as hopfuse/ppr.h scales them."""
    linked = np.diff(graph.indptr) > 0
    own = weights[graph.node_of].astype(np.float64)
    largest = own[linked].max(initial=0.0) or own.max()
    scale = 2.0 ** np.ceil(np.log2(largest))
    return np.minimum(np.float32(own / scale), np.float32(1)).astype(float).tolist()


@given(case=cases())
def test_walks_have_the_bits_of_the_contract(variant: str, case: dict[str, Any]) -> None:
    graph, restart, k, among = (case.pop(name) for name in ("graph", "restart", "k", "candidates"))
    hits = local(graph, restart, k, candidates=among, **case)
    weights = case["node_weights"]
    eta = case["edge_type_weights"]
    if eta is not None:  # scaled by a power of two, as for passes
        eta = (eta * 2.0 ** (1 - np.frexp(eta.max())[1])).tolist()
        eta = None if all(weight == 1 for weight in eta) else eta
    for b, seeds in enumerate(restart):
        expected = (
            Walk(
                graph,
                seeds,
                hits.ids.shape[1],
                None if among is None else among.tolist(),
                case["damping"],
                eta,
                case["prove"] == "order",
                None if weights is None else scaled(graph, weights[b]),
            ).run()
            if hits.ids.shape[1]
            else None
        )
        if expected is None:
            continue
        n = int(hits.counts[b])
        assert hits.ids[b, :n].tolist() == expected.ids
        assert_bitwise(hits.scores[b, :n], np.array(expected.scores, np.float32), "scores")
        assert hits.walks is not None
        walked = [int(getattr(hits.walks, name)[b]) for name in ("rounds", "rows", "entries")]
        assert float(hits.bound[b]) == expected.bound
        assert [bool(hits.proven[b]), *walked] == [expected.proven, expected.rounds, expected.rows, expected.entries]


@given(case=cases())
def test_claims_are_true(case: dict[str, Any]) -> None:
    graph, restart, k, among = (case.pop(name) for name in ("graph", "restart", "k", "candidates"))
    prove = case.pop("prove")
    hits = local(graph, restart, k, candidates=among, prove=prove, **case)
    kept = np.ones(graph.num_nodes, bool)
    if among is not None:
        kept = np.isin(np.arange(graph.num_nodes), among)
    assert_true(hits, reference.ppr(graph, restart, **case), kept, prove)


@given(case=cases())
def test_proven_lists_are_those_of_passes(case: dict[str, Any]) -> None:
    found, by_passes = local(**case), hf.ppr_topk(walk="passes", **case)
    for b in np.flatnonzero(found.proven & by_passes.proven):
        ours, theirs = (hits.ids[b, : hits.counts[b]].tolist() for hits in (found, by_passes))
        if case["prove"] == "order":
            assert ours == theirs
        else:
            assert sorted(ours) == sorted(theirs)


@given(case=cases())
def test_a_smaller_k_gives_a_prefix(case: dict[str, Any]) -> None:
    case["prove"] = "order"
    for one, more in itertools.pairwise(local(**{**case, "k": k}) for k in (2, 5, 9)):
        for b in np.flatnonzero(one.proven & more.proven):
            assert one.ids[b, : one.counts[b]].tolist() == more.ids[b, : one.counts[b]].tolist()


def busy_graph(seed: int = 4, nodes: int = 4_000, edges: int = 40_000) -> hf.Graph:
    """Return a weighted graph of popular and rare nodes, on which walks of single seeds are local."""
    rng = np.random.default_rng(seed)
    popular = (nodes * rng.random(edges) ** 3).astype(np.int64)
    return hf.Graph.from_edges(rng.integers(0, nodes, edges), popular, rng.uniform(0.8, 3, edges), num_nodes=nodes)


def test_batches_and_threads_change_no_bit(every_isa: list[str]) -> None:
    graph = busy_graph()
    restart = random_restart(np.random.default_rng(1), graph.num_nodes, 256, most=3)
    among = hf.Candidates(graph, np.arange(0, graph.num_nodes, 3))
    whole = local(graph, restart, 10, candidates=among, threads=1)
    assert whole.proven.sum() > 0
    for threads, size in ((2, 256), (3, 64), (2, 1)):
        for first in (0, 64) if size < 256 else (0,):
            part = local(graph, restart[first : first + size], 10, candidates=among, threads=threads)
            for name in FIELDS:
                assert_bitwise(getattr(part, name), getattr(whole, name)[first : first + size], name)


def test_memory_is_clean_between_graphs_of_any_size() -> None:
    graphs = [busy_graph(seed, nodes, 10 * nodes) for seed, nodes in ((1, 900), (2, 3_000), (3, 400))]
    restarts = [random_restart(np.random.default_rng(5), graph.num_nodes, 5) for graph in graphs]
    alone = [local(graph, restart, 8) for graph, restart in zip(graphs, restarts, strict=True)]
    for turn in (1, 0, 2, 1, 0):
        assert_same(local(graphs[turn], restarts[turn], 8), alone[turn])


def test_a_stopped_walk_leaves_clean_memory() -> None:
    graph = busy_graph()
    restart = random_restart(np.random.default_rng(2), graph.num_nodes, 64)
    expected = local(graph, restart, 40)
    token = hf.CancelToken()
    token.cancel()
    with hf.cancellation(token), pytest.raises(hf.errors.CancelledError):
        local(graph, restart, 40)
    assert_same(local(graph, restart, 40), expected)


def test_a_spent_budget_gives_the_best_list_so_far() -> None:
    graph = busy_graph(nodes=20_000, edges=200_000)
    restart = random_restart(np.random.default_rng(3), graph.num_nodes, 4)
    hits = local(graph, restart, 400)
    assert hits.walks is not None
    assert not hits.proven.any()
    assert (hits.walks.entries <= 0.3 * graph.num_stored).all()
    assert_true(hits, reference.ppr(graph, restart), np.ones(graph.num_nodes, bool))


def test_nothing_beyond_reach_is_a_hit_and_the_rest_is_proven() -> None:
    graph = awkward_graph(directed=False)
    hits = local(graph, [{4: 1.0}, {7: 1.0}, {7: 1.0, 4: 3.0}], 8)
    assert hits.proven.all()
    assert hits.counts.tolist() == [3, 1, 4]
    assert_true(hits, reference.ppr(graph, [{4: 1.0}, {7: 1.0}, {7: 1.0, 4: 3.0}]), np.ones(8, bool))


def test_ties_that_the_graph_shows_are_proven() -> None:
    star = hf.Graph.from_edges(np.zeros(20, np.int64), np.arange(1, 21))
    hits = local(star, [{0: 1.0}], 5)
    assert hits.proven.all()
    assert hits.ids.tolist() == [[0, 1, 2, 3, 4]]


def test_other_ties_end_unproven() -> None:
    hits = local(grid_graph(9), [{0: 1.0}], 4)
    assert not hits.proven.any()


def test_auto_walks_locally_where_it_pays(every_isa: list[str]) -> None:
    graph = busy_graph(nodes=20_000, edges=160_000)
    restart = random_restart(np.random.default_rng(8), graph.num_nodes, 40, most=2)
    auto, passes = hf.ppr_topk(graph, restart, 5), hf.ppr_topk(graph, restart, 5, walk="passes")
    assert passes.walks is None
    assert auto.walks is not None
    own = auto.walks.local
    assert own.any()
    assert auto.proven[own].all()
    assert (auto.walks.entries[own] > 0).all()
    both = auto.proven & passes.proven
    assert_bitwise(auto.ids[both], passes.ids[both], "ids")
    for name in FIELDS:  # the others are those of passes, as if alone
        assert_bitwise(getattr(auto, name)[~own], getattr(passes, name)[~own], name)
    forced = local(graph, restart, 5)
    assert_bitwise(auto.scores[own], forced.scores[own], "scores")


def test_auto_walks_by_passes_where_a_sample_says_so() -> None:
    torus = grid_graph(100)  # 40,000 entries, every list tied
    assert cpu_push.budget_of(torus).entries == 0
    assert hf.ppr_topk(torus, [{0: 1.0}], 4).walks is None
    assert hf.ppr_topk(awkward_graph(directed=False), [{0: 1.0}], 2).walks is None  # small
    graph = busy_graph(nodes=20_000, edges=160_000)
    assert cpu_push.budget_of(graph).entries > 0
    for k, more in ((900, {}), (5, {"damping": 0.99})):
        walks = hf.ppr_topk(graph, [{0: 1.0}], k, **more).walks
        assert walks is not None
        assert (walks.local.any(), int(walks.entries[0])) == (False, 0)
    everywhere = hf.ppr_topk(graph, [dict.fromkeys(range(9_000), 1.0)], 5).walks  # seeds with too many edges
    assert everywhere is not None
    assert (everywhere.local.any(), int(everywhere.entries[0])) == (False, 0)
    assert hf.ppr_topk(graph, [{0: 1.0}], 5, max_iter=3).walks is None
    assert hf.ppr_topk(graph, [{0: 1.0}], 5, tol=0.1).walks is None
    assert hf.ppr_topk(graph, [{0: 1.0}], 5, stop="tol").walks is None
    assert hf.ppr_topk(graph, [{0: 1.0}], 5, allow=np.arange(15_000)).walks is None
    some = np.random.default_rng(2).uniform(0.1, 1, (3, graph.num_nodes))
    some[0, 17] = 0
    excluding = hf.ppr_topk(graph, [{0: 1.0}] * 3, 5, node_weights=some).walks
    assert excluding is not None
    assert excluding.entries[0] == 0


def test_node_weights_of_one_change_no_bit() -> None:
    graph = busy_graph(nodes=20_000, edges=160_000)
    restart = random_restart(np.random.default_rng(8), graph.num_nodes, 10, most=2)
    for walk in ("local", "auto"):
        plain = hf.ppr_topk(graph, restart, 5, walk=walk)
        assert plain.walks is not None
        for weights in (np.ones((10, graph.num_nodes)), np.full((10, graph.num_nodes), 8, np.float32)):
            assert_same(hf.ppr_topk(graph, restart, 5, walk=walk, node_weights=weights), plain)


def test_node_weights_of_nodes_without_edges_change_no_bit() -> None:
    rng = np.random.default_rng(3)
    dense = busy_graph()
    src, dst, weight, _ = dense.edges()
    roomy = hf.Graph.from_edges(src, dst, weight, num_nodes=dense.num_nodes + 50)
    restart, own = random_restart(rng, dense.num_nodes, 10, most=2), rng.uniform(0.2, 1.7, (10, dense.num_nodes))
    linked = np.diff(dense.indptr)[dense.internal_of] > 0
    for of_others in (0.0, 1.0, 1e3):
        more = np.concatenate([np.where(linked, own, of_others), np.full((10, 50), of_others)], axis=1)
        assert_same(
            local(roomy, restart, 5, node_weights=more, candidates=np.arange(dense.num_nodes)),
            local(dense, restart, 5, node_weights=own, candidates=np.arange(dense.num_nodes)),
        )


def test_auto_walks_locally_with_node_weights_where_it_pays(every_isa: list[str]) -> None:
    graph = busy_graph(nodes=60_000, edges=400_000)
    graph.derived["push_budget"] = cpu_push.budget_of(graph)._replace(typical=1.0)
    rng = np.random.default_rng(5)
    restart = random_restart(rng, graph.num_nodes, 12, most=2)
    weights = rng.uniform(0.3, 1, (12, graph.num_nodes))
    auto = hf.ppr_topk(graph, restart, 5, prove="set", node_weights=weights)
    passes = hf.ppr_topk(graph, restart, 5, prove="set", node_weights=weights, walk="passes")
    assert auto.walks is not None
    assert auto.walks.local.any()
    assert_bitwise(np.sort(auto.ids[passes.proven]), np.sort(passes.ids[passes.proven]), "ids")
    parts = hf.ppr_topk(
        graph, restart, 5, prove="set", node_weights=weights[:, :900], weighted_nodes=np.arange(900), walk="local"
    )
    rest = weights.copy()
    rest[:, 900:] = 1.0
    assert_same(parts, local(graph, restart, 5, prove="set", node_weights=rest))


def test_a_graph_with_gaps_walks_as_one_without() -> None:
    """Empty places change neither the budget nor a bit of the walks."""
    dense = busy_graph(nodes=20_000, edges=160_000)
    place = np.sort(np.random.default_rng(6).permutation(31_000)[:20_000])
    src, dst, weight, _ = dense.edges()
    roomy = hf.Graph.from_edges(place[src], place[dst], weight, num_nodes=31_000)
    assert cpu_push.budget_of(roomy) == cpu_push.budget_of(dense)
    restart = random_restart(np.random.default_rng(7), 20_000, 20)
    moved = [{int(place[v]): w for v, w in row.items()} for row in restart]
    for walk in ("local", "auto"):
        expected = hf.ppr_topk(dense, restart, 8, candidates=np.arange(9_000), walk=walk)
        free = np.setdiff1d(np.arange(31_000), place)[:40]  # empty places are candidates, too
        found = hf.ppr_topk(roomy, moved, 8, candidates=np.concatenate([place[:9_000], free]), walk=walk)
        assert_bitwise(found.ids, place[expected.ids], "ids")
        for name in FIELDS[1:]:
            assert_bitwise(getattr(found, name), getattr(expected, name), name)


@pytest.mark.parametrize("k", [2, 5, 20])
def test_empty_places_among_the_candidates_are_not_felt(k: int) -> None:
    rng = np.random.default_rng(k)
    for _ in range(30):
        src, dst = rng.integers(0, 20, (2, 40))
        sizes = (int(max(src.max(), dst.max())) + 1, 26)
        few, many = (hf.Graph.from_edges(src, dst, num_nodes=n) for n in sizes)
        seeds = [{int(src[0]): 1.0}, {int(dst[1]): 1.0, int(src[2]): 2.0}]
        for among in (None, [1, 3, 4, 9, 11]):
            shown = None if among is None else [v for v in among if v < sizes[0]]
            expected = local(few, seeds, k, candidates=shown)
            found = local(many, seeds, k, candidates=None if shown is None else [*shown, 24, 25])
            width = expected.ids.shape[1]
            assert_bitwise(found.ids[:, :width], expected.ids, "ids")
            assert_bitwise(found.scores[:, :width], expected.scores, "scores")
            assert_bitwise(found.bound, expected.bound, "bound")
            assert_bitwise(found.proven, expected.proven, "proven")


def test_candidates_given_once_or_per_query_are_the_same() -> None:
    graph = busy_graph(nodes=20_000, edges=160_000)
    restart = random_restart(np.random.default_rng(12), graph.num_nodes, 30)
    for among in (np.array([4, 90, 7, 15]), np.arange(9)):
        for walk in ("local", "auto"):
            once = hf.ppr_topk(graph, restart, 20, candidates=among, walk=walk)
            each = hf.ppr_topk(graph, restart, 20, candidates=[among] * 30, walk=walk)
            for name in ("counts", "proven", "bound"):
                assert_bitwise(getattr(each, name), getattr(once, name), name)
            for name in ("ids", "scores"):
                assert_bitwise(getattr(each, name)[:, : once.ids.shape[1]], getattr(once, name), name)


def test_a_part_of_the_graph_that_is_walked_whole_is_proven() -> None:
    rng = np.random.default_rng(2)
    src, dst = rng.integers(0, 40, (2, 120))
    graph = hf.Graph.from_edges(src, dst, rng.uniform(0.5, 2, 120), num_nodes=41)
    for damping in (0.5, 0.85, 0.95):
        hits = local(graph, [{int(v): 1.0} for v in src[:20]], 6, damping=damping)
        assert hits.proven.all()
        assert_true(hits, reference.ppr(graph, [{int(v): 1.0} for v in src[:20]], damping=damping), np.ones(41, bool))


def test_minus_zero_is_zero() -> None:
    rng = np.random.default_rng(4)
    popular = (20_000 * rng.random(160_000) ** 3).astype(np.int64)
    kinds = (rng.random(160_000) < 0.5).astype(int)
    ends = rng.integers(0, 20_000, 160_000), popular
    graph = hf.Graph.from_edges(*ends, rng.uniform(0.8, 3, 160_000), edge_type=kinds, edge_type_names=["a", "b"])
    seeds = [dict.fromkeys(range(50), 1.0)]
    for name, minus, zero in (
        ("edge_type_weights", {"a": 1.0, "b": -0.0}, {"a": 1.0, "b": 0.0}),
        ("damping", -0.0, 0.0),
        ("damping", np.array([-0.0]), 0.0),
    ):
        for walk in ("local", "auto", "passes"):
            found = hf.ppr_topk(graph, seeds, 5, walk=walk, **{name: minus})
            expected = hf.ppr_topk(graph, seeds, 5, walk=walk, **{name: zero})
            assert_bitwise(found.ids, expected.ids, "ids")
            assert_bitwise(found.scores, expected.scores, "scores")


def test_a_score_that_float32_cannot_hold_is_no_hit() -> None:
    chain = hf.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4], [1e30, 1e10, 1e-10, 1e-30])
    hits, passes = (hf.ppr_topk(chain, [{0: 1.0}], 5, walk=walk) for walk in ("local", "passes"))
    assert (hits.scores[0, : hits.counts[0]] > 0).all()
    assert hits.counts[0] <= passes.counts[0] + 1
    assert not hits.proven[0] or hits.counts[0] == 5


def test_a_graph_is_freed_without_a_collection() -> None:
    graph = busy_graph(nodes=3_000, edges=24_000)
    local(graph, [{0: 1.0}], 3)
    local(graph, [{0: 1.0}], 3, candidates=range(100))
    alive = weakref.ref(graph)
    gc.disable()
    try:
        del graph
        assert alive() is None
    finally:
        gc.enable()


def test_candidates_are_checked_once_and_give_the_same_lists() -> None:
    graph = awkward_graph(directed=False)
    for given_as in ([5, 1, 2], np.isin(np.arange(8), [1, 2, 5])):
        among = hf.Candidates(graph, given_as)
        assert (len(among), str(among)) == (3, "Candidates(3 of 8 nodes)")
        for walk in ("local", "passes"):
            expected = hf.ppr_topk(graph, [{0: 1.0}], 3, candidates=[1, 2, 5], walk=walk)
            found = hf.ppr_topk(graph, [{0: 1.0}], 3, candidates=among, walk=walk)
            assert_bitwise(found.ids, expected.ids, "ids")
            assert_bitwise(found.scores, expected.scores, "scores")


def test_wrong_candidates_are_refused() -> None:
    graph = awkward_graph(directed=False)
    for nodes in ([8], [-2], np.ones(7, bool), np.ones((2, 8), bool)):
        with pytest.raises(InputError) as caught:
            hf.Candidates(graph, nodes)
        assert caught.value.field is not None
        assert caught.value.field.startswith("nodes")
    with refused(InputError, "conflict", "candidates"):
        hf.ppr_topk(awkward_graph(directed=False), [{0: 1.0}], 2, candidates=hf.Candidates(graph, [1]))


def test_local_is_refused_where_it_is_not_defined() -> None:
    graph, options = awkward_graph(directed=False), [{0: 1.0}]
    for more in (
        {"stop": "tol"},
        {"edge_type_norm": "per_type"},
        {"allow": [0, 1, 2]},
        {"node_weights": [[1, 0, 1, 1, 1, 1, 1, 1]]},
        {"max_iter": 3},
    ):
        with refused(InputError, "unsupported", "walk"):
            local(graph, options, 2, **more)
    with refused(InputError, "unsupported", "walk"):
        local(awkward_graph(directed=True), options, 2)
    with pytest.raises(InputError) as caught:
        hf.ppr_topk(graph, options, 2, walk="near")  # type: ignore[arg-type]
    assert caught.value.field == "walk"


def test_empty_lists_and_queries() -> None:
    graph = awkward_graph(directed=False)
    none = local(graph, [{0: 1.0}], 0)
    assert none.ids.shape == (1, 0)
    assert none.proven.all()
    skipped = local(graph, [{}, {0: 1.0}], 2, empty="skip")
    assert skipped.counts.tolist() == [0, 2]
    assert skipped.walks is not None
    assert skipped.walks.local.tolist() == [False, True]
    apart = local(graph, [{0: 1.0}, {4: 1.0}], 2, candidates=[[1, 2], [5]])
    assert apart.ids[0].tolist() == local(graph, [{0: 1.0}], 2, candidates=[1, 2]).ids[0].tolist()
    assert apart.counts.tolist() == [2, 1]
