"""Weights of passages by their similarity to a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._arrays.convert import same_library
from .._arrays.norms import first_unscorable
from .._threads import thread_count
from .._validation import is_real
from ..backends import resolve
from ..backends.calls import SimilarityCall
from ..backends.placement import device_for
from ..errors import InputError
from ..types import Corpus
from ._filter import read_filter
from .vectors import device_queries, read_queries

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps

#: (B, P) weights above this many bytes are refused.
WEIGHTS_BUDGET = 1 << 32
#: kernels/include/hopfuse/similarity.h, INPUTS.
TAU_LIMITS = (1e-4, 1e4)
FLOOR_LIMITS = (1e-30, 1.0)


def similarity_weights(
    queries: Any,
    corpus: Any,
    *,
    tau: float = 1.4,
    floor: float = 1e-4,
    allow: Any = None,
    backend: str = "auto",
    threads: int | None = None,
) -> Any:
    r"""Weigh all passages by their similarity to each query: the node weights of a walk that the question steers.

    weight_p = max(exp((c_p - m)/(τ s)), floor), with the cosines c_p of query and passage, their maximum m and their
    standard deviation s over the query's allowed passages. The most similar passage weighs 1. τ counts in s, so that
    one τ does for encoders whose cosines lie near together and for those whose lie far apart.

    Cosines are canonical float32, those that :func:`dense_topk` has under ``metric="cosine"``; maximum and spread are
    exact in any order. So a query's weights are the same bits on every kernel variant, in every batch, and whatever
    passages that are not allowed stand between the others. There is never a (B, P) matrix but the one returned.

    Parameters
    ----------
    queries : array_like of float (B, d) or (d,)
        Finite vectors, none of them zero, read as float32. On a GPU (CuPy, torch, DLPack): float32 (B, d), read in
        place.
    corpus : Corpus, or array_like of float (P, d)
        Cosines whatever the corpus's metric. A raw array is checked and read in every call.
    tau : float
        1e-4 to 1e4, in standard deviations of a query's own similarities. The smaller, the more the walk keeps to
        passages that are like the question. The default loses less than a point of last-hop recall against the best
        of each of three encoders (docs/quality.md).
    floor : float
        What a passage weighs at least, 1e-30 to 1.
    allow : array_like of bool (P,) or (B, P), of int ids, or a sequence of B id lists, optional
        The passages that a query may use, for all queries or for each. Others weigh 0 and count neither for the maximum
        nor for the spread; a query that may use none has only zeros.
    backend : {"auto", "cpu", "cuda"}
    threads : int, optional
        Of the CPU. Default: HOPFUSE_NUM_THREADS, else all processors of the process.

    Returns
    -------
    array of float32, shape (B, P)
        Of the library that ``queries`` came from. 0 or ``floor`` .. 1.

    Raises
    ------
    InputError
        NaN or infinite queries, a zero query or passage (the row is named), dimensions that differ, tau or floor
        outside their limits, a result above 4 GiB.

    Notes
    -----
    Where all similarities are equal, all weights are 1: a spread below 2⁻¹⁶ counts as 2⁻¹⁶, which is what rounding may
    leave of it.

    Examples
    --------
    >>> import numpy as np, hopfuse as hf
    >>> c = hf.Corpus.from_array(np.eye(3, dtype=np.float32))
    >>> hf.similarity_weights([[4.0, 3.0, 0.0]], c, tau=2.0).round(3)
    array([[1.   , 0.745, 0.308]], dtype=float32)
    """
    if not isinstance(corpus, Corpus):
        corpus = Corpus.from_array(corpus, metric="cosine")
    _check_directions(corpus)
    shape = _within(tau, "tau", TAU_LIMITS), _within(floor, "floor", FLOOR_LIMITS)
    device = device_for(backend, queries, "queries")
    if device is not None:
        return _on_device(device, queries, corpus, allow, shape)
    engine = resolve(backend)
    vectors = read_queries(queries, corpus.dim, needs_length=True)
    _check_room(vectors.shape[0], corpus)
    allowed = read_filter(allow, vectors.shape[0], corpus.num_vectors, "allow")
    call = SimilarityCall(vectors, corpus, *shape, allowed, thread_count(threads))
    return same_library(queries)(engine.similarity_weights(call))


def _on_device(device: DeviceOps, queries: Any, corpus: Corpus, allow: Any, shape: tuple[float, float]) -> Any:
    with device.runtime.on_stream_of(queries):
        vectors = device_queries(device, queries, corpus.dim)
        batch = int(vectors.shape[0])
        _check_room(batch, corpus)
        allowed = read_filter(allow, batch, corpus.num_vectors, "allow")
        call = SimilarityCall(vectors, corpus, *shape, allowed, threads=1, on_device=True)
        return device.runtime.export(device.similarity_weights(call), queries)


def _check_directions(corpus: Corpus) -> None:
    """Refuse vectors without a direction: of a corpus that is not for cosines, once."""
    if corpus.metric == "cosine" or "has_directions" in corpus.derived:
        return
    for rows in corpus.parts():
        wrong = first_unscorable(corpus.as_float32(rows.start, rows.stop), needs_length=True)
        if wrong is not None:
            raise InputError(
                f"row {rows.start + wrong.row} of the corpus is the zero vector (or vanishes in float32), which has no "
                "cosine; give that passage a vector, or leave it out of the corpus"
            )
    corpus.derived["has_directions"] = True


def _check_room(batch: int, corpus: Corpus) -> None:
    size = 4 * batch * corpus.num_vectors
    if size > WEIGHTS_BUDGET:
        raise InputError(
            f"{batch} queries of {corpus.num_vectors} passages are {size / 2**30:.1f} GiB of weights, above the "
            f"budget of {WEIGHTS_BUDGET / 2**30:.0f} GiB; use smaller batches"
        )


def _within(value: Any, name: str, limits: tuple[float, float]) -> float:
    least, most = limits
    if not is_real(value) or not least <= float(value) <= most:
        raise InputError(f"{name} is {value!r}; it must be a number from {least:g} to {most:g}")
    return float(value)
