"""GPUs as NVIDIA publishes them, and what one of them has measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

WARP = 32
REGISTERS_PER_MULTIPROCESSOR, REGISTER_UNIT, RESERVED_SHARED = 1 << 16, 256, 1024


class Family(NamedTuple):
    """Of a compute capability: warps, blocks and bytes of shared memory that a multiprocessor holds."""

    warps: int
    blocks: int
    shared: int


FAMILIES = {
    75: Family(32, 16, 64 << 10),
    86: Family(48, 16, 100 << 10),
    89: Family(48, 24, 100 << 10),
    90: Family(64, 32, 228 << 10),
    120: Family(48, 24, 100 << 10),
}


@dataclass(frozen=True)
class Card:
    """A GPU as in NVIDIA's architecture papers.

    Bandwidth in GB/s, L2 in MiB, multiprocessors, float32 TFLOP/s without tensor cores, the share of that for float64,
    the boost clock in GHz, the TFLOP/s of tensor cores for dense 16-bit products with float32 sums, the compute
    capability, and whether the kernels have run on one. NVIDIA does not publish the bandwidth of L2: ``l2_cycle`` is
    its bytes in a cycle of a multiprocessor, an assumption of 16 where nobody has measured. ``l2_copies`` is the number
    of its partitions that each cache what their own multiprocessors read.
    """

    name: str
    bandwidth: float
    l2: float
    multiprocessors: int
    flops: float
    double: float
    clock: float
    tensor: float
    capability: int
    l2_cycle: float = 16
    l2_copies: int = 1
    measured: bool = False

    @property
    def l2_bandwidth(self) -> float:
        """Return the bytes that L2 gives in a second."""
        return self.l2_cycle * self.multiprocessors * self.clock * 1e9

    @property
    def label(self) -> str:
        """Return the name, with a mark where nobody has measured."""
        return self.name if self.measured else f"{self.name} *"

    def holds(self, count: float) -> bool:
        """Return whether L2 holds so many bytes."""
        return count <= self.l2 * 2**20

    def resident_blocks(self, threads: int, registers: int, shared: int) -> int:
        """Return the blocks that run at once on the whole GPU."""
        family, warps = FAMILIES[self.capability], -(-threads // WARP)
        allotted = -(-registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
        by_registers = REGISTERS_PER_MULTIPROCESSOR // allotted // warps if registers else family.blocks
        by_shared = family.shared // (shared + RESERVED_SHARED)
        return self.multiprocessors * max(1, min(family.blocks, family.warps // warps, by_registers, by_shared))


#: What an H200 gathered from L2 in rows of 128 bytes: 8,085 GB/s (bench/results/h200-2026-11-29.json). Its first-level
#: caches hold at most 2% of the table of 15.7 MB that the probe gathers from. The H100 has the same chip.
GATHERED_CYCLE = 30.9
CARDS = (
    Card("RTX 3070", 448, 4, 46, 20.3, 1 / 64, 1.73, 40.6, 86),
    Card("RTX 4070", 504, 36, 46, 29.1, 1 / 64, 2.48, 58.3, 89),
    Card("RTX 4090", 1008, 72, 128, 82.6, 1 / 64, 2.52, 165.2, 89),
    Card("RTX 5090", 1792, 96, 170, 104.8, 1 / 64, 2.41, 209.5, 120),
    Card("T4", 320, 4, 40, 8.1, 1 / 32, 1.59, 65, 75),
    Card("L4", 300, 48, 58, 30.3, 1 / 64, 2.04, 121, 89),
    Card("H100 SXM", 3350, 50, 132, 66.9, 1 / 2, 1.98, 989, 90, GATHERED_CYCLE, 2),
    Card("H200", 4800, 60, 132, 66.9, 1 / 2, 1.98, 989, 90, GATHERED_CYCLE, 2, measured=True),
)


@dataclass(frozen=True)
class Constants:
    """Constants that no publication states, which only a measurement changes.

    They were measured on an H200, or fitted to the parts of six searches there.

    Attributes
    ----------
    bandwidth_share : float
        Of the bandwidth of memory and of L2, what kernels reach.
    issue_share : float
        Of the schedulers' cycles, those in which they issue an instruction of a kernel that waits for nothing else.
    memory_latency, cache_latency : float
        Seconds of a load from memory, and from L2, while others are under way.
    step : float
        Cycles of a warp for an instruction, with those that it waits for.
    launch : float
        Seconds that a kernel takes if it does nothing.
    barrier : float
        Seconds of a grid barrier, of all blocks.
    gap : float
        Seconds between two kernels of a recording.
    call : float
        Seconds of a call of the driver around a recording: a copy, the launch of a graph, a wait.
    host_copies : float
        Bytes a second of a copy from the host.
    """

    bandwidth_share: float
    issue_share: float
    memory_latency: float
    cache_latency: float
    step: float
    launch: float
    barrier: float
    gap: float
    call: float
    host_copies: float


CALIBRATED = Constants(
    bandwidth_share=0.80,
    issue_share=0.56,
    memory_latency=310e-9,
    cache_latency=150e-9,
    step=5.6,
    launch=1.4e-6,
    barrier=2.2e-6,
    gap=1.6e-6,
    call=4e-6,
    host_copies=21e9,
)
