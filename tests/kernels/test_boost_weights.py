"""boost_weights: the oracle's answers, the same bits alone, on a device and in a recording, and its refusals."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from devices import on_device
from hopfuse import reference
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refused
from variants import SIMT

COLUMNS = 12
SCORES = st.one_of(st.just(0.0), st.floats(2.0**-140, 2.0**120, width=32), st.floats(-8, 8, width=32))
ROWS = st.lists(st.tuples(st.integers(0, COLUMNS - 1), SCORES), max_size=COLUMNS, unique_by=lambda hit: hit[0])


def listed(rows: list[list[tuple[int, float]]]) -> hf.Hits:
    return hf.Hits.from_lists([sorted(row, key=lambda hit: -hit[1]) for row in rows])


@given(rows=st.lists(ROWS, min_size=1, max_size=5), strength=st.floats(0, 1e4), seed=st.integers(0, 9))
def test_weights_are_the_oracles(rows: Any, strength: float, seed: int) -> None:
    weights = np.random.default_rng(seed).random((len(rows), COLUMNS), np.float32)
    weights[:, seed % COLUMNS] = 0
    given, hits = weights.copy(), listed(rows)
    found = hf.boost_weights(weights, hits, strength)
    assert_bitwise(weights, given, "what was given")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, reference.boost_weights(weights, rows, strength), rtol=4e-7)
    for b, row in enumerate(rows):
        assert_bitwise(hf.boost_weights(weights[b : b + 1], listed([row]), strength)[0], found[b], f"query {b}")
        others = np.setdiff1d(np.arange(COLUMNS), [passage for passage, score in row if score > 0])
        assert_bitwise(found[b, others], weights[b, others], "weights of others")


def test_the_best_hit_is_raised_by_the_strength_and_others_by_their_share() -> None:
    found = hf.boost_weights(np.full((3, 4), 0.5), hf.Hits.from_lists([[(3, 8.0), (1, 2.0)], [], [(0, -1.0)]]), 2.0)
    assert found.tolist() == [[0.5, 0.75, 0.5, 1.5], [0.5] * 4, [0.5] * 4]


# ---- On a device -----------------------------------------------------------------------------------------------------


def drawn(batch: int, columns: int, k: int) -> tuple[NDArray[np.float32], hf.Hits]:
    """Draw weights, and hits in any order, with scores of both signs and of all sizes; lists end anywhere."""
    rng = np.random.default_rng(columns)
    ids = np.stack([rng.permutation(columns)[:k] for _ in range(batch)])
    size = 10.0 ** rng.integers(-40, 30, ids.shape)
    scores = (rng.random(ids.shape) * np.where(rng.random(ids.shape) < 0.2, -size, size)).astype(np.float32)
    counts = rng.integers(0, k + 1, batch)
    counts[0] = k
    return rng.random((batch, columns), np.float32), hf.Hits.unchecked(ids, scores, counts)


@pytest.mark.every_order
@pytest.mark.parametrize(("columns", "k"), [(1, 1), (40, 0), (400, 300), (700, 600)])
def test_a_device_boosts_them_too(runtime: Any, columns: int, k: int) -> None:
    weights, hits = drawn(3, columns, k)
    there = on_device(weights)
    found = hf.boost_weights(there, on_device(hits), 2.5)
    assert_bitwise(found.to_numpy(), hf.boost_weights(weights, hits, 2.5))
    assert_bitwise(there.to_numpy(), weights, "what was given")


def test_a_recording_has_the_hosts_bits(runtime: Any) -> None:
    weights, hits = drawn(5, 90, 30)
    given = [weights, hits.ids, hits.scores, hits.counts]

    def core(weights: Any, *parts: Any) -> Any:
        return hf.boost_weights(weights, hf.Hits.unchecked(*parts), 2.0)

    shapes = [((90,), "float32"), ((30,), "int64"), ((30,), "float32"), ((), "int64")]
    captured = hf.capture(core, shapes, backend=SIMT)
    assert_bitwise(captured(*given), core(*given))
    given[1] = np.where(given[1] == hits.ids[2, 0], 90, given[1])
    with refused(InputError, "unknown", "hits[2]"):
        captured(*given)


# ---- Refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"hits": [[1]]}, ("type", "hits")),
        ({"strength": -1}, ("range", "strength")),
        ({"strength": np.nan}, ("range", "strength")),
        ({"strength": "2"}, ("range", "strength")),
        ({"strength": True}, ("range", "strength")),
        ({"strength": 1e5}, ("range", "strength")),
        ({"weights": [0.5, 0.5]}, ("shape", "weights")),
        ({"weights": [[0.5], [0.5]]}, ("shape", "weights")),
        ({"weights": [["a"]]}, ("dtype", "weights")),
        ({"weights": [[0.5]]}, ("unknown", "hits[0]")),
    ],
    ids=repr,
)
def test_bad_arguments_are_refused(change: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    arguments: dict[str, Any] = {"weights": [[0.5, 0.25]], "hits": hf.Hits([[1]], [[2.0]]), "strength": 2.0}
    with refused(InputError, *refusal):
        hf.boost_weights(**arguments | change)


@pytest.mark.emulator
def test_arrays_in_different_places_and_other_types_are_refused() -> None:
    hits = hf.Hits([[1]], [[2.0]])
    with refused(InputError, "conflict", "hits.ids"):
        hf.boost_weights(on_device(np.ones((1, 2), np.float32)), hits, 1.0)
    with refused(InputError, "dtype", "weights", allowed=np.float32):
        hf.boost_weights(on_device(np.ones((1, 2))), on_device(hits), 1.0)
