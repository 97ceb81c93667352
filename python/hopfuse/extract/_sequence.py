"""Consecutive passages of a document, or turns of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError


def neighbours(
    ids: Sequence[str | int], documents: Sequence[str | int | None], positions: Sequence[int | None]
) -> NDArray[np.int64]:
    """Return pairs of consecutive passages of a document.

    A passage without a document has no neighbours. Passages without positions are in the order of the rows. Positions
    need not be consecutive numbers.

    Parameters
    ----------
    ids : sequence of str or of int, P entries
        For error messages.
    documents : sequence of str, int or None, P entries
    positions : sequence of int or None, P entries

    Returns
    -------
    ndarray of int64, shape (S, 2)
        Rows of passages, the earlier one first; documents are in the order of first occurrence.

    Raises
    ------
    InputError
        A position without a document, or positions in a document that are repeated or incomplete.

    Examples
    --------
    >>> neighbours("abcd", ["x", "y", "x", "x"], [2, None, 9, 1]).tolist()
    [[3, 0], [0, 2]]
    """
    rows_of: dict[str | int, list[int]] = {}
    for row, (document, position) in enumerate(zip(documents, positions, strict=True)):
        if document is not None:
            rows_of.setdefault(document, []).append(row)
        elif position is not None:
            raise InputError(
                "UNSORTED",
                None,
                "passage {ids!r} has the position {position} and no document; give both, or neither",
                ids=ids[row],
                position=position,
            )
    pairs = [pair for document, rows in rows_of.items() for pair in pairwise(_in_order(document, rows, ids, positions))]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _in_order(
    document: str | int, rows: list[int], ids: Sequence[str | int], positions: Sequence[int | None]
) -> list[int]:
    at = {row: position for row in rows if (position := positions[row]) is not None}
    if not at:
        return rows
    for row in rows:
        if row not in at:
            other = next(iter(at))
            raise InputError(
                "unknown",
                None,
                "passage {ids!r} of document {document!r} has no position, passage {ids_2!r} of it has {at}; "
                "give positions to all passages of a document, or to none",
                ids=ids[row],
                document=document,
                ids_2=ids[other],
                at=at[other],
            )
    ordered = sorted(rows, key=at.__getitem__)
    for one, other in pairwise(ordered):
        if at[one] == at[other]:
            raise InputError(
                "duplicate",
                None,
                "passages {ids!r} and {ids_2!r} of document {document!r} have the same position {at}; "
                "positions in a document are distinct",
                ids=ids[one],
                ids_2=ids[other],
                document=document,
                at=at[one],
            )
    return ordered
