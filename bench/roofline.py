"""``python -m bench.roofline``: writes docs/gpu.md: times by formula from published bandwidths; nothing is measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from .first_gpu.sizes import FULL

PAGE = Path(__file__).resolve().parents[1] / "docs" / "gpu.md"
BATCHES = (1, 32, 256)
#: Passes of a walk on the hotpotqa graph (the bench's case ppr-hotpotqa), without the certificate.
PASSES = 13
#: Of these, those that also measure their residual: a recorded walk of damping 0.5 and tol 1e-6 does from pass 10 on.
MEASURED = 4


@dataclass(frozen=True)
class Card:
    """GB/s, MiB of L2, TFLOP/s of float32 without tensor cores, what part of that float64 has, and the boost clock in
    GHz, as NVIDIA's architecture papers give them.
    """

    name: str
    bandwidth: float
    l2: float
    flops: float
    double: float = 1 / 64
    clock: float = 2.0


CARDS = (
    Card("RTX 3070", 448, 4, 20.3, 1 / 64, 1.73),
    Card("RTX 4070", 504, 36, 29.1, 1 / 64, 2.48),
    Card("RTX 4090", 1008, 72, 82.6, 1 / 64, 2.52),
    Card("RTX 5090", 1792, 96, 104.8, 1 / 64, 2.41),
    Card("T4", 320, 4, 8.1, 1 / 32, 1.59),
    Card("L4", 300, 48, 30.3, 1 / 64, 2.04),
    Card("H100 SXM", 3350, 50, 66.9, 1 / 2, 1.98),
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


#: The parts of a batch of 32 by the upper end of every formula.
LANES = 32
PART_SIZES = (
    SIZES[0],
    Size("million", 1_000_000, 10_000_000, 1_000_000, 1024, item=2),
    Size("ten million", 10_000_000, 100_000_000, 10_000_000, 1024, item=2),
)
#: Launches (the matrix product among them), copies and clears of a recorded search: tests/kernels/test_capture.py.
LAUNCHES, COPIES, CLEARS = 48, 0, 0
#: What a filter adds: ppr_mask, what counts of long rows (2), ppr_degrees and the volume (2); three clears.
FILTER_NODES = 9
NODE_SECONDS, BANDWIDTH_SHARE, SECTOR = 1.5e-6, 0.8, 32
#: Entries of the hub; cycles of an entry in the residual's chain, or of a turn of the block that looks at candidates.
HUB, ENTRY_CYCLES, LOOK_CYCLES, LOOK_THREADS = 100_000, 125, 150, 128
TILE_BYTES = 1 << 26  # of a 16-bit corpus, widened before its product
PARTS = ("walk", "certificate", "selection", "dense", "nodes")


def gather_bytes(size: Size, card: Card, lane_bytes: int) -> float:
    """Each entry's state in whole sectors, or each node's once where all states fit in half of the L2."""
    one = max(SECTOR, lane_bytes * LANES)
    return float(size.nodes if size.nodes * one <= card.l2 * 2**19 else size.stored) * one


def parts(size: Size, card: Card) -> dict[str, float]:
    """Return the seconds of each part, and what a filter and a hub add to them."""
    rate, state = BANDWIDTH_SHARE * card.bandwidth * 1e9, 4.0 * size.nodes * LANES
    entries, gathers = size.stored * 8 + size.nodes * 20, gather_bytes(size, card, 4)
    one = entries + 2 * state + gathers
    doubles = 4.0 * size.stored * LANES / (card.flops * card.double / 2 * 1e12)  # two products or sums, two widenings
    vectors = float(size.vectors * size.dim)
    widened = 8 * vectors if size.item == 2 and card.l2 * 2**19 < TILE_BYTES else 0.0
    dense = (size.item * vectors + widened + 8.0 * size.vectors * LANES) / rate
    masked = size.stored * 9 + gathers + 24.0 * size.nodes * LANES + 32.0 * size.nodes * LANES
    masked += PASSES * state + gather_bytes(size, card, 8)
    return {
        "walk": (PASSES * one + MEASURED * state) / rate,
        "certificate": (one + 8 * size.stored + 3 * state) / rate + doubles,
        "selection": 4.0 * size.vectors * LANES / rate + size.vectors / LOOK_THREADS * LOOK_CYCLES / (card.clock * 1e9),
        "dense": max(dense, 2 * vectors * LANES / (card.flops * 1e12)),
        "nodes": NODE_SECONDS * (LAUNCHES + COPIES + CLEARS),
        "filter": masked / rate + NODE_SECONDS * FILTER_NODES,
        "hub": HUB * ENTRY_CYCLES / (card.clock * 1e9),
    }


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
    """Lanes of each block of queries, as backends/cuda/ppr.py makes them."""
    lanes = [32] * (batch // 32)
    if batch % 32:
        lanes.append(next(width for width in (4, 8, 16, 32) if width >= batch % 32))
    return lanes


def pass_bytes(size: Size, lanes: int, gathers_miss: bool) -> float:
    """Bytes of device memory of a pass: the graph, the streams, and each node's state once or once for each entry."""
    graph = size.stored * (4 + 4) + size.nodes * (16 + 4)
    streams = 2 * 4 * size.nodes * lanes
    rows = size.stored if gathers_miss else size.nodes
    return graph + streams + 4 * rows * lanes


