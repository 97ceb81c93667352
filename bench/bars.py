"""The bars that hopfuse must reach, and whether measured rows reach them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .cases import CASES
from .ceilings import Ceilings
from .machine import KINDS, is_best_cpu, kind
from .text import seconds, times

Row = dict[str, Any]
COLUMNS = ("bar", *(f"{what} {kind}" for kind in KINDS for what in ("held to,", "measured,")))
#: Share of the machine's bandwidth that a pass must reach.
PASS_SHARE = 0.6
#: Share of the limit that a ratio must reach if the limit is below the bar.
LIMIT_SHARE = 0.7
MISSED = "missed"


@dataclass(frozen=True)
class Bar:
    """A minimum ratio of each peer's time to hopfuse's, for a case and a batch size.

    Attributes
    ----------
    ratio : tuple of float
        One for each kind of machine in ``KINDS``.
    statistic : {"median", "p95"}
        Statistic of the times that are compared.
    """

    what: str
    case: str
    peers: tuple[str, ...]
    batch: int
    ratio: tuple[float, ...]
    statistic: str = "median"

    @property
    def name(self) -> str:
        of = "" if self.statistic == "median" else ", 95th percentile"
        return f"{self.what} (`{self.case}`), B = {self.batch:,}{of}, against {' and '.join(self.peers)}"


@dataclass(frozen=True)
class Latency:
    """A maximum of hopfuse's own time in a case, in seconds."""

    what: str
    case: str
    batch: int
    seconds: float
    statistic: str = "median"

    @property
    def name(self) -> str:
        of = "" if self.statistic == "median" else ", 95th percentile"
        return f"{self.what} (`{self.case}`), B = {self.batch:,}{of}"


def _each(what: str, case: str, peers: tuple[str, ...], held: Mapping[int, tuple[float, ...]]) -> list[Bar]:
    """Return a bar for each batch size."""
    return [Bar(what, case, peers, batch, ratio) for batch, ratio in held.items()]


def _same(ratio: float) -> tuple[float, ...]:
    """Return one ratio for all kinds of machine."""
    return (ratio,) * len(KINDS)


NUMPY, EARLIER = ("numpy-matmul",), ("earlier-commit",)
#: Bars of raw arrays against NumPy, which reads every row once too, with a margin of 5 %.
RAW = {1: (0.95, 1.0), 8: (0.95, 1.0), 32: (1.2, 1.0), 64: (1.2, 1.0), 256: (0.95, 1.0)}
#: Two threads on busy cores may take 1.3 times the time of one thread.
BUSY = 1 / 1.3

