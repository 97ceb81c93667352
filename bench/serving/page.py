"""Tables of the recorded rows for docs/serving.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..markdown import table
from ..text import seconds
from .bars import BARS

Row = dict[str, Any]


def page(rows: Sequence[Row]) -> str:
    """Return the tables of a run."""
    by_name = {row["measure"]: row for row in rows if row["status"] == "ok"}
    parts = [_bars(by_name)]
    if "throughput" in by_name:
        parts.append(_throughput(by_name["throughput"]["figures"]))
    if "batch" in by_name:
        parts.append(_batches(by_name["batch"]["figures"]))
    parts.append(_counts(by_name))
    parts += [f"{row['measure'] or 'serving'}: {row['status']}, {row['reason']}\n" for row in rows if "reason" in row]
    return "\n".join(part for part in parts if part)


def _bars(by_name: dict[str, Row]) -> str:
    lines = []
    for bar in BARS:
        judged = by_name.get(bar.measure, {}).get("bars", [])
        for one in judged:
            if one["says"] == bar.says:
                limit = f"{'at least' if bar.least else 'at most'} {bar.shown(bar.limit)}"
                other = by_name[bar.measure]["load"]["other_cores"]
                met = "met" if one["met"] else "missed"
                lines.append([bar.says, limit, bar.shown(one["value"]), met, "?" if other is None else f"{other:.2f}"])
    return table(("bar", "limit", "measured", "", "other load, cores"), lines, 2) if lines else ""


def _throughput(figures: dict[str, Any]) -> str:
    lines = [
        ["the library, the best of its batches", f"{figures['limit']:.0f}", "100 %", _library_cpu(figures), "-", "-"]
    ]
    names = {
        "json": "hopfuse serve, JSON",
        "arrow": "hopfuse serve, Arrow of 64 queries",
        "fastapi": "FastAPI, one at a time",
        "mosec": "mosec, batches of 32",
    }
    for name, says in names.items():
        if name not in figures:
            continue
        side = figures[name]
        turn = side["turns"][len(side["turns"]) // 2]
        lines.append(
            [
                says,
                f"{side['queries_per_second']:.0f}",
                f"{100 * side['of_library']:.0f} %",
                seconds(turn["server_cpu_per_query"]),
                seconds(turn["p50"]),
                seconds(turn["p99"]),
            ]
        )
    return table(("at saturation", "queries/s", "of the library", "CPU a query", "p50", "p99"), lines)


def _batches(figures: dict[str, Any]) -> str:
    head = ("limits.batch", "64 callers", "CPU a query", "p99", "256 callers", "CPU a query", "8 with 32 queries each")
    head += ("CPU a query", "one beside two with 256 each, p50", "p99")
    lines = [
        [limit, *(f"{value:.0f}/s" if name.endswith("rate") else seconds(value) for name, value in one.items())]
        for limit, one in figures.items()
    ]
    return table(head, lines)


def _counts(by_name: dict[str, Row]) -> str:
    """Return the details of the bars: durations, counts, and the figures of the overload of single questions."""
    lines = []
    if "overload" in by_name:
        lines.append(f"Overload by requests of 32 queries: {_overloaded(by_name['overload']['figures'])}")
    if "overload of one" in by_name:
        lines.append(f"Overload by single queries: {_overloaded(by_name['overload of one']['figures'])}")
    if "sample" in by_name:
        lines.append(f"{by_name['sample']['figures']['answers']} answers were all the recipe's own.")
    if "reload" in by_name:
        found = by_name["reload"]["figures"]
        times = f"changed {found['changes']} times and reloaded {found['reloads']:.0f} times"
        lines.append(f"{found['requests']} requests were sent while the index was {times}.")
    if "very many" in by_name:
        lines.append(f"Very many requests: {by_name['very many']['figures']['requests']}, without search.")
    return "".join(f"- {line}\n" for line in lines)


def _overloaded(found: dict[str, Any]) -> str:
    statuses = ", ".join(f"{count} times {status}" for status, count in found["statuses"].items())
    return (
        f"{found['offered_queries_per_second']:.0f} queries/s offered for {found['seconds']:g} s, "
        f"{found['goodput']:.0f} answered ({100 * found['of_saturation']:.0f} % of saturation); {statuses}. "
        f"The server took {found['server_cores']:.2f} cores, the client {found['client_cores']:.2f}."
    )


def _library_cpu(figures: dict[str, Any]) -> str:
    best = max(figures["library"][0].values(), key=lambda one: one["queries_per_second"])
    return seconds(best["cpu_per_query"])
