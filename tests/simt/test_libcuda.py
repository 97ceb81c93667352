"""The emulated driver: what a device does, and that it finds what one would refuse, get wrong or rarely get right.

Each rule has a right use, after which nothing was found, and its wrong twin.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driver_api import (
    BLOCKING,
    CODES,
    GLOBAL,
    NON_BLOCKING,
    RELAXED,
    RELEASE_THRESHOLD,
    RESERVED,
    RESERVED_HIGH,
    SHARED_ATTRIBUTE,
    SOURCE,
    THREAD_LOCAL,
    USED,
    USED_HIGH,
    Api,
    context,
)
from hopfuse_simt import SimtDriver
from hopfuse_simt.driver import FREED, FRESH, DriverError
from variants import SANITIZED

DEVICE, OTHER = 6, 7


@pytest.fixture(scope="module")
def driver() -> SimtDriver:
    return SimtDriver()


@pytest.fixture
def api(driver: SimtDriver) -> Iterator[Api]:
    with context(driver, DEVICE) as made:
        yield made


@pytest.fixture
def both(api: Api) -> Iterator[tuple[Api, Api]]:
    """Two devices, of which the first is current."""
    other = Api(api.driver, OTHER)
    api.call("cuCtxPopCurrent_v2", None)
    try:
        yield api, other
    finally:
        api.driver.library.cuDevicePrimaryCtxRelease_v2(OTHER)


def refused(code: int, call: Callable[..., Any], *arguments: Any) -> None:
    with pytest.raises(DriverError) as caught:
        call(*arguments)
    assert caught.value.code == code, caught.value


def ramp(count: int) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32)


def values_of(api: Api, pointer: int, count: int, stream: Any) -> list[float]:
    out = np.zeros(count, np.float32)
    api.down(out, pointer, stream)
    api.wait(stream)
    return list(out.tolist())


def in_thread(work: Callable[[], Any]) -> Any:
    """Return what it returns in another thread, in which no context is current."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def in_process(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program with a driver of its own."""
    folders = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "kernels" / "simt")]
    head = (
        "import sys; sys.path[:0] = sys.argv[1:]\nfrom driver_api import Api\n"
        "from hopfuse_simt import SimtDriver\ndriver = SimtDriver()\n"
    )
    return subprocess.run([sys.executable, "-c", head + program, *folders], capture_output=True, text=True, check=False)


# ---- Devices, contexts, handles ----------------------------------------------------------------------------------


def attribute_of(api: Api, number: int, device: int = DEVICE) -> int:
    value = ctypes.c_int()
    api.call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
    return value.value


def test_devices_are_what_they_are_set_to(api: Api) -> None:
    api.device.capability, api.device.multiprocessors, api.device.l2_bytes, api.device.pools = 86, 4, 1 << 22, 0
    api.device.memory = 10_000
    assert [attribute_of(api, number) for number in (75, 76, 16, 38, 115, 10)] == [8, 6, 4, 1 << 22, 0, 32]
    assert [attribute_of(api, number, OTHER) for number in (75, 76, 16, 115)] == [9, 0, 1, 1]
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    api.alloc(400)
    api.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    assert (free.value, total.value) == (9_600, 10_000)
    api.device.set_name("A host in disguise")
    name, uuids = ctypes.create_string_buffer(64), [ctypes.create_string_buffer(16) for _ in range(2)]
    api.call("cuDeviceGetName", name, 64, DEVICE)
    for number, uuid in zip((DEVICE, OTHER), uuids, strict=True):
        api.call("cuDeviceGetUuid_v2", uuid, number)
    assert name.value == b"A host in disguise"
    assert uuids[0].raw != uuids[1].raw
    refused(CODES.INVALID_DEVICE, api.call, "cuDeviceGetName", name, 64, 8)
    assert api.kinds() == []


def test_nothing_works_without_a_current_context(api: Api) -> None:
    kept = api.alloc(64)
    api.call("cuCtxPopCurrent_v2", None)
    refused(CODES.INVALID_CONTEXT, api.alloc, 64)
    refused(CODES.INVALID_CONTEXT, api.free, kept)
    refused(CODES.INVALID_CONTEXT, api.stream)
    refused(CODES.INVALID_CONTEXT, api.wait)
    assert api.kinds() == 4 * ["context"]
    assert in_thread(lambda: api.code("cuCtxSynchronize")) == CODES.INVALID_CONTEXT
    api.call("cuCtxSetCurrent", api.context)
    api.free(kept)
    assert api.kinds() == ["context"]


