"""``python -m bench.roofline``: write docs/gpu.md and docs/gpu-formulas.md, the second from the counts of kernels.

``--card`` prints the computed times of another card, ``--bars`` what was measured and computed beside the times that
releases are held to, ``--calibration`` what the formulas give beside what was measured, and ``--freeze`` writes that
comparison as it is now to bench/results, beside a new measurement only.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from . import first_card, measured_gpu
from .gpu_cards import CALIBRATED, CARDS, Card
from .gpu_kernels import MILLION, MOST_CODES, MUSIQUE, SMALL, Search, Size, works
from .gpu_model import HOST_CALLS, HOST_SECONDS, limits, parts, seconds
from .markdown import table

DOCS = Path(__file__).resolve().parents[1] / "docs"
FROZEN = Path(__file__).resolve().parent / "results" / "h200-formulas.json"
#: Searches of the tables by part.
TABLES = ((MUSIQUE, 1), (MUSIQUE, 32), (MILLION, 32))
SIZES = {"small": SMALL, "musique": MUSIQUE, "million": MILLION}
PARTS = (
    "early passes", "passes", "residual", "start, mass, scale", "rank, finish", "product, select", "other",
    "host and gaps",
)  # fmt: skip
#: Parts of at least so many microseconds are compared; they should agree within this factor.
COMPARED, AGREEMENT = 50, 1.3
MEASURED_CARD = "H200"
#: More distinct weights than have codes.
MANY_WEIGHTS = MOST_CODES + 1
#: What the formula gave for the present kernels before they were measured, in milliseconds, with the constants of the
#: earlier version's measurement (docs/gpu-formulas.md at commit 226a37f6).
FORECAST = {
    ("small", 1): 0.31, ("small", 32): 0.34, ("musique", 1): 0.62, ("musique", 32): 1.22,
    ("million", 1): 3.01, ("million", 32): 8.31,
}  # fmt: skip
#: A size, questions, a card, and the milliseconds that its search may take.
BARS = (
    (MILLION, 32, "H200", 7.0),
    (MUSIQUE, 32, "H200", 0.8),
    (MUSIQUE, 1, "H200", 0.35),
    (MILLION, 32, "RTX 4090", 15.0),
    (MUSIQUE, 32, "RTX 4090", 1.1),
    (MILLION, 32, "RTX 4070", 36.0),
    (MUSIQUE, 32, "RTX 4070", 2.5),
)


def card_named(name: str) -> Card:
    return next(card for card in CARDS if card.name == name)


def milliseconds(value: float) -> str:
    value *= 1e3
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


# ---- Calibration -----------------------------------------------------------------------------------------------------


class Compared(NamedTuple):
    """A part of a measured search, in microseconds."""

    size: str
    batch: int
    part: str
    measured: float
    computed: float

    @property
    def ratio(self) -> float:
        return self.computed / self.measured

    @property
    def is_close(self) -> bool:
        return 1 / AGREEMENT <= self.ratio <= AGREEMENT


def compared() -> list[Compared]:
    """Return each part of each measured search beside what the formulas give."""
    found = []
    for size, batch, taken in measured_gpu.searches_by_part():
        computed = parts(Search(SIZES[size], batch, card_named(MEASURED_CARD)))
        found += [Compared(size, batch, part, taken[part], 1e6 * computed.get(part, 0.0)) for part in PARTS]
    return found


def without_codes(size: Size) -> Size:
    """Return a size whose graph has more distinct weights than have codes."""
    return replace(size, weights=MANY_WEIGHTS)


def bars(change: Callable[[Size], Size] = lambda size: size) -> list[float]:
    """Return the computed milliseconds of each search that has a bar, with a change of its size."""
    return [1e3 * sum(parts(Search(change(size), batch, card_named(name))).values()) for size, batch, name, _ in BARS]


def frozen() -> dict[str, Any]:
    """Return the comparison with the kernels that were measured."""
    report: dict[str, Any] = json.loads(FROZEN.read_text(encoding="utf-8"))
    return report


def freeze() -> None:
    about = "bench.roofline --freeze: microseconds of parts, with the kernels that were measured"
    report = {"about": about, "parts": [row._asdict() for row in compared()]}
    FROZEN.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def calibration_table(rows: Iterable[Compared]) -> str:
    lines = dict[str, dict[tuple[str, int], Compared]]()
    columns = dict[tuple[str, int], None]()
    for row in rows:
        lines.setdefault(row.part, {})[row.size, row.batch] = row
        columns[row.size, row.batch] = None

    def cell(row: Compared) -> str:
        mark = " **" if row.measured >= COMPARED and not row.is_close else " "
        return f"{row.measured:,.0f} / {row.computed:,.0f}{mark}".rstrip()

    head = ["part", *(f"{size}, B = {batch}" for size, batch in columns)]
    body = [[part, *(cell(of[column]) for column in columns)] for part, of in lines.items()]
    totals = ["*all*"]
    for column in columns:
        measured, computed = (
            sum(getattr(of[column], name) for of in lines.values()) for name in ("measured", "computed")
        )
        totals.append(f"{measured:,.0f} / {computed:,.0f}")
    return table(head, [*body, totals])


def bar_table() -> str:
    """Return what was measured, where a card has run, and what is computed, beside the bars."""
    measured, rows = measured_gpu.milliseconds(), []
    names = {size: name for name, size in SIZES.items()}
    for (size, batch, name, bar), *times in zip(BARS, bars(), bars(without_codes), strict=True):
        ran = f"{measured[names[size], batch]:.2f}" if card_named(name).measured else ""
        computed = [f"{ms:.2f}" for ms in times]
        rows.append([f"{card_named(name).label}, {size.name}, B = {batch}", ran, *computed, f"{bar:g}"])
    return table(["search", "measured, ms", "computed, ms", "without codes, ms", "bar, ms"], rows)


# ---- Tables ----------------------------------------------------------------------------------------------------------


def _numbers(card: Card) -> str:
    """Return what NVIDIA publishes of a card, in words."""
    return (
        f"{card.bandwidth:,g} GB/s, {card.l2:g} MiB of L2, {card.multiprocessors} multiprocessors at {card.clock:g} "
        f"GHz,\nand {card.flops:g} TFLOP/s, 1/{1 / card.double:.0f} of that for float64. Dense 16-bit products with "
        f"float32 sums reach {card.tensor:g} TFLOP/s with\n`wgmma`, but not with `mma.sync`, which is used here"
    )


def part_table(card: Card) -> str:
    """Return the milliseconds of the present kernels on a card by part, for each search."""
    rows = []
    for size, batch in TABLES:
        of = parts(Search(size, batch, card))
        cells = [milliseconds(of.get(part, 0.0)) for part in PARTS]
        rows.append([f"{size.name}, B = {batch}", *cells, milliseconds(sum(of.values()))])
    return table(["search", *PARTS, "sum"], rows)


def search_table(rows: Sequence[Compared]) -> str:
    """Return the milliseconds of searches on the measured card: measured, computed before and now, without codes."""
    card, lines = card_named(MEASURED_CARD), []
    for name, size in SIZES.items():
        for batch in (1, 32):
            measured = 1e-3 * sum(row.measured for row in rows if (row.size, row.batch) == (name, batch))
            now, plain = (sum(parts(Search(kind, batch, card)).values()) for kind in (size, without_codes(size)))
            cells = (measured, FORECAST[name, batch], 1e3 * now, 1e3 * plain)
            lines.append([f"{name}, B = {batch}", *(f"{ms:.2f}" for ms in cells)])
    return table(["search", "measured", "forecast", "computed", "without codes"], lines)


def kernel_counts(size: Size, batch: int) -> str:
    """Return the counts of each kernel of a search on the card that was measured, as CSV."""
    card, text = card_named(MEASURED_CARD), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([
        "kernel", "times", "blocks", "registers", "units", "dependent_loads_from_memory", "dependent_loads_from_l2",
        "steps", "bytes_each_time", "limit", "computed_us",
    ])  # fmt: skip
    for work, count in works(Search(size, batch, card)):
        by = limits(work, card)
        writer.writerow([
            work.kernel, f"{work.times * count:g}", f"{work.blocks:.0f}", work.registers, f"{work.units:.3g}",
            f"{work.far:.3g}", f"{work.near:.3g}", f"{work.steps:.0f}", f"{work.memory or work.cache:.0f}",
            max(by, key=lambda name: by[name]), f"{1e6 * count * seconds(work, card):.0f}",
        ])  # fmt: skip
    return text.getvalue()


def constant_table() -> str:
    of = CALIBRATED
    rows = [
        ["of the bandwidth of memory and L2, reached", f"{of.bandwidth_share:.0%}"],
        ["of the schedulers' cycles, used", f"{of.issue_share:.0%}"],
        ["a load from memory, under load", f"{1e9 * of.memory_latency:.0f} ns"],
        ["a load from L2, under load", f"{1e9 * of.cache_latency:.0f} ns"],
        ["an instruction of a warp, with what it waits for", f"{of.step:g} cycles"],
        ["a kernel that does nothing", f"{1e6 * of.launch:g} µs"],
        ["a grid barrier", f"{1e6 * of.barrier:g} µs"],
        ["between two nodes of a recording", f"{1e6 * of.gap:g} µs"],
        ["a call of the driver around a recording", f"{1e6 * of.call:g} µs"],
        ["copies from the host", f"{of.host_copies / 1e9:g} GB/s"],
    ]
    return table(["constant", "value"], rows)


FORMULAS = """# On GPUs: computed

