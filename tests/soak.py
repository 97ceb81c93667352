"""The parts of ``.ci/soak``: what tests do a few times, counted seed by seed.

``python tests/soak.py PART --from SEED --seeds N`` repeats some seeds, in an environment with the extra ``dev``; with
``--seconds`` it goes on until the time is up, with ``--count`` no longer than until it has counted so many. Each seed
that passed is a line ``{"seed": …, "count": …}``; a seed that fails ends the run with exit code 1, and an interrupt or
a request to end with 130. Files are in memory where the system has a folder for that, but not those of writers that
are killed.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scratch import memory

TESTS = Path(__file__).resolve().parent
os.environ.setdefault("HOPFUSE_NUM_THREADS", "1")
#: Examples that a seed draws of each property test of a file that does not state how many it needs.
DRAWS = 1_000
QUESTIONS, KILLS, OPERATIONS = 100_000, 4, 2_000
#: Parts whose writers are killed while the disk writes, or whose files may be large.
ON_DISK = ("kills", "questions")
INTERRUPTED = 130
TEMPLATE = str(TESTS / "processes.py")


@dataclass
class Place:
    """Where a part works: folders, and what its seeds share."""

    folder: Path
    until: ExitStack
    shared: dict[str, Any] = field(default_factory=dict)

    def fresh(self) -> Path:
        """Return a new folder, which is removed at the end of the seed."""
        return Path(self.until.enter_context(tempfile.TemporaryDirectory(dir=self.folder)))


def kills(place: Place, seed: int) -> int:
    """Kill writers of an index; count kills."""
    from index.crashes import kill_writers

    return kill_writers(place.fresh(), seed, 100)


def power(place: Place, seed: int) -> int:
    """Lose power in a history of changes; count losses."""
    from index.crashes import lose_power

    return lose_power(place.fresh(), seed)


def damages(place: Place, seed: int) -> int:
    """Damage files of an index; count damages."""
    from index.damages import damage_files

    damage_files(place.fresh(), seed, 500)
    return 500


def histories(place: Place, seed: int) -> int:
    """Compare live indexes, and recipes over them, with ones that are built anew; count histories."""
    from hopfuse.recipes import RECIPES
    from index.histories import compare_recipe, run_histories

    run_histories(10, 40, seed)
    for name in RECIPES:
        compare_recipe(name, seed)
    return 10 + len(RECIPES)


def operations(place: Place, seed: int) -> int:
    """Change one index, by writers that are killed, and compare what readers see with the rows; count operations."""
    from index.operations import run_operations

    run_operations(place.fresh() / "index", seed, OPERATIONS)
    return OPERATIONS


def fuzz(place: Place, seed: int) -> int:
    """Fuzz one of the readers of bytes, which take turns; count inputs."""
    from fuzz.targets import NAMES, target_of
    from fuzzing import fuzz

    target = target_of(NAMES[seed % len(NAMES)])
    found = fuzz(target, seed, f"-runs={target.runs}")
    assert found.failing is None, f"{found.said[-3000:]}\n{target.name} fails with {found.failing!r}"
    return found.count


def requests(place: Place, seed: int) -> int:
    """Send forged requests to a server whose index may be changed; count requests."""
    from serve.forged import Wire, ask_forged, served

    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # it warns of each request that is not HTTP
    with served(place.fresh()) as url, closing(Wire(url)) as wire:
        ask_forged(wire, 2_000, seed)
    return 2_000


def draws(place: Place, seed: int) -> int:
    """Draw examples of the property tests of a file, the files in turn; count examples."""
    from draws import draw_examples, property_tests

    files = property_tests()
    return draw_examples(files[seed % len(files)], seed, DRAWS)


def questions(place: Place, seed: int) -> int:
    """Score questions over the atlas under kills, and compare with a run without; count questions."""
    from offline.kills import finish_under_kills

    index, texts = place.shared.get("atlas") or place.shared.setdefault("atlas", save_atlas(place.folder))
    draw, folder = random.Random(seed), place.fresh()
    asked = [{"id": f"q{at}", "text": " ".join(draw.sample(texts, 2))} for at in range(QUESTIONS)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    how = ("--queries", folder / "queries.jsonl", "-k", 10, "--workers", 2)
    command = [sys.executable, "-m", "hopfuse", "score", index, *how]
    whole, killed = folder / "whole.jsonl", folder / "killed.jsonl"
    begin = time.monotonic()
    subprocess.run([*map(str, command), "--out", str(whole)], check=True, capture_output=True)
    took = time.monotonic() - begin  # on a machine that may be busy
    finish_under_kills([*command, "--out", killed], killed.exists, draw, KILLS, seconds=took / KILLS)
    assert killed.read_bytes() == whole.read_bytes()
    return QUESTIONS


def save_atlas(folder: Path) -> tuple[Path, list[str]]:
    """Build and save the atlas; return its folder and its questions."""
    from hopfuse.encoders import WordLlamaEncoder

    from examples.atlas import build_atlas
    from examples.atlas.data import atlas_data

    data = atlas_data(build_atlas(), WordLlamaEncoder())
    data.index.save(folder / "atlas")
    return folder / "atlas", list(data.qrels.questions)


PARTS: dict[str, Callable[[Place, int], int]] = {
    one.__name__: one for one in (kills, power, damages, histories, operations, fuzz, requests, draws, questions)
}


def count(name: str, first: int, *, seeds: int | None, seconds: float | None, most: int | None) -> None:
    """Count seed by seed until the seeds or the seconds are used, or the count is reached."""
    begin, seed, total, shared = time.monotonic(), first, 0, dict[str, Any]()
    before = children()
    with tempfile.TemporaryDirectory(prefix="hopfuse-soak-", dir=None if name in ON_DISK else memory()) as folder:
        while True:
            with _temporary(Path(folder) / "temporary"), ExitStack() as until:
                counted = PARTS[name](Place(Path(folder), until, shared), seed)
            left = [one for one in children() if one not in before]
            assert not left, f"seed {seed} left processes: {left}"
            print(json.dumps({"seed": seed, "count": counted}), flush=True)
            seed, total = seed + 1, total + counted
            is_over = seconds is not None and time.monotonic() - begin >= seconds
            if seed - first == seeds or is_over or (most is not None and total >= most):
                return


@contextmanager
def _temporary(folder: Path) -> Iterator[None]:
    """Let temporary files be made in a folder, and remove all that are left there."""
    before, variable = tempfile.tempdir, os.environ.get("TMPDIR")
    folder.mkdir()
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
        del os.environ["TMPDIR"]
        os.environ.update({} if variable is None else {"TMPDIR": variable})
        shutil.rmtree(folder, ignore_errors=True)


def children() -> list[str]:
    """Return the processes that this one started and that run, with their commands, but not those that end with it."""
    found = []
    for child, command in _started("self"):
        if TEMPLATE in command:  # of which tests fork processes (tests/processes.py)
            found += [f"{fork} {same}" for fork, same in _started(child)]
        elif "resource_tracker" not in command:
            found.append(f"{child} {command}")
    return found


def _started(process: str) -> Iterator[tuple[str, str]]:
    """Yield the numbers and commands of the running children of a process."""
    from offline.kills import alive

    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in task.read_text(encoding="utf-8").split():
            with suppress(OSError):
                command = Path(f"/proc/{child}/cmdline").read_text(encoding="utf-8").replace("\0", " ")
                if alive(int(child)):
                    yield child, command


def main(arguments: list[str]) -> None:
    """Parse the command, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    much = parser.add_mutually_exclusive_group(required=True)
    much.add_argument("--seeds", type=int, help="how many seeds")
    much.add_argument("--seconds", type=float, help="start no seed after so many seconds")
    parser.add_argument("--count", type=int, help="start no seed after counting so many")
    asked = parser.parse_args(arguments)
    sys.path += [path for path in (str(TESTS), str(TESTS.parent)) if path not in sys.path]
    count(asked.part, asked.first, seeds=asked.seeds, seconds=asked.seconds, most=asked.count)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job has it ignored
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:  # after what the part started has ended, and its folders were removed
        sys.exit(INTERRUPTED)
