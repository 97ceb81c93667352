"""The parts of ``.ci/soak``: what tests do a few times, counted seed by seed.

``python tests/soak.py PART --from SEED --seeds N`` repeats some seeds, in an environment with the extra ``dev``; with
``--seconds`` it goes on until the time is up. Each seed that passed is a line ``{"seed": …, "count": …}``; a seed that
fails ends the run with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
os.environ.setdefault("HOPFUSE_NUM_THREADS", "1")
#: Examples that a seed draws of each property test of a file.
DRAWS = 200
QUESTIONS, KILLS, OPERATIONS = 10_000, 4, 2_000


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
    files = [path for path in sorted(TESTS.rglob("test_*.py")) if "@given" in path.read_text(encoding="utf-8")]
    options = ["-m", "hypothesis and not emulator", f"--hypothesis-seed={seed}", "--hypothesis-show-statistics"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, files[seed % len(files)]]
    variables = {**os.environ, "HOPFUSE_TESTS": "full", "HOPFUSE_DRAWS": str(DRAWS)}
    done = subprocess.run(command, cwd=TESTS.parent, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 5), done.stdout + done.stderr  # 5: all of its tests are left out here
    return sum(map(int, re.findall(r"(\d+) passing", done.stdout)))


def questions(place: Place, seed: int) -> int:
    """Score questions over the atlas under kills, and compare with a run without; count questions."""
    from offline.kills import finish_under_kills

    index, texts = place.shared.get("atlas") or place.shared.setdefault("atlas", save_atlas(place.folder))
    draw, folder = random.Random(seed), place.fresh()
    asked = [{"id": f"q{at}", "text": " ".join(draw.sample(texts, 2))} for at in range(QUESTIONS)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    command = [sys.executable, "-m", "hopfuse", "score", index, "--queries", folder / "queries.jsonl", "-k", 10]
    whole, killed = folder / "whole.jsonl", folder / "killed.jsonl"
    subprocess.run([*map(str, command), "--out", str(whole)], check=True, capture_output=True)
    words = [*command, "--workers", 2, "--out", killed]
    finish_under_kills(words, killed.exists, draw, KILLS, seconds=10.0)
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


def count(part: Callable[[Place, int], int], first: int, seeds: int | None, seconds: float | None) -> None:
    """Count seed by seed until the seeds or the seconds are used."""
    begin, seed = time.monotonic(), first
    with tempfile.TemporaryDirectory(prefix="hopfuse-soak-") as folder:
        shared: dict[str, Any] = {}
        while True:
            with ExitStack() as until:
                counted = part(Place(Path(folder), until, shared), seed)
            print(json.dumps({"seed": seed, "count": counted}), flush=True)
            seed += 1
            if seed - first == seeds or (seconds is not None and time.monotonic() - begin >= seconds):
                return


def main(arguments: list[str]) -> None:
    """Parse the command, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    much = parser.add_mutually_exclusive_group(required=True)
    much.add_argument("--seeds", type=int, help="how many seeds")
    much.add_argument("--seconds", type=float, help="start no seed after so many seconds")
    asked = parser.parse_args(arguments)
    sys.path += [path for path in (str(TESTS), str(TESTS.parent)) if path not in sys.path]
    count(PARTS[asked.part], asked.first, asked.seeds, asked.seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
