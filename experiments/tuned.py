"""PhaseGraph tuned on one half of a folder's questions and reported on the other: a section of docs/quality.md."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import hopfuse as hf
import numpy as np
from hopfuse.evaluate import Qrels, compare, evaluate, in_test_half

from bench.markdown import table

CHOSEN_BY = "last_hop@5"
METRICS = ("recall@5", "last_hop@5", "last_hop@10", "full_support@10", "ndcg@10")
ALPHAS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
GRAPH_KS = (10, 20, 30, 50, 100)
TIES = ("strict", "mean")


class Setting(NamedTuple):
    """What is chosen: the dense leg's weight, the length of the graph's list, and how equal scores rank."""

    alpha: float
    graph_k: int
    ties: str


def section(dense: hf.Hits, graph: hf.Hits, qrels: Qrels) -> str:
    """The setting that is best on the tune half, and what it gives on the test half beside dense retrieval.

    ``dense`` and ``graph``: pools of 100 of each question.
    """
    test = in_test_half(qrels.ids)
    best, score = chosen(dense, graph, qrels)
    runs = {"dense": dense.head(10), "phasegraph, tuned": fused(dense, graph, best)}
    result = evaluate(qrels, runs, METRICS)
    rows = []
    for metric in METRICS:
        theirs, ours = (np.asarray(result.per_query[name][metric])[test] for name in runs)
        c = compare(ours, theirs, binary=metric.startswith(("last", "full")))
        rows.append(
            [
                metric,
                *(f"{100 * np.nanmean(values):.1f}" for values in (theirs, ours)),
                f"{100 * c.difference:+.1f} ({100 * c.low:+.1f} to {100 * c.high:+.1f})",
                str(c.wins),
                str(c.losses),
                f"{c.p_value:.2g}",
            ]
        )
    count = len(ALPHAS) * len(GRAPH_KS) * len(TIES)
    title = (
        f"PhaseGraph tuned: of {count} settings (alpha, graph_k, ties) the best by {CHOSEN_BY} on the "
        f"{int((~test).sum())} questions whose id has an even MD5\nis alpha = {best.alpha}, graph_k = {best.graph_k}, "
        f"ties = {best.ties} ({100 * score:.1f} there). On the other {int(test.sum())}:\n\n"
    )
    return title + table(["metric", "dense", "tuned", "difference", "wins", "losses", "p"], rows)


def chosen(dense: hf.Hits, graph: hf.Hits, qrels: Qrels) -> tuple[Setting, float]:
    """The setting that is best on the tune half, and its mean there."""
    test = in_test_half(qrels.ids)
    best, score = None, -1.0
    for values in product(ALPHAS, GRAPH_KS, TIES):
        setting = Setting(*values)
        run = evaluate(qrels, {"it": fused(dense, graph, setting)}, (CHOSEN_BY,))
        value = float(np.nanmean(np.asarray(run.per_query["it"][CHOSEN_BY])[~test]))
        if value > score:  # of equal ones the first
            best, score = setting, value
    assert best is not None
    return best, score


def fused(dense: hf.Hits, graph: hf.Hits, setting: Setting) -> hf.Hits:
    weights = (setting.alpha, 1.0 - setting.alpha)
    return hf.fuse([dense, graph.head(setting.graph_k)], weights=weights, ties=setting.ties, k=10)  # type: ignore[arg-type]
