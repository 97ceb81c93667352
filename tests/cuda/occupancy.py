"""Occupancy by formula: the warps that fit on a multiprocessor, as a share of those that it can hold.

The limits by architecture are the table "Technical Specifications per Compute Capability" of the CUDA C++ Programming
Guide; how registers and shared memory are handed out is NVIDIA's cuda_occupancy.h, against which test_cuda_readers.py
holds this file where that header is installed.
"""

from __future__ import annotations

from typing import NamedTuple

WARP = 32
REGISTERS = 65536
PARTITIONS = 4
#: Registers are handed to a warp in units of this.
REGISTER_UNIT = 256
KIB = 1024


class Multiprocessor(NamedTuple):
    warps: int
    blocks: int
    shared: int
    shared_unit: int
    reserved: int  # the driver's own shared memory in every block


MULTIPROCESSORS = {
    75: Multiprocessor(32, 16, 64 * KIB, 256, 0),
    80: Multiprocessor(64, 32, 164 * KIB, 128, KIB),
    86: Multiprocessor(48, 16, 100 * KIB, 128, KIB),
    89: Multiprocessor(48, 24, 100 * KIB, 128, KIB),
    90: Multiprocessor(64, 32, 228 * KIB, 128, KIB),
    100: Multiprocessor(64, 32, 228 * KIB, 128, KIB),
    120: Multiprocessor(48, 24, 100 * KIB, 128, KIB),
}


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def blocks_by_registers(registers: int, warps: int) -> int:
    by_warp = round_up(registers * WARP, REGISTER_UNIT)
    # A launch is refused by what it would take on all partitions alike.
    if by_warp * round_up(warps, PARTITIONS) > REGISTERS:
        return 0
    return REGISTERS // PARTITIONS // by_warp * PARTITIONS // warps


def resident_blocks(architecture: int, registers: int, block: int, shared: int) -> int:
    """Blocks of ``block`` threads and ``shared`` bytes, static and dynamic, that one multiprocessor runs at a time."""
    limit = MULTIPROCESSORS[architecture]
    warps = round_up(block, WARP) // WARP
    allocated = round_up(shared + limit.reserved, limit.shared_unit)
    by_shared = limit.shared // allocated if allocated else limit.blocks
    return min(limit.blocks, limit.warps // warps, blocks_by_registers(registers, warps), by_shared)


def occupancy(architecture: int, registers: int, block: int, shared: int) -> float:
    warps = round_up(block, WARP) // WARP
    return resident_blocks(architecture, registers, block, shared) * warps / MULTIPROCESSORS[architecture].warps
