"""The order of operations that hopfuse/ppr.h states, spelled out in NumPy: `passes` passes, then the returned array.

Only for graphs whose degrees are small whole numbers, which every order of additions gives.
"""

from __future__ import annotations

import hopfuse as hf
import numpy as np
from hopfuse.reference import fma32
from numpy.typing import NDArray

SEGMENT = 64
GRAIN = 2.0**-50
F32 = np.float32


def canonical_ppr(graph: hf.Graph, restart: dict[int, float], damping: float, passes: int) -> NDArray[np.float32]:
    """Scores, by the caller's ids, of the iterate that pass ``passes`` writes (joint, one type, no mask)."""
    n = graph.num_nodes
    degree = graph.degree.sum(axis=1)
    walks = degree > 0
    scale = np.where(walks, np.divide(1.0, degree, out=np.zeros(n), where=walks), 1.0)
    s = np.zeros(n)
    for node, weight in restart.items():
        s[graph.internal_of[node]] = weight
    s = s / tree_sum(s[s > 0])
    b = ((1.0 - damping) * s * scale).astype(F32)
    factor = scale.astype(F32) * F32(damping)

    before, y = np.zeros(n, F32), b.copy()
    omega = 1.0 / (1.0 - 0.5 * damping * damping)
    empty = np.diff(graph.indptr) == 0
    for _ in range(passes):
        z = fma32(factor, row_sums(graph, y), b)
        following = z if graph.directed else np.where(empty, z, fma32(F32(omega), z - before, before))
        before, y = y, following
        omega = 1.0 / (1.0 - 0.25 * damping * damping * omega)
    mass = np.maximum(y, F32(0)).astype(np.float64) * np.where(walks, degree, 1.0)
    x = (mass * (1.0 / grain_sum(mass))).astype(F32)
    return x[graph.internal_of]


def row_sums(graph: hf.Graph, y: NDArray[np.float32]) -> NDArray[np.float32]:
    weight = np.ones(graph.num_stored, F32) if graph.weight is None else graph.weight
    sums = np.zeros(graph.num_nodes, F32)
    for v in range(graph.num_nodes):
        begin, end = graph.indptr[v], graph.indptr[v + 1]
        for segment in range(begin, end, SEGMENT):
            acc = F32(0)
            for e in range(segment, min(segment + SEGMENT, end)):
                acc = fma32(weight[e], y[graph.indices[e]], acc)
            sums[v] = sums[v] + acc
    return sums


def grain_sum(values: NDArray[np.float64]) -> float:
    """Each value to the nearest grain, ties to even; added as whole numbers."""
    return float(sum(int(grains) for grains in np.rint(values / GRAIN)) * GRAIN)


def tree_sum(values: NDArray[np.float64]) -> float:
    """The blocked tree of scalar.h for at most 1024 values."""
    acc = np.zeros(32)
    for i, value in enumerate(values):
        acc[i % 32] += value
    for half in (16, 8, 4, 2, 1):
        acc = acc[:half] + acc[half:]
    return float(acc[0])
