"""ppr_topk: the ranking of the scores, its proof, and its order under ties."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import PprCase, awkward_graph, grid_graph, ppr_cases, random_graph, random_restart
from compare import assert_bitwise, assert_hits_wellformed, assert_ppr_hits
from hopfuse import reference
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refused


def ranking_of(scores: NDArray[np.float32], k: int, among: NDArray[np.bool_] | None = None) -> hf.Hits:
    """The k best positive scores of each row: higher first, then lower id."""
    rows = []
    for row in scores:
        keep = row > 0 if among is None else (row > 0) & among
        ids = np.flatnonzero(keep)
        order = np.lexsort((ids, -row[ids]))[:k]
        rows.append([(int(i), float(row[i])) for i in ids[order]])
    hits = hf.Hits.from_lists(rows)
    ids = np.full((len(rows), k), -1, np.int64)
    values = np.full((len(rows), k), -np.inf, np.float32)
    ids[:, : hits.shape[1]], values[:, : hits.shape[1]] = hits.ids, hits.scores
    return hf.Hits(ids, values, hits.counts)


def assert_topk_of(hits: hf.Hits, scores: NDArray[np.float32], among: NDArray[np.bool_] | None = None) -> None:
    expected = ranking_of(scores, hits.shape[1], among)
    for name in ("counts", "ids", "scores"):
        assert_bitwise(getattr(hits, name), getattr(expected, name), name)


def candidates(exact: NDArray[np.float64], among: NDArray[np.bool_] | None) -> NDArray[np.float64]:
    return exact if among is None else np.where(among, exact, -np.inf)


@pytest.mark.emulator_full
@given(case=ppr_cases(), k=st.sampled_from([1, 2, 3, 5, 10, 64, 300]), some=st.booleans())
def test_stop_tol_is_exactly_the_ranking_of_the_ppr_scores(variant: str, case: PprCase, k: int, some: bool) -> None:
    among = np.arange(case.graph.num_nodes) % 3 != 1 if some else None
    hits = hf.ppr_topk(case.graph, case.restart, k, stop="tol", candidates=among, **case.options)
    scored = hf.ppr(case.graph, case.restart, **case.options)
    assert_topk_of(hits, scored.scores, among)
    for name in ("iterations", "residual", "bound", "converged"):
        assert_bitwise(getattr(hits, name), getattr(scored, name), name)


@pytest.mark.emulator_full
@given(
    case=ppr_cases(),
    k=st.sampled_from([1, 2, 3, 5, 10, 64, 300]),
    some=st.booleans(),
    tol=st.sampled_from([1e-3, 1e-6]),
)
def test_proven_lists_have_the_exact_order_and_every_bound_holds(
    variant: str, case: PprCase, k: int, some: bool, tol: float
) -> None:
    among = np.arange(case.graph.num_nodes) % 3 != 1 if some else None
    exact = candidates(reference.ppr(case.graph, case.restart, **case.options), among)
    for stop in ("proven", "tol"):
        hits = hf.ppr_topk(case.graph, case.restart, k, stop=stop, candidates=among, tol=tol, **case.options)
        assert_ppr_hits(hits, exact)
        assert_bitwise(hits.converged, hits.bound <= tol, "converged")
        assert not hits.score_bounds[hits.ids < 0].any()


@pytest.mark.emulator_full
@given(case=ppr_cases(), some=st.booleans(), tol=st.sampled_from([1e-3, 1e-6]))
def test_the_hits_of_a_smaller_k_are_a_prefix(variant: str, case: PprCase, some: bool, tol: float) -> None:
    among = np.arange(case.graph.num_nodes) % 3 != 1 if some else None
    widest = hf.ppr_topk(case.graph, case.restart, 40, candidates=among, tol=tol, **case.options)
    for k in (0, 1, 2, 3, 7, 20, 39):
        hits = hf.ppr_topk(case.graph, case.restart, k, candidates=among, tol=tol, **case.options)
        assert_bitwise(hits.ids, widest.ids[:, :k], f"ids of k = {k}")
        assert_bitwise(hits.counts, np.minimum(widest.counts, k), f"counts of k = {k}")


def test_proof_stops_queries_of_an_untied_graph_early(variant: str) -> None:
    rng = np.random.default_rng(1)
    graph = random_graph(rng, 300, 1500)
    restart = random_restart(rng, 300, 20)
    proven = hf.ppr_topk(graph, restart, 3)
    full = hf.ppr_topk(graph, restart, 3, stop="tol")
    assert proven.proven.mean() > 0.8
    assert (proven.iterations <= full.iterations).all()
    assert proven.iterations.mean() < 0.9 * full.iterations.mean()
    assert_bitwise(proven.ids[proven.proven], full.ids[proven.proven], "ids")


@pytest.mark.parametrize("k", [1, 2, 4, 5, 9, 13])
@pytest.mark.parametrize("side", [8, 9])
def test_exact_ties_of_unlike_rows_are_not_proven_and_go_to_the_lower_id(variant: str, k: int, side: int) -> None:
    graph = grid_graph(side)
    centre = side * (side // 2) + side // 2
    exact = reference.ppr(graph, [{centre: 1.0}])[0]
    hits = hf.ppr_topk(graph, [{centre: 1.0}], k)
    assert_ppr_hits(hits, exact[None])
    descending = np.sort(exact)[::-1]
    tied = (np.diff(descending[: k + 1]) > -1e-12).any()
    assert bool(hits.proven[0]) == (not tied)
    assert hits.ids[0].tolist() == np.lexsort((np.arange(exact.size), -exact.round(12)))[:k].tolist()
    if tied:
        assert hits.converged.all()


def test_a_complete_graph_ranks_its_equal_nodes_by_id(variant: str) -> None:
    n = 70
    src, dst = np.triu_indices(n, 1)
    hits = hf.ppr_topk(hf.Graph.from_edges(src, dst), [{42: 1.0}], 12)
    assert hits.ids[0].tolist() == [42, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert hits.proven[0]  # any two of them may be exchanged


@pytest.mark.parametrize("stop", ["proven", "tol"])
def test_unreachable_nodes_are_not_hits(variant: str, stop: str) -> None:
    for directed in (False, True):
        graph = awkward_graph(directed)
        exact = reference.ppr(graph, [{4: 1.0}, {7: 1.0}, {3: 1.0}])
        hits = hf.ppr_topk(graph, [{4: 1.0}, {7: 1.0}, {3: 1.0}], 8, stop=stop)
        assert_ppr_hits(hits, exact)
        assert hits.counts.tolist() == (exact > 0).sum(axis=1).tolist()
        assert hits.row(1) == [(7, 1.0)]


@pytest.mark.parametrize("stop", ["proven", "tol"])
def test_k_of_zero_gives_no_hits_and_honest_evidence(variant: str, stop: str) -> None:
    graph = awkward_graph(False)
    hits = hf.ppr_topk(graph, [{0: 1.0}, {7: 1.0}], 0, stop=stop)
    assert hits.shape == (2, 0)
    assert hits.counts.tolist() == [0, 0]
    assert hits.converged.all()
    assert hits.proven.all()


def test_hits_are_at_most_as_wide_as_the_number_of_nodes(variant: str) -> None:
    graph = awkward_graph(False)
    hits = hf.ppr_topk(graph, [{0: 1.0}], 50)
    assert_hits_wellformed(hits)
    assert hits.shape == (1, 8)
    assert hits.counts[0] == 4


def test_an_empty_batch_gives_empty_hits(variant: str) -> None:
    assert hf.ppr_topk(awkward_graph(False), [], 3).shape == (0, 3)


@pytest.mark.parametrize("stop", ["proven", "tol"])
def test_among_as_ids_and_as_a_mask_is_the_same(variant: str, stop: str) -> None:
    rng = np.random.default_rng(2)
    for directed in (False, True):
        graph = random_graph(rng, 120, 500, directed=directed)
        restart = random_restart(rng, 120, 6)
        ids = rng.choice(120, 30, replace=False)
        mask = np.isin(np.arange(120), ids)
        exact = candidates(reference.ppr(graph, restart), mask)
        forms: list[Any] = [ids, np.concatenate([ids, ids[:5]]), ids.tolist(), mask, ids.astype(np.uint16)]
        hits = [hf.ppr_topk(graph, restart, 8, candidates=form, stop=stop) for form in forms]
        assert_ppr_hits(hits[0], exact)
        for other in hits[1:]:
            for name in ("ids", "scores", "counts", "score_bounds", "proven", "iterations"):
                assert_bitwise(getattr(other, name), getattr(hits[0], name), name)


def test_among_nothing_gives_no_hits(variant: str) -> None:
    hits = hf.ppr_topk(awkward_graph(False), [{0: 1.0}], 3, candidates=[])
    assert hits.counts.tolist() == [0]
    assert (hits.ids == -1).all()


@pytest.mark.parametrize("max_iter", [1, 2, 3, 4, 6])
def test_bounds_hold_when_max_iter_cuts_the_walk_short(variant: str, max_iter: int) -> None:
    rng = np.random.default_rng(3)
    for directed in (False, True):
        graph = random_graph(rng, 100, 500, directed=directed)
        restart = random_restart(rng, 100, 9)
        exact = reference.ppr(graph, restart, damping=0.85)
        for stop in ("proven", "tol"):
            hits = hf.ppr_topk(graph, restart, 5, damping=0.85, max_iter=max_iter, stop=stop)
            assert_ppr_hits(hits, exact)


def test_more_hits_than_a_device_selects_at_once(variant: str) -> None:
    rng = np.random.default_rng(5)
    graph = random_graph(rng, 1500, 4000, hub=3)
    restart = random_restart(rng, 1500, 2)
    exact = reference.ppr(graph, restart)
    among = rng.random(1500) < 0.8
    assert_ppr_hits(hf.ppr_topk(graph, restart, 600), exact)
    hits = hf.ppr_topk(graph, restart, 2000, candidates=np.flatnonzero(among), stop="tol")
    assert_ppr_hits(hits, np.where(among, exact, -np.inf))


def test_weak_certificates(variant: str) -> None:
    """Walks of tiny graphs cut short: whether a list is proven hangs on the errors of what is outside it."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        graph = hf.Graph.from_edges(*rng.integers(0, 12, (2, 20)), num_nodes=12)
        restart = [{int(v): 1.0} for v in range(12)]
        exact = reference.ppr(graph, restart)
        for max_iter in (1, 2, 3, 4, 6):
            assert_ppr_hits(hf.ppr_topk(graph, restart, 2, max_iter=max_iter), exact)


