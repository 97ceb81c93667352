"""Graphs, query batches and ranked lists that the tests of several packages share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import hopfuse as hf
import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

SEGMENT = 64
TILE = 64


def random_graph(
    rng: np.random.Generator,
    n: int,
    edges: int,
    *,
    directed: bool = False,
    weights: str = "random",
    types: int = 1,
    hub: int | None = None,
) -> hf.Graph:
    """Return random edges with self-loops and parallel edges; a sixth of the nodes are isolated.

    ``weights`` is "none", "ones", "integer", "random", "spread" (1e-6 .. 1e6) or "extreme" (1e-30 .. 1e30).
    ``hub`` is a node that is joined to every third of the nodes.
    """
    alive = rng.permutation(n)[: max(1, n - n // 6)]
    src, dst = rng.choice(alive, edges), rng.choice(alive, edges)
    if hub is not None:
        spokes = np.arange(0, n, 1 if n < 200 else 3)
        src, dst = np.concatenate([src, spokes]), np.concatenate([dst, np.full(spokes.size, hub)])
    size = src.size
    weight = {
        "none": lambda: None,
        "ones": lambda: np.ones(size),
        "integer": lambda: rng.integers(1, 5, size).astype(float),
        "random": lambda: rng.random(size) + 0.01,
        "spread": lambda: 10.0 ** rng.uniform(-6, 6, size),
        "extreme": lambda: 10.0 ** rng.uniform(-30, 30, size),
    }[weights]()
    kind = rng.integers(0, types, size) if types > 1 else None
    names = [f"t{i}" for i in range(types)] if types > 1 else None
    return hf.Graph.from_edges(src, dst, weight, num_nodes=n, directed=directed, edge_type=kind, edge_type_names=names)


#: Edges 0 -> 1 -> 2 -> 0 with a chord and a duplicate, a self-loop on 1, 3 dangling, a second component 4 <-> 5 with a
#: self-loop on 5, and 6 that only leads into it; node 7 is isolated. Each is source, destination, weight and type.
AWKWARD = [
    (0, 1, 1.0, 0),
    (0, 1, 0.5, 0),
    (1, 2, 2.0, 1),
    (2, 0, 1.0, 2),
    (0, 2, 0.25, 1),
    (1, 1, 0.75, 0),
    (2, 3, 3.0, 0),
    (4, 5, 1.0, 1),
    (5, 4, 2.0, 2),
    (5, 5, 1.0, 0),
    (6, 4, 1.0, 2),
]


def twins_and_likes(rng: np.random.Generator) -> tuple[hf.Graph, list[dict[int, float]]]:
    """Return stars of twins, whose scores are equal, and cycles, whose equal scores no entry shows, in random order."""
    hubs = [(0, v) for v in range(3, 150)] + [(1, v) for v in range(150, 190)] + [(2, v) for v in range(180, 200)]
    cycles = [(start + i, start + (i + 1) % 50) for start in range(200, 400, 50) for i in range(50)]
    src, dst = rng.permutation(450)[np.array([*hubs, *cycles]).T]
    graph = hf.Graph.from_edges(src, dst, num_nodes=450)
    return graph, [{int(v): 1.0} for v in (src[0], src[150], src[180], src[250], src[310], dst[0])]


def paths_to_a_hub(rng: np.random.Generator) -> tuple[hf.Graph, list[dict[int, float]]]:
    """Return paths from seeds to one node of a large degree, whose error outlasts those of hits; in random order."""
    steps, paths, size = 8, 5, 450
    first = np.arange(1, 1 + steps * paths, steps)
    along = [(start + i, start + i + 1) for start in first for i in range(steps - 1)]
    ends = [(0, 0), *along, *((0, start + steps - 1) for start in first), *((0, leaf) for leaf in range(41, size))]
    src, dst = (number := rng.permutation(size))[np.array(ends).T]
    graph = hf.Graph.from_edges(src, dst, np.where(src == dst, 1e6, 1.0), num_nodes=size)
    return graph, [{int(number[start]): 1.0} for start in first]


def awkward_graph(directed: bool) -> hf.Graph:
    """Return the graph of :data:`AWKWARD`."""
    src, dst, weight, kind = (list(column) for column in zip(*AWKWARD, strict=True))
    return hf.Graph.from_edges(
        src, dst, weight, num_nodes=8, directed=directed, edge_type=kind, edge_type_names=["a", "b", "c"]
    )


def grid_graph(side: int) -> hf.Graph:
    """Return a torus of side x side nodes, where every score has ties."""
    node = np.arange(side * side).reshape(side, side)
    src = np.concatenate([node.ravel(), node.ravel()])
    dst = np.concatenate([np.roll(node, -1, 0).ravel(), np.roll(node, -1, 1).ravel()])
    return hf.Graph.from_edges(src, dst, num_nodes=side * side)


def entities_graph(rng: np.random.Generator) -> hf.Graph:
    """Return 300 passages of 1 to 8 of 200 entities: float32 alone does not prove long lists of them."""
    src = np.repeat(np.arange(300), rng.integers(1, 9, 300))
    return hf.Graph.from_edges(src, 300 + rng.integers(0, 200, src.size), rng.integers(1, 4, src.size), num_nodes=500)


def random_restart(
    rng: np.random.Generator, n: int, batch: int, allowed: NDArray[np.bool_] | None = None, most: int = 4
) -> list[dict[int, float]]:
    """Return ``batch`` rows of 1 to ``most`` weighted seeds, within ``allowed`` (N,) or (B, N) if given."""
    rows = []
    for b in range(batch):
        pool = np.arange(n) if allowed is None else np.flatnonzero(allowed if allowed.ndim == 1 else allowed[b])
        seeds = rng.choice(pool, min(pool.size, int(rng.integers(1, most + 1))), replace=False)
        rows.append({int(v): float(rng.random() + 0.1) for v in seeds})
    return rows


def to_dense(rows: list[dict[int, float]], n: int) -> NDArray[np.float64]:
    out = np.zeros((len(rows), n))
    for b, row in enumerate(rows):
        for v, weight in row.items():
            out[b, v] = weight
    return out


@dataclass
class PprCase:
    """A graph, a batch of restarts, and options of both hopfuse.ppr and hopfuse.reference.ppr."""

    graph: hf.Graph
    restart: list[dict[int, float]]
    options: dict[str, Any] = field(default_factory=dict)


SIZES = st.one_of(st.integers(1, 12), st.sampled_from([63, 64, 65, 127, 128, 129, 200]))


@st.composite
def ppr_cases(draw: st.DrawFn, batches: tuple[int, ...] = (1, 2, 3, 4, 5, 8, 9, 17)) -> PprCase:
    """Return cases of every kind of graph with every kind of option."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, batch = draw(SIZES), draw(st.sampled_from(batches))
    types = draw(st.sampled_from([1, 1, 2, 3]))
    graph = random_graph(
        rng,
        n,
        draw(st.sampled_from([0, n // 2, 2 * n, 6 * n])),
        directed=draw(st.booleans()),
        weights=draw(st.sampled_from(["none", "ones", "integer", "random", "spread"])),
        types=types,
        hub=draw(st.sampled_from([None, 0, n - 1])),
    )
    options: dict[str, Any] = {}
    options["damping"] = (
        rng.choice([0.0, 0.3, 0.5, 0.85], batch)
        if draw(st.booleans())
        else draw(st.sampled_from([0.0, 0.3, 0.5, 0.85]))
    )
    if draw(st.booleans()):
        options["edge_type_norm"] = draw(st.sampled_from(["joint", "per_type"]))
    weighting = draw(st.sampled_from(["none", "call", "query"]))
    if weighting != "none":
        eta = rng.choice([0.0, 0.25, 1.0, 3.0], (batch, types)) * rng.random((batch, types))
        if options.get("edge_type_norm") == "per_type":
            eta /= np.maximum(eta.sum(axis=1, keepdims=True), 1e-9) * rng.choice([1.0, 1.0, 2.0])
        options["edge_type_weights"] = eta if weighting == "query" else eta[0]
    masking = draw(st.sampled_from(["none", "call", "query"]))
    allowed = None
    if masking != "none":
        allowed = rng.random((batch, n)) < draw(st.sampled_from([0.3, 0.8, 1.0]))
        allowed[np.arange(batch), rng.integers(0, n, batch)] = True
        allowed = allowed if masking == "query" else allowed[0]
        options["allow"] = allowed
    return PprCase(graph, random_restart(rng, n, batch, allowed), options)


def random_incidence(
    rng: np.random.Generator, rows: int, columns: int, entries: int, *, weighted: bool = False, hub: int | None = None
) -> hf.Incidence:
    """Return about so many random entries in rows of various lengths; row ``hub`` has every column."""
    pairs = rng.integers(0, max(1, rows * columns), entries if rows * columns else 0)
    if hub is not None:
        pairs = np.concatenate([pairs, hub * columns + np.arange(columns)])
    row, column = np.divmod(rng.permutation(np.unique(pairs)), max(1, columns))
    weights = rng.random(row.size) * 3 if weighted else None
    return hf.Incidence.from_pairs(row, column, weights, num_rows=rows, num_columns=columns)


def random_lists(
    rng: np.random.Generator,
    batch: int,
    lists: int,
    *,
    width: int = 12,
    ids: int = 20,
    grid: int | Sequence[int | None] | None = None,
) -> list[hf.Hits]:
    """Return lists of 0 .. width hits; ``grid``, also per row, is the number of distinct scores, which makes ties."""
    grids = grid if isinstance(grid, Sequence) else [grid]
    out = []
    for _ in range(lists):
        rows = []
        for b in range(batch):
            count = int(rng.integers(0, width + 1))
            chosen = rng.choice(ids, min(count, ids), replace=False)
            levels = grids[b % len(grids)]
            scores = rng.random(chosen.size) if levels is None else rng.integers(0, levels, chosen.size) / levels
            rows.append([(int(i), float(s)) for i, s in zip(chosen, scores, strict=True)])
        out.append(hf.Hits.from_lists(rows))
    return out


def drawn_vectors(
    rng: np.random.Generator, count: int, dim: int, batch: int, metric: str, dtype: str, grid: int, spread: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rows and queries with norms over several decades, on a grid (with ties) if ``grid`` is not 0."""
    x, q = rng.standard_normal((count, dim)), rng.standard_normal((batch, dim))
    if grid:
        x, q = np.round(x * grid) / grid, np.round(q * grid) / grid
    if metric == "cosine" or grid:
        x[:, 0], q[:, 0] = 1.0, 1.0
    if dtype in ("float32", "bfloat16"):  # float16 has no room
        x *= 10.0 ** rng.uniform(-spread, spread, (count, 1))
    q *= 10.0 ** rng.uniform(-spread / 2, spread / 2, (batch, 1))
    return x, q


#: Rows on which an almost correct search fails. "Norms" is the factor of standard normal rows.
ADVERSARIAL_ROWS = [
    "all equal rows",
    "duplicates",
    "many duplicates",
    "one outlier dimension",
    "one outlier entry",
    "norms from 1e-20 to 1e15",
    "norms around 1e-18",
    "norms around 1e17",
    "denormal entries",
    "all negative scores",
    "nearly equal rows",
    "one dimension only",
    "whole numbers",
    "ties at the cut",
    "zero rows",
    "one row dominates",
    "two clusters of signs",
]


#: The smallest positive bfloat16.
BFLOAT16_TINY = 2.0**-133


def bfloat16_extremes(rng: np.random.Generator, n: int, d: int) -> NDArray[np.float64]:
    """Return bfloat16 numbers that are subnormal in float32 too, and the largest that can be scored with them."""
    tiny, largest = BFLOAT16_TINY, 2.0**60
    levels = np.array([0.0, -0.0, tiny, -tiny, 3 * tiny, 2.0**-126, 1.0, -1.0, largest, -largest, 0.333])
    x: NDArray[np.float64] = rng.choice(levels, (n, d))
    x[:, 0] = 1.0
    return x


def filters_of(masks: NDArray[np.bool_], shared: int = 0) -> dict[str, Any]:
    """Return filters of every kind: for each query its row of ``masks``, (B, N), or the row ``shared`` for all."""
    return {
        "nothing": None,
        "mask": masks[shared],
        "masks": masks,
        "ids": np.flatnonzero(masks[shared]),
        "lists": [np.flatnonzero(mask) for mask in masks],
    }


def adversarial_rows(name: str, rng: np.random.Generator, n: int, d: int) -> NDArray[np.float32]:
    """Return one of ADVERSARIAL_ROWS: n >= 124 rows of d >= 8 dimensions."""
    x = rng.standard_normal((n, d)).astype(np.float32)
    if name == "all equal rows":
        x[:] = x[0]
    elif name == "duplicates":
        x[:] = x[rng.integers(0, 20, n)]
    elif name == "many duplicates":
        x[:] = x[rng.integers(0, 6, n)]
    elif name == "one outlier dimension":
        x[:, 7] += 1e4
    elif name == "one outlier entry":
        x[np.arange(n), rng.integers(0, d, n)] *= 1e6
    elif name == "norms from 1e-20 to 1e15":
        x *= (10.0 ** rng.uniform(-20, 15, n)).astype(np.float32)[:, None]
    elif name == "norms around 1e-18":
        x *= np.float32(1e-18)
    elif name == "norms around 1e17":
        x *= np.float32(1e17)
    elif name == "denormal entries":
        x *= np.float32(1e-41)
        x[::2, 0] = 1.0
    elif name == "all negative scores":
        x[:] = -np.abs(x)
    elif name == "nearly equal rows":
        x[:] = x[0] + rng.standard_normal((n, d)).astype(np.float32) * np.float32(1e-6)
    elif name == "one dimension only":
        x[:, 1:] = 0.0
    elif name == "whole numbers":
        x[:] = rng.integers(-2, 3, (n, d))
        x[:, 0] = 1.0
    elif name == "ties at the cut":
        x[:] = rng.integers(-1, 2, (n, d))
        x[:, 0] = 1.0
    elif name == "zero rows":
        x[rng.permutation(n)[: n // 2]] = 0.0
    elif name == "one row dominates":
        x[123] *= 1e8
    elif name == "two clusters of signs":
        x[:] = np.where(rng.random((n, 1)) < 0.5, 1.0, -1.0) * np.abs(x[0])
    else:
        raise ValueError(name)
    return x
