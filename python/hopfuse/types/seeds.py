"""Weighted seed nodes, one row per query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import is_on_device, to_float64, to_numpy
from .._validation import REAL, WHOLE, is_real
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
                    "UNSORTED",
                    "nodes",
                    "{field} and weights of seeds must both be given on the device; move the other array too",
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
        if isinstance(width, bool) or not isinstance(width, WHOLE) or width < 0:
            raise InputError(
                "range", "width", "{field} is {given!r}; it must be a whole number, at least 0", given=width
            )
        for row, seeds in enumerate(given):
            _check_row(row, seeds)
        longest = max(map(len, given), default=0)
        if width > longest and width * max(1, len(given)) * SEED_BYTES > MAX_PADDED_BYTES:
            raise InputError(
                "UNSORTED",
                "width",
                "{field} is {width}: {number} rows of that width take more than {max_padded_bytes} GiB, and "
                "the longest row has {longest} seeds; pass a smaller width",
                width=width,
                number=len(given),
                max_padded_bytes=MAX_PADDED_BYTES >> 30,
                longest=longest,
            )
        shape = (len(given), max(width, longest))
        nodes, weights = np.full(shape, PAD_ID, np.int64), np.zeros(shape)
        with np.errstate(invalid="ignore"):  # a signalling NaN is refused below
            for row, seeds in enumerate(given):
                nodes[row, : len(seeds)] = list(seeds)
                weights[row, : len(seeds)] = list(seeds.values())
        _check_weights(nodes, weights)
        made = object.__new__(cls)
        vars(made).update(nodes=nodes, weights=weights)
        return made

    def __len__(self) -> int:
        return int(self.nodes.shape[0])

    def __repr__(self) -> str:
        return f"Seeds(queries={len(self)}, width={int(self.nodes.shape[1])})"


def _check_row(row: int, seeds: Any) -> None:
    if not isinstance(seeds, Mapping):
        raise InputError(
            "type",
            None,
            "seed row {row} must be a {{node: weight}} mapping, got {kind}",
            row=row,
            kind=type(seeds).__name__,
        )
    for node, weight in seeds.items():
        if isinstance(node, bool) or not isinstance(node, WHOLE) or not 0 <= node < 2**63:
            raise InputError(
                "range",
                None,
                "seed row {row} has the node {node!r}; nodes must be whole numbers, at least 0",
                row=row,
                node=node,
            )
        if not isinstance(weight, REAL):
            raise InputError(
                "UNSORTED",
                None,
                "seed row {row} has the weight {weight!r} at node {node}; weights must be numbers",
                row=row,
                weight=weight,
                node=node,
            )
        if not isinstance(weight, bool) and not is_real(weight):  # an int too large for a float, or even for repr
            raise InputError(
                "finite",
                None,
                "seed row {row} has a weight beyond float64 at node {node}; weights must be finite",
                row=row,
                node=node,
            )


def _check_device_types(nodes: Any, weights: Any) -> None:
    types = tuple(str(array.dtype).rsplit(".", 1)[-1] for array in (nodes, weights))
    if types != ("int64", "float64"):
        raise InputError(
            "UNSORTED",
            "seeds",
            "{field} on a device are {types} and {types_2}; they must be int64 and float64: convert them",
            types=types[0],
            types_2=types[1],
        )
    if len(nodes.shape) != 2 or tuple(nodes.shape) != tuple(weights.shape):
        raise InputError(
            "shape",
            "nodes",
            "{field} have shape {shape} and weights {shape_2}; both must be (B, S)",
            shape=nodes.shape,
            shape_2=weights.shape,
        )


def _checked(nodes: Any, weights: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    ids = to_numpy(nodes, "nodes")
    if ids.size and ids.dtype.kind not in "iu":
        raise InputError("dtype", "nodes", "{field} have dtype {dtype}; they must be integers", dtype=ids.dtype)
    if ids.dtype == np.uint64 and ids.size and ids.max() > np.iinfo(np.int64).max:
        raise InputError("UNSORTED", "nodes", "{field} go up to {max}; ids must fit int64", max=ids.max())
    ids = np.array(ids, np.int64, order="C")
    values = np.ones(ids.shape) if weights is None else to_numpy(weights, "weights")
    if values.size and values.dtype.kind not in "fiub":
        raise InputError(
            "dtype", "weights", "{field} have dtype {dtype}; they must be real numbers", dtype=values.dtype
        )
    values = np.array(to_float64(values), order="C")
    if ids.ndim != 2 or ids.shape != values.shape:
        raise InputError(
            "shape",
            "nodes",
            "{field} have shape {shape} and weights {shape_2}; both must be (B, S), one row per query",
            shape=ids.shape,
            shape_2=values.shape,
        )
    if np.count_nonzero(ids < PAD_ID):
        row, at = map(int, np.argwhere(ids < PAD_ID)[0])
        raise InputError(
            "range",
            None,
            "seed row {row} has the node {ids}; ids must be at least 0 (-1 is padding)",
            row=row,
            ids=ids[row, at],
        )
    valid = ids != PAD_ID
    values[~valid] = 0.0
    _check_weights(ids, values)
    ranked = np.sort(np.where(valid, ids, np.iinfo(np.int64).max - np.arange(ids.shape[1])), axis=1)
    twice = ranked[:, 1:] == ranked[:, :-1]
    if np.count_nonzero(twice):
        row = int(np.argwhere(twice)[0][0])
        raise InputError(
            "duplicate",
            None,
            "seed row {row} has node {ranked} more than once; sum its weights",
            row=row,
            ranked=ranked[row, 1:][twice[row]][0],
        )
    return ids, values


def _check_weights(ids: NDArray[np.int64], values: NDArray[np.float64]) -> None:
    bad = ~((values >= 0) & (values < np.inf))
    if np.count_nonzero(bad):
        row, at = map(int, np.argwhere(bad)[0])
        raise InputError(
            "range",
            None,
            "seed row {row} has weight {values} at node {ids}; weights must be finite and at least 0",
            row=row,
            values=values[row, at],
            ids=ids[row, at],
        )