def test_a_near_tie_is_never_proven_in_the_wrong_order(variant: str) -> None:
    """Weights that differ by one part in 2^22 decide the order; float32 scores cannot always show it."""
    step = 2.0**-22
    for gap in (1, 2, 8, 64, 1024):
        for first, second in ((1.0 + gap * step, 1.0), (1.0, 1.0 + gap * step)):
            graph = hf.Graph.from_edges([0, 0, 1, 2], [1, 2, 3, 4], [first, second, 1.0, 1.0])
            exact = reference.ppr(graph, [{0: 1.0}])
            for k in (2, 3, 5):
                assert_ppr_hits(hf.ppr_topk(graph, [{0: 1.0}], k), exact)


# ---- prove="set" ----------------------------------------------------------------------------------------------------


def assert_proven_sets(hits: hf.PprHits, exact: NDArray[np.float64]) -> None:
    """Every score is within its bound, and a proven list has the exact scores of the best, in any order."""
    assert_hits_wellformed(hits)
    k = hits.shape[1]
    for b, n in enumerate(hits.counts):
        found = exact[b, hits.ids[b, :n]]
        assert (np.abs(hits.scores[b, :n] - found) <= hits.score_bounds[b, :n] + 1e-13).all()
        if hits.proven[b]:
            best = np.sort(exact[b][exact[b] > 0])[::-1][:k]
            assert best.size == n
            assert (np.abs(np.sort(found)[::-1] - best) <= 1e-13).all(), f"row {b}"