def test_objects_belong_to_their_context(both: tuple[Api, Api]) -> None:
    api, other = both
    stream, mine = api.stream(), api.alloc(256)
    event, pool, module = api.event(), api.pool(), api.load()
    function = api.function("copies")
    api.begin(stream)
    api.clear(mine, 0, 64, stream)
    graph = api.end(stream)
    replay = api.instantiate(graph)
    api.call("cuCtxPushCurrent_v2", other.context)
    theirs, there = other.stream(), other.alloc(256)
    pointer = ctypes.c_uint64()
    calls: list[tuple[Any, ...]] = [
        ("cuStreamSynchronize", stream), ("cuStreamDestroy_v2", stream), ("cuEventRecord", event, theirs),
        ("cuEventSynchronize", event), ("cuMemFree_v2", ctypes.c_uint64(mine)), ("cuModuleUnload", module),
        ("cuMemPoolTrimTo", pool, ctypes.c_size_t(0)), ("cuGraphLaunch", replay, theirs), ("cuGraphDestroy", graph),
        ("cuMemAllocFromPoolAsync", ctypes.byref(pointer), ctypes.c_size_t(8), pool, theirs),
        ("cuMemFreeAsync", ctypes.c_uint64(mine), theirs),
        ("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, theirs, None, None),
    ]  # fmt: skip
    assert {call[0]: other.code(*call) for call in calls} == {call[0]: CODES.INVALID_CONTEXT for call in calls}
    refused(CODES.ILLEGAL_ADDRESS, other.clear, mine, 0, 64, theirs)
    refused(CODES.ILLEGAL_ADDRESS, other.copies, mine, there, 8, theirs)
    assert set(api.kinds()) == {"context", "memory"}
    other.after(theirs, event)  # another device's event may be waited for
    other.clear(there, 0, 64, theirs)
    other.wait(theirs)
    assert api.kinds() == []


def test_what_is_destroyed_is_gone(api: Api) -> None:
    stream, event, pool, module = api.stream(), api.event(), api.pool(), api.load()
    function = api.made("cuModuleGetFunction", module, b"copies")
    assert [api.device.streams, api.device.events, api.device.memory_pools, api.device.modules] == [1, 1, 1, 1]
    for destroy, handle in (
        ("cuStreamDestroy_v2", stream), ("cuEventDestroy_v2", event), ("cuMemPoolDestroy", pool),
        ("cuModuleUnload", module),
    ):  # fmt: skip
        api.call(destroy, handle)
        refused(CODES.INVALID_HANDLE, api.call, destroy, handle)
    assert [api.device.streams, api.device.events, api.device.memory_pools, api.device.modules] == [0, 0, 0, 0]
    refused(CODES.INVALID_HANDLE, api.wait, stream)
    refused(CODES.INVALID_HANDLE, api.launch, function, 1, 32, [], None)
    refused(CODES.INVALID_HANDLE, api.wait, ctypes.c_void_p(0xDEAD0))
    refused(CODES.INVALID_HANDLE, api.wait, event)  # a handle of another kind
    assert set(api.kinds()) == {"handle"}


def test_a_released_context_takes_all_with_it(driver: SimtDriver) -> None:
    with context(driver, DEVICE) as api:
        pointer, before = api.alloc(100), api.context
        driver.call("cuDevicePrimaryCtxRelease_v2", DEVICE)
        assert (api.device.allocations, api.device.used, api.device.contexts) == (0, 0, 0)
        refused(CODES.CONTEXT_IS_DESTROYED, api.alloc, 100)
        refused(CODES.INVALID_CONTEXT, api.call, "cuCtxPushCurrent_v2", before)
        refused(CODES.INVALID_CONTEXT, api.call, "cuDevicePrimaryCtxRelease_v2", DEVICE)
        again = Api(driver, DEVICE)
        refused(CODES.INVALID_VALUE, again.free, pointer)


# ---- When work runs, and in which order --------------------------------------------------------------------------


def test_work_runs_when_something_waits_for_it_and_only_as_far_as_needed(api: Api) -> None:
    one, two = api.stream(), api.stream()
    source, target = api.filled(ramp(64)), api.alloc(256)
    for stream in (one, one, two, two, two):
        api.copies(source, target if stream is one else api.alloc(256), 64, stream)
    api.driver.launches.clear()
    middle = api.event(two)
    api.copies(source, api.alloc(256), 64, two)
    assert api.driver.launches == []
    api.wait(one)
    assert api.driver.launches == 2 * [("copies", 2, 32)]
    api.call("cuEventSynchronize", middle)
    assert len(api.driver.launches) == 5
    api.call("cuCtxSynchronize")
    assert len(api.driver.launches) == 6
    assert api.kinds() == []


def test_an_event_orders_two_streams_and_without_it_they_race(api: Api) -> None:
    one, two, source, target = api.stream(), api.stream(), api.filled(ramp(64)), api.alloc(256)
    api.copies(source, target, 64, one)
    api.order(one, two)
    assert values_of(api, target, 64, two) == ramp(64).tolist()
    assert api.kinds() == []
    api.copies(source, target, 64, one)  # the host has waited for the other
    api.clear(source, 0, 256, two)
    api.driver.finish()
    assert "a memset and copies" in api.driver.findings[0].text or "copies and a memset" in api.driver.findings[0].text
    assert api.kinds() == ["race"]


def test_the_host_orders_what_it_has_waited_for(api: Api) -> None:
    one, two, memory = api.stream(), api.stream(), api.alloc(256)
    api.clear(memory, 0, 256, one)
    api.wait(one)
    api.clear(memory, 1, 256, two)
    api.driver.finish()
    assert api.kinds() == []
    api.clear(memory, 0, 256, one)
    api.driver.finish()  # it has run, and the host does not know
    assert api.kinds() == ["race"]


def test_reads_and_parts_of_an_allocation_do_not_race(api: Api) -> None:
    one, two, source = api.stream(), api.stream(), api.filled(ramp(64))
    halves = api.alloc(1 << 14)
    for stream, place in ((one, 0), (two, 1 << 13)):
        api.copies(source, api.alloc(256), 64, stream)
        api.copy(halves + place, source, 256, stream)
    api.driver.finish()
    assert api.kinds() == []
    api.copy(halves + 128, source, 256, two)
    api.driver.finish()
    assert api.kinds() == ["race"]


def test_a_kernel_that_only_reads_by_a_pointer_to_const_or_not_does_not_race(api: Api) -> None:
    one, two = api.stream(), api.stream()
    a, b = api.filled(ramp(32)), api.filled(2 * ramp(32))
    for stream in (one, two):
        api.launch("adds_by_struct", 1, 32, [sums(32, a, b, api.alloc(128))], stream)
    api.driver.finish()
    assert api.kinds() == []
    api.launch("adds_by_struct", 1, 32, [sums(32, a, 0, b)], one)
    api.driver.finish()
    assert api.kinds() == ["race"]


def test_what_is_read_after_an_event_is_not_taken_for_a_write(api: Api) -> None:
    one, two = api.stream(), api.stream()
    source, between, out = api.filled(ramp(32)), api.alloc(128), api.alloc(128)
    api.copies(source, between, 32, one)
    written = api.event(one)
    api.launch("adds_by_struct", 1, 32, [sums(32, between, 0, api.alloc(128))], one)
    for _ in range(3):
        api.code("cuStreamQuery", one)  # runs one of them
    api.after(two, written)
    api.copy(out, between, 128, two)
    api.driver.finish()
    assert api.kinds() == []


def test_what_a_copy_has_changed_is_not_taken_for_a_kernels_write(api: Api) -> None:
    one, two, memory = api.stream(), api.stream(), api.filled(ramp(32))
    for stream in (one, two):
        api.launch("adds_by_struct", 1, 32, [sums(32, memory, 0, api.alloc(128))], stream)
    api.wait(one)
    api.wait(two)
    api.clear(memory, 1, 128, one)
    api.wait(one)
    for stream in (one, two):
        api.launch("adds_by_struct", 1, 32, [sums(32, memory, 0, api.alloc(128))], stream)
    api.driver.finish()
    assert api.kinds() == []


class Sums(ctypes.Structure):
    """The argument of adds_by_struct."""

    _fields_ = [("n", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64), ("out", ctypes.c_uint64)]


def sums(n: int, a: int, b: int, out: int) -> Sums:
    return Sums(n, a, b, out)


def test_the_legacy_stream_waits_for_blocking_streams_and_they_for_it(api: Api) -> None:
    blocking, apart, memory = api.stream(BLOCKING), api.stream(NON_BLOCKING), api.alloc(64)
    for stream in (blocking, None, blocking, ctypes.c_void_p(1), ctypes.c_void_p(2), None):
        api.clear(memory, 1, 64, stream)
    api.call("cuCtxSynchronize")
    assert api.kinds() == []
    api.clear(memory, 1, 64, None)
    api.clear(memory, 1, 64, apart)
    api.call("cuCtxSynchronize")
    assert api.kinds() == ["race"]


def test_each_thread_has_its_own_default_stream(api: Api) -> None:
    memory, own = api.alloc(64), ctypes.c_void_p(2)

    def work() -> None:
        api.call("cuCtxPushCurrent_v2", api.context)
        api.clear(memory, 1, 64, own)

    api.clear(memory, 1, 64, own)
    api.clear(memory, 1, 64, own)
    api.driver.finish()
    assert api.kinds() == []
    in_thread(work)
    api.driver.finish()
    assert api.kinds() == ["race"]


def test_queries_and_times(api: Api) -> None:
    stream = api.stream()
    begin = api.event(stream)
    for _ in range(3):
        api.clear(api.alloc(64), 0, 64, stream)
    end, milliseconds = api.event(stream), ctypes.c_float(-1)
    refused(CODES.NOT_READY, api.call, "cuEventElapsedTime", ctypes.byref(milliseconds), begin, end)
    answers = [api.code("cuEventQuery", end) for _ in range(8)]  # each lets some of the work run
    assert answers == sorted(answers, reverse=True)
    assert (answers[0], answers[-1]) == (CODES.NOT_READY, 0)
    assert api.code("cuStreamQuery", stream) == 0
    api.call("cuEventElapsedTime", ctypes.byref(milliseconds), begin, end)
    assert milliseconds.value >= 0
    without = api.event(stream, flags=2)
    api.wait(stream)
    refused(CODES.INVALID_HANDLE, api.call, "cuEventElapsedTime", ctypes.byref(milliseconds), begin, without)


class Model:
    """Four blocks and four streams, the first of them the legacy one: what comes after what, as sets of operations."""

    def __init__(self) -> None:
        self.blocks = [np.full(16, number, np.int32) for number in range(4)]
        self.last: list[set[int]] = [set(), set(), set(), set()]  # the last operation of a stream, with all before it
        self.next: list[set[int]] = [set(), set(), set(), set()]  # what its next one comes after too
        self.known: set[int] = set()  # to the host
        self.accesses: list[tuple[int, bool, int, set[int]]] = []
        self.operations = 0

    def queue(self, stream: int, reads: tuple[int, ...] = (), writes: tuple[int, ...] = ()) -> set[int]:
        before = self.known | self.last[stream] | self.next[stream]
        before |= self.last[0] | self.last[1] if stream < 2 else set()  # the second is a blocking stream
        self.operations += 1
        self.next[stream], self.last[stream] = set(), before | {self.operations}
        self.accesses += [(block, block in writes, self.operations, before) for block in {*reads, *writes}]
        return self.last[stream]

    def order(self, first: int, second: int) -> None:
        self.next[second] = self.next[second] | self.queue(first)

    def wait(self, stream: int) -> None:
        self.known = self.known | self.last[stream] | self.next[stream]

    def races(self) -> bool:
        return any(
            block == other and (writes or too) and earlier not in before
            for at, (block, writes, _, before) in enumerate(self.accesses)
            for other, too, earlier, _ in self.accesses[:at]
            if earlier != self.accesses[at][2]
        )


def run_drawn(api: Api, rng: np.random.Generator, streams: list[Any]) -> bool:
    """Run a drawn program; return whether it races. If it does not, its answer is that of one stream."""
    model, blocks = Model(), [api.filled(np.full(16, number, np.int32)) for number in range(4)]
    for step in range(int(rng.integers(2, 10))):
        stream, other = (int(at) for at in rng.choice(4, 2, replace=False))
        one, two = (int(at) for at in rng.choice(4, 2, replace=False))
        what = rng.choice(["clear", "copy", "launch", "launch", "order", "order", "wait"])
        if what == "clear":
            api.clear(blocks[one], step + 100, 64, streams[stream])
            model.blocks[one][:] = (step + 100) * 0x01010101
            model.queue(stream, writes=(one,))
        elif what == "copy":
            api.copy(blocks[one], blocks[two], 64, streams[stream])
            model.blocks[one][:] = model.blocks[two]
            model.queue(stream, (two,), (one,))
        elif what == "launch":  # counts in one block, and writes its counts to another
            api.launch("arrivals", 1, 16, [blocks[one], blocks[two]], streams[stream])
            model.blocks[two][:] = model.blocks[one][0] + np.arange(16)
            model.blocks[one][0] += 16
            model.queue(stream, writes=(one, two))
        elif what == "order":
            api.order(streams[stream], streams[other])
            model.order(stream, other)
        else:
            api.wait(streams[stream])
            model.wait(stream)
    for stream in rng.permutation(4):
        api.wait(streams[stream])
    api.driver.finish()
    races = "race" in api.kinds()
    assert races == model.races()
    for block, expected in zip(blocks, model.blocks, strict=True):
        if not races:
            np.testing.assert_array_equal(api.driver.peek(block, 16, np.int32), expected)
        api.free(block)
    return races


@pytest.mark.parametrize("seed", range(4))
def test_drawn_programs_race_or_have_one_answer(api: Api, seed: int) -> None:
    """In whatever order their streams run; what races is what the definition says."""
    rng, streams = np.random.default_rng(seed), [None, api.stream(BLOCKING), api.stream(), api.stream()]
    racy = sum(run_drawn(api, rng, streams) for _ in range(250))
    assert 50 < racy < 200


def test_a_destroyed_stream_ends_its_work(api: Api) -> None:
    stream, source, target = api.stream(), api.filled(ramp(64)), api.alloc(256)
    api.copies(source, target, 64, stream)
    done = api.event(stream)
    api.call("cuStreamDestroy_v2", stream)
    api.call("cuEventSynchronize", done)
    assert values_of(api, target, 64, None) == ramp(64).tolist()
    assert api.kinds() == []


def test_threads_may_share_a_context(api: Api) -> None:
    source, wrong = api.filled(ramp(64)), []

    def work(turn: int) -> None:
        api.call("cuCtxPushCurrent_v2", api.context)
        stream = api.stream()
        for _ in range(20):
            target, out = api.alloc(256), np.zeros(64, np.float32)
            api.copies(source, target, 64, stream)
            api.down(out, target, stream)
            api.wait(stream)
            api.free(target)
            if out.tolist() != ramp(64).tolist():
                wrong.append(turn)

    api.function("copies")
    threads = [threading.Thread(target=work, args=(turn,)) for turn in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert api.kinds() == []


# ---- Memory ------------------------------------------------------------------------------------------------------


def test_freed_memory_is_not_used(api: Api) -> None:
    stream, source, kept = api.stream(), api.filled(ramp(64)), api.alloc(256)
    api.copies(source, kept, 64, stream)
    api.free(source)  # waits
    assert values_of(api, kept, 64, stream) == ramp(64).tolist()
    assert api.kinds() == []
    refused(CODES.ILLEGAL_ADDRESS, api.copies, source, kept, 64, stream)
    refused(CODES.ILLEGAL_ADDRESS, api.clear, source, 0, 256, stream)
    refused(CODES.INVALID_VALUE, api.free, source)
    refused(CODES.INVALID_VALUE, api.free, kept + 8)
    assert set(api.kinds()) == {"memory"}


def test_addresses_are_not_given_out_again_soon(api: Api) -> None:
    """Nor while they are in use."""
    rng, stream, living, seen = np.random.default_rng(1), api.stream(), list[tuple[int, int, int]](), set[int]()
    for turn in range(200):
        nbytes = int(rng.integers(1, 1 << 20))
        pointer = api.alloc(nbytes)
        assert turn > 60 or pointer not in seen
        seen.add(pointer)
        api.clear(pointer, turn, nbytes, stream)
        living.append((pointer, nbytes, turn))
        if len(living) > 8:
            pointer, nbytes, value = living.pop(int(rng.integers(len(living))))
            assert (api.driver.peek(pointer, nbytes, np.uint8) == value).all()
            api.free(pointer)
    assert api.kinds() == []
    assert max(seen) - min(seen) < 1 << 27


def test_copies_stay_within_an_allocation(api: Api) -> None:
    stream, memory, other = api.stream(), api.alloc(100), api.filled(ramp(64))
    for target, nbytes in ((memory, 101), (memory + 96, 8), (memory + 100, 1), (memory - 1, 1), (1 << 40, 1)):
        assert api.code("cuMemsetD8Async", ctypes.c_uint64(target), 0, ctypes.c_size_t(nbytes), stream) in (1, 700)
    refused(CODES.ILLEGAL_ADDRESS, api.copy, memory, other, 104, stream)
    refused(CODES.INVALID_VALUE, api.copy, other, other + 4, 8, stream)
    assert set(api.kinds()) == {"memory"}
    api.clear(memory, 0, 100, stream)
    api.clear(memory + 100, 0, 0, stream)
    api.copy(other, other + 128, 128, stream)
    assert values_of(api, other, 2, stream) == [32.0, 33.0]
    assert api.kinds() == []


def test_a_kernel_that_writes_behind_an_allocation_is_found(api: Api) -> None:
    stream, source, target = api.stream(), api.filled(ramp(65)), api.alloc(250)
    api.copies(source, target, 62, stream)
    api.wait(stream)
    assert api.kinds() == []
    for count in (63, 64, 65):
        api.copies(source, target, count, stream)
        api.wait(stream)
        assert api.kinds() == ["outside"]
    api.copies(source, target, 62, stream)
    api.wait(stream)
    assert api.kinds() == []


def test_an_argument_may_point_to_the_end_of_an_allocation(api: Api) -> None:
    stream, source = api.stream(), api.filled(ramp(64))
    api.launch("copies", 1, 32, [source + 256, source, ctypes.c_int(0)], stream)
    api.wait(stream)
    assert api.kinds() == []
    refused(CODES.ILLEGAL_ADDRESS, api.copies, source + 264, source, 1, stream)
    assert api.kinds() == ["memory"]


def test_memory_that_nothing_has_written_is_not_read_back(api: Api) -> None:
    stream, memory = api.stream(), api.alloc(1024)
    assert api.driver.peek(memory, 256, np.uint32).tolist() == 256 * [FRESH]
    assert np.isnan(api.driver.peek(memory, 256, np.float32)).all()
    out = np.zeros(256, np.float32)
    api.clear(memory, 0, 1000, stream)
    api.down(out, memory, stream)
    api.wait(stream)
    assert api.kinds() == ["uninitialised"]
    api.down(out[:250], memory, stream)
    api.wait(stream)
    assert api.kinds() == []


def test_padding_between_arrays_is_read_back_with_them(api: Api) -> None:
    stream, memory, out = api.stream(), api.alloc(1024), np.zeros(256, np.float32)
    for begin, nbytes in ((0, 100), (256, 256), (512, 40), (576, 448)):
        api.clear(memory + begin, 0, nbytes, stream)
    api.down(out, memory, stream)
    api.wait(stream)
    assert api.kinds() == []
    other = api.alloc(1024)
    for begin, nbytes in ((0, 256), (512, 512)):  # the second array is missing
        api.clear(other + begin, 0, nbytes, stream)
    api.down(out, other, stream)
    api.wait(stream)
    assert api.kinds() == ["uninitialised"]


@pytest.mark.parametrize("keys", [1, 0])
def test_the_host_cannot_read_device_memory(keys: int) -> None:
    """By protection keys where the processor has them, else by the protection of pages."""
    done = in_process(
        f"driver.set_number(-1, 'protection_keys', {keys}); api = Api(driver, 0)\n"
        "from driver_api import ctypes, np\n"
        "source, target = api.filled(np.arange(64, dtype='f4')), api.alloc(256); api.copies(source, target, 64, None)\n"
        "api.wait(); assert driver.peek(target, 64, 'f4').tolist() == list(range(64)); print('here', flush=True)\n"
        "ctypes.string_at(target, 1)\n"
    )
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "here\n"), done.stderr


@pytest.mark.parametrize("keys", [1, 0])
def test_kernels_cannot_access_pages_that_were_never_given_out(keys: int) -> None:
    """Whatever protects pages: what faults on one processor must not read zeros on another."""
    done = in_process(
        f"driver.set_number(-1, 'protection_keys', {keys}); api = Api(driver, 0)\n"
        "from driver_api import CODES, np\nfrom hopfuse_simt.driver import DriverError\n"
        "source = api.filled(np.arange(64, dtype='f4')); target = api.alloc(1 << 16)\n"
        "api.copies(source, target, 64, None); api.wait(); assert driver.report == '', driver.report\n"
        "api.copies(source, source, 1 << 15, None)\n"
        "try: api.wait()\n"
        "except DriverError as error: print(error.code == CODES.ILLEGAL_ADDRESS, driver.report)\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("True fault: "), done.stdout


def test_out_of_memory_is_per_device(both: tuple[Api, Api]) -> None:
    api, other = both
    api.device.memory = 1000
    kept = api.alloc(600)
    refused(CODES.OUT_OF_MEMORY, api.alloc, 401)
    api.alloc(400)
    api.free(kept)
    api.alloc(600)
    api.call("cuCtxPushCurrent_v2", other.context)
    other.alloc(5000)
    assert api.kinds() == []


def test_a_copy_of_pageable_memory_is_waited_for(api: Api) -> None:
    stream, memory, given = api.stream(), api.alloc(256), ramp(64)
    api.up(memory, given, stream)
    api.wait(stream)
    assert values_of(api, memory, 64, stream) == given.tolist()
    assert api.kinds() == []
    api.up(memory, given, stream)
    api.clear(memory, 0, 4, stream)  # by when the host's array may be gone
    api.wait(stream)
    assert api.kinds() == ["pageable"]
    out = np.zeros(64, np.float32)
    api.down(out, memory, stream)
    api.clear(memory, 0, 4, stream)
    api.wait(stream)
    assert not out.any()
    assert api.kinds() == ["pageable"]


def test_pinned_memory_is_read_when_the_copy_runs(api: Api) -> None:
    stream, memory, given = api.stream(), api.alloc(256), api.pinned(64)
    given[:] = ramp(64)
    api.up(memory, given, stream)
    api.clear(memory, 0, 4, stream)
    assert values_of(api, memory, 64, stream)[1:] == ramp(64).tolist()[1:]
    api.up(memory, given, stream)
    given[:] = 5
    assert values_of(api, memory, 64, stream) == 64 * [5.0]
    assert api.kinds() == []


def test_pinned_memory_outlives_its_copies(api: Api) -> None:
    stream, memory, given = api.stream(), api.alloc(256), api.pinned(64)
    given[:] = ramp(64)
    api.up(memory, given, stream)
    api.free_pinned(given)
    api.wait(stream)
    assert api.kinds() == ["pinned"]
    assert set(given.view(np.uint32)) == set(api.driver.peek(memory, 64, np.uint32)) == {FREED}
    refused(CODES.INVALID_VALUE, api.up, memory, given, stream)
    refused(CODES.INVALID_VALUE, api.free_pinned, given)
    assert set(api.kinds()) == {"pinned", "memory"}
    larger = api.alloc(512)
    beyond = ctypes.c_uint64(larger), ctypes.c_void_p(api.pinned(64).ctypes.data), ctypes.c_size_t(260)
    refused(CODES.INVALID_VALUE, api.call, "cuMemcpyHtoDAsync_v2", *beyond, stream)
    assert api.kinds() == ["pinned"]
    again = api.pinned(64)
    again[:] = ramp(64)
    api.up(memory, again, stream)
    api.wait(stream)
    api.free_pinned(again)
    assert api.kinds() == []
    assert api.device.pinned == 1


def attributes_of(api: Api, pointer: int) -> list[int]:
    """Return memory type, device, begin and size."""
    names = (ctypes.c_int * 4)(2, 9, 11, 12)
    values = [ctypes.c_int(), ctypes.c_int(), ctypes.c_uint64(), ctypes.c_uint64()]
    places = (ctypes.c_void_p * 4)(*[ctypes.addressof(value) for value in values])
    api.call("cuPointerGetAttributes", 4, names, places, ctypes.c_uint64(pointer))
    return [value.value for value in values]


def test_pointers_are_known(api: Api) -> None:
    memory, given, pageable = api.alloc(256), api.pinned(64), ramp(64)
    assert attributes_of(api, memory + 8) == [2, DEVICE, memory, 256]
    assert attributes_of(api, given.ctypes.data + 8) == [1, DEVICE, given.ctypes.data, 256]
    assert attributes_of(api, pageable.ctypes.data)[0] == 0
    value = ctypes.c_int()
    refused(CODES.INVALID_VALUE, api.call, "cuPointerGetAttribute", ctypes.byref(value), 2,
            ctypes.c_uint64(pageable.ctypes.data))  # fmt: skip
    api.free(memory)
    assert attributes_of(api, memory)[0] == 0


# ---- Pools -------------------------------------------------------------------------------------------------------


def set_attribute(api: Api, pool: Any, name: int, value: int) -> None:
    api.call("cuMemPoolSetAttribute", pool, name, ctypes.byref(ctypes.c_uint64(value)))


def test_a_pool_keeps_what_is_below_its_threshold(api: Api) -> None:
    pool, stream = api.pool(), api.stream()
    set_attribute(api, pool, RELEASE_THRESHOLD, 1000)
    blocks = [api.pool_alloc(pool, size, stream) for size in (600, 900)]
    numbers = [api.attribute(pool, name) for name in (USED, USED_HIGH, RESERVED, RESERVED_HIGH)]
    assert numbers == [1500, 1500, 1500, 1500]
    for block in blocks:
        api.pool_free(block, stream)
    api.call("cuMemPoolTrimTo", pool, ctypes.c_size_t(0))  # too early: the stream has not come so far
    assert (api.attribute(pool, USED), api.attribute(pool, RESERVED), api.device.used) == (0, 1500, 1500)
    api.wait(stream)
    assert (api.attribute(pool, RESERVED), api.device.used) == (1000, 1000)
    api.call("cuMemPoolTrimTo", pool, ctypes.c_size_t(300))
    assert (api.attribute(pool, RESERVED), api.device.used) == (300, 300)
    set_attribute(api, pool, USED_HIGH, 0)
    assert [api.attribute(pool, name) for name in (USED_HIGH, RESERVED_HIGH)] == [0, 1500]
    api.call("cuMemPoolDestroy", pool)
    assert api.device.used == 0
    assert api.kinds() == []


def test_a_pool_gives_memory_out_again_in_the_order_of_streams(api: Api) -> None:
    pool, one, two = api.pool(), api.stream(), api.stream()
    set_attribute(api, pool, RELEASE_THRESHOLD, 1 << 20)
    for stream in (one, one, two):
        api.pool_free(api.pool_alloc(pool, 600, stream), stream)
    assert api.attribute(pool, RESERVED) == 1200  # the second stream could not have the first one's
    api.order(one, two)
    kept = [api.pool_alloc(pool, 600, two) for _ in range(2)]
    assert api.attribute(pool, RESERVED) == 1200
    assert len({*kept}) == 2
    api.wait(two)
    assert api.kinds() == []


def test_memory_of_a_pool_is_used_between_its_allocation_and_its_end(api: Api) -> None:
    pool, one, two = api.pool(), api.stream(), api.stream()
    block = api.pool_alloc(pool, 64, one)
    api.order(one, two)
    api.clear(block, 0, 64, two)
    api.order(two, one)
    api.pool_free(block, one)
    refused(CODES.ILLEGAL_ADDRESS, api.clear, block, 0, 64, one)
    assert api.kinds() == ["memory"]
    api.driver.finish()
    assert api.kinds() == []
    refused(CODES.ILLEGAL_ADDRESS, api.clear, block, 0, 64, one)
    assert api.kinds() == ["memory"]
    block = api.pool_alloc(pool, 64, one)
    api.clear(block, 0, 64, two)
    api.driver.finish()
    assert api.kinds() == ["race"]
    block = api.pool_alloc(pool, 64, one)
    api.order(one, two)
    api.clear(block, 0, 64, two)
    api.pool_free(block, one)
    api.driver.finish()
    assert api.kinds() == ["race"]


def test_what_a_pool_keeps_is_not_free_for_others(api: Api) -> None:
    api.device.memory = 1000
    pool, stream = api.pool(), api.stream()
    set_attribute(api, pool, RELEASE_THRESHOLD, 1 << 20)
    api.pool_free(api.pool_alloc(pool, 800, stream), stream)
    api.wait(stream)
    refused(CODES.OUT_OF_MEMORY, api.alloc, 300)
    api.pool_free(api.pool_alloc(pool, 1000, stream), stream)  # the pool itself may give it back first
    api.wait(stream)
    api.call("cuMemPoolTrimTo", pool, ctypes.c_size_t(0))
    api.alloc(1000)
    refused(CODES.OUT_OF_MEMORY, api.pool_alloc, pool, 1, stream)
    assert api.kinds() == []


def test_a_destroyed_pool_ends_with_its_last_block(api: Api) -> None:
    pool, stream = api.pool(), api.stream()
    block = api.pool_alloc(pool, 800, stream)
    api.call("cuMemPoolDestroy", pool)
    api.clear(block, 0, 800, stream)
    api.pool_free(block, stream)
    api.wait(stream)
    assert api.device.used == 0
    assert api.kinds() == []


def test_a_device_may_have_no_pools(api: Api) -> None:
    api.device.pools = False
    refused(CODES.NOT_SUPPORTED, api.pool)


def test_a_pool_has_a_limit(api: Api) -> None:
    pool, stream = api.pool(1000), api.stream()
    api.pool_alloc(pool, 900, stream)
    refused(CODES.OUT_OF_MEMORY, api.pool_alloc, pool, 200, stream)


# ---- Captures ----------------------------------------------------------------------------------------------------


def test_a_graph_repeats_what_was_recorded_with_what_its_memory_has_then(api: Api) -> None:
    stream, other, given, middle, target = api.stream(), api.stream(), api.pinned(64), api.alloc(256), api.alloc(256)
    out = api.pinned(64)
    api.function("copies")
    api.begin(stream)
    api.up(middle, given, stream)
    api.copies(middle, target, 64, stream)
    api.clear(target, 0, 4, stream)
    api.down(out, target, stream)
    graph = api.end(stream)
    replay = api.instantiate(graph)
    assert (api.driver.launches, api.driver.graph_allocations) == ([], 0)
    assert [event.kind for event in api.driver.events[-4:]] == ["upload", "launch", "clear", "download"]
    count = ctypes.c_size_t(8)
    nodes, kinds = (ctypes.c_void_p * 8)(), []
    api.call("cuGraphGetNodes", graph, None, ctypes.byref(count))
    assert count.value == 4
    api.call("cuGraphGetNodes", graph, nodes, ctypes.byref(count))
    for node in nodes[:4]:
        kind = ctypes.c_int()
        api.call("cuGraphNodeGetType", ctypes.c_void_p(node), ctypes.byref(kind))
        kinds.append(kind.value)
    assert kinds == [1, 0, 2, 1]
    api.call("cuGraphDestroy", graph)
    for turn in range(2):
        given[:] = ramp(64) + turn
        api.call("cuGraphLaunch", replay, other)
        assert not (out == given).all()
        api.wait(other)
        assert out.tolist() == [0, *given.tolist()[1:]]
    assert api.driver.launches == 2 * [("copies", 2, 32)]
    assert api.kinds() == []


def fails_in_capture(api: Api, stream: Any, call: Callable[[], Any], code: int, kind: str) -> None:
    """The call fails, and with it the capture; the stream works again afterwards."""
    refused(code, call)
    status = ctypes.c_int()
    api.call("cuStreamIsCapturing", stream, ctypes.byref(status))
    assert status.value == 2
    refused(CODES.STREAM_CAPTURE_INVALIDATED, api.clear, api_memory(api), 0, 4, stream)
    refused(CODES.STREAM_CAPTURE_INVALIDATED, api.end, stream)
    assert api.kinds() == [kind]
    api.clear(api_memory(api), 0, 4, stream)
    api.wait(stream)


def api_memory(api: Api) -> int:
    """Return memory that the test has allocated before."""
    memory: int = api.functions["memory"]
    return memory


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("poll", CODES.STREAM_CAPTURE_UNSUPPORTED),
        ("stream", CODES.STREAM_CAPTURE_UNSUPPORTED), ("query", CODES.STREAM_CAPTURE_UNSUPPORTED),
        ("context", CODES.STREAM_CAPTURE_UNSUPPORTED), ("event", CODES.CAPTURED_EVENT),
        ("pageable", CODES.STREAM_CAPTURE_UNSUPPORTED), ("back", CODES.STREAM_CAPTURE_UNSUPPORTED),
        ("alloc", CODES.STREAM_CAPTURE_UNSUPPORTED), ("free", CODES.STREAM_CAPTURE_UNSUPPORTED),
        ("pinned", CODES.STREAM_CAPTURE_UNSUPPORTED), ("outside", CODES.STREAM_CAPTURE_ISOLATION),
        ("nested", CODES.ILLEGAL_STATE), ("replay", CODES.NOT_SUPPORTED), ("destroy", CODES.STREAM_CAPTURE_UNSUPPORTED),
    ],
)  # fmt: skip
def test_a_capture_forbids(api: Api, what: str, code: int) -> None:
    stream, memory, event, given = api.stream(), api.alloc(256), api.event(), ramp(64)
    outside = api.event(api.stream())
    api.begin(stream)
    api.clear(memory, 0, 4, stream)
    replay = api.instantiate(api.end(stream))
    api.functions["memory"] = memory
    calls: dict[str, Callable[[], Any]] = {
        "poll": lambda: api.call("cuEventQuery", outside),
        "stream": lambda: api.wait(stream), "query": lambda: api.call("cuStreamQuery", stream),
        "context": lambda: api.call("cuCtxSynchronize"), "event": lambda: api.call("cuEventSynchronize", event),
        "pageable": lambda: api.up(memory, given, stream), "back": lambda: api.down(given, memory, stream),
        "alloc": lambda: api.alloc(64), "free": lambda: api.free(memory), "pinned": lambda: api.pinned(4),
        "outside": lambda: api.after(stream, outside), "nested": lambda: api.begin(stream),
        "replay": lambda: api.call("cuGraphLaunch", replay, stream),
        "destroy": lambda: api.call("cuStreamDestroy_v2", stream),
    }  # fmt: skip
    api.begin(stream)
    api.clear(memory, 0, 4, stream)
    api.call("cuEventRecord", event, stream)
    fails_in_capture(api, stream, calls[what], code, "capture")


