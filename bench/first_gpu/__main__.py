"""``python -m bench.first_gpu --out report.json``: run every part on this machine's GPU, and report the outcomes.

Each part runs in its own process with a time limit. If one fails, crashes or hangs, it is reported and the next starts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .parts import PARTS
from .report import Report
from .runner import run


def main(argv: Sequence[str] | None = None) -> int:
    """Run the parts; return exit status 1 if one failed, crashed or ran out of time."""
    options = _parser().parse_args(argv)
    wanted = [part for part in PARTS if part.name in (options.only or [part.name])]
    report = Report(options.out, options.quick)
    for outcome in run(wanted, report, options.quick, options.minutes):
        print(
            f"{outcome['name']:<15} {outcome['status']:<9} {outcome['seconds']:8.1f} s  {outcome['about']}", flush=True
        )
    print(f"wrote {options.out}; output of the parts is in {report.folder}")
    return int(not report.is_clean())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.first_gpu", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="write the report here, as JSON")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[part.name for part in PARTS],
        metavar="PART",
        help=f"parts to run, of {', '.join(part.name for part in PARTS)} (default: all)",
    )
    parser.add_argument("--quick", action="store_true", help="few repetitions and small inputs, to check the script")
    parser.add_argument(
        "--minutes", type=float, metavar="M", help="end after so many, with what matters most first and short limits"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
