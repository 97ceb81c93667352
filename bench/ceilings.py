"""How long what a call moves takes at the limits of the machine, from measured rows of the case ``limits``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .limits import CASE, GATHER, GATHER_ONE, MULTIPLY, READ, REGISTERS

Row = dict[str, Any]


class Ceilings:
    """GB/s by level of memory and access; 10^9 a second of products of 8-bit numbers.

    Parameters
    ----------
    rows : sequence of dict
        Measured rows, of whatever cases.

    Attributes
    ----------
    rates : dict of (level, access) to GB/s
    products : 10^9 a second, or None where they were not measured
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
        """The first level that holds as many bytes."""
        return next((level for holds, level in self.holds if size <= holds), "memory")

    def seconds(self, moved: dict[str, int]) -> float:
        """At the limits: gathered rows from where the state fits, the rest in order from where all of it fits.

        Rows of one number come at the rate of such. Products of 8-bit numbers may hide what is moved, or be hidden.
        """
        level = self.level(moved["state"])
        rate = self.rates[level, GATHER]
        if moved.get("row") == 4:
            rate = self.rates.get((level, GATHER_ONE), rate)
        streamed = moved["streamed"] / self.rates[self.level(moved["touched"]), READ]
        products = moved.get("products", 0) / self.products if self.products else 0.0
        return max(moved["gathered"] / rate + streamed, products) * 1e-9