@pytest.mark.parametrize(
    ("mode", "exchanged", "elsewhere", "allowed"),
    [
        (GLOBAL, GLOBAL, False, False), (GLOBAL, GLOBAL, True, False), (GLOBAL, THREAD_LOCAL, True, True),
        (THREAD_LOCAL, GLOBAL, False, False), (THREAD_LOCAL, GLOBAL, True, True), (RELAXED, GLOBAL, False, True),
        (RELAXED, GLOBAL, True, True), (GLOBAL, RELAXED, False, True),
    ],
)  # fmt: skip
def test_modes_of_captures(api: Api, mode: int, exchanged: int, elsewhere: bool, allowed: bool) -> None:
    stream, pointer = api.stream(), ctypes.c_uint64()

    def allocate() -> int:
        if elsewhere:
            api.call("cuCtxPushCurrent_v2", api.context)
        own = ctypes.c_int(exchanged)
        api.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(own))
        code = api.code("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(8))
        api.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(own))
        assert own.value == exchanged
        return code

    api.begin(stream, mode)
    code = in_thread(allocate) if elsewhere else allocate()
    assert code == (0 if allowed else CODES.STREAM_CAPTURE_UNSUPPORTED)
    if allowed:
        api.end(stream)
    else:
        refused(CODES.STREAM_CAPTURE_INVALIDATED, api.end, stream)
    assert api.kinds() == ([] if allowed else ["capture"])


