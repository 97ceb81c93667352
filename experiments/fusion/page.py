"""Write docs/experiments.md from the recorded results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.markdown import table

from .design import CHOSEN_BY, POWER, SIGNIFICANCE
from .findings import finding

Answer = Mapping[str, Any]


def render(results: Mapping[str, Any], reranking: Mapping[str, Any] | None, corpora: str = "") -> str:
    """Return the page; ``reranking`` is None if it was not run, and ``corpora`` the section about those sets."""
    answers = list(results["questions"])
    notes = {}
    if reranking is not None:
        answers.append(reranking["question"])
        notes[reranking["question"]["key"]] = (_model(reranking),)
    halves = ", ".join(f"{name} {n['tune']} and {n['test']}" for name, n in results["folders"].items())
    versions = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    head = _HEAD.format(halves=halves, versions=versions, chosen_by=CHOSEN_BY, level=SIGNIFICANCE, power=POWER)
    short = [f"- **{a['title']}.** {finding(a)}" for a in answers if a["comparisons"]]
    parts = [head, "## Findings\n", "\n".join(short) + "\n"]
    for a in answers:
        parts += [f"## {a['title']}\n", a["about"] + "\n", *notes.get(a["key"], ()), _arms(a)]
        if a["comparisons"]:
            parts.append(_comparisons(a))
    if reranking is None:
        parts += ["## A second stage\n", _NO_RERANKING]
    if corpora:
        parts.append(corpora)
    return "\n".join(parts)


def _model(reranking: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in reranking["versions"].items())
    return f"The model: `{reranking['model']}` ({versions}), {reranking['about']}.\n"


def _arms(answer: Answer) -> str:
    """Return a table of every arm on the test half, with its chosen options."""
    rows = []
    for name, folders in answer["arms"].items():
        for folder, reached in folders.items():
            cells = [_interval(reached["test"][metric], "mean") for metric in answer["metrics"]]
            rows.append([f"`{name}`", folder, *cells, _chosen(reached)])
    head = ["arm", "questions", *answer["metrics"], "chosen"]
    if all(row[-1] == "" for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    return table(head, rows, words=2)


def _comparisons(answer: Answer) -> str:
    """Return a table of every pair, with a line for each folder."""
    lines: dict[tuple[str, str, str], dict[str, Any]] = {}
    for c in answer["comparisons"]:
        lines.setdefault((c["first"], c["second"], c["folder"]), {})[c["metric"]] = c
    rows = [
        [f"`{first}` − `{second}`", folder, *(_compared(by_metric[metric]) for metric in answer["metrics"])]
        for (first, second, folder), by_metric in lines.items()
    ]
    return table(["pair", "questions", *answer["metrics"]], rows, words=2)


def _compared(c: Mapping[str, Any]) -> str:
    if c["wins"] + c["losses"] == 0:
        return "the same"
    detects = "–" if c["detects"] is None else f"{100 * c['detects']:.1f}"
    p = f"p = {c['p_holm']:.2g}" if c["p_holm"] >= SIGNIFICANCE else f"**p = {c['p_holm']:.2g}**"
    return f"{_interval(c, 'difference', '+')}, {p}, {c['wins']}:{c['losses']}, {detects}"


def _interval(row: Mapping[str, Any], value: str, sign: str = "") -> str:
    low, high = (format(100 * row[end], f"{sign}.1f") for end in ("low", "high"))
    return f"{format(100 * row[value], f'{sign}.1f')} ({low} to {high})"


def _chosen(reached: Mapping[str, Any]) -> str:
    if reached["tried"] == 1:
        return ""
    options = ", ".join(f"{_value(value)}" for value in reached["chosen"].values())
    return f"{options} of {reached['tried']}"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "/".join(map(_value, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


_HEAD = """# Experiments

This page is written by `python -m experiments.fusion`, on the question folders in `--data`; the numbers are in
`experiments/results/`. They depend only on the data and the code
({versions}).

- Questions are split in two halves by the MD5 hash of their ids (tune and test: {halves}).
  The options of each arm are chosen from its grid by mean {chosen_by} on the tune half. All figures below are of the
  test half, on which each arm was run once.
- Legs: all-MiniLM-L6-v2 vectors (`dense`), Personalized PageRank from the question's entities with damping 0.5
  (`graph`), and BM25 (`lexical`), as in [quality.md](quality.md). Pools are 100, 30 and 100 unless stated otherwise.
- Figures are percentages with 95 % intervals: bootstrap, and Wilson's for full support and last hop.
- The cell of a pair has the difference in points with its paired bootstrap interval; p of the exact McNemar test (full
  support, last hop) or the paired randomisation test, after Holm's correction over all comparisons of the section (both
  folders, all pairs, all metrics), in bold below {level:g}; questions won and lost; and the smallest true difference
  that these questions would detect with a probability of {power:g} at the level of Holm's first step,
  {level:g} / comparisons (– if there is none). Smaller differences may exist undetected: a difference that is not
  significant is no evidence of equality. The intervals are not corrected.
"""

_NO_RERANKING = """Not run, as no trained model was available, so it is open whether a second stage harms multi-hop
questions. With a model in FOLDER, run `python -m experiments.fusion.reranking --model FOLDER` and then
`python -m experiments.fusion --page-only` to add it here.
"""
