"""Every argument of similarity_weights."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from api.checks import refused
from compare import assert_bitwise
from hopfuse.ops import similarity

VECTORS = np.eye(4, 3, dtype=np.float32) + 0.5
QUERIES = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]], np.float32)

BAD: list[tuple[dict[str, Any], list[str]]] = [
    ({"queries": QUERIES[:, :2]}, ["(2, 2)", "(B, 3) or (3,)"]),
    ({"queries": 1.0}, ["shape ()"]),
    ({"queries": [["a", "b", "c"]]}, ["real numbers"]),
    ({"queries": [[1, 2, 3], [1, np.nan, 3]]}, ["query 1", "NaN"]),
    ({"queries": [[0, 0, 0]]}, ["query 0", "zero vector"]),
    ({"queries": [[1e-30, 0, 0]]}, ["query 0", "vanishes"]),
    ({"corpus": [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]}, ["row 1", "zero vector"]),
    ({"corpus": hf.Corpus.from_array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])}, ["row 1 of the corpus", "zero vector"]),
    ({"corpus": [[1.0, np.inf, 3.0]]}, ["row 0", "infinite"]),
    ({"tau": 0.0}, ["tau is 0.0", "0.0001 to 10000"]),
    ({"tau": -1.0}, ["tau is -1.0"]),
    ({"tau": 1e5}, ["tau is 100000.0"]),
    ({"tau": np.nan}, ["tau is nan"]),
    ({"tau": "1"}, ["tau is '1'"]),
    ({"tau": True}, ["tau is True"]),
    ({"tau": None}, ["tau is None"]),
    ({"floor": 0.0}, ["floor is 0.0", "1e-30 to 1"]),
    ({"floor": 1.5}, ["floor is 1.5"]),
    ({"floor": np.nan}, ["floor is nan"]),
    ({"allow": [4]}, ["allow", "4", "0 .. 3"]),
    ({"allow": np.ones((3, 4), bool)}, ["allow", "(3, 4)", "(2, 4)"]),
    ({"allow": [[0], [1], [2]]}, ["3 lists", "2 queries"]),
    ({"threads": 0}, ["threads is 0"]),
    ({"backend": "tpu"}, ["backend is 'tpu'"]),
]


@pytest.mark.parametrize(("change", "says"), BAD, ids=[str(next(iter(change.items())))[:40] for change, _ in BAD])
def test_invalid_input_is_named(change: dict[str, Any], says: list[str]) -> None:
    given: dict[str, Any] = {"queries": QUERIES, "corpus": hf.Corpus.from_array(VECTORS)} | change
    refused(lambda: hf.similarity_weights(given.pop("queries"), given.pop("corpus"), **given), says)


def test_weights_above_the_budget_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "WEIGHTS_BUDGET", 4 * 2 * 4)
    assert hf.similarity_weights(QUERIES, VECTORS).shape == (2, 4)
    refused(lambda: hf.similarity_weights(np.ones((3, 3)), VECTORS), ["3 queries by 4 passages", "smaller batches"])


def test_a_raw_array_and_any_metric_have_the_same_weights() -> None:
    expected = hf.similarity_weights(QUERIES, hf.Corpus.from_array(VECTORS, metric="cosine"))
    assert_bitwise(hf.similarity_weights(QUERIES, VECTORS), expected)
    assert_bitwise(hf.similarity_weights(QUERIES, hf.Corpus.from_array(VECTORS)), expected)
    assert_bitwise(hf.similarity_weights(QUERIES[0], VECTORS), expected[:1])
    assert_bitwise(hf.similarity_weights(QUERIES.astype(np.float64), VECTORS.tolist()), expected)


def test_numbers_of_numpy_are_numbers() -> None:
    expected = hf.similarity_weights(QUERIES, VECTORS, tau=2.0, floor=0.5)
    assert_bitwise(hf.similarity_weights(QUERIES, VECTORS, tau=np.int64(2), floor=np.float32(0.5)), expected)