def test_other_streams_work_beside_a_capture(api: Api) -> None:
    stream, other, memory, source = api.stream(), api.stream(), api.alloc(256), api.filled(ramp(64))
    api.begin(stream)
    api.clear(memory, 0, 256, stream)
    assert values_of(api, source, 64, other) == ramp(64).tolist()
    assert values_of(api, source, 64, None) == ramp(64).tolist()
    api.end(stream)
    assert api.kinds() == []
    blocking = api.stream(BLOCKING)
    api.begin(blocking)
    refused(CODES.STREAM_CAPTURE_IMPLICIT, api.clear, source, 0, 4, None)
    refused(CODES.STREAM_CAPTURE_INVALIDATED, api.end, blocking)
    refused(CODES.STREAM_CAPTURE_UNSUPPORTED, api.begin, None)
    assert set(api.kinds()) == {"capture"}


def test_a_stream_that_joins_a_capture_comes_back(api: Api) -> None:
    one, two, memory = api.stream(), api.stream(), api.alloc(512)
    api.begin(one)
    api.clear(memory, 0, 256, one)
    api.order(one, two)
    api.clear(memory + 256, 0, 256, two)
    api.order(two, one)
    api.clear(memory, 0, 512, one)
    replay = api.instantiate(api.end(one))
    api.call("cuGraphLaunch", replay, two)
    api.wait(two)
    assert api.kinds() == []
    api.begin(one)
    api.order(one, two)
    api.clear(memory, 0, 256, two)
    refused(CODES.STREAM_CAPTURE_UNMATCHED, api.end, two)
    refused(CODES.STREAM_CAPTURE_INVALIDATED, api.end, one)
    api.begin(one)
    api.order(one, two)
    api.clear(memory, 0, 256, two)
    refused(CODES.STREAM_CAPTURE_UNJOINED, api.end, one)
    api.begin(one)
    event = api.event(one)
    refused(CODES.STREAM_CAPTURE_UNSUPPORTED, api.wait, one)
    refused(CODES.STREAM_CAPTURE_INVALIDATED, api.after, two, event)
    refused(CODES.STREAM_CAPTURE_INVALIDATED, api.event, one)
    refused(CODES.STREAM_CAPTURE_INVALIDATED, api.end, one)
    api.begin(one)
    api.begin(two)
    refused(CODES.STREAM_CAPTURE_MERGE, api.order, one, two)
    assert set(api.kinds()) == {"capture"}
    for stream in (one, two):
        refused(CODES.STREAM_CAPTURE_INVALIDATED, api.end, stream)
        api.wait(stream)
    refused(CODES.ILLEGAL_STATE, api.end, one)


