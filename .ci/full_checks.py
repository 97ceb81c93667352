"""The full tier of checks, run by .ci/full: compilers, sanitizers, Arm, long property tests, torch, peers.

Needs only Python. A part is a function of ``code_parts.py`` or ``library_parts.py``: it works in fresh clones, raises
on failure and returns a line for the report; its docstring is its title there. No test runs twice: the part quick runs
the quick tier, the parts of the suite what the full tier adds to it (``HOPFUSE_TESTS=rest``), and what needs another
compiler or other libraries is left to the part that has them.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import code_parts
import library_parts
from workplace import ROOT, TOOLS, Workplace, commit, install_tools, machine

REPORT = ROOT / "docs" / "checks.md"
RECORDS = ROOT / "build" / "full"
# What may differ from the commit that was tested.
AFTERWARDS = ("docs/checks.md", "docs/results/soak.jsonl")
BEGIN, END = "<!-- results -->", "<!-- end of results -->"

# Each part and its budget in seconds, on one of two cores while the other lane works, with filled caches.
PARTS: dict[str, tuple[Callable[[Workplace], str], int]] = {
    "quick": (code_parts.quick_tier, 480),
    "library": (code_parts.library, 300),
    "kernels": (code_parts.kernels, 150),
    "programs": (code_parts.programs, 700),
    "simt": (code_parts.simt, 200),
    "emulator": (code_parts.emulator, 2000),
    "cuda": (code_parts.cuda, 550),
    "peers": (library_parts.peers, 400),
    "integrations": (library_parts.integrations, 500),
    "stores": (library_parts.stores, 400),
    "asan-suite": (code_parts.sanitizer_bindings, 700),
    "asan": (code_parts.sanitizer_memory, 500),
    "clang": (code_parts.clang, 350),
    "cupy": (library_parts.cupy, 150),
    "torch": (library_parts.torch, 250),
    "ray": (library_parts.ray, 300),
    "images": (code_parts.images, 350),
    "replay": (code_parts.replay_compilers, 350),
    "tsan": (code_parts.sanitizer_threads, 250),
    "arm": (code_parts.arm, 150),
    "arm-python": (code_parts.python_on_arm, 350),
    "counts": (code_parts.counts, 350),
    "twice": (code_parts.install_twice, 60),
    "wheel": (code_parts.wheel, 60),
    "guides": (code_parts.guides, 160),
    "site": (code_parts.site, 120),
    "lowest": (library_parts.lowest, 700),
    "pythons": (library_parts.pythons, 500),
}
# Both lanes together, the first part on both cores.
BUDGET = 6000
LANES = 2
# The first part runs alone, since it times an import.
FIRST = "quick"


# ---- The run -------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """Hold what a part gave at a commit."""

    name: str
    passed: bool
    detail: str
    seconds: float

    def row(self) -> str:
        """Return its row of the report."""
        detail = re.sub(r" in [\d.]+s.*$|:$", "", self.detail.splitlines()[0])
        detail = re.sub(r"/\S+/", "", detail)  # no paths of this machine
        return row_of(self.name, "passed" if self.passed else "FAILED", detail, f"{self.seconds:,.0f}")


def row_of(name: str, result: str, detail: str = "", seconds: str = "") -> str:
    """Return a row of the report: the part and its title, the result, and its seconds beside their budget."""
    part, budget = PARTS[name]
    return f"| {name} | {part.__doc__} | {result} | {detail} | {seconds} | {budget:,} |"


def record() -> Path:
    """Return the file of the outcomes at this commit, one per line, so that the tier can run in several runs."""
    return RECORDS / f"{commit()}.jsonl"


def outcomes_of(path: Path) -> dict[str, Outcome]:
    """Return the last outcome of each part in a file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {outcome.name: outcome for outcome in (Outcome(**json.loads(line)) for line in lines)}


def expected_seconds() -> dict[str, float]:
    """Return the seconds of each part: the last recorded where it passed, at any commit, or else its budget."""
    found = {name: float(budget) for name, (_, budget) in PARTS.items()}
    for path in sorted(RECORDS.glob("*.jsonl"), key=lambda path: path.stat().st_mtime):
        found |= {name: one.seconds for name, one in outcomes_of(path).items() if one.passed and name in PARTS}
    return found


def missing_parts() -> list[str]:
    """Return the parts whose last outcome at this commit is not that they passed."""
    outcomes = outcomes_of(record())
    return [name for name in PARTS if name not in outcomes or not outcomes[name].passed]


def compilers() -> list[str]:
    """Return the system, Python and compilers, as lines of the report."""
    found = [f"- {machine()}, {platform.system()} {platform.machine()}, Python {platform.python_version()}"]
    for tool in ("g++-12", "clang++-14", "aarch64-linux-gnu-g++", "qemu-aarch64-static", "cmake"):
        output = subprocess.run([tool, "--version"], check=True, capture_output=True, text=True).stdout
        found.append(f"- {tool}: {output.splitlines()[0]}")
    return found


def table_of(outcomes: dict[str, Outcome]) -> list[str]:
    """Return the lines of the report's table."""
    rows = [outcomes[name].row() if name in outcomes else row_of(name, "not run") for name in PARTS]
    first = outcomes[FIRST].seconds if FIRST in outcomes else 0
    minutes = (first + sum(one.seconds for name, one in outcomes.items() if name != FIRST) / LANES) / 60
    return [
        "| Part | | Result | Detail | Seconds | Budget |",
        "|---|---|---|---|---|---|",
        *rows,
        f"| in all | on {LANES} lanes, {FIRST} by itself | | | {60 * minutes:,.0f} | {BUDGET:,} |",
    ]


