"""Draw docs/quality-and-time.svg: recall@5 beside milliseconds per question, from the result files.

``python docs/plot.py`` writes it; tests/test_figures.py fails if that changes the file. Each ranking has a shape of its
own and its name beside it, so the plot does without colours; they follow the reader's light or dark scheme.
"""

from __future__ import annotations

from math import ceil, floor, log10
from pathlib import Path

from figures import content

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "quality-and-time.svg"
TIMES = ROOT / "experiments" / "results" / "times.json"
QUALITY = ROOT / "experiments" / "results" / "side-by-side.json"
PANELS = {
    "hotpotqa": ("folder", "hotpotqa: several hops, graph of names"),
    "debian-whole": ("words", "debian-whole: one section, graph of words"),
}
#: The rankings of the plot: their names, shapes, whether they walk, and on which side the name stands.
RANKINGS = {
    "dense": ("dense", "circle", False, "below"),
    "words": ("BM25", "cross", False, "below"),
    "plain-hybrid": ("plain hybrid", "square", False, "above"),
    "hybrid-rrf": ("HybridRRF", "triangle", True, "above"),
    "phase-graph+words": ("PhaseGraph", "diamond", True, "below"),
    "guided-walk+words": ("GuidedWalk", "star", True, "right"),
}
SIDES = {"below": (0, 20, "middle"), "above": (0, -11, "middle"), "right": (12, 4, "start")}
LEAST, MOST = 60, 100  # percent, of both panels
STYLE = """<style>
.paper { fill: #fff } .ink { fill: #1f2328 } .pale { fill: #59636e } .grid { stroke: #d1d9e0 }
.walk { fill: #0550ae } .plain { fill: #9a4b00 } text { font: 12px system-ui, sans-serif } .title { font-weight: 600 }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117 } .ink { fill: #f0f6fc } .pale { fill: #9198a1 } .grid { stroke: #3d444d }
.walk { fill: #79b8ff } .plain { fill: #f0a35e }
}
</style>"""
SHAPES = {
    "circle": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
    "cross": "M-6 -3L-3 -6L0 -3L3 -6L6 -3L3 0L6 3L3 6L0 3L-3 6L-6 3L-3 0z",
    "square": "M-5 -5H5V5H-5z",
    "triangle": "M0 -6L6 5H-6z",
    "diamond": "M0 -7L6 0L0 7L-6 0z",
    "star": "M0 -8L2 -3L8 -2L4 2L5 8L0 5L-5 8L-4 2L-8 -2L-2 -3z",
}
WIDTH, HEIGHT, TOP, BOTTOM, PANEL = 880, 340, 58, 286, 410


def draw() -> str:
    """Return the plot as SVG; the same files give the same text."""
    times = content(TIMES)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img">'
    title = "Recall@5 and milliseconds per question of each ranking"
    body = [head, f"<title>{title}</title>", STYLE, f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="6"/>']
    body.append(_text(16, 24, f"recall@5 (%) by ms per question, {times['batch']} in a batch", "ink title"))
    for at, (name, (graph, label)) in enumerate(PANELS.items()):
        means = content(QUALITY)[name][graph]["means"]
        taken = times["sets"][name]["ms"]
        points = {run: (taken[run][str(times["batch"])]["median"], 100 * means[run]["recall@5"]) for run in RANKINGS}
        body += _panel(50 + at * (PANEL + 10), label, points)
    return "\n".join([*body, "</svg>"]) + "\n"


def _panel(left: int, label: str, points: dict[str, tuple[float, float]]) -> list[str]:
    right = left + PANEL - 60
    xs, ys = zip(*points.values(), strict=True)
    low, high = floor(log10(min(xs))), ceil(log10(max(xs)))
    if not LEAST <= min(ys) <= max(ys) <= MOST:
        raise ValueError(f"{label}: {min(ys):.1f} to {max(ys):.1f} % is outside the plot")

    def across(value: float) -> float:
        return left + (log10(value) - low) / (high - low) * (right - left)

    def up(value: float) -> float:
        return BOTTOM - (value - LEAST) / (MOST - LEAST) * (BOTTOM - TOP)

    made = [_text(left, TOP - 12, label, "ink")]
    for power in range(low, high + 1):
        x = across(10.0**power)
        made += [_line(x, TOP, x, BOTTOM), _text(x, BOTTOM + 18, f"{10.0**power:g} ms", "pale", "middle")]
    for tick in range(LEAST, MOST + 1, 10):
        made += [_line(left, up(tick), right, up(tick)), _text(left - 8, up(tick) + 4, f"{tick}", "pale", "end")]
    for run, (x, y) in points.items():
        name, shape, walks, side = RANKINGS[run]
        kind = "walk" if walks else "plain"
        beside = SIDES[side]
        made.append(f'<path class="{kind}" transform="translate({across(x):.1f} {up(y):.1f})" d="{SHAPES[shape]}"/>')
        made.append(_text(across(x) + beside[0], up(y) + beside[1], name, "ink", beside[2]))
    return made


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="grid" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


if __name__ == "__main__":
    OUT.write_text(draw(), encoding="utf-8")
