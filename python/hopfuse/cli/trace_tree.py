"""One traced query as a tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.tree import Tree

#: What a method may make of a list's scores, and how it is written.
_SCALES = {"percentile": ".2f", "calibrated": ".4g", "probability": ".4f", "share": ".4f"}


def trace_tree(question: str, trace: Mapping[str, Any], show: int) -> Tree:
    """Seeds, each leg's list and the fused hits of a query, at most ``show`` lines of each.

    Parameters
    ----------
    question : str
    trace : mapping
        One of :attr:`hopfuse.recipes.PhaseGraphResult.traces`.
    show : int
    """
    tree = Tree(f"[bold]{escape(question)}[/bold]")
    seeds = tree.add("Seeds: entities that the question names")
    for seed in trace["seeds"]:
        seeds.add(seed_line(seed))
    if not trace["seeds"]:
        seeds.add("none: the graph list is empty")
    for leg in trace["temperatures"]:
        _leg(tree, leg, trace, show)
    hits = tree.add(f"Fused: the first {min(show, len(trace['hits']))}")
    for rank, hit in enumerate(trace["hits"][:show], 1):
        hits.add(f"{rank}. [bold]{escape(hit['title'] or hit['id'])}[/bold]  {hit['score']:.4f}{_parts(hit)}")
    return tree


def _parts(hit: Mapping[str, Any]) -> str:
    """What a score is the sum of; where it is none, or was changed by reranking, the ranks that it comes of."""
    if "fused" in hit:
        return f" after reranking; fused {hit['fused']['score']:.4f}, rank {hit['fused']['rank']}"
    if "contributions" not in hit:
        return f" of {', '.join(f'{leg} (rank {rank})' for leg, rank in hit['ranks'].items())}"
    bonus = f" + consensus {hit['consensus']:.4f}" if hit["consensus"] else ""
    return " = " + " + ".join(f"{leg} {share:.4f}" for leg, share in hit["contributions"].items()) + bonus


def seed_line(seed: Mapping[str, Any]) -> str:
    """An entity that a walk starts from, and why."""
    name = f"[bold]{escape(seed['name'])}[/bold]"
    asked = "" if seed["surface"] == seed["name"] else f", asked for as {escape(repr(seed['surface']))}"
    return f"{name} ({seed['match']}{asked}): in {seed['passage_frequency']} passages, weight {seed['weight']:.3g}"


def _leg(tree: Tree, leg: str, trace: Mapping[str, Any], show: int) -> None:
    pool, temperature = trace[leg], trace["temperatures"][leg]
    heat = "" if temperature is None else f", temperature {temperature:.3f}"
    branch = tree.add(f"{leg.capitalize()} list of {len(pool)}{heat}")
    for row in pool[:show]:
        scaled = "".join(f", {name} {row[name]:{form}}" for name, form in _SCALES.items() if name in row)
        branch.add(f"{row['rank']}. {escape(row['title'] or str(row['passage']))}  score {row['score']:.4g}{scaled}")
