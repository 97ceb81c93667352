"""Weigh passages by their similarity to a query."""

from __future__ import annotations

from typing import Any

from .._arrays.vectors import first_unscorable
from .._validation import check_bytes, check_number
from ..backends.calls.dense import SimilarityCall
from ..backends.engine import engine_for
from ..errors import InputError
from ..types import Corpus
from ..types.continued_corpus import ContinuedCorpus
from ._arguments import read_filter
from .dense import read_queries

#: The largest result, in bytes.
WEIGHTS_BUDGET = 1 << 32
#: As in kernels/include/hopfuse/similarity.h, INPUTS.
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
    r"""Weigh all passages by their similarity to each query, to use as node weights of a walk guided by the query.

    weight_p = max(exp((c_p - m)/(τ s)), floor), with the cosines c_p of query and passage, their maximum m and their
    standard deviation s over the query's allowed passages. The most similar passage has weight 1. τ is in units of s,
    so the same τ suits encoders whose cosines differ little and those whose cosines differ much.

    Cosines are as for :func:`dense_topk` with ``metric="cosine"``; the maximum and s do not depend on the order of the
    passages. So a query's weights are the same bits on every kernel variant, in every batch, and with any passages
    present that are not allowed. No (B, P) matrix other than the result is allocated.

    Parameters
    ----------
    queries : array_like of float (B, d) or (d,)
        Finite vectors, none of them zero, read as float32. On a GPU (CuPy, torch, DLPack): float32 (B, d), read in
        place.
    corpus : Corpus, or array_like of float (P, d)
        Cosines are used whatever the corpus's metric. A raw array is checked and read in every call.
    tau : float
        1e-4 to 1e4, in standard deviations of the query's similarities. The smaller it is, the more the walk prefers
        passages similar to the query. For each of three encoders, the default loses less than a point of last-hop
        recall against the best value (docs/experiments.md).
    floor : float
        The smallest weight of an allowed passage, 1e-30 to 1.
    allow : array_like of bool (P,) or (B, P), of int (M,) or (B, M), or B id lists, optional
        Passages that a query may use, for all queries or per query. Others get weight 0 and do not count for the
        maximum and the standard deviation. A query that may use none gets zeros.
    backend : {"auto", "cpu", "cuda"}
    threads : int, optional
        CPU threads. Default: HOPFUSE_NUM_THREADS, else OMP_NUM_THREADS, else the processors available to the process.

    Returns
    -------
    array of float32, shape (B, P)
        Each is 0 or in [``floor``, 1]. An array of the library that ``queries`` came from.

    Raises
    ------
    InputError
        NaN or infinite queries, a zero query or passage (the message names the row), dimensions that differ, tau or
        floor out of range, a result above 4 GiB.

    Notes
    -----
    If all similarities are equal, all weights are 1. A standard deviation below 2⁻¹⁶ is replaced by 2⁻¹⁶, because
    rounding alone may produce a smaller one.

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
    (low, high), (least, most) = TAU_LIMITS, FLOOR_LIMITS
    shape = check_number(tau, "tau", low=low, high=high), check_number(floor, "floor", low=least, high=most)
    with engine_for(backend, queries, "queries") as engine:
        vectors = read_queries(engine, queries, corpus.dim, True)
        batch = int(vectors.shape[0])
        what = f"weights of {batch} queries x {corpus.num_vectors} passages"
        check_bytes(4 * batch * corpus.num_vectors, what, WEIGHTS_BUDGET, "use smaller batches")
        allowed = read_filter(allow, batch, corpus.num_vectors, "allow")
        call = SimilarityCall(vectors, corpus, *shape, allowed, engine.threads(threads), engine.on_device)
        return engine.give(engine.ops.run(call))


def _check_directions(corpus: Corpus) -> None:
    """Raise if a vector is zero; done once, and only for a corpus whose metric is not cosine."""
    if corpus.metric == "cosine" or _has_directions(corpus):
        return
    wrong = _first_zero(corpus)
    assert wrong is not None
    raise InputError(
        "zero",
        f"corpus[{wrong}]",
        "{field} is the zero vector (or vanishes in float32), which has no cosine; give that passage another "
        "vector, or leave it out of the corpus",
    )


def _has_directions(corpus: Corpus) -> bool:
    """Return whether no vector is zero. A corpus that continues another one shares what is known of its vectors."""
    if "has_directions" not in corpus.derived:
        known = isinstance(corpus, ContinuedCorpus) and all(_has_directions(one.corpus) for one in corpus.segments)
        corpus.derived["has_directions"] = known or _first_zero(corpus) is None
    return bool(corpus.derived["has_directions"])


def _first_zero(corpus: Corpus) -> int | None:
    for rows in corpus.parts():
        wrong = first_unscorable(corpus.as_float32(rows.start, rows.stop), needs_length=True)
        if wrong is not None:
            return int(rows.start + wrong.row)
    return None
