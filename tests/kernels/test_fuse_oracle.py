"""fuse on every kernel variant against the float64 oracle: all methods, calibrations and ties."""

from __future__ import annotations

import itertools
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_lists
from compare import assert_bitwise, assert_hits_close, assert_hits_wellformed
from devices import on_device
from hopfuse import reference
from hopfuse.fusion import METHODS
from hopfuse.fusion.calibration import CALIBRATIONS
from hypothesis import given
from hypothesis import strategies as st
from kernels.canonical_scalar import boltzmann32, exp32, log32
from numpy.typing import NDArray
from variants import use_sizes

#: Every calibration with the methods that are the others' models, and a few with every method.
COMBINATIONS = [
    (name, calibration)
    for name, method in METHODS.items()
    for calibration in [
        None,
        *(
            one
            for one in (CALIBRATIONS if method.calibrations is None else method.calibrations)
            if name in ("boltzmann", "linear", "max") or one in ("rank", "softmax", "z_score")
        ),
    ]
]
#: What a calibration cannot do without.
NEEDS = {"theoretical_min_max": {"lower": -0.5}}


def fused(lists: list[hf.Hits], **options: Any) -> hf.Hits:
    """hf.fuse, with a calibration by name and its options beside."""
    more = options.pop("calibration_options", None) or NEEDS.get(options.get("calibration"), {})  # type: ignore[arg-type]
    if more:
        options["calibration"] = hf.fusion.Calibration(options["calibration"], **more)
    return hf.fuse(lists, **options)


def oracle_scores(lists: list[hf.Hits], **options: Any) -> NDArray[np.float64]:
    """The exact score of every id; -inf where it is in no list."""
    size = 1 + max((int(one.ids.max(initial=0)) for one in lists), default=0)
    if options.get("calibration") in NEEDS:
        options = {"calibration_options": NEEDS[options["calibration"]]} | options
    everything = reference.fuse(lists, k=size, **options)
    scores = np.full((len(lists[0]), size), -np.inf)
    for b, n in enumerate(everything.counts):
        scores[b, everything.ids[b, :n]] = everything.scores[b, :n]
    return scores


def widths_together(lists: list[hf.Hits], pool: Any = None) -> int:
    """No query has more documents: the lists' widths, or their pools where these are smaller."""
    pools = pool if isinstance(pool, tuple | list) else [pool] * len(lists)
    return sum(one.shape[1] if p is None else min(p, one.shape[1]) for one, p in zip(lists, pools, strict=True))


def check(lists: list[hf.Hits], *ks: int, atol: float = 2e-6, rtol: float = 4e-6, **options: Any) -> hf.Hits:
    """Every row against the oracle, for each k (10); the hits of the last."""
    exact = oracle_scores(lists, **options)
    for k in ks or (10,):
        hits = fused(lists, k=k, **options)
        assert_hits_close(hits, exact, atol=atol, rtol=rtol)
        assert hits.shape == (len(lists[0]), min(k, widths_together(lists, options.get("pool"))))
    return hits


@pytest.mark.parametrize(("method", "calibration"), COMBINATIONS)
def test_every_method_and_calibration(variant: str, method: str, calibration: str | None) -> None:
    lists = random_lists(np.random.default_rng(1), 90, 3, grid=(None, 1, 3))
    atol = 1e-5 if calibration == "z_score" else 2e-6
    check(lists, 0, 1, 5, 40, method=method, calibration=calibration, atol=atol)


@pytest.mark.parametrize("ties", ["strict", "weak", "mean", "rank"])
@pytest.mark.parametrize("method", ["boltzmann", "linear", "max"])
def test_every_tie_rule(variant: str, method: str, ties: Any) -> None:
    lists = random_lists(np.random.default_rng(2), 90, 2, grid=(None, 1, 3))
    check(lists, method=method, calibration="pit", ties=ties)


@pytest.mark.parametrize("method", METHODS)
def test_one_to_ten_lists_of_different_widths(variant: str, method: str) -> None:
    for count in range(1, 11):
        rng = np.random.default_rng(count)
        lists = [random_lists(rng, 12, 1, width=int(rng.integers(0, 15)))[0] for _ in range(count)]
        check(lists, 30, method=method)


