"""The emulator as a CUDA driver: a library with the driver API's entry points, and the controls of its machine."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hopfuse_simt import build as builder
from hopfuse_simt.launcher import Counters
from hopfuse_simt.module import MATRIX_UNITS, ORDERS

DEVICES = 8
CUDA = Path(__file__).parents[2] / "cuda"

FRESH, FREED = 0xFFFBFFFB, 0xFFF4FFF4
"""The 32-bit words of memory that was never written, and that was freed."""

_NAMES = {"order": ORDERS, "mma": MATRIX_UNITS}


class DriverError(RuntimeError):
    """An entry point returned an error."""

    def __init__(self, entry: str, code: int, name: str) -> None:
        super().__init__(f"{entry}: {name}")
        self.entry, self.code, self.name = entry, code, name


class Event(NamedTuple):
    """A call to a device. ``what`` is its bytes, or the name of a kernel or of what was waited for."""

    kind: str  # "allocate", "free", "upload", "download", "copy", "clear", "launch", "replay", "wait"
    what: Any
    device: int = 0


class Finding(NamedTuple):
    """What a device would refuse, get wrong, or only sometimes get right.

    ==================  ===================================================================================
    ``context``         none is current, or an object of another one is used
    ``handle``          a handle of nothing, or of something that was destroyed
    ``memory``          memory that is freed, of another device or in no allocation; a copy beyond its end
    ``outside``         a kernel wrote right before or behind an allocation
    ``race``            two accesses, one of them a write, without an order
    ``uninitialised``   a copy to the host of memory that nothing has written
    ``pageable``        an asynchronous copy of pageable memory that the host did not wait for
    ``pinned``          pinned memory that is freed while queued work uses it
    ``capture``         what a capture forbids
    ``load``            a module or function that is loaded in a capture
    ``launch``          a launch's sizes
    ``arguments``       a launch's arguments
    ``kernel``          the emulator's or a sanitizer's report
    ==================  ===================================================================================
    """

    kind: str
    text: str


class _Event(ctypes.Structure):
    _fields_ = [
        ("device", ctypes.c_int32), ("size", ctypes.c_uint64), ("kind", ctypes.c_char * 16),
        ("name", ctypes.c_char * 128),
    ]  # fmt: skip


class _Counters(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in Counters.__dataclass_fields__]


class _Launch(ctypes.Structure):
    _fields_ = [
        ("device", ctypes.c_int32), ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3),
        ("counters", _Counters), ("kernel", ctypes.c_char * 128),
    ]  # fmt: skip


def _setting(name: str, doc: str) -> Any:
    names = _NAMES.get(name)

    def get(self: SimtDevice) -> Any:
        value = self.driver.number(self.ordinal, name)
        return value if names is None else next(word for word, code in names.items() if code == value)

    def set_(self: SimtDevice, value: Any) -> None:
        if names is not None:
            if value not in names:
                raise ValueError(f"{name} is {value!r}; allowed: {', '.join(names)}")
            value = names[value]
        self.driver.set_number(self.ordinal, name, int(value))

    return property(get, set_, doc=doc)


def _count(name: str, doc: str) -> Any:
    return property(lambda self: self.driver.number(self.ordinal, name), doc=doc)


class SimtDevice:
    """One of the machine's devices: numbers that can be set, and counts of what there is."""

    order = _setting("order", "In which order threads run: forward, reverse, shuffle.")
    seed = _setting("seed", "The seed of a shuffled order.")
    mma = _setting("mma", "How matrix units round: v100, a100, h100, lower, uneven, narrow.")
    capability = _setting("capability", "The compute capability, 90 for 9.0.")
    memory = _setting("memory", "Bytes of memory.")
    blocks_at_once = _setting("blocks_at_once", "Blocks of a kernel that run together, up to 64.")
    cooperative = _setting("cooperative", "Whether it has cooperative launches.")
    multiprocessors = _setting("multiprocessors", "The number of multiprocessors.")
    l2_bytes = _setting("l2_bytes", "Bytes of its L2 cache.")
    pools = _setting("pools", "Whether it has memory pools.")
    memory_clock = _setting("memory_clock", "The memory clock in kHz.")
    bus_width = _setting("bus_width", "The width of the memory bus in bits.")
    clock = _setting("clock", "The clock in kHz.")
    ecc = _setting("ecc", "Whether its memory corrects errors.")
    compute_mode = _setting("compute_mode", "Which processes may use it: 0 all, 3 one at a time.")
    used = _count("used", "Bytes in use, with those that pools keep.")
    allocations = _count("allocations", "Allocations that were not freed.")
    pinned = _count("pinned", "Blocks of pinned memory.")
    contexts = _count("contexts", "1 while the primary context is retained.")
    streams = _count("streams", "Streams.")
    events = _count("events", "Events.")
    modules = _count("modules", "Modules.")
    graphs = _count("graphs", "Graphs, instantiated ones included.")
    memory_pools = _count("memory_pools", "Memory pools.")
    error = _count("error", "The error that every call of the context returns since a kernel failed, or 0.")

    def __init__(self, driver: SimtDriver, ordinal: int) -> None:
        self.driver, self.ordinal = driver, ordinal

    def set_name(self, name: str) -> None:
        """Set what cuDeviceGetName returns."""
        self.driver.library.simt_driver_set_name(self.ordinal, name.encode())

    def restore(self) -> None:
        """Make every number what it is in a new process."""
        for name, value in self.driver.defaults.items():
            self.driver.set_number(self.ordinal, name, value)


