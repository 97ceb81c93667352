"""Attack a started server, and print what another client sees of it; exit with status 1 beyond a bound."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ..markdown import table
from .attacks import ATTACKS, load
from .harness import QUICK, Fortress, Lengths, Outcome, Seen, fortress, share


def main(argv: Sequence[str] | None = None) -> int:
    """Run the attacks one after the other against one server, and those on its encoder against one each."""
    load()
    options = _parser().parse_args(argv)
    lengths = QUICK if options.quick else Lengths()
    if options.seconds is not None:
        lengths = replace(lengths, attack=options.seconds)
    timed, outcomes = not options.quick, []
    with contextlib.ExitStack() as stack:
        shared: Fortress | None = None
        for name in options.attack or ATTACKS:
            one = ATTACKS[name]
            if one.triggered is not None:
                with started(lengths, triggered=one.triggered) as own:
                    outcomes.append(own.attacked(one, lengths))
            else:
                shared = shared or stack.enter_context(started(lengths))
                outcomes.append(shared.attacked(one, lengths))
            print(f"{name}: {'; '.join(outcomes[-1].faults(timed)) or 'ok'}", file=sys.stderr, flush=True)
            if options.out is not None:
                options.out.write_text("".join(json.dumps(one.row(timed)) + "\n" for one in outcomes))
    print(page(outcomes, timed), end="")
    return int(any(one.faults(timed) for one in outcomes))


@contextlib.contextmanager
def started(lengths: Lengths, *, triggered: float | None = None) -> Iterator[Fortress]:
    """Start a server that is attacked."""
    with tempfile.TemporaryDirectory() as folder, fortress(Path(folder), lengths, triggered=triggered) as one:
        yield one


def page(outcomes: Sequence[Outcome], timed: bool) -> str:
    """Return the table of outcomes; times are judged only if ``timed``."""
    head = (
        "attack",
        "health before, ms",
        "health under attack, ms",
        "searches answered",
        "their p95, times",
        "memory, MiB",
        "bound",
        "",
    )
    lines = []
    for one in outcomes:
        of = one.attack
        bounds = [f"p99 {1000 * of.health_seconds:g} ms"] if timed else []
        bounds += [f"searches p95 {of.search_ratio:g} times"] if timed else []
        bounds += [f"answers {of.slowest_seconds:g} s"] if timed and of.slowest_seconds < math.inf else []
        bounds += [f"searches {100 * of.searched:g} %", f"+{of.memory_mib:g} MiB"]
        lines.append(
            [
                of.name,
                _latency(one.before),
                _latency(one.under),
                f"{100 * share(one.under.searches):.1f} % of {sum(one.under.searches.values())}",
                f"{one.ratio:.1f}",
                f"{one.growth:+.1f}",
                ", ".join(bounds),
                "; ".join(one.faults(timed)) or "ok",
            ]
        )
    return table(head, lines)


def _latency(seen: Seen) -> str:
    """Return median, 99th percentile and maximum."""
    return " / ".join(f"{1000 * seen.percentile(percent):.1f}" for percent in (50, 99, 100))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.hostile", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tiny index and short attacks; times are not judged")
    parser.add_argument("--attack", nargs="+", choices=tuple(ATTACKS), metavar="NAME", help=", ".join(ATTACKS))
    parser.add_argument("--seconds", type=float, help="of an attack  [default: 8]")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write rows as JSON lines")
    return parser


if __name__ == "__main__":
    sys.exit(main())
