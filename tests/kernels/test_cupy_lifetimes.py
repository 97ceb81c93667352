"""The CuPy runtime on devices that queue: what outlives what, what waits for what, and the bugs that show it.

Every bug of tests/planted_host.py is found by the test that it names; without a bug that test is one of these, or of
test_cupy_runtime.py, and passes.
"""

from __future__ import annotations

import gc
import inspect
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_cupy import Device, FakeCupy, Stream, cuda
from hopfuse.backends import selftest
from hopfuse.backends.calls import DenseCall, RowFilter
from hopfuse.backends.cuda.cupy_staging import STAGED_BYTES
from hopfuse.backends.cuda.residents import release
from hopfuse.errors import BackendError
from hopfuse.types import Corpus
from host_runtime import DEVICE, make_runtime
from kernels.test_cupy_runtime import calibrate, new_stream, on, record_fill
from planted_host import BUGS, Bug, load_with
from refusals import refused
from variants import SIMT, missing, simt_runtime

from kernels import test_cupy_runtime

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(missing(SIMT) is not None, reason=str(missing(SIMT))),
]


class Host(SimpleNamespace):
    """The runtime, the fake CuPy that it is on, and the classes around it: right, or with a bug."""

    runtime: Any
    cupy: FakeCupy
    DeviceOps: Any
    Recordings: Any


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Bug | None], Host]:
    def made(bug: Bug | None) -> Host:
        cupy = FakeCupy(simt_runtime().module)
        monkeypatch.setitem(sys.modules, "cupy", cupy)  # type: ignore[arg-type]
        classes = load_with(monkeypatch, bug)
        runtime = make_runtime(classes.CupyRuntime, simt_runtime().module, tmp_path)
        return Host(runtime=runtime, cupy=cupy, DeviceOps=classes.DeviceOps, Recordings=classes.Recordings)

    return made


@pytest.fixture
def host(make: Callable[[Bug | None], Host]) -> Host:
    return make(None)


def bytes_of(host: Host, array: Any) -> list[int]:
    return [int(value) for value in host.runtime.download(array)]


# ---- What outlives what ----------------------------------------------------------------------------------------------


def test_a_dropped_recording_gives_its_memory_back(host: Host) -> None:
    pinned = host.runtime.pinned(4)
    before = host.cupy.taken()
    recording, out = record_fill(host.runtime, pinned)
    recording.replay()
    assert host.cupy.taken() > before
    del recording
    gc.collect()
    assert host.cupy.taken() == before + out.nbytes  # what the caller has is still there
    assert bytes_of(host, out)[4:] == [7, 7, 7, 7]
    del out
    gc.collect()
    assert host.cupy.taken() == before


@pytest.mark.full
def test_the_self_test_counts_what_recordings_do_not_give_back(host: Host) -> None:
    device, kept = host.DeviceOps(host.runtime), []
    assert selftest.leaked_bytes(device, 2) == 0
    make = host.runtime.recording_memory

    def keep() -> Any:
        kept.append(make())
        return kept[-1]

    host.runtime.recording_memory = keep
    assert selftest.leaked_bytes(device, 2) > 2**21


@pytest.mark.parametrize("turn", [1, 2])
def test_a_recording_that_fails_gives_its_memory_back(host: Host, turn: int) -> None:
    memory = host.runtime.recording_memory()
    before, turns = host.cupy.taken(), []

    def work() -> Any:
        turns.append(1)
        kept = [host.runtime.zeros(1000, np.uint8), host.runtime.upload(np.zeros(30))]
        host.runtime.zeros(500, np.uint8)
        if len(turns) == turn:
            raise KeyError("the core's own error")
        return kept

    with pytest.raises(KeyError) as caught:
        host.runtime.capture(work, memory)
    assert memory.nbytes == 0
    assert host.cupy.taken() <= before + 1240  # the error's frames hold what the core held
    del caught
    gc.collect()
    assert host.cupy.taken() == before


def test_recordings_with_one_memory(host: Host) -> None:
    runtime, memory, pinned = host.runtime, host.runtime.recording_memory(), host.runtime.pinned(4000)

    def record(size: int) -> Any:
        def work() -> Any:
            first = runtime.zeros(size, np.uint8)
            runtime.copy(first, pinned[:size])
            second = runtime.zeros(size, np.uint8)
            runtime.copy(second, first)
            del first
            out = runtime.zeros(size, np.uint8)
            runtime.copy(out, second)
            return out

        return runtime.capture(work, memory)

    made = {size: record(size) for size in (1000, 4000, 3900, 1900)}
    assert memory.nbytes <= 3 * (1000 + 4000)
    for turn, size in enumerate((4000, 1000, 3900, 4000, 1900)):
        pinned[:] = np.arange(4000) + turn
        recording, out = made[size]
        recording.replay()
        # Not two lists: where CI is set, pytest would spend minutes on the difference of thousands of lines.
        np.testing.assert_array_equal(runtime.download(out), pinned[:size])


