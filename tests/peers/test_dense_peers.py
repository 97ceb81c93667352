"""Dense top-k against faiss.IndexFlatIP: scores agree, and ids up to ties."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import hopfuse as hf
import numpy as np
import pytest
from numpy.typing import NDArray

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="faiss-cpu is not installed"),
]


def by_faiss(
    folder: Path, x: NDArray[np.float32], q: NDArray[np.float32], k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    np.save(folder / "x.npy", x)
    np.save(folder / "q.npy", q)
    script = Path(__file__).with_name("faiss_search.py")
    subprocess.run([sys.executable, script, folder, str(k)], check=True, capture_output=True)
    return np.load(folder / "scores.npy"), np.load(folder / "ids.npy")


@pytest.mark.parametrize(("n", "d", "k"), [(500, 32, 10), (3000, 384, 100), (200, 7, 200)])
@pytest.mark.parametrize("metric", ["ip", "cosine"])
def test_faiss_agrees(tmp_path: Path, n: int, d: int, k: int, metric: str) -> None:
    rng = np.random.default_rng(n)
    x, q = rng.standard_normal((n, d)).astype(np.float32), rng.standard_normal((9, d)).astype(np.float32)
    hits = hf.dense_topk(q, hf.Corpus.from_array(x, metric=metric), k)  # type: ignore[arg-type]
    if metric == "cosine":
        x, q = (a / np.linalg.norm(a, axis=1, keepdims=True) for a in (x, q))
    scores, ids = by_faiss(tmp_path, x, q, k)
    slack = 1e-5 * np.abs(scores).max()
    np.testing.assert_allclose(hits.scores, scores, atol=slack)
    exact = q.astype(np.float64) @ x.T.astype(np.float64)
    differ = hits.ids != ids
    rows = np.nonzero(differ)[0]
    assert (np.abs(exact[rows, hits.ids[differ]] - exact[rows, ids[differ]]) <= slack).all()
    assert differ.mean() < 0.01


def test_faiss_agrees_on_rows_that_occur_many_times(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((40, 16)).astype(np.float32)[rng.integers(0, 40, 800)]
    q = rng.standard_normal((5, 16)).astype(np.float32)
    hits = hf.dense_topk(q, hf.Corpus.from_array(x), 50)
    scores, _ = by_faiss(tmp_path, x, q, 50)
    np.testing.assert_allclose(hits.scores, scores, atol=1e-5)
    for b in range(5):
        tied = hits.scores[b, :-1] == hits.scores[b, 1:]
        assert tied.any()
        assert (np.diff(hits.ids[b])[tied] > 0).all()
