"""The bars: limits of figures that the server should meet, and the results of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Figures = Mapping[str, Any]


@dataclass(frozen=True)
class Bar:
    """A limit of a figure.

    Attributes
    ----------
    says : str
    measure : str
        Which measurement has the figure.
    value : callable
        The figure of that measurement's figures.
    limit : float
    least : bool
        The limit is the least that is enough; else the most.
    unit : str
        Behind the figure: ``"%"`` shows shares as such, ``"ms"`` seconds as such.
    """

    says: str
    measure: str
    value: Callable[[Figures], float | None]
    limit: float
    least: bool = False
    unit: str = ""

    def met(self, value: float | None) -> bool:
        """Return whether a figure is within the limit."""
        return value is not None and (value >= self.limit if self.least else value <= self.limit)

    def shown(self, value: float | None) -> str:
        """Return a figure in the bar's unit.

        Examples
        --------
        >>> Bar("", "", float, 0.75, unit="%").shown(0.812), Bar("", "", float, 0.02, unit="ms").shown(0.0034)
        ('81.2 %', '3.4 ms')
        """
        if value is None:
            return "never"
        if self.unit == "%":
            return f"{100 * value:.1f} %"
        return f"{1000 * value if self.unit == 'ms' else value:.3g} {self.unit}".strip()


def _refused_otherwise(figures: Figures) -> float:
    return sum(count for status, count in figures["statuses"].items() if status not in ("200", "429", "504"))


BARS = (
    Bar("JSON at saturation, of the library", "throughput", lambda f: f["json"]["of_library"], 0.75, True, "%"),
    Bar(
        "Arrow, 64 queries a request, of the library", "throughput", lambda f: f["arrow"]["of_library"], 0.9, True, "%"
    ),
    Bar(
        "JSON, in terms of FastAPI one at a time", "throughput", lambda f: f["fastapi"]["json_of_it"], 4, True, "times"
    ),
    Bar("one caller's p50 beyond the library's call", "one caller", lambda f: f["extra"], 0.0015, unit="ms"),
    Bar(
        "p50 at half of saturation, of the library's call",
        "open loop",
        lambda f: f["latency"]["p50"] / f["library_p50"],
        3,
        unit="times",
    ),
    Bar(
        "p99 at half of saturation, of the library's call",
        "open loop",
        lambda f: f["latency"]["p99"] / f["library_p50"],
        8,
        unit="times",
    ),
    Bar("p99 at half of saturation", "open loop", lambda f: f["latency"]["p99"], 0.05, unit="ms"),
    Bar("goodput under overload, of saturation", "overload", lambda f: f["of_saturation"], 0.9, True, "%"),
    Bar("answers but 200, 429 and 504 under overload", "overload", _refused_otherwise, 0),
    Bar(
        "growth of memory under overload",
        "overload",
        lambda f: f["memory"]["end"] - f["memory"]["warm"],
        5,
        unit="MiB",
    ),
    Bar("/health/live's p99 under overload", "overload", lambda f: f["health"]["p99"], 0.02, unit="ms"),
    Bar("recovery after overload", "overload", lambda f: f["recovery"], 2, unit="s"),
    Bar("CPU of a refusal", "without search", lambda f: f["refused"]["cpu"], 0.00015, unit="ms"),
    Bar(
        "CPU of a request without search",
        "without search",
        lambda f: f["answered"]["server_cpu_per_query"],
        0.00035,
        unit="ms",
    ),
    Bar("requests that failed while the index was changed", "reload", lambda f: f["failed"], 0),
    Bar("growth of memory over very many requests", "very many", lambda f: f["growth"]["memory"], 5, unit="MiB"),
    Bar("growth of descriptors over very many requests", "very many", lambda f: f["growth"]["descriptors"], 0),
    Bar("growth of threads over very many requests", "very many", lambda f: f["growth"]["threads"], 0),
)


def judged(measure: str, figures: Figures) -> list[dict[str, Any]]:
    """Return the results of a measurement for its bars, without those whose figures are absent."""
    found = []
    for bar in BARS:
        if bar.measure == measure:
            try:
                value = bar.value(figures)
            except (KeyError, TypeError):
                continue
            about = {"value": value, "limit": bar.limit, "met": bar.met(value), "says": bar.says}
            found.append(about)
    return found
