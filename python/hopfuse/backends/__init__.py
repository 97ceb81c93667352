"""Which backends exist on this machine, which one a call gets, and why."""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import BackendError, InputError
from ..types import Corpus, Graph
from . import cpu
from .arguments import Evidence, PprQueries

__all__ = ["Backend", "explain", "register", "resolve"]


class Backend(Protocol):
    """The ops of a backend: checked arrays in, arrays out. The module :mod:`.cpu` is one."""

    unusable_reason: str | None

    def explain(self) -> dict[str, Any]: ...

    def ppr(self, graph: Graph, queries: PprQueries, scores: NDArray[np.float32]) -> Evidence: ...

    def ppr_topk(
        self, graph: Graph, queries: PprQueries, k: int, among: NDArray[np.int32] | None, stop_when_proven: bool
    ) -> tuple[dict[str, Any], Evidence]: ...

    def dense_topk(
        self,
        queries: NDArray[np.float32],
        corpus: Corpus,
        k: int,
        *,
        mask: NDArray[np.uint8] | None,
        indptr: NDArray[np.int64] | None,
        ids: NDArray[np.int64] | None,
        shared: bool,
        threads: int,
    ) -> dict[str, Any]: ...

    def calibrate(
        self, scores: NDArray[np.float32], counts: NDArray[np.int64], *, method: str, ties: str, threads: int
    ) -> NDArray[np.float32]: ...

    def fuse(
        self,
        lists: list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]],
        *,
        method: str,
        calibration: str,
        ties: str,
        option: NDArray[np.float32],
        weights: NDArray[np.float32],
        consensus: float,
        k: int,
        threads: int,
    ) -> dict[str, Any]: ...


_backends: dict[str, Backend] = {"cpu": cpu}


def register(name: str, backend: Backend) -> None:
    """Make ``backend=name`` known: the SIMT emulator's tests do. ``auto`` never chooses such a backend."""
    _backends[name] = backend


def resolve(backend: str) -> Backend:
    """The backend for a ``backend=`` argument; ``auto`` takes HOPFUSE_BACKEND where it is set."""
    if not isinstance(backend, str) or (backend != "auto" and backend not in _backends):
        raise InputError(f"backend is {backend!r}; allowed: {', '.join(('auto', *_backends))}")
    chosen = _backends[_automatic() if backend == "auto" else backend]
    if chosen.unusable_reason is not None:
        raise BackendError(chosen.unusable_reason)
    return chosen


def _automatic() -> str:
    name = os.environ.get("HOPFUSE_BACKEND", "") or "auto"
    if name != "auto" and name not in _backends:
        raise BackendError(
            f"HOPFUSE_BACKEND is {name!r}; allowed: {', '.join(('auto', *_backends))}, or leave it unset"
        )
    return "cpu" if name == "auto" else name


def explain() -> dict[str, Any]:
    """What runs here, and why: backends, kernel variants, threads, and what the last call of each op did.

    Returns
    -------
    dict
        ``auto``, the backend that ``backend="auto"`` gives, or None where HOPFUSE_BACKEND names none (``error``
        says so); ``backends`` -> name -> its
        variant, the variants built and runnable, why others were not taken, threads, idle workspace
        bytes, and the last call of each op.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.explain()["auto"]
    'cpu'
    """
    automatic, error = None, None
    try:
        automatic = _automatic()
    except BackendError as wrong:
        error = str(wrong)
    details = {name: backend.explain() for name, backend in _backends.items()}
    return {"auto": automatic, "error": error, "backends": details}