This page is written by `python -m bench.roofline`; do not edit it by hand. It computes the time of a recorded search
from counts of what the kernels do, as a guide to what limits them. [gpu.md](gpu.md) has what was measured.

**A computed time is no measurement, and only an H200 has checked the formula.** Its constants were fitted to six
searches on that card, and some counts were mended by a profile of one of them, so its agreement with those six shows
little. Its forecast of the same searches shows more: by constants that were fitted to an earlier version, it was
{least:.2f} to {most:.2f} times what was measured. `python -m bench.roofline --card "RTX 4090"` prints another card's
times, which nobody has checked.

## Formula

A kernel takes {launch:g} µs and the longest of the following:

- its bytes by {share:.0%} of the bandwidth of memory, and its sectors by {share:.0%} of that of L2. An H200 gathered
  {cycle:g} bytes in a cycle of a multiprocessor from L2; for cards that nobody measured, 16 are assumed. A row of less
  than 64 bytes takes as long as one of 64;
- its float64 and tensor operations by their rates;
- its warps' instructions by {issue:.0%} of the schedulers' rate;
- its latency, by Little's law: waves × units of a warp × the time of a unit. Waves are blocks over the blocks that run
  at once, by registers and shared memory, rounded up. A unit takes its dependent loads from memory and L2, by the
  latency of each, and its steps, which are instructions.

