"""What outlives what on a device, through the native module: arrays, results, what is resident, recordings, the device.

tests/device has the same for the queues below.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from devices import on_device, on_host
from hopfuse import _native, backends
from hopfuse.backends import selftest
from hopfuse.backends.cuda import Recordings
from hopfuse.errors import BackendError
from kernels.test_device_calls import CALLS, NODES, World, assert_same, dice, in_threads, same
from refusals import refused
from variants import SIMT, registered

pytestmark = pytest.mark.usefixtures("garbage_of_these_tests")


def living(runtime: Any) -> int:
    """Return the number of allocations once all work is over and garbage is gone."""
    gc.collect()
    runtime.driver.finish()
    return int(runtime.simt.allocations)


# ---- Arrays and results ----------------------------------------------------------------------------------------------


class Theirs:
    """An array of another library, over memory of the device."""

    def __init__(self, array: _native.DeviceArray) -> None:
        self.array, self.__cuda_array_interface__ = array, array.__cuda_array_interface__


def test_a_callers_array_is_held_as_long_as_a_view_of_it(runtime: Any) -> None:
    theirs: Any = Theirs(on_device(np.arange(12.0).reshape(3, 4)))
    held, adopted = weakref.ref(theirs), runtime.adopt(theirs)
    del theirs
    row = adopted[1:2].reshape(4)
    del adopted
    gc.collect()
    assert held() is not None
    assert row.to_numpy().tolist() == [4.0, 5.0, 6.0, 7.0]
    del row
    gc.collect()
    assert held() is None


def test_an_array_without_a_stream_is_held_until_its_work_is_over(runtime: Any) -> None:
    theirs: Any = Theirs(on_device(np.arange(12.0).reshape(3, 4)))
    theirs.__cuda_array_interface__["stream"] = None  # such as of JAX, which reuses memory when its array is dropped
    theirs.array.to_numpy()  # so it is ready
    held, adopted = weakref.ref(theirs), runtime.adopt(theirs)
    made = _native.device_take_rows(runtime.device, adopted, [1])
    del theirs, adopted
    gc.collect()
    assert held() is not None
    assert made.to_numpy().tolist() == [[4.0, 5.0, 6.0, 7.0]]
    runtime.device.upload(np.zeros(1))  # a call drops what earlier ones have read
    gc.collect()
    assert held() is None


def test_an_array_is_held_until_what_a_failed_call_queued_is_over(runtime: Any) -> None:
    theirs: Any = Theirs(on_device(np.arange(12.0).reshape(3, 4)))
    theirs.__cuda_array_interface__["stream"] = None
    theirs.array.to_numpy()
    held, adopted = weakref.ref(theirs), runtime.adopt(theirs)
    runtime.driver.fail_next("cuMemcpyDtoDAsync_v2", 1, skip=1)
    with refused(BackendError, "failed"):
        _native.device_take_rows(runtime.device, adopted, [0, 2])
    del theirs, adopted
    gc.collect()
    assert held() is not None
    runtime.driver.finish()
    runtime.device.upload(np.zeros(1))
    gc.collect()
    assert held() is None


def test_an_input_is_not_given_to_others_where_they_are_not_recorded(runtime: Any) -> None:
    device = runtime.device
    recording = _native.DeviceRecording(device, _native.RecordingMemory(device), [((2, 3), np.float32)])
    for records in (False, True):
        (given,) = recording.begin(records, True)
        if not records:
            given.__dlpack__(stream=1)  # after the copy of the inputs
            recording.end([_native.device_take_rows(device, given, [0, 1])])
            continue
        with pytest.raises(RuntimeError):
            given.__dlpack__(stream=1)
        recording.abandon()


def test_memory_that_was_exported_is_freed_after_the_consumers_work(runtime: Any) -> None:
    device, given = runtime.device, np.arange(4096.0).reshape(1, -1)
    array = on_device(given)
    capsule = array.__dlpack__(stream=None)
    seen = _native.device_array_over(device, array.address, array.shape, array.dtype, object(), None, None, False)
    with device.on_stream(1, None):
        read = _native.device_take_rows(device, seen, [0])
    del array, capsule, seen
    gc.collect()
    device.upload(np.zeros_like(given))  # may get the memory
    assert np.array_equal(read.to_numpy(), given)


def test_arrays_may_be_dropped_as_soon_as_a_call_that_reads_them_returns(runtime: Any) -> None:
    world = World()
    for call in CALLS.values():
        made = call(world, on_device)  # whose arguments are gone now, though it has not run
        runtime.device.upload(np.full(1 << 12, 255, np.uint8))  # may get their memory
        assert_same(on_host(made), call(world, same))


def test_calls_take_no_more_memory_than_the_first_ones(runtime: Any) -> None:
    world = World()

    def calls() -> tuple[int, int]:
        for call in CALLS.values():
            call(world, same), call(world, on_device)
        return living(runtime), int(runtime.simt.pinned)

    calls()
    before, used = calls(), runtime.simt.used
    assert [calls() for _ in range(8)] == 8 * [before]
    assert runtime.simt.used <= 3 * used  # with what pools keep


def test_results_in_use_have_pinned_memory_of_their_own(runtime: Any) -> None:
    world = World()
    kept = [CALLS["ising"](world, same) for _ in range(3)]
    assert len({one.scores.ctypes.data for one in kept}) == 3
    first = kept[0].scores.ctypes.data
    expected = kept[1].scores.copy()
    del kept[0]
    again = [CALLS["ising"](world, same) for _ in range(2)]
    assert first in {one.scores.ctypes.data for one in again}
    assert_bitwise(kept[0].scores, expected)


def test_a_device_is_closed_when_nothing_of_it_is_left(runtime: Any) -> None:
    with registered("short", ordinal=5) as short:
        simt = short.simt
        world = World()
        hits = CALLS["fuse"](world, same)
        there = hf.fuse([_on(short, one) for one in world.lists], backend="short")
        labels = world.labels
        hf.dice_scores(["a"], labels, [0], indptr=[0, 1], backend="short")
        assert hits.shape == there.shape
    del short, there
    gc.collect()
    assert simt.contexts == 1  # of labels
    del labels, world
    gc.collect()
    assert [simt.contexts, simt.allocations, simt.streams, simt.modules, simt.memory_pools, simt.pinned] == [0] * 6


def _on(runtime: Any, hits: hf.Hits) -> hf.Hits:
    return hf.Hits.unchecked(*(runtime.device.upload(part) for part in (hits.ids, hits.scores, hits.counts)))


# ---- What is resident ------------------------------------------------------------------------------------------------

#: What is resident, and a call that reads it.
HELD: dict[str, tuple[Callable[[World], Any], Callable[[World], Any]]] = {
    "labels": (lambda world: world.labels, dice),
    "graph": (lambda world: world.graph, lambda world: CALLS["ising"](world, same)),
    "incidence": (lambda world: world.mentions, lambda world: hf.project(world.weights, world.mentions)),
}


@pytest.mark.parametrize("kind", HELD)
def test_what_is_resident_ends_with_its_owner_or_by_request(runtime: Any, kind: str) -> None:
    of, call = HELD[kind]
    world: Any = World()
    hf.dice_scores(["x"], hf.LabelSets.from_labels(["x"]), [0], indptr=[0, 1])
    before = living(runtime)
    expected = call(world)
    made = living(runtime)
    assert made > before
    hf.free_device_memory(of(world), backend=SIMT)
    assert living(runtime) == before
    assert_same(call(world), expected)
    assert living(runtime) == made
    del world
    assert living(runtime) == before


@pytest.mark.parametrize("kind", HELD)
def test_what_is_resident_is_freed_while_threads_read_it(runtime: Any, kind: str) -> None:
    of, call = HELD[kind]
    world = World()
    expected, stops = call(world), threading.Event()

    def work(number: int) -> None:
        try:
            for _ in range(8):
                if number:
                    assert_same(call(world), expected)
                else:
                    hf.free_device_memory(of(world), backend=SIMT)
        finally:
            stops.set()

    in_threads(4, work)
    assert stops.is_set()


# ---- Recordings ------------------------------------------------------------------------------------------------------

SHAPES = [((8,), "int64"), ((8,), "float32"), ((), "int64"), ((4,), "int64"), ((4,), "float64")]


class Core:
    """A core that reads an incidence and a graph, as recipes' cores do."""

    def __init__(self) -> None:
        self.world, rng = World(), np.random.default_rng(3)
        ids = np.stack([rng.permutation(NODES)[:8] for _ in range(5)])
        scores = -np.sort(-rng.random((5, 8), np.float32), axis=1)
        nodes = np.stack([rng.permutation(NODES)[:4] for _ in range(5)])
        self.given = [ids, scores, np.array([8, 3, 0, 5, 8]), nodes, rng.random((5, 4))]

    def __call__(self, ids: Any, scores: Any, counts: Any, nodes: Any, weights: Any) -> hf.Hits:
        hits = hf.Hits.unchecked(ids, scores, counts)
        covered = hf.cover_seeds(hits, hf.Seeds(nodes, weights), self.world.mentions, k=3)
        ranked = hf.ising_rerank(hits, self.world.graph, steps=2)
        return hf.fuse([covered, ranked], weights=[0.25, 1.0], prior=self.world.weights[0], k=6)

    def captured(self, backend: str = SIMT) -> hf.Captured:
        return hf.capture(self, SHAPES, backend=backend)


