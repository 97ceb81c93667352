"""``hopfuse serve`` over a recipe that does not search, to measure the server alone."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from hopfuse.recipes import RECIPES, PhaseGraph
from hopfuse.serve import Limits, ServeConfig, run


def make(seconds: float, most: int) -> type[PhaseGraph]:
    """Return a recipe that gives every question the first one's hits, for up to ``most`` at once, after ``seconds``."""
    answers: dict[int, Any] = {}

    class Still(PhaseGraph):
        name = "still"

        def search(self, queries: Any = None, *, vectors: Any, entities: Any, k: int = 10, **given: Any) -> Any:
            if k not in answers:
                same = np.repeat(np.asarray(vectors)[:1], most, axis=0)
                answers[k] = super().search(vectors=same, entities=[entities[0]] * most, k=k)
            time.sleep(seconds)
            return answers[k]

    return Still


def main(index: str, port: str, seconds: str) -> None:
    """Serve on loopback."""
    RECIPES["still"] = make(float(seconds), Limits().batch)
    config = ServeConfig.read("", {"port": int(port), "indexes": {"bench": {"path": index, "recipe": "still"}}})
    run(config)


if __name__ == "__main__":
    main(*sys.argv[1:])
