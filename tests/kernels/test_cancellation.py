"""Calls that are stopped, by a token of another thread or by Ctrl-C, return nothing; the next call is right."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from hopfuse import _native
from hopfuse.errors import CancelledError
from variants import SIMT, missing, simt_runtime

from kernels import long_calls

TESTS = Path(__file__).parents[1]


def seconds(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def cancelled_in_time(call: Callable[[], Any], whole: float) -> bool:
    """Cancel a call after a fifth of its time; return whether it was stopped, in at most two thirds of its time."""
    token, begun = hf.CancelToken(), threading.Event()

    def cancel() -> None:
        begun.wait()
        time.sleep(whole / 5)
        token.cancel()

    other = threading.Thread(target=cancel)
    other.start()
    begin = time.perf_counter()
    try:
        with hf.cancellation(token):
            begun.set()
            call()
    except CancelledError:
        return time.perf_counter() - begin < 2 * whole / 3
    finally:
        other.join()
    return False


@pytest.mark.parametrize(
    ("op", "threads"), [*((op, 3) for op in long_calls.OPS), ("ppr_topk", 1), ("dense_topk", 1), ("project", 1)]
)
def test_a_token_of_another_thread_stops_a_call(op: str, threads: int) -> None:
    """A kernel that does not look at the flag returns its result instead of raising, whenever it is cancelled."""
    long, short = long_calls.calls(op, threads)
    expected = short().tobytes()
    whole = seconds(long)
    # Another program may hold this one up at any time, but not always.
    assert any(cancelled_in_time(long, whole) for _ in range(10))
    assert short().tobytes() == expected


def test_a_stopped_call_leaves_pool_and_workspaces_to_the_next() -> None:
    long, short = long_calls.calls("ppr_topk", 3)
    expected, whole = short().tobytes(), seconds(long)
    held, threads = [], []
    for _ in range(3):
        cancelled_in_time(long, whole)
        assert short().tobytes() == expected
        held.append(_native.idle_workspace_bytes())
        threads.append(_native.pool_size())
    assert held[-1] <= 2 * max(held[0], 1 << 20)
    assert threads[-1] == threads[0]


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
        other = threading.Thread(target=lambda: found.append(small().tolist()))  # has a context of its own
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
    if (reason := missing(SIMT)) is not None:
        pytest.skip(reason)
    runtime, token, launched = simt_runtime(), hf.CancelToken(), list[str]()
    graph = hf.Graph.from_edges([0, 1, 2], [1, 2, 3])
    launch = runtime.launch

    def spy(kernel: str, *arguments: Any, **more: Any) -> None:
        launched.append(kernel)
        if len(launched) == 3:
            token.cancel()
        launch(kernel, *arguments, **more)

    expected = hf.ppr(graph, [{0: 1.0}], backend=SIMT).scores
    runtime.launch = spy
    try:
        with hf.cancellation(token), pytest.raises(CancelledError):
            hf.ppr(graph, [{0: 1.0}], backend=SIMT)
    finally:
        del runtime.launch
    assert len(launched) == 3
    assert_bitwise(hf.ppr(graph, [{0: 1.0}], backend=SIMT).scores, expected)


# ---- Signals ---------------------------------------------------------------------------------------------------------

INTERRUPTED = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from kernels import long_calls
from hopfuse import _native
long, short = long_calls.calls(sys.argv[2], int(sys.argv[3]))
expected = short().tobytes()
begin = time.perf_counter()
long()
whole = time.perf_counter() - begin
print(json.dumps(whole), flush=True)
for line in sys.stdin:
    ended, begin = False, time.perf_counter()
    print("begun", flush=True)
    try:
        long()
        ended = True
        time.sleep(600)  # until the signal, if it is late
    except KeyboardInterrupt:
        pass
    took = time.perf_counter() - begin
    print(json.dumps([not ended and took < 2 * whole / 3, short().tobytes() == expected]), flush=True)
"""


@pytest.mark.parametrize(("op", "threads"), [("ppr_topk", 3), ("ppr_topk", 1), ("dense_topk", 3), ("ising", 3)])
def test_ctrl_c_stops_a_call_on_the_main_thread(op: str, threads: int) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(TESTS), op, str(threads)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        whole, stopped = json.loads(process.stdout.readline()), False
        for _ in range(10):
            print("again", file=process.stdin, flush=True)
            assert process.stdout.readline() == "begun\n"
            time.sleep(whole / 5)
            process.send_signal(signal.SIGINT)
            in_time, same = json.loads(process.stdout.readline())
            assert same
            stopped = stopped or in_time
            if stopped:
                break
        process.stdin.close()
        assert stopped
        assert process.wait(600) == 0


def test_a_handler_that_raises_nothing_lets_the_call_go_on() -> None:
    """Handlers run during the call, may call hopfuse themselves, and do not change its answer."""
    long, short = long_calls.calls("ppr_topk", 2)
    expected, bits, seen = long().scores.tobytes(), short().tobytes(), list[bool]()

    def handle(*_: Any) -> None:  # takes no lock: it may interrupt whoever holds it
        seen.append(short().tobytes() == bits)

    before = signal.signal(signal.SIGUSR1, handle)
    stop = threading.Event()

    def disturb() -> None:
        while not stop.is_set():
            handled = len(seen)
            os.kill(os.getpid(), signal.SIGUSR1)
            while len(seen) == handled and not stop.is_set():
                time.sleep(0.005)

    other = threading.Thread(target=disturb)
    other.start()
    try:
        found = long().scores.tobytes()
        during = len(seen)
    finally:
        stop.set()
        other.join()
        signal.signal(signal.SIGUSR1, before)
    assert found == expected
    assert all(seen)
    assert during > 1


def test_other_threads_look_at_no_signals() -> None:
    """The main thread waits for another thread's call: the handler runs on the main thread, and the call ends."""
    long, _ = long_calls.calls("dense_topk", 2)
    expected, threads, found = long().scores.tobytes(), list[Any](), list[Any]()
    before = signal.signal(signal.SIGUSR1, lambda *_: threads.append(threading.current_thread()))
    other = threading.Thread(target=lambda: found.append(long().scores.tobytes()))
    try:
        other.start()
        while other.is_alive():
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
