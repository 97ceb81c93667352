"""Restarts from seeds and from the entities of hits: the oracle's weights, a query's own, and the device's bits."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from devices import on_device, on_host
from hopfuse.errors import InputError
from hopfuse.reference import add_entity_seeds as oracle
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from variants import SIMT, use_sizes

PASSAGES, NODES = 6, 14
ENTITIES = st.integers(PASSAGES, NODES - 1)
SEED_ROWS = st.dictionaries(ENTITIES, st.one_of(st.just(0.0), st.floats(1e-12, 1e12)), max_size=6)
HIT_ROWS = st.lists(st.integers(0, PASSAGES - 1), max_size=4, unique=True)
PAIRS = st.lists(st.tuples(st.integers(0, PASSAGES - 1), ENTITIES), max_size=30, unique=True)
MASSES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


def incidence(pairs: list[tuple[int, int]], weighted: bool = False) -> hf.Incidence:
    rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
    weights = [1.0 + row / 3 for row in rows] if weighted else None
    return hf.Incidence.from_pairs(
        np.array(rows, int), np.array(columns, int), weights, num_rows=PASSAGES, num_columns=NODES
    )


def restarts(seeds: hf.Seeds) -> list[dict[int, float]]:
    rows = zip(seeds.nodes.tolist(), seeds.weights.tolist(), strict=True)
    return [{node: weight for node, weight in zip(*row, strict=True) if node >= 0} for row in rows]


def listed(rows: list[list[int]]) -> hf.Hits:
    return hf.Hits.from_lists([[(row, float(-at)) for at, row in enumerate(found)] for found in rows])


@given(
    rows=st.lists(st.tuples(SEED_ROWS, HIT_ROWS), min_size=1, max_size=5),
    pairs=PAIRS,
    mass=MASSES,
    weighted=st.booleans(),
    often=st.sampled_from([None, "shared", "each"]),
)
def test_weights_are_the_oracles(rows: Any, pairs: Any, mass: float, weighted: bool, often: str | None) -> None:
    mentions = incidence(pairs, weighted)
    seeds, hits = hf.Seeds.from_rows([row for row, _ in rows]), listed([found for _, found in rows])
    drawn = np.random.default_rng(len(pairs)).integers(0, 9, (len(rows), NODES))
    frequency = {None: None, "shared": drawn[0], "each": drawn}[often]
    made = hf.add_entity_seeds(seeds, hits, mentions, mass, frequency=frequency)
    expected = oracle([row for row, _ in rows], [hits.row(b) for b in range(len(rows))], mentions, mass, frequency)
    for b, (mine, theirs) in enumerate(zip(restarts(made), expected, strict=True)):
        some = {node: weight for node, weight in theirs.items() if weight > 0 or node in seeds.nodes[b]}
        assert mine == pytest.approx(some, rel=1e-12)
        alone = hf.add_entity_seeds(
            hf.Seeds(seeds.nodes[b : b + 1], seeds.weights[b : b + 1]),
            hf.Hits(hits.ids[b : b + 1], hits.scores[b : b + 1], hits.counts[b : b + 1]),
            mentions,
            mass,
            frequency=frequency if frequency is None or frequency.ndim == 1 else frequency[b : b + 1],
        )
        width = alone.nodes.shape[1]
        assert_bitwise(alone.nodes[0], made.nodes[b, :width], "nodes")
        assert_bitwise(alone.weights[0], made.weights[b, :width], "weights")
        assert (made.nodes[b, width:] == -1).all()


def test_shares_are_those_of_the_docstring() -> None:
    mentions = incidence([(0, 6), (0, 7), (1, 7), (2, 7)])
    made = hf.add_entity_seeds(hf.Seeds([[6], [-1], [6]]), listed([[1, 0], [0], []]), mentions, 0.25)
    # Passage 1 is first, and 7 is in three passages: 1/3 + 1/(2 * 3) for 7, 1/2 for 6.
    assert restarts(made) == [pytest.approx({6: 0.875, 7: 0.125}), pytest.approx({6: 0.75, 7: 0.25}), {6: 1.0}]


# ---- On a device -----------------------------------------------------------------------------------------------------


def drawn(seed: int, batch: int, held: int, k: int) -> tuple[hf.Seeds, hf.Hits, hf.Incidence]:
    """Draw seeds, hits and what they hold: most rows hold few of 300 nodes, one holds ``held``."""
    rng = np.random.default_rng(seed)
    pairs = np.unique(np.concatenate([rng.integers(0, 40 * 300, 200), 7 * 300 + rng.permutation(300)[:held]]))
    mentions = hf.Incidence.from_pairs(pairs // 300, pairs % 300, rng.random(pairs.size), num_rows=40, num_columns=300)
    nodes = np.stack([rng.permutation(300)[:9] for _ in range(batch)])
    nodes[rng.random(nodes.shape) < 0.3] = -1
    nodes[0] = -1
    ids = np.stack([rng.permutation(40)[:k] for _ in range(batch)])
    hits = hf.Hits(ids, rng.random(ids.shape), rng.integers(0, k + 1, batch))
    return hf.Seeds(nodes, rng.random(nodes.shape)), hits, mentions


def assert_same_restarts(made: hf.Seeds, expected: hf.Seeds) -> None:
    """Equal bits, but for empty places at the end of rows."""
    width = expected.nodes.shape[1]
    assert (made.nodes[:, width:] == -1).all()
    assert_bitwise(np.ascontiguousarray(made.nodes[:, :width]), expected.nodes, "nodes")
    assert_bitwise(np.ascontiguousarray(made.weights[:, :width]), expected.weights, "weights")


@pytest.mark.every_order
@pytest.mark.parametrize(("held", "k", "mass"), [(0, 1, 0.5), (3, 0, 0.5), (200, 3, 0.25), (20, 7, 1.0)])
def test_a_device_adds_them_too(runtime: Any, held: int, k: int, mass: float) -> None:
    seeds, hits, mentions = drawn(held, 5, held, k)
    often = np.random.default_rng(k).integers(0, 6, (5, 300))
    for frequency in (None, often[0], often):
        expected = hf.add_entity_seeds(seeds, hits, mentions, mass, frequency=frequency)
        made = hf.add_entity_seeds(on_device(seeds), on_device(hits), mentions, mass, frequency=frequency)
        assert_same_restarts(on_host(made), expected)


def test_a_query_with_more_nodes_than_a_recording_has_places_is_asked_again(runtime: Any) -> None:
    use_sizes(most_places=30)
    seeds, hits, mentions = drawn(3, 6, 100, 3)
    hits.ids[2, 0], hits.counts[2] = 7, 3  # the row of a hundred nodes
    hits.ids[2, 1:] = [1, 2]
    graph = hf.Graph.from_edges(np.arange(299), np.arange(1, 300))

    def core(nodes: Any, weights: Any, ids: Any, scores: Any, counts: Any) -> Any:
        made = hf.add_entity_seeds(hf.Seeds(nodes, weights), hf.Hits.unchecked(ids, scores, counts), mentions, 0.5)
        return hf.ppr_topk(graph, made, 5, stop="tol", empty="skip")

    shapes = [((9,), "int64"), ((9,), "float64"), ((3,), "int64"), ((3,), "float32"), ((), "int64")]
    given = (seeds.nodes, seeds.weights, hits.ids, hits.scores, hits.counts)
    expected = core(*given)
    found = hf.capture(core, shapes, backend=SIMT)(*given)
    calls = hf.backend_info()["backends"][SIMT]["last_calls"]
    for name in ("ids", "scores", "counts"):
        assert_bitwise(getattr(found, name), getattr(expected, name), name)
    assert calls["capture"]["queries_rerun"] >= 1


# ---- Refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"hits": listed([[0], [1]])}, ("length", "hits")),
        ({"seeds": [[6]]}, ("type", "seeds")),
        ({"mentions": [[0, 6]]}, ("type", "mentions")),
        ({"mass": 1.5}, ("range", "mass")),
        ({"mass": float("nan")}, ("range", "mass")),
        ({"hits": listed([[0, 6]])}, ("unknown", "hits[0]")),
        ({"frequency": np.ones(3, int)}, ("shape", "frequency")),
        ({"frequency": np.ones(NODES)}, ("dtype", "frequency")),
        ({"frequency": np.full(NODES, -2)}, ("range", "frequency[0]")),
    ],
    ids=repr,
)
def test_bad_input_is_refused(change: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    arguments: dict[str, Any] = {"seeds": hf.Seeds([[6]]), "hits": listed([[0]]), "mentions": incidence([(0, 6)])}
    with refused(InputError, *refusal):
        hf.add_entity_seeds(**{**arguments, "mass": 0.5, **change})


def test_views_of_hits_and_seeds_are_read_as_they_stand() -> None:
    """The first columns of lists, and every other row, are not contiguous."""
    rng = np.random.default_rng(5)
    pairs = [(p, e) for p in range(PASSAGES) for e in range(PASSAGES, NODES) if rng.random() < 0.4]
    mentions, hits = incidence(pairs, weighted=True), listed([[0, 3, 1, 5], [2, 4], [], [5, 0, 2, 1]])
    seeds = hf.Seeds.from_rows([{6: 1.0, 9: 0.5}, {7: 1.0}, {8: 2.0}, {}], width=3)
    some = hf.Hits.unchecked(hits.ids[::2], hits.scores[::2], hits.counts[::2]).head(2)
    own = hf.Seeds.unchecked(seeds.nodes[::2, :2], seeds.weights[::2, :2])
    copies = hf.Hits.unchecked(*(part.copy() for part in (some.ids, some.scores, some.counts)))
    copied = hf.Seeds(own.nodes, own.weights)
    for op in (
        lambda seeds, hits: vars(hf.add_entity_seeds(seeds, hits, mentions, 0.5)),
        lambda seeds, hits: vars(hf.add_passage_seeds(seeds, hits, 0.5)),
        lambda seeds, hits: vars(hf.cover_seeds(hits, seeds, mentions, k=2)),
        lambda seeds, hits: {"weights": hf.boost_weights(np.ones((2, PASSAGES), np.float32), hits, 2.0)},
    ):
        for name, array in op(copied, copies).items():
            assert_bitwise(op(own, some)[name], array, name)