def replace_between(path: Path, begin: str, end: str, lines: Sequence[str]) -> None:
    """Replace what stands between two marks of a file."""
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n" + "\n".join(lines) + f"\n{end}{after}", encoding="utf-8")


def write_report() -> None:
    """Write the outcomes at this commit into docs/checks.md."""
    lines = [f"Run of {datetime.now(UTC):%Y-%m-%d} at commit {commit()}:", "", *compilers(), ""]
    replace_between(REPORT, BEGIN, END, [*lines, *table_of(outcomes_of(record()))])


def unproven(is_same: Callable[[str], bool]) -> list[str]:
    """Return why docs/checks.md is no proof of HEAD: parts that did not pass, or a commit with other code."""
    text = REPORT.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    tested = re.search(r"^Run of .* at commit (\w+):$", text, re.MULTILINE)
    results = dict(re.findall(r"^\| (\S+) \| [^|]* \| (\w[\w ]*) \|", text, re.MULTILINE))
    said = [f"{name}: {results.get(name, 'not run')}" for name in PARTS if results.get(name) != "passed"]
    if tested is None:
        return [*said, "no commit is named"]
    if not is_same(tested[1]):
        said.append(f"other files than {' and '.join(AFTERWARDS)} differ from {tested[1]}, which was tested")
    return said


def is_same_but_for_records(tested: str) -> bool:
    """Return whether HEAD differs from a commit by nothing but what is written after its tests."""
    others = [f":(exclude){path}" for path in AFTERWARDS]
    difference = ["git", "diff", "--quiet", tested, "HEAD", "--", ".", *others]
    return subprocess.run(difference, cwd=ROOT, check=False, capture_output=True).returncode == 0


def run_part(name: str, workplace: Workplace) -> Outcome:
    """Run a part; print and record its outcome."""
    part, budget = PARTS[name]
    print(f"==== {name}: {part.__doc__}", flush=True)
    begin = time.monotonic()
    try:
        passed, detail = True, part(workplace)
    except (RuntimeError, OSError, ValueError) as error:
        passed, detail = False, str(error)
        traceback.print_exc()
    outcome = Outcome(name, passed, detail, round(time.monotonic() - begin, 1))
    record().parent.mkdir(parents=True, exist_ok=True)
    with record().open("a", encoding="utf-8") as file:
        print(json.dumps(asdict(outcome)), file=file)
    taken = f"{outcome.seconds:.0f} s of {budget}" + (", over its budget" if outcome.seconds > budget else "")
    print(f"{name} {'passed' if passed else 'FAILED'} in {taken}: {detail.splitlines()[0]}", flush=True)
    return outcome


def run_lanes(names: Sequence[str], expected: dict[str, float], run: Callable[[str], Outcome]) -> list[Outcome]:
    """Run the first part alone, then the others in two lanes, each of which takes the longest part that is left."""
    done = {name: run(name) for name in names if name == FIRST}
    left = sorted((name for name in names if name != FIRST), key=lambda name: expected[name])
    taking = threading.Lock()

    def lane() -> None:
        while True:
            with taking:
                if not left:
                    return
                name = left.pop()
            done[name] = run(name)

    with ThreadPoolExecutor(LANES) as pool:
        for one in [pool.submit(lane) for _ in range(LANES)]:
            one.result()
    return [done[name] for name in names]


def print_list() -> None:
    """Print each part, its budget and what it last took."""
    taken = {name: one.seconds for path in RECORDS.glob("*.jsonl") for name, one in outcomes_of(path).items()}
    expected = expected_seconds()
    for name, (part, budget) in PARTS.items():
        last = f"{expected[name]:,.0f} s" if name in taken else "-"
        print(f"{name:14}{budget:>6,} s {last:>8}  {part.__doc__}")


def main(names: list[str]) -> None:
    """List, report, look whether the report proves HEAD, or run."""
    if names == ["--list"]:
        print_list()
        return
    if names == ["--report"]:
        write_report()
        return
    if names == ["--proven"]:
        if said := unproven(is_same_but_for_records):
            raise SystemExit("\n".join(["docs/checks.md is no proof of HEAD:", *said]))
        return
    if names == ["--missing"]:
        names = missing_parts()
        if not names:
            print(f"every part has passed at {commit()}")
            return
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        raise SystemExit(f"no part {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    install_tools(*TOOLS)
    # The clones are elsewhere, but tests on real data must look beside this checkout.
    if (ROOT.parent / "shared" / "data").is_dir():
        os.environ.setdefault("HOPFUSE_DATA", str(ROOT.parent / "shared" / "data"))
    with tempfile.TemporaryDirectory(prefix="hopfuse-full-") as temporary:
        folder = Path(temporary)
        outcomes = run_lanes(
            names or list(PARTS),
            expected_seconds(),
            lambda name: run_part(name, Workplace(folder, folder / f"{name}.log")),
        )
    print("\n".join(table_of({outcome.name: outcome for outcome in outcomes})))
    if set(outcomes_of(record())) == set(PARTS):
        write_report()
    if not all(outcome.passed for outcome in outcomes):
        raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
