"""Reliability: bins by hand, the error by its definition, the plot."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError, MissingExtraError
from hopfuse.evaluate import Qrels, reliability, wilson_interval
from hopfuse.report import reliability_plot
from refusals import refused

QRELS = Qrels(["a", "b"], gold=[[1, 3], [9]])
HITS = hf.Hits([[1, 2, 3], [9, 4, -1]], [[1.0, 0.95, 0.5], [0.45, 0.05, 0.0]])


def test_documents_fall_into_their_bins() -> None:
    found = reliability(HITS, QRELS, bins=10)
    assert found.counts.tolist() == [1, 0, 0, 0, 1, 1, 0, 0, 0, 2]
    np.testing.assert_allclose(found.relevant_share[[0, 4, 5, 9]], [0.0, 1.0, 1.0, 0.5])
    np.testing.assert_allclose(found.mean_score[[0, 4, 5, 9]], [0.05, 0.45, 0.5, 0.975], rtol=1e-6)
    assert np.isnan(found.relevant_share[1])
    assert (found.low[9], found.high[9]) == wilson_interval(1, 2)
    by_hand = (0.05 + 0.55 + 0.5 + 2 * 0.475) / 5
    assert found.expected_error == pytest.approx(by_hand, rel=1e-6)
    assert found.to_dict()["relevant_share"][1] is None


def test_scores_that_are_the_shares_have_a_small_error() -> None:
    rng = np.random.default_rng(3)
    scores = rng.random((200, 50))
    relevant = rng.random((200, 50)) < scores
    ids = np.tile(np.arange(50), (200, 1))
    qrels = Qrels([str(b) for b in range(200)], gold=[np.flatnonzero(row).tolist() for row in relevant])
    honest = reliability(hf.Hits(ids, scores), qrels)
    boastful = reliability(hf.Hits(ids, np.sqrt(scores)), qrels)
    assert honest.expected_error < 0.03
    assert boastful.expected_error > 0.1
    assert ((honest.low <= honest.mean_score) & (honest.mean_score <= honest.high)).sum() >= 8


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: reliability(HITS, QRELS, bins=0), ("range", "bins", {"given": 0})),
        (lambda: reliability(hf.Hits([[1], [2]], [[1.5], [0.0]]), QRELS), ("range", "hits")),
        (lambda: reliability(hf.Hits([[-1], [-1]], [[0.0], [0.0]]), QRELS), ("empty", "hits")),
        (lambda: reliability(hf.Hits([[1]], [[0.5]]), QRELS), ("length", "hits", {"given": 1})),
    ],
)
def test_bad_input_is_refused(call: Any, error: tuple[Any, ...]) -> None:
    with refused(InputError, *error):
        call()


def test_it_draws_itself(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "reliability.png"
    reliability_plot(reliability(HITS, QRELS, bins=4), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 5_000


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with refused(MissingExtraError, "missing_extra", extra="eval"):
        reliability_plot(reliability(HITS, QRELS), tmp_path / "none.png")
    assert not list(tmp_path.iterdir())