def walk_bytes(size: Size, batch: int, gathers_miss: bool) -> float:
    """All passes of all blocks. Measured passes read the state once more; the certificate is another pass, with float64
    degrees; normalisation is three streams.
    """
    total = 0.0
    for lanes in lane_blocks(batch):
        one = pass_bytes(size, lanes, gathers_miss)
        state = 4.0 * size.nodes * lanes
        total += (PASSES + 1) * one + MEASURED * state + 8 * size.stored + 3 * state
    return total


def dense_seconds(size: Size, batch: int, card: Card) -> float:
    """The matrix product: every vector read once, float32; bound by memory or by arithmetic."""
    memory = 4.0 * size.vectors * size.dim / (card.bandwidth * 1e9)
    arithmetic = 2.0 * size.vectors * size.dim * batch / (card.flops * 1e12)
    return max(memory, arithmetic)


def seconds(size: Size, batch: int, card: Card, gathers_miss: bool) -> float:
    """The PhaseGraph recipe; what calibrates and fuses lists of 130 documents moves less than a thousandth of this."""
    return walk_bytes(size, batch, gathers_miss) / (card.bandwidth * 1e9) + dense_seconds(size, batch, card)


def milliseconds(value: float) -> str:
    value *= 1e3
    return f"{value:.2g} ms" if value < 10 else f"{value:,.0f} ms"


def fits(size: Size, batch: int, card: Card) -> bool:
    """Whether the state of a block that a pass gathers from stays in L2."""
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
    lines = ["| card | GB/s | L2 (MiB) | float32 TFLOP/s | float64 of it | GHz |", "| --- |" + " --- |" * 5]
    for card in CARDS:
        numbers = f"{card.bandwidth:g} | {card.l2:g} | {card.flops:g} | 1/{1 / card.double:.0f} | {card.clock:g}"
        lines.append(f"| {card.name} | {numbers} |")
    return "\n".join(lines)


INTRODUCTION = """# The GPU, computed

Written by `python -m bench.roofline`; do not edit it here. **Nothing on this page was measured on a GPU**: none was
available. `backend="cuda"` runs on one through CuPy (`pip install 'hopfuse[cuda13]'`, or `cuda12` for a driver of
CUDA 12). On your machine `hopfuse selftest` compares every kernel's bits with the CPU's and times it, and
`python -m bench --backend cuda` measures the ops beside what is installed there of faiss, cuVS, PyTorch, CuPy and
cuGraph. Here the kernels of `kernels/cuda` run in the tests on an emulator, which says what they compute, not how long
they take.

- *computed* (the tables by card): bytes of device memory by formula, divided by a published bandwidth, and float32
  arithmetic for the matrix product. A pass of L lanes moves nnz (4 + 4) + n (16 + 4) bytes of graph, 8 n L of streams
  (the iterate before, the next one), and gathers: 4 n L where they are served by L2, 4 nnz L where none is. The two
  ends of a cell are these two; *low* says that a block's state fits in the card's L2, so that the lower end is near,
  *between* that it does not. {passes} passes (damping 0.5, tol 1e-6), {measured} of them with residuals, and a
  certificate of one more. Launches (2 a pass at most, replayed as one graph) and the copies to and from the device are
  not in them.
- *measured*: what the first use compiles, on a CPU; nothing else.

## The cards

Bandwidth, L2, rates and boost clocks from NVIDIA's papers on the Turing, Ampere GA102, Ada, Blackwell RTX and Hopper
architectures.
"""

