"""calibrate and fuse of kernels/cuda on the SIMT emulator: the CPU's bits, in every order of threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import variants  # puts the emulator on the path
from cases import random_lists
from compare import assert_bitwise, assert_hits_equal
from hopfuse import _native
from hopfuse.backends import cpu
from hopfuse.backends.calls import CalibrateCall, FuseCall, ScoredList
from hopfuse.backends.cuda import fusion
from hopfuse.backends.cuda.runtime import blocks
from hopfuse.fusion import METHODS, Calibration, resolve
from hopfuse_simt.runtime import CUDA, SimtRuntime
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(variants.missing("simt") is not None, reason=str(variants.missing("simt"))),
]
CALIBRATIONS = sorted(_native.calibrations())
TIES = sorted(_native.ties())
LARGEST = float(np.finfo(np.float32).max)
#: Every calibration with one method, and two with every method.
COMBINATIONS = [
    (name, calibration)
    for name, method in METHODS.items()
    for calibration in (CALIBRATIONS if method.calibrations is None else method.calibrations or ["none"])
    if name == "linear" or calibration in (method.default_calibration, "three_sigma")
]


def rule(method: str, ties: str = "strict", **options: Any) -> Calibration:
    """A calibration with what it cannot do without."""
    if method == "theoretical_min_max":
        options = {"lower": -0.5} | options
    return Calibration(method, ties=ties if method == "pit" else None, **options)


class FusionRuntime(SimtRuntime):
    """With the kernels of fuse_f32.cu alone, so that a test of them does not wait for the others to compile."""

    def __init__(self, build: str) -> None:
        super().__init__(build, sources=[CUDA / "fuse_f32.cu"])


@pytest.fixture(scope="module")
def runtimes() -> Iterator[Callable[[str], FusionRuntime]]:
    made: dict[str, FusionRuntime] = {}

    def get(build: str) -> FusionRuntime:
        if build not in made:
            made[build] = FusionRuntime(build)
        return made[build]

    yield get
    for runtime in made.values():
        runtime.module.close()


@pytest.fixture(params=[("forward", 0), ("reverse", 0), ("shuffle", 1)], ids=["forward", "reverse", "shuffle"])
def each_order(runtimes: Callable[[str], FusionRuntime], request: pytest.FixtureRequest) -> FusionRuntime:
    return in_order(runtimes("plain"), *request.param)


@pytest.fixture
def shuffled(runtimes: Callable[[str], FusionRuntime]) -> FusionRuntime:
    return in_order(runtimes("plain"), "shuffle", 7)


def in_order(runtime: FusionRuntime, order: str, seed: int) -> FusionRuntime:
    runtime.order, runtime.seed = order, seed
    runtime.launches.clear()
    return runtime


def row(scores: Any, width: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """One list of calibrate, descending, in a row of at least ``width``; what is behind it must not be read."""
    best_first = -np.sort(-np.asarray(scores, np.float32))
    padded = np.full((1, max(width, best_first.size)), -np.inf, np.float32)
    padded[0, : best_first.size] = best_first
    return padded, np.array([best_first.size], np.int64)


def check_calibrate(
    runtime: FusionRuntime, scores: Any, counts: Any, method: str, ties: str = "strict", **options: Any
) -> None:
    call = CalibrateCall(scores, counts, method, ties, rule(method, ties, **options).kernel_options(1), threads=1)
    done = fusion.calibrate(runtime, call)
    assert_bitwise(done, cpu.calibrate(call), f"{method}, {ties}")


def arrays(lists: list[hf.Hits]) -> list[ScoredList]:
    return [(np.asarray(one.ids), np.asarray(one.scores), np.asarray(one.counts)) for one in lists]


def check_fuse(
    runtime: FusionRuntime,
    lists: list[hf.Hits],
    k: int = 10,
    *,
    method: str = "boltzmann",
    calibration: str | None = None,
    ties: str = "strict",
    weights: Any = None,
    consensus: float = 0.0,
    pools: Any = None,
    prior: Any = (),
    on_device: bool = True,
    **options: Any,
) -> hf.Hits:
    chosen = resolve(method, options)
    scale = calibration or chosen.default_calibration
    call = FuseCall(
        arrays(lists),
        method=chosen.kernel,
        calibration=scale,
        ties=ties,
        calibration_option=rule(scale, ties).kernel_options(len(lists)),
        pools=np.array([one.ids.shape[1] for one in lists] if pools is None else pools, np.int64),
        prior=hf.fusion.Prior(prior).factors,
        option=chosen.kernel_options(len(lists)),
        weights=chosen.default_weights(len(lists)) if weights is None else np.asarray(weights, np.float32),
        consensus=consensus,
        k=k,
        threads=1,
    )
    hits = hf.Hits.unchecked(**fusion.fuse(runtime, call._replace(on_device=on_device)))
    expected = hf.Hits.unchecked(**cpu.fuse(call))
    assert_hits_equal(hits, expected)
    return hits


@pytest.fixture
def small_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even short lists go by the workspace, which two blocks of 32 entries share."""
    monkeypatch.setattr(fusion, "SHARED_ENTRIES", 0)
    monkeypatch.setattr(fusion, "WORKSPACE_BYTES", 2 * 32 * 16)


