"""How good each way of ranking is on the atlas's questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from .. import Hits, fuse
from ..evaluate import Qrels, evaluate, last_hop
from ..extract.atlas import Question
from ..recipes import PhaseGraph
from .joining import joined
from .names import NameFinder

METRICS = {"recall@5": "recall@5", "last_hop@5": "last hop@5", "last_hop@10": "last hop@10"}
COMPARED = "last_hop@10"
BASELINE = "dense"
DEPTH = 10


@dataclass(frozen=True, eq=False)
class Scored:
    """Questions and, for each way of ranking, their hits."""

    questions: Sequence[Question]
    runs: Mapping[str, Hits]


def score_questions(recipe: PhaseGraph, names: NameFinder, questions: Sequence[Question], batch: int) -> Scored:
    """Search for all questions in batches, and fuse the same two lists by reciprocal ranks too."""
    runs: dict[str, list[Hits]] = {"dense": [], "graph": [], "RRF": [], "PhaseGraph": []}
    for start in range(0, len(questions), batch):
        texts = [q.text for q in questions[start : start + batch]]
        found = recipe.search(texts, entities=names.find(texts), k=DEPTH)
        runs["dense"].append(widened(found.dense))
        runs["graph"].append(widened(found.graph))
        runs["RRF"].append(fuse([found.dense, found.graph], method="rrf", k=DEPTH))
        runs["PhaseGraph"].append(found.hits)
    return Scored(questions, {name: joined(parts) for name, parts in runs.items()})


def widened(hits: Hits) -> Hits:
    """The first ``DEPTH`` hits, with padding where the lists are shorter."""
    short = max(0, DEPTH - hits.shape[1])
    ids = np.pad(hits.ids, ((0, 0), (0, short)), constant_values=-1)[:, :DEPTH]
    scores = np.pad(hits.scores, ((0, 0), (0, short)), constant_values=-np.inf)[:, :DEPTH]
    return Hits(ids, scores, np.minimum(hits.counts, DEPTH))


def quality_table(scored: Scored, recipe: PhaseGraph) -> Table:
    """Metrics of every way of ranking, and the paired comparison with dense retrieval, by group."""
    table = Table(
        title="Quality: percent of questions",
        caption=f"Wins, losses and exact McNemar p: {METRICS[COMPARED]} against {BASELINE}.\n"
        f"alpha {recipe.alpha:g}, lists of {recipe.dense_k} and {recipe.graph_k}, damping {recipe.damping:g}",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("ranking", no_wrap=True)
    for column in (*METRICS.values(), "wins", "losses", "p"):
        table.add_column(column, justify="right")
    for label, rows in _groups(scored.questions).items():
        if rows.any():
            _add_group(table, label, rows, scored)
            table.add_section()
    return table


def graph_win(scored: Scored) -> Question:
    """A question, asked by an alias if there is one, whose last hop the fusion finds and dense retrieval misses."""
    qrels = _qrels(scored.questions)
    won = last_hop(scored.runs["PhaseGraph"], qrels, 5) > last_hop(scored.runs[BASELINE], qrels, DEPTH)
    alias = np.array([q.by_alias for q in scored.questions])
    return scored.questions[int(np.argmax(2 * (won & alias) + won))]


def _groups(questions: Sequence[Question]) -> dict[str, NDArray[np.bool_]]:
    hops = np.array([q.num_hops for q in questions])
    alias = np.array([q.by_alias for q in questions])
    return {"all": np.ones(hops.size, bool), "2 hops": hops == 2, "3 hops": hops == 3, "by alias": alias}


def _add_group(table: Table, label: str, rows: NDArray[np.bool_], scored: Scored) -> None:
    questions = [q for q, kept in zip(scored.questions, rows, strict=True) if kept]
    runs = {name: Hits(hits.ids[rows], hits.scores[rows], hits.counts[rows]) for name, hits in scored.runs.items()}
    evaluation = evaluate(runs, _qrels(questions), list(METRICS), baseline=BASELINE, by_hops=False)
    table.add_row(f"[bold]{label}: {len(questions):,}[/bold]")
    for name in runs:
        means = (f"{100 * evaluation.estimate(name, metric).mean:.1f}" for metric in METRICS)
        compared = ("", "", "")
        if name != BASELINE:
            c = evaluation.comparison(name, COMPARED)
            compared = (str(c.wins), str(c.losses), f"{c.p_value:.1g}" if c.p_value >= 1e-300 else "<1e-300")
        table.add_row(f"  {name}", *means, *compared)


def _qrels(questions: Sequence[Question]) -> Qrels:
    return Qrels(
        [q.id for q in questions],
        [q.hops for q in questions],
        [[[row] for row in q.hops] for q in questions],
        [[q.last_hop] for q in questions],
        [q.type for q in questions],
    )