def test_results_lie_side_by_side_where_no_other_memory_is_used_again(host: Host) -> None:
    runtime, pinned = host.runtime, host.runtime.pinned(600)

    def work() -> Any:
        first, second = runtime.empty(600, np.uint8), runtime.zeros(300, np.uint8)
        runtime.copy(first, pinned)
        dropped = runtime.empty(2200, np.uint8)
        runtime.copy(dropped[:600], first)
        runtime.copy(dropped[400:1000], first)
        del dropped
        return runtime.side_by_side([first, second, first[:200], first], [0, 768, 1280, 1536], 2136)

    recording, block = runtime.capture(work)
    for turn in range(2):
        pinned[:] = np.arange(600) + turn
        recording.replay()
        found = runtime.download(block)
        np.testing.assert_array_equal(found[:600], pinned)
        np.testing.assert_array_equal(found[1536:], pinned)
        np.testing.assert_array_equal(found[1280:1480], pinned[:200])
        assert not found[768:1068].any()


def test_a_recording_keeps_the_pinned_memory_that_it_reads(host: Host) -> None:
    pinned = host.runtime.pinned(4)
    recording, out = record_fill(host.runtime, pinned)
    pinned[:] = [1, 2, 3, 4]
    del pinned
    gc.collect()
    recording.replay()
    assert bytes_of(host, out)[:4] == [1, 2, 3, 4]


def test_a_callers_array_is_held(host: Host) -> None:
    theirs = test_cupy_runtime.Interface(np.arange(3, dtype=np.float32))
    held = weakref.ref(theirs)
    adopted = host.runtime.adopt(theirs)
    del theirs
    gc.collect()
    assert held() is not None
    assert host.runtime.download(adopted).tolist() == [0, 1, 2]


def test_a_recording_keeps_what_is_resident(host: Host) -> None:
    device, rng = host.DeviceOps(host.runtime), np.random.default_rng(1)
    corpus = Corpus.from_array(rng.standard_normal((90, 8)).astype(np.float32))

    def core(queries: Any) -> Any:
        call = DenseCall(host.runtime.adopt(queries), corpus, 5, RowFilter(), threads=1, on_device=True)
        return host.runtime.export(device.dense_topk(call)["scores"], None)

    recorded = host.Recordings(device, core, [((8,), np.float32)], (2,))
    queries = rng.standard_normal((2, 8)).astype(np.float32)
    first = recorded.on_host([queries])
    release(host.runtime, corpus)
    gc.collect()
    np.testing.assert_array_equal(recorded.on_host([queries]), first)


# ---- Where there is no room ------------------------------------------------------------------------------------------


def test_memory_that_only_caches_hold_is_given_to_a_recording(host: Host) -> None:
    with on(new_stream()):
        cached = host.runtime.empty(6000, np.uint8)
        del cached
    cuda.memory = 10_000
    recording, _ = host.runtime.capture(lambda: host.runtime.zeros(9000, np.uint8))
    recording.replay()
    assert host.runtime.free_bytes() == 1000


def test_memory_that_garbage_holds_is_given_again(host: Host) -> None:
    host.cupy.pool.limit = 10_000
    circle: list[Any] = [host.runtime.empty(6000, np.uint8)]
    circle.append(circle)
    gc.disable()
    try:
        del circle
        assert host.runtime.empty(9000, np.uint8).nbytes == 9000
    finally:
        gc.enable()


def test_a_recording_without_room_says_so_and_holds_nothing(host: Host) -> None:
    cuda.memory = 10_000
    with refused(BackendError, "memory"):
        host.runtime.capture(lambda: [host.runtime.zeros(size, np.uint8) for size in (8000, 9000)])
    gc.collect()
    assert host.runtime.free_bytes() == 10_000


