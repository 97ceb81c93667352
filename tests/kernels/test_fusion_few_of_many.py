"""Few hits of long lists: where the kernel stops early, by fuse.h's bound, the hits are the head of the whole ranking.

A call for all documents cannot stop early, so that it says what fewer hits are, bit for bit; the whole ranking is
compared with the oracle.
"""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from hopfuse.fusion import METHODS
from hopfuse.fusion.calibration import CALIBRATIONS
from hypothesis import given
from hypothesis import strategies as st
from kernels.test_fuse_oracle import COMBINATIONS, NEEDS, check, widths_together

#: Methods that take entries one by one and stop where the others cannot be hits.
STOPPING = ("linear", "comb_sum", "comb_mnz", "comb_max", "max", "rrf", "isr", "log_isr", "rbc", "boltzmann", "tsallis")
LONG = 120


def draw(rng: np.random.Generator, batch: int, count: int, *, ids: int, grid: int | None, width: int = LONG) -> Any:
    """Full lists of `width` ids below `ids`, many of them in several lists; one list in four is shorter, or empty."""
    lists = []
    for _ in range(count):
        chosen = np.argsort(rng.random((batch, ids)), axis=1)[:, :width]
        scores = rng.random(chosen.shape) if grid is None else rng.integers(0, grid, chosen.shape) / grid
        short = rng.random(batch) < 0.25
        lists.append(hf.Hits(chosen, scores, np.where(short, rng.integers(0, width // 4, batch), width)))
    return lists


def calibrated(calibration: str | None) -> dict[str, Any]:
    if calibration is None:
        return {}
    return {"calibration": hf.fusion.Calibration(calibration, **NEEDS.get(calibration, {}))}  # type: ignore[arg-type]


def check_heads(lists: list[hf.Hits], *ks: int, **options: Any) -> hf.Hits:
    """Fewer hits are the first of all; all of them."""
    whole = hf.fuse(lists, k=widths_together(lists, options.get("pool")), **options)
    for k in ks:
        few, head = hf.fuse(lists, k=k, **options), whole.head(k)
        for part in ("ids", "scores", "counts"):
            assert_bitwise(getattr(few, part), np.ascontiguousarray(getattr(head, part)), f"{part} of {k}")
    return whole


@pytest.mark.parametrize(("method", "calibration"), COMBINATIONS)
def test_few_hits_are_the_first_of_all(variant: str, method: str, calibration: str | None) -> None:
    rng = np.random.default_rng(1)
    for count, grid in ((1, 7), (2, None), (3, 20)):
        lists = draw(rng, 4, count, ids=2 * LONG, grid=grid)
        check_heads(lists, 1, 2, 5, 14, 40, method=method, **calibrated(calibration))


@pytest.mark.parametrize("method", STOPPING)
def test_the_whole_ranking_is_the_oracles(variant: str, method: str) -> None:
    check(draw(np.random.default_rng(2), 4, 2, ids=2 * LONG, grid=None), 1, 3, 2 * LONG, method=method, atol=1e-5)


@pytest.mark.parametrize("method", ["rrf", "isr", "linear", "max", "comb_mnz"])
def test_weights_consensus_pools_and_priors_with_few_hits(variant: str, method: str) -> None:
    rng = np.random.default_rng(3)
    weights = rng.random((6, 3)) * (rng.random((6, 3)) < 0.7)  # of a query all may be 0
    lists = draw(rng, 6, 3, ids=2 * LONG, grid=30)
    given_weights: dict[str, Any] = {"weights": weights} if METHODS[method].weighted else {}
    for more in (
        {"consensus": 0.001},
        {"consensus": 5.0},
        {"pool": (LONG // 2, 100, 7)},
        {"prior": rng.random(LONG)},
        {"prior": np.zeros(LONG)},
    ):
        check_heads(lists, 1, 3, 8, method=method, **given_weights, **more)


@pytest.mark.parametrize("bias", [(0.0, 0.0), (0.5, -2.0), (-1e30, 3e38)])
def test_maximum_of_negative_scores_with_bias_and_priors(variant: str, bias: tuple[float, float]) -> None:
    rng = np.random.default_rng(4)
    lists = [hf.Hits(hits.ids, hits.scores - 1.0, hits.counts) for hits in draw(rng, 4, 2, ids=2 * LONG, grid=None)]
    check_heads(lists, 1, 3, 8, method="max", bias=bias)
    check_heads(lists, 1, 3, 8, method="max", bias=bias, prior=np.where(rng.random(LONG) < 0.5, 0.0, rng.random(LONG)))


@pytest.mark.parametrize("gamma", [-1.0, 0.0, 0.5, 3.0])
def test_factors_of_holders_that_fall_or_rise(variant: str, gamma: float) -> None:
    check_heads(draw(np.random.default_rng(5), 4, 3, ids=LONG + 5, grid=None), 1, 3, 8, method="comb_mnz", gamma=gamma)


def deep(place: int, document: int, width: int = 400) -> list[hf.Hits]:
    """Two lists that share one document only, at the same place."""
    lists = []
    for start in (1_000, 2_000):
        ids = np.arange(start, start + width)
        ids[place] = document
        lists.append(hf.Hits([ids], [np.linspace(2.0, 1.0, width)]))
    return lists


@pytest.mark.parametrize("document", [5, 5_000])
def test_a_document_that_is_deep_in_both_lists(variant: str, document: int) -> None:
    """It has 2/(61 + place) and another has 1/61: at place 61 they tie, and the lower id is first."""
    for place in (*range(0, 60, 7), 59, 60, 61, 62, 63, 200):
        best = check_heads(deep(place, document), 1, 2, 3, method="rrf").ids[0, 0]
        tie = place == 61 and document == 5
        assert best == (document if place < 61 or tie else 1_000)


def test_ties_reach_to_the_end_of_every_list(variant: str) -> None:
    """All documents score the same, and the lowest ids are the last of a list."""
    width = 400
    down = hf.Hits([np.arange(width)[::-1]], [np.linspace(2.0, 1.0, width)])
    other = hf.Hits([np.arange(width, 2 * width)[::-1]], [np.linspace(2.0, 1.0, width)])
    for method in ("rrf", "isr", "rbc", "linear", "comb_mnz"):
        found = check_heads([down, other], 1, 5, 20, method=method, weights=[0.0, 0.0])
        assert found.ids[0].tolist() == list(range(2 * width))
    equal = [hf.Hits([np.arange(start, start + width)], [np.ones(width)]) for start in (width, 0)]
    for method in ("max", "comb_max", "linear", "comb_sum", "boltzmann"):
        weights = {"weights": [1.0, 1.0]} if METHODS[method].weighted else {}
        found = check_heads(equal, 1, 5, 20, method=method, **weights)
        assert found.ids[0].tolist() == list(range(2 * width))


def test_scores_that_float32_cannot_tell_apart(variant: str) -> None:
    """1/(c + r) is the same number for many ranks r in turn where the constant c is large."""
    lists = draw(np.random.default_rng(6), 4, 3, ids=2 * LONG, grid=None)
    for rank_constant in (0.0, 1e3, 1e7, 1e9, 3e38):
        check_heads(lists, 1, 3, 8, method="rrf", rank_constant=rank_constant)


def test_scores_beyond_float32_are_infinite_in_both(variant: str) -> None:
    lists = [
        hf.Hits(hits.ids, hits.scores * np.float32(3e38), hits.counts)
        for hits in draw(np.random.default_rng(7), 4, 3, ids=LONG + 5, grid=None)
    ]
    check_heads(lists, 1, 3, 8, method="linear", calibration="none", weights=[1.0, 1.0, 1.0])


def test_ids_over_all_of_int64(variant: str) -> None:
    rng = np.random.default_rng(8)
    step = np.iinfo(np.int64).max // (2 * LONG)
    lists = [hf.Hits(hits.ids * step, hits.scores, hits.counts) for hits in draw(rng, 4, 2, ids=2 * LONG, grid=9)]
    for method in ("rrf", "linear", "comb_med", "comb_min"):
        check_heads(lists, 1, 3, 8, 150, method=method)


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 4),
    choice=st.sampled_from([(name, None) for name in METHODS] + [("linear", one) for one in CALIBRATIONS]),
    grid=st.sampled_from([None, 1, 2, 30]),
    ids=st.sampled_from([LONG, LONG + 20, 3 * LONG]),
    k=st.integers(1, 20),
    consensus=st.sampled_from([0.0, 0.01, 2.0]),
)
def test_drawn_lists(
    variant: str,
    seed: int,
    count: int,
    choice: tuple[str, str | None],
    grid: int | None,
    ids: int,
    k: int,
    consensus: float,
) -> None:
    rng = np.random.default_rng(seed)
    method, calibration = choice
    options: dict[str, Any] = calibrated(calibration) | {"consensus": consensus}
    if METHODS[method].weighted:
        options["weights"] = rng.random((3, count)) * (rng.random((3, count)) < 0.8)
    if rng.random() < 0.3:
        options["prior"] = rng.random(ids // 2)
    check_heads(draw(rng, 3, count, ids=ids, grid=grid), k, method=method, **options)
