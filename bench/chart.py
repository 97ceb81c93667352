"""Charts as SVG files, by plain text: the same values give the same bytes, without a plotting library.

Colours follow the reader's light or dark scheme. A chart paints its own background, so its text is legible either way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor, log10
from typing import NamedTuple
from xml.sax.saxutils import escape

from .text import times

Point = tuple[float, float]

WIDTH, MARGIN, LINE = 760, 16, 26
STYLE = """<style>
.paper { fill: #ffffff; } .ink { fill: #1f2328; } .pale { fill: #59636e; } .grid { stroke: #d1d9e0; }
.c0 { fill: #0969da; stroke: #0969da; } .c1 { fill: #bc4c00; stroke: #bc4c00; } .c2 { fill: #1a7f37; stroke: #1a7f37; }
.c3 { fill: #8250df; stroke: #8250df; }
.one { stroke: #59636e; stroke-dasharray: 4 3; } .line { fill: none; stroke-width: 2; }
text { font: 13px system-ui, sans-serif; stroke: none; } .title { font-weight: 600; }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; } .ink { fill: #f0f6fc; } .pale { fill: #9198a1; } .grid { stroke: #3d444d; }
.c0 { fill: #4493f8; stroke: #4493f8; } .c1 { fill: #f0883e; stroke: #f0883e; } .c2 { fill: #3fb950; stroke: #3fb950; }
.c3 { fill: #ab7df8; stroke: #ab7df8; } .one { stroke: #9198a1; } .line { fill: none; }
}
</style>"""


class Scale:
    """A logarithmic axis from ``low`` to ``high``, at ``start`` to ``end`` in pixels."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self.low, self.high = floor(log10(min(values))), max(ceil(log10(max(values))), floor(log10(min(values))) + 1)
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        share = (log10(value) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def bars(title: str, values: Mapping[str, float]) -> str:
    """Return a horizontal bar for each value, with a mark at 1."""
    left, height = 330, 2 * MARGIN + LINE * (len(values) + 2)
    scale = Scale([1.0, *values.values()], left, WIDTH - 70)
    bottom = height - MARGIN - 18
    body = [_grid(scale(tick), 2 * LINE, scale(tick), bottom) for tick in scale.ticks()]
    body += [_text(scale(tick), bottom + 16, f"{tick:g}×", "pale", "middle") for tick in scale.ticks()]
    for at, (name, value) in enumerate(values.items()):
        y, begin, end = 2 * LINE + LINE * at, min(scale(1.0), scale(value)), max(scale(1.0), scale(value))
        body.append(_text(left - 10, y + 15, name, "ink", "end"))
        shade = "c0" if value >= 1.0 else "c1"
        body.append(f'<rect class="{shade}" x="{begin}" y="{y + 3}" width="{max(1.0, end - begin):.1f}" height="16"/>')
        body.append(_text(end + 6, y + 15, times(value), "ink"))
    body.append(f'<path class="one" d="M{scale(1.0)} {2 * LINE}V{bottom}"/>')
    return _document(title, height, body)


def lines(title: str, across: str, up: str, series: Mapping[str, Sequence[Point]]) -> str:
    """Return a line with markers for each series, both axes logarithmic."""
    height, left, right = 400, 80, WIDTH - 150
    xs, ys = ([point[axis] for points in series.values() for point in points] for axis in (0, 1))
    x, y = Scale(xs, left, right), Scale(ys, height - 60, 2 * LINE + 18)
    body = list(_axes(x, y, across, up, height))
    for at, (name, points) in enumerate(series.items()):
        places = [(x(a), y(b)) for a, b in points]
        path = "M" + "L".join(f"{a} {b}" for a, b in places)
        body.append(f'<path class="c{at} line" style="fill: none" d="{path}"/>')
        body += [f'<circle class="c{at}" cx="{a}" cy="{b}" r="3.5"/>' for a, b in places]
        body.append(_text(places[-1][0] + 10, places[-1][1] + 4, name, "ink"))
    return _document(title, height, body)


class Mark(NamedTuple):
    """A point with a shape of its own and its name beside it, so that it needs no colour."""

    x: float
    y: float
    name: str
    shape: str
    side: str
    shade: int = 0


SHAPES = {
    "circle": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
    "cross": "M-6 -3L-3 -6L0 -3L3 -6L6 -3L3 0L6 3L3 6L0 3L-3 6L-6 3L-3 0z",
    "square": "M-5 -5H5V5H-5z",
    "triangle": "M0 -6L6 5H-6z",
    "diamond": "M0 -7L6 0L0 7L-6 0z",
    "star": "M0 -8L2 -3L8 -2L4 2L5 8L0 5L-5 8L-4 2L-8 -2L-2 -3z",
}
#: Where a name stands beside its mark: right by, down by, anchor.
SIDES = {
    "left": (-12, 5, "end"),
    "right": (12, 5, "start"),
    "below": (0, 21, "middle"),
    "above left": (8, -11, "end"),
    "below right": (-8, 21, "start"),
}


def panels(title: str, across: str, ends: tuple[int, int], marks: Mapping[str, Sequence[Mark]]) -> str:
    """Return a panel of marks for each name, side by side: x logarithmic, y from and to the same ends, by tens."""
    height, step = 340, WIDTH // len(marks)
    top, bottom = 2 * LINE + 26, height - 58
    body = []
    for at, (name, points) in enumerate(marks.items()):
        if not all(ends[0] <= mark.y <= ends[1] for mark in points):
            raise ValueError(f"{name}: a mark is not within {ends[0]} and {ends[1]}")
        left, right = at * step + 46, (at + 1) * step - 46
        x = Scale([mark.x for mark in points], left, right)
        body.append(_text(left, top - 14, name, "ink"))
        for tick in x.ticks():
            body += [_grid(x(tick), top, x(tick), bottom), _text(x(tick), bottom + 18, f"{tick:g}", "pale", "middle")]
        for level in range(ends[0], ends[1] + 1, 10):
            y = _level(level, ends, bottom, top)
            body += [_grid(left, y, right, y), _text(left - 8, y + 4, str(level), "pale", "end")]
        body.append(_text((left + right) / 2, height - MARGIN, across, "pale", "middle"))
        for mark in points:
            right_by, down_by, anchor = SIDES[mark.side]
            here = x(mark.x), _level(mark.y, ends, bottom, top)
            place = f'transform="translate({here[0]:g} {here[1]:g})"'
            body.append(f'<path class="c{mark.shade}" {place} d="{SHAPES[mark.shape]}"/>')
            body.append(_text(here[0] + right_by, here[1] + down_by, mark.name, "ink", anchor))
    return _document(title, height, body)


def _level(value: float, ends: tuple[int, int], bottom: float, top: float) -> float:
    return round(bottom - (value - ends[0]) / (ends[1] - ends[0]) * (bottom - top), 1)


def _axes(x: Scale, y: Scale, across: str, up: str, height: int) -> Iterator[str]:
    for tick in x.ticks():
        yield _grid(x(tick), y.end, x(tick), y.start)
        yield _text(x(tick), y.start + 18, f"{tick:g}", "pale", "middle")
    for tick in y.ticks():
        yield _grid(x.start, y(tick), x.end, y(tick))
        yield _text(x.start - 8, y(tick) + 4, f"{tick:g}", "pale", "end")
    yield _text((x.start + x.end) / 2, height - MARGIN, across, "pale", "middle")
    yield _text(MARGIN, 2 * LINE + 2, up, "pale")


def _grid(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="grid" d="M{x1} {y1}L{x2} {y2}"/>'


def _text(x: float, y: float, text: str, shade: str, anchor: str = "start") -> str:
    return f'<text class="{shade}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def _document(title: str, height: int, body: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">'
    paper = f'<rect class="paper" width="{WIDTH}" height="{height}" rx="6"/>'
    named = f'<text class="ink title" x="{MARGIN}" y="{MARGIN + 12}">{escape(title)}</text>'
    return "\n".join([head, f"<title>{escape(title)}</title>", STYLE, paper, named, *body, "</svg>"]) + "\n"