# ---- calibrate --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", CALIBRATIONS)
def test_random_lists(each_order: FusionRuntime, method: str) -> None:
    (hits,) = random_lists(np.random.default_rng(1), 84, 1, width=70, ids=90, grid=(None, 1, 2, 5))
    check_calibrate(each_order, hits.scores, hits.counts, method)


@pytest.mark.parametrize("ties", TIES)
def test_every_tie_rule_on_runs_of_every_length(shuffled: FusionRuntime, ties: str) -> None:
    rng = np.random.default_rng(2)
    for longest in (1, 2, 3, 9, 70):
        runs = np.repeat(np.arange(40), rng.integers(1, longest + 1, 40))
        check_calibrate(shuffled, *row(runs), "pit", ties)


@pytest.mark.parametrize("method", CALIBRATIONS)
def test_tied_and_empty_lists_and_scores_at_the_ends_of_float32(shuffled: FusionRuntime, method: str) -> None:
    rows = [
        row(scores, width=9)
        for scores in (
            [],
            [0.0],
            [-3.5],
            [1e-30] * 7,
            [0.0, -0.0, 0.0, -0.0],
            [LARGEST, 1.0, -LARGEST],
            [LARGEST, LARGEST, 3.2e38],
            [1e-40, 5e-41, 1.4e-45],
            [2e38, 1e-38, 0.0, -1e-45],
            [-1e-30, -2e-30, -3e30],
        )
    ]
    scores, counts = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    check_calibrate(shuffled, scores, counts, method, "mean")


@pytest.mark.parametrize("method", ["z_score", "l2", "pit", "three_sigma", "sum", "softmax", "gaussian"])
def test_long_lists_use_the_blocked_tree(shuffled: FusionRuntime, method: str) -> None:
    rng = np.random.default_rng(4)
    for size in (31, 32, 33, 1023, 1024, 1025, 2048, 40_000):
        check_calibrate(shuffled, *row(rng.standard_normal(size)), method)


def test_a_list_beyond_two_levels_of_the_tree(shuffled: FusionRuntime) -> None:
    check_calibrate(shuffled, *row(np.random.default_rng(5).random(1024 * 1024 + 1030)), "l2")


def test_nothing_to_calibrate_launches_nothing(shuffled: FusionRuntime) -> None:
    for shape in ((0, 3), (2, 0)):
        check_calibrate(shuffled, np.zeros(shape, np.float32), np.zeros(shape[0], np.int64), "pit")
    assert not shuffled.launches


@given(
    scores=st.lists(st.floats(-LARGEST, LARGEST, width=32), max_size=70),
    method=st.sampled_from(CALIBRATIONS),
    ties=st.sampled_from(TIES),
)
def test_drawn_lists(shuffled: FusionRuntime, scores: list[float], method: str, ties: str) -> None:
    check_calibrate(shuffled, *row(scores, width=8), method, ties)


