"""docs/experiments.md: what was tried and what came of it, each claim checked against the recorded results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hopfuse.recipes import GuidedWalkConfig

from ..published import METRICS, REFERENCE
from .numbers import SIGNIFICANCE, ClaimError, Comparisons, percent, size

Results = Mapping[str, Any]
HOTPOTQA, MUSIQUE, OPENIE = "hotpotqa", "musique-train", "musique-openie"
FULL, RECALL, LAST = "full_support@10", "recall@5", "last_hop@10"
#: Options of GuidedWalk that its sweep chose.
CHOSEN = ("second_mass", "tau", "word_boost")


def findings(results: Results) -> str:
    """Return the page."""
    studies = {one["key"]: Comparisons(one["comparisons"]) for one in results["fusion"]["questions"]}
    studies["reranking"] = Comparisons(results["reranking"]["question"]["comparisons"])
    halves = " and ".join(f"{n['test']} on {name}" for name, n in results["fusion"]["folders"].items())
    parts = [
        _HEAD.format(halves=halves),
        calibration(studies["calibration"]),
        methods(studies["methods"]),
        convex(studies["convex"]),
        rank_constant(studies["rank_constant"]),
        graph_pool(studies["graph_pool"]),
        pool_caps(studies["pool_caps"]),
        temperature(studies["temperature"]),
        synonyms(studies["synonyms"]),
        ising(studies["ising"]),
        second_stage(studies["reranking"], results["reranking"]),
        _RECIPES,
        defaults(results["tuned"]),
        guided(results["guided"]),
        policy(results["ablations"]["folders"]),
        rewording(results["ablations"]["folders"]),
        tau(results["similarity"]),
        titles(results["titles"]["folders"]),
        reproduced(results["published"]["folders"][HOTPOTQA]),
    ]
    return "\n".join(parts)


def calibration(c: Comparisons) -> str:
    boltzmann = {scale: c.worse("boltzmann, pit", f"boltzmann, {scale}", MUSIQUE) for scale in ("min-max", "max")}
    return f"""### Percentile ranks, min-max or raw scores?

For Boltzmann fusion, percentile ranks are worse than min-max scores on musique-train ({boltzmann["min-max"]} points),
and worse than scores divided by the list's largest ({boltzmann["max"]}). For linear fusion, no scale was shown to be
better ({c.undecided(["linear, pit", "linear, min-max"])} would have been seen), nor any on hotpotqa. Raw scores lost
nothing here, but their best weight was at the edge of what was tried.
"""


def methods(c: Comparisons) -> str:
    return f"""### Boltzmann, linear or RRF?

With weights chosen for each, none of the three was shown to be better ({c.undecided()} would have been seen).
"""


def convex(c: Comparisons) -> str:
    three, two, vectors = "dense + graph + lexical", "dense + lexical", "dense + graph"
    c.undecided([f"convex: {three}"], [HOTPOTQA])
    return f"""### Convex combination or RRF?

Over three lists, with weights chosen for both, the convex combination of scores is worse on musique-train (by
{c.worse(f"convex: {three}", f"rrf, chosen: {three}", MUSIQUE)} points; recall@5 by
{c.worse(f"convex: {three}", f"rrf, chosen: {three}", MUSIQUE, RECALL)}) and not shown to differ on hotpotqa. Over
vectors and words alone, it is better than RRF with equal weights on musique-train (by
{c.better(f"convex: {two}", f"rrf: {two}", MUSIQUE)}), but not than RRF with chosen ones. Over vectors and graph, it
is worse on both sets (recall@5 by {c.worse(f"convex: {vectors}", f"rrf: {vectors}", HOTPOTQA, RECALL)} on hotpotqa,
by {c.worse(f"convex: {vectors}", f"rrf, chosen: {vectors}", MUSIQUE, RECALL)} on musique-train).
"""


def rank_constant(c: Comparisons) -> str:
    gains = {k: c.better(f"k = {k}", "k = 60", MUSIQUE) for k in (1, 2, 5, 10, 20, 30)}
    c.undecided(folders=[HOTPOTQA])
    return f"""### RRF's k

