"""Two strict CUDA devices on the host: the part of CUDA that the runtime uses.

Queued work runs only when something waits for it, and only as far as needed. Memory is filled with a pattern when it
is allocated and when it is freed. Errors are accesses after cudaFree, and two accesses, one of them a write, that no
stream, event or wait orders. Each thread has a current device, and every object belongs to one device.
"""

from __future__ import annotations

import bisect
import ctypes
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

POISON = 0xAB
DEVICES = 2
HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3


class CUDARuntimeError(RuntimeError):
    pass


class RaceError(AssertionError):
    """Two pieces of queued work use the same memory without an order between them."""


class Touch(NamedTuple):
    """Memory that queued work reads or writes."""

    begin: int
    nbytes: int
    writes: bool

    def clashes(self, other: Touch) -> bool:
        apart = self.begin + self.nbytes <= other.begin or other.begin + other.nbytes <= self.begin
        return not apart and (self.writes or other.writes)


class Operation:
    """Queued work, and the operations of each queue that must end before it and that are known to have ended."""

    def __init__(self, queue: Queue, work: Callable[[], None], touches: tuple[Touch, ...]) -> None:
        self.queue, self.work, self.touches = queue, work, touches
        self.before: list[Operation] = []
        self.clock: dict[int, int] = {}
        self.done = False

    def is_after(self, other: Operation) -> bool:
        return self.clock.get(other.queue.number, 0) >= other.clock[other.queue.number]


class Queue:
    """The work of a stream."""

    def __init__(self, number: int, device: int, is_blocking: bool) -> None:
        self.number, self.device, self.is_blocking = number, device, is_blocking
        self.length = 0
        self.last: Operation | None = None
        self.waits: list[Operation] = []
        self.recording: list[tuple[Callable[[], None], tuple[Touch, ...]]] | None = None


class Calls:
    """The number of calls of a thread that queue work or wait for it."""

    def __init__(self) -> None:
        self.count = 0


class Block:
    """An allocation. Its bytes are never freed, so that a late access is an error, not a crash."""

    def __init__(self, device: int, nbytes: int) -> None:
        self.device, self.nbytes = device, nbytes
        self.buffer = (ctypes.c_char * max(1, nbytes))()
        self.begin = ctypes.addressof(self.buffer)
        self.is_free = False
        self.accesses: dict[tuple[Touch, int], Operation] = {}  # the last of each queue


