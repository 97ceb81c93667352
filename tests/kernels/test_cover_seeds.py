"""Hits that mention the seeds: the oracle's choice, a query's own, the device's bits, recordings and refusals."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise, assert_hits_wellformed
from devices import on_device, on_host
from hopfuse.errors import InputError
from hopfuse.reference import cover_seeds as oracle
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refused
from variants import SIMT

PASSAGES, NODES = 7, 12
PAIRS = st.lists(st.tuples(st.integers(0, PASSAGES - 1), st.integers(0, NODES - 1)), max_size=30, unique=True)
WEIGHTS = st.one_of(st.sampled_from([0.0, 0.3, 0.5, 1.0, 5e-324]), st.floats(0, 1e300))
PLACES = st.tuples(st.one_of(st.just(-1), st.integers(0, NODES + 2)), WEIGHTS)
#: Rows of five seeds, with empty places anywhere and nodes that are no columns.
SEED_ROWS = st.lists(PLACES, min_size=5, max_size=5, unique_by=lambda place: place[0] if place[0] >= 0 else object())
HIT_ROWS = st.lists(st.integers(0, PASSAGES - 1), max_size=PASSAGES, unique=True)


def incidence(pairs: list[tuple[int, int]], weights: list[float] | None = None) -> hf.Incidence:
    rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
    return hf.Incidence.from_pairs(
        np.array(rows, int), np.array(columns, int), weights, num_rows=PASSAGES, num_columns=NODES
    )


def listed(rows: list[list[int]]) -> hf.Hits:
    return hf.Hits.from_lists([[(row, float(-at)) for at, row in enumerate(found)] for found in rows])


def chosen(rows: list[list[int]], seeds: list[dict[int, float]], mentions: hf.Incidence, **options: Any) -> Any:
    found = hf.cover_seeds(listed(rows), hf.Seeds.from_rows(seeds), mentions, **options)
    return [[passage for passage, _ in found.row(b)] for b in range(len(found))]


def assert_the_oracles(hits: hf.Hits, seeds: hf.Seeds, mentions: hf.Incidence, k: int, least: float) -> None:
    found = hf.cover_seeds(hits, seeds, mentions, k=k, least=least)
    assert_hits_wellformed(found)
    assert found.shape == (len(hits), min(k, hits.shape[1]))
    rows = [
        {node: weight for node, weight in zip(*row, strict=True) if node >= 0}
        for row in zip(seeds.nodes.tolist(), seeds.weights.tolist(), strict=True)
    ]
    expected = oracle([hits.row(b) for b in range(len(hits))], rows, mentions, k, least)
    assert [found.row(b) for b in range(len(hits))] == expected
    for b in range(len(hits)):
        alone = hf.cover_seeds(
            hf.Hits.unchecked(hits.ids[b : b + 1], hits.scores[b : b + 1], hits.counts[b : b + 1]),
            hf.Seeds(seeds.nodes[b : b + 1], seeds.weights[b : b + 1]),
            mentions,
            k=k,
            least=least,
        )
        for name in ("ids", "scores", "counts"):
            assert_bitwise(getattr(alone, name)[0], getattr(found, name)[b], name)


@given(
    rows=st.lists(st.tuples(SEED_ROWS, HIT_ROWS), min_size=1, max_size=5),
    pairs=PAIRS,
    weighted=st.booleans(),
    k=st.integers(1, PASSAGES + 2),
    least=st.one_of(st.sampled_from([0.0, 0.3, 1.0]), st.floats(0, 1)),
)
def test_the_hits_are_the_oracles(rows: Any, pairs: Any, weighted: bool, k: int, least: float) -> None:
    mentions = incidence(pairs, [float(at % 3) for at in range(len(pairs))] if weighted else None)
    places = np.array([row for row, _ in rows])
    seeds = hf.Seeds(places[:, :, 0].astype(int), places[:, :, 1])
    assert_the_oracles(listed([found for _, found in rows]), seeds, mentions, k, least)


def drawn(seed: int, batch: int, width: int, places: int) -> tuple[hf.Hits, hf.Seeds, hf.Incidence]:
    """Draw lists that end anywhere, seeds with ties and empty places, one row with all of 300 nodes, and empty rows."""
    rng = np.random.default_rng(seed)
    pairs = np.unique(np.concatenate([rng.integers(0, 40 * 300, 2500), 7 * 300 + np.arange(300)]))
    pairs = pairs[pairs // 300 % 5 != 1]
    mentions = hf.Incidence.from_pairs(
        pairs // 300, pairs % 300, rng.integers(0, 4, pairs.size), num_rows=40, num_columns=300
    )
    ids = np.stack([rng.permutation(40)[:width] for _ in range(batch)]).reshape(batch, width)
    counts = rng.integers(0, width + 1, batch)
    counts[0] = width
    nodes = np.stack([rng.permutation(310)[:places] for _ in range(batch)]).reshape(batch, places)
    nodes[rng.random(nodes.shape) < 0.2] = -1
    nodes[batch - 1] = -1
    return hf.Hits(ids, rng.random(ids.shape), counts), hf.Seeds(nodes, rng.integers(0, 5, nodes.shape) / 4), mentions


@pytest.mark.parametrize("k", [1, 3, 40, 50])
@pytest.mark.parametrize("least", [0.0, 0.3, 0.5, 1.0])
def test_the_hits_of_many_queries_are_the_oracles(k: int, least: float) -> None:
    for width, places in ((40, 30), (10, 8), (0, 4), (5, 0)):
        assert_the_oracles(*drawn(width, 60, width, places), k, least)


def test_the_heaviest_seeds_choose_first_and_a_hit_once() -> None:
    mentions = incidence([(0, 8), (1, 8), (2, 9), (3, 10), (4, 10), (4, 11)])
    order = [0, 1, 2, 3, 4]
    assert chosen([order], [{8: 1.0, 9: 0.5, 10: 0.9}], mentions, k=2) == [[0, 3]]
    assert chosen([order], [{8: 1.0, 9: 0.5, 10: 0.9}], mentions, k=3) == [[0, 2, 3]]
    assert chosen([order[::-1]], [{10: 1.0, 11: 1.0, 8: 1.0}], mentions, k=5) == [[4, 1]]


def test_a_tie_goes_to_the_lower_node() -> None:
    mentions = incidence([(1, 11), (2, 10)])
    assert chosen([[0, 1, 2]], [{11: 0.7, 10: 0.7}], mentions, k=2) == [[0, 2]]


def test_a_light_seed_adds_no_hit() -> None:
    mentions = incidence([(1, 8), (2, 9)])
    rows, seeds = [[0, 1, 2]] * 2, [{8: 2.0, 9: 0.5}, {8: 2.0, 9: 0.25}]
    assert chosen(rows, seeds, mentions, least=0.25) == [[0, 1, 2], [0, 1]]
    assert chosen(rows, seeds, mentions, least=1.0) == [[0, 1]] * 2
    # A heavier seed that nothing mentions, even one that is no column, counts for the floor.
    assert chosen(rows, [{8: 1.0, 7: 8.0}, {8: 1.0, 500: 8.0}], mentions, least=0.25) == [[0]] * 2


def test_a_weight_of_zero_is_neither_a_seed_nor_a_mention() -> None:
    mentions = incidence([(1, 8), (2, 8), (2, 9)], [0.0, 1.0, 1.0])
    assert chosen([[0, 1, 2]] * 2, [{8: 1.0}, {9: 0.0}], mentions, least=0.0) == [[0, 2], [0]]


def test_the_order_is_that_of_the_list_whatever_its_scores() -> None:
    mentions = incidence([(1, 8), (2, 9)])
    hits = hf.Hits.unchecked(np.array([[3, 2, 1]]), np.zeros((1, 3), np.float32), np.array([3]))
    found = hf.cover_seeds(hits, hf.Seeds([[8, 9]]), mentions)
    assert found.ids.tolist() == [[3, 2, 1]]
    assert found.scores.tolist() == [[0.0, 0.0, 0.0]]


def test_queries_without_hits_or_seeds() -> None:
    mentions = incidence([(1, 8)])
    assert chosen([[], [2, 1], []], [{8: 1.0}, {}, {}], mentions) == [[], [2], []]
    none = hf.cover_seeds(hf.Hits.from_lists([]), hf.Seeds.from_rows([]), mentions)
    assert none.shape[0] == none.counts.size == 0


# ---- On a device -----------------------------------------------------------------------------------------------------


def assert_same_hits(made: hf.Hits, expected: hf.Hits) -> None:
    for name in ("ids", "scores", "counts"):
        assert_bitwise(getattr(made, name), getattr(expected, name), name)


@pytest.mark.every_order
@pytest.mark.parametrize(("width", "places", "k"), [(10, 8, 3), (0, 4, 3), (3, 0, 2), (30, 20, 30), (12, 1, 1)])
def test_a_device_chooses_them_too(runtime: Any, width: int, places: int, k: int) -> None:
    hits, seeds, mentions = drawn(places, 4, width, places)
    made = hf.cover_seeds(on_device(hits), on_device(seeds), mentions, k=k)
    assert_same_hits(on_host(made), hf.cover_seeds(hits, seeds, mentions, k=k))


def captured_of(mentions: hf.Incidence) -> Any:
    def core(ids: Any, scores: Any, counts: Any, nodes: Any, weights: Any) -> hf.Hits:
        hits = hf.Hits.unchecked(ids, scores, counts)
        return hf.cover_seeds(hits, hf.Seeds(nodes, weights), mentions, k=4, least=0.25)

    shapes = [((10,), "int64"), ((10,), "float32"), ((), "int64"), ((8,), "int64"), ((8,), "float64")]
    return core, hf.capture(core, shapes, backend=SIMT)


def parts_of(hits: hf.Hits, seeds: hf.Seeds) -> list[NDArray[Any]]:
    return [hits.ids, hits.scores, hits.counts, seeds.nodes, seeds.weights]


def test_a_recording_has_the_hosts_bits(runtime: Any) -> None:
    hits, seeds, mentions = drawn(1, 11, 10, 8)
    core, captured = captured_of(mentions)
    for rows in (slice(0, 11), slice(3, 6), slice(10, 11)):
        given = [part[rows] for part in parts_of(hits, seeds)]
        assert_same_hits(captured(*given), core(*given))


def test_a_recording_refuses_hits_that_are_no_rows(runtime: Any) -> None:
    hits, seeds, mentions = drawn(2, 4, 10, 8)
    _, captured = captured_of(mentions)
    hits.ids[0, 9] = 40
    with refused(InputError, "unknown", "hits[0]"):
        captured(*parts_of(hits, seeds))


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_a_device_refuses_weights_that_it_first_sees_itself(runtime: Any, weight: float) -> None:
    hits, seeds, mentions = drawn(3, 4, 10, 8)
    seeds.nodes[1, 2], seeds.weights[1, 2] = 5, weight
    with refused(InputError, "range", "restart[1]"):
        hf.cover_seeds(on_device(hits), on_device(seeds), mentions)


@pytest.mark.emulator
def test_arrays_in_different_places_are_refused() -> None:
    hits, seeds, mentions = drawn(4, 2, 3, 2)
    with refused(InputError, "conflict", "seeds.nodes"):
        hf.cover_seeds(on_device(hits), seeds, mentions)
    with refused(InputError, "unavailable", "seeds.nodes"):
        hf.cover_seeds(hits, on_device(seeds), mentions)


# ---- Refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"hits": listed([[0], [1]])}, ("length", "hits")),
        ({"hits": [[0]]}, ("type", "hits")),
        ({"hits": listed([[0, PASSAGES]])}, ("unknown", "hits[0]")),
        ({"seeds": [[6]]}, ("type", "seeds")),
        ({"mentions": [[0, 6]]}, ("type", "mentions")),
        ({"k": 0}, ("range", "k")),
        ({"k": 2.5}, ("range", "k")),
        ({"k": True}, ("range", "k")),
        ({"least": -0.1}, ("range", "least")),
        ({"least": 1.5}, ("range", "least")),
        ({"least": float("nan")}, ("range", "least")),
        ({"least": "0.3"}, ("range", "least")),
    ],
    ids=repr,
)
def test_bad_input_is_refused(change: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    arguments: dict[str, Any] = {"hits": listed([[0]]), "seeds": hf.Seeds([[6]]), "mentions": incidence([(0, 6)])}
    with refused(InputError, *refusal):
        hf.cover_seeds(**{**arguments, **change})
