"""Each fusion method against sums by hand."""

from __future__ import annotations

import math
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.fusion.mixtures import EPSILON, auto_temperature, distribution
from hopfuse.reference import fuse
from refusals import refused

DENSE = hf.Hits.from_lists([[(1, 0.75), (2, 0.5), (3, 0.5), (4, 0.25)]])
GRAPH = hf.Hits.from_lists([[(3, 0.5), (5, 0.25)]])
SINGLE = hf.Hits.from_lists([[(9, 3.0)]])
TIED = hf.Hits.from_lists([[(6, 0.5), (2, 0.5), (4, 0.5)]])
EMPTY = hf.Hits.from_lists([[]])


def scores(*lists: hf.Hits, **options: Any) -> dict[int, float]:
    return dict(fuse(lists, **options).row(0))


def softmax_by_hand(p: list[float], temperature: float | None = None) -> list[float]:
    energy = [-math.log(x + 1e-9) for x in p]
    t = temperature or 2 / 3 * sum(energy) / len(energy)
    mass = [math.exp(-e / t) for e in energy]
    return [m / sum(mass) for m in mass]


@pytest.mark.parametrize(("n", "temperature"), [(10, 1.91), (20, 1.28), (30, 1.07), (40, 0.97), (10**6, 2 / 3)])
def test_auto_temperature_under_strict_ranks(n: int, temperature: float) -> None:
    energy = -np.log(np.arange(n) / n + EPSILON)
    assert auto_temperature(energy) == pytest.approx(temperature, abs=0.005)


def test_boltzmann_by_hand() -> None:
    dense, graph = softmax_by_hand([0.75, 0.25, 0.25, 0.0]), softmax_by_hand([0.5, 0.0])
    want = {
        1: 0.7 * dense[0],
        2: 0.7 * dense[1],
        3: 0.7 * dense[2] + 0.3 * graph[0],
        4: 0.7 * dense[3],
        5: 0.3 * graph[1],
    }
    got = fuse([DENSE, GRAPH])
    assert dict(got.row(0)) == pytest.approx(want, rel=1e-13)
    assert [v for v, _ in got.row(0)] == sorted(want, key=lambda v: (-want[v], v))
    assert got.scores[0, :5].sum() == pytest.approx(1.0, abs=1e-15)


def test_boltzmann_weights_consensus_and_temperature() -> None:
    dense, graph = softmax_by_hand([0.75, 0.25, 0.25, 0.0], 0.5), softmax_by_hand([0.5, 0.0], 0.5)
    got = scores(DENSE, GRAPH, weights=[2.0, 0.5], consensus=1.5, temperature=0.5)
    want = {3: 2 * dense[2] + 0.5 * graph[0] + 1.5, 1: 2 * dense[0], 2: 2 * dense[1], 4: 2 * dense[3], 5: graph[1] / 2}
    assert got == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize(
    ("options", "p"),
    [
        ({"calibration": "pit", "ties": "weak"}, [1.0, 0.75, 0.75, 0.25]),
        ({"ties": "mean"}, [0.875, 0.5, 0.5, 0.125]),
        ({"ties": "rank"}, [1.0, 0.625, 0.625, 0.25]),
        ({"calibration": "min_max"}, [1.0, 0.5, 0.5, 0.0]),
        ({"calibration": "max"}, [1.0, 2 / 3, 2 / 3, 1 / 3]),
        ({"calibration": "l2"}, [x / math.sqrt(1.125) for x in (0.75, 0.5, 0.5, 0.25)]),
        ({"calibration": "rank"}, [1.0, 0.75, 0.5, 0.25]),
        ({"calibration": "none"}, [0.75, 0.5, 0.5, 0.25]),
    ],
)
def test_boltzmann_after_each_calibration(options: dict[str, Any], p: list[float]) -> None:
    want = dict(zip([1, 2, 3, 4], softmax_by_hand(p), strict=True))
    assert scores(DENSE, **options) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("ties", ["strict", "weak", "mean", "rank"])
@pytest.mark.parametrize("temperature", ["auto", 0.3])
def test_boltzmann_is_uniform_without_spread(ties: str, temperature: Any) -> None:
    options: dict[str, Any] = {"ties": ties, "temperature": temperature, "weights": [1.0]}
    assert scores(SINGLE, **options) == {9: 1.0}
    assert scores(TIED, **options) == {2: 1 / 3, 4: 1 / 3, 6: 1 / 3}
    assert scores(TIED, calibration="min_max", temperature=temperature) == {2: 1 / 3, 4: 1 / 3, 6: 1 / 3}
    assert fuse([TIED], **options).ids[0, :3].tolist() == [2, 4, 6]


def test_boltzmann_without_energy_is_uniform() -> None:
    assert distribution(np.array([1.0, 1.0]), "auto").tolist() == [0.5, 0.5]
    assert distribution(np.array([1.0 - 1e-9, 1.0 - 1e-9]), "auto").tolist() == [0.5, 0.5]
    high = hf.Hits.from_lists([[(1, 40.0), (2, 20.0)]])
    assert scores(high, calibration="none") == {1: 0.5, 2: 0.5}
    assert scores(high, calibration="none", temperature=1.0) == pytest.approx({1: 2 / 3, 2: 1 / 3}, rel=1e-9)


def test_boltzmann_takes_no_negative_scores() -> None:
    below = hf.Hits.from_lists([[(1, 0.5), (2, -0.25)]])
    for calibration in ("none", "max", "l2"):
        with refused(InputError, "range", "calibration"):
            fuse([DENSE, below], calibration=calibration)
    for calibration in ("pit", "min_max", "rank"):
        assert set(scores(below, calibration=calibration)) == {1, 2}