With three lists of equal weight, every k that was tried from 1 to 30 is better on musique-train than the usual 60: by
{gains[2]} points at 2, by {gains[5]} at 5, by {gains[30]} at 30. No difference was shown on hotpotqa.
"""


def graph_pool(c: Comparisons) -> str:
    lost = {folder: c.worse("boltzmann, 300", "boltzmann, 30", folder, FULL) for folder in (HOTPOTQA, MUSIQUE)}
    return f"""### Does a longer graph list do harm?

Under Boltzmann fusion, yes. With 300 passages of the walk instead of 30, full_support@10 falls by {lost[HOTPOTQA]}
points on hotpotqa and by {lost[MUSIQUE]} on musique-train: many weak passages take the place of a few good ones.
Longer lists were not shown to harm RRF ({c.undecided(["rrf, 100", "rrf, 300", "rrf, 1000"])} would have been seen).
"""


def pool_caps(c: Comparisons) -> str:
    chosen = {other: c.better("linear, chosen", f"linear, {other}", MUSIQUE) for other in ("default", "whole")}
    c.undecided(["boltzmann, chosen", "boltzmann, default", "rrf, chosen", "rrf, default"])
    return f"""### How long should the lists be?

For linear fusion, lengths chosen on the tune half gain {chosen["default"]} points on musique-train over 100 dense, 30
graph and 100 lexical passages, and {chosen["whole"]} over 1,000 of each. For Boltzmann fusion and RRF, no gain was
shown, nor any on hotpotqa.
"""


def temperature(c: Comparisons) -> str:
    return f"""### Boltzmann's temperature

Fixed temperatures from 0.3 to 2 were not shown to differ from the automatic one ({c.undecided()} would have been
seen).
"""


def synonyms(c: Comparisons) -> str:
    return f"""### Do edges between synonyms help?

Not here. Edges between entities of similar or equal names changed neither the walk nor the fused list beyond chance
({c.undecided()} would have been seen).
"""


def ising(c: Comparisons) -> str:
    lost = {b: c.worse(f"b = {b}", "fused", HOTPOTQA) for b in (0.25, 0.5, 1.0)}
    c.undecided(folders=[MUSIQUE])
    return f"""### Ising reranking

No share of the magnetisation in the score was better than none. On hotpotqa, larger shares are worse: by {lost[0.25]}
points at 0.25, by {lost[0.5]} at 0.5, by {lost[1.0]} at 1. Shares of 0.05 and 0.1 were not shown to differ from none
({c.undecided(["b = 0.05", "b = 0.1"])} would have been seen). On musique-train, no difference was shown.
"""


def second_stage(c: Comparisons, about: Mapping[str, Any]) -> str:
    lost = {
        run: " and ".join(f"{c.worse(run, 'fused', folder)} on {folder}" for folder in (HOTPOTQA, MUSIQUE))
        for run in ("reranked", "fused + reranked")
    }
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return f"""### A second stage

A small trained model, `{about["model"]}` ({versions}), made both sets worse. It reranked the first
{about["candidates"]} passages. Its order loses {lost["reranked"]}, and its order fused with the first list
{lost["fused + reranked"]}. The model compares the embeddings of question and passage, and its package does not say
what it was trained on. A cross-encoder, which reads both texts together, was not tried.
"""


def defaults(found: Mapping[str, Any]) -> str:
    lines = []
    for recipe, one in found.items():
        gained = [100 * folder["against_baseline"]["difference"] for folder in one["test"].values()]
        lines.append(
            f"| `{recipe}` | {one['num_trials']:,} | {size(one['selected']['worst_loss'])} | "
            + " | ".join(f"{value:+.1f}" for value in gained)
            + " |\n"
        )
    return f"""### How were the defaults chosen?

Options that are best on one set lose on another. So `python -m experiments.tuned` chose them on the tune halves of
{", ".join(next(iter(found.values()))["test"])} together: the selected trial is the one whose largest loss against a
set's best trial is smallest, by last_hop_recall@5. The table has that loss, and what the selected options gain on
each test half over the published ones (for `guided-walk`, over its defaults before the sweep).