def test_two_branches_of_a_graph_may_not_touch_the_same_memory(api: Api) -> None:
    one, two, memory = api.stream(), api.stream(), api.alloc(512)
    for place in (256, 128):  # apart, then not
        api.begin(one)
        api.order(one, two)
        api.clear(memory, 0, 256, one)
        api.clear(memory + place, 0, 256, two)
        api.order(two, one)
        replay = api.instantiate(api.end(one))
        api.call("cuGraphLaunch", replay, one)
        api.wait(one)
        assert api.kinds() == ([] if place == 256 else ["race"])


def test_a_capture_ends_in_the_thread_that_began_it(api: Api) -> None:
    stream = api.stream()

    def end() -> int:
        api.call("cuCtxPushCurrent_v2", api.context)
        return api.code("cuStreamEndCapture", stream, ctypes.byref(ctypes.c_void_p()))

    api.begin(stream)
    assert in_thread(end) == CODES.STREAM_CAPTURE_WRONG_THREAD
    api.end(stream)
    api.begin(stream, RELAXED)
    assert in_thread(end) == 0


def test_functions_are_loaded_before_a_capture(api: Api) -> None:
    stream, source, target, module = api.stream(), api.filled(ramp(64)), api.alloc(256), api.load()
    function = api.made("cuModuleGetFunction", module, b"copies")
    arguments = [source, target, ctypes.c_int(64)]
    api.begin(stream)
    api.launch(function, 2, 32, arguments, stream)
    api.end(stream)
    assert api.kinds() == ["load"]
    api.begin(stream)
    api.launch(function, 2, 32, arguments, stream)
    api.end(stream)
    assert api.kinds() == []
    api.begin(stream, RELAXED)
    api.load()
    api.end(stream)
    assert api.kinds() == ["load"]