# ---- fuse -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "calibration"), COMBINATIONS)
def test_every_method_and_calibration(shuffled: FusionRuntime, method: str, calibration: str | None) -> None:
    lists = random_lists(np.random.default_rng(1), 15, 3, grid=(None, 1, 3))
    for k in (1, 5, 40):
        check_fuse(shuffled, lists, k, method=method, calibration=calibration, consensus=0.5)


@pytest.mark.parametrize(("method", "calibration"), COMBINATIONS)
@pytest.mark.usefixtures("small_room")
def test_every_method_and_calibration_in_the_workspace(
    shuffled: FusionRuntime, method: str, calibration: str | None
) -> None:
    lists = random_lists(np.random.default_rng(2), 5, 2, grid=5)
    check_fuse(shuffled, lists, 30, method=method, calibration=calibration)
    assert [(name, grid) for name, grid, _ in shuffled.launches] == [*2 * [("fuse_list", 1)], ("fuse_f32", 2)]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_lists_on_the_host_are_joined_there(shuffled: FusionRuntime, count: int) -> None:
    lists = [random_lists(np.random.default_rng(count), 3, 1, width=width)[0] for width in range(count)]
    check_fuse(shuffled, [*lists, *random_lists(np.random.default_rng(9), 3, 1)], on_device=False)
    assert [name for name, _, _ in shuffled.launches] == ["fuse_f32"]


@pytest.mark.parametrize("method", ["boltzmann", "linear", "max", "comb_med", "power_mean"])
@pytest.mark.parametrize("ties", TIES)
def test_every_tie_rule(shuffled: FusionRuntime, method: str, ties: str) -> None:
    lists = random_lists(np.random.default_rng(3), 6, 2, grid=3)
    check_fuse(shuffled, lists, method=method, calibration="pit", ties=ties)


@pytest.mark.parametrize("method", METHODS)
def test_the_usual_sizes(each_order: FusionRuntime, method: str) -> None:
    rng = np.random.default_rng(4)
    lists = [*random_lists(rng, 3, 1, width=100, ids=150), *random_lists(rng, 3, 1, width=30, ids=150)]
    check_fuse(each_order, lists, method=method, consensus=0.25)


@pytest.mark.parametrize("method", METHODS)
def test_any_number_of_lists_of_different_widths(shuffled: FusionRuntime, method: str) -> None:
    for count in (1, 2, 5, 40):
        rng = np.random.default_rng(count)
        lists = [random_lists(rng, 3, 1, width=int(rng.integers(0, 15)))[0] for _ in range(count)]
        for k in (3, 100):
            check_fuse(shuffled, lists, k, method=method, consensus=1.5)