def test_a_recording_keeps_what_it_reads(runtime: Any) -> None:
    core = Core()
    captured, expected = core.captured(), core(*core.given)
    assert_same(captured(*core.given), expected)
    for held in (core.world.mentions, core.world.graph):
        hf.free_device_memory(held, backend=SIMT)
    gc.collect()
    _fill(runtime)
    assert_same(captured(*core.given), expected)


def _fill(runtime: Any) -> None:
    """Write to memory that is free."""
    for size in 2 ** np.arange(8, 20):
        runtime.device.upload(np.full(size, 255, np.uint8))


def test_a_replay_reads_its_inputs_and_not_memory_that_is_freed_or_used_since(runtime: Any) -> None:
    core = Core()
    captured, expected = core.captured(), core(*core.given)
    there = [on_device(part) for part in core.given]
    for turn in range(3):
        rows = np.roll(np.arange(5), turn)
        _fill(runtime)
        found = captured(*(part[rows] for part in core.given))
        assert_same(found, hf.Hits.unchecked(expected.ids[rows], expected.scores[rows], expected.counts[rows]))
        _fill(runtime)
        kept = captured(*there)
        captured(*(on_device(part[rows]) for part in core.given))
        _fill(runtime)
        assert_same(on_host(kept), expected)


def test_a_dropped_core_gives_its_memory_back(runtime: Any) -> None:
    core: Any = Core()
    core(*(on_device(part) for part in core.given))  # what is resident, and constants of plain calls
    before, pinned = living(runtime), runtime.simt.pinned
    for _ in range(3):
        captured = core.captured()
        captured(*core.given), captured(*(on_device(part) for part in core.given))
        assert living(runtime) > before
        del captured
        assert living(runtime) == before
    assert runtime.simt.pinned <= pinned + 8  # kept for others
    assert runtime.simt.graphs == 0


