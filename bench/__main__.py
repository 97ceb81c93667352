"""``python -m bench``: run benchmarks, or write the report or the plots of recorded rows."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .cases import BESIDE_BEST_ISA
from .machine import ROOT
from .report import PAGE, files
from .runner import DEFAULT, NAMES, Launch, launch, run
from .settings import BACKENDS, Settings
from .table import show

#: The folder that ``--report`` writes to by default.
DOCS = ROOT / "docs"


def main(argv: Sequence[str] | None = None, start: Launch = launch) -> int:
    """Run the command; return exit status 1 if an answer is wrong."""
    options = _parser().parse_args(argv)
    if options.report:
        return _report(options.report, options.out or DOCS)
    if options.plots:
        return _plot(*options.plots)
    settings = Settings(options.quick, options.repeats, options.threads, options.backend, options.isa)
    rows: list[dict[str, Any]] = []
    if options.out:
        options.out.write_text("")
    names = options.case or (BESIDE_BEST_ISA if options.isa else DEFAULT)
    for row in run(names, settings, options.retries, options.wait, start, alone=options.alone):
        rows.append(row)
        print(f"{row['case']} / {row['peer'] or 'alone'}: {row['status']} {row.get('reason', '')}", file=sys.stderr)
        if options.out:
            with options.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
    show(rows)
    return int(any(row["status"] == "error" for row in rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--case",
        nargs="+",
        choices=NAMES,
        metavar="NAME",
        help=f"cases to run, of {', '.join(NAMES)} (default: all except "
        f"{', '.join(n for n in NAMES if n not in DEFAULT)})",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write rows as JSON lines (with --report: the folder to write to)"
    )
    parser.add_argument("--repeats", type=_positive, default=15, help="interleaved repetitions (default 15)")
    parser.add_argument("--threads", type=_positive, default=2, help="threads of hopfuse and of each peer (default 2)")
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        default="cpu",
        help="backend of hopfuse (default cpu); with another, GPU peers are measured too",
    )
    parser.add_argument(
        "--isa",
        default="",
        help="instruction set of hopfuse, such as avx2 (default: the best); without --case, the main cases are "
        "measured, beside hopfuse on the best one as well",
    )
    parser.add_argument("--retries", type=int, default=0, help="repeat a disturbed pair at most this many times")
    parser.add_argument("--wait", type=float, default=0.0, help="seconds to wait for a quiet machine before each pair")
    parser.add_argument("--alone", action="store_true", help="measure hopfuse without its peers")
    parser.add_argument("--quick", action="store_true", help="tiny synthetic inputs: checks that the benchmarks work")
    parser.add_argument(
        "--report",
        type=Path,
        nargs="+",
        metavar="FILE",
        help=f"write docs/{PAGE}, its charts and CSV files from recorded rows",
    )
    parser.add_argument(
        "--plots",
        type=Path,
        nargs="+",
        action=_DirectoryAndFiles,
        metavar=("DIR", "FILE"),
        help="plot recorded rows to DIR: latency by batch, throughput by size, the roofline (needs matplotlib)",
    )
    return parser


class _DirectoryAndFiles(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        if len(values) < 2:
            parser.error(f"{option} needs a directory and at least one file of rows")
        setattr(namespace, self.dest, values)


def _recorded(files: Sequence[Path]) -> list[dict[str, Any]]:
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def _report(recorded: Sequence[Path], folder: Path) -> int:
    for name, text in files(_recorded(recorded), *(file.name for file in recorded)).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
        print(folder / name)
    return 0


def _plot(folder: Path, *files: Path) -> int:
    try:
        from .plots import draw
    except ImportError as absent:
        print(f"--plots needs matplotlib, which the extra eval installs: {absent}", file=sys.stderr)
        return 2
    for file in draw(_recorded(files), folder):
        print(file)
    return 0


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
