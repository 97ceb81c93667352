"""Project scores of columns (nodes) onto rows (passages)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import same_library, to_numpy
from .._threads import thread_count
from .._validation import check_k, check_real
from ..backends import resolve
from ..backends.calls import ProjectCall
from ..backends.placement import device_for
from ..errors import InputError
from ..types import Hits, Incidence

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps

#: The largest result, in bytes.
SCORES_BUDGET = 1 << 32


def project(
    scores: Any, incidence: Incidence, *, scale: Any = None, backend: str = "auto", threads: int | None = None
) -> Any:
    """Project column scores onto rows: u_p = scale_p · Σ_e w_pe v_e for each query.

    A passage's score is the weighted sum of the scores of its nodes. Sums are float32, in ascending order of columns,
    with one fused multiply-add per entry and a final product with ``scale``. Results are the same bits on every kernel
    variant and in every batch.

    Parameters
    ----------
    scores : array_like of float, shape (B, N) or (N,)
        Finite scores v of the columns, such as those of :func:`ppr`, read as float32. On a GPU (CuPy, torch, DLPack):
        float32 (B, N), read in place.
    incidence : Incidence
        The weights w, P rows by N columns. With ``incidence.normalised()`` a row's score is the weighted mean of its
        columns' scores.
    scale : array_like of float, shape (P,), optional
        A factor per row, finite and at least 0, on the host.
    backend : {"auto", "cpu", "cuda"}
    threads : int, optional
        CPU threads. Default: HOPFUSE_NUM_THREADS, else OMP_NUM_THREADS, else the processors available to the process.

    Returns
    -------
    array of float32, shape (B, P)
        An array of the library that ``scores`` came from. A row without entries has score 0.

    Raises
    ------
    InputError
        Shapes that differ, a NaN or infinite score (the message names its row and, for scores on the host, its column),
        a sum that overflows float32, a result above 4 GiB.

    References
    ----------
    u = Bᵀv with the incidence of entities and passages: PolicyRAG; HippoRAG, NeurIPS 2024, section 2.3.

    Examples
    --------
    >>> import hopfuse as hf
    >>> pairs = hf.Incidence.from_pairs([0, 0, 1], [0, 2, 1], num_rows=2, num_columns=3)
    >>> hf.project([[0.25, 0.5, 1.0]], pairs, scale=[1.0, 0.5])
    array([[1.25, 0.25]], dtype=float32)
    """
    factors = _read_scale(scale, _check(incidence))
    device = device_for(backend, scores, "scores")
    if device is not None:
        with device.runtime.on_stream_of(scores):
            values = _on_device(device, scores, incidence)
            _check_size(int(values.shape[0]), incidence.num_rows)
            call = ProjectCall(incidence, values, factors, incidence.num_rows, threads=1, on_device=True)
            return device.runtime.export(device.project(call), scores)
    engine = resolve(backend)
    values = _read_scores(scores, incidence.num_columns)
    _check_size(values.shape[0], incidence.num_rows)
    call = ProjectCall(incidence, values, factors, incidence.num_rows, thread_count(threads))
    return same_library(scores)(engine.project(call))


def project_topk(
    scores: Any, incidence: Incidence, k: int, *, scale: Any = None, backend: str = "auto", threads: int | None = None
) -> Hits:
    """Return the k rows with the highest projected scores; the CPU does so without a (B, P) matrix.

    Rows with a score of 0 or below are not returned. Order: higher score, then lower row.

    Parameters
    ----------
    scores, incidence, scale, backend, threads
        As in :func:`project`.
    k : int
        At least 0; results have min(k, P) columns and take 12 bytes per hit.

    Returns
    -------
    Hits
        Ids are rows; arrays are of the library that ``scores`` came from.

    Raises
    ------
    InputError
        As in :func:`project`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> pairs = hf.Incidence.from_pairs([0, 0, 1], [0, 2, 1], num_rows=3, num_columns=3)
    >>> hf.project_topk([[0.25, 0.5, 1.0]], pairs, 3).row(0)
    [(0, 1.25), (1, 0.5)]
    """
    factors = _read_scale(scale, _check(incidence))
    k = min(check_k(k), incidence.num_rows)
    device = device_for(backend, scores, "scores")
    if device is not None:
        runtime = device.runtime
        with runtime.on_stream_of(scores):
            values = _on_device(device, scores, incidence)
            _check_hits_size(int(values.shape[0]), k, incidence.num_rows)
            best = device.project_topk(ProjectCall(incidence, values, factors, k, threads=1, on_device=True))
            return Hits.unchecked(**{name: runtime.export(array, scores) for name, array in best.items()})
    engine = resolve(backend)
    values = _read_scores(scores, incidence.num_columns)
    _check_hits_size(values.shape[0], k, incidence.num_rows)
    best = engine.project_topk(ProjectCall(incidence, values, factors, k, thread_count(threads)))
    wrap = same_library(scores)
    return Hits.unchecked(**{name: wrap(array) for name, array in best.items()})


def _check(incidence: Any) -> Incidence:
    if not isinstance(incidence, Incidence):
        raise InputError(
            "type",
            "incidence",
            "{field} must be an Incidence, got {kind}; build one with Incidence.from_pairs",
            kind=type(incidence).__name__,
        )
    return incidence


def _check_size(batch: int, rows: int) -> None:
    if 4 * batch * rows > SCORES_BUDGET:
        raise InputError(
            "limit",
            "scores",
            "{field} of {batch} queries x {rows} rows take {batch_2:.1f} GiB, above the limit of "
            "{scores_budget:.0f} GiB; use project_topk, or smaller batches",
            batch=batch,
            rows=rows,
            batch_2=4 * batch * rows / 2**30,
            scores_budget=SCORES_BUDGET / 2**30,
        )


def _check_hits_size(batch: int, k: int, rows: int) -> None:
    if 12 * batch * k > SCORES_BUDGET:
        raise InputError(
            "length",
            None,
            "hits of {batch} queries with k = {k} take {batch_2:.1f} GiB, above the limit of "
            "{scores_budget:.0f} GiB; use a smaller k (there are {rows} rows), or smaller batches",
            batch=batch,
            k=k,
            batch_2=12 * batch * k / 2**30,
            scores_budget=SCORES_BUDGET / 2**30,
            rows=rows,
        )


def _read_scores(scores: Any, columns: int) -> NDArray[np.float32]:
    array = to_numpy(scores, "scores")
    check_real(array, "scores")
    if array.ndim not in (1, 2) or array.shape[-1] != columns:
        raise InputError(
            "shape",
            "scores",
            "{field} have shape {shape}; the incidence needs (B, {columns}) or ({columns},)",
            shape=array.shape,
            columns=columns,
        )
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.ascontiguousarray(np.atleast_2d(array), np.float32)
    for row, own in enumerate(values):  # row by row, because a (B, N) temporary is slow to allocate
        finite = np.isfinite(own)
        if not finite.all():
            column = int(np.argmin(finite))
            given = np.atleast_2d(array)[row, column]
            raise InputError(
                "UNSORTED",
                None,
                "row {row} has score {given} at column {column}; scores must be finite in float32",
                row=row,
                given=given,
                column=column,
            )
    return values


def _on_device(device: DeviceOps, scores: Any, incidence: Incidence) -> Any:
    values = device.runtime.adopt(scores)
    if values.dtype != np.float32 or len(values.shape) != 2 or values.shape[1] != incidence.num_columns:
        raise InputError(
            "shape",
            "scores",
            "{field} are {dtype}{shape}; on a device they must be float32 of shape (B, {num_columns}): "
            "convert them there",
            dtype=values.dtype,
            shape=tuple(values.shape),
            num_columns=incidence.num_columns,
        )
    return values


def _read_scale(scale: Any, incidence: Incidence) -> NDArray[np.float32] | None:
    if scale is None:
        return None
    array = to_numpy(scale, "scale")
    check_real(array, "scale")
    if array.shape != (incidence.num_rows,):
        raise InputError(
            "shape",
            "scale",
            "{field} has shape {shape}; it must be ({num_rows},), one factor per row",
            shape=array.shape,
            num_rows=incidence.num_rows,
        )
    with np.errstate(over="ignore", invalid="ignore"):
        factors = np.ascontiguousarray(array, np.float32)
    bad = np.flatnonzero(~(np.isfinite(factors) & (factors >= 0)))
    if bad.size:
        raise InputError(
            "range",
            "scale",
            "{field}[{bad}] is {array}; factors must be finite in float32 and at least 0",
            bad=bad[0],
            array=array[bad[0]],
        )
    return factors