def test_allocations_in_a_capture_are_counted(api: Api) -> None:
    pool, stream, out = api.pool(), api.stream(), api.pinned(16)
    api.begin(stream)
    block = api.pool_alloc(pool, 64, stream)
    api.clear(block, 0, 64, stream)
    api.down(out, block, stream)
    api.pool_free(block, stream)
    replay = api.instantiate(api.end(stream))
    assert api.driver.graph_allocations == 1
    api.call("cuGraphLaunch", replay, stream)
    api.wait(stream)
    assert not out.any()
    assert api.kinds() == []
    kept = api.pool_alloc(pool, 64, stream)
    api.begin(stream)
    refused(CODES.INVALID_VALUE, api.pool_free, kept, stream)
    refused(CODES.STREAM_CAPTURE_INVALIDATED, api.end, stream)


@pytest.mark.parametrize("what", ["device", "pinned"])
def test_a_graph_does_not_own_its_memory(api: Api, what: str) -> None:
    stream, memory, given = api.stream(), api.alloc(256), api.pinned(64)
    api.begin(stream)
    api.up(memory, given, stream)
    replay = api.instantiate(api.end(stream))
    if what == "device":
        api.free(memory)
        refused(CODES.ILLEGAL_ADDRESS, api.call, "cuGraphLaunch", replay, stream)
        assert api.kinds() == ["memory"]
    else:
        api.free_pinned(given)
        api.call("cuGraphLaunch", replay, stream)
        api.wait(stream)
        assert api.kinds() == ["pinned"]


