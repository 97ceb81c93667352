"""Every argument of similarity_weights."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from hopfuse.errors import InputError
from refusals import refused

VECTORS = np.eye(4, 3, dtype=np.float32) + 0.5
QUERIES = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]], np.float32)

BAD: list[tuple[dict[str, Any], tuple[str, str | None]]] = [
    ({"queries": QUERIES[:, :2]}, ("shape", "queries")),
    ({"queries": 1.0}, ("shape", "queries")),
    ({"queries": [["a", "b", "c"]]}, ("dtype", "queries")),
    ({"queries": [[1, 2, 3], [1, np.nan, 3]]}, ("finite", "queries[1]")),
    ({"queries": [[0, 0, 0]]}, ("zero", "queries[0]")),
    ({"queries": [[1e-30, 0, 0]]}, ("zero", "queries[0]")),
    ({"corpus": [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]}, ("zero", "X[1]")),
    ({"corpus": hf.Corpus.from_array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])}, ("zero", "corpus[1]")),
    ({"corpus": [[1.0, np.inf, 3.0]]}, ("finite", "X[0]")),
    ({"tau": 0.0}, ("range", "tau")),
    ({"tau": -1.0}, ("range", "tau")),
    ({"tau": 1e5}, ("range", "tau")),
    ({"tau": np.nan}, ("range", "tau")),
    ({"tau": "1"}, ("range", "tau")),
    ({"tau": True}, ("range", "tau")),
    ({"tau": None}, ("range", "tau")),
    ({"floor": 0.0}, ("range", "floor")),
    ({"floor": 1.5}, ("range", "floor")),
    ({"floor": np.nan}, ("range", "floor")),
    ({"allow": [4]}, ("unknown", "allow")),
    ({"allow": np.ones((3, 4), bool)}, ("shape", "allow")),
    ({"allow": [[0], [1], [2]]}, ("length", "allow")),
    ({"threads": 0}, ("range", "threads")),
    ({"backend": "tpu"}, ("choice", "backend")),
]


@pytest.mark.parametrize(("change", "refusal"), BAD, ids=[str(next(iter(change.items())))[:40] for change, _ in BAD])
def test_invalid_input_is_named(change: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    given: dict[str, Any] = {"queries": QUERIES, "corpus": hf.Corpus.from_array(VECTORS)} | change
    with refused(InputError, *refusal):
        hf.similarity_weights(given.pop("queries"), given.pop("corpus"), **given)


def test_weights_above_the_budget_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopfuse.ops.similarity.WEIGHTS_BUDGET", 4 * 2 * 4)
    assert hf.similarity_weights(QUERIES, VECTORS).shape == (2, 4)
    with refused(InputError, "limit"):
        hf.similarity_weights(np.ones((3, 3)), VECTORS)


def test_a_raw_array_and_any_metric_have_the_same_weights() -> None:
    expected = hf.similarity_weights(QUERIES, hf.Corpus.from_array(VECTORS, metric="cosine"))
    assert_bitwise(hf.similarity_weights(QUERIES, VECTORS), expected)
    assert_bitwise(hf.similarity_weights(QUERIES, hf.Corpus.from_array(VECTORS)), expected)
    assert_bitwise(hf.similarity_weights(QUERIES[0], VECTORS), expected[:1])
    assert_bitwise(hf.similarity_weights(QUERIES.astype(np.float64), VECTORS.tolist()), expected)


def test_numbers_of_numpy_are_numbers() -> None:
    expected = hf.similarity_weights(QUERIES, VECTORS, tau=2.0, floor=0.5)
    assert_bitwise(hf.similarity_weights(QUERIES, VECTORS, tau=np.int64(2), floor=np.float32(0.5)), expected)
