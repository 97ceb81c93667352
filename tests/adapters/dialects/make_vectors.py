"""Writes vectors/SYSTEM.json: what other systems make of the same ranked lists.

``python tests/adapters/dialects/make_vectors.py [SYSTEM ...]`` in an environment that has ranx, qdrant-client, lancedb,
langchain-classic, llama-index-core and haystack-ai; it does without hopfuse. A system that PyPI does not offer is
computed here by its documented formula, in plain Python floats.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from documented import DOCUMENTED
from systems import SYSTEMS

Ranked = list[tuple[int, float]]
FOLDER = Path(__file__).parent / "vectors"

#: Scores that float32 holds exactly, best first; equal ones by id.
LISTS: dict[str, list[Ranked]] = {
    "two": [[(3, 9.0), (1, 7.5), (4, 2.25), (7, 1.0)], [(4, 0.875), (2, 0.5), (3, 0.25)]],
    "three": [
        [(0, 0.875), (5, 0.75), (2, 0.625), (9, 0.125)],
        [(5, 12.0), (9, 11.0), (6, 3.5)],
        [(2, 0.96875), (0, 0.5), (8, 0.25), (5, 0.21875), (6, 0.0625)],
    ],
    "disjoint": [[(1, 4.0), (2, 2.0), (3, 1.0)], [(4, 8.0), (5, 5.0), (6, 4.5)]],
    "single": [[(6, 3.0)], [(2, 0.75), (6, 0.5), (1, 0.25)]],
    "equal": [[(1, 0.5), (2, 0.5), (8, 0.5)], [(8, 3.0), (1, 2.0), (9, 1.0)]],
    "ties": [[(1, 4.0), (2, 2.5), (5, 2.5), (7, 1.0)], [(5, 0.75), (1, 0.5), (7, 0.5), (3, 0.25)]],
    "empty": [[(3, 2.0), (1, 1.5), (2, 0.5)], []],
    "outlier": [
        [(20, 64.0), *((i, 1.0 + (14 - i) / 16) for i in range(14))],
        [(4, 0.75), (20, 0.5), (30, 0.25)],
    ],
}
#: Scores below 0, and a list of equal ones at 0.
SIGNED: dict[str, list[Ranked]] = {
    "below zero": [[(1, 2.0), (2, -0.5), (3, -4.0)], [(2, 0.75), (3, 0.5), (4, 0.25)]],
    "all below zero": [[(1, -0.5), (2, -1.0), (3, -4.0)], [(2, 0.75), (3, 0.5), (4, 0.25)]],
    "equal at zero": [[(1, 0.0), (2, 0.0)], [(2, 0.75), (3, 0.5), (4, 0.25)]],
}


def main(names: list[str]) -> None:
    for name, system in {**SYSTEMS, **DOCUMENTED}.items():
        if names and name not in names:
            continue
        about, cases = system()
        rows = [row for case in cases for row in run(*case)]
        FOLDER.mkdir(exist_ok=True)
        lines = ",\n".join("  " + json.dumps(row) for row in rows)
        head = json.dumps(about, indent=1)[:-2]
        (FOLDER / f"{name}.json").write_text(f'{head},\n "cases": [\n{lines}\n ]\n}}\n', encoding="utf-8")
        print(f"{name} {about['version']}: {len(rows)} vectors")


def run(call: dict[str, Any], fuse: Callable[..., Ranked], given: dict[str, Any]) -> list[dict[str, Any]]:
    """A vector for each set of lists: `call` is dialects.fuse's, `fuse` the system's, `given` which lists it is for."""
    skipped, signed = given.get("skip", ()), given.get("signed", False)
    rows = []
    for name, lists in {**LISTS, **(SIGNED if signed else {})}.items():
        if name in skipped:
            continue
        weights = given.get("weights", {}).get(len(lists))
        if "weights" in given and weights is None:
            continue
        fused = fuse([list(ranked) for ranked in lists], *([weights] if weights else []))
        arguments = {**call, **({"weights": weights} if weights else {})}
        rows.append({"name": name, "call": arguments, "lists": lists, "fused": fused})
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])
