"""Project scores of columns (nodes) onto rows (passages)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_numpy
from .._validation import check_bytes, check_k, check_real, check_shape, check_type, check_weights
from ..backends.calls.projection import ProjectCall, ProjectTopkCall
from ..backends.engine import Engine, engine_for
from ..errors import InputError
from ..types import Hits, Incidence

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
    with engine_for(backend, scores, "scores") as engine:
        values, rows = _read_scores(engine, scores, incidence.num_columns), incidence.num_rows
        what, fix = f"scores of {values.shape[0]} queries x {rows} rows", "use project_topk, or smaller batches"
        check_bytes(4 * values.shape[0] * rows, what, SCORES_BUDGET, fix)
        call = ProjectCall(incidence, values, factors, engine.threads(threads), engine.on_device)
        return engine.give(engine.ops.run(call))


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
    with engine_for(backend, scores, "scores") as engine:
        values, rows = _read_scores(engine, scores, incidence.num_columns), incidence.num_rows
        what = f"hits of {values.shape[0]} queries with k = {k}"
        fix = f"use a smaller k (there are {rows} rows), or smaller batches"
        check_bytes(12 * values.shape[0] * k, what, SCORES_BUDGET, fix)
        call = ProjectTopkCall(incidence, values, factors, k, engine.threads(threads), engine.on_device)
        return engine.give_hits(engine.ops.run(call))


def _check(incidence: Any) -> Incidence:
    checked: Incidence = check_type(
        incidence, "incidence", Incidence, "an Incidence, as Incidence.from_pairs builds it"
    )
    return checked


def _read_scores(engine: Engine, scores: Any, columns: int) -> Any:
    values = engine.rows(scores, "scores", columns, "one column per column of the incidence")
    engine.check(_check_finite, values, scores)
    return values


def _check_finite(values: NDArray[np.float32], given: Any) -> None:
    for row, own in enumerate(values):  # row by row, because a (B, N) temporary is slow to allocate
        finite = np.isfinite(own)
        if not finite.all():
            column = int(np.argmin(finite))
            raise InputError(
                "finite",
                f"scores[{row}, {column}]",
                "{field} is {given}; scores must be finite in float32",
                given=np.atleast_2d(to_numpy(given, "scores"))[row, column],
            )


def _read_scale(scale: Any, incidence: Incidence) -> NDArray[np.float32] | None:
    if scale is None:
        return None
    array = to_numpy(scale, "scale")
    check_real(array, "scale")
    check_shape(array.shape, "scale", (incidence.num_rows,), reason="one factor per row")
    check_weights(array, "scale", float32=True)
    return np.ascontiguousarray(array, np.float32)