@pytest.mark.parametrize("call", ["Create", "Sgemm"])
@pytest.mark.parametrize(("status", "name"), [(1, "NOT_INITIALIZED"), (3, "ALLOC_FAILED"), (13, "EXECUTION_FAILED")])
def test_cublas_without_memory_is_asked_twice_and_named(host: Host, call: str, status: int, name: str) -> None:
    """Only what a lack of memory can be is asked again, after the caches have given theirs back."""
    runtime, short = host.runtime, status != 13
    a = runtime.upload(np.eye(3, dtype=np.float32))
    del a
    out, given = runtime.empty((2, 2), np.float32), runtime.upload(np.full((2, 2), 3, np.float32))
    runtime.blas.fail = [(call, status)] * (1 + short)
    with refused(BackendError, "failed", name=f"CUBLAS_STATUS_{name}", status=status) as caught:
        runtime.matmul(given, given, out)
    assert ("out of memory" in caught.value.values["fix"]) == short
    with Device(DEVICE):
        assert (host.cupy.pool.free_bytes() == 0) == short
    runtime.blas.fail = [(call, status)] if short else []
    runtime.matmul(given, given, out)
    assert runtime.download(out).tolist() == [[18, 18], [18, 18]]


# ---- What waits for what ---------------------------------------------------------------------------------------------


def test_the_first_run_sees_what_the_caller_queued(host: Host) -> None:
    runtime, seen = host.runtime, []

    def work() -> Any:
        out = runtime.empty(4, np.uint8)
        runtime.copy(out, given)
        if not seen:
            with runtime.resident():
                seen.append(runtime.empty(4, np.uint8))
                runtime.copy(seen[0], out)
        return out

    with on(new_stream()):
        given = runtime.zeros(4, np.uint8)
        runtime.capture(work)
    assert bytes_of(host, seen[0]) == [0, 0, 0, 0]


def test_resident_arrays_may_be_read_on_any_stream(host: Host) -> None:
    with on(new_stream()), host.runtime.resident():
        made = host.runtime.zeros(4, np.uint8)
    with on(new_stream()):
        assert bytes_of(host, made) == [0, 0, 0, 0]


def test_an_upload_is_over_when_it_returns(host: Host) -> None:
    """The next call may queue other work, by when the source can be gone."""
    large = np.arange(STAGED_BYTES + 1).astype(np.uint8)
    made = host.runtime.upload(large)
    host.runtime.zeros(4, np.uint8)
    np.testing.assert_array_equal(host.runtime.download(made), large)


def test_a_small_upload_has_read_its_array_when_it_returns(host: Host) -> None:
    given = np.arange(5, dtype=np.uint8)
    made = host.runtime.upload(given)
    given[:] = 9
    host.runtime.zeros(4, np.uint8)
    assert bytes_of(host, made) == [0, 1, 2, 3, 4]


def test_staged_memory_is_used_again_only_after_its_copies(host: Host) -> None:
    """Nothing waits for either stream between the uploads, which use the pinned memory several times."""
    size, made = STAGED_BYTES // 5, []
    with Device(DEVICE):
        streams = [Stream(non_blocking=True) for _ in range(2)]
    for turn in range(23):
        with on(streams[turn % 2]):
            made.append(host.runtime.upload_all([np.full(size, turn, np.uint8), np.array([turn])]))
    for turn, (array, number) in enumerate(made):
        with on(streams[turn % 2]):
            assert (host.runtime.download(array) == turn).all()
            assert host.runtime.download(number).tolist() == [turn]


def test_two_threads_stage_apart(host: Host) -> None:
    """The second thread uploads while the first is in the middle of its own."""
    runtime, others = host.runtime, []
    runtime.upload(np.zeros(1))

    class Slow:
        """An array that another thread's upload overtakes as it is read."""

        shape, dtype, nbytes = (3,), np.dtype(np.uint8), 3

        def reshape(self, shape: Any) -> Any:
            if not others:
                made: list[Any] = []
                in_thread(lambda: made.append(runtime.upload(np.array([4, 5, 6], np.uint8)))).join()
                others.append(made[0])
            return np.array([1, 2, 3], np.uint8)

    mine = runtime.upload(Slow())
    assert bytes_of(host, mine) == [1, 2, 3]
    assert bytes_of(host, others[0]) == [4, 5, 6]


def test_a_copy_from_pageable_memory_is_over_when_it_returns(host: Host) -> None:
    made = host.runtime.empty(5, np.uint8)
    host.runtime.copy(made, np.arange(5, dtype=np.uint8))
    host.runtime.zeros(4, np.uint8)
    assert bytes_of(host, made) == [0, 1, 2, 3, 4]


def test_memory_is_cleared_on_the_callers_stream(host: Host) -> None:
    with on(new_stream()):
        made = host.runtime.zeros(4, np.uint8)
        host.runtime.copy(made, np.arange(4, dtype=np.uint8))
        assert bytes_of(host, made) == [0, 1, 2, 3]
    assert (1, 0) not in cuda.queues  # device 1's legacy stream