class Cuda:
    """The machine."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.local = threading.local()
        self.memory = 2 * 10**9  # bytes of each device
        self.used = [0] * DEVICES
        self.known: dict[int, int] = {}  # what the host has waited for
        self.queues: dict[tuple[int, int], Queue] = {}
        self.begins: list[int] = []
        self.blocks: list[Block] = []

    @property
    def device(self) -> int:
        return int(getattr(self.local, "device", 0))

    @device.setter
    def device(self, number: int) -> None:
        self.local.device = number

    @property
    def calls(self) -> Calls:
        """Return the calls of this thread."""
        calls: Calls = self.local.__dict__.setdefault("calls", Calls())
        return calls

    # ---- Memory --------------------------------------------------------------------------------------------------

    def malloc(self, nbytes: int) -> Block:
        with self.lock:
            if self.used[self.device] + nbytes > self.memory:
                raise CUDARuntimeError("cudaErrorMemoryAllocation: out of memory")
            block = Block(self.device, nbytes)
            at = bisect.bisect(self.begins, block.begin)
            self.begins.insert(at, block.begin)
            self.blocks.insert(at, block)
            self.used[self.device] += nbytes
            ctypes.memset(block.begin, POISON, nbytes)
            return block

    def free(self, block: Block) -> None:
        """Wait for all queued work of the device, as cudaFree does."""
        with self.lock:
            if self.block_of(Touch(block.begin, 1, False)) is not block:
                return  # of an earlier machine
            for queue in list(self.queues.values()):
                if queue.device == block.device:
                    self._finish(queue.last)
            block.is_free = True
            self.used[block.device] -= block.nbytes
            ctypes.memset(block.begin, POISON, block.nbytes)

    def poison(self, queue: Queue, block: Block) -> None:
        """Queue it, even during a recording: memory that a pool gives out or gets back has no content."""
        work = lambda: ctypes.memset(block.begin, POISON, block.nbytes) and None  # noqa: E731
        with self.lock:
            self._queue(queue, work, (Touch(block.begin, block.nbytes, True),))

    def block_of(self, touch: Touch) -> Block | None:
        """Return the allocation, or None for another library's memory."""
        at = bisect.bisect(self.begins, touch.begin) - 1
        block = self.blocks[at] if at >= 0 else None
        return block if block is not None and touch.begin < block.begin + block.nbytes else None

    def _check(self, touches: Iterable[Touch], device: int) -> None:
        for touch in touches:
            block = self.block_of(touch)
            if block is None:
                continue
            if block.is_free or touch.begin + touch.nbytes > block.begin + block.nbytes:
                raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")
            if block.device != device:
                raise CUDARuntimeError(f"memory of device {block.device} is used on device {device}")

    # ---- Streams -------------------------------------------------------------------------------------------------

    def queue_of(self, address: int) -> Queue:
        """Return the queue of a stream's address on the current device; 0 and 1 are the legacy stream."""
        key = (self.device, 0 if address == 1 else address)
        with self.lock:
            if address > 2 and key not in self.queues and any(known == address for _, known in self.queues):
                raise CUDARuntimeError("cudaErrorInvalidResourceHandle: a stream of another device")
            if key not in self.queues:
                self.queues[key] = Queue(len(self.queues), self.device, True)
            return self.queues[key]

    def make_queue(self, address: int, is_blocking: bool) -> None:
        with self.lock:
            self.queues[self.device, address] = Queue(len(self.queues), self.device, is_blocking)

    def submit(self, address: int, work: Callable[[], None], touches: Iterable[Touch] = ()) -> None:
        """Queue work on a stream of the current device, or record it."""
        queue, touched = self.queue_of(address), tuple(touch for touch in touches if touch.nbytes)
        with self.lock:
            self.calls.count += 1
            self._check(touched, queue.device)
            if queue.recording is not None:
                queue.recording.append((work, touched))
            else:
                self._queue(queue, work, touched)

    def _queue(self, queue: Queue, work: Callable[[], None], touches: tuple[Touch, ...]) -> None:
        operation = Operation(queue, work, touches)
        before = [queue.last, *queue.waits, *self._legacy(queue)]
        operation.before = [one for one in before if one is not None]
        queue.waits = []
        operation.clock = dict(self.known)
        for one in operation.before:
            _merge(operation.clock, one.clock)
        queue.length += 1
        operation.clock[queue.number] = queue.length
        queue.last = operation
        for touch in touches:
            self._access(operation, touch)

    def _legacy(self, queue: Queue) -> list[Operation | None]:
        """Return the queues that the legacy stream and the blocking streams wait for."""
        if not queue.is_blocking:
            return []
        legacy = self.queues.get((queue.device, 0))
        if queue is legacy:
            return [one.last for one in self.queues.values() if one.is_blocking and one.device == queue.device]
        return [] if legacy is None else [legacy.last]

    def _access(self, operation: Operation, touch: Touch) -> None:
        block = self.block_of(touch)
        if block is None:
            return
        for (other, _), earlier in list(block.accesses.items()):
            if earlier is not operation and touch.clashes(other) and not operation.is_after(earlier):
                raise RaceError(f"{touch.nbytes} bytes are touched on two streams, and no order is known")
        if touch.writes and touch.nbytes == block.nbytes:
            block.accesses.clear()
        block.accesses[touch, operation.queue.number] = operation

    def wait(self, operation: Operation | None, recording: Any = None) -> None:
        """Make the host wait."""
        with self.lock:
            self.calls.count += 1
            if recording is not None:
                raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: a wait for a stream that is being captured")
            self._finish(operation)

    def _finish(self, operation: Operation | None) -> None:
        if operation is None:
            return
        stack = [operation]
        while stack:
            one = stack[-1]
            waiting = [earlier for earlier in one.before if not earlier.done]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if not one.done:
                one.done, one.before = True, []
                self._check(one.touches, one.queue.device)
                one.work()
                one.work = _nothing
        _merge(self.known, operation.clock)

    # ---- Copies --------------------------------------------------------------------------------------------------

    def copy(self, to: int, source: int, nbytes: int, kind: int, address: int, is_pinned: bool) -> None:
        """Queue a copy. From pageable memory, the host must wait at once, since the source may be freed."""
        if kind == DEVICE_TO_DEVICE:
            touches = (Touch(to, nbytes, True), Touch(source, nbytes, False))
            self.submit(address, lambda: _move(to, source, nbytes), touches)
            return
        touch = Touch(to, nbytes, True) if kind == HOST_TO_DEVICE else Touch(source, nbytes, False)
        if is_pinned and kind == HOST_TO_DEVICE:
            self.submit(address, lambda: _move(to, source, nbytes), (touch,))
            return
        if self.queue_of(address).recording is not None:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: pageable memory in a capture")
        calls = self.calls
        submitted = calls.count + 1

        def at_once() -> None:
            # Another thread's cudaFree may run between the copy and the wait, while the source still exists.
            in_between = calls is not self.calls and calls.count == submitted
            if in_between or calls.count == submitted + 1:
                _move(to, source, nbytes)
            elif kind == HOST_TO_DEVICE:
                ctypes.memset(to, POISON, nbytes)

        self.submit(address, at_once, (touch,))


def _merge(clock: dict[int, int], other: dict[int, int]) -> None:
    for number, count in other.items():
        clock[number] = max(count, clock.get(number, 0))


def _move(to: int, source: int, nbytes: int) -> None:
    ctypes.memmove(to, source, nbytes)


def _nothing() -> None:
    """Drop the operations that are done."""


def view_of(address: int, shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), np.uint8).view(dtype).reshape(shape)
