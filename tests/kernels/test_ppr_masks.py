"""allow: the walk of the induced subgraph, and nothing outside it can be felt."""

from __future__ import annotations

import hopfuse as hf
import numpy as np
import pytest
from cases import PprCase, ppr_cases, random_graph, random_restart
from compare import assert_bitwise, assert_ppr
from hopfuse import reference
from hypothesis import given
from numpy.typing import NDArray
from refusals import refused

EVIDENCE = ("scores", "iterations", "residual", "bound", "converged")


def subgraph(graph: hf.Graph, nodes: NDArray[np.int64]) -> hf.Graph:
    """The induced subgraph, nodes renumbered in order."""
    number = np.full(graph.num_nodes, -1)
    number[nodes] = np.arange(nodes.size)
    src, dst, weight, kind = graph.edges()
    keep = (number[src] >= 0) & (number[dst] >= 0)
    return hf.Graph.from_edges(
        number[src[keep]],
        number[dst[keep]],
        weight[keep],
        num_nodes=nodes.size,
        directed=graph.directed,
        edge_type=kind[keep],
        edge_type_names=graph.edge_type_names,
    )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("norm", ["joint", "per_type"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_masked_walk_is_the_walk_of_the_extracted_subgraph(
    variant: str, directed: bool, norm: str, weighted: bool
) -> None:
    rng = np.random.default_rng(1)
    graph = random_graph(rng, 150, 700, directed=directed, types=2, weights="random" if weighted else "none", hub=3)
    allowed = rng.random(150) < 0.6
    nodes = np.flatnonzero(allowed)
    restart = random_restart(rng, 150, 6, allowed)
    eta = [0.4, 0.5]
    number = {int(v): i for i, v in enumerate(nodes)}
    inside = [{number[v]: w for v, w in row.items()} for row in restart]
    result = hf.ppr(graph, restart, damping=0.85, allow=allowed, edge_type_norm=norm, edge_type_weights=eta)
    exact = reference.ppr(subgraph(graph, nodes), inside, damping=0.85, edge_type_norm=norm, edge_type_weights=eta)
    spread = np.zeros((6, 150))
    spread[:, nodes] = exact
    assert_ppr(result, spread, tol=1e-6)
    assert result.converged.all()


@given(case=ppr_cases())
def test_nodes_that_are_not_allowed_hold_exactly_nothing(variant: str, case: PprCase) -> None:
    mask = case.options.get("allow")
    scores = hf.ppr(case.graph, case.restart, **case.options).scores
    if mask is not None:
        outside = scores[~np.broadcast_to(mask, scores.shape)]
        assert_bitwise(outside, np.zeros(outside.size, np.float32), "scores outside")


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("norm", ["joint", "per_type"])
def test_allowing_every_node_gives_the_bits_of_no_mask(variant: str, directed: bool, norm: str) -> None:
    rng = np.random.default_rng(2)
    for weights in ("none", "integer", "random"):
        graph = random_graph(rng, 130, 500, directed=directed, types=2, weights=weights)
        restart = random_restart(rng, 130, 6)
        for eta in (None, [0.3, 0.6]):
            expected = hf.ppr(graph, restart, edge_type_norm=norm, edge_type_weights=eta)
            for shape in ((130,), (6, 130)):
                result = hf.ppr(graph, restart, edge_type_norm=norm, edge_type_weights=eta, allow=np.ones(shape, bool))
                for name in EVIDENCE:
                    assert_bitwise(getattr(result, name), getattr(expected, name), name)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("norm", ["joint", "per_type"])
@pytest.mark.parametrize("per_query", [False, True])
def test_another_tenants_edges_never_change_a_score(variant: str, directed: bool, norm: str, per_query: bool) -> None:
    """Edges with an end outside the mask, their weights and their number do not move one bit of the evidence."""
    rng = np.random.default_rng(3)
    n, mine = 140, 80
    own = rng.integers(0, mine, (2, 300))
    own_weight, own_type = rng.random(300) + 0.1, rng.integers(0, 2, 300)
    allowed = np.arange(n) < mine
    restart = random_restart(rng, n, 5, allowed)
    results = []
    for foreign, scale in ((0, 1.0), (1, 1e-20), (500, 1.0), (900, 1e20)):
        other = np.stack([rng.integers(0, n, foreign), rng.integers(mine, n, foreign)])
        flip = rng.random(foreign) < 0.5
        other[:, flip] = other[::-1, flip]
        graph = hf.Graph.from_edges(
            np.concatenate([own[0], other[0]]),
            np.concatenate([own[1], other[1]]),
            np.concatenate([own_weight, (rng.random(foreign) + 0.1) * scale]),
            num_nodes=n,
            directed=directed,
            edge_type=np.concatenate([own_type, rng.integers(0, 2, foreign)]),
            edge_type_names=["a", "b"],
        )
        mask = np.broadcast_to(allowed, (5, n)).copy() if per_query else allowed
        results.append(
            hf.ppr(graph, restart, damping=0.85, allow=mask, edge_type_norm=norm, edge_type_weights=[0.5, 0.4])
        )
    for result in results[1:]:
        assert_bitwise(result.scores, results[0].scores, "scores")
        assert_bitwise(result.iterations, results[0].iterations, "iterations")


def test_queries_of_a_batch_have_their_own_masks(variant: str) -> None:
    rng = np.random.default_rng(4)
    for directed in (False, True):
        graph = random_graph(rng, 100, 500, directed=directed)
        allowed = rng.random((9, 100)) < np.linspace(0.1, 1.0, 9)[:, None]
        allowed[:, 0] = True
        restart = random_restart(rng, 100, 9, allowed)
        result = hf.ppr(graph, restart, allow=allowed)
        assert_ppr(result, reference.ppr(graph, restart, allow=allowed), tol=1e-6)
        for b in range(9):
            alone = hf.ppr(graph, [restart[b]], allow=allowed[b])
            for name in EVIDENCE:
                assert_bitwise(getattr(alone, name)[0], getattr(result, name)[b], name)


def test_a_lone_allowed_node_keeps_all_mass(variant: str) -> None:
    graph = random_graph(np.random.default_rng(5), 70, 300)
    allowed = np.arange(70) == 66
    scores = hf.ppr(graph, [{66: 1.0}], allow=allowed).scores[0]
    assert_bitwise(scores, allowed.astype(np.float32))


def test_edges_among_other_tenants_never_change_a_score_of_a_hub(variant: str) -> None:
    """A hub longer than a segment, and more entries from outside in between: sums must be cut where they were."""
    rng = np.random.default_rng(5)
    mine, theirs = 200, 40
    src, dst = np.zeros(150, np.int64), np.arange(1, 151)
    weight = rng.random(150) + 0.1
    others = rng.permutation(mine + theirs)  # interleave both tenants' ids
    restart = [{int(others[0]): 1.0}, {int(others[3]): 0.4, int(others[90]): 0.6}]
    mask = np.zeros(mine + theirs, bool)
    mask[others[:mine]] = True
    alone = hf.Graph.from_edges(others[src], others[dst], weight, num_nodes=mine + theirs)
    extra_src, extra_dst = np.zeros(30, np.int64), mine + np.arange(30)
    crowded = hf.Graph.from_edges(
        others[np.concatenate([src, extra_src])],
        others[np.concatenate([dst, extra_dst])],
        np.concatenate([weight, rng.random(30) + 5.0]),
        num_nodes=mine + theirs,
    )
    first = hf.ppr(alone, restart, allow=mask).scores
    second = hf.ppr(crowded, restart, allow=mask).scores
    assert_bitwise(first, second, "scores")
    assert (second[:, ~mask] == 0).all()


def test_ids_and_lists_for_each_query_are_the_masks_they_stand_for() -> None:
    rng = np.random.default_rng(5)
    graph = random_graph(rng, 60, 240, directed=False, types=1, weights="none", hub=2)
    masks = rng.random((5, 60)) < 0.7
    masks[3] = masks[1]
    lists = [np.flatnonzero(mask).tolist() for mask in masks]
    restart = [random_restart(rng, 60, 1, mask)[0] for mask in masks]
    expected = hf.ppr(graph, restart, allow=masks)
    np.testing.assert_allclose(expected.scores, reference.ppr(graph, restart, allow=lists), atol=1e-6)
    for same in (lists, list(masks)):
        assert_bitwise(hf.ppr(graph, restart, allow=same).scores, expected.scores)
    alike = [row for row, mask in zip(restart, masks, strict=True) if masks[0][list(row)].all()]
    shared = hf.ppr(graph, alike, allow=masks[0])
    for ids in (lists[0], np.array(lists[0])[::-1]):
        assert_bitwise(hf.ppr(graph, alike, allow=ids).scores, shared.scores)


@pytest.mark.parametrize("stop", ["tol", "proven"])
def test_candidates_for_each_query_are_its_own_call(stop: str) -> None:
    rng = np.random.default_rng(6)
    graph = random_graph(rng, 60, 240, directed=False, types=1, weights="none", hub=2)
    masks = rng.random((6, 60)) < 0.4
    masks[4], masks[5] = masks[2], False
    restart = [*random_restart(rng, 60, 3, np.ones(60, bool)), {}, *random_restart(rng, 60, 2, np.ones(60, bool))]
    options = {"k": 7, "stop": stop, "empty": "skip"}
    found = hf.ppr_topk(graph, restart, candidates=masks, **options)
    for same in (list(masks), [np.flatnonzero(mask).tolist() for mask in masks]):
        assert_bitwise(hf.ppr_topk(graph, restart, candidates=same, **options).scores, found.scores)
    for b, mask in enumerate(masks):
        alone = hf.ppr_topk(graph, restart[b : b + 1], candidates=np.flatnonzero(mask), **options)
        for name, array in vars(alone).items():
            own = getattr(found, name)[b : b + 1]
            assert_bitwise(own[:, : array.shape[1]] if array.ndim == 2 else own, array)
        assert (found.ids[b, alone.shape[1] :] == -1).all()
    none = hf.ppr_topk(graph, [], candidates=np.zeros((0, 60), bool), **options)
    assert none.ids.shape == (0, 7)


@pytest.mark.parametrize("name", ["allow", "candidates"])
@pytest.mark.parametrize(
    ("given_nodes", "code"),
    [([9], "unknown"), ([[1], [2], [3]], "length"), (np.ones((3, 4), bool), "shape"), ([0.5], "shape")],
)
def test_nodes_that_cannot_be_chosen_are_refused(name: str, given_nodes: object, code: str) -> None:
    graph = hf.Graph.from_edges([0, 1, 2], [1, 2, 3])
    with refused(hf.errors.InputError, code, name):
        hf.ppr_topk(graph, [{1: 1.0}, {2: 1.0}], 2, **{name: given_nodes})
