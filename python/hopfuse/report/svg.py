"""The style of all plots, and figures as inline SVG that takes its colours from the page.

Matplotlib is imported at the first plot; the extra ``report`` installs it.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar
from xml.etree import ElementTree

from ..errors import MissingExtraError
from .text import printable

P = ParamSpec("P")
R = TypeVar("R")

#: Colours of the plots, and their names in the page's style sheet.
INK, GRID, PAPER, LOST = "#1c1c1e", "#d0d0d1", "#fdfdfc", "#c0392b"
SERIES = ("#1f6fb2", "#b85c00", "#1d8a5f", "#8a4fb0", "#b3263e", "#6b6b6b")
WON = SERIES[2]
_CSS = {INK: "currentColor", GRID: "var(--rule)", PAPER: "var(--paper)", LOST: "var(--lost)"}
_CSS |= {colour: f"var(--c{at})" for at, colour in enumerate(SERIES)}
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "hopfuse",
    "text.parse_math": False,
    "font.size": 10,
    "font.sans-serif": ["DejaVu Sans"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "legend.frameon": False,
    "axes.titlesize": 10,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Draw with the common style, without warnings of missing glyphs: the browser has more fonts than Matplotlib."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            matplotlib = import_module("matplotlib")
        except ModuleNotFoundError as error:
            raise MissingExtraError("matplotlib", "report", "drawing plots") from error
        with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph")
            return draw(*args, **kwargs)

    return drawn


def new_figure(width: float, height: float) -> Any:
    figure = import_module("matplotlib.figure")
    return figure.Figure(figsize=(width / 72, height / 72), layout="constrained")


def new_axes(width: float, height: float) -> tuple[Any, Any]:
    figure = new_figure(width, height)
    return figure, figure.add_subplot()


def add_legend(figure: Any) -> None:
    """Put a legend above the plot, if any artist has a label."""
    handles, _ = figure.axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(loc="outside upper left", ncols=4, fontsize=9)


def as_svg(figure: Any, label: str, tips: Sequence[tuple[Any, str]] = ()) -> str:
    """Return a figure as an ``<svg>`` element with tooltips and the page's colours."""
    titles = {}
    for at, (artist, words) in enumerate(tips):
        artist.set_gid(f"tip{at}")
        titles[f"tip{at}"] = printable(words)
    drawn = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(drawn, format="svg", transparent=True, metadata=nothing)
    root = ElementTree.fromstring(drawn.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in (
                "metadata",
                "clipPath",
                "style",
            ):  # a style would apply to the whole page
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        given = {name.replace("{http://www.w3.org/1999/xlink}", "xlink:"): v for name, v in element.attrib.items()}
        element.attrib.clear()
        element.attrib.update({name: v for name, v in given.items() if name not in ("clip-path", "version")})
        if "style" in given:
            element.set("style", _themed(given["style"]))
        if given.get("id") in titles:
            title = ElementTree.Element("title")
            title.text = titles[given["id"]]
            element.insert(0, title)
    used = {element.get("xlink:href", "")[1:] for element in root.iter()}
    for element in root.iter():
        if element.get("id") not in (None, *used):
            del element.attrib["id"]
    for name in ("width", "height"):
        del root.attrib[name]
    root.attrib.update({"role": "img", "aria-label": printable(label)})
    return ElementTree.tostring(root, encoding="unicode")


def _themed(style: str) -> str:
    for colour, name in _CSS.items():
        style = style.replace(colour, name)
    return style
