"""The time of a search on a GPU, from the counts of bench/gpu_kernels.py and the numbers of bench/gpu_cards.py.

A kernel takes the longest of: its bytes by the bandwidth; its sectors by that of L2; its operations by their rates; its
warps' instructions by the schedulers' rate; and the latency of its dependent loads, by Little's law: blocks that do not
run at once run one after another.
"""

from __future__ import annotations

from math import ceil

from .gpu_cards import CALIBRATED, WARP, Card, Constants
from .gpu_kernels import SEEDS, Search, Work, works

SCHEDULERS = 4
#: Seconds of Python and native code for a replay without a driver; calls of the driver (wait for the memory's last use,
#: launch, set an event, wait); copies and clears among its nodes.
HOST_SECONDS, HOST_CALLS, COPY_NODES = 10e-6, 4, 3


def limits(work: Work, card: Card, of: Constants = CALIBRATED) -> dict[str, float]:
    """Return the seconds of one time of a kernel's work, by what limits it."""
    waves = ceil(work.blocks / card.resident_blocks(work.threads, work.registers, work.shared))
    step = of.step / (card.clock * 1e9)
    unit = work.far * of.memory_latency + work.near * of.cache_latency + work.steps * step
    block = work.first_near * of.cache_latency + work.first_steps * step
    warps = work.threads / WARP
    instructions = work.blocks * (warps * work.units * (work.issued or work.steps) + work.first_steps)
    return {
        "memory": work.memory / (of.bandwidth_share * card.bandwidth * 1e9),
        "L2": work.cache / (of.bandwidth_share * card.l2_bandwidth),
        "float64": work.doubles / (card.flops * card.double / 2 * 1e12),
        "tensor cores": work.tensor / (card.tensor * 1e12),
        "instructions": instructions / (of.issue_share * card.multiprocessors * SCHEDULERS * card.clock * 1e9),
        "latency": waves * (work.units * unit + block),
    }


def seconds(work: Work, card: Card, of: Constants = CALIBRATED) -> float:
    """Return the seconds of a kernel's work in a search."""
    each = max(limits(work, card, of).values()) + work.barriers * of.barrier
    return work.times * each + work.launches * of.launch


def parts(search: Search, of: Constants = CALIBRATED) -> dict[str, float]:
    """Return the seconds of each part of a search."""
    found = dict[str, float]()
    nodes = float(COPY_NODES)
    for work, count in works(search):
        found[work.part] = found.get(work.part, 0.0) + count * seconds(work, search.card, of)
        nodes += count * work.launches
    copies = search.batch * (4 * search.size.dim + 16 * SEEDS) / of.host_copies
    found["host and gaps"] = HOST_SECONDS + HOST_CALLS * of.call + nodes * of.gap + copies
    return found
