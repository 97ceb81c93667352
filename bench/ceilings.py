"""How long what a call moves takes at the limits of the machine, from measured rows of the case ``limits``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .limits import CASE

Row = dict[str, Any]


class Ceilings:
    """GB/s by level of memory and access.

    Parameters
    ----------
    rows : sequence of dict
        Measured rows, of whatever cases.

    Attributes
    ----------
    rates : dict of (level, access) to GB/s
    holds : list of (bytes, level), smallest first
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        limits = [row for row in rows if row["case"] == CASE]
        self.rates = {(row["level"], row["access"]): row["rate"]["median"] for row in limits}
        holds = {row["level"]: row["sizes"]["holds"] for row in limits}
        self.holds = sorted((size, level) for level, size in holds.items() if size)

    def __bool__(self) -> bool:
        return bool(self.rates)

    def level(self, size: int) -> str:
        """The first level that holds as many bytes."""
        return next((level for holds, level in self.holds if size <= holds), "memory")

    def seconds(self, moved: dict[str, int]) -> float:
        """At the limits: gathered rows from where the state fits, the rest in order from where all of it fits."""
        gathered = moved["gathered"] / self.rates[self.level(moved["state"]), "gather"]
        streamed = moved["streamed"] / self.rates[self.level(moved["touched"]), "read"]
        return (gathered + streamed) * 1e-9
