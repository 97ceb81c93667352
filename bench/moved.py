"""What the comments above the kernels of PhaseGraph say that a launch moves, and what a count of requests adds to it.

The emulator counts what every thread asks for. Threads side by side that ask for one address ask once on a device; what
they ask for again is :attr:`Moved.again`, as the kernels' sources have it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Search:
    """A batch of PhaseGraph's searches: the graph, with weights, the corpus in float32, pools and seeds of a query."""

    nodes: int
    stored: int
    vectors: int
    dim: int
    batch: int
    lanes: int
    seeds: int = 8  # a row of seeds, padded
    dense_k: int = 100
    graph_k: int = 30
    k: int = 10

    @property
    def tiles(self) -> int:
        """Of 64 rows of the graph."""
        return -(-self.nodes // 64)

    @property
    def width(self) -> int:
        """Candidates of the dense leg."""
        return self.dense_k + self.dense_k // 8 + 32

    @property
    def sorted(self) -> int:
        """The candidates' keys, padded to a power of two."""
        return 1 << (self.width - 1).bit_length()


class Moved(NamedTuple):
    """Bytes of a launch: by the kernel's comment, and asked for again by neighbours of the thread that asked first."""

    stated: int
    again: int = 0


def _pass(s: Search, streams: int) -> Moved:
    """A lane that walks gathers; one that rests (where the batch is no multiple of 4) is only carried along."""
    stated = s.stored * (4 + 4) + 4 * s.batch * s.stored + s.nodes * (8 + 4) + 4 * streams * s.lanes * s.nodes
    # Each entry's node and weight, each row's degree and word of the restarts; the row's ends, by lanes that rest too.
    again = (s.batch - 1) * (s.stored * (4 + 4) + s.nodes * (4 + 8)) + (s.lanes - 1) * s.nodes * 16
    return Moved(stated, again)


def _residual(s: Search) -> Moved:
    stated = s.stored * (4 + 4 + 8) + 4 * s.lanes * s.stored + 8 * s.nodes + 8 * s.nodes * s.lanes
    # Each entry's node, weight and degree; a row's ends, its word of the restarts and its degree.
    return Moved(stated, (s.lanes - 1) * (s.stored * (4 + 4 + 8) + s.nodes * (16 + 8 + 8)))


def _rescore(s: Search) -> Moved:
    keys = 8 * s.width + 8 * s.sorted
    # A query for each of its rows, from the cache; the key of a row by its 16 threads.
    again = 4 * s.dim * s.width + 15 * 8 * s.width
    return Moved(s.batch * (4 * s.dim * s.width + keys), s.batch * again)


def _finish(s: Search) -> Moved:
    rounds = -(-(s.graph_k + 1) // 512)
    candidates = (20 + 12 * rounds) * s.vectors
    return Moved(s.batch * (16 * s.tiles + candidates + rounds * 12 * 1024 + (24 + 20) * s.graph_k))


def _fuse(s: Search) -> Moved:
    entries = s.dense_k + s.graph_k
    # Its values as calibrate_f32: 4 read and 4 written; three times more over them.
    return Moved(s.batch * (12 * entries + 8 * 2 + 12 * s.k + 4 * (4 + 4) * entries))


MOVED: dict[str, Callable[[Search], Moved]] = {
    # Query 0 by the threads beyond the last one, of 16 queries a block.
    "dense_queries_f32": lambda s: Moved(s.batch * (4 * s.dim + 8), -s.batch % 16 * 4 * s.dim),
    # A norm by each of 128 threads.
    "dense_select_f32": lambda s: Moved(s.batch * (8 * s.vectors + 16 * s.width), s.batch * 127 * 4),
    "dense_rescore_f32": _rescore,
    "topk_emit": lambda s: Moved(s.batch * (8 * s.sorted + 20 * s.dense_k + 8 * s.width)),
    "ppr_restart": lambda s: Moved(s.batch * s.seeds * (24 + 16 * s.seeds) + 12 * s.tiles),
    # The word of the restarts that a row is in.
    "ppr_start": lambda s: Moved(8 * s.lanes * s.nodes, (s.lanes - 1) * 8 * s.nodes),
    "ppr_pass": lambda s: _pass(s, 2),
    "ppr_pass, with residuals": lambda s: _pass(s, 3),
    # Whether its lane walks, by each thread of a warp.
    "ppr_control": lambda s: Moved(4 * s.lanes * s.tiles, 31 * 4 * s.lanes),
    # A row's degree; for the second also its inverse.
    "ppr_mass": lambda s: Moved(4 * s.nodes * s.lanes, (s.lanes - 1) * 8 * s.nodes),
    "ppr_scale": lambda s: Moved(8 * s.nodes * s.lanes, (s.lanes - 1) * 16 * s.nodes),
    "ppr_totals": lambda s: Moved(8 * s.lanes * s.tiles),
    "ppr_residual": _residual,
    "ppr_finish": _finish,
    "fuse_shared_f32": _fuse,
}


def bar(s: Search) -> int:
    """What a pass without residuals is held to 1.15 times of: nnz (4 + w) + 4 nnz B + 4 n B for each of two streams."""
    return s.stored * (4 + 4) + 4 * s.stored * s.batch + 2 * 4 * s.nodes * s.batch