| recipe | trials | largest loss, tune | {" | ".join(next(iter(found.values()))["test"])} |
| --- | ---: | ---: | ---: | ---: | ---: |
{"".join(lines)}
Two things were set since, by hand, on the tune halves of all sets of [Quality](quality.md): how a recipe weighs its
lists by each question's rarest name, and GuidedWalk's `second_top`. The test halves were not fresh: finalists of
earlier, smaller grids of PhaseGraph, PolicyRAG and GuidedWalk had been run on them. [Options, with
intervals](results/quality/defaults.csv).
"""


def guided(found: Mapping[str, Any]) -> str:
    runs, config = found["runs"], GuidedWalkConfig()
    lost = {name: _lost(runs[f"without {name}"]) for name in ("A", "B", "words", "words, A and B")}
    same = [runs[f"damping {value}"] for value in (0.5, 0.7, 0.85)] + [runs["depth 2"], runs["floor 0.001"]]
    if any(one["low"] > 0 or one["high"] < 0 for one in same):
        raise ClaimError("an option of GuidedWalk makes a difference")
    if runs["title edges of weight 1 (C)"]["difference"] > 0:
        raise ClaimError("edges from titles help")
    encoders = "; ".join(f"{name}, {_lost(by_run['without A and B'])}" for name, by_run in found["encoders"].items())
    asked = found["newcomers"]
    return f"""### What does each part of GuidedWalk add?

Points of last_hop_recall@5 that are lost without it, over the test halves of {", ".join(found["questions"])} (`python
-m experiments.guided`), with 95 % intervals:

- similarity to the question as weights of the walk: {lost["A"]};
- second seeds: {lost["B"]};
- words: {lost["words"]};
- all three: {lost["words, A and B"]};
- the first two, with other vectors: {encoders}.

Another damping, a smaller `floor` or a third walk (`depth` 2) makes no difference beyond chance, and edges from a
passage's title to its entities do not help. No default was chosen by these figures, and they are not corrected for
their number. Of {asked["questions"]} questions that newcomers wrote about the atlas, the defaults (`tau`
{config.decay(has_words=True):g}, `word_boost` {config.boost:g}) answer {asked["found"]["GuidedWalk"]} among the first
five hits. [All runs](results/quality/guided-walk.csv).
"""


def _lost(one: Mapping[str, Any]) -> str:
    return f"{size(one['difference'])} ({-100 * one['high']:.1f} to {-100 * one['low']:.1f})".replace("-0.0", "0.0")


def policy(folders: Mapping[str, Any]) -> str:
    whole, paper = "policy rag", "policy rag, paper"
    against = {
        name: {run: c["ndcg@10"] for run, c in found["against baseline"].items()} for name, found in folders.items()
    }
    helps = [run for run in ("without gate", "without relation_edges") if _helps(against[HOTPOTQA][run])]
    openie = [run for run, c in against[OPENIE].items() if run.startswith("without") and _helps(c)]
    if len(helps) != 2 or openie:
        raise ClaimError("other parts of PolicyRAG help")

    def reached(run: str, metric: str = "ndcg@10", folder: str = HOTPOTQA) -> str:
        return percent(folders[folder]["groups"]["all"]["means"][run][metric])

    nodes = [
        f"from {reached(whole, LAST, folder)} to {reached('without passage_nodes', LAST, folder)} on {folder}"
        for folder in (HOTPOTQA, OPENIE)
    ]
    return f"""### What does each part of PolicyRAG add?

On hotpotqa, the gate and the edges of relations raise ndcg@10: without them, it falls from {reached(whole)} to
{reached("without gate")} and {reached("without relation_edges")}. Passages as nodes of the walk bring the last hop:
without them, last_hop@10 falls {" and ".join(nodes)}. Seeds by the question's vector instead of by names are worse
(ndcg@10 {reached("seeds: question")}). More than five facts for the gate change nothing (10: {reached("facts: 10")},
20: {reached("facts: 20")}). The paper's settings have a better order but lose the last hop: ndcg@10 {reached(paper)},
last_hop@10 {reached(paper, LAST)} against {reached(whole, LAST)}.

On musique-openie, with 100 questions, no part was shown to help by ndcg@10. `python -m experiments.ablations` runs
this. [All parts, and more metrics](results/quality/policy-rag.csv).
"""


def _helps(c: Mapping[str, Any]) -> bool:
    """Return whether a run without a part is significantly worse than the whole."""
    return bool(c["p_holm"] < SIGNIFICANCE and c["wins"] < c["losses"])


def rewording(folders: Mapping[str, Any]) -> str:
    rows = []
    for name, found in folders.items():
        for run in ("dense", "phasegraph", "policy rag"):
            one = found["stability"]["runs"][run]
            rows.append(
                f"| {name} | {run} | {percent(one['paraphrase']['rbo'])} | {percent(one['other name']['rbo'])} |\n"
            )
    changed = {name: found["stability"]["rewritten"] for name, found in folders.items()}
    renamed = " and ".join(f"{one['other name'][0]} on {name}" for name, one in changed.items())
    return f"""### Does a ranking survive rewording?

