"""Weighted seed nodes, one row per query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import is_on_device, to_float64, to_numpy
from .._validation import (
    REAL,
    as_int64,
    check_dtype,
    check_k,
    check_real,
    counted,
    is_real,
    is_whole,
    wrong_type,
    wrong_value,
)
from ..errors import InputError
from .hits import PAD_ID

SEED_BYTES = 16  # an id and a weight
MAX_PADDED_BYTES = 1 << 32  # the most memory that padding to a requested width may take


@dataclass(frozen=True, eq=False, init=False)
class Seeds:
    """Restart vectors with a few nonzero nodes each, as two arrays of fixed width; walks on a device start from these.

    Parameters
    ----------
    nodes : array_like of int, shape (B, S)
        Node ids, unique within a row; -1 is padding.
    weights : array_like of float, shape (B, S), optional
        Finite, at least 0; weights at padding are ignored. Default: 1 each.

    Attributes
    ----------
    nodes : int64 (B, S)
    weights : float64 (B, S)
        Arrays on a GPU are referenced without a copy and must have these dtypes; the kernels that read them check their
        values.

    Raises
    ------
    InputError
        Wrong shapes or dtypes, ids below -1 or repeated in a row, weights that are negative, NaN or infinite.

    Examples
    --------
    >>> import hopfuse as hf
    >>> seeds = hf.Seeds([[0, 2], [1, -1]], [[1.0, 0.5], [1.0, 0.0]])
    >>> hf.ppr_topk(hf.Graph.from_edges([0, 1], [1, 2]), seeds, 1).ids
    array([[0],
           [1]])
    """

    nodes: NDArray[np.int64]
    weights: NDArray[np.float64]

    def __init__(self, nodes: Any, weights: Any = None) -> None:
        on_device = [is_on_device(array) for array in (nodes, weights) if array is not None]
        if any(on_device):
            if len(on_device) < 2 or not all(on_device):
                raise InputError(
                    "missing",
                    "weights",
                    "{field} and {@nodes} must both be given, and on a device if one of them is; copy the other there",
                )
            _check_device_types(nodes, weights)
        else:
            nodes, weights = _checked(nodes, weights)
        vars(self).update(nodes=nodes, weights=weights)  # the dataclass is frozen

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[int, float]], width: int = 1) -> Seeds:
        """Build seeds from one {node: weight} mapping per query, padded to at least ``width`` columns.

        Examples
        --------
        >>> import hopfuse as hf
        >>> hf.Seeds.from_rows([{3: 0.5}, {}]).nodes
        array([[ 3],
               [-1]])
        """
        given = list(rows)
        width = check_k(width, "width")
        for row, seeds in enumerate(given):
            _check_row(row, seeds)
        longest = max(map(len, given), default=0)
        if width > longest and width * max(1, len(given)) * SEED_BYTES > MAX_PADDED_BYTES:
            raise InputError(
                "limit",
                "width",
                "{field} is {given}: {rows} of that width take more than {allowed} GiB, and the longest has {longest}; "
                "give a smaller width",
                given=width,
                rows=counted(len(given), "row"),
                allowed=MAX_PADDED_BYTES >> 30,
                longest=counted(longest, "seed"),
            )
        shape = (len(given), max(width, longest))
        nodes, weights = np.full(shape, PAD_ID, np.int64), np.zeros(shape)
        with np.errstate(invalid="ignore"):  # a signalling NaN is refused below
            for row, seeds in enumerate(given):
                nodes[row, : len(seeds)] = list(seeds)
                weights[row, : len(seeds)] = list(seeds.values())
        _check_weights(nodes, weights, "rows")
        return cls.unchecked(nodes, weights)

    @classmethod
    def unchecked(cls, nodes: Any, weights: Any) -> Seeds:
        """Wrap the output of a kernel, without the constructor's checks."""
        made = object.__new__(cls)
        vars(made).update(nodes=nodes, weights=weights)
        return made

    def __len__(self) -> int:
        return int(self.nodes.shape[0])

    def __repr__(self) -> str:
        return f"Seeds(queries={len(self)}, width={int(self.nodes.shape[1])})"


def _check_row(row: int, seeds: Any) -> None:
    if not isinstance(seeds, Mapping):
        raise wrong_type(seeds, f"rows[{row}]", "a mapping of nodes to weights")
    for node, weight in seeds.items():
        if not is_whole(node) or not 0 <= node < 2**63:
            raise InputError(
                "range",
                f"rows[{row}]",
                "{field} has the node {given!r}; nodes must be whole numbers, at least 0",
                given=node,
            )
        if not isinstance(weight, REAL):
            raise wrong_type(weight, f"rows[{row}][{node}]", "a number")
        if not isinstance(weight, bool) and not is_real(weight):  # an int too large for a float, or even for repr
            raise InputError(
                "finite", f"rows[{row}][{node}]", "{field} is a number beyond float64; weights must be finite"
            )


def _check_device_types(nodes: Any, weights: Any) -> None:
    types = tuple(str(array.dtype).rsplit(".", 1)[-1] for array in (nodes, weights))
    if types != ("int64", "float64"):
        raise InputError(
            "dtype",
            "nodes" if types[0] != "int64" else "weights",
            "{@nodes} and {@weights} on a device are {given}; they must be {allowed}: convert them",
            given=" and ".join(types),
            allowed="int64 and float64",
        )
    _check_shapes(tuple(nodes.shape), tuple(weights.shape))


def _check_shapes(nodes: tuple[int, ...], weights: tuple[int, ...]) -> None:
    if len(nodes) != 2 or nodes != weights:
        raise InputError(
            "shape",
            "nodes",
            "{field} have the shape {given}, and {@weights} {other}; both must be (B, S), one row per query",
            given=nodes,
            other=weights,
        )


def _checked(nodes: Any, weights: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    ids = to_numpy(nodes, "nodes")
    check_dtype(ids, "nodes", "iu", "integers")
    ids = np.array(as_int64(ids, "nodes"), order="C")
    values = np.ones(ids.shape) if weights is None else to_numpy(weights, "weights")
    check_real(values, "weights")
    values = np.array(to_float64(values), order="C")
    _check_shapes(ids.shape, values.shape)
    if np.count_nonzero(ids < PAD_ID):
        row, at = map(int, np.argwhere(ids < PAD_ID)[0])
        raise wrong_value(int(ids[row, at]), f"nodes[{row}, {at}]", "at least 0 (-1 is padding)")
    valid = ids != PAD_ID
    values[~valid] = 0.0
    _check_weights(ids, values, "weights")
    ranked = np.sort(np.where(valid, ids, np.iinfo(np.int64).max - np.arange(ids.shape[1])), axis=1)
    twice = ranked[:, 1:] == ranked[:, :-1]
    if np.count_nonzero(twice):
        row = int(np.argwhere(twice)[0][0])
        raise InputError(
            "duplicate",
            f"nodes[{row}]",
            "{field} has the node {given} more than once; sum its weights",
            given=int(ranked[row, 1:][twice[row]][0]),
        )
    return ids, values


def _check_weights(ids: NDArray[np.int64], values: NDArray[np.float64], field: str) -> None:
    bad = ~((values >= 0) & (values < np.inf))
    if np.count_nonzero(bad):
        row, at = map(int, np.argwhere(bad)[0])
        raise InputError(
            "range",
            f"{field}[{row}]",
            "{field} has the weight {given} at the node {node}; weights must be finite and at least 0",
            given=float(values[row, at]),
            node=int(ids[row, at]),
        )