@pytest.mark.emulator_full
@given(case=ppr_cases(), k=st.sampled_from([1, 2, 3, 5, 10, 64, 300]), some=st.booleans())
def test_a_proven_set_is_the_exact_one(variant: str, case: PprCase, k: int, some: bool) -> None:
    among = np.arange(case.graph.num_nodes) % 3 != 1 if some else None
    exact = candidates(reference.ppr(case.graph, case.restart, **case.options), among)
    hits = hf.ppr_topk(case.graph, case.restart, k, candidates=among, prove="set", **case.options)
    assert_proven_sets(hits, exact)


def test_a_set_is_proven_where_its_order_is_not(variant: str) -> None:
    """The four neighbours of the centre tie, and so do the nodes two steps away."""
    graph = grid_graph(9)
    exact = reference.ppr(graph, [{40: 1.0}])
    for k, cut in ((5, False), (4, True), (2, True)):
        order = hf.ppr_topk(graph, [{40: 1.0}], k)
        by_set = hf.ppr_topk(graph, [{40: 1.0}], k, prove="set")
        assert_proven_sets(by_set, exact)
        assert not order.proven[0]
        assert bool(by_set.proven[0]) == (not cut)
        assert by_set.iterations[0] <= order.iterations[0]


@pytest.mark.emulator_full
@given(case=ppr_cases(), some=st.booleans(), tol=st.sampled_from([1e-3, 1e-6]))
def test_the_hits_of_a_smaller_k_are_among_a_larger_ones(variant: str, case: PprCase, some: bool, tol: float) -> None:
    among = np.arange(case.graph.num_nodes) % 3 != 1 if some else None
    options = {"candidates": among, "tol": tol, "prove": "set", **case.options}
    widest = hf.ppr_topk(case.graph, case.restart, 40, **options)
    for k in (0, 1, 2, 3, 7, 20, 39):
        hits = hf.ppr_topk(case.graph, case.restart, k, **options)
        assert_bitwise(hits.counts, np.minimum(widest.counts, k), f"counts of k = {k}")
        for b, n in enumerate(hits.counts):
            assert np.isin(hits.ids[b, :n], widest.ids[b]).all(), f"k = {k}, row {b}"


def test_the_end_of_a_set_cuts_through_nodes_with_equal_rows(variant: str) -> None:
    """Leaves of a hub tie exactly, and the lower ids come first; a node above them is in the set for certain."""
    graph = hf.Graph.from_edges([0] * 9, np.arange(1, 10), [2.0] + [1.0] * 8)
    hits = hf.ppr_topk(graph, [{0: 1.0}], 4, prove="set")
    assert hits.ids.tolist() == [[0, 1, 2, 3]]
    assert hits.proven.all()


def test_prove_is_order_or_set() -> None:
    with refused(InputError, "choice", "prove", given="both"):
        hf.ppr_topk(awkward_graph(False), [{0: 1.0}], 2, prove="both")  # type: ignore[arg-type]
