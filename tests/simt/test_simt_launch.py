"""What a launch refuses, reports and promises."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
from hopfuse_simt import Pointer, SimtError, SimtModule, Struct
from variants import SANITIZED

SOURCE = Path(__file__).parent / "cuda" / "launches.cu"


@pytest.fixture(scope="module")
def module() -> SimtModule:
    return SimtModule(SOURCE)


@pytest.fixture(scope="module", params=["isolated", *SANITIZED])
def program(request: pytest.FixtureRequest) -> Iterator[SimtModule]:
    """The kernels as a program: the plain build on request, the sanitizers always."""
    isolated = request.param == "isolated"
    with SimtModule(SOURCE, "plain" if isolated else request.param, isolated=isolated) as made:
        yield made


def ints(*values: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.array(values, dtype=np.int32)


def error_of(module: SimtModule, *call: Any, **options: Any) -> SimtError:
    with pytest.raises(SimtError) as error:
        module.launch(*call, **options)
    return error.value


WITHOUT_MEMORY = f"""
import resource, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[2] / "kernels" / "simt")!r})
from hopfuse_simt import SimtModule
module = SimtModule(Path({str(SOURCE)!r}))
module.launch("copies", 1, 32, 0, [None, None, 0])
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held, held))
module.launch("copies", 1, 1024, 0, [None, None, 0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a process's memory is limited as Linux does it")
def test_a_process_without_memory_for_stacks_ends_and_says_so() -> None:
    done = processes.run([sys.executable, "-c", WITHOUT_MEMORY], capture_output=True, text=True)
    assert done.returncode == -signal.SIGABRT
    assert "simt: no memory for the stack of a thread" in done.stderr


# ---- Geometry ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grid", "block", "text"),
    [
        (1, 0, "block (0,1,1)"),
        (1, 1025, "block (1025,1,1)"),
        (1, (1, 1, 65), "block (1,1,65)"),
        (1, (32, 32, 2), "more than 1024 threads"),
        (0, 32, "grid (0,1,1)"),
        ((1, 65536), 32, "grid (1,65536,1)"),
        ((1, 1, 65536), 32, "grid (1,1,65536)"),
    ],
)
def test_sizes_out_of_range_are_refused(module: SimtModule, grid: Any, block: Any, text: str) -> None:
    error = error_of(module, "copies", grid, block, 0, [None, None, 0])
    assert error.kind == "launch"
    assert "kernel copies" in error.message
    assert text in error.message


@pytest.mark.parametrize("name", ["bounded", "bounded_before"])
def test_launch_bounds_are_kept(module: SimtModule, name: str) -> None:
    out = np.zeros(65, dtype=np.int32)
    assert module.max_threads(name) == 64
    module.launch(name, 1, 64, 0, [out])
    assert set(out[:64]) == {1 if name == "bounded" else 2}
    error = error_of(module, name, 1, 65, 0, [out])
    assert error.kind == "launch"
    assert "__launch_bounds__(64)" in error.message


def test_shared_memory_above_the_limit_is_refused(module: SimtModule) -> None:
    out = np.zeros(32, dtype=np.int32)
    assert module.static_shared("large_static_shared") == 48 * 1024
    module.launch("large_static_shared", 1, 32, 0, [out])
    np.testing.assert_array_equal(out, 12 * 1024 - 1 - np.arange(32))
    error = error_of(module, "large_static_shared", 1, 32, 1, [out])
    assert error.kind == "launch"
    assert "49153 bytes of shared memory (49152 static, 1 dynamic): the limit is 49152" in error.message
    error = error_of(module, "dynamic_shared_words", 1, 32, 48 * 1024 + 1, [out.view(np.uint32)])
    assert error.kind == "launch"
    larger = SimtModule(SOURCE, shared_limit=99 * 1024)
    assert larger.launch("dynamic_shared_words", 1, 32, 99 * 1024, [out.view(np.uint32)]).blocks == 1


@pytest.mark.full
def test_thread_sanitizer_build_states_its_limit() -> None:
    with SimtModule(SOURCE, "tsan") as module:
        x, y = np.ones(8192, dtype=np.float32), np.zeros(8192, dtype=np.float32)
        module.launch("copies", 3, 32, 0, [x, y, 96])
        assert y.sum() == 96
        error = error_of(module, "copies", 3, 1024, 0, [x, y, 3072])
        assert error.kind == "launch"
        assert "at most 2048 threads" in error.message


# ---- Arguments ---------------------------------------------------------------------------------------------


def test_arguments_must_have_the_kernels_types(module: SimtModule) -> None:
    x, y = np.ones(4, dtype=np.float32), np.zeros(4, dtype=np.float32)
    assert module.signature("copies") == "c*f4,*f4,i4"
    frozen = y.copy()
    frozen.flags.writeable = False
    wrong: list[tuple[type[Exception], str, list[Any]]] = [
        (TypeError, "takes 3 arguments", [x, y]),
        (TypeError, "points to f4, and the array is float64", [x.astype(np.float64), y, 4]),
        (TypeError, "is a pointer", [[1.0], y, 4]),
        (TypeError, "is int32, and a float was given", [x, y, 4.0]),
        (TypeError, "is int32, and a int64 was given", [x, y, np.int64(4)]),
        (ValueError, "out of its range", [x, y, 2**31]),
        (ValueError, "C-contiguous", [x[::2], y, 2]),
        (ValueError, "read-only", [x, frozen, 4]),
    ]
    for kind, text, args in wrong:
        with pytest.raises(kind, match=text):
            module.launch("copies", 1, 4, 0, args)
    assert not y.any()
    module.launch("copies", 1, 4, 0, [frozen, y, np.int32(4)])


def test_unknown_names_are_refused(module: SimtModule) -> None:
    with pytest.raises(KeyError, match="no kernel 'nothing'"):
        module.launch("nothing", 1, 1, 0, [])
    with pytest.raises(ValueError, match="allowed: forward, reverse, shuffle"):
        module.launch("copies", 1, 1, 0, [None, None, 0], order="backward")
    with pytest.raises(ValueError, match="seed is -1"):
        module.launch("copies", 1, 1, 0, [None, None, 0], order="shuffle", seed=-1)
    with pytest.raises(ValueError, match="allowed: plain, count, asan, tsan"):
        SimtModule(SOURCE, "fast")


def test_arrays_that_share_memory_do_so_in_a_program(program: SimtModule) -> None:
    base = np.arange(8, dtype=np.float32)
    program.launch("copies", 1, 4, 0, [base[:4], base[4:], 4])
    np.testing.assert_array_equal(base, [0, 1, 2, 3, 0, 1, 2, 3])
    program.launch("copies", 1, 4, 0, [base[1:5], base[1:5], 4])
    np.testing.assert_array_equal(base, [0, 1, 2, 3, 0, 1, 2, 3])


@pytest.mark.full
def test_a_pointer_reaches_its_own_array_only() -> None:
    base = np.arange(8, dtype=np.float32)
    with SimtModule(SOURCE, "asan") as module:
        assert error_of(module, "copies", 1, 8, 0, [base[:4], base[4:], 5]).kind == "address"
        assert error_of(module, "copies", 1, 8, 0, [base[:0], base[4:], 1]).kind == "undefined"


# ---- Errors at run time ------------------------------------------------------------------------------------


def test_faults_end_the_launch_and_not_the_process(module: SimtModule) -> None:
    out = np.zeros(4, dtype=np.int32)
    error = error_of(module, "divides", 1, 4, 0, [ints(1, 2, 0, 4), out])
    assert (error.kind, "thread (2,0,0)" in error.message) == ("fault", True)
    assert out.tolist() == [100, 50, 0, 0]
    error = error_of(module, "copies", 1, 4, 0, [None, out.view(np.float32), 4])
    assert error.kind == "fault"
    assert "bad or misaligned access" in error.message
    error = error_of(module, "recurses", 1, 4, 0, [ints(1 << 30), out])
    assert (error.kind, "stack overflow" in error.message) == ("fault", True)
    module.launch("divides", 1, 4, 0, [ints(1, 2, 5, 4), out])
    assert out.tolist() == [100, 50, 20, 25]


def test_a_program_goes_on_after_an_error(program: SimtModule) -> None:
    out = np.zeros(4, dtype=np.int32)
    for _ in range(2):
        error = error_of(program, "divides", 1, 4, 0, [ints(1, 2, 0, 4), out])
        assert error.kind == {"asan": "undefined", "tsan": "crash"}.get(program.build, "fault")
        assert "thread (2,0,0)" in error.message
        program.launch("divides", 1, 4, 0, [ints(1, 2, 5, 4), out])
        assert out.tolist() == [100, 50, 20, 25]


def test_trap(module: SimtModule) -> None:
    module.launch("traps", 1, 3, 0, [ints(1, 2, 3)])
    error = error_of(module, "traps", 1, 3, 0, [ints(1, -2, 3)])
    assert error.kind == "trap"
    assert "thread (1,0,0)" in error.message


def test_dynamic_shared_memory_must_be_asked_for(module: SimtModule) -> None:
    assert error_of(module, "dynamic_shared_words", 1, 32, 0, [np.zeros(32, dtype=np.uint32)]).kind == "shared"


@pytest.mark.parametrize("name", ["dynamic_shared_words", "static_shared_words"])
def test_shared_memory_is_poisoned_for_every_block(module: SimtModule, program: SimtModule, name: str) -> None:
    for each in (module, program):
        out = np.zeros(96, dtype=np.uint32)
        each.launch(name, 3, 32, 128, [out])
        assert set(out) == {0xFFFFFFFF}


def test_lanes_that_do_not_exist_may_not_be_named(module: SimtModule) -> None:
    out = np.full(40, -1, dtype=np.int32)
    error = error_of(module, "partial_warp", 1, 20, 0, [out, 0xFFFFFFFF])
    assert error.kind == "warp"
    assert "no lane 20 in this warp" in error.message
    module.launch("partial_warp", 1, 20, 0, [out, 0x000FFFFF])
    assert set(out[:20]) == {0}
    error = error_of(module, "odd_width", 1, 32, 0, [out])
    assert (error.kind, "width 12" in error.message) == ("warp", True)


def test_a_lock_by_atomics_is_waited_for(module: SimtModule) -> None:
    for order in ("forward", "reverse", "shuffle"):
        lock, count = ints(0), ints(0)
        module.launch("counts_under_lock", 2, 64, 0, [lock, count], order, 4)
        assert (lock[0], count[0]) == (0, 128)
    assert error_of(module, "counts_under_lock", 1, 2, 0, [ints(1), ints(0)]).kind == "livelock"


# ---- Cooperative launches ----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["forward", "reverse", "shuffle"])
def test_blocks_of_a_cooperative_launch_meet(module: SimtModule, program: SimtModule, order: str) -> None:
    for each in (module, program):
        arrived, out = np.zeros(1, dtype=np.uint32), np.zeros(160, dtype=np.uint32)
        for turned in (0x80000000, 0):  # the counter is ready for another launch
            counters = each.launch("meets", 5, 32, 128, [arrived, 0, out], order, 3, cooperative=True)
            assert (counters.blocks, counters.barriers, counters.grid_barriers) == (5, 10, 1)
            assert arrived[0] == turned
        np.testing.assert_array_equal(out, np.repeat(np.arange(5), 32))  # shared memory is the block's own


def test_what_a_grid_barrier_needs(module: SimtModule) -> None:
    out, counters = np.zeros(65 * 32, dtype=np.uint32), np.zeros(65, dtype=np.uint32)
    assert error_of(module, "meets", 2, 32, 128, [counters, 0, out]).kind == "barrier"
    assert "not cooperative" in error_of(module, "meets", 2, 32, 128, [counters, 0, out]).message
    for given, apart, text in (
        (counters, 1, "another one"),
        (counters + np.uint32(3), 0, "counter of a grid barrier is"),
    ):
        error = error_of(module, "meets", 2, 32, 128, [given, apart, out], cooperative=True)
        assert (error.kind, text in error.message) == ("barrier", True)
    for name, blocks, args, text in (
        ("static_shared_words", 2, [out], "static shared memory"),
        ("meets", 65, [counters, 0, out], "at most 64 blocks"),
    ):
        error = error_of(module, name, blocks, 32, 128, args, cooperative=True)
        assert (error.kind, text in error.message) == ("launch", True)


# ---- Order -------------------------------------------------------------------------------------------------


def arrivals(module: SimtModule, order: str, seed: int = 0) -> list[int]:
    counter, place = ints(0), np.zeros(64, dtype=np.int32)
    module.launch("arrivals", 4, 16, 0, [counter, place], order, seed)
    assert counter[0] == 64
    assert sorted(place) == list(range(64))
    return [int(p) for p in place]


def test_orders_of_blocks_and_threads(module: SimtModule) -> None:
    assert arrivals(module, "forward") == list(range(64))
    assert arrivals(module, "reverse") == list(range(64))[::-1]
    shuffled = [arrivals(module, "shuffle", seed) for seed in range(4)]
    assert len({tuple(places) for places in shuffled}) == 4
    for places in shuffled:
        blocks = [places[i : i + 16] for i in range(0, 64, 16)]
        assert all(max(block) - min(block) == 15 for block in blocks)  # a block runs to its end
        assert all(block != sorted(block) for block in blocks)


def test_a_seed_repeats_its_order(module: SimtModule, program: SimtModule) -> None:
    assert arrivals(module, "shuffle", 9) == arrivals(module, "shuffle", 9) == arrivals(program, "shuffle", 9)


# ---- Structs with pointers ---------------------------------------------------------------------------------


SUMS = np.dtype([("n", "i4"), ("a", "u8"), ("b", "u8"), ("out", "u8")], align=True)


def sums(n: int, a: Any, b: Any, out: Any) -> Struct:
    """The argument of adds_by_struct."""
    data = np.zeros((), SUMS)
    data["n"] = n
    assert SUMS.fields is not None
    pointers = {name: Pointer(array, name == "out") for name, array in (("a", a), ("b", b), ("out", out))}
    return Struct(data.tobytes(), {SUMS.fields[name][1]: pointer for name, pointer in pointers.items()})


def add_by_struct(made: SimtModule) -> None:
    memory = np.arange(100, dtype=np.float32)
    a, b, out = memory[:40], memory[20:60], np.zeros(40, dtype=np.float32)
    made.launch("adds_by_struct", 2, 32, 0, [sums(40, a, b, out)])
    np.testing.assert_array_equal(out, a + b)
    made.launch("adds_by_struct", 2, 32, 0, [sums(40, a, None, memory[60:])])
    np.testing.assert_array_equal(memory[60:], np.arange(40))


def test_a_struct_may_hold_pointers(module: SimtModule) -> None:
    add_by_struct(module)
    with pytest.raises(ValueError, match="argument 0 is s32, and a struct of 24 bytes was given"):
        module.launch("adds_by_struct", 1, 32, 0, [Struct(bytes(24), {})])


def test_a_program_takes_a_struct_with_pointers(program: SimtModule) -> None:
    add_by_struct(program)


@pytest.mark.full
def test_an_array_of_a_struct_ends_where_it_ends() -> None:
    with SimtModule(SOURCE, "asan") as made:
        short = np.zeros(30, dtype=np.float32)
        error = error_of(made, "adds_by_struct", 1, 32, 0, [sums(31, short, None, np.zeros(40, dtype=np.float32))])
        assert error.kind == "address"