def test_launches_of_a_graph_follow_each_other(api: Api) -> None:
    one, two, memory = api.stream(), api.stream(), api.alloc(256)
    api.begin(one)
    api.clear(memory, 0, 256, one)
    replay = api.instantiate(api.end(one))
    api.call("cuGraphLaunch", replay, one)
    api.call("cuGraphLaunch", replay, two)
    api.driver.finish()
    assert api.kinds() == []
    api.clear(memory, 0, 256, one)
    api.driver.finish()
    assert api.kinds() == ["race"]


def test_a_replay_fails_if_fewer_blocks_run_at_once_than_before(api: Api) -> None:
    stream, counter, out = api.stream(), api.filled(np.zeros(1, np.uint32)), api.alloc(4 * 64)
    api.function("meets")
    api.begin(stream)
    api.launch("meets", 2, 32, [counter, ctypes.c_int(0), out], stream, 128, together=True)
    replay = api.instantiate(api.end(stream))
    api.call("cuGraphLaunch", replay, stream)
    api.wait(stream)
    api.device.blocks_at_once = 1
    refused(CODES.COOPERATIVE_LAUNCH_TOO_LARGE, api.call, "cuGraphLaunch", replay, stream)
    assert api.driver.peek(out, 64, np.uint32).tolist() == 32 * [0] + 32 * [1]
    assert api.kinds() == []


# ---- Modules and launches ----------------------------------------------------------------------------------------


def test_images_that_are_not_the_emulators_are_refused(api: Api) -> None:
    refused(CODES.NO_BINARY_FOR_GPU, api.load, b"fatbin of the package")
    refused(CODES.NO_BINARY_FOR_GPU, api.load, b"\x7fELF")
    refused(CODES.INVALID_IMAGE, api.load, b".version 8.0")
    refused(CODES.INVALID_IMAGE, api.load, b"")
    image = api.driver.images([SOURCE])[SOURCE.name]
    api.device.capability = 80
    refused(CODES.NO_BINARY_FOR_GPU, api.load, image)
    api.device.capability = 90
    api.driver.fail_next("cuModuleLoadData", CODES.OUT_OF_MEMORY)
    refused(CODES.OUT_OF_MEMORY, api.load, image)
    module = api.load(image)
    function = api.made("cuModuleGetFunction", module, b"copies")
    assert api.made("cuModuleGetFunction", module, b"copies").value == function.value
    refused(CODES.NOT_FOUND, api.made, "cuModuleGetFunction", module, b"nothing")
    assert api.kinds() == []


