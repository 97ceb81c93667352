"""The tests of the tests: every planted bug is found, by the build that should, and its fixed twin is clean."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hopfuse_simt import ORDERS, SimtError, SimtModule
from simt.planted import FOLDER, PLANTED, Array, Planted
from tiers import FULL

SEEDS = range(5 if FULL else 2)


EVERY_BUILD = ("plain", "asan", "tsan")
#: The quick tier builds no sanitizers, and has no planted bugs that only they find.
BUILDS = EVERY_BUILD if FULL else EVERY_BUILD[:1]


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, SimtModule]]:
    """Each build of its files."""
    made = {build: SimtModule([p.path for p in PLANTED], build) for build in BUILDS}
    yield made
    for module in made.values():
        module.close()


def run(module: SimtModule, planted: Planted, twin: str, order: str, seed: int = 0) -> Array:
    given = planted.inputs()
    out = np.zeros_like(planted.answer(given))
    args = [given, out]
    name, cooperative = f"{planted.name}_{twin}", planted.cooperative
    module.launch(name, planted.grid, planted.block, planted.shared, args, order, seed, cooperative=cooperative)
    return out


def every_order() -> list[tuple[str, int]]:
    return [("forward", 0), ("reverse", 0), *(("shuffle", seed) for seed in SEEDS)]


def findings(module: SimtModule, planted: Planted) -> set[str]:
    """What running the bug in every order showed."""
    seen: set[str] = set()
    answers: set[bytes] = set()
    for order, seed in every_order():
        try:
            answer = run(module, planted, "bug", order, seed)
        except SimtError as error:
            seen.add(error.kind)
        else:
            answers.add(answer.tobytes())
            if not np.array_equal(answer, planted.answer(planted.inputs())):
                seen.add("wrong")
    return seen | ({"order"} if len(answers) > 1 else set())


# What the emulator itself reports, it reports in every build.
REPORTS = {"barrier", "warp", "deadlock", "livelock"}


def to_be_found(planted: Planted, build: str) -> set[str]:
    everywhere = planted.found.get("plain", set()) & REPORTS
    return planted.found.get(build, everywhere)


CASES = [(planted, build) for planted in PLANTED for build in BUILDS if to_be_found(planted, build)]


@pytest.mark.parametrize(("planted", "build"), CASES, ids=[f"{p.name}-{b}" for p, b in CASES])
def test_planted_bug_is_found(modules: dict[str, SimtModule], planted: Planted, build: str) -> None:
    assert to_be_found(planted, build) <= findings(modules[build], planted)


TWINS = [(planted, build) for planted in PLANTED for build in BUILDS]


@pytest.mark.parametrize(("planted", "build"), TWINS, ids=[f"{p.name}-{b}" for p, b in TWINS])
def test_fixed_twin_is_clean_and_right(modules: dict[str, SimtModule], planted: Planted, build: str) -> None:
    for order, seed in every_order():
        answer = run(modules[build], planted, "fixed", order, seed)
        np.testing.assert_array_equal(answer, planted.answer(planted.inputs()), err_msg=f"{order} {seed}")


def test_every_file_is_in_the_list() -> None:
    assert sorted(planted.path for planted in PLANTED) == sorted(FOLDER.glob("*.cu"))


def test_every_bug_is_found_by_some_build_and_every_build_finds_some() -> None:
    assert all(planted.found for planted in PLANTED)
    assert {build for planted in PLANTED for build in planted.found} == set(EVERY_BUILD)
    assert set(ORDERS) == {order for order, _ in every_order()}


def planted_named(name: str) -> Planted:
    return next(planted for planted in PLANTED if planted.name == name)


def sanitized(*case: object) -> object:
    return pytest.param(*case, marks=pytest.mark.full)


@pytest.mark.parametrize(
    ("name", "build", "parts"),
    [
        ("divergent_barrier", "plain", ["kernel divergent_barrier_bug, block (0,0,0), thread (32,0,0) (warp 1, lane 0)",
                                        "it ends", "thread (0,0,0) waits in __syncthreads at divergent_barrier.cu:"]),
        ("barrier_in_each_branch", "plain", ["thread (32,0,0)", "waits in __syncthreads"]),
        ("wrong_shuffle_mask", "plain", ["mask 0x0000ffff at wrong_shuffle_mask.cu:", "reads lane 16"]),
        ("exited_lane_in_mask", "plain", ["it ends, but thread (0,0,0) waits in __shfl_down_sync"]),
        ("shuffle_from_outside_mask", "plain", ["reads lane 16, which the mask lacks"]),
        ("deadlock", "plain", ["waits in __syncwarp with mask 0xffffffff", "thread (15,0,0) waits in __syncthreads"]),
        sanitized("global_read_off_by_one", "asan", ["block (1,0,0), thread (63,0,0)", "heap-buffer-overflow",
                                                     "global_read_off_by_one.cu:"]),
        sanitized("integer_overflow", "asan", ["signed integer overflow", "integer_overflow.cu:"]),
        sanitized("cross_block_add", "tsan", ["data race", "cross_block_add.cu:", "block (0,0,0) thread (0,0,0)"]),
    ],
)  # fmt: skip
def test_report_names_kernel_thread_and_place(
    modules: dict[str, SimtModule], name: str, build: str, parts: list[str]
) -> None:
    with pytest.raises(SimtError) as error:
        run(modules[build], planted_named(name), "bug", "forward")
    assert all(part in str(error.value) for part in parts), str(error.value)
