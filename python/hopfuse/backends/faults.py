"""The errors of single queries: what a kernel's status means, and what the host's checks of the same inputs say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import InputError


def bad_query(row: int) -> InputError:
    """Return the error of a query that cannot be scored."""
    return InputError(
        "finite", f"queries[{row}]", "{field} has a NaN, an infinite entry, or values too large to score in float32"
    )


def zero_query(row: int) -> InputError:
    """Return the error of a query without a direction."""
    return InputError(
        "zero",
        f"queries[{row}]",
        "{field} is the zero vector (or vanishes in float32), which has no cosine; leave it out",
    )


def no_node_weight(row: int) -> InputError:
    """Return the error of a query whose node weights are all 0."""
    return InputError(
        "zero", f"node_weights[{row}]", "{field} is all zero; leave the query out, or give it weights above 0"
    )


#: The error of a query by its status in kernels/include/hopfuse/query_status.h.
FAULTS: dict[int, Callable[[int], InputError]] = {
    -1: bad_query,
    -2: zero_query,
    -3: lambda row: InputError(
        "unknown",
        f"restart[{row}]",
        "{field} has a node outside the graph, or one that {@allow} or a node weight of 0 excludes; -1 is padding",
    ),
    -4: lambda row: InputError(
        "range",
        f"restart[{row}]",
        "{field} has a weight that is negative, NaN or infinite, or a sum that overflows float64",
    ),
    -5: lambda row: InputError(
        "duplicate", f"restart[{row}]", "{field} has a node more than once; sum the weights of that node"
    ),
    -6: lambda row: InputError(
        "zero",
        f"restart[{row}]",
        "{field} has no seed with weight > 0; leave it out of the batch, or pass empty='skip'",
    ),
    -7: lambda row: InputError(
        "unknown",
        f"hits[{row}]",
        "{field} has an id that is not a node of the graph, a row of the incidence or a column of the weights",
    ),
    -8: lambda row: InputError("range", f"scores[{row}]", "{field} has a sum beyond float32; scale its scores down"),
    -9: lambda row: InputError(
        "finite", f"scores[{row}]", "{field} has a score that is NaN or infinite; scores must be finite in float32"
    ),
    -10: lambda row: InputError(
        "range",
        f"node_weights[{row}]",
        "{field} makes the lightest edge weigh less than float32 can hold; make the least weight 0 or larger, or "
        "scale the edges",
    ),
    -11: no_node_weight,
    -12: lambda row: InputError(
        "range",
        f"node_weights[{row}]",
        "{field} has a weight that is negative, NaN or infinite; weights must be finite and at least 0",
    ),
}


def raise_fault(status: NDArray[np.int32], first: int = 0) -> None:
    """Raise the error of the first query that has one; ``first`` is the caller's row of query 0."""
    bad = np.flatnonzero(status < 0)
    if bad.size:
        raise FAULTS[int(status[bad[0]])](first + int(bad[0]))


def check_scorable(vectors: NDArray[np.float32], needs_length: bool) -> None:
    """Raise for the first query that cannot be scored, or has no direction where it ``needs_length``."""
    wrong = _native.first_unscorable(vectors, needs_length, 1)
    if wrong is not None:
        row, is_zero = wrong
        raise zero_query(row) if is_zero else bad_query(row)
