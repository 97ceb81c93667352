"""What the kernels of a recorded search do, in counts: a row for each kernel, read from its .cu file and its SASS.

A search is a dense list, a walk with its certificate and best passages, and their fusion (bench/first_gpu/search.py),
of a random graph. Change a kernel, and change its row: bench/gpu_model.py makes times of the counts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import ceil, exp, isqrt, log, log2, sqrt
from typing import Any, NamedTuple

from .gpu_cards import WARP, Card

#: Seeds of a query, and when the first passes read only nonzero rows of the state, as in kernels/device/ppr_passes.cpp.
SEEDS, MOST_EARLY, SPARSE = 3, 4, 4
#: Lanes of a thread of a pass, and the fewest rows of a warp of one of the first passes.
PASS_LANES, EARLY_ROWS = 4, 8
#: Blocks a multiprocessor of kernels whose threads take many rows.
BLOCKS_OF_QUADS = 12
#: Rows of a tile, entries of a segment, bytes of a sector and of an access to memory, places that blocks join in.
TILE, SEGMENT, SECTOR, ACCESS, JOIN_PLACES = 64, 64, 32, 64, 64
#: Bytes as which L2 serves a shorter row: an H200 gathered as many rows a second of 16, 32 and 64 bytes.
GATHERED = 64
PASS_BYTES = 1 << 23
THREADS = 256
#: Of a selection: threads of a block, and keys that a thread reads at once.
SELECT_THREADS, KEYS_AHEAD = 128, 4
#: Candidates of a block at least, splits for each multiprocessor (kernels/device/ppr_topk.cpp, selection.cpp).
SPLIT_CANDIDATES, SPLIT_KEPT, SPLITS = 1 << 10, 32, 8
#: Best nodes of a walk, and blocks a multiprocessor of a scan of candidates.
WALK_K, SCAN_BLOCKS = 10, 8
#: Of a dense list: scores of a tile, and most splits (kernels/device/device.h); hits of exact scores, and candidates.
TILE_SCORES, DENSE_SPLITS, DENSE_HITS, DENSE_KEPT = 1 << 23, 264, 32, 64


#: The hits of the dense list, rows that a scan keeps for a query, and the bytes from which on a corpus has codes.
DENSE_K, SCANNED, CODED_BYTES = 20, 1 << 12, 64 << 20
#: Rows that the last threshold leaves, as a scan expects (WIDENING of kernels/device/dense_scan.cpp).
LISTED = 8 * DENSE_K
#: Instructions that a scheduler could issue while tensor cores take one mma.sync of 16 x 8 x 16.
MMA_SLOTS = 8


@dataclass(frozen=True)
class Size:
    """A graph and a corpus: nodes, stored entries (weighted), passages with vectors, dimensions, bytes of a number.

    ``passes`` is the number of passes that a walk of damping 0.5 takes to 1e-6, and ``limit`` the number that a
    recording has for it. ``segments`` is the number of segments of long rows, and that of the longest row. ``weights``
    is the number of distinct weights: those of random graphs are sums of parallel edges. ``listed`` is the number of
    rows that the last threshold of a scan leaves a query.
    """

    name: str
    nodes: int
    stored: int
    vectors: int
    dim: int
    item: int = 4
    passes: int = 16
    limit: int = 19
    segments: int = 0
    weights: int = 4
    listed: int = LISTED

    @property
    def entry_bytes(self) -> int:
        """Bytes of an entry that a pass reads: a word, and a weight if it has no code in the word."""
        return WORD if self.weights <= code_count(self.nodes) else WORD + 4


#: Bytes of a column, and the most distinct weights that get codes, as in kernels/device/packing.h and device.h.
WORD, MOST_CODES = 4, 1 << 12


def code_count(nodes: int) -> int:
    """Return the most distinct weights of a graph that get codes, as in kernels/device/packing.cpp."""
    return min(MOST_CODES, 1 << 8 * WORD - max(1, (nodes - 1).bit_length()))


SMALL = Size("small", 900, 7_960, 600, 32, 4, 13, 16)
#: The profile of bench/results/h200-2026-11-29.json has 325 MB of sectors for the rows that 32 queries rank.
MUSIQUE = Size("MuSiQue", 72_000, 1_050_000, 11_656, 4096, 4, 15, 18, listed=620)
MILLION = Size("million", 1_000_000, 10_000_000, 1_000_000, 1024, 2)
TEN_MILLION = Size("ten million", 10_000_000, 100_000_000, 10_000_000, 1024, 2, 17, 20)
#: The first pass of a recording whose residual is measured (kernels/device/ppr_block.cpp): 13 - 13 / 4, by the 13
#: passes that the best restart takes for damping 0.5 to 1e-6.
FIRST_MEASURED = 10


@dataclass(frozen=True)
class Work:
    """What a kernel does in a search.

    Attributes
    ----------
    part : str
        The part of the search that it belongs to.
    kernel : str
        Its name in kernels/cuda, with L for the lanes.
    blocks, threads, registers, shared : float
        Of a launch: blocks, threads of a block, registers of a thread, bytes of shared memory of a block. They tell how
        many blocks run at once.
    times, launches : float
        How often this is done in a search, and by how many launches.
    memory, cache : float
        Bytes from and to memory, and sectors of L2 in bytes, each time.
    doubles, tensor : float
        Float64 fused operations, and operations of tensor cores, each time.
    units : float
        Units of work, such as rows, that a warp of a block takes one after another.
    far, near, steps : float
        Of a unit: loads that depend on each other, from memory and from L2, and the instructions of a warp.
    issued : float
        Of a mean unit: its instructions, where they are not the steps.
    first_near, first_steps : float
        Of a block, before and after its units: the same.
    barriers : float
        Grid barriers, each time.
    """

    part: str
    kernel: str
    blocks: float = 1
    threads: int = THREADS
    registers: int = 32
    shared: int = 0
    times: float = 1
    launches: float = 1
    memory: float = 0
    cache: float = 0
    doubles: float = 0
    tensor: float = 0
    units: float = 1
    far: float = 0
    near: float = 0
    steps: float = 0
    issued: float = 0
    first_near: float = 2
    first_steps: float = 60
    barriers: float = 0


@cache
def groups_of(entries: float, rows: int, ahead: int) -> tuple[float, float]:
    """Return mean and variance, over random rows, of the groups of ``ahead`` entries of the longest of some rows."""
    total, squares, below, term = 0.0, 0.0, 0.0, exp(-entries)
    for count in range(int(entries + 12 * entries**0.5) + 12):
        share, groups = (below + term) ** rows - below**rows, -(-count // ahead)
        total, squares = total + share * groups, squares + share * groups**2
        below, term = below + term, term * entries / (count + 1)
    return total, squares - total**2


def mean_groups(entries: float, rows: int, ahead: int) -> float:
    return groups_of(entries, rows, ahead)[0]


@cache
def mean_threads(entries: float) -> float:
    """Return the mean threads of a row of a slice: as few of 1, 2, 4 or 8 as have 8 of its entries each."""
    total, term = 0.0, exp(-entries)
    for count in range(int(entries + 12 * entries**0.5) + 12):
        total += term * next((threads for threads in (1, 2, 4, 8) if 8 * threads >= count), 8)
        term *= entries / (count + 1)
    return total


def most_groups(entries: float, rows: int, ahead: int, units: float, warps: float) -> float:
    """Return the groups of a unit of the slowest of some warps, which others wait for."""
    mean, variance = groups_of(entries, rows, ahead)
    return mean + sqrt(2 * variance * log(max(1.0, warps)) / units)


def sort_steps(keys: float, threads: int = SELECT_THREADS) -> float:
    """Return the instructions of a warp of a block that sorts keys in shared memory by a bitonic network."""
    runs = ceil(log2(max(2.0, keys)))
    length, stages = 1 << runs, runs * (runs + 1) // 2
    return stages * (-(-length // 2 // threads) * 17 + 12)


def stream_steps(keys: float, kept: int) -> tuple[float, float]:
    """Return the turns in which a block streams random keys past a list of the best, and the steps of its sorts.

    Keys wait that are above the last of the list as it was sorted; they are sorted in when they fill the buffer.
    """
    at_once = float(KEYS_AHEAD * SELECT_THREADS)
    room = 2 ** ceil(log2(kept + max(kept, at_once)))
    waiting, seen = room - kept - at_once, min(keys, at_once)
    steps = sort_steps(seen + kept)
    while seen < keys:
        more = min(keys - seen, waiting * seen / kept)
        steps += sort_steps(kept + more * kept / seen)
        seen += more
    return max(1.0, keys / at_once), steps


@dataclass(frozen=True)
class Search:
    """A recorded search of ``batch`` questions on a card."""

    size: Size
    batch: int
    card: Card

    @property
    def lanes(self) -> int:
        """The lanes of a block of queries, as in kernels/device/ppr.cpp."""
        most = most_lanes(self.size, self.card)
        return next(width for width in (4, 8, 16, 32) if width >= min(self.batch, most))

    @property
    def lane_blocks(self) -> int:
        return -(-self.batch // self.lanes)

    @property
    def entries(self) -> float:
        """The mean of a row's entries."""
        return self.size.stored / self.size.nodes

    @property
    def tiles(self) -> int:
        return -(-self.size.nodes // TILE)

    @property
    def state(self) -> float:
        """Bytes of a block's state."""
        return 4.0 * self.size.nodes * self.lanes

    @property
    def graph(self) -> float:
        """Bytes of the graph that a pass reads."""
        return float(self.size.entry_bytes * self.size.stored) + 16.0 * self.size.nodes

    @property
    def is_near(self) -> bool:
        """Return whether L2 serves the gathers."""
        return self.card.holds(2 * self.state)

    @property
    def all_near(self) -> bool:
        """Return whether L2 serves all that a pass reads."""
        return self.card.holds(2 * self.state + self.graph)

    @property
    def is_one_launch(self) -> bool:
        """Return whether all passes but the first ones are one launch, as in kernels/device/ppr_passes.cpp."""
        return self.is_near

    def loads(self, streams: float, gathers: float) -> dict[str, Any]:
        """Return dependent loads by where they are served."""
        far = (0 if self.all_near else streams) + (0 if self.is_near else gathers)
        return {"far": far, "near": streams + gathers - far}

    def gathered(self) -> dict[str, Any]:
        """Return the bytes that a gather of each entry's lanes moves from L2 and from memory."""
        sectors = float(self.size.stored * max(GATHERED, 4 * self.lanes))
        missed = float(self.size.stored * max(ACCESS, 4 * self.lanes))
        return {"cache": sectors, "memory": 0.0 if self.is_near else missed * (1 - self.hit_share(missed))}

    def hit_share(self, gathered: float) -> float:
        """Return the share of random gathers from the state that L2 serves, by Che's approximation of an LRU cache.

        A row is gathered as often as it has entries, and stays while the cache is filled once.
        """
        found, streamed = 0.0, self.graph + 2 * self.state
        for _ in range(60):
            stays = self.card.l2 * 2**20 / self.card.l2_copies / (gathered * (1 - found) + streamed)
            found = 0.5 * (found + 1 - exp(-self.entries * stays))
        return found

    @property
    def early_passes(self) -> list[tuple[float, float]]:
        """The same of the passes that are run so: none before slices in one launch."""
        return [] if self.lanes == PASS_LANES and self.is_one_launch else self.early_shares()

    def early_shares(self) -> list[tuple[float, float]]:
        """Return the shares of rows that may be nonzero before and after each of the first passes."""
        rows, spread = float(SEEDS * min(self.lanes, self.batch)), self.entries + 1
        if 2 * rows > self.size.nodes:
            return []
        count = 2
        while count < MOST_EARLY and SPARSE * rows * spread**count <= self.size.nodes:
            count += 1
        return list(pairwise(min(1.0, rows * spread**number / self.size.nodes) for number in range(count + 1)))

    @property
    def splits(self) -> int:
        """The blocks that share a lane's candidates, as in kernels/device/ppr_topk.cpp."""
        most, count = SPLITS * self.card.multiprocessors, self.size.vectors
        return max(1, min(most // self.lanes, count // SPLIT_CANDIDATES, isqrt(count // SPLIT_KEPT)))


def most_lanes(size: Size, card: Card) -> int:
    """Return the most lanes of a block, as in kernels/device/ppr.cpp."""

    def moved(lanes: int) -> float:
        state, gathered = 4 * lanes * size.nodes, float(max(SECTOR, 4 * lanes) * size.stored)
        if state <= int(card.l2 * 2**20) // 2:
            gathered /= l2_speedup(card)
        return (8 * size.stored + 20 * size.nodes + 2 * state + gathered + PASS_BYTES) / lanes

    return min((32, 16, 8, 4), key=moved)


#: Float32 operations of a GPU for each byte that it gathers from L2, as the library assumes: 256 and 16 in a cycle of a
#: multiprocessor.
FLOPS_PER_L2_BYTE = 16


def l2_speedup(card: Card) -> float:
    """Return the bandwidth of the L2 cache over that of the memory, as the library assumes."""
    return max(1.0, 1e3 * card.flops / FLOPS_PER_L2_BYTE / card.bandwidth)


def join(lanes: int, blocks: int) -> tuple[float, float]:
    """Return the dependent loads and the steps by which blocks join sums and maxima (kernels/cuda/grid_join.h).

    Threads of four lanes join theirs by shuffles, and warps through shared memory. A block adds its own to one of
    JOIN_PLACES, and the last block joins these.
    """
    inside = 2 * (24 * log2(WARP * PASS_LANES / lanes) + 8 * THREADS / WARP)
    if blocks == 1:
        return 0.0, inside
    return 6.0 + min(blocks, JOIN_PLACES) * lanes / THREADS, inside + 2 * 6 * THREADS / lanes


# ---- Kernels ---------------------------------------------------------------------------------------------------------


def start(of: Search) -> Iterator[Work]:
    """ppr_start_lL: a warp has 64 rows, of which it writes those that restart; all rows if no early pass follows."""
    written = 0.0 if of.early_passes else of.state
    stores = 0.0 if of.early_passes else TILE * of.lanes / (WARP * PASS_LANES)
    yield Work(
        "start, mass, scale", "ppr_start_lL", blocks=of.tiles / (THREADS / WARP), registers=32,
        memory=0 if of.is_near else written, cache=8.0 * of.tiles + written, near=2, steps=40 + 12 * stores,
        first_near=2, first_steps=20,
    )  # fmt: skip


def restart(of: Search) -> Iterator[Work]:
    """ppr_restart_lL: one block, a warp for each query, marks and ranks the words that have its seeds."""
    yield Work(
        "other", "ppr_restart_lL", threads=WARP * of.lanes, registers=64, near=2, steps=40, first_near=16,
        first_steps=1100,
    )  # fmt: skip


def early(of: Search) -> Iterator[Work]:
    """ppr_early_lL: a warp finds, of its rows' entries, those whose source is nonzero, 32 at a time by ballot.

    It computes only rows that have one, restart, or are nonzero already, as many at once as a pass does. The last of
    these passes writes the other rows, too, which are 0.
    """
    together, rows = WARP * PASS_LANES // of.lanes, max(EARLY_ROWS, WARP * PASS_LANES // of.lanes)
    turns, found = ceil(rows * of.entries / (WARP * 4)), float(WORD * of.size.stored) + 8.0 * of.size.nodes
    if of.size.segments and of.early_passes:
        yield segments(of, "ppr_early_segments_lL", len(of.early_passes), len(of.early_passes), "early passes")
    for number, (before, after) in enumerate(of.early_passes, 1):
        filled = of.state if number == len(of.early_passes) else 0.0
        chosen = rows / together * (1 - (1 - after) ** together)  # groups of rows
        groups = chosen * mean_groups(max(1.0, of.entries * before), together, 4)
        words = turns * (0.3 if of.tiles * 8 <= 64 << 10 else 1)
        loads = of.loads(1 + turns + chosen + groups, groups)
        yield Work(
            "early passes", "ppr_early_lL", blocks=of.size.nodes / rows / (THREADS / WARP), registers=64, shared=416,
            memory=(0 if of.all_near else found) + (0 if of.is_near else filled) + of.gathered()["memory"] * before,
            cache=found + filled + of.gathered()["cache"] * before,
            far=loads["far"], near=loads["near"] + words, steps=185 + 175 * turns + 220 * chosen + 120 * groups,
            first_near=4,
        )  # fmt: skip


def states_of(of: Search, times: int) -> float:
    """Return the mean bytes of states of a full pass: the one before, which the first does not read, and the next."""
    return (2 - 1 / max(1, times)) * of.state


def sliced(of: Search) -> Iterator[Work]:
    """ppr_walk_sliced_l4, or ppr_pass_sliced_l4: a warp has a slice of rows of about one length.

    A row has 1, 2, 4 or 8 threads, each up to 8 of its entries in all lanes; a thread gathers them at once.
    """
    threads = mean_threads(of.entries)
    slices = of.size.nodes * threads / WARP
    registers, count = (116 if of.is_one_launch else 102), of.size.passes - len(of.early_passes)
    blocks = min(-(-slices // (THREADS / WARP)), of.tiles)
    if of.is_one_launch:
        blocks = min(blocks, of.card.resident_blocks(THREADS, registers, 14_600))
    units = ceil(slices / (blocks * THREADS / WARP))
    measured = max(0, of.size.passes - FIRST_MEASURED + 1)
    loads = of.loads(2, 1)
    padded = slices * WARP * min(8.0, of.entries / threads + 0.5)
    states = states_of(of, count - measured)
    table = of.size.entry_bytes * padded + 16 * slices + 12.0 * of.size.nodes
    row: dict[str, Any] = {
        "blocks": blocks, "registers": registers, "shared": 14_600, "units": units,
        "memory": 0 if of.all_near else table + (0 if of.is_near else states) + of.gathered()["memory"],
        "cache": table + states + of.gathered()["cache"], "barriers": 1 if of.is_one_launch else 0,
    }  # fmt: skip
    name, each = ("ppr_walk_sliced_l4", 0) if of.is_one_launch else ("ppr_pass_sliced_l4", 1)
    steps = 330 + 65 * threads
    yield Work(
        "passes", name, times=count - measured, launches=each * (count - measured), **loads, steps=steps, first_near=4,
        first_steps=100, **row,
    )  # fmt: skip
    joined, joining = join(of.lanes, int(blocks))
    yield Work(
        "passes", f"{name}, measured", times=measured, launches=measured * each + (1 - each), **loads,
        steps=steps + 120, first_near=4 + joined, first_steps=400 + joining, **row,
    )  # fmt: skip
    if not of.is_one_launch:
        dead = of.size.limit - of.size.passes
        yield Work("passes", f"{name}, after the last lane", blocks, registers=102, times=dead, launches=dead)


def passes(of: Search) -> Iterator[Work]:
    """ppr_pass_weighted_lL, by up to 16 blocks a multiprocessor; or ppr_walk_lL, with a grid barrier after each pass.

    A thread has four lanes of a row, a warp 128 / L rows. Four entries of each are gathered at once, by 128 bits; the
    next row's ends and entries, and what the end of a row needs, are read meanwhile.
    """
    if of.lanes == PASS_LANES:
        yield from sliced(of)
        return
    rows = WARP * PASS_LANES // of.lanes
    groups, _ = groups_of(of.entries, rows, 4)
    mean = groups
    count = of.size.passes - len(of.early_passes)
    measured = max(0, of.size.passes - FIRST_MEASURED + 1)
    registers = 72 if of.is_one_launch else 64
    most = of.card.resident_blocks(THREADS, registers, 14_800) if of.is_one_launch else 16 * of.card.multiprocessors
    blocks = min(-(-of.size.nodes * of.lanes // (PASS_LANES * THREADS)), of.tiles, most)
    warps = blocks * THREADS / WARP
    units = ceil(of.size.nodes / (warps * rows))
    if of.is_one_launch:
        groups = most_groups(of.entries, rows, 4, units, warps)
    loads, states = of.loads(1, groups), states_of(of, count - measured)
    row: dict[str, Any] = {
        "blocks": blocks, "registers": registers, "units": units,
        "memory": 0 if of.all_near else of.graph + (0 if of.is_near else states) + of.gathered()["memory"],
        "cache": of.graph + states + of.gathered()["cache"],
        "barriers": (2 if of.size.segments else 1) if of.is_one_launch else 0,
    }  # fmt: skip
    name = "ppr_walk_lL" if of.is_one_launch else "ppr_pass_weighted_lL"
    entry_steps = 75 if of.lanes > 16 else 55
    steps, issued = 245 + entry_steps * groups, 245 + entry_steps * mean
    each = 0 if of.is_one_launch else 1
    if of.size.segments:
        yield segments(of, "ppr_segments_weighted_lL", count, each * (of.size.limit - len(of.early_passes)))
    shared = 14_800 if of.is_one_launch else 384
    yield Work(
        "passes", name, times=count - measured, launches=each * (count - measured), **loads, steps=steps, issued=issued,
        shared=shared, first_near=4, first_steps=120, **row,
    )  # fmt: skip
    joined, joining = join(of.lanes, int(blocks))
    more = of.loads(1, 0)
    yield Work(
        "passes", f"{name}, measured", times=measured, launches=measured * each + (1 - each),
        far=loads["far"] + more["far"], near=loads["near"] + more["near"], steps=steps + 230,
        issued=issued + 230, shared=14_800, first_near=4 + joined, first_steps=500 + joining, **row,
    )  # fmt: skip
    if not of.is_one_launch:
        dead = of.size.limit - of.size.passes
        yield Work(
            "passes", f"{name}, after the last lane", blocks, registers=64, times=dead, launches=dead, first_near=1
        )


def segments(of: Search, kernel: str, times: float, launches: float, part: str = "passes") -> Work:
    """A thread sums a segment of a long row, 4 entries at a time; then one thread of each lane adds the row's sums."""
    loads = of.loads(SEGMENT / 8, SEGMENT / 4)
    blocks = of.size.segments * of.lanes / THREADS
    return Work(
        part, kernel, blocks, times=times, launches=launches, **loads, steps=13 * SEGMENT,
        first_near=of.size.segments / 16 + 2,
    )  # fmt: skip


def quads(of: Search) -> dict[str, Any]:
    """Return the blocks and units of a kernel whose threads have four lanes of a row, and take many rows."""
    blocks = min(-(-of.size.nodes * of.lanes // (PASS_LANES * THREADS)), BLOCKS_OF_QUADS * of.card.multiprocessors)
    return {"blocks": blocks, "units": ceil(of.size.nodes * of.lanes / (PASS_LANES * THREADS * blocks))}


def residual(of: Search) -> Iterator[Work]:
    """ppr_residual_lL: threads have four lanes; the threads of a row read its entries and their degrees together.

    Four states are gathered at once, by 128 bits. Entries are read a step ahead, the row's ends a row ahead.
    """
    rows = WARP * PASS_LANES // of.lanes
    groups, chunks = mean_groups(of.entries, rows, 4), mean_groups(of.entries, rows, max(4, of.lanes // 4))
    row = quads(of)
    loads = of.loads(1, groups)
    joined, joining = join(of.lanes, int(row["blocks"]))
    lane_nodes, steps = float(of.size.nodes * of.lanes), 520 + 303 * groups + 70 * chunks
    if of.size.segments:
        yield segments(of, "ppr_residual_segments_lL", 1, 1, "residual")
    yield Work(
        "residual", "ppr_residual_lL", registers=80, shared=19_208, **row,
        memory=0 if of.all_near else of.graph + of.state + 8.0 * of.size.nodes + of.gathered()["memory"],
        cache=of.graph + of.state + GATHERED * of.size.stored + of.gathered()["cache"],
        doubles=of.size.stored * (1.0 + of.lanes) + 7 * lane_nodes, far=loads["far"], near=loads["near"] + chunks,
        steps=steps, issued=steps * of.size.nodes * of.lanes / (PASS_LANES * THREADS * row["blocks"] * row["units"]),
        first_near=4 + joined, first_steps=400 + joining,
    )  # fmt: skip


def mass(of: Search) -> Iterator[Work]:
    """ppr_mass_lL: a thread adds four lanes of many rows exactly, 4 rows at a time."""
    row = quads(of)
    joined, joining = join(of.lanes, int(row["blocks"]))
    stream = of.loads(0, 1 / 4)
    yield Work(
        "start, mass, scale", "ppr_mass_lL", registers=54, shared=2056, **row, **stream,
        memory=0 if of.is_near else of.state, cache=of.state + 8.0 * of.size.nodes, steps=828 / 4,
        doubles=float(of.size.nodes * of.lanes), first_near=2 + joined, first_steps=150 + joining,
    )  # fmt: skip


def scale(of: Search) -> Iterator[Work]:
    """ppr_scale_lL: the same, and each score is written."""
    row = quads(of)
    joined, joining = join(of.lanes, int(row["blocks"]))
    stream = of.loads(0, 1 / 4)
    yield Work(
        "start, mass, scale", "ppr_scale_lL", registers=80, shared=2376, **row, **stream,
        memory=0 if of.is_near else 2 * of.state, cache=2 * of.state + 8.0 * of.size.nodes, steps=762 / 4,
        doubles=2.0 * of.size.nodes * of.lanes, first_near=4 + joined, first_steps=250 + joining,
    )  # fmt: skip


def scan(of: Search) -> Iterator[Work]:
    """ppr_scan: a warp reads the candidates of a group once, for all lanes, four rows of a thread at a time."""
    size, rows = of.size, WARP * PASS_LANES // of.lanes
    groups = scan_groups(of)
    tiles = -(-size.vectors // rows) / groups
    loads = of.loads(1, 1)
    states = size.vectors * 4.0 * of.lanes + 12.0 * size.vectors
    yield Work(
        "rank, finish", "ppr_scan", blocks=groups / (THREADS / WARP), registers=80, shared=3456,
        units=max(1.0, tiles / 4), memory=0 if of.is_near else states, cache=states, **loads, steps=600, first_near=6,
        first_steps=500,
    )  # fmt: skip


def scan_groups(of: Search) -> int:
    """Return the groups of candidates, as in kernels/device/ppr_topk.cpp."""
    warps, tiles = THREADS // WARP, -(-of.size.vectors * of.lanes // (WARP * PASS_LANES))
    groups = min(isqrt(of.size.vectors * (WALK_K + 1)), tiles)
    return warps * max(1, min(-(-groups // warps), SCAN_BLOCKS * of.card.multiprocessors))


def finish(of: Search) -> Iterator[Work]:
    """ppr_finish: a block for a lane reads what is known of groups, and again the candidates of the best of them."""
    groups, scanned = scan_groups(of), min(of.lanes, of.batch)
    again = (WALK_K + 1) * of.size.vectors / groups / THREADS
    loads = of.loads(0, 1)
    yield Work(
        "rank, finish", "ppr_finish", blocks=scanned, registers=92, shared=28_744, units=max(1.0, again),
        far=loads["far"], near=loads["near"] + 2, steps=280, first_near=12 + groups / THREADS / 2,
        first_steps=3000 + 30 * groups / THREADS + sort_steps(64, THREADS),
    )  # fmt: skip


def queries(of: Search) -> Iterator[Work]:
    """dense_queries_f32: a block a query, whose numbers it copies to shared memory; 16 threads add them."""
    yield Work(
        "other", "dense_queries_f32", blocks=of.batch, registers=31, shared=16_456, units=of.size.dim / 256, steps=114,
        first_near=4, first_steps=300,
    )  # fmt: skip


def scans(of: Search) -> Iterator[Work]:
    """dense_scan_qCOUNT and dense_raise, for a corpus with 8-bit codes: a sample, and samples that grow.

    A scan reads codes 64 dimensions ahead; a block has 256 rows and up to 32 queries, and waits for its slowest warp
    after each 64 dimensions. The list of a query has all rows of the first sample, which a thread lists one after
    another, and then about as many as a threshold leaves. A threshold is found by 4 bytes, each after 6 barriers and
    chains through shared memory, which take about as long as a load from L2.
    """
    size, width = of.size, next((count for count in (4, 16, 32) if count >= of.batch), 32)
    yield Work(
        "other", "dense_encode_queries", blocks=-(-of.batch // 4), threads=128, registers=40, units=size.dim / 512,
        near=3, steps=360, first_steps=300,
    )  # fmt: skip
    groups, registers = -(-of.batch // width), {4: 68, 16: 92, 32: 126}[width]
    products = 4 * width // 4
    first, parts, growth = SCANNED // WARP, -(-size.vectors // WARP), max(2, SCANNED // LISTED)
    begin, end = 0, first
    listed = float(SCANNED)
    while begin < parts:
        end = min(end, parts)
        rows, each = (end - begin) * WARP, width if begin == 0 else 0  # rows that a thread lists
        yield Work(
            "product, select", f"dense_scan_q{width}", blocks=rows / THREADS * groups, registers=registers,
            shared=256 * width, memory=float(rows * (size.dim + 12)),
            cache=float(rows * size.dim * (groups + 2 * of.batch / THREADS)),
            tensor=2.0 * 2 * rows * size.dim * of.batch, units=size.dim / 64, far=2, steps=44 + 2 * width,
            issued=44 + width + products * MMA_SLOTS, first_near=6 + 3 * each, first_steps=1000 + 116 * each,
        )  # fmt: skip
        turns = min(listed, SCANNED) / THREADS
        yield Work(
            "product, select", "dense_raise", blocks=of.batch, registers=30, shared=1036, units=max(1.0, turns), near=2,
            steps=65, first_near=4 * 6, first_steps=640,
        )  # fmt: skip
        listed = DENSE_K * (growth + 1.0)
        begin, end = end, end * growth
    ranked, row = float(of.batch * size.listed), float(size.item * size.dim)
    found = size.vectors * (1 - exp(-ranked / size.vectors))  # different rows
    yield Work(
        "other", "dense_rank_TYPE", blocks=ranked / 16, registers=46, memory=found * row, cache=ranked * row,
        units=size.dim / 128, far=1, steps=46,
    )  # fmt: skip
    yield Work(
        "other", "topk_emit", blocks=of.batch, threads=SELECT_THREADS, registers=40, first_near=6,
        first_steps=400 + sort_steps(size.listed),
    )  # fmt: skip


def product(of: Search) -> Iterator[Work]:
    """dense_score_TYPE of few queries, and dense_product_TYPE of others, in tiles of the corpus; without codes."""
    size, numbers = of.size, float(of.size.vectors * of.size.dim)
    if of.batch <= 4:
        yield Work(
            "product, select", "dense_score_TYPE", blocks=size.vectors / 16, registers=48,
            memory=size.item * numbers + 8.0 * size.vectors, units=size.dim / 128, far=0.5, steps=60,
        )  # fmt: skip
        return
    tiles = max(1.0, -(-size.vectors * of.batch // TILE_SCORES))
    scores = 4.0 * size.vectors * of.batch
    query_blocks = -(-of.batch // 64)
    read = query_blocks * numbers * (size.item + 4 * 64 / 128)
    products = 64 * (1 if size.item == 2 else 2)
    yield Work(
        "product, select", f"dense_product_f{8 * size.item}", blocks=size.vectors / tiles / 128 * query_blocks,
        threads=128, registers=163, shared=49_152, times=tiles, launches=tiles, units=size.dim / 32, far=0.33,
        steps=200, issued=250 + products * MMA_SLOTS, tensor=products / 32 * numbers * of.batch / tiles,
        memory=(size.item * numbers + 2 * scores) / tiles, cache=read / tiles,
    )  # fmt: skip


def select(of: Search) -> Iterator[Work]:
    """dense_select_f32 or dense_keep_u64: a block for a query and a split; dense_keep_u64 merges."""
    tiles = max(1.0, -(-of.size.vectors * of.batch // TILE_SCORES)) if of.batch > 4 else 1.0
    rows = of.size.vectors / tiles
    splits = max(1, min(int(rows) // SPLIT_CANDIDATES, DENSE_SPLITS, SPLITS * of.card.multiprocessors // of.batch))
    kept, key = (DENSE_HITS, 8.0) if of.batch <= 4 else (DENSE_KEPT, 4.0)
    turns, sorts = stream_steps(rows / splits, kept)
    name = "dense_keep_u64" if of.batch <= 4 else "dense_select_f32"
    yield Work(
        "product, select", name, blocks=of.batch * splits, threads=SELECT_THREADS, registers=40, shared=8192,
        times=tiles, launches=tiles, units=turns, near=1 if of.batch <= 4 else 4, steps=150, first_near=4,
        first_steps=sorts, cache=rows * of.batch * key,
    )  # fmt: skip
    if splits > 1:
        turns, sorts = stream_steps(splits * kept, kept)
        yield Work(
            "other", "dense_keep_u64, merging", blocks=of.batch, threads=SELECT_THREADS, registers=40, shared=8192,
            units=turns, near=1, steps=150, first_near=4, first_steps=sorts,
        )  # fmt: skip


def rescore(of: Search) -> Iterator[Work]:
    """dense_rescore_TYPE: a block for 8 candidates of a query, whose numbers are copied three stages of 1 KB ahead."""
    if of.batch > 4:
        loads = {"near": of.size.item / 24, "far": 0.0}
        if not of.card.holds(of.size.item * of.size.vectors * of.size.dim):
            loads = {"near": 0.0, "far": of.size.item / 24}
        yield Work(
            "other", "dense_rescore_TYPE", blocks=of.batch * DENSE_KEPT / 8, threads=128, registers=73, shared=43_008,
            units=of.size.dim / 128, **loads, steps=38, first_near=4, first_steps=300,
        )  # fmt: skip
    yield Work(
        "other", "topk_emit", blocks=of.batch, threads=SELECT_THREADS, registers=40, first_near=4,
        first_steps=400 + (sort_steps(DENSE_KEPT) if of.batch > 4 else 0),
    )  # fmt: skip


def dense(of: Search) -> Iterator[Work]:
    """A dense list: by codes, if the vectors take CODED_BYTES or more."""
    yield from queries(of)
    if of.size.item * of.size.vectors * of.size.dim >= CODED_BYTES:
        yield from scans(of)
        return
    for row in (product, select, rescore):
        yield from row(of)


def fuse(of: Search) -> Iterator[Work]:
    """fuse_lists and fuse_f32: a block a query, for few documents, which it orders by counting."""
    yield Work("other", "fuse_lists", blocks=of.batch, registers=20, first_near=2, first_steps=50)
    yield Work("other", "fuse_f32", blocks=of.batch, registers=62, shared=9_216, first_near=12, first_steps=4200)


KERNELS: tuple[Callable[[Search], Iterator[Work]], ...] = (
    start, restart, early, passes, residual, mass, scale, scan, finish, dense, fuse,
)  # fmt: skip
#: Kernels for each block of lanes.
OF_WALK = (start, restart, early, passes, residual, mass, scale, scan, finish)


def works(of: Search) -> list[tuple[Work, int]]:
    """Return the kernels of a search, each with how often the blocks of lanes repeat it."""
    return [(work, of.lane_blocks if row in OF_WALK else 1) for row in KERNELS for work in row(of)]


class Nodes(NamedTuple):
    """Of a recorded search: launches, the matrix product among them; those of a block of lanes; its grid barriers."""

    launches: int
    of_block: int
    barriers: int


def nodes(of: Search) -> Nodes:
    """Return the nodes of a search beside its copies, without early ends."""
    rows = [
        (work, row in OF_WALK, count)
        for row in KERNELS
        for work in row(of)
        for count in (of.lane_blocks if row in OF_WALK else 1,)
    ]
    return Nodes(
        round(sum(work.launches * count for work, _, count in rows)),
        round(sum(work.launches for work, is_of_walk, _ in rows if is_of_walk)),
        round(sum(work.barriers * work.times for work, _, _ in rows)),
    )
