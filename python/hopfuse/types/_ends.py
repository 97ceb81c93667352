"""Which facts each entity is an end of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._rows import indptr_of


def facts_by_end(rows: NDArray[np.int32], entities: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Facts by entity, read-only; one from an entity to itself stands there once.

    Parameters
    ----------
    rows : ndarray of int32, shape (F, 3)
        Head, relation, tail.
    entities : int
        N.

    Returns
    -------
    indptr : ndarray of int64, shape (N + 1,)
    incident : ndarray of int32
        Entity e is an end of the facts ``incident[indptr[e]]`` .. ``incident[indptr[e + 1] - 1]``, ascending.
    """
    fact = np.arange(rows.shape[0], dtype=np.int32)
    other = rows[:, 0] != rows[:, 2]
    end, at = np.concatenate([rows[:, 0], rows[other, 2]]), np.concatenate([fact, fact[other]])
    indptr = indptr_of(end, entities)
    incident = at[np.lexsort((at, end))]
    for made in (indptr, incident):
        made.flags.writeable = False
    return indptr, incident