def test_boltzmann_survives_extreme_temperatures() -> None:
    for temperature in (1e-37, 1e38):
        got = fuse([DENSE], temperature=temperature)
        assert np.isfinite(got.scores[0, :4]).all()
        assert got.scores[0, :4].sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("method", ["boltzmann", "linear"])
def test_default_mixture_weights(method: str) -> None:
    lists = [DENSE, GRAPH, TIED]
    for n, weights in ((1, [1.0]), (2, [0.7, 0.3]), (3, [1 / 3] * 3)):
        assert scores(*lists[:n], method=method) == scores(*lists[:n], method=method, weights=weights)


def test_linear_by_hand() -> None:
    got = scores(DENSE, GRAPH, method="linear")
    assert got == pytest.approx({1: 0.525, 2: 0.175, 3: 0.175 + 0.15, 4: 0.0, 5: 0.0}, abs=1e-15)
    got = scores(DENSE, GRAPH, EMPTY, method="linear", weights=[2, 4, 8], calibration="none", consensus=0.5)
    assert got == {1: 1.5, 2: 1.0, 3: 1.0 + 2.0 + 0.5, 4: 0.5, 5: 1.0}
    got = scores(DENSE, GRAPH, method="linear", weights=[1, 1], calibration="z_score")
    assert got == pytest.approx({1: 2**0.5, 2: 0.0, 3: 1.0, 4: -(2**0.5), 5: -1.0}, abs=1e-15)
    assert scores(SINGLE, TIED, method="linear", weights=[1, 2], calibration="min_max") == {9: 1, 2: 2, 4: 2, 6: 2}


def test_linear_order_of_ties() -> None:
    assert fuse([TIED, SINGLE], method="linear", calibration="none", weights=[6, 1]).row(0) == [
        (2, 3.0),
        (4, 3.0),
        (6, 3.0),
        (9, 3.0),
    ]


def test_rrf_by_hand() -> None:
    got = scores(DENSE, GRAPH, method="rrf")
    assert got == pytest.approx({1: 1 / 61, 2: 1 / 62, 3: 1 / 63 + 1 / 61, 4: 1 / 64, 5: 1 / 62}, abs=1e-17)
    assert [v for v, _ in fuse([DENSE, GRAPH], method="rrf").row(0)] == [3, 1, 2, 5, 4]
    got = scores(DENSE, GRAPH, EMPTY, method="rrf", rank_constant=0, weights=[1, 2, 5], consensus=0.25)
    assert got == pytest.approx({1: 1.0, 2: 0.5, 3: 1 / 3 + 2 + 0.25, 4: 0.25, 5: 1.0}, abs=1e-15)
    assert scores(SINGLE, method="rrf", rank_constant=0.5) == {9: 1 / 1.5}


def test_rrf_ranks_ties_by_id_and_ignores_scores() -> None:
    assert fuse([TIED], method="rrf", rank_constant=1).row(0) == [(2, 1 / 2), (4, 1 / 3), (6, 1 / 4)]
    other = hf.Hits.from_lists([[(1, 99.0), (2, -1.0), (3, -1.0), (4, -7.0)]])
    assert fuse([other, GRAPH], method="rrf").row(0) == fuse([DENSE, GRAPH], method="rrf").row(0)


def test_rrf_ties_whatever_the_order_of_the_lists() -> None:
    """Ranks (1, 2, 3) and (3, 1, 2) have the same sum; added one by one, they need not."""
    lists = [
        hf.Hits.from_lists([[(v, -float(r)) for r, v in enumerate(row)]]) for row in ([8, 5, 3], [5, 3, 8], [3, 8, 5])
    ]
    got = fuse(lists, method="rrf", rank_constant=60)
    assert got.ids[0, :3].tolist() == [3, 5, 8]
    assert np.unique(got.scores[0, :3]).size == 1


def test_max_by_hand() -> None:
    assert scores(DENSE, GRAPH, method="max") == {1: 0.75, 2: 0.5, 3: 0.5, 4: 0.25, 5: 0.25}
    got = scores(DENSE, GRAPH, EMPTY, method="max", bias=(-0.5, 0.25, 7.0), consensus=1.0)
    assert got == {1: 0.25, 2: 0.0, 3: 1.75, 4: -0.25, 5: 0.5}
    assert scores(DENSE, GRAPH, method="max", calibration="pit") == {1: 0.75, 2: 0.25, 3: 0.5, 4: 0.0, 5: 0.0}
    assert scores(TIED, SINGLE, method="max", calibration="z_score") == {2: 0.0, 4: 0.0, 6: 0.0, 9: 0.0}


def test_max_does_not_count_a_missing_list_as_zero() -> None:
    low = hf.Hits.from_lists([[(1, -2.0), (2, -3.0)]])
    assert fuse([low, GRAPH], method="max", bias=[0, -9]).row(0) == [(1, -2.0), (2, -3.0), (3, -8.5), (5, -8.75)]


def test_max_bias_breaks_ties_between_lists() -> None:
    """The union rule: at equal similarity the second list's documents come first."""
    first, second = hf.Hits.from_lists([[(1, 0.5), (3, 0.25)]]), hf.Hits.from_lists([[(2, 0.5), (3, 0.25)]])
    got = fuse([first, second], method="max", bias=(0.0, 1e-6))
    assert got.row(0) == [(2, 0.5 + 1e-6), (1, 0.5), (3, 0.25 + 1e-6)]