bench/gpu_kernels.py has the counts, a row for each kernel, from its source, its SASS and a profile, for random graphs.
Their weights are sums of parallel edges, so there are few, and entries are words of 4 bytes ([kernels.md](kernels.md)).
A unit of a pass is a row of the graph; with L < 32 lanes, 32 / L rows that a warp walks together, as long as the
longest. The constants are in bench/gpu_cards.py; only a measurement changes them.

{constants}
The barrier and the copies from the host are measured, and so is the bandwidth of L2. The share of bandwidth is a little
less than a copy reached. The other constants are near a fit of all parts of six searches on an H200
([gpu.md](gpu.md)) together, by least squares of the logarithms: no constant belongs to one part. Microseconds, measured
/ computed; \\*\\* marks parts of {compared} µs or more that differ by more than a factor of {agreement:g}:

{calibration}
{close} of {all} parts of {compared} µs or more agree. *Host and gaps* is what is left of a search beside its kernels,
copies among it, and varies between searches for reasons that the formula does not have. It counts {gap:g} µs for
each node of the recording, and for the host {host:.0f} µs of code and {calls} calls of the driver.

## Searches on an H200, ms

A recorded search is a dense list, a walk with its certificate and best passages, and their fusion. *Forecast*: computed
before these kernels were measured. *Without codes*: computed for graphs with more distinct weights than have codes, at
8 bytes an entry.

