"""Two plots as inline SVG: differences per query, and distributions of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT, MARGIN = 760, 150, 18


def difference_bars(differences: Sequence[tuple[str, float]]) -> str:
    """A bar for every query whose difference is not 0, the largest first; the query's id is its tooltip.

    Parameters
    ----------
    differences : sequence of (str, float)
        A query's id, and its value under a run minus that under the baseline.

    Returns
    -------
    str
        An ``<svg>`` element, classes ``won`` and ``lost``.

    Examples
    --------
    >>> from hopfuse.evaluate.svg import difference_bars
    >>> drawn = difference_bars([("q1", -0.5), ("q2", 1.0), ("q3", 0.0)])
    >>> drawn.count("<rect"), drawn.index("q2") < drawn.index("q1"), "q3" in drawn
    (2, True, False)
    """
    shown = sorted(((query, d) for query, d in differences if d != 0), key=lambda pair: -pair[1])
    top = max((d for _, d in shown if d > 0), default=0.0)
    bottom = max((-d for _, d in shown if d < 0), default=0.0)
    scale = (HEIGHT - 2 * MARGIN) / ((top + bottom) or 1.0)
    zero, step = MARGIN + top * scale, (WIDTH - 2 * MARGIN) / max(len(shown), 1)
    parts = [
        f'<rect class="{"won" if d > 0 else "lost"}" x="{MARGIN + at * step:.2f}" '
        f'y="{zero - max(d, 0) * scale:.2f}" width="{max(step * 0.9, 0.3):.2f}" height="{abs(d) * scale:.2f}">'
        f"<title>{escape(query)}: {d:+.3g}</title></rect>"
        for at, (query, d) in enumerate(shown)
    ]
    parts.append(f'<line class="axis" x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{zero:.2f}" y2="{zero:.2f}"/>')
    return _svg(parts, f"differences of {len(shown)} queries, from {-bottom:+.3g} to {top:+.3g}")


def histogram(series: Mapping[str, NDArray[np.float64]], *, bins: int = 40) -> str:
    """Outlines of the distributions of several series over one axis, each of area 1.

    Parameters
    ----------
    series : mapping of str to ndarray of float64
        Values by name; the i-th is drawn in class ``series<i>``. A series without values is left out.
    bins : int, at least 1

    Returns
    -------
    str
        An ``<svg>`` element with its legend.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.evaluate.svg import histogram
    >>> drawn = histogram({"gold": np.array([0.9, 0.8]), "other": np.array([0.1])})
    >>> drawn.count("<polyline"), "0.1" in drawn and "0.9" in drawn
    (2, True)
    """
    kept = {name: values for name, values in series.items() if values.size}
    everything = np.concatenate([*kept.values(), np.zeros(0)])
    if everything.size == 0:
        return _svg([], "no scores")
    low, high = float(everything.min()), float(everything.max())
    edges = np.linspace(low, high if high > low else low + 1, bins + 1)
    shares = {name: np.histogram(values, edges)[0] / values.size for name, values in kept.items()}
    peak = max(float(share.max()) for share in shares.values())
    bottom = HEIGHT - MARGIN
    parts = [f'<line class="axis" x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{bottom}" y2="{bottom}"/>']
    for at, name in enumerate(series):
        if name in shares:
            label = f"{name} ({kept[name].size:,})"
            parts.append(_outline(shares[name] / peak, at))
            parts.append(f'<text class="series{at}" x="{WIDTH - 190}" y="{MARGIN + 14 * at}">{escape(label)}</text>')
    for x, anchor, value in ((MARGIN, "start", edges[0]), (WIDTH - MARGIN, "end", edges[-1])):
        parts.append(f'<text x="{x}" y="{HEIGHT - 4}" text-anchor="{anchor}">{value:.3g}</text>')
    return _svg(parts, "score distributions: " + ", ".join(kept))


def _outline(heights: NDArray[np.float64], at: int) -> str:
    x = np.repeat(np.linspace(MARGIN, WIDTH - MARGIN, heights.size + 1), 2)
    y = np.concatenate([[0], np.repeat(heights, 2), [0]])
    bottom, tall = HEIGHT - MARGIN, HEIGHT - 2 * MARGIN
    points = " ".join(f"{a:.1f},{bottom - tall * b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    return f'<polyline class="series{at}" points="{points}"/>'


def _svg(parts: Sequence[str], label: str) -> str:
    inside = "".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{inside}</svg>'
