"""ising.h spelled out in NumPy, operation by operation: the bits that every variant must have."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.reference import fma32
from kernels.canonical_scalar import exp32
from numpy.typing import NDArray

F32 = np.float32
Array = NDArray[np.float32]


def tanh32(x: Array) -> Array:
    """Lambert's fifth convergent below 5/8, 1 - 2/(exp(2 |x|) + 1) above."""
    size = np.abs(x)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        z = x * x
        small = x * fma32(z, F32(105) + z, F32(945)) / fma32(z, fma32(z, F32(15), F32(420)), F32(945))
        twice = F32(2) * size
        grown = np.where(twice > F32(88.7228394), F32(np.inf), exp32(twice)).astype(F32)
        large = F32(1) - F32(2) / (grown + F32(1))
    return np.where(size < F32(0.625), small, np.copysign(large, x)).astype(F32)


def tree_sum(values: NDArray[Any]) -> Any:
    """32 accumulators, then halves, for at most 1024 values, of their own type."""
    acc = np.zeros(32, values.dtype)
    for first in range(0, values.size, 32):
        part = values[first : first + 32]
        acc[: part.size] += part
    for half in (16, 8, 4, 2, 1):
        acc = acc[:half] + acc[half:]
    return acc[0]


def couplings32(graph: hf.Graph, ids: NDArray[np.int64]) -> Array:
    """A: raw entries and their sums in float64, neighbours by internal node."""
    rows = []
    for node in graph.internal_of[ids]:
        entries = range(int(graph.indptr[node]), int(graph.indptr[node + 1]))
        row: dict[int, np.float64] = {}
        for entry in entries:
            weight = np.float64(1.0 if graph.weight is None else graph.weight[entry])
            row[int(graph.indices[entry])] = row.get(int(graph.indices[entry]), np.float64(0)) + weight
        rows.append(row)
    made = np.zeros((ids.size, ids.size), F32)
    for i, mine in enumerate(rows):
        raw = np.zeros(ids.size)
        for j, theirs in enumerate(rows):
            for node in sorted(mine.keys() & theirs.keys()) if i != j else ():
                raw[j] = raw[j] + mine[node] * theirs[node]
        total = tree_sum(raw)
        if total > 0:
            made[i] = (raw / total).astype(F32)
    return made


def field32(scores: Array) -> Array:
    if scores[0] == scores[-1]:
        return np.zeros_like(scores)
    with np.errstate(over="ignore"):
        factor = F32(1) if scores[0] - scores[-1] <= F32(3.40282347e38) else F32(0.5)
    low = scores[-1] * factor
    return F32(2) * ((scores * factor - low) / (scores[0] * factor - low)) - F32(1)


def scores32(graph: hf.Graph, ids: NDArray[np.int64], scores: Array, **model: float) -> Array:
    """The new score of each candidate of one list, in the list's order."""
    j, t = F32(model["coupling"]), F32(model["temperature"])
    share, blend = F32(model["relaxation"]), F32(model["blend"])
    couplings, h = couplings32(graph, ids), field32(scores)
    with np.errstate(over="ignore", under="ignore"):
        m = tanh32(h / t)
        for _ in range(int(model["steps"])):
            mean = np.array([tree_sum(row * m) for row in couplings], F32)
            m = (F32(1) - share) * m + share * tanh32((h + j * mean) / t)
        return (F32(1) - blend) * h + blend * m