@pytest.mark.parametrize("method", [name for name in METHODS if METHODS[name].weighted])
def test_weights_per_call_and_per_query(variant: str, method: str) -> None:
    rng = np.random.default_rng(3)
    lists = random_lists(rng, 20, 3)
    table = rng.random((20, 3)) * 5
    table[3] = 0.0
    check(lists, method=method, weights=table, atol=1e-5)
    for row in table[:4]:
        check(lists, method=method, weights=row, atol=1e-5)
    zero = check(lists, method=method, weights=[0.0, 0.0, 0.0])
    if method == "condorcet":  # all tie
        assert all(len({score for _, score in zero.row(b)}) <= 1 for b in range(20))
        return
    empty_product = 1.0 if method in ("log_linear", "plackett_luce") else 0.0
    assert all(score == empty_product for b in range(20) for _, score in zero.row(b))


@pytest.mark.parametrize("method", METHODS)
def test_consensus_is_added_once_where_two_lists_or_more_agree(variant: str, method: str) -> None:
    lists = random_lists(np.random.default_rng(4), 20, 4)
    for consensus in (0.25, 1.5):
        check(lists, 30, method=method, consensus=consensus)


def test_max_takes_a_bias_for_each_list(variant: str) -> None:
    lists = random_lists(np.random.default_rng(5), 20, 3)
    for bias in ((0.0, 1e-6, -0.5), (2.0, 0.0, 0.0)):
        check(lists, 30, method="max", bias=bias)
        check(lists, 30, method="max", bias=bias, calibration="z_score")


def test_max_of_negative_scores_is_negative(variant: str) -> None:
    lists = [hf.Hits([[1, 2]], [[-1.0, -5.0]]), hf.Hits([[2]], [[-3.0]])]
    assert hf.fuse(lists, method="max", k=2).row(0) == [(1, -1.0), (2, -3.0)]


