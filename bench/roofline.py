"""``python -m bench.roofline``: write docs/gpu.md, with times computed from published bandwidths."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf, isqrt
from pathlib import Path
from statistics import median
from typing import NamedTuple

from .first_gpu.sizes import FULL
from .measured_gpu import section

PAGE = Path(__file__).resolve().parents[1] / "docs" / "gpu.md"
BATCHES = (1, 32, 256)
#: Passes of a walk on the hotpotqa graph (the case ppr-hotpotqa), without the certificate.
PASSES = 13
#: Passes that also measure their residual: those from pass 10 on, in a recorded walk of damping 0.5 and tol 1e-6.
MEASURED = 4
#: Seeds of a query, and when the first passes read only nonzero rows of the state, as in backends/cuda/ppr_passes.py.
SEEDS, MOST_EARLY, SPARSE = 5, 4, 4


@dataclass(frozen=True)
class Card:
    """A GPU as in NVIDIA's architecture papers.

    Bandwidth in GB/s, L2 in MiB, float32 TFLOP/s without tensor cores, the share of that for float64, the boost clock
    in GHz, and the TFLOP/s of tensor cores for dense 16-bit products with float32 sums.
    """

    name: str
    bandwidth: float
    l2: float
    flops: float
    double: float = 1 / 64
    clock: float = 2.0
    tensor: float = inf


CARDS = (
    Card("RTX 3070", 448, 4, 20.3, 1 / 64, 1.73, 40.6),
    Card("RTX 4070", 504, 36, 29.1, 1 / 64, 2.48, 58.3),
    Card("RTX 4090", 1008, 72, 82.6, 1 / 64, 2.52, 165.2),
    Card("RTX 5090", 1792, 96, 104.8, 1 / 64, 2.41, 209.5),
    Card("T4", 320, 4, 8.1, 1 / 32, 1.59, 65),
    Card("L4", 300, 48, 30.3, 1 / 64, 2.04, 121),
    Card("H100 SXM", 3350, 50, 66.9, 1 / 2, 1.98, 989),
    Card("H200", 4800, 60, 66.9, 1 / 2, 1.98, 989),
)


@dataclass(frozen=True)
class Size:
    """A graph and a corpus: nodes, stored entries (weighted), vectors, dimensions."""

    name: str
    nodes: int
    stored: int
    vectors: int
    dim: int
    remark: str = ""
    item: int = 4  # bytes of a number of a vector


SIZES = (
    Size("MuSiQue", 72_000, 1_050_000, 11_656, 4096),
    Size("large", 10_000_000, 200_000_000, 1_000_000, 1024, " (100,000,000 edges, both ways)"),
)


#: Lanes and sizes of the tables by part, which use the upper end of every formula.
LANES = 32
PART_SIZES = (
    SIZES[0],
    Size("million", 1_000_000, 10_000_000, 1_000_000, 1024, item=2),
    Size("ten million", 10_000_000, 100_000_000, 10_000_000, 1024, item=2),
)


class Nodes(NamedTuple):
    """Of a recorded search: launches, the matrix product among them; those of a block of lanes; its grid barriers."""

    launches: int
    of_block: int
    barriers: int


#: As tests/kernels/test_capture.py counts them, with launches for each pass or one for all of them.
PASS_BY_PASS, WALK_AT_ONCE, PASS_LAUNCHES = Nodes(50, 42, 0), Nodes(17, 9, 26), 2
COPIES, CLEARS = 0, 1
#: Graph nodes that a filter adds: ppr_mask, counts of long rows (2), ppr_degrees, the volume (2), three clears.
FILTER_NODES = 9
NODE_SECONDS, BANDWIDTH_SHARE, SECTOR, PASS_BYTES = 1.5e-6, 0.8, 32, 1 << 23
#: Entries of the hub and of a segment; cycles per entry or segment of a chain, and per turn of a block that scans
#: candidates (on an H200, 7,813 turns took 5.88 ms).
HUB, SEGMENT, ENTRY_CYCLES, LOOK_CYCLES, LOOK_THREADS = 100_000, 64, 125, 1500, 128
#: Float64 instructions of the certificate, read from the kernels: for each entry, whatever the lanes (its weight by
#: 1 / degree), for each entry and lane (a product and a sum), for each node and lane (the mass, the scores, the
#: residual and its bound), and for each of the 256 threads that share 64 nodes (its sum, joined); and the last of a
#: pass.
ENTRY_DOUBLES, ENTRY_LANE_DOUBLES, NODE_LANE_DOUBLES, CERTIFICATE_THREAD_DOUBLES, PASS_THREAD_DOUBLES = 1, 1, 7, 7, 3
THREADS_PER_NODE = 256 / 64
#: The blocks that share a lane's candidates, 8 for each multiprocessor of an H200 (kernels/device/ppr_topk.cpp), and
#: how often they are scanned.
SPLIT_BLOCKS, SPLIT_CANDIDATES, KEPT, SCANS = 1056, 1 << 10, 128, 2
#: Float32 operations of a GPU for each byte that it gathers from L2: 256 and 16 in a cycle of a multiprocessor.
FLOPS_PER_L2_BYTE = 16
#: Rows and queries of a block of a product of 16-bit rows, and the 16-bit parts of a query that it multiplies.
PRODUCT_ROWS, PRODUCT_QUERIES, QUERY_PARTS = 128, 32, 2
#: The same in float32: reads of shared memory for its multiplications, 12 for 32, at a quarter of their rate.
SHARED_SHARE = 12 / 32 * 4
PARTS = ("walk", "certificate", "selection", "dense", "nodes")


def most_lanes(size: Size, card: Card) -> int:
    """Return the lanes of a block, as in backends/cuda/ppr.py."""

    def moved(lanes: int) -> float:
        state, gathered = 4 * lanes * size.nodes, float(max(SECTOR, 4 * lanes) * size.stored)
        if state <= int(card.l2 * 2**20) // 2:
            gathered /= l2_speedup(card)
        return (8 * size.stored + 20 * size.nodes + 2 * state + gathered + PASS_BYTES) / lanes

    return min((32, 16, 8, 4), key=moved)


def l2_speedup(card: Card) -> float:
    """Return the bandwidth of the L2 cache over that of the memory."""
    return max(1.0, 1e3 * card.flops / FLOPS_PER_L2_BYTE / card.bandwidth)


def nodes(size: Size, card: Card, lanes: int) -> Nodes:
    """Return the nodes of a search, as backends/cuda/ppr_passes.py launches it.

    If both states fit in L2, all passes but the first ones, which read few rows, are one launch.
    """
    if 2 * 4 * lanes * size.nodes > card.l2 * 2**20:
        return PASS_BY_PASS
    launches, of_block, barriers = WALK_AT_ONCE
    early = PASS_LAUNCHES * len(early_passes(size, lanes))
    return Nodes(launches + early, of_block + early, barriers - early)


def splits(candidates: int, lanes: int) -> int:
    """Return the blocks that share a lane's candidates, as in backends/cuda/ppr_topk.py."""
    return max(1, min(SPLIT_BLOCKS // lanes, candidates // SPLIT_CANDIDATES, isqrt(candidates // KEPT)))


def gather_bytes(size: Size, card: Card, lanes: int, lane_bytes: int) -> float:
    """Return the bytes of each entry's state in whole sectors, or of each node's if all states fit in half of L2."""
    one = lane_bytes * lanes
    return float(size.nodes * one if size.nodes * one <= card.l2 * 2**19 else size.stored * max(SECTOR, one))


def parts(size: Size, card: Card) -> dict[str, float]:
    """Return the seconds of each part, and those that a filter and a hub add."""
    lanes = most_lanes(size, card)
    blocks, launched = LANES // lanes, nodes(size, card, lanes)
    rate, state = BANDWIDTH_SHARE * card.bandwidth * 1e9, 4.0 * size.nodes * lanes
    entries, gathers = size.stored * 8 + size.nodes * 20, gather_bytes(size, card, lanes, 4)
    one = entries + 2 * state + gathers
    early = early_passes(size, lanes)
    walk = (PASSES - len(early)) * one + sum(early_bytes(size, lanes, shares, gathers) for shares in early)
    walk += MEASURED * state
    joins = blocks * THREADS_PER_NODE * size.nodes
    doubles = size.stored * (ENTRY_DOUBLES * blocks + ENTRY_LANE_DOUBLES * LANES)
    doubles += NODE_LANE_DOUBLES * size.nodes * LANES + CERTIFICATE_THREAD_DOUBLES * joins
    double_rate = card.flops * card.double / 2 * 1e12
    scan = size.vectors / splits(size.vectors, lanes) / LOOK_THREADS * LOOK_CYCLES
    masked = size.stored * 9 + gathers + 24.0 * size.nodes * lanes + 32.0 * size.nodes * lanes
    masked += PASSES * state + gather_bytes(size, card, lanes, 8)
    return {
        "walk": blocks * walk / rate + MEASURED * PASS_THREAD_DOUBLES * joins / double_rate,
        "certificate": blocks * (one + 8 * size.stored + 3 * state) / rate + doubles / double_rate,
        "selection": SCANS * (4.0 * size.vectors * LANES / rate + blocks * scan / (card.clock * 1e9)),
        "dense": max(dense_limits(size, LANES, card).values()),
        "nodes": NODE_SECONDS
        * (launched.launches + COPIES + CLEARS + (blocks - 1) * launched.of_block + blocks * launched.barriers),
        "filter": blocks * (masked / rate + NODE_SECONDS * FILTER_NODES),
        "hub": blocks * (PASSES + 1) * (SEGMENT + HUB / SEGMENT) * ENTRY_CYCLES / (card.clock * 1e9),
    }


def early_passes(size: Size, lanes: int) -> list[tuple[float, float]]:
    """Return the shares of rows that may be nonzero before and after each of the first passes, of a random graph."""
    rows, spread = float(SEEDS * lanes), size.stored / size.nodes + 1
    if 2 * rows > size.nodes:
        return []
    count = 2
    while count < MOST_EARLY and SPARSE * rows * spread**count <= size.nodes:
        count += 1
    shares = [min(1.0, rows * spread**number / size.nodes) for number in range(count + 1)]
    return list(pairwise(shares))


def early_bytes(size: Size, lanes: int, shares: tuple[float, float], gathers: float) -> float:
    """Return the bytes of one of the first passes: the entries' nodes, the rows' ends, and what few rows need."""
    before, after = shares
    return 4.0 * size.stored + 8.0 * size.nodes + before * (4 * size.stored + gathers) + after * 8 * size.nodes * lanes


def dense_limits(size: Size, batch: int, card: Card) -> dict[str, float]:
    """Return the seconds of a dense list by what limits it: memory, L2, arithmetic.

    16-bit rows are read from memory once and then from L2, for 32 queries each; queries from L2 for 128 rows each.
    """
    numbers, scores = float(size.vectors * size.dim), 8.0 * size.vectors * batch
    limits = {"memory": (size.item * numbers + scores) / (BANDWIDTH_SHARE * card.bandwidth * 1e9)}
    if size.item != 2:
        return limits | {"arithmetic": 2 * numbers * batch / (card.flops * 1e12)}
    blocks = -(-batch // PRODUCT_QUERIES)
    read = blocks * numbers * (size.item + 4 * PRODUCT_QUERIES / PRODUCT_ROWS)
    limits["L2"] = read / (card.flops * 1e12 / FLOPS_PER_L2_BYTE)
    return limits | {"arithmetic": 2 * numbers * batch * QUERY_PARTS / (card.tensor * 1e12)}


def dense_table(size: Size) -> str:
    """Return the times of dense lists of 16-bit rows, beside those of the same product in float32."""
    lines = ["| card | B | memory | L2 | tensor cores | in float32 |", "| --- |" + " --- |" * 5]
    for card in CARDS:
        for batch in BATCHES[1:]:
            of = dense_limits(size, batch, card)
            float32 = 2.0 * size.vectors * size.dim * batch / (card.flops * 1e12) * SHARED_SHARE
            cells = map(milliseconds, (of["memory"], of["L2"], of["arithmetic"], float32))
            lines.append(f"| {card.name} | {batch} | {' | '.join(cells)} |")
    return "\n".join(lines)


def part_table(size: Size) -> str:
    lines = [
        f"| card | {' | '.join(PARTS)} | sum | a filter adds | a hub adds |",
        "| --- |" + " --- |" * (len(PARTS) + 3),
    ]
    for card in CARDS:
        of = parts(size, card)
        cells = [*(of[name] for name in PARTS), sum(of[name] for name in PARTS), of["filter"], of["hub"]]
        lines.append(f"| {card.name} | {' | '.join(map(milliseconds, cells))} |")
    return "\n".join(lines)


def lane_blocks(batch: int) -> list[int]:
    """Return the lanes of each block of queries, as in backends/cuda/ppr.py."""
    lanes = [32] * (batch // 32)
    if batch % 32:
        lanes.append(next(width for width in (4, 8, 16, 32) if width >= batch % 32))
    return lanes


def pass_bytes(size: Size, lanes: int, gathers_miss: bool) -> float:
    """Return the bytes that a pass moves: the graph, the streams, and each node's state once or once per entry."""
    graph = size.stored * (4 + 4) + size.nodes * (16 + 4)
    streams = 2 * 4 * size.nodes * lanes
    rows = size.stored if gathers_miss else size.nodes
    return graph + streams + 4 * rows * lanes


def walk_bytes(size: Size, batch: int, gathers_miss: bool) -> float:
    """Return the bytes of all passes of all blocks.

    Passes that measure residuals read the state once more; the certificate is another pass, with float64 degrees;
    normalisation is three streams.
    """
    total = 0.0
    for lanes in lane_blocks(batch):
        one = pass_bytes(size, lanes, gathers_miss)
        state = 4.0 * size.nodes * lanes
        total += (PASSES + 1) * one + MEASURED * state + 8 * size.stored + 3 * state
    return total


def dense_seconds(size: Size, batch: int, card: Card) -> float:
    """Return the time of the float32 matrix product, which reads every vector once, bound by memory or arithmetic."""
    memory = 4.0 * size.vectors * size.dim / (card.bandwidth * 1e9)
    arithmetic = 2.0 * size.vectors * size.dim * batch / (card.flops * 1e12)
    return max(memory, arithmetic)


def seconds(size: Size, batch: int, card: Card, gathers_miss: bool) -> float:
    """Return the time of the PhaseGraph recipe; calibration and fusion of 130 documents add less than a thousandth."""
    return walk_bytes(size, batch, gathers_miss) / (card.bandwidth * 1e9) + dense_seconds(size, batch, card)


def milliseconds(value: float) -> str:
    value *= 1e3
    return f"{value:.2g} ms" if value < 10 else f"{value:,.0f} ms"


def fits(size: Size, batch: int, card: Card) -> bool:
    """Return whether the state of a block, from which a pass gathers, fits in L2."""
    return 4 * size.nodes * max(lane_blocks(batch)) <= card.l2 * 2**20


def table(size: Size) -> str:
    head = f"| card | {' | '.join(f'B = {batch}' for batch in BATCHES)} |"
    lines = [head, "| --- |" + " --- |" * len(BATCHES)]
    for card in CARDS:
        cells = []
        for batch in BATCHES:
            low, high = (seconds(size, batch, card, miss) for miss in (False, True))
            near = "low" if fits(size, batch, card) else "between"
            cells.append(f"{milliseconds(low)} – {milliseconds(high)} ({near})")
        lines.append(f"| {card.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cards() -> str:
    lines = [
        "| card | GB/s | L2 (MiB) | float32 TFLOP/s | float64 of it | GHz | tensor TFLOP/s |",
        "| --- |" + " --- |" * 6,
    ]
    for card in CARDS:
        numbers = f"{card.bandwidth:g} | {card.l2:g} | {card.flops:g} | 1/{1 / card.double:.0f} | {card.clock:g}"
        numbers += f" | {card.tensor:g}"
        lines.append(f"| {card.name} | {numbers} |")
    return "\n".join(lines)


INTRODUCTION = """
## Computed: other GPUs

This page is written by `python -m bench.roofline`; do not edit it by hand. `backend="cuda"` runs on a GPU with a
driver of CUDA 12.0 or later. On your machine, `hopfuse selftest` compares every
kernel with the CPU bit for bit and times it, and `python -m bench --backend cuda` measures the operations beside
whichever of faiss, cuVS, PyTorch, CuPy and cuGraph are installed. The tables below are computed; compare the row of the
H200 with the times above.

- *Computed* (the tables by GPU): bytes of device memory by formula, divided by the published bandwidth, and float32
  arithmetic for the matrix product. A pass of L lanes moves nnz (4 + 4) + n (16 + 4) bytes of graph, 8 n L bytes of
  streams (the previous and the next iterate), and gathers 4 n L bytes if L2 serves them, or 4 nnz L bytes if it serves
  none; these are the two ends of a cell. *low* means that a block's state fits in L2, so the time is near the lower
  end; *between* means that it does not fit. There are {passes} passes (damping 0.5, tol 1e-6), {measured} of them with
  residuals, and one more for the certificate. Launches (replayed as one graph) and copies to and
  from the device are not included.

### GPUs

Bandwidth, L2, rates and boost clocks are from NVIDIA's papers on the Turing, Ampere GA102, Ada, Blackwell RTX and
Hopper architectures. The rate of tensor cores is that of dense 16-bit products with float32 sums; on Hopper only
`wgmma` reaches it, not `mma.sync`, which is used here.
"""

FIRST_CARD = """
## First run on a GPU

`python -m bench.first_gpu --out report.json`, from a checkout on Linux with `pip install -e
'.[cuda13,dev,sanitizer]'`, runs every check and measurement on a GPU. Each part runs in its own process with a time
limit. The report is written after each part: if a part fails, crashes or hangs, the report has its notes up to then,
and the next part starts. Parts whose packages are not installed are skipped with the reason. `--only NAME` runs some
of the parts, `--quick` runs all on small inputs. The exit status is 1 if a part failed, crashed or ran out of time.
[examples/first_gpu.ipynb] does the same on a hosted T4, cell by cell.

| part | runs | reports |
| --- | --- | --- |
| `build` | first use: compile kernels that are not prebuilt, and load all | GPU, driver, versions, seconds |
| `tests` | `HOPFUSE_TESTS_DRIVER=cuda pytest -m gpu` | outcomes, and the reasons of failures |
| `selftest` | `hopfuse selftest --report` | results of checks and kernels, seconds by CUDA events, leaks |
| `memcheck`, `racecheck`, `initcheck` | compute-sanitizer on the quick self-test, without a memory pool | its summary |
| `recordings` | record, run and drop a search {recordings} times | free memory after each, seconds of replays |
| `out_of_memory` | fill the memory, search, release it, search again | errors, free memory after each |
| `threads` | two threads: a shared recording, their own, eager calls | differences |
| `torch_streams` | torch tensors that are still being made, and overwritten right after | differences |
| `searches` | recorded searches of the sizes above, beside the CPU | equality, milliseconds, microseconds by kernel |
| `bench` | hopfuse alone, then beside faiss, cuVS, PyTorch, CuPy and cuGraph | rows of the benchmarks |

`out_of_memory` fills the GPU's memory for moments, so use a GPU that nobody else is using. The folder `report.parts`
beside the report has the output of each part. The `--quick` form was run on an emulated driver, with substitutes for
NVRTC and compute-sanitizer (tests/bench/test_first_gpu.py).

Wheels for Linux have compiled kernels. A first use without them compiles {files} files in threads, and says so on
standard error. With NVRTC {nvrtc} for sm_89 they take
{median:.1f} s of CPU time ({machine}: the median of {runs} runs of
`python tests/cuda/compile_times.py 89`, which took {least:.1f} to {most:.1f} s).

[examples/first_gpu.ipynb]: ../examples/first_gpu.ipynb
"""
#: The output of tests/cuda/compile_times.py: CPU seconds of all kernel files in each run, the NVRTC and the processor.
COMPILED_FILES, COMPILED_BY, COMPILED_ON = 19, "12.9.86", "AMD EPYC"
COMPILED_SECONDS = (12.28, 12.43, 11.81)

PARTS_TEXT = """
### PhaseGraph by part, B = 32, computed

These tables use the upper end of every formula: {share:.0%} of the published bandwidth; gathers in whole sectors of
{sector} bytes, from memory if the states of all nodes take more than half of the L2; {node:.1f} µs for each launch and
grid barrier that the emulator counts in a recorded search, which has {copies} copies and {clears} clears. The queries
are walked in blocks of 4, 8, 16 or 32, whichever takes the least time by bytes (the state of a small block may fit in
half of the L2, whose bandwidth is taken as 16 bytes in a cycle of a multiprocessor). A search has {launches} launches,
and {block} more for each further block. Where many passes are one launch (below), it has {one_launches}, {one_block}
more for each further block, and {barriers} grid barriers in each block; each of the first passes has {launches_of_pass}
launches in place of {launches_of_pass} barriers.
*walk*: the first passes, at most {early}, read the entries' nodes and, of the state, only rows that may be nonzero:
{seeds} seeds a query, and with each pass as many times more as an entry leads to.
*certificate* is a pass with {entry} float64 instruction for each entry, {entry_lane} for each entry and lane,
{node_lane} for each node and lane and {thread} for each thread; measured passes have {pass_thread} for each thread.
Conversions from and to float32, and sums over nodes, are made of other instructions. *selection*
reads the scores of passages twice, by up to {splits:,} blocks, {look:,} cycles for {threads} scores (measured on an
H200). *dense* reads every vector once as it is stored, or takes the time of the product if that is longer: in float32,
or for 16-bit vectors by tensor cores (below). *a filter adds* the masks, degrees and volumes of each query, and reads
of its tables. *a hub adds*, to each pass and to the certificate, a chain of
{segment} entries and one of the segments of its row, which has {hub:,} entries: {cycles} cycles
(assumed) for each entry or segment.
"""

WALK_TEXT = """
### Walks in one launch

If both states of a block of lanes fit in the L2, one cooperative launch (`ppr_walk_lL`) runs all passes of a walk but
the first ones, which read few rows, with grid barriers between them, and ends with the last lane. A recorded search
then has {one_launches} nodes instead of {launches}, and {launches_of_pass} more for each of the first passes, of which
there are at most {early}. **It has run on the emulator only**, with and without sanitizers. Walks with weights of edge
types, and those that stop when a list is proven, are launched pass by pass: their kernels would take longer to compile,
and proofs have launches of their own between passes. The first use of a GPU compares such a walk with the CPU's; if it
fails or differs, walks are launched pass by pass, and `backend_info()["backends"]["cuda"]["cooperative"]` is False.
CUDA graphs take cooperative kernels since CUDA 11.1 (`cooperative` of [CUkernelNodeAttrValue]).

A grid barrier is taken to last as long as a launch, {node:.1f} µs; neither has been measured. By this the nodes of a
search take {one_seconds:.1f} µs instead of {seconds:.1f} µs, mostly because the {dead} recorded passes after the end of
the last lane are left out. A walk asks for 2,056 bytes of shared memory for a block, as measured passes do; passes that
measure nothing are launched with none. Registers, not shared memory, limit both. With the 1 KiB that CUDA reserves for
a block, 4 blocks of a walk on a multiprocessor have 12 KiB and 5 of such a pass 5 KiB, so that L1 has 16 or 8 KiB less
for gathers, of 128 KiB, or of 256 on an H100.

[CUkernelNodeAttrValue]: https://docs.nvidia.com/cuda/archive/11.1.1/cuda-driver-api/unionCUkernelNodeAttrValue.html
"""

DENSE_TEXT = """
### Dense lists of 16-bit vectors, computed

float16 and bfloat16 vectors are multiplied by tensor cores, for more than 4 queries: each query as two 16-bit parts, by
`mma.sync` of depth 16, or 8 on compute capability 7.5, where bfloat16 vectors are multiplied in float32. What the
products may lose is bounded (kernels/include/hopfuse/dense_topk.h), and the rows that can be hits are scored again, so
the answers are those of the CPU. **This ran on the emulator only**: the searches measured above multiplied in float32.
The list takes the longest of *memory* ({share:.0%} of the bandwidth; every vector once, 8 bytes a score), *L2* (16
bytes in a cycle of a multiprocessor; vectors for every {queries} queries, queries for every {rows} vectors) and *tensor
cores* (two products). *in float32*: the same products without tensor cores, as they were before, {shared:.1f} times
their arithmetic for reads of shared memory.

{vectors:,} vectors of {dim:,} dimensions:

{table}
"""


def render() -> str:
    sections = [section(), INTRODUCTION.format(passes=PASSES, measured=MEASURED).lstrip("\n"), cards()]
    for size in SIZES:
        sections.append(
            f"\n### PhaseGraph, {size.name} size, computed\n\n{size.nodes:,} nodes, {size.stored:,} stored entries "
            f"with weights{size.remark};\n{size.vectors:,} vectors of {size.dim:,} dimensions in float32.\n\n"
            f"{table(size)}"
        )
    text = PARTS_TEXT.format(
        share=BANDWIDTH_SHARE, sector=SECTOR, node=NODE_SECONDS * 1e6, launches=PASS_BY_PASS.launches,
        block=PASS_BY_PASS.of_block, copies=COPIES, clears=CLEARS, one_launches=WALK_AT_ONCE.launches,
        one_block=WALK_AT_ONCE.of_block, barriers=WALK_AT_ONCE.barriers,
        look=LOOK_CYCLES, threads=LOOK_THREADS, splits=SPLIT_BLOCKS, hub=HUB, segment=SEGMENT,
        cycles=ENTRY_CYCLES, entry=ENTRY_DOUBLES, entry_lane=ENTRY_LANE_DOUBLES, node_lane=NODE_LANE_DOUBLES,
        thread=CERTIFICATE_THREAD_DOUBLES, pass_thread=PASS_THREAD_DOUBLES, seeds=SEEDS, early=MOST_EARLY,
        launches_of_pass=PASS_LAUNCHES,
    )  # fmt: skip
    sections.append(text.rstrip("\n"))
    for size in PART_SIZES:
        kind = "float32" if size.item == 4 else "float16"
        sections.append(
            f"\n{size.nodes:,} nodes, {size.stored:,} stored entries; {size.vectors:,} vectors of {size.dim:,} "
            f"dimensions in {kind}:\n\n{part_table(size)}"
        )
    sections.append(_walk_text().rstrip("\n"))
    size = PART_SIZES[1]
    text = DENSE_TEXT.format(
        share=BANDWIDTH_SHARE, queries=PRODUCT_QUERIES, rows=PRODUCT_ROWS, vectors=size.vectors, dim=size.dim,
        table=dense_table(size), shared=SHARED_SHARE,
    )  # fmt: skip
    sections += [text.rstrip("\n"), _first_card().rstrip("\n")]
    return "\n".join([*sections, ""])


def _walk_text() -> str:
    before, now = (1e6 * NODE_SECONDS * (of.launches + of.barriers) for of in (PASS_BY_PASS, WALK_AT_ONCE))
    recorded = (PASS_BY_PASS.of_block - WALK_AT_ONCE.of_block + 1) // PASS_LAUNCHES
    return WALK_TEXT.format(
        early=MOST_EARLY, launches_of_pass=PASS_LAUNCHES,
        launches=PASS_BY_PASS.launches, one_launches=WALK_AT_ONCE.launches, node=NODE_SECONDS * 1e6, seconds=before,
        one_seconds=now, saved=before - now, dead=recorded - PASSES,
    )  # fmt: skip


def _first_card() -> str:
    return FIRST_CARD.format(
        recordings=FULL.recordings, files=COMPILED_FILES, nvrtc=COMPILED_BY, machine=COMPILED_ON,
        median=median(COMPILED_SECONDS), runs=len(COMPILED_SECONDS), least=min(COMPILED_SECONDS),
        most=max(COMPILED_SECONDS),
    )  # fmt: skip


def main() -> None:
    PAGE.write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
