"""Which backends exist on this machine, which one a call gets, and why."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..errors import BackendError, InputError
from . import cpu

__all__ = ["explain", "resolve"]

BACKENDS = ("auto", "cpu")


def resolve(backend: str) -> ModuleType:
    """The backend module for a ``backend=`` argument."""
    if backend not in BACKENDS:
        raise InputError(f"backend is {backend!r}; allowed: {', '.join(BACKENDS)}")
    if cpu.unusable_reason is not None:
        raise BackendError(cpu.unusable_reason)
    return cpu


def explain() -> dict[str, Any]:
    """What runs here, and why: backends, kernel variants, threads, and what the last call of each op did.

    Returns
    -------
    dict
        ``auto``, the backend that ``backend="auto"`` gives; ``backends`` -> name -> its
        variant, the variants built and runnable, why others were not taken, threads, idle workspace
        bytes, and the last call of each op.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.explain()["auto"]
    'cpu'
    """
    return {"auto": "cpu", "backends": {"cpu": cpu.explain()}}
