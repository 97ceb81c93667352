"""Rows as text, for the table and the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import limits, variants
from .probes import PROBES

COLUMNS = ("case", "on", "peer", "B", "hopfuse", "quartiles", "peer's time", "quartiles", "ratio", "of pairs", "load")


ACCESS = {
    limits.READ: "in order",
    limits.GATHER: "rows of 128 bytes at random",
    limits.GATHER_ONE: "4 bytes at random",
    limits.MULTIPLY: "products of 8-bit numbers",
}
CEILING_COLUMNS = ("level", "access", "array", "GB/s", "quartiles", "load")
VARIANT_COLUMNS = ("lanes", "a pass with", "a pass", "quartiles", "of the first", "load")


def cells(row: dict[str, Any]) -> list[str]:
    """Return the cells of a measured row, in the order of COLUMNS."""
    ours, theirs, ratio = row["hopfuse"], row["peer_time"], row["ratio"]
    return [
        row["case"],
        f"{place(row)}, {row['isa']}" if row.get("isa") else place(row),
        row["peer"] or "-",
        str(row["sizes"]["batch"]),
        seconds(ours["median"]),
        f"{seconds(ours['q1'])} – {seconds(ours['q3'])}",
        seconds(theirs["median"]) if theirs else f"p95 {seconds(ours['p95'])}",
        f"{seconds(theirs['q1'])} – {seconds(theirs['q3'])}" if theirs else "-",
        times(ratio["of_medians"]) if ratio else "-",
        times(ratio["of_pairs"]) if ratio else "-",
        "?" if row["load"]["other_cores"] is None else f"{row['load']['other_cores']:.2f}",
    ]


def ceiling_cells(row: dict[str, Any]) -> list[str]:
    """Return the cells of a measured limit of the machine, in the order of CEILING_COLUMNS."""
    rate = row["rate"]
    return [
        row["level"],
        ACCESS[row["access"]],
        f"{row['sizes']['array'] / 2**20:.3g} MiB" if row["sizes"]["array"] else "-",
        _three(rate["median"]) + ("" if row["sizes"]["array"] else " · 10⁹/s"),
        f"{_three(rate['q1'])} – {_three(rate['q3'])}",
        "?" if row["load"]["other_cores"] is None else f"{row['load']['other_cores']:.2f}",
    ]


def variant_cells(row: dict[str, Any]) -> list[str]:
    """Return the cells of a variant of a pass, in the order of VARIANT_COLUMNS."""
    taken = row["pass"]
    return [
        str(row["sizes"]["lanes"]),
        row["variant"] + (" (kept)" if row["kept"] else ""),
        seconds(taken["median"]),
        f"{seconds(taken['q1'])} – {seconds(taken['q3'])}",
        times(row["of_kept"]),
        "?" if row["load"]["other_cores"] is None else f"{row['load']['other_cores']:.2f}",
    ]


#: Sections of a table of rows: columns, the cells of a row, and whether a row belongs to the section.
SECTIONS: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any]], list[str]], Callable[[dict[str, Any]], bool]]] = {
    "limits": (CEILING_COLUMNS, ceiling_cells, lambda row: row["case"] == limits.CASE),
    "variants": (VARIANT_COLUMNS, variant_cells, lambda row: row["case"] == variants.CASE),
    "hopfuse bench": (COLUMNS, cells, lambda row: row["case"] not in PROBES),
}


def place(row: dict[str, Any]) -> str:
    """Return the name of the device that hopfuse ran on, or CPU."""
    return row["device"]["device"] if row.get("device") else "CPU"


def seconds(value: float) -> str:
    """Return a duration with three digits.

    Examples
    --------
    >>> seconds(0.012345), seconds(2.0), seconds(4.2e-5)
    ('12.3 ms', '2.00 s', '42.0 µs')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{_three(value / scale)} {unit}"
    return f"{_three(value / 1e-6)} µs"


def times(value: float) -> str:
    """Return a ratio with three digits.

    Examples
    --------
    >>> times(3.14159), times(412.7)
    ('3.14×', '413×')
    """
    return f"{_three(value)}×"


def _three(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
