"""The time that a call's memory traffic takes at the machine's limits, from rows of the case ``limits``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .limits import CASE, GATHER, GATHER_ONE, MULTIPLY, READ, REGISTERS

Row = dict[str, Any]


class Ceilings:
    """Measured bandwidths by level of memory and access, and the rate of 8-bit products.

    Parameters
    ----------
    rows : sequence of dict
        Measured rows of any cases.

    Attributes
    ----------
    rates : dict of (level, access) to GB/s
    products : float or None
        8-bit products in 10^9 per second, None if not measured.
    holds : list of (bytes, level), smallest first
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        limits = [row for row in rows if row["case"] == CASE]
        rates = {(row["level"], row["access"]): row["rate"]["median"] for row in limits}
        self.products = rates.pop((REGISTERS, MULTIPLY), None)
        self.rates = rates
        holds = {row["level"]: row["sizes"]["holds"] for row in limits}
        self.holds = sorted((size, level) for level, size in holds.items() if size)

    def __bool__(self) -> bool:
        return bool(self.rates)

    def level(self, size: int) -> str:
        """Return the smallest level that holds this many bytes."""
        return next((level for holds, level in self.holds if size <= holds), "memory")

    def seconds(self, moved: dict[str, int]) -> float:
        """Return the minimum time of this traffic.

        Rows are gathered from the level that the state fits in, the rest is read in order from the level that all of it
        fits in. Rows of a single number have their own rate. Gathering, reading in order and 8-bit products may
        overlap: a processor prefetches the one while it waits for the other, and popular rows come from nearer
        caches. So the longest of the three is the limit.
        """
        level = self.level(moved["state"])
        rate = self.rates[level, GATHER]
        if moved.get("row") == 4:
            rate = self.rates.get((level, GATHER_ONE), rate)
        streamed = moved["streamed"] / self.rates[self.level(moved["touched"]), READ]
        products = moved.get("products", 0) / self.products if self.products else 0.0
        return max(moved["gathered"] / rate, streamed, products) * 1e-9