RATIOS = (
    *_each("PPR, all scores", "ppr-hotpotqa", ("igraph",), {1: _same(15), 64: _same(80)}),
    Bar("PPR, all scores", "ppr-hotpotqa", ("scipy",), 64, _same(15)),
    Bar("PPR, damping 0.85", "ppr-hotpotqa-085", ("igraph",), 64, _same(80)),
    *_each("PPR, all scores", "ppr-hotpotqa", EARLIER, {1: (1.5, 1.25), 64: (1.1, 1.05)}),
    Bar("PPR, 10⁷ entries", "ppr-1e7", EARLIER, 1, (2.5, 2)),
    Bar("PPR, 10⁸ entries", "ppr-1e8", EARLIER, 1, (2, 1.5)),
    Bar("PPR, 200 nodes", "ppr-200", ("igraph",), 1, _same(1)),
    *_each("PPR, node weights", "ppr-weighted-hotpotqa", ("plain-walk",), {1: _same(1 / 1.3), 32: _same(1 / 1.5)}),
    Bar("PPR, proven top 10", "ppr-topk-10", ("ppr-out",), 64, _same(1 / 1.05)),
    Bar("PPR, proven set of 100", "ppr-topk-100-set", ("ppr-out",), 64, _same(1 / 1.1)),
    Bar("PPR, proven top 100", "ppr-topk-100", ("ppr-out",), 64, _same(1 / 1.6)),
    *_each("dense, 200k", "dense-200k", ("faiss",), {1: _same(4), 32: _same(8), 256: _same(12)}),
    *_each("dense, 200k", "dense-200k", NUMPY, {1: (3, 5), 8: (5, 7), 32: (3.5, 15), 256: (3, 20)}),
    *_each("dense, 11k of 4096", "dense-11k-4096", ("faiss", *NUMPY), {1: (2, 3), 32: (2, 3), 256: (1.3, 2.5)}),
    *_each("dense, raw array", "dense-raw-200k", NUMPY, RAW),
    *_each("dense, raw array of 4096", "dense-raw-11k-4096", NUMPY, RAW),
    Bar("dense, first search of a corpus", "dense-first-200k", NUMPY, 1, _same(1 / 3)),
    Bar("fusion, reciprocal ranks", "fusion-rrf", ("ranx",), 10_000, _same(80)),
    Bar("fusion, reciprocal ranks, all of 1,000", "fusion-rrf-1000", EARLIER, 1_000, _same(1.8)),
    Bar("fusion, min-max sum", "fusion-min-max", ("ranx",), 10_000, _same(60)),
    *(
        Bar("fusion of three lists", case, about.peers, 10_000, _same(30))
        for case, about in CASES.items()
        if case.startswith("fuse-")
    ),
    Bar("eight Python threads over one", "python-threads", ("one-thread",), 8, _same(1.7)),
    Bar("two threads over one, others at work", "busy-dense-tiny", ("one-thread",), 1, _same(BUSY)),
    Bar("two threads over one, others at work", "busy-dense", ("one-thread",), 32, _same(BUSY)),
    Bar("two threads over one, others at work", "busy-ppr", ("one-thread",), 64, _same(BUSY)),
    Bar("two threads over one, others at work", "busy-fusion", ("one-thread",), 1_000, _same(BUSY)),
    Bar("two threads over one, others at work", "busy-phasegraph", ("one-thread",), 32, _same(BUSY)),
    Bar("PhaseGraph, one thread", "phasegraph-one-thread", EARLIER, 32, (1 / 0.75, 1 / 0.7)),
    *_each("GuidedWalk", "guided-walk", ("phase-graph",), {1: _same(1 / 2.5), 32: _same(1 / 2.7)}),
    Bar("GuidedWalk, first answer dense", "guided-walk-dense", ("phase-graph",), 32, _same(1 / 1.7)),
    Bar("PhaseGraph, others at work", "busy-phasegraph", EARLIER, 32, _same(2), "p95"),
)
LATENCIES = (
    Latency("PhaseGraph whole", "phasegraph-hotpotqa", 32, 0.050, "p95"),
    Latency("GuidedWalk, first answer dense", "guided-walk-dense", 32, 0.050, "p95"),
    Latency("PhaseGraph, 200 nodes, one thread", "phasegraph-200", 1, 350e-6),
    Latency("dense, 4 rows, one thread", "tiny-dense", 1, 40e-6),
    Latency("fusion, 3 documents, one thread", "tiny-fusion", 1, 40e-6),
    Latency("PPR, 12 nodes, one thread", "tiny-ppr", 1, 90e-6),
)
PASS_CASE, PASS_BATCH = "ppr-batches", 64


class Miss(NamedTuple):
    """A bar that is missed on some machine, in words, with its case and batch."""

    what: str
    held: str
    measured: str
    case: str
    batch: int


def missed(rows: Sequence[Row]) -> list[Miss]:
    """Return the bars that measured rows miss."""
    where = {bar.name: (bar.case, bar.batch) for bar in (*RATIOS, *LATENCIES)}
    found = []
    for name, *cells in lines(rows):
        for held, cell in zip(cells[::2], cells[1::2], strict=True):
            measured, _, verdict = cell.rpartition(": ")
            if verdict == MISSED:
                found.append(Miss(name, held, measured, *where.get(name, (PASS_CASE, PASS_BATCH))))
    return found


