"""The machine, versions and load that are recorded with each row."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import hopfuse as hf

from .errors import UnavailableError

ROOT = Path(__file__).resolve().parent.parent
#: A machine is quiet if other programs use at most this many cores.
QUIET_CORES = 0.1
#: Prefixes of the processor flags to record.
SIMD = ("sse4", "avx", "fma", "f16c", "bmi2", "amx", "asimd", "sve", "fphp", "bf16", "i8mm")
#: Kinds of machine with their own bars, by the instruction set that multiplies 8-bit numbers.
KINDS = ("AVX2", "AVX-512")
#: Fields of hopfuse's description of a device to record.
DEVICE = ("device", "compute_capability", "driver")


def machine() -> dict[str, Any]:
    """Return the processor, its vector instructions, cores and operating system, without the host name."""
    info = _cpuinfo()
    flags = info.get("flags", info.get("Features", "")).split()
    return {
        "cpu": info.get("model name") or platform.processor() or platform.machine(),
        "family_model": "/".join(info[key] for key in ("cpu family", "model") if key in info) or None,
        "flags": [flag for flag in flags if flag.startswith(SIMD)],
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def kind(flags: Sequence[str]) -> str | None:
    """Return the kind of machine, one of ``KINDS``, by the processor's flags, or None."""
    if "avx512_vnni" in flags:
        return "AVX-512"
    return "AVX2" if "avx2" in flags else None


def versions(*packages: str) -> dict[str, str | None]:
    """Return the versions of Python, of the kernels' compiler (None if not recorded), and of packages."""
    engine = hf.backend_info()["backends"][hf.backend_info()["auto"]]
    named = dict.fromkeys(("hopfuse", "numpy", *packages))
    return {"python": platform.python_version(), "compiler": engine.get("compiler"), **{p: _version(p) for p in named}}


def commit() -> dict[str, Any]:
    """Return the commit, and whether the library's sources differ from it."""
    sources = ("python", "kernels", "bindings", "CMakeLists.txt", "pyproject.toml")
    return {
        "commit": _git("rev-parse", "--short=12", "HEAD"),
        "modified": bool(_git("status", "--porcelain", "--untracked-files=no", "--", *sources)),
    }


def kernels(ops: tuple[str, ...]) -> list[str]:
    """Return the kernel variants that the last calls of these operations ran."""
    last = hf.backend_info()["backends"][hf.backend_info()["auto"]]["last_calls"]
    return [last[op]["kernel"] for op in ops]


def require_backend(name: str) -> None:
    """Raise UnavailableError with hopfuse's reason if a backend cannot be used."""
    if name == "cpu":
        return
    about = hf.backend_info()
    reason = about["error"] or about["backends"][about["auto"] if name == "auto" else name]["error"]
    if reason:
        raise UnavailableError(reason)


def is_best_cpu(row: Mapping[str, Any]) -> bool:
    """Return whether hopfuse ran on the CPU, on its best instruction set."""
    return not row.get("device") and not row.get("isa")


def require_isa(name: str) -> None:
    """Raise UnavailableError with hopfuse's reason if an instruction set was asked for that does not run here."""
    reason = hf.backend_info()["backends"]["cpu"]["error"]
    if name and reason:
        raise UnavailableError(reason)


def backend() -> dict[str, Any]:
    """Return the default backend, and its device with its driver (None for the CPU)."""
    name = hf.backend_info()["auto"]
    about = hf.backend_info()["backends"][name]
    return {"backend": name, "device": {key: about[key] for key in DEVICE if key in about} or None}


def require_memory(needed: int) -> None:
    """Raise UnavailableError if the system reports less than ``needed`` bytes of available memory."""
    free = _available_memory()
    if free is not None and free < needed:
        raise UnavailableError(f"it needs {needed / 1e9:.1f} GB of memory, but {free / 1e9:.1f} GB are available")


class OtherLoad:
    """Measures the cores that other programs use, including stolen time."""

    def __init__(self) -> None:
        self._start = self._now()

    def stop(self, children: float = 0.0) -> float | None:
        """Return the average number of cores since the start, or None if the system does not report it.

        ``children`` are the CPU seconds of the benchmark's own child processes.
        """
        start, end = self._start, self._now()
        if start is None or end is None or end[0] <= start[0]:
            return None
        wall, busy, own = (b - a for a, b in zip(start, end, strict=True))
        return round(max(0.0, (busy - own - children) / wall), 2)

    @staticmethod
    def _now() -> tuple[float, float, float] | None:
        try:
            fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
        except OSError:
            return None
        user, nice, system, _idle, _wait, irq, softirq, steal = map(int, fields)
        busy = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
        times = os.times()
        return time.perf_counter(), busy, times.user + times.system


def load_average() -> float | None:
    """Return the average number of runnable processes over the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def surroundings(average: float | None, other: float | None) -> dict[str, Any]:
    """Return the machine, its load and the versions, for rows that time no call of hopfuse."""
    return {
        "load": {"average_before": average, "other_cores": other},
        "machine": machine(),
        **commit(),
        "versions": versions(),
    }


def _available_memory() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)


def _cpuinfo() -> dict[str, str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    lines = (line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in lines}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
