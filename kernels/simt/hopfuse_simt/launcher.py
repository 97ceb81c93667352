"""Two ways to launch: from a library in this process, or in a separate program."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import shutil
import struct
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from hopfuse_simt.arguments import Argument, Pointer, Struct, pointers_of
from hopfuse_simt.errors import SimtError

API_VERSION = 4


@dataclass(frozen=True)
class Counters:
    """Counts of a launch. Bytes are counted in the build "count" only."""

    blocks: int
    threads: int
    barriers: int
    grid_barriers: int
    warp_ops: int
    atomics: int
    switches: int
    global_loaded: int
    global_stored: int
    shared_loaded: int
    shared_stored: int


@dataclass(frozen=True)
class Call:
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    static_shared: int
    shared_limit: int
    order: int
    seed: int
    mma: int
    cooperative: bool


class Launcher(Protocol):
    signatures: dict[str, str]
    max_threads: dict[str, int]

    def launch(self, call: Call, arguments: Sequence[Argument]) -> Counters: ...

    def close(self) -> None: ...


def raise_reported(report: str) -> None:
    kind, _, message = report.partition(": ")
    raise SimtError(kind, message)


# ------------------------------------------------------------------------------------------------------------
# In this process


class _Counters(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in Counters.__dataclass_fields__]


class _Call(ctypes.Structure):
    _fields_ = [
        ("kernel", ctypes.c_char_p),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("dynamic_shared", ctypes.c_uint64),
        ("static_shared", ctypes.c_uint64),
        ("shared_limit", ctypes.c_uint64),
        ("arguments", ctypes.POINTER(ctypes.c_void_p)),
        ("order", ctypes.c_int32),
        ("seed", ctypes.c_uint64),
        ("mma", ctypes.c_int32),
        ("cooperative", ctypes.c_int32),
        ("num_ranges", ctypes.c_uint32),
        ("ranges", ctypes.POINTER(ctypes.c_size_t)),
        ("counters", _Counters),
    ]


class Library:
    """Kernels get the arrays' own memory, which is fast, but a bad address may damage this process."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
        assert self._library.simt_api_version() == API_VERSION
        for name in ("simt_kernel_name", "simt_kernel_signature", "simt_launch"):
            getattr(self._library, name).restype = ctypes.c_char_p
        self.signatures, self.max_threads = {}, {}
        for i in range(self._library.simt_num_kernels()):
            name = self._library.simt_kernel_name(i).decode()
            self.signatures[name] = self._library.simt_kernel_signature(i).decode()
            self.max_threads[name] = self._library.simt_kernel_max_threads(i)

    def launch(self, call: Call, arguments: Sequence[Argument]) -> Counters:
        held: list[Any] = []
        addresses = (ctypes.c_void_p * max(1, len(arguments)))()
        ranges: list[int] = []
        for pointer in pointers_of(arguments):
            assert pointer.array is not None
            ranges += [pointer.array.ctypes.data, pointer.array.ctypes.data + pointer.array.nbytes]
        for i, given in enumerate(arguments):
            argument = given.with_addresses(lambda array: array.ctypes.data) if isinstance(given, Struct) else given
            if isinstance(argument, Pointer):
                address = argument.array.ctypes.data if argument.array is not None else 0
                held.append(ctypes.c_void_p(address))
                addresses[i] = ctypes.addressof(held[-1])
            else:
                room = np.zeros(-(-max(1, len(argument)) // 16) * 2 + 8, dtype=np.float64)
                start = -room.ctypes.data % 64
                room.view(np.uint8)[start : start + len(argument)] = np.frombuffer(argument, dtype=np.uint8)
                held.append(room)
                addresses[i] = room.ctypes.data + start
        c = _Call(kernel=call.kernel.encode(), dynamic_shared=call.dynamic_shared, static_shared=call.static_shared,
                  shared_limit=call.shared_limit, order=call.order, seed=call.seed,
                  mma=call.mma, cooperative=call.cooperative)  # fmt: skip
        c.grid[:], c.block[:] = call.grid, call.block
        c.arguments = ctypes.cast(addresses, ctypes.POINTER(ctypes.c_void_p))
        c.num_ranges = len(ranges) // 2
        c.ranges = (ctypes.c_size_t * max(1, len(ranges)))(*ranges)
        error = self._library.simt_launch(ctypes.byref(c))
        if error is not None:
            raise_reported(error.decode())
        return Counters(*(getattr(c.counters, name) for name in Counters.__dataclass_fields__))

    def close(self) -> None:
        pass  # a library stays loaded: another module may use it


# ------------------------------------------------------------------------------------------------------------
# In a separate program

# The first finding ends the program. Its report is read, not its exit code.
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:detect_stack_use_after_return=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=0",
    "TSAN_OPTIONS": "halt_on_error=1:report_signal_unsafe=0:report_thread_leaks=0",
}


@dataclass
class Buffer:
    """Arrays that share memory share a buffer; arrays that do not each get their own."""

    begin: int
    end: int
    arrays: list[np.ndarray[Any, Any]]
    writable: bool


def gather_buffers(arguments: Sequence[Argument]) -> list[Buffer]:
    buffers: list[Buffer] = []
    for pointer in sorted(pointers_of(arguments), key=lambda p: p.array.ctypes.data):  # type: ignore[union-attr]
        assert pointer.array is not None
        begin = pointer.array.ctypes.data
        end = begin + pointer.array.nbytes
        if buffers and begin < buffers[-1].end:
            last = buffers[-1]
            last.end = max(last.end, end)
            last.arrays.append(pointer.array)
            last.writable = last.writable or pointer.writable
        else:
            buffers.append(Buffer(begin, end, [pointer.array], pointer.writable))
    return buffers


def place_in(buffers: Sequence[Buffer], pointer: Pointer) -> tuple[int, int]:
    """Return the buffer's number, -1 for the null pointer, and the offset into it."""
    if pointer.array is None:
        return -1, 0
    address = pointer.array.ctypes.data
    number = next(i for i, buffer in enumerate(buffers) if buffer.begin <= address < buffer.end)
    return number, address - buffers[number].begin


def memory(begin: int, end: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.ctypeslib.as_array(ctypes.cast(begin, ctypes.POINTER(ctypes.c_uint8)), shape=(end - begin,))


def classify(stderr: str, status: int) -> SimtError:
    """Return the first lines of a sanitizer's report, and the thread that was running."""
    kinds = {
        "address": r"ERROR: AddressSanitizer: .*",
        "undefined": r"[^\n]*: runtime error: .*",
        "race": r"WARNING: ThreadSanitizer: .*",
    }
    where = re.search(r"^simt: (.*)$", stderr, re.MULTILINE)
    place = f"{where[1]}: " if where is not None else ""
    for kind, pattern in kinds.items():
        found = re.search(pattern, stderr)
        if found is not None:
            return SimtError(kind, f"{place}{found[0]}\n{stderr[found.end() :].strip()}")
    return SimtError("crash", f"{place}the runner ended with status {status}\n{stderr.strip()}")


class Program:
    """The runner, kept for many launches. A sanitizer's finding ends it, and the next launch starts it again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._prefix: list[str] = []
        self.signatures: dict[str, str] = {}
        self.max_threads: dict[str, int] = {}
        self._finalizer: weakref.finalize[..., Any] | None = None
        self._start()

    def _spawn(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [*self._prefix, str(self._path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            env={**os.environ, **SANITIZER_OPTIONS},
        )  # fmt: skip
        self._finalizer = weakref.finalize(self, _end, self._process, self._errors)
        if self._get("I") != API_VERSION:
            raise AssertionError("the runner is of another version")
        for _ in range(self._get("I")):
            name = self._read(self._get("I")).decode()
            self.signatures[name] = self._read(self._get("I")).decode()
            self.max_threads[name] = self._get("i")
            while self._get("I"):  # the size of a parameter
                self._get("I")

    def _start(self) -> None:
        try:
            self._spawn()
        except SimtError as error:
            # ThreadSanitizer does not work with every address space layout.
            setarch = shutil.which("setarch")
            if "memory mapping" not in error.message or setarch is None or self._prefix:
                raise
            self._prefix = [setarch, platform.machine(), "-R"]
            self._spawn()

    def _died(self) -> SimtError:
        assert self._process is not None
        assert self._errors is not None
        status = self._process.wait()
        self._errors.seek(0)
        stderr = self._errors.read().decode(errors="replace")
        self.close()
        return classify(stderr, status)

    def _read(self, size: int) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        data = self._process.stdout.read(size) if size else b""
        if len(data) < size:
            raise self._died()
        return data

    def _get(self, code: str) -> int:
        value: int = struct.unpack("<" + code, self._read(struct.calcsize("<" + code)))[0]
        return value

    def launch(self, call: Call, arguments: Sequence[Argument]) -> Counters:
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        buffers = gather_buffers(arguments)
        name = call.kernel.encode()
        parts: list[Any] = [
            struct.pack("<I", len(name)), name, struct.pack("<6I", *call.grid, *call.block),
            struct.pack("<QQQ", call.dynamic_shared, call.static_shared, call.shared_limit),
            struct.pack("<iQii", call.order, call.seed, call.mma, call.cooperative),
            struct.pack("<I", len(buffers)),
        ]  # fmt: skip
        for buffer in buffers:
            parts += [struct.pack("<QB", buffer.end - buffer.begin, buffer.writable), memory(buffer.begin, buffer.end)]
        parts.append(struct.pack("<I", len(arguments)))
        for argument in arguments:
            if isinstance(argument, bytes):
                parts += [struct.pack("<BI", 1, len(argument)), argument]
            elif isinstance(argument, Struct):
                parts += [struct.pack("<BI", 2, len(argument.data)), argument.data]
                parts.append(struct.pack("<I", len(argument.pointers)))
                for offset, pointer in argument.pointers.items():
                    parts.append(struct.pack("<IiQ", offset, *place_in(buffers, pointer)))
            else:
                parts.append(struct.pack("<BiQ", 0, *place_in(buffers, argument)))
        try:
            for part in parts:
                self._process.stdin.write(part)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._died() from None
        report = self._read(self._get("I")).decode()
        counters = Counters(*struct.unpack("<11Q", self._read(88)))
        for buffer in buffers:
            if buffer.writable:
                memory(buffer.begin, buffer.end)[:] = np.frombuffer(
                    self._read(buffer.end - buffer.begin), dtype=np.uint8
                )
        if report:
            raise_reported(report)
        return counters

    def close(self) -> None:
        if self._finalizer is not None:
            self._finalizer()
        self._process = self._errors = self._finalizer = None


def _end(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()  # the runner ends at the end of its input
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
    errors.close()
