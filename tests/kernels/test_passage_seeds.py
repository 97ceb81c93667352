"""Restarts from seeds and hits: the oracle's weights, and the device's bits are the host's."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from devices import on_device
from hopfuse.errors import InputError
from hopfuse.reference import add_passage_seeds as oracle
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

MASSES = st.sampled_from([0.0, 0.05, 1.0, 1e6])
NODES = st.integers(0, 12)
SEED_ROWS = st.dictionaries(NODES, st.one_of(st.just(0.0), st.floats(1e-12, 1e12)), max_size=6)
HIT_ROWS = st.lists(st.tuples(NODES, st.floats(-2.0, 2.0, width=32)), max_size=5, unique_by=lambda hit: hit[0])


def restarts(seeds: hf.Seeds) -> list[dict[int, float]]:
    rows = zip(seeds.nodes.tolist(), seeds.weights.tolist(), strict=True)
    return [{node: weight for node, weight in zip(*row, strict=True) if node >= 0} for row in rows]


@given(rows=st.lists(st.tuples(SEED_ROWS, HIT_ROWS), min_size=1, max_size=4), mass=MASSES)
def test_weights_are_the_oracles(rows: list[tuple[dict[int, float], list[tuple[int, float]]]], mass: float) -> None:
    seeds, hits = hf.Seeds.from_rows([row for row, _ in rows]), hf.Hits.from_lists([found for _, found in rows])
    made = restarts(hf.add_passage_seeds(seeds, hits, mass))
    expected = oracle([row for row, _ in rows], [hits.row(query) for query in range(len(rows))], mass)
    for mine, theirs in zip(made, expected, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-12)


@pytest.mark.every_order
@pytest.mark.parametrize(("width", "k"), [(1, 1), (3, 0), (7, 130), (200, 40)])
def test_a_device_adds_them_too(runtime: Any, width: int, k: int) -> None:
    rng = np.random.default_rng(width)
    nodes = np.stack([rng.permutation(300)[:width] for _ in range(5)])
    nodes[rng.random(nodes.shape) < 0.3] = -1
    seeds = hf.Seeds(nodes, rng.random(nodes.shape))
    ids = np.stack([rng.permutation(300)[:k] for _ in range(5)])
    hits = hf.Hits(ids, rng.integers(-1, 4, ids.shape) / 3, rng.integers(0, k + 1, 5))
    expected = hf.add_passage_seeds(seeds, hits, 0.3)
    made = hf.add_passage_seeds(on_device(seeds), on_device(hits), 0.3)
    assert_bitwise(made.nodes.to_numpy(), expected.nodes, "nodes")
    assert_bitwise(made.weights.to_numpy(), expected.weights, "weights")


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ((hf.Seeds([[1]]), hf.Hits([[1], [2]], [[1.0], [1.0]]), 1.0), ("length", "hits")),
        ((hf.Seeds([[1]]), hf.Hits([[1]], [[1.0]]), -1.0), ("range", "mass")),
        ((hf.Seeds([[1]]), hf.Hits([[1]], [[1.0]]), float("nan")), ("range", "mass")),
        (([[1]], hf.Hits([[1]], [[1.0]]), 1.0), ("type", "seeds")),
    ],
)
def test_bad_input_is_refused(arguments: Any, refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        hf.add_passage_seeds(*arguments)
