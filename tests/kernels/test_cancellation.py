"""Calls that are stopped, by a token of another thread or by Ctrl-C, return nothing; the next call is right."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from contextvars import Context
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from emulated_device import CUDA, driver, image
from hopfuse import _native, backends
from hopfuse.backends.cuda import DeviceOps
from hopfuse.backends.cuda.runtime import Runtime
from hopfuse.errors import CancelledError
from variants import SIMT, missing, open_emulator

from kernels import long_calls

#: How often a call is stopped until it ends early. What else runs may hold up the thread that stops it, but not always.
TRIES = 100


def work(call: Callable[[], Any]) -> float:
    """Return the CPU time of a call on all its threads, which hardly depends on what else runs."""
    times = [time.process_time()]
    for _ in range(2):  # the first call may also derive what is kept
        call()
        times.append(time.process_time())
    return min(np.diff(times))


def ends_early(call: Callable[[], Any], whole: float, stop: Callable[[], Any], error: type[BaseException]) -> bool:
    """Stop a call by another thread after a quarter of its work; return whether it raised before three quarters."""
    begun, ended = threading.Event(), threading.Event()

    def stop_in_the_middle() -> None:
        begun.wait()
        while not ended.is_set() and time.process_time() < begin + whole / 4:
            time.sleep(0.0005)
        stop()

    other = threading.Thread(target=stop_in_the_middle)
    other.start()
    begin = time.process_time()
    try:
        begun.set()
        call()
        ended.set()
        other.join()  # a signal may come as late as this
    except error:
        return not ended.is_set() and time.process_time() < begin + 3 * whole / 4
    finally:
        other.join()
    return False


def cancelled_early(call: Callable[[], Any], whole: float) -> bool:
    token = hf.CancelToken()
    with hf.cancellation(token):
        return ends_early(call, whole, token.cancel, CancelledError)


@pytest.mark.parametrize(
    ("op", "threads"),
    [
        *((op, 3) for op in long_calls.OPS),
        *(pytest.param(op, 1, marks=pytest.mark.full) for op in ("ppr_topk", "dense_topk", "project")),
    ],
)
def test_a_token_of_another_thread_stops_a_call(op: str, threads: int) -> None:
    """A kernel that does not look at the flag returns its result instead of raising, whenever it is cancelled."""
    long, short = long_calls.calls(op, threads)
    expected = short().tobytes()
    whole = work(long)
    assert any(cancelled_early(long, whole) for _ in range(TRIES))
    assert short().tobytes() == expected


def test_a_stopped_call_leaves_pool_and_workspaces_to_the_next() -> None:
    long, short = long_calls.calls("ppr_topk", 3)
    expected, whole = short().tobytes(), work(long)
    held, threads = _native.idle_workspace_bytes(), _native.pool_size()
    for _ in range(3):
        cancelled_early(long, whole)
        assert short().tobytes() == expected
        # Each thread has its workspace, of which a call on a busy machine may have used one alone.
        assert _native.idle_workspace_bytes() <= 3 * held
        assert _native.pool_size() == threads


def small() -> Any:
    return hf.dense_topk([[1.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]], 1).ids


def test_a_cancelled_token_stops_every_call_of_its_block_and_none_after_it() -> None:
    token = hf.CancelToken()
    with hf.cancellation(token):
        assert small().tolist() == [[0]]
        token.cancel()
        for _ in range(2):
            with pytest.raises(CancelledError) as caught:
                small()
            assert caught.value.code == "cancelled"
    assert token.cancelled
    assert small().tolist() == [[0]]
    with pytest.raises(CancelledError), hf.cancellation(token):
        small()


def test_blocks_are_nested_and_belong_to_their_context() -> None:
    outer, inner = hf.CancelToken(), hf.CancelToken()
    with hf.cancellation(outer):
        with hf.cancellation(inner):
            assert small().tolist() == [[0]]
            outer.cancel()
            with pytest.raises(CancelledError):
                small()
        found: list[Any] = []
        other = threading.Thread(target=Context().run, args=(lambda: found.append(small().tolist()),))
        other.start()
        other.join()
        assert found == [[[0]]]

    async def both() -> list[Any]:
        async def one(token: hf.CancelToken) -> Any:
            with hf.cancellation(token):
                await asyncio.sleep(0)
                try:
                    return (await asyncio.to_thread(small)).tolist()
                except CancelledError:
                    return "cancelled"

        return list(await asyncio.gather(one(outer), one(hf.CancelToken())))

    assert asyncio.run(both()) == ["cancelled", [[0]]]


def test_a_device_looks_at_the_token_before_each_launch() -> None:
    """The token is cancelled while the kernels of a file are loaded, after which one of them is launched."""
    if (reason := missing(SIMT)) is not None:
        pytest.skip(reason)
    open_emulator()
    graph, token, loaded = hf.Graph.from_edges([0, 1, 2], [1, 2, 3]), hf.CancelToken(), list[str]()

    def code(unit: str) -> tuple[bytes, str, None]:
        loaded.append(unit)
        if len(loaded) == 2:
            token.cancel()
        return image("plain", CUDA / f"{unit}.cu", 90), "emulator", None

    def launched() -> list[str]:
        driver().finish()
        names = [kernel for kernel, _, _ in driver().launches]
        driver().clear()
        return names

    backends.register("stopped", DeviceOps(Runtime(_native.Device.open(5, code), "stopped")))
    try:
        launched()
        with hf.cancellation(token), pytest.raises(CancelledError):
            hf.ppr(graph, [{0: 1.0}], backend="stopped")
        first = launched()
        found = hf.ppr(graph, [{0: 1.0}], backend="stopped").scores
    finally:
        backends._backends.pop("stopped")
    whole = launched()
    assert 0 < len(first) < len(whole)
    assert whole[: len(first)] == first
    assert_bitwise(found, hf.ppr(graph, [{0: 1.0}], backend="cpu").scores, "scores")
    assert not driver().findings


# ---- Signals ---------------------------------------------------------------------------------------------------------


def interrupted_early(call: Callable[[], Any], whole: float) -> bool:
    handled = threading.Event()

    def handle(*given: Any) -> None:
        handled.set()
        signal.default_int_handler(*given)

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert handled.wait(600)

    before = signal.signal(signal.SIGINT, handle)
    try:
        return ends_early(call, whole, interrupt, KeyboardInterrupt)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("op", "threads"),
    [
        ("dense_topk", 3),
        ("ising", 1),
        *(pytest.param(op, number, marks=pytest.mark.full) for op, number in (("ppr_topk", 3), ("ppr_topk", 1))),
    ],
)
def test_ctrl_c_stops_a_call_on_the_main_thread(op: str, threads: int) -> None:
    long, short = long_calls.calls(op, threads)
    expected = short().tobytes()
    whole = work(long)
    assert any(interrupted_early(long, whole) for _ in range(TRIES))
    assert short().tobytes() == expected


def test_a_handler_that_raises_nothing_lets_the_call_go_on() -> None:
    """Handlers run during the call, may call hopfuse themselves, and do not change its answer."""
    long, short = long_calls.calls("ppr_topk", 2)
    expected, bits, seen = long().scores.tobytes(), short().tobytes(), list[bool]()

    def handle(*_: Any) -> None:  # takes no lock: it may interrupt whoever holds it
        seen.append(short().tobytes() == bits)

    stop = threading.Event()

    def disturb() -> None:
        while not stop.is_set():
            handled = len(seen)
            os.kill(os.getpid(), signal.SIGUSR1)
            while len(seen) == handled and not stop.is_set():
                time.sleep(0.005)

    def handled_during_a_call() -> int:
        before = len(seen)
        assert long().scores.tobytes() == expected
        return len(seen) - before

    before = signal.signal(signal.SIGUSR1, handle)
    other = threading.Thread(target=disturb)
    other.start()
    try:  # one could run before the kernel and one after it
        assert any(handled_during_a_call() > 2 for _ in range(TRIES))
    finally:
        stop.set()
        other.join()
        signal.signal(signal.SIGUSR1, before)
    assert all(seen)


def test_other_threads_look_at_no_signals() -> None:
    """The main thread waits for another thread's call: the handler runs on the main thread, and the call ends."""
    long, _ = long_calls.calls("dense_topk", 2)
    expected, threads, found = long().scores.tobytes(), list[Any](), list[Any]()
    before = signal.signal(signal.SIGUSR1, lambda *_: threads.append(threading.current_thread()))
    other = threading.Thread(target=lambda: found.append(long().scores.tobytes()))
    try:
        other.start()
        while not threads or other.is_alive():
            os.kill(os.getpid(), signal.SIGUSR1)
            other.join(0.01)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert found == [expected]
    assert set(threads) == {threading.main_thread()}


def test_a_call_that_does_not_begin_writes_nothing() -> None:
    n, token = 100, hf.CancelToken()
    token.cancel()
    out = np.full((1, n), -7.0, np.float32)
    graph = hf.Graph.from_edges(np.arange(n - 1), np.arange(1, n))
    with hf.cancellation(token), pytest.raises(CancelledError):
        hf.ppr(graph, [{0: 1.0}], out=out)
    assert (out == -7.0).all()