Mostly. The table has the rank-biased overlap of the lists before and after, in percent: after a paraphrase by rules,
and after one of the question's entities has got another of its names. Few questions have such a name ({renamed}), so
those figures are rough. [More values](results/quality/policy-rag-stability.csv).

| set | ranking | paraphrase | another name |
| --- | --- | ---: | ---: |
{"".join(rows)}"""


def tau(found: Mapping[str, Any]) -> str:
    own = {name: f"{one['temperature']:.2f}" for name, one in found["own"].items()}
    unit = found["units"]["standard deviation"]
    best = min(max(one["test"].values()) for one in found["units"].values())
    return f"""### Can encoders share one tau?

Yes, in units of a question's standard deviation of similarities. By raw cosines, the best temperatures of three
encoders differ ({", ".join(f"{name} {value}" for name, value in own.items())}). With one tau of {unit["tau"]:.2g}
standard deviations, none loses more than {max(unit["test"].values()):.1f} points of last_hop_recall@5 on the test
halves; the best of ten units loses {best:.1f}. These questions cannot tell such units apart. [All
units](results/quality/tau.csv).
"""


def titles(folders: Mapping[str, Any]) -> str:
    rows = []
    for name, found in folders.items():
        one = found["metrics"]["recall@5"]
        if one["p"] >= SIGNIFICANCE or one["wins"] <= one["losses"]:
            raise ClaimError(f"titles do not help on {name}")
        rows.append(f"| {name} | {percent(one['texts'])} | {percent(one['titles and texts'])} | {one['p']:.2g} |\n")
    return f"""### Should vectors read titles?

Yes: `hopfuse build` encodes a passage's title and text together. The table has recall@5 of dense retrieval over all
questions, with WordLlama's vectors (`python -m experiments.titles`); p is from a paired randomisation test, not
corrected. [More metrics](results/quality/titles.csv).

| set | texts | titles and texts | p |
| --- | ---: | ---: | ---: |
{"".join(rows)}"""


def reproduced(found: Mapping[str, Any]) -> str:
    means = found["groups"]["all"]["means"]
    away = max(
        abs(100 * means[run][metric] - theirs)
        for run, figures in REFERENCE.items()
        for metric, theirs in zip(METRICS[:3], figures, strict=True)
    )
    return f"""### Are another implementation's figures reproduced?

Within {away:.1f} points, on hotpotqa: {len(REFERENCE)} rankings (dense, BM25, walk, RRF, and PhaseGraph by two rules
for ties) by {", ".join(METRICS[:3])}. [All figures here](results/quality/published.csv).
"""


_RECIPES = """## Recipes

Three sets with vectors of all-MiniLM-L6-v2, of WordLlama, and of *MiniLM on 128*: MiniLM's, projected to 128 random
orthogonal directions. [Evaluation](evaluation.md#metrics) defines the metrics.
"""

_HEAD = """# Experiments

What was tried, and what came of it. Each answer names the figures behind it; the tables are CSV files. `python -m
experiments.pages` writes this page from the recorded results, and refuses a sentence that they no longer support.

## Fusion

Run by `python -m experiments.fusion` and `python -m experiments.fusion.reranking`. Two sets, each cut into halves by
the MD5 hash of a question's id: options are chosen on the tune half by ndcg@10, and all figures are of the test half
({halves}). Points are of ndcg@10 unless another metric is named. The lists are dense (all-MiniLM-L6-v2), graph
(Personalized PageRank from the question's entities, damping 0.5) and lexical (BM25).

*Better* and *worse* mean p below 0.05 after Holm's correction over all comparisons of a question. *Would have been
seen* names the true difference that so many questions show with a probability of 0.8. Smaller ones may exist: a
difference that was not shown is no evidence of equality.

[Every arm](results/quality/fusion-arms.csv) · [every comparison](results/quality/fusion-pairs.csv)
"""