@pytest.mark.parametrize("rank_constant", [0.0, 1.0, 60.0, 1e6])
def test_rrf_with_any_constant(variant: str, rank_constant: float) -> None:
    check(random_lists(np.random.default_rng(6), 20, 3), 30, method="rrf", rank_constant=rank_constant, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_singletons_all_tied_and_empty_lists(variant: str, method: str) -> None:
    cases = list(itertools.product((0.0, 0.5, 7.0), (0, 1, 6)))
    tied = hf.Hits.from_lists(
        [row for value, n in cases for row in ([(i, value) for i in range(n)], [(i + 3, value) for i in range(n)], [])]
    )
    other = hf.Hits.from_lists([[], [(4, 1.0)], []] * len(cases))
    check([tied], method=method)
    check([tied, other], method=method)
    check([other, tied, tied], method=method)


@pytest.mark.parametrize("method", METHODS)
def test_lists_that_are_all_empty_give_no_hits(variant: str, method: str) -> None:
    empty = hf.Hits(np.zeros((2, 0), int), np.zeros((2, 0)))
    hits = hf.fuse([empty, empty], method=method, k=3)
    assert hits.counts.tolist() == [0, 0]
    assert hf.fuse([hf.Hits(np.zeros((0, 4), int), np.zeros((0, 4)))], method=method, k=3).shape == (0, 3)


@pytest.mark.parametrize("method", METHODS)
def test_equal_scores_go_to_the_lower_id(variant: str, method: str) -> None:
    tied = hf.Hits([[9, 4, 6, 1]], [[1.0, 1.0, 1.0, 1.0]])
    expected = [1, 4, 6, 9]  # rrf too: the list itself stands in that order
    for lists in ([tied], [tied, tied]):
        assert hf.fuse(lists, method=method, k=4).ids[0].tolist() == expected


def test_boltzmann_of_tied_lists_is_uniform(variant: str) -> None:
    hits = hf.fuse([hf.Hits([[3, 1, 2, 0]], [[0.5] * 4])], method="boltzmann", weights=[1.0], k=4)
    assert hits.row(0) == [(0, 0.25), (1, 0.25), (2, 0.25), (3, 0.25)]


@pytest.mark.parametrize("calibration", ["pit", "min_max", "rank"])
def test_boltzmann_temperatures_from_frozen_to_uniform(variant: str, calibration: Any) -> None:
    """exp and log of scalar.h over all of their ranges: E reaches 20.7, E / T anything."""
    lists = random_lists(np.random.default_rng(7), 20, 2, width=60, ids=90)
    for temperature in (1e-38, 1e-6, 1e-3, 0.01, 0.1, 1.0, 2.5, 30.0, 1e3, 1e6, 1e30, 3e38):
        # E is known to 1e-7 of its size, and E / T multiplies that in the exponent.
        slack = min(1.0, 4e-6 * max(1.0, 1.0 / temperature))
        check(lists, 30, method="boltzmann", temperature=temperature, calibration=calibration, atol=slack)


def test_boltzmann_probabilities_of_a_list_sum_to_its_weight(variant: str) -> None:
    (hits,) = random_lists(np.random.default_rng(8), 40, 1, width=50, ids=80)
    for temperature in ("auto", 1e-3, 0.3, 1e5):
        found = hf.fuse([hits], weights=[1.0], temperature=temperature, k=50)
        for b in np.flatnonzero(hits.counts):
            assert abs(found.scores[b, : found.counts[b]].astype(np.float64).sum() - 1.0) < 1e-5


def test_the_canonical_exp_and_log_are_within_two_ulp_everywhere() -> None:
    """The definitions that the next test holds the kernels to."""
    x = np.concatenate([np.linspace(-103.9, 88.7, 200_001), np.linspace(-1e-3, 1e-3, 2001)]).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    assert (np.abs(exp32(x) - exact) <= 2 * np.spacing(exact.astype(np.float32))).all()
    positive = np.concatenate(
        [10.0 ** np.linspace(-44.5, 38.5, 200_001), 1.0 + np.linspace(-1e-3, 1e-3, 2001), 2.0 ** np.arange(-149, 128)]
    ).astype(np.float32)
    exact = np.log(positive.astype(np.float64))
    assert (np.abs(log32(positive) - exact) <= 2 * np.spacing(np.abs(exact).astype(np.float32))).all()
    assert exp32(np.float32([-104.0, -1e30]))[0] == 0.0


@pytest.mark.parametrize("temperature", [None, 1e-38, 1e-3, 0.05, 0.2, 0.21, 1.0, 3.7, 100.0, 1e10, 3e38])
def test_boltzmann_has_the_bits_of_the_canonical_exp_and_log(variant: str, temperature: float | None) -> None:
    options = {} if temperature is None else {"temperature": temperature}
    for size in (1, 2, 31, 32, 33, 200):
        rng = np.random.default_rng(size)
        rows = [
            rng.random(size),
            10.0 ** rng.uniform(-40, 0, size),
            10.0 ** rng.uniform(-3, 38, size),
            np.arange(size) / size,
        ]
        p = -np.sort(-np.array(rows, np.float32), axis=1)
        hits = hf.Hits(np.tile(np.arange(size), (len(p), 1)), p)
        found = hf.fuse([hits], calibration="none", weights=[1.0], k=size, **options)
        for b, row in enumerate(p):
            by_id = np.empty(size, np.float32)
            by_id[found.ids[b]] = found.scores[b]
            assert_bitwise(by_id, boltzmann32(row, temperature), f"row {b} of {size}")


def test_boltzmann_reads_scores_above_one(variant: str) -> None:
    (hits,) = random_lists(np.random.default_rng(9), 20, 1)
    big = hf.Hits(hits.ids, np.where(hits.ids >= 0, hits.scores * 1e6 + 1.0, 0.0), hits.counts)
    found = hf.fuse([big], calibration="none", k=12)
    assert_hits_wellformed(found)
    for b in np.flatnonzero(big.counts):  # every energy is negative, so T <= 0: uniform
        n = int(big.counts[b])
        np.testing.assert_allclose(found.scores[b, :n], 1.0 / n, rtol=1e-6)


def test_ids_up_to_the_largest_int64_survive(variant: str) -> None:
    largest = np.iinfo(np.int64).max
    lists = [hf.Hits([[largest, 0]], [[2.0, 1.0]]), hf.Hits([[largest - 1, largest]], [[2.0, 1.0]])]
    assert hf.fuse(lists, method="rrf", k=3).ids[0].tolist() == [largest, largest - 1, 0]


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 5),
    choice=st.sampled_from(COMBINATIONS),
    grid=st.sampled_from([None, 1, 2, 6]),
    k=st.sampled_from([1, 3, 10, 100]),
    consensus=st.sampled_from([0.0, 0.5]),
    shared_entries=st.sampled_from([0, 16, 2048]),
)
def test_drawn_lists(
    variant: str,
    seed: int,
    count: int,
    choice: tuple[str, str | None],
    grid: int | None,
    k: int,
    consensus: float,
    shared_entries: int,
) -> None:
    rng = np.random.default_rng(seed)
    method, calibration = choice
    weights = rng.random((8, count)) if METHODS[method].weighted else None
    lists = random_lists(rng, 8, count, width=20, ids=25, grid=grid)
    use_sizes(shared_entries=shared_entries)  # of a device
    check(lists, k, method=method, calibration=calibration, weights=weights, consensus=consensus, atol=3e-5)


