"""Sørensen-Dice coefficients of texts and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_numpy
from .._threads import thread_count
from .._validation import as_int64, check_dtype, check_ids, check_shape, check_type
from ..backends import resolve
from ..backends.calls.dice import DiceCall
from ..errors import InputError
from ..types import LabelSets


def dice_scores(
    texts: Sequence[str],
    labels: LabelSets,
    candidates: Any,
    *,
    indptr: Any,
    backend: str = "auto",
    threads: int | None = None,
) -> NDArray[np.float32]:
    """Return the mean Sørensen-Dice coefficient of each text with the labels of its candidates.

    ``dice(X, Y) = 2·|X ∩ Y| / (|X| + |Y|)``, and 0 if both sets are empty. The score of a candidate is the mean over
    its P labels: one label, or the three of a triple (head, relation, tail), for example. It is computed in float64 and
    rounded to float32 once.

    Parameters
    ----------
    texts : sequence of str, B entries
        Split into elements in the same way as the labels (:meth:`LabelSets.sets_of`).
    labels : LabelSets
    candidates : array_like of int, shape (Z, P) or (Z,), P >= 1
        The label numbers of each candidate.
    indptr : array_like of int, shape (B + 1,)
        Text b is scored with the candidates ``indptr[b]`` .. ``indptr[b + 1] - 1``.
    backend : {"auto", "cpu", "cuda"}
        Texts, candidates and results are on the host; labels stay on a device after their first use there.
    threads : int, optional
        CPU threads. Default: HOPFUSE_NUM_THREADS, else OMP_NUM_THREADS, else the processors available to the process.

    Returns
    -------
    ndarray of float32, shape (Z,)
        In [0, 1].

    Raises
    ------
    InputError
        Texts that are not strings, label numbers out of range, an indptr that does not ascend from 0 to Z.

    Notes
    -----
    APOC's ``apoc.text.sorensenDiceSimilarity`` compares multisets of bigrams, as ``repeats=True`` of :class:`LabelSets`
    does. Differences remain. APOC converts texts to upper case, without normalising them, and splits only at ASCII
    white space. It counts UTF-16 units, so a character beyond U+FFFF counts as two. It gives two texts without bigrams
    1 if their words are equal and NaN otherwise, where this function gives 0.

    References
    ----------
    Dice, Measures of the Amount of Ecologic Association Between Species, Ecology 26, 1945. Sørensen, 1948.

    Examples
    --------
    >>> import hopfuse as hf
    >>> labels = hf.LabelSets.from_labels(["Ada Lovelace", "wrote", "Notes"])
    >>> hf.dice_scores(["what did ada write"], labels, [[0, 1, 2]], indptr=[0, 1])
    array([0.2], dtype=float32)
    >>> hf.dice_scores(["night"], hf.LabelSets.from_labels(["nacht"]), [0], indptr=[0, 1])
    array([0.25], dtype=float32)
    """
    check_type(labels, "labels", LabelSets, "LabelSets: hf.LabelSets.from_labels(labels)")
    query_indptr, query_units = labels.sets_of(texts)
    rows = _read_candidates(candidates, len(labels))
    bounds = _read_indptr(indptr, query_indptr.size - 1, rows.shape[0])
    call = DiceCall(labels, query_indptr, query_units, rows, bounds, thread_count(threads))
    return np.asarray(resolve(backend).run(call))


def _read_candidates(candidates: Any, count: int) -> NDArray[np.int32]:
    array = to_numpy(candidates, "candidates")
    if array.ndim == 1:
        array = array[:, None]
    check_dtype(array, "candidates", "iu", "label numbers")
    check_shape(array.shape, "candidates", ("Z", "P"), ("Z",))
    if not array.shape[1]:
        raise InputError("empty", "candidates", "{field} has no labels; each candidate needs at least one")
    check_ids(array, "candidates", count)
    return np.ascontiguousarray(array, np.int32)


def _read_indptr(indptr: Any, batch: int, count: int) -> NDArray[np.int64]:
    array = to_numpy(indptr, "indptr")
    check_dtype(array, "indptr", "iu", "whole numbers")
    check_shape(array.shape, "indptr", (batch + 1,))
    bounds = np.ascontiguousarray(as_int64(array, "indptr"))
    if bounds[0] != 0 or bounds[-1] != count or (bounds[1:] < bounds[:-1]).any():
        raise InputError(
            "order",
            "indptr",
            "{field} must ascend from 0 to {allowed}, the number of candidates",
            allowed=count,
        )
    return bounds
