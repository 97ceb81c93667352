"""What a question's comparisons show, in a sentence or two made of the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .design import CHOSEN_BY, SIGNIFICANCE

Compared = Mapping[str, Any]
NAMED = 3  # so many pairs are named, more are counted


def finding(answer: Mapping[str, Any]) -> str:
    """Which pairs are shown to differ, where and by how much; which are not, and what they would have shown."""
    pairs: dict[tuple[str, str], list[Compared]] = {}
    for c in answer["comparisons"]:
        pairs.setdefault((c["first"], c["second"]), []).append(c)
    differ = {pair: [c for c in found if c["p_holm"] < SIGNIFICANCE] for pair, found in pairs.items()}
    said = [sentence for pair, found in differ.items() for sentence in _said(*pair, found)]
    if said:
        some = {c["folder"] for found in differ.values() for c in found}
        said += [
            f"On {f} no pair is shown to differ"
            for f in dict.fromkeys(c["folder"] for c in answer["comparisons"])
            if f not in some
        ]
    quiet = [pair for pair, found in differ.items() if not found]
    if quiet:
        said.append(_not_shown(quiet, len(pairs)) + _unseen(c for pair in quiet for c in pairs[pair]))
    said += _at_edges(answer["arms"])
    return ". ".join(said) + "."


def _said(first: str, second: str, differ: Sequence[Compared]) -> list[str]:
    sentences = []
    for word, sign in (("better", 1), ("worse", -1)):
        where = [
            f"{c['folder']} {c['metric']} {100 * c['difference']:+.1f}" for c in differ if c["difference"] * sign > 0
        ]
        if where:
            sentences.append(f"`{first}` is {word} than `{second}`: {', '.join(where)}")
    return sentences


def _not_shown(quiet: Sequence[tuple[str, str]], pairs: int) -> str:
    if len(quiet) > NAMED:
        return f"{len(quiet)} of {pairs} pairs are not shown to differ"
    return ", ".join(f"`{first}` and `{second}`" for first, second in quiet) + " are not shown to differ"


def _unseen(quiet: Iterable[Compared]) -> str:
    """The largest of the differences that would probably have been shown, by folder, in the metric chosen by."""
    largest: dict[str, float] = {}
    for c in quiet:
        if c["metric"] == CHOSEN_BY and c["detects"] is not None:
            largest[c["folder"]] = max(c["detects"], largest.get(c["folder"], 0.0))
    if not largest:
        return ""
    points = " and ".join(f"{100 * value:.1f} ({folder})" for folder, value in largest.items())
    return f"; a true difference in {CHOSEN_BY} of {points} points would probably have been shown for each of them"


def _at_edges(arms: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The arms whose choice is the last step of its grid: finer or further ones may serve them better."""
    found: dict[str, list[str]] = {}
    for name, folders in arms.items():
        for folder, reached in folders.items():
            if reached["edges"]:
                listed = ", ".join(option.replace("rank_constant", "k") for option in reached["edges"])
                found.setdefault(folder, []).append(f"`{name}` ({listed})")
    if not found:
        return []
    where = "; ".join(f"{folder} {', '.join(names)}" for folder, names in found.items())
    return [f"Chosen at the edge of their grid, so that finer or further steps may serve them better: {where}"]