def test_arguments_have_the_kernels_sizes(api: Api) -> None:
    function, stream, found = api.function("adds_by_struct"), api.stream(), []
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    for name, count in (("adds_by_struct", 1), ("copies", 3)):
        for index in range(count):
            api.call("cuFuncGetParamInfo", api.function(name), index, ctypes.byref(offset), ctypes.byref(size))
            found.append((offset.value, size.value))
    assert found == [(0, 32), (0, 8), (8, 8), (16, 4)]
    refused(CODES.INVALID_VALUE, api.call, "cuFuncGetParamInfo", function, 1, ctypes.byref(offset), None)
    a, out = api.filled(ramp(32)), api.alloc(128)
    packed = sums(32, a, a, out)
    for nbytes in (32, 24, 40):
        given = ctypes.c_size_t(nbytes)
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(given), None)
        code = api.code("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, stream, None, extra)
        assert code == (0 if nbytes == 32 else CODES.INVALID_VALUE)
    assert values_of(api, out, 32, stream) == (2 * ramp(32)).tolist()
    assert set(api.kinds()) == {"arguments"}
    assert api.code("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, stream, None, None) == CODES.INVALID_VALUE
    assert api.kinds() == ["arguments"]


@pytest.mark.parametrize(("grid", "block"), [(0, 32), (1, 0), (1, 1025)])
def test_sizes_of_a_launch(api: Api, grid: int, block: int) -> None:
    memory = api.alloc(256)
    refused(CODES.INVALID_VALUE, api.launch, "copies", grid, block, [memory, memory, ctypes.c_int(0)], None)
    refused(CODES.INVALID_VALUE, api.launch, "bounded", 1, 65, [memory], None)
    assert api.kinds() == ["launch", "launch"]
    api.launch("bounded", 1, 64, [memory], None)
    assert api.driver.peek(memory, 64, np.int32).tolist() == 64 * [1]


def test_much_shared_memory_is_asked_for(api: Api) -> None:
    function, out, arguments = api.function("dynamic_shared_words"), api.alloc(128), None
    arguments = [out]
    api.launch(function, 1, 32, arguments, None, 48 * 1024)
    refused(CODES.INVALID_VALUE, api.launch, function, 1, 32, arguments, None, 48 * 1024 + 4)
    assert api.kinds() == ["launch"]
    blocks = ctypes.c_int()
    occupancy = "cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(blocks), function, 32
    api.call(*occupancy, ctypes.c_size_t(100 * 1024))
    assert blocks.value == 0
    api.call("cuFuncSetAttribute", function, SHARED_ATTRIBUTE, 100 * 1024)
    api.call(*occupancy, ctypes.c_size_t(100 * 1024))
    assert blocks.value == 2
    api.launch(function, 1, 32, arguments, None, 100 * 1024)
    refused(CODES.INVALID_VALUE, api.call, "cuFuncSetAttribute", function, SHARED_ATTRIBUTE, 228 * 1024)
    assert set(api.driver.peek(out, 32, np.uint32)) == {0xFFFFFFFF}
    assert api.kinds() == []


def test_cooperative_launches(api: Api) -> None:
    counter, out, stream = api.filled(np.zeros(1, np.uint32)), api.alloc(4 * 160), api.stream()
    arguments = [counter, ctypes.c_int(0), out]

    def launch() -> None:
        api.launch("meets", 5, 32, arguments, stream, 128, together=True)

    refused(CODES.COOPERATIVE_LAUNCH_TOO_LARGE, launch)
    api.device.blocks_at_once = 5
    launch()
    api.device.cooperative = False
    refused(CODES.NOT_SUPPORTED, launch)
    assert set(api.kinds()) == {"launch"}
    assert api.driver.peek(out, 160, np.uint32).tolist() == np.repeat(np.arange(5), 32).tolist()
    assert api.driver.counters[-1].grid_barriers == 1


def arrivals(api: Api, order: str, seed: int) -> list[int]:
    api.device.order, api.device.seed = order, seed
    counter, place = api.filled(np.zeros(1, np.int32)), api.alloc(256)
    api.launch("arrivals", 4, 16, [counter, place], None)
    return [int(one) for one in api.driver.peek(place, 64, np.int32)]


def test_orders_of_threads(api: Api) -> None:
    assert arrivals(api, "forward", 0) == list(range(64))
    assert arrivals(api, "reverse", 0) == list(range(64))[::-1]
    assert arrivals(api, "shuffle", 3) == arrivals(api, "shuffle", 3) != arrivals(api, "shuffle", 4)
    assert api.driver.counters[-1].atomics == 64
    with pytest.raises(ValueError, match="allowed: forward, reverse, shuffle"):
        api.device.order = "backward"


def test_a_kernels_error_is_the_contexts(driver: SimtDriver) -> None:
    with context(driver, DEVICE) as api:
        api.launch("traps", 1, 3, [api.filled(np.array([1, -2, 3], np.int32))], None)
        refused(CODES.ILLEGAL_INSTRUCTION, api.wait)
        assert "thread (1,0,0)" in driver.report
        refused(CODES.ILLEGAL_INSTRUCTION, api.alloc, 8)
        refused(CODES.ILLEGAL_INSTRUCTION, api.stream)
        assert api.device.error == CODES.ILLEGAL_INSTRUCTION
        assert api.kinds() == ["kernel"]
    with context(driver, DEVICE) as api:
        api.alloc(8)
        given = api.filled(np.array([1, 0], np.int32))
        api.launch("divides", 1, 2, [given, api.alloc(8)], None)
        refused(CODES.ILLEGAL_ADDRESS, api.wait)
        assert "division" in driver.report


def test_a_null_pointer_is_an_illegal_address(api: Api) -> None:
    api.launch("copies", 1, 4, [0, api.alloc(16), ctypes.c_int(4)], None)
    refused(CODES.ILLEGAL_ADDRESS, api.wait)
    assert "bad or misaligned access" in api.driver.report


# ---- The driver --------------------------------------------------------------------------------------------------


def address(api: Api, name: str, version: int) -> tuple[int, int]:
    """Return the address of an entry point, or 0, and why."""
    pointer, status = ctypes.c_void_p(), ctypes.c_int(-1)
    api.call("cuGetProcAddress_v2", name.encode(), ctypes.byref(pointer), version, ctypes.c_uint64(0),
             ctypes.byref(status))  # fmt: skip
    return pointer.value or 0, status.value


def test_entry_points_are_found_by_name_and_version(api: Api) -> None:
    def exported(name: str) -> int:
        return ctypes.cast(getattr(api.driver.library, name), ctypes.c_void_p).value or 0

    assert address(api, "cuMemAlloc", 12000) == (exported("cuMemAlloc_v2"), 0)
    assert address(api, "cuDeviceGetUuid", 12000) == (exported("cuDeviceGetUuid_v2"), 0)
    assert address(api, "cuDeviceGetUuid", 11000) == (exported("cuDeviceGetUuid"), 0)
    assert address(api, "cuFuncGetParamInfo", 12000) == (0, 2)
    assert address(api, "cuNothing", 12000) == (0, 1)
    before = api.driver.driver_version
    api.driver.driver_version = 12000
    try:
        assert address(api, "cuFuncGetParamInfo", 13000) == (0, 1)
        version = ctypes.c_int()
        api.call("cuDriverGetVersion", ctypes.byref(version))
        assert version.value == 12000
    finally:
        api.driver.driver_version = before


def test_calls_can_be_made_to_fail(api: Api) -> None:
    api.driver.fail_next("cuMemAlloc_v2", CODES.OUT_OF_MEMORY, skip=1, count=2)
    api.alloc(8)
    for _ in range(2):
        refused(CODES.OUT_OF_MEMORY, api.alloc, 8)
    api.alloc(8)
    assert api.driver.calls("cuMemAlloc_v2") == 4
    api.driver.fail_next("cuMemAlloc_v2", CODES.OUT_OF_MEMORY, count=0)
    for _ in range(3):
        refused(CODES.OUT_OF_MEMORY, api.alloc, 8)
    api.driver.clear()
    api.alloc(8)
    with pytest.raises(KeyError):
        api.driver.fail_next("cuNothing", 1)
    assert [event[:2] for event in api.driver.events] == [("allocate", 8)]


def test_errors_have_names(api: Api) -> None:
    assert api.driver.error_name(700) == "CUDA_ERROR_ILLEGAL_ADDRESS"
    text = ctypes.c_char_p()
    api.call("cuGetErrorString", 2, ctypes.byref(text))
    assert text.value == b"out of memory"
    refused(CODES.INVALID_VALUE, api.call, "cuGetErrorName", 12345, ctypes.byref(text))


def test_a_forked_child_has_no_driver(api: Api) -> None:
    pid = os.fork()
    if pid == 0:
        codes = [api.code("cuCtxSynchronize"), api.code("cuInit", 0)]
        os._exit(0 if codes == 2 * [CODES.NOT_INITIALIZED] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    api.alloc(8)


def test_a_driver_that_does_nothing(api: Api) -> None:
    source, target, stream = api.filled(ramp(64)), api.alloc(256), api.stream()
    api.driver.noop = True
    api.copies(source, target, 64, stream)
    api.clear(target, 0, 256, stream)
    api.wait(stream)
    api.driver.noop = False
    assert set(api.driver.peek(target, 64, np.uint32)) == {FRESH}
    assert (api.driver.launches, api.kinds()) == ([], [])


def test_a_new_machine_has_nothing_of_the_old_one() -> None:
    done = in_process(
        "api = Api(driver, 2); api.alloc(64); driver.devices[2].memory = 5; driver.reset()\n"
        "assert (driver.devices[2].used, driver.devices[2].memory, driver.events) == (0, 1 << 40, [])\n"
        "api = Api(driver, 2); api.free(api.alloc(64)); assert driver.findings == []\n"
    )
    assert done.returncode == 0, done.stderr


# ---- The sanitizers' builds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", SANITIZED)
def test_kernels_of_the_sanitizers_have_device_memory_at_its_addresses(driver: SimtDriver, build: str) -> None:
    image = driver.images([SOURCE], build)[SOURCE.name]
    for turn in range(2):  # the second time it is started again
        with context(driver, DEVICE) as api:
            stream, source, target = api.stream(), api.filled(ramp(64)), api.alloc(256)
            function = api.made("cuModuleGetFunction", api.load(image), b"copies")
            for count in (64, 10):
                api.launch(function, 2, 32, [source, target, ctypes.c_int(count)], stream)
            assert values_of(api, target, 64, stream) == ramp(64).tolist()
            assert [launch[0] for launch in driver.launches] == 2 * ["copies"]
            assert driver.counters[0].threads == 64
            trap = api.made("cuModuleGetFunction", api.load(image), b"traps")
            api.launch(trap, 1, 1, [api.filled(np.array([-1], np.int32))], stream)
            refused(CODES.ILLEGAL_INSTRUCTION, api.wait, stream)
            assert api.kinds() == ["kernel"], turn


@pytest.mark.full
def test_an_address_beyond_an_allocation_is_found(driver: SimtDriver) -> None:
    image = driver.images([SOURCE], "asan")[SOURCE.name]
    for count, freed in ((64, False), (63, False), (62, False), (62, True)):
        with context(driver, DEVICE) as api:
            stream, source, target = api.stream(), api.filled(ramp(64)), api.alloc(250)
            function = api.made("cuModuleGetFunction", api.load(image), b"copies")
            if freed:
                api.free(api.filled(ramp(64)))
            api.launch(function, 2, 32, [source, target, ctypes.c_int(count)], stream)
            if count == 62:
                api.wait(stream)
                continue
            refused(CODES.ILLEGAL_ADDRESS, api.wait, stream)
            assert driver.report.startswith("address: ")
            assert "kernel copies" in driver.report
