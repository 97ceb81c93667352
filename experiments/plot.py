"""Draw docs/quality-and-time.svg: recall@5 beside milliseconds per question, from the result files.

python -m experiments.plot

Reads experiments/results/side-by-side.json and times.json. README.md shows the plot.
"""

from __future__ import annotations

import json

from bench.chart import Mark, panels

from .side_by_side import RESULTS, ROOT
from .times import OUT, SETS

PLOT = ROOT / "docs" / "quality-and-time.svg"
#: The titles of the panels.
TITLES = {
    "hotpotqa": "hotpotqa: two hops, graph of names",
    "debian-whole": "debian-whole: one section, graph of words",
}
#: The rankings of the plot: name, shape, side of the name, colour (those that walk have one, the others another).
RANKINGS = {
    "dense": ("dense", "circle", "below", 1),
    "words": ("BM25", "cross", "left", 1),
    "plain-hybrid": ("plain hybrid", "square", "below", 1),
    "hybrid-rrf": ("HybridRRF", "triangle", "above left", 0),
    "phase-graph+words": ("PhaseGraph", "diamond", "below right", 0),
    "guided-walk+words": ("GuidedWalk", "star", "right", 0),
}
#: The ends of the axis of recall, in percent.
ENDS = (60, 100)


def draw() -> str:
    """Return the plot as SVG; the same files give the same text."""
    times = json.loads(OUT.read_text(encoding="utf-8"))
    quality = json.loads(RESULTS.read_text(encoding="utf-8"))
    batch = str(times["batch"])
    marks = {}
    for name, graph in SETS.items():
        means, taken = quality[name][graph]["means"], times["sets"][name]["ms"]
        marks[TITLES[name]] = [
            Mark(taken[run][batch]["median"], 100 * means[run]["recall@5"], *about) for run, about in RANKINGS.items()
        ]
    title = "Recall@5 in percent, by milliseconds per question"
    return panels(title, f"ms per question, in batches of {batch}", ENDS, marks)


if __name__ == "__main__":
    PLOT.write_text(draw(), encoding="utf-8")
