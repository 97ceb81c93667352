"""Counts that grow over runs, run by .ci/soak: kills, losses of power, damages, histories, fuzzing and others.

Needs only Python. ``tests/soak.py`` has the parts, which repeat what tests do a few times, seed by seed. Each run of a
part is a row of docs/results/soak.jsonl: its seeds, commit, count and failures. A total counts the rows of commits at
which the files under the part's paths are the same as at HEAD.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from full_checks import REPORT, replace_between
from workplace import ROOT, Workplace, commit, install_tools, machine

RECORD = ROOT / "docs" / "results" / "soak.jsonl"
BEGIN, END = "<!-- soak -->", "<!-- end of soak -->"
LANES = 2


@dataclass(frozen=True)
class Part:
    """Hold what a part counts, how many a release should have, and the paths of what it tests and of itself."""

    counts: str
    goal: int
    paths: tuple[str, ...]


INDEX = ("python/hopfuse/index", "tests/index", "tests/golden/log")
KERNELS = ("kernels", "bindings")
READERS = tuple(f"python/hopfuse/{room}" for room in ("retriever", "recipes", "extract", "lexical", "types"))
PARTS = {
    "kills": Part("kills of an index's writer", 10_000, INDEX),
    "power": Part("losses of power in histories of changes", 100_000, INDEX),
    "damages": Part("damages of an index's files", 1_000_000, INDEX),
    "histories": Part("drawn histories of live indexes", 10_000, (*INDEX, "python/hopfuse/recipes", *KERNELS)),
    "operations": Part("operations on live indexes", 100_000, (*INDEX, *READERS, *KERNELS)),
    "fuzz": Part("inputs of readers of bytes, chosen by coverage", 500_000, ("python/hopfuse", "tests/fuzz", *KERNELS)),
    "requests": Part("forged requests", 1_000_000, ("python/hopfuse/serve", "tests/serve/forged.py")),
    "draws": Part("examples of property tests", 1_000_000, ("python/hopfuse", *KERNELS)),
    "questions": Part(
        "questions over the atlas, scored under kills",
        1_000_000,
        ("python/hopfuse/offline", "python/hopfuse/recipes", "examples/atlas", "tests/offline/kills.py", *KERNELS),
    ),
}


@dataclass(frozen=True)
class Row:
    """A run of a part; ``last`` is before ``first`` if no seed was finished."""

    part: str
    first: int
    last: int
    commit: str
    count: int
    failures: list[int]
    seconds: float
    machine: str
    date: str


def rows_of(path: Path) -> list[Row]:
    """Return the rows of a record."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Row(**json.loads(line)) for line in lines]


