"""Calibrations against SciPy's functions of the same meaning."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from numpy.typing import NDArray

pytestmark = pytest.mark.full

LISTS = [(seed, grid) for seed in range(6) for grid in (None, 3, 8)]


def scored(seed: int, grid: int | None, size: int = 25) -> NDArray[np.float32]:
    """A list in rank order, with ties where grid is given."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(size) if grid is None else rng.integers(-grid, grid, size)
    return -np.sort(-values.astype(np.float32))


def calibrated(values: NDArray[np.float32], method: Any, **options: Any) -> NDArray[np.float32]:
    return hf.calibrate(hf.Hits(np.arange(values.size), values), method, **options).scores[0]


@pytest.mark.parametrize(("seed", "grid"), LISTS)
@pytest.mark.parametrize("ties", ["strict", "weak", "mean", "rank"])
def test_percentile_ranks_are_scipys(seed: int, grid: int | None, ties: Any) -> None:
    stats = pytest.importorskip("scipy.stats")
    values = scored(seed, grid)
    expected = stats.percentileofscore(values, values, kind=ties) / 100
    np.testing.assert_allclose(calibrated(values, "pit", ties=ties), expected, rtol=1e-6)


@pytest.mark.parametrize(("seed", "grid"), LISTS)
def test_percentile_ranks_of_kind_rank_are_scipys_average_ranks(seed: int, grid: int | None) -> None:
    stats = pytest.importorskip("scipy.stats")
    values = scored(seed, grid)
    np.testing.assert_allclose(
        calibrated(values, "pit", ties="rank"), stats.rankdata(values, "average") / values.size, rtol=1e-6
    )


@pytest.mark.parametrize(("seed", "grid"), LISTS)
def test_z_scores_are_scipys(seed: int, grid: int | None) -> None:
    stats = pytest.importorskip("scipy.stats")
    values = scored(seed, grid)
    np.testing.assert_allclose(calibrated(values, "z_score"), stats.zscore(values.astype(np.float64)), atol=2e-6)


@pytest.mark.parametrize(("seed", "grid"), LISTS)
def test_ranks_are_scipys_ordinal_ranks_from_the_bottom(seed: int, grid: int | None) -> None:
    stats = pytest.importorskip("scipy.stats")
    values = scored(seed, grid)
    ordinal = values.size + 1 - stats.rankdata(-values, "ordinal")
    np.testing.assert_allclose(calibrated(values, "rank"), ordinal / values.size, rtol=1e-6)


@pytest.mark.parametrize(("seed", "grid"), LISTS)
def test_l2_and_boltzmann_are_scipys(seed: int, grid: int | None) -> None:
    linalg, special = pytest.importorskip("scipy.linalg"), pytest.importorskip("scipy.special")
    values = scored(seed, grid)
    expected = values / linalg.norm(values.astype(np.float64))
    np.testing.assert_allclose(calibrated(values, "l2"), expected, rtol=1e-5)
    p = calibrated(values, "pit").astype(np.float64)
    energy = -np.log(p + 1e-9)
    mass = special.softmax(-energy / (2 / 3 * energy.mean()))
    fused = hf.fuse([hf.Hits(np.arange(values.size), values)], weights=[1.0], k=values.size)
    np.testing.assert_allclose(fused.scores[0][np.argsort(fused.ids[0])], mass, rtol=1e-4, atol=1e-9)
