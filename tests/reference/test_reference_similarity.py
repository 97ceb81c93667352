"""The oracle of similarity weights against plain NumPy, and numbers by hand."""

from __future__ import annotations

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.reference import similarity_weights
from refusals import refused

RNG = np.random.default_rng(0)
Q, X = RNG.normal(size=(4, 24)), RNG.normal(size=(60, 24))


def plain(queries: np.ndarray, vectors: np.ndarray, tau: float, floor: float) -> np.ndarray:
    cosines = (queries / np.linalg.norm(queries, axis=1, keepdims=True)) @ (
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    ).T
    z = (cosines - cosines.max(axis=1, keepdims=True)) / cosines.std(axis=1, keepdims=True)
    return np.maximum(np.exp(z / tau), floor)


@pytest.mark.parametrize("tau", [0.1, 1.0, 5.0])
def test_it_is_plain_numpy(tau: float) -> None:
    found = similarity_weights(Q, X, tau=tau, floor=1e-3)
    np.testing.assert_allclose(found, plain(Q, X, tau, 1e-3), rtol=1e-12)
    corpus = hf.Corpus.from_array(X.astype(np.float32))
    near = similarity_weights(Q, corpus, tau=tau, floor=1e-3)
    np.testing.assert_allclose(near, plain(Q, X.astype(np.float32).astype(np.float64), tau, 1e-3), rtol=1e-12)


def test_a_filter_is_the_vectors_that_it_leaves() -> None:
    masks = RNG.random((4, 60)) < 0.3
    masks[2] = False
    found = similarity_weights(Q, X, tau=1.0, allow=list(masks))
    for b, mask in enumerate(masks):
        assert not found[b, ~mask].any()
        if mask.any():
            np.testing.assert_allclose(found[b, mask], plain(Q[b : b + 1], X[mask], 1.0, 1e-4)[0], rtol=1e-12)


def test_it_is_the_weight_by_hand() -> None:
    found = similarity_weights([1.0, 0.0], [[1.0, 0.0], [3.0, 4.0]], tau=0.5)
    np.testing.assert_allclose(found, [[1.0, np.exp(-0.4 / (0.5 * 0.2))]], rtol=1e-12)


def test_no_spread_is_weights_of_1() -> None:
    assert (similarity_weights(Q, X[:1], tau=0.01) == 1).all()
    assert (similarity_weights(Q, np.repeat(X[:1], 5, axis=0), tau=0.01) == 1).all()


def test_a_zero_vector_is_refused() -> None:
    with refused(InputError, "zero", "vectors[1]"):
        similarity_weights(Q, [X[0], X[0] * 0], tau=1.0)
