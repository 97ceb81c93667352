"""How good each way of ranking is on a demo's questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from .. import Hits
from ..evaluate import evaluate, parse_metric
from .demo_asked import Asked, Contest
from .demo_ways import Judged, judged_by, ways_of
from .joining import joined


@dataclass(frozen=True, eq=False)
class Scored:
    """Questions and, for each way of ranking, their hits."""

    asked: Asked
    runs: Mapping[str, Hits]
    judged: Judged

    @property
    def baseline(self) -> str:
        """The first way, that the others are compared with."""
        return next(iter(self.runs))


def score_questions(contest: Contest, batch: int) -> Scored:
    """Rank for all questions in batches."""
    ways, parts = ways_of(contest), dict[str, list[Hits]]()
    for start in range(0, len(contest.asked), batch):
        contest.encoder.start()
        rows = range(start, min(start + batch, len(contest.asked)))
        for name, hits in ways.ranked(contest, rows).items():
            parts.setdefault(name, []).append(hits)
    return Scored(contest.asked, {name: joined(found) for name, found in parts.items()}, judged_by(contest.asked))


def quality_table(scored: Scored, contest: Contest) -> Table:
    """Metrics of every way of ranking, and the paired comparison with the first, by group."""
    judged = scored.judged
    table = Table(
        title="Quality: percent of questions",
        caption=f"Wins, losses and exact McNemar p: {judged.metrics[judged.compared]} against {scored.baseline}.\n"
        f"{ways_of(contest).said(contest.chosen)}",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("ranking", no_wrap=True)
    for column in (*judged.metrics.values(), "wins", "losses", "p"):
        table.add_column(column, justify="right")
    for label, rows in scored.asked.groups.items():
        if rows.any():
            _add_group(table, label, rows, scored)
            table.add_section()
    return table


def shown_question(scored: Scored) -> int:
    """A question that the recipe gets right and the baseline does not, asked by an alias if there is one."""
    judge = parse_metric(scored.judged.compared)
    own, base = (
        judge.per_query(scored.runs[name], scored.asked.qrels) for name in (list(scored.runs)[-1], scored.baseline)
    )
    won = np.nan_to_num(own) > np.nan_to_num(base)
    alias = scored.asked.groups.get("by alias", np.zeros(won.size, bool))
    return int(np.argmax(2 * (won & alias) + won))


def _add_group(table: Table, label: str, rows: NDArray[np.bool_], scored: Scored) -> None:
    runs = {name: Hits(hits.ids[rows], hits.scores[rows], hits.counts[rows]) for name, hits in scored.runs.items()}
    metrics, qrels = scored.judged.metrics, scored.asked.qrels.take(rows)
    evaluation = evaluate(runs, qrels, list(metrics), baseline=scored.baseline, by_hops=False)
    table.add_row(f"[bold]{label}: {int(rows.sum()):,}[/bold]")
    for name in runs:
        found = (evaluation.estimate(name, metric).mean for metric in metrics)
        means = ("-" if np.isnan(mean) else f"{100 * mean:.1f}" for mean in found)
        compared = ("", "", "")
        if name != scored.baseline:
            c = evaluation.comparison(name, scored.judged.compared)
            p = "-" if not c.n else f"{c.p_value:.1g}" if c.p_value >= 1e-300 else "<1e-300"
            compared = (str(c.wins), str(c.losses), p)
        table.add_row(f"  {name}", *means, *compared)
