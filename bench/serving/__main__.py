"""Run the measurements, print their figures and whether they meet the bars, and write rows."""

from __future__ import annotations

import argparse
import json
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from .. import machine
from ..errors import GateError, UnavailableError
from . import answers, batching, overload, reloading, steady, wrk
from .bars import judged
from .inputs import prepare
from .page import page
from .setting import QUICK, Lengths, Setting

MEASURES: dict[str, Callable[[Setting], dict[str, Any]]] = {
    "throughput": steady.throughput,
    "one caller": steady.one_caller,
    "open loop": steady.open_half,
    "batch": batching.batch_limits,
    "without search": steady.without_search,
    "overload": overload.overload_of_many,
    "overload of one": overload.overload_of_one,
    "sample": answers.sample,
    "reload": reloading.reload_under_load,
    "very many": overload.very_many,
}
#: Libraries whose versions are in rows.
PACKAGES = ("uvicorn", "starlette", "msgspec", "httptools", "uvloop", "fastapi", "mosec", "pyarrow")


def main(argv: Sequence[str] | None = None) -> int:
    """Exit with status 1 if an answer is wrong; whether bars are met depends on the machine, and is only printed."""
    options = _parser().parse_args(argv)
    if options.report:
        print(page([json.loads(line) for line in options.report.read_text().splitlines()]), end="")
        return 0
    lengths = QUICK if options.quick else Lengths()
    changes = {name: getattr(options, name) for name in ("requests", "overload") if getattr(options, name) is not None}
    rows = []
    try:
        wrk.require()
        with _stoppable(), tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            index, questions = prepare(folder, options.quick, options.index)
            setting = Setting(folder, index, questions, replace(lengths, **changes))
            for measure in options.measure or MEASURES:
                rows.append(_row(measure, setting, options.quick))
                _keep(rows, options.out)
    except UnavailableError as reason:
        rows.append({"case": "serving", "measure": None, "status": "skip", "reason": str(reason)})
        _keep(rows, options.out)
    print(page(rows), end="")
    return int(any(row["status"] == "error" for row in rows))


def _keep(rows: Sequence[dict[str, Any]], out: Path | None) -> None:
    """Print the latest row, and write all of them: a later measurement may be stopped."""
    print(_said(rows[-1]), file=sys.stderr, flush=True)
    if out is not None:
        out.write_text("".join(json.dumps(row) + "\n" for row in rows))


@contextmanager
def _stoppable() -> Iterator[None]:
    """Turn SIGTERM into an exception, so that running servers and clients are stopped too."""

    def stopped(kind: int, frame: Any) -> None:
        signal.signal(kind, signal.SIG_IGN)  # a second signal would interrupt the clean-up
        sys.exit(128 + kind)

    before = signal.signal(signal.SIGTERM, stopped)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _row(measure: str, setting: Setting, quick: bool) -> dict[str, Any]:
    """Measure, and add the versions and the load of the machine."""
    row: dict[str, Any] = {"case": "serving", "measure": measure, "status": "ok", "quick": quick}
    average, load, before = machine.load_average(), machine.OtherLoad(), _children()
    try:
        row["figures"] = MEASURES[measure](setting)
        row["bars"] = judged(measure, row["figures"])
    except UnavailableError as reason:
        row |= {"status": "skip", "reason": str(reason)}
    except GateError as wrong:
        row |= {"status": "error", "reason": str(wrong)}
    about = machine.surroundings(average, load.stop(_children() - before))
    about["versions"] = machine.versions(*PACKAGES)
    return {**row, "lengths": asdict(setting.lengths), "passages": setting.passages, **about}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _said(row: dict[str, Any]) -> str:
    bars = "; ".join(f"{bar['says']}: {bar['value']:.4g}" for bar in row.get("bars", ()) if bar["value"] is not None)
    return f"{row['measure'] or 'serving'}: {row['status']} {row.get('reason', bars)}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.serving", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tiny synthetic index and short parts: the bench works")
    parser.add_argument("--index", type=Path, help="an index to serve in the place of hotpotqa's")
    parser.add_argument("--measure", nargs="+", choices=tuple(MEASURES), metavar="NAME", help=", ".join(MEASURES))
    parser.add_argument("--requests", type=int, help="how many are very many  [default: 1000000]")
    parser.add_argument("--overload", type=float, metavar="SECONDS", help="[default: 60]")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write rows as JSON lines")
    parser.add_argument("--report", type=Path, metavar="FILE", help="print the tables of recorded rows")
    return parser


if __name__ == "__main__":
    sys.exit(main())
