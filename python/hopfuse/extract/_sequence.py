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
                "missing",
                "document",
                "{field} of passage {passage!r} is missing, and its position {position} needs it; give both or none",
                passage=ids[row],
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
                "missing",
                "position",
                "{field} of passage {passage!r} of document {document!r} is missing, and that of passage {other!r} is "
                "{position}; give positions to all passages of a document, or to none",
                passage=ids[row],
                other=ids[other],
                document=document,
                position=at[other],
            )
    ordered = sorted(rows, key=at.__getitem__)
    for one, other in pairwise(ordered):
        if at[one] == at[other]:
            raise InputError(
                "duplicate",
                "position",
                "passages {passage!r} and {other!r} of document {document!r} have the {field} {given}; give one each",
                given=at[one],
                document=document,
                passage=ids[one],
                other=ids[other],
            )
    return ordered
