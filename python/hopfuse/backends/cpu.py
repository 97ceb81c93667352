"""The CPU backend: the instruction set of its kernels, and what the last calls ran on."""

from __future__ import annotations

import os
import warnings
from operator import methodcaller
from typing import Any

import numpy as np

from .. import _native
from .._threads import thread_count
from ..errors import BackendError

#: The instruction set, the threads and other facts of the last call of each op.
_last: dict[str, tuple[str, int, dict[str, Any]]] = {}


def _choose_isa() -> BackendError | None:
    """Apply HOPFUSE_ISA; return an error if it is invalid."""
    wanted = os.environ.get("HOPFUSE_ISA", "")
    if not wanted or _native.use_isa(wanted):
        return None
    return BackendError(
        "unavailable",
        None,
        "HOPFUSE_ISA is {given!r}, but this machine runs {allowed} (built: {built}); unset it or choose one of those",
        given=wanted,
        allowed=", ".join(_native.runnable_isas()),
        built=", ".join(_native.built_isas()),
    )


def _warn_of_refused() -> None:
    """Warn of variants that the processor supports but that give wrong results on it; the next best is used."""
    for isa in _native.refused_isas():
        warnings.warn(
            f"the processor supports {isa!r}, but its dot products of codes are wrong here. hopfuse uses "
            f"{_native.isa()!r} instead; see hopfuse.backend_info()",
            RuntimeWarning,
            stacklevel=2,
        )


unusable: BackendError | None = _choose_isa()
_warn_of_refused()

#: The CPU takes only arrays on the host.
device = None
#: Run a call; a function in C, because each frame of Python counts in a small call.
run = methodcaller("run_on_host")


def explain() -> dict[str, Any]:
    """Return the CPU's entry in :func:`hopfuse.backend_info`."""
    runnable, built, refused = _native.runnable_isas(), _native.built_isas(), _native.refused_isas()
    chosen = _native.isa()
    forced = os.environ.get("HOPFUSE_ISA", "")
    reasons = {}
    for isa in built:
        if isa in refused:
            reasons[isa] = "its dot products of codes are wrong on this processor"
        elif isa not in runnable:
            reasons[isa] = "the processor or the operating system does not support its instructions"
        elif isa != chosen:
            reasons[isa] = f"HOPFUSE_ISA={forced}" if forced else f"{chosen} is faster here"
    return {
        "variant": chosen,
        "built": built,
        "runnable": runnable,
        "not_chosen": reasons,
        "threads": thread_count(None),
        "idle_workspace_bytes": _native.idle_workspace_bytes(),
        "last_calls": {op: _described(op, *call) for op, call in _last.items()},
        "error": None if unusable is None else str(unusable),
    }


def record(op: str, threads: int, **more: Any) -> None:
    """Keep what :func:`explain` says of the last call."""
    _last[op] = _native.isa_of(op), threads, more


def _described(op: str, isa: str, threads: int, more: dict[str, Any]) -> dict[str, Any]:
    """Describe a call; counts per query are summed."""
    summed = {name: int(value.sum()) if isinstance(value, np.ndarray) else value for name, value in more.items()}
    return {"kernel": f"{op}_{isa}", "threads": threads, **summed}