@pytest.mark.parametrize("turn", [1, 2])
def test_a_core_that_raises_gives_its_memory_back_and_can_be_tried_again(runtime: Any, turn: int) -> None:
    core, turns, fails = Core(), list[int](), [True]
    core(*(on_device(part) for part in core.given))
    before = living(runtime)

    def work(*given: Any) -> hf.Hits:
        turns.append(1)
        made = core(*given)
        if fails and len(turns) == turn:
            raise KeyError("the core's own error")
        return made

    captured: Any = hf.capture(work, SHAPES, backend=SIMT)
    with pytest.raises(KeyError):
        captured(*core.given)
    assert not runtime.is_capturing
    fails.clear()
    assert_same(captured(*core.given), core(*core.given))
    del captured
    assert living(runtime) == before


def test_other_threads_call_beside_a_recording_that_is_made(runtime: Any) -> None:
    core, world = Core(), World(5)
    expected = {name: call(world, same) for name, call in CALLS.items()}

    def work(number: int) -> None:
        if number == 0:
            for _ in range(2):
                assert_same(core.captured()(*core.given), core(*core.given))
            return
        for name in CALLS:
            assert_same(CALLS[name](world, same), expected[name])

    in_threads(3, work)


def test_recordings_are_replayed_by_several_threads(runtime: Any) -> None:
    """Each has a core of its own; all read the same graph."""
    core = Core()
    expected = core(*core.given)
    cores = [core.captured() for _ in range(3)]

    def work(number: int) -> None:
        for _ in range(4):
            assert_same(cores[number](*core.given), expected)

    in_threads(3, work)


@pytest.mark.full
def test_the_self_test_counts_what_recordings_do_not_give_back(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    device, kept = backends.untested(SIMT), list[Recordings]()
    assert selftest.leaked_bytes(device, 2) == 0
    make = Recordings.__init__

    def keep(self: Recordings, *given: Any) -> None:
        make(self, *given)
        kept.append(self)

    monkeypatch.setattr(Recordings, "__init__", keep)
    leaked = selftest.leaked_bytes(device, 2)
    assert leaked is not None
    assert leaked > 2**18
