"""Counts that grow over runs, run by .ci/soak: kills, losses of power, damages, histories, fuzzing and others.

Needs only Python. ``tests/soak.py`` has the parts, which repeat what tests do a few times, seed by seed. Each run of a
part is a row of docs/results/soak.jsonl: its seeds, commit, count and failures. A total counts the rows of commits at
which the files under the part's paths are the same as at HEAD.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from full_checks import REPORT, replace_between
from workplace import ROOT, Workplace, commit, install_tools, machine

RECORD = ROOT / "docs" / "results" / "soak.jsonl"
BEGIN, END = "<!-- soak -->", "<!-- end of soak -->"
LANES = 2
#: The exit code of tests/soak.py when it is interrupted or told to end.
INTERRUPTED = 130
#: How much longer than its last run says a part may take.
MARGIN = 1.25


@dataclass(frozen=True)
class Part:
    """Hold what a part counts, how many a release should have, and the paths of what it tests and of itself."""

    counts: str
    goal: int
    paths: tuple[str, ...]


INDEX = ("python/hopfuse/index", "tests/index", "tests/golden/log")
#: Without kernels/simt, which no part runs, as nothing that is shipped does.
KERNELS = (*(f"kernels/{room}" for room in ("cpu", "cuda", "device", "include")), "bindings")
READERS = tuple(f"python/hopfuse/{room}" for room in ("retriever", "recipes", "extract", "lexical", "types"))
PARTS = {
    "kills": Part("kills of an index's writer", 10_000, INDEX),
    "power": Part("losses of power in histories of changes", 100_000, INDEX),
    "damages": Part("damages of an index's files", 1_000_000, INDEX),
    "histories": Part("drawn histories of live indexes", 2_000, (*INDEX, "python/hopfuse/recipes", *KERNELS)),
    "operations": Part("operations on live indexes", 100_000, (*INDEX, *READERS, *KERNELS)),
    "fuzz": Part("inputs of readers of bytes, chosen by coverage", 500_000, ("python/hopfuse", "tests/fuzz", *KERNELS)),
    "requests": Part("forged requests", 1_000_000, ("python/hopfuse/serve", "tests/serve/forged.py")),
    "draws": Part("examples of property tests", 100_000, ("python/hopfuse", *KERNELS)),
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


def missing(rows: Sequence[Row], is_current: Callable[[Row], bool]) -> dict[str, int]:
    """Return what each part lacks to its goal since the last change of what it tests; without parts that have it."""
    counted = dict.fromkeys(PARTS, 0)
    for row in filter(is_current, rows):
        counted[row.part] += row.count
    return {name: part.goal - counted[name] for name, part in PARTS.items() if counted[name] < part.goal}


def needs(counts: Mapping[str, int], rows: Sequence[Row]) -> dict[str, float]:
    """Return seconds in which parts count so many, by their last runs; an hour for a goal without one."""
    found = {}
    for name, wanted in counts.items():
        rates = [row.count / row.seconds for row in rows if row.part == name and row.count]
        found[name] = MARGIN * wanted / (rates[-1] if rates else PARTS[name].goal / 3600)
    return found


def lanes_of(seconds: Mapping[str, float]) -> list[dict[str, float]]:
    """Return the parts of each lane with the seconds that they would take."""
    lanes: list[dict[str, float]] = [{} for _ in range(LANES)]
    for name in sorted(seconds, key=seconds.__getitem__, reverse=True):
        min(lanes, key=lambda lane: sum(lane.values()))[name] = seconds[name]
    return lanes


def share(need: float, later: Sequence[float], left: float) -> float:
    """Return the seconds of a part, of those that are left for it and for later ones of its lane."""
    return max(0.0, need * min(1.0, left / (need + sum(later))))


def command_of(python: Path | str, part: str, first: int, *much: str) -> list[str]:
    """Return the command that counts from a seed on."""
    return [str(python), "tests/soak.py", part, "--from", str(first), *much]


class Running:
    """The parts that run, which an interrupt ends; they print what they have counted before."""

    def __init__(self) -> None:
        self._lock, self._processes, self.stopped = threading.Lock(), set[subprocess.Popen[str]](), False

    def outcome(self, command: list[str], cwd: Path, environment: dict[str, str]) -> tuple[int, str, str]:
        """Run a command, and return its exit code, or that of an interrupted one, its output and its errors."""
        with self._lock:
            if self.stopped:
                return INTERRUPTED, "", ""
            pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            process = subprocess.Popen(command, cwd=cwd, env=environment, **pipes)
            self._processes.add(process)
        out, errors = process.communicate()
        with self._lock:
            self._processes.discard(process)
        return process.returncode, out, errors

    def stop(self) -> None:
        """End what runs, and start nothing more."""
        with self._lock:
            self.stopped = True
            for process in self._processes:
                process.terminate()


@dataclass(frozen=True)
class Clone:
    """A clone of a commit, where parts run: its folder, Python and variables; HEAD may go on meanwhile."""

    commit: str
    folder: Path
    python: Path
    environment: dict[str, str]


def count(running: Running, clone: Clone, part: str, first: int, *much: str) -> Row:
    """Run a part from a seed on; print a failure with the command that repeats it."""
    begin = time.monotonic()
    code, out, errors = running.outcome(command_of(clone.python, part, first, *much), clone.folder, clone.environment)
    finished = [json.loads(line) for line in out.splitlines() if line.startswith('{"seed"')]
    failures = [first + len(finished)] if code not in (0, INTERRUPTED, -signal.SIGTERM, -signal.SIGINT) else []
    if failures:
        again = shlex.join(command_of(".venv/bin/python", part, failures[0], "--seeds", "1"))
        said = "\n".join(errors.splitlines()[-40:])
        print(f"{said}\n{part} FAILED with seed {failures[0]}; to repeat it at {clone.commit}:\n  {again}", flush=True)
    total = sum(line["count"] for line in finished)
    print(f"{part}: {total:,} {PARTS[part].counts}, {len(finished)} seeds from {first} on", flush=True)
    last, today = first + len(finished) - 1, f"{datetime.now(UTC):%Y-%m-%d}"
    return Row(part, first, last, clone.commit, total, failures, round(time.monotonic() - begin, 1), machine(), today)


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


def prepare(name: str) -> Clone:
    """Return a clone of a commit with an environment of its own; kept for the next run."""
    folder = ROOT / "build" / "soak" / name
    for other in folder.parent.glob("*"):
        if other != folder:
            shutil.rmtree(other)
    folder.mkdir(parents=True, exist_ok=True)
    workplace = Workplace(folder, folder / "log")
    clone, programs = workplace.suite()
    return Clone(name, clone, programs / "python", workplace.environment)


def run(
    lanes: Sequence[Mapping[str, float]], minutes: float, first: int | None, record: Path, most: Mapping[str, int]
) -> list[Row]:
    """Run the parts of each lane for their share of the time, at most up to a count, and append a row for each.

    An interrupt ends the parts that run; their rows have what they counted.
    """
    clone = prepare(commit())
    running, writing, before, rows = Running(), threading.Lock(), rows_of(record), list[Row]()
    end = time.monotonic() + 60 * minutes

    def run_lane(lane: Mapping[str, float]) -> None:
        for at, (part, need) in enumerate(lane.items()):
            seconds = share(need, [*lane.values()][at + 1 :], end - time.monotonic())
            start = next_seed(part, before) if first is None else first
            much = ["--seconds", f"{seconds:.0f}", *(["--count", str(most[part])] if part in most else [])]
            row = count(running, clone, part, start, *much)
            if running.stopped and row.last < row.first:
                return
            with writing:
                append(record, row)
                rows.append(row)

    with ThreadPoolExecutor(LANES) as pool:
        done = [pool.submit(run_lane, lane) for lane in lanes]
        try:
            wait(done)
        except KeyboardInterrupt:
            running.stop()
            wait(done)
            raise
    for one in done:
        one.result()
    return rows


def lacking(parts: Sequence[str], record: Path) -> tuple[dict[str, int], dict[str, float]]:
    """Return and print what parts lack to their goals, and the seconds that they may need for it."""
    rows = rows_of(record)
    found = {name: wanted for name, wanted in missing(rows, is_same_code).items() if name in parts}
    needed = needs(found, rows)
    for name, wanted in found.items():
        minutes = needed[name] / 60
        print(f"{name}: {wanted:,} {PARTS[name].counts} to the goal, {minutes:,.0f} minutes at most", flush=True)
    return found, needed


def main() -> None:
    """Parse the command, and run."""
    parser = argparse.ArgumentParser(prog=".ci/soak", description="Counts that grow over runs.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all by default")
    parser.add_argument("--minutes", type=float, help="how long all parts take together")
    parser.add_argument(
        "--goals",
        action="store_true",
        help="share the minutes by what parts lack to their goals; print that if there are no minutes",
    )
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
    parts, most = asked.parts or list(PARTS), dict[str, int]()
    seconds = dict.fromkeys(parts, 60 * (asked.minutes or 0))
    if asked.goals:
        most, seconds = lacking(parts, asked.record)
    if asked.minutes is not None and seconds:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        install_tools("git", "cmake", "ccache", "g++-12")
        if (ROOT.parent / "shared" / "data").is_dir():
            os.environ.setdefault("HOPFUSE_DATA", str(ROOT.parent / "shared" / "data"))
        rows = run(lanes_of(seconds), asked.minutes, asked.first, asked.record, most)
        if any(row.failures for row in rows):
            raise SystemExit(1)
    elif asked.minutes is None and not (asked.report or asked.goals):
        parser.error("give --minutes, --goals, --report or --list")
    if asked.report:
        write_report(asked.record)


if __name__ == "__main__":
    main()
