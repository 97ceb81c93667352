"""Power iteration of the peers that multiply sparse matrices, on the host and on the device."""

from __future__ import annotations

from math import ceil, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cases.ppr import Ppr


def stored_entries(workload: Ppr) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return both directions of every edge (self-loops once): from, to, weight."""
    src, dst, weight, _ = workload.graph.edges()
    loop = src == dst
    both = np.concatenate([weight, weight[~loop]]).astype(np.float64)
    return np.concatenate([src, dst[~loop]]), np.concatenate([dst, src[~loop]]), both


def adjacency(workload: Ppr) -> Any:
    """Return the weights as a SciPy CSR matrix in float64, with outgoing edges as rows."""
    import scipy.sparse as sp

    src, dst, weight = stored_entries(workload)
    n = workload.graph.num_nodes
    return sp.csr_matrix((weight, (src, dst)), shape=(n, n))


def damped_operator(workload: Ppr) -> Any:
    """Return d P' as a SciPy CSR matrix in float32, with 32-bit indices."""
    import scipy.sparse as sp

    col, row, weight = stored_entries(workload)
    n = workload.graph.num_nodes
    degree = np.bincount(col, weights=weight, minlength=n)
    scaled = workload.damping * weight / degree[col]
    at = row.astype(np.int32), col.astype(np.int32)
    operator = sp.csr_array((scaled.astype(np.float32), at), shape=(n, n))
    operator.sort_indices()
    return operator


def shares(seeds: tuple[NDArray[Any], NDArray[Any]]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the nodes of a restart, and their weights scaled to sum 1."""
    nodes, values = seeds
    return nodes.astype(np.int32), (values / values.sum()).astype(np.float32)


def restart_columns(workload: Ppr, batch: int) -> NDArray[np.float32]:
    """Return the restarts of the first queries (N, batch), each scaled to sum 1."""
    restart = np.zeros((workload.graph.num_nodes, batch), np.float32)
    for column, seeds in enumerate(workload.seeds[:batch]):
        node, share = shares(seeds)
        restart[node, column] = share
    return restart


def most_passes(damping: float, tol: float) -> int:
    """Return the passes after which an exact iteration changes by at most (1 - d) tol; float32 may not get there."""
    return ceil(log((1 - damping) * tol / 2) / log(damping))


def power_iteration(operator: Any, restart: Any, damping: float, tol: float) -> Any:
    """Iterate X <- d P'X + (1 - d) S until every column's L1 residual is at most (1 - d) tol; change ``restart``.

    It stops after ``most_passes`` at the latest. NumPy's functions accept CuPy arrays too; the comparison then waits
    for the device in each pass.
    """
    x, restart = restart, (1 - damping) * restart
    for _ in range(most_passes(damping, tol)):
        step = operator @ x
        step += restart
        np.subtract(step, x, out=x)
        residual = np.abs(x, out=x).sum(axis=0)
        x = step
        if (residual <= (1 - damping) * tol).all():
            break
    return x