class SimtDriver:
    """The emulated driver of this process, in which there is one.

    Examples
    --------
    >>> driver = SimtDriver()  # doctest: +SKIP
    >>> os.environ["HOPFUSE_LIBCUDA"] = str(driver.path)  # doctest: +SKIP
    >>> driver.devices[0].order = "shuffle"  # doctest: +SKIP
    >>> driver.launches  # doctest: +SKIP
    [('saxpy_f32', 4, 64)]
    """

    _only: SimtDriver | None = None
    _lock = threading.Lock()
    path: Path
    library: Any
    devices: tuple[SimtDevice, ...]
    defaults: dict[str, int]

    def __new__(cls) -> SimtDriver:
        with cls._lock:
            if cls._only is None:
                made = super().__new__(cls)
                made._open()
                cls._only = made
            return cls._only

    def _open(self) -> None:
        self.path = builder.build_driver()
        self.library = ctypes.CDLL(str(self.path))
        self.library.simt_driver_calls.restype = ctypes.c_int64
        self.devices = tuple(SimtDevice(self, ordinal) for ordinal in range(DEVICES))
        names = [name for name, value in vars(SimtDevice).items() if isinstance(value, property)]
        self.defaults = {name: self.number(0, name) for name in names if self.library.simt_driver_set(
            0, name.encode(), ctypes.c_int64(self.number(0, name)))}  # fmt: skip
        self._launches: list[tuple[str, Any, Any]] = []
        self._counters: list[Counters] = []
        self._events: list[Event] = []
        self._findings: list[Finding] = []

    # ---- Settings ------------------------------------------------------------------------------------------------

    def number(self, device: int, name: str) -> int:
        """Return a number of a device, or of the machine (-1)."""
        value = ctypes.c_int64()
        if not self.library.simt_driver_get(device, name.encode(), ctypes.byref(value)):
            raise KeyError(f"device {device} has no {name}")
        return value.value

    def set_number(self, device: int, name: str, value: int) -> None:
        """Set a number of a device, or of the machine (-1)."""
        if not self.library.simt_driver_set(device, name.encode(), ctypes.c_int64(value)):
            raise KeyError(f"device {device} has no {name} that can be set")

    @property
    def driver_version(self) -> int:
        """What cuDriverGetVersion returns; cuGetProcAddress has no newer entry points."""
        return self.number(-1, "driver_version")

    @driver_version.setter
    def driver_version(self, value: int) -> None:
        self.set_number(-1, "driver_version", value)

    @property
    def visible(self) -> int:
        """The number of devices that the driver has."""
        return self.number(-1, "visible")

    @visible.setter
    def visible(self, value: int) -> None:
        self.set_number(-1, "visible", value)

    @property
    def noop(self) -> bool:
        """Whether calls are checked and nothing runs, to measure the host's own time."""
        return bool(self.number(-1, "noop"))

    @noop.setter
    def noop(self, value: bool) -> None:
        self.set_number(-1, "noop", value)

    def fail_next(self, entry: str, code: int, *, skip: int = 0, count: int = 1) -> None:
        """Let calls of an entry point return an error: after ``skip`` good ones, ``count`` times, or always (0)."""
        if not self.library.simt_driver_fail(entry.encode(), int(code), skip, count):
            raise KeyError(f"no entry point {entry}")

    # ---- What happened -------------------------------------------------------------------------------------------

    @property
    def launches(self) -> list[tuple[str, Any, Any]]:
        """Kernel, grid and block of every launch that has run; a side alone if the others are 1."""
        self._fetch_launches()
        return self._launches

    @property
    def counters(self) -> list[Counters]:
        """What each of the launches counted."""
        self._fetch_launches()
        return self._counters

    @property
    def events(self) -> list[Event]:
        """All that was asked, in the order of the calls."""
        entry = _Event()
        while self.library.simt_driver_next_event(ctypes.byref(entry)):
            kind, name = entry.kind.decode(), entry.name.decode()
            self._events.append(Event(kind, name or int(entry.size), int(entry.device)))
        return self._events

    @property
    def findings(self) -> list[Finding]:
        """What was found until now in the work that has run."""
        text = ctypes.create_string_buffer(1 << 16)
        while self.library.simt_driver_next_finding(text, ctypes.c_size_t(len(text))):
            kind, _, what = text.value.decode(errors="replace").partition(": ")
            self._findings.append(Finding(kind, what))
        return self._findings

    @property
    def report(self) -> str:
        """What the emulator or a sanitizer said about the last kernel that failed."""
        text = ctypes.create_string_buffer(1 << 16)
        self.library.simt_driver_report(text, ctypes.c_size_t(len(text)))
        return text.value.decode(errors="replace")

    @property
    def graph_allocations(self) -> int:
        """The number of allocations in captures."""
        return self.number(-1, "graph_allocations")

    def calls(self, entry: str) -> int:
        """Return how often an entry point was called."""
        count = int(self.library.simt_driver_calls(entry.encode()))
        if count < 0:
            raise KeyError(f"no entry point {entry}")
        return count

    def finish(self) -> None:
        """Run all that is queued, so that :attr:`findings` has what it does wrong."""
        self.library.simt_driver_finish()

    def peek(self, address: int, shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
        """Return device memory as it is when all queued work has run, whatever the host knows of it."""
        out = np.empty(shape, dtype)
        target = ctypes.c_void_p(out.ctypes.data)
        if not self.library.simt_driver_peek(ctypes.c_uint64(address), target, ctypes.c_size_t(out.nbytes)):
            raise ValueError(f"no allocation has {out.nbytes} bytes at {address:#x}")
        return out

    def clear(self) -> None:
        """Forget what happened, and failures to come."""
        self.library.simt_driver_clear()
        for log in (self._launches, self._counters, self._events, self._findings):
            log.clear()

    def reset(self) -> None:
        """Make a new machine with all settings as in a new process: contexts, and what they own, are gone."""
        self.library.simt_driver_reset()
        self.clear()
        self.noop, self.driver_version, self.visible = False, 13000, DEVICES
        for device in self.devices:
            device.restore()

    def _fetch_launches(self) -> None:
        entry = _Launch()
        while self.library.simt_driver_next_launch(ctypes.byref(entry)):
            self._launches.append((entry.kernel.decode(), _sides(entry.grid), _sides(entry.block)))
            counted = (getattr(entry.counters, name) for name in Counters.__dataclass_fields__)
            self._counters.append(Counters(*counted))

    # ---- Code ----------------------------------------------------------------------------------------------------

    @staticmethod
    def image(unit: builder.Unit) -> bytes:
        """Return what cuModuleLoadData takes for a compiled .cu file."""
        kind = "program" if unit.is_program else "library"
        lines = [unit.build, kind, str(unit.artifact), str(unit.capability)]
        lines += [f"{kernel.name} {kernel.static_shared}" for kernel in unit.kernels]
        return b"HOPFUSE-SIMT-1\n" + "\n".join(lines).encode() + b"\0"

    def images(
        self, sources: Sequence[Path] | None = None, build: str = "plain", capability: int = 90
    ) -> dict[str, bytes]:
        """Compile .cu files, all of kernels/cuda by default; return an image for each file's name."""
        units = builder.build_all(
            sources or sorted(CUDA.glob("*.cu")), build, program=build in ("asan", "tsan"), capability=capability
        )
        return {unit.source.name: self.image(unit) for unit in units}

    def call(self, entry: str, *arguments: Any) -> None:
        """Call an entry point by ctypes, and raise if it returns an error."""
        code = int(getattr(self.library, entry)(*arguments))
        if code:
            raise DriverError(entry, code, self.error_name(code))

    def error_name(self, code: int) -> str:
        """Return an error's name, as CUDA spells it."""
        name = ctypes.c_char_p()
        self.library.cuGetErrorName(code, ctypes.byref(name))
        return (name.value or b"?").decode()


def _sides(sides: Any) -> Any:
    x, y, z = sides
    return int(x) if (y, z) == (1, 1) else (int(x), int(y), int(z))
