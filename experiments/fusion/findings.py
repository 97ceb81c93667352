"""Summarise the comparisons of a question in a few sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .design import CHOSEN_BY, SIGNIFICANCE

Compared = Mapping[str, Any]
NAMED = 3  # maximum number of pairs to name; more are counted


def finding(answer: Mapping[str, Any]) -> str:
    """Return which pairs differ significantly and by how much, which do not, and what was detectable for those."""
    pairs: dict[tuple[str, str], list[Compared]] = {}
    for c in answer["comparisons"]:
        pairs.setdefault((c["first"], c["second"]), []).append(c)
    differ = {pair: [c for c in found if c["p_holm"] < SIGNIFICANCE] for pair, found in pairs.items()}
    sentences = [sentence for pair, found in differ.items() for sentence in _differences(*pair, found)]
    if sentences:
        some = {c["folder"] for found in differ.values() for c in found}
        sentences += [
            f"On {f} no pair differs significantly"
            for f in dict.fromkeys(c["folder"] for c in answer["comparisons"])
            if f not in some
        ]
    others = [pair for pair, found in differ.items() if not found]
    if others:
        sentences.append(_not_significant(others, len(pairs)) + _detectable(c for pair in others for c in pairs[pair]))
    sentences += _at_edges(answer["arms"])
    return ". ".join(sentences) + "."


def _differences(first: str, second: str, differ: Sequence[Compared]) -> list[str]:
    sentences = []
    for word, sign in (("better", 1), ("worse", -1)):
        where = [
            f"{c['folder']} {c['metric']} {100 * c['difference']:+.1f}" for c in differ if c["difference"] * sign > 0
        ]
        if where:
            sentences.append(f"`{first}` is {word} than `{second}`: {', '.join(where)}")
    return sentences


def _not_significant(others: Sequence[tuple[str, str]], pairs: int) -> str:
    if len(others) > NAMED:
        return f"{len(others)} of {pairs} pairs do not differ significantly"
    return ", ".join(f"`{first}` and `{second}`" for first, second in others) + " do not differ significantly"


def _detectable(others: Iterable[Compared]) -> str:
    """Return the largest detectable difference in the metric of choice, by folder."""
    largest: dict[str, float] = {}
    for c in others:
        if c["metric"] == CHOSEN_BY and c["detects"] is not None:
            largest[c["folder"]] = max(c["detects"], largest.get(c["folder"], 0.0))
    if not largest:
        return ""
    points = " and ".join(f"{100 * value:.1f} ({folder})" for folder, value in largest.items())
    return f"; a true difference in {CHOSEN_BY} of {points} points would probably have been detected for each of them"


def _at_edges(arms: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the arms whose choice is at an edge of their grid, where finer or further steps may be better."""
    found: dict[str, list[str]] = {}
    for name, folders in arms.items():
        for folder, reached in folders.items():
            if reached["edges"]:
                listed = ", ".join(option.replace("rank_constant", "k") for option in reached["edges"])
                found.setdefault(folder, []).append(f"`{name}` ({listed})")
    if not found:
        return []
    where = "; ".join(f"{folder} {', '.join(names)}" for folder, names in found.items())
    return [f"Choices at the edge of a grid, where finer or further steps may be better: {where}"]
