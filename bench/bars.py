"""The bars: what hopfuse is held to, and what the rows say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .cases import CASES
from .ceilings import Ceilings
from .text import seconds, times

Row = dict[str, Any]
COLUMNS = ("bar", "held to", "measured", "at the machine's limit", "")
#: Of the time at the machine's limits that a pass may take: its share of the bandwidth.
PASS_SHARE = 0.6
#: What a ratio is held to of the limit, where that is below the bar.
LIMIT_SHARE = 0.7


@dataclass(frozen=True)
class Bar:
    """At least ``ratio`` times as fast as every one of ``peers``, in a case, for a batch."""

    what: str
    case: str
    peers: tuple[str, ...]
    batch: int
    ratio: float


def _search(case: str, peer: str, *ratios: tuple[int, float]) -> list[Bar]:
    return [Bar(f"dense, {case.removeprefix('dense-')}", case, (peer,), batch, ratio) for batch, ratio in ratios]


RATIOS = (
    Bar("PPR, all scores", "ppr-hotpotqa", ("igraph",), 64, 80),
    Bar("PPR, certified top 100", "ppr-topk-hotpotqa", ("igraph",), 64, 180),
    Bar("PPR, one query", "ppr-hotpotqa", ("igraph",), 1, 15),
    Bar("PPR, all scores", "ppr-hotpotqa", ("scipy",), 64, 15),
    Bar("PPR, damping 0.85", "ppr-hotpotqa-085", ("igraph",), 64, 80),
    *_search("dense-200k", "faiss", (1, 4), (32, 8), (256, 12)),
    *_search("dense-200k", "numpy-matmul", (1, 2.5), (32, 2.5), (256, 2)),
    Bar("dense, 11k of 4096", "dense-11k-4096", ("faiss", "numpy-matmul"), 32, 3),
    Bar("fusion, reciprocal ranks", "fusion-rrf", ("ranx",), 10_000, 60),
    Bar("fusion, min-max sum", "fusion-min-max", ("ranx",), 10_000, 60),
    *(
        Bar("fusion of three lists", case, about.peers, 10_000, 30)
        for case, about in CASES.items()
        if case.startswith("fuse-")
    ),
)
PASS_CASE, PASS_BATCH = "ppr-batches", 64
LATENCY_CASE, LATENCY_BATCH, LATENCY = "phasegraph-hotpotqa", 32, 0.050


def lines(rows: Sequence[Row]) -> list[list[str]]:
    """A line for each bar in the order of COLUMNS, from measured rows on the CPU that are not of the quick mode."""
    kept = [row for row in rows if not row["quick"] and not row.get("device")]
    ceilings = Ceilings(kept)
    timed = {(row["case"], row["peer"], row["sizes"].get("batch")): row for row in kept}
    found = [_ratio(bar, [timed.get((bar.case, peer, bar.batch)) for peer in bar.peers], ceilings) for bar in RATIOS]
    walks = [row for row in kept if (row["case"], row["sizes"].get("batch")) == (PASS_CASE, PASS_BATCH)]
    found.append(_pass(walks[-1] if walks else None, ceilings))
    found.append(_latency(timed.get((LATENCY_CASE, None, LATENCY_BATCH))))
    return found


def _ratio(bar: Bar, rows: list[Row | None], ceilings: Ceilings) -> list[str]:
    peers = " and ".join(bar.peers)
    name = [f"{bar.what} (`{bar.case}`), B = {bar.batch:,}, against {peers}", f"{bar.ratio:g}×"]
    present = [row for row in rows if row is not None]
    if len(present) < len(rows):
        return _absent(name)
    nearest = min(present, key=lambda row: row["ratio"]["of_medians"])
    measured, limit = nearest["ratio"]["of_medians"], None
    if ceilings and nearest.get("moved"):
        limit = nearest["peer_time"]["median"] / ceilings.seconds(nearest["moved"])
    proven = nearest["gate"]["oracle"].get("proven")
    shown = times(measured) if proven is None else f"{times(measured)}, {proven:.0%} of the lists proven"
    met = measured >= bar.ratio and proven in (None, 1.0)
    verdict = _verdict(met)
    if not met and limit is not None and limit < bar.ratio:
        verdict = (
            f"the limit is below the bar: {measured / limit:.0%} of it, {_verdict(measured >= LIMIT_SHARE * limit)}"
        )
        verdict += "" if proven in (None, 1.0) else "; not every list is proven"
    return [*name, shown, "-" if limit is None else times(limit), verdict]


def _pass(row: Row | None, ceilings: Ceilings) -> list[str]:
    name = [f"PPR, bandwidth of a float32 pass (`{PASS_CASE}`), B = {PASS_BATCH}", f"{PASS_SHARE:.0%} of the limit"]
    if row is None or not row.get("pass") or not ceilings:
        return _absent(name)
    moved, taken = row["pass"]["moved"], row["pass"]["seconds"]
    if taken <= 0.0:
        return _absent(name)
    total, least = (moved["gathered"] + moved["streamed"]) * 1e-9, ceilings.seconds(moved)
    level = ceilings.level(moved["state"])
    measured = f"{total / taken:.1f} GB/s, {least / taken:.0%}"
    return [*name, measured, f"{total / least:.1f} GB/s out of {level}", _verdict(least / taken >= PASS_SHARE)]


def _latency(row: Row | None) -> list[str]:
    name = [f"PhaseGraph whole (`{LATENCY_CASE}`), B = {LATENCY_BATCH}, 95th percentile", f"under {seconds(LATENCY)}"]
    if row is None:
        return _absent(name)
    return [*name, seconds(row["hopfuse"]["p95"]), "-", _verdict(row["hopfuse"]["p95"] < LATENCY)]


def _absent(name: list[str]) -> list[str]:
    return [*name, "not measured", "-", "not measured"]


def _verdict(met: bool) -> str:
    return "met" if met else "missed"