def append(path: Path, row: Row) -> None:
    """Append a row to a record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        print(json.dumps(asdict(row)), file=file)


def next_seed(part: str, rows: Sequence[Row]) -> int:
    """Return the first seed after all that a part has used, at any commit."""
    used = (max((row.last, *row.failures)) for row in rows if row.part == part)
    return max(used, default=-1) + 1


def share(minutes: float, parts: int) -> float:
    """Return the seconds of each part, of which two run at a time."""
    return 60 * minutes / math.ceil(parts / LANES)


def command_of(python: Path | str, part: str, first: int, *much: str) -> list[str]:
    """Return the command that counts from a seed on."""
    return [str(python), "tests/soak.py", part, "--from", str(first), *much]


def count(python: Path, cwd: Path, environment: dict[str, str], part: str, first: int, seconds: float) -> Row:
    """Run a part from a seed on; print a failure with the command that repeats it."""
    begin = time.monotonic()
    done = subprocess.run(
        command_of(python, part, first, "--seconds", f"{seconds:.0f}"),
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    finished = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"seed"')]
    failures = [first + len(finished)] if done.returncode else []
    if failures:
        again = shlex.join(command_of(".venv/bin/python", part, failures[0], "--seeds", "1"))
        said = "\n".join(done.stderr.splitlines()[-40:])
        print(f"{said}\n{part} FAILED with seed {failures[0]}; to repeat it at {commit()}:\n  {again}", flush=True)
    total = sum(line["count"] for line in finished)
    print(f"{part}: {total:,} {PARTS[part].counts}, {len(finished)} seeds from {first} on", flush=True)
    last, today = first + len(finished) - 1, f"{datetime.now(UTC):%Y-%m-%d}"
    return Row(part, first, last, commit(), total, failures, round(time.monotonic() - begin, 1), machine(), today)


def is_same_code(row: Row) -> bool:
    """Return whether what a part tests is the same at HEAD as at a row's commit, which HEAD's history may lack."""
    difference = ["git", "diff", "--quiet", row.commit, "HEAD", "--", *PARTS[row.part].paths]
    return subprocess.run(difference, cwd=ROOT, check=False, capture_output=True).returncode == 0


def table_of(rows: Sequence[Row], is_current: Callable[[Row], bool]) -> list[str]:
    """Return the lines of the report: totals since the last change of what a part tests, and of all runs."""
    lines = [
        "| Part | Counts | Since the last change | Goal | Failures | Commits | Minutes | In all runs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, part in PARTS.items():
        every = [row for row in rows if row.part == name]
        current = [row for row in every if is_current(row)]
        cells = (
            name,
            part.counts,
            f"{sum(row.count for row in current):,}",
            f"{part.goal:,}",
            str(sum(len(row.failures) for row in current)),
            ", ".join(dict.fromkeys(row.commit for row in current)) or "-",
            f"{sum(row.seconds for row in current) / 60:,.0f}",
            f"{sum(row.count for row in every):,}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def write_report(record: Path) -> None:
    """Write the totals into docs/checks.md."""
    replace_between(REPORT, BEGIN, END, ["", *table_of(rows_of(record), is_same_code), ""])


def prepare(name: str) -> tuple[Path, Path, dict[str, str]]:
    """Return a clone of the commit, the programs of its environment and the variables; kept for the next run."""
    folder = ROOT / "build" / "soak" / name
    for other in folder.parent.glob("*"):
        if other != folder:
            shutil.rmtree(other)
    folder.mkdir(parents=True, exist_ok=True)
    workplace = Workplace(folder, folder / "log")
    clone, python = workplace.suite()
    return clone, python, workplace.environment


def run(parts: Sequence[str], minutes: float, first: int | None, record: Path) -> list[Row]:
    """Run parts in two lanes, and append a row for each."""
    clone, python, environment = prepare(commit())
    seconds, writing, before = share(minutes, len(parts)), threading.Lock(), rows_of(record)

    def run_one(part: str) -> Row:
        start = next_seed(part, before) if first is None else first
        row = count(python / "python", clone, environment, part, start, seconds)
        with writing:
            append(record, row)
        return row

    with ThreadPoolExecutor(LANES) as pool:
        return list(pool.map(run_one, parts))


def main() -> None:
    """Parse the command, and run."""
    parser = argparse.ArgumentParser(prog=".ci/soak", description="Counts that grow over runs.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all by default")
    parser.add_argument("--minutes", type=float, help="how long all parts take together")
    parser.add_argument("--from", dest="first", type=int, metavar="SEED", help="not the next unused seed")
    parser.add_argument("--record", type=Path, default=RECORD, help="a file of rows other than docs/results/soak.jsonl")
    parser.add_argument("--report", action="store_true", help="write the totals into docs/checks.md")
    parser.add_argument("--list", action="store_true", help="list the parts")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.parts) - set(PARTS)):
        parser.error(f"no part {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    if asked.list:
        for name, part in PARTS.items():
            print(f"{name:12}{part.goal:>10,} {part.counts}")
        return
    if asked.minutes is not None:
        install_tools("git", "cmake", "ccache", "g++-12")
        if (ROOT.parent / "shared" / "data").is_dir():
            os.environ.setdefault("HOPFUSE_DATA", str(ROOT.parent / "shared" / "data"))
        rows = run(asked.parts or list(PARTS), asked.minutes, asked.first, asked.record)
        if any(row.failures for row in rows):
            raise SystemExit(1)
    elif not asked.report:
        parser.error("give --minutes, --report or --list")
    if asked.report:
        write_report(asked.record)


if __name__ == "__main__":
    main()