def lines(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line for each bar in the order of COLUMNS, from measured CPU rows that are not of the quick mode.

    Rows with an ISA do not count, since other libraries use the best one. If there are two machines of a kind, the
    later row counts.
    """
    kept = [row for row in rows if not row["quick"] and is_best_cpu(row)]
    machines = [
        _Machine([row for row in kept if kind(row["machine"]["flags"]) == name], at) for at, name in enumerate(KINDS)
    ]
    bars = [(bar.name, [machine.ratio(bar) for machine in machines]) for bar in RATIOS]
    walk = f"PPR, bandwidth of a float32 pass (`{PASS_CASE}`), B = {PASS_BATCH}"
    bars.append((walk, [machine.bandwidth() for machine in machines]))
    bars += [(bar.name, [machine.latency(bar) for machine in machines]) for bar in LATENCIES]
    return [[name, *(cell for cells in found for cell in cells)] for name, found in bars]


class _Machine:
    """The rows of one kind of machine, with the limit and the measured value of each bar there."""

    def __init__(self, rows: Sequence[Row], at: int) -> None:
        self.at = at
        self.rows = rows
        self.timed = {(row["case"], row["peer"], row["sizes"].get("batch")): row for row in rows}
        walks = [row for row in rows if (row["case"], row["sizes"].get("batch")) == (PASS_CASE, PASS_BATCH)]
        self.walk = walks[-1] if walks else None

    def ceilings(self, row: Row) -> Ceilings:
        """Return the limits of the machine of a row."""
        return Ceilings([other for other in self.rows if other["machine"] == row["machine"]])

    def ratio(self, bar: Bar) -> list[str]:
        held = bar.ratio[self.at]
        rows = [self.timed.get((bar.case, peer, bar.batch)) for peer in bar.peers]
        present = [row for row in rows if row is not None]
        if len(present) < len(rows):
            return _absent(times(held))
        nearest = min(present, key=lambda row: _ratio(row, bar.statistic))
        measured, limit = _ratio(nearest, bar.statistic), None
        ceilings = self.ceilings(nearest)
        if ceilings and nearest.get("moved"):
            limit = nearest["peer_time"][bar.statistic] / ceilings.seconds(nearest["moved"])
        proven = nearest["gate"]["oracle"].get("proven")
        shown = times(measured) if proven is None else f"{times(measured)}, {proven:.0%} of the lists proven"
        if limit is None:
            return [times(held), f"{shown}: {_verdict(measured >= held and proven in (None, 1.0))}"]
        # If the machine's own limit is below the bar, a share of the limit is required instead.
        required, share = (held, "") if limit >= held else (LIMIT_SHARE * limit, f", {measured / limit:.0%} of it")
        met = measured >= min(held, required) and proven in (None, 1.0)
        return [times(held), f"{shown} (limit {times(limit)}{share}): {_verdict(met)}"]

    def bandwidth(self) -> list[str]:
        held, row = f"{PASS_SHARE:.0%} of the limit", self.walk
        if row is None or not row.get("pass") or not (ceilings := self.ceilings(row)):
            return _absent(held)
        moved, taken = row["pass"]["moved"], row["pass"]["seconds"]
        if taken <= 0.0:
            return _absent(held)
        total, limit = (moved["gathered"] + moved["streamed"]) * 1e-9, ceilings.seconds(moved)
        level = ceilings.level(moved["state"])
        measured = f"{total / taken:.1f} GB/s of {total / limit:.1f} out of {level}, {limit / taken:.0%}"
        return [held, f"{measured}: {_verdict(limit / taken >= PASS_SHARE)}"]

    def latency(self, bar: Latency) -> list[str]:
        held = f"at most {seconds(bar.seconds)}"
        rows = (row for (case, _, batch), row in self.timed.items() if (case, batch) == (bar.case, bar.batch))
        row = next(rows, None)
        if row is None:
            return _absent(held)
        taken = row["hopfuse"][bar.statistic]
        return [held, f"{seconds(taken)}: {_verdict(taken <= bar.seconds)}"]


def _ratio(row: Row, statistic: str) -> float:
    if statistic == "median":
        return float(row["ratio"]["of_medians"])
    return float(row["peer_time"][statistic] / row["hopfuse"][statistic])


def _absent(held: str) -> list[str]:
    return [held, "not measured"]


def _verdict(met: bool) -> str:
    return "met" if met else MISSED