@pytest.mark.every_order
@pytest.mark.parametrize("method", METHODS)
def test_orders_of_threads(variant: str, method: str) -> None:
    """128 entries: two warps, steps across them and within; in the workspace one block has both queries."""
    rng = np.random.default_rng(10)
    ids = np.stack([rng.permutation(60)[:50] for _ in range(2)])
    long = hf.Hits(ids, -np.sort(-rng.integers(0, 9, (2, 50)), axis=1), [50, 41])
    lists = [long, *random_lists(rng, 2, 1, width=40, ids=60)]
    given: dict[str, Any] = {"prior": np.linspace(0.0, 1.0, 50), "pool": (45, 40), "consensus": 0.5}
    for entries in (2048, 0):
        use_sizes(shared_entries=entries, workspace=0)
        check(lists, 70, method=method, rtol=1e-4, atol=1e-5, **given)


# ---- On a device ----------------------------------------------------------------------------------------------------


@pytest.mark.every_order
@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_lists_on_the_host_are_joined_there(runtime: Any, count: int) -> None:
    lists = [random_lists(np.random.default_rng(count), 3, 1, width=width)[0] for width in range(count)]
    lists += random_lists(np.random.default_rng(9), 3, 1)
    hf.fuse(lists, k=10)
    assert [name for name, _, _ in runtime.launches] == ["fuse_f32"]
    runtime.launches.clear()
    hf.fuse([on_device(one) for one in lists], k=10)
    assert [name for name, _, _ in runtime.launches] == [*-(-len(lists) // 8) * ["fuse_lists"], "fuse_f32"]


@pytest.mark.parametrize("method", METHODS)
def test_the_workspace_that_blocks_share(runtime: Any, method: str) -> None:
    """Of lists that do not fit in shared memory; two blocks sort 64 entries each. One list is empty in a query."""
    use_sizes(shared_entries=0, workspace=2 * 32 * 16)
    short = random_lists(np.random.default_rng(2), 5, 2, grid=5)
    for calibration in [one for name, one in COMBINATIONS if name == method]:
        hf.fuse(short, method=method, k=30, **_scale(calibration))
        assert runtime.launches[-1][:2] == ("fuse_f32", 2)
    rng = np.random.default_rng(14)
    long = [hf.Hits(np.stack([rng.permutation(150)[:90]] * 2), rng.integers(0, 12, (2, 90))) for _ in range(3)]
    long[1] = hf.Hits(long[1].ids, long[1].scores, [90, 0])
    more = {"wasserstein": 3.0, "calibration": "max"} if method == "boltzmann" else {}
    hf.fuse(long, method=method, k=150, **more)
    largest = np.iinfo(np.int64).max
    lists = [hf.Hits([[largest, 0, 5]], [[2.0, 1.0, 0.5]], [2]), hf.Hits([[largest - 1, largest]], [[2.0, 1.0]])]
    hf.fuse(lists, method=method, k=9)


def _scale(calibration: str | None) -> dict[str, Any]:
    if calibration is None:
        return {}
    return {"calibration": hf.fusion.Calibration(calibration, **NEEDS.get(calibration, {}))}  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [1, 2, 63, 64, 65, 129, 2048, 2049])
def test_powers_of_two_and_their_neighbours(runtime: Any, width: int) -> None:
    rng = np.random.default_rng(width)
    scores = -np.sort(-rng.integers(0, max(2, width // 2), width))
    hits = hf.Hits(rng.permutation(2 * width)[None, :width], scores[None])
    hf.fuse([hits], method="linear", calibration="none", k=20)
    workspace = [event for event in runtime.events if event[:2] == ("allocate", 16 * 4096)]
    assert len(workspace) == (width > 2048)


@pytest.mark.full
def test_more_blocks_than_16_bits_count(runtime: Any) -> None:
    batch = (1 << 16) + 3
    ids = np.arange(batch)[:, None] % 977
    hf.fuse([hf.Hits(ids, np.ones((batch, 1), np.float32))], k=1, method="linear", calibration="none")
    assert runtime.launches[-1] == ("fuse_f32", batch, 32)


def test_nothing_to_fuse_launches_nothing(runtime: Any) -> None:
    none, empty = hf.Hits(np.zeros((0, 4), int), np.zeros((0, 4))), hf.Hits(np.zeros((2, 0), int), np.zeros((2, 0)))
    hf.fuse([none], k=3)
    hf.fuse([empty, empty], k=3)
    hf.fuse(random_lists(np.random.default_rng(8), 2, 2), k=0)
    assert not runtime.launches
