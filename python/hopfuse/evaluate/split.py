"""Queries in two halves, one to choose on and one to report."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import md5

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .qrels import Qrels

SPLITS = ("tune", "test", "all")


def in_test_half(ids: Iterable[str]) -> NDArray[np.bool_]:
    """True for the queries of the test half, False for those of the tune half.

    A query is in the test half where the MD5 of its id in UTF-8 is odd. So it depends on the id alone:
    not on the order of the queries, nor on which others there are, nor on a seed.

    Parameters
    ----------
    ids : iterable of str, B entries

    Returns
    -------
    ndarray of bool, shape (B,)
        About half of them True.

    Examples
    --------
    >>> from hopfuse.evaluate import in_test_half
    >>> in_test_half(["q1", "q2", "q3", "q4"])
    array([False,  True,  True, False])
    """
    odd = (md5(query.encode(), usedforsecurity=False).digest()[-1] % 2 == 1 for query in ids)
    return np.fromiter(odd, bool)


def split_rows(qrels: Qrels, split: str) -> NDArray[np.int64]:
    """Positions of the queries of one half, or of all of them.

    Parameters
    ----------
    qrels : Qrels
    split : "tune", "test" or "all"

    Raises
    ------
    InputError
        Another name, or a half that has no query.

    Examples
    --------
    >>> from hopfuse.evaluate import Qrels, split_rows
    >>> split_rows(Qrels(["q1", "q2", "q3"], [[1], [2], [3]]), "test")
    array([1, 2])
    """
    if split not in SPLITS:
        raise InputError(f"split is {split!r}; allowed: {', '.join(SPLITS)}")
    test = in_test_half(qrels.ids)
    rows = np.arange(len(qrels)) if split == "all" else np.flatnonzero(test == (split == "test"))
    if rows.size == 0:
        raise InputError(f"none of the {len(qrels)} queries is in the {split} half; evaluate more queries, or all")
    return rows