def test_a_product_is_queued_on_the_callers_stream(host: Host) -> None:
    rng = np.random.default_rng(1)
    with on(new_stream()) as stream:
        a, b = (host.runtime.upload(rng.standard_normal((rows, 5)).astype(np.float32)) for rows in (3, 4))
        out = host.runtime.empty((3, 4), np.float32)
        host.runtime.matmul(a, b, out)
        assert host.runtime.blas.handles[1]["stream"] == stream.ptr
        expected = host.runtime.download(a) @ host.runtime.download(b).T
        np.testing.assert_array_equal(host.runtime.download(out), expected)


def test_calls_on_two_streams_do_not_overlap(host: Host) -> None:
    runtime = host.runtime

    def core(given: Any) -> Any:
        given, out = runtime.adopt(given), runtime.empty((2, 3), np.float32)
        runtime.copy(out, given)
        return runtime.export(out, None)

    recorded = host.Recordings(host.DeviceOps(runtime), core, [((3,), np.float32)], (2,))
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    streams = [new_stream(), new_stream()]
    found = []
    for stream in streams:
        with on(stream):
            found.append(recorded.on_device([runtime.upload(values + len(found))], None))
    for turn, stream in enumerate(streams):
        with on(stream):
            np.testing.assert_array_equal(runtime.download(found[turn]), values + turn)


# ---- Threads ---------------------------------------------------------------------------------------------------------


class NoticedLock:
    """A lock that says when a thread finds it taken."""

    def __init__(self) -> None:
        self._lock, self.found_taken = threading.Lock(), threading.Event()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.found_taken.set()
            self._lock.acquire()

    def __exit__(self, *error: Any) -> None:
        self._lock.release()


def in_thread(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_other_threads_go_on_beside_a_recording(host: Host) -> None:
    seen: list[list[int]] = []

    def work() -> Any:
        in_thread(lambda: seen.append(bytes_of(host, host.runtime.zeros(3, np.uint8)))).join()
        return host.runtime.zeros(5, np.uint8)

    recording, out = host.runtime.capture(work)
    recording.replay()
    assert seen == [[0, 0, 0], [0, 0, 0]]
    assert bytes_of(host, out) == [0] * 5


def test_products_of_two_threads_take_turns(host: Host) -> None:
    """The second comes as the first has set its stream; it must not set its own before that one's product is queued."""
    runtime, lock, others = host.runtime, NoticedLock(), []
    runtime._cublas._lock = lock
    streams = [new_stream(), new_stream()]
    made = []
    for stream in streams:
        with on(stream):
            made.append((runtime.upload(np.full((2, 2), 3, np.float32)), runtime.empty((2, 2), np.float32)))
    before = [cuda.queues[1, stream.ptr].length for stream in streams]

    def multiply(which: int) -> None:
        with on(streams[which]):
            given, out = made[which]
            runtime.matmul(given, given, out)

    def let_the_other_come() -> None:
        if not others:
            runtime.blas.on_set_stream = lock.found_taken.set  # or it comes through, where nothing holds it
            others.append(in_thread(lambda: multiply(1)))
            lock.found_taken.wait()

    runtime.blas.on_set_stream = let_the_other_come
    multiply(0)
    others[0].join()
    assert [cuda.queues[1, stream.ptr].length for stream in streams] == [length + 1 for length in before]


def test_two_threads_load_a_module_once(host: Host) -> None:
    runtime, lock, others = host.runtime, NoticedLock(), []
    runtime._modules._lock = lock
    compiled = runtime.code.compiled

    def let_the_other_come(unit: Path) -> Any:
        if not others:
            others.append(in_thread(lambda: calibrate(runtime)))
            lock.found_taken.wait()
        else:
            lock.found_taken.set()
        return compiled(unit)

    runtime.code.compiled = let_the_other_come
    assert calibrate(runtime) == [1.0, 0.5]
    others[0].join()
    assert len(host.cupy.loaded) == 1


# ---- The tests of the tests ------------------------------------------------------------------------------------------


def test_called(name: str) -> Callable[..., Any]:
    (found,) = (
        function
        for module in (test_cupy_runtime, sys.modules[__name__])
        for at, function in vars(module).items()
        if at.startswith(f"test_{name}")
    )
    return found  # type: ignore[no-any-return]


test_called.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug, make: Callable[[Bug | None], Host]) -> None:
    test, made = test_called(bug.found_by), make(bug)
    values = {"host": made, "runtime": made.runtime, "cupy": made.cupy, "shape": 5, "dtype": np.uint8, "turn": 1}
    chosen = {name: values[name] for name in inspect.signature(test).parameters}
    try:
        test(**chosen)
    except Exception:
        return
    pytest.fail(f"{bug.found_by} does not see it")
