"""``python -m bench.roofline``: writes docs/gpu.md: times by formula from published bandwidths; nothing is measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "gpu.md"
BATCHES = (1, 32, 256)
#: Passes of a walk on the hotpotqa graph (the bench's case ppr-hotpotqa), without the certificate.
PASSES = 13
#: Of these, those that also measure their residual: a recorded walk of damping 0.5 and tol 1e-6 does from pass 10 on.
MEASURED = 4


@dataclass(frozen=True)
class Card:
    """GB/s, MiB of L2 and TFLOP/s of float32 without tensor cores, as NVIDIA's architecture papers give them."""

    name: str
    bandwidth: float
    l2: float
    flops: float


CARDS = (
    Card("RTX 3070", 448, 4, 20.3),
    Card("RTX 4070", 504, 36, 29.1),
    Card("RTX 4090", 1008, 72, 82.6),
    Card("RTX 5090", 1792, 96, 104.8),
    Card("H100 SXM", 3350, 50, 66.9),
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


SIZES = (
    Size("MuSiQue", 72_000, 1_050_000, 11_656, 4096),
    Size("large", 10_000_000, 200_000_000, 1_000_000, 1024, " (100,000,000 edges, both ways)"),
)


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
    lines = ["| card | GB/s | L2 (MiB) | float32 TFLOP/s |", "| --- | --- | --- | --- |"]
    lines += [f"| {card.name} | {card.bandwidth:g} | {card.l2:g} | {card.flops:g} |" for card in CARDS]
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
  certificate of one more. Launches (3 a pass at most, replayed as one graph) and the copies to and from the device are
  not in them.
- *measured*: nothing.

## The cards

Bandwidth, L2 and float32 rate from NVIDIA's papers on the Ampere GA102, Ada, Blackwell RTX and Hopper architectures.
"""


def render() -> str:
    parts = [INTRODUCTION.format(passes=PASSES, measured=MEASURED), cards()]
    for size in SIZES:
        parts.append(
            f"\n## PhaseGraph, {size.name} size, computed\n\n{size.nodes:,} nodes, {size.stored:,} stored entries with "
            f"weights{size.remark};\n{size.vectors:,} vectors of {size.dim:,} dimensions in float32.\n\n{table(size)}"
        )
    return "\n".join([*parts, ""])


def main() -> None:
    PAGE.write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
