"""Which backends exist on this machine, which one a call gets, and why."""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import BackendError, InputError
from ..types import Corpus, Graph, Incidence, LabelSets
from . import cpu
from .arguments import Evidence, IsingModel, PprQueries
from .cupy_lookup import no_cupy
from .first_use import FirstUse

__all__ = ["Backend", "explain", "register", "resolve", "untested"]


class Backend(Protocol):
    """The ops of a backend: checked arrays in, arrays out. The module :mod:`.cpu` is one."""

    unusable_reason: str | None
    #: The ops on arrays of its device; None where it has none but the host's.
    device: Any

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
        self,
        scores: NDArray[np.float32],
        counts: NDArray[np.int64],
        *,
        method: str,
        ties: str,
        option: NDArray[np.float32],
        threads: int,
    ) -> NDArray[np.float32]: ...

    def fuse(
        self,
        lists: list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]],
        *,
        method: str,
        calibration: str,
        ties: str,
        calibration_option: NDArray[np.float32],
        pools: NDArray[np.int64],
        option: NDArray[np.float32],
        weights: NDArray[np.float32],
        consensus: float,
        prior: NDArray[np.float32],
        k: int,
        threads: int,
    ) -> dict[str, Any]: ...

    def ising(
        self,
        graph: Graph,
        hits: tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]],
        model: IsingModel,
        *,
        k: int,
        threads: int,
    ) -> dict[str, Any]: ...

    def dice(
        self,
        labels: LabelSets,
        query_indptr: NDArray[np.int64],
        query_units: NDArray[np.int32],
        candidates: NDArray[np.int32],
        indptr: NDArray[np.int64],
        *,
        threads: int,
    ) -> NDArray[np.float32]: ...

    def project(
        self, incidence: Incidence, scores: NDArray[np.float32], scale: NDArray[np.float32] | None, *, threads: int
    ) -> NDArray[np.float32]: ...

    def project_topk(
        self,
        incidence: Incidence,
        scores: NDArray[np.float32],
        scale: NDArray[np.float32] | None,
        k: int,
        *,
        threads: int,
    ) -> dict[str, Any]: ...


_backends: dict[str, Backend] = {"cpu": cpu}


def _make_cuda() -> Backend:
    from .cuda.found_device import make_backend

    return make_backend()


def _differs_on_cuda(backend: Backend) -> str | None:
    """The quick self-test, once for an installation, device and driver."""
    from .cuda.found_device import SelfTestMark
    from .selftest import difference

    mark = SelfTestMark.of(backend)
    if mark.is_set():
        return None
    found = difference(backend)
    if found is None:
        mark.set()
    return found


_cuda: FirstUse[Backend] = FirstUse("cuda", no_cupy, _make_cuda, _differs_on_cuda)


def register(name: str, backend: Backend) -> None:
    """Make ``backend=name`` known: the SIMT emulator's tests do. ``auto`` never chooses such a backend."""
    _backends[name] = backend


def resolve(backend: str) -> Backend:
    """The backend for a ``backend=`` argument; ``auto`` takes HOPFUSE_BACKEND where it is set."""
    _check_name(backend)
    name = _automatic() if backend == "auto" else backend
    return _usable(_cuda.tested() if name == _cuda.name else _backends[name])


def untested(backend: str) -> Backend:
    """The backend by its name, whatever its self-test says: for the self-test itself."""
    _check_name(backend)
    name = _automatic() if backend == "auto" else backend
    return _usable(_cuda.untested() if name == _cuda.name else _backends[name])


def _names() -> tuple[str, ...]:
    return (*_backends, _cuda.name)


def _check_name(backend: str) -> None:
    if not isinstance(backend, str) or backend not in ("auto", *_names()):
        raise InputError(f"backend is {backend!r}; allowed: {', '.join(('auto', *_names()))}")


def _usable(backend: Backend) -> Backend:
    if backend.unusable_reason is not None:
        raise BackendError(backend.unusable_reason)
    return backend


def _automatic() -> str:
    name = os.environ.get("HOPFUSE_BACKEND", "") or "auto"
    if name != "auto" and name not in _names():
        raise BackendError(f"HOPFUSE_BACKEND is {name!r}; allowed: {', '.join(('auto', *_names()))}, or leave it unset")
    if name != "auto":
        return name
    return _cuda.name if _cuda.is_usable() else "cpu"


def explain() -> dict[str, Any]:
    """What runs here, and why: backends, kernel variants, threads, and what the last call of each op did.

    Returns
    -------
    dict
        ``auto``, the backend that ``backend="auto"`` gives, or None where HOPFUSE_BACKEND names none (``error``
        says so); ``backends`` -> name -> what it is: ``cpu`` its variant, the variants built and runnable, why others
        were not taken, threads, idle workspace bytes; ``cuda`` its device, driver and where its kernels came from, or
        ``error``, why it is not used; and the last call of each op.

    Examples
    --------
    >>> import hopfuse as hf
    >>> {"cpu", "cuda"} <= set(hf.explain()["backends"])
    True
    """
    automatic, error = None, None
    try:
        automatic = _automatic()
    except BackendError as wrong:
        error = str(wrong)
    details = {name: backend.explain() for name, backend in _backends.items()}
    details[_cuda.name] = _cuda.explain()
    return {"auto": automatic, "error": error, "backends": details}