@pytest.mark.parametrize("width", [1, 2, 63, 64, 65, 129, 2048, 2049])
def test_powers_of_two_and_their_neighbours(shuffled: FusionRuntime, width: int) -> None:
    rng = np.random.default_rng(width)
    ids = rng.permutation(2 * width)[None, :width]
    hits = hf.Hits(ids, row(rng.integers(0, max(2, width // 2), width))[0])
    shuffled.events.clear()
    check_fuse(shuffled, [hits], 20, method="linear", calibration="none")
    workspace = [event for event in shuffled.events if event == ("allocate", 16 * 4096)]
    assert len(workspace) == (width > 2048)


@pytest.mark.full
def test_more_blocks_than_16_bits_count(shuffled: FusionRuntime) -> None:
    batch = (1 << 16) + 3
    ids = np.arange(batch)[:, None] % 977
    check_fuse(shuffled, [hf.Hits(ids, np.ones((batch, 1), np.float32))], 1, method="linear", calibration="none")
    assert shuffled.launches[-1] == ("fuse_f32", batch, 32)
    assert [blocks(items, 256) for items in (0, 1, 256, 257, batch * 256, 1 << 40)] == [1, 1, 1, 2, batch, 1 << 32]


@pytest.mark.parametrize("method", [name for name in METHODS if METHODS[name].weighted])
def test_weights_per_call_and_per_query(shuffled: FusionRuntime, method: str) -> None:
    rng = np.random.default_rng(6)
    lists = random_lists(rng, 6, 3)
    table = (rng.random((6, 3)) * 5).astype(np.float32)
    table[3] = 0.0
    check_fuse(shuffled, lists, 30, method=method, weights=table)
    check_fuse(shuffled, lists, 30, method=method, weights=table[1])


def test_biases_temperatures_and_rank_constants(shuffled: FusionRuntime) -> None:
    lists = random_lists(np.random.default_rng(7), 6, 2, width=40, ids=60)
    for temperature in (1e-38, 1e-3, 0.3, 1e6, 3e38):
        check_fuse(shuffled, lists, 30, temperature=temperature)
    check_fuse(shuffled, lists, 30, method="max", calibration="z_score", bias=(1e-6, -0.5))
    for constant in (0.0, 1e6):
        check_fuse(shuffled, lists, 30, method="rrf", rank_constant=constant)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("comb_mnz", {"gamma": -1.5}),
        ("log_isr", {"sigma": 0.01}),
        ("borda", {"missing": "zero"}),
        ("rbc", {"phi": 0.3}),
        ("log_linear", {"temperature": 0.3, "epsilon": 1e-4}),
        ("power_mean", {"p": -2.0}),
        ("power_mean", {"p": 0.0}),
        ("tsallis", {"q": (0.5, 2.0, 1.0)}),
        ("quantum", {"theta": 2.5, "form": "sqrt"}),
        ("gumbel", {"theta": 2.5}),
        ("boltzmann", {"wasserstein": 2.0, "calibration": "min_max"}),
        ("boltzmann", {"wasserstein": 0.5, "calibration": "max", "temperature": 0.3}),
        ("condorcet", {"weights": (0.5, 0.3, 0.2)}),
        ("plackett_luce", {"steps": 20}),
    ],
)
def test_further_options(shuffled: FusionRuntime, method: str, options: dict[str, Any]) -> None:
    check_fuse(shuffled, random_lists(np.random.default_rng(11), 6, 3, width=40, ids=60), 60, method=method, **options)


@pytest.mark.parametrize("method", METHODS)
def test_priors_and_pools(each_order: FusionRuntime, method: str) -> None:
    rng = np.random.default_rng(12)
    lists = random_lists(rng, 4, 3, width=40, ids=60)
    importance = np.where(rng.random(50) < 0.2, np.nan, rng.random(50))
    check_fuse(each_order, lists, 60, method=method, prior=importance, pools=[7, 40, 0], consensus=0.5)


@pytest.mark.parametrize("place", ["shared", "global"])
@pytest.mark.parametrize(
    ("method", "options"),
    [("gumbel", {}), ("condorcet", {}), ("boltzmann", {"wasserstein": 3.0, "calibration": "max"})],
)
def test_options_that_concern_a_whole_query(
    each_order: FusionRuntime, monkeypatch: pytest.MonkeyPatch, place: str, method: str, options: dict[str, Any]
) -> None:
    """Over several warps, where one of the lists is empty in a query."""
    monkeypatch.setattr(fusion, "SHARED_ENTRIES", 2048 if place == "shared" else 0)
    rng = np.random.default_rng(14)
    lists = [hf.Hits(np.stack([rng.permutation(150)[:90]] * 2), rng.integers(0, 12, (2, 90))) for _ in range(3)]
    lists[1] = hf.Hits(lists[1].ids, lists[1].scores, [90, 0])
    check_fuse(each_order, lists, 150, method=method, **options)


@pytest.mark.parametrize("method", CALIBRATIONS)
def test_lists_without_spread(shuffled: FusionRuntime, method: str) -> None:
    for scores in ([3.0], [3.0] * 40, [3.0, 1.0]):
        check_calibrate(shuffled, *row(scores, width=50), method, single=0.25, equal=-2.0)


def test_bounds_and_temperatures(shuffled: FusionRuntime) -> None:
    scores = np.random.default_rng(13).standard_normal(50)
    for upper in (None, 1.0):
        check_calibrate(shuffled, *row(scores), "theoretical_min_max", lower=-1.0, upper=upper)
    for temperature in (1e-38, 0.3, 1e30):
        check_calibrate(shuffled, *row(scores), "softmax", temperature=temperature)


@pytest.mark.parametrize("method", METHODS)
def test_singletons_all_tied_and_empty_lists(each_order: FusionRuntime, method: str) -> None:
    cases = list(itertools.product((0.0, 7.0), (0, 1, 6)))
    tied = hf.Hits.from_lists(
        [row for value, n in cases for row in ([(i, value) for i in range(n)], [(i + 3, value) for i in range(n)], [])]
    )
    other = hf.Hits.from_lists([[], [(4, 1.0)], []] * len(cases))
    for lists in ([tied], [tied, other], [other, tied, tied]):
        check_fuse(each_order, lists, method=method)


@pytest.mark.parametrize("place", ["shared", "global"])
def test_the_largest_ids_are_not_taken_for_padding(
    shuffled: FusionRuntime, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(fusion, "SHARED_ENTRIES", 2048 if place == "shared" else 0)
    largest = np.iinfo(np.int64).max
    lists = [hf.Hits([[largest, 0, 5]], [[2.0, 1.0, 0.5]], [2]), hf.Hits([[largest - 1, largest]], [[2.0, 1.0]])]
    assert check_fuse(shuffled, lists, 9, method="rrf").ids[0, :3].tolist() == [largest, largest - 1, 0]


def test_nothing_to_fuse_launches_nothing(shuffled: FusionRuntime) -> None:
    none, empty = hf.Hits(np.zeros((0, 4), int), np.zeros((0, 4))), hf.Hits(np.zeros((2, 0), int), np.zeros((2, 0)))
    check_fuse(shuffled, [none], 3)
    check_fuse(shuffled, [empty, empty], 3)
    check_fuse(shuffled, random_lists(np.random.default_rng(8), 2, 2), 0)
    assert not shuffled.launches


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 4),
    choice=st.sampled_from(COMBINATIONS),
    grid=st.sampled_from([None, 1, 2, 6]),
    k=st.sampled_from([1, 3, 10, 70]),
    consensus=st.sampled_from([0.0, 0.5]),
    shared_entries=st.sampled_from([0, 16, 2048]),
)
def test_drawn_calls(
    shuffled: FusionRuntime,
    seed: int,
    count: int,
    choice: tuple[str, str],
    grid: int | None,
    k: int,
    consensus: float,
    shared_entries: int,
) -> None:
    rng = np.random.default_rng(seed)
    lists = [random_lists(rng, 2, 1, width=int(rng.integers(0, 20)), grid=grid)[0] for _ in range(count)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fusion, "SHARED_ENTRIES", shared_entries)
        check_fuse(shuffled, lists, k, method=choice[0], calibration=choice[1], consensus=consensus)


# ---- what the sanitizers say ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", variants.SANITIZERS)
@pytest.mark.parametrize("method", CALIBRATIONS)
def test_sanitized_calibrate(runtimes: Callable[[str], FusionRuntime], build: str, method: str) -> None:
    (hits,) = random_lists(np.random.default_rng(9), 3, 1, width=35, ids=50, grid=20)
    check_calibrate(in_order(runtimes(build), "shuffle", 3), hits.scores, hits.counts, method)


@pytest.mark.parametrize("build", variants.SANITIZERS)
@pytest.mark.parametrize("place", ["shared", "global"])
@pytest.mark.parametrize("method", METHODS)
def test_sanitized_fuse(
    runtimes: Callable[[str], FusionRuntime], monkeypatch: pytest.MonkeyPatch, build: str, place: str, method: str
) -> None:
    """128 entries: two warps, steps across them and within; in the workspace one block has both queries."""
    monkeypatch.setattr(fusion, "SHARED_ENTRIES", 2048 if place == "shared" else 0)
    monkeypatch.setattr(fusion, "WORKSPACE_BYTES", 0)
    rng = np.random.default_rng(10)
    ids = np.stack([rng.permutation(60)[:50] for _ in range(2)])
    long = hf.Hits(ids, -np.sort(-rng.integers(0, 9, (2, 50)), axis=1), [50, 41])
    lists = [long, *random_lists(rng, 2, 1, width=40, ids=60)]
    prior = np.linspace(0.0, 1.0, 50)
    runtime = in_order(runtimes(build), "shuffle", 3)
    check_fuse(runtime, lists, 70, method=method, consensus=0.5, prior=prior, pools=[45, 40])
