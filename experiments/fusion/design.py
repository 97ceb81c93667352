"""The design of a study: arms, their options chosen on the tune half, and pairs compared on the test half."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.evaluate import (
    Comparison,
    compare,
    detectable_difference,
    detectable_mean_difference,
    holm,
    parse_metric,
    summarise,
)

from ..record import comparison_row
from .legs import Legs

METRICS = ("ndcg@10", "recall@5", "full_support@10")
CHOSEN_BY = METRICS[0]
K = 10
SIGNIFICANCE = 0.05
POWER = 0.8

Options = Mapping[str, Any]
Halves = tuple[Legs, Legs]


@dataclass(frozen=True)
class Arm:
    """A ranking method with options to choose from.

    Attributes
    ----------
    name : str
    run : callable (Legs, Options) -> Hits
        Returns at least K hits per question.
    grid : sequence of Options
        Options to choose from on the tune half; with one entry, nothing is chosen.
    """

    name: str
    run: Callable[[Legs, Options], hf.Hits]
    grid: Sequence[Options] = ({},)


@dataclass(frozen=True)
class Question:
    """A research question, its arms, and the pairs of arms that answer it.

    Attributes
    ----------
    key, title, about : str
    arms : tuple of Arm
    pairs : tuple of (str, str)
        Names of arms: the first is compared with the second.
    metrics : tuple of str
    """

    key: str
    title: str
    about: str
    arms: tuple[Arm, ...]
    pairs: tuple[tuple[str, str], ...]
    metrics: tuple[str, ...] = METRICS


def ratios(lists: int, halvings: int) -> list[Options]:
    """Return weights of lists, normalised to 1: each is 0 or the largest, halved at most ``halvings`` times.

    Examples
    --------
    >>> [options["weights"] for options in ratios(2, 0)]
    [(0.0, 1.0), (1.0, 0.0), (0.5, 0.5)]
    """
    parts = (0.0, *(2.0**-n for n in range(halvings + 1)))
    rows = (row for row in product(parts, repeat=lists) if max(row) == 1.0)
    return [{"weights": tuple(part / sum(row) for part in row)} for row in rows]


def grid(**values: Sequence[Any]) -> list[Options]:
    """Return every combination, the last option varying fastest.

    Examples
    --------
    >>> grid(a=[1, 2], b=[3])
    [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}]
    """
    return [dict(zip(values, row, strict=True)) for row in product(*values.values())]


#: The bounds of options, beyond which there is nothing to try.
ENDS = {"blend": (0.0, 1.0)}


def edges(arm: Arm, chosen: Options) -> list[str]:
    """Return the options whose chosen value is at an edge of the grid, beyond which values may be better.

    For weights, the smallest positive weight counts.

    Examples
    --------
    >>> edges(Arm("k", lambda legs, _: None, grid(k=(1, 2, 3), b=(0, 1))), {"k": 3, "b": 1})
    ['k']
    """
    found = []
    for name, value in chosen.items():
        if name == "weights":
            smallest, tried = _smallest_ratio(value), min(_smallest_ratio(options[name]) for options in arm.grid)
            at_edge = smallest == tried < 1.0
        elif isinstance(value, int | float):
            tried = sorted({options[name] for options in arm.grid if not isinstance(options[name], str)})
            at_edge = len(tried) > 2 and value in (tried[0], tried[-1]) and value not in ENDS.get(name, ())
        else:
            at_edge = False
        if at_edge and len(arm.grid) > 1:
            found.append(name)
    return found


def _smallest_ratio(weights: Sequence[float]) -> float:
    """Return the smallest positive weight, relative to the largest."""
    return round(min(weight for weight in weights if weight > 0.0) / max(weights), 9)


def answer(question: Question, folders: Mapping[str, Halves]) -> dict[str, Any]:
    """Return the choice and the results of each arm, and the comparisons of all pairs, for JSON.

    Holm's correction is over all comparisons of the question: its pairs, metrics and folders.
    """
    arms: dict[str, dict[str, Any]] = {arm.name: {} for arm in question.arms}
    found: list[dict[str, Any]] = []
    compared: list[Comparison] = []
    for folder, (tune, test) in folders.items():
        values = {}
        for arm in question.arms:
            chosen, reached = _choose(arm, tune)
            hits = arm.run(test, chosen)
            values[arm.name] = {m: parse_metric(m).per_query(hits, test.qrels) for m in question.metrics}
            rows = values[arm.name].items()
            means = {m: summarise(row, binary=parse_metric(m).binary).to_dict() for m, row in rows}
            how = {"chosen": dict(chosen), "tried": len(arm.grid), "edges": edges(arm, chosen), "tune": reached}
            arms[arm.name][folder] = {**how, "test": means}
        for (first, second), metric in product(question.pairs, question.metrics):
            binary = parse_metric(metric).binary
            compared.append(compare(values[first][metric], values[second][metric], binary=binary))
            found.append({"first": first, "second": second, "folder": folder, "metric": metric})
    adjusted = holm([c.p_value for c in compared]) if compared else []
    for row, c, p in zip(found, compared, adjusted, strict=True):
        row |= _numbers(c, len(compared)) | {"p_holm": float(p)}
    return {
        "key": question.key,
        "title": question.title,
        "about": question.about,
        "metrics": list(question.metrics),
        "arms": arms,
        "comparisons": found,
    }


def _choose(arm: Arm, tune: Legs) -> tuple[Options, float | None]:
    """Return the first of the best options on the tune half, and their metric there."""
    if len(arm.grid) == 1:
        return arm.grid[0], None
    metric = parse_metric(CHOSEN_BY)
    means = [float(np.nanmean(metric.per_query(arm.run(tune, options), tune.qrels))) for options in arm.grid]
    best = max(range(len(means)), key=lambda at: means[at])
    return arm.grid[best], means[best]


def _numbers(c: Comparison, tests: int) -> dict[str, Any]:
    """Return a comparison for JSON, with the difference detectable at the level of Holm's first step."""
    level = {"power": POWER, "significance": SIGNIFICANCE / tests}
    if c.wins + c.losses == 0:
        detects = None
    elif c.both is None:
        detects = detectable_mean_difference(c.n, c.deviation, **level)
    else:
        detects = detectable_difference(c.n, (c.wins + c.losses) / c.n, **level)
    return {"n": c.n, **comparison_row(c), "detects": detects}
