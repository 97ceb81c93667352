"""Axes of a plot: where a value lies, and the ticks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

#: Width of a character of the plots' font, for the places of labels; rather too wide than too narrow.
CHARACTER = 6.6


@dataclass(frozen=True)
class Axes:
    """A rectangle of the picture, and the values at its borders.

    Attributes
    ----------
    left, right, top, bottom : float
        In the picture's units; top < bottom.
    x, y : (float, float)
        The values at the left and right, and at the bottom and top; :func:`widened` where they are equal.
    log_x : bool
        x is drawn by its logarithm.

    Examples
    --------
    >>> axes = Axes(10, 110, 0, 50, x=(0.0, 1.0), y=(0.0, 2.0))
    >>> axes.place_x(0.5), axes.place_y(2.0)
    (60.0, 0.0)
    """

    left: float
    right: float
    top: float
    bottom: float
    x: tuple[float, float]
    y: tuple[float, float]
    log_x: bool = False

    def place_x(self, value: float) -> float:
        """Where a value of x lies."""
        low, high, at = (log10(v) if self.log_x else v for v in (*widened(*self.x), value))
        return self.left + (self.right - self.left) * (at - low) / (high - low)

    def place_y(self, value: float) -> float:
        """Where a value of y lies."""
        low, high = widened(*self.y)
        return self.bottom - (self.bottom - self.top) * (value - low) / (high - low)

    def drawn(self, x_label: str, y_label: str, x_ticks: Sequence[float], y_ticks: Sequence[float]) -> str:
        """Grid lines at the ticks of y, the axis of x, tick labels, and what the axes are."""
        parts = []
        for value in y_ticks:
            y = self.place_y(value)
            parts.append(f'<line class="grid" x1="{self.left}" x2="{self.right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(text(self.left - 5, y + 4, f"{value:.6g}", "end"))
        parts.append(f'<line class="axis" x1="{self.left}" x2="{self.right}" y1="{self.bottom}" y2="{self.bottom}"/>')
        for value in x_ticks:
            x = self.place_x(value)
            parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{self.bottom}" y2="{self.bottom + 4}"/>')
            parts.append(text(x, self.bottom + 16, f"{value:.6g}", "middle"))
        parts.append(text((self.left + self.right) / 2, self.bottom + 32, x_label, "middle"))
        parts.append(text(self.left - 5, self.top - 8, y_label, "start"))
        return "".join(parts)


def widened(low: float, high: float) -> tuple[float, float]:
    """The ends of an axis; where they are equal, or as good as equal in float64, the upper one is moved up.

    Examples
    --------
    >>> widened(0.0, 0.5), widened(3.0, 3.0), widened(1e17, 1e17 + 1)
    ((0.0, 0.5), (3.0, 4.0), (1e+17, 1.01e+17))
    """
    size = max(abs(low), abs(high))
    return (low, high) if high - low > max(1e-12 * size, 1e-300) else (low, low + max(1.0, 0.01 * size))


def text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    """A label; ``words`` are escaped."""
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def nice_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between two values, at most ``most`` and mostly three or more.

    Examples
    --------
    >>> nice_ticks(0.0, 1.0), nice_ticks(71.3, 88.2)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [75.0, 80.0, 85.0])
    """
    low, high = widened(low, high)
    span = high - low
    power = 10.0 ** floor(log10(span / most))
    step = next(power * m for m in (1, 2, 5, 10, 20) if floor(high / (power * m)) - ceil(low / (power * m)) < most)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(at * step, 12) for at in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between two values above 0.

    Examples
    --------
    >>> log_ticks(5, 200)
    [5.0, 10.0, 20.0, 50.0, 100.0, 200.0]
    """
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    return [v for p in powers for m in (1, 2, 5) if low <= (v := float(f"{m}e{p}")) <= high]


def legend(names: Iterable[str], left: float, right: float, top: float) -> tuple[str, float]:
    """Names with their colours, in as many rows as they need; and the y below them.

    Examples
    --------
    >>> drawn, below = legend(["a", "b"], 0, 100, 0)
    >>> drawn.count("<text"), below
    (2, 16)
    """
    parts, x, y = [], left, top + 12
    for at, name in enumerate(names):
        wide = 32 + CHARACTER * len(name)
        if x > left and x + wide > right:
            x, y = left, y + 16
        parts.append(f'<rect class="fill series{at}" x="{x:.1f}" y="{y - 8:.1f}" width="10" height="8"/>')
        parts.append(text(x + 14, y, name))
        x += wide
    return "".join(parts), y + 4


def svg(parts: Iterable[str], label: str, width: int, height: float) -> str:
    """The picture, with what it shows for those who cannot see it."""
    return f'<svg viewBox="0 0 {width} {height:g}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
