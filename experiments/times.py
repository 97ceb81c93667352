"""Time every recipe and its legs on the same questions, in turns.

python -m experiments.times [--data FOLDER ...] [--rounds N] [--set NAME ...]

Builds an index of each question folder, as python -m experiments.side_by_side does, and searches
it in rounds: each ranking in each round, in batches of 32 questions. Vectors and entities of the questions are made
before. Writes experiments/results/times.json, which README.md's plot reads beside side-by-side.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.diagnose import compare_recipes
from hopfuse.evaluate import Qrels

from bench.machine import commit, machine, versions

from .side_by_side import OWN, build_arguments

OUT = Path(__file__).resolve().parent / "results" / "times.json"
#: The sets, and the graph over which each is searched.
SETS = {"hotpotqa": "folder", "debian-whole": "words"}
RANKINGS = ("dense", "words", "plain-hybrid", "guided-walk", "guided-walk+words", "phase-graph+words", "hybrid-rrf")
METRIC = "recall@5"


def run(folder: Path, rounds: int) -> dict[str, Any]:
    """Return milliseconds per question of each ranking, over rounds, alone and in batches."""
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    with TemporaryDirectory() as work:
        built = Path(work) / "index"
        made = ["build", *build_arguments(folder, Path(work), SETS[folder.name]), "--out", str(built)]
        subprocess.run([sys.executable, "-m", "hopfuse", *made], check=True, stdout=subprocess.DEVNULL)
        index = hf.Index.open(built)
        names = folder / "query_entities.jsonl"
        given = names.exists() and SETS[folder.name] == OWN
        lines = names.read_text(encoding="utf-8").splitlines() if given else ()
        entities = [[name for name, _ in json.loads(line)["entities"]] for line in lines] or None
        qrels = Qrels([row["id"] for row in rows], [row["gold"] for row in rows])
        taken: dict[str, dict[int, list[float]]] = {name: {} for name in RANKINGS}
        for number in range(rounds):
            found = compare_recipes(
                index,
                [row["question"] for row in rows],
                qrels,
                [METRIC],
                vectors=np.load(folder / "query_emb.f16.npy"),
                entities=entities,
                rankings=RANKINGS,
                timed=True,
            )
            if found.left_out:
                raise SystemExit(f"{folder.name}: {dict(found.left_out)}")
            for name in RANKINGS:
                for size, each in found.milliseconds[name].items():
                    taken[name].setdefault(size, []).append(each)
            print(f"{folder.name}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        return {
            "passages": index.num_passages,
            "questions": len(rows),
            "recall@5": {name: found.evaluation.estimate(name, METRIC).mean for name in RANKINGS},
            "ms": {
                name: {str(size): spread(values) for size, values in sizes.items()} for name, sizes in taken.items()
            },
        }


def spread(values: Sequence[float]) -> Mapping[str, float]:
    """Return the quartiles and the least of the rounds' medians."""
    lower, middle, upper = statistics.quantiles(values, n=4, method="inclusive")
    return {"least": min(values), "q1": lower, "median": middle, "q3": upper}


def main() -> int:
    """Time the sets and write the file."""
    parser = argparse.ArgumentParser(prog="python -m experiments.times", description=__doc__)
    parser.add_argument("--data", type=Path, action="append", required=True, help="folders that have the sets")
    parser.add_argument(
        "--set", dest="sets", action="append", choices=SETS, help=f"may be repeated [default: {' '.join(SETS)}]"
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--busy", action="store_true", help="say that other programs ran meanwhile")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    found: dict[str, Any] = {"machine": machine(), **commit(), "versions": versions("bm25s"), "busy": given.busy}
    found |= {"batch": 32, "rounds": given.rounds, "sets": {}}
    for name in given.sets or SETS:
        folder = next((data / name for data in given.data if (data / name).is_dir()), None)
        if folder is None:
            raise SystemExit(f"no folder of --data has {name}")
        found["sets"][name] = run(folder, given.rounds)
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