{searches}
{sizes}

[results/gpu-kernels.csv](results/gpu-kernels.csv) has the counts of each kernel for *million*, B = 32. The card's own
numbers, from NVIDIA, are {card}.
"""
#: What the counts of kernels are, by column.
KERNELS = "results/gpu-kernels.csv"


def formula_page() -> str:
    """Return docs/gpu-formulas.md."""
    rows = [Compared(**row) for row in frozen()["parts"]]
    large = [row for row in rows if row.measured >= COMPARED]
    measured = measured_gpu.milliseconds()
    forecast = [ms / measured[search] for search, ms in FORECAST.items()]
    return FORMULAS.format(
        launch=1e6 * CALIBRATED.launch, share=CALIBRATED.bandwidth_share, issue=CALIBRATED.issue_share,
        constants=constant_table(), compared=COMPARED, agreement=AGREEMENT, calibration=calibration_table(rows),
        close=sum(row.is_close for row in large), all=len(large), calls=HOST_CALLS, host=1e6 * HOST_SECONDS,
        gap=1e6 * CALIBRATED.gap, searches=search_table(rows), cycle=card_named(MEASURED_CARD).l2_cycle,
        least=min(forecast), most=max(forecast), card=_numbers(card_named(MEASURED_CARD)),
        sizes="\n".join(f"- {_size(size)}." for size in SIZES.values()),
    )  # fmt: skip


def _size(size: Size) -> str:
    kind = "float32" if size.item == 4 else "float16"
    return (
        f"{size.name}: {size.nodes:,} nodes, {size.stored:,} stored entries; {size.vectors:,} vectors of {size.dim:,} "
        f"dimensions in {kind}"
    )


def measured_page() -> str:
    """Return docs/gpu.md."""
    return f"{measured_gpu.section().rstrip()}\n\n{first_card.section().strip()}\n"


def card_page(card: Card) -> str:
    """Return the computed times of a card, with what they are worth."""
    checked = "fitted to this card" if card.measured else "fitted to an H200; nobody has measured this card"
    return f"{card.name}: computed, in ms. The formula was {checked}.\n\n{part_table(card)}"


PAGES = {
    "gpu.md": measured_page,
    "gpu-formulas.md": formula_page,
    KERNELS: lambda: kernel_counts(MILLION, 32),
}


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.roofline", description=__doc__.split("\n")[0])
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--bars", action="store_true", help="print the times that releases are held to")
    choice.add_argument("--calibration", action="store_true", help="print measured beside computed, as counts are now")
    choice.add_argument("--freeze", action="store_true", help="write both to bench/results, beside a new measurement")
    cards = [card.name for card in CARDS]
    choice.add_argument("--card", choices=cards, metavar="NAME", help=f"print computed times of {', '.join(cards)}")
    given = parser.parse_args(words)
    if given.card:
        print(card_page(card_named(given.card)))
    elif given.bars:
        print(bar_table())
    elif given.calibration:
        print(calibration_table(compared()))
    elif given.freeze:
        freeze()
    else:
        for name, render in PAGES.items():
            (DOCS / name).write_text(render(), encoding="utf-8")
            print(f"wrote {name}")


if __name__ == "__main__":
    main()