FIRST_CARD = """
## The first card

`python -m bench.first_gpu --out report.json`, from a checkout on Linux with `pip install -e '.[cuda13,dev,sanitizer]'`,
tries everything that a card can be asked for. Each part is a process of its own under a time limit. The report is
written after each part, whole: one that fails, crashes or hangs is in it, with what it had noted by then, and the next
goes on. What is not installed is skipped with its reason. `--only NAME` runs some parts, `--quick` all of them on small
inputs; the exit status is 1 where a part failed, crashed or ran out of time. [examples/first_gpu.ipynb] does the same
on a hosted T4, cell by cell.

| part | what it does | what is in the report |
| --- | --- | --- |
| `build` | first use: kernels compiled into an empty cache and loaded | card, driver, versions, seconds |
| `tests` | `pytest -m gpu` | outcomes, and why tests failed |
| `selftest` | `hopfuse selftest --report` | checks and kernels: equal or not, seconds by CUDA events; leaks |
| `memcheck`, `racecheck`, `initcheck` | compute-sanitizer over the quick self-test, without a pool | its summary |
| `recordings` | a search recorded, asked and dropped {recordings} times | free memory after each, seconds of replays |
| `out_of_memory` | the memory filled, asked, emptied, asked again | what was said, free memory after each |
| `threads` | two threads on streams of their own: one recording for both, their own, calls | what differs |
| `torch_streams` | torch tensors that are still being made, and spoiled right after | what differs |
| `bench` | hopfuse alone, then beside faiss, cuVS, PyTorch, CuPy and cuGraph | the bench's rows |

`out_of_memory` takes all of the card's memory for moments: use a card that nobody else is using. Beside the report a
folder `report.parts` has the whole output of each part. The `--quick` form ran here on the emulator and stand-ins for
CuPy and compute-sanitizer (tests/bench/test_first_gpu.py); `torch_streams` and the peers were skipped, and never ran.

The first use compiles {files} files, in threads and after a line on the standard error. By NVRTC {nvrtc} for sm_89 they
take {median:.1f} s of a processor ({machine}, busy with other work: the median of {runs} runs of
`python tests/cuda/compile_times.py 89`, which took {least:.1f} to {most:.1f} s).

[examples/first_gpu.ipynb]: ../examples/first_gpu.ipynb
"""
#: What tests/cuda/compile_times.py printed: the CPU seconds of all kernel files in each run, by which NVRTC, where.
COMPILED_FILES, COMPILED_BY, COMPILED_ON = 17, "13.2.78", "AMD EPYC, Zen 5"
COMPILED_SECONDS = (12.85, 15.51, 15.05, 14.92, 14.64, 11.66, 11.70)

PARTS_TEXT = """
## PhaseGraph by part, B = 32, computed

The upper end of every formula: {share:.0%} of the published bandwidth; gathers in whole sectors of {sector}
bytes, and read from memory wherever the states of all nodes take more than half of the L2; {node:.1f} µs for
each of the {launches} launches, {copies} copies and {clears} clears that the emulator counts in a recorded
search. *certificate*: a pass in float64, four instructions of its rate for an entry and a lane. *selection*:
the nodes of passages, and one block that looks at all of them, {look} cycles for {threads} (assumed). *dense*:
a 16-bit corpus is also written and read as float32 where a tile of {tile} MiB takes more than half of the L2.
*a filter adds* masks, degrees and volumes of each query and reading tables of its own; *a hub adds* the chain
of its row in the certificate, {hub:,} entries of {cycles} cycles (assumed); passes go by segments, with a
filter too.
"""


def render() -> str:
    sections = [INTRODUCTION.format(passes=PASSES, measured=MEASURED), cards()]
    for size in SIZES:
        sections.append(
            f"\n## PhaseGraph, {size.name} size, computed\n\n{size.nodes:,} nodes, {size.stored:,} stored entries with "
            f"weights{size.remark};\n{size.vectors:,} vectors of {size.dim:,} dimensions in float32.\n\n{table(size)}"
        )
    text = PARTS_TEXT.format(
        share=BANDWIDTH_SHARE, sector=SECTOR, node=NODE_SECONDS * 1e6, launches=LAUNCHES, copies=COPIES, clears=CLEARS,
        look=LOOK_CYCLES, threads=LOOK_THREADS, tile=TILE_BYTES >> 20, hub=HUB, cycles=ENTRY_CYCLES,
    )  # fmt: skip
    sections.append(text.rstrip("\n"))
    for size in PART_SIZES:
        kind = "float32" if size.item == 4 else "float16"
        sections.append(
            f"\n{size.nodes:,} nodes, {size.stored:,} stored entries; {size.vectors:,} vectors of {size.dim:,} "
            f"dimensions in {kind}:\n\n{part_table(size)}"
        )
    sections.append(_first_card().rstrip("\n"))
    return "\n".join([*sections, ""])


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
